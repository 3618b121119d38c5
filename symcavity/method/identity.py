"""The identity behind the consistency of a theory: the coupling energy, summed over the sites of both kinds.

``sum_i e_i v_i = sum_mu m^mu u^mu`` is exact at any size, because both are the same bilinear form in the
couplings (v and u are the fields that features and data hear).  The cavity theory obeys it; the naive mean
field need not, and then it contradicts itself (paper, equations 22 to 25 and 59 to 61).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, And, Dummy, Expr, KroneckerDelta, Mul, S, Sum, Symbol, fraction

from symcavity.algebra.factors import together
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.phi import phi, phi_reduce
from symcavity.algebra.prove import prove
from symcavity.algebra.tails import log_tail
from symcavity.errors import NoClosedForm
from symcavity.method.eliminate import linear_solution, numerator
from symcavity.method.stein import stein_steps
from symcavity.method.theory import Theory
from symcavity.method.tidy import shortest, tidy_arguments
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import DATUM, FEATURE, Kind, N, P, alpha
from symcavity.model.laws import Law
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.sets.averages import ProjectionAverage

LONGEST = 1500  # operations of what an identity is looked for in; longer, it stays in the order parameters


@dataclass(frozen=True)
class WorkIdentity:
    """The coupling energy of one pair of fields, by the sites of either kind.

    Attributes
    ----------
    exact : Equation
        The identity as sums over the sites, exact at any size.
    feature, datum : Expr
        The summands, with the fields written by the laws and slackness used.
    averaged : Equation
        The same in averages of single-site quantities.
    written : Equation
        The averages before slackness is used: the same where no law has pairs.
    """

    exact: Equation
    feature: Expr
    datum: Expr
    averaged: Equation
    written: Equation


def work_identity(theory: Theory) -> WorkIdentity | None:
    """Return the identity of a system whose sides are coupled through one pair of fields, else None."""
    system = theory.system
    if set(system.laws) != {FEATURE, DATUM} or len(system.fields) != 2:
        return None
    (v,), (u,) = system.feature.fields, system.datum.fields
    if (v.sender, u.sender) != (DATUM, FEATURE) or v.coupling != u.coupling:
        return None
    limits = [tuple(v.inner)] if v.inner else []
    exact = Equation(_total(FEATURE, u.emission * v.as_sum), _total(DATUM, v.emission * u.as_sum, *limits))
    whole = u.emission * field_by_law(system.feature, v)
    product = v.emission * field_by_law(system.datum, u)
    product = euler(system.datum, product) if limits else product
    feature, datum = _slack(system.feature, whole), _slack(system.datum, product)
    if feature.has(v.symbol) or datum.has(u.symbol):
        return None
    uses_sizes = system.feature.fields[0].coupling.family.variance.subs(N, 1) == u.coupling.family.variance

    def averages(first: Expr, second: Expr) -> Equation:
        if uses_sizes:
            return Equation(Sum(first, FEATURE.range), P * Average(second))
        return Equation(Average(first), alpha * Average(second))

    used = (feature - whole).expand() != 0 or (datum - product).expand() != 0
    averaged = averages(feature, datum)
    return WorkIdentity(exact, feature, datum, averaged, averages(whole, product) if used else averaged)


def _total(side: Kind, body: Expr, *inner: Any) -> Expr:
    return Sum(body, side.range, *inner)


def euler(law: Law, product: Expr) -> Expr:
    """The scalar product of a vector with a multiple of its anchor point: ``V.grad g(V) = g(V)`` (Euler)."""
    named = {e.lhs: e.rhs for e in law.equations if e.rhs.has(Anchor)}
    levels = {}
    for e in law.equations:  # g(V) by the scalar that an equation of the law defines with it
        for node in e.difference.atoms(Support):
            solved = linear_solution(e.difference.xreplace({node: (mark := Dummy("G"))}), mark)
            if solved is not None:
                levels[node] = solved[0]
    product = product.xreplace(named)
    for anchor in product.atoms(Anchor):
        node = Support(anchor.g, anchor.body, anchor.components)
        product = product.xreplace({anchor: levels.get(node, node) / anchor.body})
    return product


def field_by_law(law: Law, f: RandomField) -> Expr:
    """The field of a site, from the equation in which it stands."""
    carrier = law.carrier(f)
    rest = (carrier.rhs - carrier.lhs).expand().xreplace({f.symbol: S.Zero})
    return -rest / law.coefficient(f)


def _slack(law: Law, product: Expr) -> Expr:
    """Use complementary slackness: products of the two members of a pair vanish."""
    top, bottom = fraction(together(product))
    kept = []
    for term in Add.make_args(top.expand()):
        factors = Mul.make_args(term)
        if any(p in factors and q in factors for p, q in (pair.pair for pair in law.pairs)):
            continue
        kept.append(term)
    return Add(*kept) / bottom


def identity_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The identity, what the theory makes of it, and the meaning of the response."""
    found = work_identity(theory)
    make = make.within("Consistency")
    steps: list[Step] = []
    if found is not None:
        steps.append(
            make(
                "work_identity",
                "work_identity",
                dict.fromkeys((found.exact, found.written, found.averaged)),
                data={"slack": found.written != found.averaged},
                rests_on=("sources",),
            )
        )
        steps += _load(theory, found, make)
        steps += _consistency(theory, found, make)
    if not theory.is_naive:
        steps += _interpretation(theory, make.within("Meaning of the responses"))
    return steps


