"""One finite instance: couplings and quenched parameters drawn, the equations of the system evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symcavity.errors import ValuesError
from symcavity.finite.bipartite import OTHER
from symcavity.finite.compiled import Args, CompiledLaw, CompiledSystem
from symcavity.finite.draw import Law, stream
from symcavity.finite.given_values import Values, draw_quenched
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import Quenched

_QUENCHED, _COUPLINGS = 0, 1


@dataclass
class State:
    """The variables of an instance.

    Attributes
    ----------
    site : dict
        By side, an array of shape (sites, variables).
    shared : ndarray
        The global variables.
    active : dict
        By side, a Boolean array of shape (sites, pairs): where the first member of the pair is zero.
    """

    site: dict[str, np.ndarray]
    shared: np.ndarray
    active: dict[str, np.ndarray] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a copy that shares nothing."""
        return State({s: z.copy() for s, z in self.site.items()}, self.shared.copy(), dict(self.active))


@dataclass(frozen=True)
class Residuals:
    """How well the equations of the system hold, as maxima over all sites.

    Attributes
    ----------
    stationarity : float
        Of the equations of the feature sites and of the global conditions.
    feasibility : float
        Of the equations of the datum sites and of the signs of every complementary pair.
    slackness : float
        Of the products of the pairs.
    """

    stationarity: float
    feasibility: float
    slackness: float

    @property
    def worst(self) -> float:
        """The largest of them."""
        return float(np.max([self.stationarity, self.feasibility, self.slackness]))


class Instance:
    """A finite instance of a system.

    Parameters
    ----------
    system : CompiledSystem
        The compiled system.
    values : Values
        Checked values.
    features : int
        N.
    seed : int
        The instance is a function of this seed alone.
    law : callable
        Draws couplings of unit variance.
    """

    def __init__(self, system: CompiledSystem, values: Values, features: int, seed: int, law: Law) -> None:
        self.system, self.values, self.seed = system, values, seed
        n, p = values.sizes(features)
        self.size = {FEATURE: n, DATUM: p}
        self.constants: list[float] = [*(values.parameters[s] for s in system.parameters), n, p, p / n]
        self.quenched: dict[Quenched, np.ndarray] = {}
        for k, q in enumerate(sorted(values.quenched, key=lambda q: q.name)):
            rng = stream(seed, _QUENCHED, k)
            self.quenched[q] = draw_quenched(q, values.quenched[q], self.size[q.slots[0]], rng)
        self.couplings = [
            self._draw(k, law(stream(seed, _COUPLINGS, k), (p, n))) for k in range(len(system.couplings))
        ]
        self.memory: dict[str, Any] = {}
        self.source = {s: np.zeros((self.size[s], system.laws[s].ke)) for s in (FEATURE, DATUM)}

    def spread(self, k: int) -> np.ndarray:
        """Return the variance of every entry of the k-th coupling: data as rows, features as columns."""
        return np.broadcast_to(self._scale(k), (self.size[DATUM], self.size[FEATURE]))

    def _draw(self, k: int, sample: Any) -> np.ndarray:
        scale, x = self._scale(k), np.asarray(sample, dtype=float)
        return np.multiply(x, np.sqrt(scale), out=x if x.flags.writeable and x is not sample else None)

    def _scale(self, k: int) -> np.ndarray:
        expr, variance, quenched = self.system.variances[k]
        columns = [
            self.quenched[q][None, :] if q.slots == (FEATURE,) else self.quenched[q][:, None]
            for q in quenched
        ]
        with np.errstate(all="ignore"):
            scale = np.asarray(variance(*columns, *self.constants), dtype=float)
        if not np.all(np.isfinite(scale)) or np.any(scale < 0):
            raise ValuesError(
                f"The variance {expr} of {self.system.couplings[k]} takes the value {np.min(scale):g}.",
                "finite non-negative variances",
            )
        return scale

    # -- evaluation ------------------------------------------------------------------------------

    def coupling(self, side: str, m: int) -> np.ndarray:
        """Return the couplings of the m-th field of a side, with that side's sites as rows."""
        x = self.couplings[self.system.which[side][m]]
        return x if side == DATUM else x.T

    def start(self) -> State:
        """Return the state where every variable is zero."""
        laws = self.system.laws
        return State(
            {s: np.zeros((self.size[s], laws[s].k)) for s in laws}, np.zeros(len(self.system.globals))
        )

    def emissions(self, side: str, state: State) -> np.ndarray:
        """Return what a side sends to the other: shape (sites, fields of the other side)."""
        law = self.system.laws[side]
        blank = np.zeros((self.size[side], law.m))
        return law.emission(self.arguments(side, state, blank), self.size[side])

    def fields(self, side: str, state: State) -> np.ndarray:
        """Return the random fields that a side hears: shape (sites, fields)."""
        sent = self.emissions(OTHER[side], state)
        law = self.system.laws[side]
        out = np.empty((self.size[side], law.m))
        for m in range(law.m):
            out[:, m] = self.coupling(side, m) @ sent[:, m]
        return out

    def arguments(self, side: str, state: State, fields: np.ndarray) -> Args:
        """Return the arguments of every table of a side's law."""
        law: CompiledLaw = self.system.laws[side]
        sets = () if law.sets is None else law.sets.columns(state.site[side]).T
        return [
            *state.site[side].T,
            *fields.T,
            *state.shared,
            *(self.quenched[q] for q in law.quenched),
            *self.constants,
            *sets,
        ]

    def residuals(self, state: State) -> Residuals:
        """Evaluate the equations of the system at a state; how it was found does not matter."""
        equations = {FEATURE: 0.0, DATUM: 0.0}
        sign, slack = 0.0, 0.0
        total = np.zeros(self.system.count)
        for side, law in self.system.laws.items():
            n = self.size[side]
            args = self.arguments(side, state, self.fields(side, state))
            equations[side] = _largest(law.residual(args, n) - self.source[side])
            p, q = law.p(args, n), law.q(args, n)
            sign = max(sign, _largest(np.minimum(p, 0)), _largest(np.minimum(q, 0)))
            slack = max(slack, _largest(p * q))
            rows, body, _, _ = self.system.conditions[side]
            total[rows] = body(args, n).sum(axis=0)
        return Residuals(max(equations[FEATURE], _largest(total)), max(equations[DATUM], sign), slack)


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values))) if values.size else 0.0


__all__ = ["Instance", "Residuals", "State"]
