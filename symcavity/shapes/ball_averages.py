"""Averages over Gaussian sources of projections onto the cone g_S(v) >= k, for balls.

For a source t ~ N(0, 1) the projection is v(t) = argmin |v - t|^2 / 2 subject to g_S(v) >= k, and v - t = lam s
with the anchor point s; psi = div (v - t).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from symcavity.algebra.legendre import exact_legendre, legendre
from symcavity.algebra.precision import mp
from symcavity.errors import ValuesError
from symcavity.shapes.base import INTERIOR, SATURATED, Projection

Averages = dict[str, Any]
"""norm <|v-t|^2>, lam <lam>, lam2 <lam^2>, touching, partial, whole, saturated (probabilities), psi <psi>, and of balls
slope2 <sum of squares of d(v - t)/dt>."""


# Balls: the radial component |t_perp| is chi-distributed and the integral over the axial one is elementary.


def _below(a: Any, cdf: Any, pdf: Any) -> tuple[Any, Any, Any]:
    """Return int_{-inf}^a (a - z)^n Dz for n = 0, 1, 2."""
    return cdf, a * cdf + pdf, (a * a + 1) * cdf + a * pdf


def _ball_rows(
    x: Any, D: int, R: Any, c: Any, k: Any, cap: Any, rho: Any, normal: Callable[[Any], tuple[Any, Any]]
) -> dict[str, Any]:
    """Return the axial averages at radial distance x, by name; from the top down: touching, tip, saturated."""

    def between(low: Any, high: Any, origin: Any) -> tuple[Any, ...]:
        """Integrals of (origin - y)^n Dy over (low, high), n = 0, 1, 2."""
        parts = []
        for end in (high, low):
            j0, j1, j2 = _below(end, *normal(end)) if end is not None else (0, 0, 0)
            shift = origin - end if end is not None else 0
            parts.append((j0, j1 + shift * j0, j2 + shift * (2 * j1 + shift * j0)))
        return tuple(a - b for a, b in zip(*parts, strict=True))

    c2, q2 = c * c, R * R + c * c
    touch, tip = c / (q2 + rho), c / (c2 + rho)
    top = (k + R * x) / c
    edge, end = top - x * (q2 + rho) / (R * c) if R > 0 else None, None  # at the edge the multiplier is x/R
    s0 = bound = far = near = 0
    if cap < math.inf:
        far, bound = 1 * (x > cap * R), cap  # the bound is reached before the tip
        near = 1 - far
        edge = far * (top - cap / touch) + near * (edge if R > 0 else 0)
        end = far * edge + near * (k / c - cap / tip)
        s0 = _below(end, *normal(end))[0]
    t0, t1, t2 = between(edge, top, top)
    i0, i1, i2 = between(end, edge, k / c) if R > 0 else (0 * t0, 0, 0)
    bend = (D - 1) * R / x if D > 1 else 0
    rest = bound**2 * (c2 + far * R * R) + near * x * x
    return {
        "norm": q2 * touch**2 * t2 + x * x * i0 + (c * tip) ** 2 * i2 + s0 * rest,
        "lam": touch * t1 + tip * i1 + bound * s0,
        "lam2": touch**2 * t2 + tip**2 * i2 + bound**2 * s0,
        "touching": t0,
        "whole": i0,
        "saturated": s0 + 0 * t0,
        "psi": -q2 / (q2 + rho) * t0 - bend * touch * t1 - (D + c * tip) * i0 - s0 * (far * bend * bound + near * D),
        "slope2": (q2 / (q2 + rho)) ** 2 * t0
        + bend * R / x * touch**2 * t2
        + (D + (c * tip) ** 2) * i0
        + s0 * (far * bend * R / x * bound**2 + near * D),
    }


def _panels(D: int, R: float, c: float, k: float, reach: float, rho: float, levels: Sequence[float]) -> list[float]:
    """Break the radial line where the boundaries of the touching regime, and multipliers at the tip, turn on and off.

    At the edge of the tip the multiplier is the distance from the axis over R.
    """
    centre = math.sqrt(D - 1.0)
    low, high = max(0.0, centre - reach), centre + reach
    inner = [low + (high - low) * j / 4 for j in (1, 2, 3)]
    if R > 0:
        inner += [(k - c * j) * R / (c**2 + rho) for j in _TURNS] + [(c * j - k) / R for j in _TURNS]
        inner += [lam * R for lam in levels]
    kept = sorted({x for x in inner if low < x < high} | {low, high})
    return [x for i, x in enumerate(kept) if i == 0 or x - kept[i - 1] > 1e-12 * high]


_TURNS = (-9, -3, 0, 3, 9)


def axial_panels(
    D: int, R: float, c: float, k: float, rho: float = 0.0, levels: Sequence[float] = ()
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of averages over the distance from the axis, chi-distributed with D components.

    ``levels`` are multipliers at which an integrand jumps or bends.
    """
    edges = np.array(_panels(D, R, c, k, 9.5, rho, levels))
    nodes, weights = legendre(32)
    half = (edges[1:] - edges[:-1])[:, None] / 2
    x = (edges[:-1, None] + half * (1 + nodes)).ravel()
    log = (D - 1) * np.log(x) - x * x / 2
    weight = np.exp(log - log.max()) * (half * weights).ravel()
    return x, weight / weight.sum()


