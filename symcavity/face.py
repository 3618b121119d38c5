"""The classes that users hold: data of the rooms below with the verbs on them; what is heavy loads inside a verb."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Symbol

from symcavity.model.problem import Problem
from symcavity.model.system import System as SystemData
from symcavity.record.derivation import Derivation as DerivationData
from symcavity.record.derivation import Step as StepData
from symcavity.record.derivation import Verdict
from symcavity.record.derivation import Verification as VerificationData
from symcavity.record.verbs import with_verbs
from symcavity.study.verbs import StudiedTheory

if TYPE_CHECKING:
    from symcavity.evaluate.solution import Solution
    from symcavity.evaluate.state_evolution import StateEvolution
    from symcavity.finite.compare import Comparison
    from symcavity.finite.experiment import CavityExperiment
    from symcavity.finite.sweep import Sweep
    from symcavity.method.symmetry import Symmetry

# -- what is declared ----------------------------------------------------------------------------


class _Confrontable(ABC):
    """A declaration that can be held against finite instances of itself."""

    @abstractmethod
    def _system(self) -> BipartiteSystem:
        """Return the system whose instances are drawn."""

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
            Parameters, ``alpha`` (or ``P``), ``K/N`` (or ``K``) for further kinds of sites, and quenched parameters.
            Fixed averages are not imposed: they come out.
        N : int or iterable of int
            The number of features; several sizes give an extrapolation in 1/N.
        seeds : int or iterable of int
            How many instances, or their seeds.
        couplings : str or callable
            ``'gaussian'``, ``'rademacher'``, ``'uniform'``, or a function of (generator, shape).
        executor : int, Executor or None
            A number of processes, or any executor of ``concurrent.futures``.
        **options
            ``progress`` (a bar, or a function of done, total, seconds elapsed, seconds left), ``method``.

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
        from symcavity.finite.run import simulate
        from symcavity.witness.simulated import with_witness

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
        from symcavity.finite.sweep import sweep_simulation

        return sweep_simulation(self._system(), grid, N=N, seeds=seeds, **options)

    def cavity_experiment(
        self, values: Mapping[Any, Any], N: int, seeds: int | Iterable[int] = 20, theory: Any = None, **options: Any
    ) -> CavityExperiment:
        """Solve instances, add one site of each kind, solve again, and hold the cavity method against it.

        ``theory`` is that of this declaration by default; :func:`symcavity.finite.experiment.cavity_experiment`.
        """
        from symcavity.finite.experiment import cavity_experiment

        system = self._system()
        theory = theory if theory is not None else system.cavity()
        return cavity_experiment(system, theory, values, N=N, seeds=seeds, **options)

    def message_passing(self, values: Mapping[Any, Any], N: int = 2000, seeds: Any = 10, **options: Any) -> Any:
        """Pass messages on finite instances; see :func:`symcavity.finite.passing.message_passing`."""
        from symcavity.finite.passing import message_passing

        return message_passing(self._system(), values, N=N, seeds=seeds, **options)


class BipartiteSystem(_Confrontable, SystemData):
    """A system of coupled kinds of sites: features, data, and those that :func:`symcavity.Sites` declares.

    Parameters
    ----------
    equations : sequence of Eq
        Equations of a site (one free index, such as ``i`` or ``mu``), whose coupling to other sites is a sum
        ``Sum(x[mu, i]*..., (i, 1, N))``; and global conditions without a free index, such as
        ``Eq(Sum(y[mu]*lam[mu], (mu, 1, P)), 0)``.
    conditions : sequence of Complementary
        Complementarity conditions of a site.
    fixed : sequence of Eq
        Conditions on averages, ``Eq(average(w[i]**2), 1/kappa**2)``.
    name : str, optional
        A title for the derivation.
    cite : str, optional
        A work, which derivations cite.
    source : dict, optional
        Its equation numbers by the key of the step: ``{"datum.cavity_field": "40"}``.
    named : dict, optional
        Names of observables: ``{E: average(...)}``.

    Notes
    -----
    The engine adds the sources ``I_i`` and ``I^mu`` itself, to the right-hand side of each equation
    that carries a random field (paper, equations 28, 29, 126, 127).
    """

    def _system(self) -> BipartiteSystem:
        return self

    @cached_property
    def _cavity(self) -> Theory:
        return Theory(self, naive=False)

    @cached_property
    def _naive(self) -> Theory:
        return Theory(self, naive=True)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: a theory is derived again there, where one is asked for."""
        return {name: value for name, value in vars(self).items() if name not in ("_cavity", "_naive")}

    def cavity(self) -> Theory:
        """Derive the zero-temperature cavity theory; the same one when it is asked for again."""
        return self._cavity

    def naive(self) -> Theory:
        """Derive the naive mean field: the feature side's self-coupling dropped."""
        return self._naive

    def symmetry(self) -> Symmetry:
        """Look for the rescaling of the datum states that makes the naive analysis right."""
        from symcavity.method.symmetry import find_symmetry

        return find_symmetry(self)

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import system_latex

        return system_latex(self)


