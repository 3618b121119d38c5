"""Message passing for users: many instances, every observable after every step, cavity fields, debiased estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.progress import Report
from symcavity.evaluate.solve import solve_theory
from symcavity.evaluate.state_evolution import StateEvolution, check_steps, state_evolution
from symcavity.finite.batch import Batch, Instances, listed
from symcavity.finite.compare import Comparison, ComparisonRow, default_observables
from symcavity.finite.compared_theory import point_at, theory_at
from symcavity.finite.estimates import Estimate
from symcavity.finite.instance import Instance, Residuals
from symcavity.finite.labels import label, labelled
from symcavity.finite.left_out import LeftOut, debiased
from symcavity.finite.minimum import ACCEPTED, SolvedInstance
from symcavity.finite.observables import Reader
from symcavity.finite.passed import Passed, SiteResponses, Work, pass_one
from symcavity.finite.plots import plot_passing, plot_steps
from symcavity.finite.sample import Sample, arrays_of
from symcavity.finite.setup import as_system, prepare
from symcavity.finite.simulation import Simulation
from symcavity.finite.tables import aligned, counted, with_error
from symcavity.finite.warm_left_out import WarmLeftOut
from symcavity.finite.warm_passed import WarmMessages
from symcavity.finite.warm_sites import WarmSites, passable
from symcavity.finite.warm_squares import warm_sites
from symcavity.method.messages import conditions_met
from symcavity.method.observed_sums import without_fields
from symcavity.method.theory import Theory
from symcavity.model.kinds import Kind
from symcavity.model.system import System
from symcavity.model.typed import in_list, observable_of
from symcavity.writing.displays import Formula, html

_SHOWN = (0, 1, 2, 3, 5, 10, 20, 40, 80, 160)  # steps in a table


class MessagePassing(Instances):
    """The messages of instances of one declaration.

    ``run[average(w[i]**2)]`` is a list of estimates: entry k is the observable after k steps, entry 0 that of sites
    which have solved their laws once, in turn, with nothing heard before.  Responses are those of single sites with
    their self-couplings.

    Attributes
    ----------
    system : System
        The system, as it was declared.
    runs : tuple of Passed
        One for each seed.
    counts : dict
        The number of sites of each kind.
    steps : int
        The number of steps that was requested.
    damping : float
        The damping factor ``d`` of each step: ``new = d*old + (1 - d)*update``.
    """

    def __init__(self, work: Work, runs: list[Passed]) -> None:
        super().__init__(work.setup, runs[0].counts)
        self.steps, self.damping, self.runs = work.steps, work.damping, tuple(runs)
        self._known: dict[tuple[int, int, Expr], float] = {}

    @property
    def changes(self) -> list[list[float]]:
        """For each instance, the relative change of the messages in every step."""
        return [run.changes for run in self.runs]

    @property
    def rate(self) -> Estimate:
        """By how much a step shrinks the moves in the end.

        As N grows its square is the stability, unless order parameters or global variables settle more slowly.
        """
        found = {run.seed: run.rate for run in self.runs if np.isfinite(run.rate)}
        return Estimate(np.array([*found.values()]), tuple(found), "rate")

    @property
    def residuals(self) -> Residuals:
        """How well the last states solve the declared equations of their instances: the worst of all.

        At a temperature, how well the means solve the equations of Thouless, Anderson and Palmer.
        """
        return Residuals.largest(run.residuals for run in self.runs if run.residuals is not None)

    @property
    def converged(self) -> bool:
        """Whether every instance is solved, as well as exact methods would."""
        return all(run.residuals is not None and run.residuals.worst < ACCEPTED for run in self.runs)

    @property
    def diverged(self) -> dict[int, str]:
        """By seed, why messages have not settled: at finite sizes some may not, although the theory is stable."""
        return {run.seed: run.failure or "the last step moves no less" for run in self.runs if run.diverged}

    # -- reading ---------------------------------------------------------------------------------------

    def __getitem__(self, observable: Any) -> list[Estimate]:
        return self._after(range(self.steps + 1), observable_of(observable, self.setup.declared))

    def _after(self, steps: Iterable[int], key: Expr) -> list[Estimate]:
        """An observable after some of the steps; what has settled stays."""
        whole = [run for run in self.runs if not run.failure]
        if not whole:
            raise self._unsettled()
        rows, seeds = [], tuple(run.seed for run in whole)
        for run in whole:
            rows.append([self._read(run, min(k, len(run.steps) - 1), key) for k in steps])
            self.instance(run.seed).__dict__.pop("couplings", None)  # drawn again where a field is asked for
        return [Estimate(column, seeds, label(key), sites=self._fewest) for column in np.array(rows).T]

    def _read(self, run: Passed, step: int, key: Expr) -> float:
        """An observable of one instance after one step."""
        if (place := (run.seed, step, key)) not in self._known:
            at = run.steps[step]
            if self.system.weights:
                inside = without_fields(self.system, key)
                self._known[place] = WarmMessages(self.sites_at(run.seed), at).value(inside)
                return self._known[place]
            solved = SolvedInstance(at.state, None, "message passing")
            reader = Reader(self.setup.written, self.instance(run.seed), solved)
            reader.responses = SiteResponses(at.responses)
            self._known[place] = reader(key)
        return self._known[place]

    def sites_at(self, seed: int) -> dict[Kind, WarmSites]:
        """The sites of an instance at a temperature."""
        if seed not in self._warm_sites:
            self._warm_sites[seed] = warm_sites(self.setup.system, self.instance(seed))
        return self._warm_sites[seed]

    @cached_property
    def _warm_sites(self) -> dict[int, dict[Kind, WarmSites]]:
        return {}

    def instance(self, seed: int) -> Instance:
        """The instance of a seed."""
        if seed not in self._instances:
            self._instances[seed] = self.setup.instance(self.N, seed)
        return self._instances[seed]

    @cached_property
    def _instances(self) -> dict[int, Instance]:
        return {}

    @cached_property
    def simulation(self) -> Simulation:
        """The last states as a simulation, with its observables; instances that are not solved count as failed.

        Raises
        ------
        UnsupportedLaw
            At a temperature: sites have means there, and no states.
        """
        self._cold("no states of instances")
        samples = []
        for run in self.runs:
            good = run.residuals is not None and run.residuals.worst < ACCEPTED
            why = self.diverged.get(run.seed) or f"The equations are not met after {len(run.steps) - 1} steps."
            state = run.steps[-1].state if good else None
            residuals = run.residuals if good else None
            solved = SolvedInstance(state, residuals, "message passing", failure="" if good else why)
            solved.idle = run.idle
            samples.append(Sample(run.seed, run.counts, solved, arrays_of(self.setup.system, state)))
        return Simulation(self.setup, samples)

    @cached_property
    def cavity_fields(self) -> dict[Expr, np.ndarray]:
        """By the field as it was declared, what every site would hear if it did not act on the others.

        Arrays of shape (instances, sites); right up to terms of order 1/sqrt(N), where messages have settled.
        """
        out = {}
        for kind, law in self.setup.system.laws.items():
            for m, f in enumerate(law.fields):
                if f.states():
                    out[f.as_sum] = np.stack([run.cavity[kind][:, m] for run in self.settled])
        return out

    @cached_property
    def leave_one_out(self) -> LeftOut:
        """By the sum that a datum hears, its value at every datum for the states fitted without that datum.

        ``y - run.leave_one_out[Sum(x[mu, i]*w[i], (i, 1, N))]`` are the errors of prediction that leaving out one
        datum at a time measures, from one fit; so is ``run.leave_one_out[y[mu] - Sum(...)]``.
        Arrays of shape (instances, P), right up to order 1/sqrt(N).  At a temperature these are thermal averages over
        the measure of all other data: ``log(expect(exp(-loss)))`` is the logarithm of a predictive probability.

        Raises
        ------
        UnsupportedLaw
            For systems without data.
        """
        return WarmLeftOut(self) if self.system.weights else LeftOut(self)

    @cached_property
    def debiased(self) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """By variable of the features, estimates freed of the penalty, and their variances, at every feature.

        The estimate is what solves the effective one-site problem without the feature's own penalty, ``-eta/F``, where
        conditions on all sites and means of couplings add their push to ``eta``; its variance is that of the cavity
        field over ``F**2``.  Where the losses depend on the difference of a field from that of a teacher, it is the
        teacher's weight plus Gaussian noise of this variance (Javanmard and Montanari, IEEE Trans. Inf. Theory 60,
        6522, 2014); elsewhere a multiple of it plus noise.
        Arrays of shape (instances, N), right up to order 1/sqrt(N).

        Raises
        ------
        UnsupportedLaw
            If a feature hears several fields of states, or does not come back in what it hears; at a temperature.
        """
        self._cold("no estimates freed of a penalty")
        return debiased(self)

    def _cold(self, missing: str) -> None:
        """Refuse what is about states that do not fluctuate."""
        if self.system.weights:
            raise UnsupportedLaw(
                f"Messages at a temperature have {missing}.",
                "run[observable], run.cavity_fields",
                "problem.simulate(...)",
            )

    def _unsettled(self) -> NotConverged:
        bad = [run for run in self.runs if run.diverged]
        last = [run.changes[-1] for run in bad if run.changes]
        why = bad[0].failure or f"The last step still moves them by {max(last):.1e}."
        return NotConverged(
            f"Message passing does not converge for {listed(run.seed for run in bad)} of {len(self.runs)}. {why}",
            best=self,
            residual=max(last, default=float("nan")),
            hint="values at which the theory is stable, more steps than these, damping=0.5, or simulate(...)",
        )

    @property
    def settled(self) -> list[Passed]:
        """The instances whose messages have settled.

        Raises
        ------
        NotConverged
            If there are none.
        """
        found = [run for run in self.runs if not run.diverged]
        if not found:
            raise self._unsettled()
        return found

    # -- against the theory ----------------------------------------------------------------------------

    def evolution(self, theory: Theory, steps: int | None = None) -> StateEvolution:
        """Return the state evolution of a theory of the same declaration, at the values and sizes of this run.

        Raises
        ------
        UnsupportedLaw
            For a run with damping, whose messages mix several steps.
        """
        if self.damping:
            raise UnsupportedLaw("Damped steps do not follow the state evolution.", "damping=0", "theory.solve(...)")
        point = point_at(self.setup, self.counts)
        return state_evolution(theory_at(theory, point)[0], point, steps or self.steps)

    def compare(
        self, theory: Any, observables: Any = None, steps: Iterable[int] = (1, 2, 3, 5, 10)
    ) -> Comparison:
        """Compare each step with state evolution, which is the closed equations as a map.

        Parameters
        ----------
        theory : Theory or StateEvolution
            A theory is evolved at the values and sizes of this run.
        observables : Expr or iterable of Expr, optional
            By default second moments, means and signs of the variables, and responses.
        steps : iterable of int
            After which steps.
        """
        evolution = theory if isinstance(theory, StateEvolution) else self.evolution(theory)
        wanted = [k for k in steps if 0 <= k <= min(self.steps, evolution.steps)]
        rows = []
        for observable in default_observables(self.system) if observables is None else in_list(observables):
            measured, expected = self[observable], evolution[observable]
            for k in wanted:
                name = Symbol(f"{label(observable)} after {k} step{'s' if k != 1 else ''}")
                rows.append(ComparisonRow(name, float(expected[k]), measured[k]))
        return Comparison(tuple(rows), (self.N,), 0)

    def figure(self, observable: Any, theory: Theory) -> Any:
        """Plot an observable against the state evolution and, beside it, how fast messages settle and should.

        With damping there is no state evolution: then the line is where it ends, the solution of the theory.  Damping
        slows the pace, and does not move the line where it is one: :meth:`symcavity.Solution.pace`.

        Raises
        ------
        UnsupportedLaw
            Where no stability is derived.
        """
        expected = theory_at(theory, point := point_at(self.setup, self.counts))[0]
        solution = solve_theory(expected, point, 15)
        return plot_passing(self, observable, self._expected(theory, observable), solution)[0].figure

    def plot(self, observable: Any, theory: Any = None, ax: Any = None) -> Any:
        """Plot an observable after each step, with the state evolution as a line; with damping, the solution."""
        line = "theory" if self.damping else "state evolution"
        expected = None if theory is None else self._expected(theory, observable)
        return plot_steps(self[observable], expected, observable, line, ax=ax)

    def _expected(self, theory: Theory | StateEvolution, observable: Any) -> np.ndarray:
        """What a theory says of an observable after each step."""
        if isinstance(theory, Theory) and self.damping:
            point = point_at(self.setup, self.counts)
            return np.full(self.steps + 1, float(solve_theory(theory_at(theory, point)[0], point, 15)[observable]))
        return (self.evolution(theory) if isinstance(theory, Theory) else theory)[observable]

    def _told_at(self) -> tuple[list[str], list[Any], list[list[str]], list[str]]:
        """What is said before the table of steps, its observables, its rows, and what is said after it."""
        damped = f", damping {self.damping:g}" if self.damping else ""
        before = [f"Message passing on {counted(len(self.runs))} with {self._sizes_in_words}{damped}"]
        if self.diverged:
            before.append(f"diverged: {len(self.diverged)} ({listed(self.diverged)})")
        shown = default_observables(self.system)[:5] if any(not run.failure for run in self.runs) else []
        steps = sorted({*(k for k in _SHOWN if k <= self.steps), self.steps})
        moves = [max((c[min(k, len(c) - 1)] for c in self.changes if c), default=np.nan) for k in steps]
        found = [self._after(steps, observable_of(o, self.setup.declared)) for o in shown]  # no other steps are read
        numbers = [[with_error(column[n].mean, column[n].stderr) for column in found] for n in range(len(steps))]
        body = [[str(k), f"{m:.1e}", *row] for k, m, row in zip(steps, moves, numbers, strict=True)]
        known = any(run.residuals is not None for run in self.runs)
        after = [f"residuals: {self.residuals}"] if known else []
        if (rate := self.rate).samples.size > 1:
            after.append(f"pace: moves shrink by {with_error(rate.mean, rate.stderr)} in a step")
        return before, shown, body, after

    def __str__(self) -> str:
        before, shown, body, after = self._told_at()
        table = aligned([["step", "moved", *map(label, shown)], *body])
        return "\n".join([*before, *(f"  {line}" for line in table), *after])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        before, shown, body, after = self._told_at()
        head = ["step", "moved", *(Formula.of(labelled(o)) for o in shown)]
        said = "".join(f"<p>{escape(line)}</p>" for line in after)
        return html(head, body, "; ".join(before)) + said


def message_passing(
    declared: Any,
    values: Mapping[Any, Any],
    *,
    N: int | None = 2000,
    seeds: int | Iterable[int] = 10,
    steps: int = 40,
    damping: float = 0.0,
    couplings: str | Callable[..., Any] = "gaussian",
    executor: Any = None,
    progress: bool | Report | None = None,
) -> MessagePassing:
    """Pass messages on finite instances of a declaration.

    At a temperature each site sends its thermal mean, and answers by beta times its thermal variance.

    Parameters
    ----------
    declared : Problem or System
    values : mapping
        As for a simulation.
    N : int
        The number of features.
    seeds : int or iterable of int
        How many instances, or their seeds; those of a simulation with the same seeds.
    steps : int
        How many steps; in each of them the sites of every kind solve their laws once, in turn.
    damping : float
        The damping factor ``d`` of messages and global variables, below one: ``new = d*old + (1 - d)*update``. Fixed
        points stay as they are, and steps that overshoot settle, but damped steps do not follow the state evolution.
    couplings : str or callable
        As for a simulation.
    executor : int, Executor or None
        A number of processes, or any executor of :mod:`concurrent.futures`.
    progress : bool, callable or None
        As for a simulation.

    Raises
    ------
    NotConverged
        If the messages of more than half of the instances run away, or move no less at the end than half as many
        steps ago; what was computed is in ``.best``.
    UnsupportedLaw, ValuesError
        For what cannot be done, before any instance is drawn.
    """
    system: System = as_system(declared)
    check_steps(steps)
    passable(system)
    setup = prepare(system, values, couplings)
    conditions_met(setup.system)
    batch = Batch.of(setup, N, seeds)
    n = batch.size
    if not 0 <= damping < 1:
        raise ValuesError(f"The damping is {damping}.", "a number from zero (no damping) up to, but not including, one")
    work = Work(setup, steps, float(damping))
    out = MessagePassing(work, batch.run(pass_one, work, executor, progress)[n])
    if 2 * len(out.diverged) > len(out.runs):
        raise out._unsettled()  # noqa: SLF001 - its own error
    return out
