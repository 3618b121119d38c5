"""How many directions the activity of instances explores over time: covariances of all sites at given couplings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import DeclarationError, ValuesError
from symcavity.evaluate.numbers import whole_number
from symcavity.finite.draw import stream
from symcavity.finite.estimates import Estimate
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance
from symcavity.finite.labels import label
from symcavity.finite.redrawn import AGAIN, FEWEST
from symcavity.finite.trajectory import MovingSetup, Trajectory
from symcavity.method.moving_pair import observed_state
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.model.system import System


def beginnings(system: System) -> list[Quenched]:
    """The quenched families that stand in initial values alone."""
    exprs = [e.difference for law in system.laws.values() for e in law.equations]
    exprs += [f.emission for f in system.fields] + [e.difference for e in system.shared]
    exprs += [m for f in system.fields for m in f.coupling.family.moments]
    kept = {q.family for e in exprs for q in site_quantities(e, Quenched)}
    found = {q.family for e in system.initial for q in site_quantities(e.rhs, Quenched)}
    return sorted(found - kept, key=lambda q: q.name)


class RestartedTrajectory(Trajectory):
    """An instance that begins again: with its couplings, other initial values, and other noise.

    Parameters
    ----------
    draw : int
        From one on.
    """

    def __init__(self, setup: MovingSetup, features: int, seed: int, couplings: list[np.ndarray], draw: int) -> None:
        self.draw, self._given = draw, couplings
        super().__init__(setup, features, seed)

    def _begin(self, instance: Instance) -> None:
        instance.draw = self.draw
        instance.__dict__["couplings"] = self._given
        order = sorted(instance.values.quenched, key=lambda q: q.name)
        for q in beginnings(self.setup.system):
            law = instance.values.quenched[q]
            if not isinstance(law, np.ndarray):
                rng = stream(instance.seed, AGAIN, order.index(q), self.draw)
                instance.quenched[q] = draw_quenched(q, law, instance.size[q.slots[0]], rng)

    def over(self, body: Expr, first: int, last: int) -> np.ndarray:
        """A quantity of the sites from one step to another, a row a step."""
        return np.stack([np.asarray(self.value(body, k), dtype=float) for k in range(first, last + 1)])


class _Half:
    """Covariances over time from some independent runs, without bias."""

    def __init__(self, size: int) -> None:
        self.product, self.apart = np.zeros((size, size)), np.zeros((size, size))
        self.late, self.early, self.runs = np.zeros(size), np.zeros(size), 0

    def add(self, late: np.ndarray, early: np.ndarray) -> None:
        """One more run: its values, and those a lag before."""
        one, other = late.mean(axis=0), early.mean(axis=0)
        self.product += late.T @ early / len(late)
        self.apart += np.outer(one, other)
        self.late, self.early, self.runs = self.late + one, self.early + other, self.runs + 1

    def covariance(self) -> np.ndarray:
        """The mean product, less the product of the means of different runs."""
        means = (np.outer(self.late, self.early) - self.apart) / (self.runs * (self.runs - 1))
        return self.product / self.runs - means


def dimension_over_time(sim: Any, what: Any, over: Any, lag: int, since: Any, draws: Any) -> Estimate:
    """Measure the dimension of the activity; :meth:`MovingSimulation.dimension` says what its parameters are."""
    setup: MovingSetup = sim.setup
    system = setup.system
    given = list(over) if isinstance(over, list | tuple) else [over]
    if given != [system.time]:
        raise DeclarationError(
            f"over={over!r:.80} is not the time over which the states move, {system.time}.", f"over=[{system.time}]"
        )
    count = whole_number(draws, "draws", FEWEST, "a number of runs, four or more")
    start = whole_number(setup.steps // 2 if since is None else since, "since", 0, "a step of the simulation")
    if not 0 <= lag <= setup.steps - start:
        raise ValuesError(
            f"The lag {lag} is longer than the run after the step {start}, up to {setup.steps}.",
            "lags from zero on, and steps after since= for them",
        )
    varied = [q for q in beginnings(system) if not isinstance(setup.values.quenched[q], np.ndarray)]
    if not varied and not system.drawn_anew:
        raise ValuesError(
            "All runs of an instance are equal: there is neither noise nor a random initial value.",
            'an initial value with a law: initial=[Eq(x[i, 0], a[i])], a: Normal("a", 0, 1)',
        )
    body = observed_state(system, what)
    values = np.array([_dimension(sim, one.seed, body, lag, start, count) for one in sim.trajectories])
    name = f"dimension of {label(body)} over {system.time}"
    return Estimate(values, tuple(one.seed for one in sim.trajectories), name, sites=sim.N)


def _dimension(sim: Any, seed: int, body: Expr, lag: int, start: int, draws: int) -> float:
    couplings, halves = sim.setup.instance(sim.N, seed).couplings, None
    for draw in range(1, draws + 1):
        run = RestartedTrajectory(sim.setup, sim.N, seed, couplings, draw)
        early, late = run.over(body, start, sim.setup.steps - lag), run.over(body, start + lag, sim.setup.steps)
        halves = [_Half(early.shape[1]) for _ in range(2)] if halves is None else halves
        halves[draw % 2].add(late, early)
    assert halves is not None  # noqa: S101 - there are draws
    first, second = (half.covariance() for half in halves)
    squares = float(np.sum(first * second))
    if not squares > 0:
        raise ValuesError("The quantity does not vary over time.", "a quantity that does; more draws and more steps")
    return float(np.trace(first) * np.trace(second)) / (len(first) * squares)
