"""Sums over all sites of an instance at a temperature: global variables that they determine, and conditions on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Expr, Float

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.method.mirrors import turns
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import Global
from symcavity.model.reading import SumCondition
from symcavity.model.system import System

BEYOND = 10**12  # an energy that nothing reaches
EXACT = 1e-9  # by which share of the number of sites a sum may miss a condition, of rounding


@dataclass(frozen=True)
class ConditionsOnSums:
    """What an instance makes of conditions on sums over all sites.

    Attributes
    ----------
    w : WarmInstance
    tied : dict
        The global variables that sums over sites tell, each with its condition, ``Sum(t*s) = M*N``.
    held : tuple of SumCondition
        Those that states have to meet.
    """

    w: Any
    tied: Mapping[Global, SumCondition]
    held: tuple[SumCondition, ...]
    calls: dict[Any, Any] = field(default_factory=dict, compare=False)

    def _remembered(self, key: Any, made: Callable[[], Any]) -> Any:
        """What an expression is as a function, made once: samples ask at each of their moves."""
        if key not in self.calls:
            self.calls[key] = made()
        return self.calls[key]

    @classmethod
    def of(cls, system: System, w: Any) -> ConditionsOnSums:
        """Read the conditions of a Gibbs measure.

        Raises
        ------
        UnsupportedLaw
            For global variables that no sum over states tells: they are no states, and do not fluctuate.
        """
        conditions = list(system.collective.multipliers.values())
        brought = {said: g for g, said in system.rewritten.declaration.brought}
        tied = {brought[c.declared]: c for c in conditions if c.declared in brought}
        held = tuple(c for c in conditions if c.declared not in brought)
        for c in conditions:
            if any(body.has(FieldSymbol) for body in c.parts.values()):
                raise UnsupportedLaw(
                    f"The condition {c.declared} contains fields.", "instances with conditions on sums over states"
                )
        known = {*tied, *system.collective.multipliers}
        if other := [g for g in system.globals if g not in known]:
            raise UnsupportedLaw(
                f"The measure has the global variable {other[0]}, which is neither a state nor a sum over sites.",
                "measures whose global variables are sums over sites, such as those of a squared sum in the energy",
            )
        return cls(w, tied, held)

    def _total(self, condition: SumCondition, x: Mapping[Any, np.ndarray]) -> np.ndarray:
        """The sum over sites, by configuration."""
        rows, names, out = len(next(iter(x.values()))), tuple(x), 0.0
        key = condition.declared, names
        for kind, own, function in self._remembered(key, lambda: self._bodies(condition, names)):
            shape = (rows, self.w.size(kind))
            out = out + np.broadcast_to(function(*(x[q] for q in own)), shape).sum(axis=1)
        return np.asarray(out)

    def _bodies(self, condition: SumCondition, names: Sequence[Any]) -> list[tuple[Any, list[Any], Any]]:
        """By kind, the states that stand in the sum, and its terms as a function of them."""
        bodies = {kind: self.w.system.own(body) for kind, body in condition.parts.items()}
        used = {kind: [q for q in names if body.has(q)] for kind, body in bodies.items()}
        return [(kind, used[kind], self.w.call(body, used[kind])) for kind, body in bodies.items()]

    def constant(self, condition: SumCondition) -> float:
        """What stands in a condition beside the sum over sites, where nothing is tied."""
        return float(self.shared(condition.shared, {}))

    def shared(self, expr: Expr, known: Mapping[Any, Any]) -> Any:
        """What belongs to no site, at values of global variables."""
        if expr == 0:
            return 0.0
        names = tuple(known)
        function = self._remembered((expr, names), lambda: self.w.call(expr.xreplace(self._sizes(expr)), names))
        return function(*(known[g][:, 0] for g in names))

    def _sizes(self, expr: Expr) -> dict[Any, Any]:
        return {s: Float(self.w.size(s.kind)) for s in expr.atoms(SiteCount)}

    def values(self, x: Mapping[Any, np.ndarray]) -> dict[Global, np.ndarray]:
        """The values of the global variables, one row a configuration."""
        return {g: self._total(c, x)[:, None] / self.scale(g) for g, c in self.tied.items()}

    def scale(self, g: Global) -> float:
        """What a sum over sites is divided by to be a global variable."""
        return float(self._remembered(g, lambda: self._scale(g)))

    def _scale(self, g: Global) -> float:
        shared = self.tied[g].shared
        return float(-shared.diff(g).xreplace(self.w.numbers | self._sizes(shared)))

    def energy(self, x: Mapping[Any, np.ndarray], tied: Mapping[Global, np.ndarray]) -> Any:
        """The energy that belongs to no site; out of reach where a condition does not hold."""
        total = self.shared(self.w.system.collective.energy, tied)
        for condition in self.held:
            value = self._total(condition, x) + self.shared(condition.shared, tied)
            size = max(self.w.instance.size.values())
            missed = np.abs(value) if condition.equality else np.maximum(-value, 0.0)
            # the farther away the worse: moves lead there from wherever samples begin
            total = total + np.where(missed <= EXACT * size, 0.0, BEYOND * (1 + missed / size))
        return total

    def turned(self, x: Mapping[Any, np.ndarray]) -> dict[Any, np.ndarray]:
        """Configurations of which those with a negative sum are their mirror images, as a solution shows one of two."""
        out = dict(x)
        for moved, signs in turns(self.w.system) if self.tied else ():
            g = next((g for g in self.tied if signs[g] < 0), None)
            if g is not None:
                way = np.where(self.values(out)[g] < 0, -1.0, 1.0)
                return {q: v * way if q in moved else v for q, v in out.items()}
        return out

    def check(self, energies: np.ndarray) -> None:
        """Refuse conditions that no configuration meets."""
        if self.held and not np.any(energies < BEYOND / 2):
            raise ValuesError(
                f"No configuration of these sizes meets {self.held[0].declared}.",
                "sizes at which the sum can have the value, inequalities",
            )
