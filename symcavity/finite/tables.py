"""Tables as text, and for pandas."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from symcavity.errors import MissingDependency, ValuesError


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines of a table that fits the terminal: what stands first is flush left, all else flush right."""
    table = list(rows)
    width = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf
    out: list[str] = []
    begin = 1
    while not out or begin < len(width):  # columns for which a terminal has no room stand below, after the first one
        end, used = begin, width[0]
        while end < len(width) and (end == begin or used + 2 + width[end] <= room):
            used, end = used + 2 + width[end], end + 1
        shown = range(begin, end)
        out += ["", *_lines(table, width, shown)] if out else _lines(table, width, shown)
        begin = end
    return out


def _lines(table: Sequence[Sequence[str]], width: Sequence[int], shown: Iterable[int]) -> list[str]:
    columns = list(shown)
    return ["  ".join([r[0].ljust(width[0]), *(r[k].rjust(width[k]) for k in columns)]).rstrip() for r in table]


def counted(instances: int) -> str:
    """Return ``1 instance``, ``5 instances``."""
    return f"{instances} instance{'s' * (instances != 1)}"


def with_error(value: float, error: float) -> str:
    """Return a number with its standard error in its last two digits, ``0.3534(48)``.

    Parameters
    ----------
    value, error : float
        The number and its standard error; without one beyond rounding the number stands alone, to six digits.
    """
    if not (math.isfinite(value) and math.isfinite(error) and error > sys.float_info.epsilon * abs(value)):
        return f"{value:.6g}"
    place = math.floor(math.log10(error)) - 1
    digits = round(error / 10.0**place)
    if digits == 100:
        place, digits = place + 1, 10
    top = math.floor(math.log10(max(abs(value), error)))
    shift = 0 if -5 < top < 6 and place < 1 else top
    decimals = max(shift - place, 0)
    told = f"{digits / 10:.1f}" if decimals == 1 else str(digits * 10 ** max(place - shift, 0))
    return f"{value / 10.0**shift:.{decimals}f}({told})" + (f"e{shift:+03d}" if shift else "")


def short(value: Any) -> str:
    """Return a value as it stands in a table or a legend; nothing where there is none."""
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def to_pandas(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:
    """Return rows as a pandas DataFrame.

    Raises
    ------
    MissingDependency
        Without pandas.
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingDependency("pandas is not installed.", "", "pip install pandas") from None
    return DataFrame(list(rows), columns=None if columns is None else list(columns))


def to_xarray(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], axes: Sequence[str]) -> Any:
    """Return rows as an xarray Dataset, with an axis for each of some columns.

    Raises
    ------
    MissingDependency
        Without xarray or pandas.
    ValuesError
        If two rows have one place, or no column is an axis.
    """
    if not axes:
        raise ValuesError("All rows have the same parameters.", "a parameter with two values or more")
    frame = to_pandas(rows, [c for c in columns if c != "point"])
    for axis in axes:
        with suppress(ValueError):  # a law has no number
            frame[axis] = [float(Fraction(str(value))) for value in frame[axis]]
    frame = frame.set_index(list(axes))
    if frame.index.has_duplicates:
        raise ValuesError(
            f"Several rows have the same {', '.join(axes)}.", "a sweep of the theory, or one of instances, alone"
        )
    try:
        return frame.to_xarray()
    except ImportError:
        raise MissingDependency("xarray is not installed.", "", "pip install xarray") from None
