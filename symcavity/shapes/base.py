"""What every convex set offers: support function, anchor points, curvature, projection."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from symcavity.errors import DeclarationError, ValuesError

Array = NDArray[np.float64]

INTERIOR, TOUCHING, PARTIAL, WHOLE, SATURATED = 0, 1, 2, 3, 4
"""Regimes: not supporting; one anchor point; a proper face; the whole set on the margin plane; with slack, the
multiplier at its bound and the set beyond the margin plane."""


class ShapeWarning(UserWarning):
    """A shape that was put right, or whose numbers need care; the message names the cause.

    Examples
    --------
    >>> import warnings
    >>> from symcavity import ShapeWarning
    >>> warnings.simplefilter('error', ShapeWarning)  # an error in place of the warning
    >>> warnings.resetwarnings()
    """


@dataclass(frozen=True)
class Projection:
    """Projections v = argmin |v - t|^2 / 2 subject to g_S(v) >= kappa, one per sample.

    With slack they are v = argmin |v - t|^2 / 2 + cap max(0, kappa - g_S(v)); the samples that use it are
    saturated: lam = cap, g_S(v) < kappa, and s is the point of the hull nearest to -t/cap.

    Attributes
    ----------
    v : ndarray, shape (samples, D+1)
        The projections.
    lam_s : ndarray, shape (samples, D+1)
        v - t, which is S^w kappa times the paper's lambda s.
    lam : ndarray, shape (samples,)
        The multiplier of the constraint, >= 0, in the units of t.
    anchor : ndarray, shape (samples, D+1)
        The point s of S with v - t = lam s; where lam = 0, the point of S that is closest to the margin
        plane.
    regime : ndarray of int, shape (samples,)
        0 interior, 1 touching at one anchor point, 2 supporting on a proper face of S, 3 the whole of S on
        the margin plane (the tip of the cone of feasible v), 4 saturated.
    absorbed : ndarray of int, shape (samples,)
        Dimension of the kernel of dv/dt: 0 in the interior, 1 where S touches at one point, more on faces.
        Saturated, it is the dimension of the flat face of S that s lies in: the multiplier does not move, and
        a single anchor point absorbs nothing.
    psi : ndarray, shape (samples,)
        Divergence of v(t) - t: (A.10) where g_S is differentiable, minus the number of absorbed directions on
        flat faces, -(D+1) at the tip; saturated, minus the divergence of the nearest point.

    Examples
    --------
    >>> from symcavity import Ball
    >>> found = Ball(2, 1).project([[0.0, 0.0, 0.5]], kappa=0)
    >>> type(found).__name__
    'Projection'
    """

    v: Array
    lam_s: Array
    lam: Array
    anchor: Array
    regime: NDArray[np.int8]
    absorbed: NDArray[np.int64]
    psi: Array

    @property
    def supporting(self) -> NDArray[np.bool_]:
        """Samples with lam > 0."""
        return self.regime > INTERIOR

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Samples that support at exactly one anchor point."""
        return self.regime == TOUCHING

    @property
    def fully_supporting(self) -> NDArray[np.bool_]:
        """Samples with the whole of S on the margin plane."""
        return self.regime == WHOLE


@dataclass(frozen=True)
class Nearest:
    """Points of the hull of S that are nearest to given ones, one per sample.

    Attributes
    ----------
    s : ndarray, shape (samples, D+1)
        The Euclidean projection of x on the hull.
    jacobian : ndarray, shape (samples, D+1, D+1)
        ds/dx, symmetric, with eigenvalues in [0, 1].
    free : ndarray of int, shape (samples,)
        Directions in which s follows x freely (the eigenvalue 1 of the jacobian): the dimension of the flat face
        in which s lies, 0 at a corner and where the surface is curved.
    """

    s: Array
    jacobian: Array
    free: NDArray[np.int64]

    @property
    def divergence(self) -> Array:
        """The trace of ds/dx, shape (samples,)."""
        return np.asarray(np.einsum("kaa->k", self.jacobian))


