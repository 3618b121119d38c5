"""What runs over many sites or paths need: formulas compiled for arrays, and Gaussian fields drawn row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sympy import Dummy, Expr, Symbol

from symcavity.algebra.compiled import compiled
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.times import Time

FEW = 20  # paths for each direction that is fixed: so few leave the law of the others as it is
OWN = 1e-9  # of the variance of a field: noise that is added to it, so that it never follows from its past alone


class SiteFormula:
    """An expression of one site, compiled: it takes states at times, quenched parameters and the time.

    Parameters
    ----------
    expr : Expr
    time : Time
    """

    def __init__(self, expr: Expr, time: Time) -> None:
        self.quantities = site_quantities(expr)
        marks = {q: Symbol(f"q{k}", real=True) for k, q in enumerate(self.quantities)}
        self._call = compiled([*marks.values(), time], expr.xreplace(marks))

    def __call__(self, look_up: Callable[[SiteQuantity], Any], step: int) -> Any:
        """The value for all paths."""
        with np.errstate(all="ignore"):
            return np.asarray(self._call(*map(look_up, self.quantities), float(step)), dtype=float)


def in_averages(
    expr: Expr, mean: Callable[[Average], Any], look_up: Callable[[SiteQuantity], Any], step: int, time: Time
) -> np.ndarray:
    """The value of what all sites share, by averages over sites and other such variables."""
    averages = sorted(expr.atoms(Average), key=str)
    shared = site_quantities(expr.xreplace({a: Dummy() for a in averages}))  # not zero: they may be factors
    call = compiled([*averages, *shared, time], expr)
    return np.asarray(call(*map(mean, averages), *map(look_up, shared), float(step)), dtype=float)


class CavityFields:
    """The cavity fields of a kind, drawn one after the other, each given all before.

    Parameters
    ----------
    shape : (int, int)
        Batches, and paths of each.
    most : int
        How many will be drawn.
    rng : Generator
    """

    def __init__(self, shape: tuple[int, int], most: int, rng: np.random.Generator) -> None:
        batches, paths = shape
        self.shape, self._rng, self.count = shape, rng, 0
        self._factor = np.zeros((batches, most, most))
        self._white = np.zeros((most, batches, paths))
        self.vanishes: list[bool] = []  # by field: whether its variance is zero, in any batch

    def draw(self, row: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """The next one, by its covariances with all before, shape (batches, count), and its variance."""
        n = self.count
        a = np.zeros((self.shape[0], n))
        for b, factor in enumerate(self._factor[:, :n, :n]):
            if n:
                a[b] = solve_triangular(factor, row[b], lower=True, check_finite=False)
        own = np.sqrt(np.maximum(variance * (1 + OWN) - np.einsum("bn,bn->b", a, a), 0.0))
        self._factor[:, n, :n] = a
        self._factor[:, n, n] = np.where(own > 0, own, 1.0)  # a field that vanishes is correlated with none
        self.vanishes.append(bool(np.any(variance <= 0)))
        self._white[n] = self._fresh(n)
        self.count += 1
        out = np.matmul(a[:, None, :], self._white[:n].transpose(1, 0, 2))[:, 0, :] if n else 0.0
        return out + own[:, None] * self._white[n]

    def answers(self, values: np.ndarray, count: int) -> np.ndarray:
        """The mean responses of values of each path to the first fields, by batch: ``S L = <values z>`` is solved."""
        shares = np.einsum("nbm,bm->bn", self._white[:count], values) / self.shape[1]
        rows = [
            solve_triangular(factor, share, lower=True, trans="T", check_finite=False)
            for factor, share in zip(self._factor[:, :count, :count], shares, strict=True)
        ]
        return np.array(rows)

    def _fresh(self, n: int) -> np.ndarray:
        """Normal numbers in antithetic pairs, of variance one; orthogonal to all before, as long as these are few."""
        batches, paths = self.shape
        half = self._rng.standard_normal((batches, (paths + 1) // 2))
        white = np.concatenate([half, -half], axis=1)[:, :paths]
        if 0 < n * FEW <= paths:
            before = self._white[:n].transpose(1, 0, 2)
            shares = np.matmul(before, white[:, :, None]) / paths
            white -= np.matmul(shares.transpose(0, 2, 1), before)[:, 0, :]
        return white / np.sqrt((white**2).mean(axis=1, keepdims=True))
