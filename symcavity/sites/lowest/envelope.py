"""Which candidate is the lowest, at every force: those that ever are, in their order, and where they switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Expr, GreaterThan, Max, Pow, StrictGreaterThan, cancel, factor_terms, oo, sqrt

from symcavity.algebra.compiled import compiled
from symcavity.algebra.signs import bare, sign_given, weak_sign_of
from symcavity.sites.lowest.atoms import Candidate

ROUNDING = 1e-10


@dataclass(frozen=True)
class Envelope:
    """The lowest candidates from low forces to high ones.

    Attributes
    ----------
    atoms : tuple of Atom
    switches : tuple of Expr
        The forces at which one gives way to the next.
    assumed : tuple of Relational
        The conditions for that.
    """

    atoms: tuple[Candidate, ...]
    switches: tuple[Expr, ...]
    assumed: tuple[Any, ...]

    def xreplace(self, rule: dict[Any, Expr]) -> Envelope:
        """The same with other expressions in it."""
        atoms = (a.where(rule) for a in self.atoms)
        return Envelope(tuple(atoms), tuple(t.xreplace(rule) for t in self.switches), self.assumed)

    def jumps(self) -> list[tuple[Expr, Expr]]:
        """The forces at which the state jumps, and by how much."""
        rows = zip(pairwise(self.atoms), self.switches, strict=True)
        found = ((t, simple(b.state(t) - a.state(t))) for (a, b), t in rows)
        return [(t, gap) for t, gap in found if gap != 0]


def simple(expr: Expr) -> Expr:
    """An expression with what its terms have in common taken out, and no quotient inside of another."""
    plain = cancel(expr)

    def size(e: Expr) -> tuple[bool, int]:
        below = [p.base for p in e.atoms(Pow) if p.exp.is_negative]
        return any(q.exp.is_negative for base in below for q in base.atoms(Pow)), e.count_ops()

    return min((expr, plain, factor_terms(plain)), key=size)


# -- in numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A candidate in numbers."""

    low: float
    high: float
    a: float
    b: float
    c: float

    def least(self, s: float) -> float:
        if self.low == self.high:
            return self.a - s * self.low
        if self.c > 0 and self.b + self.c * self.low < s < self.b + self.c * self.high:
            return self.a - (s - self.b) ** 2 / (2 * self.c)
        return np.inf

    @property
    def square(self) -> tuple[float, float, float]:
        """Its lowest energy as a polynomial of the force."""
        if self.low == self.high:
            return self.a, -self.low, 0.0
        return self.a - self.b**2 / (2 * self.c), self.b / self.c, -1 / (2 * self.c)


def sequence(rows: Sequence[tuple[float, ...]]) -> tuple[int, ...] | None:
    """Which candidates are the lowest from low forces to high ones; None where the energy has no minimum."""
    atoms = [_Row(*row) for row in rows]
    if any(r.c <= 0 for r in atoms if r.low != r.high and not np.isfinite(r.low * r.high)):
        return None
    usable = [r for r in atoms if r.low == r.high or r.c > 0]
    places = [r.b + r.c * end for r in usable if r.low != r.high for end in (r.low, r.high) if np.isfinite(end)]
    for n, one in enumerate(usable):
        for other in usable[:n]:
            gap = np.subtract(one.square, other.square)[::-1]
            gap = gap[np.argmax(np.abs(gap) > 1e-13 * np.abs(gap).max()) :] if gap.any() else gap[:0]
            places += [float(z.real) for z in np.roots(gap) if abs(z.imag) < 1e-9 * (1 + abs(z))]
    edges = np.unique(places) if places else np.zeros(1)
    span = 1 + np.ptp(edges)
    edges = np.array([edges[0] - span, *edges, edges[-1] + span])
    found: list[int] = []
    for low, high in pairwise(edges):
        if high - low < 1e-9 * span:
            continue
        levels = [r.least((low + high) / 2) for r in atoms]
        least = min(levels)  # those that touch at one force are equal over what rounding makes of it
        lowest = [k for k, level in enumerate(levels) if level <= least + ROUNDING * (1 + abs(least))]
        if not found or found[-1] not in lowest:
            found.append(next((k for k in lowest if atoms[k].low != atoms[k].high), lowest[0]))
    return tuple(found)


# -- as expressions ----------------------------------------------------------------------------------


def switch(one: Candidate, other: Candidate) -> Expr:
    """The force at which a candidate gives way to one above it, where both have their minimum inside."""
    if one.is_point and other.is_point:
        return simple((other.a - one.a) / (other.low - one.low))
    if one.is_point or other.is_point:
        point, square, way = (one, other, 1) if one.is_point else (other, one, -1)
        gap = simple(square.energy(point.low) - point.a)
        at = square.force(point.low)
        return at if gap == 0 else simple(at) + way * sqrt(simple(2 * gap * square.c))
    if one.high == other.low and all(
        cancel(f(one.high) - g(one.high)) == 0 for f, g in ((one.energy, other.energy), (one.force, other.force))
    ):
        return simple(one.force(one.high))
    # a1 - (s - b1)**2/(2 c1) = a2 - (s - b2)**2/(2 c2), at the root at which the upper one becomes the lower
    two = simple(1 / one.c - 1 / other.c)
    linear = simple(other.b / other.c - one.b / one.c)
    constant = simple(2 * (other.a - one.a) + one.b**2 / one.c - other.b**2 / other.c)
    if two == 0:
        return simple(-constant / (2 * linear))
    return (-linear - sqrt(simple(linear**2 - two * constant))) / two


