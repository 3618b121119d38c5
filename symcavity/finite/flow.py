"""Finite instances in continuous time: Euler's scheme with a given step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr

from symcavity.errors import ValuesError
from symcavity.evaluate.moving.flow import Words, check_stable, read_span, scheme, whole_steps
from symcavity.evaluate.moving.values import RunValues
from symcavity.finite.estimates import Estimate
from symcavity.finite.given_values import read_values
from symcavity.finite.moving import MovingComparison, MovingEstimate, MovingSimulation, simulate_moving
from symcavity.finite.tables import counted
from symcavity.model.system import System
from symcavity.model.typed import in_list


class FlowSimulation:
    """Instances of a system in continuous time, by Euler's rule.

    Attributes
    ----------
    times : ndarray
        From 0 on, at distances of the step.
    step : Expr
    inner : MovingSimulation
        Of the scheme.
    """

    def __init__(self, system: System, inner: MovingSimulation, step: Expr) -> None:
        self.inner, self.step, self.N = inner, step, inner.N
        self.times = float(step) * inner.times
        self.words = Words(system, step)

    def __getitem__(self, key: Any) -> MovingEstimate:
        """An observable: ``.mean`` and ``.stderr`` over its times."""
        return self.inner[self.words(key)]

    def dimension(self, what: Any, lag: Any = 0, *, over: Any, since: Any = None, draws: int = 8) -> Estimate:
        """The share of all directions that a quantity of the sites explores; as of a :class:`MovingSimulation`.

        ``lag`` and ``since`` are times, whole numbers of steps.
        """
        at = None if since is None else whole_steps(since, "since", self.step)
        return self.inner.dimension(what, whole_steps(lag, "lag", self.step), over=over, since=at, draws=draws)

    def compare(self, run: Any, observables: Any = None) -> MovingComparison:
        """Compare a run of the theory with these instances: scheme against scheme, so that no step is too long.

        Raises
        ------
        ValuesError
            If the run has no scheme with this step, or other values.
        """
        own = getattr(run, "schemes", {})
        if self.step not in own:
            raise ValuesError(
                f"The run has steps of {', '.join(map(str, own)) or 'one'}, and the simulation of {self.step}.",
                "a simulation with the step of the run, or half of it",
            )
        keys = None if observables is None else [self.words(key) for key in in_list(observables)]
        return self.inner.compare(own[self.step], keys)

    def __len__(self) -> int:
        return len(self.inner)

    def __repr__(self) -> str:
        return f"<{counted(len(self))} with N = {self.N}, up to {self.times[-1]:g} in steps of {self.step}>"


def simulate_flow(
    system: System, values: Mapping[Any, Any], N: Any, until: Any = None, step: Any = None, **options: Any
) -> FlowSimulation:
    """Draw instances of a system in continuous time, and run each forward by Euler's rule.

    Raises
    ------
    ValuesError
        For missing or contradictory values, sizes or steps, before any instance is drawn.
    """
    size, count = read_span(until, step)
    read = read_values(system, values)
    check_stable(system, RunValues(dict(read.parameters), {}), size)
    return FlowSimulation(system, simulate_moving(scheme(system, size), values, N, count, **options), size)
