"""Witnesses of the consistency of a theory: the coupling energy by either side, and the naive theory."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import S

from symcavity.algebra.phi import phi
from symcavity.algebra.precision import mp
from symcavity.algebra.prove import prove
from symcavity.method.symmetry import FACTOR
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE, SiteCount, alpha
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.witness.declared import Carrier, declared_of
from symcavity.witness.moments import free_points
from symcavity.witness.points import compare_with_naive, other_theory, solved_point
from symcavity.witness.registry import numeric, one_to_one, result, witness
from symcavity.witness.solved import held
from symcavity.witness.verbs import SMALL
from symcavity.witness.world import same

QUICK = 25  # digits of what is said of another theory


@witness("work_identity")
def work(step: Step, dps: int) -> list[Verdict]:
    """The bilinear form summed in both orders, written out; then both averages at a solved point."""
    theory = step.evidence["theory"]
    world = declared_of(theory).world(8)
    exact, *averaged = step.claims
    ok = same(world.value(exact.lhs), world.value(exact.rhs)) and bool(averaged)
    out = result(BRUTE_FORCE, ok, f"the same bilinear form, {SMALL}")
    return out + _true_states(theory, averaged, dps)


def _true_states(theory: Theory, claims: Iterable[Equation], dps: int) -> list[Verdict]:
    """What holds for the true states, which the naive theory does not have."""
    if theory.is_naive:
        return held(other_theory(theory, naive=False), claims, min(dps, QUICK))
    return held(theory, claims, dps)


@witness("load_identity")
def load_identity(step: Step, dps: int) -> list[Verdict]:
    """The load of the cavity theory at a solved point."""
    return _true_states(step.evidence["theory"], step.claims, dps)


@witness("consistency")
def consistency(step: Step, dps: int) -> list[Verdict]:
    """A proof where the identity is one of truncated moments, and digits at a solved point in any case."""
    proved = [
        Verdict(SYMBOLIC, True, "proved by integration by parts")
        for claim in step.claims
        if claim.lhs.has(phi) and not claim.difference.has(SiteQuantity) and prove(claim.lhs, claim.rhs)
    ]
    return proved + held(step.evidence["theory"], step.claims, dps)


@witness("inconsistency")
def contradiction(step: Step, dps: int) -> list[Verdict]:
    """The two formulas must differ, and the first be that of the naive theory: else nothing is contradicted."""
    theory = step.evidence["theory"]
    sized = any(claim.difference.has(SiteCount) for claim in step.claims)
    solution, _, where = solved_point(theory, min(dps, 30), sized=sized)
    if solution is None:
        return [Verdict(numeric(dps), None, where)]
    first, second = (solution.number(c.rhs) for c in step.claims)
    named = step.claims[0]
    mine = Equation(alpha, named.rhs) if step.data["loads"] else named  # the load has a name for each formula
    out = held(theory, [mine], min(dps, 30))
    gap = abs(first - second) / max(abs(first), abs(second))
    detail = f"the formulas give {mp.nstr(first, 6)} and {mp.nstr(second, 6)} at {where}"
    return [*out, Verdict(numeric(dps), bool(gap > mp.mpf("1e-6")), detail)]


@witness("symmetry")
def symmetry(step: Step, _dps: int) -> list[Verdict]:
    """Compare the load (or the first order parameter) with and without the dropped echo, at solved points.

    The generalized law is the declared one at A = 1; the rescaled states absorb any other factor.
    """
    theory = step.evidence["theory"]
    out = compare_with_naive(theory, symmetric=bool(step.data["found"]))
    if not step.claims:
        return out
    declared = declared_of(theory)
    world, rows = declared.world(3), declared.carriers(FEATURE)
    shrunk = {q: q / FACTOR for q in step.data["scaled"]}

    def absorbs(claim: Equation, row: Carrier) -> bool:
        for env in free_points(world, [row.declared, row.source]):
            wanted = world.value(row.declared.difference, env)
            source = world.value(row.source, env)
            for value in (S.One, S(3)):
                gap = Equation(claim.lhs, claim.rhs.xreplace(shrunk)).xreplace({FACTOR: value}).difference
                if not same(world.value(gap, env) + value * source, wanted):
                    return False
        return True

    ok = one_to_one(step.claims, rows, absorbs)
    return out + result(BRUTE_FORCE, ok, f"the declared law of the features at A = 1, and rescaled at A = 3, {SMALL}")
