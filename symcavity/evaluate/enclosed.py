"""Integrals with proved error bounds: Gauss rules on panels, for all components of an integrand at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

from symcavity.errors import NotConverged
from symcavity.evaluate.watch import tick

ELLIPSES = (8.0, 4.0, 2.2)  # sums of their half axes, as multiples of the half panel
SAMPLES = 6  # of each piece, by which the size of an integral is told
DEEPEST = 48  # halvings of a piece
STEPS, FARTHEST = 8, 2.0  # how far a tail is followed, as a multiple of where it begins, and in how many steps


class Undecided(NotConverged):
    """Balls that are too wide to tell which case holds."""


def integrals(pieces: Sequence[Callable[[Any], list[Any]]], count: int, bits: int, library: Any) -> list[Any]:
    """Enclose the sums of the integrals over (0, 1) of some functions.

    Parameters
    ----------
    pieces : sequence of callable
        Each takes a ball, real or complex, to ``count`` balls, which are not finite where it is not analytic.
    count : int
    bits : int
        What is sought, relative to the integrals of the moduli; less where the integrands themselves are less sharp.
    library : module
        python-flint.

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
    arb = library.arb
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
        for part in _halved(piece, goals, bits, library):
            total = [a + b for a, b in zip(total, part, strict=True)]
    return total


def _tried(piece: Callable[[Any], list[Any]], t: Any) -> list[Any] | None:
    """What an integrand is on a ball; None where that is not finite."""
    tick()
    try:
        found = piece(t)
    except (Undecided, ZeroDivisionError):
        return None
    return found if all(v.is_finite() for v in found) else None


def _halved(piece: Callable[[Any], list[Any]], goals: list[Any], bits: int, library: Any) -> list[list[Any]]:
    """The integrals over panels, which are halved until a rule is good enough on each."""
    arb, acb = library.arb, library.acb
    most = bits // 2 + 10
    out = []
    stack = [(arb(0), arb(1), 0)]
    while stack:
        low, high, depth = stack.pop()
        middle, half = (low + high) / 2, (high - low) / 2
        for rho in ELLIPSES:
            long, short = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
            bounds = _tried(piece, acb(arb(middle, long.upper()), arb(0, short.upper())))
            if bounds is None:
                continue
            bounds = [b.abs_upper() * half for b in bounds]
            if all(2 * b < g for b, g in zip(bounds, goals, strict=True)):
                out.append([around(library, 2 * b, v) for b, v in zip(bounds, piece(middle), strict=True)])
                break
            factor = arb(64) / 15 / (1 - arb(rho) ** -2)
            gains = [float((factor * b / g).log().upper()) for b, g in zip(bounds, goals, strict=True) if b > 0]
            nodes = max([2, *(int(gain / (2 * float(arb(rho).log()))) + 2 for gain in gains)])
            if nodes <= most:
                out.append(_ruled(piece, middle, half, nodes, library))
                errors = [b * factor * arb(rho) ** (-2 * nodes) for b in bounds]
                out.append([around(library, e, v) for e, v in zip(errors, out[-1], strict=True)])
                break
        else:
            if depth == DEEPEST:
                raise Undecided("An integral is not enclosed: its integrand is not analytic.", None)
            stack += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return out


def _ruled(piece: Callable[[Any], list[Any]], middle: Any, half: Any, nodes: int, library: Any) -> list[Any]:
    found = []
    for node, weight in _rule(nodes + nodes % 2, library.ctx.prec):
        values = _tried(piece, middle + half * node)
        if values is None:
            raise Undecided("An integrand is not finite.", None)
        found.append([v * (weight * half) for v in values])
    return [sum(column[1:], column[0]) for column in zip(*found, strict=True)]


@lru_cache(maxsize=256)
def _rule(count: int, prec: int) -> list[tuple[Any, Any]]:
    """The nodes and weights of Gauss and Legendre, as balls of the precision that is set."""
    from flint import arb, ctx

    with ctx.workprec(prec):
        return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]


def around(library: Any, radius: Any, like: Any) -> Any:
    """A ball around zero, of the kind of another one."""
    ball = library.arb(0, radius.upper())
    return library.acb(ball, ball) if isinstance(like, library.acb) else ball


def tail(piece: Callable[[Any], list[Any]], count: int, ratio: float, library: Any) -> list[Any]:
    """Bound the integrals of a function of u from 1 on to infinity, or to zero for a ratio below one.

    On intervals that grow, or shrink, by a ratio it is enclosed; beyond the last, which lies FARTHEST times as far, the
    intervals are taken to go on falling as the last two do.

    Returns
    -------
    list of real balls
        They are not finite where nothing falls.
    """
    arb = library.arb
    bounds = []
    for n in range(STEPS):
        near, far = arb(ratio) ** n, arb(ratio) ** (n + 1)
        found = _tried(piece, near.union(far))
        bounds.append([abs(v).upper() * abs(far - near) for v in found] if found else [arb("inf")] * count)
    out = []
    for k in range(count):
        *_, before, last = (b[k] for b in bounds)
        rest = arb(0) if last == 0 else last * last / (before - last) if last < before else arb("inf")
        out.append((sum((b[k] for b in bounds), arb(0)) + rest).upper())
    return out


__all__ = ["FARTHEST", "STEPS", "Undecided", "around", "integrals", "tail"]
