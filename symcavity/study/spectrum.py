"""Your own data in the form that declarations take: variances, a teacher, noise, class means."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from symcavity.errors import ValuesError

SMALLEST = 1e-10  # of the largest variance: directions below it hold nothing


@dataclass(frozen=True)
class Spectrum:
    """The directions of a data matrix, as arrays over features.

    The fields of a declaration with ``Coupling("x", variance=l[i]/N)`` sum over the ``N`` directions in which the data
    vary; there ``x[mu, i]`` is a centered datum's coordinate along one of them.

    Attributes
    ----------
    variances : array
        ``l[i]``: N times the variance along each direction, the largest first; of labels with two values, within the
        classes.
    teacher : array or None
        ``t[i]``: the coefficients of the best linear prediction of the labels (regression).
    noise : float or None
        What is left of the labels: the variance of the residuals, per degree of freedom.
    means : array or None
        ``m[i]`` of ``Coupling("x", mean=y[mu]*m[i]/N, ...)``: N times half the difference of the class means.
    weights : dict or None
        The shares of the two classes, a law of ``y``.
    center : array
        What was subtracted from the data: their mean, or the midpoint between the classes.
    directions : array
        The directions, one a row.
    """

    variances: np.ndarray
    teacher: np.ndarray | None
    noise: float | None
    means: np.ndarray | None
    weights: dict[int, float] | None
    centre: np.ndarray
    directions: np.ndarray

    @property
    def N(self) -> int:
        """The number of directions in which the data vary."""
        return len(self.variances)

    def coordinates(self, X: Any) -> np.ndarray:
        """The coordinates of data along the directions."""
        return (np.asarray(X, dtype=float) - self.centre) @ self.directions.T

    def __str__(self) -> str:
        share = float(self.variances.sum() ** 2 / (self.variances**2).sum())
        head = f"{self.N} directions, {share:.3g} of them in effect (participation ratio)"
        if self.means is not None and self.weights is not None:
            signal = float(np.sqrt((self.means**2 / self.variances).mean()))
            return f"{head}; two classes, {self.weights[1]:.3g} positive, half distance {signal:.3g} deviations"
        if self.teacher is not None:
            signal = float((self.variances * self.teacher**2).mean())
            head += f"; linear prediction of variance {signal:.4g}, noise of variance {self.noise:.4g}"
        return head

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


def spectrum(X: Any, y: Any) -> Spectrum:
    """Turn a data matrix and its labels into the arrays that declarations take.

    Parameters
    ----------
    X : array, (data, features)
    y : array, (data,)
        Numbers to be predicted; or the labels 1 and -1 of two classes.

    Returns
    -------
    Spectrum
        ``variances``, and ``teacher`` with ``noise``, or ``means`` with ``weights``.

    Raises
    ------
    ValuesError
        For arrays of other shapes, with missing entries, with fewer data than directions, or with one class.

    Notes
    -----
    Everything is estimated from the data as they are, as if they were the population: with ``n`` data the errors of the
    variances, of the teacher and of the means are of relative order ``sqrt(N/n)``, and so are those of all results;
    take many more data than directions.  The theory then assumes that data of these moments are Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from symcavity import spectrum
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> found = spectrum(X, X @ [1, 0, 0, 0] + rng.normal(size=500))
    >>> found.N
    4
    """
    X, y = _read(X, y)
    two = set(np.unique(y)) <= {-1.0, 1.0}
    n, dimension = X.shape
    half = np.zeros(dimension)
    if two:
        if len(np.unique(y)) < 2:
            raise ValuesError("All labels are of one class.", "labels 1 and -1, both of them")
        sides = [X[y == side].mean(axis=0) for side in (1, -1)]
        centre, half = (sides[0] + sides[1]) / 2, (sides[0] - sides[1]) / 2
        Z = X - centre - y[:, None] * half
    else:
        centre = X.mean(axis=0)
        Z = X - centre
    lost = 2 if two else 1  # degrees of freedom of the means
    _, sizes, rows = np.linalg.svd(Z, full_matrices=False)
    keep = sizes**2 > SMALLEST * (sizes[0] ** 2 if len(sizes) else 0)
    count = int(keep.sum())
    if count == 0 or n <= count + lost:
        raise ValuesError(
            f"There are {n} data, which vary in {count} directions.", "more data than directions, better many more"
        )
    rows, variances = rows[keep], sizes[keep] ** 2 / (n - lost)
    if two:
        means = count * rows @ half
        share = float(np.mean(y > 0))
        return Spectrum(count * variances, None, None, means, {1: share, -1: 1 - share}, centre, rows)
    centred = y - y.mean()
    teacher = (Z @ rows.T).T @ centred / (variances * (n - lost))
    residuals = centred - Z @ rows.T @ teacher
    noise = float(residuals @ residuals / (n - lost - count))
    return Spectrum(count * variances, teacher, noise, None, None, centre, rows)


def _read(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The arrays, checked."""
    try:
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ValuesError("The data are not arrays of numbers.", "X of (data, features), y of (data,)") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
        raise ValuesError(f"The data have the shapes {X.shape} and {y.shape}.", "X of (data, features), y of (data,)")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValuesError("Some entries of the data are not numbers.", "complete data: drop or fill what is missing")
    return X, y