def number(value: Any, name: str) -> tuple[sympy.Expr, bool]:
    """Read a number that a user gave.

    Parameters
    ----------
    value : int, Fraction, Decimal, str, float or sympy.Expr
        Decimal strings such as ``"0.5"`` are exact.
    name : str
        What it is, for the messages.

    Returns
    -------
    expression : sympy.Expr
        The number (or an expression in symbols).
    exact : bool
        False if a float took part.

    Raises
    ------
    DeclarationError
        If it is not a real number.
    """
    supported = "an integer, a Fraction, a SymPy number, a decimal string such as '0.5', or a float"
    if isinstance(value, (bool, np.bool_)):
        raise DeclarationError(f"{name} is {value!r}.", supported)
    if isinstance(value, sympy.Expr):
        if value.is_real is False or value.is_finite is False or value is sympy.nan:
            raise DeclarationError(f"{name} is {value}.", "a finite real number")
        return value, not value.has(sympy.Float)
    if isinstance(value, Integral):
        return sympy.Integer(int(value)), True
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator), True
    if isinstance(value, (str, Decimal)):
        try:
            read = sympy.Rational(str(value))
        except (TypeError, ValueError, ZeroDivisionError):
            raise DeclarationError(f"{name} is {value!r}.", supported) from None
        if not read.is_finite:
            raise DeclarationError(f"{name} is {value!r}.", supported)
        return read, True
    if isinstance(value, Real):
        if not math.isfinite(float(value)):
            raise DeclarationError(f"{name} is {value!r}.", "a finite number")
        return sympy.Float(float(value)), False
    raise DeclarationError(f"{name} is {value!r}, of type {type(value).__name__}.", supported)


def show(value: sympy.Expr) -> str:
    """Print a number as a user would type it."""
    return f"{float(value):.12g}" if isinstance(value, sympy.Float) else str(value)


