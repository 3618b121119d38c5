"""Stationary states of sites that hear themselves: kernels over the lag, until sites have those that they hear.

The feedback on a site is not Gaussian noise, so that its paths are sampled (Roy, Biroli, Bunin and Cammarota,
J. Phys. A 52, 484001, 2019).  Given kernels, the sites of a :class:`~symcavity.evaluate.moving.ring.RingRun` have
kernels of their own: these are put in again, with the same random numbers, so that the iteration converges.  Several
batches of sites do so beside each other, each with its own kernels; what they differ by is the standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.anderson import accelerated
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.moving.filling import BATCHES
from symcavity.evaluate.moving.paths import PathRun
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.ring import RingRun, StationaryKernels
from symcavity.evaluate.moving.run import Observables, combined
from symcavity.evaluate.moving.two_sites import TwoSites, check_balanced
from symcavity.evaluate.progress import counted
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.close import kind_of_body
from symcavity.method.moving_pair import moving_pair_of
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities

MOST = 80  # iterations
KEPT = 6  # iterates that the next one is made of
FIRST = 40  # steps of a run from the beginning, from which the first kernels are taken
SETTLED = 0.05  # standard errors, root mean square over lags, by which an iteration may change kernels
ROUNDING = 1e-9  # of the size of kernels


def first_kernels(plan: MovingPlan, ring: int, seed: int) -> tuple[StationaryKernels, dict[SiteQuantity, float]]:
    """Kernels to begin with, and the largest mean square that each state has on the way to them.

    They are those at the end of a short run, and fade over the same time again.
    """
    last = min(FIRST, ring // 2) - 1
    run = PathRun(plan, last + 1, 400, seed)
    lags: Any = np.arange(ring // 2 + 1)
    out: dict[str, np.ndarray] = {}
    fade = np.exp(-np.maximum(lags - last, 0) / last)

    def along(name: str, at: Any) -> np.ndarray:
        known = run.kernels.get(name, {})
        rows = [known.get(at(k), np.zeros(run.batches)) for k in range(last + 1)]
        return np.stack([rows[min(k, last)] for k in lags], axis=1) * fade

    for name, (_, body) in plan.kernels.items():
        if plan.second not in body.free_symbols:
            out[name] = run.kernels[name][last,]
            continue
        later, earlier = (along(name, at) for at in (lambda k: (last, last - k), lambda k: (last - k, last)))
        if not earlier.any():
            earlier = later
        out[name] = np.concatenate([later, earlier[:, ring - ring // 2 - 1 : 0 : -1]], axis=1)
    for name in plan.responses:
        out[name] = along(name, lambda k: (last, last - k))
    largest = {q: max(float((x**2).mean()) for x in run.states[q].values()) for q in plan.rows}
    return StationaryKernels(ring, out), largest


def on_another_ring(kernels: StationaryKernels, ring: int, finer: int) -> StationaryKernels:
    """Kernels on a ring of another length, in steps that are finer by a factor."""
    lags, out = np.arange(ring // 2 + 1) / finer, {}
    half = kernels.ring // 2
    for name, values in kernels.values.items():
        if values.ndim == 1:
            out[name] = values
            continue
        later = np.array([np.interp(lags, np.arange(half + 1), row[: half + 1]) for row in values])
        if values.shape[1] == half + 1:
            out[name] = later
            continue
        back = np.roll(values[:, ::-1], 1, axis=1)
        earlier = np.array([np.interp(lags, np.arange(half + 1), row[: half + 1]) for row in back])
        out[name] = np.concatenate([later, earlier[:, ring - ring // 2 - 1 : 0 : -1]], axis=1)
    return StationaryKernels(ring, out)


def distance(one: StationaryKernels, other: StationaryKernels, lags: int, sizes: Mapping[str, float]) -> float:
    """The largest distance of two sets of kernels, in standard errors, root mean square over some lags.

    Kernels that fall to zero are there once they are small beside the sizes that they have had.
    """
    worst = 0.0
    for name, values in one.values.items():
        a, b = (v[:, :lags] if v.ndim > 1 else v[:, None] for v in (values, other.values[name]))
        size = max(np.abs(a).max(), sizes[name])
        error = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / len(a) + (ROUNDING * size) ** 2)
        moved = error > 0
        z = (a - b).mean(axis=0)[moved] / error[moved]
        worst = max(worst, float(np.sqrt(np.mean(z**2))) if z.size else 0.0)
    return worst


def _next(trail: list[tuple[np.ndarray, np.ndarray]], here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Where one batch goes, by its last iterates."""
    trail.append((here, there - here))
    del trail[:-KEPT]
    return accelerated(trail, np.ones(len(here)))


