"""A derived theory, with the verbs that solve it, run it and compare it with instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Symbol

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.face.pairs import Fluctuations, MovingPair, ObservedFluctuations, Pair
from symcavity.face.records import Derivation
from symcavity.face.refusals import refuse_motion
from symcavity.model.keywords import known_options
from symcavity.model.typed import OBJECTIVE
from symcavity.record.verbs import with_verbs
from symcavity.study.verbs import StudiedTheory

if TYPE_CHECKING:
    from symcavity.evaluate.moving.flow import FlowRun
    from symcavity.evaluate.moving.run import MovingRun
    from symcavity.evaluate.moving.sampled_stationary import SampledStationary
    from symcavity.evaluate.moving.stationary import Stationary
    from symcavity.evaluate.solutions.solution import Solution
    from symcavity.evaluate.state_evolution import StateEvolution
    from symcavity.finite.compare import Comparison
    from symcavity.finite.swept import Sweep


class Theory(StudiedTheory):
    """A derived theory: order parameters, closed equations, numbers, and the record of the derivation.

    Attributes
    ----------
    order_parameters : dict
        Each order parameter's symbol, and the average or response that it stands for.
    equations : list of Equation
        The closed system: as many equations as unknowns (one more for each fixed condition).

    Examples
    --------
    >>> from symcavity.derivations.gardner import alpha, kappa, problem
    >>> theory = problem.cavity()
    >>> theory.closed_form(alpha)
    1/phi(2, kappa)
    >>> print(theory.solve({kappa: 1}, dps=30)['alpha'])
    0.519572229604937969487655964869
    """

    @property
    def parameters(self) -> tuple[Any, ...]:
        """What has a value in :meth:`solve`: parameters, the load, ratios of sizes, families and sets without one.

        Examples
        --------
        >>> from symcavity.derivations.soft_margin import problem
        >>> problem.cavity().parameters
        (C, alpha)
        """
        return self.system.without_value

    @known_options
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
            Parameters of a system whose laws are all linear may be complex, as the argument of a resolvent is: a
            Python complex, or ``Rational(3, 10) + I/100``, which has any number of digits.  What was derived for real
            parameters is continued from there; ``-solution[average(response(w[i]))].imag/pi`` close to the real line
            is a density of eigenvalues.
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
        refuse_motion(self.system, "solve")
        from symcavity.evaluate.solve import solve_theory

        return solve_theory(self, values, dps, guess, timeout, certify=certify)

    def function(
        self,
        target: Any,
        *arguments: Symbol,
        values: Mapping[Any, Any] | None = None,
        backend: str = "numpy",
        errors: str = "raise",
    ) -> Callable[..., Any]:
        """Return a vectorized function of parameters.

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
        refuse_motion(self.system, "function")
        from symcavity.evaluate.function import make_function

        return make_function(self, target, arguments, values or {}, backend, errors)

    def compare(self, sim: Any, observables: Any = None, *, scatter: bool = False) -> Comparison:
        """Compare this theory with a simulation of the same declaration.

        Parameters
        ----------
        sim : Simulation or Simulations
            What ``problem.simulate(...)`` returned.
        observables : iterable of Expr, optional
            Averages, sums, responses; by default moments, fractions and responses of all variables.
        scatter : bool
            Whether the variance between the instances is compared with :meth:`Solution.variance`, too.

        Returns
        -------
        Comparison
            Observable, theory, simulation, standard error, z-score; prints, plots, exports LaTeX.
        """
        refuse_motion(self.system, "this comparison")
        from symcavity.finite.compare import compare

        return compare(self, sim, observables, scatter=scatter)

    @known_options
    def evolve(
        self,
        values: Mapping[Any, Any],
        until: Any = None,
        *,
        step: Any = None,
        paths: int = 20000,
        seed: int = 0,
        method: str | None = None,
        dps: int | None = None,
    ) -> MovingRun | FlowRun:
        """Run the theory of a system in time, forward from its initial values; nothing is iterated.

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
            states are sent that do not come back; or ``'paths'``; by default the first that applies.
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
            If the states do not move, or the law is not of the form that the method needs.
        """
        from symcavity.evaluate.moving.flow import evolve_flow
        from symcavity.evaluate.moving.run import evolve

        if self.system.time is None:
            raise UnsupportedLaw("The states of this theory do not depend on time.", "theory.solve(values)")
        if until is None:
            raise ValuesError("The end of the run is not given.", "until=20, the last step or the last time")
        if self.system.flowing:
            return evolve_flow(self, values, until, step, paths, seed, method, dps)
        if step is not None:
            raise ValuesError(
                f"step = {step}, and this system moves in steps, not in continuous time.",
                "step= in continuous time only",
            )
        return evolve(self, values, until, paths, seed, method, dps)

    def stationary(
        self,
        values: Mapping[Any, Any],
        dps: int = 15,
        until: Any = None,
        step: Any = None,
        paths: int = 2000,
        seed: int = 0,
    ) -> Stationary | SampledStationary:
        """Find the state that a system reaches after long times.

        A network in continuous time without memory, and a linear one with feedback, are solved to any number of
        digits. Other systems are sampled if ``until`` is given: kernels are functions of the lag on a periodic time, of
        the length ``2 until``, and are iterated until the sites reproduce the kernels of their fields.

        Parameters
        ----------
        values : mapping
            Parameters; quenched parameters of the beginning, which is forgotten, too (where nothing is sampled they
            may be left out).
        dps : int, optional
            Digits, if nothing is sampled.
        until, step : int, Fraction, str, optional
            The longest lag, and the step of the scheme, for sampling.
        paths, seed : int, optional
            How many sites are sampled, in ten batches. The cost grows with ``paths * (until/step)**2``. Standard errors
            come from the scatter of the batches. They do not contain the shift by the size of a batch, which falls
            like ``1/paths``.

        Returns
        -------
        Stationary or SampledStationary
            ``rest[average(x[i, t]**2)]`` is a number, ``rest[average(x[i, t]*x[i, s])]`` is a function of the lag, as
            ``rest[response(x[i, t], s)]`` is; ``rest.moves`` says whether the states fluctuate. If they were sampled,
            ``rest.errors[...]`` are the standard errors.

        Raises
        ------
        NotConverged
            If no stationary state is reached: there is none, kernels do not settle, or they depend on the length of the
            ring, as those of states that age do; or there are several.
        UnsupportedLaw
            If the law has to be sampled and ``until`` is not given, or holds kinds of sites without time.
        """
        from symcavity.evaluate.moving.stationary import stationary

        if self.system.time is None:
            raise UnsupportedLaw("The states of this theory do not depend on time.", "theory.solve(values)")
        return stationary(self, values, dps, until, step, paths, seed)

    def sweep(self, grid: Mapping[Any, Any], **options: Any) -> Sweep:
        """Solve over all combinations of the values in a grid.

        Options: ``values``, ``observables``, ``file`` (CSV, resumed on a rerun), ``executor``, ``progress``, ``dps``.
        """
        refuse_motion(self.system, "sweep")
        from symcavity.finite.sweep import sweep_theory

        return sweep_theory(self, grid, **options)

    def state_evolution(self, values: Mapping[Any, Any] | None = None, steps: int = 40) -> StateEvolution:
        """Read the closed equations as a map: the order parameters after each step of message passing."""
        refuse_motion(self.system, "the state evolution of message passing")
        from symcavity.evaluate.state_evolution import state_evolution

        return state_evolution(self, values, steps)

    def settling(self, values: Mapping[Any, Any] | None = None, guess: Mapping[Any, Any] | None = None) -> float:
        """The factor by which a step of the state evolution changes small deviations from the solution.

        The order parameters settle where it is below one. Message passing needs this, and a stability below one.

        Parameters
        ----------
        values : mapping
            As those of :meth:`solve`.
        guess : mapping, optional
            Of several solutions the one that it leads to, as in :meth:`solve`.
        """
        from symcavity.evaluate.state_evolution import settling

        return settling(self, values, guess)

    def pair(self, over: Any, of: Any = None, *, means: bool = False) -> Pair | MovingPair:
        """Insert two sites at once: their covariances at given couplings, while some parameters vary.

        Parameters
        ----------
        over : sequence of Quenched, or a Time
            The parameters that vary; the couplings and all other quenched parameters are given. For states that move,
            the time: covariances of two sites in the stationary state, at two frequencies.
        of : Variable or Expr, optional
            The quantity of a site whose covariances are computed; by default the message of the first kind of sites.
        means : bool
            Whether messages have a nonzero mean over the varying parameters, at given couplings: then a part of each
            field is given. Beside other parameters of the same sites that are given it has one in any case.

        Returns
        -------
        Pair
            With ``.equations``, linear in the correlations of two sites, and ``.derivation``; ``solution.dimension``
            and ``solution.covariance`` have the numbers, ``rest.dimension`` those of a stationary state.

        Raises
        ------
        UnsupportedLaw
            For the naive analysis, vector fields, and moving sites of different laws.
        """
        from symcavity.method.moving_pair import moving_pair_of
        from symcavity.method.pair import first_sent, pair_of

        asked = first_sent(self) if of is None else of
        if self.system.time is not None:
            return with_verbs(MovingPair, moving_pair_of(self, asked, over))
        found = pair_of(self, asked, over)
        return with_verbs(Pair, found.beside_means() if means else found)

    def fluctuations(self, what: Any = OBJECTIVE, other: Any = None) -> Fluctuations | ObservedFluctuations:
        """The variance of the minimum of a convex problem between instances, or of observables, derived in steps.

        Parameters
        ----------
        what : str or Expr
            ``'objective'``, or a function of averages and shared variables, as in :meth:`Solution.variance`.
        other : str or Expr, optional
            Another observable: then the covariance of the two is derived.

        Returns
        -------
        Fluctuations
            With ``.minima`` of single sites, ``.equation`` of the variance, and ``.derivation``;
            ``solution.variance('objective')`` is its number.
        ObservedFluctuations
            For observables: with ``.equation``, and ``.derivation``, in which a small term in the objective moves the
            sites; ``solution.variance(what)`` and ``solution.covariance(what, other)`` are the numbers.

        Raises
        ------
        UnsupportedLaw
            For systems of equations, vector fields and couplings with a reciprocity.
        """
        from symcavity.method.fluctuation_steps import fluctuations_of
        from symcavity.method.observed import observed_of

        refuse_motion(self.system, "the scatter of a minimum")
        if what == OBJECTIVE and other is None:
            return with_verbs(Fluctuations, fluctuations_of(self))
        return with_verbs(ObservedFluctuations, observed_of(self, [what] if other is None else [what, other]))

    def linear_equivalent(self) -> Any:
        """The system of the same couplings whose sites answer with their mean responses, and independent noise.

        It has the overlaps and responses of this theory, and its covariances between sites at given couplings.

        Raises
        ------
        UnsupportedLaw
            For sites that hear several fields, or send several quantities.
        """
        from symcavity.method.equivalent import linear_equivalent

        declared: Any = self.system  # the declaration has the verbs of what it returns
        return declared.as_equivalent(linear_equivalent(self))

    @cached_property
    def derivation(self) -> Derivation:
        """The record of the derivation: steps with reasons, which print and check themselves."""
        from symcavity.method.record import record

        return Derivation.of(record(self))
