"""Message passing for users: many instances, held against the theory step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.progress import Report
from symcavity.evaluate.solve import solve_theory
from symcavity.evaluate.state_evolution import StateEvolution, check_steps, state_evolution
from symcavity.finite.batch import Batch, listed
from symcavity.finite.compare import Comparison, ComparisonRow, default_observables
from symcavity.finite.compared_theory import point_at, theory_at
from symcavity.finite.labels import label, labelled
from symcavity.finite.passed import Work, pass_one
from symcavity.finite.passed_messages import PassedMessages
from symcavity.finite.plots import plot_passing, plot_steps
from symcavity.finite.setup import as_system, prepare
from symcavity.finite.tables import aligned, counted, with_error
from symcavity.finite.warm_sites import passable
from symcavity.method.messages import conditions_met
from symcavity.method.theory import Theory
from symcavity.model.system import System
from symcavity.model.typed import in_list, observable_of
from symcavity.writing.displays import Formula, html

_SHOWN = (0, 1, 2, 3, 5, 10, 20, 40, 80, 160)  # steps in a table


class MessagePassing(PassedMessages):
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
