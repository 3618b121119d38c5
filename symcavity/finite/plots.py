"""Figures: theory as lines, simulation as points with error bars, and distributions of a variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import sympify

from symcavity.errors import MissingDependency
from symcavity.finite.labels import label_tex
from symcavity.model.quantities import Family

BLUE, RED, GREY = "#1b6ca8", "#c0392b", "#8a8a8a"


def _axes(ax: Any, size: tuple[float, float] = (4.6, 3.4)) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency(
            "matplotlib is not installed.", "matplotlib 3.8 or later", "pip install 'symcavity[all]'"
        ) from None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def _finish(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(direction="out", length=3)
    return ax


def _is_theory(row: Mapping[str, Any]) -> bool:
    return not row.get("N")


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
    ax = _axes(ax)
    rows = sorted(points)
    single = len({place for place, _ in rows}) == len(rows)
    ax.plot(*zip(*rows, strict=True), "-" if single else ".", color=BLUE, label=label)
    ax.set_xlabel(label_tex(str(x)))
    ax.set_ylabel(label_tex(str(y)))
    ax.legend(frameon=False)
    return _finish(ax)


def plot_sweep(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Plot one column of a sweep against another: theory as a line, simulation as points with error bars.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of theory sweeps and of simulation sweeps, together; simulation rows of the same point and
        size become one point with its standard error.
    x, y : str
        Columns: a parameter or an observable, as it is headed in the rows.
    ax : Axes, optional
        Where to draw; a new figure otherwise (``ax.figure.savefig(...)`` saves it).
    labels : mapping, optional
        Axis labels by column.

    Returns
    -------
    Axes
        The axes.
    """
    ax = _axes(ax)
    found = [(r, _number(r, x), _number(r, y)) for r in rows if not r.get("error")]
    good = [(r, u, v) for r, u, v in found if u is not None and v is not None]
    line = sorted((u, v) for r, u, v in good if _is_theory(r))
    if line:
        ax.plot(*np.array(line, dtype=float).T, color=BLUE, lw=1.8, label="theory", zorder=1)
    groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for r, u, v in good:
        if not _is_theory(r):
            groups.setdefault((int(float(r["N"])), r.get("point", "")), []).append((u, v))
    for k, n in enumerate(sorted({size for size, _ in groups})):
        data = [np.array(v) for (size, _), v in groups.items() if size == n]
        middle = np.array([d.mean(axis=0) for d in data])
        error = np.array([_error(d) for d in data])
        ax.errorbar(
            middle[:, 0],
            middle[:, 1],
            xerr=error[:, 0] if np.any(error[:, 0] > 0) else None,
            yerr=error[:, 1],
            fmt="osD^v"[k % 5],
            ms=4.5,
            mfc="white",
            color=RED,
            ecolor=RED,
            elinewidth=1,
            capsize=2,
            label=f"simulation, $N={n}$",
            zorder=2,
        )
    ax.set_xlabel((labels or {}).get(x, x))
    ax.set_ylabel((labels or {}).get(y, y))
    if line or groups:
        ax.legend(frameon=False)
    return _finish(ax)


def _number(row: Mapping[str, Any], column: str) -> float | None:
    value = row.get(column)
    if value in (None, ""):
        return None
    number = float(value)
    return number if np.isfinite(number) else None


def _error(data: np.ndarray) -> np.ndarray:
    return data.std(axis=0, ddof=1) / np.sqrt(len(data)) if len(data) > 1 else np.zeros(data.shape[1])


def plot_comparison(comparison: Any, ax: Any = None) -> Any:
    """Plot the z-score of every row of a comparison, with the band of three standard errors.

    Parameters
    ----------
    comparison : Comparison
        The table.
    ax : Axes, optional
        Where to draw.
    """
    rows = list(comparison)
    ax = _axes(ax, (4.6, 0.8 + 0.34 * len(rows)))
    y = np.arange(len(rows))[::-1]
    ax.axvspan(-3, 3, color=BLUE, alpha=0.12, lw=0)
    ax.axvline(0, color=BLUE, lw=1.5)
    ax.errorbar(
        [r.z for r in rows], y, xerr=1.0, fmt="o", color=RED, ms=5, mfc="white", capsize=2, elinewidth=1
    )
    ax.set_yticks(y, [f"${label_tex(r.observable)}$" for r in rows])
    ax.set_xlabel("(simulation $-$ theory) / standard error")
    ax.set_ylim(-0.7, len(rows) - 0.3)
    return _finish(ax)


