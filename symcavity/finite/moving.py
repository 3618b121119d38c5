"""Finite instances of a system whose states move: their observables, and a run of the theory beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.run import Observables, combined
from symcavity.evaluate.moving.values import check_divisions, read_steps
from symcavity.finite.activity import dimension_over_time
from symcavity.finite.draw import coupling_law, seed_list
from symcavity.finite.estimates import Estimate
from symcavity.finite.executors import run_all
from symcavity.finite.given_values import read_values
from symcavity.finite.labels import label
from symcavity.finite.tables import aligned, counted
from symcavity.finite.trajectory import MovingSetup, Trajectory
from symcavity.model.averages import SiteResponse, average
from symcavity.model.keywords import known_options
from symcavity.model.motion import is_shared
from symcavity.model.system import System
from symcavity.model.times import step_of
from symcavity.model.typed import in_list


@dataclass(frozen=True)
class MovingEstimate:
    """An observable over the instances: arrays over its times.

    Attributes
    ----------
    samples : ndarray
        One entry for each instance, on the first axis.
    """

    samples: np.ndarray

    @property
    def mean(self) -> Any:
        """The mean over the instances."""
        return self.samples.mean(axis=0)

    @property
    def stderr(self) -> Any:
        """The standard error of the mean; nan for one instance."""
        if len(self.samples) < 2:
            return np.full(self.samples.shape[1:], np.nan)
        return self.samples.std(axis=0, ddof=1) / np.sqrt(len(self.samples))


class MovingSimulation:
    """Instances of a system whose states move, with ``.N`` features each.

    Attributes
    ----------
    times : ndarray
        The steps.
    trajectories : list of Trajectory
        One for each seed.
    """

    def __init__(self, setup: MovingSetup, N: int, trajectories: list[Trajectory]) -> None:
        self.setup, self.N, self.trajectories = setup, N, trajectories
        self.times = np.arange(setup.steps + 1)
        self._words = Observables(setup.system, setup.steps)
        self._known: dict[Any, MovingEstimate] = {}

    def __getitem__(self, key: Any) -> MovingEstimate:
        """An observable: ``.mean`` and ``.stderr`` over its times.

        Raises
        ------
        UnsupportedLaw
            For responses.
        """
        if key not in self._known:
            expr, averages, times = self._words.read(key)
            samples = []
            for one in self.trajectories:
                values = {}
                for node in averages:
                    if node.has(SiteResponse):
                        raise UnsupportedLaw(f"Instances have no {node}.", "averages of states")
                    own = [t for t in times if t in node.free_symbols]
                    shape = [len(self.times) if t in own else 1 for t in times]
                    if is_shared(node):
                        steps = [step_of(node.time, int(k)) for k in (self.times if own else [0])]
                        values[node] = np.array([one.states[node.now][k] for k in steps]).reshape(shape)
                        continue
                    values[node] = one.average(node.body, own, self.times).reshape(shape)
                samples.append(combined(expr, values, lambda e, one=one: float(e.xreplace(one.numbers))))
            self._known[key] = MovingEstimate(np.array(samples, dtype=float))
        return self._known[key]

    def compare(self, run: Any, observables: Any = None) -> MovingComparison:
        """Compare a run of the theory with these instances; by default the second moments of the states.

        Raises
        ------
        ValuesError
            If they are about other steps or other values.
        """
        entries = default_observables(self.setup.system) if observables is None else in_list(observables)
        if not entries:
            raise ValuesError(
                "No observable is given.", "observables, one or a list", "run.compare(sim, average(x[i, t]**2))"
            )
        if len(run.times) != len(self.times):
            raise ValuesError(
                f"The run has {run.times[-1]} steps, and the simulation {self.times[-1]}.", "as many steps of both"
            )
        mine = {s: float(v) for s, v in run.plan.values.plain.items()}
        first = self.trajectories[0].numbers
        there = {s: float(first[s]) for s in mine if s in first}
        other = [s for s, v in there.items() if abs(v - mine[s]) > max(1.0, abs(v)) / self.N]
        if other:
            raise ValuesError(
                f"The run has {other[0]} = {mine[other[0]]:g}, and the simulation {there[other[0]]:g}.",
                "the same values for both",
            )
        return MovingComparison(tuple(MovingRow.of(run, self, key) for key in entries), self.N, len(self.trajectories))

    def dimension(self, what: Any, lag: int = 0, *, over: Any, since: int | None = None, draws: int = 8) -> Estimate:
        """The share of all directions that a quantity of the sites explores over time, each instance at its couplings.

        An estimate of ``(sum C_ii)**2/(n sum C_ij**2)`` for the covariances C over time after a lag, as
        ``rest.dimension`` has it in the limit: each instance runs several times, with other initial values and other
        noise, and covariances of one half of the runs are multiplied by those of the other half, so that finite times
        cause no bias.

        Parameters
        ----------
        what : Variable or Expr
            A quantity of one kind of site, ``x`` or ``tanh(x[i, t])``.
        lag : int
            In steps.
        over : sequence of Time
            The time of the system, ``[t]``.
        since : int, optional
            The step from which the state counts as stationary; by default half of the run.
        draws : int
            How often each instance runs.

        Raises
        ------
        ValuesError
            For fewer than four draws, a lag that is longer than the run, and runs without randomness, which are all
            equal.
        """
        return dimension_over_time(self, what, over, lag, since, draws)

    def __len__(self) -> int:
        return len(self.trajectories)

    def __repr__(self) -> str:
        return f"<{counted(len(self))} with N = {self.N}, over the steps 0 to {self.times[-1]}>"


def default_observables(system: System) -> list[Expr]:
    """The second moment of each state that moves and that the user has named, at an open time."""
    named = system.rewritten.typed.names
    states = [q for law in system.laws.values() for q in law.unknowns if q.time is not None and q.family.name in named]
    return [average(q**2) for q in dict.fromkeys(q.now for q in states)]


@dataclass(frozen=True)
class MovingRow:
    """One observable of a comparison: arrays over its times.

    Attributes
    ----------
    observable : Expr
    theory, error : ndarray
        What the run says, and its standard error.
    simulation : MovingEstimate
    """

    observable: Any
    theory: np.ndarray
    error: np.ndarray
    simulation: MovingEstimate

    @classmethod
    def of(cls, run: Any, sim: MovingSimulation, key: Any) -> MovingRow:
        """Measure one observable on both sides."""
        theory = np.asarray(run[key], dtype=float)
        return cls(key, theory, np.asarray(run.errors[key], dtype=float), sim[key])

    @property
    def z(self) -> np.ndarray:
        """The distances in standard errors of both sides together; zero where both agree but for rounding."""
        gap, spread = self.simulation.mean - self.theory, np.hypot(self.simulation.stderr, self.error)
        still = np.abs(gap) <= 1e-12 * np.abs(self.theory)
        with np.errstate(all="ignore"):
            return np.where(still, 0.0, gap / spread)

    @property
    def rms(self) -> float:
        """The root of the mean square of these distances."""
        return float(np.sqrt(np.mean(self.z**2)))


@dataclass(frozen=True)
class MovingComparison:
    """A run of the theory against ``.instances`` instances with ``.N`` features each.

    Attributes
    ----------
    rows : tuple of MovingRow
        One for each observable.
    """

    rows: tuple[MovingRow, ...]
    N: int
    instances: int

    def __iter__(self) -> Iterator[MovingRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = ("observable", "theory, last", "simulation, last", "rms z", "largest |z|")
        body = []
        for row in self.rows:
            last = (-1,) * row.theory.ndim
            simulated = f"{row.simulation.mean[last]:.6g} +- {row.simulation.stderr[last]:.2g}"
            far = (f"{row.rms:.2f}", f"{np.abs(row.z).max():.2f}")
            body.append((label(row.observable), f"{row.theory[last]:.6g}", simulated, *far))
        return "\n".join([*aligned([head, *body]), f"{counted(self.instances)} with N = {self.N}"])

    __repr__ = __str__


@known_options
def simulate_moving(
    system: System,
    values: Mapping[Any, Any],
    N: Any,
    until: Any = None,
    seeds: int | Iterable[int] = 10,
    couplings: Any = "gaussian",
    executor: Any = None,
    progress: Any = None,
    step: Any = None,
) -> MovingSimulation:
    """Draw instances of a system whose states move, and run each forward.

    Raises
    ------
    ValuesError
        For missing or contradictory values, sizes or steps, before any instance is drawn.
    """
    if step is not None:
        raise ValuesError(
            f"step = {step}, and this system moves in steps, not in continuous time.", "step= in continuous time only"
        )
    if not isinstance(N, int | np.integer) or isinstance(N, bool) or N < 2:
        raise ValuesError(f"N = {N!r}.", "one whole number of features, at least 2, where states move")
    read = read_values(system, values)
    check_divisions(system, read.parameters, read.quenched)
    setup = MovingSetup(system, read, couplings, read_steps(until))
    coupling_law(couplings)
    wanted = seed_list(seeds)
    found: dict[tuple[int, int], Trajectory] = {}
    run_all(executor, _run_one, setup, [(int(N), s) for s in wanted], found.__setitem__, progress=progress)
    return MovingSimulation(setup, int(N), [found[int(N), seed] for seed in wanted])


def _run_one(setup: MovingSetup, task: tuple[int, int]) -> Trajectory:
    return Trajectory(setup, *task)
