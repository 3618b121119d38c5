"""Average the cavity field and the self-coupling over the fresh couplings (verb four of the method)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Add, Expr, KroneckerDelta, Mul, S, Sum, Symbol, UnevaluatedExpr, cancel

from symcavity.algebra.indexed import average_pairs, contract, flatten, fresh_index
from symcavity.errors import UnsupportedLaw
from symcavity.model.fields import RandomField
from symcavity.model.quantities import (
    DATUM,
    INDEX,
    OTHER,
    SIZE,
    Average,
    Coupling,
    Datum,
    Feature,
    Field,
    N,
    P,
    Quenched,
    SiteQuantity,
    SiteResponse,
    alpha,
    site_quantities,
)
from symcavity.model.system import System
from symcavity.record.symbols import OrderParameter, ResponseElement, Source


def is_coupling(expr: Expr) -> bool:
    """Whether a factor is a coupling."""
    return isinstance(expr, SiteQuantity) and isinstance(expr.family, Coupling)


def coupling_covariance(x: SiteQuantity, y: SiteQuantity) -> Expr:
    """The mean of the product of two couplings (paper, equations 11, 12, 74): independent unless identical."""
    if x.family != y.family:
        return S.Zero
    deltas = S.One
    for a, b in zip(x.indices, y.indices, strict=True):
        deltas *= KroneckerDelta(a, b)
    rule = dict(zip((INDEX[slot] for slot in x.family.slots), x.indices, strict=False))
    return x.family.variance.xreplace(rule) * deltas


def inserted(quantity: Expr, side: str) -> Expr:
    """The quantity at the inserted site 0 of a side."""
    return quantity.xreplace({INDEX[side]: S.Zero})


def field_sum(f: RandomField, index: Symbol | None = None) -> Expr:
    """The random field of the inserted site: the sum over the other side with fresh couplings.

    With another index of the other side, a vector takes another component index too.
    """
    other = OTHER[f.side]
    dummy = index or INDEX[other]
    rule = {INDEX[other]: dummy, **(second_component(f) if index else {})}
    body = inserted(f.coupling, f.side) * _closed(f.emission)
    inner = [(rule.get(f.inner[0], f.inner[0]), *f.inner[1:])] if f.inner else []
    return Sum(body.xreplace(rule), (dummy, 1, SIZE[other]), *inner)


def second_component(f: RandomField) -> dict[Symbol, Symbol]:
    """Another name for the component index of a field, where it has one."""
    limits = f.inner or f.components
    return {limits[0]: fresh_index(limits[0], {limits[0], *INDEX.values()})} if limits else {}


def second_site(side: str, *fields: RandomField) -> Symbol:
    """Another index of the sites of a side, which no component of the fields has."""
    inner = {index for f in fields for pair in second_component(f).items() for index in pair}
    return fresh_index(INDEX[side], {*INDEX.values(), *inner})


def _closed(expr: Expr) -> Expr:
    """Protect a sum of several terms from being multiplied out."""
    return UnevaluatedExpr(expr) if expr.is_Add else expr


def _opened(expr: Expr) -> Expr:
    return expr.xreplace({u: u.args[0] for u in expr.atoms(UnevaluatedExpr)})


def covariance(f: RandomField, g: RandomField) -> tuple[Expr, Expr]:
    """Return the covariance of two cavity fields: the averaged double sum, and its contraction."""
    other = OTHER[f.side]
    second = second_site(other, f, g)
    product = flatten(field_sum(f) * field_sum(g, second))
    averaged = average_pairs(product, is_coupling, coupling_covariance)
    return _opened(averaged), _opened(contract(averaged)) if averaged != 0 else S.Zero


def self_coupling_sum(system: System, f: RandomField, g: RandomField) -> Expr:
    """The self-coupling of an inserted site: through the message of f, by the shift of the field g.

    ``sum over mu, nu of x_f[mu, 0] d(message of f)^mu/dI_g^nu c_g[nu] x_g[nu, 0]``, where ``c_g`` is the
    factor with which the field g stands in the equation that carries the source I_g.
    """
    other = OTHER[f.side]
    first, second = INDEX[other], second_site(other, f, g)
    law = system.laws[other]
    moved = {first: second, **second_component(g)}
    source = source_at(system, g, second)
    weight = law.coefficient(g).xreplace(moved)
    body = inserted(f.coupling, f.side) * inserted(g.coupling, f.side).xreplace(moved) * weight
    inner = [tuple(f.inner), (moved[g.components[0]], *g.components[1:])] if f.inner else []
    return Sum(body * ResponseElement(f.emission, source), (first, 1, SIZE[other]), (second, 1, SIZE[other]), *inner)


def source_of(system: System, f: RandomField) -> Source:
    """The source in the equation that carries a field."""
    fields = system.laws[f.side].fields
    position = fields.index(f)
    return Source(f.side, str(position + 1) if position else "", f.components)


def source_at(system: System, f: RandomField, index: Expr) -> SiteQuantity:
    """The source of a field at a site; of a vector, at the second component index."""
    inner = second_component(f).values() if f.components else ()
    return source_of(system, f)[(index, *inner)]


def self_coupling_mean(system: System, f: RandomField, g: RandomField) -> Expr:
    """The mean of the self-coupling: only the diagonal of the response matrix survives."""
    if not f.states():
        return S.Zero
    averaged = average_pairs(flatten(self_coupling_sum(system, f, g)), is_coupling, coupling_covariance)
    return diagonal_responses(system, contract(averaged)) if averaged != 0 else S.Zero


def diagonal_responses(system: System, expr: Expr) -> Expr:
    """Write the diagonal elements of response matrices as responses of single sites."""
    rule = {}
    for element in expr.atoms(ResponseElement):
        message, source = element.args
        (side,) = source.site
        fields = system.laws[side].fields
        carrier = next(f for f in fields if source_of(system, f) == source.family)
        rule[element] = message_response(system, message, carrier)
    return expr.xreplace(rule)


def message_response(system: System, message: Expr, carrier: RandomField) -> Expr:
    """The response of a linear message at one site to the source in the equation of a field."""
    states = site_quantities(message, Feature, Datum, Field)
    named = carrier_state(system, carrier)
    return Add(*(message.diff(q) * (SiteResponse(q, named) if named else SiteResponse(q)) for q in states))


def carrier_state(system: System, f: RandomField) -> SiteQuantity | None:
    """The quantity that names the equation of a field, needed where a side has several fields.

    It is the left-hand side where that is a single variable; the others take the first variable of their
    equation, or else of the law, that names no other equation.
    """
    law = system.laws[f.side]
    if len(law.fields) == 1:
        return None
    names: dict[str, SiteQuantity] = {}
    for g in law.fields:
        lhs = law.carrier(g).lhs
        if isinstance(lhs, SiteQuantity) and lhs not in names.values():
            names[g.symbol.name] = lhs
    for g in law.fields:
        if g.symbol.name in names:
            continue
        carrier = law.carrier(g)
        own = [q for side in (carrier.lhs, carrier.rhs) for q in site_quantities(side, Feature, Datum, Field)]
        free = [q for q in (*own, *law.unknowns) if q not in names.values()]
        if not free:
            raise UnsupportedLaw(
                f"The equation {carrier} of a {f.side} has no variable to name its source by.",
                "as many variables as random fields; equations of the form Eq(u[mu], Sum(...) + ...)",
            )
        names[g.symbol.name] = free[0]
    return names[f.symbol.name]


@dataclass
class ParameterBook:
    """The order parameters: one symbol for each average or sum over sites that the statistics need."""

    meanings: dict[OrderParameter, Expr] = field(default_factory=dict)

    def close(self, expr: Expr) -> Expr:
        """Replace sums over sites by prefactors times order parameters; quenched averages stay as they are."""
        return Add(*(self._term(term) for term in Add.make_args(expr)))

    def _term(self, term: Expr) -> Expr:
        if term == 0:
            return S.Zero
        total = next((f for f in Mul.make_args(term) if isinstance(f, Sum)), None)
        if total is None:
            return term
        outside = term / total
        ((index, _, size),) = (lim for lim in total.limits if lim[2] in SIZE.values())
        inner = [lim for lim in total.limits if lim[2] not in SIZE.values()]
        side = DATUM if size == P else next(s for s in SIZE if SIZE[s] == size)
        constant, body = total.function.as_independent(index, SiteResponse, as_Add=False)
        body = Sum(body, *inner) if inner else body
        scaled = cancel(outside * constant * size)
        if scaled.has(P):
            scaled = scaled.subs(P, alpha * N)
        if not scaled.has(N, P):
            return scaled * self._symbol(Average(body.xreplace({index: INDEX[side]})))
        if side == DATUM:
            return outside * constant * P * self._symbol(Average(body.xreplace({index: INDEX[side]})))
        return outside * constant * self._symbol(Sum(body.xreplace({index: INDEX[side]}), (INDEX[side], 1, size)))

    def _symbol(self, meaning: Expr) -> Expr:
        body = meaning.args[0]
        responses = body.atoms(SiteResponse)
        states = [q.family.at_site() for q in site_quantities(body, Feature, Datum, Field)]
        if not states and not responses:
            return meaning  # a quenched average is a given number
        for symbol, known in self.meanings.items():
            if known == meaning:
                return symbol
        if responses:
            states = sorted({r.state for r in responses}, key=str)
        weights = [q.family.name for q in site_quantities(body, Quenched)]
        label = "_".join([*weights, *(q.family.name for q in states)])
        base = f"{'S' if responses else 'q'}_{label}"
        taken = {s.name for s in self.meanings}
        name, count = base, 2
        while name in taken:
            name, count = f"{base}_{count}", count + 1
        square = not responses and (body.function if isinstance(body, Sum) else body).is_nonnegative
        symbol = OrderParameter(name, positive=True) if square else OrderParameter(name)
        self.meanings[symbol] = meaning
        return symbol

    def sign(self, symbol: OrderParameter, value: int) -> OrderParameter:
        """Give an order parameter the sign that was found; returns the new symbol."""
        signed = OrderParameter(symbol.name, **({"positive": True} if value > 0 else {"negative": True}))
        self.meanings = {(signed if s == symbol else s): m for s, m in self.meanings.items()}
        return signed
