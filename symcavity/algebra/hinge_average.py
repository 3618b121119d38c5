"""The average of a piecewise polynomial over a standard Gaussian: truncated moments, one for each of its breaks."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, S

from symcavity.algebra.coefficients import add, times
from symcavity.algebra.phi import gaussian_moment, phi
from symcavity.algebra.piecewise import Pieces
from symcavity.algebra.signs import Signs, tidy


def hinge_average(pieces: Pieces, signs: Signs) -> Expr:
    """Return the average of a piecewise polynomial: one hinge for each break, from the best anchor.

    The anchor is one of the regions or, with hinges to both sides of one break, a region of width zero
    in which the function is zero. The best has the fewest ``phi``, then the fewest other terms.
    """
    minus = (S.NegativeOne,)
    values, breaks = pieces.values, pieces.breaks
    jumps = [
        _hinges(add(values[k + 1], times(minus, values[k], signs), signs), t, signs)
        for k, t in enumerate(breaks)
    ]
    options: list[tuple[int, list[Expr], list[tuple[Expr, Expr]]]] = []
    for r, polynomial in enumerate(values):
        even = [signs.restore(c) * gaussian_moment(2 * j) for j, c in enumerate(polynomial[::2]) if c != 0]
        sides = [term for k in range(len(breaks)) for term in jumps[k][0 if k < r else 1]]
        options.append((r, even, sides))
    if all(values):
        for r, t in enumerate(breaks):
            sides = [term for k in range(len(breaks)) if k != r for term in jumps[k][0 if k < r else 1]]
            sides += _hinges(times(minus, values[r], signs), t, signs)[0]
            sides += _hinges(values[r + 1], t, signs)[1]
            options.append((r, [], sides))

    def score(option: tuple[int, list[Expr], list[tuple[Expr, Expr]]]) -> tuple[int, int, int, int]:
        r, even, sides = option
        names = {name for name, _ in sides}
        leading = sum(1 for name in names if name.args and name.args[-1].could_extract_minus_sign())
        return len(names), len(even), leading, r

    _, even, sides = min(options, key=score)
    collected: dict[Expr, list[Expr]] = {}
    for name, c in sides:
        collected.setdefault(name, []).append(c)
    return Add(*even, *[tidy(Add(*cs)) * name for name, cs in collected.items()])


def _hinges(jump: Sequence[Expr], t: Expr, signs: Signs) -> tuple[list[tuple[Expr, Expr]], ...]:
    """Return a jump at t as averages of hinges to the left and to the right: pairs of phi and coefficient."""
    if not jump:
        return [], []
    up, down = signs.restore(tidy(signs.tidy(-t))), signs.restore(t)
    terms = [(j, signs.restore(c)) for j, c in enumerate(_shifted(jump, t, signs)) if c != 0]
    return [(phi(j, down), c if j % 2 else -c) for j, c in terms], [(phi(j, up), c) for j, c in terms]


def _shifted(p: Sequence[Expr], t: Expr, signs: Signs) -> list[Expr]:
    """Return the coefficients of a polynomial in powers of (z - t)."""
    out = list(p)
    for i in range(len(out) - 1):
        for j in range(len(out) - 2, i - 1, -1):
            out[j] = tidy(signs.tidy(out[j] + t * out[j + 1]))
    return out
