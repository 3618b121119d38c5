"""Averages over the branches of a law in several fields: a polynomial on each polyhedron of fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Add, Eq, Expr, Ne, S, Symbol

from symcavity.algebra.piecewise import NotPiecewisePolynomial
from symcavity.algebra.polyhedral import MOST_FIELDS, CellAverage
from symcavity.errors import UnsupportedLaw
from symcavity.sites.branching.branches import unkinked


def over_cells(cells: Iterable[tuple[Expr, Sequence[Expr]]], zs: Sequence[Symbol]) -> Expr | None:
    """Average what is given branch by branch over independent standard Gaussians.

    Parameters
    ----------
    cells : iterable of (Expr, sequence of Expr)
        For each branch its integrand, and the conditions that must not be negative.  The branches do not
        overlap, and where none holds the integrand counts as zero.
    zs : sequence of Symbol
        The variables.

    Returns
    -------
    Expr or None
        None where a branch is not a polynomial, or does not hold on a polyhedron.

    Raises
    ------
    UnsupportedLaw
        If the polyhedra have more dimensions than averages over them can be evaluated in.
    """
    total = S.Zero
    for body, conditions in cells:
        if body == 0:
            continue
        try:
            pieces = unkinked([_almost_everywhere(body, zs)], list(conditions), list(zs))
            averaged = Add(*(CellAverage(piece, zs, *flat, *new) for (piece,), flat, new in pieces))
        except (NotPiecewisePolynomial, UnsupportedLaw):
            return None
        most = max((len(node.zs) for node in averaged.atoms(CellAverage)), default=0)
        if most > MOST_FIELDS:
            raise UnsupportedLaw(
                f"{most} random fields of one site come back to it, and its states have kinks in all of them.",
                f"at most {MOST_FIELDS} such fields",
                "a SupportFunction for the constraints of a site, with a PointCloud: averages over it are sampled",
            )
        total += averaged
    return total


def _almost_everywhere(body: Expr, zs: Sequence[Symbol]) -> Expr:
    """Settle equations between the fields, which hold on no polyhedron."""
    rule = {test: S.false if isinstance(test, Eq) else S.true for test in body.atoms(Eq, Ne) if test.has(*zs)}
    return body.xreplace(rule) if rule else body
