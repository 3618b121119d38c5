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

A field ``u`` of given emissions, such as a teacher's, is the same in both copies.  At given ``u`` a trained field has a
mean, its regression on ``u``, which moves with the overlap of both emissions, and the variance that is left; overlaps
of the copies are taken at given ``u``.  The curvature in ``u`` that a given emission feels moves too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sympy import Add, Derivative, Dummy, Expr, Matrix, S, Symbol, cancel

from symcavity.algebra.implicit import ImplicitAverage
from symcavity.errors import UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.close import averaged_over
from symcavity.method.fluctuations import check_minimum, shared_overlaps
from symcavity.method.given_emissions import curvatures
from symcavity.method.heard import without_fields
from symcavity.method.lagrangian import slopes_in_shared
from symcavity.method.matched import answers
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import Global, Quenched, SiteQuantity, site_quantities
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


@dataclass(frozen=True)
class Answered:
    """A field of a site, and what the site answers to it.

    Attributes
    ----------
    eta : Expr
        The cavity field, in the states of the site, less its mean at given other fields.
    mean : Expr
        That mean: the regression on the fields of given emissions.
    psi : Expr
        What the site answers: minus the derivative of its minimum by the field.
    slopes : tuple of Expr
        The derivatives of ``psi`` by each field of the site.
    variance : Expr
        Of the cavity field at given others, in order parameters.
    back : tuple of Expr
        What the answers to each field add to this one: self-couplings, in order parameters.
    """

    eta: Expr
    mean: Expr
    psi: Expr
    slopes: tuple[Expr, ...]
    variance: Expr
    back: tuple[Expr, ...]


@dataclass(frozen=True)
class Overlap:
    """An order parameter, as the mean square of an answer, times a factor.

    Attributes
    ----------
    symbol : OrderParameter
    kind : Kind
    field : int
        The place of the field.
    factor : Expr
    """

    symbol: Symbol
    kind: Kind
    field: int
    factor: Expr


@dataclass(frozen=True)
class Weighed:
    """A number that is linear in the minimum of a site: a response, or an overlap with a given emission.

    Attributes
    ----------
    symbol : Symbol
    kind : Kind
    weight : Expr
        Where a function is added to the minimum, the number grows by the average of both.
    also : Expr
        What it holds of other numbers that move.
    """

    symbol: Symbol
    kind: Kind
    weight: Expr
    also: Expr = S.Zero


@dataclass(frozen=True)
class Perturbed:
    """What a small term in the objective moves.

    Attributes
    ----------
    sites : dict
        The fields of a site of each kind.
    shares : dict
        The number of sites of each kind, over N.
    moved : tuple of Overlap and Weighed
    bends : dict
        Products of given emissions, with the kind of their sites, by the names of the curvatures that they feel.
    overlaps : Expr
        The sum over couplings of the overlaps of emissions and messages, in order parameters.
    shared : dict
        The slopes of the minima of single sites in each variable that all sites share, by their kind.
    averaged : callable
        A function of the states of a site, averaged, in order parameters and variables that all sites share.
    """

    sites: dict[Kind, tuple[Answered, ...]]
    shares: dict[Kind, Expr]
    moved: tuple[Overlap | Weighed, ...]
    bends: dict[Symbol, tuple[Kind, Expr]]
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
        if symbol in self.bends:
            sender, emissions = self.bends[symbol]
            return emissions / 2 if sender == kind else S.Zero
        fields = self.sites[kind]
        terms = []
        for a in fields:
            terms.append(a.variance.diff(symbol) * a.slopes[fields.index(a)] + 2 * a.mean.diff(symbol) * a.psi)
            terms += [e.diff(symbol) * a.psi * b.psi for e, b in zip(a.back, fields, strict=True)]
        return -Add(*terms) / 2


