"""A joint law of affine equations and pairs in numbers: its states on every face at once.

A face is a choice of the member that vanishes in each pair.  There the states are affine in the fields, and they hold
where no other member is negative.  Where multipliers are not unique several faces hold, with the same states.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from symcavity.evaluate.constants import TINIEST

SINGULAR = 1e-11  # of a determinant of rows of unit length
ROUNDED = 1e-13  # coefficients that are zero but for rounding
SLACK = 1e-9  # by which a member may be negative, relative to what it is made of
SOME = 300  # fields at which it is seen what a law leaves open
SEEN = 64.0  # fields of up to this size, and many smaller ones, tell which faces there are


class Faces:
    """The faces of a law, each with its states and its conditions as affine functions of the fields.

    Parameters
    ----------
    matrix : array, shape (rows, unknowns)
        The slopes of equations, first members and second members of the pairs along the unknowns.
    heard : array, shape (rows, 1 + fields + sources)
        Their values at the origin, and their slopes along the fields and the sources.
    pairs : int
    given : array, shape (quantities, 1 + fields + sources + unknowns)
        Further quantities: their values at the origin and their slopes along fields, sources and unknowns.
    fields : int
    known : array or None
        Numbers of faces that hold somewhere, which are tried first.

    Attributes
    ----------
    loose : array, shape (directions, unknowns + quantities)
        Along which combinations the law leaves them open at some fields; found where no faces are known yet.
    """

    def __init__(
        self,
        matrix: np.ndarray,
        heard: np.ndarray,
        pairs: int,
        given: np.ndarray,
        fields: int,
        known: np.ndarray | None,
    ) -> None:
        self.count, self.fields, self.size = pairs, fields, matrix.shape[1]
        plain = len(matrix) - 2 * pairs
        self._rows = np.concatenate([heard, matrix], axis=1)
        self._plain, self._given = plain, given
        self.every = np.array(list(product((0, 1), repeat=pairs)), dtype=int).reshape(-1, pairs)
        width = heard.shape[1]
        self.numbers = np.zeros(0, dtype=int)
        self.states = np.zeros((0, self.size + len(given), width))
        self.tests = np.zeros((0, pairs, 1 + fields))
        self.loose = np.zeros((0, self.size + len(given)))
        self._add(np.arange(len(self.every)) if known is None else known)
        if known is None:
            rng = np.random.default_rng(5)
            sizes = np.exp(rng.uniform(-4, np.log(SEEN), 4000))
            points = rng.normal(size=(fields, 4000)) * sizes
            found = self.find(points)
            if found is not None:  # those that hold nowhere are forgotten, and come back where they are needed
                used = np.unique(found)
                self.loose = self._loose(points[:, :SOME])
                self.numbers, self.states, self.tests = self.numbers[used], self.states[used], self.tests[used]

    def _add(self, numbers: np.ndarray) -> None:
        """Solve some faces; those on which the unknowns are not fixed are left out."""
        own = np.arange(self.count)
        zero = self._plain + self.every[numbers] * self.count + own
        rest = self._plain + (1 - self.every[numbers]) * self.count + own
        fixed = np.concatenate([np.broadcast_to(np.arange(self._plain), (len(zero), self._plain)), zero], axis=1)
        rows, width = self._rows[fixed], self._rows.shape[1] - self.size
        rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), TINIEST)
        unit = rows[..., width:] / np.maximum(np.linalg.norm(rows[..., width:], axis=-1, keepdims=True), TINIEST)
        good = np.abs(np.linalg.det(unit)) > SINGULAR
        states = np.zeros((len(zero), self.size, width))
        states[good] = -np.linalg.solve(rows[good][..., width:], rows[good][..., :width])
        states = _rounded(states)
        held = self._rows[rest]
        tests = _rounded(held[..., :width] + held[..., width:] @ states)[..., : 1 + self.fields]
        size = 1 + np.abs(states).max(axis=(1, 2), initial=0)[:, None, None]
        tests = tests / np.maximum(np.linalg.norm(held, axis=-1, keepdims=True) * size, TINIEST)
        good &= ~((np.abs(tests[..., 1:]).max(axis=-1, initial=0) == 0) & (tests[..., 0] < 0)).any(axis=1)
        more = _rounded(self._given[:, :width] + self._given[:, width:] @ states)
        every = np.concatenate([states, more], axis=1)
        old = (self.numbers, self.states, self.tests)
        new = (np.asarray(numbers)[good], every[good], tests[good])
        self.numbers, self.states, self.tests = (np.concatenate(pair) for pair in zip(old, new, strict=True))

    def _slack(self, fields: np.ndarray) -> np.ndarray:
        """What each face lacks at each field: its least condition."""
        with_one = np.concatenate([np.ones((1, fields.shape[1])), fields])
        if not self.count:
            return np.zeros((len(self.numbers), fields.shape[1]))
        out = np.full((len(self.numbers), fields.shape[1]), np.inf)
        for k in range(self.count):
            np.minimum(out, self.tests[:, k] @ with_one, out=out)
        return out

    def _loose(self, fields: np.ndarray) -> np.ndarray:
        """The directions in which different faces that hold at one field have different values."""
        out = []
        holds = self._slack(fields) > -SLACK
        for k in range(fields.shape[1]):
            own = np.flatnonzero(holds[:, k])
            there = self.values(own, np.repeat(fields[:, k : k + 1], len(own), axis=1))
            apart = (there - there[:, :1]).T / (1 + np.abs(there).max(initial=0))
            out.append(apart[np.abs(apart).max(axis=1, initial=0) > 1e-6])
        _, sizes, ways = np.linalg.svd(np.concatenate(out), full_matrices=False)
        return ways[sizes > 1e-6]

    def find(self, fields: np.ndarray) -> np.ndarray | None:
        """The faces that hold at given fields; None where some field has none."""
        slack = self._slack(fields)
        best = np.argmax(slack, axis=0) if len(slack) else np.zeros(fields.shape[1], dtype=int)
        lack = SLACK * (1 + np.abs(fields).max(axis=0, initial=0))
        bad = slack[best, np.arange(fields.shape[1])] < -lack if len(slack) else np.ones(fields.shape[1], dtype=bool)
        if bad.any():
            others = np.setdiff1d(np.arange(len(self.every)), self.numbers)
            if not len(others):
                return None
            self._add(others)
            slack = self._slack(fields)
            best = np.argmax(slack, axis=0)
            if (slack[best, np.arange(fields.shape[1])] < -lack).any():
                return None
        return best

    def values(self, face: np.ndarray, fields: np.ndarray) -> np.ndarray:
        """The unknowns and the further quantities at given fields, shape (quantities, points)."""
        own = self.states[face]
        return own[..., 0].T + np.einsum("pqf,fp->qp", own[..., 1 : 1 + self.fields], fields)

    def slopes(self, face: np.ndarray) -> np.ndarray:
        """Their slopes along the sources, shape (points, quantities, sources)."""
        return self.states[face][..., 1 + self.fields :]


def _rounded(values: np.ndarray) -> np.ndarray:
    size = np.abs(values).max(axis=tuple(range(1, values.ndim)), initial=0).reshape(-1, *[1] * (values.ndim - 1))
    return np.where(np.abs(values) < ROUNDED * np.maximum(size, TINIEST), 0.0, values)