def ball_averages(D: int, R: float, c: float, k: float, cap: float = math.inf, rho: float = 0.0) -> Averages:
    """Return the averages by quadrature in double.

    Parameters
    ----------
    D : int
        The dimension of the ball.
    R, c : float
        Its radius, and the distance of its center.
    k : float
        The bound on g.
    cap : float
        The largest multiplier.
    rho : float
        By how much the bound is missed, per multiplier.
    """
    from scipy.special import ndtr

    x, weight = axial_panels(D, R, c, k, rho, [cap])

    def normal(a: NDArray[np.float64]) -> tuple[Any, Any]:
        return ndtr(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)

    rows = _ball_rows(x, D, R, c, k, cap, rho, normal)
    return {name: float(weight @ row) for name, row in rows.items()} | {"partial": 0.0}


def exact_ball_averages(D: int, radius: sympy.Expr, center: sympy.Expr, K: Any, dps: int) -> Averages:
    """Return the averages to ``dps`` digits, as mpf of 12 more; the multiplier has no bound.

    Raises
    ------
    ValuesError
        If a quadrature does not reach that many digits.
    """
    with mp.workdps(dps + 12):
        R, c = (mp.mpf(sympy.N(x, dps + 15)) for x in (radius, center))
        reach = 2 + np.sqrt(2 * (dps + 8) * np.log(10))
        norm = mp.exp((D - mp.mpf(2)) / 2 * mp.log(2)) * mp.gamma(mp.mpf(D) / 2)
        edges = [mp.mpf(x) for x in _panels(D, float(R), float(c), float(K), float(reach), 0.0, [])]
        last: dict[str, Any] = {}
        for count in _LADDER:
            found = dict.fromkeys(_NAMES, mp.mpf(0))
            for low, high in pairwise(edges):
                half = (high - low) / 2
                for node, weight in exact_legendre(round(count * (dps + 12)), mp.prec):
                    x = low + half * (1 + mp.make_mpf(node))
                    share = half * mp.make_mpf(weight) * x ** (D - 1) * mp.exp(-x * x / 2) / norm
                    rows = _ball_rows(x, D, R, c, K, mp.inf, 0, lambda a: _normal(a, mp.prec))
                    found = {name: total + share * rows[name] for name, total in found.items()}
            errors = {n: abs(found[n] - last[n]) / max(1, abs(found[n])) for n in last}
            last = found
            if errors and max(errors.values()) <= mp.mpf(10) ** (-dps - 6):
                return {"partial": mp.mpf(0), "saturated": mp.mpf(0), **found}
        worst = max(errors, key=errors.__getitem__)
        raise ValuesError(
            f"The integral for {worst} did not reach {dps} digits (error {mp.nstr(errors[worst], 2)}).", "fewer digits"
        )


_NAMES = ("norm", "lam", "lam2", "touching", "whole", "psi", "slope2")
_LADDER = (0.75, 0.85, 1.1, 1.6, 2.4)  # nodes on a panel, per digit


@lru_cache(maxsize=2)  # one range of the axis ends where the next begins
def _normal(a: Any, _prec: int) -> tuple[Any, Any]:
    return mp.ncdf(a), mp.npdf(a)


def ball_points(
    D: int,
    R: float,
    c: float,
    k: float,
    cap: float,
    levels: Sequence[float],
    project: Callable[[NDArray[np.float64]], Projection],
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """Nodes and weights of a quadrature over the radial and the axial part of the source.

    Parameters
    ----------
    D, R, c, k, cap : int, float
        As for :func:`ball_averages`.
    levels : sequence of float
        Multipliers at which an integrand may jump.
    project : callable
        Gives the projections of sources, with multipliers up to ``cap``.

    Returns
    -------
    rows : dict
        The quantities of the projection at the nodes, by name.
    weights : ndarray
        They sum to one.
    """
    levels = [cap, *(v for v in levels if 0 < v < cap)]
    x, wx = axial_panels(D, R, c, k, levels=levels)
    nodes, weights = legendre(24)
    top = (k + R * x) / c
    low = k / c - (c * x / R if R > 0 else np.inf)
    edges = [top, np.maximum(low, top - 60)]
    for lam in levels:
        edges.append((R * x - lam * (R * R + c * c)) / c + k / c)  # the multiplier has this value while touching
        edges.append(np.full_like(x, k / c - c * lam))  # ... and at the tip
    table = np.sort(np.clip(np.stack([*edges, np.full_like(x, -12.0), np.full_like(x, 12.0)]), -12.0, 12.0), axis=0)
    fine = np.concatenate([table[:-1] + (table[1:] - table[:-1]) * j / 3 for j in range(3)] + [table[-1:]])
    fine = np.sort(fine, axis=0)
    half = (fine[1:] - fine[:-1]) / 2
    y = fine[:-1, :, None] + half[:, :, None] * (1 + nodes)
    w = half[:, :, None] * weights * np.exp(-y * y / 2) / np.sqrt(2 * np.pi) * wx[None, :, None]
    X = np.broadcast_to(x[None, :, None], y.shape)
    t = np.zeros((y.size, D + 1))
    t[:, 0], t[:, -1] = X.ravel(), y.ravel()
    p = project(t)
    level = c * p.v[:, -1] - R * np.sqrt(np.square(p.v[:, :-1]).sum(axis=1))
    level = np.where((p.regime != INTERIOR) & (p.regime != SATURATED), k, level)
    rows = {
        "lam": p.lam,
        "gap2": np.square(p.lam_s).sum(axis=1),
        "v2": np.square(p.v).sum(axis=1),
        "gv": level,
        "td": (t * p.lam_s).sum(axis=1),
        "psi": p.psi,
        "regime": p.regime,
    }
    total = w.ravel()
    return rows, total / total.sum()
