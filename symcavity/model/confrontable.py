"""The verbs that a declaration offers beyond derivation: simulate it, sweep it, test the cavity on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symcavity.finite.experiment import CavityExperiment
    from symcavity.finite.sweep import Sweep


class Confrontable:
    """A declaration that can be held against finite instances of itself."""

    def simulate(
        self,
        values: Mapping[Any, Any],
        N: int | Iterable[int],
        seeds: int | Iterable[int] = 10,
        couplings: str | Callable[..., Any] = "gaussian",
        executor: Any = None,
        **options: Any,
    ) -> Any:
        """Draw finite instances of this declaration and solve them exactly.

        Parameters
        ----------
        values : mapping
            Parameters, ``alpha`` (or ``P``), and quenched parameters.  Fixed averages are not imposed: they
            come out.
        N : int or iterable of int
            The number of features; several sizes give an extrapolation in 1/N.
        seeds : int or iterable of int
            How many instances, or their seeds.
        couplings : str or callable
            ``'gaussian'``, ``'rademacher'``, ``'uniform'``, or a function of (generator, shape).
        executor : int, Executor or None
            A number of processes, or any executor of ``concurrent.futures``.

        Returns
        -------
        Simulation or Simulations
            Read it by the words of the declaration: ``sim[average(w[i]**2)].mean``.

        Raises
        ------
        ValuesError
            For missing or contradictory values, sizes or couplings, before any instance is solved.
        MissingDependency
            If the solver that the structure asks for is not installed.
        """
        from symcavity.finite import simulate

        return simulate(self, values, N=N, seeds=seeds, couplings=couplings, executor=executor, **options)  # type: ignore[arg-type]

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
        from symcavity.finite import sweep_simulation

        return sweep_simulation(self, grid, N=N, seeds=seeds, **options)

    def cavity_experiment(
        self, values: Mapping[Any, Any], N: int, seeds: int | Iterable[int] = 20, theory: Any = None, **options: Any
    ) -> CavityExperiment:
        """Solve instances, add one feature and one datum, solve again, and hold the cavity method against it.

        Parameters
        ----------
        values : mapping
            As in :meth:`simulate`.
        N : int
            The number of features before the insertion.
        seeds : int or iterable of int
            How many instances, or their seeds.
        theory : Theory or Solution, optional
            What to compare with; the cavity theory of this declaration by default.
        """
        from symcavity.finite import cavity_experiment

        theory = theory if theory is not None else self.cavity()  # type: ignore[attr-defined]
        return cavity_experiment(self, theory, values, N=N, seeds=seeds, **options)