def direct(atoms: Sequence[Candidate], order: Sequence[int], positive: Sequence[Expr]) -> Envelope:
    """The lowest candidates where their order is known, with what has to hold for it."""
    kept = [atoms[k] for k in order]
    switches = [switch(a, b) for a, b in pairwise(kept)]
    needed: list[Any] = [StrictGreaterThan(a.c, 0, evaluate=False) for a in kept if not a.is_point]
    for n, a in enumerate(kept):
        ends = []
        if not a.is_point:
            ends += [(a.force(a.low), switches[n - 1])] if n and a.low != -oo else []
            ends += [(switches[n], a.force(a.high))] if n < len(switches) and a.high != oo else []
        needed += [GreaterThan(high - low, 0, evaluate=False) for low, high in ends if low != high]
        needed += [GreaterThan(t2 - t1, 0, evaluate=False) for t1, t2 in pairwise(switches[max(n - 1, 0) : n + 1])]
    for (j, k), t in zip(pairwise(order), switches, strict=True):
        level = atoms[j].least(t)
        for m in atoms[j + 1 : k]:
            above = m.least(t) - level
            if not m.is_point:  # beyond its ends it is not there
                ends = [m.force(m.low) - t] if m.low != -oo else []
                ends += [t - m.force(m.high)] if m.high != oo else []
                above = Max(above, *ends)
            needed.append(GreaterThan(above, 0, evaluate=False))
    return Envelope(tuple(kept), tuple(switches), tuple(_open(needed, positive)))


def _open(needed: Sequence[Any], positive: Sequence[Expr]) -> list[Any]:
    """Those of some inequalities that are not proved, each once, without factors that are positive."""
    found: dict[Expr, Any] = {}
    for c in needed:
        if _known(c.lhs, positive, strict=isinstance(c, StrictGreaterThan)):
            continue
        plain = c.func(c.lhs if c.lhs.has(Max) else bare(cancel(c.lhs)), 0, evaluate=False)
        if not isinstance(found.get(plain.lhs), StrictGreaterThan):
            found[plain.lhs] = plain
    return list(found.values())


def is_contact(one: Candidate, other: Candidate, s: Expr) -> bool:
    """Whether the state moves on without a jump from one candidate to the next."""
    return bool(simple(other.state(s) - one.state(s)) == 0)


def local(still: Envelope, curvature: Expr, positive: Sequence[Expr]) -> Envelope:
    """The minima that states have without feedback, followed as it is turned on: what jumps does so where it did."""
    kept = [a.steeper(curvature) for a in still.atoms]
    pairs = list(zip(pairwise(still.atoms), pairwise(kept), still.switches, strict=True))
    switches = [switch(*moved) if is_contact(*was, t) else t for was, moved, t in pairs]
    needed: list[Any] = [StrictGreaterThan(a.c, 0, evaluate=False) for a in kept if not a.is_point]
    for n, a in enumerate(kept):  # a minimum that is followed must not end before it is left
        if not a.is_point and n and a.low != -oo:
            needed.append(GreaterThan(switches[n - 1] - a.force(a.low), 0, evaluate=False))
        if not a.is_point and n < len(switches) and a.high != oo:
            needed.append(GreaterThan(a.force(a.high) - switches[n], 0, evaluate=False))
    needed += [GreaterThan(t2 - t1, 0, evaluate=False) for t1, t2 in pairwise(switches)]
    return Envelope(tuple(kept), tuple(switches), (*still.assumed, *_open(needed, positive)))


def where_it_is(atoms: Sequence[Candidate], curvature: Expr, positive: Sequence[Expr]) -> Envelope | None:
    """The minima of a field that follows its mean, whatever its energy: it leaves a piece where its mean does.

    None where it is open whether a kink holds the field.
    """
    kept: list[Candidate] = []
    switches: list[Expr] = []
    pieces = [a for a in atoms if not a.is_point]
    for one, other in pairwise(pieces):
        p = one.high
        kept.append(one.steeper(curvature))
        step, bend = cancel(other.energy(p) - one.energy(p)), cancel(other.force(p) - one.force(p))
        if step != 0 or bend == 0 or sign_given(bend, positive) == -1:
            switches.append(p * curvature if step != 0 or bend != 0 else kept[-1].force(p))
            continue
        if sign_given(bend, positive) != 1:
            return None
        point = next(a for a in atoms if a.is_point and a.low == p).steeper(curvature)
        switches += [kept[-1].force(p), other.steeper(curvature).force(p)]
        kept.append(point)
    kept.append(pieces[-1].steeper(curvature))
    needed = [StrictGreaterThan(a.c, 0, evaluate=False) for a in kept if not a.is_point]
    for n, a in enumerate(kept):
        if not a.is_point and n:
            needed.append(GreaterThan(switches[n - 1] - a.force(a.low), 0, evaluate=False))
        if not a.is_point and n < len(switches):
            needed.append(GreaterThan(a.force(a.high) - switches[n], 0, evaluate=False))
    return Envelope(tuple(kept), tuple(switches), tuple(_open(needed, positive)))


def _known(expr: Expr, positive: Sequence[Expr], *, strict: bool) -> bool:
    found = cancel(expr)
    if found == 0:
        return not strict
    return sign_given(found, positive) == 1 or (not strict and weak_sign_of(found) == 1)


def numbers(atoms: Sequence[Candidate], symbols: Sequence[Any]) -> Callable[..., list[tuple[float, ...]]]:
    """The candidates as functions of parameters."""
    parts = [(a.low, a.high, a.a, a.b, a.c) for a in atoms]
    calls = [[_bound(p, symbols) for p in row] for row in parts]
    return lambda *point: [tuple(float(call(*point)) for call in row) for row in calls]


def _bound(expr: Expr, symbols: Sequence[Any]) -> Callable[..., Any]:
    if expr in (oo, -oo):
        return lambda *_: np.inf if expr == oo else -np.inf
    return compiled(list(symbols), expr)
