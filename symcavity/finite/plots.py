"""Plots: theory as lines, simulation as points with error bars, and distributions of a variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from typing import Any

import numpy as np

from symcavity.errors import MissingDependency
from symcavity.finite.densities import density_of, exact, find_atoms
from symcavity.finite.labels import label_tex
from symcavity.model.quantities import Family
from symcavity.model.typed import observable_of

BLUE, RED, GREY = "#1b6ca8", "#c0392b", "#8a8a8a"
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#d08c00", "#6a4c93", "#3b3b3b", "#17a2a2", "#b5478a")
ROUNDED = 1e-9  # of the mass of an atom: what rounding leaves where there is none


def need_matplotlib() -> None:
    """Say so where nothing can be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingDependency("matplotlib is not installed.", "matplotlib 3.8 or later", "pip install matplotlib")


def in_style(width: float = 4.6, height: Any = 3.4, count: int = 1) -> Callable[..., Callable[..., Any]]:
    """Let a function draw on axes, which are returned: given ones, or new ones in the style of a paper.

    The height of a new figure, in inches, may be a function of what is drawn; several axes stand side by side.
    """

    def on_axes(draw: Callable[..., None]) -> Callable[..., Any]:
        @wraps(draw)
        def drawn(*args: Any, ax: Any = None, **options: Any) -> Any:
            if ax is None:
                need_matplotlib()
                from symcavity.evaluate.canvas import panels, style

                with style():
                    new = panels((width, height(*args) if callable(height) else height), count)
                    return drawn(*args, ax=new if count > 1 else new[0], **options)
            draw(*args, ax=ax, **options)
            for each in ax if count > 1 else [ax]:
                each.spines[["top", "right"]].set_visible(False)
                each.tick_params(direction="out", length=3)
            return ax

        return drawn

    return on_axes


@in_style()
def plot_line(points: Sequence[tuple[float, float]], x: Any, y: Any, label: str, *, ax: Any = None) -> Any:
    """Draw a line through points of a plane of two parameters; several at one place are left as points.

    Parameters
    ----------
    points : sequence of pairs
    x, y : Symbol
        The parameters.
    label : str
        What is lost on the line.
    """
    rows = sorted(points)
    single = len({place for place, _ in rows}) == len(rows)
    ax.plot(*zip(*rows, strict=True), "-" if single else ".", color=BLUE, label=label)
    ax.set_xlabel(f"${label_tex(x)}$")
    ax.set_ylabel(f"${label_tex(y)}$")
    ax.legend(frameon=False)


@in_style(4.6, lambda rows: 0.8 + 0.34 * len(rows))
def plot_comparison(comparison: Any, *, ax: Any = None) -> Any:
    """Plot the z-score of every row of a comparison, with the band of three standard errors.

    Parameters
    ----------
    comparison : Comparison
        The table.
    ax : Axes, optional
        Where to draw.
    """
    rows = list(comparison)
    y = np.arange(len(rows))[::-1]
    ax.axvspan(-3, 3, color=BLUE, alpha=0.12, lw=0)
    ax.axvline(0, color=BLUE, lw=1.5)
    ax.errorbar(
        [r.z for r in rows], y, xerr=1.0, fmt="o", color=RED, ms=5, mfc="white", capsize=2, elinewidth=1
    )
    ax.set_yticks(y, [f"${label_tex(r.observable)}$" for r in rows])
    ax.set_xlabel("(simulation $-$ theory) / standard error")
    ax.set_ylim(-0.7, len(rows) - 0.3)


