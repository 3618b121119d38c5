"""A factored matrix that tells what is singular from what is rounding."""

from __future__ import annotations

import numpy as np

_SUSPICIOUS = 1e-12  # of a reciprocal condition number: the matrix may be singular


def rounding(values: np.ndarray, size: int) -> tuple[int, float]:
    """Return the rank that singular values say, and the relative error of the vectors of the null space.

    Rounding changes each of them by less than the largest one, times the size of the matrix, times the spacing of
    numbers; it turns the null space by that over the smallest one that does not vanish.

    Parameters
    ----------
    values : ndarray
        All singular values, falling.
    size : int
        The larger number of rows and columns.
    """
    error = size * np.finfo(float).eps * float(values[0])
    rank = int(np.count_nonzero(values > error))
    return rank, error / float(values[rank - 1]) if rank else 0.0


class Factor:
    """A dense matrix, factorized: a function of right-hand sides.

    Parameters
    ----------
    matrix : ndarray
        The matrix.
    flat : bool
        Whether a singular matrix is accepted: then the shortest solution is returned, which is one if there
        is any.

    Attributes
    ----------
    null : ndarray
        A basis of the null space, in columns; empty where it was not looked for.
    blur : float
        The relative error of its entries.
    """

    def __init__(self, matrix: np.ndarray, flat: bool = False) -> None:
        from scipy.linalg.lapack import dgecon, dgetrf

        self.null, self.blur, self._inverse = np.zeros((len(matrix), 0)), 0.0, None
        if not matrix.size:
            return
        if not np.all(np.isfinite(matrix)):
            raise np.linalg.LinAlgError("The linearized equations are not finite.")
        self._lu, self._pivots, singular = dgetrf(matrix, overwrite_a=not flat)
        if flat and (singular or dgecon(self._lu, np.linalg.norm(matrix, 1))[0] < _SUSPICIOUS):
            self._measure(matrix)
            singular = singular and not self.null.size
        if singular:
            raise np.linalg.LinAlgError("The linearized equations are singular.")

    def _measure(self, matrix: np.ndarray) -> None:
        """Find the null space, in units in which rows and columns are of order one."""
        rows, columns = np.ones(len(matrix)), np.ones(len(matrix))
        for _ in range(2):
            scaled = np.abs(matrix) * rows[:, None] * columns
            rows = rows / np.where((top := scaled.max(axis=1)) > 0, np.sqrt(top), 1.0)
            columns = columns / np.where((top := scaled.max(axis=0)) > 0, np.sqrt(top), 1.0)
        u, s, vt = np.linalg.svd(matrix * rows[:, None] * columns)
        rank, self.blur = rounding(s, len(s))
        if rank == len(s):
            return
        self.null = columns[:, None] * vt[rank:].T
        self._inverse = (columns[:, None] * vt[:rank].T / s[:rank]) @ (u[:, :rank].T * rows)

    def __call__(self, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides, one a column."""
        from scipy.linalg.lapack import dgetrs

        if not right.size or not len(self.null):
            return right
        if self._inverse is not None:
            return self._inverse @ right
        return dgetrs(self._lu, self._pivots, right)[0]
