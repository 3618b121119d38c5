"""Affine laws of single sites, tabulated: on each choice of branches a plane, made once and met at every field.

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

_TOLERANCE, _SINGULAR = 1e-9, 1e-14


@dataclass
class Answer:
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
    """The affine law of some sites, on all branches at once; arrays have the sites last, or a one where all are alike.

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
        last = [np.moveaxis(np.stack(part)[:, back], 1, -1) for part in zip(*planes, strict=True)]
        self.pz, self.pu, self.tz, self.tu, self.epz, self.etz, self.bpz, self.btz = map(np.ascontiguousarray, last)
        self.hears = hears[back]
        self._known: tuple[Any, ...] = ()

    def _blank(self, shared: np.ndarray) -> list[Any]:
        return [*np.zeros((self.law.k + self.law.m, self.n)), *shared.T, *self.tail]

    def _on(self, table: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The matrices of a table on the branch of each site, the sites first."""
        return np.asarray(table[at, :, :, self.all] if table.shape[-1] > 1 else table[..., 0][at])

    def _begin(self, shared: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where the coordinates are zero: the variables, the fields, what is sent, and the free members of pairs."""
        if self._known and np.array_equal(self._known[0], shared) and np.array_equal(self._known[1], given):
            return self._known[2]
        law, n, args = self.law, self.n, self._blank(shared)
        equations = law.residual(args, n) + np.einsum("nem,nm->ne", self.hears[:, :, self.rest], given)
        p, q, on = law.p(args, n).T, law.q(args, n).T, self.branches[:, :, None]
        right = np.broadcast_to(equations.T, (len(on), law.ke, n))
        right = -np.concatenate([right, np.where(on, p, q)], axis=1)
        z, u, sent, free = (np.einsum("bijn,bjn->bin", a, right) for a in (self.pz, self.pu, self.epz, self.bpz))
        out = z, u, sent + law.emission(args, n).T, free + np.where(on, q, p)
        self._known = shared.copy(), given.copy(), out
        return out

    def meet(
        self, cavity_field: np.ndarray, self_coupling: np.ndarray, shared: np.ndarray, likely: np.ndarray | None
    ) -> Answer:
        """Solve every site with the field ``eta + F * sent``.

        Parameters
        ----------
        cavity_field, self_coupling, shared, likely : ndarray
            As in :meth:`symcavity.finite.single_site.SingleSites.solve`.
        """
        n = self.all
        z0, u0, sent0, free0 = self._begin(shared, cavity_field[:, self.rest])
        coupling = np.ascontiguousarray(self_coupling[:, self.looped].transpose(1, 2, 0))
        with np.errstate(all="ignore"):
            tilt = self.tu - np.einsum("mon,boln->bmln", coupling, self.etz)
            gap = cavity_field[:, self.looped].T + np.einsum("mon,bon->bmn", coupling, sent0) - u0
            t = _across(tilt, gap[:, :, None])[:, :, 0]
            room = (free0 + np.einsum("bpln,bln->bpn", self.btz, t)).min(axis=1, initial=np.inf)
            room[~np.isfinite(t.sum(axis=1) + z0.sum(axis=1))] = -np.inf
            at = room.argmax(axis=0)
            if likely is not None:
                last = len(self.branches) - 1 - likely @ self._code
                at = np.where(room[last, n] > -_TOLERANCE, last, at)
            t, etz, tilt = t[at, :, n], self._on(self.etz, at), tilt[at, :, :, n].transpose(1, 2, 0)
            z = z0[at, :, n] + np.einsum("nkl,nl->nk", self._on(self.tz, at), t)
            sent = sent0[at, :, n] + np.einsum("nol,nl->no", etz, t)
            found = room[at, n] > -_TOLERANCE * (1 + np.abs(z) @ np.ones(self.law.k))
            responses = np.zeros((self.n, self.law.out, self.law.m))
            each = _across(tilt, np.eye(len(self.looped))[:, :, None])
            responses[:, :, self.looped] = np.einsum("nol,lmn->nom", etz, each)

        def moved() -> np.ndarray:
            with np.errstate(all="ignore"):
                turn = np.einsum("mon,nok->mkn", coupling, self._on(self.epz, at))
                along = _across(tilt, turn - self._on(self.pu, at).transpose(1, 2, 0))
                out = np.einsum("nkl,ljn->nkj", self._on(self.tz, at), along)
                out += self._on(self.pz, at)
            out[~found] = np.nan
            return out

        def arguments() -> Args:
            fields = cavity_field + np.einsum("nmo,no->nm", self_coupling, sent)
            return [*z.T, *fields.T, *shared.T, *self.tail]

        return Answer(z, self.branches[at], found, sent, responses, moved, arguments)


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
    """Solve ``tilt t = gap`` for matrices whose sites stand last; not a number, or infinite, where there is no t."""
    m = tilt.shape[-2]
    if m <= 1:
        return gap / tilt if m else gap
    matrices, right = np.moveaxis(tilt, -1, 0), np.moveaxis(gap, -1, 0)
    usable = np.abs(np.linalg.det(matrices)) > _SINGULAR
    found = np.linalg.solve(np.where(usable[..., None, None], matrices, np.eye(m)), right)
    found[~usable] = np.nan
    return np.moveaxis(found, 0, -1)
