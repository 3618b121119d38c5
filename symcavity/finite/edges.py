"""Where the sites of an instance lie at an edge of their law: a constraint that holds, a weight that is zero.

An event such as ``w > 0`` is read from the regime of the law: where the active members of the pairs of a site hold the
two sides equal, whatever the site hears, they are equal, and no last digit is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Heaviside, Symbol, sign
from sympy.core.relational import Relational

from symcavity.algebra.compiled import compiled
from symcavity.finite.compiled import slope_almost_everywhere
from symcavity.finite.instance import Instance, State
from symcavity.finite.linearised import Plane
from symcavity.finite.newton import gaps, local_system, slopes
from symcavity.finite.units import InstanceUnits
from symcavity.model.kinds import Kind

EVENTS = (Relational, sign, Heaviside)  # what a last digit could decide
_ROUNDED, _HELD = 1e-9, 1e-6  # in units of what is compared: rounding, and where a law holds it besides
_STILL = 1e-9


class Edges:
    """The directions in which the sites of a solved instance can move while every pair keeps its branch.

    Parameters
    ----------
    own, state : Instance, State
        The instance and its solution, in its own units.
    units : Units
        These units.
    sharp : bool
        Whether every pair is on a definite branch; otherwise the smaller member of each is taken as zero.
    """

    def __init__(self, own: Instance, state: State, units: InstanceUnits, *, sharp: bool) -> None:
        self.own, self.state, self.units, self.sharp = own, state, units, sharp
        self._planes: dict[Kind, tuple[np.ndarray, np.ndarray, np.ndarray] | None] = {}

    def _plane(self, kind: Kind) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """How states, fields and globals move together, each by direction in the last axis."""
        if kind not in self._planes:
            self._planes[kind] = self._found(kind)
        return self._planes[kind]

    def _found(self, kind: Kind) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        law, state = self.own.system.laws[kind], self.state
        if law.sets is not None:
            return None
        on = state.active.get(kind)
        if on is None or not self.sharp:
            here = gaps(self.own, state, kind)
            on = here.p <= here.q
        weights = on.astype(float), (~on).astype(float)
        try:
            plane = Plane(local_system(self.own, kind, slopes(self.own, state, kind), weights, grouped=True))
            load = plane.load(-plane.local.shared)
        except np.linalg.LinAlgError:
            return None
        count = len(self.own.system.globals)
        return (
            np.concatenate([plane.tz, load.z0], axis=2) * self.units.site[kind][None, :, None],
            np.concatenate([plane.tu, load.u0], axis=2)
            * np.array([self.units.of(f.symbol) for f in law.fields])[None, :, None],
            np.concatenate([np.zeros((count, plane.m)), np.eye(count)], axis=1) * self.units.shared[:, None],
        )

    def move(self, kind: Kind, what: tuple[str, int]) -> np.ndarray | None:
        """How a state, a field or a global moves, (sites or 1, directions); None where that is not known.

        Parameters
        ----------
        kind : Kind
            The kind of the sites.
        what : tuple
            ``"state"``, ``"field"`` or ``"global"``, and its place.
        """
        plane = self._plane(kind)
        if plane is None:
            return None
        name, place = what
        return plane[2][place][None, :] if name == "global" else plane[0 if name == "state" else 1][:, place]

    def decided(
        self,
        body: Expr,
        kind: Kind,
        values: Mapping[Any, np.ndarray],
        moving: Mapping[Any, tuple[str, int] | None],
        written: Mapping[Any, Any],
    ) -> tuple[Expr, dict[Symbol, np.ndarray]]:
        """Put marks in the place of the signs on which an expression depends.

        Parameters
        ----------
        body : Expr
            An expression of one site, in symbols.
        kind : Kind
            Its kind.
        values : dict
            The values of the symbols.
        moving : dict
            What those symbols are that move: a state, a field or a global; None for others that do.
        written : dict
            What the symbols stand for, which says their units.

        Returns
        -------
        tuple
            The expression, and the values of the marks: 1, 0, -1.
        """
        rule: dict[Any, Any] = {}
        marks: dict[Symbol, np.ndarray] = {}
        for k, node in enumerate(sorted(body.atoms(*EVENTS), key=str)):
            gap = node.lhs - node.rhs if isinstance(node, Relational) else node.args[0]
            if not gap.free_symbols & set(values):
                continue
            mark = Dummy(f"edge{k}", real=True)
            marks[mark] = self._sign(gap, kind, values, moving, written)
            if isinstance(node, sign):
                rule[node] = mark
            else:
                rule[node] = node.func(mark, *([0] if isinstance(node, Relational) else node.args[1:]))
        return body.xreplace(rule), marks

    def _sign(
        self,
        gap: Expr,
        kind: Kind,
        values: Mapping[Any, np.ndarray],
        moving: Mapping[Any, tuple[str, int] | None],
        written: Mapping[Any, Any],
    ) -> np.ndarray:
        with np.errstate(all="ignore"):
            here = np.asarray(compiled(list(values), gap)(*values.values()), dtype=float)
        here = np.broadcast_to(here, (self.own.size[kind],))
        size = max(self.units.observable(term.xreplace(written)) * _factor(term) for term in Add.make_args(gap))
        near = np.abs(here) <= _ROUNDED * size
        beside = (np.abs(here) <= _HELD * size) & ~near
        if np.any(beside):
            near |= beside & self._held(gap, kind, values, moving)
        return np.where(near, 0.0, np.sign(here))

    def _held(
        self, gap: Expr, kind: Kind, values: Mapping[Any, np.ndarray], moving: Mapping[Any, tuple[str, int] | None]
    ) -> np.ndarray:
        """Where the law of a site itself holds an expression, whatever the site hears."""
        mine = [s for s in values if s in moving and gap.has(s)]
        moves = [None if (what := moving[s]) is None else self.move(kind, what) for s in mine]
        n = self.own.size[kind]
        if any(m is None for m in moves):
            return np.zeros(n, dtype=bool)
        with np.errstate(all="ignore"):
            found = compiled(list(values), [slope_almost_everywhere(gap, s) for s in mine])(*values.values())
        slopes_here = [np.broadcast_to(np.asarray(c, dtype=float), (n,))[:, None] for c in found]
        parts = [c * m for c, m in zip(slopes_here, moves, strict=True)]
        total, size = np.abs(sum(parts, np.zeros((n, 1)))), sum((np.abs(p) for p in parts), np.zeros((n, 1)))
        return np.asarray(np.all(total <= _STILL * np.max(size, axis=1, initial=0.0, keepdims=True), axis=1))


def _factor(term: Expr) -> float:
    """The number in front of a term."""
    return max(abs(float(term.as_coeff_Mul()[0])), np.finfo(float).tiny)
