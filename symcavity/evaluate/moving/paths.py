"""Any law, filled forward by sampled paths: one pass, no iteration.

The states of all paths up to one time give the kernels up to there; each cavity field is then drawn given its own past
(a row of a Cholesky factor), and the states that follow it are filled. Responses are the tangents of each path,
carried forward along with it. Several batches are run beside each other, each with kernels of its own: what they
differ by is the standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Expr, Integer, S

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.anew import Anew, sampled
from symcavity.evaluate.moving.drawing import CavityFields, Formula, in_averages
from symcavity.evaluate.moving.plan import Echo, Plan
from symcavity.evaluate.moving.tangents import Tangents
from symcavity.evaluate.progress import counted
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.times import Time, step_of
from symcavity.record.symbols import MovingParameter

BATCHES = 10


class PathRun:
    """A run over sampled paths.

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

    def __init__(self, plan: Plan, steps: int, paths: int, seed: int) -> None:
        if not isinstance(paths, int) or isinstance(paths, bool) or paths < 4 * BATCHES:
            raise ValuesError(f"paths = {paths!r}.", f"a whole number of paths, at least {4 * BATCHES}")
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ValuesError(f"seed = {seed!r}.", "a whole number from zero on")
        self.plan, self.steps, self.batches = plan, steps, BATCHES
        self.shape = (BATCHES, -(-paths // BATCHES))
        self.first = plan.motion.first
        self._rng = {kind: np.random.default_rng([seed, k]) for k, kind in enumerate(plan.sites)}
        self.quenched = {kind: self._quenched(kind) for kind in plan.sites}
        self._anew = Anew(plan.values, seed, self.shape)
        self.states: dict[SiteQuantity, dict[int, np.ndarray]] = {q: {} for q in plan.motion.updates}
        self.fields: dict[RandomField, dict[int, np.ndarray]] = {f: {} for f in plan.heard}
        self._formulas: dict[Expr, Formula] = {}
        self._emitted: dict[Expr, list[np.ndarray]] = {}
        self._back: dict[tuple[Echo, int], list[np.ndarray]] = {}
        self.drawn: dict[Kind, list[tuple[RandomField, int]]] = {kind: [] for kind in plan.sites}
        most = {kind: len(s.heard) * (steps + 1) for kind, s in plan.sites.items()}
        self.noise = {kind: CavityFields(self.shape, most[kind], self._rng[kind]) for kind in plan.sites}
        self.tangents = Tangents(self)
        self.kernels: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
        self._run()

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

    def formula(self, expr: Expr) -> Formula:
        """An expression, compiled once."""
        if expr not in self._formulas:
            self._formulas[expr] = Formula(expr, self.plan.time)
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

    def emitted(self, expr: Expr, last: int) -> list[np.ndarray]:
        """An expression at all steps up to one."""
        found = self._emitted.setdefault(expr, [])
        while len(found) <= last:
            found.append(np.broadcast_to(self.value(expr, len(found)), self.shape))
        return found

    # -- forward -----------------------------------------------------------------------------------

    def _run(self) -> None:
        with counted(self.steps + 1, "steps filled") as count:
            for step in range(self.first, self.steps + 1):
                for node in self.plan.motion.order:
                    if node.time is None and step != self.first:
                        continue
                    if isinstance(node, RandomField):
                        if step >= 0 or node.time is None:
                            self._hear(node, step if node.time is not None else 0)
                    else:
                        self._fill(node, step if node.time is not None else 0)
                if step >= 0:
                    count.advance()

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
        self._check_finite(q, found, step)
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
        self._check_finite(q, total, step)
        self.states[q][step] = np.broadcast_to(total, self.shape)
        self.tangents.follow(q, step)

    def _check_finite(self, q: SiteQuantity, value: Any, step: int) -> None:
        if not np.all(np.isfinite(value)):
            raise UnsupportedLaw(
                f"{q} is no finite number at the step {step}, on some path.",
                "laws whose states stay finite; a smaller step where a rule of integration is unstable",
            )

    def _hear(self, f: RandomField, t: int) -> None:
        """Draw a cavity field given its past, and add what comes back."""
        kind = f.hearer
        before = self.drawn[kind]
        scale = self._scale(f, t)
        row = np.zeros((self.batches, len(before)))
        for g in dict.fromkeys(g for g, _ in before):
            places = [k for k, (h, _) in enumerate(before) if h == g]
            row[:, places] = self._covariances(f, t, g, [before[k][1] for k in places])
        variance = self._covariances(f, t, f, [t])[:, 0]
        if np.any(variance < -1e-9 * np.abs(variance).max()):
            raise UnsupportedLaw(
                f"The variance of the cavity field of {f.as_sum} is negative.", "couplings with real entries"
            )
        eta = self.noise[kind].draw(row, np.maximum(variance, 0.0)) * scale
        before.append((f, t))
        self.fields[f][t] = eta + self._returned(f, t)
        self.tangents.hear(f, t)

    def _scale(self, f: RandomField, t: int) -> Any:
        """The root of what multiplies the variance of a field at each site."""
        terms = self.plan.covariances[f, f]
        local = [t_.factor for t_ in terms if site_quantities(t_.factor)]
        if not local:
            return 1.0
        if len(terms) > 1:
            raise UnsupportedLaw(
                f"The variance of the field {f.as_sum} is a sum of terms that differ from site to site.",
                "couplings whose variance is one product of what belongs to either end",
            )
        return np.sqrt(self.value(local[0], t))

    def _covariances(self, f: RandomField, t: int, g: RandomField, steps: Sequence[int]) -> np.ndarray:
        """The covariances of a field with another at some steps, in units of their scales."""
        out = np.zeros((self.batches, len(steps)))
        for term in self.plan.covariances[f, g]:
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
            if term.kernel is None:
                out += float(factor)
                continue
            for k, s in reversed(list(enumerate(steps))):  # with the latest one come all that are earlier
                out[:, k] += float(factor) * self.kernel(term.kernel, self.plan.at(term.kernel, t, s))
        return out

    def _returned(self, f: RandomField, t: int) -> Any:
        """What comes back of all that a site has sent."""
        total: Any = 0.0
        for echo in self.plan.echoes[f]:
            last = 0 if echo.through.time is None else t - echo.delay
            for back, sent in zip(self.back(echo, t), self.emitted(echo.emission, last), strict=False):
                total = total + back * sent
        return total

    def back(self, echo: Echo, t: int) -> list[np.ndarray]:
        """A self-coupling at one time and all earlier ones, for each path."""
        if (echo, t) not in self._back:
            last = 0 if echo.through.time is None else t - echo.delay
            out = [np.zeros((self.batches, 1)) for _ in range(last + 1)]
            for term in echo.terms:
                factor = self.value(term.factor, t)
                for s in range(last + 1):
                    out[s] = out[s] + factor * self.kernel(term.kernel, self.plan.at(term.kernel, t, s))[:, None]
            self._back = {(echo, t): out, **{k: v for k, v in self._back.items() if k[1] == t}}
        return self._back[echo, t]

    # -- kernels -----------------------------------------------------------------------------------

    def kernel(self, kernel: MovingParameter, at: tuple[int, ...]) -> np.ndarray:
        """A kernel at its times, by batch."""
        name, known = kernel.base, self.kernels.setdefault(kernel.base, {})
        if at not in known:
            if name in self.plan.responses:
                known[at] = self.tangents.mean_of(self.plan.responses[name], at[0], at[1] if len(at) > 1 else 0)
            else:
                _, body = self.plan.kernels[name]
                times = [self.plan.time, self.plan.second][: len(at)]
                self._row(body, times, at, known)
        return known[at]

    def _row(self, body: Expr, times: Sequence[Time], at: tuple[int, ...], known: Any) -> None:
        """A correlation at one pair of times, and with it at all earlier second times."""
        parts = self.plan.split(body) if len(times) > 1 else None
        if parts is None:
            rule = {t: Integer(v) for t, v in zip(times, at, strict=True)}
            known[at] = np.broadcast_to(self.value(body.xreplace(rule), 0), self.shape).mean(axis=1)
            return
        first = self.emitted(parts[0], at[0])
        second = self.emitted(parts[1].xreplace({times[1]: times[0]}), at[1])
        for s in range(at[1] + 1):
            known.setdefault((at[0], s), np.einsum("bm,bm->b", first[at[0]], second[s]) / self.shape[1])

    # -- observables -------------------------------------------------------------------------------

    def over_times(self, kind: Kind, body: Expr, times: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        """An average by batch, over all values of its open times."""
        if isinstance(body, SiteResponse):
            return self._responses(kind, body, times, steps)
        out = np.empty((self.batches, *(len(steps) for _ in times)))
        parts = self._split(body, times) if len(times) == 2 else None
        if parts is not None:
            stacks = [np.stack([np.broadcast_to(self._at({t: k}, e), self.shape) for k in steps])
                      for t, e in zip(times, parts, strict=True)]
            return np.einsum("tbm,sbm->bts", *stacks, optimize=True) / self.shape[1]
        for where in np.ndindex(*out.shape[1:]):
            at = {t: int(steps[k]) for t, k in zip(times, where, strict=True)}
            out[(slice(None), *where)] = np.broadcast_to(self._at(at, body), self.shape).mean(axis=1)
        return out

    def _at(self, at: Mapping[Time, int], expr: Expr) -> Any:
        """An expression at steps: the first open time is the clock, others are put in."""
        (clock, step), *rest = list(at.items()) or [(self.plan.time, 0)]
        moved = expr.xreplace({t: Integer(k) for t, k in rest})
        return self.value(moved.xreplace({clock: self.plan.time}), int(step))

    def _split(self, body: Expr, times: Sequence[Time]) -> tuple[Expr, Expr] | None:
        moved = body.xreplace({times[0]: self.plan.time, times[1]: self.plan.second})
        parts = self.plan.split(moved)
        return None if parts is None else (
            parts[0].xreplace({self.plan.time: times[0]}), parts[1].xreplace({self.plan.second: times[1]}))

    def _responses(self, kind: Kind, node: SiteResponse, times: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        f = self.plan.field_named(kind, node.field)
        out = np.zeros((self.batches, *(len(steps) for _ in times)))
        for where in np.ndindex(*out.shape[1:]):
            rule = {t: Integer(int(steps[k])) for t, k in zip(times, where, strict=True)}
            first, second = node.times
            t, s = int(first.xreplace(rule)), int(second.xreplace(rule))
            out[(slice(None), *where)] = self.tangents.mean(node.state.now, f, t, s)
        return out
