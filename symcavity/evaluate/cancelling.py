"""Closed forms whose terms cancel in double: seen by the size of the terms, and evaluated with digits enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, Symbol, expand_mul

from symcavity.algebra.precision import context, mp
from symcavity.evaluate.digits import ExactPass
from symcavity.evaluate.integrals import LAWS, Pass
from symcavity.evaluate.quenched import MANY_SITES

NOTHING = 1e-250  # what has faded is taken to be as small as that, where something is divided by it
EPS, KEPT = 2.3e-16, 1e-8  # a value in double serves if rounding moves it by a smaller share
BITS = (160, 640, 2560)  # tried in turn
SURE = 60  # of these must be left; twice as many, where differences of values make a slope


def followed(values: Iterable[Any], unknowns: Iterable[Symbol]) -> np.ndarray:
    """A point in double; an unknown that has a sign and is zero has faded, and is as small as anything there."""
    signs = (1 if s.is_nonnegative else -1 if s.is_nonpositive else 0 for s in unknowns)
    return np.array([float(v) or sign * NOTHING for v, sign in zip(values, signs, strict=True)])


class Cancelling:
    """Expressions in closed form, watched where they are evaluated in double.

    Parameters
    ----------
    exprs : mapping from int to Expr
        Those without integrals, by their places among others.
    unknowns : sequence of Symbol
    """

    def __init__(self, exprs: Mapping[int, Expr], unknowns: Sequence[Symbol]) -> None:
        self.unknowns = list(unknowns)
        rows = {k: Add.make_args(expand_mul(e, deep=False)) for k, e in exprs.items()}
        self.rows = {k: row for k, row in rows.items() if len(row) > 1}
        self._terms: Pass | None = None
        self._exact: dict[int, ExactPass] = {}

    def values(self, x: np.ndarray, env: Mapping[Any, Any]) -> dict[int, float]:
        """The values of which double leaves too little, with digits; zero is what vanishes to 700 of them."""
        return {k: float(v) for k, v, _, _ in self._mended(x, env)}

    def slopes(self, x: np.ndarray, env: Mapping[Any, Any]) -> dict[int, tuple[float, np.ndarray]]:
        """The same values with their derivatives by the unknowns, from differences in more digits."""
        out = {}
        for k, value, _, bits in self._mended(x, env):
            at = context(2 * bits)
            point = [at.mpf(v) for v in x.tolist()]
            base, slope = at.fsum(self._at(k, point, env, at)), np.zeros(len(point))
            for n, v in enumerate(point):
                if any(e.has(self.unknowns[n]) for e in self.rows[k]):
                    step = at.mpf(2) ** -bits * (abs(v) or 1)
                    there = at.fsum(self._at(k, [*point[:n], v + step, *point[n + 1 :]], env, at))
                    slope[n] = float((there - base) / step)
            out[k] = float(value), slope
        return out

    def loses(self, x: np.ndarray, env: Mapping[Any, Any]) -> bool:
        """Whether double leaves too little of some value at a point."""
        return next(self._mended(x, env), None) is not None

    def digits(self, x: np.ndarray, env: Mapping[Any, Any]) -> int:
        """How many digits the terms lose, at the most, of what they add up to."""
        return max((int(mp.log10(size / abs(v))) + 1 for _, v, size, _ in self._mended(x, env) if v), default=0)

    def _mended(self, x: np.ndarray, env: Mapping[Any, Any]) -> Iterator[tuple[int, Any, Any, int]]:
        """Of which values rounding leaves too little: place, value, the moduli of its terms together, bits."""
        if not self.rows:
            return
        if self._terms is None:
            self._terms = Pass([term for row in self.rows.values() for term in row])
        terms = map(float, self._terms.at(self._env(x.tolist(), env), self._terms.grids())[0])
        for k, row in self.rows.items():
            here = [next(terms) for _ in row]
            if EPS * sum(map(abs, here)) < KEPT * abs(sum(here)) or not any(here) or not self._has_digits(k, env):
                continue
            for bits in BITS:
                at = context(bits)
                try:
                    exact = self._at(k, [at.mpf(v) for v in x.tolist()], env, at)
                except ArithmeticError:  # it has no value there
                    break
                value, size = at.fsum(exact), at.fsum(exact, absolute=True)
                sure = abs(value) > size * at.mpf(2) ** (SURE - bits)
                if sure or bits == BITS[-1]:
                    yield k, value if sure else at.zero, size, bits
                    break

    def _has_digits(self, k: int, env: Mapping[Any, Any]) -> bool:
        """Whether more of them are to be had: not over densities, and not over very many sites."""
        if k not in self._exact:
            self._exact[k] = ExactPass(self.rows[k])
        few = all(law.count <= MANY_SITES for law in env[LAWS].values())
        return few and not self._exact[k].is_ruled(env)

    def _at(self, k: int, point: Sequence[Any], env: Mapping[Any, Any], at: Any) -> list[Any]:
        return self._exact[k].at(self._env(point, env), at.prec, {})

    def _env(self, point: Sequence[Any], env: Mapping[Any, Any]) -> dict[Any, Any]:
        return {**env, **dict(zip(self.unknowns, point, strict=True))}


__all__ = ["NOTHING", "Cancelling", "followed"]
