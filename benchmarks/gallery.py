"""The gallery: writes the table of ``docs/gallery.md``, one row for each system of ``derivations/``.

Every system is derived and solved.  The tests hold every row against a fresh solution, except for its times.
"""

from __future__ import annotations

import ast
import re
import time
from importlib import import_module, reload
from itertools import pairwise
from pathlib import Path
from typing import Any

from symcavity.finite.labels import label

ROOT = Path(__file__).resolve().parent.parent
FOLDER, PAGE = ROOT / "derivations", ROOT / "docs" / "gallery.md"
EVERY = sorted(f.stem for f in FOLDER.glob("[a-z]*.py"))
MOVING = [name for name in EVERY if "\nuntil" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")]
NAMES = [name for name in EVERY if name not in MOVING]
PATHS, SEED = 6000, 1  # of runs over paths

HEAD = """# The gallery

One short file in `derivations/` for each system, with its physics and its source; `symcavity list` names them,
`symcavity derive NAME` shows a derivation, and `values` and `shown` in the file say at which parameters the numbers
below were taken. Tests compare each with simulations, and against numbers that were published, closed forms, or a
fixed point that is written down by hand (`tests/gallery`). Lines are those of the declaration; times are processor
time when this table was last written.

| system | lines | derive, ms | solve, ms | numbers | literature |
|---|---|---|---|---|---|
"""

MOVES = """
## Systems that move

States that move are run forward, up to the last step or time that a file gives as `until`; the numbers are those at
its end, over paths with their standard errors.

| system | lines | derive, ms | run, ms | numbers | literature |
|---|---|---|---|---|---|
"""


def lines(name: str) -> int:
    """How many lines declare a system: without description, literature, imports, and values at which it is shown."""
    body = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")).body[1:]
    last = next(k for k, node in enumerate(body) if assigned(node) == "problem")
    counted = (node for node in body[: last + 1] if not isinstance(node, ast.Import | ast.ImportFrom))
    total = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in counted)
    about = (k for node in ast.walk(body[last]) if isinstance(node, ast.Call) for k in node.keywords
             if k.arg in ("cite", "says", "source"))  # fmt: skip
    return total - sum((k.end_lineno or k.lineno) - k.lineno + 1 for k in about)


def assigned(node: ast.stmt) -> str:
    """The name that a statement gives a value to."""
    return getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""


def cells(name: str, module: Any, solution: Any) -> tuple[str, int, str, str]:
    """What a row says, but for its times."""
    first, *rest = module.__doc__.strip().split("\n\n")
    numbers = ", ".join(f"{label(o)} = {float(solution[o]):.6g}" for o in module.shown).replace("|", r"\|")
    cited = (" ".join(part.split()) for part in rest if re.search(r"\(([^()]*, )?(19|20)\d\d\)", part))
    source = next(cited, module.problem.cite or "\N{EM DASH}")
    return f"[`{name}`](../derivations/{name}.py) {first}", lines(name), numbers, source


def span(module: Any) -> dict[str, Any]:
    """Up to when a system that moves is run, and in which steps."""
    return {"until": module.until} | ({"step": module.step} if hasattr(module, "step") else {})


def at_the_end(run: Any, observable: Any) -> tuple[float, float]:
    """The value of an observable at the end of a run, and its error."""
    return float(run[observable][-1]), float(run.errors[observable][-1])


def moving_row(name: str) -> str:
    """Derive and run a system that moves, and give its row."""
    module = import_module(f"symcavity.derivations.{name}")
    times = [time.process_time()]
    theory = module.problem.cavity()
    times.append(time.process_time())
    run = theory.evolve(module.values, paths=PATHS, seed=SEED, **span(module))
    ends = {o: at_the_end(run, o) for o in module.shown}
    times.append(time.process_time())
    numbers = ", ".join(f"{label(o)} = {value:.3g} ± {error:.1g}" for o, (value, error) in ends.items())
    system, count, _, source = cells(name, module, dict.fromkeys(module.shown, 0))
    derive, seconds = (round(1e3 * (b - a)) for a, b in pairwise(times))
    return f"| {system} | {count} | {derive} | {seconds} | {numbers} | {source} |\n"


def row(name: str) -> str:
    """Derive and solve a system, and give its row."""
    module = import_module(f"symcavity.derivations.{name}")
    times = [time.process_time()]
    theory = module.problem.cavity()
    times.append(time.process_time())
    solution = theory.solve(module.values)
    times.append(time.process_time())
    system, count, numbers, source = cells(name, module, solution)
    derive, solve = (round(1e3 * (b - a)) for a, b in pairwise(times))
    return f"| {system} | {count} | {derive} | {solve} | {numbers} | {source} |\n"


def main() -> None:
    """Write the page."""
    from timing import options  # beside this file, which the tests load from elsewhere

    small = options("the first three systems; prints their rows, and writes nothing").small
    import_module("scipy.optimize")  # not the first system's time
    row(NAMES[0])
    reload(import_module(f"symcavity.derivations.{NAMES[0]}"))  # a problem remembers its theories
    rows = []
    for name in NAMES[:3] if small else NAMES:
        rows.append(row(name))
        print(rows[-1], end="", flush=True)
    moving = []
    for name in MOVING[:1] if small else MOVING:
        moving.append(moving_row(name))
        print(moving[-1], end="", flush=True)
    if not small:
        PAGE.write_text(HEAD + "".join(rows) + MOVES + "".join(moving), encoding="utf-8")


if __name__ == "__main__":
    main()
