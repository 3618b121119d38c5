"""One Gaussian field given the others, and expressions by the powers of one field."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Matrix, Poly, S, Symbol, cancel
from sympy.polys.polyerrors import PolynomialError

from symcavity.algebra.factors import factor
from symcavity.model.averages import SiteResponse
from symcavity.sites.branching.solution import SiteSolution


def given_others(ensemble: Any, field: Symbol) -> tuple[Expr, Expr]:
    """Return the mean and the variance of a field of a site, given the other ones."""
    others = [f for f in ensemble.fields if f != field and ensemble.covariance[f, f] != 0]
    inverse = Matrix([[ensemble.covariance[a, b] for b in others] for a in others]).inv()
    row = Matrix([[ensemble.covariance[field, b] for b in others]])
    weights = row * inverse
    mean = sum((cancel(w) * f for w, f in zip(weights, others, strict=True)), S.Zero)
    variance = ensemble.covariance[field, field] - (weights * row.T)[0, 0]
    return mean, factor(cancel(variance))


def powers(solution: SiteSolution, body: Expr, field: Symbol) -> list[tuple[int, Expr]] | None:
    """Return a body by powers of a field, or None where it is not a polynomial in it.

    A state whose value holds the field must have this value everywhere; it is put in.
    """
    zero = dict.fromkeys(solution.sources, S.Zero)
    plain = {}
    pieces: list[Any] = [*solution.regions, *solution.branches]
    for q in solution.unknowns:
        if not body.has(q):
            continue
        values = {b.values[q].xreplace(zero) for b in pieces}
        if any(v.has(field) for v in values):
            if len(values) > 1:
                return None
            plain[q] = values.pop()
    body = body.xreplace({r: r for r in body.atoms(SiteResponse)} | plain)  # a response keeps the name of its state
    if not body.has(field):
        return [(0, body)]
    try:
        poly = Poly(body, field)
    except PolynomialError:
        return None
    if any(c.has(field) for c in poly.coeffs()):
        return None
    return [(n, c) for (n,), c in poly.terms()]
