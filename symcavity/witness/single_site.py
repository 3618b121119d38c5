"""Witnesses for the single site and for the closed system: laws, averages, formulas, identities."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import mpmath
from sympy import Expr, KroneckerDelta, Rational, S

from symcavity.algebra.phi import phi
from symcavity.algebra.prove import check as digits_agree
from symcavity.algebra.prove import prove
from symcavity.evaluate.binding import counterpart
from symcavity.evaluate.sampled import SampledSolution
from symcavity.model.equations import Equation
from symcavity.model.quantities import INDEX, SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.sites.averages import quenched_average
from symcavity.sites.set_averages import ProjectionAverage
from symcavity.witness.direct import direct_average, hold
from symcavity.witness.points import Point, compare_with_naive, scatter, solved_point
from symcavity.witness.registry import Check, numeric, registering, result
from symcavity.witness.set_averages import vector_average
from symcavity.witness.written_out import Leaves, equal, labelled

FAR = 6.0  # standard errors, of as few independent sets of samples as there are

CHECKS: dict[str, Check] = {}
check = partial(registering, CHECKS)
check("vector_average")(vector_average)


@check("effective_law")
def _effective_law(step: Step, _dps: int) -> list[Verdict]:
    side, means = step.evidence["side"], step.evidence["means"]
    expected = [e.xreplace(means).xreplace({INDEX[side.side]: S.Zero}) for e in side.effective_equations()]
    ok = len(expected) == len(step.claims) and all(
        _same(a, b, step) for a, b in zip(expected, step.claims, strict=True)
    )
    return result(SYMBOLIC, ok, "the equation of the new site, with the mean put in")


def _same(a: Equation, b: Equation, step: Step) -> bool:
    """Whether two equations say the same; with identity matrices in them, written out."""
    if a.difference.has(KroneckerDelta):
        leaves = Leaves(12, step)
        return equal(leaves.value(a.difference), leaves.value(b.difference))
    return bool((a.difference - b.difference).expand() == 0)


@check("solution")
def _solution(step: Step, dps: int) -> list[Verdict]:
    """The claimed states put into the law, at seeded parameters and fields: equations, signs, slackness."""
    side = step.evidence["side"]
    zero = {INDEX[side.side]: S.Zero}
    sources = {h.source: S.Zero for h in side.heard}
    means = side.means()
    equations = [e.difference.xreplace(sources).xreplace(means).xreplace(zero) for e in side.effective_equations()]
    pairs = [tuple(q.xreplace(zero) for q in p.pair) for p in side.law.pairs]
    claims = {c.lhs: c.rhs for c in step.claims if isinstance(c.lhs, SiteQuantity)}
    inner = side.inner().eta
    implicit = [c for c in step.claims if c.lhs == inner]
    exprs = [*equations, *claims.values(), *(q for p in pairs for q in p), *(c.rhs for c in implicit)]
    bound = {s for b in step.evidence["solution"].branches if b.implicit for s in [b.implicit[0]]}
    worst = mpmath.mpf(0)
    with mpmath.workdps(dps + 10):
        for seed in range(4):
            point = Point(seed, exprs)
            for k in range(-4, 5):
                field = Rational(7 * k + 1, 5)
                values = {**point.values, inner: field}
                if bound:
                    (x,) = bound
                    if len(implicit) != 1:
                        return [Verdict(numeric(dps), True, "implicit and explicit branches: checked by the averages")]
                    # choose x freely; the field follows from the claim
                    values = {**point.values, x: Rational(3 * k + 1, 7)}
                    values[inner] = implicit[0].rhs.xreplace(values)
                states = {q: e.xreplace(values) for q, e in claims.items()}
                for e in equations:
                    worst = max(worst, abs(_number(e.xreplace(states).xreplace(values), dps)))
                for p, q in pairs:
                    a, b = (_number(m.xreplace(states).xreplace(values), dps) for m in (p, q))
                    worst = max(worst, abs(min(a, 0)), abs(min(b, 0)), abs(a * b))
    ok = worst < mpmath.mpf(10) ** (-dps + 8)
    return result(numeric(dps), bool(ok), "put into the law at seeded fields", f"residual {mpmath.nstr(worst, 3)}")


def _number(expr: Any, dps: int) -> Any:
    value = S(expr)
    if value.is_Rational:
        return mpmath.mpf(int(value.p)) / int(value.q)
    return mpmath.mpf(value.evalf(dps + 10)._to_mpmath(mpmath.mp.prec))  # noqa: SLF001 - SymPy's own door


@check("response")
def _response(step: Step, dps: int) -> list[Verdict]:
    """Averaged responses, by Gaussian integration by parts from the solution alone where there is one field."""
    side, theory = step.evidence["side"], step.evidence["theory"]
    index = {S.Zero: INDEX[side.side]}
    worst, digits, how = mpmath.mpf(0), dps, ""
    for claim in step.claims:
        node = _from_zero(claim.lhs.args[0], index)
        claimed = quenched_average(_from_zero(claim.rhs, index))
        gap, digits, how = hold(theory, side, node, claimed, dps)
        worst = max(worst, gap)
    how = f"integration by parts, and {how}"
    ok = worst < mpmath.mpf(10) ** (-digits)
    kind = numeric(dps) if digits >= dps - 12 else f"quadrature to {digits} digits"
    return result(kind, bool(ok), how, f"differs by {mpmath.nstr(worst, 3)}")


def _from_zero(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """The inserted site's quantities at the canonical index."""
    return expr.xreplace({q: q.xreplace(rule) for q in expr.atoms(SiteQuantity) if S.Zero in q.indices})


