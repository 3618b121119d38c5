"""Capacity of a manifold by its averages: the formula of the declaration beside this file, as a number.

In units t = kappa T ~ N(0, 1) the projection is v(t) = argmin |v - t|^2 / 2 subject to g_S(v) >= kappa, and

    1/alpha = <|v - t|^2>,      S^w = 1 + alpha <psi> = alpha kappa <lam>,      psi = div (v - t),

where v - t = lam s.  The two forms of S^w are equal by Stein's lemma (A.14); the second is exactly 0 at kappa
= 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from symcavity.algebra.precision import given_out, is_mpf, mp
from symcavity.derivations.manifold import g, problem
from symcavity.errors import DeclarationError, ValuesError
from symcavity.evaluate.binding import bind
from symcavity.shapes import Ellipsoid, Shape
from symcavity.shapes.base import INTERIOR, PARTIAL, TOUCHING, WHOLE, number
from symcavity.shapes.sampling import SCRAMBLES, gaussian_scrambles, sample_size


@dataclass(frozen=True)
class ManifoldCapacity:
    """Capacity of a manifold, and related quantities.

    Attributes
    ----------
    alpha : float or mpmath.mpf
        Largest number of manifolds per dimension that can be separated with margin kappa at norm 1/kappa
        (equation 84).
    S_w : float or mpmath.mpf
        Response of a weight, 1 + alpha <psi> (A.11 with all regimes).
    touching : float or mpmath.mpf
        Fraction of manifolds that support at exactly one anchor point.
    partially_supporting : float or mpmath.mpf
        Fraction that supports on a proper face (flat or curved sets with edges; zero for balls and
        ellipsoids).
    fully_supporting : float or mpmath.mpf
        Fraction with the whole manifold on the margin plane (the field at the tip of the cone).
    mean_lambda, mean_lambda_sq : float or mpmath.mpf
        Moments of the multiplier lambda of the paper over all manifolds; infinite at kappa = 0.
    mean_psi : float or mpmath.mpf
        Average divergence <psi>.
    stderr : float
        Standard error of alpha; 0.0 where the value is an integral.
    stderrs : mapping
        Standard errors of the other values by name; empty where they are integrals.
    samples : int
        Number of sampled sources; 0 for integrals.
    shape : Shape
        The manifold.
    kappa : number
        The margin, as it was given.

    Examples
    --------
    >>> from symcavity import Ball, manifold_capacity
    >>> found = manifold_capacity(Ball(2, 1), kappa=1)
    >>> round(found.alpha, 6), found.stderr == 0
    (0.286454, True)
    """

    alpha: Any
    S_w: Any
    touching: Any
    partially_supporting: Any
    fully_supporting: Any
    mean_lambda: Any
    mean_lambda_sq: Any
    mean_psi: Any
    stderr: float
    shape: Shape
    kappa: Any
    samples: int = 0
    stderrs: Mapping[str, float] = field(default_factory=dict)

    @property
    def supporting(self) -> Any:
        """Fraction with lambda > 0: touching, partially and fully supporting together."""
        return self.touching + self.partially_supporting + self.fully_supporting

    @property
    def theory(self) -> Any:
        """The derived theory, with this set in it: ``capacity.theory.derivation``."""
        return bind(problem.cavity(), {g: self.shape})[0]

    @property
    def interior(self) -> Any:
        """Fraction with lambda = 0."""
        return 1 - self.supporting


def manifold_capacity(
    shape: Shape, *, kappa: Any = 0, dps: int = 15, samples: int | None = None, seed: int = 0
) -> ManifoldCapacity:
    """Return the capacity of randomly embedded copies of a manifold at margin kappa.

    Parameters
    ----------
    shape : Shape
        The manifold, in R^(D+1).
    kappa : number, optional
        Margin >= 0, in units of the weight norm (|w|^2 = N/kappa^2 for unit margin).  Integers, fractions,
        SymPy numbers and decimal strings are exact; a float is taken up to 15 digits.
    dps : int, optional
        Decimal digits.  Above 15 for balls, segments and pairs of points only; the values are then
        ``mpmath.mpf``.
    samples : int, optional
        Number of sampled sources.  None takes the integral where there is one (balls; ellipsoids with up to
        five different radii) and 2^14 samples elsewhere; a number asks for sampling.
    seed : int, optional
        Seed of the scrambled Sobol sequences.

    Returns
    -------
    ManifoldCapacity
        The values; the error bars come from independent scrambles.

    Raises
    ------
    ValuesError
        For a negative kappa, dps < 1, a float above 15 digits, or more digits than the shape's method has.
    DeclarationError
        If `shape` is no shape.

    Notes
    -----
    Chung, Lee and Sompolinsky, Phys. Rev. E 93, 060301 (2016) (balls), Phys. Rev. X 8, 031003 (2018).

    Examples
    --------
    >>> from symcavity import Ball, manifold_capacity
    >>> round(manifold_capacity(Ball(5, 1)).alpha, 12)
    0.333333333333
    """
    if not isinstance(shape, Shape):
        raise DeclarationError(
            f"shape is {shape!r}, of type {type(shape).__name__}.",
            "a shape, for instance Ball(D, R)",
            "PointCloud(array) takes points x dimensions.",
        )
    if isinstance(dps, bool) or not isinstance(dps, Integral) or dps < 1:
        raise ValuesError(f"dps is {dps!r}.", "an integer >= 1")
    size = None if samples is None else sample_size(samples)
    exact_kappa = _margin(kappa, int(dps))
    if isinstance(shape, Ellipsoid):
        shape.numbers()
    if dps > 15:
        return _many_digits(shape, kappa, exact_kappa, int(dps), size)
    k = float(exact_kappa)
    averages = shape.averages(k) if size is None else None
    if averages is not None:
        return _result(averages, k, shape, kappa, 0.0)
    return _sampled(shape, kappa, k, sample_size(None) if size is None else size, seed)


def _margin(kappa: Any, dps: int) -> sympy.Expr | float:
    if type(kappa) is float and dps <= 15 and 0 <= kappa < math.inf:
        return kappa
    try:
        value, exact = number(kappa, "kappa")
    except DeclarationError as error:
        raise ValuesError(error.found, error.supported, error.hint) from None
    if not value.is_Number and (value.free_symbols or not value.is_real):
        raise ValuesError(f"kappa is {kappa}.", "a real number >= 0")
    if float(value) < 0:
        raise ValuesError(f"kappa is {kappa}.", "kappa >= 0")
    if dps > 15 and not exact:
        raise ValuesError(
            f"kappa is the float {kappa!r}, which has no {dps} digits.",
            "floats up to dps=15",
            f"kappa='{kappa}' or a Rational.",
        )
    return value


def _result(a: Mapping[str, Any], k: Any, shape: Shape, kappa: Any, stderr: float, **more: Any) -> ManifoldCapacity:
    alpha = 1 / a["norm"]
    S_w = alpha * k * a["lam"]
    if k > 0:
        mean, square = a["lam"] / (k * S_w), a["lam2"] / (k * S_w) ** 2
    else:
        mean = square = alpha * 0 + (mp.inf if is_mpf(alpha) else np.inf)
    values = [alpha, S_w, a["touching"], a["partial"], a["whole"], mean, square, a["psi"]]
    if not is_mpf(alpha):
        values = [float(x) for x in values]
    alpha, S_w, touching, partial, whole, mean, square, psi = values
    return ManifoldCapacity(
        alpha, S_w, touching, partial, whole, mean, square, psi, stderr, shape, kappa, **more
    )


def _many_digits(shape: Shape, kappa: Any, k: Any, dps: int, size: int | None) -> ManifoldCapacity:
    radii = [R for R in shape.radii if not R.is_zero] if isinstance(shape, Ellipsoid) else []
    if not isinstance(shape, Ellipsoid) or len(set(radii)) > 1 or size is not None:
        raise ValuesError(
            f"{dps} digits were asked for, but {shape!r} is averaged by sampling or by a rule in "
            "double precision.",
            "dps <= 15; balls, segments and pairs of points at any dps",
        )
    if not shape.exact:
        raise ValuesError(
            f"{shape!r} was declared with a float, which has no {dps} digits.",
            "floats up to dps=15",
            "give decimal strings or Rationals.",
        )
    with mp.workdps(dps + 12):
        averages = shape.exact_averages(mp.mpf(sympy.N(k, dps + 15)), dps)
        result = _result(averages, mp.mpf(sympy.N(k, dps + 15)), shape, kappa, 0.0)
    with mp.workdps(dps):
        rounded = {
            name: given_out(+getattr(result, name))
            for name in (
                "alpha",
                "S_w",
                "touching",
                "partially_supporting",
                "fully_supporting",
                "mean_lambda",
                "mean_lambda_sq",
                "mean_psi",
            )
        }
    return ManifoldCapacity(stderr=0.0, shape=shape, kappa=kappa, **rounded)


# Every other shape: projections of quasi-random sources.


def _sampled(shape: Shape, kappa: Any, k: float, samples: int, seed: int) -> ManifoldCapacity:
    rows = []
    for t in gaussian_scrambles(shape.dimension, samples, seed):
        p = shape.project(t, k)
        share = [(p.regime == which).mean() for which in (TOUCHING, PARTIAL, WHOLE)]
        rows.append(
            [
                np.square(p.lam_s).sum(axis=1).mean(),
                p.lam.mean(),
                np.square(p.lam).mean(),
                *share,
                p.psi.mean(),
                (p.regime == INTERIOR).mean(),
            ]
        )
    table = np.array(rows)
    names = ("norm", "lam", "lam2", "touching", "partial", "whole", "psi", "interior")
    mean = dict(zip(names, table.mean(axis=0), strict=True))
    if not mean["norm"] > 0:
        raise ValuesError(
            "No sampled source supports the manifold, so that the capacity was not resolved.",
            "more samples, or a larger kappa",
        )
    alpha = 1 / mean["norm"]

    def error(column: NDArray[np.float64]) -> float:
        return float(column.std(ddof=1) / np.sqrt(SCRAMBLES))

    column = dict(zip(names, table.T, strict=True))
    stderrs = {
        "alpha": error(alpha**2 * column["norm"]),
        "S_w": error(alpha * k * (column["lam"] - alpha * mean["lam"] * column["norm"])),
        "touching": error(column["touching"]),
        "partially_supporting": error(column["partial"]),
        "fully_supporting": error(column["whole"]),
        "mean_psi": error(column["psi"]),
        "mean_lambda": error(column["norm"]) / k**2 if k > 0 else 0.0,
    }
    return _result(mean, k, shape, kappa, stderrs["alpha"], samples=samples, stderrs=stderrs)


__all__ = ["ManifoldCapacity", "manifold_capacity"]
