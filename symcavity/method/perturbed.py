"""The effect of a small term in the objective of a convex problem, from which fluctuations of observables follow.

The minimum with ``p*sum o`` added has the derivative ``sum o`` in ``p``, so that the covariance of two observables
between instances is the mixed derivative of the covariance of two minima, ``V`` of
:mod:`symcavity.method.fluctuations`.  A site with the cavity fields ``eta_a`` adds the minimum ``M(eta)``, with
``dM/deta_a = -psi_a`` (what the site answers) and ``dM/dF_ab = -psi_a psi_b/2`` (its self-couplings).  To first order
``p`` adds to it

    G = o - sum dF_ab psi_a psi_b/2 - sum dC_ab (dpsi_a/deta_b)/2,

for self-couplings and covariances of fields that move; a variance that grows by ``dC`` acts as heat does.  What moves
is closed by the same averages.  At given overlaps ``y`` of two copies

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
from itertools import product

from sympy import Add, Derivative, Dummy, Expr, Matrix, S, Symbol, cancel

from symcavity.algebra.implicit import ImplicitAverage
from symcavity.method.answered import (
    Answered,
    along,
    answered_fields,
    given_fields,
    in_averages,
    not_derived,
    tilts,
)
from symcavity.method.average import message_response
from symcavity.method.close import averaged_over
from symcavity.method.crossed import Crossed, crossed
from symcavity.method.fluctuations import check_minimum
from symcavity.method.given_emissions import curvatures
from symcavity.method.lagrangian import slopes_in_shared
from symcavity.method.observed_sums import in_states
from symcavity.method.theory import Theory
from symcavity.method.told_apart import ToldApart, multiple, told_apart
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.quantities import Global, site_quantities
from symcavity.sites.site import Site


@dataclass(frozen=True)
class Overlap:
    """An order parameter, as the mean product of two answers, times a factor.

    Attributes
    ----------
    symbol : OrderParameter
    kind : Kind
    fields : tuple of int
        The places of their fields.
    factor : Expr
    """

    symbol: Symbol
    kind: Kind
    fields: tuple[int, int]
    factor: Expr


@dataclass(frozen=True)
class Weighed:
    """A number that is linear in the minimum of a site: a response, or an overlap with a given emission.

    Attributes
    ----------
    symbol : Symbol
    kind : Kind
    weights : tuple of Expr
        Where a function is added to the minimum, the number grows by its average with each of them.
    also : Expr
        What it holds of other numbers that move.
    """

    symbol: Symbol
    kind: Kind
    weights: tuple[Expr, ...]
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
    copies : Crossed
        Two copies at given overlaps.
    shared : dict
        The slopes of the minima of single sites in each variable that all sites share, by their kind.
    same : dict
        The order parameters, where a name is of one of several fields that are answered alike.
    averaged : callable
        A function of the states of a site, averaged, in order parameters and variables that all sites share.
    """

    sites: dict[Kind, tuple[Answered, ...]]
    shares: dict[Kind, Expr]
    moved: tuple[Overlap | Weighed, ...]
    bends: dict[Symbol, tuple[Kind, Expr]]
    copies: Crossed
    shared: dict[Global, dict[Kind, Expr]]
    same: dict[Symbol, Expr]
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
            raise not_derived(f"{variable}, in which the average of {body!s:.80} has no derivative in formulas")
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
            terms += [c.diff(symbol) * slope for c, slope in zip(a.covariance, a.slopes, strict=True)]
            terms += [e.diff(symbol) * a.psi * b.psi for e, b in zip(a.back, fields, strict=True)]
            terms.append(2 * a.mean.diff(symbol) * a.psi)
        return (-Add(*terms) / 2).xreplace(self.same)


