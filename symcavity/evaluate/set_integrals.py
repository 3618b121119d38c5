"""Averages over Gaussian sources of projections onto the cone g_S(v) >= k: the integrals of few dimensions.

For a source t ~ N(0, 1) the projection is v(t) = argmin |v - t|^2 / 2 subject to g_S(v) >= k, and v - t = lam s
with the anchor point s; psi = div (v - t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from symcavity.algebra.precision import mp
from symcavity.errors import ValuesError
from symcavity.evaluate.ellipsoids import ellipsoid_averages
from symcavity.evaluate.legendre import legendre
from symcavity.shapes import Ellipsoid, Shape

Averages = dict[str, Any]
"""norm <|v-t|^2>, lam <lam>, lam2 <lam^2>, touching, partial, whole (probabilities), psi <psi>, and of balls slope2
<sum of squares of d(v - t)/dt>."""


def integrated(shape: Shape, k: float) -> Averages | None:
    """Return the averages by quadrature in double, where the shape has integrals of few dimensions."""
    if not isinstance(shape, Ellipsoid):
        return None
    R, c = shape.numbers()
    radii = np.sort(R[R > 0])[::-1]
    if radii.size == 0 or radii[0] == radii[-1]:
        return _ball_averages(max(radii.size, 1), radii[0] if radii.size else 0.0, c, k)
    return ellipsoid_averages(radii, c, k)


def has_many_digits(shape: Shape) -> bool:
    """Whether the averages are known to any number of digits: for exact balls, segments and points."""
    return isinstance(shape, Ellipsoid) and shape.exact and len({R for R in shape.radii if not R.is_zero}) < 2


# Balls: the radial component |t_perp| is chi-distributed and the integral over the axial one is elementary.


def _below(a: Any, cdf: Any, pdf: Any) -> tuple[Any, Any, Any]:
    """Return int_{-inf}^a (a - z)^n Dz for n = 0, 1, 2."""
    return cdf, a * cdf + pdf, (a * a + 1) * cdf + a * pdf


def _ball_rows(
    x: Any, D: int, R: Any, c: Any, k: Any, normal: Callable[[Any], tuple[Any, Any]]
) -> tuple[Any, ...]:
    """Return the axial averages at radial distance x: |v-t|^2, lam, lam^2, P(touching), P(tip), psi, |psi|^2."""
    q2 = R * R + c * c
    top = (k + R * x) / c
    j0, j1, j2 = _below(top, *normal(top))
    if R == 0:
        return j2 * c * c / q2, c * j1 / q2, c * c * j2 / q2**2, j0, 0 * j0, -j0, j0
    low, gap, rise = k / c - c * x / R, x * (R / c + c / R), c * x / R
    i0, i1, i2 = _below(low, *normal(low))
    j0, j1, j2 = j0 - i0, j1 - i1 - gap * i0, j2 - i2 - gap * (2 * i1 + gap * i0)
    tip1, tip2 = i1 + rise * i0, i2 + rise * (2 * i1 + rise * i0)
    touch = c * j1 / q2
    psi = -j0 - (D + 1) * i0 - ((D - 1) * R * touch / x if D > 1 else 0)
    slope2 = j0 + (D + 1) * i0 + ((D - 1) * (R * c / (q2 * x)) ** 2 * j2 if D > 1 else 0)
    return (
        c * c * j2 / q2 + x * x * i0 + tip2,
        touch + tip1 / c,
        c * c * j2 / q2**2 + tip2 / c**2,
        j0,
        i0,
        psi,
        slope2,
    )


def _panels(D: int, R: float, c: float, k: float, reach: float) -> list[float]:
    """Break the radial line where the two boundaries of the touching regime turn on and off."""
    centre = math.sqrt(D - 1.0)
    low, high = max(0.0, centre - reach), centre + reach
    inner = [low + (high - low) * j / 4 for j in (1, 2, 3)]
    if R > 0:
        inner += [j * c / R for j in (1, 4, 10)]
        inner += [k * R / c**2 + j * R / c for j in (-9, -3, 0, 3, 9)]
    kept = sorted({x for x in inner if low < x < high} | {low, high})
    return [x for i, x in enumerate(kept) if i == 0 or x - kept[i - 1] > 1e-12 * high]


_NAMES = ("norm", "lam", "lam2", "touching", "whole", "psi", "slope2")


def axial_panels(
    D: int, R: float, c: float, k: float, *more: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of averages over the distance from the axis, chi-distributed with D components.

    Further breaks of the panels may be given.
    """
    first = _panels(D, R, c, k, 9.5)
    edges = np.array(sorted({*first, *(x for x in more if first[0] < x < first[-1])}))
    nodes, weights = legendre(32)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    x = (edges[:-1, None] + half * (1 + nodes)).ravel()
    log = (D - 1) * np.log(x) - x * x / 2
    weight = np.exp(log - log.max()) * (half * weights).ravel()
    return x, weight / weight.sum()


def _ball_averages(D: int, R: float, c: float, k: float) -> Averages:
    from scipy.special import ndtr

    x, weight = axial_panels(D, R, c, k)

    def normal(a: NDArray[np.float64]) -> tuple[Any, Any]:
        return ndtr(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)

    rows = _ball_rows(x, D, R, c, k, normal)
    return {name: float(weight @ row) for name, row in zip(_NAMES, rows, strict=True)} | {"partial": 0.0}


def ball_integrals(shape: Ellipsoid, K: Any, dps: int) -> Averages:
    """Return the averages of a ball to ``dps`` digits, as mpf of 12 more.

    Raises
    ------
    ValuesError
        If a quadrature does not reach that many digits.
    """
    radii = [R for R in shape.radii if not R.is_zero]
    D = max(len(radii), 1)
    with mp.workdps(dps + 12):
        R = mp.mpf(sympy.N(radii[0], dps + 15)) if radii else mp.mpf(0)
        c = mp.mpf(sympy.N(shape.center, dps + 15))
        reach = 2 + np.sqrt(2 * (dps + 8) * np.log(10))
        norm = mp.exp((D - mp.mpf(2)) / 2 * mp.log(2)) * mp.gamma(mp.mpf(D) / 2)
        rows: dict[Any, tuple[Any, ...]] = {}

        def row(x: Any, which: int) -> Any:
            if x not in rows:
                density = x ** (D - 1) * mp.exp(-x * x / 2) / norm
                rows[x] = tuple(density * y for y in _ball_rows(x, D, R, c, K, _normal))
            return rows[x][which]

        edges = [mp.mpf(x) for x in _panels(D, float(R), float(c), float(K), float(reach))]
        averages: Averages = {"partial": mp.mpf(0)}
        for which, name in enumerate(_NAMES):
            averages[name], error = mp.quad(
                lambda x, which=which: row(x, which), edges, error=True, method="gauss-legendre", maxdegree=9
            )
            if error > mp.mpf(10) ** (-dps) * max(1, abs(averages[name])):
                raise ValuesError(
                    f"The integral for {name} did not reach {dps} digits (error {mp.nstr(error, 2)}).",
                    "fewer digits",
                )
        return averages


def _normal(a: Any) -> tuple[Any, Any]:
    return mp.ncdf(a), mp.npdf(a)


__all__ = ["Averages", "axial_panels", "ball_integrals", "has_many_digits", "integrated"]
