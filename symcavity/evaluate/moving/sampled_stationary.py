"""Stationary states that were sampled: their averages as numbers and as functions of the lag, with standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from symcavity.errors import DeclarationError
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.moving.flow import Words
from symcavity.evaluate.moving.growth import growth
from symcavity.evaluate.moving.lag import Lag
from symcavity.evaluate.moving.run import Errors
from symcavity.evaluate.moving.settled import SettledSites
from symcavity.model.quantities import site_quantities


class StationaryErrors(Errors):
    """Standard errors of a stationary state that was sampled, by observable."""

    def dimension(self, what: Any, lag: Any = 0) -> float:
        """The standard error of :meth:`SampledStationary.dimension`."""
        found: float = self._run._dimension(what, lag)[1]  # noqa: SLF001 - its own
        return found

    @property
    def lyapunov(self) -> float:
        """The standard error of :attr:`SampledStationary.lyapunov`, with the change between its two halves."""
        found: float = self._run._growth[1]  # noqa: SLF001 - its own
        return found


class SampledStationary:
    """A stationary state that was sampled: averages are numbers, and functions of the lag where they hold two times.

    Attributes
    ----------
    moves : bool
        Whether the states fluctuate in time.
    errors : mapping
        By observable, as the observable: standard errors; in continuous time with the change from the step to its half.
        ``errors.dimension(what, lag)`` and ``errors.lyapunov`` likewise.
    """

    def __init__(
        self,
        theory: Any,
        values: Any,
        settled: Mapping[Any, SettledSites],
        step: Any,
        half: int,
        sampled: tuple[int, int],
    ) -> None:
        self.theory, self.values, self.settled = theory, dict(values), dict(settled)
        self.step, self._half, self._sampled = step, half, sampled
        self._finest = list(self.settled.values())[-1]
        self._dimensions: dict[Any, tuple[float, float]] = {}
        self._known: dict[Any, None] = {}  # sites whose dimension was requested

    @property
    def moves(self) -> bool:
        """Whether the states fluctuate in time."""
        return self._finest.moves

    @property
    def lyapunov(self) -> float:
        """The largest Lyapunov exponent, sampled; its error is ``rest.errors.lyapunov``.

        Small changes of all states are followed through a theory of their own, over three times the longest lag; where
        nothing comes back, along ten times as many paths.

        Raises
        ------
        UnsupportedLaw
            If a law jumps, so that changes do not stay small; or if functions that are not linear come back to sites.
        """
        return self._growth[0]

    @cached_property
    def _growth(self) -> tuple[float, float]:
        rates = []
        for d, s in self.settled.items():
            steps = int(self._half if d is None else self._half * self.step / d)
            rate, error = growth(s.theory, self.values, steps, *self._sampled)
            size = 1.0 if d is None else float(d)
            rates.append((rate / size, error / size))
        value, spread = rates[-1]
        return value, float(np.hypot(spread, value - rates[0][0]))

    @property
    def errors(self) -> StationaryErrors:
        """Standard errors by observable."""
        return StationaryErrors(self)

    def __getitem__(self, key: Any) -> Any:
        """An observable: a number, or of two open times a function of the lag.

        Raises
        ------
        DeclarationError
            If it is not made of averages and responses, or a lag is not a whole number of steps.
        """
        return self._both(key)[0]

    def _both(self, key: Any) -> tuple[Any, Any]:
        self._known[key] = None
        words = {d: key if d is None else Words(self.theory.system, d)(key) for d in self.settled}
        read = {d: s.read(words[d]) for d, s in self.settled.items()}
        expr, _, times = next(iter(read.values()))
        if any(q.time is not None and q.time not in times for q in site_quantities(expr)):
            raise DeclarationError(f"{key} holds a step of its own.", "open times, x[i, t] and x[i, s]")

        def found(lag: Any) -> tuple[float, float]:
            several = [s.at(read[d], self._steps(lag, d)) for d, s in self.settled.items()]
            spread = float(several[-1].std(ddof=1) / np.sqrt(len(several[-1])))
            return float(several[-1].mean()), float(np.hypot(spread, several[-1].mean() - several[0].mean()))

        if len(times) < 2:
            return found(0)
        return Lag(lambda lag: found(lag)[0]), Lag(lambda lag: found(lag)[1])

    def dimension(self, what: Any, lag: Any = 0) -> float:
        """The share of all directions that a quantity of the sites explores over time.

        ``(sum C_ii)**2/(n sum C_ij**2)`` for the covariances C over time of n sites at given couplings, after a lag, in
        the limit; ``rest.errors.dimension`` is its standard error.

        Raises
        ------
        UnsupportedLaw
            Where states have a part that stays, which differs from site to site.
        """
        return self._dimension(what, lag)[0]

    def _dimension(self, what: Any, lag: Any) -> tuple[float, float]:
        key = (what, lag)
        if key not in self._dimensions:
            several = [s.dimension(what, self._steps(lag, d)) for d, s in self.settled.items()]
            spread = several[-1].std(ddof=1) / np.sqrt(len(several[-1]))
            value = float(several[-1].mean())
            self._dimensions[key] = value, float(np.hypot(spread, value - several[0].mean()))
        return self._dimensions[key]

    def _steps(self, lag: Any, size: Any) -> int:
        steps = float(to_mpf(lag)) / float(1 if size is None else size)
        whole = round(steps)
        step = 1 if self.step is None else self.step
        units = float(to_mpf(lag)) / float(step)
        if abs(units - round(units)) > 1e-9 * max(1.0, abs(units)) or abs(units) > self._half:
            most = self._half * step
            raise DeclarationError(
                f"The lag {float(to_mpf(lag)):g} is not sampled.", f"whole steps of {step}, up to {most}"
            )
        return whole

    def __repr__(self) -> str:
        what = "fluctuating" if self.moves else "at rest"
        return f"<stationary state of {self.theory.system.name or 'a system'}, {what}, sampled>"