def perturbed(theory: Theory) -> Perturbed:
    """Read off what a small term in the objective moves.

    Raises
    ------
    UnsupportedLaw
        As :func:`symcavity.method.fluctuations.single_site_minima`; for several fields of a site that are correlated,
        couplings whose variance differs from site to site, and fields whose variance holds a
        variable that all sites share.
    """
    check_minimum(theory)
    sites = {kind: _fields(theory, site) for kind, site in theory.inserted.items()}
    moved = [_moved(theory, sites, symbol, meaning) for symbol, meaning in theory.order_parameters.items()]
    bends = _bends(theory)
    moved += bends
    shares = {kind: in_units_of_n(kind.size / N) for kind in sites}
    overlaps = theory.observable(shared_overlaps(theory))
    held = [e for fields in sites.values() for a in fields for e in (a.variance, *a.back)]
    for variable in theory.system.globals:
        if any(e.has(variable) for e in [*held, overlaps, *(m.factor for m in moved if isinstance(m, Overlap))]):
            raise _refused(f"{variable}, which stands in what sites send")
    slopes = slopes_in_shared(theory.system)
    idle = {e.lhs for e in theory.global_equations}  # a multiplier that is zero stays so
    shared = {g: parts for g, parts in slopes.items() if g not in idle}
    return Perturbed(
        sites,
        shares,
        tuple(moved),
        {m.symbol: where for m, where in bends.items()},
        overlaps,
        shared,
        lambda body: averaged_over(theory.inserted, Average(body)),
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
        alike = list(zip(_along(site, h), _given(site), strict=True))
        lost = [Add(*(c * site.covariance[g.eta, f.eta] for c, f in alike)) for g in heard]
        joint = [site.covariance[h.eta, g.eta] - part for g, part in zip(heard, lost, strict=True)]
        if any(joint[k] != 0 for k, g in enumerate(heard) if g is not h):
            raise _refused(f"{site.kind.sites}, which hear fields that are correlated")
        ahead = Add(*(factor * in_states(theory, f.declared.as_sum) for factor, f in alike))
        back = tuple(_back(site, h, answered[g.declared]) for g in heard)
        eta = in_states(theory, h.declared.as_sum) - _fed_back(site, h) - ahead
        echoes = Add(*(site.means[k.symbol] * k.emission for k in h.feedback if not k.through.states()))
        psi = answered[h.declared]
        slopes = tuple(g.factor * message_response(theory.system, psi, g.declared) for g in heard)
        out.append(Answered(eta, ahead + echoes, psi, slopes, joint[heard.index(h)], back))
    return tuple(out)


def _given(site: Site) -> list[Heard]:
    """The fields of given emissions, such as a teacher's, that a site hears."""
    return [g for g in site.heard if not g.declared.states()]


def _along(site: Site, h: Heard) -> list[Expr]:
    """The regression of a cavity field on each field of given emissions."""
    given = _given(site)
    if not given:
        return []
    gram = Matrix([[site.covariance[f.eta, g.eta] for g in given] for f in given])
    if gram.det() == 0:
        raise _refused(f"{given[0].declared.as_sum}, a multiple of other fields")
    return list(Matrix([[site.covariance[h.eta, g.eta] for g in given]]) * gram.inv())


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


def _moved(
    theory: Theory, sites: Mapping[Kind, tuple[Answered, ...]], symbol: OrderParameter, meaning: Expr
) -> Overlap | Weighed:
    """An order parameter as the average of answers of a site, or of a slope."""
    body = meaning.args[0]
    for kind, fields in sites.items() if isinstance(meaning, Average) else ():
        for k, a in enumerate(fields):
            if body.has(SiteResponse):
                if found := _response(theory, symbol, body, kind, k, fields):
                    return found
                continue
            sent = cancel(body / a.psi) if a.psi != 0 else body
            if all(isinstance(q.family, Quenched) for q in site_quantities(sent)) and site_quantities(sent):
                return Weighed(symbol, kind, -sent * a.eta / a.variance)
            for m, b in enumerate(fields):
                ratio = _multiple(body, a.psi * b.psi)
                if ratio is not None:
                    if k != m:
                        raise _refused(f"{symbol}, an overlap of two answers")
                    return Overlap(symbol, kind, k, ratio)
    raise _refused(f"{symbol} = {meaning}, which is no overlap and no response of what sites send")


def _response(
    theory: Theory, symbol: OrderParameter, body: Expr, kind: Kind, k: int, fields: tuple[Answered, ...]
) -> Weighed | None:
    """An order parameter as a slope of an answer, in a field of the site or in one of given emissions."""
    a, site = fields[k], theory.inserted[kind]
    for m, b in enumerate(fields):
        if (ratio := _multiple(body, a.slopes[m])) is not None:
            moment = a.eta * b.eta / (a.variance * b.variance) - (1 / a.variance if k == m else 0)
            return Weighed(symbol, kind, -ratio * moment)
    given, heard = _given(site), [h for h in site.heard if h.declared.states()]
    for g in given:
        slope = g.factor * message_response(theory.system, a.psi, g.declared)
        ratio = _multiple(body, slope)
        if ratio is not None:
            gram = Matrix([[site.covariance[f.eta, e.eta] for e in given] for f in given]).inv()
            row = given.index(g)
            at = Add(*(gram[row, n] * in_states(theory, f.declared.as_sum) for n, f in enumerate(given)))
            known = {meaning: s for s, meaning in theory.order_parameters.items()}
            also = Add(*(_along(site, h)[row] * Average(a.slopes[m]).xreplace(known) for m, h in enumerate(heard)))
            return Weighed(symbol, kind, -ratio * at * a.eta / a.variance, -ratio * also)
    return None


def _multiple(body: Expr, of: Expr) -> Expr | None:
    """By which number an expression is a multiple of another one; None where it is none."""
    ratio = cancel(body / of) if of != 0 else body
    return None if ratio.has(SiteQuantity, SiteResponse) else ratio


def _bends(theory: Theory) -> dict[Weighed, tuple[Kind, Expr]]:
    """The curvatures that given emissions feel, with the kind and the product of these."""
    marks = {kind: Dummy("M", real=True) for kind in theory.inserted}
    known = {meaning: symbol for symbol, meaning in theory.order_parameters.items()}
    out = {}
    for k, c in enumerate(curvatures(theory, marks)):
        mark = marks[c.hearer]
        value = c.value.xreplace(known)
        (node,) = (n for n in value.atoms(Average) if n.has(mark))
        place = Dummy("m")
        linear = value.xreplace({node: place})
        weight = linear.diff(place) * in_states(theory, cancel(node.body / mark))
        out[Weighed(Symbol(f"K_{k}"), c.hearer, weight, linear.xreplace({place: S.Zero}))] = c.sender, c.emissions
    return out


def _refused(found: str) -> UnsupportedLaw:
    return UnsupportedLaw(
        f"The variance of observables is not derived with {found}.",
        "convex problems of scalar fields, each independent with an answer of its own",
        "solution.variance('objective'), or the scatter of instances",
    )
