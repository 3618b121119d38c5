"""Convex sets of a user's: from a SymPy expression for g_S, or from a function that returns anchor points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike

from symcavity.errors import DeclarationError, NotConvex, ValuesError
from symcavity.shapes.base import Array, vectors
from symcavity.shapes.smooth import SmoothShape


class ExpressionShape(SmoothShape):
    """A convex set given by a SymPy expression for its support function g_S.

    Parameters
    ----------
    g : sympy.Expr
        g_S(V) = min over s in S of V.s: concave, homogeneous of degree one, positive somewhere.
    V : sequence of sympy.Symbol
        Its D+1 arguments in order.

    Raises
    ------
    DeclarationError
        If the symbols do not match, g is not homogeneous of degree one, or the origin is in the hull.
    NotConvex
        If g is not concave (which includes every expression that is not a support function of this kind).

    Examples
    --------
    >>> from sympy import sqrt, symbols
    >>> from symcavity import ExpressionShape
    >>> a, b, c = symbols('a b c')
    >>> disc = ExpressionShape(c - sqrt(a**2 + b**2), [a, b, c])
    >>> float(disc.support([3, 4, 7]))
    2.0
    """

    def __init__(self, g: Any, V: Sequence[sympy.Symbol]) -> None:
        self.V: tuple[sympy.Symbol, ...] = tuple(V)
        if (
            not self.V
            or not all(isinstance(x, sympy.Symbol) for x in self.V)
            or len(set(self.V)) < len(self.V)
        ):
            raise DeclarationError(f"V is {V!r}.", "a sequence of different SymPy symbols, one per component")
        if not isinstance(g, sympy.Expr):
            raise DeclarationError(f"g is {g!r}.", "a SymPy expression in the symbols V")
        if stray := sorted(map(str, g.free_symbols - set(self.V))):
            raise DeclarationError(
                f"g holds the symbols {stray}, which are not among V.",
                "an expression in V alone",
                "substitute values for the parameters first.",
            )
        reals = [sympy.Symbol(x.name, real=True) for x in self.V]
        self.g: sympy.Expr = g
        inner = g.xreplace(dict(zip(self.V, reals, strict=True)))
        gradient = [sympy.diff(inner, x) for x in reals]
        # A Dirac delta sits at a kink; beside the kink, where a Hessian exists, it is zero.
        second = [
            [sympy.diff(y, x).replace(sympy.DiracDelta, lambda *_: sympy.Integer(0)) for x in reals]
            for y in gradient
        ]
        self._g = _compile(reals, [inner])
        self._gradient = _compile(reals, gradient)
        self._hessian = _compile(reals, [y for row in second for y in row])
        self._check(inner, reals)
        self._check_origin()

    def __repr__(self) -> str:
        return f"ExpressionShape({self.g}, {self.V})"

    @property
    def dimension(self) -> int:
        """D+1, the number of arguments."""
        return len(self.V)

    def _check(self, g: sympy.Expr, reals: list[sympy.Symbol]) -> None:
        rng = np.random.default_rng(20)
        d = self.dimension
        points = np.concatenate(
            [rng.normal(size=(200, d)), rng.normal(size=(40, d)) * rng.uniform(0.01, 1, d)]
        )
        value = self._g(points)[:, 0]
        if not np.isfinite(value).all():
            raise DeclarationError(
                f"g = {g} is not a finite real number at {int((~np.isfinite(value)).sum())} of "
                f"{len(points)} seeded points.",
                "g_S defined for every V",
            )
        size = 1e-9 * (1 + np.abs(value).max())
        factor = sympy.Symbol("factor", positive=True)
        scaled = g.xreplace({x: factor * x for x in reals})
        if sympy.expand(scaled - factor * g) != 0:
            other = self._g(2.5 * points)[:, 0]
            if np.abs(other - 2.5 * value).max() > size:
                raise DeclarationError(
                    f"g = {g} is not homogeneous of degree one: g(2.5 V) differs from 2.5 g(V).",
                    "g(c V) = c g(V) for c > 0, as min over s of V.s has",
                )
        a, b = points, points[rng.permutation(len(points))]
        worst = value + self._g(b)[:, 0] - self._g(a + b)[:, 0]
        H = self._hessian(points).reshape(-1, d, d)
        smooth = H[np.isfinite(H).all(axis=(1, 2))]
        top = np.linalg.eigvalsh((smooth + smooth.transpose(0, 2, 1)) / 2).max(initial=0.0)
        if worst.max() > size or top > 1e-7 * (1 + np.abs(smooth).max(initial=0.0)):
            raise NotConvex(
                f"g = {g} is not concave: at a seeded pair g(a)+g(b) exceeds g(a+b) by "
                f"{max(worst.max(), 0.0):.3g}, and the largest eigenvalue of the Hessian is {top:.3g}.",
                "g_S(V) = min over s of V.s, which is concave",
                "a support function with max is turned into this one by -g(-V).",
            )

    def support(self, V: ArrayLike) -> Array:
        """Return g_S(V), shape (...)."""
        V = vectors(V, self.dimension, "V")
        return np.asarray(self._g(V.reshape(-1, self.dimension))[:, 0].reshape(V.shape[:-1]))

    def anchor(self, V: ArrayLike) -> Array:
        """Return the gradient of g_S, at a point very near where there is none; shape (..., D+1)."""
        V = vectors(V, self.dimension, "V")
        flat = V.reshape(-1, self.dimension)
        out = self._gradient(flat)
        bad = ~np.isfinite(out).all(axis=1)
        if bad.any():
            rng = np.random.default_rng(3)
            nudge = 1e-9 * (1e-3 + np.abs(flat[bad]).max(axis=1, keepdims=True))
            out[bad] = self._gradient(flat[bad] + nudge * rng.normal(size=flat[bad].shape))
        return np.asarray(out.reshape(V.shape))

    def _curvature(self, v: Array) -> Array:
        return np.asarray(self._hessian(v).reshape(-1, self.dimension, self.dimension))

    def hessian(self, V: ArrayLike) -> Array:
        """Return the Hessian of g_S, shape (..., D+1, D+1).

        Raises
        ------
        ValuesError
            Where g_S has none.
        """
        V = vectors(V, self.dimension, "V")
        out = self._curvature(V.reshape(-1, self.dimension))
        if not np.isfinite(out).all():
            raise ValuesError("g_S is not twice differentiable at some V.", "other V")
        return out.reshape(*V.shape, self.dimension)

    def symbolic_support(self, V: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return g with its arguments replaced by V."""
        return self.g.xreplace(dict(zip(self.V, self._components(V), strict=True)))


