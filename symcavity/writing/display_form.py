"""A derivation in the form in which it is read: its claims pass rewritings, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, reduce
from typing import Any

from sympy import (
    Abs,
    Add,
    Basic,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Mul,
    Piecewise,
    Pow,
    S,
    Sum,
    Symbol,
    Tuple,
    exp,
    sign,
)  # fmt: skip

from symcavity.algebra.between import log_between
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.joint import JointAverage
from symcavity.algebra.node import holds
from symcavity.algebra.phi import phi
from symcavity.algebra.tails import log_tail
from symcavity.model.averages import Average, Expect, Fresh, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.times import Time
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import ResponseElement
from symcavity.writing.arranging import (
    by_shares,
    gathered,
    over_each,
    over_one,
    signed,
    spread,
    with_shared_front,
    with_whole_roots,
)  # fmt: skip
from symcavity.writing.bound_letters import Rule, other_letters, own_names
from symcavity.writing.cases import decided, soft_threshold
from symcavity.writing.energies import in_lowest_terms, priced, priced_sum, with_squares
from symcavity.writing.laws import with_named_laws
from symcavity.writing.letters import with_free_letters
from symcavity.writing.ordering import is_negative
from symcavity.writing.over_parameters import OverParameters, over_parameters

_DATA = ("branches", "values", "pairs", "variable")  # what is printed of the data of a step
_TYPED = ("equations", "conditions", "subject_to")  # what is printed as it was declared, but for indices


def is_sign(family: Any) -> bool:
    """Whether a quenched parameter takes the values one and minus one only."""
    law = family.law if isinstance(family, Quenched) else None
    return isinstance(law, Tuple) and all(value**2 == 1 for value, _ in law)


def as_shown(derivation: Derivation) -> Derivation:
    """Return a derivation whose claims and data are written for a reader: the same statements, in the record's order.

    Expressions pass the rules of ``ANYWHERE``; both sides of an equation pass those of ``SIDES``.
    """
    derivation = with_free_letters(with_named_laws(derivation))
    side, other = (_in_turn(make(derivation) for make in makers) for makers in (SIDES, ANYWHERE))

    def written(obj: Any) -> Any:
        if isinstance(obj, Equation):
            return Equation(side(obj.lhs), side(obj.rhs))
        if type(obj) in (list, tuple):
            return type(obj)(map(written, obj))
        if type(obj) is dict:
            return {written(key): written(value) for key, value in obj.items()}
        return other(obj) if isinstance(obj, Basic) else obj

    parameters = tuple((symbol, written(meaning)) for symbol, meaning in derivation.parameters)
    steps = []
    for step in derivation.steps:
        data = {name: written(value) if name in _DATA else value for name, value in step.data.items()}
        if step.rule == "problem":
            data |= {name: [_indexed(e) for e in data[name]] for name in _TYPED if data.get(name)}
            energy = data.get("minimize")
            data |= {"minimize": _replacing(priced_sum, Sum)(energy)} if isinstance(energy, Basic) else {}
        steps.append(replace(step, claims=tuple(map(written, step.claims)), data=data))
    results = tuple(map(written, derivation.results))
    return replace(derivation, steps=_once(steps, parameters), parameters=parameters, results=results)


def _in_turn(rules: Iterable[Rule]) -> Rule:
    """Apply rules one after the other; what they make of an expression is remembered."""
    every = list(rules)
    return cache(lambda expr: reduce(lambda form, rule: rule(form), every, expr))


def _replacing(value: Rule, *classes: type) -> Rule:
    """Replace the nodes of some classes, where they change."""

    def rule(expr: Any) -> Any:
        new = {node: value(node) for node in expr.atoms(*classes)}
        return expr.xreplace({node: form for node, form in new.items() if form != node})

    return rule


def _inside(made: Callable[..., Any], kind: type) -> Rule:
    """Make the nodes of a class anew, in averages those that hold the variable of the average, too."""
    return lambda expr: expr.replace(kind, made) if holds(expr, (kind,)) else expr


# -- the rules, by the derivation whose expressions they rewrite ---------------------------------------


def _alike(_derivation: Derivation) -> Rule:
    """What is equal but for the names of bound variables is one."""
    first: dict[Any, Any] = {}
    return lambda expr: first.setdefault(expr.as_dummy(), expr) if expr.has(Dummy) else expr


def _even_powers(_derivation: Derivation) -> Rule:
    """Of two differences that have one square the one that comes first is written in both places."""
    seen: set[Expr] = set()

    def one(power: Pow) -> Expr:
        base, turned = power.base, -power.base
        if turned in seen:
            return turned**power.exp
        seen.add(base)
        return power

    return lambda expr: expr.replace(lambda e: e.is_Pow and e.base.is_Add and e.exp.is_even, one)


def _indexed(expr: Any) -> Any:
    """A declared expression in which no sum over all sites uses the index of its own site."""
    aside = {node: Dummy() for node in expr.atoms(Sum, Average)}
    site = {index for q in site_quantities(expr.xreplace(aside)) for index in q.indices if index.is_Symbol}
    new = {}
    for total in expr.atoms(Sum):
        alike = [index for index, *_ in total.limits if index in site and not isinstance(index, Time)]
        taken = total.atoms(Symbol) | site
        new[total] = total.xreplace({index: fresh_index(index, taken) for index in alike})
    return expr.xreplace(new) if any(form != total for total, form in new.items()) else expr


def _moments(_derivation: Derivation) -> Rule:
    """The arguments of moments have one denominator, or each of their denominators once."""
    return _inside(lambda n, k: phi(n, over_each(over_one(spread(k)))), phi)


def _shares(_derivation: Derivation) -> Rule:
    """What an exponent holds as the logarithm of a share of a Gaussian is a factor."""
    shares = [_inside(lambda *args, kind=kind: kind(*args).rewrite(phi), kind) for kind in (log_between, log_tail)]
    return lambda expr: shares[1](shares[0](expr))


def _fractions(_derivation: Derivation) -> Rule:
    """So have those that came to have them."""
    return _inside(lambda n, k: phi(n, over_each(over_one(k))), phi)


def _means(_derivation: Derivation) -> Rule:
    """Common factors of an averaged sum that are the same for all sites are moved before the average."""

    def made(body: Any, *rest: Any) -> Expr:
        factors = Mul.make_args(Mul(*map(over_one, Mul.make_args(body))))
        inside = [f for f in factors if f.has(SiteQuantity)]
        before = Mul(*(f for f in factors if f not in inside))
        return before * Average(Mul(*inside), *rest) if inside else Average(body, *rest)

    return _inside(made, Average)


def _cases(_derivation: Derivation) -> Rule:
    """Where a case holds nothing asks again whether it does."""
    return _inside(lambda *cases: decided(Piecewise(*cases, evaluate=False)), Piecewise)


def _roots(_derivation: Derivation) -> Rule:
    """A root of a difference with a fraction in it is written by that without one, where this stands there, too."""
    return with_whole_roots


def _exponents(_derivation: Derivation) -> Rule:
    """Common factors of an exponent are moved before its terms."""
    return _inside(lambda power: exp(with_shared_front(power)), exp)


def _by_sources(derivation: Derivation) -> Rule:
    """Where a site has several sources, a response says which one is meant."""
    sources = {q.family: f for step in derivation.steps for q, f in step.data.get("carriers", ()) if q is not None}

    def named(node: SiteResponse) -> Any:
        source = sources.get(node.field.family) if node.field is not None else None
        if source is None:
            return node
        here = node.state.indices[: len(source.slots) + (1 if source.components else 0)]
        when = () if source.over is None else node.times[1:]
        return ResponseElement(node.state, SiteQuantity(source, *here, *when))

    return _replacing(named, SiteResponse)


def _of_signs(_derivation: Derivation) -> Rule:
    """The square of a sign is one, as its absolute value is: of a function, or of a quenched sign ``y``."""

    def value(node: Any) -> Any:
        base = node.args[0]
        if isinstance(node, Pow) and isinstance(base, sign) and node.exp.is_Integer:  # where it is not zero
            return base if node.exp.is_odd else S.One
        if not isinstance(base, SiteQuantity) or not is_sign(base.family):
            return node
        if isinstance(node, Pow):
            return (base if node.exp.is_odd else S.One) if node.exp.is_Integer else node
        return S.One if isinstance(node, Abs) else base

    return _replacing(value, Pow, Abs, sign)


def _of_parts(_derivation: Derivation) -> Rule:
    """A root is not negative, and a positive part vanishes where its step does: both are written once."""

    def value(node: Any) -> Any:
        if isinstance(node, Abs):
            base = node.args[0]
            return base if isinstance(base, Pow) and base.exp.is_Rational and base.exp.q == 2 else node
        parts = {base for base, power in node.as_powers_dict().items() if isinstance(base, Max) and power.is_positive}
        return Mul(*(f for f in node.args if not (isinstance(f, Heaviside) and Max(0, f.args[0]) in parts)))

    return _replacing(value, Abs, Mul)


def _thresholds(_derivation: Derivation) -> Rule:
    """What vanishes between two ends and is linear beyond them, as a soft threshold, by positive parts."""
    return _replacing(soft_threshold, Piecewise)


def _thermal(derivation: Derivation) -> Rule:
    """The average of a state that fluctuates is first one over the measure."""
    measures = [step for step in derivation.steps if step.rule == "problem" and step.data.get("beta")]
    weighed = {q.family for step in measures for q in site_quantities(step.data["minimize"], Variable)}

    def value(node: Average) -> Expr:
        bare = node.body.replace(lambda part: isinstance(part, Expect), lambda _: S.One)
        moves = any(q.family in weighed for q in site_quantities(bare))
        return Average(Expect(node.body)) if moves and not isinstance(node.body, Fresh) else node

    return _replacing(value, Average) if weighed else lambda expr: expr


def _energies(_derivation: Derivation) -> Rule:
    """Prices come after the terms to which they are added, forces are in lowest terms, shares are factored."""
    sums, prices = _replacing(priced_sum, Sum), _replacing(priced, Piecewise)
    forces, bare = _replacing(in_lowest_terms, Expect), _replacing(_without_given, Expect)
    return lambda expr: by_shares(bare(forces(prices(sums(expr)))))


def _without_given(mean: Expect) -> Expr:
    """A thermal average with the factors before it that do not fluctuate: numbers, parameters, quenched ones."""
    factors = Mul.make_args(mean.args[0])
    still = [f for f in factors if f.is_number or type(f) is Symbol or _is_quenched(f)]
    return Mul(*still, Expect(Mul(*(f for f in factors if f not in still)))) if len(still) < len(factors) else mean


def _is_quenched(factor: Expr) -> bool:
    return isinstance(factor, SiteQuantity) and isinstance(factor.family, Quenched)


def _squares(_derivation: Derivation) -> Rule:
    """Three terms of a sum that are a square are written as one."""
    return with_squares


def _mirrored_averages(_derivation: Derivation) -> Rule:
    """Two averages that differ by the sign of their variable are one: of a symmetric Gaussian."""

    def turned(average: GaussianAverage) -> GaussianAverage:
        body, z = average.args
        return GaussianAverage(body.xreplace({z: -z}), z)

    def minuses(average: GaussianAverage) -> int:
        body, z = average.args
        return sum(term.has(z) and is_negative(term) for node in body.atoms(Add) for term in node.args)

    def one(expr: Expr) -> Expr:
        found = {node for node in expr.atoms(GaussianAverage) if type(node) is GaussianAverage}
        pairs = ((node, turned(node)) for node in found)
        both = [(node, other) for node, other in pairs if other != node and other in found]
        return expr.xreplace({node: min((node, other), key=lambda a: (minuses(a), str(a))) for node, other in both})

    return one


def _turned_averages(_derivation: Derivation) -> Rule:
    """Of two averages that differ by their sign the one that comes first is written in both places."""
    seen: set[Expr] = set()

    def one(average: GaussianAverage) -> Expr:
        turned = GaussianAverage(-average.args[0], average.args[1])
        if turned in seen:
            return -turned
        seen.add(average)
        return average

    return lambda expr: expr.replace(lambda node: type(node) is GaussianAverage, one)


def _arranged(_derivation: Derivation) -> Rule:
    """Sums and products as people write them."""
    return lambda expr: by_shares(gathered(over_one(signed(expr))))


PARTS = (_cases, _of_signs, _of_parts, _thresholds, _thermal, _energies)
ANYWHERE = (other_letters, _shares, _moments, over_parameters, _by_sources, *PARTS)
LAST = (_means, _arranged, _roots, _fractions, _exponents)
SIDES = (_alike, *ANYWHERE, own_names, _mirrored_averages, _turned_averages, _even_powers, _squares, *LAST)


def _once(steps: Sequence[Step], parameters: Iterable[tuple[Any, Any]]) -> tuple[Step, ...]:
    """Steps; a mean response goes by the order parameter that it is, mere names for averages and 0 = 0 are left out."""
    closed = {claim for step in steps if step.rule == "closure" for claim in step.claims}
    out = []
    for every in steps:
        step = replace(every, claims=tuple(c for c in every.claims if not isinstance(c, Equation) or c.lhs != c.rhs))
        if step.rule == "implicit":
            step = _in_its_own_name(step)
        elif step.rule == "response":
            at = {step.data["kind"].index: S.Zero}
            named = {m.xreplace(at).args: symbol for symbol, m in parameters if isinstance(m, Average)}
            given = ((claim, Equation(named.get(claim.lhs.args, claim.lhs), claim.rhs)) for claim in step.claims)
            step = replace(step, claims=tuple(new if new in closed else claim for claim, new in given))
        elif step.rule == "stability_average":
            some = tuple(claim for claim in step.claims if not isinstance(claim.rhs, JointAverage | OverParameters))
            step = replace(step, claims=some, data={**step.data, "open": len(some) < len(step.claims)})
        out.append(step)
    return tuple(out)


def _in_its_own_name(step: Step) -> Step:
    """An implicit law with the state that solves it where the record has a symbol of its own for that state."""
    names = {c.rhs: c.lhs for c in step.claims if isinstance(c.lhs, SiteQuantity) and isinstance(c.rhs, Dummy)}
    claims = tuple(claim.xreplace(names) for claim in step.claims if claim.rhs not in names)
    domains = [domain.xreplace(names) for domain in step.data.get("domains", ())]
    return replace(step, claims=claims, data={**step.data, "domains": domains})
