"""What the command ``report`` does: everything about one declaration in a folder, and how it is made again."""

from __future__ import annotations

import argparse
import csv
import json
import platform
import shutil
import subprocess
import tempfile
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symcavity.commands.actions import FAILED, finite_values, load_system, named_values, solved, theory_of
from symcavity.commands.arguments import read_pairs, split_pairs, whole_numbers
from symcavity.commands.files import say
from symcavity.commands.sweeping import run_sweep
from symcavity.errors import SymcavityError, ValuesError
from symcavity.finite.compare import Comparison, compare
from symcavity.finite.plots import need_matplotlib, plot_distribution
from symcavity.finite.run import simulate
from symcavity.finite.setup import check_sizes, prepare
from symcavity.finite.simulation import Simulation
from symcavity.loading import is_file
from symcavity.model.kinds import N
from symcavity.model.quantities import SiteQuantity, Variable
from symcavity.model.typed import read_observable
from symcavity.writing.html import page

if TYPE_CHECKING:
    from symcavity.face import BipartiteSystem, Theory

FORMAT = 1
RECORD = "report.json"
_SETTINGS = ("target", "object", "method", "values", "sweep", "show", "N", "seeds", "couplings", "dps")
_PACKAGES = ("sympy", "numpy", "scipy", "mpmath", "matplotlib", "daqp", "clarabel", "python-flint")


def make_report(args: argparse.Namespace) -> int:
    """Write the report of a declaration, or make one again from its record."""
    again = Path(args.target)
    if again.suffix == ".json":
        _take(args, again)
    if args.values or args.sweep:
        need_matplotlib()  # before any work
    folder = _folder(args)
    settings = {name: getattr(args, name) for name in _SETTINGS}
    if is_file(args.target):
        settings["target"] = "declaration.py"
        if Path(args.target).resolve() != (folder / "declaration.py").resolve():
            shutil.copyfile(args.target, folder / "declaration.py")
    system = load_system(args)
    theory = theory_of(args, system)
    values = read_pairs(args.values, system)
    for text in args.show:
        theory.observable(read_observable(text, system, theory.order_parameters))
    record = {"format": FORMAT, "settings": settings, "versions": _versions()}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    extra = [("The declaration", _declaration(system))]
    if args.values:  # what is quick stands first, and so do its errors
        extra.append(("Numbers", _numbers(folder, args, system, theory, values)))
        _draw_one(args, system, theory, values)
    if args.sweep:
        extra.append(("A sweep", _swept(folder, args, system, theory)))
    derivation = theory.derivation
    (folder / "derivation.tex").write_text(derivation.to_latex(), encoding="utf-8")
    say(f"{len(derivation)} steps derived")
    _typeset(folder)
    verification = derivation.verify(dps=args.dps)
    (folder / "checks.txt").write_text(f"{verification}\n", encoding="utf-8")
    say(str(verification).splitlines()[-1])
    if args.values:
        extra.append(("Theory against instances", _instances(folder, args, system, theory, values)))
    (folder / "report.html").write_text(page(derivation, verification, extra), encoding="utf-8")
    files = sorted(path.name for path in folder.iterdir())
    if args.json:
        found = {"folder": str(folder), "files": files, "steps": len(derivation), "verified": bool(verification)}
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        print(f"{folder}: {', '.join(files)}")
    return 0 if verification else FAILED


