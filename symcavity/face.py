"""The classes that users hold: data of the rooms below with the verbs on them; what is heavy loads inside a verb."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Symbol

from symcavity.algebra.prove import Proof as ProofData
from symcavity.algebra.prove import ProofStep as ProofStepData
from symcavity.algebra.prove import prove as find_proof
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.method.fluctuation_steps import Fluctuations as FluctuationsData
from symcavity.method.fluctuation_steps import fluctuation_steps
from symcavity.method.pair import Pair as PairData
from symcavity.method.symmetry import Symmetry as SymmetryData
from symcavity.model.problem import Problem as ProblemData
from symcavity.model.system import System as SystemData
from symcavity.record.derivation import Derivation as DerivationData
from symcavity.record.derivation import Step as StepData
from symcavity.record.derivation import Verdict
from symcavity.record.derivation import Verification as VerificationData
from symcavity.record.verbs import with_verbs
from symcavity.study.verbs import StudiedTheory

if TYPE_CHECKING:
    from symcavity.evaluate.moving.flow import FlowRun
    from symcavity.evaluate.moving.run import MovingRun
    from symcavity.evaluate.moving.stationary import Stationary
    from symcavity.evaluate.solutions.solution import Solution
    from symcavity.evaluate.state_evolution import StateEvolution
    from symcavity.finite.compare import Comparison
    from symcavity.finite.experiment import CavityExperiment
    from symcavity.finite.sweep import Sweep
    from symcavity.method.equivalent import LinearEquivalent as LinearEquivalentData

# -- what is declared ----------------------------------------------------------------------------


def _still(system: SystemData, verb: str) -> None:
    """Refuse what is about states that keep still, where they move."""
    if system.time is not None:
        raise UnsupportedLaw(
            f"The states move, and {verb} is about states that keep still.",
            "theory.evolve(values, until=...), system.simulate(values, N=..., until=...), run.compare(sim, ...)",
        )


def _without_temperature(system: SystemData, verb: str) -> None:
    """Refuse what is about instances of states that do not fluctuate."""
    _still(system, verb)
    _minimised(system, verb)


def _minimised(system: SystemData, verb: str) -> None:
    """Refuse instances of a Gibbs measure."""
    if system.weights:
        raise UnsupportedLaw(
            f"The states of a Gibbs measure fluctuate, and {verb} solves instances for one state.",
            "theory.solve, theory.derivation.verify() of a Gibbs measure; instances of the problem at its minimum",
            "problem.simulate(...), the limit of large beta",
        )


class _Confrontable(ABC):
    """A declaration that can be held against finite instances of itself."""

    @abstractmethod
    def _system(self) -> BipartiteSystem:
        """Return the system whose instances are drawn."""

    def simulate(
        self,
        values: Mapping[Any, Any],
        N: int | Iterable[int] | None = None,
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
            Read it by the words of the declaration: ``sim[average(w[i]**2)].mean``.

        Raises
        ------
        ValuesError
            For missing or contradictory values, sizes or couplings, before any instance is solved.
        MissingDependency
            If the solver that the structure asks for is not installed.
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
        _without_temperature(self._system(), "sweep")
        from symcavity.finite.sweep import sweep_simulation

        return sweep_simulation(self._system(), grid, N=N, seeds=seeds, **options)

    def cavity_experiment(
        self, values: Mapping[Any, Any], N: int, seeds: int | Iterable[int] = 20, theory: Any = None, **options: Any
    ) -> CavityExperiment:
        """Solve instances, add one site of each kind, solve again, and hold the cavity method against it.

        ``theory`` is that of this declaration by default; :func:`symcavity.finite.experiment.cavity_experiment`.
        """
        _without_temperature(self._system(), "the cavity experiment")
        from symcavity.finite.experiment import cavity_experiment

        system = self._system()
        theory = theory if theory is not None else system.cavity()
        return cavity_experiment(system, theory, values, N=N, seeds=seeds, **options)

    def message_passing(self, values: Mapping[Any, Any], N: int = 2000, seeds: Any = 10, **options: Any) -> Any:
        """Pass messages on finite instances; see :func:`symcavity.finite.passing.message_passing`."""
        _without_temperature(self._system(), "message passing")
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
    initial : sequence of Eq
        Of states that move: their first values, ``Eq(x[i, 0], a[i])``.
    name : str, optional
        A title for the derivation.
    cite : str, optional
        Works, parted by semicolons, which derivations cite; equation numbers in ``source`` are those of the first.
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
        """Derive the cavity theory; the same one when it is asked for again."""
        return self._cavity

    def naive(self) -> Theory:
        """Derive the naive mean field: the feature side's self-coupling dropped."""
        _still(self, "the naive analysis")
        return self._naive

    def symmetry(self) -> Symmetry:
        """Look for the rescaling of the datum states that makes the naive analysis right."""
        from symcavity.method.symmetry import find_symmetry

        return with_verbs(Symmetry, find_symmetry(self))

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import system_latex

        return system_latex(self)