@in_style(4.8, 3.5)
def plot_distribution(
    sim: Any,
    quantity: Any,
    *,
    solution: Any = None,
    density: Any = None,
    bins: int = 40,
    ax: Any = None,
) -> Any:
    """Plot the distribution of a site variable: atoms as stems on an axis of their own, the rest as a histogram.

    Parameters
    ----------
    sim : Simulation
        The instances.
    quantity : SiteQuantity, Family or Expr
        What is distributed.
    solution : Solution, optional
        A theory's solution, of any number of digits; masses and densities are averages of indicators, read in the
        same words.  Its density is a mean over a third of a bin, or over more where averages are taken over nodes.
    density : callable, optional
        The density away from the atoms, where it is known otherwise.
    bins : int
        Bins of the histogram.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes.
    """
    from symcavity.model.averages import average

    expr = quantity.at_site() if isinstance(quantity, Family) else observable_of(quantity, sim.system)
    values = np.ravel(sim.values(expr)).astype(float)
    def theory(relation: Any) -> float:
        return float(solution[average(relation)])

    def mass(value: float) -> float:
        return 1 - theory(expr > exact(value)) - theory(expr < exact(value))

    atoms, at_atom = find_atoms(values, lambda end: solution is not None and mass(end) > ROUNDED)
    rest = values[~at_atom]
    masses = {v: mass(v) for v in atoms} if solution is not None else {}
    if rest.size:
        low, high = float(rest.min()), float(np.quantile(rest, 0.9995))
        inner = [v for v in atoms if v <= low or v >= high]  # a continuous part often begins where an atom is
        low = min([low, *(v for v in inner if low - v < 0.2 * (high - low))])
        high = max([high, *(v for v in inner if v - high < 0.2 * (high - low))])
        edges = np.linspace(low, high, bins + 1)
        height = np.histogram(rest, edges)[0] / (values.size * np.diff(edges))
        ax.stairs(height, edges, fill=True, color=RED, alpha=0.25, label="simulation")
        ax.stairs(height, edges, color=RED, lw=1)
        middle = np.linspace(low, high, 6 * bins + 1)[1::2]
        if density is not None:
            ax.plot(middle, [float(density(u)) for u in middle], color=BLUE, lw=1.8, label="theory")
        elif solution is not None:
            curve = density_of(lambda u: theory(expr > exact(u)), np.linspace(low, high, 3 * bins + 1), masses)
            ax.plot(middle, curve, color=BLUE, lw=1.8, label="theory")
        ax.set_ylim(bottom=0)
    ax.set_xlabel(f"${label_tex(expr)}$")
    ax.set_ylabel("density")
    if atoms:
        _draw_atoms(ax, atoms, masses)
    if rest.size or atoms:
        ax.legend(frameon=False, loc="best")


def _draw_atoms(ax: Any, atoms: Mapping[float, float], masses: Mapping[float, float]) -> None:
    """Draw masses as stems, on a vertical axis of their own."""
    side = ax.twinx()
    for found, colour, style in ((atoms, RED, {"ms": 7, "mfc": "white"}), (masses, BLUE, {"ms": 3.5})):
        for k, (value, mass) in enumerate(found.items()):
            side.plot([value, value], [0, mass], color=colour, lw=2.2 if colour == RED else 1.2)
            told = f"mass, {'simulation' if colour == RED else 'theory'}" if k == 0 else "_"
            side.plot([value], [mass], "o", color=colour, label="_", **style)
            ax.plot([], [], "o-", color=colour, label=told, **style)
    side.set_ylim(0, 1.15 * max([*atoms.values(), *masses.values()]))
    side.set_ylabel("mass of atoms")
    side.spines[["top", "left"]].set_visible(False)


@in_style(3.6, 3.4)
def plot_scatter(x: np.ndarray, y: np.ndarray, *, xlabel: str, ylabel: str, ax: Any = None) -> Any:
    """Plot a measurement against its prediction, sample by sample, with the diagonal.

    Parameters
    ----------
    x, y : ndarray
        Prediction and measurement.
    xlabel, ylabel : str
        Labels.
    ax : Axes, optional
        Where to draw.
    """
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    ax.plot(ends, ends, color=BLUE, lw=1.5, zorder=1)
    ax.plot(x, y, "o", ms=3.5, mfc="white", color=RED, zorder=2)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)


def rows_of_two(rows: int) -> Any:
    """Return a figure with rows of two axes."""
    need_matplotlib()
    from symcavity.evaluate.canvas import panel, style

    with style():
        first = panel((7.2, 3.3 * rows))
        figure: Any = first.figure
        first.remove()
        return figure, figure.subplots(rows, 2, squeeze=False)


