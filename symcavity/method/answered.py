"""The fields of a site of a convex problem, its response to each, and averages over them by integration by parts.

A site with the Gaussian cavity fields ``eta_a`` of covariance ``C`` adds the minimum ``M(eta)`` with ``dM/deta_a =
-psi_a``.  For a function ``G`` of the fields that may jump,

    <dG/deta_a> = <G t_a>,   <d^2 G/deta_a deta_b> = <G (t_a t_b - D_ab)>,   with D = C^-1 and t = D eta.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, Matrix, S, Sum, cancel, factor_terms

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import message_response
from symcavity.method.objective_fields import answers
from symcavity.method.observed_sums import in_states
from symcavity.method.theory import Theory
from symcavity.method.told_apart import ToldApart, multiple
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
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
    covariance : tuple of Expr
        Of the cavity field with each field of the site, at given others, in order parameters.
    inverse : tuple of Expr
        The same row of the inverse of this matrix.
    back : tuple of Expr
        What the answers to each field add to this one: self-couplings, in order parameters.
    """

    eta: Expr
    mean: Expr
    psi: Expr
    slopes: tuple[Expr, ...]
    covariance: tuple[Expr, ...]
    inverse: tuple[Expr, ...]
    back: tuple[Expr, ...]


def tilts(fields: Sequence[Answered], k: int) -> Iterator[Expr]:
    """The terms of what differentiates by a field where it stands as a factor, by parts."""
    return (d * b.eta for d, b in zip(fields[k].inverse, fields, strict=True) if d != 0)


def answered_fields(theory: Theory, apart: ToldApart, kind: Kind) -> tuple[Answered, ...]:
    """The trained fields of a site.

    Raises
    ------
    UnsupportedLaw
        For fields that are combinations of others.
    """
    site = apart.sites[kind]
    heard = [h for h in site.heard if h.declared.states()]
    answered = answers(theory, site)
    psi = [answered[h.declared] for h in heard]
    alike = [list(zip(along(site, h), given_fields(site), strict=True)) for h in heard]
    lost = [[Add(*(c * site.covariance[g.eta, f.eta] for c, f in part)) for g in heard] for part in alike]
    covariance = [
        [site.covariance[h.eta, g.eta] - part for g, part in zip(heard, row, strict=True)]
        for h, row in zip(heard, lost, strict=True)
    ]
    inverse = _inverted(covariance, heard)
    out = []
    for k, h in enumerate(heard):
        ahead = Add(*(factor * in_states(theory.system, f.declared.as_sum) for factor, f in alike[k]))
        fed_back = Add(*(site.means[f.symbol] * f.emission for f in h.feedback))
        eta = in_states(theory.system, h.declared.as_sum) - fed_back - ahead
        echoes = Add(*(site.means[f.symbol] * f.emission for f in h.feedback if not f.through.states()))
        slopes = tuple(g.factor * message_response(theory.system, psi[k], g.declared) for g in heard)
        back = tuple(f + apart.back.get((kind, k, m), S.Zero) for m, f in enumerate(_back(site, h, psi)))
        out.append(Answered(eta, ahead + echoes, psi[k], slopes, tuple(covariance[k]), tuple(inverse[k]), back))
    return tuple(out)


def _inverted(covariance: list[list[Expr]], heard: list[Heard]) -> list[list[Expr]]:
    """The inverse of the covariances of fields, by blocks of those that are correlated."""
    places, blocks = list(range(len(heard))), list[list[int]]()
    while places:
        block = [places.pop(0)]
        for k in block:
            block += [m for m in places if covariance[k][m] != 0]
            places = [m for m in places if m not in block]
        blocks.append(sorted(block))
    out = [[S.Zero] * len(heard) for _ in heard]
    for block in blocks:
        square = Matrix([[covariance[k][m] for m in block] for k in block])
        size = cancel(square.det(method="berkowitz"))
        if size == 0:
            raise not_derived(f"{heard[block[0]].declared.as_sum}, a combination of other fields")
        turned = square.adjugate() if len(block) > 1 else Matrix([[S.One]])
        for r, k in enumerate(block):
            for c, m in enumerate(block):
                out[k][m] = factor_terms(cancel(turned[r, c] / size))
    return out


def given_fields(site: Site) -> list[Heard]:
    """The fields of given emissions, such as a teacher's, that a site hears."""
    return [g for g in site.heard if not g.declared.states()]


def along(site: Site, h: Heard) -> list[Expr]:
    """The regression of a cavity field on each field of given emissions; raises UnsupportedLaw for multiples."""
    given = given_fields(site)
    if not given:
        return []
    gram = Matrix([[site.covariance[f.eta, g.eta] for g in given] for f in given])
    if gram.det() == 0:
        raise not_derived(f"{given[0].declared.as_sum}, a multiple of other fields")
    return list(Matrix([[site.covariance[h.eta, g.eta] for g in given]]) * gram.inv())


def as_averages(theory: Theory, key: Any) -> Expr:
    """An observable as it is made of averages: order parameters and the names of a declaration written out."""
    return in_averages(theory.in_words(key).xreplace(dict(theory.order_parameters)))


def in_averages(expr: Expr) -> Expr:
    """Sums over all sites of a kind as averages, times the number of sites."""
    whole = [e for e in expr.atoms(Sum) if is_whole(e)]
    return expr.xreplace({e: e.limits[0][2] * Average(e.function) for e in whole})


def named_averages(theory: Theory) -> dict[Expr, Expr]:
    """The averages that are order parameters, or that sums are multiples of which are: by these."""
    out: dict[Expr, Expr] = {}
    for symbol, meaning in theory.order_parameters.items():
        size, node = in_averages(meaning).as_independent(Average, as_Add=False)
        out[node] = symbol / size
    return out


def is_whole(expr: Sum) -> bool:
    """Whether a sum is one over all sites of a kind, of what each of them has."""
    kinds = {kind for q in site_quantities(expr.function) for kind in q.site}
    return len(kinds) == 1 and not expr.function.has(Sum) and expr.limits == (kinds.pop().range,)


def _back(site: Site, h: Heard, psi: Sequence[Expr]) -> tuple[Expr, ...]:
    """The self-coupling of each answer in a field; of answers that are alike, it counts with one of them."""
    out = [S.Zero] * len(psi)
    for f in h.feedback:
        k = _place_of(f.emission, psi)
        if k is not None:
            out[k] += site.means[f.symbol] * cancel(f.emission / psi[k])
    return tuple(out)


def _place_of(sent: Expr, psi: Sequence[Expr]) -> int | None:
    """Which answer of its site an emission is a multiple of; None if of none."""
    return next((k for k, answer in enumerate(psi) if multiple(sent, answer) is not None), None)


def not_derived(found: str) -> UnsupportedLaw:
    """The error of a problem whose observables scatter in a way that is not derived."""
    return UnsupportedLaw(
        f"The variance of observables is not derived with {found}.",
        "convex problems of scalar fields, none of which is a combination of others",
        "solution.variance('objective'), or the scatter of instances",
    )