System = BipartiteSystem


class Problem(ProblemData):
    """A problem over the states of sites of which no convexity is asked: several minima, discrete states.

    Parameters
    ----------
    minimize : Expr
        Sums over the sites of one side, as of :class:`ConvexProblem`; pairs of one kind through symmetric couplings,
        ``-Sum(s[i]*Sum(J[i, j]*s[j], (j, 1, N)), (i, 1, N))/2``, with ``Coupling("J", between=(i, i), reciprocity=1)``.
        Products of states of one site may stand in coupling sums.
    subject_to : sequence of relations
        Inequalities (``>=``, ``<=``) at every site.
    fixed, name, cite, source, named
        As of :class:`ConvexProblem`.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is no problem of this form.
    """

    asks_convexity = False

    def gibbs(self, beta: Any) -> BipartiteSystem:
        """Return the Gibbs measure ``exp(-beta*objective)`` of this problem, as a system of thermal means.

        Its theory takes the temperature along: ``average(w[i]**2)`` is a thermal second moment, averaged over the
        disorder, and ``average(expect(w[i])**2)`` the square of a thermal mean.

        Parameters
        ----------
        beta : Symbol or number
            The inverse temperature, positive, in units of the objective.

        Raises
        ------
        DeclarationError
            If beta is not positive.
        UnsupportedLaw
            For global variables, and kinds of sites that send or hear several fields of states.
        """
        from symcavity.method.gibbs import gibbs

        return with_verbs(BipartiteSystem, gibbs(self, beta))

    def _repr_latex_(self) -> str:
        from symcavity.writing.displays import problem_latex

        return problem_latex(self)


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
        Works, parted by semicolons, which derivations cite; equation numbers in ``source`` are those of the first.
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

    asks_convexity = True

    @cached_property
    def _conditions(self) -> BipartiteSystem:
        from symcavity.method.kkt import optimality

        return with_verbs(BipartiteSystem, optimality(self))

    def _system(self) -> BipartiteSystem:
        return self.kkt()

    def copies(self, count: int = 2, share: Mapping[Any, Any] | None = None) -> ConvexProblem:
        """Several copies of this problem that share their couplings in part, as one problem.

        The states and globals of copy ``k`` are called ``w_k``, ``b_k``; so are the couplings, quenched parameters and
        parameters that it has for itself.  Overlaps between fits of overlapping data are averages,
        ``average(w_1[i]*w_2[i])`` with ``w_1 = problem.copies(...)["w_1"]``.

        Parameters
        ----------
        count : int
            How many copies.
        share : mapping, optional
            By coupling the correlation between the copies, from 0 to 1, a number or a symbol; by quenched parameter or
            symbol 0 where each copy has its own.  Everything else is the same in all copies.

        Raises
        ------
        DeclarationError
            For shares of unknown words or beyond their range, names that are taken, and fixed averages.
        """
        from symcavity.model.copies import copied

        objective, constraints, name = copied(self, count, share or {})
        return ConvexProblem(objective, constraints, name=name)

    def __getitem__(self, name: str) -> Any:
        """The family of the variable with the given name: ``problem["w"][i]``, ``problem["lambda"][mu]``."""
        return self.kkt()[name]

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

    def descent(self, rate: Any, momentum: Any = 0, batch: Any = 1, *, initial: Any = ()) -> BipartiteSystem:
        """Gradient descent on this problem, as a system whose states move in steps.

        ``w(t + 1) = w(t) + momentum*(w(t) - w(t - 1)) - rate*(slope of the objective in w)``, from zero on.

        Parameters
        ----------
        rate : Expr or number
            By how much a step goes against the slope of the objective, written such that it is in proportion to N: a
            mean over data is taken times N.
        momentum : Expr or number
            Which part of the last step is repeated.
        batch : Expr or number
            Which share of the data a step looks at: each with this probability, drawn anew at each step. Their losses
            count ``1/batch`` times, so that the mean of many steps is a step with all data; 1 is all data.
        initial : sequence of Eq
            Where states begin, if not at zero: ``Eq(w[i], a[i])``.

        Returns
        -------
        System
            Its observables are asked for in the words of the problem: ``run[average(w[i]**2)]`` is an array over the
            steps.

        Raises
        ------
        UnsupportedLaw
            If there are constraints, or a slope of the objective jumps.
        DeclarationError
            For a rate, a momentum, a batch or initial values that are none.
        """
        from symcavity.method.descent import descent

        if rate is None:
            raise ValuesError("The rate of the descent is None.", "a positive rate; problem.flow() in continuous time")
        return with_verbs(BipartiteSystem, descent(self, rate, momentum, batch, initial))

    def flow(self, *, initial: Any = ()) -> BipartiteSystem:
        """Gradient flow on this problem, as a system in continuous time: ``dw/dt = -(slope of the objective in w)``.

        Parameters
        ----------
        initial : sequence of Eq
            Where states begin, if not at zero: ``Eq(w[i], a[i])``.

        Returns
        -------
        System
            Its observables are asked for in the words of the problem, as those of :meth:`descent`.

        Raises
        ------
        UnsupportedLaw, DeclarationError
            As :meth:`descent`.
        """
        from symcavity.method.descent import descent

        return with_verbs(BipartiteSystem, descent(self, None, initial=initial))


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
        FlatMinimum
            If there are many, such as for a regression with fewer data than weights and no penalty.
        NotConverged, OutOfTime
            If a root could not be found or polished (it carries the best point); if the timeout is over.
        """
        _still(self.system, "solve")
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
        _still(self.system, "function")
        from symcavity.evaluate.function import make_function

        return make_function(self, target, arguments, values or {}, backend, errors)

    def compare(self, sim: Any, observables: Any = None, *, scatter: bool = False) -> Comparison:
        """Hold this theory against a simulation of the same declaration.

        Parameters
        ----------
        sim : Simulation or Simulations
            What ``problem.simulate(...)`` returned.
        observables : iterable of Expr, optional
            Averages, sums, responses; by default moments, fractions and responses of all variables.
        scatter : bool
            Whether the variance between the instances is held against :meth:`Solution.variance`, too.

        Returns
        -------
        Comparison
            Observable, theory, simulation, standard error, z-score; prints, plots, exports LaTeX.
        """
        _still(self.system, "this comparison")
        from symcavity.finite.compare import compare

        return compare(self, sim, observables, scatter=scatter)

    def evolve(
        self,
        values: Mapping[Any, Any],
        until: Any,
        *,
        step: Any = None,
        paths: int = 20000,
        seed: int = 0,
        method: str | None = None,
        dps: int | None = None,
    ) -> MovingRun | FlowRun:
        """Run a theory of states that move forward in time; nothing is iterated.

        Parameters
        ----------
        values : mapping
            Parameters, ratios of sizes, quenched parameters.
        until : int or number
            The last step; in continuous time, its end.
        step : number, optional
            In continuous time, and there alone: the step of Euler's rule.  The run is made with half of it too.  Where
            nothing is sampled both are extrapolated to steps of length zero, and ``run.errors`` says how far they
            differ.
        paths : int
            How many paths are sampled, where the laws are not linear.
        seed : int
            Of these.
        method : str, optional
            ``'exact'``, for laws that are linear in states and fields; ``'gaussian'``, where smooth functions of such
            states are sent that do not come back; or ``'paths'``; by default the first that serves.
        dps : int, optional
            Digits of a run without paths.  By default fractions up to 30 steps, and doubles beyond.

        Returns
        -------
        MovingRun or FlowRun
            ``run.times``, ``run[average(x[i, t]*x[i, s])]``, ``run[response(x[i, t], s)]``, ``run.errors[...]``.

        Raises
        ------
        ValuesError
            For values that are missing or superfluous, and a step with which the scheme is unstable, before any work.
        UnsupportedLaw
            If the states keep still, or the law is not of the form that the method needs.
        """
        from symcavity.evaluate.moving.flow import evolve_flow
        from symcavity.evaluate.moving.run import evolve

        if self.system.time is None:
            raise UnsupportedLaw("The states of this theory keep still.", "theory.solve(values)")
        if self.system.flowing:
            return evolve_flow(self, values, until, step, paths, seed, method, dps)
        if step is not None:
            raise ValuesError(f"step = {step}, and the states move in steps.", "step= in continuous time only")
        return evolve(self, values, until, paths, seed, method, dps)

    def stationary(self, values: Mapping[Any, Any], dps: int = 15) -> Stationary:
        """Find the state that a network in continuous time reaches after long times, where nothing comes back to sites.

        Parameters
        ----------
        values : mapping
            Parameters; quenched parameters of the beginning, which is forgotten, too.
        dps : int, optional
            Digits.

        Returns
        -------
        Stationary
            ``rest[average(x[i, t]**2)]`` is a number, ``rest[average(x[i, t]*x[i, s])]`` a function of the lag,
            ``rest.moves`` says whether the states fluctuate.

        Raises
        ------
        NotConverged
            If no stationary state is reached, or there are several.
        UnsupportedLaw
            If the law is not of the form that is supported: one state with a rate that is linear in it and in fields
            without memory, smooth functions of it, and noise.
        """
        from symcavity.evaluate.moving.stationary import stationary

        if self.system.time is None:
            raise UnsupportedLaw("The states of this theory keep still.", "theory.solve(values)")
        return stationary(self, values, dps)

    def sweep(self, grid: Mapping[Any, Any], **options: Any) -> Sweep:
        """Solve over all combinations of the values in a grid.

        Options: ``values``, ``observables``, ``file`` (CSV, resumed on a rerun), ``executor``, ``progress``, ``dps``.
        """
        _still(self.system, "sweep")
        from symcavity.finite.sweep import sweep_theory

        return sweep_theory(self, grid, **options)

    def state_evolution(self, values: Mapping[Any, Any] | None = None, steps: int = 40) -> StateEvolution:
        """Read the closed equations as a map: the order parameters after each step of message passing."""
        _still(self.system, "the state evolution of message passing")
        from symcavity.evaluate.state_evolution import state_evolution

        return state_evolution(self, values, steps)

    def settling(self, values: Mapping[Any, Any] | None = None) -> float:
        """By which factor a step of the state evolution changes small deviations from the solution.

        The order parameters settle below one. Message passing needs this, and a stability below one.
        """
        from symcavity.evaluate.state_evolution import settling

        return settling(self, values)

    def pair(self, over: Any, of: Any = None) -> Pair:
        """Insert two sites at once: what they have in common at given couplings, while some parameters vary.

        Parameters
        ----------
        over : sequence of Quenched
            What varies; the couplings and all other quenched parameters are given.
        of : Variable or Expr, optional
            The quantity of a site whose covariances are asked for; by default what the first kind of sites sends.

        Returns
        -------
        Pair
            With ``.equations``, linear in what joins two sites, and ``.derivation``; ``solution.dimension`` and
            ``solution.covariance`` have the numbers.

        Raises
        ------
        UnsupportedLaw
            For the naive analysis, states that move, vector fields, and what varies within a kind of sites beside
            what is given.
        """
        from symcavity.method.pair import first_sent, pair_of

        _still(self.system, "a pair of sites")
        return with_verbs(Pair, pair_of(self, first_sent(self) if of is None else of, over))

    def fluctuations(self) -> Fluctuations:
        """How the minimum of a convex problem scatters between instances: share, close, coincide.

        Returns
        -------
        Fluctuations
            With ``.minima`` of single sites, ``.equation`` of the variance, and ``.derivation``;
            ``solution.variance('objective')`` is its number.

        Raises
        ------
        UnsupportedLaw
            For systems of equations, labels drawn on a field, vector fields and couplings with a reciprocity.
        """
        from symcavity.method.fluctuation_steps import fluctuations_of

        _still(self.system, "the scatter of a minimum")
        return with_verbs(Fluctuations, fluctuations_of(self))

    def linear_equivalent(self) -> LinearEquivalent:
        """The system of the same couplings whose sites answer with their mean responses, and independent noise.

        It has the overlaps and responses of this theory, and its covariances between sites at given couplings.

        Raises
        ------
        UnsupportedLaw
            For sites that hear several fields, or send several quantities.
        """
        from symcavity.method.equivalent import linear_equivalent

        return LinearEquivalent(linear_equivalent(self))

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the derivation: steps with reasons, which print and check themselves."""
        from symcavity.method.record import record

        return Derivation.of(record(self))


