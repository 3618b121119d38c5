"""Sums over all sites of an instance at a temperature: global variables that they tell, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
                raise UnsupportedLaw(f"{c.declared} is about fields.", "instances with conditions on sums over states")
        known = {*tied, *system.collective.multipliers}
        if other := [g for g in system.globals if g not in known]:
            raise UnsupportedLaw(
                f"The measure has the global variable {other[0]}, which is neither a state nor a sum over sites.",
                "instances of measures whose global variables are sums, as a squared sum in the energy brings them",
            )
        return cls(w, tied, held)

    def _total(self, condition: SumCondition, x: Mapping[Any, np.ndarray]) -> np.ndarray:
        """The sum over sites, by configuration."""
        out: Any = 0.0
        for kind, body in condition.parts.items():
            body = self.w.system.own(body)
            own = [q for q in x if body.has(q)]
            rows = (len(next(iter(x.values()))), self.w.size(kind))
            out = out + np.broadcast_to(self.w.call(body, own)(*(x[q] for q in own)), rows).sum(axis=1)
        return np.asarray(out)

    def constant(self, condition: SumCondition) -> float:
        """What stands in a condition beside the sum over sites, where nothing is tied."""
        return float(self._shared(condition.shared, {}))

    def _shared(self, expr: Expr, known: Mapping[Any, Any]) -> Any:
        names = list(known)
        body = expr.xreplace(self._sizes(expr))
        return self.w.call(body, names)(*(known[g][:, 0] for g in names)) if body != 0 else 0.0

    def _sizes(self, expr: Expr) -> dict[Any, Any]:
        return {s: Float(self.w.size(s.kind)) for s in expr.atoms(SiteCount)}

    def values(self, x: Mapping[Any, np.ndarray]) -> dict[Global, np.ndarray]:
        """The values of the global variables, one row a configuration."""
        out: dict[Global, np.ndarray] = {}
        for g, condition in self.tied.items():
            scale = float(-condition.shared.diff(g).xreplace(self.w.numbers | self._sizes(condition.shared)))
            out[g] = self._total(condition, x)[:, None] / scale
        return out

    def energy(self, x: Mapping[Any, np.ndarray], tied: Mapping[Global, np.ndarray]) -> Any:
        """The energy that belongs to no site; out of reach where a condition does not hold."""
        total = self._shared(self.w.system.collective.energy, tied)
        for condition in self.held:
            value = self._total(condition, x) + self._shared(condition.shared, tied)
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
