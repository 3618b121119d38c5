"""What the command ``evolve`` does: a theory of states that move, run forward, with instances beside it."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any

import numpy as np

from symcavity.algebra.door import read_number
from symcavity.algebra.precision import is_mpf, mp
from symcavity.commands.actions import theory_of
from symcavity.commands.arguments import in_shell, read_pairs, whole_numbers
from symcavity.commands.files import check_figure, save_figure
from symcavity.commands.showing import print_json
from symcavity.errors import ValuesError
from symcavity.face import BipartiteSystem, ConvexProblem
from symcavity.finite.labels import label
from symcavity.finite.tables import aligned
from symcavity.loading import load, system_of
from symcavity.model.averages import SiteResponse, average
from symcavity.model.quantities import Variable
from symcavity.model.times import other_times
from symcavity.model.typed import read_observable

SHORT = 6


def evolve(args: argparse.Namespace) -> int:
    """Run a theory forward, and print its observables at every time."""
    check_figure(args.plot)
    system = _system(args)
    values = read_pairs(args.values, system)
    shown = [read_observable(text, system) for text in args.show] or _usual(system)
    theory = theory_of(args, system)
    until = read_number(args.until, "--until")
    span: dict[str, Any] = {"until": int(until) if until.is_Integer else until}
    if system.flowing or args.step is not None:
        span["step"] = None if args.step is None else read_number(args.step, "--step")
    options = span if args.dps is None else {**span, "dps": args.dps}
    run = theory.evolve(values, paths=args.paths, seed=args.seed, **options)
    found = {key: run[key] for key in shown}
    sim = comparison = None
    if args.N:
        sizes = whole_numbers(args.N, "--N")
        drawn = {"seeds": args.seeds, "couplings": args.couplings, "executor": args.jobs}
        sim = system.simulate(values, N=sizes if len(sizes) > 1 else sizes[0], **span, **drawn)
        comparison = run.compare(sim, [key for key in shown if not key.has(SiteResponse)])  # which instances lack
    if args.json:
        print_json(_data(args, system, run, found, sim), args.dps or 15)
    else:
        print(f"{system.name or args.target}: {run.method}, {len(run.times) - 1} steps")
        print("\n".join(_table(run, found, args.dps or SHORT)))
        if comparison is not None:
            print(f"\n{in_shell(str(comparison))}")
    if args.plot:
        flat = [key for key in shown if np.ndim(found[key]) == 1]
        save_figure(run.plot(*flat, sim=sim), args.plot)
    return 0


def _system(args: argparse.Namespace) -> BipartiteSystem:
    """The system that moves: as declared, or the descent on a declared problem."""
    declared = load(args.target, args.object)
    if isinstance(declared, ConvexProblem):
        if args.rate is None and args.step is None:
            raise ValuesError(
                f"{args.target} is a convex problem, whose states do not depend on time.",
                "systems in time, and gradient descent on problems, or gradient flow",
                "--rate 1/10; --step 1/20 for the flow",
            )
        if args.rate is None:
            return declared.flow()
        momentum = read_number(args.momentum or "0", "--momentum")
        return declared.descent(rate=read_number(args.rate, "--rate"), momentum=momentum)
    if args.rate is not None or args.momentum is not None:
        raise ValuesError(f"{args.target} is a system of equations, which has no rate.", "--rate of convex problems")
    declared = system_of(declared)
    if declared.time is None:
        raise ValuesError(
            f"The states of {args.target} do not depend on time.",
            "declarations whose states depend on time: Variable(\"x\", i, over=t)",
            f"symcavity solve {args.target}",
        )
    return declared


def _usual(system: BipartiteSystem) -> list[Any]:
    """The default observables: means and squares of the states that were declared."""
    named = {**system.rewritten["clock"].meanings, **system.rewritten["emissions"].meanings}
    own = system.motion.updates if system.origin is None else system.origin.states
    states = [q for q in own if isinstance(q.family, Variable) and q not in named]
    shared = [q for q in own if not q.site and q not in system.rewritten["centre"].symbols]
    return [*shared, *(average(e) for q in states if q.time is not None for e in (q, q**2))]


def _table(run: Any, found: dict[Any, Any], digits: int) -> list[str]:
    """One row for each time; of an observable of two times the values at the last one."""
    time, last = run.plan.time, run.times[-1]
    second = other_times(time)[0]
    one = {key: value for key, value in found.items() if np.ndim(value) < 2}
    lines: list[str] = []
    for head, columns in (
        (str(time), {label(key): np.broadcast_to(value, run.times.shape) for key, value in one.items()}),
        (str(second), {f"{label(k)} at {time} = {last}": v[-1] for k, v in found.items() if np.ndim(v) == 2}),
    ):
        if columns:
            rows = [(str(when), *(_number(v[k], digits) for v in columns.values())) for k, when in enumerate(run.times)]
            lines += [*([""] if lines else []), *aligned([(head, *columns), *rows])]
    return lines


def _number(value: Any, digits: int) -> str:
    if isinstance(value, Fraction) and len(str(value)) <= digits + SHORT:
        return str(value)
    if isinstance(value, Fraction):
        value = mp.mpf(value.numerator) / value.denominator
    return str(mp.nstr(value, digits)) if is_mpf(value) else f"{float(value):.{min(digits, 15)}g}"


def _data(args: Any, system: Any, run: Any, found: dict[Any, Any], sim: Any) -> dict[str, Any]:
    """A run for JSON: fractions and numbers of many digits are strings."""
    rows = []
    for key, value in found.items():
        row = {"observable": label(key), "theory": np.asarray(value).tolist()}
        row["error"] = np.asarray(run.errors[key], dtype=float).tolist()
        if sim is not None and not key.has(SiteResponse):
            row |= {"simulation": sim[key].mean.tolist(), "stderr": sim[key].stderr.tolist()}
        rows.append(row)
    return {"problem": args.target, "title": system.name, "method": run.method, "times": run.times.tolist()} | {
        "observables": rows
    }
