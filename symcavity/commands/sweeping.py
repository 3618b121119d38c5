"""What the command ``sweep`` does: a theory over a grid, and simulations at the same points."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sympy import Dummy, Expr, lambdify, solve

from symcavity.commands.arguments import read_grid, whole_numbers
from symcavity.errors import ValuesError
from symcavity.face import BipartiteSystem
from symcavity.finite.compare import default_observables
from symcavity.finite.given_values import law_symbols
from symcavity.finite.labels import label, label_tex
from symcavity.finite.sweep import sweep_simulation, sweep_theory
from symcavity.finite.swept import Sweep
from symcavity.model.bound_sets import vector_sizes
from symcavity.model.kinds import DATUM, N, P, SiteCount, alpha
from symcavity.model.typed import read_observable

if TYPE_CHECKING:
    from symcavity.face import Theory

Row = dict[str, Any]


def run_sweep(
    args: argparse.Namespace, system: BipartiteSystem, theory: Theory
) -> tuple[Sweep, Callable[[], Any]]:
    """Run the sweep of a command line.

    Returns
    -------
    Sweep
        The rows of the theory, and those of the simulations after them.
    callable
        Draws the figure.
    """
    grid, rest = read_grid(args.values, system)
    given = {*grid, *rest}
    names = [read_observable(text, system, theory.order_parameters) for text in args.show]
    columns = list(dict.fromkeys(names or default_observables(system)))
    sizes = set().union(*(size.free_symbols for size in vector_sizes(system).values()))
    free = [s for s in (*system.parameters, alpha) if s not in {*given, *sizes}] if system.fixed else []
    x = _axis(args.x, next(iter(grid)), system, theory)
    y = _axis(args.y, (free or columns)[0], system, theory)
    columns += [o for o in (x, y) if o not in columns and o not in given and o not in free]
    size = rest.pop(N, None)
    features = whole_numbers(args.N, "--N") if args.N else [int(size)] if size is not None else []
    if args.simulate and not features:
        raise ValuesError("The number of features, N, is missing.", "--N 200, or --N 100,200,400", "--N 200")
    if size is not None and not args.simulate:
        rest[N] = size
    files = _files(args)
    points = grid | {k: [v] for k, v in rest.items() if isinstance(v, Expr)}
    fixed = {k: v for k, v in rest.items() if not isinstance(v, Expr)}
    sweep = sweep_theory(
        theory,
        points,
        values=fixed,
        observables=[*free, *columns],
        file=files[0],
        executor=args.jobs,
    )
    if args.simulate:
        finite = sweep_simulation(
            system,
            _loads(sweep, points, system),
            N=features,
            seeds=args.seeds,
            values=fixed,
            observables=columns,
            couplings=args.couplings,
            fresh=args.fresh,
            file=files[1],
            executor=args.jobs,
        )
        sweep = sweep + replace(finite, rows=_measured(finite.rows, system))
    return sweep, lambda: sweep.plot(
        label(x), label(y), labels={label(o): f"${label_tex(o)}$" for o in (x, y)}
    )


def _axis(text: str, default: Expr, system: BipartiteSystem, theory: Theory) -> Expr:
    return read_observable(text, system, theory.order_parameters) if text else default


def _files(args: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """Return the files of rows; one that has rows already is kept unless told otherwise."""
    if not args.csv:
        return None, None
    path = Path(args.csv)
    beside = path.with_name(f"{path.stem}.simulation{path.suffix}") if args.simulate else None
    for file in (path, beside):
        if file is None or not file.exists() or file.stat().st_size == 0:
            continue
        if args.overwrite:
            file.unlink()
        elif not args.resume:
            raise ValuesError(
                f"The file {file} has rows already.",
                "--resume keeps them and computes the others, --overwrite begins again",
                "--resume",
            )
    return path, beside


def _loads(sweep: Sweep, points: dict[Any, list[Any]], system: BipartiteSystem) -> list[dict[Any, Any]]:
    """Return the points of the simulations: with the load where the theory had a condition on an average."""
    inner = law_symbols(system) | {kind.ratio for kind in system.kinds}
    out = []
    for row in sweep.rows:
        if row.get("error"):
            continue
        point: dict[Any, Any] = {s: row[str(s)] for s in points if s in inner or isinstance(s, SiteCount)}
        if DATUM in system.kinds and P not in point:
            point[alpha] = row[str(alpha)]
        out.append(point)
    if not out:
        raise ValuesError(f"The theory has no solution at any point: {sweep.failed[0]['error']}")
    return out


def _measured(rows: list[Row], system: BipartiteSystem) -> list[Row]:
    """Add to the rows of simulations the parameters of the conditions on averages, as they came out."""
    out = [dict(r) for r in rows]
    for row in out:
        for kind in system.kinds:
            if row.get(str(kind.size)) and row.get("N") and kind.ratio.is_Symbol:
                row[str(kind.ratio)] = float(row[str(kind.size)]) / float(row["N"])
    for equation in system.fixed:
        outer = sorted(equation.rhs.free_symbols - law_symbols(system), key=str)
        if len(outer) != 1:
            continue
        mark = Dummy("measured", positive=True)
        found = [s for s in solve(equation.rhs - mark, outer[0]) if s.is_positive is not False]
        if len(found) != 1 or found[0].free_symbols != {mark}:
            continue
        read, key = lambdify(mark, found[0], "math"), label(equation.lhs)
        for row in out:
            if isinstance(row.get(key), float) and row[key] > 0:
                row[str(outer[0])] = read(row[key])
    return out