class LinearEquivalent(BipartiteSystem):
    """A linear system with the couplings of another one, as :meth:`Theory.linear_equivalent` returns it.

    Attributes
    ----------
    slopes, noises : dict
        The parameters of its equations, in averages of the theory that it is equivalent to.
    """

    def __init__(self, found: LinearEquivalentData) -> None:
        super().__init__(list(found.equations), name="A linear equivalent")
        self._found = found
        self.slopes, self.noises = dict(found.slopes), dict(found.noises)

    def at(self, solution: Any) -> dict[Any, Any]:
        """The values at which it is equivalent to a solution of the theory."""
        return self._found.at(solution)


class Fluctuations(FluctuationsData):
    """How the minimum scatters; :class:`symcavity.method.fluctuation_steps.Fluctuations` says what it holds."""

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two copies that share their couplings in part."""
        from symcavity.method.record import record

        first = record(self.theory)
        return Derivation.of(replace(first, steps=(*first.steps, *fluctuation_steps(self))))


class Pair(PairData):
    """Two sites at given couplings; :class:`symcavity.method.pair.Pair` says what it holds."""

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the theory, and of what follows of two sites."""
        from symcavity.method.pair_steps import pair_steps
        from symcavity.method.record import record

        first = record(self.theory)
        return Derivation.of(replace(first, steps=(*first.steps, *pair_steps(self))))


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

    def to(self, name: str, detail: str = "full", **options: Any) -> str:
        """Return the derivation in one of the formats of :data:`symcavity.writing.formats.FORMATS`.

        Parameters
        ----------
        name : str
            ``'text'``, ``'latex'``, ``'html'`` or ``'json'``.
        detail : str
            ``'full'``, or ``'paper'``: without stability and message passing, and cavities of further kinds in short.

        Raises
        ------
        ValuesError
            For a format that is not in the table, or another detail.
        """
        from symcavity.writing.brief import in_brief
        from symcavity.writing.formats import FORMATS

        if detail not in ("full", "paper"):
            raise ValuesError(f"The detail is {detail!r:.40}.", "full, paper")
        if detail == "paper":
            return Derivation.of(in_brief(self)).to(name, **options)
        if name not in FORMATS:
            raise ValuesError(f"The format is {name!r:.40}.", ", ".join(FORMATS))
        if FORMATS[name].verified and "checked" not in options:
            options["checked"] = self.verify()
        return FORMATS[name].write(self, **options)

    def to_latex(self, detail: str = "full") -> str:
        """Return a complete LaTeX document (amsmath and bm only); ``detail='paper'`` is some three to five pages."""
        return self.to("latex", detail)

    def to_html(self, detail: str = "full") -> str:
        """Return a self-contained HTML page."""
        return self.to("html", detail)

    def to_json(self, *, verify: bool = True, dps: int = 50) -> str:
        """Return a record for machines: claims, reasons, declaration, and what ``verify(dps)`` says of each step."""
        return self.to("json", checked=self.verify(dps) if verify else None)

    def to_text(self, detail: str = "full") -> str:
        """Return the derivation as plain text for a terminal."""
        return self.to("text", detail)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


