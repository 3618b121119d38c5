"""Closed forms whose terms cancel in double: seen by the size of the terms, and evaluated with digits enough."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, Piecewise, Symbol, expand_mul

from symcavity.algebra.phi import phi
from symcavity.algebra.precision import context, mp
from symcavity.algebra.reflected import reflected
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import LAWS, Pass
from symcavity.evaluate.averages.nodes import join
from symcavity.evaluate.averages.quenched import MANY_SITES
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.averages import Average

NOTHING = 1e-250  # what has faded is taken to be as small as that, where something is divided by it
EPS = 2.3e-16
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
    conditions : collection of int
        Those that are to vanish: near the root it is no loss that they do.

    Notes
    -----
    Where the terms of one cancel, its polynomials are taken together first, which costs no more than it did; what
    cancels then as well is evaluated with digits.
    """

    def __init__(
        self, exprs: Mapping[int, Expr], unknowns: Sequence[Symbol], conditions: Collection[int] = ()
    ) -> None:
        self.unknowns, self.conditions = list(unknowns), frozenset(conditions)
        rows = {k: Add.make_args(expand_mul(e, deep=False)) for k, e in exprs.items()}
        self.rows = {k: row for k, row in rows.items() if len(row) > 1}
        self._passes: dict[Any, Pass] = {}
        self._exact: dict[int, ExactPass] = {}
        self._others: dict[int, tuple[Expr, ...]] = {}

    def values(self, x: np.ndarray, env: Mapping[Any, Any]) -> dict[int, float]:
        """The values of which double leaves too little, with digits; zero is what vanishes to 700 of them."""
        losing = self._losing(x, env)
        out = {k: v for k, (v, _) in self._reflected(losing, x, env).items()}
        return out | {k: float(v) for k, v, _, _ in self._mended([k for k in losing if k not in out], x, env)}

    def slopes(self, x: np.ndarray, env: Mapping[Any, Any]) -> dict[int, tuple[float, np.ndarray]]:
        """The same values with their derivatives by the unknowns; where digits are needed, from differences in more."""
        losing = self._losing(x, env)
        out = self._reflected(losing, x, env, slopes=True)
        for k, value, _, bits in self._mended([k for k in losing if k not in out], x, env):
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
        return bool(self._losing(x, env))

    def digits(self, x: np.ndarray, env: Mapping[Any, Any]) -> int:
        """How many digits the terms lose, at the most, of what they add up to."""
        mended = self._mended(self._losing(x, env), x, env)
        return max((int(mp.log10(size / abs(v))) + 1 for _, v, size, _ in mended if v), default=0)

    def _losing(self, x: np.ndarray, env: Mapping[Any, Any]) -> list[int]:
        """Of which values rounding leaves too little, and more is to be had."""
        losing = self._short(self.rows, x, env) if self.rows else []
        return [k for k in losing if self._has_digits(k, env)]

    def _short(self, rows: Mapping[int, Sequence[Expr]], x: np.ndarray, env: Mapping[Any, Any]) -> list[int]:
        terms = iter(self._run([term for row in rows.values() for term in row], x, env)[0])
        here = {k: [float(next(terms)) for _ in row] for k, row in rows.items()}
        kept = tolerances().kept
        return [k for k, row in here.items() if any(row) and not EPS * sum(map(abs, row)) < kept * abs(sum(row))]

    def _run(self, exprs: Sequence[Expr], x: np.ndarray, env: Mapping[Any, Any], *, slopes: bool = False) -> Any:
        key = tuple(exprs), slopes
        if key not in self._passes:
            self._passes[key] = Pass(exprs, self.unknowns if slopes else ())
        one = self._passes[key]
        return one.at(self._env(x.tolist(), env), one.grids())

    def _reflected(
        self, losing: Sequence[int], x: np.ndarray, env: Mapping[Any, Any], *, slopes: bool = False
    ) -> dict[int, tuple[float, np.ndarray]]:
        """The values, and their derivatives, of which enough is left once polynomials are taken together."""
        for k in losing:
            if k not in self._others:
                self._others[k] = _taken_together(self.rows[k])
        rows = {k: self._others[k] for k in losing if self._others[k]}
        short = set(self._short(rows, x, env)) - self.conditions if rows else set()
        rows = {k: row for k, row in rows.items() if k not in short}
        if not rows:
            return {}
        values, turns = self._run([Add(*row) for row in rows.values()], x, env, slopes=slopes)
        table = turns if slopes else [()] * len(rows)
        out = {k: (float(v), np.array(t, dtype=float)) for k, v, t in zip(rows, values, table, strict=True)}
        out = {k: (v, np.where(np.isnan(t), 0.0, t)) for k, (v, t) in out.items()}  # a tail of zero, times infinity
        return {k: (v, t) for k, (v, t) in out.items() if np.isfinite(v) and np.isfinite(t).all()}

    def _mended(
        self, losing: Sequence[int], x: np.ndarray, env: Mapping[Any, Any]
    ) -> Iterator[tuple[int, Any, Any, int]]:
        """With digits: place, value, the moduli of its terms together, bits."""
        for k in losing:
            for bits in BITS:
                at = context(bits)
                try:
                    exact = self._at(k, [at.mpf(v) for v in x.tolist()], env, at)
                except ArithmeticError:
                    break
                if any(hasattr(v, "_mpc_") for v in exact):  # it has no real value there
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


def _taken_together(row: Sequence[Expr]) -> tuple[Expr, ...]:
    """The terms of a sum whose truncated moments have their polynomials taken together; none where there are none."""
    joined = join(Add(*row), lambda body: body.has(phi))
    terms: list[Expr] = []
    for term in Add.make_args(expand_mul(reflected(joined), deep=False)):
        factor, node = term.as_independent(Average, as_Add=False)
        parts = Add.make_args(expand_mul(node.body, deep=False)) if isinstance(node, Average) else ()
        terms += [factor * Average(part) for part in parts] or [term]
    return tuple(terms) if any(term.has(Piecewise) for term in terms) else ()
