"""Values computed at two precisions: what the rounding changes shows how many digits cancellation costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcavity.algebra.precision import is_mpf, mp
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.evaluate.undefined import where_defined

CHECK = 6  # digits by which a value is computed less precisely, to see what rounding does to it


class Twice:
    """A value computed at two precisions."""

    def __init__(self, value: Any, other: Any, dps: int, guard: int) -> None:
        self.value, self.dps, self.guard = value, dps, guard
        if not (mp.isfinite(value) and mp.isfinite(other)):
            self.sound = bool(value == other or mp.isnan(value))
        else:
            self.sound = abs(value - other) <= mp.mpf(10) ** (-dps) / 4 * abs(value)

    def limit(self, finer: Twice) -> Any | None:
        """Zero or infinity, if that is where the value goes as the precision grows."""
        if not (mp.isfinite(self.value) and mp.isfinite(finer.value)):
            return finer.value
        if self.value == 0 or finer.value == 0:
            return mp.zero if abs(self.value) + abs(finer.value) < mp.mpf(10) ** -finer.dps else None
        step = mp.mpf(10) ** ((finer.guard - self.guard) // 2)
        if abs(finer.value) * step < abs(self.value):
            return mp.zero
        if abs(finer.value) > step * abs(self.value):
            return mp.sign(finer.value) * mp.inf
        return None


def evaluate_twice(call: Callable[[], list[Any]], dps: int, guard: int, once: bool = False) -> list[Twice]:
    """Evaluate at full working precision, and with everything rounded to some digits less.

    What the rounding changes shows how many digits cancellation costs.

    Parameters
    ----------
    call : callable
        Computes the values at mpmath's current precision.
    dps, guard : int
        The requested digits, and the number of guard digits.
    once : bool
        Whether to trust the first evaluation (averages by quadrature mind their own precision).
    """
    with mp.workdps(dps + guard):
        first = call()
    if once:
        return [Twice(a, a, dps, guard) for a in first]
    with mp.workdps(dps + guard - CHECK):
        second = call()
    return [Twice(a, b, dps, guard) for a, b in zip(first, second, strict=True)]


def limited(call: Compiled, env: dict[Any, Any]) -> Any:
    """Evaluate; at a pole, return the infinity that nearby values show (or nan)."""
    try:
        return mp.mpf(call(env))
    except ZeroDivisionError:
        pass
    except TypeError:  # the root of a negative number: no real value
        return mp.nan
    shift = mp.mpf(10) ** (-mp.dps // 2)
    near = {k: (v + shift if is_mpf(v) and v == 0 else v) for k, v in env.items()}
    value = where_defined(lambda: mp.mpf(call(near)), also=(TypeError, ValueError))
    if value is not None and abs(value) * shift ** mp.mpf("0.3") > 1:
        return mp.sign(value) * mp.inf
    return mp.nan