System = BipartiteSystem


class ConvexProblem(_Confrontable, Problem):
    """A high-dimensional convex optimisation problem over the states of feature and datum sites.

    Parameters
    ----------
    minimize : Expr
        Sums over the sites of one side, ``Sum(w[i]**2, (i, 1, N))/2 + C*Sum(xi[mu], (mu, 1, P))``.  The
        summand of a datum may contain coupling sums ``Sum(x[mu, i]*w[i], (i, 1, N))``.  A penalty on a
        global variable is extensive: ``N*b**2/2``.
    subject_to : sequence of relations
        Inequalities (``>=``, ``<=``) and per-site equalities ``Eq``; each holds at every site of its side.
    fixed : sequence of Eq
        Values of averages at the solution, ``Eq(average(w[i]**2), 1/kappa**2)``.
    name : str, optional
        A title.
    cite : str, optional
        A work, which derivations cite.
    source : dict, optional
        Its equation numbers by the key of the step: ``{"datum.cavity_field": "40"}``.
    named : dict, optional
        Names of observables: ``{E: average(...)}``.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a bipartite problem of this form.
    NotConvex
        If an objective or a constraint is provably not convex.
    """

    @cached_property
    def _conditions(self) -> BipartiteSystem:
        from symcavity.method.kkt import optimality

        return with_verbs(BipartiteSystem, optimality(self))

    def _system(self) -> BipartiteSystem:
        return self.kkt()

    def kkt(self) -> BipartiteSystem:
        """Return the optimality conditions: stationarity, feasibility, slackness, as a system."""
        return self._conditions

    def cavity(self) -> Theory:
        """Derive the cavity theory of the optimality conditions."""
        return self.kkt().cavity()

    def naive(self) -> Theory:
        """Derive the naive mean field of the optimality conditions."""
        return self.kkt().naive()

    def symmetry(self) -> Symmetry:
        """Return the rescaling that makes the naive analysis right, or the reason why there is none."""
        return self.kkt().symmetry()

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import problem_latex

        return problem_latex(self)


# -- what is derived -----------------------------------------------------------------------------


