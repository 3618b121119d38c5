"""One finite instance of a system whose states move: couplings are drawn, and the declared equations run forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Expr, Float, Integer, S

from symcavity.errors import DeclarationError, NotConverged
from symcavity.evaluate.moving.drawing import SiteFormula, in_averages
from symcavity.finite.compiled import compile_system
from symcavity.finite.draw import coupling_law
from symcavity.finite.given_values import Values
from symcavity.finite.instance import Instance
from symcavity.method.close import kind_of_body
from symcavity.model.fields import RandomField
from symcavity.model.motion import is_shared
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.system import System
from symcavity.model.times import Time, step_of


@dataclass(frozen=True)
class MovingSetup:
    """What all instances of a simulation share.

    Attributes
    ----------
    system : System
    values : Values
    couplings : str or callable
    steps : int
        The last step.
    """

    system: System
    values: Values
    couplings: Any
    steps: int

    def instance(self, features: int, seed: int) -> Instance:
        """The instance with a seed, before it has run."""
        return Instance(compile_system(self.system), self.values, features, seed, coupling_law(self.couplings))


class Trajectory:
    """One instance, run forward.

    Attributes
    ----------
    states : dict
        By state and step: one number for each site.
    """

    def __init__(self, setup: MovingSetup, features: int, seed: int) -> None:
        system = setup.system
        self.setup, self.seed = setup, seed
        self.instance = setup.instance(features, seed)
        self._begin(self.instance)
        self.numbers = dict(zip(self.instance.system.constants, map(Float, self.instance.constants), strict=True))
        self._formulas: dict[Expr, SiteFormula] = {}
        self._anew: dict[Any, np.ndarray] = {}
        self.states: dict[SiteQuantity, dict[int, np.ndarray]] = {q: {} for q in system.motion.updates}
        self._fields: dict[RandomField, dict[int, np.ndarray]] = {f: {} for f in system.fields}
        motion = system.motion
        for step in range(motion.first, setup.steps + 1):
            for node in motion.order:
                if node.time is None and step != motion.first:
                    continue
                if isinstance(node, RandomField):
                    when = step if node.time is not None else 0
                    if when >= 0:
                        sent = np.broadcast_to(self.value(node.emission, when), (self.instance.size[node.sender],))
                        self._fields[node][when] = self.instance.matrix(node) @ sent
                else:
                    self._fill(node, step if node.time is not None else 0)

        self._fields.clear()
        vars(self.instance).pop("couplings", None)  # which are large, and have done their work

    def _begin(self, instance: Instance) -> None:
        """What is changed of an instance before it runs."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: functions are compiled again there."""
        return vars(self) | {"_formulas": {}}

    def _fill(self, q: SiteQuantity, step: int) -> None:
        motion = self.setup.system.motion
        if is_shared(q):
            self._share(q, step)
            return
        (kind,) = q.site
        shape = (self.instance.size[kind],)
        given, update = motion.initial.get(q, {}), motion.updates[q]
        if q.time is not None and step in given:
            self.states[q][step] = np.broadcast_to(self.value(given[step], step), shape)
            return
        t = step - update.lead
        if q.time is not None and t < 0:
            return
        rhs, total = update.equation.rhs, 0.0
        for f in self.setup.system.laws[kind].fields:
            if rhs.has(f.symbol):
                total = total + self.value(rhs.diff(f.symbol), t) * self._fields[f][t if f.time is not None else 0]
                rhs = rhs.xreplace({f.symbol: S.Zero})
        found = np.broadcast_to(total + self.value(rhs, t), shape)
        if not np.all(np.isfinite(found)):
            raise NotConverged(f"{q} is not a finite number at the step {step} of the instance {self.seed}.", {})
        self.states[q][step] = found

    def _share(self, q: SiteQuantity, step: int) -> None:
        """What all sites share at one step."""
        motion = self.setup.system.motion
        expr, t = motion.initial.get(q, {}).get(step), step
        if expr is None:
            expr, t = motion.updates[q].equation.rhs, step - motion.updates[q].lead
        if t >= 0 or step in motion.initial.get(q, {}):
            self.states[q][step] = in_averages(
                expr.xreplace(self.numbers), lambda node: self._mean(node.body, t), self._look_up(t), t, motion.time
            )

    def _mean(self, body: Expr, step: int) -> float:
        size = self.instance.size[kind_of_body(body)]
        return float(np.broadcast_to(self.value(body, step), (size,)).mean())

    def value(self, expr: Expr, step: int) -> Any:
        """An expression of one site, at all sites, where the time is a step."""
        if expr not in self._formulas:
            self._formulas[expr] = SiteFormula(expr.xreplace(self.numbers), self.setup.system.motion.time)
        return self._formulas[expr](self._look_up(step), step)

    def _drawn(self, family: Any, step: int) -> np.ndarray:
        if (family, step) not in self._anew:
            self._anew[family, step] = self.instance.anew(family, step)
        return self._anew[family, step]

    def _look_up(self, step: int) -> Callable[[SiteQuantity], Any]:
        def value(q: SiteQuantity) -> Any:
            if isinstance(q.family, Quenched) and q.time is None:
                return self.instance.quenched[q.family]
            if isinstance(q.family, Noise | Quenched):
                return self._drawn(q.family, step_of(q.time, step))
            when = 0 if q.time is None else step_of(q.time, step)
            if when not in self.states[q.now]:
                raise DeclarationError(f"{q} lies outside of the steps of this simulation.", "times of the run")
            return self.states[q.now][when]

        return value

    def average(self, body: Expr, own: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        """The average of an expression over the sites of its kind, for all values of its open times."""
        size = self.instance.size[kind_of_body(body)]
        time, out = self.setup.system.motion.time, np.empty(tuple(len(steps) for _ in own))
        for where in np.ndindex(*out.shape):
            at = {t: Integer(int(steps[k])) for t, k in zip(own, where, strict=True)}
            first = next(iter(at), None)
            moved = body.xreplace({t: k for t, k in at.items() if t != first})
            clock = 0 if first is None else int(at[first])
            value = self.value(moved if first is None else moved.xreplace({first: time}), clock)
            out[where] = np.broadcast_to(value, (size,)).mean()
        return out
