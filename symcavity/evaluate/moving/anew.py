"""Random values that are drawn anew at each step: for many paths, each by the seed and the step alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy.stats import sample

from symcavity.evaluate.moving.values import RunValues
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity

APART = 17  # so that these streams are no others


class Anew:
    """Values of noise, and of quenched parameters over a time, for an array of paths.

    Parameters
    ----------
    values : RunValues
    seed : int
    shape : (int, int)
        Batches, and paths of each.
    """

    def __init__(self, values: RunValues, seed: int, shape: tuple[int, int]) -> None:
        self._values, self._seed, self._shape = values, seed, shape
        self._drawn: dict[Any, np.ndarray] = {}

    def __call__(self, q: SiteQuantity, step: int) -> np.ndarray:
        """The values at a step; the second half of the paths has the first half of a noise with the other sign."""
        family = q.family
        if (family, step) not in self._drawn:
            name = int.from_bytes(family.name.encode(), "big")
            rng = np.random.default_rng([self._seed, APART, name, step])
            draw = self._noise if isinstance(family, Noise) else self._law
            self._drawn[family, step] = draw(family, rng)
        return self._drawn[family, step]

    def _noise(self, family: Noise, rng: np.random.Generator) -> np.ndarray:
        batches, paths = self._shape
        half = rng.standard_normal((batches, (paths + 1) // 2))
        return float(self._values.put_into(family.variance)) ** 0.5 * np.concatenate([half, -half], axis=1)[:, :paths]

    def _law(self, family: Quenched, rng: np.random.Generator) -> np.ndarray:
        law = self._values.laws[family.slots[0]]
        for q, variable in law.continuous:
            if q == family:
                return sampled(variable, self._shape, rng)
        table = law.marginal([family])
        weights = np.array([float(w) for w in table.values()])
        values = np.array([float(point[0]) for point in table])
        return values[rng.choice(len(weights), self._shape, p=weights / weights.sum())]


def sampled(variable: Any, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Values of a random variable of sympy.stats."""
    size = int(np.prod(shape))
    try:
        found = sample(variable, size=(size,), library="numpy", seed=rng)
    except NotImplementedError:
        found = sample(variable, size=(size,), library="scipy", seed=rng)
    return np.asarray(found, dtype=float).reshape(shape)

