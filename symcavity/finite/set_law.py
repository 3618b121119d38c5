"""The part of a law that a convex set gives, as functions of arrays: the value g(V), and the anchor point.

The anchor point is where ``V.s`` is least on the set, and the vector multiplier is ``Lambda = lambda*s``.  Where
the set touches on a face, many points are anchors of one V, and V alone does not say which: but ``s`` is an anchor
point of V exactly if it is the point of the set that is nearest to ``s - V``.  With ``s = Lambda/lambda`` inside,
that is an equation for the multiplier which holds on faces and tips as it does where g is smooth, and whose
derivative is that of the nearest point.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sympy import Dummy, Expr, Symbol

from symcavity.model.laws import Law
from symcavity.model.quantities import site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.shapes.base import INTERIOR, Shape

_TINY = 1e-13


@dataclass
class SetPart:
    """The set in the law of a side.

    Attributes
    ----------
    shape : Shape
        The set, in d dimensions.
    V, Lam : ndarray of int
        The columns of the vector field and of the vector multiplier among the variables of a site.
    lam : int
        The column of the multiplier.
    marks : dict
        The symbols that stand for g(V) and for the components of the anchor point, by node.
    symbols : list of Symbol
        The same in order: g(V), then the components.
    """

    shape: Shape
    V: np.ndarray
    Lam: np.ndarray
    lam: int
    marks: dict[Expr, Symbol]
    symbols: list[Symbol]
    _memo: tuple[np.ndarray, tuple[np.ndarray, ...]] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, law: Law) -> SetPart | None:
        """Find the set in a law that is written out by components; None if there is none."""
        exprs = [e.difference for e in law.equations] + [q for p in law.pairs for q in p.pair]
        nodes = sorted({n for e in exprs for n in e.atoms(Support)}, key=str)
        anchors = sorted({n for e in exprs for n in e.atoms(Anchor)}, key=lambda n: int(n.at))
        if not anchors:
            return None
        first, where = anchors[0], {q: j for j, q in enumerate(law.unknowns)}
        index, shape = first.components.index, first.g.shape
        rows = [next(e for e in law.equations if e.difference.has(n)) for n in anchors]
        (lam,) = site_quantities(rows[0].rhs.as_independent(Anchor, as_Add=False)[0])
        level = Dummy("g", real=True)
        points = [Dummy(f"s{n.at}", real=True) for n in anchors]
        return cls(
            shape,
            np.array([where[first.body.xreplace({index: n.at})] for n in anchors]),
            np.array([where[e.lhs] for e in rows]),
            where[lam],
            {**dict.fromkeys(nodes, level), **dict(zip(anchors, points, strict=True))},
            [level, *points],
        )

    def _at(self, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return which sites have a multiplier, and their anchor points with derivatives (site by site)."""
        if self._memo is not None and self._memo[0].shape == z.shape and np.array_equal(self._memo[0], z):
            return self._memo[1]
        lam, V = z[:, self.lam], z[:, self.V]
        held = np.flatnonzero(lam > _TINY * (1 + np.max(np.abs(lam), initial=0.0)))
        s, jacobian = self.shape.anchor(V), np.zeros((0, len(self.V), len(self.V)))
        if held.size:
            found = self.shape.nearest(z[np.ix_(held, self.Lam)] / lam[held, None] - V[held])
            s[held], jacobian = found.s, found.jacobian
        self._memo = z.copy(), (held, s, jacobian)
        return self._memo[1]

    def columns(self, z: np.ndarray) -> np.ndarray:
        """Return g(V) and the anchor point at every site: shape (sites, 1 + d).

        Parameters
        ----------
        z : ndarray, shape (sites, variables)
            The variables.
        """
        if not np.all(np.isfinite(z)):
            return np.full((len(z), 1 + len(self.V)), np.nan)
        _, s, _ = self._at(z)
        return np.column_stack([self.shape.support(z[:, self.V]), s])

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Return the derivatives of the columns in the variables: shape (sites, 1 + d, variables)."""
        held, s, jacobian = self._at(z)
        out = np.zeros((len(z), 1 + len(self.V), z.shape[1]))
        out[:, 0, self.V] = s
        if held.size:
            lam = z[held, self.lam][:, None, None]
            inner = np.zeros((held.size, len(self.V), z.shape[1]))
            inner[:, :, self.Lam] = jacobian / lam
            inner[:, :, self.lam] = -(jacobian @ z[np.ix_(held, self.Lam)][:, :, None])[:, :, 0] / lam[:, 0] ** 2
            inner[:, :, self.V] = -jacobian
            out[held, 1:] = inner
        return out

    def near(self, rows: np.ndarray, z: np.ndarray, eta: np.ndarray, back: np.ndarray) -> np.ndarray:
        """Where some sites would be, at the level where they are, if each component came back alike.

        Parameters
        ----------
        rows : ndarray of int
            Which sites.
        z, eta, back : ndarray, shapes (sites, variables), (sites, d), (sites, d, d)
            The variables, the cavity fields and the self-couplings.
        """
        out, levels = z.copy(), self.shape.support(z[:, self.V])
        for site in rows:
            p, strength = self.shape.project(eta[site], levels[site]), np.trace(back[site]) / len(self.V)
            if strength > 0:
                out[site, self.V], out[site, self.lam] = p.v[0], p.lam[0] / strength
                out[site, self.Lam] = p.lam_s[0] / strength
        return out

    def regimes(self, z: np.ndarray) -> np.ndarray:
        """Return how the set touches at each site: the code of :class:`symcavity.shapes.base.Projection`.

        The multipliers are taken for those of a hard bound at the level where the site is.
        """
        V, Lam, lam = z[:, self.V], z[:, self.Lam], z[:, self.lam]
        level = self.shape.support(V)
        out = np.full(len(z), float(INTERIOR))
        for site in np.flatnonzero(lam > _TINY * (1 + np.max(np.abs(lam), initial=0.0))):
            out[site] = float(self.shape.project((V - Lam)[site], level[site]).regime[0])
        return out
