"""Arguments of functions of parameters: arrays of doubles, or exact values one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Symbol, lambdify

from symcavity.algebra.precision import digits_of_user, given_out, is_mpf, mp
from symcavity.errors import FlatMinimum, Infeasible, NotConverged, SeveralSolutions, SymcavityError, ValuesError
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.numbers import check_sign, exact_value
from symcavity.model.ranges import check_ranges

NO_SOLUTION = (Infeasible, FlatMinimum, NotConverged)


def check_count(arguments: Sequence[Symbol], points: Sequence[Any]) -> None:
    """Refuse too few arguments, and too many."""
    if len(points) != len(arguments):
        raise ValuesError(
            f"The function of {', '.join(map(str, arguments))} got {len(points)} arguments.",
            "as many numbers or arrays as arguments",
        )


def double_arrays(
    arguments: Sequence[Symbol], points: Sequence[Any], errors: str, ranges: Sequence[Any] = ()
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return the points as arrays of doubles, and where they are admissible, in given ranges (None: everywhere)."""
    arrays = []
    valid: np.ndarray | None = None
    for symbol, value in zip(arguments, points, strict=True):
        array = _as_double(symbol, value)
        good = None
        if array.size:
            low, high = array.min(), array.max()  # nan if there is one
            if not (np.isfinite(low) and np.isfinite(high)):
                good = np.isfinite(array)
                if errors == "raise":
                    raise ValuesError(
                        f"A value of {symbol} is {array[~good].flat[0]}.", "finite numbers", "errors='nan'"
                    )
                array = np.where(good, array, 0.0)
                low, high = array.min(), array.max()
            if (symbol.is_nonnegative and low < 0) or (symbol.is_nonpositive and high > 0):
                if errors == "raise":
                    check_sign(symbol, float(low if symbol.is_nonnegative else high))
                inside = array >= 0 if symbol.is_nonnegative else array <= 0
                good = inside if good is None else good & inside
        if good is not None:
            array = np.where(good, array, 1.0 if not symbol.is_nonpositive else -1.0)
            valid = good if valid is None else valid & good
        arrays.append(array)
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ValuesError(
            f"The arguments have the shapes {shapes}.", "shapes that broadcast together"
        ) from None
    for relation in ranges:
        good = np.broadcast_to(lambdify(arguments, relation, "numpy", dummify=True)(*arrays), shape)
        if not good.all():
            if errors == "raise":
                place = np.unravel_index(int(np.argmin(good)), shape)
                point = [float(np.broadcast_to(a, shape)[place]) for a in arrays]
                check_ranges([relation], dict(zip(arguments, point, strict=True)))
            valid = good if valid is None else valid & good
    return arrays, valid


def _as_double(symbol: Symbol, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "fiu":
        return array.astype(float, copy=False)
    if array.dtype.kind in "OU":
        return np.reshape([_float(v, str(symbol)) for v in array.reshape(-1)], array.shape)
    raise ValuesError(f"The values of {symbol} are of type {array.dtype}.", "real numbers")


def _float(value: Any, name: str) -> float:
    return float("nan") if value is None else float(exact_value(value, name, 15))


def each(
    arguments: Sequence[Symbol],
    points: Sequence[Any],
    errors: str,
    one: Callable[[Sequence[Any]], Any],
    ranges: Sequence[Any] = (),
) -> Any:
    """Apply to each of the broadcast points, in given ranges, to as many digits as the user's mpmath has."""
    dps = digits_of_user()
    columns = []
    for symbol, value in zip(arguments, points, strict=True):
        array = np.asarray(value, dtype=object)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and dps > IN_DOUBLE:
            exact_value(float(value.flat[0]) if value.size else 0.5, str(symbol), dps)  # refuses
        read = [_read(v, symbol, dps, errors) for v in array.reshape(-1)]
        flat = np.empty(len(read), dtype=object)
        flat[:] = read
        columns.append(flat.reshape(array.shape))
    try:
        grid = np.broadcast_arrays(*columns)
    except ValueError:
        shapes = ", ".join(str(c.shape) for c in columns)
        raise ValuesError(
            f"The arguments have the shapes {shapes}.", "shapes that broadcast together"
        ) from None
    out = np.empty(grid[0].shape, dtype=object)
    with mp.workdps(dps):
        for index in np.ndindex(out.shape):
            point = [column[index] for column in grid]
            inside = all(v is not None for v in point) and _is_inside(ranges, arguments, point, errors)
            try:
                out[index] = given_out(+mp.convert(one(point)) if inside else mp.nan)
            except NO_SOLUTION as problem:
                if errors == "raise" or isinstance(problem, SeveralSolutions):
                    raise
                out[index] = given_out(mp.nan)
    return out if out.shape else out[()]


def _read(value: Any, symbol: Symbol, dps: int, errors: str) -> Any:
    """One exact value; None where it is not admissible and errors become nan."""
    try:
        exact = value if is_mpf(value) and mp.isfinite(value) else exact_value(value, str(symbol), dps)
        check_sign(symbol, exact)
    except SymcavityError:
        if errors == "raise" or (isinstance(value, float) and np.isfinite(value) and dps > IN_DOUBLE):
            raise
        return None
    return exact


def _is_inside(ranges: Sequence[Any], arguments: Sequence[Symbol], point: Sequence[Any], errors: str) -> bool:
    """Whether a point is in range; where errors do not become nan, it has to be."""
    try:
        check_ranges(ranges, {s: float(v) for s, v in zip(arguments, point, strict=True)})
    except ValuesError:
        if errors == "raise":
            raise
        return False
    return True
