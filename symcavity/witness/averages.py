"""Witnesses of averages over single sites: direct quadrature over the fields and the quenched parameters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from sympy import Add, Dummy, Expr, Float, Max, Min, Rational, S, oo, sqrt

from symcavity.algebra.precision import mp
from symcavity.algebra.quadrature import mp_average
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import N
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import CavitySymbol, DisorderAverage
from symcavity.sites.quenched_laws import quenched_average
from symcavity.sites.sets.averages import ProjectionAverage
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.direct import direct_average, hold
from symcavity.witness.joint import compile_together
from symcavity.witness.points import solved_point
from symcavity.witness.registry import fewer, largest, numeric, result, witness
from symcavity.witness.set_averages import vector_average
from symcavity.witness.steep import steep
from symcavity.witness.world import same


@witness("response", "site_average")
def response(step: Step, dps: int) -> list[Verdict]:
    """Averaged responses, by Gaussian integration by parts from the states alone."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side, index = theory.inserted[kind], {S.Zero: kind.index}
    out: list[Verdict] = []
    values = [quenched_average(_from_zero(claim.rhs, index)) for claim in step.claims]
    compile_together(values)
    for claim, value in zip(step.claims, values, strict=True):
        if not isinstance(claim.lhs, DisorderAverage):
            return result(numeric(dps), False, "", f"{claim.lhs} is not an average")
        node = _from_zero(claim.lhs.args[0], index)
        gap, digits, how = hold(theory, side, node, value, dps)
        out += _verdict(gap, digits, dps, f"integration by parts, and {how}")
    return out


