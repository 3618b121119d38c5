"""Nodes of standard Gaussian variables for laws that are smooth, or sampled; and derivatives of averages over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from symcavity.algebra.joint import RAYS, RULE, SAMPLES
from symcavity.evaluate.averages.joint_bodies import Body
from symcavity.evaluate.averages.law_fields import LawAtFields, ranges
from symcavity.evaluate.averages.rays import graded, scrambled
from symcavity.evaluate.constants import TINIEST

PANELS = "panels"  # along rays, shorter and shorter towards the origin: for smooth laws that no polynomial resembles
CARRIED = "carried"  # nodes of other parameters, between places of switching in a plane
BESIDE = "beside"  # products of a rule in the fields that the law hears, and one in the others at each of its nodes
CROSS = "cross"  # points on the axes, which give polynomials of the third degree exactly
ORDERS: Mapping[str, Mapping[int, tuple[int, ...]]] = {  # by the number of dimensions
    RULE: {1: (24, 48, 96, 192), 2: (16, 24, 36, 54, 81), 3: (12, 18, 27, 40)},  # nodes along each field
    RAYS: {1: (2, 2), 2: (24, 48, 96, 192, 384, 768)},
    SAMPLES: {},
    PANELS: {1: (8, 16, 32), 2: (12, 18, 27, 40, 60, 90), 3: (8, 12, 18, 27)},  # directions along each angle
}
LIGHT = 1e-20  # nodes of less weight are left out
STEP = 1e-30  # of a complex step, which cancels nothing
FLAT = 1e-12  # of the largest eigenvalue: what stands for zero where roots are differentiated


def nodes(way: str, count: int, rank: int, scrambles: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Standard Gaussian variables and their weights: a number of them along each one, or in each set of samples."""
    if way == RULE:
        return hermite(rank, count)
    if way == PANELS:
        return graded(rank, count)
    if way == CROSS:
        points = np.sqrt(rank) * np.concatenate([np.eye(rank), -np.eye(rank)], axis=1)
    else:
        points = np.concatenate([scrambled(rank)[n][:count] for n in scrambles]).T
    return points, np.full(points.shape[1], 1 / points.shape[1])


@lru_cache(maxsize=32)
def hermite(count: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of a product rule, without those that weigh nothing."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * count, indexing="ij")])
    weights = np.prod([part.ravel() for part in np.meshgrid(*[w] * count, indexing="ij")], axis=0)
    kept = weights > LIGHT
    return z[:, kept], weights[kept]


def gradients(
    at: LawAtFields, bodies: Sequence[Body], way: str, level: int, params: tuple[float, ...]
) -> np.ndarray:
    """The derivatives of averages along each parameter: shape (bodies, parameters), nan where there is no solution.

    These are complex steps: one step of Newton's method carries them from the law to its states.
    """
    size, frame = np.linalg.eigh(at.matrix(params))
    inside, beyond = ranges(size, frame)
    z, weights = nodes(way, level, inside.shape[1], at.scrambles())
    z = inside @ z
    for e in beyond.T:  # a second difference in each direction in which nothing varies yet
        z = np.concatenate([z + e[:, None], z - e[:, None]], axis=1)
        weights = np.tile(weights / 2, 2)
    size = np.sqrt(np.maximum(size, FLAT * max(size[-1], TINIEST)))
    fields = (frame * size) @ frame.T @ z
    x = at.code.solve(fields, params, at.last.get((way, level)))
    out = np.full((len(bodies), len(params)), np.nan)
    if x is None:
        return out
    for k in range(len(params)):
        moved = np.array(params, dtype=complex)
        moved[k] += 1j * STEP
        change = frame.T @ (at.matrix(moved).imag / STEP) @ frame / (size[:, None] + size)
        there = fields + 1j * STEP * (frame @ change @ frame.T @ z)
        columns = at.code.columns(at.code.stepped(x, there, moved), there, moved)
        for n, body in enumerate(bodies):
            out[n, k] = np.imag(body.values(columns, {})) @ weights / STEP
    return out
