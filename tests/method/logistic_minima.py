"""How much the minimum of a logistic regression varied in 6000 data sets of each size: the numbers of a test.

    python tests/method/logistic_minima.py

Each line has N, N times the variance of the minimum per feature, and the standard error of that. The data are Gaussian,
``alpha = 2``, the penalty is ``|w|**2/10``, and all labels are one, a symmetry of the data.
"""

from __future__ import annotations

import numpy as np

SIZES, COUNT, BATCH, PENALTY = (25, 50, 100), 6000, 200, 0.2


def minima(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The minima of some data sets, by Newton's method on all of them at once."""
    data = rng.standard_normal((count, 2 * size, size)) / np.sqrt(size)
    found = np.zeros((count, size))
    for _ in range(60):
        wrong = 1 / (1 + np.exp(np.einsum("bmi,bi->bm", data, found)))
        force = PENALTY * found - np.einsum("bmi,bm->bi", data, wrong)
        if abs(force).max() < 1e-9:
            break
        curved = np.matmul((data * (wrong * (1 - wrong))[..., None]).transpose(0, 2, 1), data)
        found -= np.linalg.solve(curved + PENALTY * np.eye(size), force[..., None])[..., 0]
    else:
        raise AssertionError("Newton's method does not end")
    fields = np.einsum("bmi,bi->bm", data, found)
    return np.log1p(np.exp(-fields)).sum(axis=1) + PENALTY * np.square(found).sum(axis=1) / 2


def main() -> None:
    """Print a line for each size."""
    for size in SIZES:
        rng = np.random.default_rng(size)
        all_ = np.concatenate([minima(size, BATCH, rng) for _ in range(COUNT // BATCH)])
        gaps = np.square(all_ - all_.mean())
        print(size, gaps.sum() / (COUNT - 1) / size, gaps.std() / np.sqrt(COUNT) / size)


if __name__ == "__main__":
    main()