# -- what is found about laws and identities -------------------------------------------------------


class Symmetry(SymmetryData):
    """A rescaling symmetry, or what breaks it; :class:`symcavity.method.symmetry.Symmetry` says what it holds."""

    @property
    def reason(self) -> str:
        """Why there is no symmetry, in words; empty where there is one."""
        from symcavity.writing.facts import obstacle

        return "".join(map(str, obstacle(vars(self))))

    def __str__(self) -> str:
        from symcavity.writing.words import sentence

        return sentence("symmetry.told", found=self.found, reason=self.reason, names=self.scaled + self.feature_scaled)

    __repr__ = __str__


class ProofStep(ProofStepData):
    """One line of a proof; :class:`symcavity.algebra.prove.ProofStep` says what it holds."""

    @property
    def text(self) -> str:
        """Why the line holds, in words."""
        from symcavity.writing.facts import proof_line

        return proof_line(self.rule, self.values)

    def __str__(self) -> str:
        from symcavity.writing.proofs import line_text

        return line_text(self, self.text)


class Proof(ProofData):
    """The outcome of :func:`prove`; :class:`symcavity.algebra.prove.Proof` says what it holds."""

    def __str__(self) -> str:
        from symcavity.writing.proofs import proof_text

        return proof_text(self, list(map(str, self.steps)))

    def _repr_latex_(self) -> str:
        from symcavity.writing.proofs import proof_latex

        return proof_latex(self, [step.text for step in map(_line_of_proof, self.steps)])