def vectors(values: ArrayLike, dimension: int, name: str) -> Array:
    """Read an array of vectors with `dimension` components along the last axis.

    Raises
    ------
    ValuesError
        If the last axis is of another length, or an entry is not finite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValuesError(
            f"{name} is not an array of numbers.", f"numbers of shape (..., {dimension})"
        ) from None
    if array.ndim == 0 or array.shape[-1] != dimension:
        raise ValuesError(f"{name} has the shape {array.shape}.", f"a last axis of length {dimension} (D+1)")
    if not np.isfinite(array).all():
        raise ValuesError(f"{name} has entries that are NaN or infinite.", "finite numbers")
    return array


def bound(kappa: Any) -> float:
    """Read the bound on g_S of a numerical projection; of either sign, because a bias shifts it.

    Raises
    ------
    ValuesError
        If it is not a finite number.
    """
    try:
        expression, _ = number(kappa, "kappa")
        return float(expression)
    except (DeclarationError, TypeError) as error:
        raise ValuesError(str(error)) from None


def margin(kappa: Any) -> float:
    """Read a margin.

    Raises
    ------
    ValuesError
        If it is not a finite number >= 0.
    """
    value = bound(kappa)
    if value < 0:
        raise ValuesError(f"kappa is {kappa}.", "kappa >= 0")
    return value


class Shape(ABC):
    """A convex set S in R^(D+1) whose hull does not hold the origin.

    Only the convex hull matters, because classification is linear.  Vectors have their D+1 components along
    the last axis; everything is vectorized over the axes before it.

    Examples
    --------
    >>> from symcavity import Ball, Shape
    >>> isinstance(Ball(2, 1), Shape)
    True
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """D+1, the dimension of the space that S is given in."""

    @abstractmethod
    def support(self, V: ArrayLike) -> Array:
        """Return g_S(V) = min over s in S of V.s, shape (...)."""

    @abstractmethod
    def anchor(self, V: ArrayLike) -> Array:
        """Return a point s of S with V.s = g_S(V), shape (..., D+1): the gradient of g_S, if any."""

    @abstractmethod
    def hessian(self, V: ArrayLike) -> Array:
        """Return the Hessian of g_S, shape (..., D+1, D+1).

        Raises
        ------
        ValuesError
            Where g_S is not differentiable.
        """

    @abstractmethod
    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project t (samples, D+1) onto {v : g_S(v) >= kappa}: equation 109 in the units t = kappa T."""

    @abstractmethod
    def nearest(self, x: ArrayLike) -> Nearest:
        """Return the points of the hull of S that are nearest to x (samples, D+1), with their derivative."""

    def symbolic_support(self, V: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return g_S as a SymPy expression in the components V, where there is one.

        Raises
        ------
        DeclarationError
            If this shape has no expression.
        """
        del V
        raise DeclarationError(
            f"{type(self).__name__} has no expression for its support function.",
            "Ball, Ellipsoid, Segment, TwoPoints, PointCloud, Polytope, ExpressionShape",
        )

    # -- averages over Gaussian sources; a set that says nothing is averaged over samples -----------------

    @property
    def has_many_digits(self) -> bool:
        """Whether `exact_averages` gives any number of digits."""
        return False

    @property
    def has_nodes(self) -> bool:
        """Whether `nodes` gives a quadrature."""
        return False

    def averages(self, k: float, cap: float = math.inf, rho: float = 0.0) -> dict[str, Any] | None:
        """Return averages of projections in double by integrals of few dimensions; None if there are none.

        Parameters
        ----------
        k : float
            The bound on g.
        cap : float
            The largest multiplier.
        rho : float
            By how much the bound is missed, per multiplier.

        Returns
        -------
        dict or None
            norm <|v-t|^2>, lam <lam>, lam2 <lam^2>, touching, partial, whole, saturated (probabilities), psi <psi>,
            and of balls slope2 <sum of squares of d(v - t)/dt>.
        """
        del k, cap, rho
        return None

    def exact_averages(self, k: Any, dps: int) -> dict[str, Any]:
        """Return the same to ``dps`` digits, where the multiplier has no bound."""
        del k
        raise ValuesError(f"{self!r} is averaged in double precision: it has no {dps} digits.", "dps <= 15")

    def nodes(self, k: float, cap: float, levels: Sequence[float]) -> tuple[dict[str, Any], Array]:
        """Return projections at the nodes of a quadrature, by name, and its weights.

        Parameters
        ----------
        k, cap : float
            The bound on g, and the largest multiplier.
        levels : sequence of float
            Multipliers at which an integrand may jump.
        """
        del k, cap, levels
        raise ValuesError(f"{self!r} is averaged over samples.", "balls, segments and pairs of points")

    def softened(self, t: Array, k: float, rho: float) -> tuple[Array, Array, Projection] | None:
        """Project with quadratic slack, by a set of the same kind; None if there is none.

        Returns
        -------
        tuple or None
            The multipliers, the anchor points, and the projections on that set.
        """
        del t, k, rho
        return None

    def raised(self, x: float) -> Shape | None:
        """Return the set with one more coordinate, of value x, as a set of the same kind; None if it has another."""
        del x
        return None

    def _components(self, V: Sequence[sympy.Expr]) -> list[sympy.Expr]:
        listed = list(V)
        if len(listed) != self.dimension:
            raise DeclarationError(f"{len(listed)} components were given.", f"{self.dimension} (D+1) of them")
        return listed


def finish(
    t: Array, v: Array, lam: Array, anchor: Array, regime: NDArray[Any], absorbed: NDArray[Any], psi: Array
) -> Projection:
    """Assemble a projection, with the zeros of the interior put in."""
    inside = regime == INTERIOR
    lam, psi, absorbed = np.where(inside, 0.0, lam), np.where(inside, 0.0, psi), np.where(inside, 0, absorbed)
    v = np.where(inside[:, None], t, v)
    return Projection(v, v - t, lam, anchor, regime.astype(np.int8), absorbed.astype(np.int64), psi)


def batch(t: ArrayLike, dimension: int, name: str = "t") -> Array:
    """Read sources t as (samples, D+1); a single vector is one sample."""
    array = vectors(t, dimension, name)
    if array.ndim > 2:
        raise ValuesError(f"{name} has the shape {array.shape}.", f"(samples, {dimension})")
    return np.atleast_2d(array)