def _load(theory: Theory, found: WorkIdentity, make: StepMaker) -> list[Step]:
    """The load by the identity, where a fixed condition says what its one side is."""
    given = found.averaged.xreplace({e.lhs: e.rhs for e in theory.system.fixed})
    if given == found.averaged or alpha not in given.difference.free_symbols:
        return []
    solved = linear_solution(numerator(given.difference, []), alpha)
    if solved is None:
        return []
    claim = Equation(1 / alpha, 1 / solved[0])
    fixed = tuple(f"fixed.{k + 1}" for k in range(len(theory.system.fixed)))
    return [make("load.identity", "load_identity", [claim], rests_on=("work_identity", *fixed))]


def reduced_sides(theory: Theory, found: WorkIdentity) -> tuple[Expr, Expr]:
    """Both sides of the averaged identity, with everything eliminated that can be."""
    closed = theory.reduced_with_load if theory.system.fixed else theory.reduced
    sides = []
    for side in (found.averaged.lhs, found.averaged.rhs):
        expr = theory.observable(side).xreplace(theory.units)
        for name in closed.definitions:
            if expr.has(name):
                expr = tidy_arguments(expr.xreplace({name: closed.explicit(name)}))
        sides.append(expr)
    return sides[0], sides[1]


def _consistency(theory: Theory, found: WorkIdentity, make: StepMaker) -> list[Step]:
    """What the theory makes of the identity: two values that differ, an identity, or a consequence of its equations."""
    left, right = reduced_sides(theory, found)
    long = left.count_ops() + right.count_ops() > LONGEST or _nested(left) or _nested(right)
    top = left - right if long else numerator(left - right, [])
    if theory.is_naive:
        if long or top == 0:
            return []
        claims, loads = _two_formulas(theory, found), True
        if not claims:
            claims, loads = (Equation(found.averaged.lhs, left), Equation(found.averaged.rhs, right)), False
        return [
            make(
                "inconsistency",
                "inconsistency",
                claims,
                data={"loads": loads},
                rests_on=("work_identity", "closed_system"),
            )
        ]
    proof: list[Step] = []
    proved = False
    if not long and top.count_ops() <= LONGEST:  # sides over one denominator may be far longer than both
        claim = _as_identity(top, _letters(top))
        proof = stein_steps(theory, claim, make) if claim.difference.has(ProjectionAverage) else _proof(claim, make)
        proved = bool(proof) or _vanishes(claim.difference)
    claims = (claim,) if proved else by_parts(theory, found)
    if not claims:
        return []
    verbs = ("cavity_equation", "field_statistics", "self_coupling_mean")
    used = [f"{kind.key}.{verb}" for kind in (FEATURE, DATUM) for verb in verbs]
    first = make(
        "consistency",
        "consistency",
        claims,
        data={"proved": proved},
        rests_on=("work_identity", *(("closed_system",) if proved else used)),
    )
    return [first, *proof]


def by_parts(theory: Theory, found: WorkIdentity) -> tuple[Equation, ...]:
    """Both sides of the averaged identity, each field being its cavity field plus the self-coupling times the message.

    ``<e v> = <eta^2> <de/d eta> + <F> <e^2>``: with one coupling, what varies from site to site is a common factor of
    the variance and of the self-coupling, so that the averages on the right are order parameters of the other side,
    where the variance of the coupling is a factor once more.
    """
    variance = theory.system.feature.fields[0].coupling.family.variance.subs(N, 1)
    once = variance.as_independent(SiteQuantity, as_Add=False)[0]
    variances, feedback = [], []
    for kind in (FEATURE, DATUM):
        site = theory.inserted[kind]
        (h,) = site.heard
        (echo,) = h.feedback
        (one, varies), (two, varies_too) = (
            whole.as_independent(SiteQuantity, KroneckerDelta, as_Add=False)
            for whole in (site.covariance[h.eta, h.eta], site.means[echo.symbol])
        )
        if varies != varies_too and 0 not in (one, two):
            return ()
        variances.append(one)
        feedback.append(two)
    value = Add(*(square * slope for square, slope in zip(variances, reversed(feedback), strict=True)))
    value = (value / once).factor()
    return Equation(found.averaged.lhs, value), Equation(found.averaged.rhs, value)


def _letters(expr: Expr) -> dict[Expr, Dummy]:
    """Stand-ins for averages that are left as integrals: they are equal as they are written, and not multiplied out."""
    integrals = {node for node in expr.atoms(Average) if node.has(GaussianAverage)}
    rest = expr.xreplace(dict.fromkeys(integrals, S.Zero)).atoms(GaussianAverage)
    return {node: Dummy("a", real=True) for node in (*integrals, *rest)}


def _vanishes(expr: Expr) -> bool:
    """Whether an expression is zero by the rules for truncated moments."""
    return bool(tidy_arguments(phi_reduce(expr.xreplace(_letters(expr))).expand()).expand() == 0)


