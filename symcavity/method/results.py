"""The closed equations and their elimination, as steps of the record."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Mul, S, Sum, Symbol, fraction

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.errors import NoClosedForm
from symcavity.method.close import averaged_parts
from symcavity.method.eliminate import Closed
from symcavity.method.naming import at_zero
from symcavity.method.orders import orders
from symcavity.method.theory import Theory
from symcavity.method.tidy import simplest
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import alpha
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.sets.averages import ProjectionAverage

READABLE = 300  # operations in a formula that fills half a page


def closing_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """Each order parameter by the single-site average that it stands for, and the closed system."""
    make = make.within("Self-consistent equations")
    steps = [*_moment_steps(theory, make), *_parameter_steps(theory, make), *_condition_steps(theory, make)]
    free = [alpha] if theory.system.fixed else []
    sums = [symbol for symbol, meaning in theory.order_parameters.items() if isinstance(meaning, Sum)]
    sizes = orders(theory.order_parameters, dict(kv for site in theory.sites.values() for kv in site.solution.items()))
    steps.append(
        make(
            "closed_system",
            "closed_system",
            theory.equations,
            data={"unknowns": [*theory.unknowns, *free], "parameters": _parameters(theory, free)},
            assumptions=(("orders", {"orders": sizes, "sums": sums}),) if sizes else (),
            rests_on=tuple(s.key for s in steps),
        )
    )
    return steps


def _moment_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """What phi stands for, where it occurs."""
    steps = []
    if any(e.difference.has(phi) for e in theory.equations):
        n, kappa, z = (
            Symbol("n", integer=True, nonnegative=True),
            Symbol("kappa", real=True),
            Symbol("z", real=True),
        )
        steps.append(
            make(
                "truncated_moments",
                "truncated_moments",
                [Equation(phi(n, kappa), TruncatedIntegral((kappa - z) ** n, z, kappa))],
                data={"order": n, "variable": z},
            )
        )
    return steps


def _parameter_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """Each order parameter by its average, with that of one site where sites differ."""
    steps = []
    place = {kind.key: k for k, kind in enumerate(theory.inserted)}
    by_site = sorted(theory.closures, key=lambda s: [place[k] for k in _kinds(theory.order_parameters[s])])
    for symbol, value in ((s, theory.closures[s]) for s in by_site):
        meaning = theory.order_parameters[symbol]
        of_one = site_average(theory, meaning)
        if of_one is not None:
            (kind,) = {kind for q in site_quantities(meaning) for kind in q.site}
            rests = (f"{kind.key}.solution",)
            steps.append(make(f"site.{symbol}", "site_average", [of_one], data={"kind": kind}, rests_on=rests))
        steps.append(
            make(
                f"closure.{symbol}",
                "closure",
                [Equation(symbol, value)],
                data={"symbol": symbol, "meaning": meaning, "observable": meaning},
                assumptions=(("self_averaging", {}),),
                rests_on=tuple(f"{s}.solution" for s in _kinds(meaning)),
            )
        )
    return steps


def _condition_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The conditions on all sites, and those that are fixed."""
    steps = []
    for k, equation in enumerate(theory.global_equations):
        kinds = theory.system.global_conditions[k]
        steps.append(
            make(
                f"global.{k + 1}",
                "global_condition",
                [equation],
                assumptions=(("self_averaging", {}),),
                rests_on=tuple(f"{kind}.solution" for kind in kinds),
                evidence={"number": k, "averages": averaged_parts(kinds, theory.inserted)},
            )
        )
    for k, equation in enumerate(theory.fixed_equations):
        steps.append(
            make(
                f"fixed.{k + 1}",
                "fixed",
                [equation],
                rests_on=("problem",),
                evidence={"number": k},
            )
        )
    return steps


def site_average(theory: Theory, meaning: Expr) -> Equation | None:
    """The second moment of one site over its field, where sites differ by parameters of their own; else None."""
    body = meaning.args[0]
    if meaning.has(SiteResponse):
        return None
    (kind,) = {kind for q in site_quantities(body) for kind in q.site}
    value = theory.inserted[kind].ensemble.at_site(body)
    own = [q for q in site_quantities(value, Quenched) if kind in q.site] if kind.index in value.free_symbols else []
    if not own or value.has(ProjectionAverage) or value.count_ops() > READABLE or value.is_polynomial(*own):
        return None  # of a polynomial the average is seen at once
    return Equation(DisorderAverage(at_zero(body, kind)), at_zero(simplest(value), kind))


