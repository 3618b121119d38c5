"""A small term in the objective of a convex problem, and what it moves: the fluctuations of observables.

The minimum with ``p*sum o`` added has the derivative ``sum o`` in ``p``, so that the covariance of two observables
between instances is the mixed derivative of the covariance of two minima, ``V`` of
:mod:`symcavity.method.fluctuations`.  A site with the cavity fields ``eta_a`` adds the minimum ``M(eta)``, with
``dM/deta_a = -psi_a`` (what the site answers) and ``dM/dF_ab = -psi_a psi_b/2`` (its self-couplings).  To first order
``p`` adds to it

    G = o - sum dF_ab psi_a psi_b/2 - sum dC_a (dpsi_a/deta_a)/2,

for self-couplings and variances of fields that move; a variance that grows by ``dC`` acts as heat does.  What moves is
closed by the same averages.  At given overlaps ``y`` of two copies

    N Cov(o_1, o_2) = sum of N_k/N Cov(G_1, G_2) - a_1 H^-1 a_2,

with the second derivatives ``H`` of ``V`` by ``y``, and ``a`` its mixed derivatives by ``y`` and ``p``.  Derivatives
of ``G`` are taken off by parts over the Gaussian fields, so that observables and laws may jump.

A variable ``g`` that all sites share is stationary as the overlaps are, and moves with ``p`` as they do: it adds
``dM/dg dg`` to ``G``.  Its condition, that ``sum <dM/dg>`` vanishes, is one more linear equation, in which the average
of a function ``G`` changes by ``d<G>/dg``.  ``p*N*g`` makes ``g`` itself an observable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sympy import Add, Derivative, Expr, S, Symbol, cancel

from symcavity.algebra.implicit import ImplicitAverage
from symcavity.errors import UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.close import averaged_over
from symcavity.method.fluctuations import check_minimum, shared_overlaps
from symcavity.method.heard import without_fields
from symcavity.method.lagrangian import slopes_in_shared
from symcavity.method.matched import answers
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import Global, SiteQuantity, site_quantities
from symcavity.record.symbols import OrderParameter
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


@dataclass(frozen=True)
class Answered:
    """A field of a site, and what the site answers to it.

    Attributes
    ----------
    eta : Expr
        The cavity field, in the states of the site.
    psi : Expr
        What the site answers: minus the derivative of its minimum by the field.
    slopes : tuple of Expr
        The derivatives of ``psi`` by each field of the site.
    variance : Expr
        Of the cavity field, in order parameters.
    back : tuple of Expr
        What the answers to each field add to this one: self-couplings, in order parameters.
    """

    eta: Expr
    psi: Expr
    slopes: tuple[Expr, ...]
    variance: Expr
    back: tuple[Expr, ...]


@dataclass(frozen=True)
class PairAverage:
    """An order parameter, as the average of two answers, or of a slope, times a factor.

    Attributes
    ----------
    symbol : OrderParameter
    kind : Kind
    fields : tuple of int
        The places of the two fields.
    factor : Expr
    is_response : bool
    """

    symbol: OrderParameter
    kind: Kind
    fields: tuple[int, int]
    factor: Expr
    is_response: bool


@dataclass(frozen=True)
class Perturbed:
    """What a small term in the objective moves.

    Attributes
    ----------
    sites : dict
        The fields of a site of each kind.
    shares : dict
        The number of sites of each kind, over N.
    moved : tuple of Moved
    overlaps : Expr
        The sum over couplings of the overlaps of emissions and messages, in order parameters.
    shared : dict
        The slopes of the minima of single sites in each variable that all sites share, by their kind.
    averaged : callable
        A function of the states of a site, averaged, in order parameters and variables that all sites share.
    """

    sites: dict[Kind, tuple[Answered, ...]]
    shares: dict[Kind, Expr]
    moved: tuple[PairAverage, ...]
    overlaps: Expr
    shared: dict[Global, dict[Kind, Expr]]
    averaged: Callable[[Expr], Expr]

    @property
    def unknowns(self) -> list[Symbol]:
        """What moves: order parameters, then the variables that all sites share."""
        return [*(m.symbol for m in self.moved), *self.shared]

    def slope(self, body: Expr, variable: Global) -> Expr:
        """The derivative of the average of a function of a site in a variable that all sites share.

        Raises
        ------
        UnsupportedLaw
            If the average has none in formulas.
        """
        mean = self.averaged(body)
        out = mean.diff(variable)
        if out.has(Derivative) or any(a.has_events for a in mean.atoms(ImplicitAverage)):
            raise _refused(f"{variable}, in which the average of {body!s:.80} has no derivative in formulas")
        return out

    def moves(self, kind: Kind, symbol: Symbol) -> Expr:
        """What a unit change of an order parameter, or of a shared variable, adds to the minimum of a site."""
        if symbol in self.shared:
            return self.shared[symbol].get(kind, S.Zero)
        fields = self.sites[kind]
        terms = []
        for a in fields:
            terms.append(a.variance.diff(symbol) * a.slopes[fields.index(a)])
            terms += [e.diff(symbol) * a.psi * b.psi for e, b in zip(a.back, fields, strict=True)]
        return -Add(*terms) / 2


def perturbed(theory: Theory) -> Perturbed:
    """Read off what a small term in the objective moves.

    Raises
    ------
    UnsupportedLaw
        As :func:`symcavity.method.fluctuations.single_site_minima`; for fields of given emissions, several fields of a
        site that are correlated, couplings whose variance differs from site to site, and fields whose variance holds a
        variable that all sites share.
    """
    check_minimum(theory)
    if given := [f for f in theory.system.fields if not f.states()]:
        raise _refused(f"{given[0].as_sum}, a field without states")
    sites = {kind: _fields(theory, site) for kind, site in theory.inserted.items()}
    moved = tuple(_moved(sites, symbol, meaning) for symbol, meaning in theory.order_parameters.items())
    shares = {kind: in_units_of_n(kind.size / N) for kind in sites}
    overlaps = theory.observable(shared_overlaps(theory))
    held = [e for fields in sites.values() for a in fields for e in (a.variance, *a.back)]
    for variable in theory.system.globals:
        if any(e.has(variable) for e in [*held, overlaps, *(m.factor for m in moved)]):
            raise _refused(f"{variable}, which stands in what sites send")
    slopes = slopes_in_shared(theory.system)
    idle = {e.lhs for e in theory.global_equations}  # a multiplier that is zero stays so
    shared = {g: parts for g, parts in slopes.items() if g not in idle}
    return Perturbed(
        sites, shares, moved, overlaps, shared, lambda body: averaged_over(theory.inserted, Average(body))
    )


def _fields(theory: Theory, site: Site) -> tuple[Answered, ...]:
    heard = [h for h in site.heard if h.declared.states()]
    answered = answers(theory, site)
    for h, g in combinations(heard, 2):
        if answered[g.declared] == 0 or not site_quantities(cancel(answered[h.declared] / answered[g.declared])):
            raise _refused(f"{site.kind.sites}, which answer alike to several fields")
    out = []
    for h in heard:
        variance = site.covariance[h.eta, h.eta]
        if variance.has(SiteQuantity):
            raise _refused(f"{h.declared.coupling.family}, whose variance differs from site to site")
        if any(site.covariance[h.eta, g.eta] != 0 for g in heard if g is not h):
            raise _refused(f"{site.kind.sites}, which hear fields that are correlated")
        psi = answered[h.declared]
        slopes = tuple(g.factor * message_response(theory.system, psi, g.declared) for g in heard)
        back = tuple(_back(site, h, answered[g.declared]) for g in heard)
        out.append(Answered(in_states(theory, h.declared.as_sum) - _fed_back(site, h), psi, slopes, variance, back))
    return tuple(out)


def as_averages(theory: Theory, key: Any) -> Expr:
    """An observable as it is made of averages: order parameters and the names of a declaration written out."""
    return theory.in_words(key).xreplace(dict(theory.order_parameters))


def in_states(theory: Theory, body: Expr) -> Expr:
    """An expression of one site in its states, without sums over other sites."""
    own = theory.system.own(theory.system.rewritten.observable(Average(body)))
    found = without_fields(theory.system, own)
    return found.args[0] if isinstance(found, Average) else found  # a sum that the law holds at a number


def _fed_back(site: Site, h: Heard) -> Expr:
    return Add(*(site.means[k.symbol] * k.emission for k in h.feedback))


def _back(site: Site, h: Heard, psi: Expr) -> Expr:
    """The self-coupling of an answer in a field."""
    found = S.Zero
    for k in h.feedback:
        ratio = cancel(k.emission / psi) if psi != 0 else k.emission
        if not site_quantities(ratio):
            found += site.means[k.symbol] * ratio
    return found


def _moved(sites: Mapping[Kind, tuple[Answered, ...]], symbol: OrderParameter, meaning: Expr) -> PairAverage:
    """An order parameter as the average of two answers of a site, or of a slope."""
    body = meaning.args[0]
    answers = bool(body.has(SiteResponse))
    for kind, fields in sites.items():
        for k, a in enumerate(fields):
            for m, b in enumerate(fields):
                candidate = a.slopes[m] if answers else a.psi * b.psi
                ratio = cancel(body / candidate) if candidate != 0 else body
                if isinstance(meaning, Average) and not ratio.has(SiteQuantity, SiteResponse):
                    if k != m and not answers:
                        raise _refused(f"{symbol}, an overlap of two answers")
                    return PairAverage(symbol, kind, (k, m), ratio, answers)
    raise _refused(f"{symbol} = {meaning}, which is no overlap and no response of what sites send")


def _refused(found: str) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The variance of observables is not derived with {found}.",
        "convex problems of scalar fields, each independent with an answer of its own",
        "solution.variance('objective'), or the scatter of instances",
    )