@check("closure")
def _closure(step: Step, dps: int) -> list[Verdict]:
    """The closed form against a direct numerical average over the fields and the quenched parameters."""
    theory, meaning = step.evidence["theory"], step.evidence["meaning"]
    claim = step.claims[0]
    if claim.difference.has(ProjectionAverage) and step.rule in ("closure", "global_condition"):
        return vector_average(step, dps)
    side_value = claim.lhs if step.rule == "global_condition" or step.rule == "fixed" else claim.rhs
    if step.rule == "fixed":
        if claim.rhs != step.evidence["value"]:
            return result(SYMBOLIC, False, "", f"the declared value is {step.evidence['value']}")
        if side_value in theory.order_parameters:
            ok = theory.order_parameters[side_value] == meaning
            return result(SYMBOLIC, ok, "the declared condition, in order parameters")
    worst, digits, how = direct_average(theory, meaning, side_value, dps)
    ok = worst < mpmath.mpf(10) ** (-digits)
    return result(
        numeric(dps) if digits >= dps - 12 else f"quadrature to {digits} digits",
        bool(ok),
        how,
        f"differs by {mpmath.nstr(worst, 3)} from {how}",
    )


# -- the closed system -----------------------------------------------------------------------------


@check("solved")
def _solved(step: Step, dps: int) -> list[Verdict]:
    """Both sides of each claim at a solved point."""
    return _held(step.evidence["theory"], step.claims, dps)


def _held(theory: Any, claims: Iterable[Equation], dps: int) -> list[Verdict]:
    solution, digits, where = solved_point(theory, dps)
    if solution is None:
        return [Verdict(numeric(dps), False, where)]
    worst, sampled = mpmath.mpf(0), mpmath.mpf(0)
    with mpmath.workdps(dps + 10):
        for claim in claims:
            left, right = solution[claim.lhs], solution[claim.rhs] if claim.rhs != 0 else mpmath.mpf(0)
            size = max(abs(left), abs(right), mpmath.mpf(1) if right == 0 or left == 0 else mpmath.mpf(0))
            gap = abs(left - right) / size
            if gap >= mpmath.mpf(10) ** (-digits) and isinstance(solution, SampledSolution):
                error = scatter(theory, solution, claim) / size
                sampled, gap = max(sampled, gap / error), mpmath.mpf(0)
            worst = max(worst, gap)
    if sampled:
        detail = f"{mpmath.nstr(sampled, 3)} standard errors of the sampled averages, {where}"
        return [Verdict("sampled averages at a solved point", bool(sampled < FAR), detail)]
    ok = worst < mpmath.mpf(10) ** (-digits)
    kind = numeric(dps) if digits >= dps - 12 else f"{digits} digits at a solved point"
    return result(kind, bool(ok), f"at the solution for {where}", f"residual {mpmath.nstr(worst, 3)} at {where}")


