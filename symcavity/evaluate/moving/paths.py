"""Any law, filled forward by sampled paths: one pass, no iteration.

The states of all paths up to one time give the kernels up to there; each cavity field is then drawn given its own past
(a row of a Cholesky factor), and the states that follow it are filled. Responses are the tangents of each path,
carried forward along with it. Several batches are run beside each other, each with kernels of its own: what they
differ by is the standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Expr, Integer

from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.moving.drawing import CavityFields
from symcavity.evaluate.moving.filling import Filling
from symcavity.evaluate.moving.plan import Echo, MovingPlan
from symcavity.evaluate.moving.tangents import Tangents
from symcavity.model.averages import SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.times import Time
from symcavity.record.order_parameters import MovingParameter


class PathRun(Filling):
    """A run over sampled paths: each cavity field is drawn given its own past.

    Parameters are those of :class:`Filling`.
    """

    def __init__(self, plan: MovingPlan, steps: int, paths: int, seed: int) -> None:
        super().__init__(plan, steps, paths, seed)
        self._emitted: dict[Expr, tuple[np.ndarray, int]] = {}
        self._back: dict[tuple[Echo, int], list[np.ndarray]] = {}
        self.drawn: dict[Kind, list[tuple[RandomField, int]]] = {kind: [] for kind in plan.sites}
        most = {kind: len(s.heard) * (steps + 1) for kind, s in plan.sites.items()}
        self.noise = {kind: CavityFields(self.shape, most[kind], self._rng[kind]) for kind in plan.sites}
        self.tangents = Tangents(self)
        self.kernels: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
        self._run()

    def emitted(self, expr: Expr, last: int) -> np.ndarray:
        """An expression at all steps up to one, shape (steps, batches, paths)."""
        buffer, known = self._emitted.get(expr, (None, 0))
        if buffer is None:
            buffer = np.empty((self.steps + 1, *self.shape))
        for step in range(known, last + 1):
            buffer[step] = self.value(expr, step)
        self._emitted[expr] = buffer, max(known, last + 1)
        return buffer[: last + 1]

    def _hear(self, f: RandomField, t: int) -> None:
        """Draw a cavity field given its past, and add what comes back."""
        kind = f.hearer
        before = self.drawn[kind]
        scale = self._scale(f, t)
        row = np.zeros((self.batches, len(before)))
        for g in dict.fromkeys(g for g, _ in before):
            places = [k for k, (h, _) in enumerate(before) if h == g]
            row[:, places] = self.covariance(f, t, g, [before[k][1] for k in places])
        variance = self.covariance(f, t, f, [t])[:, 0]
        self._check_finite(f.as_sum, [variance, *row], t)
        if np.any(variance < -1e-9 * np.abs(variance).max()):
            raise UnsupportedLaw(
                f"The variance of the cavity field of {f.as_sum} is negative.", "couplings with real entries"
            )
        eta = self.noise[kind].draw(row, np.maximum(variance, 0.0)) * scale
        before.append((f, t))
        self.fields[f][t] = eta + self._returned(f, t)
        self.tangents.hear(f, t)

    def covariance(self, f: RandomField, t: int, g: RandomField, steps: Sequence[int]) -> np.ndarray:
        """The covariances of a field with another at some steps, in units of their scales."""
        out = np.zeros((self.batches, len(steps)))
        for term in self.plan.covariances[f, g]:
            factor = self.factor_of(term, f, g)
            if term.kernel is None:
                out += factor
                continue
            here = self.plan.at(term.kernel, 1, 0)
            for k, s in reversed(list(enumerate(steps))):  # with the latest one come all that are earlier
                out[:, k] += factor * self.kernel(term.kernel, tuple(t if own else s for own in here))
        return out

    def _returned(self, f: RandomField, t: int) -> Any:
        """The feedback of all messages of a site."""
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
                factor, here = self.value(term.factor, t), self.plan.at(term.kernel, 1, 0)
                for s in range(last + 1):
                    at = tuple(t if own else s for own in here)
                    out[s] = out[s] + factor * self.kernel(term.kernel, at)[:, None]
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
        """A correlation at one pair of times, and with it at all that are earlier than the later one of them."""
        parts = self.plan.split(body) if len(times) > 1 else None
        if parts is None:
            rule = {t: Integer(v) for t, v in zip(times, at, strict=True)}
            known[at] = np.broadcast_to(self.value(body.xreplace(rule), 0), self.shape).mean(axis=1)
            return
        first = self.emitted(parts[0], at[0])
        second = self.emitted(parts[1].xreplace({times[1]: times[0]}), at[1])
        if at[1] > at[0]:
            found = np.einsum("sbm,bm->sb", first, second[-1]) / self.shape[1]
            known.update({(s, at[1]): value for s, value in enumerate(found) if (s, at[1]) not in known})
        else:
            found = np.einsum("sbm,bm->sb", second, first[-1]) / self.shape[1]
            known.update({(at[0], s): value for s, value in enumerate(found) if (at[0], s) not in known})

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
