"""Balls, segments and pairs of points: closed-form projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike

from symcavity.errors import DeclarationError
from symcavity.shapes.ball_averages import ball_points
from symcavity.shapes.base import INTERIOR, TOUCHING, WHOLE, Array, Projection, batch, bound, finish, number, show
from symcavity.shapes.ellipsoid import Ellipsoid
from symcavity.shapes.slack import saturate


class Ball(Ellipsoid):
    """The ball {(R u, center) : u in R^D, |u| <= 1}.

    Parameters
    ----------
    D : int
        Its dimension, >= 1; it lives in R^(D+1).
    R : number
        Its radius, >= 0 (0 is a point).
    center : number, optional
        Distance of the center from the origin, > 0.

    Raises
    ------
    DeclarationError
        For R < 0, D < 1, or a center that is not at a positive distance.

    Examples
    --------
    >>> from symcavity import Ball, manifold_capacity
    >>> round(manifold_capacity(Ball(2, 1), kappa=0).alpha, 6)
    0.666667
    """

    def __init__(self, D: int, R: Any, *, center: Any = 1) -> None:
        if isinstance(D, bool) or not isinstance(D, (int, np.integer, sympy.Integer)) or D < 1:
            raise DeclarationError(
                f"The dimension D is {D!r}.",
                "an integer >= 1",
                "Ball(D, R) takes the dimension first and the radius second.",
            )
        radius, exact = number(R, "R")
        if radius.is_negative:
            raise DeclarationError(f"The radius R is {radius}.", "a radius R >= 0")
        super().__init__([radius] * int(D), center=center)
        self.exact = self.exact and exact
        self.R: sympy.Expr = radius

    def __repr__(self) -> str:
        center = "" if self.center == 1 else f", center={show(self.center)}"
        return f"Ball({self.D}, {show(self.R)}{center})"

    @property
    def has_nodes(self) -> bool:
        """Always."""
        return True

    def nodes(self, k: float, cap: float, levels: Sequence[float]) -> tuple[dict[str, Any], Array]:
        """Return projections at the nodes of a quadrature over the radial and the axial part of the source."""
        radii, c = self.numbers()
        project = lambda t: saturate(self, t, self.project(t, k), cap)  # noqa: E731 - named as an argument
        return ball_points(self.D, float(radii[0]), c, k, cap, levels, project)

    def centred(self, center: float) -> Ball:
        """Return the same ball with its center at another distance."""
        return Ball(self.D, float(self.numbers()[0][0]), center=center)

    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project onto {v : center v_(D+1) - R |v_(1..D)| >= kappa} in closed form."""
        radii, c = self.numbers()
        R, D = float(radii[0]), self.D
        t = batch(t, self.dimension)
        kappa = bound(kappa)
        x = np.sqrt(np.square(t[:, :-1]).sum(axis=1))
        y = t[:, -1] - kappa / c
        regime = np.where(R * x > c * y, TOUCHING, INTERIOR)
        if R > 0:
            regime = np.where((regime == TOUCHING) & (c * x <= -R * y), WHOLE, regime)
        tip = regime == WHOLE
        lam = np.where(tip, -y / c, (R * x - c * y) / (R * R + c * c))
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.where((x > 0)[:, None], t[:, :-1] / x[:, None], 0.0)
            psi = np.where(tip, -(D + 1.0), -1.0 - (D - 1) * np.where(R > 0, lam * R / x, 0.0))
            inside = np.where(tip, x / np.where(lam > 0, lam, 1.0), R)
        anchor = np.concatenate([-inside[:, None] * unit, np.full((len(t), 1), c)], axis=1)
        v = t + lam[:, None] * anchor
        v[tip] = np.append(np.zeros(D), kappa / c)
        return finish(t, v, lam, anchor, regime, np.where(tip, D + 1, 1), psi)


class Segment(Ball):
    """The segment between (R, center) and (-R, center): a ball of one dimension.

    Parameters
    ----------
    R : number
        Half its length, >= 0.
    center : number, optional
        Distance from the origin, > 0.

    Examples
    --------
    >>> from symcavity import Ball, Segment, manifold_capacity
    >>> manifold_capacity(Segment(2), kappa=0).alpha == manifold_capacity(Ball(1, 2), kappa=0).alpha
    True
    """

    def __init__(self, R: Any = 1, *, center: Any = 1) -> None:
        super().__init__(1, R, center=center)

    def __repr__(self) -> str:
        center = "" if self.center == 1 else f", center={show(self.center)}"
        return f"Segment({show(self.R)}{center})"


class TwoPoints(Ball):
    """Two points of unit norm with a given overlap, (+-sqrt((1-overlap)/2), sqrt((1+overlap)/2)).

    Parameters
    ----------
    overlap : number
        Their scalar product, in (-1, 1]; 1 is one point.

    Raises
    ------
    DeclarationError
        For an overlap outside (-1, 1]; at -1 the origin is in the hull.

    Examples
    --------
    >>> from symcavity import TwoPoints, manifold_capacity
    >>> round(manifold_capacity(TwoPoints(0), kappa=0).alpha, 6)
    1.0
    """

    def __init__(self, overlap: Any) -> None:
        rho, exact = number(overlap, "overlap")
        if (1 - rho).is_negative or (1 + rho).is_negative:
            raise DeclarationError(
                f"The overlap is {rho}.", "-1 < overlap <= 1, because the points have unit norm"
            )
        if (1 + rho).is_zero:
            raise DeclarationError(
                "The overlap is -1: the origin is in the hull of the two points.", "-1 < overlap <= 1"
            )
        super().__init__(1, sympy.sqrt((1 - rho) / 2), center=sympy.sqrt((1 + rho) / 2))
        self.exact = exact
        self.overlap: sympy.Expr = rho

    def __repr__(self) -> str:
        return f"TwoPoints({show(self.overlap)})"