@check("work")
def _work(step: Step, dps: int) -> list[Verdict]:
    """The bilinear form summed in both orders, written out; then both averages at a solved point."""
    system = step.evidence["system"]
    exact = step.claims[0]
    leaves = labelled(Leaves(8, step), system)
    ok = equal(leaves.value(exact.lhs), leaves.value(exact.rhs))
    out = result(BRUTE_FORCE, ok, "the same bilinear form, N = 3, P = 2")
    theory = step.evidence["theory"]
    if theory.is_naive:  # the identity holds for the true states, which the naive theory does not have
        theory = counterpart(theory, naive=False)
    return out + _held(theory, step.claims[1:], dps)


@check("identity")
def _identity(step: Step, dps: int) -> list[Verdict]:
    """A proof where the identity is one of truncated moments, and digits at a solved point in any case."""
    claim = step.claims[0]
    out = []
    if claim.lhs.has(phi) and not claim.difference.has(SiteQuantity):
        proof = prove(claim.lhs, claim.rhs)
        if proof:
            out.append(Verdict(SYMBOLIC, True, "proved by integration by parts"))
    return out + _solved(step, dps)


@check("digits")
def _digits(step: Step, dps: int) -> list[Verdict]:
    """Both sides of an identity at seeded points."""
    results = [digits_agree(claim.lhs, claim.rhs, dps=dps, points=3) for claim in step.claims]
    gap = max((r.residual for r in results), default=0)
    return result(numeric(dps), all(results), "both sides at seeded points", f"differ by {mpmath.nstr(gap, 3)}")


@check("moments")
def _moments(step: Step, dps: int) -> list[Verdict]:
    """The definition of the truncated moments against quadrature, for the lowest orders."""
    ok = True
    for claim in step.claims:
        for n in range(4):
            rule = {step.data["order"]: n}
            ok = ok and bool(digits_agree(claim.lhs.subs(rule), claim.rhs.subs(rule), dps=min(dps, 30), points=2))
    return result(numeric(min(dps, 30)), ok, "quadrature for n = 0, 1, 2, 3")


@check("contradiction")
def _contradiction(step: Step, dps: int) -> list[Verdict]:
    """The two formulas must differ: a naive theory that agreed with the identity would not be naive."""
    solution, _, where = solved_point(step.evidence["theory"], min(dps, 30))
    if solution is None:
        return [Verdict(numeric(dps), False, where)]
    if len(step.claims) == 2:
        first, second = (solution[c.rhs] for c in step.claims)
    else:
        first, second = solution[step.claims[0].lhs], solution[step.claims[0].rhs]
    gap = abs(first - second) / max(abs(first), abs(second))
    detail = f"the formulas give {mpmath.nstr(first, 6)} and {mpmath.nstr(second, 6)} at {where}"
    return [Verdict(numeric(dps), bool(gap > mpmath.mpf("1e-6")), detail)]


@check("symmetry")
def _symmetry(step: Step, _dps: int) -> list[Verdict]:
    """Compare the load (or the first order parameter) with and without the self-coupling, at a solved point."""
    theory, found = step.evidence["theory"], step.evidence["found"]
    return compare_with_naive(theory, symmetric=bool(found))


__all__ = ["CHECKS"]
