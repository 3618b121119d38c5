"""One function for each command: it takes the parsed arguments and returns the exit status."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symcavity.commands.files import check_figure, check_writable, save_figure, say, write
from symcavity.commands.showing import print_json
from symcavity.errors import SymcavityError, ValuesError

if TYPE_CHECKING:
    from symcavity.face import BipartiteSystem, Theory

FAILED = 1


def load_system(args: argparse.Namespace) -> BipartiteSystem:
    """Return the system of a declaration: by its name, or from a file."""
    from symcavity.loading import load, system_of

    return system_of(load(args.target, args.object))


def theory_of(args: argparse.Namespace, system: BipartiteSystem) -> Theory:
    """Derive by the requested method."""
    return system.naive() if args.method == "naive" else system.cavity()


def read_theory(args: argparse.Namespace) -> tuple[BipartiteSystem, Theory]:
    """The declared system of a command line, and its theory."""
    system = load_system(args)
    return system, theory_of(args, system)


def finite_values(values: dict[Any, Any], system: BipartiteSystem, theory: Theory) -> dict[Any, Any]:
    """Turn conditions on averages into the load, or the parameters, at which an instance meets them.

    At finite size such a condition is not imposed but comes out: ``kappa=1`` means the load at which the
    theory has ``kappa = 1``.
    """
    from symcavity.finite.given_values import law_symbols
    from symcavity.model.bound_sets import vector_sizes
    from symcavity.model.kinds import DATUM, P, alpha

    needed = law_symbols(system)
    loads = {alpha} if DATUM in system.kinds and P not in values else set()
    sized = set().union(*(size.free_symbols for size in vector_sizes(system).values()))
    wanted = sorted((needed | loads) - sized - set(values), key=str)
    if not system.fixed or not wanted:
        return values
    solution = theory.solve(values)
    outer = {s for s in system.parameters if s not in needed}
    found = {s: float(solution[s]) for s in wanted}
    told = ", ".join(f"{s} = {values[s]}" for s in values if s in outer) or ", ".join(map(str, system.fixed))
    named = ", ".join(f"{'the load ' if s == alpha else ''}{s} = {v:.6g}" for s, v in found.items())
    say(f"{told}: the theory has {named}")
    return {k: v for k, v in values.items() if k not in outer} | found


def paper(args: argparse.Namespace) -> int:
    """Print what each displayed equation of the paper is to the engine, and what was checked."""
    from symcavity.loading import paper_table

    rows = paper_table()
    if args.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    columns = ("number", "verdict", "witness", "where")
    widths = [max(len(name), *(len(row[name]) for row in rows)) for name in columns]
    lines = [tuple(columns), *(tuple(row[name] for name in columns) for row in rows)]
    for line in lines:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    counts = Counter(row["verdict"] for row in rows)
    print(f"{len(rows)} equations: " + ", ".join(f"{word} {count}" for word, count in sorted(counts.items())))
    return 0


def derive(args: argparse.Namespace) -> int:
    """Derive a theory and print its record."""
    from symcavity.writing.formats import FORMATS

    files = {name: getattr(args, name) for name in FORMATS if getattr(args, name)}
    for file in files.values():
        check_writable(file)
    derivation = theory_of(args, load_system(args)).derivation
    for name, file in files.items():
        options = {"preamble": False} if name == "latex" and args.fragment else {}
        write(file, derivation.to(name, args.detail, **options))
    if "-" not in files.values() and not (files and args.quiet):
        print(derivation.to_text(args.detail), end="")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Check every claim of a derivation."""
    if args.dps < 1:
        raise ValuesError(f"The number of digits is {args.dps}.", "a positive integer", "--dps 50")
    verification = theory_of(args, load_system(args)).derivation.verify(dps=args.dps)
    if args.json:
        steps = [
            {"key": row.step.key, "ok": row.ok if row.checked else None, "digits": row.digits}
            | {"witnesses": [{"witness": v.kind, "ok": v.ok, "detail": v.detail} for v in row.verdicts]}
            for row in verification
        ]
        print_json({"problem": args.target, "ok": bool(verification), "steps": steps})
    else:
        print(verification)
    return 0 if verification else FAILED


