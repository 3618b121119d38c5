"""The plot of a sweep: theory as lines, instances as points with error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Symbol, latex

from symcavity.finite.plots import BLUE, COLOURS, GREY, RED, in_style
from symcavity.finite.tables import short


@in_style(4.8, 3.5)
def plot_sweep(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    *,
    ax: Any = None,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Plot one column of a sweep against another: theory as a line, simulation as points with error bars.

    Where further parameters vary, each of their values has a curve of its own, in its own color.  A line is
    broken where the theory has no solution; such points are marked on the horizontal axis.

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
    labels = labels or {}
    telling = _telling(rows, x)
    curves: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        curves.setdefault(tuple(row.get(name) for name in telling), []).append(row)
    sizes = sorted({_size(r) for r in rows if _size(r)})
    for k, (value, own) in enumerate(curves.items()):
        line, points = (BLUE, RED) if len(curves) == 1 else (COLOURS[k % len(COLOURS)],) * 2
        named = ", ".join(
            f"{labels.get(n) or f'${latex(Symbol(n))}$'} = {short(v)}" for n, v in zip(telling, value, strict=True)
        )
        theory = sorted((u, _number(r, y)) for r in own if not _size(r) and (u := _number(r, x)) is not None)
        if any(v is not None for _, v in theory):
            data = np.array([(u, np.nan if v is None else v) for u, v in theory])
            ax.plot(*data.T, color=line, lw=1.8, label=named or "theory", zorder=1, solid_joinstyle="round")
            named = named and "_"  # the color is named once
        for n in sizes:
            found = _means([r for r in own if _size(r) == n], x, y)
            if not len(found):
                continue
            told = named or (f"simulation, $N={n}$" if len(curves) == 1 else "_")
            mark = {"fmt": "osD^v"[sizes.index(n) % 5], "ms": 4.5, "mfc": "white", "color": points, "label": told}
            beside = found[:, 2] if np.any(found[:, 2] > 0) else None
            ax.errorbar(*found[:, :2].T, found[:, 3], beside, elinewidth=1, capsize=2, zorder=2, **mark)
    if len(curves) > 1:  # what lines and points are, once for all colors
        if any(not _size(r) for r in rows) and sizes:
            ax.plot([], [], color=GREY, lw=1.8, label="theory")
        for k, n in enumerate(sizes):
            ax.plot([], [], "osD^v"[k % 5], color=GREY, mfc="white", ms=4.5, label=f"simulation, $N={n}$")
    alone = [r for r in rows if not _size(r)] or rows  # points that only some instances lack are no gaps
    kept = {_number(r, x) for r in rows if _number(r, y) is not None}
    lost = sorted({u for r in alone if (u := _number(r, x)) is not None} - kept)
    if lost:
        floor = {"transform": ax.get_xaxis_transform(), "clip_on": False, "zorder": 3}
        ax.plot(lost, [0.0] * len(lost), "x", color=GREY, ms=4, label="no value", **floor)
    ax.set_xlabel(labels.get(x, x))
    ax.set_ylabel(labels.get(y, y))
    if ax.get_legend_handles_labels()[0]:
        outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(curves) > 1 else {}
        ax.legend(frameon=False, **outside)


def _size(row: Mapping[str, Any]) -> int:
    """The number of features of a simulated row; zero for a row of a theory."""
    return int(float(row.get("N") or 0))


def _telling(rows: Sequence[Mapping[str, Any]], x: str) -> list[str]:
    """Name the parameters that tell curves apart: those that vary, without what runs along the curves."""
    found = varied(rows)
    running = x if x in _parameters(rows) else max(found, key=lambda name: found[name], default=x)
    return [name for name in found if name != running]


def varied(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The parameters of a sweep that vary, with the number of their values; those of the theory where it has rows."""
    return {name: len(values) for name, values in _parameters(rows).items() if len(values) > 1}


def _parameters(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[Any, None]]:
    """The values of each parameter at the points of a sweep."""
    found: dict[str, dict[Any, None]] = {}
    for row in [r for r in rows if not _size(r)] or rows:
        for part in str(row.get("point", "")).split("; "):
            if (name := part.partition("=")[0]) in row:
                found.setdefault(name, {})[row[name]] = None
    return found


def _means(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> np.ndarray:
    """Return, for each point, the means of both columns and their standard errors."""
    groups: dict[Any, list[tuple[float, float]]] = {}
    for r in rows:
        u, v = _number(r, x), _number(r, y)
        if u is not None and v is not None:
            groups.setdefault(r.get("point", ""), []).append((u, v))
    data = [np.array(values) for values in groups.values()]
    return np.array([[*d.mean(axis=0), *_error(d)] for d in data])


def _number(row: Mapping[str, Any], column: str) -> float | None:
    value = row.get(column)
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _error(data: np.ndarray) -> np.ndarray:
    return data.std(axis=0, ddof=1) / np.sqrt(len(data)) if len(data) > 1 else np.zeros(data.shape[1])
