"""Averages of functions of two correlated Gaussian numbers, by their expansions in Hermite polynomials.

With ``a_k = <f(m + sqrt(v) z) He_k(z)>/sqrt(k!)`` the average of ``f(x) g(y)`` is the sum of ``a_k b_k rho^k`` over k,
where rho is the correlation of x and y (Mehler): averages over two numbers take integrals over one.  The trapezoidal
rule converges geometrically for functions that are analytic in a strip about the real axis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Abs, Expr, Heaviside, Max, Min, Piecewise, Symbol, sign

from symcavity.algebra.compiled import compiled
from symcavity.algebra.precision import exact_function, mp
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.constants import BITS, IN_DOUBLE

MOST, MOST_EXACT = 1024, 512  # coefficients, in double and in digits: the latter take long
FIRST = 64
ROUGH = (Abs, Heaviside, Max, Min, Piecewise, sign)


class Profile:
    """A function of one number, in digits or in double.

    Parameters
    ----------
    expr : Expr
        Of one symbol.
    argument : Symbol

    Raises
    ------
    UnsupportedLaw
        If it has kinks or jumps, for which the expansion converges too slowly.
    """

    def __init__(self, expr: Expr, argument: Symbol) -> None:
        if expr.has(*ROUGH):
            raise UnsupportedLaw(
                f"{expr} has kinks or jumps.", "smooth functions, whose expansion in Hermite polynomials converges"
            )
        self.expr = expr
        self._double = compiled([argument], expr)
        self._exact = exact_function([argument], expr)
        self._known: dict[Any, Any] = {}
        self._slow: dict[int, Any] = {}  # by digits: a variance at which the expansion does not end

    def coefficients(self, mean: Any, variance: Any, dps: int) -> Any:
        """The Hermite coefficients of the function of a Gaussian number, as many as matter.

        Parameters
        ----------
        mean, variance : number
        dps : int
            Digits; up to 15 the coefficients are an array of doubles, beyond a list of numbers of many digits.

        Raises
        ------
        NotConverged
            If the expansion does not end within many terms.
        """
        key = mean, variance, dps
        if key not in self._known:
            self._known[key] = self._expanded(mean, variance, dps)
        return self._known[key]

    def _expanded(self, mean: Any, variance: Any, dps: int) -> Any:
        count, before, most = FIRST, None, MOST if dps <= IN_DOUBLE else MOST_EXACT
        close: Any = 1e-14 if dps <= IN_DOUBLE else mp.mpf(10) ** (-dps - 3)
        while count <= most and variance < self._slow.get(dps, mp.inf):
            found = self._projected(mean, variance, count, dps)
            here = np.array(found)
            sizes = np.abs(here)
            size, tail = max(sizes), max(sizes[-8:])
            gap = size if before is None else max(np.abs(here[: len(before)] - before))
            if tail <= 10 * close * size and gap <= 10 * close * size:
                (matter,) = np.nonzero(sizes > close * size / 10)
                return found[: matter.max(initial=0) + 1]
            before, count = here, 2 * count
        self._slow[dps] = min(variance, self._slow.get(dps, mp.inf))
        raise NotConverged(
            f"The expansion of {self.expr} in Hermite polynomials does not end within {most} terms, at the variance "
            f"{float(variance):.3g}.",
            before,
        )

    def average(self, other: Profile, ours: Any, theirs: Any, rho: Any, dps: int) -> Any:
        """The average of the product with another function, in digits, by the trapezoidal rule over two numbers.

        Parameters
        ----------
        other : Profile
        ours, theirs : (number, number)
            The mean and the standard deviation of the argument of either.
        rho : number
            Their correlation.
        dps : int

        Raises
        ------
        NotConverged
            If the rule does not converge.
        """
        (m, size), (n, width) = ours, theirs
        left = mp.sqrt(max(1 - rho * rho, mp.mpf(0)))
        reach, step, before = mp.sqrt(2 * (dps + 5) * mp.ln(10)), mp.mpf(1) / 2, None
        for _ in range(5):
            nodes = [step * k for k in range(-int(reach / step), int(reach / step) + 1)]
            weights = [step * mp.npdf(z) for z in nodes]
            found = mp.mpf(0)
            for z, w in zip(nodes, weights, strict=True):
                if left == 0:
                    inner = other._exact(n + width * rho * z)
                else:
                    inner = mp.fdot(weights, [other._exact(n + width * (rho * z + left * u)) for u in nodes])
                found += w * self._exact(m + size * z) * inner
            # the error of the finer rule is about the square of that of the coarser one
            if before is not None and abs(found - before) <= mp.mpf(10) ** (-dps // 2 - 3) * (1 + abs(found)):
                return found
            before, step = found, step / 2
        raise NotConverged(f"The average of {self.expr} times {other.expr} takes too many points.", before)

    def _projected(self, mean: Any, variance: Any, count: int, dps: int) -> Any:
        nodes, basis = _basis(count, dps)
        if dps <= IN_DOUBLE:
            with np.errstate(all="ignore"):
                return basis @ np.broadcast_to(self._double(float(mean) + float(variance) ** 0.5 * nodes), nodes.shape)
        scale, bits = mp.sqrt(variance), _bits(dps)
        values = _fixed([self._exact(mean + scale * z) * mp.exp(-z * z / 4) for z in nodes], bits)
        return [mp.ldexp(mp.mpf(int(row @ values)), -2 * bits) for row in basis]


@lru_cache(maxsize=32)
def _basis(count: int, dps: int) -> tuple[Any, Any]:
    """The nodes of the trapezoidal rule, and normalized Hermite polynomials there times its weights.

    With digits they are whole numbers in a fine unit, with the root of the Gaussian weight only: the recurrence
    multiplies errors by as much as the other root makes small.
    """
    step = 0.8 / count**0.5 * (1 if dps <= IN_DOUBLE else 30 / (dps + 15))
    reach = 2 * np.sqrt((max(dps, 15) + 5) * np.log(10)) + 2
    places = range(-int(reach / step), int(reach / step) + 1)
    if dps <= IN_DOUBLE:
        nodes = step * np.array(places)
        rows = [step * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)]
        for k in range(1, count):
            row = nodes * rows[-1] - (np.sqrt(k - 1) * rows[-2] if k > 1 else 0)
            rows.append(row / np.sqrt(k))
        return nodes, np.array(rows)
    bits = _bits(dps)
    with mp.workdps(dps + 20):
        h = mp.mpf(step)
        exact = [h * k for k in places]
        whole, rows = _fixed(exact, bits), [_fixed([h * mp.exp(-z * z / 4) / mp.sqrt(2 * mp.pi) for z in exact], bits)]
        for k in range(1, count):
            root, inverse = (_fixed([v], bits)[0] for v in (mp.sqrt(mp.mpf(k - 1) / k), 1 / mp.sqrt(k)))
            row = (whole * rows[-1] >> bits) * inverse
            rows.append((row - (root * rows[-2] if k > 1 else 0)) >> bits)
    return exact, rows


def _bits(dps: int) -> int:
    """The bits behind the point of numbers that are whole numbers in a finer unit: sums of many are quick."""
    return int(BITS * (dps + 15)) + 20


def _fixed(values: Any, bits: int) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = [int(mp.nint(mp.ldexp(v, bits))) for v in values]
    return out


def mehler(one: Any, other: Any, rho: Any) -> Any:
    """The average of a product of functions of two Gaussian numbers, by their coefficients and the correlation."""
    total = 0 * rho
    for a, b in zip(reversed(one), reversed(other), strict=True):
        total = total * rho + a * b
    return total


def common(one: Any, other: Any) -> tuple[Any, Any]:
    """Two lists of coefficients of the same length: those that are left out are zero."""
    n = min(len(one), len(other))
    return one[:n], other[:n]
