"""Average over the fresh couplings, which are independent of everything that they multiply (verb four)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Protocol

from sympy import Add, Expr, KroneckerDelta, Mul, S, Sum, Symbol, UnevaluatedExpr, cancel, sqrt

from symcavity.algebra.indexed import average_pairs, contract, flatten
from symcavity.method.identify import Identified
from symcavity.method.insert import second_component, second_site
from symcavity.method.labels import moment_label, response_label
from symcavity.method.naming import at_zero
from symcavity.method.sources import carrier_state, source_of
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convex_law import heard_vector
from symcavity.model.couplings import Coupling, correlation_of
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import FEATURE, Kind, N, SiteCount, in_units_of_n, kind_of_range
from symcavity.model.quantities import Family, Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System
from symcavity.model.times import Time, times_in
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import MovingParameter, OrderParameter
from symcavity.record.symbols import ComponentSymbol, DisorderAverage, ResponseElement
from symcavity.sites.protocol import Feedback, Heard


class Written(Protocol):
    """A cavity field that is written out: what was declared, and the sum over fresh couplings that it is."""

    @property
    def declared(self) -> RandomField:
        """The field in the declaration."""

    @property
    def definition(self) -> Expr:
        """The sum at the new site."""


@dataclass(frozen=True)
class Averaged:
    """The statistics of the fields and self-couplings of the new site.

    Attributes
    ----------
    kind : Kind
    covariance : dict
        Of the cavity fields, in order parameters and the site's quenched parameters.
    means : dict
        Of all self-couplings; zero for those through independent couplings.
    steps : tuple of Step
    """

    kind: Kind
    covariance: dict[tuple[Symbol, Symbol], Expr]
    means: dict[Symbol, Expr]
    steps: tuple[Step, ...]


def average(system: System, identified: Identified, book: ParameterBook, make: StepMaker) -> Averaged:
    """Average the cavity fields and the self-couplings (paper, equations 34 to 36 and 47 to 49).

    Fields are Gaussian with mean zero, self-couplings take their mean: both are sums of many weak terms, of
    which only the second moments of the couplings enter.
    """
    kind, heard = identified.kind, identified.problem.heard
    means = {k.symbol: at_index(book.close(self_coupling_mean(system, k)), kind) for h in heard for k in h.feedback}
    covariance: dict[tuple[Symbol, Symbol], Expr] = {}
    for k, a in enumerate(heard):
        for b in heard[k:]:
            value = at_index(book.close(field_covariance(a, b)), kind)
            covariance[b.eta, a.eta] = _turned(value, a.declared, b.declared)
            covariance[a.eta, b.eta] = value
    early = [
        k.symbol
        for h in heard
        for k in h.feedback
        if h.declared.states() and not any(system.answers(q, k.through) for q in h.declared.states())
    ]
    combined = _combined(system, heard, means)
    return Averaged(kind, covariance, means, tuple(_steps(identified, covariance, means, early, combined, make)))


def _turned(value: Expr, f: RandomField, g: RandomField) -> Expr:
    """The covariance of two fields in the other order: of what moves, the times change places."""
    moving = f if f.time is not None else g
    if moving.time is None:
        return value
    ((t, s),) = second_component(moving).items()
    return value.xreplace({t: s, s: t})


def _steps(
    identified: Identified,
    covariance: dict[tuple[Symbol, Symbol], Expr],
    means: dict[Symbol, Expr],
    early: list[Symbol],
    combined: list[Kind],
    make: StepMaker,
) -> list[Step]:
    kind, heard = identified.kind, identified.problem.heard
    claims = [Equation(DisorderAverage(h.eta), S.Zero) for h in heard]
    for k, a in enumerate(heard):
        for b in heard[k:]:
            value = at_zero(covariance[a.eta, b.eta], kind)
            second = b.eta
            if isinstance(second, ComponentSymbol):
                moved = second_component(b.declared)
                second = second.at(*moved.values())
                if not second.moves and not value.has(KroneckerDelta):
                    value *= KroneckerDelta(*next(iter(moved.items())))
            claims.append(Equation(DisorderAverage(a.eta * second), value))
    steps = [
        make(
            f"{kind.key}.field_statistics",
            "field_statistics",
            claims,
            data={"kind": kind, "several": len(heard) > 1},
            assumptions=(("independence", {}), ("clt", {})),
            rests_on=("disorder", f"{kind.key}.cavity_field"),
        )
    ]
    if means:
        every = [k for h in heard for k in h.feedback]
        every.sort(key=lambda k: means[k.symbol] == 0)
        steps.append(
            make(
                f"{kind.key}.self_coupling_mean",
                "self_coupling_mean",
                [Equation(DisorderAverage(k.symbol), at_zero(means[k.symbol], kind)) for k in every],
                data={
                    "kind": kind,
                    "small": [k.symbol for k in every if means[k.symbol] == 0 and k.symbol not in early],
                    "early": [k.symbol for k in every if k.symbol in early],
                    "combined": combined,
                },
                assumptions=(("independence", {}), ("self_averaging", {})),
                rests_on=("disorder", f"{kind.key}.self_coupling"),
            )
        )
    return steps


def _combined(system: System, heard: Sequence[Heard], means: dict[Symbol, Expr]) -> list[Kind]:
    """The kinds whose responses stand in self-couplings, and that hear one combination of several vectors."""
    living = [k.through.hearer for h in heard for k in h.feedback if means[k.symbol] != 0]
    laws = {kind: system.laws[kind] for kind in living}
    return [kind for kind, law in laws.items() if len(law.fields) > 1 and heard_vector(law) is not None]


def is_coupling(expr: Expr) -> bool:
    """Whether a factor is a coupling."""
    return isinstance(expr, SiteQuantity) and isinstance(expr.family, Coupling)


def coupling_covariance(x: SiteQuantity, y: SiteQuantity) -> Expr:
    """The mean of the product of two couplings (paper, equations 11, 12, 74).

    Couplings at different sites are independent, but for those with turned indices that have a reciprocity.
    """
    one, other = x.family, y.family
    ends = [slot.index for slot in one.slots]
    rule = dict(reversed(list(zip(ends, x.indices, strict=False))))  # of a kind coupled to itself: the first end
    if one != other:
        rho = correlation_of(one, other)
        scale = one.variance if one.variance == other.variance else sqrt(one.variance * other.variance)
        return rho * scale.xreplace(rule) * _equal(x.indices, y.indices) if rho != 0 else S.Zero
    variance = one.variance.xreplace(rule)
    turned = one.reciprocity * _equal(x.indices, y.indices[::-1]) if one.reciprocity != 0 else S.Zero
    return variance * (_equal(x.indices, y.indices) + turned)


def _equal(one: Sequence[Expr], other: Sequence[Expr]) -> Expr:
    """One where all indices are equal; the new site, 0, is none of the others, which are summed over."""
    if any((a == 0) != (b == 0) for a, b in zip(one, other, strict=True)):
        return S.Zero
    return Mul(*(KroneckerDelta(a, b) for a, b in zip(one, other, strict=True)))


def field_covariance(a: Written, b: Written) -> Expr:
    """The covariance of two cavity fields: their product, averaged over the couplings and contracted.

    Fields of different senders have independent couplings; of a vector, different components are independent.
    """
    f, g = a.declared, b.declared
    if f.sender != g.sender:
        return S.Zero
    moved = {g.sender.index: second_site(g.sender, f, g), **second_component(g)}
    product = flatten(protected(a.definition, f) * _moved(protected(b.definition, g), moved))
    averaged = average_pairs(product, is_coupling, coupling_covariance)
    return opened_sum(contract(averaged)) if averaged != 0 else S.Zero


def self_coupling_mean(system: System, feedback: Feedback) -> Expr:
    """The mean of a self-coupling: only the diagonal of the response matrix survives."""
    averaged = average_pairs(flatten(feedback.definition), is_coupling, coupling_covariance)
    return diagonal_responses(system, contract(averaged)) if averaged != 0 else S.Zero


def protected(definition: Expr, f: RandomField) -> Expr:
    """Protect an emission of several terms from being multiplied out."""
    if not f.emission.is_Add:
        return definition
    ((total, outside),) = [(s, definition / s) for s in definition.atoms(Sum)]
    body = total.function / f.emission * UnevaluatedExpr(f.emission)
    return outside * Sum(body, *total.limits)


def _moved(expr: Expr, rule: Mapping[Symbol, Symbol]) -> Expr:
    """A sum with other names for its indices, bound ones included."""
    return expr.xreplace(dict(rule))


def opened_sum(expr: Expr) -> Expr:
    """An expression without protected emissions."""
    return expr.xreplace({u: u.args[0] for u in expr.atoms(UnevaluatedExpr)})


def diagonal_responses(system: System, expr: Expr) -> Expr:
    """Write the diagonal elements of response matrices as responses of single sites."""
    rule = {}
    for element in expr.atoms(ResponseElement):
        message, source = element.args
        (kind,) = source.site
        carrier = next(f for f in system.laws[kind].fields if source_of(system, f) == source.family)
        rule[element] = message_response(system, message, carrier, source.time)
    return expr.xreplace(rule)


def message_response(system: System, message: Expr, carrier: RandomField, time: Expr | None = None) -> Expr:
    """The response of a linear message at one site to the source in the equation of a field, at a time if it moves.

    What other equations tell before that one does not answer.
    """
    states = site_quantities(message, Variable, Field)
    named, factor = carrier_state(system, carrier), S.One
    own = None if named is None else heard_vector(system.laws[carrier.hearer])
    if named is not None and own is not None:
        factor = own[1][named]  # the site hears one vector, a combination of its fields
        named = None
    return Add(*(factor * message.diff(q) * SiteResponse(q, named, time) for q in states if system.answers(q, carrier)))


def at_index(expr: Expr, kind: Kind) -> Expr:
    """The inserted site's quenched parameters, written at the canonical index."""
    return expr.xreplace({q: q.xreplace({S.Zero: kind.index}) for q in expr.atoms(SiteQuantity) if S.Zero in q.indices})


