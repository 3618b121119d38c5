"""Quasi-random Gaussian sources in independent scrambles, for averages with honest error bars."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.errors import ValuesError

SCRAMBLES = 16
"""Independent scrambles of the Sobol sequence; their scatter is the error bar."""

DEFAULT = 2**14
"""Samples of an average when the user names no number."""


def sample_size(samples: Any) -> int:
    """Read a number of samples: at least 64, rounded up to a power of two per scramble.

    Raises
    ------
    ValuesError
        If it is not such a number.
    """
    if samples is None:
        return DEFAULT
    if isinstance(samples, bool) or not isinstance(samples, Integral) or int(samples) < 64:
        raise ValuesError(f"samples is {samples!r}.", "an integer >= 64, or None")
    per = -(-int(samples) // SCRAMBLES)
    return SCRAMBLES * int(2 ** np.ceil(np.log2(per)))


def gaussian_scrambles(dimension: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield `SCRAMBLES` independently scrambled Sobol sets of standard normal vectors, each with the mean zero.

    What is the same for all vectors then adds nothing to responses that are averaged by parts.

    Parameters
    ----------
    dimension : int
        Components of a vector.
    samples : int
        Vectors in all sets together, from `sample_size`.
    seed : int
        Seed of the scrambles.

    Raises
    ------
    ValuesError
        If the seed is no integer >= 0.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise ValuesError(f"seed is {seed!r}.", "an integer >= 0")
    for child in np.random.SeedSequence(int(seed)).spawn(SCRAMBLES):
        sequence = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(child))
        uniform = sequence.random(samples // SCRAMBLES)
        t = np.asarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))
        yield t - t.mean(axis=0)
