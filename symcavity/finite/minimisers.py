"""The set of all minimizers of an instance: its directions, and which quantities are the same everywhere in it.

The directions are a null space, whose rank is decided by singular values with a bound on their rounding errors.  What a
quantity does along them is a matter of derivatives, and of signs that hold in the whole set: no two minimizers
are compared, for which a number may be equal by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from sympy import Abs, Expr, Ge, Gt, Heaviside, Le, Lt, Max, Min, Symbol, sign
from sympy.core.relational import Relational

from symcavity.algebra.compiled import compiled
from symcavity.finite.compiled import slope_almost_everywhere
from symcavity.finite.draw import stream
from symcavity.finite.factor import rounding
from symcavity.finite.instance import Instance, State, largest
from symcavity.finite.linearised import LinearResponse
from symcavity.finite.newton import gaps, linearise, room_towards, scale_of, shifted, slopes
from symcavity.finite.units import InstanceUnits
from symcavity.model.kinds import Kind

_BESIDE, _NULL, _CRAMPED, _VANISHING = 13, 1e-13, 1e-7, 1e-6
_STILL = 1e-8  # what is smaller than this, against its parts, is a rounding error of a direction


@dataclass
class Minimisers:
    """The solutions of the equations of an instance, where there are more than one.

    Attributes
    ----------
    another : State
        Another solution, in a direction that nothing prefers.
    dimension : int
        Of the set of minimizers; zero where the multipliers alone are not unique.
    """

    another: State
    dimension: int

    @property
    def words(self) -> str:
        """How many dimensions the set has."""
        if not self.dimension:
            return "its minimizer is unique, but its multipliers are not"
        plural = "s" if self.dimension > 1 else ""
        return f"its minimum is not unique, the minimizers make up a set of {self.dimension} dimension{plural}"


def minimisers(instance: Instance, state: State, another: State | None, *, sharp: bool) -> Minimisers | None:
    """Return the set of all solutions, given another one; None where there is no other."""
    return None if another is None else _counted(instance, another, *directions(instance, state, sharp=sharp))


def _counted(instance: Instance, another: State, moved: LinearResponse, blur: float) -> Minimisers:
    """The set of all solutions, by the directions in which one of them may move."""
    sites, shared = instance.system.own
    rows = [moved.site[k][:, j].reshape(-1, moved.shared.shape[1]) for k, j in sites.items()] + [moved.shared[shared]]
    found = np.linalg.svd(np.concatenate(rows), compute_uv=False)
    small = max(_STILL, blur) * np.sqrt(sum(float(np.sum(part**2)) for part in moved.parts))
    return Minimisers(another, int(np.count_nonzero(found > small)))


def directions(instance: Instance, state: State, *, sharp: bool) -> tuple[LinearResponse, float]:
    """Return a basis of the directions in which a solution may move, and the relative error of its entries.

    Parameters
    ----------
    instance, state : Instance, State
        The solved instance.
    sharp : bool
        Whether every pair is on a definite branch.
    """
    if sharp:
        found = linearise(instance, state)
        return found.null_space(), found.blur
    null, blur = _null_space(_equations(instance, state))
    return _moved(state, null), blur


def _moved(state: State, null: np.ndarray) -> LinearResponse:
    site, start = {}, 0
    for kind, z in state.site.items():
        site[kind] = null[start : start + z.size].reshape(*z.shape, null.shape[1])
        start += z.size
    return LinearResponse(site, null[start:])


def minimisers_beside(instance: Instance, state: State) -> Minimisers | None:
    """Return the set of all solutions of an affine law whose sites are singular; None where there is no other.

    What vanishes of a pair stays zero, both members where both do.
    """
    if not instance.system.affine:
        return None
    moved, blur = directions(instance, state, sharp=False)
    another = _another(instance, state, moved)
    return None if another is None else _counted(instance, another, moved, blur)


def _another(instance: Instance, state: State, moved: LinearResponse) -> State | None:
    """Another solution, along one of the directions in which one may move; None where there is no room."""
    count = moved.shared.shape[1]
    if not count:
        return None
    along = moved.mixed(stream(instance.seed, _BESIDE).standard_normal((count, 1)))
    length = scale_of(state) / largest(*along.parts)
    ways = [shifted(state, along, sign * length) for sign in (1, -1)]
    room, best = max(((room_towards(instance, state, way), k) for k, way in enumerate(ways)), key=itemgetter(0))
    return shifted(state, along, room * (length, -length)[best]) if room >= _CRAMPED else None


def _equations(instance: Instance, state: State) -> np.ndarray:
    """The linear equations that hold wherever what is zero of the pairs stays so: one row each, dense."""
    system, near = instance.system, _VANISHING * scale_of(state)
    every = {s: slopes(instance, state, s) for s in system.laws}
    ends = np.cumsum([0, *(z.size for z in state.site.values())])
    first = dict(zip(state.site, ends.tolist(), strict=False))
    rows, total = [], int(ends[-1])
    conditions = np.zeros((system.count, total + len(system.globals)))
    for kind, at in every.items():
        law, n, here = system.laws[kind], instance.size[kind], gaps(instance, state, kind)
        sites, k = np.arange(n), state.site[kind].shape[1]
        own = first[kind] + sites[:, None] * k + np.arange(k)
        block = np.zeros((n, at.slopes.shape[1], total + len(system.globals)))
        for m, f in enumerate(law.fields):
            sends = every[f.sender].emits[:, system.column(f)]
            heard = (instance.matrix(f)[:, :, None] * sends).reshape(n, -1)
            block[..., first[f.sender] : first[f.sender] + sends.size] += at.hears[:, :, m, None] * heard[:, None]
        block[sites[:, None], :, own] += np.swapaxes(at.slopes, 1, 2)
        block[..., total:] += at.shared
        rows.append(block.reshape(-1, block.shape[-1]))
        for member, other, change, shared in (
            (here.p, here.q, at.p_slopes, at.p_shared),
            (here.q, here.p, at.q_slopes, at.q_shared),
        ):
            where, which = np.nonzero((member <= other) | (member < near))
            pinned = np.zeros((len(where), block.shape[-1]))
            pinned[np.arange(len(where))[:, None], own[where]] = change[where, which]
            pinned[:, total:] = shared[where, which]
            rows.append(pinned)
        conditions[:, own.ravel()] += np.moveaxis(at.condition, 1, 0).reshape(system.count, own.size)
        conditions[:, total:] += at.body_shared
    return np.concatenate([*rows, conditions])


def _null_space(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """A basis of the vectors that some rows annihilate, in columns, and the relative error of its entries.

    What stands alone in a row is zero at once.
    """
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(float).tiny)
    free, blur = np.ones(matrix.shape[1], dtype=bool), 0.0
    while (alone := np.count_nonzero(np.abs(matrix[:, free]) > _NULL, axis=1) == 1).any():
        free[np.flatnonzero(free)[np.argmax(np.abs(matrix[alone][:, free]), axis=1)]] = False
    out = np.zeros((len(free), 0))
    if free.any():
        left = matrix[:, free]
        _, s, vt = np.linalg.svd(left, full_matrices=left.shape[0] < left.shape[1])  # all rows of vt, in either case
        rank, blur = rounding(s, max(matrix.shape))
        out = np.zeros((len(free), len(vt) - rank))
        out[free] = vt[rank:].T
    return out, blur


class Sameness:
    """Tells which quantities are the same for all minimizers of an instance.

    Parameters
    ----------
    instance, state : Instance, State
        The solved instance, in its own units.
    units : Units
        These units.
    sharp : bool
        Whether every pair is on a definite branch.
    """

    def __init__(self, instance: Instance, state: State, units: InstanceUnits, *, sharp: bool) -> None:
        self.instance, self.units = instance, units
        self.moved, blur = directions(instance, state, sharp=sharp)
        self.small, self.count = max(_STILL, blur), self.moved.shared.shape[1]
        self._length = largest(*self.moved.parts)
        self._members = {kind: self._free(state, kind, sharp) for kind in instance.system.laws}

    def _free(self, state: State, kind: Kind, sharp: bool) -> tuple[np.ndarray, np.ndarray]:
        """What cannot fall below zero at the sites of a kind, and how it moves: (n, pairs), (n, pairs, directions)."""
        here, at, z = gaps(self.instance, state, kind), slopes(self.instance, state, kind), self.moved.site[kind]
        on = state.active[kind] if sharp else here.q > here.p
        change = np.where(on[:, :, None], at.q_slopes, at.p_slopes) @ z
        return (
            np.where(on, here.q, here.p),
            change + np.where(on[:, :, None], at.q_shared, at.p_shared) @ self.moved.shared,
        )

    def of_states(self, kind: Kind, variable: int) -> np.ndarray:
        """How a variable moves at the sites of a kind, in the units of the declaration: (sites, directions)."""
        return self._cleared(self.moved.site[kind][:, variable], self._length) * self.units.site[kind][variable]

    def of_globals(self, place: int) -> np.ndarray:
        """How a global variable moves, in the units of the declaration: (1, directions)."""
        return self._cleared(self.moved.shared[place][None, :], self._length) * self.units.shared[place]

    def _cleared(self, moved: np.ndarray, length: Any) -> np.ndarray:
        return np.where(np.abs(moved).max(axis=1, keepdims=True, initial=0.0) <= self.small * length, 0.0, moved)

    def summed(self, terms: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """How a sum of slopes times moves goes, site by site; what rounding leaves of it is zero.

        Parameters
        ----------
        terms : list of tuple
            The slope in one quantity, (sites,), and how it moves, (sites, directions).
        """
        total = sum((c[:, None] * m for c, m in terms), np.zeros((1, self.count)))
        size = sum((np.abs(c) * np.abs(m).max(axis=1, initial=0.0) for c, m in terms), np.zeros(1))
        return self._cleared(np.asarray(total), np.asarray(size)[:, None])

    def field(self, x: np.ndarray, emitted: np.ndarray) -> np.ndarray:
        """How a field moves with what is emitted: (hearers, directions)."""
        size = np.sqrt((x**2) @ np.sum(emitted**2, axis=1))[:, None]
        return self._cleared(x @ emitted, size)

    def slopes(
        self, body: Expr, values: dict[Symbol, np.ndarray], moves: dict[Symbol, np.ndarray], kind: Kind | None
    ) -> np.ndarray | None:
        """How an expression moves at every site; None where it jumps, or bends with a sign that is not settled.

        Parameters
        ----------
        body : Expr
            The expression.
        values : dict
            What its symbols are, (sites,).
        moves : dict
            How those move that do, (sites, directions).
        kind : Kind or None
            The kind of the sites; None for an expression of averages.
        """
        if not moves:
            return np.zeros((1, self.count))
        for gap, sides in _switches(body):
            if gap.free_symbols & set(moves) and not self._settled(gap, sides, values, moves, kind):
                return None
        return self._along(body, values, moves)

    def _along(self, body: Expr, values: dict[Symbol, np.ndarray], moves: dict[Symbol, np.ndarray]) -> np.ndarray:
        mine = [s for s in moves if body.has(s)]
        call = compiled(list(values), [slope_almost_everywhere(body, s) for s in mine])
        with np.errstate(all="ignore"):
            found = call(*values.values())
        n = max((np.size(v) for v in values.values()), default=1)
        return self.summed([
            (np.broadcast_to(np.asarray(c, dtype=float), (n,)), np.broadcast_to(moves[s], (n, self.count)))
            for c, s in zip(found, mine, strict=True)
        ])

    def _settled(
        self,
        gap: Expr,
        sides: frozenset[int],
        values: dict[Symbol, np.ndarray],
        moves: dict[Symbol, np.ndarray],
        kind: Kind | None,
    ) -> bool:
        """Whether the sign of an expression is the same in the whole set, at every site."""
        along = self._along(gap, values, moves)
        moving = np.flatnonzero(np.any(along != 0, axis=1))
        if not len(moving):
            return True
        with np.errstate(all="ignore"):
            here = np.broadcast_to(np.asarray(compiled(list(values), gap)(*values.values()), dtype=float), len(along))
        if kind is None:
            return False
        free, change = (part[moving] for part in self._members[kind])
        along, here = along[moving], here[moving]
        ratio = np.einsum("nd,npd->np", along, change) / np.maximum(np.sum(change**2, axis=2), np.finfo(float).tiny)
        left = np.abs(along[:, None] - ratio[:, :, None] * change).max(axis=2, initial=0.0)
        parallel = left <= self.small * np.abs(along).max(axis=1, keepdims=True)
        side, scale = np.sign(ratio), np.abs(here)[:, None] + np.abs(ratio * free)
        settled = np.any(parallel & self._clear(side * (here[:, None] - ratio * free), scale, side, sides), axis=1)
        return all(self._one_sided(here[k], along[k], sides) for k in np.flatnonzero(~settled))

    def _clear(self, least: Any, scale: Any, side: Any, sides: frozenset[int]) -> Any:
        """Whether a least distance from zero, to one side of it, is none that crosses; some may touch."""
        return least > np.where(np.isin(side, list(sides)), -self.small, self.small) * scale

    def _one_sided(self, here: float, along: np.ndarray, sides: frozenset[int]) -> bool:
        """Whether a linear function has one sign in the whole set, by a linear program."""
        if not self.instance.system.affine:
            return False
        from scipy.optimize import linprog

        free = np.concatenate([f.ravel() for f, _ in self._members.values()])
        change = np.concatenate([c.reshape(-1, self.count) for _, c in self._members.values()])
        mine = np.any(np.abs(change) > self.small * np.abs(change).max(initial=0.0), axis=1)
        if not mine.any():
            return False
        side = 1.0 if here > 0 else -1.0
        found = linprog(side * along, A_ub=-change[mine], b_ub=np.maximum(free[mine], 0.0), bounds=(None, None))
        least = side * here + found.fun if found.status == 0 else -np.inf
        return bool(self._clear(least, abs(here) + np.abs(along).max(), side, sides))


_AT_ZERO = {Ge: {1}, Lt: {1}, Gt: {-1}, Le: {-1}}  # on which side nothing changes when zero is reached


def _switches(body: Expr) -> list[tuple[Expr, frozenset[int]]]:
    """The expressions at whose zeros a body jumps or bends, and the sides from which they may touch zero."""
    found = [(r.lhs - r.rhs, frozenset(_AT_ZERO.get(r.func, set()))) for r in body.atoms(Relational)]
    found += [(node.args[0], frozenset()) for node in body.atoms(sign, Heaviside)]
    found += [(node.args[0], frozenset({1, -1})) for node in body.atoms(Abs)]
    for node in body.atoms(Max, Min):
        found += [(a - b, frozenset({1, -1})) for k, a in enumerate(node.args) for b in node.args[:k]]
    return sorted(found, key=str)
