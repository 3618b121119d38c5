"""Dense quadratic programs, by an active set that starts from a guess."""

from __future__ import annotations

import numpy as np

from symcavity.errors import MissingDependency

INFINITE, ACTIVE, EQUAL = 1e30, 1, 5


def dense_solve(
    curvature: np.ndarray, slope: np.ndarray, matrix: np.ndarray, high: np.ndarray, low: np.ndarray, sense: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Minimise ``z'diag(curvature)z/2 + slope'z`` with ``low <= (z, matrix @ z) <= high``; None if infeasible.

    Parameters
    ----------
    curvature, slope, matrix, high, low : ndarray
        The program; limits beyond those of the rows are bounds on the first variables.
    sense : ndarray
        For each limit 0, or `ACTIVE` (a guess), or `EQUAL`.

    Returns
    -------
    tuple or None
        The variables, and the multipliers of the limits.

    Raises
    ------
    MissingDependency
        If the solver is not installed.
    ArithmeticError
        If it gave up.
    """
    try:
        import daqp
    except ImportError:
        raise MissingDependency(
            "The active-set solver daqp is not installed.",
            "daqp 0.7 or later",
            "pip install daqp",
        ) from None
    z, _, flag, info = daqp.solve(np.diag(curvature), slope, matrix, high, low, sense.astype(np.intc))
    if flag == -1:
        return None
    if flag != 1:
        raise ArithmeticError(f"The active-set method stopped with the flag {flag}.")
    return np.asarray(z), np.asarray(info["lam"])