def _line_of_proof(step: ProofStepData) -> ProofStep:
    return with_verbs(ProofStep, step)


def prove(lhs: Any, rhs: Any = None) -> Proof:
    """Prove an identity between truncated Gaussian moments, and show how.

    Parameters
    ----------
    lhs, rhs : Expr
        The two sides; an ``Eq`` alone is taken apart. They may hold ``phi`` of any orders and
        arguments, Gaussian densities, ``erf``, ``erfc``, derivatives, ``GaussianAverage``, and rational
        functions of these.

    Returns
    -------
    Proof
        True if and only if proved. ``print`` shows the steps; ``difference`` holds what is left.

    Notes
    -----
    Each order is lowered by an integration by parts, as in equations (61) to (64) of Clark & Sompolinsky,
    until both sides are in the basis phi(0, .), phi(1, .), or phi(0, .) and the density.

    Examples
    --------
    >>> from sympy import Symbol
    >>> from symcavity import phi
    >>> kappa = Symbol("kappa", real=True)
    >>> bool(prove(phi(2, kappa), phi(0, kappa) + kappa*phi(1, kappa)))
    True
    >>> prove(phi(2, kappa), phi(0, kappa) - kappa*phi(1, kappa)).difference
    2*kappa*phi(1, kappa)
    """
    found = find_proof(lhs, rhs)
    return with_verbs(Proof, replace(found, steps=list(map(_line_of_proof, found.steps))))


# -- simulations ---------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    if name in ("Simulation", "Simulations"):
        from symcavity.witness.simulated import simulation_class

        return simulation_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BipartiteSystem", "ConvexProblem", "Derivation", "Proof", "Step", "Symmetry", "System", "Theory", "Verification",
    "prove",
]  # fmt: skip
