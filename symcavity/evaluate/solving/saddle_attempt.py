"""A convex problem in the coordinates of its saddle: a point to hand over, or a proof that there is no solution."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Eq, Float, S, Symbol, sympify

from symcavity.algebra.text import plain
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.outcomes import Ended, Handover, Lost, Outcome, Tightening
from symcavity.evaluate.solving.recovery import Recovery, recovery_at
from symcavity.evaluate.solving.saddle import SMALL as BARRIER
from symcavity.evaluate.solving.saddle import Ending, root
from symcavity.evaluate.solving.saddle_map import GroupPlaces, SaddleMap
from symcavity.evaluate.solving.saddle_proofs import Contradiction, Descent, Flat, Unattained
from symcavity.evaluate.solving.separation import FarOut
from symcavity.evaluate.solving.several_minima import has_several_minima_along, has_several_minima_beside
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import DATUM, N, P, alpha
from symcavity.model.quantities import SiteQuantity, Variable

SHRUNK = 10**0.25  # by how much, while the barrier falls to a tenth, what is zero does at the least
KNOWN = BARRIER**0.5  # what is zero is known to the root of the barrier, and multipliers to such a share, too
START = 1.0  # of the coordinates that range from zero on
STRAYED = 0.05  # from a simple power, of those with which unknowns go
POLISHED, SMALL = 12, 1e-3  # Newton steps, the last of which is short; what is compared with one


def applies(task: Task, given: Given) -> bool:
    """Whether the problem has these coordinates, and its own parameters are all given.

    A parameter that names a result, as the margin names the norm, may be looked for: the problem is the same whatever
    its value, and has a minimum or not.
    """
    if not task.convex:
        return False
    saddle = task.saddle()
    return saddle is not None and not any(saddle.depends_on(s) for s in given.solve_for)


def attempt(task: Task, given: Given) -> Outcome:
    """Follow the proximal point steps; a point with all unknowns, or a proof, or what was seen."""
    with np.errstate(all="ignore"):
        return _Attempt(task, given).outcome()


def at_load(given: Given, load: float) -> Given:
    """Return the values with another load."""
    exact = {**given.exact, alpha: load}
    if P in exact:
        exact[P] = load * float(exact[N])
    return replace(given, exact=exact)


class _Attempt:
    """One run of the steps, and what they mean."""

    def __init__(self, task: Task, given: Given) -> None:
        self.task, self.given = task, given
        saddle = task.saddle()
        assert saddle is not None  # noqa: S101 - it applies
        self.saddle = saddle
        self.map = SaddleMap(saddle, task, given)

    @cached_property
    def end(self) -> Ending:
        """Where the steps lead."""
        start = np.where(self.map.low, START, 0.0)
        return root(self.map, start, self.map.low, self.map.refine)

    @property
    def at_zero(self) -> np.ndarray:
        """The coordinates that are zero at the root: there their slope is larger than they are."""
        return self.map.low & (self.end.point < self.end.value)

    @property
    def fading(self) -> np.ndarray:
        """The coordinates that go with the barrier, or with its root where the slope goes to zero, too."""
        before = self.end.point + self.end.last_step
        return self.map.low & (before > SHRUNK * self.end.point)

    def outcome(self) -> Outcome:
        """What the end means."""
        if self.end.kind == "gone":
            return self._proof()
        falling = [g for g in self.map.groups if self._falls_for_ever(g)]
        separated = self.far_out.is_separated if falling else False
        if separated:
            return Ended(self._flat(falling))
        if self.end.kind == "lost":
            return Lost("The proximal point steps of the saddle could not be carried out.", recovery=self._recovery())
        zero = self.at_zero
        # a minimum that is known to exist is not at infinity, however small the forces are at it
        groups = [g for g in self.map.groups if separated is None or g not in falling]
        idle = [g for g in groups if zero[g.beta] and zero[g.kappa]]
        free = [g for g in idle if not zero[[g.r, g.tau, g.s]].any() and not self._are_enough(g)]
        if flat := [g for g in free if self._leaves_open(g)]:
            return Ended(self._flat(flat))
        if weak := [g for g in groups if zero[g.kappa] and self.fading[g.beta] and g in falling]:
            return Ended(self._flat(weak))  # a slope that is zero nowhere, and nothing pulls
        if free:
            return Lost("No force is left at the minimum, and the costs of the sites alone fix their states.")
        if (found := self._tightening()) is not None:
            return Lost("Some conditions on sums are tight: their multipliers grow without bound.", tightening=found)
        if any(zero[[g.r, g.tau, g.s, g.beta, g.kappa]].any() for g in self.map.groups):
            said = "The minimum is at the boundary: some variance or response vanishes."
            at_rest = any(zero[g.r] or (zero[g.kappa] and not zero[g.beta]) for g in self.map.groups)
            return Lost(said, is_at_boundary=bool(at_rest), recovery=self._recovery())
        if not self._is_root():
            return Lost("The proximal point steps of the saddle became short, and Newton's method found no root there.")
        return Handover(self._unknowns(self.end.point))

    def _tightening(self) -> Tightening | None:
        """Where all has settled but for multipliers, and what goes along with them as a power; None where all has."""
        moved = -self.end.last_step
        grows = np.abs(moved) > tolerances().growing * np.maximum(1.0, np.abs(self.end.point))
        shared = list(zip(self.map.places, self.saddle.shared, strict=True))
        growing = {number.variable: place for place, number in shared if grows[place] and number.is_multiplier}
        if not growing:
            return None
        point = self._unknowns(self.end.point)
        ways = {}
        for g, place in growing.items():
            (hat,) = self.task.units[g].free_symbols & {*self.task.unknowns} - {*self.map.symbols}
            ways[hat] = point[hat] * moved[place] / self.end.point[place]
        if np.count_nonzero(grows) == len(growing):
            return Tightening(point, ways)
        powers = self._powers(point)
        return None if powers is None else Tightening(point, ways, powers)

    def _powers(self, point: dict[Symbol, float]) -> dict[Symbol, float] | None:
        """The powers of the fastest unknown with which others go for ever; None where they are not simple."""
        before = self._unknowns(self.end.point + self.end.last_step)
        rates = {s: float(np.log(v / before[s])) if v / before[s] > 0 else np.nan for s, v in point.items() if v}
        most = max(map(abs, rates.values()), default=np.nan)
        simple = {s: round(4 * rate / most) / 4 for s, rate in rates.items() if np.isfinite(rate / most)}
        if len(simple) < len(rates) or any(abs(rates[s] / most - p) > STRAYED for s, p in simple.items()):
            return None
        return {s: p for s, p in simple.items() if p}

    def _recovery(self) -> Recovery | None:
        """The group of whose field little is left beside its quenched fields, and what it seems to become."""
        for g in self.map.groups:
            seen = g.inverse @ self.end.point[g.c]
            if g.c.size and self.end.point[g.r] ** 2 < tolerances().recovered * (self.end.point[g.c] @ seen):
                return recovery_at(g.group, self.saddle, self.given, seen)
        return None

    def _is_root(self) -> bool:
        """Whether Newton's method without a barrier settles: towards an infimum that is not attained it goes on."""
        open_ = ~self.at_zero
        z = np.where(open_, self.end.point, 0.0)
        for _ in range(POLISHED):
            found = self.map(z)
            if found is None:
                return False
            step = np.linalg.lstsq(found[1][np.ix_(open_, open_)], -found[0][open_], rcond=None)[0]
            z[open_] += step
            if not np.all(z[open_ & self.map.low] > 0):
                return False
            if np.max(np.abs(step) / np.maximum(np.abs(z[open_]), SMALL), initial=0.0) < tolerances().short:
                return True
        return False

    def _unknowns(self, z: np.ndarray) -> dict[Symbol, float]:
        """All unknowns of the closed equations at a point: global variables in units of their fields."""
        point = self.map.point(np.where(self.at_zero, 0.0, z))
        env = {**self.given.environment("numpy"), **point}
        out = {s: point[s] for s in self.map.symbols}
        for g, value in self.task.units.items():
            (hat,) = value.free_symbols & {*self.task.unknowns} - {*self.map.symbols}
            out[hat] = point[g] / float(self.task.compiled(value / hat, "numpy")(env))
        return out

    # -- proofs --------------------------------------------------------------------------------------

    def _given(self) -> dict[str, Any]:
        """What every proof holds."""
        load = float(self.given.exact[alpha]) if alpha in self.given.exact else float("nan")
        return {"wanted": load, "values": self.map.point(self.end.point), "solvable": self._solvable}

    def _solvable(self, load: float) -> bool:
        """Whether there is a solution at another load."""
        return isinstance(attempt(self.task, at_load(self.given, load)), Handover)

    def _proof(self) -> Outcome:
        if not self.end.is_steady(tolerances().steady):
            return Lost("The proximal point steps went on for ever, and no direction became clear.")
        v, size = self.end.displacement, self._displaced
        if self._descends:
            return Ended(self._descent(size))
        found = self._contradiction(v, size)
        # just before solutions end they are so large that steps towards them look like steps that go on for ever;
        # what contradicts itself with some data left out does so with them
        less = at_load(self.given, found.wanted * (1 - tolerances().beside))
        if found.way == "smaller" and not _Attempt(self.task, less).contradicts:
            return Lost(
                f"The load alpha = {found.wanted:.10g} is so close to that at which solutions end that it is open "
                "whether there is one."
            )
        return Ended(found)

    @property
    def _displaced(self) -> np.ndarray:
        """The components of the displacement that do not belong to what stays finite."""
        size = np.abs(self.end.displacement)
        return size * (size > tolerances().negligible * np.max(size))

    @property
    def _descends(self) -> bool:
        """Whether the steps that go on for ever move states most, and multipliers less."""
        size, primal = self._displaced, self.map.primal
        return bool(np.max(size[primal], initial=0.0) > np.max(size[~primal], initial=0.0))

    @property
    def contradicts(self) -> bool:
        """Whether the steps go on for ever, and move multipliers."""
        return self.end.kind == "gone" and self.end.is_steady(tolerances().steady) and not self._descends

    def _contradiction(self, v: np.ndarray, size: np.ndarray) -> Contradiction:
        missed, grow, way = [], [], ""
        record = self.saddle.record
        for g in self.map.groups:
            if (own := float(np.hypot(v[g.beta], v[g.kappa]))) and size[[g.beta, g.kappa]].any():
                hearer = g.group.field.hearer
                told = [c.declared for c in record.problem.constraints if c.expr.has(self._mark(g))]
                text = ", ".join(dict.fromkeys(map(_told, told))) or plain(g.group.field.as_sum)
                missed.append((f"the constraints of the {hearer.sites}, {text},", own))
                grow += [s.symbol for s in (g.group.back_size, g.group.back_answer)]
                way = "smaller" if hearer == DATUM else way
        declared = {nu: condition.declared for nu, condition in record.conditions}
        for place, number in zip(self.map.places, self.saddle.shared, strict=True):
            if number.is_multiplier and size[place]:
                missed.append((f"the condition {_told(declared[number.variable])}", float(v[place])))
                grow.append(number.variable)
        return Contradiction(way=way, missed=tuple(missed), diverging=tuple(grow), **self._given())

    def _mark(self, g: GroupPlaces) -> FieldSymbol:
        """The placeholder of a field in the declaration."""
        (found,) = {f.symbol for f in self.saddle.record.fields if f.as_sum == g.group.field.as_sum}
        return found

    def _descent(self, size: np.ndarray) -> Descent:
        grow: list[Symbol] = []
        for g in self.map.groups:
            grow += [g.group.size.symbol] if size[[g.r, g.s]].any() else []
            grow += [g.group.answer.symbol] if size[g.tau] else []
            grow += [m.symbol for m, place in zip(g.group.overlaps, g.c, strict=True) if size[place]]
        shared = zip(self.map.places, self.saddle.shared, strict=True)
        grow += [number.variable for place, number in shared if size[place] and not number.is_multiplier]
        rate = float(np.linalg.norm(size))
        return Descent(way="larger", diverging=tuple(grow), rate=rate, **self._given())

    def _flat(self, idle: list[GroupPlaces]) -> Flat:
        fields = tuple(plain(g.group.field.as_sum) for g in idle)
        open_ = tuple(s.symbol for g in idle if self._leaves_open(g) for s in (g.group.size, g.group.answer))
        form = Unattained if any(self._falls_for_ever(g) for g in idle) else Flat
        grown = self._growing()
        way = "" if grown and form is Unattained else "larger"  # at any load a bias alone may lead there
        return form(way=way, fields=fields, diverging=(*open_, *grown), **self._given())

    def _growing(self) -> tuple[Symbol, ...]:
        """The global variables that the last step still moved."""
        moved = np.abs(self.end.last_step) > tolerances().growing * np.maximum(1.0, np.abs(self.end.point))
        shared = zip(self.map.places, self.saddle.shared, strict=True)
        return tuple(number.variable for place, number in shared if moved[place] and not number.is_multiplier)

    def _leaves_open(self, g: GroupPlaces) -> bool:
        """Whether the costs of the sites that no force reaches have more than one minimum, or there are none.

        Conditions on sums add to these costs: with its multiplier ``Abs(w) - w`` is zero for all ``w >= 0``.
        """
        sender, zero = g.group.field.sender, self.at_zero
        cost = self.saddle.record.problem.objective.get(sender, S.Zero)
        places = dict(zip(self.saddle.shared, self.map.places, strict=True))
        known = {n.variable: float(self.end.point[p]) for n, p in places.items() if n.is_multiplier}
        for nu, condition in self.saddle.record.conditions:
            if abs(known[nu]) > KNOWN:
                cost -= Float(known[nu]) * condition.parts.get(sender, S.Zero)
        cost = cost.xreplace({s: sympify(v) for s, v in self.given.exact.items()})
        states = sorted((q for q in cost.atoms(SiteQuantity) if isinstance(q.family, Variable)), key=str)
        heard = [o for o in self.map.groups if o.group.field.sender == sender]
        if len(states) > 1 and not all(zero[o.beta] and zero[o.kappa] for o in heard):
            return False  # a force on one of the states may fix the others
        return not states or has_several_minima_beside(cost, states, KNOWN)

    def _are_enough(self, g: GroupPlaces) -> bool:
        """Whether as many sites hear a field as send it, and each is at rest at one value of the field alone.

        They fix the states by themselves, however weak they become: ``(h - t)**4`` has no slope and no curvature at its
        minimum, and no other minimum.
        """
        f = g.group.field
        env = self.given.environment("numpy")
        known = {r: Float(env[r]) for k in (f.hearer, f.sender) for r in k.ratio.free_symbols}
        if f.hearer.ratio.xreplace(known) < f.sender.ratio.xreplace(known) or self._falls_for_ever(g):
            return False
        mark, problem = self._mark(g), self.saddle.record.problem
        body = problem.objective.get(f.hearer, S.Zero)
        if not body.has(mark) or any(c.expr.has(mark) for c in problem.constraints):
            return False  # constraints leave a range
        return not has_several_minima_along(body.xreplace({s: sympify(v) for s, v in self.given.exact.items()}), mark)

    def _falls_for_ever(self, g: GroupPlaces) -> bool:
        return self.far_out.falls_for_ever(g.group.field.hearer, self._mark(g))

    @cached_property
    def far_out(self) -> FarOut:
        """The terms of the problem far out."""
        return FarOut(self.saddle.record.problem, self.task, self.given)


def _told(relation: Any) -> str:
    """A condition as it was declared."""
    return plain(relation) if not isinstance(relation, Eq) else f"{plain(relation.lhs)} = {plain(relation.rhs)}"
