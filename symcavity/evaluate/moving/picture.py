"""A picture of a run: observables of one time over its steps, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcavity.errors import ValuesError
from symcavity.evaluate.canvas import panel, style
from symcavity.writing.printing import tex


def plot(run: Any, observables: Sequence[Any], ax: Any = None, sim: Any = None) -> Any:
    """Draw observables of one time over the steps of a run.

    Parameters
    ----------
    run : MovingRun
    observables : sequence of Expr
    ax : Axes, optional
        Of matplotlib; new ones by default.
    sim : MovingSimulation, optional
        Instances, as points with their standard errors.

    Returns
    -------
    Axes

    Raises
    ------
    ValuesError
        If nothing is to be drawn, or an observable has two times.
    """
    if not observables:
        raise ValuesError("No observable is given.", "observables of one time", "run.plot(average(x[i, t]**2))")
    if ax is None:
        with style():
            return plot(run, observables, panel((4.6, 3.4)), sim)
    ax.spines[["top", "right"]].set_visible(False)
    for key in observables:
        values = np.asarray(run[key], dtype=float)
        if values.ndim != 1:
            raise ValuesError(f"{key} has {values.ndim} open times.", "observables of one time")
        (line,) = ax.plot(run.times, values, label=f"${tex(key)}$")
        errors = np.asarray(run.errors[key], dtype=float)
        if errors.any():
            ax.fill_between(run.times, values - errors, values + errors, color=line.get_color(), alpha=0.3, lw=0)
        if sim is not None:
            drawn = sim[key]
            ax.errorbar(sim.times, drawn.mean, drawn.stderr, fmt="o", ms=3, lw=1, color=line.get_color())
    if sim is not None:
        ax.plot([], [], color="gray", label="theory")
        ax.errorbar([], [], [], fmt="o", ms=3, lw=1, color="gray", label="simulation")
    ax.set_xlabel(f"${tex(run.plan.time)}$")
    ax.legend(frameon=False)
    return ax
