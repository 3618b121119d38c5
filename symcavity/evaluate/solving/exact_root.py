"""A root in double, polished to any number of digits by Newton steps with the Jacobian in double."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import context, mp
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.cancelling import NOTHING
from symcavity.evaluate.averages.digits import ExactPass, panel_ends
from symcavity.evaluate.closed_map import ClosedMap, Root
from symcavity.evaluate.constants import BITS, NEWTON
from symcavity.evaluate.watch import tick

GUARD = 8  # digits beyond the requested ones
GAIN = 11  # digits that a step with a Jacobian in double is worth
FIRST = 14  # digits of the root in double


def exact_root(
    closed: ClosedMap,
    exact: ExactPass,
    env: Mapping[Any, Any],
    root: Root,
    dps: int,
    inverse: np.ndarray | None = None,
) -> dict[Symbol, Any]:
    """Return all unknowns to a number of digits.

    Parameters
    ----------
    closed : ClosedMap
    exact : ExactPass
        The right-hand sides of its equations.
    env : mapping
        Exact values of the parameters, rounded to more digits than requested; and the laws.
    root : Root
        The root in double.
    dps : int
    inverse : array, optional
        What takes gaps to steps, where an unknown stays and all others meet one equation more than they are.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision.

    Notes
    -----
    The precision grows along with the digits that are known, beyond those that cancel at the root.  At the end one
    more step is made on rules with more nodes: it is the error of the rules and of the root together, and has to be
    below the precision.
    """
    guide = panel_ends(root.averages, root.grids)
    inverse = _inverse(root) if inverse is None else inverse
    wide = context(int((dps + 3 * GUARD) * BITS))
    signs = closed.signs.tolist()
    x = [wide.mpf(root.point[s] or sign * NOTHING) for s, sign in zip(closed.unknowns, signs, strict=True)]
    known, finer, extra = FIRST, 0, closed.lost(root.point, env)
    wide, most = context(wide.prec + int(extra * BITS)), extra + 12 * GUARD
    last = wide.inf
    for _ in range(NEWTON):
        tick(f"the digits of a root, {known} of {dps}")
        digits = min(known + GAIN, dps) + GUARD + extra
        step = _step(closed, exact, env, x, inverse, guide, digits, finer, wide)
        x = [v - d for v, d in zip(x, step, strict=True)]
        x = [s * NOTHING if s and abs(v) < NOTHING else v for v, s in zip(x, signs, strict=True)]  # it has faded
        size = _size(x, step, signs, known, dps, wide)
        if size < wide.mpf(10) ** (-dps - 2) and digits >= dps + GUARD:
            if finer or not exact.is_ruled(env):
                return dict(zip(closed.unknowns, _without_rounding(closed, x, dps, wide), strict=True))
            finer = 1  # confirmed, or corrected, by rules with more nodes
            continue
        if size > last / 4 and known >= dps - GAIN:
            extra, finer = extra + GUARD, finer + 1  # it is rounding, or the rules, that the steps see
            wide = context(wide.prec + int(GUARD * BITS))
            if extra > most:
                break
        last = size
        known = max(known, min(dps, int(-mp.log10(size)) + GAIN if size else dps))
    raise NotConverged(
        f"The root was not polished to {dps} digits: the last step was {mp.nstr(size, 3)}.",
        dict(zip(closed.unknowns, x, strict=True)),
        float(size),
    )


def _size(x: Sequence[Any], step: Sequence[Any], signs: Sequence[float], known: int, dps: int, wide: Any) -> Any:
    """The largest share by which a step has moved an unknown, at so many digits that are known."""
    faint = wide.mpf(10) ** -known  # what is smaller than that, and may have either sign, is zero so far
    moves = zip(x, step, signs, strict=True)
    relative = (d if not s and abs(v) < faint else d / (abs(v) + wide.mpf(10) ** -dps) for v, d, s in moves)
    return max(map(abs, relative), default=wide.zero)


def _inverse(root: Root) -> np.ndarray:
    try:
        return np.linalg.inv(root.slope)
    except np.linalg.LinAlgError:
        raise NotConverged("The slope of the equations vanishes at the root.", dict(root.point), float("nan")) from None


def _step(
    closed: ClosedMap,
    exact: ExactPass,
    env: Mapping[Any, Any],
    x: Sequence[Any],
    inverse: np.ndarray,
    guide: Mapping[Any, np.ndarray],
    digits: int,
    finer: int,
    wide: Any,
) -> list[Any]:
    """Newton's step with the Jacobian in double; the residual is scaled so that it is a double, too."""
    missed = gaps(closed, exact, env, x, guide, digits, finer, wide)
    scale = max(map(abs, missed), default=wide.zero)
    if not scale:
        return [wide.zero] * len(x)
    return [scale * wide.mpf(v) for v in (inverse @ np.array([float(g / scale) for g in missed])).tolist()]


def gaps(
    closed: ClosedMap,
    exact: ExactPass,
    env: Mapping[Any, Any],
    x: Sequence[Any],
    guide: Mapping[Any, np.ndarray],
    digits: int,
    finer: int,
    wide: Any,
) -> list[Any]:
    """How far a point is from solving the equations.

    Raises
    ------
    NotConverged
        If they are not defined there.
    """
    point = dict(zip(closed.unknowns, x, strict=True))
    values = [wide.convert(v) for v in exact.at({**env, **point}, int(digits * BITS) + 4, guide, finer)]
    found = [point[s] - v for s, v in zip(closed.mapped, values, strict=False)]
    found += [-v for v in values[len(closed.mapped) :]]
    if not all(hasattr(g, "_mpf_") and wide.isfinite(g) for g in found):
        raise NotConverged("The equations are not defined at the root.", point, float("nan"))
    return found


def _without_rounding(closed: ClosedMap, x: Sequence[Any], dps: int, wide: Any) -> list[Any]:
    """What is zero to the precision is zero: an unknown of either sign, and a response that has faded."""
    small = wide.mpf(10) ** -dps
    return [
        v if abs(v) > (NOTHING if s else small) else wide.zero for v, s in zip(x, closed.signs, strict=True)
    ]