def _canonical(body: Expr, inner: list[Any]) -> Expr:
    """A sum over components at the declared component index, whatever index the contraction left."""
    ((index, *limits),) = inner
    declared = {q.family.components[0] for q in site_quantities(body) if index in q.indices}
    own = next(iter(declared)) if len(declared) == 1 else index
    return Sum(body.xreplace({index: own}), (own, *limits))


def _number(name: str) -> str:
    """The digits at the end of a name."""
    return name[len(name.rstrip("0123456789")) :]


@dataclass
class ParameterBook:
    """The order parameters: one symbol for each average or sum over sites that the statistics need.

    Attributes
    ----------
    meanings : dict
    signs : mapping
        Signs that are known of order parameters, by name.
    declared : frozenset of str
        Names that stand for something else.
    many : frozenset of str
        The names of many fields of one site that are numbered from one.
    own : frozenset of Family
        What names the equation of the one field of states that a site hears: responses to it need not say to what.
    """

    meanings: dict[OrderParameter, Expr] = field(default_factory=dict)
    signs: Mapping[str, int] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    many: frozenset[str] = frozenset()
    own: frozenset[Family] = frozenset()

    def close(self, expr: Expr) -> Expr:
        """Replace sums over sites by prefactors times order parameters; quenched averages stay as they are."""
        return Add(*(self._term(term) for term in Add.make_args(expr)))

    def _term(self, term: Expr) -> Expr:
        totals = [f for f in Mul.make_args(term) if isinstance(f, Sum)]
        if term == 0 or any(total.function == 0 for total in totals):
            return S.Zero
        if not totals:
            return term
        outside, parts = Mul(*(f for f in Mul.make_args(term) if f not in totals)), []
        for total in totals:
            ((index, _, size),) = (lim for lim in total.limits if kind_of_range(lim))
            inner = [lim for lim in total.limits if not kind_of_range(lim)]
            constant, body = total.function.as_independent(index, SiteResponse, as_Add=False)
            body = _canonical(body, inner) if inner else body
            outside *= constant
            parts.append((size, body.xreplace({index: size.kind.index})))
        scaled = cancel(outside * Mul(*(size for size, _ in parts)))
        if scaled.has(SiteCount):
            scaled = in_units_of_n(scaled)
        if not scaled.has(N):
            return scaled * Mul(*(self._symbol(Average(body)) for _, body in parts))
        for size, body in parts:
            if size.kind != FEATURE:
                outside *= size * self._symbol(Average(body))
            else:
                outside *= self._symbol(Sum(body, size.kind.range))
        return outside

    def _symbol(self, meaning: Expr) -> Expr:
        body = meaning.args[0]
        responses = body.atoms(SiteResponse)
        states = [q.family.at_site() for q in site_quantities(body, Variable, Field)]
        drawn = [q for q in site_quantities(body, Quenched) if q.family.given is not None]
        if not (states or responses or drawn):
            return meaning  # a quenched average is a given number
        if times := times_in(meaning):
            return self._moving(meaning, times, states)
        for symbol, known in self.meanings.items():
            if known == meaning:
                return symbol
        name = self._free(self._base(body), {*self.declared, *(s.name for s in self.meanings)})
        square = not responses and (body.function if isinstance(body, Sum) else body).is_nonnegative
        sign = 1 if square else self.signs.get(name, 0)
        symbol = OrderParameter(name, **({"positive": True} if sign > 0 else {"negative": True} if sign < 0 else {}))
        self.meanings[symbol] = meaning
        return symbol

    def _base(self, body: Expr, moment: str = "q") -> str:
        """The name of an average by what it averages; a letter alone where that has no short spelling."""
        responses = body.atoms(SiteResponse)
        heard = {r.field.family for r in responses if r.field is not None}
        ends = [_number(family.name) for r in responses for family in (r.state.family, *heard)]
        numbered = len(responses) == len(heard) == 1 and all(ends) and {family.name for family in heard} <= self.many
        label = response_label(body, heard if numbered else self.own) if responses else moment_label(body)
        if label and numbered:  # which state, and which field
            label = f"{label.rstrip('0123456789').rstrip('_')}_{''.join(ends)}"
        head = "S" if responses else moment
        return f"{head}_{label}" if label else head

    @staticmethod
    def _free(base: str, taken: Collection[str]) -> str:
        """A name that is not taken: with a number from the second on, or where the letter stands alone."""
        first = 1 if "_" not in base else 2
        names = chain([base] if first == 2 else [], (f"{base}_{k}" for k in count(first)))
        return next(name for name in names if name not in taken)

    def _moving(self, meaning: Expr, times: Sequence[Time], states: Sequence[SiteQuantity]) -> Expr:
        """The symbol of a kernel at the times of its meaning, which is remembered at the time of the declaration."""
        (t,) = {q.family.over for q in states if q.family.over is not None}
        if len(times) == 1 and times != [t]:
            return self._moving(meaning.xreplace({times[0]: t}), [t], states).at(*times)
        for symbol, known in self.meanings.items():
            if known == meaning:
                return symbol
        taken = {*self.declared, *(s.base for s in self.meanings if isinstance(s, MovingParameter))}
        name = self._free(self._base(meaning.args[0], "C"), taken)
        ordered = [t, *(other for other in times if other != t)]
        symbol = MovingParameter(name, ordered)
        self.meanings[symbol] = meaning
        return symbol
