"""Witnesses of the free energy: weights of single sites summed over all states, and its difference quotients."""

from __future__ import annotations

import random
from typing import Any

from sympy import Add

from symcavity.algebra.precision import mp
from symcavity.errors import SymcavityError
from symcavity.evaluate.solutions.solution import Solution
from symcavity.record.derivation import Step, Verdict
from symcavity.witness.direct import direct_average
from symcavity.witness.points import solved_point
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.solved import held

SHIFT, NEAR = 1e-3, 1e-5  # by which share unknowns are moved; how well values and slopes have to agree
OFF, DIRECTIONS, DIGITS = 0.08, 3, 5  # by which share the point differs from a solution
QUOTIENTS = "difference quotients off a solution"


@witness("free_energy")
def logarithms(step: Step, dps: int) -> list[Verdict]:
    """The averaged logarithm of each weight, summed over all states; the slopes of the function, off a solution."""
    theory, out = step.evidence["theory"], list[Verdict]()
    *logs, whole = step.claims
    for claim in logs:
        gap, digits, how = direct_average(theory, claim.lhs, claim.rhs, dps)
        wrong = f"{claim.lhs} differs by {float(gap):.2g}"
        out += result(how, bool(gap < 10.0**-digits), f"{claim.lhs}", wrong, digits)
    slopes = next(s.claims for s in step.evidence["record"] if s.rule == "free_energy_slopes")
    return out + _quotients(theory, logs, whole, slopes)


@witness("free_energy_slopes")
def slopes(step: Step, _dps: int) -> list[Verdict]:
    """The slopes that are claimed against difference quotients of the function."""
    theory = step.evidence["theory"]
    *logs, whole = next(s.claims for s in step.evidence["record"] if s.rule == "free_energy")
    return _quotients(theory, logs, whole, step.claims)


def _quotients(theory: Any, logs: Any, whole: Any, sloping: Any) -> list[Verdict]:
    try:
        solution, _, where = solved_point(theory, 15)
    except SymcavityError as problem:
        return [Verdict(QUOTIENTS, None, str(problem).splitlines()[0])]
    if solution is None:
        return [Verdict(QUOTIENTS, None, where)]
    function = whole.rhs.xreplace({claim.lhs: claim.rhs for claim in logs})
    closed = {meaning: theory.closures[s] for s, meaning in theory.order_parameters.items()}
    rng = random.Random(3)  # noqa: S311 - seeded sampling, not cryptography
    free = {s: float(v) for s, v in solution.own_values.items()}
    inside = theory.order_parameters.keys() & {s for s in free if not s.is_positive}

    def at(values: dict[Any, Any]) -> Solution:
        return Solution(solution.task, solution.solved_at, {s: mp.mpf(v) for s, v in values.items()}, solution.reader)

    # an overlap may not exceed what its two moments allow: it is only made smaller
    shares = {s: -rng.uniform(0.5, 1) if s in inside else rng.uniform(-1, 1) for s in free}
    point = {s: v * (1 + OFF * shares[s]) for s, v in free.items()}
    here, worst = at(point), 0.0
    ok = all(claim.lhs.args[0] == whole.lhs for claim in sloping)
    told = []
    for claim in sloping:
        terms = Add.make_args(claim.rhs.expand())
        numbers = [float(here.number(theory.observable(t.xreplace(closed)))) for t in terms if t != 0]
        told.append((claim.lhs.args[1], sum(numbers), sum(map(abs, numbers))))
    for _ in range(DIRECTIONS):
        way = {s: SHIFT * v * rng.uniform(-1, 1) for s, v in free.items()}
        up, down = (at({s: v + side * way[s] for s, v in point.items()}) for side in (1, -1))
        gap = float(up.number(function)) - float(down.number(function))
        moved = [float(up.number(s)) - float(down.number(s)) for s, _, _ in told]
        gap -= sum(d * slope for d, (_, slope, _) in zip(moved, told, strict=True))
        size = sum(abs(d) * s for d, (_, _, s) in zip(moved, told, strict=True))
        worst = largest(worst, abs(gap) / size if size else mp.inf)
    ok = ok and bool(worst < NEAR)
    return result(QUOTIENTS, ok, where, f"the slopes differ by {float(worst):.2g}", DIGITS)



@witness("bayes")
def nishimori(step: Step, dps: int) -> list[Verdict]:
    """The identities of a posterior at a solved point: what the closed equations give there does not know of them."""
    return held(step.evidence["theory"], step.claims, dps)
