"""Two copies of a convex problem at given overlaps: the covariance of their minima, and its derivatives.

The copies are the same but for a small term in the objective of each.  With ``C_ab`` the covariance of a field of the
one and a field of the other,

    V = sum over kinds of N_k/N Cov(M_k, M_k') - sum over couplings of (overlap of emissions)(overlap of messages)

is stationary in the overlaps ``y`` of the copies.  That of an answer in the first with another one in the second is
not the one the other way round; for equal copies both are equal.  The derivative of ``Cov(M, M')`` by ``C_ab`` is
``<psi_a psi_b'>``, that of ``psi_a`` by ``eta_c`` is a slope.

At given emissions that both copies hear, ``C_ab`` is what is left of the covariance, ``y`` less a product of what each
copy has of these emissions.  Where it can, this product is taken as a part of the overlap: ``y`` is that at given
emissions then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sympy import Add, Dummy, Expr, S, Symbol, cancel

from symcavity.method.answered import along, given_fields, named_averages
from symcavity.method.fluctuations import Shared, shared_terms
from symcavity.method.theory import Theory
from symcavity.method.told_apart import ToldApart
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import SiteQuantity
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site

Entries = tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class Crossed:
    """Two copies at given overlaps.

    Attributes
    ----------
    covariances : dict
        Of the fields of a site of each kind in the first copy with those in the second.
    overlaps : Expr
        The sum over couplings.
    turned : dict
        The overlaps of two copies, each with the one where the copies are exchanged.
    second : dict
        What the second copy alone has of given emissions, by its name in the first.
    same : dict
        What all of these are for equal copies, in order parameters.
    """

    covariances: dict[Kind, Entries]
    overlaps: Expr
    turned: dict[Symbol, Symbol]
    second: dict[Symbol, Symbol]
    same: dict[Symbol, Symbol]

    def grows(self, kind: Kind, symbol: Symbol) -> list[tuple[int, int, Expr]]:
        """The covariances of a kind that grow with a symbol: the places of their fields, and their derivatives."""
        rows = enumerate(self.covariances[kind])
        found = [(a, b, entry.diff(symbol)) for a, row in rows for b, entry in enumerate(row) if entry.has(symbol)]
        return [(a, b, rate) for a, b, rate in found if rate != 0]

    def alike(self, expr: Expr) -> Expr:
        """An expression where the copies are equal."""
        return expr.xreplace(self.same)


def crossed(theory: Theory, apart: ToldApart, squares: Mapping[Symbol, tuple[Kind, tuple[int, int]]]) -> Crossed:
    """Two copies of a theory, by its sites and the order parameters that are overlaps.

    Each overlap tells its kind, and the places of the two fields whose answers it is the mean product of.
    """
    taken = {*map(str, theory.order_parameters), *map(str, squares)}
    turned = {s: OrderParameter(fresh_name(taken, f"{s}_T")) for s, (_, (k, m)) in squares.items() if k != m}
    order, second = _Order(apart, squares, turned), dict[Symbol, Symbol]()

    def of_second(expr: Expr) -> Expr:
        for s in sorted(expr.free_symbols & {*theory.order_parameters, *apart.same}, key=str):
            second.setdefault(s, Dummy(str(s), real=True))
        return expr.xreplace(second)

    covariances = {kind: _covariances(site, order, of_second) for kind, site in apart.sites.items()}
    known = named_averages(theory)
    terms = [_exchanged(theory, order, known, term) for term in shared_terms(theory)]
    every = {s: turned.get(s, s) for s in squares} | {t: s for s, t in turned.items()}
    same = {t: s for s, t in turned.items()} | {mark: s for s, mark in second.items()}
    return _at_given(Crossed(covariances, Add(*terms), every, second, same))


@dataclass(frozen=True)
class _Order:
    """Which of two answers is that of the first copy."""

    apart: ToldApart
    squares: Mapping[Symbol, tuple[Kind, tuple[int, int]]]
    turned: Mapping[Symbol, Symbol]

    def of(self, named: Expr, kind: Kind, first: int | None, second: int | None) -> Expr:
        """Overlaps of two answers of a kind, where one is that of the first copy."""
        return named.xreplace({s: t for s, t in self.turned.items() if self.squares[s] == (kind, (second, first))})


def _covariances(site: Site, order: _Order, of_second: Callable[[Expr], Expr]) -> Entries:
    """Of the fields of a site in two copies, at given emissions."""
    heard, given = [h for h in site.heard if h.declared.states()], given_fields(site)

    def entry(h: Heard, g: Heard) -> Expr:
        value = site.covariance[h.eta, g.eta]
        (sender, one), (other_sender, other) = order.apart.partner(h), order.apart.partner(g)
        if sender == other_sender:
            value = order.of(value, sender, one, other)
        shared = (c * of_second(site.covariance[g.eta, f.eta]) for c, f in zip(along(site, h), given, strict=True))
        return value - Add(*shared)

    return tuple(tuple(entry(h, g) for g in heard) for h in heard)


def _exchanged(theory: Theory, order: _Order, known: Mapping[Expr, Expr], term: Shared) -> Expr:
    """The overlap of two emissions times that of two messages, the first of each in the first copy."""
    f, apart = term.fields[0], order.apart
    hears, sends = zip(*(apart.edges[f.symbol] for f in term.fields), strict=True)
    heard = apart.overlap(theory.observable(term.heard.xreplace(known)), term.weights[0], f.hearer, *hears)
    sent = apart.overlap(theory.observable(term.sent.xreplace(known)), term.weights[1], f.sender, *sends)
    return term.factor * order.of(heard, f.hearer, *hears) * order.of(sent, f.sender, *sends)


def _at_given(found: Crossed) -> Crossed:
    """With overlaps at given emissions where these account for all that the copies share of them."""
    shared: dict[Symbol, Expr] = {}
    for entry in (e for rows in found.covariances.values() for row in rows for e in row):
        held = [s for s in found.turned if entry.has(s)]
        if len(held) == 1 and held[0] not in shared:
            (symbol,) = held
            rest = cancel(entry.xreplace({symbol: S.Zero}) / entry.diff(symbol))
            if rest != 0 and not rest.has(SiteQuantity):
                shared[symbol] = -rest
    rule = {symbol: symbol + part for symbol, part in shared.items()}
    covariances = {
        kind: tuple(tuple(cancel(e.xreplace(rule)) if e.has(*rule) else e for e in row) for row in rows)
        for kind, rows in found.covariances.items()
    }
    same = {s: found.same.get(s, s) - part.xreplace(found.same) for s, part in shared.items()}
    return replace(
        found, covariances=covariances, overlaps=found.overlaps.xreplace(rule), same={**found.same, **same}
    )
