"""The eigenvalues of the covariances of sites at given couplings, in the limit: density, edges, moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.algebra.precision import alone
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.averages.nodes import own_quantities
from symcavity.evaluate.solutions.dyson import Dyson, LocalSpectrum
from symcavity.evaluate.solutions.given_fields import GivenNumbers
from symcavity.evaluate.solutions.two_sites import checked_pair
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.pair import Pair
from symcavity.method.pair_resolvent import Resolvent
from symcavity.method.reach import unreached

LEVELS = 4  # of rules for densities of what is given
NEARER, STEPS = 1 / 4, 9  # arguments, in mean eigenvalues, on the way to zero


@dataclass(frozen=True, repr=False)
class SiteSpectrum:
    """The eigenvalues of the matrix of covariances ``C_ij`` of one quantity of the sites of a kind, at given couplings.

    In the limit of many sites; all numbers are of double precision.

    Attributes
    ----------
    at_zero : float
        The share of eigenvalues that are zero: of directions in which nothing varies.
    edges : tuple of float
        The smallest and the largest of the others: above a hundred-thousandth of the mean, and zero where eigenvalues
        come as near.  A gap between them shows as a density of zero.
    dyson : Dyson
        The equation of the resolvent, in numbers.
    """

    dyson: Dyson

    def __repr__(self) -> str:
        first, second = self.moments(2)
        return f"<spectrum of covariances: eigenvalues of mean {first:.6g} and mean square {second:.6g}>"

    def resolvent(self, z: Any) -> complex:
        """The mean of ``1/(z - eigenvalue)``, ``tr (z - C)^(-1)/n``.

        Parameters
        ----------
        z : complex
            Off the real axis, or outside of the eigenvalues on it; within them the limit from above.

        Raises
        ------
        ValuesError
            For zero, and if z is not a number.
        NotConverged
            If the equation of the resolvent is not met.
        """
        try:
            z = complex(z)
        except (TypeError, ValueError):
            raise ValuesError(f"z = {z!r:.80} is not a number.", "complex numbers, 1 + 0.01j") from None
        if z == 0 or not np.isfinite(z):
            raise ValuesError(f"The resolvent is not taken at {z}.", "finite numbers other than zero")
        above = z if z.imag >= 0 else z.conjugate()
        found = complex((1 + self.dyson.at(above)[self.dyson.target, self.dyson.target] / above) / above)
        return found if z.imag >= 0 else found.conjugate()

    def density(self, points: Any) -> Any:
        """The density of the eigenvalues at positive numbers; its integral is ``1 - at_zero``.

        Parameters
        ----------
        points : float or array
            Positive numbers, in units of the covariances.

        Returns
        -------
        float or ndarray
            ``-Im resolvent(x + i0)/pi``, and exactly zero outside of the edges.

        Raises
        ------
        ValuesError
            For numbers that are not positive.
        NotConverged
            If the equation of the resolvent is not met.
        """
        try:
            given = np.asarray(points, dtype=float)
        except (TypeError, ValueError):
            raise ValuesError(f"The points {points!r:.80} are not numbers.", "an array of positive numbers") from None
        if not (np.all(np.isfinite(given)) and np.all(given > 0)):
            raise ValuesError("Covariances have no negative eigenvalues.", "the density at positive numbers")
        out, (low, high), target, near = np.zeros(given.size), self.edges, self.dyson.target, None
        for k in np.argsort(given, axis=None):
            if low < (x := float(given.flat[k])) < high:
                near = self.dyson.at(complex(x), near)
                out[k] = max(-near[target, target].imag / (np.pi * x * x), 0.0)
        return out.reshape(given.shape) if given.ndim else float(out[0])

    def moments(self, count: int) -> tuple[float, ...]:
        """The means of the first powers of the eigenvalues, ``tr C^k/n``.

        Raises
        ------
        ValuesError
            For a count that is not a positive integer.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValuesError(f"{count!r:.40} moments.", "a positive integer")
        return self.dyson.moments(count)

    @cached_property
    def at_zero(self) -> float:
        """The share of eigenvalues that are zero."""
        steps = [-self.moments(1)[0] * NEARER**k for k in range(2, 2 + STEPS)]
        seen = [(z * self.resolvent(z)).real for z in steps]
        found, error = _limit(seen)
        if not error < tolerances().sure:
            raise NotConverged(f"The share of eigenvalues that are zero is {found:.6g} within {error:.2g} only.")
        return max(found, 0.0)

    @cached_property
    def edges(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue that is not zero."""
        scale = self.moments(1)[0]
        return self.dyson.lower(tolerances().apart * scale), self.dyson.upper()


@alone
def spectrum_of(solution: Any, pair: Pair, stability: Any) -> SiteSpectrum:
    """Write the equation of the resolvent at a solution.

    Raises
    ------
    UnsupportedLaw, NotConverged
        As for the covariances of two sites.
    """
    pair = checked_pair(solution, pair, stability)
    known: dict[Any, float] = {}

    def number(expr: Any) -> float:
        if expr not in known:
            known[expr] = float(solution.number(expr)) if expr != 0 else 0.0
        return known[expr]

    found = Resolvent(pair)
    legs = [leg for own in found.kinds.values() for leg in own]
    place = {leg: k for k, leg in enumerate(legs)}
    couplings = np.zeros((len(legs),) * 4)
    for (a, b), line in found.couplings.items():
        for (c, d), value in line.items():
            couplings[place[a], place[b], place[c], place[d]] = number(value)
    kinds = []
    numbers = None if pair.given is None else GivenNumbers(solution, pair.given)
    for kind, own in found.kinds.items():
        where = slice(place[own[0]], place[own[-1]] + 1)
        entries = [[found.local[a, b] for b in own] for a in own]
        if numbers is None:
            kinds.append(_local(solution, where, entries, number))
        else:
            sites = numbers.kinds[kind]
            kinds.append(LocalSpectrum(where, sites.matrices(entries), sites.weights))
    sent = np.array([leg.sent is not None for leg in legs])
    matrix = couplings.reshape(len(legs) ** 2, len(legs) ** 2)
    spectrum = SiteSpectrum(Dyson(tuple(kinds), matrix, place[pair.target[0]], sent))
    if not spectrum.moments(1)[0] > 0:
        raise unreached(pair.observed, pair.over)
    return spectrum


def _local(solution: Any, place: slice, entries: list[list[Expr]], number: Callable[[Expr], float]) -> LocalSpectrum:
    """The values of ``L`` at the sites of a kind: one, where nothing is given of a site, or one for each value."""
    given = sorted({q.family for row in entries for e in row for q in own_quantities(e)}, key=str)
    if not given:
        return LocalSpectrum(place, np.array([[[number(e) for e in row] for row in entries]]), np.ones(1))
    law = solution.given.laws[given[0].slots[0]]
    before: LocalSpectrum | None = None
    for level in range(LEVELS):
        columns, weights = law.table(given, level)
        count = len(columns[0])
        rows, env = dict(zip(given, columns, strict=True)), solution.environment("numpy")
        values = [[[_at(solution, e, rows, env, u) for e in row] for row in entries] for u in range(count)]
        found = LocalSpectrum(place, np.array(values), np.full(count, 1 / count) if weights is None else weights)
        if not law.is_ruled(given) or (before is not None and _agree(before, found)):
            return found
        before = found
    names = ", ".join(map(str, given))
    raise NotConverged(f"The law of {names} is too wide for averages over the responses of sites.", hint="finite laws")


def _at(solution: Any, expr: Expr, rows: Mapping[Any, np.ndarray], env: dict[Any, Any], site: int) -> float:
    """An expression at the values of one site."""
    if expr == 0:
        return 0.0
    held = {q: Symbol(f"at_{q.name}", real=True) for q in rows}
    call = solution.task.compiled(expr.xreplace({q.at_site(): s for q, s in held.items()}), "numpy")
    return float(call({**env, **{s: rows[q][site] for q, s in held.items()}}))


def _agree(one: LocalSpectrum, other: LocalSpectrum) -> bool:
    """Whether two rules have the same means of products of two entries."""
    means = [np.einsum("u,uab,ucd->abcd", each.weights, each.values, each.values) for each in (one, other)]
    return bool(np.all(abs(means[0] - means[1]) <= tolerances().ruled * abs(means[1])))


def _limit(seen: Sequence[float]) -> tuple[float, float]:
    """The limit of a sequence that nears it by powers, and how sure it is: the epsilon algorithm of Wynn (1956)."""
    before, now = np.zeros(len(seen) + 1), np.array(seen)
    best = (float(abs(now[-1] - now[-2])), float(now[-1]))
    for column in range(1, len(seen) - 1):
        gaps = np.diff(now)
        if not np.all(gaps):
            break
        before, now = now, before[1:-1] + 1 / gaps
        if column % 2 == 0:
            best = min(best, (float(abs(now[-1] - now[-2])), float(now[-1])))
    return best[1], best[0]
