"""Sites at stationary kernels: time is a ring, and kernels are functions of the lag.

Where kernels are given, a site follows by itself: its cavity fields are Gaussian, with the spectra that the kernels
have, and what comes back is a sum over lags.  On a ring of P steps a field has exactly these spectra, noise returns
after one turn, and states that forget their beginning return with it: so their own spectra need no window.  Responses
are those to a few sources, each followed over half of the ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.hinges import slope_of
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.moving.filling import Filling
from symcavity.evaluate.moving.plan import Echo, MovingPlan, Term
from symcavity.evaluate.moving.tangents import Tangents
from symcavity.model.fields import RandomField
from symcavity.model.noise import Noise
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.times import step_of
from symcavity.record.order_parameters import MovingParameter

SOURCES = 4  # along the ring, whose responses are followed


class StationaryKernels:
    """The kernels of a stationary state, by batch: means, correlations over the ring, responses over half of it.

    Attributes
    ----------
    ring : int
        Steps around the ring.
    values : dict
        By name of the kernel: an array whose first axis is the batch, and whose second one is the lag.
    """

    def __init__(self, ring: int, values: Mapping[str, np.ndarray]) -> None:
        self.ring, self.values = ring, dict(values)

    def over_lags(self, plan: MovingPlan, kernel: MovingParameter) -> np.ndarray:
        """A correlation where the first time of a covariance, less the second one, is each of the lags on the ring."""
        found = self.values[kernel.base]
        if len(kernel.times) < 2:
            return np.repeat(found[:, None], self.ring, axis=1)
        first, second = plan.at(kernel, 1, 0)
        return found if first > second else np.roll(found[:, ::-1], 1, axis=1)

    def sizes(self) -> dict[str, float]:
        """The largest value of each kernel."""
        return {name: float(np.abs(v).max()) or 1.0 for name, v in self.values.items()}

    def rows(self, units: Mapping[str, float]) -> np.ndarray:
        """All kernels of each batch in a row, each in its unit."""
        return np.concatenate([v.reshape(len(v), -1) / units[name] for name, v in self.values.items()], axis=1)

    def with_rows(self, rows: np.ndarray, units: Mapping[str, float]) -> StationaryKernels:
        """The kernels that other rows stand for."""
        out, place = {}, 0
        for name, v in self.values.items():
            count = v[0].size
            out[name] = rows[:, place : place + count].reshape(v.shape) * units[name]
            place += count
        return StationaryKernels(self.ring, out)


class RingRun(Filling):
    """Sites that go twice around a ring, at given kernels, and on while responses are followed.

    Parameters
    ----------
    plan : Plan
        Of steps.
    kernels : Kernels
    paths : int
    seed : int
    watched : sequence of Expr
        Functions of states whose responses are requested.
    follows : bool
        Whether responses are followed of sites to which nothing comes back.
    """

    def __init__(
        self,
        plan: MovingPlan,
        kernels: StationaryKernels,
        paths: int,
        seed: int,
        watched: Sequence[Expr] = (),
        *,
        follows: bool = True,
    ) -> None:
        self.watched, self.follows = tuple(watched), follows
        self.kernels, self.ring, self.half = kernels, kernels.ring, kernels.ring // 2
        super().__init__(plan, 2 * self.ring + self.half - self.ring // SOURCES, paths, seed)
        self._etas = {f: eta for kind in plan.sites for f, eta in self._drawn(kind).items()}
        self._sent: dict[Expr, tuple[np.ndarray, int]] = {}
        self.tangents = KickTangents(self)
        self._run()

    def look_up(self, step: int) -> Any:
        """What gives states and quenched parameters at a step; what is drawn anew returns after one turn."""
        usual = super().look_up(step)

        def value(q: SiteQuantity) -> Any:
            if isinstance(q.family, Noise | Quenched) and q.time is not None:
                return self._anew(q, step_of(q.time, step) % self.ring)
            return usual(q)

        return value

    # -- fields ------------------------------------------------------------------------------------

    def _drawn(self, kind: Any) -> dict[RandomField, np.ndarray]:
        """The cavity fields of a kind around the ring, by the root of their spectra, shape (batches, ring, paths)."""
        fields = [h.declared for h in self.plan.sites[kind].heard]
        if not fields:
            return {}
        count = self.ring // 2 + 1
        spectrum = np.zeros((self.batches, count, len(fields), len(fields)), dtype=complex)
        for a, f in enumerate(fields):
            for b, g in enumerate(fields):
                lags = np.zeros((self.batches, self.ring))
                for term in self.plan.covariances[f, g]:
                    factor = self.factor_of(term, f, g)
                    lags += factor if term.kernel is None else factor * self.kernels.over_lags(self.plan, term.kernel)
                spectrum[:, :, a, b] = np.fft.rfft(lags, axis=1)
        size, turn = np.linalg.eigh((spectrum + spectrum.conj().swapaxes(2, 3)) / 2)
        root = (turn * np.sqrt(np.maximum(size, 0.0))[:, :, None, :]) @ turn.conj().swapaxes(2, 3)
        half = self._rng[kind].standard_normal((len(fields), self.batches, self.ring, (self.shape[1] + 1) // 2))
        white = np.fft.rfft(np.concatenate([half, -half], axis=3)[..., : self.shape[1]], axis=2)
        found = np.fft.irfft(np.einsum("bwfg,gbwm->fbwm", root, white), n=self.ring, axis=2)
        return {f: found[a] for a, f in enumerate(fields)}

    def _hear(self, f: RandomField, t: int) -> None:
        self.fields[f] = {t: self._etas[f][:, t % self.ring] * self._scale(f, t) + self._returned(f, t)}
        self.tangents.hear(f, t)

    def _returned(self, f: RandomField, t: int) -> Any:
        total: Any = 0.0
        for echo in self.plan.echoes[f]:
            sent = self._history(echo.emission, t - echo.delay)
            for factor, weights, steps in self.memory(echo, t):
                total = total + factor * np.matmul(weights[:, None, :], sent[:, steps])[:, 0, :]
        return total

    def memory(self, echo: Echo, t: int, since: int = 0) -> list[tuple[Any, np.ndarray, slice]]:
        """The feedback at a step: factors, weights by batch of the messages of steps, and these steps."""
        first, last = max(since, t - self.half), t - echo.delay
        if last < first:
            return []
        out = []
        for term in echo.terms:
            lags = t - np.arange(first, last + 1)
            out.append((self.value(term.factor, t), self._answer(term, lags), slice(first, last + 1)))
        return out

    def _answer(self, term: Term, lags: np.ndarray) -> np.ndarray:
        first, second = self.plan.at(term.kernel, 1, 0)
        found = self.kernels.values[term.kernel.base]
        return found[:, lags] if first > second else np.where(lags == 0, found[:, :1], 0.0)

    def _history(self, emission: Expr, last: int) -> np.ndarray:
        buffer, known = self._sent.get(emission, (None, 0))
        if buffer is None:
            buffer = np.zeros((self.batches, self.steps + 1, self.shape[1]))
        for step in range(known, last + 1):
            buffer[:, step] = self.value(emission, step)
        self._sent[emission] = buffer, max(known, last + 1)
        return buffer

    # -- what is measured --------------------------------------------------------------------------

    def around(self, expr: Expr) -> np.ndarray:
        """An expression at each step of the second turn, shape (batches, ring, paths)."""
        turn = range(self.ring, 2 * self.ring)
        return np.stack([np.broadcast_to(self.value(expr, k), self.shape) for k in turn], axis=1)

    def measured(self) -> StationaryKernels:
        """The kernels that these sites have."""
        plan, out = self.plan, {}
        spectra: dict[Expr, np.ndarray] = {}
        for name, (_, body) in plan.kernels.items():
            if plan.second not in body.free_symbols:
                out[name] = self.around(body).mean(axis=(1, 2))
                continue
            parts = plan.split(body)
            if parts is None:
                raise UnsupportedLaw(f"{body} is not a product of quantities at two times.", "products")
            both = (parts[0], parts[1].xreplace({plan.second: plan.time}))
            for part in both:
                if part not in spectra:
                    spectra[part] = np.fft.rfft(self.around(part), axis=1)
            product = np.einsum("bwm,bwm->bw", spectra[both[0]], spectra[both[1]].conj())
            out[name] = np.fft.irfft(product, n=self.ring, axis=1) / (self.ring * self.shape[1])
        for name, r in plan.responses.items():
            weight = r.weight if site_quantities(r.weight) else None
            found = self.tangents.over_lags(r.state.now, r.field, weight)
            out[name] = found if weight is not None else float(r.weight) * found
        return StationaryKernels(self.ring, out)


class KickTangents(Tangents):
    """The responses to a few sources along the ring."""

    run: RingRun
    integrates_by_parts = False

    def __init__(self, run: RingRun) -> None:
        self.kicks = [run.ring + k * run.ring // SOURCES for k in range(SOURCES)]
        self._past: dict[tuple[Expr, RandomField], np.ndarray] = {}
        super().__init__(run)
        for e in run.watched:
            for q in site_quantities(e, Variable, Field):
                for g in self._sources_of(q):
                    self.weights.setdefault((q.now, g), []).append(slope_of(e, q))

    def _check_memory(self) -> None:
        """As many sources as there are take little."""

    def _count(self, _g: RandomField, _step: int) -> int:
        return SOURCES

    def _place(self, _g: RandomField, when: int) -> int | None:
        return self.kicks.index(when) if when in self.kicks else None

    def follow(self, q: SiteQuantity, step: int) -> None:
        """The responses of a state, once there are sources."""
        if step >= self.run.ring:
            super().follow(q, step)

    def hear(self, f: RandomField, t: int) -> None:
        """The responses of a field by what comes back, of each source that is still followed."""
        run = self.run
        if f.hearer in self.jumps or not run.plan.echoes[f] or t < run.ring:
            return
        for g in self.sources[f.hearer]:
            total = np.zeros((SOURCES, *run.shape))
            for echo in run.plan.echoes[f]:
                past = self._history(echo, g, t - echo.delay)
                for k, kick in enumerate(self.kicks):
                    if not kick <= t <= kick + run.half:
                        continue
                    for factor, weights, steps in run.memory(echo, t, kick):
                        moved = slice(steps.start - run.ring, steps.stop - run.ring)
                        total[k] += factor * np.matmul(weights[:, None, :], past[k][:, moved])[:, 0, :]
            self._heard.setdefault((f, g), {})[t] = total
            self._heard[f, g].pop(t - self._deepest, None)

    def _history(self, echo: Echo, g: RandomField, last: int) -> np.ndarray:
        """The responses of an emission from the second turn on, shape (sources, batches, steps, paths)."""
        run, key = self.run, (echo.emission, g)
        if key not in self._past:
            self._past[key] = np.zeros((SOURCES, run.batches, run.steps + 1 - run.ring, run.shape[1]))
        known = self._kept.setdefault((("sent", echo.emission), g), {})
        for u in range(max(run.ring, last), last + 1):
            found = self._sent(echo.emission, g, u)
            if found is not None:
                self._past[key][:, :, u - run.ring] = found
            known.pop(u - 1, None)
        return self._past[key]

    def of_watched(self, e: Expr, g: RandomField) -> np.ndarray:
        """The mean response of a function of states, by the chain rule."""
        return np.sum([self.over_lags(q.now, g, slope_of(e, q)) for q in site_quantities(e, Variable, Field)], axis=0)

    def over_lags(self, q: SiteQuantity, g: RandomField, weight: Any) -> np.ndarray:
        """The mean response of a state to a source, times a weight, over the lags of half of the ring, by batch."""
        found = self.means[(q, g, 1 if weight is None else weight)]
        rows = [[found[kick + lag][k] for k, kick in enumerate(self.kicks)] for lag in range(self.run.half + 1)]
        return np.mean(rows, axis=1).T
