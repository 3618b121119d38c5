"""Figures of message passing: observables step by step, and where it converges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcavity.finite.plots import BLUE, GREY, RED, _axes, _finish


def plot_steps(measured: Sequence[Any], expected: Any, name: str, ax: Any = None) -> Any:
    """Plot an observable after each step of message passing: estimates as points, the state evolution as a line.

    Parameters
    ----------
    measured : sequence of Estimate
    expected : sequence of float or None
    name : str
        What is plotted.
    ax : Axes, optional
        Where to draw; a new figure otherwise.
    """
    ax = _axes(ax)
    if expected is not None:
        ax.plot(range(len(expected)), expected, color=BLUE, lw=1.8, label="state evolution", zorder=1)
    mean, error = [e.mean for e in measured], [np.nan_to_num(e.stderr) for e in measured]
    style: Any = {"fmt": "o", "ms": 4.5, "mfc": "white", "color": RED, "elinewidth": 1, "capsize": 2, "zorder": 2}
    ax.errorbar(range(len(mean)), mean, yerr=error, label="message passing", **style)
    ax.set_xlabel("step")
    ax.set_ylabel(name)
    ax.legend(frameon=False)
    return _finish(ax)


def plot_convergence(points: Sequence[tuple[float, Any]], ax: Any = None) -> Any:
    """Plot the squared rate at which message passing converges against the stability of the theory.

    Parameters
    ----------
    points : sequence of (float, MessagePassing)
        The stability at some values, and a run there; of one that did not converge what the error carries in
        ``.best``.
    ax : Axes, optional
        Where to draw; a new figure otherwise.
    """
    ax = _axes(ax)
    for stability, run in points:
        rate, good = run.rate.samples ** 2, not any(one.diverged for one in run.runs)
        if not rate.size:
            continue
        error = rate.std(ddof=1) / np.sqrt(rate.size) if rate.size > 1 else 0.0
        colour = BLUE if good else RED
        ax.errorbar(float(stability), rate.mean(), yerr=error, fmt="o" if good else "x", color=colour, ms=5, capsize=2)
    top = max([1.2, *(float(stability) for stability, _ in points)])
    ax.plot([0, top], [0, top], color=GREY, lw=1, zorder=0)
    ax.axvline(1, color=GREY, lw=1, ls=":")
    ax.set_xlabel("stability of the theory")
    ax.set_ylabel("squared rate of message passing")
    return _finish(ax)


__all__ = ["plot_convergence", "plot_steps"]