def _folder(args: argparse.Namespace) -> Path:
    """Return the folder of the report; one that holds something else is left alone."""
    folder = Path(args.output)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).exists():
        raise ValuesError(f"The folder {folder} holds other files.", "a new folder, or the one of an earlier report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValuesError(f"The folder {folder} cannot be made: {error.strerror or error}.") from None
    return folder


def _take(args: argparse.Namespace, path: Path) -> None:
    """Take the settings of an earlier report."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        settings = {name: record["settings"][name] for name in _SETTINGS}
    except OSError as error:
        raise ValuesError(f"The record {path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError):
        raise ValuesError(f"{path} is not a record of a report.", f"the file {RECORD} of an earlier report") from None
    if record.get("versions") != _versions():
        say("the report was made with other versions: numbers may differ in their last digits")
    vars(args).update(settings)
    if is_file(args.target):
        args.target = str(path.parent / args.target)


def _versions() -> dict[str, str]:
    from symcavity import __version__

    found = {"symcavity": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _typeset(folder: Path) -> None:
    """Make the PDF, where there is a TeX."""
    tex = shutil.which("pdflatex")
    if tex is None:
        say("no pdflatex on this machine: derivation.tex is not typeset")
        return
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(folder / "derivation.tex", work)
        command = [tex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "derivation.tex"]
        for _ in range(2):
            subprocess.run(command, cwd=work, capture_output=True, check=False, timeout=300)  # noqa: S603
        made = Path(work) / "derivation.pdf"
        if made.exists():
            shutil.copy(made, folder)
        else:
            say("derivation.tex could not be typeset; pdflatex says why")


def _declaration(system: BipartiteSystem) -> str:
    problem = getattr(system.record, "problem", system)
    return f"<pre>{escape(str(problem))}</pre>"


def _numbers(
    folder: Path, args: argparse.Namespace, system: BipartiteSystem, theory: Theory, values: dict[Any, Any]
) -> str:
    given = {k: v for k, v in values.items() if k != N}
    solution = theory.solve(given, dps=args.dps)
    shown = {text: solution[read_observable(text, system, theory.order_parameters)] for text in args.show}
    extra = named_values(system, solution) | shown
    found = solved(args, system, given, solution, extra)
    (folder / "numbers.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    rows = "".join(
        f"<tr><td><code>{escape(k)}</code></td><td>{escape(v)}</td></tr>" for k, v in found["observables"].items()
    )
    return f'<div class="wide">{solution._repr_html_()}{f"<table>{rows}</table>" if rows else ""}</div>'


def _draw_one(args: argparse.Namespace, system: BipartiteSystem, theory: Theory, values: dict[Any, Any]) -> None:
    """Draw one instance of each size, whose values may not fit: arrays have one entry a site."""
    point = finite_values({k: v for k, v in values.items() if k != N}, system, theory)
    setup = prepare(system, point, args.couplings)
    for size in check_sizes(whole_numbers(args.N, "--N"), setup.values):
        setup.instance(size, 0)


def _instances(
    folder: Path, args: argparse.Namespace, system: BipartiteSystem, theory: Theory, values: dict[Any, Any]
) -> str:
    given = {k: v for k, v in values.items() if k != N}
    sizes = whole_numbers(args.N, "--N")
    point = finite_values(given, system, theory)
    simulation: Any = simulate(
        system,
        point,
        N=sizes if len(sizes) > 1 else sizes[0],
        seeds=args.seeds,
        couplings=args.couplings,
        executor=args.jobs,
    )
    comparison: Comparison = compare(theory, simulation)
    with (folder / "comparison.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["observable", "theory", "simulation", "stderr", "z"])
        for row in comparison:
            measured = row.simulation
            writer.writerow([row.observable, row.theory, measured.mean, measured.stderr, row.z])
    out = f'<div class="wide">{simulation._repr_html_()}{comparison._repr_html_()}</div>'
    out += _figure(folder, "comparison", comparison.plot())
    largest: Simulation = getattr(simulation, "largest", simulation)
    try:
        solution = theory.solve(point)
    except SymcavityError:
        solution = None
    for quantity in _distributed(system):
        out += _distribution(folder, quantity, largest, solution)
    return out


def _distribution(folder: Path, quantity: SiteQuantity, simulation: Simulation, solution: Any) -> str:
    """Draw how a state is distributed; a page without the figure, or without the theory in it, says why."""
    name, why = f"distribution.{quantity.family.name}", ""
    for theory in (solution, None):
        try:
            drawn = _figure(folder, name, plot_distribution(simulation, quantity, solution=theory, bins=30))
        except SymcavityError as error:
            why = f"The figure {name} has {'no theory' if theory is not None else 'not been drawn'}: {error.found}"
            say(why)
        else:
            return drawn + (f"<p>{escape(why)}</p>" if why else "")
    return f"<p>{escape(why)}</p>"


def _distributed(system: BipartiteSystem) -> list[SiteQuantity]:
    """Return the states whose distribution is a picture: those without components."""
    auxiliary = {bound for bound, _ in getattr(system.record, "auxiliary", ())}
    return [
        q
        for law in system.laws.values()
        for q in law.unknowns
        if isinstance(q.family, Variable) and not q.family.components and q not in auxiliary
    ]


def _swept(folder: Path, args: argparse.Namespace, system: BipartiteSystem, theory: Theory) -> str:
    """Draw the theory over a grid."""
    own = split_pairs(args.sweep)
    words = [*args.sweep, *(w for w in args.values if w.partition("=")[0].strip() not in own)]
    wanted = {**vars(args), "values": words, "csv": "", "x": "", "y": "", "simulate": False}
    rows, draw = run_sweep(argparse.Namespace(**wanted), system, theory)
    with (folder / "sweep.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, rows.columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    table = f'<details><summary>rows</summary><div class="wide">{rows._repr_html_()}</div></details>'
    return _figure(folder, "sweep", draw()) + table


def _figure(folder: Path, name: str, drawn: Any) -> str:
    """Save a figure as PDF, and return it as a part of the page."""
    figure = drawn.figure
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    svg = figure._repr_svg_()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"
