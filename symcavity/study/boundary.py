"""Phase boundaries: where stability, a solution, or an order parameter is lost, in a plane of two parameters."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.given.checked_values import symbol_of
from symcavity.evaluate.numbers import exact_value
from symcavity.evaluate.tasks import task_of
from symcavity.finite.tables import with_error
from symcavity.method.theory import Theory
from symcavity.study.line import FEASIBILITY, STABILITY, Crossing
from symcavity.study.optimum import checked_range
from symcavity.writing.displays import Formula, html


@dataclass(frozen=True)
class Boundary:
    """A line in a plane of two parameters.

    Attributes
    ----------
    what : str
        What is lost on it.
    along, across : Symbol
        The parameters; along is None if a single value is requested.
    points : tuple of (number, number, number)
        The value along, the boundary across, and its error: by how much the last extrapolation moved it, or the last
        of the requested digits.
    """

    what: str
    along: Symbol | None
    across: Symbol
    points: tuple[tuple[Any, Any, float], ...]

    def __iter__(self) -> Any:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __float__(self) -> float:
        return float(self.value)

    @property
    def value(self) -> Any:
        """The place across, where there is one."""
        if len(self.points) != 1:
            raise ValuesError(f"The boundary has {len(self.points)} points.", "one point", "boundary.points")
        return self.points[0][1]

    def to_csv(self) -> str:
        """Return the points as comma-separated values, with a header."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow([*([str(self.along)] if self.along is not None else []), str(self.across), "error"])
        out.writerows([str(v) for v in (p if self.along is not None else p[1:])] for p in self.points)
        return text.getvalue()

    def __str__(self) -> str:
        head = f"{self.what} is lost at" if self.what in (STABILITY, FEASIBILITY) else f"{self.what}:"
        digits = max(6, *(round(-np.log10(max(e / (abs(float(y)) or 1), 1e-300))) for _, y, e in self.points))
        at = "" if self.along is None else f"{self.along} = {{}}: "
        return "\n".join(
            [head, *(f"  {at.format(x)}{self.across} = {mp.nstr(y, digits)}" for x, y, _ in self.points)]
        )

    def _repr_html_(self) -> str:
        head, *_ = str(self).splitlines()
        symbols = [self.across] if self.along is None else [self.along, self.across]
        rows = ([*([str(x)] if self.along is not None else []), with_error(float(y), e)] for x, y, e in self.points)
        return html(list(map(Formula.of, symbols)), rows, head.rstrip(":"))

    def plot(self, ax: Any = None) -> Any:
        """Draw the line; return the axes.

        Raises
        ------
        MissingDependency
            Without matplotlib.
        """
        from symcavity.finite.plots import plot_line

        if self.along is None:
            raise ValuesError("A single point is not a line.", "a boundary with along=")
        rows = [(float(x), float(y)) for x, y, _ in self.points]
        return plot_line(rows, self.along, self.across, self.what, ax=ax)


def boundary(
    theory: Theory,
    what: Any,
    across: Mapping[Any, Any],
    along: Mapping[Any, Iterable[Any]] | None = None,
    values: Mapping[Any, Any] | None = None,
    dps: int = 15,
) -> Boundary:
    """Follow a boundary: for each value along, every place across at which something is lost.

    Raises
    ------
    ValuesError
        For invalid ranges.
    NotConverged
        If nothing is lost in the range, or if something else ends first.

    Notes
    -----
    On the line itself responses or moments diverge, and just beyond there is no solution, so that the line is
    extrapolated from solutions on the side where there are: with the stability ``L`` the place is an analytic function
    of ``1 - L``, and with a quantity ``q`` that vanishes or diverges like any power it is one of ``q/q'``, with the
    exact derivative ``q'``.  Polynomials through ever closer points are taken at zero, until they agree.

    Along a line each solution starts at the last one.  Where a problem is not convex, its solution is looked for from
    afar at the ends of the range, and followed from there by steps along its branch; a branch that reaches neither end
    is found only if these have no solution.  After three places with one point each the next is looked for
    where a parabola through them leads, and over the whole range only if it is not there.
    """
    what = _asked(theory, what)
    name, (low, high) = _one(across, "across")
    name, *ends = checked_range(theory, name, values, (low, high))
    task = task_of(theory)
    values = {symbol_of(task, k): v for k, v in (values or {}).items()}
    lines: list[tuple[Any, Mapping[Any, Any]]] = [(None, values)]
    label = None
    if along is not None:
        label, places = _one(along, "along")
        label = symbol_of(task, label)
        lines = [(exact_value(x, str(label), dps), {**values, label: x}) for x in places]
    points: list[tuple[Any, Any, float]] = []
    found: list[list[tuple[float, float]]] = []  # by line, its points in double
    near: dict[Symbol, float] | None = None
    for x, given in lines:
        line = Crossing(theory, what, name, given, dps)
        line.near, line.at = near, mp.mpf(ends[0])
        for a, b in line.following(found, x, *ends) or line.brackets(*ends):
            y, error = line.end(a, b)
            points.append((x, y, error))
        if label is not None:
            found.append([(float(p), float(y)) for p, y, _ in points if p is x])
        near = line.near
    if not points:
        raise NotConverged(
            f"No boundary of {what!s} was found for {name} from {ends[0]:g} to {ends[1]:g}.", hint="another range"
        )
    return Boundary(str(what), label, name, tuple(points))


def _asked(theory: Theory, what: Any) -> Any:
    """What is lost at a boundary: a word, an observable, or an equation of two."""
    if not isinstance(what, str) or what in (STABILITY, FEASIBILITY):
        return what
    if meant := get_close_matches(what, (STABILITY, FEASIBILITY), n=1):
        supported = "'stability', 'feasibility', an observable, Eq(...)"
        raise ValuesError(f"There is no boundary of {what!r:.60}.", supported, repr(meant[0]))
    try:
        return theory.named_by(what)
    except ValuesError as unread:
        supported = f"'stability', 'feasibility', Eq(...), or an observable: {unread.supported}"
        raise ValuesError(unread.found, supported, unread.hint) from None


def _one(mapping: Any, word: str) -> tuple[Any, Any]:
    if not isinstance(mapping, Mapping) or len(mapping) != 1:
        raise ValuesError(f"{word} is {mapping!r:.80}.", "one parameter with its values", f"{word}={{alpha: (1, 3)}}")
    return next(iter(mapping.items()))
