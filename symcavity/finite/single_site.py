"""The declared law of single sites, each with the field ``eta + F * sent``, solved for many sites at once.

Branch by branch: which member of each pair is zero is tried in turn, the last choice of a site first, and what is
left is solved by Newton steps, damped site by site.  Where the law is affine every branch is solved beforehand, for
all fields (`affine_laws.py`).  Nothing of a derivation is used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.affine_laws import MOST_PAIRS, SINGULAR, BrokenPlane, SiteStates
from symcavity.finite.compiled import Args, CompiledLaw
from symcavity.model.quantities import Quenched

_NEWTON, _FARTHEST = 60, 10.0
_SETTLED, _FITS, _SHORTEST = 1e-13, 1e-8, 1e-3


class SingleSites:
    """The sites of one kind, each alone with its fields.

    Parameters
    ----------
    law : CompiledLaw
        The law.
    quenched : mapping
        The sites' own parameters.
    constants : list of float
        The parameters.
    """

    def __init__(self, law: CompiledLaw, quenched: Mapping[Quenched, np.ndarray], constants: list[float]) -> None:
        self.law, self.constants = law, constants
        self.quenched = [quenched[q] for q in law.quenched]
        self._table: BrokenPlane | None = None

    def solve(
        self,
        cavity_field: np.ndarray,
        self_coupling: np.ndarray,
        shared: np.ndarray,
        start: np.ndarray | None = None,
        likely: np.ndarray | None = None,
    ) -> SiteStates:
        """Solve the law of every site with the field ``eta + F * sent``.

        Parameters
        ----------
        cavity_field : ndarray
            eta, of shape (sites, m).
        self_coupling : ndarray
            F, of shape (sites, m, k).
        shared : ndarray
            The globals, of shape (sites, g).
        start, likely : ndarray, optional
            Variables where the search begins, and branches that are tried first; what it finds has to obey the law in
            any case.
        """
        law, n = self.law, len(cavity_field)
        if law.affine and law.kp <= MOST_PAIRS:
            self._table = self._table or BrokenPlane(law, [*self.quenched, *self.constants], n)
            return self._table.meet(cavity_field, self_coupling, shared, likely)
        z = np.zeros((n, law.k)) if start is None else start.copy()
        first = z.copy()
        active, found = np.zeros((n, law.kp), dtype=bool), np.zeros(n, dtype=bool)
        moved = np.full((n, law.k, law.k), np.nan)
        for rows, on, begin in self._branches(found, likely, first, cavity_field, self_coupling):
            each = _BranchSites(self, rows, cavity_field[rows], self_coupling[rows], shared[rows], on)
            there, inverse, fits = each.solved(begin[rows])
            good = rows[fits]
            z[good], active[good], moved[good], found[good] = there[fits], on[fits], inverse[fits], True
        whole = _BranchSites(self, np.arange(n), cavity_field, self_coupling, shared, active)
        args = whole.arguments(z)
        hears = law.hears(args, n) * np.isin(np.arange(law.m), law.moving)
        responses = -law.emits(args, n) @ moved[:, :, : law.ke] @ hears
        return SiteStates(z, active, found, law.emission(args, n), responses, lambda: moved, lambda: args)

    def _branches(
        self, found: np.ndarray, likely: np.ndarray | None, first: np.ndarray, eta: np.ndarray, back: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The sites that are still open, a choice of branches for each, and where to begin."""
        if likely is not None:
            yield np.arange(found.size), likely, first
        for begin in self._starts(found, first, eta, back):
            for branch in product((True, False), repeat=self.law.kp):
                rows = np.flatnonzero(~found)
                if not rows.size:
                    return
                yield rows, np.broadcast_to(np.array(branch, dtype=bool), (rows.size, self.law.kp)), begin

    def _starts(self, found: np.ndarray, first: np.ndarray, eta: np.ndarray, back: np.ndarray) -> Iterator[np.ndarray]:
        """Where to begin: where one was told, at zero, above a pole at zero, at the projection on a set."""
        yield first
        if np.any(first) and not self.law.affine:
            yield np.zeros_like(first)
        if not self.law.affine:
            yield np.ones_like(first)
        if self.law.sets is not None:
            yield self.law.sets.near(np.flatnonzero(~found), first, eta, back)


