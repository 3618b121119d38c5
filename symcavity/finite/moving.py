"""Finite instances of a system whose states move: couplings are drawn, and the declared equations run forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Expr, Float, Integer, S

from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.moving.drawing import Formula, in_averages
from symcavity.evaluate.moving.run import Observables, combined
from symcavity.evaluate.moving.values import read_steps
from symcavity.finite.compiled import compile_system
from symcavity.finite.draw import coupling_law, seed_list
from symcavity.finite.executors import run_all
from symcavity.finite.given_values import Values, read_values
from symcavity.finite.instance import Instance
from symcavity.finite.labels import label
from symcavity.finite.tables import aligned
from symcavity.method.close import kind_of_body
from symcavity.model.averages import SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.motion import is_shared
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.system import System
from symcavity.model.times import Time, step_of

LIMIT = 3.0


@dataclass(frozen=True)
class MovingSetup:
    """What all instances of a simulation share.

    Attributes
    ----------
    system : System
    values : Values
    couplings : str or callable
    steps : int
        The last step.
    """

    system: System
    values: Values
    couplings: Any
    steps: int


class Trajectory:
    """One instance, run forward.

    Attributes
    ----------
    states : dict
        By state and step: one number for each site.
    """

    def __init__(self, setup: MovingSetup, features: int, seed: int) -> None:
        system = setup.system
        compiled = compile_system(system)
        self.setup, self.seed = setup, seed
        self.instance = Instance(compiled, setup.values, features, seed, coupling_law(setup.couplings))
        self.numbers = dict(zip(compiled.constants, map(Float, self.instance.constants), strict=True))
        self._formulas: dict[Expr, Formula] = {}
        self._anew: dict[Any, np.ndarray] = {}
        self.states: dict[SiteQuantity, dict[int, np.ndarray]] = {q: {} for q in system.motion.updates}
        self._fields: dict[RandomField, dict[int, np.ndarray]] = {f: {} for f in system.fields}
        motion = system.motion
        for step in range(motion.first, setup.steps + 1):
            for node in motion.order:
                if node.time is None and step != motion.first:
                    continue
                if isinstance(node, RandomField):
                    when = step if node.time is not None else 0
                    if when >= 0:
                        sent = np.broadcast_to(self.value(node.emission, when), (self.instance.size[node.sender],))
                        self._fields[node][when] = self.instance.matrix(node) @ sent
                else:
                    self._fill(node, step if node.time is not None else 0)

        self._fields.clear()
        vars(self.instance).pop("couplings", None)  # which are large, and have done their work

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: functions are compiled again there."""
        return vars(self) | {"_formulas": {}}

    def _fill(self, q: SiteQuantity, step: int) -> None:
        motion = self.setup.system.motion
        if is_shared(q):
            self._share(q, step)
            return
        (kind,) = q.site
        shape = (self.instance.size[kind],)
        given, update = motion.initial.get(q, {}), motion.updates[q]
        if q.time is not None and step in given:
            self.states[q][step] = np.broadcast_to(self.value(given[step], step), shape)
            return
        t = step - update.lead
        if q.time is not None and t < 0:
            return
        rhs, total = update.equation.rhs, 0.0
        for f in self.setup.system.laws[kind].fields:
            if rhs.has(f.symbol):
                total = total + self.value(rhs.diff(f.symbol), t) * self._fields[f][t if f.time is not None else 0]
                rhs = rhs.xreplace({f.symbol: S.Zero})
        found = np.broadcast_to(total + self.value(rhs, t), shape)
        if not np.all(np.isfinite(found)):
            raise NotConverged(f"{q} is no finite number at the step {step} of the instance {self.seed}.", {})
        self.states[q][step] = found

    def _share(self, q: SiteQuantity, step: int) -> None:
        """What all sites share at one step."""
        motion = self.setup.system.motion
        expr, t = motion.initial.get(q, {}).get(step), step
        if expr is None:
            expr, t = motion.updates[q].equation.rhs, step - motion.updates[q].lead
        if t >= 0 or step in motion.initial.get(q, {}):
            self.states[q][step] = in_averages(
                expr.xreplace(self.numbers), lambda node: self._mean(node.body, t), self._look_up(t), t, motion.time
            )

    def _mean(self, body: Expr, step: int) -> float:
        size = self.instance.size[kind_of_body(body)]
        return float(np.broadcast_to(self.value(body, step), (size,)).mean())

    def value(self, expr: Expr, step: int) -> Any:
        """An expression of one site, at all sites, where the time is a step."""
        if expr not in self._formulas:
            self._formulas[expr] = Formula(expr.xreplace(self.numbers), self.setup.system.motion.time)
        return self._formulas[expr](self._look_up(step), step)

    def _drawn(self, family: Any, step: int) -> np.ndarray:
        if (family, step) not in self._anew:
            self._anew[family, step] = self.instance.anew(family, step)
        return self._anew[family, step]

    def _look_up(self, step: int) -> Callable[[SiteQuantity], Any]:
        def value(q: SiteQuantity) -> Any:
            if isinstance(q.family, Quenched) and q.time is None:
                return self.instance.quenched[q.family]
            if isinstance(q.family, Noise | Quenched):
                return self._drawn(q.family, step_of(q.time, step))
            when = 0 if q.time is None else step_of(q.time, step)
            if when not in self.states[q.now]:
                raise DeclarationError(f"{q} lies outside of the steps of this simulation.", "times of the run")
            return self.states[q.now][when]

        return value

    def average(self, body: Expr, own: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        """The average of an expression over the sites of its kind, for all values of its open times."""
        size = self.instance.size[kind_of_body(body)]
        time, out = self.setup.system.motion.time, np.empty(tuple(len(steps) for _ in own))
        for where in np.ndindex(*out.shape):
            at = {t: Integer(int(steps[k])) for t, k in zip(own, where, strict=True)}
            first = next(iter(at), None)
            moved = body.xreplace({t: k for t, k in at.items() if t != first})
            clock = 0 if first is None else int(at[first])
            value = self.value(moved if first is None else moved.xreplace({first: time}), clock)
            out[where] = np.broadcast_to(value, (size,)).mean()
        return out


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

    def compare(self, run: Any, observables: Iterable[Any]) -> MovingComparison:
        """Hold a run of the theory against these instances.

        Raises
        ------
        ValuesError
            If they are about other steps or other values.
        """
        entries = list(observables)
        if not entries:
            raise ValuesError(
                "Nothing is compared.", "a list of observables", "run.compare(sim, [average(x[i, t]**2)])"
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

    def __len__(self) -> int:
        return len(self.trajectories)

    def __repr__(self) -> str:
        return f"<{len(self)} instances with N = {self.N}, over the steps 0 to {self.times[-1]}>"


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
        return "\n".join([*aligned([head, *body]), f"{self.instances} instances with N = {self.N}"])

    __repr__ = __str__


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
        raise ValuesError(f"step = {step}, and the states move in steps.", "step= in continuous time only")
    if not isinstance(N, int | np.integer) or isinstance(N, bool) or N < 2:
        raise ValuesError(f"N = {N!r}.", "one whole number of features, at least 2, where states move")
    setup = MovingSetup(system, read_values(system, values), couplings, read_steps(until))
    coupling_law(couplings)
    wanted = seed_list(seeds)
    found: dict[tuple[int, int], Trajectory] = {}
    run_all(executor, _run_one, setup, [(int(N), s) for s in wanted], found.__setitem__, progress=progress)
    return MovingSimulation(setup, int(N), [found[int(N), seed] for seed in wanted])


def _run_one(setup: MovingSetup, task: tuple[int, int]) -> Trajectory:
    return Trajectory(setup, *task)