def _parameters(theory: Theory, free: list[Symbol]) -> list[Any]:
    """What must be given: parameters, ratios and sizes, quenched parameters without a law, and convex sets."""
    written = [_without_ranges(e.difference) for e in theory.equations]
    symbols = set().union(*(e.atoms(Symbol) for e in written))
    kinds = theory.system.kinds
    plain = [*theory.system.parameters, *(k.ratio for k in kinds if k.ratio.is_Symbol), *(k.size for k in kinds)]
    quenched = sorted((q for q in families(written, Quenched) if q.law is None), key=lambda q: q.name)
    sets = sorted({node.g for e in written for node in e.atoms(ProjectionAverage)}, key=str)
    return [*(s for s in plain if s in symbols and s not in free), *quenched, *sets]


def _without_ranges(expr: Expr) -> Expr:
    """An expression without the ranges of its sums."""
    while totals := expr.atoms(Sum):
        expr = expr.xreplace({total: total.function for total in totals})
    return expr


def result_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """What elimination leaves: the explicit unknowns, and the core that needs a root finder."""
    make = make.within("Results")
    closed = theory.reduced_with_load if theory.system.fixed else theory.reduced
    steps = []
    same = _unitless(theory)
    shifts = [Equation(g, value) for g, value in theory.units.items() if not value.is_Symbol]
    if shifts:
        steps.append(make("units", "units", shifts))
    whole = {e.lhs: e for e in theory.equations}
    kept = []  # what elimination would make longer, of an unknown that is closed already
    for symbol, expr in closed.definitions.items():
        if symbol in whole and expr.count_ops() > max(READABLE // 4, 2 * whole[symbol].rhs.count_ops()):
            kept.append(whole[symbol])
            continue
        steps.append(
            make(
                f"eliminate.{symbol}",
                "elimination",
                [_readable(same.get(symbol, symbol), simplest(expr.xreplace(same)))],
                data={"solved": symbol},
                rests_on=("closed_system",),
            )
        )
    # a core that is no easier to read is left as the equation that it came from, beside the formulas above
    claims = [
        Equation(core.xreplace(same), S.Zero) if _effort(core) < _effort(closure.difference) else closure
        for core, closure in zip(closed.core, theory.remaining(closed), strict=True)
    ]
    for target in (*([alpha] if theory.system.fixed else []), *theory.order_parameters):
        try:
            explicit = theory.closed_form(target, roots=False)
        except NoClosedForm:
            continue
        if target == alpha or explicit.count_ops() <= READABLE:
            claims.append(Equation(target, explicit))
    claims += kept
    whole_core = bool(closed.definitions) and not kept and len(claims) == len(closed.core)
    if claims:
        steps.append(
            make(
                "result",
                "result",
                claims,
                data={"left": _left(theory, closed) if whole_core else []},
                rests_on=tuple(s.key for s in steps) or ("closed_system",),
            )
        )
    return steps


def _left(theory: Theory, closed: Closed) -> list[Expr]:
    """The unknowns that elimination leaves, if there are as many as equations."""
    free = [alpha] if theory.system.fixed else []
    units = [s for value in theory.units.values() for s in value.free_symbols]
    every = dict.fromkeys([*theory.unknowns, *free, *sorted(units, key=str)])
    found = [s for s in every if s not in closed.definitions and any(core.has(s) for core in closed.core)]
    return [_unitless(theory).get(s, s) for s in found] if len(found) == len(closed.core) else []


def _unitless(theory: Theory) -> dict[Any, Symbol]:
    """Variables that all sites share by what stands for them in units, where these are one: they keep their names."""
    return {value: g for g, value in theory.units.items() if value.is_Symbol}


def _effort(expr: Expr) -> tuple[int, int]:
    """What an expression asks of a reader: averages inside of functions and averages, then its length."""
    nodes = expr.atoms(phi, Average, Sum, GaussianAverage, ImplicitAverage)
    return sum(inner.has(Average, Sum) for node in nodes for inner in node.args), expr.count_ops()


def _readable(symbol: Symbol, expr: Expr) -> Equation:
    """What an unknown equals; a long sum below it is multiplied up, so that lines may end in it."""
    top, bottom = fraction(expr)
    if bottom.count_ops() > READABLE // 8 and any(f.is_Add for f in Mul.make_args(bottom)):
        return Equation(bottom * symbol, top)
    return Equation(symbol, expr)


def _kinds(expr: Expr) -> list[str]:
    found = {slot.key for q in expr.atoms(SiteQuantity) if not isinstance(q.family, Coupling) for slot in q.site}
    return sorted(found, reverse=True)