class Theory(StudiedTheory):
    """A derived theory: order parameters, closed equations, numbers, and the record of the derivation.

    Attributes
    ----------
    order_parameters : dict
        Each order parameter's symbol, and the average or response that it stands for.
    equations : list of Equation
        The closed system: as many equations as unknowns (one more for each fixed condition).
    """

    def solve(
        self,
        values: Mapping[Any, Any] | None = None,
        dps: int = 15,
        *,
        guess: Mapping[Symbol, Any] | None = None,
        timeout: float | None = None,
        certify: bool = False,
    ) -> Solution:
        """Solve the closed equations at given values.

        Parameters
        ----------
        values : mapping
            Parameters, ``alpha`` (or ``P`` and ``N``), ``K/N`` for further kinds of sites, quenched parameters, and
            the set of each support function.  For each fixed condition one of them is left out, and solved for.
        dps : int
            Significant digits.
        guess : mapping, optional
            Values of a solution nearby, for continuation.
        timeout : float, optional
            Seconds that the numerical work may take.  What takes long shows on a terminal how far it is.
        certify : bool
            Whether to prove one solution in a box: ``solution.certified``, balls of python-flint.

        Raises
        ------
        ValuesError
            For missing, superfluous or contradictory values, before any work.
        Infeasible
            If there is no solution, such as for a load above capacity.
        NotConverged, OutOfTime
            If a root could not be found or polished (it carries the best point); if the timeout is over.
        """
        from symcavity.evaluate.binding import solve_theory

        return solve_theory(self, values, dps, guess, timeout, certify=certify)

    def function(
        self,
        target: Any,
        *arguments: Symbol,
        values: Mapping[Any, Any] | None = None,
        backend: str = "numpy",
        errors: str = "raise",
    ) -> Callable[..., Any]:
        """Return a vectorised function of parameters.

        Parameters
        ----------
        target : Symbol or observable
            What to compute.
        *arguments : Symbol
            The parameters that the function takes, in order.
        values : mapping, optional
            Values of all other parameters.
        backend : str
            ``'numpy'`` broadcasts over arrays in double; ``'mpmath'`` computes at mpmath's current precision.
        errors : str
            ``'raise'`` (the default) or ``'nan'`` for points without a solution.

        Raises
        ------
        ValuesError
            If a parameter is neither an argument nor given a value.
        """
        from symcavity.evaluate.function import make_function

        return make_function(self, target, arguments, values or {}, backend, errors)

    def compare(self, sim: Any, observables: Any = None) -> Comparison:
        """Hold this theory against a simulation of the same declaration.

        Parameters
        ----------
        sim : Simulation or Simulations
            What ``problem.simulate(...)`` returned.
        observables : iterable of Expr, optional
            Averages, sums, responses; by default moments, fractions and responses of all variables.

        Returns
        -------
        Comparison
            Observable, theory, simulation, standard error, z-score; prints, plots, exports LaTeX.
        """
        from symcavity.finite.compare import compare

        return compare(self, sim, observables)

    def sweep(self, grid: Mapping[Any, Any], **options: Any) -> Sweep:
        """Solve over all combinations of the values in a grid.

        Options: ``values``, ``observables``, ``file`` (CSV, resumed on a rerun), ``executor``, ``progress``, ``dps``.
        """
        from symcavity.finite.sweep import sweep_theory

        return sweep_theory(self, grid, **options)

    def state_evolution(self, values: Mapping[Any, Any] | None = None, steps: int = 40) -> StateEvolution:
        """Read the closed equations as a map: the order parameters after each step of message passing."""
        from symcavity.evaluate.state_evolution import state_evolution

        return state_evolution(self, values, steps)

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the derivation: steps with reasons, which print and check themselves."""
        from symcavity.method.record import record

        return Derivation.of(record(self))


# -- the record ----------------------------------------------------------------------------------


class Step(StepData):
    """One step of a derivation; :class:`symcavity.record.derivation.Step` says what it holds."""

    def verdicts(self, dps: int = 50) -> list[Verdict]:
        """Run the checks of this step, to ``dps`` digits where they are numerical."""
        from symcavity.witness.judge import judge

        return judge(self, dps)

    def __str__(self) -> str:
        from symcavity.writing.text import step_text

        return step_text(self)

    def _repr_latex_(self) -> str:
        from symcavity.writing.latex import step_latex

        return step_latex(self)


class Verification(VerificationData):
    """The outcome of :meth:`Derivation.verify`; truthy if no claim failed."""

    def __str__(self) -> str:
        from symcavity.writing.text import verification_text

        return verification_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from symcavity.writing.html import verification_html

        return verification_html(self)


class Derivation(DerivationData):
    """An ordered record of steps, which renders as a paper and checks itself.

    :class:`symcavity.record.derivation.Derivation` says what it holds.
    """

    @classmethod
    def of(cls, found: DerivationData) -> Derivation:
        """The same record, with the verbs."""
        return replace(with_verbs(cls, found), steps=tuple(with_verbs(Step, step) for step in found.steps))

    @classmethod
    def from_json(cls, source: Any) -> Derivation:
        """Read what :meth:`to_json` wrote; nothing in it is evaluated. ``verify()`` judges the claims that are read."""
        from symcavity.writing.exchange import read_derivation

        return cls.of(read_derivation(source, Theory))

    def verify(self, dps: int = 50, simulation: Any = None) -> Verification:
        """Check every claim by whatever applies.

        Parameters
        ----------
        dps : int
            Digits of the numerical checks.
        simulation : Simulation, optional
            A simulation of the same declaration: claims about averages get a z-score as a further witness.
        """
        from symcavity.witness.judge import verify

        return Verification(verify(self, dps, simulation))

    def to_latex(self) -> str:
        """Return a complete LaTeX document (amsmath and bm only)."""
        from symcavity.writing.latex import document

        return document(self)

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        from symcavity.writing.html import page

        return page(self)

    def to_json(self, *, verify: bool = True, dps: int = 50) -> str:
        """Return a record for machines: claims, reasons, declaration, and what ``verify(dps)`` says of each step."""
        from symcavity.writing.exchange import derivation_json

        return derivation_json(self, self.verify(dps) if verify else None)

    def to_lean(self) -> str:
        """Return the claims that are plain algebra as Lean 4 statements, with their hypotheses; proofs are open."""
        from symcavity.writing.lean import lean_source

        return lean_source(self)

    def to_text(self) -> str:
        """Return the derivation as plain text for a terminal."""
        from symcavity.writing.text import derivation_text

        return derivation_text(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


# -- simulations ---------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    if name in ("Simulation", "Simulations"):
        from symcavity.witness.simulated import simulation_class

        return simulation_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["BipartiteSystem", "ConvexProblem", "Derivation", "Step", "System", "Theory", "Verification"]
