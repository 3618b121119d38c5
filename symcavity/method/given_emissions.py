"""The contributions of given emissions, such as a teacher's weights, to the minima of the sites that send them.

A site of given emission ``t`` shifts the field ``u`` of each neighbor by ``coupling*t``.  To first order that is a
Gaussian number, whose square and whose overlap with ``t`` times the messages leave the variance of the minimum as what
the same edges take away.  To second order it is ``K t**2/2``, with the curvature of the neighbors' minima in ``u`` at
given other fields, summed over all neighbors.  Where the norm of ``t`` scatters between instances, so does this term.

Labels may jump with ``u``, and so does the minimum ``M(u, eta)`` of a site then.  Its curvature is taken by parts over
the Gaussian fields, along a direction in which all that is heard moves with ``u`` as its regression on it:

    <d_f d_g M> = <M (Q^-1 u u' Q^-1 - Q^-1)_fg> + sum over trained fields of (regressions)(responses of messages),

for the covariance ``Q`` of the fields of given emissions.  For one teacher, with ``m`` the regression of ``eta`` on
``u``: ``K = N_d/N <M (u**2 - Q)>/Q**2 + 2 m F_wt + m**2 F_ww``, with the self-couplings of a feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from sympy import Add, Expr, KroneckerDelta, Matrix, Mul, S, expand_mul
from sympy.matrices.exceptions import NonInvertibleMatrixError

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import coupling_covariance, message_response
from symcavity.method.objective_fields import answers
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind, in_units_of_n
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


@dataclass(frozen=True)
class Curvature:
    """The mean curvature of the minima of all neighbors in two fields of given emissions.

    Attributes
    ----------
    sender : Kind
        The kind of the given emissions.
    hearer : Kind
    emissions : Expr
        The product of the two emissions at a site, with the site's own factor of the couplings' covariance.
    value : Expr
        The curvature, of averages over single sites.
    """

    sender: Kind
    hearer: Kind
    emissions: Expr
    value: Expr


def curvatures(theory: Any, minima: Mapping[Kind, Expr]) -> list[Curvature]:
    """The curvatures that given emissions feel, by the minima of single sites, or by names of these.

    Raises
    ------
    UnsupportedLaw
        For fields of given emissions that are multiples of each other.
    """
    out: list[Curvature] = []
    for kind, site in theory.inserted.items():
        given = [h for h in site.heard if not h.declared.states()]
        for sender in dict.fromkeys(h.declared.sender for h in given):
            alike = [h for h in given if h.declared.sender == sender]
            if minima.get(kind, S.Zero) != 0:
                out += _between(theory, site, alike, minima[kind])
    return out


def _between(theory: Any, site: Site, given: list[Heard], minimum: Expr) -> list[Curvature]:
    """The curvatures in the fields that a site hears of given emissions of one kind."""
    covariance = Matrix([[site.covariance[h.eta, g.eta] for g in given] for h in given])
    try:
        inverse = covariance.inv()
    except NonInvertibleMatrixError:
        raise UnsupportedLaw(
            f"The variance of the minimum is not derived for {given[0].declared.as_sum}, a multiple of other fields.",
            "fields of given emissions that are independent of each other",
            "one field, declared once",
        ) from None
    at = inverse * Matrix([h.declared.as_sum for h in given])
    trained, psi = [h for h in site.heard if h.declared.states()], answers(theory, site)
    along = Matrix([[site.covariance[a.eta, g.eta] for g in given] for a in trained] or [[S.Zero] * len(given)])
    along = along * inverse

    def slope(a: Heard, by: Heard) -> Expr:
        return by.factor * message_response(theory.system, psi[a.declared], by.declared)

    out = []
    for f, g in combinations_with_replacement(range(len(given)), 2):
        bent = [(S.One, minimum * (at[f] * at[g] - inverse[f, g]))]
        for k, a in enumerate(trained):
            ways = [(along[k, f], given[g]), (along[k, g], given[f])]
            ways += [(along[k, f] * along[m, g], b) for m, b in enumerate(trained)]
            bent += [(factor, slope(a, by)) for factor, by in ways if factor != 0]
        both = given[f].declared.emission * given[g].declared.emission * (1 if f == g else 2)
        out += _weighted(given[f], given[g], both, bent)
    return out


def _weighted(f: Heard, g: Heard, emissions: Expr, bent: list[tuple[Expr, Expr]]) -> list[Curvature]:
    """A curvature with the covariance of the couplings, a term for each product of factors of the two ends."""
    hearer, sender = f.declared.hearer, f.declared.sender
    covariance = coupling_covariance(f.declared.coupling, g.declared.coupling).replace(KroneckerDelta, lambda *_: S.One)
    out = []
    for term in Add.make_args(expand_mul(covariance)) if covariance != 0 else ():
        sent, heard, rest = split_by_ends(term, hearer, sender)
        scale = in_units_of_n((rest * hearer.size).cancel())
        parts = [_outside(factor, heard * body) for factor, body in bent]
        out.append(Curvature(sender, hearer, sent * emissions, scale * Add(*parts)))
    return out


def split_by_ends(term: Expr, hearer: Kind, sender: Kind) -> tuple[Expr, Expr, Expr]:
    """The factors of a covariance of couplings that belong to the sender, to the hearer, and to neither."""
    factors = Mul.make_args(term)
    sent, heard = ([q for q in factors if any(end in p.site for p in site_quantities(q))] for end in (sender, hearer))
    return Mul(*sent), Mul(*heard), Mul(*(q for q in factors if q not in sent and q not in heard))


def _outside(factor: Expr, body: Expr) -> Expr:
    """An average with a factor: outside, where it is the same at all sites."""
    alike = not factor.xreplace(dict.fromkeys(factor.atoms(Average), S.One)).has(SiteQuantity)
    return factor * Average(body) if alike else Average(factor * body)
