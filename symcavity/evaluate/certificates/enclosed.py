"""Integrals with proved error bounds: Gauss rules on panels, for all components of an integrand at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from flint import acb, arb, ctx

from symcavity.algebra.legendre import legendre_balls
from symcavity.errors import NotConverged
from symcavity.evaluate.watch import tick

ELLIPSES = (8.0, 4.0, 2.2)  # sums of their half axes, as multiples of the half panel
SAMPLES = 6  # of each piece, from which the size of an integral is estimated
DEEPEST = 48  # halvings of a piece
COVERED = 2  # quarterings of the rectangle around an ellipse
STEPS, FARTHEST = 8, 2.0  # how far a tail is followed, as a multiple of where it begins, and in how many steps
SHORTEST = 16  # parts of a step


Piece = Callable[[Any], list[Any]]


class Undecided(NotConverged):
    """Balls that are too wide to tell which case holds."""


def integrals(pieces: Sequence[Piece], count: int, bits: int) -> list[Any]:
    """Enclose the sums of the integrals over (0, 1) of some functions.

    Parameters
    ----------
    pieces : sequence of callable
        Each takes a ball, real or complex, to ``count`` balls, which are not finite where it is not analytic.
    count : int
    bits : int
        What is sought, relative to the integrals of the moduli; less where the integrands themselves are less sharp.

    Returns
    -------
    list of balls

    Raises
    ------
    Undecided
        If a piece is not analytic, or too wide a ball.

    Notes
    -----
    On a panel of half width r, a rule of n > 1 nodes errs by at most ``(64/15) r M rho**(-2n)/(1 - rho**-2)``, where M
    bounds the integrand on the ellipse of Bernstein with half axes ``r (rho + 1/rho)/2`` and ``r (rho - 1/rho)/2``: its
    Chebyshev coefficients are below ``2 M/rho**k``, and the rule is wrong on even ones from 2n on, by at most 32/15.
    """
    size, blur = [arb(0)] * count, [arb(0)] * count
    for piece in pieces:
        for k in range(SAMPLES):
            found = _tried(piece, (arb(k) + arb(0.5)) / SAMPLES)
            if found is None:
                raise Undecided("An integrand is not finite.", None, float("nan"), "more digits")
            for n, value in enumerate(found):
                size[n] += abs(value).mid() / SAMPLES
                blur[n] += value.rad() / SAMPLES
    fine = arb(2) ** -bits
    least = reduce(arb.max, size, fine**2) * fine
    goals = [(s * fine).max(least).max(r / 8).mid() for s, r in zip(size, blur, strict=True)]
    total: list[Any] = [arb(0)] * count
    for piece in pieces:
        for part in _halved(piece, goals, bits):
            total = [a + b for a, b in zip(total, part, strict=True)]
    return total


def _tried(piece: Piece, t: Any) -> list[Any] | None:
    """What an integrand is on a ball; None where that is not finite."""
    tick()
    try:
        found = piece(t)
    except (Undecided, ZeroDivisionError):
        return None
    return found if all(v.is_finite() for v in found) else None


def _halved(piece: Piece, goals: list[Any], bits: int) -> list[list[Any]]:
    """The integrals over panels, which are halved until a rule is good enough on each."""
    most = bits // 2 + 10
    out: list[list[Any]] = []
    stack = [(arb(0), arb(1), 0)]
    while stack:
        low, high, depth = stack.pop()
        middle, half = (low + high) / 2, (high - low) / 2
        for rho in ELLIPSES:
            factor = half * 64 / 15 / (1 - arb(rho) ** -2)
            limits = [g * arb(rho) ** (2 * most - 2) / factor for g in goals]
            bounds = _bounded(piece, middle, half, rho, limits)
            if bounds is None:
                continue
            gains = [float((factor * b / g).log().upper()) for b, g in zip(bounds, goals, strict=True) if b > 0]
            nodes = max([2, *(int(gain / (2 * float(arb(rho).log()))) + 2 for gain in gains)])
            out.append(_ruled(piece, middle, half, nodes))
            errors = [b * factor * arb(rho) ** (-2 * nodes) for b in bounds]
            out.append([arb(0, e.upper()) for e in errors])
            break
        else:
            if depth == DEEPEST:
                raise Undecided("An integral is not enclosed: its integrand is not analytic.", None)
            stack += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return out


def _bounded(piece: Piece, middle: Any, half: Any, rho: float, limits: list[Any]) -> list[Any] | None:
    """Bounds on an integrand on an ellipse, from rectangles that cover it; None where they exceed limits."""
    axes = (1 + 1e-9) * (rho + 1 / rho) / 2, (1 + 1e-9) * (rho - 1 / rho) / 2
    out, boxes = [], [(-axes[0], axes[0], -axes[1], axes[1], 0)]
    while boxes:
        left, right, low, high, depth = boxes.pop()
        nearest = (max(left, -right, 0) / axes[0]) ** 2 + (max(low, -high, 0) / axes[1]) ** 2
        if nearest > 1 + 1e-9:
            continue
        found = _tried(piece, acb(middle + half * arb(left).union(arb(right)), half * arb(low).union(arb(high))))
        sizes = [abs(v).upper() for v in found or ()]
        if found and all(size <= limit for size, limit in zip(sizes, limits, strict=True)):
            out.append(sizes)
        elif depth == COVERED:
            return None
        else:
            u, v = (left + right) / 2, (low + high) / 2
            boxes += [(*a, *b, depth + 1) for a in ((left, u), (u, right)) for b in ((low, v), (v, high))]
    return [reduce(arb.max, column) for column in zip(*out, strict=True)]


def _ruled(piece: Piece, middle: Any, half: Any, nodes: int) -> list[Any]:
    found = []
    for node, weight in legendre_balls(nodes + nodes % 2, ctx.prec):
        values = _tried(piece, middle + half * node)
        if values is None:
            raise Undecided("An integrand is not finite.", None)
        found.append([v * (weight * half) for v in values])
    return [sum(column[1:], column[0]) for column in zip(*found, strict=True)]


def tail(piece: Piece, count: int, ratio: float) -> list[Any]:
    """Bound the integrals of a function of u from 1 on to infinity, or to zero for a ratio below one.

    On intervals that grow, or shrink, by a ratio it is enclosed; beyond the last, which lies FARTHEST times as far, the
    intervals are taken to go on falling as the last two do.

    Returns
    -------
    list of real balls
        They are not finite where nothing falls.
    """
    bounds = []
    for n in range(STEPS):
        spans, size = [(n, n + 1, 1)], [arb(0)] * count
        while spans:
            low, high, parts = spans.pop()
            near, far = (arb(ratio) ** (arb(k) / parts) for k in (low, high))
            found = _tried(piece, near.union(far))
            if found:
                size = [a + abs(v).upper() * abs(far - near) for a, v in zip(size, found, strict=True)]
            elif parts < SHORTEST:
                spans += [(2 * low, 2 * low + 1, 2 * parts), (2 * low + 1, 2 * high, 2 * parts)]
            else:
                size = [arb("inf")] * count
        bounds.append(size)
    out = []
    for k in range(count):
        *_, before, last = (b[k] for b in bounds)
        rest = arb(0) if last == 0 else last * last / (before - last) if last < before else arb("inf")
        out.append((sum((b[k] for b in bounds), arb(0)) + rest).upper())
    return out
