"""Witnesses of the closed system and of what elimination makes of it: both sides at a solved point."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from sympy import Add, Dummy, Expr, Float, Rational, S, Sum

from symcavity.algebra.precision import mp
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.model.averages import Average, Fresh, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities
from symcavity.record.derivation import PREMISE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.sets.averages import ProjectionAverage
from symcavity.witness.averages import closed_claims
from symcavity.witness.direct import direct_average
from symcavity.witness.gaussian import coefficients, integral
from symcavity.witness.points import scatter, solved_point
from symcavity.witness.registry import fewer, largest, numeric, result, witness

POINTS = 2
ROUNDED = 6  # powers of ten below the digits of a check, where there is rounding only
FAR = 6.0  # standard errors, of as few independent sets of samples as there are


@witness("closed_system")
def closed_system(step: Step, dps: int) -> list[Verdict]:
    """The closures and the conditions, all of them and nothing else; as many as there are unknowns; at a solution."""
    theory = step.evidence["theory"]
    expected = closed_claims(theory)
    unknowns = [*theory.order_parameters, *theory.system.globals]
    declared = len(theory.system.fixed)
    ok = list(step.claims) == expected and {e.lhs for e in expected} >= set(theory.order_parameters)
    ok = ok and len(expected) == len(unknowns) + declared
    out = result(SYMBOLIC, ok, "the closures and the declared conditions, one for each unknown", "not the closures")
    for told in (data["orders"] for name, data in step.assumptions if name == "orders"):
        sums = [m.function for m in theory.order_parameters.values() if isinstance(m, Sum)]
        good, bad = "what is summed over sites goes as 1/N", "what is summed over sites does not go as 1/N"
        out += result(SYMBOLIC, all(_is_small(body, told) for body in sums), good, bad)
    return out + held(theory, step.claims, dps)


def _is_small(body: Expr, told: Iterable[tuple[Any, Expr]]) -> bool:
    """Whether an expression goes as one over the size, where quantities go with the powers that are told of them."""
    larger, powers = Dummy("L", positive=True), {q.family: power for q, power in told}
    body = body.xreplace({r: Dummy("R") for r in body.atoms(SiteResponse)})  # they are of order one
    rule: dict[Any, Any] = {q: q * larger ** powers.get(q.family, S.Zero) for q in site_quantities(body)}
    rule |= {count: larger * count for count in body.atoms(SiteCount)}
    return bool((larger * body.xreplace(rule) - body).expand() == 0)


@witness("units", "elimination", "result", "interpretation")
def eliminated(step: Step, dps: int) -> list[Verdict]:
    """Both sides of each claim at a point at which the closed system holds."""
    return held(step.evidence["theory"], step.claims, dps)


@witness("named")
def named(step: Step, _dps: int) -> list[Verdict]:
    """The names are those of the declaration, and stand for what it says."""
    declared = [Equation(name, value) for name, value in step.evidence["theory"].system.named.items()]
    return result(PREMISE, list(step.claims) == declared, "the names of the declaration", "not as it was declared")


@witness("named_result")
def named_result(step: Step, dps: int) -> list[Verdict]:
    """Both sides at a solved point; what is said of one site, summed over all sites."""

    def everywhere(claim: Equation) -> Equation:
        if not isinstance(claim.lhs, DisorderAverage):
            return claim
        body = claim.lhs.args[0]
        (kind,) = {kind for q in site_quantities(body) for kind in q.site}
        zeros = {q: q.xreplace({S.Zero: kind.index}) for q in site_quantities(body - claim.rhs)}
        return Equation(Sum(body.xreplace(zeros), kind.range), Sum(claim.rhs.xreplace(zeros), kind.range))

    theory = step.evidence["theory"]
    return held(theory, map(everywhere, step.claims), dps) + _averages_of_names(theory, dps)


def _averages_of_names(theory: Any, dps: int) -> list[Verdict]:
    """The averages over sites that names stand for, in order parameters, by quadrature: it knows no closed form."""
    out, laws = [], theory.system.laws.values()
    names = {f.as_sum: e.lhs for law in laws for f in law.fields for e in law.equations if e.rhs == f.symbol}
    for declared in theory.system.named.values():
        own = theory.system.own(theory.system.rewritten.observable(declared))
        for node in sorted(own.xreplace(names).atoms(Average), key=str):
            inside = node.args[0]
            if not site_quantities(inside, Variable, Field) or inside.has(Average, Fresh, Sum):
                continue
            if {q.family for q in site_quantities(inside, Quenched)} - {*theory.system.quenched}:
                continue  # nothing says what it goes with
            claimed = theory.observable(node)
            if claimed in theory.order_parameters or claimed.has(ProjectionAverage):
                continue  # its closure is judged; of sets there are witnesses of their own
            gap, digits, how = direct_average(theory, node, claimed, dps)
            ok = bool(gap < mp.mpf(10) ** -digits)
            bad = f"{node} differs by {mp.nstr(gap, 3)}: {how}"
            out += result(f"quadrature to {digits} digits", ok, how, bad, digits)
    return out


def held(theory: Any, claims: Iterable[Equation], dps: int) -> list[Verdict]:
    """Both sides of some claims at a solved point of a theory."""
    claims = list(claims)
    sized = any(claim.difference.has(SiteCount) for claim in claims)
    solution, digits, where = solved_point(theory, dps, sized=sized)
    if solution is None:
        return [Verdict(numeric(dps), None, where)]
    memory = theory.memory.setdefault("residual", {})
    if dps not in memory:
        memory[dps] = _gaps(theory, solution, closed_claims(theory), dps, digits)
    worst, sampled = _gaps(theory, solution, claims, dps, digits)
    worst, sampled = largest(worst, memory[dps][0]), largest(sampled, memory[dps][1])
    if sampled:
        detail = f"{mp.nstr(sampled, 3)} standard errors of the sampled averages, {where}"
        return [Verdict("sampled averages at a solved point", bool(sampled < FAR and worst < 1), detail)]
    ok = worst < mp.mpf(10) ** (-digits)
    few = fewer(digits, dps)
    kind = numeric(dps) if few is None else f"{digits} digits at a solved point"
    return result(kind, bool(ok), f"at the solution for {where}", f"residual {mp.nstr(worst, 3)} at {where}", few)


def _gaps(theory: Any, solution: Any, claims: Iterable[Equation], dps: int, digits: int) -> tuple[Any, Any]:
    """The largest relative gap, and the largest in standard errors where averages were sampled."""
    worst, sampled = mp.mpf(0), mp.mpf(0)
    with mp.workdps(dps + 10):
        for claim in claims:
            # of what vanishes no digits are known: each of its terms has them
            parts = [claim.lhs, -claim.rhs] if claim.lhs != 0 and claim.rhs != 0 else Add.make_args(claim.difference)
            values = [solution.number(part) for part in parts]
            if all(abs(v) < mp.mpf(10) ** (-digits - ROUNDED) for v in values):  # each of them vanishes by itself
                continue
            size = max(map(abs, values)) if all(values) and len(values) > 1 else max(1, *map(abs, values))
            gap = abs(mp.fsum(values)) / size
            if not mp.isfinite(gap):
                gap = mp.inf
            if gap >= mp.mpf(10) ** (-digits) and isinstance(solution, SampledSolution):
                error = scatter(theory, solution, claim) / size
                sampled, gap = largest(sampled, gap / error), mp.mpf(0)
            worst = largest(worst, gap)
    return worst, sampled


# -- known integrals ---------------------------------------------------------------------------------


@witness("proof")
def line(step: Step, dps: int) -> list[Verdict]:
    """Both sides of a line of a proof at seeded points."""
    gaps = [_gap_at(claim, seed, dps) for claim in step.claims for seed in range(POINTS)]
    worst = largest(mp.mpf(0), *gaps)
    ok = bool(worst < mp.mpf(10) ** (-dps))
    return result(numeric(dps), ok, "both sides at seeded points", f"differ by {mp.nstr(worst, 3)}")


def _gap_at(claim: Equation, seed: int, dps: int) -> Any:
    """The relative gap of two sides at a seeded point, with truncated integrals by quadrature."""
    rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
    point = {
        s: Rational(rng.randint(3, 19), 10) * (1 if s.is_nonnegative or rng.random() < 0.5 else -1)
        for s in sorted(claim.difference.free_symbols, key=str)
    }
    with mp.workdps(dps + 15):
        sides = [_number(side.xreplace(point), dps + 15) for side in (claim.lhs, claim.rhs)]
        return abs(sides[0] - sides[1]) / max(*map(abs, sides), mp.mpf("1e-10"))


def _number(expr: Expr, digits: int) -> Any:
    rule = {}
    for node in expr.atoms(TruncatedIntegral):
        body, z, upper = node.args
        polynomial = coefficients(body, z)
        if polynomial is not None:
            high = mp.mpf(upper.evalf(digits)._to_mpmath(mp.prec))  # noqa: SLF001 - SymPy's own door
            rule[node] = Float(integral([polynomial], [-mp.inf, high]), digits)
    return mp.mpf(expr.xreplace(rule).evalf(digits)._to_mpmath(mp.prec))  # noqa: SLF001 - as above


@witness("truncated_moments")
def truncated_moments(step: Step, dps: int) -> list[Verdict]:
    """The definition of the truncated moments against quadrature, for the lowest orders."""
    claims = [claim.xreplace({step.data["order"]: S(n)}) for claim in step.claims for n in range(4)]
    ok = all(_gap_at(claim, seed, dps) < mp.mpf(10) ** (-dps) for claim in claims for seed in range(POINTS))
    return result(numeric(dps), ok, "quadrature for n = 0, 1, 2, 3")