def solve(args: argparse.Namespace) -> int:
    """Solve a theory at given values."""
    from symcavity.commands.arguments import read_pairs
    from symcavity.model.typed import read_observable

    if args.dps < 1:
        raise ValuesError(f"The number of digits is {args.dps}.", "a positive integer", "--dps 50")
    system = load_system(args)
    values = read_pairs(args.values, system)
    theory = theory_of(args, system)
    shown = {text: read_observable(text, system, theory.order_parameters) for text in args.show}
    for observable in shown.values():
        theory.observable(observable)
    solution = theory.solve(values, dps=args.dps, timeout=args.timeout, certify=args.certify)
    extra = named_values(system, solution) | {text: solution[observable] for text, observable in shown.items()}
    if args.json:
        print(json.dumps(solved(args, system, values, solution, extra), indent=2))
        return 0
    print(solution)
    for symbol, ball in (solution.certified or {}).items():
        print(f"    {symbol!s:<16} in {ball.str(args.dps + 3)}")
    for text, value in extra.items():
        print(f"  {text:<18} = {_digits(value, max(args.dps, 6))}")
    return 0


def _digits(value: Any, digits: int) -> str:
    from symcavity.algebra.precision import mp

    return str(mp.nstr(value, digits))


def named_values(system: BipartiteSystem, solution: Any) -> dict[str, Any]:
    """The observables that a declaration has names for, where they have values; why one has none is said."""
    found, known = {}, {str(symbol) for symbol, _ in solution.rows()}
    for name in map(str, system.named):
        if name not in known:
            try:
                found[name] = solution[name]
            except SymcavityError as error:
                say(f"{name}: {error.found}")
    return found


