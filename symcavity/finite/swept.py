"""The rows of a sweep, as a table and a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sympy import Expr, Symbol

from symcavity.errors import ValuesError
from symcavity.finite.labels import label
from symcavity.finite.rows import Row
from symcavity.finite.tables import aligned, short, to_pandas, to_xarray
from symcavity.writing.displays import html


@dataclass
class Sweep:
    """The rows of a sweep.

    Attributes
    ----------
    rows : list of dict
        One for each point (and seed): parameters, observables, residuals, and the error if it failed.
    columns : tuple of str
        The columns, in order.
    observables : tuple of Expr
        What was computed or measured.
    """

    rows: list[Row]
    columns: tuple[str, ...]
    observables: tuple[Expr, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: Sweep) -> Sweep:
        columns = tuple(dict.fromkeys(self.columns + other.columns))
        return Sweep(self.rows + other.rows, columns, tuple(dict.fromkeys(self.observables + other.observables)))

    @property
    def failed(self) -> list[Row]:
        """The rows of the points that failed, with their errors."""
        return [row for row in self.rows if row.get("error")]

    def column(self, name: Any) -> list[Any]:
        """Return one column; observables may be given as expressions."""
        key = name if isinstance(name, str) else label(name)
        return [row.get(key) for row in self.rows]

    def plot(self, x: Any = None, y: Any = None, **options: Any) -> Any:
        """Plot one column against another; see :func:`symcavity.finite.sweep_plots.plot_sweep`.

        Without names it is the parameter that varies, and the observable, where there is one of each.

        Raises
        ------
        ValuesError
            If there are several that may be meant, or none.
        """
        from symcavity.finite.labels import label_tex
        from symcavity.finite.sweep_plots import plot_sweep, varied

        if x is None:
            x = _only(list(map(Symbol, varied(self.rows))), "parameter that varies", "x")
        if y is None:
            y = _only([o for o in self.observables if any(map(_has, self.column(o)))], "observable", "y")
        keys = [v if isinstance(v, str) else label(v) for v in (x, y)]
        tex = {k: f"${label_tex(v)}$" for k, v in zip(keys, (x, y), strict=True) if not isinstance(v, str)}
        return plot_sweep(self.rows, *keys, labels=tex | dict(options.pop("labels", {})), **options)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return to_pandas(self.rows, self.columns)

    def to_xarray(self) -> Any:
        """Return the columns as an xarray Dataset, along the parameters that vary, and sizes and seeds that do.

        Raises
        ------
        MissingDependency
            Without xarray and pandas.
        ValuesError
            If rows of theory and of instances are mixed: two rows would have one place.
        """
        from symcavity.finite.sweep_plots import varied

        axes = [*varied(self.rows), *(k for k in ("N", "seed") if len(set(self.column(k))) > 1)]
        return to_xarray(self.rows, self.columns, axes)

    def _table(self) -> list[list[str]]:
        """Return the head and the rows of what is shown, without columns that are empty."""
        shown = [c for c in self.columns if c not in {"point", "error"}]
        shown = [c for c in shown if any(map(_has, self.column(c)))] or shown
        return [shown, *([short(row.get(c, "")) for c in shown] for row in self.rows)]

    @property
    def warning(self) -> str:
        """How many rows failed, and why the first did; empty if none failed."""
        if not self.failed:
            return ""
        return f"{len(self.failed)} of {len(self.rows)} rows failed; the first: {self.failed[0]['error']}"

    def __str__(self) -> str:
        return "\n".join([*aligned(self._table()), *filter(None, [self.warning])])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        return html(head, body) + (f"<p>{escape(self.warning)}</p>" if self.warning else "")

    __repr__ = __str__


def _has(value: Any) -> bool:
    return value not in (None, "")


def _only(columns: Sequence[Expr], what: str, axis: str) -> Expr:
    """The one column that an axis can show."""
    if len(columns) != 1:
        raise ValuesError(
            f"The axis {axis} of the plot is not named, and this sweep has "
            f"{f'more than one {what}: ' + ', '.join(map(label, columns)) if columns else f'no {what}'}.",
            f"sweeps with one {what}, or the names of both columns",
            "sweep.plot(alpha, average(w[i]**2))",
        )
    return columns[0]
