"""Ellipsoids at a distance from the origin: secular equation, touching and tip regimes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike

from symcavity.errors import DeclarationError, ValuesError
from symcavity.shapes.ball_averages import ball_averages, exact_ball_averages
from symcavity.shapes.base import (
    INTERIOR,
    TOUCHING,
    WHOLE,
    Array,
    Nearest,
    Projection,
    Shape,
    batch,
    bound,
    finish,
    number,
    show,
    vectors,
)
from symcavity.shapes.ellipsoid_averages import ellipsoid_averages


class Ellipsoid(Shape):
    """The set {(R_1 u_1, ..., R_D u_D, center) : |u| <= 1} in R^(D+1).

    Parameters
    ----------
    radii : sequence of numbers
        The D semi-axes R_a >= 0; a zero is a flat direction.
    center : number, optional
        Distance of the center from the origin along the last coordinate, > 0.

    Raises
    ------
    DeclarationError
        For a negative or non-finite radius, no radii at all, or a center that is not positive (origin in the
        hull).

    Examples
    --------
    >>> from symcavity import Ball, Ellipsoid, manifold_capacity
    >>> sets = Ellipsoid([1, 1]), Ball(2, 1)
    >>> len({round(manifold_capacity(shape, kappa=0).alpha, 6) for shape in sets})
    1
    """

    def __init__(self, radii: Iterable[Any], *, center: Any = 1) -> None:
        if isinstance(radii, (str, bytes)) or not isinstance(radii, Iterable):
            raise DeclarationError(
                f"radii is {radii!r}.",
                "a sequence of D numbers",
                "Ball(D, R) has one radius for all directions.",
            )
        read = [number(radius, f"radius {a}") for a, radius in enumerate(radii, start=1)]
        if not read:
            raise DeclarationError("There are no radii.", "at least one")
        self.center, exact = number(center, "center")
        self.radii: tuple[sympy.Expr, ...] = tuple(radius for radius, _ in read)
        self.exact: bool = exact and all(flag for _, flag in read)
        for radius in self.radii:
            if radius.is_negative:
                raise DeclarationError(f"A radius is {radius}.", "radii >= 0")
        if self.center.is_zero or self.center.is_negative:
            raise DeclarationError(
                f"The center is at distance {self.center}, so that the origin is in the hull or behind it.",
                "center > 0",
            )
        self._c: float | None = None
        self._R: Array = np.zeros(0)
        if not self.free_symbols:
            self._c = float(self.center)
            self._R = np.array([float(radius) for radius in self.radii])

    def __repr__(self) -> str:
        center = "" if self.center == 1 else f", center={show(self.center)}"
        return f"Ellipsoid([{', '.join(map(show, self.radii))}]{center})"

    @property
    def D(self) -> int:
        """Number of semi-axes."""
        return len(self.radii)

    @property
    def dimension(self) -> int:
        """D+1."""
        return len(self.radii) + 1

    @property
    def free_symbols(self) -> set[sympy.Symbol]:
        """Symbols in the radii and the distance; numbers need there to be none."""
        found: set[sympy.Symbol] = set(self.center.free_symbols)
        return found.union(*(radius.free_symbols for radius in self.radii))

    def numbers(self) -> tuple[Array, float]:
        """Return the radii and the distance of the center as floats.

        Raises
        ------
        ValuesError
            If there are symbols in them.
        """
        if self._c is None:
            raise ValuesError(
                f"{self!r} has the symbols {sorted(map(str, self.free_symbols))}.",
                "numbers",
                "substitute values before asking for numbers.",
            )
        return self._R, self._c

    def support(self, V: ArrayLike) -> Array:
        """Return g_S(V) = center V_(D+1) - |R V_(1..D)|, shape (...)."""
        R, c = self.numbers()
        V = vectors(V, self.dimension, "V")
        return np.asarray(c * V[..., -1] - np.sqrt(np.square(R * V[..., :-1]).sum(axis=-1)))

    def anchor(self, V: ArrayLike) -> Array:
        """Return the point of S closest to the plane, (-R^2 V / |R V|, center); the center where R V = 0."""
        R, c = self.numbers()
        V = vectors(V, self.dimension, "V")
        scaled = R * V[..., :-1]
        size = np.sqrt(np.square(scaled).sum(axis=-1, keepdims=True))
        out = np.full(V.shape, c)
        out[..., :-1] = -R * scaled / np.where(size > 0, size, 1.0)
        return out

    def hessian(self, V: ArrayLike) -> Array:
        """Return -(R^2 - b b^T) / |R V| in the first D components, b = R^2 V / |R V|; zeros in the last.

        Raises
        ------
        ValuesError
            Where R V = 0 (the tip), unless all radii vanish.
        """
        R, _ = self.numbers()
        V = vectors(V, self.dimension, "V")
        out = np.zeros((*V.shape, self.dimension))
        if not R.any():
            return out
        scaled = R * V[..., :-1]
        size = np.sqrt(np.square(scaled).sum(axis=-1))
        if (size == 0).any():
            raise ValuesError(
                "g_S is not differentiable where V is along the axis of the cone.",
                "V with R V different from zero",
            )
        b = R * scaled / size[..., None]
        out[..., :-1, :-1] = (b[..., :, None] * b[..., None, :] - np.diag(R**2)) / size[..., None, None]
        return out

    def symbolic_support(self, V: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return center V_(D+1) - sqrt(sum R_a^2 V_a^2)."""
        listed = self._components(V)
        inside = sum(
            (radius**2 * x**2 for radius, x in zip(self.radii, listed, strict=False)), sympy.Integer(0)
        )
        spread = self.radii[0] * sympy.Abs(listed[0]) if self.D == 1 else sympy.sqrt(inside)
        return self.center * listed[-1] - spread

    @property
    def has_many_digits(self) -> bool:
        """Whether it is an exact ball."""
        return self.exact and len({R for R in self.radii if not R.is_zero}) < 2

    def averages(self, k: float, cap: float = np.inf, rho: float = 0.0) -> dict[str, Any] | None:
        """Return averages by quadrature in double: with slack, those of balls."""
        R, c = self.numbers()
        radii = np.sort(R[R > 0])[::-1]
        if radii.size == 0 or radii[0] == radii[-1]:
            return ball_averages(max(radii.size, 1), radii[0] if radii.size else 0.0, c, k, cap, rho)
        return ellipsoid_averages(radii, c, k) if cap == np.inf and rho == 0 else None

    def exact_averages(self, k: Any, dps: int) -> dict[str, Any]:
        """Return the averages of a ball to ``dps`` digits."""
        radii = [R for R in self.radii if not R.is_zero]
        return exact_ball_averages(max(len(radii), 1), radii[0] if radii else sympy.Integer(0), self.center, k, dps)

    def softened(self, t: Array, k: float, rho: float) -> tuple[Array, Array, Projection]:
        """Project with quadratic slack.

        A rotation of the last coordinate and of the further one makes of the set one whose center is farther away.
        """
        _, c = self.numbers()
        far = float(np.hypot(c, np.sqrt(rho)))
        turned = t.copy()
        turned[:, -1] *= c / far
        p = self.centred(far).project(turned, k)
        anchor = p.anchor.copy()
        anchor[:, -1] = c
        return p.lam, anchor, p

    def centred(self, center: float) -> Ellipsoid:
        """Return the same set with its center at another distance."""
        return Ellipsoid([float(R) for R in self.numbers()[0]], center=center)

    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project onto {v : g_S(v) >= kappa}; the multiplier is the root of a secular equation.

        With w = center^2 lam/|R v| = s/(1-s), the equation is (1-2s) |R x/(1-s+s R^2/center^2)| = center y
        for the source (x, y) seen from the tip.  It is decreasing on (0, 1), so that a safeguarded iteration
        on the whole batch finds it to the last digit.
        """
        R, c = self.numbers()
        t = batch(t, self.dimension)
        kappa = bound(kappa)
        flat = t[:, :-1][:, R == 0]
        curved = np.ascontiguousarray(t[:, np.append(R > 0, True)].T)
        parts = [
            _project(curved[:, i : i + CHUNK], R[R > 0], c, kappa) for i in range(0, max(1, len(t)), CHUNK)
        ]
        v, anchor, lam, psi, regime = (np.concatenate(part, axis=-1).T for part in zip(*parts, strict=True))
        if flat.shape[1]:
            v, anchor = (self._widen(rows, fill) for rows, fill in ((v, flat), (anchor, np.zeros_like(flat))))
        absorbed = np.where(regime == WHOLE, np.count_nonzero(R) + 1, 1)
        return finish(t, v, lam, anchor, regime, absorbed, psi)

    def nearest(self, x: ArrayLike) -> Nearest:
        """Return the points of S nearest to x: s = W x with W = R^2/(R^2+m), and m >= 0 such that |s/R| <= 1.

        With n = s/R^2 the derivative is W - W n n^T W / (n^T W n) on the surface, and the projector on the
        curved directions (R > 0) in the interior.
        """
        R, c = self.numbers()
        x = batch(x, self.dimension, "x")
        curved = R > 0
        r, y = R[curved], x[:, :-1][:, curved]
        outside = np.square(y / r).sum(axis=1) > 1
        W = np.ones_like(y)
        W[outside] = r**2 / (r**2 + _surface_multiplier(r, y[outside])[:, None])
        inner = W[:, :, None] * np.eye(r.size)
        Wn = W[outside] ** 2 * y[outside] / r**2
        below = (Wn * Wn / W[outside]).sum(axis=1)
        inner[outside] -= Wn[:, :, None] * (Wn / below[:, None])[:, None, :]
        s, jacobian = np.zeros_like(x), np.zeros((*x.shape, self.dimension))
        where = np.flatnonzero(curved)
        s[:, where], s[:, -1] = W * y, c
        jacobian[:, where[:, None], where] = inner
        return Nearest(s, jacobian, np.where(outside, 0, r.size))

    def _widen(self, rows: Array, flat: Array) -> Array:
        """Put the flat directions back in their places."""
        out = np.empty((len(rows), self.dimension))
        out[:, np.append(self._R > 0, True)] = rows
        out[:, np.append(self._R == 0, False)] = flat
        return out


CHUNK = 2048
"""Samples at once; components run along the first axis within, so that sums are vector additions."""


def _project(t: Array, R: Array, c: float, kappa: float) -> tuple[Array, ...]:
    """Project the columns of t for positive radii; return v, anchor, lam, psi, regime."""
    x, y = t[:-1], t[-1] - kappa / c
    a = R[:, None] * x
    outer = np.sqrt(np.square(a).sum(axis=0))
    touching = outer > c * y
    regime = np.where(touching, TOUCHING, INTERIOR)
    v, anchor = t.copy(), np.full(t.shape, c)
    lam, psi = -y / c, np.full(len(y), -1.0)
    if not R.size:
        v[-1, touching] = kappa / c
        return v, anchor, lam, psi, regime
    tip = touching & (c * np.sqrt(np.square(x / R[:, None]).sum(axis=0)) <= -y)
    regime[tip] = WHOLE
    v[:-1, tip], v[-1, tip], psi[tip] = 0.0, kappa / c, -(R.size + 1.0)
    anchor[:-1] = -R[:, None] * a / np.where(outer > 0, outer, 1.0)
    if tip.any():
        anchor[:-1, tip] = -x[:, tip] / lam[tip]
    touching &= ~tip
    if touching.any():
        if (
            not touching.all()
        ):  # the other columns get a harmless problem, which is cheaper than to take them out
            a, y = np.where(touching, a, 1.0), np.where(touching, y, 0.0)
        e, o = _secular(a, c * y, (R / c) ** 2)
        a *= e
        size = np.sqrt(np.square(a).sum(axis=0))
        a /= size
        reach = size * o
        lam = np.where(touching, (reach / c - y) / c, lam)
        psi = np.where(touching, _divergence(e, o, a, R, c), psi)
        e *= o
        e *= x
        a *= -R[:, None]
        if touching.all():
            v[:-1], anchor[:-1] = e, a
        else:
            np.copyto(v[:-1], e, where=touching)
            np.copyto(anchor[:-1], a, where=touching)
        v[-1] = np.where(touching, (kappa + reach) / c, v[-1])
    return v, anchor, lam, psi, regime


def _surface_multiplier(R: Array, y: Array) -> Array:
    """Solve |R y/(R^2 + m)| = 1 for m > 0, row by row, where |y/R| > 1.

    The reciprocal of the left side is concave in m (and linear for equal radii), so that Newton's method from
    a lower bound rises to the root.
    """
    a = np.square(R * y)
    m = (R * np.abs(y) - R**2).max(axis=1, initial=0.0)
    for _ in range(200):
        width = R**2 + m[:, None]
        square = a / width**2
        size = square.sum(axis=1)
        step = size * (np.sqrt(size) - 1) / (square / width).sum(axis=1)
        m = m + np.maximum(step, 0.0)
        if (step <= 4e-16 * m).all():
            break
    return m


def _secular(a: Array, b: Array, q: Array) -> tuple[Array, Array]:
    """Solve (1-2s) |a/(1-s+s q)| = b for s in (0, 1), column by column; return 1/(1-s+s q) and 1-s.

    1/|a/(1-s+s q)| is nearly linear in s (exactly so for equal radii); each step solves the equation with
    its tangent, within a bracket.  The last step is in the logarithm of s/(1-s), so that s and 1-s both keep
    their relative accuracy.
    """
    slope = q - 1.0

    def evaluate(s: Array, o: Array) -> tuple[Array, Array]:
        e = q[:, None] * s
        e += o
        np.reciprocal(e, out=e)
        square = a * e
        square *= square
        total = square.sum(axis=0)
        square *= e
        return np.sqrt(total), -(slope @ square) / total

    low, high = np.zeros(len(b)), np.ones(len(b))
    s = np.full(len(b), 0.5)
    for _ in range(60):
        size, rate = evaluate(s, 1 - s)  # rate is the logarithmic derivative of the size
        value = (1 - 2 * s) * size - b
        low, high = np.where(value >= 0, s, low), np.where(value <= 0, s, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = (size - b * (1 + rate * s)) / (2 * size - b * rate)
        out = ~((new >= low) & (new <= high)) & ~(np.abs(new - s) < 1e-12)
        new = np.where(out, 0.5 * (low + high), new)
        moved = np.abs(new - s)
        s = np.minimum(np.maximum(new, 0.0), 1.0)
        if (moved < 1e-7 * np.minimum(s, 1 - s) + 1e-15).all():
            break
    s = np.clip(s, 1e-300, 1 - 1e-16)
    o = 1 - s
    for _ in range(2 if o.min() < 1e-4 else 1):
        size, rate = evaluate(s, o)
        step = ((o - s) * size - b) / (s * o * size * (2 - (o - s) * rate))
        odds = s / o * np.exp(np.clip(step, -2.0, 2.0))
        s, o = odds / (1 + odds), 1 / (1 + odds)
    return 1.0 / (o + q[:, None] * s), o


def _divergence(e: Array, o: Array, u: Array, R: Array, c: float) -> Array:
    """Return psi (A.10) of touching samples.

    P = [1 - lam H]^(-1) is diagonal plus a rank-one matrix; d = o e is its diagonal part, b = R u, and the
    ratios below stay finite all the way to the tip.
    """
    weights = np.square(u)
    weights *= e
    ones, squares = np.ones(len(R)), R**2
    weight = ones @ weights
    e_weights = weights * e
    trace = o * (ones @ e) - len(R) + 1 - o * (ones @ e_weights) / weight
    above = c**2 + squares @ e_weights / weight**2
    below = c**2 + squares @ weights / weight
    return trace - above / below
