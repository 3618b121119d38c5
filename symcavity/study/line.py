"""One line through the plane of a boundary, along which solutions are followed to where they end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Equality, Symbol, sympify

from symcavity.algebra.precision import given_out, mp
from symcavity.errors import NegativeEntropy, NotConverged, UnstableSolution, ValuesError
from symcavity.evaluate.given.arguments import NO_SOLUTION
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solve import solve_theory
from symcavity.evaluate.solving.search import Effort
from symcavity.evaluate.watch import tick
from symcavity.method.theory import Theory
from symcavity.study.sensitivity import slope

STABILITY, FEASIBILITY = "stability", "feasibility"
POINTS = 11  # at which the range across is looked at
SHORTEST = 2**9  # shares of the way that a step along a branch may be
HALVED = 4  # times that a bracket is halved before the end is extrapolated
ROUNDS, STALE = 40, 6  # of an extrapolation; in a row without a solution
NEARER = 8  # by this factor each point is nearer to the boundary than the one before
CLOSE = 0.02  # where a bracket is as narrow, relative, it is not halved first
FOLLOWED = 3  # points of a line from which the next is guessed
MEMORY = 14  # points that an extrapolation uses
Measure = Callable[[Solution], Any]


class Crossing:
    """One way across: what is lost on it, and where."""

    def __init__(self, theory: Theory, what: Any, across: Symbol, values: Mapping[Any, Any], dps: int) -> None:
        if isinstance(what, str) and what not in (STABILITY, FEASIBILITY):
            raise ValuesError(
                f"There is no boundary of {what!r:.60}.", "'stability', 'feasibility', an observable, Eq(...)"
            )
        self.theory, self.what, self.across, self.values, self.dps = theory, what, across, values, dps
        self.near: dict[Symbol, float] | None = None  # the last solution, at the place:
        self.at = mp.zero
        self.doubted = False  # whether a search from afar has agreed that a solution is lost before it should be
        self.solved: list[tuple[Any, Solution]] = []

    def solution(self, y: Any) -> Solution | None:
        """The solution at a place, looked for from afar; None where what is to be lost is lost."""
        return self._kept(self._solved(y, "brief"))

    def followed(self, y: Any) -> Solution | None:
        """The solution at a place, next to the last one; None where it is lost.

        The one of a convex problem is looked for as anywhere.  The branch of another system is followed in steps that
        are halved where the next root is not found: a search from afar takes as long as hundreds of them.
        """
        if self.theory.system.convex or self.near is None:
            return self.solution(y)
        at, end = self.at, mp.mpf(y)
        step = way = end - at
        while abs(step) * SHORTEST > abs(way):
            aim = end if abs(end - at) <= abs(step) else at + step
            if (found := self._solved(aim, "near")) is None:
                step = (aim - at) / 2
            elif aim == end:
                return self._kept(found)
            else:
                at, step = aim, 2 * step
        return self._kept(self._solved(y, "near")) if not way else None

    def _solved(self, y: Any, effort: Effort) -> Solution | None:
        tick(f"the boundary, {self.across} = {mp.nstr(mp.mpf(y), 6)}")
        exact = float(y) if self.dps <= 15 else mp.nstr(y, self.dps + 15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnstableSolution)
            warnings.simplefilter("ignore", NegativeEntropy)
            try:
                guess = self.near if not self.theory.system.convex else None
                values = {**self.values, self.across: exact}
                found = solve_theory(self.theory, values, self._digits, guess, effort=effort)
            except NO_SOLUTION:
                return None
        self._seen(y, found)
        return found

    def _kept(self, found: Solution | None) -> Solution | None:
        """A solution, if it still has what is to be lost."""
        if found is None or (self.what == STABILITY and not found.stability < 1):
            return None
        if self.what == FEASIBILITY and found.is_limit:
            return None
        if isinstance(self.what, Equality):
            return found
        if not isinstance(self.what, str) and (found.is_limit or found[self.what] == 0):
            return None
        return found

    def _seen(self, y: Any, found: Solution) -> None:
        """Go on from a solution; what is unstable leads to its neighbors as well."""
        if not found.is_limit:
            self.at = mp.mpf(y)
            self.near = {s: float(v) for s, v in found.values.items()}

    @property
    def _other(self) -> str:
        """What else may be lost there: nothing that was requested."""
        others = [repr(word) for word in (STABILITY, FEASIBILITY) if word != self.what]
        return f"boundary({' or '.join(others)}, ...), or of an observable that vanishes there"

    @property
    def _digits(self) -> int:
        return self.dps if self.dps <= 15 else self.dps + 10

    def brackets(self, low: float, high: float) -> list[tuple[float, float]]:
        """Pairs of places, the first of which has what the second has lost."""
        logs = low > 0
        ts = np.linspace(np.log(low), np.log(high), POINTS) if logs else np.linspace(low, high, POINTS)
        grid = [low, *(float(np.exp(t)) if logs else float(t) for t in ts[1:-1]), high]
        found = self.between(grid)
        if not self.solved and not isinstance(self.what, Equality):
            unstable = f"is unstable wherever a solution is found, for {self.across}"
            none = f"has no solution anywhere for {self.across}"
            told = unstable if self.what == STABILITY and self.near is not None else none
            raise NotConverged(f"The theory {told} from {low:g} to {high:g}.", hint="another range")
        return found

    def between(self, grid: list[float]) -> list[tuple[float, float]]:
        """Neighbours on a grid, the first of which has what the second has lost."""
        found = self._scanned(grid)
        self.solved = [(y, s) for y, s in found.items() if s is not None]
        if isinstance(self.what, Equality):
            gap = sympify(self.what.lhs - self.what.rhs)
            signs = {y: s[gap] > 0 for y, s in found.items() if s is not None}
            return [(a, b) for a, b in pairwise(grid) if a in signs and b in signs and signs[a] != signs[b]]
        out = [(a, b) for a, b in pairwise(grid) if found[a] is not None and found[b] is None]
        return out + [(b, a) for a, b in pairwise(grid) if found[a] is None and found[b] is not None]

    def _scanned(self, grid: list[float]) -> dict[float, Solution | None]:
        """The solutions at places in order.

        Where a system that is not convex has lost its solution, it is looked for from afar at the end of the range, and
        followed back from there.
        """
        if self.theory.system.convex:
            return {y: self.solution(y) for y in grid}
        found = {grid[0]: self.solution(grid[0])}
        order = grid if self.at == grid[0] or len(grid) == 2 else grid[::-1]
        for n, y in enumerate(order):
            if y in found:
                continue
            if n and self.at == order[n - 1]:  # what is unstable has neighbors as well
                found[y] = self.followed(y)
            elif y in (grid[0], grid[-1]) or self.near is None:
                found[y] = self.solution(y)
            if self.at == y:
                here = self.at, self.near
                for back in reversed(order[:n]):
                    if found.get(back) is None:
                        found[back] = self.followed(back)
                    if self.at != back:
                        break
                self.at, self.near = here
        return {y: found.get(y) for y in grid}

    def following(
        self, found: list[list[tuple[float, float]]], x: Any, low: float, high: float
    ) -> list[tuple[float, float]]:
        """A bracket around where the line leads, in the place of a look over the whole range; empty if it is not there.

        Where the last three lines had one point each: a parabola through them, and its distance from a straight line.
        """
        if len(found) < FOLLOWED or any(len(row) != 1 for row in found[-FOLLOWED:]):
            return []
        xs, ys = np.array([row[0] for row in found[-FOLLOWED:]]).T
        if len(set(xs)) < FOLLOWED or float(x) in xs:
            return []
        guess = float(np.polyval(np.polyfit(xs - xs[-1], ys, FOLLOWED - 1), float(x) - xs[-1]))
        straight = float(np.polyval(np.polyfit(xs[1:] - xs[-1], ys[1:], 1), float(x) - xs[-1]))
        wide = max(abs(guess - straight), 1e-3 * abs(guess))
        grid = [min(max(guess + way * wide, low), high) for way in (-1, 1)]
        return self.between(grid) if grid[0] < grid[1] else []

    def end(self, a: float, b: float) -> tuple[Any, float]:
        """The place between two others at which it is lost, and the error of it."""
        if isinstance(self.what, Equality):
            return self._crossing(a, b)
        with mp.workdps(self.dps + 15):
            inner, outer = mp.mpf(a), mp.mpf(b)
            lost = outer
            start = min(self.solved, key=lambda pair: abs(pair[0] - a))[1]
            self._seen(inner, start)
            self.doubted = self.theory.system.convex
            states: list[tuple[Any, Solution]] = [(inner, start)]
            for _ in range(HALVED):
                if abs(outer - inner) < CLOSE * abs(inner):
                    break
                inner, outer = self._halved(states, inner, outer, mp.mpf(1) / 2)
            end, error, inner, outer = self._extrapolated(states, inner, outer)
            if error > 1e-6 * abs(inner):
                raise NotConverged(
                    f"The boundary near {self.across} = {mp.nstr(inner, 8)} was not extrapolated: {self.what} does not "
                    "go like a power there.",
                    {self.across: float(inner)},
                    hint=self._other,
                )
            if self.what == FEASIBILITY:  # a branch is not followed to its very end: it suffices that it ends
                outer = lost
            slack = max(10 * error, abs(outer - inner) if self.what != FEASIBILITY else 0)
            if end is None or not min(inner, outer) - slack <= end <= max(inner, outer) + slack:
                raise NotConverged(
                    f"The solution ends between {self.across} = {mp.nstr(inner, 8)} and {mp.nstr(outer, 8)}, but not "
                    f"because {self.what} is lost.",
                    {self.across: float(inner)},
                    hint=self._other,
                )
        with mp.workdps(self.dps):
            return given_out(+end), float(max(error, abs(end) * mp.mpf(10) ** -self.dps))

    def _extrapolated(
        self, states: list[tuple[Any, Solution]], inner: Any, outer: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Where what is measured vanishes, how much that moved last, and the bracket by then."""
        measure = self._measure([s for _, s in states])
        known = [(y, measure(s)) for y, s in states[-MEMORY:]]
        fresh, stale, before, goal = True, 0, None, mp.mpf(10) ** -self.dps
        best: tuple[Any, Any] = (None, mp.inf)
        for _ in range(ROUNDS):
            end = _at_zero(known[-MEMORY:])
            if before is not None and fresh:
                moved = abs(end - before)
                if moved < best[1]:
                    best = (end, moved)
                if moved <= goal * abs(end):
                    break
                if self.dps <= 15 and best[1] < 1e-9 * abs(end) and moved > 100 * best[1]:
                    break  # in double more points only add rounding
            before = end
            count = len(states)
            share = (end - inner) / (outer - inner)
            if not 0 < share < 1.5:
                share = mp.mpf(1) / 2
            else:
                share = min(share * (1 - mp.mpf(1) / NEARER), (share + 1) / 2 if share < 1 else mp.mpf(1) / 2)
            inner, outer = self._halved(states, inner, outer, share, end)
            fresh = len(states) > count
            stale = 0 if fresh else stale + 1
            if stale > STALE:
                break
            try:
                known += [(y, measure(s)) for y, s in states[count:]]
            except NotConverged:  # so close to the end nothing has enough digits
                break
        return *best, inner, outer

    def _halved(
        self, states: list[tuple[Any, Solution]], inner: Any, outer: Any, share: Any, expected: Any = None
    ) -> tuple[Any, Any]:
        """A narrower bracket."""
        middle = inner + share * (outer - inner)
        found = self.followed(middle)
        if found is None and not self.doubted and expected is not None and abs(middle - inner) < abs(expected - inner):
            found = self.solution(middle)  # it should be there
            self.doubted = self.doubted or found is None
        if found is None:
            return inner, middle
        states.append((middle, found))
        return middle, outer

    def _measure(self, states: list[Solution]) -> Measure:
        """What vanishes at the boundary, smoothly, and has another sign of slope on neither side."""
        if self.what == STABILITY:
            return lambda s: 1 - mp.convert(s.stability)
        if self.what != FEASIBILITY:
            return lambda s: s.number(self.what) / slope(s, self.what, self.across)
        last = states[-1]

        def distance(u: Any, s: Solution) -> Any:
            move = slope(s, u, self.across)
            return s.number(u) / move if move else mp.inf

        unknown = min((u for u in last.values if last[u]), key=lambda u: abs(distance(u, last)))
        return lambda s: distance(unknown, s)

    def _crossing(self, a: float, b: float) -> tuple[Any, float]:
        """Where the two sides of an equation meet: solutions exist on both sides."""
        gap = self.what.lhs - self.what.rhs
        with mp.workdps(self.dps + 15):

            def value(y: Any) -> Any:
                found = self.followed(y)
                if found is None:
                    raise NotConverged(f"The solution ends before {self.what} holds.", {self.across: float(y)})
                return found.number(gap)

            root = mp.findroot(value, (mp.mpf(a), mp.mpf(b)), solver="anderson", tol=mp.mpf(10) ** (-2 * self.dps + 2))
        with mp.workdps(self.dps):
            return given_out(+root), float(abs(root)) * 10.0**-self.dps


def _at_zero(points: list[tuple[Any, Any]]) -> Any:
    """The polynomial through places, in what vanishes, taken where that is zero (Neville)."""
    row = [y for y, _ in points]
    f = [v for _, v in points]
    for n in range(1, len(row)):
        row = [
            (f[k + n] * row[k] - f[k] * row[k + 1]) / (f[k + n] - f[k]) if f[k + n] != f[k] else row[k + 1]
            for k in range(len(row) - 1)
        ]
    return row[0]