class _BranchSites:
    """Some of the sites, on given branches."""

    def __init__(
        self,
        sites: SingleSites,
        rows: np.ndarray,
        cavity_field: np.ndarray,
        self_coupling: np.ndarray,
        shared: np.ndarray,
        active: np.ndarray,
    ) -> None:
        self.law, self.n, self.active = sites.law, len(rows), active
        self.eta, self.coupling, self.shared = cavity_field, self_coupling, shared
        self.tail: Args = [*(q[rows] for q in sites.quenched), *sites.constants]

    def arguments(self, z: np.ndarray) -> Args:
        """The arguments of every table of the law, with the fields that the sites hear."""
        law, n = self.law, self.n
        blank = np.zeros((0 if law.sets is None else len(law.sets.symbols), n))
        sent = law.emission([*z.T, *np.zeros((law.m, n)), *self.shared.T, *self.tail, *blank], n)
        fields = self.eta + np.einsum("nmk,nk->nm", self.coupling, sent)
        sets = () if law.sets is None else law.sets.columns(z).T
        return [*z.T, *fields.T, *self.shared.T, *self.tail, *sets]

    def value(self, args: Args) -> np.ndarray:
        """The equations, and the member of each pair that has to be zero."""
        law, n = self.law, self.n
        return np.concatenate([law.residual(args, n), np.where(self.active, law.p(args, n), law.q(args, n))], axis=1)

    def slopes(self, args: Args) -> np.ndarray:
        """Their derivatives in the variables."""
        law, n = self.law, self.n
        pairs = np.where(self.active[:, :, None], law.p_slopes(args, n), law.q_slopes(args, n))
        total = law.slopes(args, n) + law.hears(args, n) @ self.coupling @ law.emits(args, n)
        return np.concatenate([total, pairs], axis=1)

    def inverse(self, args: Args) -> np.ndarray:
        """The inverse of these derivatives; not a number where there is none."""
        matrix = self.slopes(args)
        try:
            found = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            with np.errstate(all="ignore"):
                usable = np.abs(np.linalg.det(matrix)) > SINGULAR
            found = np.full_like(matrix, np.nan)
            found[usable] = np.linalg.inv(matrix[usable])
        found[~(np.abs(found).max(axis=(1, 2), initial=0) < 1 / SINGULAR)] = np.nan
        return found

    def solved(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve, beginning at some variables; the inverse there, and where the signs of the pairs are right."""
        law = self.law
        args = self.arguments(z)
        value, inverse = self.value(args), self.inverse(args)
        for _ in range(_NEWTON):
            flat = np.flatnonzero(np.isnan(inverse).any(axis=(1, 2)))
            moves = inverse.copy() if flat.size else inverse
            moves[flat] = _pseudoinverses(self.slopes(args)[flat])  # as at the value zero of what decides on a side
            step = -np.einsum("nij,nj->ni", moves, value)
            size = np.max(np.abs(step), axis=1, initial=0)
            if not law.affine:
                step *= np.minimum(1.0, _FARTHEST / np.maximum(1e-300, size))[:, None]
            before, length = np.linalg.norm(value, axis=1), np.ones(self.n)
            while True:
                there = z + length[:, None] * step
                args = self.arguments(there)
                value = self.value(args)
                with np.errstate(all="ignore"):
                    worse = ~(np.linalg.norm(value, axis=1) <= before) & (length > _SHORTEST) & (before > _FITS)
                if law.affine or not np.any(worse):
                    break
                length = np.where(worse, length / 2, length)
            z = there
            if law.affine:
                break
            inverse = self.inverse(args)
            if not np.any(np.isfinite(size) & (size >= _SETTLED * (1 + np.max(np.abs(z), axis=1, initial=0)))):
                break
        scale = 1 + np.max(np.abs(z), axis=1, initial=0)
        with np.errstate(all="ignore"):
            fits = (np.max(np.abs(value), axis=1, initial=0) < _FITS * scale) & np.isfinite(inverse).all(axis=(1, 2))
            for free in (law.p(args, self.n), law.q(args, self.n)):
                fits &= np.min(free, axis=1, initial=0) > -1e-9 * scale
        return z, inverse, fits


def _pseudoinverses(matrices: np.ndarray) -> np.ndarray:
    """Those of matrices that have no inverse; zero where they are not finite."""
    out = np.zeros_like(matrices).swapaxes(1, 2)
    finite = np.isfinite(matrices).all(axis=(1, 2))
    out[finite] = np.linalg.pinv(matrices[finite])
    return out


def unsolved(law: CompiledLaw, answer: SiteStates) -> NotConverged:
    """The error for fields at which no branch of a law fits."""
    return NotConverged(
        f"The law of a single {law.kind} site has no solution at {int(np.sum(~answer.found))} of "
        f"{len(answer.found)} fields.",
        best=answer.z,
        hint="larger sizes: the self-coupling must have the sign that makes the site stable",
    )
