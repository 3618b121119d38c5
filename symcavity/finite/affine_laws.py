"""Laws of single sites that are affine on each branch: the branches are tabulated once, and evaluated at all fields.

On a branch the variables of a site and the fields in which it hears itself make up a plane, with as many coordinates
as there are such fields: a broken line where there is one.  The self-couplings say at which point of it a site is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from symcavity.finite.compiled import Args, CompiledLaw
from symcavity.finite.linearised import coordinates

_TOLERANCE = 1e-9
SINGULAR = 1e-14  # determinants that stand for zero
MOST_PAIRS = 4  # of a law, all of whose branches are tabled


@dataclass
class SiteStates:
    """What sites do at given fields.

    Attributes
    ----------
    z : ndarray
        The variables (sites, variables).
    active : ndarray
        Where the first member of a pair is zero (sites, pairs).
    found : ndarray of bool
        Where a branch of the law fits.
    sent : ndarray
        What the sites send (sites, emissions).
    responses : ndarray
        Its derivatives in sources of the fields that sum states (sites, emissions, fields); of others, zero.
    moves, arguments : callable
        They give ``moved`` and ``args``.
    """

    z: np.ndarray
    active: np.ndarray
    found: np.ndarray
    sent: np.ndarray
    responses: np.ndarray
    moves: Callable[[], np.ndarray]
    arguments: Callable[[], Args]

    @cached_property
    def moved(self) -> np.ndarray:
        """How the variables move with the right-hand sides: (sites, variables, equations and pairs).

        Those of the equations, and of the member of each pair that is zero.
        """
        return self.moves()

    @cached_property
    def args(self) -> Args:
        """The arguments of every table of the law."""
        return self.arguments()


class BrokenPlane:
    """The affine law of some sites, on all branches at once.

    Arrays end with two axes: the branches, and the sites, or a one where all sites are alike.

    Parameters
    ----------
    law : CompiledLaw
        The law.
    tail : list
        The sites' own parameters and those of all.
    """

    def __init__(self, law: CompiledLaw, tail: list[Any], n: int) -> None:
        self.law, self.tail, self.n = law, tail, n
        self.looped, self.rest = law.moving, [m for m in range(law.m) if m not in law.moving]
        self.branches = np.array([*product((True, False), repeat=law.kp)], dtype=bool).reshape(2**law.kp, law.kp)
        self._code = 1 << np.arange(law.kp)[::-1]
        args = self._blank(np.zeros((n, len(law.globals))))
        tables = (law.slopes, law.hears, law.p_slopes, law.q_slopes, law.emits)
        every = [table(args, n) for table in tables]
        flat = np.concatenate([v.reshape(n, -1) for v in every], axis=1)
        back = np.zeros(1, dtype=int)
        if np.any(flat != flat[:1]):
            _, first, back = np.unique(flat, axis=0, return_index=True, return_inverse=True)
            back, every = back.ravel(), [v[first] for v in every]
        else:
            every = [v[:1] for v in every]
        self.all = np.arange(n)
        slopes, hears, p, q, emits = every
        heard = np.concatenate([hears[:, :, law.moving], np.zeros((len(p), law.kp, len(law.moving)))], axis=1)
        planes = []
        for on in self.branches[:, :, None]:
            pz, pu, tz, tu = _planes(np.concatenate([slopes, np.where(on, p, q)], axis=1), heard)
            bends = np.where(on, q, p)
            planes.append((pz, pu, tz, tu, emits @ pz, emits @ tz, bends @ pz, bends @ tz))
        last = [np.stack(part)[:, back].transpose(2, 3, 0, 1) for part in zip(*planes, strict=True)]
        self.pz, self.pu, self.tz, self.tu, self.epz, self.etz, self.bpz, self.btz = map(np.ascontiguousarray, last)
        self._turns = np.concatenate([self.tz, self.etz])  # variables, and what is sent
        self.hears = hears[back]
        self._known: tuple[Any, ...] = ()

    def _blank(self, shared: np.ndarray) -> list[Any]:
        return [*np.zeros((self.law.k + self.law.m, self.n)), *shared.T, *self.tail]

    def _on(self, table: np.ndarray, at: np.ndarray) -> np.ndarray:
        """A table on the branch of each site."""
        if len(self.branches) == 1:
            return table[..., 0, :]
        if table.shape[-1] == 1:
            return np.asarray(np.take(table[..., 0], at, axis=-1))
        return np.asarray(np.take(table.reshape(*table.shape[:-2], -1), at * self.n + self.all, axis=-1))

    def _begin(self, shared: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where the coordinates are zero: the variables, the fields, what is sent, and the free members of pairs."""
        now = (shared, given)
        if self._known and all(np.array_equal(a, b) for a, b in zip(self._known[:2], now, strict=True) if b.size):
            return self._known[2]
        law, n, args = self.law, self.n, self._blank(shared)
        equations = law.residual(args, n) + np.einsum("nem,nm->ne", self.hears[:, :, self.rest], given)
        p, q, on = law.p(args, n).T[:, None], law.q(args, n).T[:, None], self.branches.T[:, :, None]
        right = np.broadcast_to(equations.T[:, None], (law.ke, len(self.branches), n))
        right = -np.concatenate([right, np.where(on, p, q)])
        z, u, sent, free = (np.einsum("ijbn,jbn->ibn", a, right) for a in (self.pz, self.pu, self.epz, self.bpz))
        sent += law.emission(args, n).T[:, None]
        out = np.concatenate([z, sent]), u, free + np.where(on, q, p), np.isfinite(z.sum(axis=0))
        self._known = shared.copy(), given.copy(), out
        return out

    def meet(
        self, cavity_field: np.ndarray, self_coupling: np.ndarray, shared: np.ndarray, likely: np.ndarray | None
    ) -> SiteStates:
        """Solve every site with the field ``eta + F * sent``.

        Parameters
        ----------
        cavity_field, self_coupling, shared, likely : ndarray
            As in :meth:`symcavity.finite.single_site.SingleSites.solve`.
        """
        both0, u0, free0, finite = self._begin(shared, cavity_field[:, self.rest])
        coupling, k = np.ascontiguousarray(self_coupling[:, self.looped].transpose(1, 2, 0)), self.law.k
        with np.errstate(all="ignore"):
            tilt = self.tu - _dot(coupling[:, :, None, None], self.etz)
            gap = cavity_field[:, self.looped].T[:, None] + _dot(coupling[:, :, None], both0[k:]) - u0
            t = _across(tilt, gap[:, None])[:, 0]
            room = (free0 + _dot(self.btz, t)).min(axis=0, initial=np.inf)
            room = np.where(finite & np.isfinite(t.sum(axis=0)), room, -np.inf)
            at = self._fitting(room, likely)
            t, tilt, turns = self._on(t, at), self._on(tilt, at), self._on(self._turns, at)
            both = self._on(both0, at) + _dot(turns, t)
            z, sent = both[:k], both[k:]
            found = self._on(room, at) > -_TOLERANCE * (1 + np.abs(z).sum(axis=0))
            responses = np.zeros((self.law.out, self.law.m, self.n))
            each = _across(tilt, np.eye(len(self.looped))[:, :, None])
            responses[:, self.looped] = _dot(turns[k:, :, None], each)

        def moved() -> np.ndarray:
            with np.errstate(all="ignore"):
                turn = _dot(coupling[:, :, None], self._on(self.epz, at))
                along = _across(tilt, turn - self._on(self.pu, at))
                out = _dot(turns[:k, :, None], along) + self._on(self.pz, at)
            out = np.broadcast_to(out, (*out.shape[:-1], self.n)).transpose(2, 0, 1).copy()
            out[~found] = np.nan
            return out

        def arguments() -> Args:
            fields = cavity_field + np.einsum("nmo,on->nm", self_coupling, sent)
            return [*z, *fields.T, *shared.T, *self.tail]

        return SiteStates(z.T, self.branches[at], found, sent.T, responses.transpose(2, 0, 1), moved, arguments)

    def _fitting(self, room: np.ndarray, likely: np.ndarray | None) -> np.ndarray:
        """The branch of each site: the likely one where it fits, or the one that fits best."""
        if len(self.branches) == 1:
            return np.zeros(self.n, dtype=int)
        if likely is None:
            return np.asarray(room.argmax(axis=0))
        last = len(self.branches) - 1 - likely @ self._code
        fits = room[last, self.all] > -_TOLERANCE
        return last if fits.all() else np.where(fits, last, room.argmax(axis=0))