def plot_distribution(
    sim: Any,
    quantity: Any,
    *,
    solution: Any = None,
    density: Any = None,
    mass: Any = None,
    bins: int = 40,
    ax: Any = None,
) -> Any:
    """Plot the distribution of a site variable: its mass at zero as a bar, the rest as a histogram.

    Parameters
    ----------
    sim : Simulation
        The instances.
    quantity : SiteQuantity, Family or Expr
        What is distributed.
    solution : Solution, optional
        A theory's solution; bins are averages of indicators, read in the same words.
    density : callable, optional
        The density away from zero, where it is known otherwise.
    mass : float, optional
        The mass at zero, where it is known otherwise.
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

    expr = quantity.at_site() if isinstance(quantity, Family) else sympify(quantity)
    values = sim.values(expr)
    ax = _axes(ax)
    size = max(1.0, float(np.max(np.abs(values))))
    at_zero = np.abs(values) <= 1e-9 * size
    rest = values[~at_zero]
    share = float(at_zero.mean())
    if rest.size:
        low, high = np.quantile(rest, [0.0, 0.9995])
        edges = np.linspace(0.0 if low >= 0 else low, high, bins + 1)
        counts, _ = np.histogram(rest, edges)
        height = counts / (values.size * np.diff(edges))
        ax.stairs(height, edges, fill=True, color=RED, alpha=0.25, label="simulation")
        ax.stairs(height, edges, color=RED, lw=1)
        theory = None
        middle = (edges[1:] + edges[:-1]) / 2
        if density is not None:
            middle = np.linspace(edges[0], edges[-1], 400)
            theory = np.array([float(density(x)) for x in middle])
        elif solution is not None:
            tail = np.array([float(solution[average(expr > sympify(str(e)))]) for e in np.round(edges, 12)])
            theory = -np.diff(tail) / np.diff(edges)
        if theory is not None:
            ax.plot(middle, theory, color=BLUE, lw=1.8, label="theory")
        ax.set_ylim(bottom=0)
    if share > 0:
        if mass is None and solution is not None:
            mass = 1 - float(solution[average(expr > 0)]) - float(solution[average(expr < 0)])
        inset = ax.inset_axes((0.70, 0.34, 0.26, 0.34))
        entries = [("sim.", share, RED)] + ([("theory", float(mass), BLUE)] if mass is not None else [])
        for k, (_, height_, colour) in enumerate(entries):
            inset.bar(k, height_, color=colour, alpha=0.6, width=0.6)
            inset.annotate(f"{height_:.3f}", (k, height_), ha="center", va="bottom", fontsize=7)
        inset.set_xticks(range(len(entries)), [name for name, _, _ in entries], fontsize=7)
        inset.set_yticks([])
        inset.set_ylim(0, 1.3 * max(v for _, v, _ in entries))
        inset.set_title("mass at zero", fontsize=8)
        inset.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel(f"${label_tex(expr)}$")
    ax.set_ylabel("density")
    if rest.size:
        ax.legend(frameon=False, loc="upper right")
    return _finish(ax)


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
    ax = _axes(ax, (3.6, 3.4))
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    ax.plot(ends, ends, color=BLUE, lw=1.5, zorder=1)
    ax.plot(x, y, "o", ms=3.5, mfc="white", color=RED, zorder=2)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    return _finish(ax)


def rows_of_two(rows: int) -> tuple[Any, Any]:
    """Return a figure with rows of two axes."""
    first = _axes(None, (7.2, 3.3 * rows))
    figure = first.figure
    first.remove()
    return figure, figure.subplots(rows, 2, squeeze=False)


def plot_fields(without: np.ndarray, within: np.ndarray, kind: Any, *, ax: Any = None) -> Any:
    """Plot the normalised field of a new site, in the system without it and with it, against the Gaussian.

    Parameters
    ----------
    without, within : ndarray
        The field over the standard deviation that independence gives it.
    kind : Kind
        The kind of the new site, for the label.
    ax : Axes, optional
        Where to draw.
    """
    ax = _axes(ax)
    reach = max(3.0, float(np.nanmax(np.abs(np.concatenate([without, within])))))
    edges = np.linspace(-reach, reach, max(9, min(41, 2 * int(np.sqrt(len(without))) + 1)))
    ax.hist(within, edges, density=True, histtype="step", color=GREY, lw=1.3, label="with the site")
    ax.hist(without, edges, density=True, histtype="stepfilled", color=RED, alpha=0.35, label="without it")
    x = np.linspace(-reach, reach, 300)
    ax.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), color=BLUE, lw=1.8, label="Gaussian")
    ax.set_xlabel(f"field of the new {kind} / std. deviation")
    ax.set_ylabel("density")
    ax.legend(frameon=False, fontsize=8)
    return _finish(ax)


__all__ = ["plot_comparison", "plot_distribution", "plot_fields", "plot_scatter", "plot_sweep", "rows_of_two"]
