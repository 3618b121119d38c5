"""Simulating a declaration: many instances, their solutions, and observables read off them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from symcavity.errors import NotConverged
from symcavity.evaluate.progress import Report
from symcavity.finite.batch import Batch
from symcavity.finite.instance import FRESH
from symcavity.finite.minimum import SolvedInstance, solve_instance
from symcavity.finite.sample import Sample, arrays_of
from symcavity.finite.setup import Setup, as_system, prepare
from symcavity.finite.simulation import Simulation, Simulations
from symcavity.model.keywords import known_options
from symcavity.model.problem import Problem
from symcavity.model.system import System


def run_one(setup: Setup, task: tuple[int, int]) -> Sample:
    """Draw and solve one instance: the piece of work of every executor."""
    features, seed = task
    instance = setup.instance(features, seed)
    try:
        solved = solve_instance(setup.system, instance, setup.method)
    except NotConverged as error:
        solved = SolvedInstance(None, None, setup.method or "none", failure=error.found)
    return Sample(seed, instance.size, solved, {})


def _lost(setup: Setup, task: tuple[int, int], why: str) -> Sample:
    """An instance whose process died."""
    features, seed = task
    failure = f"There is no answer for the instance with seed {seed}: {why}."
    return Sample(seed, setup.values.sizes(features), SolvedInstance(None, None, "none", failure=failure), {})


@known_options
def simulate(
    declared: Problem | System,
    values: Mapping[Any, Any],
    *,
    N: int | Iterable[int] | None = None,
    seeds: int | Iterable[int] = 10,
    couplings: str | Callable[..., Any] = "gaussian",
    executor: Any = None,
    method: str = "",
    fresh: int = FRESH,
    progress: bool | Report | None = None,
) -> Simulation | Simulations:
    """Draw and solve finite instances of a declaration.

    Parameters
    ----------
    declared : Problem or System
        What is simulated; nothing else describes the problem.
    values : mapping
        Numbers by symbol: the parameters of the law and ``alpha`` (or ``P``), ``K/N`` (or ``K``) for further kinds
        of sites; laws or arrays by quenched family; shapes by support function.
    N : int or iterable of int
        The number of features; several give an extrapolation in 1/N.
    seeds : int or iterable of int
        How many instances, or their seeds.
    couplings : str or callable
        ``'gaussian'``, ``'rademacher'``, ``'uniform'``, or a function of (generator, shape) with samples
        of mean 0 and variance 1; the declared variance multiplies them.
    executor : int, Executor or None
        A number of processes, or any executor of :mod:`concurrent.futures`.
    method : str, optional
        ``'message passing'``, ``'interior point'``, ``'newton'``, ``'cutting planes'`` or ``'held multipliers'``;
        by default those that fit the structure are tried in order.
    fresh : int, optional
        How many sites are drawn in each instance for ``average(fresh(...))``; nothing else depends on it.
    progress : bool, callable or None
        As in :func:`symcavity.finite.sweep_simulation`.

    Returns
    -------
    Simulation or Simulations
        All variables, residuals and observables.  Conditions on averages (``fixed=``) do not constrain
        an instance: what they fix comes out.
    """
    system = as_system(declared)
    setup = prepare(system, values, couplings, method, fresh)
    found = Batch.of(setup, N, seeds).run(run_one, setup, executor, progress, partial(_lost, setup))
    for sample in (sample for samples in found.values() for sample in samples):
        sample.arrays = arrays_of(setup.system, sample.solved.state)
    by_size = {n: Simulation(setup, samples) for n, samples in found.items()}
    first = next(iter(by_size.values()))
    if all(sample.failed for samples in found.values() for sample in samples):
        first.nothing()
    return first if len(by_size) == 1 else Simulations(by_size)
