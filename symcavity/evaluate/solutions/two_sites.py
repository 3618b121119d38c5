"""Covariances of two sites at given couplings, in numbers: a small linear system at a solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.precision import alone, given_out, mp, with_digits
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.given_fields import GivenNumbers
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.pair import Pair
from symcavity.method.reach import unreached
from symcavity.model.kinds import FEATURE
from symcavity.model.quantities import Quenched


@dataclass(frozen=True)
class SiteCovariance:
    """The matrix of covariances ``C_ij`` of one quantity of the sites of a kind, at given couplings, in the limit.

    Attributes
    ----------
    variance : mpf
        The mean of ``C_ii``.
    off_diagonal : mpf
        ``N`` times the mean square of ``C_ij`` for different sites.
    dimension : mpf
        ``(sum C_ii)**2 / (n sum C_ij**2)`` for ``n`` sites: the participation ratio of the eigenvalues over ``n``.
    moments : tuple of mpf
        The mean of the eigenvalues, and of their squares.
    """

    variance: Any
    off_diagonal: Any
    dimension: Any
    moments: tuple[Any, Any]


def checked_pair(solution: SolutionTable, pair: Pair, stability: Any) -> Pair:
    """Two sites at a solution: beside what is given of their fields, where what sites send has a mean.

    Raises
    ------
    UnsupportedLaw
        In limits with states at rest, and for digits beyond double beside what is given of fields.
    NotConverged
        If the solution is not stable: small changes grow from site to site, and so do covariances.
    """
    if any(map(mp.isinf, dict(solution.values).values())):
        raise UnsupportedLaw(
            "In a limit where states vanish, the covariances of sites are not defined.", "solutions of the equations"
        )
    if not stability < 1:
        raise NotConverged(
            f"The covariances of {pair.kind.sites} grow without bound: small changes of fields grow by the factor "
            f"{mp.nstr(mp.mpf(stability), 4)}.",
            solution.values,
            hint="parameters at which the solution is stable, and no minimum is flat",
        )
    still = [q for q in pair.over if _is_still(solution, q)]
    if len(still) == len(pair.over):
        raise UnsupportedLaw(
            f"{pair.observed} does not vary: the law of {' and '.join(map(str, still))} has one value.",
            "parameters in over= whose laws have several values",
            "other parameters in over=, or another law of theirs",
        )
    pair = pair.without(still)
    if pair.given is None and not _is_balanced(solution, pair):
        pair = pair.beside_means()
    if pair.given is not None and solution.dps > IN_DOUBLE:
        raise UnsupportedLaw(
            f"{solution.dps} digits were requested of covariances of sites whose fields have a given part.",
            f"{IN_DOUBLE} digits: averages over these parts are taken in double",
        )
    return pair


@alone
def two_sites(solution: SolutionTable, pair: Pair, stability: Any) -> SiteCovariance:
    """Solve the linear equations of two sites at a solution.

    Raises
    ------
    UnsupportedLaw, NotConverged
        For what has no covariances.
    """
    pair = checked_pair(solution, pair, stability)
    rows, column, matrix = pair.system
    numbers = solution if pair.given is None else GivenNumbers(solution, pair.given)

    def number(expr: Expr) -> Any:
        return numbers.number(expr) if expr != 0 else mp.zero

    first = mp.matrix([number(e) for e in column])
    steps = mp.matrix([[number(e) for e in line] for line in matrix])
    kind = pair.kind
    share = mp.one if kind == FEATURE else solution.number(kind.ratio)
    variance, square = number(pair.variance), number(pair.square)
    with mp.workdps(solution.dps + GUARD):
        total = mp.lu_solve(mp.eye(len(rows)) - steps, first)[rows.index(pair.target)]
        second = total / share
        if not variance > 0:
            raise unreached(pair.observed, pair.over)
        found = (variance, (second - square) / share, variance**2 / second, second)
    spread, off, dimension, second = (with_digits(given_out(+v), solution.dps) for v in found)
    return SiteCovariance(spread, off, dimension, (spread, second))


def _is_still(solution: Any, q: Quenched) -> bool:
    """Whether a parameter is given by one value."""
    law = solution.given.laws.get(q.slots[0], SiteLaw())
    if q.given is not None or law.is_ruled([q]):
        return False
    ((column,), weights) = law.table([q])
    held = column if weights is None else column[weights > 0]
    return bool(np.all(held == held[0]))


def _is_balanced(solution: SolutionTable, pair: Pair) -> bool:
    """Whether what sites send has no mean over what varies, at given couplings."""
    return all(solution.number(share) <= tolerances().balanced for share in pair.means.values())
