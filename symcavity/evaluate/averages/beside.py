"""Nodes for laws that depend on some of their fields only: of these fields first, then of the others at each node.

The states are functions of what the law hears alone.  What else is averaged, such as the law of a label that the
field of a teacher gives, depends on another field, which varies at given ones of those by its own conditional law: it
has a rule of its own, that ends where the label jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from symcavity.algebra.joint import RULE, LawSymbol
from symcavity.algebra.legendre import legendre
from symcavity.evaluate.averages.grids import REACH
from symcavity.evaluate.averages.joint_bodies import Body
from symcavity.evaluate.averages.law_fields import RANK, LawAtFields
from symcavity.evaluate.averages.law_nodes import BESIDE, ORDERS, STEP, hermite
from symcavity.evaluate.constants import TINIEST

ALONG = 16  # nodes of one panel
LIGHT = 1e-18  # of the weight at the origin: what weighs less is left out
OTHERS = {0: (1,), 1: (24, 36, 54, 81, 120, 180)}  # nodes along the field that the law does not hear


def levels(at: LawAtFields) -> Sequence[int]:
    """Finer and finer nodes, by number."""
    return range(max(len(ORDERS[RULE][len(at.heard)]), len(OTHERS[len(at.unheard)])))


def triangular(covariance: np.ndarray, heard: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fields in standard Gaussian variables: ``A z`` those that the law hears, ``B z + D y`` the others.

    Parameters
    ----------
    covariance : array, shape (fields, fields)
    heard : sequence of int
        Which fields. Eigenvalues that stand for zero, relative to the trace, leave A and D a column less for each.
    """
    rest = [k for k in range(len(covariance)) if k not in heard]
    size, turn = np.linalg.eigh(covariance[np.ix_(heard, heard)])
    kept = size > RANK * max(size.sum(), TINIEST)
    kept[-1] = True
    # seen from the symmetric root, which moves as little as the covariance does
    inside = turn[:, kept] @ turn[:, kept].T
    own = np.eye(len(size)) if kept.all() else np.linalg.svd(inside)[0][:, : int(kept.sum())]
    a = (turn * np.sqrt(np.maximum(size, 0.0))) @ turn.T @ own
    b = covariance[np.ix_(rest, heard)] @ np.linalg.pinv(a).T
    size, turn = np.linalg.eigh(covariance[np.ix_(rest, rest)] - b @ b.T)
    kept = size > RANK * max(np.trace(covariance), TINIEST)
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
    edge = np.full((1, ends.shape[1]), REACH)
    ends = np.concatenate([-edge, ends, edge]).T
    share = np.linspace(0, 1, parts + 1)
    inner = ends[:, :-1, None] + np.diff(ends)[..., None] * share
    low, high = inner[..., :-1], inner[..., 1:]
    x, rule = legendre(ALONG)
    z = ((low + high) / 2)[..., None] + ((high - low) / 2)[..., None] * x
    weights = ((high - low) / 2)[..., None] * rule * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return z.reshape(1, len(ends), -1), weights.reshape(len(ends), -1)


def columns(
    at: LawAtFields, level: int, params: Any, bodies: Sequence[Body], own: Any
) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
    """All quantities of the law at its nodes, and their weights; None where it has no solution."""
    parts = triangular(at.matrix(params), at.heard)
    z, y = (ruled(part.shape[1], level) for ruled, part in ((_ruled, parts[0]), (_even, parts[2])))
    if (x := at.states((BESIDE, level), _fields(at, parts[:2], z[0]), params)) is None:
        return None
    switching = [body for body in bodies if body.sides]
    if switching and parts[2].size:  # in one field: it jumps where another variable has one value
        here, there = (
            np.concatenate([body.switches(found, own) for body in switching])
            for found in (_spread(at, x, parts, z[0], np.full((1, 1), place), params) for place in (0.0, 1.0))
        )
        with np.errstate(all="ignore"):
            y = cut(-here / (there - here), level + 2)
    return _spread(at, x, parts, z[0], y[0], params), z[1][:, None] * y[1]


def gradients(at: LawAtFields, bodies: Sequence[Body], level: int, params: tuple[float, ...]) -> np.ndarray | None:
    """The derivatives of averages along each parameter, by nodes that were fine enough to agree with finer ones.

    None where the covariance has not its full rank; nan where the law has no solution.
    """
    parts = triangular(at.matrix(params), at.heard)
    if any(part.shape[0] != part.shape[1] for part in (parts[0], parts[2])):
        return None
    z, y = _ruled(len(at.heard), level), _even(len(at.unheard), level)
    weights = z[1][:, None] * y[1]
    out = np.full((len(bodies), len(params)), np.nan)
    x = at.code.solve(_fields(at, parts[:2], z[0]), params, at.last.get((BESIDE, level)))
    if x is None:
        return out
    for k in range(len(params)):
        there = np.array(params, dtype=complex)
        there[k] += 1j * STEP
        ways = moved(parts, at.matrix(there).imag / STEP, at.heard)
        after = [part + 1j * STEP * way for part, way in zip(parts, ways, strict=True)]
        stepped = at.code.stepped(x, _fields(at, after[:2], z[0]), there)
        found = _spread(at, stepped, after, z[0], y[0], there)
        for n, body in enumerate(bodies):
            out[n, k] = np.sum(np.imag(body.values(found, {})) * weights) / STEP
    return out


def _ruled(count: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes along fields that a law hears, beside others."""
    orders = ORDERS[RULE][count]
    return hermite(count, orders[min(level, len(orders) - 1)])


def _even(count: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes along fields that a law does not hear."""
    return even(count, OTHERS[count][min(level, len(OTHERS[count]) - 1)])


def _fields(at: LawAtFields, parts: Sequence[np.ndarray], z: np.ndarray) -> np.ndarray:
    """The fields without what varies at given ones of those that the law hears."""
    fields = np.empty((at.count, z.shape[1]), dtype=np.result_type(*parts))
    fields[at.heard] = parts[0] @ z
    fields[at.unheard] = parts[1] @ z
    return fields


def _spread(
    at: LawAtFields, x: np.ndarray, parts: Sequence[np.ndarray], z: np.ndarray, y: np.ndarray, params: Any
) -> dict[LawSymbol, np.ndarray]:
    """All quantities from the states: those that depend on other fields have a second axis, of their values."""
    fields = _fields(at, parts[:2], z)
    out = {name: column[:, None] for name, column in at.code.columns(x, fields, params).items()}
    every = list(fields[..., None])
    for k, varied in zip(at.unheard, np.tensordot(parts[2], y if y.ndim == 3 else y[:, None], axes=1), strict=True):
        every[k] = every[k] + varied
    out |= zip(at.law.fields, every, strict=True)
    states = [out[u] for u in at.code.unknowns]
    defined = at.code.definitions(*states, *every, *params)  # numbers where a datum is masked, and sends nothing
    return out | dict(zip(at.code.defined, map(np.asarray, defined), strict=False))