@in_style()
def plot_fields(without: np.ndarray, within: np.ndarray, kind: Any, *, ax: Any = None) -> Any:
    """Plot the normalized field of a new site, in the system without it and with it, against the Gaussian.

    Parameters
    ----------
    without, within : ndarray
        The field over the standard deviation that independence gives it.
    kind : Kind
        The kind of the new site, for the label.
    ax : Axes, optional
        Where to draw.
    """
    reach = max(3.0, float(np.nanmax(np.abs(np.concatenate([without, within])))))
    edges = np.linspace(-reach, reach, max(9, min(41, 2 * int(np.sqrt(len(without))) + 1)))
    ax.hist(within, edges, density=True, histtype="step", color=GREY, lw=1.3, label="with the site")
    ax.hist(without, edges, density=True, histtype="stepfilled", color=RED, alpha=0.35, label="without it")
    x = np.linspace(-reach, reach, 300)
    ax.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), color=BLUE, lw=1.8, label="Gaussian")
    ax.set_xlabel(f"field of the new {kind} / std. deviation")
    ax.set_ylabel("density")
    ax.legend(frameon=False, fontsize=8)


@in_style()
def plot_steps(measured: Sequence[Any], expected: Any, observable: Any, line: str, *, ax: Any = None) -> Any:
    """Plot an observable after each step of message passing: estimates as points, what is expected as a line.

    Parameters
    ----------
    measured : sequence of Estimate
    expected : sequence of float or None
    observable : Expr
        What is plotted.
    line : str
        What is expected.
    ax : Axes, optional
        Where to draw; a new figure otherwise.
    """
    if expected is not None:
        ax.plot(range(len(expected)), expected, color=BLUE, lw=1.8, label=line, zorder=1)
    mean, error = [e.mean for e in measured], [np.nan_to_num(e.stderr) for e in measured]
    style: Any = {"fmt": "o", "ms": 4.5, "mfc": "white", "color": RED, "elinewidth": 1, "capsize": 2, "zorder": 2}
    ax.errorbar(range(len(mean)), mean, yerr=error, label="message passing", **style)
    ax.set_xlabel("step")
    ax.set_ylabel(f"${label_tex(observable)}$")
    ax.legend(frameon=False)


@in_style(8.2, 3.2, 2)
def plot_passing(run: Any, observable: Any, expected: Any, solution: Any, *, ax: Any = None) -> Any:
    """Plot message passing beside its theory: an observable against the state evolution, and the moves of each step.

    Parameters
    ----------
    run, observable : MessagePassing, Expr
    expected, solution : sequence of float, Solution
        What the theory says of the observable after each step; the moves shrink by the pace of its solution.
    ax : pair of Axes, optional
        Where to draw; a new figure otherwise.
    """
    left, right = ax
    plot_steps(run[observable], expected, observable, "theory" if run.damping else "state evolution", ax=left)
    for place, moves in enumerate(run.changes):
        label = "message passing" if not place else None
        right.plot(range(len(moves)), moves, "o-", ms=3, lw=0.7, mfc="white", color=RED, label=label, zorder=2)
    begin = max(float(np.median([moves[min(2, len(moves) - 1)] for moves in run.changes])), 1e-300)
    steps, said = np.arange(run.steps + 1), f"stability {float(solution.stability):.3f}"
    said += f", damping {run.damping:g}" if run.damping else ""
    right.plot(steps, begin * solution.pace(run.damping) ** (steps - 2.0), color=BLUE, lw=1.8, label=said, zorder=1)
    right.set(yscale="log", xlabel="step", ylabel="relative move")
    right.minorticks_off()  # a hundred of them between many decades take longer to lay out than all else
    right.legend(frameon=False)


@in_style()
def plot_convergence(points: Sequence[tuple[float, Any]], *, ax: Any = None) -> Any:
    """Plot the squared rate at which message passing converges against the stability of the theory.

    Parameters
    ----------
    points : sequence of (float, MessagePassing)
        The stability at some values, and a run there; of one that did not converge what the error carries in
        ``.best``.
    ax : Axes, optional
        Where to draw; a new figure otherwise.
    """
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
