"""What the commands ``sensitivity``, ``optimize`` and ``boundary`` do."""

from __future__ import annotations

import argparse
from typing import Any

from symcavity.algebra.precision import mp
from symcavity.commands.actions import read_theory
from symcavity.commands.arguments import read_grid, read_pairs
from symcavity.commands.files import check_figure, check_writable, save_figure, write
from symcavity.commands.showing import print_json
from symcavity.errors import ValuesError
from symcavity.model.typed import read_observable


def sensitivity(args: argparse.Namespace) -> int:
    """Print the derivative of an observable."""
    system, theory = read_theory(args)
    values = read_pairs(args.values, system)
    of = read_observable(args.of, system, theory.order_parameters)
    by = _named(args.by, theory)
    value = theory.sensitivity(of, by, values, dps=args.dps)
    if args.json:
        print_json({"of": args.of, "by": args.by, "derivative": value}, args.dps)
    else:
        print(f"d({args.of})/d({args.by}) = {mp.nstr(value, args.dps)}")
    return 0


def optimize(args: argparse.Namespace) -> int:
    """Print where an observable is best."""
    system, theory = read_theory(args)
    values = read_pairs(args.values, system)
    of = read_observable(args.of, system, theory.order_parameters)
    over, bounds = _range(args.over, system) if "=" in args.over else (_named(args.over, theory), None)
    found = theory.optimize(of, over, values, bounds=bounds, maximize=args.maximize, dps=args.dps)
    if args.json:
        place = {"parameter": found.parameter, "place": found.place, "value": found.value, "bound": found.bound}
        print_json({"of": args.of, "maximize": args.maximize, **place, "unsolved": found.unsolved}, args.dps)
    else:
        print(f"{'largest' if args.maximize else 'smallest'} {args.of}: {found}")
    return 0


def boundary(args: argparse.Namespace) -> int:
    """Print, and draw, where something is lost."""
    check_figure(args.plot)
    check_writable(args.csv)
    system, theory = read_theory(args)
    values = read_pairs(args.values, system)
    across, ends = _range(args.across, system)
    along = read_grid([args.along], system)[0] if args.along else None
    found = theory.boundary(args.what, {across: ends}, along, values, dps=args.dps)
    if args.json:
        points = [{"along": x, "across": y, "error": error} for x, y, error in found.points]
        print_json({"what": found.what, "along": found.along, "across": found.across, "points": points}, args.dps)
    else:
        print(found)
    if args.csv:
        write(args.csv, found.to_csv())
    if args.plot:
        save_figure(found.plot(), args.plot)
    return 0


def _range(text: str, system: Any) -> tuple[Any, tuple[Any, Any]]:
    """Read a parameter and the two ends of its range."""
    if text.count(",") != 1:
        raise ValuesError(f"The range is {text!r}.", "a parameter and two numbers", "alpha=1,3")
    ((parameter, (low, high)),) = read_grid([text], system)[0].items()
    return parameter, (low, high)


def _named(text: str, theory: Any) -> Any:
    """The parameter of a name; of anything else the theory complains."""
    from symcavity.evaluate.tasks import task_of

    task = task_of(theory)
    name = text.partition("=")[0]
    found = {str(s): s for s in (*task.parameters, *task.ratios)}
    found |= {f"{kind.size}/N": kind.ratio for kind in task.kinds if kind.ratio in task.ratios}
    if name not in found:
        raise ValuesError(f"{name} is not a parameter of this theory.", ", ".join(found))
    return found[name]