def _planes(j: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    """The planes of sites, each by itself where that of one does not exist; not a number there."""
    try:
        return coordinates(j, b)[:4]
    except np.linalg.LinAlgError:
        if len(j) == 1:
            k, m = j.shape[1], b.shape[2]
            return tuple(np.full((1, *shape), np.nan) for shape in ((k, k), (m, k), (k, m), (m, m)))
        return tuple(np.concatenate(p) for p in zip(*(_planes(j[[r]], b[[r]]) for r in range(len(j))), strict=True))


def _across(tilt: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Solve ``tilt t = gap`` for matrices that stand first; not a number, or infinite, where there is no t."""
    m = len(tilt)
    if m <= 1:
        return gap / tilt if m else gap
    matrices, right = np.moveaxis(tilt, (0, 1), (-2, -1)), np.moveaxis(gap, (0, 1), (-2, -1))
    usable = np.abs(np.linalg.det(matrices)) > SINGULAR
    found = np.linalg.solve(np.where(usable[..., None, None], matrices, np.eye(m)), right)
    found[~usable] = np.nan
    return np.moveaxis(found, (-2, -1), (0, 1))


def _dot(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum over the second axis of the one and the first of the other, few each; all others are broadcast."""
    if not len(right):
        return np.asarray(left.sum(axis=1) * right.sum(axis=0))
    out = left[:, 0] * right[0]
    for j in range(1, len(right)):
        out += left[:, j] * right[j]
    return np.asarray(out)
