"""Random couplings of unit variance, by law; and the seeds they come from."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from symcavity.errors import ValuesError
from symcavity.evaluate.numbers import whole_number, whole_numbers

Law = Callable[[np.random.Generator, tuple[int, ...]], Any]

_CHECKED, _SIGMAS = 20000, 6.0


def _gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def _rademacher(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 2.0 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1.0


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)


LAWS: dict[str, Law] = {"gaussian": _gaussian, "rademacher": _rademacher, "uniform": _uniform}


def coupling_law(couplings: str | Law) -> Law:
    """Return the function that draws couplings of unit variance.

    Parameters
    ----------
    couplings : str or callable
        ``'gaussian'``, ``'rademacher'``, ``'uniform'``, or a function of (generator, shape).

    Raises
    ------
    ValuesError
        If the name is unknown, or a callable's samples have not mean 0 and variance 1.
    """
    law = LAWS.get(couplings) if isinstance(couplings, str) else couplings
    if law is None or not callable(law):
        raise ValuesError(f"The coupling law is {couplings!r}.", f"{', '.join(LAWS)}, or a callable(rng, shape)")
    if law is couplings:
        _check_moments(law)
    return law


def _check_moments(law: Law) -> None:
    shape = (_CHECKED // 100, 100)
    sample = np.asarray(law(np.random.default_rng(12345), shape), dtype=float)
    if sample.shape != shape:
        raise ValuesError(
            f"The coupling law returned the shape {sample.shape} for {shape}.", "an array of that shape"
        )
    if not np.all(np.isfinite(sample)):
        raise ValuesError("The coupling law returned values that are not finite.", "finite samples")
    mean, second = sample.mean(), np.mean(sample**2)
    spread = max(float(np.std(sample**2)), 1e-3) / np.sqrt(sample.size)
    if (
        abs(mean) > _SIGMAS * max(sample.std(), 1e-3) / np.sqrt(sample.size)
        or abs(second - 1) > _SIGMAS * spread
    ):
        raise ValuesError(
            f"The coupling law has mean {mean:.4f} and second moment {second:.4f}.",
            "couplings of mean 0 and variance 1 (the declared variance multiplies them)",
            "divide by the standard deviation",
        )


def mixing(correlation: np.ndarray) -> np.ndarray:
    """Return the matrix that makes correlated couplings of unit variance of independent ones.

    Raises
    ------
    ValuesError
        If no random numbers have these correlations.
    """
    try:
        return np.asarray(np.linalg.cholesky(correlation))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlation)
        if values.min() < -1e-12:
            raise ValuesError(
                f"The matrix of the correlations of the couplings has a negative eigenvalue: {correlation.tolist()}.",
                "coefficients whose matrix has no negative eigenvalue, between -1 and 1 for two couplings",
            ) from None
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def reciprocal(reciprocity: float) -> tuple[float, float]:
    """Return how much of a coupling is its own number, and how much that of the turned indices.

    Raises
    ------
    ValuesError
        If it is not between -1 and 1.
    """
    if not abs(reciprocity) <= 1:
        raise ValuesError(f"The reciprocity of a coupling is {reciprocity:g}.", "a number between -1 and 1")
    up, down = np.sqrt(1 + reciprocity), np.sqrt(1 - reciprocity)
    return float(up + down) / 2, float(up - down) / 2


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Return the seeds: ``0..n-1`` for a number, or the given ones."""
    words = "a positive number of seeds, or a list of different non-negative integers"
    if isinstance(seeds, Iterable):
        return whole_numbers(seeds, "seeds", 0, words)
    return list(range(whole_number(seeds, "seeds", 1, words)))


def stream(seed: int, *path: int) -> np.random.Generator:
    """Return the generator of one quantity of one instance; it depends on nothing else."""
    return np.random.default_rng(np.random.SeedSequence([seed, *path]))


def memory(limits: Sequence[Path] | None = None) -> float:
    """Return how many bytes a process may use: of the machine, or of the group of processes that it belongs to.

    Parameters
    ----------
    limits : sequence of Path, optional
        Files that hold the limit of the group, such as of a job on a cluster; those that are missing hold none.
    """
    try:
        there = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # a system that does not tell
        there = math.inf
    for path in own_limits() if limits is None else limits:
        try:
            there = min(there, float(path.read_text().strip()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return there


def own_limits(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> list[Path]:
    """Return the files with the memory limits of the groups of this process, and of the groups that hold them."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return []
    out: list[Path] = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        base, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        if not controllers or "memory" in controllers.split(","):
            whole = PurePosixPath(path.lstrip("/"))
            out += [base / part / name for part in (whole, *whole.parents)]
    return out


def check_memory(shapes: Iterable[tuple[int, ...]]) -> None:
    """Refuse couplings that this machine cannot hold.

    Raises
    ------
    ValuesError
        If they alone need more than all of its memory.
    """
    needed = 8 * sum(math.prod(shape) for shape in shapes)
    there = memory()
    if needed > there:
        sizes = ", ".join(" x ".join(map(str, shape)) for shape in shapes)
        raise ValuesError(
            f"An instance needs {needed / 2**30:.1f} GiB for its couplings alone ({sizes}); there are "
            f"{there / 2**30:.1f} GiB for this process.",
            "sizes that fit into memory",
            "a smaller N",
        )