def solved(
    args: argparse.Namespace,
    system: BipartiteSystem,
    values: dict[Any, Any],
    solution: Any,
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Return a solution for JSON: numbers are strings, so that no digit is lost in reading them."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(k): str(v) for k, v in value.items()}
        return [str(v) for v in value] if hasattr(value, "__len__") else str(value)

    found = {
        "problem": args.target,
        "title": system.name,
        "method": args.method,
        "dps": args.dps,
        "given": {str(k): plain(v) for k, v in values.items()},
        "values": {str(k): _digits(v, args.dps) for k, v in solution.rows()},
        "observables": {k: _digits(v, args.dps) for k, v in extra.items()},
        "residual": _digits(solution.residual, 3),
    }
    with suppress(SymcavityError):  # where a stability is derived
        found["stability"] = _digits(solution.stability, args.dps)
    if solution.certified is not None:
        found["certified"] = {str(k): ball.str(args.dps + 3) for k, ball in solution.certified.items()}
    return found


def table_of(comparison: Any) -> list[dict[str, Any]]:
    """The rows of a comparison as data."""
    from symcavity.finite.labels import label

    return [
        {"observable": label(r.shown), "theory": r.theory, "simulation": r.simulation.mean}
        | {"stderr": r.simulation.stderr, "z": r.z, "note": r.note}
        for r in comparison
    ]


def _instances(args: argparse.Namespace, verb: str) -> tuple[BipartiteSystem, Theory, dict[Any, Any], dict[str, Any]]:
    """Read what simulations and experiments have in common."""
    from symcavity.commands.arguments import read_pairs, whole_numbers
    from symcavity.face.refusals import refuse_motion
    from symcavity.model.kinds import N

    system = load_system(args)
    refuse_motion(system, verb)
    values = read_pairs(args.values, system)
    theory = theory_of(args, system)
    given = values.pop(N, None)
    size: Any = whole_numbers(args.N, "--N") if args.N else [int(given)] if given is not None else []
    options: dict[str, Any] = {"seeds": args.seeds, "couplings": args.couplings, "executor": args.jobs}
    if size:
        options["N"] = size if len(size) > 1 else size[0]
    return system, theory, finite_values(values, system, theory), options


def simulate(args: argparse.Namespace) -> int:
    """Simulate a declaration and compare with its theory."""
    from symcavity.commands.arguments import in_shell
    from symcavity.finite.compare import compare
    from symcavity.finite.run import simulate as run
    from symcavity.model.typed import read_observable

    check_figure(args.plot)
    check_writable(args.csv)
    system, theory, values, options = _instances(args, "simulate")
    shown = [read_observable(text, system, theory.order_parameters) for text in args.show]
    simulation = run(system, values, fresh=args.fresh, **options)
    comparison = compare(theory, simulation, shown or None)
    if args.csv:
        lines = io.StringIO()
        writer = csv.DictWriter(lines, ["observable", "theory", "simulation", "stderr", "z", "note"])
        writer.writeheader()
        writer.writerows(table_of(comparison))
        write(args.csv, lines.getvalue())
    if args.json:
        print_json({"sizes": comparison.sizes, "infeasible": comparison.infeasible, "failed": comparison.failed}
                   | {"rows": table_of(comparison), "notes": comparison.notes})
    else:
        print(f"{simulation}\n\n{in_shell(str(comparison))}")
    if args.plot:
        save_figure(comparison.plot(), args.plot)
    return 0


def experiment(args: argparse.Namespace) -> int:
    """Insert sites into solved instances."""
    from symcavity.finite.experiment import cavity_experiment

    check_figure(args.plot)
    system, theory, values, options = _instances(args, "experiment")
    outcome = cavity_experiment(system, theory, values, **options)
    if args.json:
        print_json({"problem": args.target, "claims": str(outcome).splitlines()})
    else:
        print(outcome)
    if args.plot:
        save_figure(outcome.plot(), args.plot)
    return 0


def messages(args: argparse.Namespace) -> int:
    """Pass messages on instances, and compare each step with state evolution."""
    from symcavity.finite.compared_theory import point_at, solved_at
    from symcavity.finite.passing import message_passing
    from symcavity.model.typed import read_observable

    check_figure(args.plot)
    system, theory, values, options = _instances(args, "message passing")
    shown = [read_observable(text, system, theory.order_parameters) for text in args.show]
    run = message_passing(system, values, steps=args.steps, damping=args.damping, **options)
    wanted = shown or list(theory.order_parameters.values())
    found = theory.compare(run.simulation, wanted) if args.damping else run.compare(theory, wanted)
    if args.json:
        print_json({"rows": table_of(found), "notes": found.notes, "pace": run.rate.mean})
    else:
        print(f"{run}\n\n{found}")
    with suppress(SymcavityError):  # where a stability is derived
        solution = solved_at(theory, point_at(run.setup, run.counts))[0]
        said = f"pace {run.rate.mean:.4g} a step, {solution.pace(args.damping):.4g} in theory"
        told = f"{said}; stability of the theory {float(solution.stability):.4g}"
        (say if args.json else print)(told)
    if args.plot:
        save_figure(run.plot(wanted[0], theory), args.plot)
    return 0


def sweep(args: argparse.Namespace) -> int:
    """Solve, and simulate, over a grid."""
    from symcavity.commands.sweeping import run_sweep
    from symcavity.face.refusals import refuse_motion

    check_figure(args.plot)
    check_writable(args.csv)
    system = load_system(args)
    refuse_motion(system, "sweep")
    rows, drawn = run_sweep(args, system, theory_of(args, system))
    if args.json:
        print_json([dict(row) for row in rows])
    else:
        print(rows)
    if rows.failed:
        say(f"symcavity: warning: {len(rows.failed)} of {len(rows)} rows have no value")
    if args.plot:
        save_figure(drawn(), args.plot)
    return 0 if len(rows.failed) < len(rows) else FAILED


def manifold(args: argparse.Namespace) -> int:
    """Measure manifolds of points."""
    from symcavity import cloud_geometry
    from symcavity.algebra.door import read_number
    from symcavity.commands.arguments import read_npy

    check_writable(args.csv)
    points = read_npy(Path(args.points))
    kappa = read_number(args.kappa, "kappa")
    table = cloud_geometry(
        points,
        float(kappa),
        samples=args.samples,
        seed=args.seed,
        subtract_mean=args.subtract_mean,
        orthogonal=not args.oblique,
    )
    rows = list(table.rows())
    if args.json:
        whole = {
            "kappa": str(kappa),
            "samples": table.samples,
            "mean_capacity": table.mean_capacity,
            "mean_capacity_stderr": table.mean_capacity_stderr,
        }
        print(json.dumps(whole | {"manifolds": rows}, indent=2))
    else:
        print(table)
    if args.csv:
        lines = [",".join(rows[0]), *(",".join(repr(v) for v in row.values()) for row in rows)]
        write(args.csv, "\n".join(lines) + "\n")
    return 0
