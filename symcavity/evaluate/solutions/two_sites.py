"""Covariances of two sites at given couplings, in numbers: a small linear system at a solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Expr

from symcavity.algebra.precision import alone, given_out, mp, with_digits
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.pair import Pair
from symcavity.model.kinds import FEATURE


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


def check_pair(solution: SolutionTable, pair: Pair, stability: Any) -> None:
    """Refuse what has no covariances of two sites.

    Raises
    ------
    UnsupportedLaw
        If what sites send has a mean at given couplings, and limits with states at rest.
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
    _check_balanced(solution, pair)


@alone
def two_sites(solution: SolutionTable, pair: Pair, stability: Any) -> SiteCovariance:
    """Solve the linear equations of two sites at a solution.

    Raises
    ------
    UnsupportedLaw, NotConverged
        For what has no covariances.
    """
    check_pair(solution, pair, stability)
    rows, column, matrix = pair.system

    def number(expr: Expr) -> Any:
        return solution.number(expr) if expr != 0 else mp.zero

    first = mp.matrix([number(e) for e in column])
    steps = mp.matrix([[number(e) for e in line] for line in matrix])
    kind = pair.kind
    share = mp.one if kind == FEATURE else solution.number(kind.ratio)
    variance, square = solution.number(pair.variance), solution.number(pair.square)
    with mp.workdps(solution.dps + GUARD):
        total = mp.lu_solve(mp.eye(len(rows)) - steps, first)[rows.index(pair.target)]
        second = total / share
        if not variance > 0:
            raise UnsupportedLaw(f"{pair.observed} does not vary.", "quantities that depend on what varies")
        found = (variance, (second - square) / share, variance**2 / second, second)
    spread, off, dimension, second = (with_digits(given_out(+v), solution.dps) for v in found)
    return SiteCovariance(spread, off, dimension, (spread, second))


def _check_balanced(solution: SolutionTable, pair: Pair) -> None:
    for leg, share in pair.means.items():
        if solution.number(share) > tolerances().balanced:
            names = ", ".join(map(str, pair.over))
            given = [q for q in pair.theory.system.quenched if q not in pair.over]
            raise UnsupportedLaw(
                f"At given couplings {leg.sent} has a mean over {names}, which differs from {leg.kind.site} to "
                f"{leg.kind.site}, so that one mean response does not do for all of them.",
                "systems that are odd in what varies: states of which the opposite ones are as likely",
                "where all laws are linear, {0: 1} as the law of " + ", ".join(map(str, given))
                if given
                else "sim.dimension(...) of instances",
            )
