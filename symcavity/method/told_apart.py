"""Order parameters of sites that answer alike to several fields, told apart by these fields.

Sites that hear two sums of other sites, as data that hear two kinds of features, may answer both with one number
``lambda``; then the overlap of what they send to the one kind is that of what they send to the other one, and a theory
has one order parameter for both.  A small term in the objective tells the answers apart.  So do the names here: an
overlap or a response has one for each pair of fields that it is of.

It also moves numbers that vanish: two sites that send each other nothing on average, or that do not answer each other's
fields, may do so with it.  These have a name, too, where their fields sum the same couplings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from sympy import Add, Expr, KroneckerDelta, S, Symbol, cancel, expand_mul

from symcavity.method.average import coupling_covariance
from symcavity.method.given_emissions import split_by_ends
from symcavity.method.objective_fields import answers, matching
from symcavity.method.theory import Theory
from symcavity.model.averages import SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, in_units_of_n
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site

Place = tuple[Kind, int | None]


@dataclass
class ToldApart:
    """The sites of a theory, with order parameters told apart.

    Attributes
    ----------
    sites : dict
    partners : dict
        Which field of its sender tells what stands in a trained field of a site of a kind.
    edges : dict
        For each field of the declaration, its place at the hearer, and that of the field through which the answers
        come back at the sender.
    places : dict
        The kind of a name, and the places of the fields that it is of; None for a given emission.
    same : dict
        The order parameters by the names that are new; zero for what vanishes.
    silent : dict
        What vanishes: by its name a kind, the places of two fields, and a factor of each site.
    back : dict
        Self-couplings that vanish: by a kind, and the places of the fields that come back and that are shifted.
    """

    sites: dict[Kind, Site]
    partners: dict[tuple[Kind, RandomField], Place]
    edges: dict[Symbol, tuple[int | None, int | None]]
    places: dict[Symbol, tuple[Kind, int | None, int | None]] = field(default_factory=dict)
    same: dict[Symbol, Expr] = field(default_factory=dict)
    silent: dict[Symbol, tuple[Kind, tuple[int, int], Expr]] = field(default_factory=dict)
    back: dict[tuple[Kind, int, int], Expr] = field(default_factory=dict)

    @property
    def correlated(self) -> bool:
        """Whether a site hears several trained fields of the same couplings."""
        trained = ((site, [h.eta for h in site.heard if h.declared.states()]) for site in self.sites.values())
        return any(site.covariance[a, b] != 0 for site, etas in trained for a, b in combinations(etas, 2))

    def partner(self, h: Heard) -> Place:
        """Which field of its sender tells what stands in a field; None where it is given."""
        return self.partners.get((h.declared.hearer, h.declared), (h.declared.sender, None))

    def overlap(self, expr: Expr, weight: Expr, kind: Kind, one: int, other: int) -> Expr:
        """The overlap of two answers of a kind, with a factor of each site, by its name for two fields."""
        silent = (kind, (min(one, other), max(one, other)), weight)
        names = (s for s, held in self.silent.items() if held == silent and not self.is_back(s))
        return next(names, self.named(expr, kind, one, other))

    def is_back(self, symbol: Symbol) -> bool:
        """Whether a name is that of a self-coupling that vanishes."""
        return any(symbol in back.free_symbols for back in self.back.values())

    def named(self, expr: Expr, kind: Kind, one: int | None, other: int | None) -> Expr:
        """Order parameters of answers of a kind by their names for two fields."""
        first, second = sorted((one, other), key=lambda k: (k is None, k))
        known = {self.same.get(s, s): s for s, place in self.places.items() if place == (kind, first, second)}
        return expr.xreplace(known)


def told_apart(theory: Theory) -> ToldApart:
    """Return the sites of a theory with a name for each pair of fields that answers belong to.

    Raises
    ------
    UnsupportedLaw
        As :func:`symcavity.method.objective_fields.matching`.
    """
    out = ToldApart(dict(theory.inserted), *_partners(theory))
    alike = {kind for kind, site in theory.inserted.items() if _answers_alike(theory, site)}
    taken = {*map(str, theory.order_parameters), *map(str, theory.system.parameters)}

    def name(expr: Expr, kind: Kind, one: int | None, other: int | None) -> Expr:
        if kind not in alike:
            return expr
        first, second = sorted((one, other), key=lambda k: (k is None, k))
        for s in sorted(expr.free_symbols & set(theory.order_parameters), key=str):
            named = out.named(s, kind, first, second)
            if named == s and s in out.places and out.places[s] != (kind, first, second):
                named = OrderParameter(fresh_name(taken, f"{s}_2"))
                out.same[named] = s
            out.places.setdefault(named, (kind, first, second))
        return out.named(expr, kind, first, second)

    for kind, site in theory.inserted.items():
        covariance = dict(site.covariance)
        for h in site.heard:
            for g in site.heard:
                if h.declared.sender == g.declared.sender:
                    (sender, one), (_, other) = out.partner(h), out.partner(g)
                    covariance[h.eta, g.eta] = name(site.covariance[h.eta, g.eta], sender, one, other)
        means = dict(site.means)
        for h in site.heard:
            sender, one = out.partner(h)
            for f in h.feedback:
                means[f.symbol] = name(means[f.symbol], sender, one, _index(theory.inserted[sender], f.through))
        out.sites[kind] = replace(site, covariance=covariance, means=means)
        _name_silent(out, out.sites[kind], covariance, taken)
    return out


def _name_silent(out: ToldApart, site: Site, covariance: dict[Any, Expr], taken: set[str]) -> None:
    """Name what vanishes of trained fields of a site that sum the same couplings."""
    trained = [h for h in site.heard if h.declared.states()]
    for (a, h), (c, g) in combinations(enumerate(trained), 2):
        (sender, one), (other_sender, other) = out.partner(h), out.partner(g)
        factors = list(_factors(h.declared, g.declared)) if sender == other_sender else []
        if not factors or one is None or other is None:
            continue
        place = (min(one, other), max(one, other))

        def named(letter: str, sender: Kind = sender, place: tuple[int, int] = place, factors: Any = factors) -> Expr:
            total = S.Zero
            for factor, at_sender in factors:
                held = (sender, place, at_sender)
                symbol = OrderParameter(fresh_name(taken, f"{letter}_{sender.key}_{place[0]}{place[1]}"))
                out.same[symbol], out.silent[symbol] = S.Zero, held
                total += factor * symbol
            return total

        if covariance[h.eta, g.eta] == 0:
            covariance[h.eta, g.eta] = covariance[g.eta, h.eta] = named("q")
        shifted = {f.through for f in h.feedback if site.means[f.symbol] != 0}
        if not any(_index(out.sites[sender], f) == other for f in shifted):
            out.back[site.kind, a, c] = out.back[site.kind, c, a] = named("S")


def _factors(f: RandomField, g: RandomField) -> Iterator[tuple[Expr, Expr]]:
    """The covariance of two fields in terms: a factor of the hearer, all senders counted, and one of the sender."""
    covariance = coupling_covariance(f.coupling, g.coupling).replace(KroneckerDelta, lambda *_: S.One)
    for term in Add.make_args(expand_mul(covariance)) if covariance != 0 else ():
        at_sender, at_hearer, rest = split_by_ends(term, f.hearer, f.sender)
        yield in_units_of_n((rest * f.sender.size).cancel()) * at_hearer, at_sender


def _index(site: Site, declared: RandomField) -> int | None:
    """The place of a trained field of a site."""
    trained = [h.declared for h in site.heard if h.declared.states()]
    return trained.index(declared) if declared in trained else None


def _partners(theory: Theory) -> tuple[dict[tuple[Kind, RandomField], Place], dict[Symbol, tuple[Any, Any]]]:
    record, own, sites = theory.system.record, theory.system.own, theory.inserted
    partners: dict[tuple[Kind, RandomField], Place] = {}
    edges: dict[Symbol, tuple[Any, Any]] = {}
    for f in record.fields:
        message = own(record.messages[f.symbol])
        if message == 0:
            continue
        h, _ = matching(sites[f.hearer], f, f.sender, own(f.emission))
        g, _ = matching(sites[f.sender], f, f.hearer, message)
        at_hearer, at_sender = _index(sites[f.hearer], h.declared), _index(sites[f.sender], g.declared)
        edges[f.symbol] = at_hearer, at_sender
        partners[f.hearer, h.declared] = f.sender, at_sender
        partners[f.sender, g.declared] = f.hearer, at_hearer
    return partners, edges


def _answers_alike(theory: Theory, site: Site) -> bool:
    """Whether a site answers with multiples of one number to several fields."""
    psi = [answer for answer in answers(theory, site).values() if answer != 0]
    return any(multiple(a, b) is not None for a, b in combinations(psi, 2))


def multiple(body: Expr, of: Expr) -> Expr | None:
    """By what an expression is a multiple of another one, a number or a quenched parameter; None if it is not one."""
    if of == 0:
        return None
    ratio = cancel(body / of)
    states = [q for q in site_quantities(ratio) if not isinstance(q.family, Quenched)]
    return None if states or ratio.has(SiteResponse) else ratio
