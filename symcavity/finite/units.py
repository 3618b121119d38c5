"""The units of an instance, as large as its data.

Targets in other units are the same problem: weights, penalties and messages follow.  In its own units an instance has
data of order one, so that a tolerance is relative to them.  Units are powers of two: to change them rounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from symcavity.finite.instance import Instance, State
from symcavity.model.dimensions import fitted
from symcavity.model.kinds import Kind


def _size(values: Any) -> float:
    """The root of the mean square of numbers; zero where they all are."""
    array = np.abs(np.asarray(values, dtype=float))
    top = float(np.max(array, initial=0.0))
    return top * float(np.sqrt(np.mean((array / top) ** 2))) if 0 < top < np.inf else 0.0


def _logarithms(numbers: Iterable[tuple[np.ndarray, float]]) -> list[tuple[np.ndarray, float]]:
    return [(p, float(np.log2(size))) for p, size in numbers if size > 0]


class InstanceUnits:
    """The units of one instance, as large as its data; parameters settle those that no datum has.

    Parameters
    ----------
    instance : Instance
        The instance.
    """

    def __init__(self, instance: Instance) -> None:
        system, self.dimensions = instance.system, instance.system.dimensions
        power = self.dimensions.of
        spread = [np.sqrt(float(np.mean(instance.scale(k))) * instance.features) for k in range(len(system.couplings))]
        data = [(power(q.at_site()), _size(v)) for q, v in instance.quenched.items()]
        data += [(power(x.family), size) for x, size in zip(system.couplings, spread, strict=True)]
        given = [(power(s), abs(v)) for s, v in zip(system.constants, instance.constants, strict=True)]
        self._logarithms = np.rint(fitted(self.dimensions.count, (_logarithms(data), _logarithms(given))))
        laws = system.laws
        self.site = {kind: self._many(laws[kind].unknowns) for kind in laws}
        self.shared = self._many(system.globals)
        self.equations = {kind: np.exp2(self.dimensions.equations[kind] @ self._logarithms) for kind in laws}

    def of(self, symbol: Any) -> float:
        """The unit of a symbol."""
        return float(np.exp2(self.dimensions.of(symbol) @ self._logarithms))

    def observable(self, expr: Any) -> float:
        """The unit of an expression; one where its parts have different ones."""
        power = self.dimensions.observable(expr)
        return 1.0 if power is None else float(np.exp2(power @ self._logarithms))

    def _many(self, symbols: Iterable[Any]) -> np.ndarray:
        return np.array([self.of(s) for s in symbols])

    @property
    def trivial(self) -> bool:
        """Whether an instance is in its own units as it is declared."""
        return not np.any(self._logarithms)

    def instance(self, instance: Instance) -> Instance:
        """Return an instance in these units; itself where it is."""
        if self.trivial:
            return instance
        own, system = copy(instance), instance.system
        own.quenched = {q: v / self.of(q.at_site()) for q, v in instance.quenched.items()}
        own.constants = [v / self.of(s) for s, v in zip(system.constants, instance.constants, strict=True)]
        units = [self.of(x.family) for x in system.couplings]
        own.couplings = [x if u == 1 else x / u for x, u in zip(instance.couplings, units, strict=True)]
        own.source = {kind: source / self.equations[kind] for kind, source in instance.source.items()}
        own.memory, own.idle, own.held = {}, instance.idle.copy(), {}
        return own

    def inward(self, state: State) -> State:
        """Return a state in these units."""
        return self._times(state, {kind: 1 / u for kind, u in self.site.items()}, 1 / self.shared)

    def outward(self, state: State) -> State:
        """Return a state in the units of the declaration."""
        return self._times(state, self.site, self.shared)

    def _times(self, state: State, site: Mapping[Kind, np.ndarray], shared: np.ndarray) -> State:
        if self.trivial:
            return state
        out = state.copy()
        out.site = {kind: z * site[kind] for kind, z in state.site.items()}
        out.shared = state.shared * shared
        return out