class SettledSites:
    """The stationary state of a system in steps: its last sites, by batch.

    Parameters
    ----------
    theory : Theory
        In steps.
    plan : Plan
    beginning : Kernels
    paths, seed : int
    begun : dict
        The mean square of each state on the way from its beginning, beside which those that die out are small.
    """

    def __init__(
        self,
        theory: Any,
        plan: MovingPlan,
        beginning: StationaryKernels,
        paths: int,
        seed: int,
        begun: Mapping[SiteQuantity, float],
    ) -> None:
        self.theory, self.plan, self._paths, self._seed = theory, plan, paths, seed
        kernels, units, self._begun = beginning, dict[str, float](), begun
        trails: list[Any] = [[] for _ in range(BATCHES)]
        with counted(MOST, "iterations of kernels") as count:
            for _ in range(MOST):
                self.run = RingRun(plan, kernels, paths, seed, follows=False)
                found = self.run.measured()
                self._check_finite(found)
                units = units or found.sizes()
                gap = distance(found, kernels, kernels.ring // 2, units)
                count.advance()
                if gap < SETTLED:
                    break
                here, there = (k.rows(units) for k in (kernels, found))
                rows = [_next(*one) for one in zip(trails, here, there, strict=True)]
                kernels = kernels.with_rows(np.stack(rows), units)
            else:
                raise NotConverged(
                    f"No stationary state is reached: after {MOST} iterations kernels still change by {gap:.2g} "
                    "standard errors in each.",
                    hint="a longer until=, or parameters farther from where the states slow down",
                )
        self.kernels, self.sizes, self._heard = found, units, kernels
        self._words = Observables(theory.system, 0)
        self._along: dict[Expr, np.ndarray] = {}

    @cached_property
    def followed(self) -> RingRun:
        """The same sites, with the responses of all: also of those that do not come back."""
        return RingRun(self.plan, self._heard, self._paths, self._seed)

    @staticmethod
    def _check_finite(kernels: StationaryKernels) -> None:
        if not all(np.isfinite(v).all() for v in kernels.values.values()):
            raise NotConverged("No stationary state is reached: states grow without bound.")

    def read(self, key: Any) -> tuple[Expr, list[Average], Any]:
        """An observable, its averages, and its open times."""
        return self._words.read(key)

    def at(self, read: Any, lag: int) -> np.ndarray:
        """An observable at a lag in steps, by batch."""
        expr, averages, times = read
        values = {node: self._average(node, times, lag) for node in averages}

        def number(e: Expr) -> float:
            return float(self.plan.values.put_into(e))

        every = [{node: v[b] for node, v in values.items()} for b in range(self.run.batches)]
        return np.array([combined(expr, batch, number) for batch in every], dtype=float)

    def _average(self, node: Any, times: Any, lag: int) -> np.ndarray:
        if not isinstance(node, Average):  # a number that all sites share: at rest the same at all times
            return self._over_ring(node.xreplace(dict.fromkeys(times, self.plan.time)))
        body = self.plan.values.put_into(node.body)
        kind = kind_of_body(body)
        if isinstance(body, SiteResponse):
            field = self.plan.field_named(kind, body.field)
            found = self.followed.tangents.over_lags(body.state.now, field, None)
            return found[:, lag] if lag >= 0 else np.zeros(len(found))
        own = [t for t in times if t in node.free_symbols]
        moved = body.xreplace(dict(zip(own, (self.plan.time, self.plan.second), strict=False)))
        if any(q.time is not None for q in site_quantities(moved, Quenched)):
            raise UnsupportedLaw(f"{body} contains a quantity that is drawn at each step.", "averages of states")
        if len(own) < 2:
            return self._over_ring(moved)
        parts = self.plan.split(moved)
        if parts is None:
            shifted = moved.xreplace({self.plan.second: self.plan.time - lag})
            return self.run.around(shifted).mean(axis=(1, 2))
        if moved not in self._along:
            one, other = (
                np.fft.rfft(self.run.around(e.xreplace({self.plan.second: self.plan.time})), axis=1) for e in parts
            )
            both = np.einsum("bwm,bwm->bw", one, other.conj())
            self._along[moved] = np.fft.irfft(both, n=self.run.ring, axis=1) / (self.run.ring * self.run.shape[1])
        return self._along[moved][:, lag % self.run.ring]

    def _over_ring(self, body: Expr) -> np.ndarray:
        if body not in self._along:
            self._along[body] = self.run.around(body).mean(axis=(1, 2))
        return self._along[body]

    def dimension(self, what: Any, lag: int) -> np.ndarray:
        """The dimension of a quantity of the sites, by batch."""
        lines = TwoSites(moving_pair_of(self.theory, what, self.plan.time), self.plan)
        sent = {leg.sent for leg in lines.legs if leg.sent is not None}
        watched = [e for e in sent if not isinstance(e, SiteQuantity)]
        run = RingRun(self.plan, self.kernels, self._paths, self._seed, watched) if watched else self.followed
        known = {e: run.around(e) for e in sent}
        check_balanced({e: self._staying(v) for e, v in known.items()})
        phase = np.exp(2j * np.pi * np.arange(run.ring) * lag / run.ring) / run.ring
        waves = {e: np.fft.fft(v, axis=1) for e, v in known.items()}

        def one(batch: int) -> float:
            def spectrum(a: Expr, b: Expr) -> np.ndarray:
                both = np.einsum("wm,wm->w", waves[a][batch], waves[b][batch].conj())
                return both / (run.ring * run.shape[1])

            def answer(sent: Expr, heard: Any) -> np.ndarray:
                if isinstance(sent, SiteQuantity):
                    found = run.tangents.over_lags(sent.now, heard.declared, None)[batch]
                else:
                    found = run.tangents.of_watched(sent, heard.declared)[batch]
                padded = np.concatenate([found, np.zeros(run.ring - len(found))])
                return float(self.plan.factors[heard.declared]) * np.fft.fft(padded)

            own = (known[lines.observed][batch] * np.roll(known[lines.observed][batch], lag, axis=0)).mean()
            return lines.dimension(spectrum, answer, phase, own)

        return np.array([one(b) for b in range(run.batches)])

    def _staying(self, values: np.ndarray) -> tuple[float, float]:
        """The share of the mean square that is left after half of the ring, and its error."""
        late = (values * np.roll(values, self.run.half, axis=1)).mean(axis=(1, 2)) / (values**2).mean(axis=(1, 2))
        return float(late.mean()), float(late.std(ddof=1) / np.sqrt(len(late)))

    @cached_property
    def moves(self) -> bool:
        """Whether some state at one time differs from itself half a ring later; those that die out do not."""
        small = tolerances().moved
        for q in (q for q in self.plan.rows if q.time is not None):
            x = self.run.around(q)
            gap = ((x - np.roll(x, self.run.half, axis=1)) ** 2).mean(axis=(1, 2))
            if gap.mean() > small * ((x**2).mean() + small * self._begun[q]):
                return True
        return False
