"""States of a law with pairs by a central path: both members of each pair stay positive until their product vanishes.

Where a multiplier is negative the law of a norm is not monotone, and Newton's method on the pairs themselves may end
where no step leads on.  Between positive members it is monotone, with one state for each product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from symcavity.evaluate.constants import NEWTON, TINIEST

HALVINGS = 30  # of a step
LESSENED, ROUNDING = 1e-4, 1e-26  # the share of a step by which it has to lessen a square, and what rounding leaves
STAY = 0.99  # the share of the way to zero that a step may take a member
QUICK, SLOW, LONG = 0.05, 0.5, 0.9  # by how much the product falls, after a step of such a share and after others
WITH = 0.01  # the least product, by what is missed of the equations
PRODUCT, LEFT = 1e-14, 1e-8  # of the members, at which the path ends, and what is left there of the equations
SINGULAR = 1e-10  # of the largest factor of a linear system: what it leaves open


def along_path(code: Any, fields: np.ndarray, params: Any) -> np.ndarray:
    """The unknowns of a law near its states at all fields; not a number where the path is lost.

    Parameters
    ----------
    code : LawCode
    fields : array, shape (fields, points)
    params : sequence of float
    """
    pairs, total = len(code.law.pairs), fields.shape[1]
    members = {m for pair in code.law.pairs for m in pair}
    x = np.repeat(np.array([[1.0 if u in members else 0.0] for u in code.unknowns]), total, axis=1)
    out, todo = np.full_like(x, np.nan), np.arange(total)
    values, table = code.rows_at(x, fields, params)
    plain = len(values) - 2 * pairs
    both = np.maximum(values[plain:], 1.0)
    share = np.zeros(total)

    def after(share: np.ndarray, x: Any, step: Any, both: Any, moved: Any, at: Any, goal: Any) -> Any:
        there, members = x + share * step, both + share * moved
        rows = code.rows_at(there, at, params)
        return _missed(rows[0], members, plain, goal), (there, members, *rows)

    for _ in range(NEWTON):
        a, b = both[:pairs], both[pairs:]
        product = np.mean(a * b, axis=0)
        missed = np.max(np.abs(np.concatenate([values[:plain], values[plain:] - both])), axis=0)
        done = (product < PRODUCT) & (missed < LEFT)
        out[:, todo[done]] = x[:, done]
        kept = ~done & np.isfinite(table).all(axis=(1, 2)) & np.isfinite(values).all(axis=0)
        if not kept.any():
            break
        x, both, todo, share = x[:, kept], both[:, kept], todo[kept], share[kept]
        product, missed = product[kept], missed[kept]
        values, table, a, b = values[:, kept], table[kept], a[:, kept], b[:, kept]
        goal = np.maximum(np.where(share > LONG, QUICK, SLOW) * product, PRODUCT / 10)
        goal = np.maximum(goal, WITH * missed)  # the products are not to vanish before the rest does
        gap = values[plain:] - both
        side = np.concatenate([values[:plain], (a * b - goal + b * gap[:pairs] + a * gap[pairs:]) / (a + b)])
        wa, wb = (np.moveaxis(w / (a + b), -1, 0)[..., None] for w in (a, b))
        rows = np.concatenate(
            [table[:, :plain], wb * table[:, plain : plain + pairs] + wa * table[:, plain + pairs :]], axis=1
        )
        step = -solved(rows, side.T[..., None])[..., 0]
        moved = np.einsum("nku,nu->kn", table[:, plain:], step) + gap
        with np.errstate(all="ignore"):
            share = np.minimum(1.0, STAY / np.maximum(TINIEST, np.max(-moved / both, axis=0)))
        here = x, step.T, both, moved, fields[:, todo], goal
        share, _, _, (x, both, values, table) = halved(after, _missed(values, both, plain, goal), share, here)
    return out


def halved(
    move: Callable[..., tuple[np.ndarray, Any]], before: np.ndarray, share: np.ndarray, here: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Halve steps, each by itself, until all lessen a square.

    Parameters
    ----------
    move : callable
        The squares after such shares of the steps, and what else is there.
    before : array
        The squares before.
    share : array
        The shares with which to begin.
    here : sequence
        What the callable hears beside the shares.

    Returns
    -------
    tuple
        The shares, where a square is still not less, the squares, and what else is there.
    """
    for _ in range(HALVINGS):
        after, there = move(share, *here)
        worse = ~(after <= (1 - LESSENED * share) * before + ROUNDING)
        if not worse.any():
            break
        share = np.where(worse, share / 2, share)
    return share, worse, after, there


def _missed(values: np.ndarray, both: np.ndarray, plain: int, goal: np.ndarray) -> np.ndarray:
    """The square of what is missed, of equations, of what the members are, and of their products."""
    pairs = len(both) // 2
    apart = both[:pairs] * both[pairs:] - goal
    return np.square(np.concatenate([values[:plain], values[plain:] - both, apart])).sum(axis=0)


def solved(rows: np.ndarray, side: np.ndarray) -> np.ndarray:
    """The solutions of linear systems; the least one where several are, as of multipliers that share a corner."""
    out, open_ = np.full(side.shape, np.nan, dtype=np.result_type(rows, side)), np.ones(len(rows), dtype=bool)
    with suppress(np.linalg.LinAlgError):
        out = np.linalg.solve(rows, side)
        open_ = ~(_product(*(np.abs(m).max(axis=(1, 2)) for m in (rows, out, side))) < 1)
    if not open_.any():
        return out
    own = np.flatnonzero(open_ & np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(side).all(axis=(1, 2)))
    parts = np.linalg.svd(rows[own], compute_uv=False)
    plain = parts[:, -1] > SINGULAR * parts[:, 0]
    for some, inverse in ((own[plain], np.linalg.inv), (own[~plain], partial(np.linalg.pinv, rcond=SINGULAR))):
        out[some] = inverse(rows[some]) @ side[some]
    return out


def _product(rows: np.ndarray, found: np.ndarray, side: np.ndarray) -> np.ndarray:
    """How close to singular a system may be, as its solution is large: below one it is not."""
    with np.errstate(all="ignore"):
        return np.where(found == 0, 0.0, SINGULAR * rows * found / side)
