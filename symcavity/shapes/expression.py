"""Convex sets of a user's: from a SymPy expression for g_S, or from a function that returns anchor points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from symcavity.errors import DeclarationError, NotConverged, NotConvex, ValuesError
from symcavity.shapes.base import (
    INTERIOR,
    PARTIAL,
    TOUCHING,
    WHOLE,
    Array,
    Projection,
    Shape,
    batch,
    bound,
    finish,
    vectors,
)
from symcavity.shapes.projection import active_set, block_size

STEP = 1e-4
"""Step of the central differences that give psi where no Hessian does."""


class SmoothShape(Shape):
    """A convex set known by its anchor function: cutting planes, then Newton's method where g_S is smooth.

    Subclasses give `anchor`, `hessian` and `dimension`.
    """

    _differences = False

    def support(self, V: ArrayLike) -> Array:
        """Return V.s at the anchor point s(V), shape (...)."""
        V = vectors(V, self.dimension, "V")
        return np.asarray((V * self.anchor(V)).sum(axis=-1))

    def _oracle(self, v: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        point = self.anchor(v)
        return point, (v * point).sum(axis=1), np.zeros(len(v), dtype=np.int64)

    def _check_origin(self) -> None:
        """Make sure that some plane through the origin leaves S on one side of it."""
        d = self.dimension
        scale = float(np.abs(self.anchor(np.eye(d))).max()) or 1.0
        found = active_set(np.zeros((1, d)), scale, self._oracle, 1e-7 * scale, 400)
        if not found.finished[0] or np.linalg.norm(found.v[0]) > 1e6:
            raise DeclarationError(
                "The origin is in the convex hull of the set (no V with g_S(V) > 0 was found).",
                "a set that a plane through the origin leaves on one side",
                "add a coordinate for the distance of the centre.",
            )

    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project onto {v : g_S(v) >= kappa}.

        Where g_S is smooth at the projection, Newton's method gives it to rounding and psi comes from the
        Hessian (A.10).  Elsewhere (tips, edges) the projection is that of the cutting planes, to 1e-9, and
        psi and the number of absorbed directions come from central differences of the projection itself.

        Raises
        ------
        NotConverged
            If the cutting planes do not close on a sample.
        """
        t = batch(t, self.dimension)
        kappa = bound(kappa)
        block = block_size(self.dimension)
        parts = [self._block(t[start : start + block], kappa) for start in range(0, max(1, len(t)), block)]
        v, lam, anchor, regime, absorbed, psi = (np.concatenate(part) for part in zip(*parts, strict=True))
        return finish(t, v, lam, anchor, regime, absorbed, psi)

    def _planes(self, t: Array, kappa: float) -> tuple[Array, Array]:
        size = max(1.0, float(np.abs(t).max(initial=0.0)))
        scale = float(np.abs(self.anchor(np.eye(self.dimension))).max()) or 1.0
        found = active_set(t, kappa, self._oracle, 1e-10 * (abs(kappa) + scale * size), 400 + 40 * self.dimension)
        if not found.finished.all():
            raise NotConverged(
                f"The cutting planes did not close on {int((~found.finished).sum())} samples.",
                found.v,
                hint="check that the anchor function returns exact minimisers.",
            )
        return found.v, found.weights.sum(axis=1)

    def _block(self, t: Array, kappa: float) -> tuple[Any, ...]:
        v, lam = self._planes(t, kappa)
        count, d = t.shape
        regime = np.where(lam > 0, PARTIAL, INTERIOR)
        absorbed, psi = np.zeros(count, dtype=np.int64), np.zeros(count)
        anchor = self.anchor(v)
        rows = np.flatnonzero(lam > 0)
        anchor[rows] = (v[rows] - t[rows]) / lam[rows, None]
        if rows.size:
            good, v2, lam2, s2, psi2 = self._newton(t[rows], v[rows], lam[rows], kappa)
            chosen = rows[good]
            v[chosen], lam[chosen], anchor[chosen] = v2[good], lam2[good], s2[good]
            psi[chosen], regime[chosen], absorbed[chosen] = psi2[good], TOUCHING, 1
            rows = rows[np.logical_not(good)]
        if rows.size:
            gradient = self._jacobian(t[rows], kappa)
            psi[rows] = np.trace(gradient, axis1=1, axis2=2) - d
            size = np.abs(np.linalg.eigvalsh((gradient + gradient.transpose(0, 2, 1)) / 2))
            absorbed[rows] = (size < 1e-3).sum(axis=1)
            far = -self.support(-v[rows])
            whole = far - kappa <= 1e-5 * (abs(kappa) + np.abs(far)) + 1e-7
            flat = whole & (absorbed[rows] == d)
            regime[rows] = np.where(flat, WHOLE, np.where(absorbed[rows] == 1, TOUCHING, PARTIAL))
            psi[rows[flat]] = -float(d)
        return v, lam, anchor, regime, absorbed, psi

    def _jacobian(self, t: Array, kappa: float) -> Array:
        d = self.dimension
        shifts = STEP * np.concatenate([np.eye(d), -np.eye(d)])
        v, _ = self._planes((t[:, None, :] + shifts).reshape(-1, d), kappa)
        v = v.reshape(len(t), 2, d, d)
        return np.asarray((v[:, 0] - v[:, 1]).transpose(0, 2, 1) / (2 * STEP))

    def _curvature(self, v: Array) -> Array:
        """Return the Hessian with NaN where there is none."""
        raise NotImplementedError

    def _newton(self, t: Array, v: Array, lam: Array, kappa: float) -> tuple[Array, ...]:
        """Solve v - t = lam grad g(v), g(v) = kappa from the cutting planes' answer; tell where it works."""
        start, d = v.copy(), self.dimension
        v, lam = v.copy(), lam.copy()
        system = np.zeros((len(v), d + 1, d + 1))
        eye = np.eye(d)
        good = np.ones(len(v), dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(12):
                s, H = self.anchor(v), self._curvature(v)
                right = np.concatenate(
                    [t + lam[:, None] * s - v, (kappa - (v * s).sum(axis=1))[:, None]], axis=1
                )
                good &= np.isfinite(H).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
                system[:, :d, :d] = eye - lam[:, None, None] * np.where(good[:, None, None], H, 0.0)
                system[:, :d, d], system[:, d, :d] = -s, s
                system[~good] = np.eye(d + 1)
                try:
                    step = np.linalg.solve(system, np.where(good[:, None], right, 0.0)[:, :, None])[:, :, 0]
                except np.linalg.LinAlgError:
                    good[:] = False
                    break
                v, lam = v + step[:, :d], lam + step[:, d]
                if np.abs(step).max() < 1e-14 * (1 + np.abs(v).max()):
                    break
            s, H = self.anchor(v), self._curvature(v)
            size = 1 + np.abs(t).max(axis=1)
            miss = np.maximum(
                np.abs(v - t - lam[:, None] * s).max(axis=1), np.abs((v * s).sum(axis=1) - kappa)
            )
            good &= (miss < 1e-11 * size) & (np.abs(v - start).max(axis=1) < 1e-3 * size) & (lam > 0)
            good &= np.isfinite(H).all(axis=(1, 2)) & ~self._kinked(v, s)
        H = np.where(good[:, None, None], H, 0.0)
        P = np.linalg.inv(eye - np.where(good, lam, 0.0)[:, None, None] * H)
        Ps = np.matmul(P, np.where(good[:, None], s, 1.0)[:, :, None])[:, :, 0]
        below = (np.where(good[:, None], s, 1.0) * Ps).sum(axis=1)
        psi = np.trace(P, axis1=1, axis2=2) - d - np.square(Ps).sum(axis=1) / below
        return good, v, lam, s, psi

    def _kinked(self, v: Array, s: Array) -> NDArray[np.bool_]:
        """Tell where the anchor jumps very near v, so that a Hessian there means nothing."""
        rng = np.random.default_rng(7)
        size = np.sqrt(np.square(v).sum(axis=1, keepdims=True)) + 1e-300
        kinked = np.zeros(len(v), dtype=bool)
        for _ in range(4):
            near = self.anchor(v + 1e-9 * size * rng.choice([-1.0, 1.0], v.shape))
            kinked |= np.abs(near - s).max(axis=1) > 1e-3 * (1e-12 + np.abs(s).max(axis=1))
        return kinked


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
        If g is not concave (which includes every expression that is no support function of this kind).
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
        Maps V to a point s of S that minimises V.s; called with an array (samples, D+1) if it takes one,
        otherwise with one vector at a time.
    dimension : int
        D+1.

    Raises
    ------
    DeclarationError
        If it does not return finite vectors of that dimension, depends on the length of V, or the origin is
        in the hull.
    NotConvex
        If another of its own points is nearer than the one that it returns, so that it is no anchor function.
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
                "a function that returns the maximiser is turned into this one by s(-V).",
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
    function = sympy.lambdify(symbols, outputs, modules="numpy", cse=True)

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
