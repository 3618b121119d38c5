"""The linearised equations of a bipartite instance, solved by eliminating what is local to a site.

At every site the law is a few linear equations between its variables ``dz`` and the fields ``du`` that
it hears.  Their solutions form a plane of as many dimensions as there are fields:
``(dz, du) = (z0, u0) + (Tz, Tu) t``.  Where ``Tu`` is invertible the field itself is the coordinate
("explicit"); where a constraint pins the field, a multiplier takes its place.  The two sides meet only
through the couplings, so that what is left is one dense system over the sites that speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_SINGULAR, _TINY, _SUSPICIOUS, _NULL = 1e11, 1e-13, 1e-12, 1e-13


@dataclass
class SideSystem:
    """The linearised law of one side: ``J dz + B du + G dg = r``.

    Attributes
    ----------
    slopes, hears, shared : ndarray
        J, B and G, of shapes (n, k, k), (n, k, m) and (n, k, g).
    emits : ndarray
        The derivative of what the other side hears, (n, m', k).
    condition : ndarray
        The derivative of the global conditions, (n, g, k).
    couplings : list of ndarray
        For each field heard, the couplings with this side's sites as rows.
    groups : tuple or None
        (representatives, inverse) where J and B take few different values.
    """

    slopes: np.ndarray
    hears: np.ndarray
    shared: np.ndarray
    emits: np.ndarray
    condition: np.ndarray
    couplings: list[np.ndarray]
    groups: tuple[np.ndarray, np.ndarray] | None = None


@dataclass
class Load:
    """What a right-hand side does to one side before the sides meet: ``z0``, ``u0`` and what ``z0`` sends."""

    z0: np.ndarray
    u0: np.ndarray
    sends: np.ndarray


class Plane:
    """The solutions of a side's local equations, as a plane with coordinates ``t``.

    Parameters
    ----------
    side : SideSystem
        The linearised law.
    """

    def __init__(self, side: SideSystem) -> None:
        n, k, m = side.hears.shape
        self.side, self.n, self.k, self.m = side, n, k, m
        chosen = slice(None) if side.groups is None else side.groups[0]
        back = slice(None) if side.groups is None else side.groups[1]
        j, b = side.slopes[chosen], side.hears[chosen]
        scale = np.sqrt(np.sum(j**2, axis=2) + np.sum(b**2, axis=2))
        scale[scale == 0] = 1.0
        j, b = j / scale[:, :, None], b / scale[:, :, None]
        self._scale = scale[back][:, :, None]
        inverse = _inverse(j)
        lift, tu = None, None
        if inverse is not None:
            self.explicit = True
            tz, particular = -inverse @ b, inverse
        else:
            particular, lift, tz, tu, self.explicit = _plane(j, b)
        self._particular, self._lift = particular[back], None if lift is None else lift[back]
        self.tz = tz[back]
        self.tu = np.broadcast_to(np.eye(m), (n, m, m)) if tu is None else tu[back]
        self.sends = side.emits @ self.tz
        self.feels = side.condition @ self.tz
        weight = np.abs(self.sends).sum(axis=(1, 2)) + np.abs(self.feels).sum(axis=(1, 2))
        self.speaking = np.flatnonzero(weight > 0)
        self.silent = np.flatnonzero(weight == 0)
        self.pinned = np.abs(self.tz).sum(axis=2) == 0

    @property
    def dimension(self) -> int:
        """The number of coordinates that the other side can notice."""
        return len(self.speaking) * self.m

    def load(self, rhs: np.ndarray) -> Load:
        """Return the particular solution for a right-hand side (n, k, c)."""
        scaled = rhs / self._scale
        z0 = self._particular @ scaled
        u0 = np.zeros((self.n, self.m, rhs.shape[2])) if self._lift is None else self._lift @ scaled
        return Load(z0, u0, self.side.emits @ z0)

    def receive(self, sent: np.ndarray) -> np.ndarray:
        """Return the fields of this side, from what the other side sends: (n', m, c) to (n, m, c)."""
        return np.stack([x @ sent[:, m] for m, x in enumerate(self.side.couplings)], axis=1)

    def answer(self, fields: np.ndarray) -> np.ndarray:
        """Return the coordinates of the silent sites, from their fields minus ``u0``."""
        return fields if self.explicit else np.linalg.solve(self.tu[self.silent], fields)


def _inverse(j: np.ndarray) -> np.ndarray | None:
    try:
        inverse = np.linalg.inv(j)
    except np.linalg.LinAlgError:
        return None
    return (
        inverse if np.all(np.isfinite(inverse)) and np.max(np.abs(inverse), initial=0) < _SINGULAR else None
    )


def _plane(
    j: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None, bool]:
    """Return (particular z, particular u, Tz, Tu, explicit) of ``J z + B u = r``, by singular vectors."""
    k = b.shape[1]
    u, s, vt = np.linalg.svd(np.concatenate([j, b], axis=2))
    if np.any(s[:, -1] <= 1e-12 * s[:, 0]):
        raise np.linalg.LinAlgError("The equations of a site are not independent.")
    pseudo = np.swapaxes(vt[:, :k], 1, 2) @ (np.swapaxes(u, 1, 2) / s[:, :, None])
    null = np.swapaxes(vt[:, k:], 1, 2)
    null = np.where(np.abs(null) < _TINY, 0.0, null)
    pz, pu, tz, tu = pseudo[:, :k], pseudo[:, k:], null[:, :k], null[:, k:]
    inverse = _inverse(tu)
    if inverse is None:
        return pz, pu, tz, tu, False
    response = tz @ inverse
    response = np.where(np.abs(response) < _TINY, 0.0, response)
    return pz - response @ pu, None, response, None, True


class LinearSystem:
    """The linearised equations of both sides and the global conditions, factorised once.

    Parameters
    ----------
    first, second : SideSystem
        The two sides.
    conditions : ndarray
        The derivative of the global conditions in the global variables, (g, g).
    flat : bool
        Whether singular equations are solved, by the shortest of their solutions where there is one, and
        their null space measured.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the equations are singular, and this was not allowed.
    """

    def __init__(
        self, first: SideSystem, second: SideSystem, conditions: np.ndarray, *, flat: bool = False
    ) -> None:
        planes = Plane(first), Plane(second)
        self.pinned = planes[0].pinned, planes[1].pinned
        eligible = [(planes[1 - s].dimension, s) for s in (0, 1) if planes[s].explicit]
        self._swap = bool(eligible) and min(eligible)[1] == 1
        self._solver: Any
        pair = planes[::-1] if self._swap else planes
        self._solver = (_Eliminated if eligible else _Together)(*pair, conditions, flat)

    @property
    def nullity(self) -> int:
        """The dimension of the null space."""
        return int(self._solver.factor.null.shape[1])

    def null_space(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a basis of the null space: the variables of the two sides (n, k, c) and the globals (g, c)."""
        a, b, shared = self._solver.null_space()
        return (b, a, shared) if self._swap else (a, b, shared)

    def solve(
        self, first: np.ndarray, second: np.ndarray, rhs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the variables of the two sides (n, k, c) and the globals (g, c) for right-hand sides."""
        if self._swap:
            zb, za, shared = self._solver.solve(second, first, rhs)
            return za, zb, shared
        return self._solver.solve(first, second, rhs)


class _Eliminated:
    """Side a, whose fields are its coordinates, is eliminated; the speaking sites of b remain."""

    def __init__(self, a: Plane, b: Plane, conditions: np.ndarray, flat: bool) -> None:
        self.a, self.b, self.g = a, b, conditions.shape[0]
        sp, mb, g = b.speaking, b.m, self.g
        spoken = b.sends[sp]
        matrix = np.zeros((len(sp), mb, len(sp), mb))
        for k in range(mb):
            rows = b.side.couplings[k][sp]
            for h in range(a.m):
                if np.any(a.sends[:, k, h]):
                    kernel = (rows * a.sends[:, k, h]) @ a.side.couplings[h].T[sp].T
                    for m in range(mb):
                        matrix[:, k, :, m] -= kernel * spoken[:, h, m]
        diagonal = np.arange(len(sp))
        matrix[diagonal, :, diagonal, :] += b.tu[sp]
        size = self.size = len(sp) * mb
        full = matrix.reshape(size, size)
        if g:
            self.border = a.load(-a.side.shared), b.load(-b.side.shared)
            arrived, bare = self._meet(*self.border)
            row = np.swapaxes(b.feels[sp], 0, 1).reshape(g, size)
            pulled = np.stack([a.side.couplings[h][:, sp].T @ a.feels[:, :, h] for h in range(a.m)], axis=1)
            row = row + np.einsum("nhg,nhm->gnm", pulled, spoken).reshape(g, size)
            full = np.block([[full, -arrived[sp].reshape(size, g)], [row, conditions + bare]])
        self.factor = Factor(full, flat)

    def _meet(self, la: Load, lb: Load) -> tuple[np.ndarray, np.ndarray]:
        """Return the fields of b, and the global conditions, while ``t = 0``."""
        a, b = self.a, self.b
        heard = a.receive(lb.sends)
        arrived = b.receive(la.sends + a.sends @ heard) - lb.u0
        bare = np.einsum("ngk,nkc->gc", b.side.condition, lb.z0)
        bare += np.einsum("ngk,nkc->gc", a.side.condition, la.z0) + np.einsum("ngh,nhc->gc", a.feels, heard)
        return arrived, bare

    def solve(
        self, ra: np.ndarray, rb: np.ndarray, rhs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        la, lb = self.a.load(ra), self.b.load(rb)
        arrived, bare = self._meet(la, lb)
        right = np.concatenate([arrived[self.b.speaking].reshape(self.size, rhs.shape[1]), rhs - bare])
        return self._unfold(la, lb, self.factor(right))

    def null_space(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        null = self.factor.null
        la, lb = (x.load(np.zeros((x.n, x.k, null.shape[1]))) for x in (self.a, self.b))
        return self._unfold(la, lb, null)

    def _unfold(self, la: Load, lb: Load, solved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all variables from the coordinates that remained."""
        a, b, sp, size = self.a, self.b, self.b.speaking, self.size
        c, shared = solved.shape[1], solved[size:]
        if self.g:
            for load, border in zip((la, lb), self.border, strict=True):
                load.z0, load.u0 = load.z0 + border.z0 @ shared, load.u0 + border.u0 @ shared
                load.sends = load.sends + border.sends @ shared
        t = np.zeros((b.n, b.m, c))
        t[sp] = solved[:size].reshape(len(sp), b.m, c)
        lb.sends[sp] += b.sends[sp] @ t[sp]
        za = la.z0 + a.tz @ a.receive(lb.sends)
        if len(b.silent):
            t[b.silent] = b.answer((b.receive(a.side.emits @ za) - lb.u0)[b.silent])
        return za, lb.z0 + b.tz @ t, shared


class _Together:
    """Neither side's fields can be its coordinates: the coordinates of both sides remain."""

    def __init__(self, a: Plane, b: Plane, conditions: np.ndarray, flat: bool) -> None:
        self.planes, self.g = (a, b), conditions.shape[0]
        sizes = [x.dimension for x in (a, b)]
        total, g = sum(sizes), self.g
        self.slots = [slice(0, sizes[0]), slice(sizes[0], total)]
        full = np.zeros((total + g, total + g))
        if g:
            self.border = [x.load(-x.side.shared) for x in (a, b)]
            fields = self._meet(self.border)
        for k, (x, y) in enumerate(((a, b), (b, a))):
            own, other, sp = self.slots[k], self.slots[1 - k], x.speaking
            block = np.zeros((len(sp), x.m, len(sp), x.m))
            diagonal = np.arange(len(sp))
            block[diagonal, :, diagonal, :] = x.tu[sp]
            full[own, own] = block.reshape(sizes[k], sizes[k])
            if sizes[k] and sizes[1 - k]:
                cross = [
                    x.side.couplings[m][np.ix_(sp, y.speaking)][:, :, None] * y.sends[None, y.speaking, m, :]
                    for m in range(x.m)
                ]
                full[own, other] = -np.stack(cross, axis=1).reshape(sizes[k], sizes[1 - k])
            if g:
                full[own, total:] = -fields[k][sp].reshape(sizes[k], g)
                full[total:, own] = np.swapaxes(x.feels[sp], 0, 1).reshape(g, sizes[k])
                full[total:, total:] += np.einsum("ngk,nkc->gc", x.side.condition, self.border[k].z0)
        full[total:, total:] += conditions
        self.factor = Factor(full, flat)

    def _meet(self, loads: list[Load]) -> list[np.ndarray]:
        a, b = self.planes
        return [a.receive(loads[1].sends) - loads[0].u0, b.receive(loads[0].sends) - loads[1].u0]

    def solve(
        self, ra: np.ndarray, rb: np.ndarray, rhs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        c = rhs.shape[1]
        loads = [x.load(r) for x, r in zip(self.planes, (ra, rb), strict=True)]
        fields = self._meet(loads)
        right = [f[x.speaking].reshape(x.dimension, c) for x, f in zip(self.planes, fields, strict=True)]
        bare = sum(
            np.einsum("ngk,nkc->gc", x.side.condition, load.z0)
            for x, load in zip(self.planes, loads, strict=True)
        )
        return self._unfold(loads, self.factor(np.concatenate([*right, rhs - bare])))

    def null_space(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        null = self.factor.null
        return self._unfold([x.load(np.zeros((x.n, x.k, null.shape[1]))) for x in self.planes], null)

    def _unfold(self, loads: list[Load], solved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all variables from the coordinates that remained."""
        c, shared = solved.shape[1], solved[self.slots[1].stop :]
        if self.g:
            for load, border in zip(loads, self.border, strict=True):
                load.z0, load.u0 = load.z0 + border.z0 @ shared, load.u0 + border.u0 @ shared
                load.sends = load.sends + border.sends @ shared
        t = [np.zeros((x.n, x.m, c)) for x in self.planes]
        for k, x in enumerate(self.planes):
            t[k][x.speaking] = solved[self.slots[k]].reshape(len(x.speaking), x.m, c)
            loads[k].sends = loads[k].sends + x.sends @ t[k]
        for k, (x, f) in enumerate(zip(self.planes, self._meet(loads), strict=True)):
            if len(x.silent):
                t[k][x.silent] = x.answer(f[x.silent])
        za, zb = (load.z0 + x.tz @ tt for x, load, tt in zip(self.planes, loads, t, strict=True))
        return za, zb, shared


class Factor:
    """A dense matrix, factorised: a function of right-hand sides.

    Parameters
    ----------
    matrix : ndarray
        The matrix.
    flat : bool
        Whether a singular matrix is accepted: then the shortest solution is returned, which is one if there
        is any.

    Attributes
    ----------
    null : ndarray
        A basis of the null space, in columns; empty where it was not looked for.
    """

    def __init__(self, matrix: np.ndarray, flat: bool = False) -> None:
        from scipy.linalg.lapack import dgecon, dgetrf

        self.null, self._inverse = np.zeros((len(matrix), 0)), None
        if not matrix.size:
            return
        if not np.all(np.isfinite(matrix)):
            raise np.linalg.LinAlgError("The linearised equations are not finite.")
        self._lu, self._pivots, singular = dgetrf(matrix, overwrite_a=not flat)
        if flat and (singular or dgecon(self._lu, np.linalg.norm(matrix, 1))[0] < _SUSPICIOUS):
            self._measure(matrix)
            singular = singular and not self.null.size
        if singular:
            raise np.linalg.LinAlgError("The linearised equations are singular.")

    def _measure(self, matrix: np.ndarray) -> None:
        """Find the null space, in units in which rows and columns are of order one."""
        rows, columns = np.ones(len(matrix)), np.ones(len(matrix))
        for _ in range(2):
            scaled = np.abs(matrix) * rows[:, None] * columns
            rows = rows / np.where((top := scaled.max(axis=1)) > 0, np.sqrt(top), 1.0)
            columns = columns / np.where((top := scaled.max(axis=0)) > 0, np.sqrt(top), 1.0)
        u, s, vt = np.linalg.svd(matrix * rows[:, None] * columns)
        rank = int(np.count_nonzero(s > _NULL * s[0]))
        if rank == len(s):
            return
        self.null = columns[:, None] * vt[rank:].T
        self._inverse = (columns[:, None] * vt[:rank].T / s[:rank]) @ (u[:, :rank].T * rows)

    def __call__(self, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides, one a column."""
        from scipy.linalg.lapack import dgetrs

        if not right.size or not len(self.null):
            return right
        if self._inverse is not None:
            return self._inverse @ right
        return dgetrs(self._lu, self._pivots, right)[0]


__all__ = ["LinearSystem", "SideSystem"]
