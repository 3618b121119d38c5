"""Many sites of each kind, filled forward: what all ways to sample paths have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Expr, S

from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.anew import Anew, sampled
from symcavity.evaluate.moving.drawing import SiteFormula, in_averages
from symcavity.evaluate.moving.plan import MovingPlan, Term
from symcavity.model.averages import Average
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.times import step_of

BATCHES = 10


def check_sampling(paths: Any, seed: Any) -> None:
    """Refuse what is no number of paths, or too few for batches, and what is no seed.

    Raises
    ------
    ValuesError
        With what is supported.
    """
    if not isinstance(paths, int) or isinstance(paths, bool) or paths < 4 * BATCHES:
        raise ValuesError(f"paths = {paths!r}.", f"a whole number of paths, at least {4 * BATCHES}")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValuesError(f"seed = {seed!r}.", "a whole number from zero on")


class Filling:
    """Sites of each kind, whose states are filled step by step; how a field is drawn is left to those that inherit.

    Parameters
    ----------
    plan : Plan
    steps : int
        The last step.
    paths : int
        How many paths of each kind, in all batches together.
    seed : int
    """

    dtype = float
    follows = True  # whether the responses of paths are followed where nothing that comes back needs them
    tangents: Any

    def __init__(self, plan: MovingPlan, steps: int, paths: int, seed: int) -> None:
        check_sampling(paths, seed)
        self.plan, self.steps, self.batches = plan, steps, BATCHES
        self.shape = (BATCHES, -(-paths // BATCHES))
        self.first = plan.motion.first
        self._rng = {kind: np.random.default_rng([seed, k]) for k, kind in enumerate(plan.sites)}
        self.quenched = {kind: self._quenched(kind) for kind in plan.sites}
        self._anew = Anew(plan.values, seed, self.shape)
        self.states: dict[SiteQuantity, dict[int, np.ndarray]] = {q: {} for q in plan.motion.updates}
        self.fields: dict[RandomField, dict[int, np.ndarray]] = {f: {} for f in plan.heard}
        self._formulas: dict[Expr, SiteFormula] = {}

    # -- values ------------------------------------------------------------------------------------

    def _quenched(self, kind: Kind) -> dict[Quenched, np.ndarray]:
        """One value of each quenched parameter for every path."""
        law, rng = self.plan.values.laws.get(kind), self._rng[kind]
        out: dict[Quenched, np.ndarray] = {}
        if law is None:
            return {}
        if law.arrays:
            count = len(next(iter(law.arrays.values())))
            chosen = rng.integers(0, count, self.shape)
            out |= {q: column[chosen] for q, column in law.arrays.items()}
        elif law.names:
            weights = np.array([float(w) for w in law.weights])
            chosen = rng.choice(len(weights), self.shape, p=weights / weights.sum())
            for k, q in enumerate(law.names):
                out[q] = np.array([float(point[k]) for point in law.points])[chosen]
        for q, variable in law.continuous:
            if q.over is None:
                out[q] = sampled(variable, self.shape, rng)
        return out

    def formula(self, expr: Expr) -> SiteFormula:
        """An expression, compiled once."""
        if expr not in self._formulas:
            self._formulas[expr] = SiteFormula(expr, self.plan.time)
        return self._formulas[expr]

    def look_up(self, step: int) -> Callable[[SiteQuantity], Any]:
        """What gives states and quenched parameters where the time is a step."""

        def value(q: SiteQuantity) -> Any:
            if isinstance(q.family, Quenched) and q.time is None:
                (kind,) = q.site
                return self.quenched[kind][q.family]
            if isinstance(q.family, Noise | Quenched):
                return self._anew(q, step_of(q.time, step))
            when = 0 if q.time is None else step_of(q.time, step)
            return self.states[q.now][when]

        return value

    def value(self, expr: Expr, step: int) -> Any:
        """An expression of one site, for all paths."""
        return self.formula(expr)(self.look_up(step), step)

    # -- forward -----------------------------------------------------------------------------------

    def _run(self) -> None:
        self.plan.forward(self.first, self.steps, self._hear, self._fill)

    def _share(self, q: SiteQuantity, step: int) -> None:
        """What all sites share at one step: one number for each batch."""
        expr, t = self.plan.initial.get(q, {}).get(step), step
        if expr is None:
            expr, t = self.plan.shared[q], step - self.plan.motion.updates[q].lead
            if t < 0:
                return

        def mean(node: Average) -> np.ndarray:
            return np.broadcast_to(self.value(node.body, t), self.shape).mean(axis=1, keepdims=True)

        found = in_averages(expr, mean, self.look_up(t), t, self.plan.time)
        self._check_finite(q, [found], step)
        self.states[q][step] = np.broadcast_to(found, (self.batches, 1))

    def _fill(self, q: SiteQuantity, step: int) -> None:
        if q in self.plan.shared:
            self._share(q, step)
            return
        row, given = self.plan.rows[q], self.plan.initial.get(q, {})
        if q.time is not None and step in given:
            self.states[q][step] = np.broadcast_to(self.value(given[step], step), self.shape)
            return
        t = step - row.update.lead
        if q.time is not None and t < 0:
            return
        total = self.value(row.rhs, t)
        for f, factor in row.fields:
            total = total + self.value(factor, t) * self.fields[f][t if f.time is not None else 0]
        self._check_finite(q, [total], step)
        self.states[q][step] = np.broadcast_to(total, self.shape)
        self.tangents.follow(q, step)

    def _check_finite(self, q: Any, values: Any, step: int) -> None:
        if not all(np.all(np.isfinite(v)) for v in values):
            raise NotConverged(
                f"The states grow without bound: {q} is not a finite number at the step {step}, on some path.",
                hint="parameters at which states stay finite; a smaller step where a rule of integration is unstable",
            )

    def _scale(self, f: RandomField, t: int) -> Any:
        """The root of what multiplies the variance of a field at each site."""
        terms = self.plan.covariances[f, f]
        local = [t_.factor for t_ in terms if site_quantities(t_.factor)]
        if not local:
            return 1.0
        if len(terms) > 1:
            raise UnsupportedLaw(
                f"The variance of the field {f.as_sum} is a sum of terms that differ from site to site.",
                "couplings whose variance is one product of quantities of the two ends",
            )
        return np.sqrt(self.value(local[0], t))

    def _hear(self, f: RandomField, t: int) -> None:
        """Draw a cavity field, and add what comes back."""
        raise NotImplementedError

    def factor_of(self, term: Term, f: RandomField, g: RandomField) -> float:
        """What multiplies a kernel in the covariance of two fields, in units of their scales."""
        factor = term.factor
        if site_quantities(factor):
            one, other = (self.plan.covariances[h, h][0].factor for h in (f, g))
            factor = S(factor / (one * other) ** S.Half) if f != g else S.One
            factor = factor.simplify()
            if site_quantities(factor):
                raise UnsupportedLaw(
                    f"The covariance of {f.as_sum} and {g.as_sum} differs from site to site in its own way.",
                    "correlated couplings with the same variance",
                )
        return float(factor)