def perturbed(theory: Theory) -> Perturbed:
    """Read off what a small term in the objective moves.

    Raises
    ------
    UnsupportedLaw
        As :func:`symcavity.method.fluctuations.single_site_minima`; for fields of a site that are combinations of
        others, given emissions beside several trained fields of the same couplings or answers, and fields whose
        variance holds a variable that all sites share.
    """
    check_minimum(theory)
    apart = told_apart(theory)
    if (apart.same or apart.correlated) and any(given_fields(site) for site in apart.sites.values()):
        raise not_derived("fields of given emissions, beside several trained fields of the same couplings or answers")
    sites = {kind: answered_fields(theory, apart, kind) for kind in apart.sites}
    names = {**{s: s for s in theory.order_parameters}, **apart.same}
    moved = [_moved(theory, apart, sites, symbol, theory.order_parameters[s]) for symbol, s in names.items() if s != 0]
    moved += [_silent(sites, symbol, apart) for symbol in apart.silent]
    bends = _bends(theory)
    moved += bends
    shares = {kind: in_units_of_n(kind.size / N) for kind in sites}
    copies = crossed(theory, apart, {m.symbol: (m.kind, m.fields) for m in moved if isinstance(m, Overlap)})
    held = [e for fields in sites.values() for a in fields for e in (*a.covariance, *a.back)]
    for variable in theory.system.globals:
        if any(e.has(variable) for e in [*held, copies.overlaps, *(m.factor for m in moved if isinstance(m, Overlap))]):
            raise not_derived(f"{variable}, which stands in what sites send")
    slopes = slopes_in_shared(theory.system)
    idle = {e.lhs for e in theory.global_equations}  # a multiplier that is zero stays so
    return Perturbed(
        sites,
        shares,
        tuple(moved),
        {m.symbol: where for m, where in bends.items()},
        copies,
        {g: parts for g, parts in slopes.items() if g not in idle},
        apart.same,
        lambda body: averaged_over(theory.inserted, Average(body)),
    )


def _moved(
    theory: Theory, apart: ToldApart, sites: Mapping[Kind, tuple[Answered, ...]], symbol: Symbol, meaning: Expr
) -> Overlap | Weighed:
    """An order parameter as the average of answers of a site, or of a slope."""
    factor, node = in_averages(meaning).as_independent(Average, as_Add=False)
    body = factor * node.args[0] if isinstance(node, Average) else node
    where = apart.places.get(symbol)
    for kind, fields in sites.items() if isinstance(node, Average) else ():
        first, second = ([*range(len(fields))], [*range(len(fields))])
        if where is not None:
            if where[0] != kind:
                continue
            first, second = ([k] if k is not None else [] for k in where[1:])
        for k in first:
            if body.has(SiteResponse):
                if found := _response(theory, apart.sites[kind], symbol, body, k, second, fields):
                    return found
                continue
            sent = multiple(body, fields[k].psi)
            if sent is not None and site_quantities(sent):
                return Weighed(symbol, kind, tuple(-sent * t for t in tilts(fields, k)))
            for m in second:
                ratio = multiple(body, fields[k].psi * fields[m].psi)
                if ratio is not None:
                    return Overlap(symbol, kind, (k, m), ratio)
    raise not_derived(f"{symbol} = {meaning}, which is no overlap and no response of what sites send")


def _silent(sites: Mapping[Kind, tuple[Answered, ...]], symbol: Symbol, apart: ToldApart) -> Overlap | Weighed:
    """What vanishes, as the overlap of two answers or as the slope of one in the field of the other."""
    kind, (k, m), weight = apart.silent[symbol]
    if not apart.is_back(symbol):
        return Overlap(symbol, kind, (k, m), weight)
    return Weighed(symbol, kind, _curved(sites[kind], k, m, weight))


def _curved(fields: tuple[Answered, ...], k: int, m: int, factor: Expr) -> tuple[Expr, ...]:
    """The weights of minus the mean second derivative by two fields."""
    bent = [*(-one * other for one, other in product(tilts(fields, k), tilts(fields, m))), fields[k].inverse[m]]
    return tuple(factor * term for term in bent if term != 0)


def _response(
    theory: Theory, site: Site, symbol: Symbol, body: Expr, k: int, second: list[int], fields: tuple[Answered, ...]
) -> Weighed | None:
    """An order parameter as a slope of an answer, in a field of the site or in one of given emissions."""
    a, kind = fields[k], site.kind
    for m in second:
        if (ratio := multiple(body, a.slopes[m])) is not None:
            return Weighed(symbol, kind, _curved(fields, k, m, ratio))
    given, heard = given_fields(site), [h for h in site.heard if h.declared.states()]
    for g in given:
        slope = g.factor * message_response(theory.system, a.psi, g.declared)
        ratio = multiple(body, slope)
        if ratio is not None:
            gram = Matrix([[site.covariance[f.eta, e.eta] for e in given] for f in given]).inv()
            row = given.index(g)
            at = Add(*(gram[row, n] * in_states(theory.system, f.declared.as_sum) for n, f in enumerate(given)))
            known = {meaning: s for s, meaning in theory.order_parameters.items()}
            steps = [along(site, h)[row] * Average(s).xreplace(known) for h, s in zip(heard, a.slopes, strict=True)]
            return Weighed(symbol, kind, tuple(-ratio * at * t for t in tilts(fields, k)), -ratio * Add(*steps))
    return None


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
        weight = linear.diff(place) * in_states(theory.system, cancel(node.body / mark))
        out[Weighed(Symbol(f"K_{k}"), c.hearer, (weight,), linear.xreplace({place: S.Zero}))] = c.sender, c.emissions
    return out
