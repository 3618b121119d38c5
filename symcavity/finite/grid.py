"""The points of a sweep: a grid of parameters, its columns, and the row of each point."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from symcavity.errors import ValuesError
from symcavity.finite.fingerprint import exact_text
from symcavity.finite.rows import Row
from symcavity.model.kinds import SiteCount

Task = tuple[dict[Any, Any], int, int]


def grid_points(grid: Mapping[Any, Iterable[Any]] | Iterable[Mapping[Any, Any]]) -> list[dict[Any, Any]]:
    """Return the points of a grid: a mapping from symbols to values, or the points themselves.

    Parameters
    ----------
    grid : mapping, iterable of mappings, or pandas DataFrame
        ``{alpha: [0.5, 1], C: [1, 2]}`` stands for the four combinations; each row of a table, as
        ``frame.to_dict("records")``, for one point.  A point that is given twice counts once.
    """
    if hasattr(grid, "to_dict"):
        grid = grid.to_dict("records")
    points: list[Any]
    if isinstance(grid, Mapping):
        axes = [list(v) if isinstance(v, Iterable) and not isinstance(v, str) else [v] for v in grid.values()]
        points = [dict(zip(grid, combination, strict=True)) for combination in itertools.product(*axes)]
    else:
        points = list(grid) if isinstance(grid, Iterable) and not isinstance(grid, str) else [grid]
        if any(not isinstance(point, Mapping) for point in points):
            raise ValuesError(
                f"The grid is {grid!r}.",
                "a dictionary of values by parameter, a list of such dictionaries with one value each, or a DataFrame",
                "{alpha: [1, 2, 3]}",
            )
        points = [dict(point) for point in points]
    if not points:
        raise ValuesError("The grid is empty.", "at least one value for each parameter")
    return list({point_name(point): point for point in points}.values())


def parameter_columns(points: list[dict[Any, Any]], others: Iterable[str]) -> list[str]:
    """Return the columns of the parameters, refusing one that is the name of another column."""
    for k in dict.fromkeys(k for point in points for k in point):
        if str(k) in others and not isinstance(k, SiteCount):
            raise ValuesError(
                f"The parameter {k} has the name of another column of a sweep.",
                f"parameters that are not called {', '.join(sorted(others))}",
            )
    return list(dict.fromkeys(str(k) for point in points for k in point))


def point_name(point: Mapping[Any, Any]) -> str:
    """The name of a point in a file: its parameters with their values, in the order of their names."""
    return "; ".join(f"{k}={exact_text(v)}" for k, v in sorted(point.items(), key=lambda item: str(item[0])))


def plain_value(value: Any) -> Any:
    """Return a number as a float, and everything else as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def row_of(task: Task, *, instances: bool) -> Row:
    """What a row says of its task: the point, and for instances size and seed."""
    point, n, seed = task
    which = {"N": n, "seed": seed} if instances else {}
    return {"point": point_name(point), **which} | {str(k): plain_value(v) for k, v in point.items()}