def _nested(expr: Expr) -> bool:
    """Whether open averages or weights of parts stand in the integrand of another: no proof takes these apart."""
    return any(node.args[0].has(GaussianAverage, log_tail) for node in expr.atoms(GaussianAverage))


def _proof(claim: Equation, make: StepMaker) -> list[Step]:
    """The proof of an identity between truncated moments, step by step."""
    if not claim.lhs.has(phi) or claim.difference.has(SiteQuantity):
        return []
    proof = prove(claim.lhs, claim.rhs)
    if not proof:
        return []
    return [
        make(
            f"proof.{k + 1}",
            "proof",
            (Equation(line.lhs, line.rhs),),
            data={"why": (line.rule, line.values), "first": k == 0},
            rests_on=("consistency",) if k == 0 else (f"proof.{k}",),
        )
        for k, line in enumerate(proof.steps)
    ]


def _as_identity(expr: Expr, letters: dict[Expr, Dummy]) -> Equation:
    """Write ``expr = 0`` with its most complicated term alone on the left; what has a letter stays as it is."""
    found = _solved(expr.xreplace(letters).expand())
    back = {letter: node for node, letter in letters.items()}
    return Equation(found.lhs.xreplace(back), found.rhs.xreplace(back))


def _solved(expr: Expr) -> Equation:
    orders = [node.args[0] for node in expr.atoms(phi)]
    if orders:
        highest = max(orders)
        lead = [t for t in Add.make_args(expr) if any(n.args[0] == highest for n in t.atoms(phi))]
        if len(lead) == 1:
            coefficient = lead[0].as_independent(phi, as_Add=False)[0]
            return Equation(lead[0] / coefficient, (-(expr - lead[0]) / coefficient).expand())
    return Equation(expr, S.Zero)


def _two_formulas(theory: Theory, found: WorkIdentity) -> tuple[Equation, ...]:
    """The load by the naive theory, and by the exact identity with the naive states."""
    if not theory.system.fixed:
        return ()
    try:
        first = theory.closed_form(alpha, roots=False)
    except NoClosedForm:
        return ()
    # the identity, with every order parameter but the load eliminated by the naive theory
    closed = theory.reduced
    expr = (theory.observable(found.averaged.lhs) - theory.observable(found.averaged.rhs)).xreplace(theory.units)
    for name in closed.definitions:
        if expr.has(name):
            expr = tidy_arguments(expr.xreplace({name: closed.explicit(name)}))
    solved = linear_solution(numerator(expr, []), alpha)
    if solved is None:
        return ()
    loads = (Symbol(f"alpha_{k}", positive=True) for k in (1, 2))
    return tuple(Equation(load, value) for load, value in zip(loads, (first, solved[0]), strict=True))


def _interpretation(theory: Theory, make: StepMaker) -> list[Step]:
    """Where a response has one value on some branches and vanishes on the others, it counts sites."""
    steps = []
    for symbol, meaning in theory.order_parameters.items():
        body = meaning.args[0]
        if not isinstance(meaning, Average) or not isinstance(body, SiteResponse):
            continue
        (kind,) = body.state.site
        site = theory.inserted[kind]
        solution = site.solution
        if len(solution.regions) < 2 or solution.is_implicit or kind != DATUM:
            continue
        values = [site.at_labels.response(r.values, None, body) for r in solution.regions]
        active = [k for k, value in enumerate(values) if value != 0]
        fields = [h.eta for h in site.heard]
        if len(active) != 1 or site_quantities(values[active[0]]) or values[active[0]].has(*fields):
            continue
        region = solution.regions[active[0]]
        condition = And(*(other > 0 for other in _positive_members(site.law, region.label)))
        if condition == S.true:
            continue
        probability = Average(condition)
        first = Equation(symbol, values[active[0]] * probability)
        claims = [first, *_counted(theory, symbol, first.rhs)]
        steps.append(
            make(
                f"interpretation.{symbol}",
                "interpretation",
                tuple(claims),
                data={"symbol": symbol},
                rests_on=(f"{kind.key}.response",),
            )
        )
    return steps


def _positive_members(law: Law, vanishing: tuple[Expr, ...]) -> list[Expr]:
    """The members of the pairs that are positive on a branch."""
    out = []
    for pair in law.pairs:
        p, q = pair.pair
        out.append(q if p in vanishing else p)
    return [m for m in out if not (isinstance(m, SiteQuantity) and m.family.name.startswith("h"))] or out


def _counted(theory: Theory, symbol: Any, value: Expr) -> list[Equation]:
    """The responses that this one closes, by the same probability."""
    out = []
    for other, rhs in theory.closures.items():
        if other == symbol or not rhs.has(symbol):
            continue
        if not isinstance(theory.order_parameters[other].args[0], SiteResponse):
            continue
        put_in = rhs.xreplace({symbol: value})
        solved = linear_solution(numerator(other - put_in, []), other)
        if solved is not None:
            out.append(Equation(other, solved[0] if put_in.has(other) else shortest(put_in, solved[0])))
    return out
