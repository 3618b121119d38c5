"""Nodes for laws that do not hear all of their fields: those that they hear first, the others at each of their values.

The states are functions of what the law hears alone.  What else is averaged, such as the law of a label that the
field of a teacher gives, depends on another field, which varies at given ones of those by its own conditional law: it
has a rule of its own, that ends where the label jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from symcavity.algebra.legendre import legendre

REACH, ALONG = 9.0, 16  # in standard deviations, and nodes of one panel
LIGHT = 1e-18  # of the weight at the origin: what weighs less is left out


def triangular(covariance: np.ndarray, heard: Sequence[int], rank: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fields in standard Gaussian variables: ``A z`` those that the law hears, ``B z + D y`` the others.

    Parameters
    ----------
    covariance : array, shape (fields, fields)
    heard : sequence of int
        Which fields.
    rank : float
        Eigenvalues below this one, relative to the trace, stand for zero: A and D have a column less for each.
    """
    rest = [k for k in range(len(covariance)) if k not in heard]
    size, turn = np.linalg.eigh(covariance[np.ix_(heard, heard)])
    kept = size > rank * max(size.sum(), 1e-300)
    kept[-1] = True
    # seen from the symmetric root, which moves as little as the covariance does
    inside = turn[:, kept] @ turn[:, kept].T
    own = np.eye(len(size)) if kept.all() else np.linalg.svd(inside)[0][:, : int(kept.sum())]
    a = (turn * np.sqrt(np.maximum(size, 0.0))) @ turn.T @ own
    b = covariance[np.ix_(rest, heard)] @ np.linalg.pinv(a).T
    size, turn = np.linalg.eigh(covariance[np.ix_(rest, rest)] - b @ b.T)
    kept = size > rank * max(np.trace(covariance), 1e-300)
    d = turn * np.sqrt(np.maximum(size, 0.0))
    return a, b, d @ turn.T if kept.all() else d[:, kept]


def moved(parts: Sequence[np.ndarray], change: np.ndarray, heard: Sequence[int]) -> tuple[np.ndarray, ...]:
    """The derivatives of :func:`triangular`'s parts as the covariance changes, where it has its full rank."""
    rest = [k for k in range(len(change)) if k not in heard]
    a, b, d = parts
    da = _root_moved(a, change[np.ix_(heard, heard)])
    db = (change[np.ix_(rest, heard)] - b @ da) @ np.linalg.inv(a)
    return da, db, _root_moved(d, change[np.ix_(rest, rest)] - db @ b.T - b @ db.T)


def _root_moved(root: np.ndarray, change: np.ndarray) -> np.ndarray:
    size, turn = np.linalg.eigh(root)
    return turn @ (turn.T @ change @ turn / (size[:, None] + size)) @ turn.T


@lru_cache(maxsize=32)
def even(count: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Equidistant nodes of standard Gaussian variables.

    What is smooth converges faster than with polynomials: weights of labels have poles close to the real line.
    """
    x = np.linspace(-REACH, REACH, order)
    w = np.exp(-x * x / 2)
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * count, indexing="ij")]) if count else np.zeros((0, 1))
    weights = np.prod([w[np.searchsorted(x, row)] for row in z], axis=0) if count else np.ones(1)
    kept = weights > LIGHT
    return z[:, kept], weights[kept] / weights[kept].sum()


def cut(places: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of one standard Gaussian variable in panels that end at some places: ``parts`` of them between two.

    Parameters
    ----------
    places : array, shape (cuts, nodes)

    Returns
    -------
    nodes, weights : arrays, shapes (1, nodes, count) and (nodes, count)
    """
    ends = np.sort(np.clip(np.nan_to_num(places, nan=REACH), -REACH, REACH), axis=0)
    ends = np.concatenate([np.full_like(ends[:1], -REACH), ends, np.full_like(ends[:1], REACH)]).T
    share = np.linspace(0, 1, parts + 1)
    inner = ends[:, :-1, None] + np.diff(ends)[..., None] * share
    low, high = inner[..., :-1], inner[..., 1:]
    x, rule = legendre(ALONG)
    z = ((low + high) / 2)[..., None] + ((high - low) / 2)[..., None] * x
    weights = ((high - low) / 2)[..., None] * rule * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return z.reshape(1, len(ends), -1), weights.reshape(len(ends), -1)
