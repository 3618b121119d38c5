"""Estimates of observables from samples: mean, standard error, and their extrapolation in 1/N."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.finite.tables import with_error

_UNDERFLOW = 1e-290


@dataclass(frozen=True)
class Estimate:
    """An observable over the feasible instances of a simulation.

    Attributes
    ----------
    samples : ndarray
        Its value in each instance.
    seeds : tuple of int
        The seeds of those instances.
    name : str
        The observable, as written.
    infeasible : int
        The number of instances that have no value because they have no solution.
    flat : int
        The number of instances that have none because it differs from one minimizer to another.
    failed : int
        The number of instances that have none because no solution was found.
    sites : int
        The number of sites of the smaller side: what a fraction of sites can resolve.
    unit : float
        The unit of the observable, as large as the data are.
    """

    samples: np.ndarray
    seeds: tuple[int, ...]
    name: str = ""
    infeasible: int = 0
    sites: int = 0
    flat: int = 0
    failed: int = 0
    unit: float = 1.0

    @property
    def mean(self) -> float:
        """The mean over the instances."""
        return float(np.mean(self.samples))

    @property
    def stderr(self) -> float:
        """The standard error of the mean; nan for one instance."""
        if len(self.samples) < 2:
            return float("nan")
        return float(np.std(self.samples, ddof=1) / np.sqrt(len(self.samples)))

    @property
    def resolution(self) -> float:
        """One site in all instances, in units of the data: no average that never varied is known better than this."""
        return self.unit / (self.sites * len(self.samples)) if self.sites else 0.0

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error."""
        return float(max(len(self.samples) - 1, 0))

    def z(self, theory: float) -> float:
        """Return the distance from a theoretical value in standard errors (at least the resolution).

        For few instances it is the normal quantile of Student's t.
        """
        return _distance(self, theory, self.resolution)

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        left_out = {"infeasible": self.infeasible, "without a unique value": self.flat, "not solved": self.failed}
        note = "".join(f", {count} {what}" for what, count in left_out.items() if count)
        return f"{with_error(self.mean, self.stderr)} ({len(self.samples)} instances{note})"

    __repr__ = __str__


def small_term(*, root: bool) -> str:
    """What corrections at finite N are in proportion to."""
    return "1/sqrt(N)" if root else "1/N"


@dataclass(frozen=True)
class Extrapolation:
    """An observable at several sizes, and its limit by a weighted straight line in 1/N.

    Attributes
    ----------
    raw : dict
        The estimate at each number of features.
    root : bool
        Whether the line is one in 1/sqrt(N), as where couplings have a mean of this order.
    """

    raw: dict[int, Estimate]
    root: bool = False

    def _fit(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (limit, slope), their covariance, and how the limit weighs the errors of the sizes."""
        x = np.array([n ** (-0.5 if self.root else -1.0) for n in self.raw])
        y = np.array([e.mean for e in self.raw.values()])
        error = np.array([e.stderr for e in self.raw.values()])
        known = error[np.isfinite(error) & (error > 0)]
        error = np.where(np.isfinite(error) & (error > 0), error, np.min(known, initial=1.0))
        error = np.maximum(error, 1e-6 * np.max(error))  # one size that is known to rounding leaves the line defined
        design = np.stack([np.ones_like(x), x], axis=1) / error[:, None]
        q, r = np.linalg.qr(design)
        inverse = np.linalg.inv(r)
        return inverse @ (q.T @ (y / error)), inverse @ inverse.T, inverse[0] @ q.T

    @property
    def mean(self) -> float:
        """The limit of large N."""
        return float(self._fit()[0][0])

    @property
    def stderr(self) -> float:
        """The standard error of the limit."""
        return float(np.sqrt(self._fit()[1][0, 0]))

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error, where every size has its own (Welch and Satterthwaite)."""
        share = self._fit()[2] ** 2
        each = np.array([max(e.freedom, 1.0) for e in self.raw.values()])
        return float(np.sum(share) ** 2 / np.sum(share**2 / each))

    @property
    def slope(self) -> float:
        """The coefficient of 1/N, or of 1/sqrt(N)."""
        return float(self._fit()[0][1])

    @property
    def samples(self) -> np.ndarray:
        """The samples at the largest size."""
        return self.raw[max(self.raw)].samples

    @property
    def flat(self) -> int:
        """The number of instances, over all sizes, that have no value because it differs between minimizers."""
        return sum(e.flat for e in self.raw.values())

    @property
    def name(self) -> str:
        """The observable, as written."""
        return next(iter(self.raw.values())).name

    def z(self, theory: float) -> float:
        """Return the distance of the limit from a theoretical value, in standard errors."""
        return _distance(self, theory, self.raw[max(self.raw)].resolution)

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        rows = [f"  N = {n}: {e}" for n, e in self.raw.items()]
        return "\n".join([f"{small_term(root=self.root)} -> 0: {with_error(self.mean, self.stderr)}", *rows])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a size: N, mean, stderr."""
        return [{"N": n, "mean": e.mean, "stderr": e.stderr} for n, e in self.raw.items()]

    __repr__ = __str__


def _distance(estimate: Estimate | Extrapolation, theory: float, resolution: float) -> float:
    """Return the distance in standard errors, as the normal quantile of its probability.

    A standard error that is itself estimated from few instances is often too small: distances follow Student's
    law, whose quantiles are taken, so that three standard errors are as rare for five instances as for many.
    """
    error, distance = estimate.stderr, float(estimate.mean - theory)
    if not np.isfinite(error) or np.isnan(distance):
        return float("nan")
    if error <= resolution:  # an average that (almost) never varied: known to one site, and no better
        error, freedom = resolution, np.inf
    else:
        freedom = estimate.freedom
    if error > 0:
        return normal_quantile(distance / error, freedom)
    return 0.0 if distance == 0 else float(np.copysign(np.inf, distance))


def normal_quantile(t: float, freedom: float) -> float:
    """Return the normal variable that is exceeded as rarely as ``t`` is by Student's law.

    Parameters
    ----------
    t : float
        A distance in estimated standard errors.
    freedom : float
        The degrees of freedom of the estimate.
    """
    from scipy.special import ndtri, stdtr

    if not np.isfinite(freedom) or not np.isfinite(t):
        return float(t)
    tail = float(stdtr(freedom, -abs(t)))
    if tail > _UNDERFLOW:
        return float(-np.sign(t) * ndtri(tail))
    size = (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t * t / freedom))  # Wallace 1959
    return float(np.copysign(size, t))
