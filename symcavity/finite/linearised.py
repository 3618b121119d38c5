"""The linearized equations of an instance, solved by eliminating what is local to a site.

At every site the law is a few linear equations between its variables ``dz`` and the fields ``du`` that
it hears.  Their solutions form a plane of as many dimensions as there are fields:
``(dz, du) = (z0, u0) + (Tz, Tu) t``.  Where ``Tu`` is invertible the field itself is the coordinate
("explicit"); where a constraint pins the field, a multiplier takes its place.  Kinds of sites meet only
through the couplings, so that what is left is one dense system over the sites that speak; kinds whose
fields are their coordinates, and that do not hear each other, drop out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from symcavity.finite.factor import Factor
from symcavity.model.kinds import Kind

_SINGULAR, _TINY, _DEPENDENT = 1e11, 1e-13, 1e-12


@dataclass
class LocalSystem:
    """The linearized law of one kind of site: ``J dz + B du + G dg = r``.

    Attributes
    ----------
    slopes, hears, shared : ndarray
        J, B and G, of shapes (n, k, k), (n, k, m) and (n, k, g).
    emits : ndarray
        The derivative of what the sites send, (n, m', k).
    condition : ndarray
        The derivative of the global conditions, (n, g, k).
    heard : list of tuple
        For each field heard: the couplings, with its hearers as rows; the kind of its senders; and which of
        their emissions it sums.
    groups : tuple or None
        (representatives, inverse) where J and B take few different values.
    """

    slopes: np.ndarray
    hears: np.ndarray
    shared: np.ndarray
    emits: np.ndarray
    condition: np.ndarray
    heard: list[tuple[np.ndarray, Kind, int]]
    groups: tuple[np.ndarray, np.ndarray] | None = None


@dataclass
class Load:
    """What a right-hand side does to one kind before the kinds meet: ``z0``, ``u0`` and what ``z0`` sends."""

    z0: np.ndarray
    u0: np.ndarray
    sends: np.ndarray


class Plane:
    """The solutions of the local equations of a kind, as a plane with coordinates ``t``.

    Parameters
    ----------
    local : LocalSystem
        The linearized law.
    """

    def __init__(self, local: LocalSystem) -> None:
        n, k, m = local.hears.shape
        if not (np.isfinite(local.shared).all() and np.isfinite(local.condition).all()):
            raise np.linalg.LinAlgError("The law of a site has no slope there, as a norm has none at zero.")
        self.local, self.n, self.k, self.m = local, n, k, m
        self.senders = {sender for _, sender, _ in local.heard}
        chosen = slice(None) if local.groups is None else local.groups[0]
        back = slice(None) if local.groups is None else local.groups[1]
        found = coordinates(local.slopes[chosen], local.hears[chosen])
        particular, lift, tz, tu, loose, self.explicit = found
        self._particular, self._lift, self.tz = particular[back], lift[back], tz[back]
        self.tu, self.loose = tu[back], loose[back]
        spoken = np.concatenate([local.emits, local.condition], axis=1)
        if np.abs(spoken @ self.loose).max(initial=0.0) > _TINY * max(1.0, np.abs(spoken).max(initial=0.0)):
            raise np.linalg.LinAlgError("The equations of a site are not independent.")
        self.sends = local.emits @ self.tz
        self.feels = local.condition @ self.tz
        weight = np.abs(self.sends).sum(axis=(1, 2)) + np.abs(self.feels).sum(axis=(1, 2))
        self.speaking = np.flatnonzero(weight > 0)
        self.silent = np.flatnonzero(weight == 0)
        self.pinned = np.abs(self.tz).sum(axis=2) == 0

    @property
    def dimension(self) -> int:
        """The number of coordinates that other sites can notice."""
        return len(self.speaking) * self.m

    def load(self, rhs: np.ndarray) -> Load:
        """Return the particular solution for a right-hand side (n, k, c)."""
        z0 = self._particular @ rhs
        u0 = np.zeros((self.n, self.m, rhs.shape[2])) if self.explicit else self._lift @ rhs
        return Load(z0, u0, self.local.emits @ z0)

    def receive(self, sent: Mapping[Kind, np.ndarray]) -> np.ndarray:
        """Return the fields (n, m, c) from what every kind sends, (n', m', c)."""
        return np.stack([x @ sent[sender][:, column] for x, sender, column in self.local.heard], axis=1)

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


def coordinates(
    j: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return P, Q, Tz, Tu, L such that ``J z + B u = r`` where ``(z, u) = (P r + Tz t + L s, Q r + Tu t)``.

    What is left open whatever the fields, ``L s``, is empty where the equations of every site are independent; the
    multipliers of a constraint that is stated twice are open in this way.  The last entry tells whether t is the field
    u itself.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the equations of a site are not independent otherwise, or have no slope.
    """
    n, k, m = b.shape
    scale = np.sqrt(np.sum(j**2, axis=2) + np.sum(b**2, axis=2))
    if not np.all(np.isfinite(scale)):
        raise np.linalg.LinAlgError("The law of a site has no slope there, as a norm has none at zero.")
    scale[scale == 0] = 1.0
    j, b, units = j / scale[:, :, None], b / scale[:, :, None], 1 / scale[:, None, :]
    lift, field = np.zeros((n, m, k)), np.broadcast_to(np.eye(m), (n, m, m))
    inverse = _inverse(j)
    if inverse is not None:
        return inverse * units, lift, -inverse @ b, field, np.zeros((n, k, 0)), True
    u, s, vt = np.linalg.svd(np.concatenate([j, b], axis=2))
    kept = s > _DEPENDENT * s[:, :1]
    weight = np.divide(1.0, s, out=np.zeros_like(s), where=kept)
    pseudo = np.swapaxes(vt[:, :k], 1, 2) @ (np.swapaxes(u, 1, 2) * weight[:, :, None]) * units
    null, loose = np.swapaxes(vt[:, k:], 1, 2).copy(), np.zeros((n, k, k - int(np.min(kept.sum(axis=1), initial=k))))
    for site in np.flatnonzero(~kept.all(axis=1)):
        null[site], left = _split(j[site], vt[site, kept[site].sum() :].T, m)
        loose[site, :, : left.shape[1]] = left
    null = np.where(np.abs(null) < _TINY, 0.0, null)
    pz, pu, tz, tu = pseudo[:, :k], pseudo[:, k:], null[:, :k], null[:, k:]
    inverse = _inverse(tu)
    if inverse is None:
        return pz, pu, tz, tu, loose, False
    response = tz @ inverse
    response = np.where(np.abs(response) < _TINY, 0.0, response)
    return pz - response @ pu, lift, response, field, loose, True


def _split(j: np.ndarray, null: np.ndarray, fields: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the solutions of the equations of a site into those that move with its fields, and those that do not."""
    _, s, vt = np.linalg.svd(j)
    loose = vt[np.count_nonzero(s > _DEPENDENT * max(s[0], 1.0)) :].T
    if null.shape[1] - loose.shape[1] != fields:
        raise np.linalg.LinAlgError("The equations of a site are not independent.")
    apart, _ = np.linalg.qr(null[: len(j)].T @ loose, mode="complete")
    return null @ apart[:, loose.shape[1] :], np.where(np.abs(loose) < _TINY, 0.0, loose)


@dataclass
class LinearResponse:
    """The solution of the linearized equations: the variables by kind, (n, k, c), and the globals, (g, c)."""

    site: dict[Kind, np.ndarray]
    shared: np.ndarray

    @property
    def parts(self) -> list[np.ndarray]:
        """All of it."""
        return [*self.site.values(), self.shared]

    def mixed(self, weights: np.ndarray) -> LinearResponse:
        """Return the combination of its columns with given weights, (c, c')."""
        return LinearResponse({kind: z @ weights for kind, z in self.site.items()}, self.shared @ weights)


class LinearSystem:
    """The linearized equations of all kinds of sites and the global conditions, factorized once.

    The coordinates of the kinds that are ``kept`` solve a dense system; those of the others are their fields,
    and follow.

    Parameters
    ----------
    kinds : dict
        The linearized law of each kind.
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

    def __init__(self, kinds: Mapping[Kind, LocalSystem], conditions: np.ndarray, *, flat: bool = False) -> None:
        self.planes = {kind: Plane(local) for kind, local in kinds.items()}
        self.pinned = {kind: plane.pinned for kind, plane in self.planes.items()}
        dropped = min(_eliminations(self.planes), key=self._left)
        self.dropped = {kind: self.planes[kind] for kind in dropped}
        self.kept = {kind: plane for kind, plane in self.planes.items() if kind not in dropped}
        self.g, self.size = conditions.shape[0], 0
        self.slots: dict[Kind, slice] = {}
        for kind, plane in self.kept.items():
            self.slots[kind] = slice(self.size, self.size + plane.dimension)
            self.size += plane.dimension
        full = np.zeros((self.size + self.g, self.size + self.g))
        for kind in self.kept:
            self._fill(full, kind)
        if self.g:
            self._border(full, conditions)
        self._factor = Factor(full, flat)

    @property
    def nullity(self) -> int:
        """The dimension of the null space."""
        return int(self._factor.null.shape[1])

    @property
    def loose(self) -> bool:
        """Whether sites have variables that their own equations leave open."""
        return any(plane.loose.shape[2] for plane in self.planes.values())

    @property
    def blur(self) -> float:
        """The relative error of the entries of the null space."""
        return self._factor.blur

    def null_space(self) -> LinearResponse:
        """Return a basis of the null space, in the last axis; what sites leave open is one direction of it, mixed."""
        null = self._factor.null
        loads = {kind: p.load(np.zeros((p.n, p.k, null.shape[1]))) for kind, p in self.planes.items()}
        found = self._unfold(loads, null)
        if not self.loose:
            return found
        rng = np.random.default_rng(0)
        mixed = {s: p.loose @ rng.standard_normal((p.n, p.loose.shape[2], 1)) for s, p in self.planes.items()}
        site = {kind: np.concatenate([z, mixed[kind]], axis=2) for kind, z in found.site.items()}
        return LinearResponse(site, np.concatenate([found.shared, np.zeros((self.g, 1))], axis=1))

    def _left(self, dropped: Sequence[Kind]) -> int:
        return sum(plane.dimension for kind, plane in self.planes.items() if kind not in dropped)

    def _place(self, kind: Kind, m: int) -> slice:
        """Where the m-th coordinates of the speaking sites of a kind stand."""
        slot = self.slots[kind]
        return slice(slot.start + m, slot.stop, self.planes[kind].m)

    def _fill(self, full: np.ndarray, kind: Kind) -> None:
        """Write the equations of the speaking sites of a kind that is kept."""
        b = self.kept[kind]
        sp = b.speaking
        for k, (x, sender, column) in enumerate(b.local.heard):
            rows, there = x[sp], self._place(kind, k)
            for m in range(b.m):
                at = np.arange(self.slots[kind].start, self.slots[kind].stop, b.m)
                full[at + k, at + m] += b.tu[sp, k, m]
            if sender in self.kept:
                self._couple(full, there, sender, column, rows, None)
                continue
            a = self.dropped[sender]
            for h, (y, origin, sent) in enumerate(a.local.heard):
                weight = a.sends[:, column, h]
                if np.any(weight):
                    self._couple(full, there, origin, sent, rows * weight, y)

    def _couple(
        self, full: np.ndarray, there: slice, sender: Kind, column: int, x: np.ndarray, then: np.ndarray | None
    ) -> None:
        """Write how fields depend on the coordinates of a kind that is kept: through x, or a product of two."""
        plane = self.kept[sender]
        spoken = plane.sends[plane.speaking, column]
        if not np.any(spoken):
            return
        block = x[:, plane.speaking] if then is None else x @ then.T[plane.speaking].T
        for m in range(plane.m):
            if np.any(spoken[:, m]):
                full[there, self._place(sender, m)] -= block * spoken[:, m]

    def _border(self, full: np.ndarray, conditions: np.ndarray) -> None:
        """Write the globals into the equations, and the global conditions."""
        self.border = {kind: plane.load(-plane.local.shared) for kind, plane in self.planes.items()}
        arrived, bare = self._meet(self.border)
        for kind, b in self.kept.items():
            slot, sp = self.slots[kind], b.speaking
            full[slot, self.size :] = -arrived[kind][sp].reshape(b.dimension, self.g)
            full[self.size :, slot] += np.swapaxes(b.feels[sp], 0, 1).reshape(self.g, b.dimension)
        for a in self.dropped.values():
            for h, (x, origin, sent) in enumerate(a.local.heard):
                b = self.kept[origin]
                sp = b.speaking
                pulled = x[:, sp].T @ a.feels[:, :, h]
                row = np.einsum("ng,nm->gnm", pulled, b.sends[sp, sent])
                full[self.size :, self.slots[origin]] += row.reshape(self.g, b.dimension)
        full[self.size :, self.size :] = conditions + bare

    def _meet(self, loads: Mapping[Kind, Load]) -> tuple[dict[Kind, np.ndarray], np.ndarray]:
        """Return the fields of the kinds that are kept, and the global conditions, while their coordinates vanish."""
        sends = {kind: load.sends for kind, load in loads.items()}
        heard = {kind: a.receive(sends) for kind, a in self.dropped.items()}
        sends |= {kind: loads[kind].sends + a.sends @ heard[kind] for kind, a in self.dropped.items()}
        arrived = {kind: b.receive(sends) - loads[kind].u0 for kind, b in self.kept.items()}
        bare = sum(np.einsum("ngk,nkc->gc", p.local.condition, loads[s].z0) for s, p in self.planes.items())
        bare += sum(np.einsum("ngh,nhc->gc", a.feels, heard[s]) for s, a in self.dropped.items())
        return arrived, np.asarray(bare)

    def solve(self, right: Mapping[Kind, np.ndarray], rhs: np.ndarray | None = None) -> LinearResponse:
        """Return the solution for right-hand sides: of each kind (n, k, c), of the conditions (g, c) or zero."""
        if rhs is None:
            rhs = np.zeros((self.g, next(iter(right.values())).shape[2]))
        loads = {kind: plane.load(right[kind]) for kind, plane in self.planes.items()}
        arrived, bare = self._meet(loads)
        spoken = [arrived[kind][b.speaking].reshape(b.dimension, rhs.shape[1]) for kind, b in self.kept.items()]
        return self._unfold(loads, self._factor(np.concatenate([*spoken, rhs - bare])))

    def _unfold(self, loads: Mapping[Kind, Load], solved: np.ndarray) -> LinearResponse:
        """Return all variables from the coordinates that were kept."""
        c, shared = solved.shape[1], solved[self.size :]
        if self.g:
            for kind, load in loads.items():
                border = self.border[kind]
                load.z0, load.u0 = load.z0 + border.z0 @ shared, load.u0 + border.u0 @ shared
                load.sends = load.sends + border.sends @ shared
        t = {kind: np.zeros((b.n, b.m, c)) for kind, b in self.kept.items()}
        sends = {kind: load.sends for kind, load in loads.items()}
        for kind, b in self.kept.items():
            sp = b.speaking
            t[kind][sp] = solved[self.slots[kind]].reshape(len(sp), b.m, c)
            sends[kind][sp] += b.sends[sp] @ t[kind][sp]
        t |= {kind: a.receive(sends) for kind, a in self.dropped.items()}
        sends |= {kind: loads[kind].sends + a.sends @ t[kind] for kind, a in self.dropped.items()}
        for kind, b in self.kept.items():
            if len(b.silent):
                t[kind][b.silent] = b.answer((b.receive(sends) - loads[kind].u0)[b.silent])
        return LinearResponse({kind: loads[kind].z0 + p.tz @ t[kind] for kind, p in self.planes.items()}, shared)


def _eliminations(planes: Mapping[Kind, Plane]) -> Iterator[tuple[Kind, ...]]:
    """Return the sets of kinds that can drop out: their fields are their coordinates, and none hears another."""
    explicit = [kind for kind, plane in planes.items() if plane.explicit]
    for size in range(len(explicit), -1, -1):
        for some in combinations(explicit, size):
            if not any(planes[kind].senders & set(some) for kind in some):
                yield some
