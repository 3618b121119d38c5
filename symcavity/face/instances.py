"""The verbs of a declaration that draw finite instances of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from symcavity.face.refusals import refuse_motion, refuse_temperature

if TYPE_CHECKING:
    from symcavity.finite.experiment import CavityExperiment
    from symcavity.finite.flow import FlowSimulation
    from symcavity.finite.moving import MovingSimulation
    from symcavity.finite.passing import MessagePassing
    from symcavity.finite.simulation import Simulation, Simulations
    from symcavity.finite.swept import Sweep
    from symcavity.finite.thermal import ThermalSimulation, ThermalSimulations


class WithInstances(ABC):
    """A declaration whose finite instances can be drawn and solved."""

    @abstractmethod
    def _system(self) -> Any:
        """Return the system whose instances are drawn."""

    def simulate(
        self,
        values: Mapping[Any, Any],
        N: int | Iterable[int] | None = None,
        seeds: int | Iterable[int] = 10,
        couplings: str | Callable[..., Any] = "gaussian",
        executor: Any = None,
        **options: Any,
    ) -> Simulation | Simulations | MovingSimulation | FlowSimulation | ThermalSimulation | ThermalSimulations:
        """Draw finite instances of this declaration and solve them exactly.

        Parameters
        ----------
        values : mapping
            Parameters, ``alpha`` (or ``P``), ``K/N`` (or ``K``) for further kinds of sites, and quenched parameters.
            Instances do not impose fixed averages.
        N : int or iterable of int
            The number of features, where it is not among the values; several sizes give an extrapolation in 1/N.
        seeds : int or iterable of int
            How many instances, or their seeds.
        couplings : str or callable
            ``'gaussian'``, ``'rademacher'``, ``'uniform'``, or a function of (generator, shape).
        executor : int, Executor or None
            A number of processes, or any executor of ``concurrent.futures``.
        **options
            ``progress`` (a bar, or a function of done, total, seconds elapsed, seconds left), ``method``;
            where states move ``until``, the last step, and in continuous time ``step``, that of Euler's rule; of a
            Gibbs measure ``sweeps``, and as ``method`` ``'enumeration'``, ``'integration'`` or ``'sampling'``.

        Returns
        -------
        Simulation, Simulations, MovingSimulation or ThermalSimulation
            Evaluate any expression of the declaration on it: ``sim[average(w[i]**2)].mean``.

        Raises
        ------
        ValuesError
            For missing or contradictory values, sizes or couplings, before any instance is solved.
        MissingDependency
            If the solver that the problem needs is not installed.
        """
        from symcavity.finite.flow import simulate_flow
        from symcavity.finite.moving import simulate_moving
        from symcavity.finite.run import simulate
        from symcavity.witness.simulated import with_witness

        drawn: dict[str, Any] = {"seeds": seeds, "couplings": couplings, "executor": executor}
        if self._system().weights:
            from symcavity.finite.thermal import simulate_thermal

            return simulate_thermal(self._system(), values, N, **drawn, **options)
        if self._system().time is not None:
            if self._system().flowing:
                return simulate_flow(self._system(), values, N, **drawn, **options)
            return simulate_moving(self._system(), values, N, **drawn, **options)
        found = simulate(self._system(), values, N=N, seeds=seeds, couplings=couplings, executor=executor, **options)
        return with_witness(found)

    def sweep(
        self, grid: Mapping[Any, Iterable[Any]], N: int | Iterable[int], seeds: int | Iterable[int] = 10, **options: Any
    ) -> Sweep:
        """Simulate over a grid of parameters; rows go to ``file=`` as they finish, and a rerun resumes.

        Parameters
        ----------
        grid : mapping
            Values by symbol; all combinations are simulated.
        N, seeds
            As in :meth:`simulate`.
        **options
            ``values``, ``observables``, ``file``, ``executor``, ``progress``, ``retry``, ``couplings``.
        """
        refuse_temperature(self._system(), "sweep")
        from symcavity.finite.sweep import sweep_simulation

        return sweep_simulation(self._system(), grid, N=N, seeds=seeds, **options)

    def cavity_experiment(
        self, values: Mapping[Any, Any], N: int, seeds: int | Iterable[int] = 20, theory: Any = None, **options: Any
    ) -> CavityExperiment:
        """Solve instances, add one site of each kind, solve again, and compare the change with the cavity method.

        ``theory`` is that of this declaration by default; :func:`symcavity.finite.experiment.cavity_experiment`.
        """
        refuse_temperature(self._system(), "the cavity experiment")
        from symcavity.finite.experiment import cavity_experiment

        system = self._system()
        theory = theory if theory is not None else system.cavity()
        return cavity_experiment(system, theory, values, N=N, seeds=seeds, **options)

    def message_passing(
        self, values: Mapping[Any, Any], N: int = 2000, seeds: int | Iterable[int] = 10, **options: Any
    ) -> MessagePassing:
        """Pass messages on finite instances; see :func:`symcavity.finite.passing.message_passing`."""
        refuse_motion(self._system(), "message passing")
        from symcavity.finite.passing import message_passing

        return message_passing(self._system(), values, N=N, seeds=seeds, **options)