class CallableShape(SmoothShape):
    """A convex set given by a function that returns its anchor points.

    Parameters
    ----------
    anchor_function : callable
        Maps V to a point s of S that minimizes V.s; called with an array (samples, D+1) if it takes one,
        otherwise with one vector at a time.
    dimension : int
        D+1.

    Raises
    ------
    DeclarationError
        If it does not return finite vectors of that dimension, depends on the length of V, or the origin is
        in the hull.
    NotConvex
        If another of its own points is nearer than the one that it returns, so that it is not an anchor function.

    Examples
    --------
    >>> import numpy as np
    >>> from symcavity import CallableShape
    >>> points = np.array([[1.0, 1.0], [-1.0, 1.0]])
    >>> pair = CallableShape(lambda v: points[np.argmin(v @ points.T, axis=-1)], dimension=2)
    >>> float(pair.support(np.array([2.0, 3.0])))
    1.0
    """

    def __init__(self, anchor_function: Callable[[Array], ArrayLike], dimension: int) -> None:
        if not callable(anchor_function):
            raise DeclarationError(f"{anchor_function!r} cannot be called.", "a function of V that returns s")
        if isinstance(dimension, bool) or not isinstance(dimension, (int, np.integer)) or dimension < 1:
            raise DeclarationError(f"dimension is {dimension!r}.", "an integer >= 1, namely D+1")
        self._dimension, self._function = int(dimension), anchor_function
        rng = np.random.default_rng(21)
        points = rng.normal(size=(64, self._dimension))
        self._vectorised = self._takes_many(points)
        anchors = self.anchor(points)
        heights = points @ anchors.T
        own = np.diagonal(heights)
        size = 1e-7 * (1e-300 + np.abs(anchors).max() * np.abs(points).max())
        stretched = (points * self.anchor(2.5 * points)).sum(axis=1)
        if np.abs(stretched - own).max() > size:
            raise DeclarationError(
                "The anchor of 2.5 V is not an anchor of V, so that V.s(V) is not homogeneous of degree one.",
                "a function of the direction of V alone",
            )
        if (own - heights.min(axis=1)).max() > size:
            raise NotConvex(
                "At a seeded V another point of the set has a smaller V.s than the one returned; V.s(V) is "
                "not concave.",
                "s(V) = argmin over s in S of V.s",
                "a function that returns the maximizer is turned into this one by s(-V).",
            )
        self._check_origin()

    def __repr__(self) -> str:
        return f"CallableShape({getattr(self._function, '__name__', 'function')}, {self._dimension})"

    def _takes_many(self, points: Array) -> bool:
        single = self._call(points[:3], one=True)
        try:
            many = np.asarray(self._function(points[:3].copy()), dtype=np.float64)
        except Exception:  # noqa: BLE001 - a user's function of one vector may fail in any way on many
            return False
        return many.shape == single.shape and bool(np.allclose(many, single, rtol=1e-9, atol=1e-12))

    def _call(self, V: Array, *, one: bool) -> Array:
        given = [self._function(row.copy()) for row in V] if one else self._function(V.copy())
        try:
            out = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise DeclarationError(
                "The anchor function does not return numbers.", "a vector of D+1 numbers"
            ) from None
        if out.shape != V.shape or not np.isfinite(out).all():
            raise DeclarationError(
                f"The anchor function returned the shape {out.shape[1:]} or entries that are not finite.",
                f"finite vectors of {self._dimension} components (D+1)",
            )
        return out

    @property
    def dimension(self) -> int:
        """D+1."""
        return self._dimension

    def anchor(self, V: ArrayLike) -> Array:
        """Return the user's anchor points, shape (..., D+1)."""
        V = vectors(V, self.dimension, "V")
        flat = V.reshape(-1, self._dimension)
        nothing = np.logical_not(np.any(flat, axis=1))
        if nothing.any():  # every point of S is an anchor of V = 0
            flat = np.where(nothing[:, None], np.eye(self._dimension)[-1], flat)
        return self._call(flat, one=not self._vectorised).reshape(V.shape)

    def _curvature(self, v: Array) -> Array:
        d = self._dimension
        size = 1e-5 * np.sqrt(np.square(v).sum(axis=1)) + 1e-300
        shifts = np.concatenate([np.eye(d), -np.eye(d)])
        near = self.anchor((v[:, None, :] + size[:, None, None] * shifts).reshape(-1, d)).reshape(-1, 2, d, d)
        H = (near[:, 0] - near[:, 1]) / (2 * size[:, None, None])
        return np.asarray((H + H.transpose(0, 2, 1)) / 2)

    def hessian(self, V: ArrayLike) -> Array:
        """Return the Hessian of g_S by central differences of the anchor, shape (..., D+1, D+1).

        Raises
        ------
        ValuesError
            Where the anchor jumps.
        """
        V = vectors(V, self.dimension, "V")
        flat = V.reshape(-1, self._dimension)
        if self._kinked(flat, self.anchor(flat)).any():
            raise ValuesError("The anchor jumps at some V: g_S has no Hessian there.", "other V")
        return self._curvature(flat).reshape(*V.shape, self._dimension)


def _compile(symbols: list[sympy.Symbol], outputs: list[sympy.Expr]) -> Callable[[Array], Array]:
    """Return a function of (samples, symbols) arrays with (samples, outputs) values, NaN where undefined."""
    # where several arguments of Min are equal, halves of steps do not add up to a gradient
    steps = {"Heaviside": lambda x, *_: np.heaviside(x, np.nan)}
    function = sympy.lambdify(symbols, outputs, modules=[steps, "numpy"], cse=True)

    def evaluate(V: Array) -> Array:
        with np.errstate(all="ignore"):
            columns = function(*V.T)
        out = np.empty((len(V), len(outputs)))
        for k, column in enumerate(columns):
            column = np.asarray(column)
            out[:, k] = (
                np.where(np.isreal(column), column.real, np.nan) if np.iscomplexobj(column) else column
            )
        return out

    return evaluate
