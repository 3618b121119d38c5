"""Means to order 1/N, of problems whose laws are all linear: half the logarithm of what stability leaves below one.

The sites of two kinds, with real Gaussian couplings, have the quadratic form M with a curvature A_k on the diagonal.
The mean of ``log|det M|`` over instances is N times its limit, plus ``log(1 - stability)/2``; its derivative by the
curvature of a kind is the mean of the trace of the inverse, a response.  The minimum is ``-b^T M^-1 b/2`` for linear
terms b that are independent from site to site, so that its mean is the derivative by curvatures that grow with ``b^2``:

    N (mean of a response - limit) = d(log(1 - stability)/2)/dA,
    mean of the minimum - N limit = -(1/2) d(log(1 - stability)/2)/dA   in the direction b^2.

Responses are ``S_k = 1/(A_k - n_k <S_o>)`` of one kind and the other, and the stability ``n_1 n_2 <S_1^2> <S_2^2>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, cancel

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.method.perturbed import Perturbed
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities

SUPPORTED = (
    "two kinds of sites with one coupling between them, laws that are linear in states and fields, no variables that "
    "all sites share, and no fields of given emissions"
)


class NextOrder:
    """Corrections of order 1/N, at a solution.

    Raises
    ------
    UnsupportedLaw
        If laws are not linear, there are not two kinds with one field each, all sites share a variable, or
        emissions are given.
    """

    def __init__(self, solution: SolutionTable, found: Perturbed) -> None:
        self._solution, self._found = solution, found
        plain = len(found.sites) == 2 and all(len(fields) == 1 for fields in found.sites.values())
        plain = plain and not any(field.covariance[0].has(SiteQuantity) for (field,) in found.sites.values())
        if found.shared or found.bends or not plain:
            raise UnsupportedLaw("The means to order 1/N are not known here.", SUPPORTED)
        self._slopes, self._at_zero = dict[Kind, Expr](), dict[Kind, Expr]()
        for kind, (field,) in found.sites.items():
            (slope,) = field.slopes
            self._slopes[kind], self._at_zero[kind] = slope, field.psi - slope * field.eta

    def _mean(self, body: Expr) -> Any:
        return self._solution.number(Average(body) if site_quantities(body) else body) if body != 0 else mp.zero

    def _moved(self, directions: Mapping[Kind, tuple[Any, Any]]) -> Any:
        """The derivative of ``log(1 - stability)/2`` where a curvature grows by c.

        Each direction is the averages of ``c S^2`` and of ``c S^3``.
        """
        one, two = self._slopes
        first, square, cube = ({k: self._mean(s**p) for k, s in self._slopes.items()} for p in (1, 2, 3))
        other = {one: two, two: one}
        back = {k: self._solution.number(self._found.sites[k][0].back[0]) / first[other[k]] for k in other}
        gain = {k: back[k] * square[k] for k in other}
        stability = gain[one] * gain[two]
        grown = {k: -directions[k][0] for k in other}
        answers = {k: (grown[k] + gain[k] * grown[other[k]]) / (1 - stability) for k in other}
        change = {k: -2 * (directions[k][1] - back[k] * cube[k] * answers[other[k]]) for k in other}
        total = sum(back[one] * back[two] * change[k] * square[other[k]] for k in other)
        return -total / (2 * (1 - stability))

    def response(self, what: Expr) -> Any:
        """N times by how much the mean over instances of a mean response differs from its limit.

        Raises
        ------
        UnsupportedLaw
            If it is none.
        """
        for kind, slope in self._slopes.items():
            ratio = cancel(what.args[0] / slope) if isinstance(what, Average) else what
            if ratio.is_number:
                with mp.workdps(self._solution.dps + GUARD):
                    here = dict.fromkeys(self._slopes, (mp.zero, mp.zero))
                    here[kind] = self._mean(slope**2), self._mean(slope**3)
                    share = self._solution.number(self._found.shares[kind])
                    return self._solution.number(ratio) * self._moved(here) / share
        raise UnsupportedLaw(f"The mean of {what} to order 1/N is not known.", "'objective', and response(w)")

    def minimum(self) -> Any:
        """By how much the mean of the minimum over instances differs from N times its limit."""
        with mp.workdps(self._solution.dps + GUARD):
            along = {}
            for kind, e in self._at_zero.items():
                along[kind] = self._mean(e**2), self._mean(e**2 * self._slopes[kind])
            return -self._moved(along) / 2