def _from_zero(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """The inserted site's quantities at the canonical index."""
    return expr.xreplace({q: q.xreplace(rule) for q in expr.atoms(SiteQuantity) if S.Zero in q.indices})


def _verdict(worst: Any, digits: int, dps: int, how: str) -> list[Verdict]:
    ok = bool(worst < mp.mpf(10) ** (-digits))
    few = fewer(digits, dps)
    kind = numeric(dps) if few is None else f"quadrature to {digits} digits"
    return result(kind, ok, how, f"differs by {mp.nstr(worst, 3)} from {how}", few)


@witness("closure")
def closure(step: Step, dps: int) -> list[Verdict]:
    """The closed form against a direct average of what the order parameter stands for."""
    theory = step.evidence["theory"]
    out: list[Verdict] = []
    compile_together(theory.closures.values())  # those of other steps are asked next
    for claim in step.claims:
        meaning = theory.order_parameters.get(claim.lhs)
        if meaning is None or meaning != step.data["meaning"]:
            return result(SYMBOLIC, False, "", f"{claim.lhs} does not stand for {step.data['meaning']}")
        if claim.rhs.has(ProjectionAverage):
            out += vector_average(theory, [(meaning, claim.rhs)])
        else:
            out += _verdict(*_by_quadrature(theory, meaning, claim.rhs, dps))
    return out


@witness("stability_average", "two_sites_local")
def squares(step: Step, dps: int) -> list[Verdict]:
    """Averages of responses and their squares: by difference quotients of the states, at two close fields."""
    out: list[Verdict] = []
    compile_together(claim.rhs for claim in step.claims)
    for claim in step.claims:
        if claim.rhs.has(ProjectionAverage):
            out += vector_average(step.evidence["theory"], [(claim.lhs, claim.rhs)])
        elif claim.rhs == oo:
            out += steep(step.evidence["theory"], claim.lhs)
        else:
            out += _verdict(*_by_quadrature(step.evidence["theory"], claim.lhs, claim.rhs, dps))
    return out


def _by_quadrature(theory: Any, meaning: Expr, claimed: Expr, dps: int) -> tuple[Any, int, int, str]:
    gap, digits, how = direct_average(theory, meaning, claimed, dps)
    return gap, digits, dps, how


@witness("global_condition")
def global_condition(step: Step, dps: int) -> list[Verdict]:
    """The declared sum over the sites, or their mean, is that of the averaged body; its average by quadrature."""
    theory, number = step.evidence["theory"], step.evidence["number"]
    parts = theory.system.global_conditions[number]
    declared = declared_of(theory)
    world = declared.world(2)
    shared = [e for e in theory.system.declared if kind_of(e) is None]
    equation = [*shared, *(Equation(pair.args[1], S.Zero) for pair in theory.system.shared_pairs)][number]
    total = mp.fsum(world.value(e, {kind.index: at}) for kind, e in parts.items() for at in world.sites(kind))
    wanted = world.value(equation.difference)
    ok = same(wanted, total) or same(wanted * world.value(N), total)  # a mean over sites is read as a sum
    out = result(BRUTE_FORCE, ok, "the declared condition, written out", f"the declared condition is {equation}")
    averages = step.evidence["averages"]
    for claim in step.claims:
        partner = theory.system.partners[number]
        if partner is not None and isinstance(claim.lhs, Min) and partner in claim.lhs.args:
            (value,) = (e for e in claim.lhs.args if e != partner)
            claim, partner = Equation(value, claim.rhs), None
        if claim.rhs != 0 or partner is not None:
            return result(SYMBOLIC, False, "", f"the declared condition is {equation}")
        if len(parts) == 1:
            averages = dict.fromkeys(parts, claim.lhs)
        else:
            weighed = Add(*(kind.ratio * value for kind, value in averages.items()))
            out += result(SYMBOLIC, (claim.lhs - weighed).expand() == 0, "its parts, by kind of site", f"{weighed} = 0")
        for kind, body in parts.items():
            out += _part(theory, body.subs(1 / sqrt(N), 0), averages[kind], dps)  # to leading order
    return out


def _part(theory: Any, body: Expr, value: Expr, dps: int) -> list[Verdict]:
    """What a condition sums over one kind of site: its average."""
    if value.has(ProjectionAverage):
        return vector_average(theory, [(Average(body), value)])
    if site_quantities(body):
        return _verdict(*_by_quadrature(theory, Average(body), value, dps))
    return result(SYMBOLIC, (value - body).expand() == 0, "a condition on global variables", f"{body} = 0")


@witness("fixed")
def fixed(step: Step, dps: int) -> list[Verdict]:
    """The declared value, and the declared average: an order parameter, or by quadrature."""
    theory = step.evidence["theory"]
    record = theory.system.record
    declared = (theory.system if record is None else record.problem).fixed[step.evidence["number"]]
    (claim,) = step.claims
    world = declared_of(theory).world(2)
    if not same(world.value(claim.rhs), world.value(declared.rhs)):
        return result(SYMBOLIC, False, "", f"the declared value is {declared.rhs}")
    if claim.lhs in theory.order_parameters:
        meaning = theory.order_parameters[claim.lhs]
        ok = all(same(world.value(meaning), world.value(declared.lhs)) for world in _worlds(theory))
        return result(SYMBOLIC, ok, "the declared condition, in order parameters", f"{claim.lhs} is {meaning}")
    if claim.lhs.has(ProjectionAverage):
        return vector_average(theory, [(declared.lhs, claim.lhs)])
    return _verdict(*_by_quadrature(theory, declared.lhs, claim.lhs, dps))


@witness("load")
def load(step: Step, dps: int) -> list[Verdict]:
    """One over the load at a solved point; averages over a field by quadrature, or by the law of the site."""
    theory = step.evidence["theory"]
    solution, digits, where = solved_point(theory, dps)
    if solution is None:
        return [Verdict(numeric(dps), None, where)]
    worst = mp.mpf(0)
    with mp.workdps(dps + 10):
        for claim in step.claims:
            rule = {node: _at_point(theory, solution, node) for node in claim.rhs.atoms(DisorderAverage)}
            left, right = solution.number(claim.lhs), solution.number(claim.rhs.xreplace(rule))
            worst = largest(worst, abs(left - right) / abs(left))
    how = f"at the solution for {where}; averages over the field of the site"
    return _verdict(worst, digits, dps, how)


def _at_point(theory: Any, solution: Any, node: DisorderAverage) -> Expr:
    """The average of the states of the inserted site over its field, at a solved point."""
    (eta,) = node.atoms(CavitySymbol)
    site = theory.inserted[eta.kind]
    body = node.args[0]
    if site_quantities(body):  # a vector that follows from its field by a minimum: by the law V = T + F*Lambda
        convex, strength = site.solution.convex, site.solution.strength
        body = _from_zero(body, {S.Zero: eta.kind.index}).xreplace({convex.V: eta + strength * convex.Lam})
        return site.ensemble.average(body)
    variance = site.covariance[eta, eta]
    z, digits = Dummy("z", real=True), mp.dps
    values = {s: Float(solution[s], digits) for s in {*body.free_symbols, *variance.free_symbols} - {eta}}
    density = body.xreplace({eta: sqrt(variance) * z}).xreplace(values)
    ends = {end for kink in density.atoms(Max, Min) for end in kink.args if not end.has(Max, Min)}
    gaps = [first - second for first, second in combinations(sorted(ends, key=str), 2)]  # a kink may stand in another
    breaks = [-gap.xreplace({z: S.Zero}) / gap.diff(z) for gap in gaps if gap.diff(z).is_number and gap.diff(z) != 0]
    return Rational(mp.nstr(mp_average(density, z, breaks, mp.prec), digits))


def _worlds(theory: Any) -> list[Any]:
    return [declared_of(theory).world(seed) for seed in (2, 3)]


def closed_claims(theory: Any) -> list[Equation]:
    """The closed system: what each order parameter is, then the conditions on global variables and averages."""
    closures = [Equation(s, v) for s, v in theory.closures.items()]
    return [*closures, *theory.global_equations, *theory.fixed_equations]
