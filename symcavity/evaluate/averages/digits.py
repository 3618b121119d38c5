"""Averages to any number of digits: one loop over shared nodes, in an mpmath context of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Basic, Expr, Symbol

from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.legendre import exact_legendre
from symcavity.algebra.overflow import without_overflow
from symcavity.algebra.precision import context, mp
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.averages.boxes import boxed
from symcavity.evaluate.averages.densities import exact_rule
from symcavity.evaluate.averages.followed import exact_jump, followed_of
from symcavity.evaluate.averages.groups import NodeGroup
from symcavity.evaluate.averages.integrals import LAWS, Environment, Grids, Pass
from symcavity.evaluate.averages.inversion import COUNT, invert, within
from symcavity.evaluate.averages.names import loop_names, number_in
from symcavity.evaluate.averages.nodes import NODES, together
from symcavity.evaluate.averages.program import Program
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.averages.wells import Hull, hull_of, touching
from symcavity.evaluate.watch import tick
from symcavity.model.quantities import SiteQuantity

REACHED = 14.5  # digits that a refined grid of the array code has with COUNT nodes a panel
SPARE = 5  # digits by which sums over nodes are computed more precisely than asked
STEP = 1.25  # by how much the number of nodes grows until two rules agree
ROUNDS = 8


class _LawPoints:
    """The points of a law, as numbers of a context."""

    def __init__(self, group: NodeGroup, at: Any, level: int) -> None:
        self.families, self.at, self.level = group.families, at, level

    def points(self, laws: Any) -> Iterable[tuple[tuple[Any, ...], Any]]:
        """Return joint values with their weights."""
        law = laws[self.families[0].slots[0]]
        return law.kept(partial(self._made, law), self.families, self.level, (self.at, self.at.prec))

    def _made(self, law: SiteLaw) -> list[tuple[tuple[Any, ...], Any]]:
        at = self.at
        own = [q for q in law.names if q in self.families]
        rows: list[tuple[dict[Any, Any], Any]] = [({}, at.one)]
        if own and law.arrays:
            columns = [law.arrays[q] for q in own]
            share = at.one / len(columns[0])
            rows = [
                ({q: at.mpf(float(v)) for q, v in zip(own, row, strict=True)}, share)
                for row in zip(*columns, strict=True)
            ]
        elif own:
            rows = [
                ({q: number_in(at, v) for q, v in zip(own, row, strict=True)}, number_in(at, weight))
                for row, weight in law.marginal(own).items()
            ]
        for q, variable in law.continuous:
            if q in self.families:
                kinks = law.kinks.get(q, ())
                nodes = exact_rule(variable, at, self.level, partial(scalar_function, at=at), kinks)
                power = law.powers.get(q, 0)
                rows = [({**row, q: at.ldexp(x, power)}, w * v) for row, w in rows for x, v in nodes]
        return [(tuple(row[q] for q in self.families), w) for row, w in rows]


class _Panels:
    """Panels of Gauss-Legendre rules, whose ends were found in double."""

    def __init__(self, ends: np.ndarray, at: Any, count: int, digits: float) -> None:
        reach = float(ends[-1]) + max(0.0, float(np.sqrt(2 * np.log(10) * digits)) - 9.0)
        more = max(0, int(np.ceil((reach - ends[-1]) / 2)))
        outer = np.linspace(ends[-1], reach, more + 1)[1:]
        self.ends = np.concatenate([-outer[::-1], ends, outer])
        self.at = at
        self.rule = [(at.make_mpf(x), at.make_mpf(w)) for x, w in exact_legendre(count, at.prec)]
        self.density = 1 / at.sqrt(2 * at.pi)
        self._still: list[tuple[Any, Any]] | None = None
        self._last: np.ndarray | None = None

    def gauss(self, breaks: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
        """Nodes and weights for averages over a standard Gaussian."""
        if self._still is not None and not breaks:
            return self._still
        at = self.at
        cuts = [t for t in breaks if hasattr(t, "_mpf_") and at.isfinite(t) and abs(t) < self.ends[-1]]
        edges = sorted({*(at.mpf(float(e)) for e in self.ends), *cuts})
        nodes = [(z, w * at.exp(-z * z / 2) * self.density) for z, w in self._nodes(edges)]
        if not breaks:
            self._still = nodes
        return nodes

    def implicit(
        self, law: Callable[[Any], tuple[Any, Any]], low: Any, high: Any
    ) -> Iterator[tuple[Any, Any]]:
        """Nodes and weights in an unknown x that solves ``psi(x) = z``; the ends need only be placed roughly."""
        at = self.at
        prec = at.prec

        def rough(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            pairs = [law(at.mpf(float(v))) for v in np.ravel(x)]
            values, slopes = (np.array([float(p[k]) for p in pairs]).reshape(np.shape(x)) for k in (0, 1))
            return values, slopes

        try:
            at.prec = 53
            ends = (None if v is None else float(v) for v in (low, high))
            found = invert(within(rough, *ends), self.ends, self._last)
        finally:
            at.prec = prec
        self._last = found
        edges = sorted(at.mpf(float(x)) for x in found)
        if low is not None:
            edges = [low, *(e for e in edges if e > low)] if edges[-1] > low else []
        if high is not None and edges:
            edges = [*(e for e in edges if e < high), high] if edges[0] < high else []
        if len(edges) < 2:
            return
        side = 1 if law(edges[len(edges) // 2])[1] > 0 else -1
        for x, w in self._nodes(edges):
            yield x, side * w

    def lowest(self, law: Any, low: Any, high: Any, jumps: Any) -> Iterator[tuple[Any, Any]]:
        """Nodes and weights at the lowest minimum in a well, and at its jumps; gaps end where these digits say."""

        def exact(_: int, ends: tuple[Any, Any], __: Any) -> tuple[Any, Any]:
            return touching(law, *ends)

        return self._beside_gaps(hull_of, exact, law, low, high, jumps)

    def followed(self, law: Any, low: Any, high: Any, jumps: Any) -> Iterator[tuple[Any, Any]]:
        """The same for the minimum that is reached from a start."""

        def exact(why: int, ends: tuple[Any, Any], places: tuple[Any, Any]) -> tuple[Any, Any]:
            return exact_jump(law, why, places, ends)

        return self._beside_gaps(followed_of, exact, law, low, high, jumps)

    def _beside_gaps(
        self, laid: Callable[..., Hull], exact: Callable[..., Any], law: Any, low: Any, high: Any, jumps: Any
    ) -> Iterator[tuple[Any, Any]]:
        at, prec = self.at, self.at.prec

        def rough(x: np.ndarray) -> tuple[np.ndarray, ...]:
            rows = np.array([[float(e) for e in law(at.mpf(float(v)))] for v in np.ravel(x)])
            return tuple(rows.T.reshape(-1, *np.shape(x)))

        try:
            at.prec = 53
            hull = laid(rough, float(self.ends[-1]), ())
            edges = hull.edges(self.ends)[0][0] if hull.has_gaps else None
        finally:
            at.prec = prec
        if edges is None:
            yield from self.implicit(lambda x: law(x)[:2], low, high)
            return
        turns = hull.turns
        why = turns.why if turns.why is not None else np.zeros(hull.left.shape, dtype=int)
        rows = zip(why[0], hull.left[0], hull.right[0], turns.places[0][0], turns.places[1][0], strict=True)
        numbers = [(int(k), *(at.mpf(float(v)) for v in row)) for k, *row in rows]
        gaps = sorted(exact(k, (a, b), (one, two)) for k, a, b, one, two in numbers if b > a)
        inner = [at.mpf(float(e)) for e in edges]
        inner = [e for e in inner if not any(a <= e <= b for a, b in gaps)]
        parts = zip([inner[0], *(b for _, b in gaps)], [*(a for a, _ in gaps), inner[-1]], strict=True)
        for first, last in parts:
            a, b = (first if low is None else max(first, low)), (last if high is None else min(last, high))
            if a < b:
                yield from self._nodes([a, *(e for e in inner if a < e < b), b])
        if jumps:
            steep = [max(gap, key=lambda y: law(y)[1]) for gap in gaps]  # where a minimum ends it is flat
            yield from ((y, jumps) for y in steep if (low is None or y > low) and (high is None or y < high))

    def _nodes(self, edges: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        for a, b in pairwise(edges):
            tick()
            middle, half = (a + b) / 2, (b - a) / 2
            for x, w in self.rule:
                yield middle + half * x, half * w


class _ExactBox:
    """An average with code of its own, at the precision of a context."""

    def __init__(self, node: Expr, at: Any) -> None:
        self.call, self.at = boxed(node, _single, "mpmath"), at

    def __call__(self, values: Mapping[Any, Any], laws: Any, _rows: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the value; there are no tangents here."""
        with mp.workprec(self.at.prec):
            env = {LAWS: laws, **{k: mp.convert(v) for k, v in values.items()}}
            return self.at.convert(self.call(env)), ()


class ExactPass:
    """Several expressions at any precision: each node of the integrals is visited once for all of them.

    Parameters
    ----------
    exprs : sequence of Expr
    """

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self.exprs = [together(e) for e in exprs]
        self._averages = [*dict.fromkeys(n for e in self.exprs for n in _outermost(e))]
        program = Program([*self.exprs, *self._averages], loops=True)
        self.inputs, self.groups, self.space = program.inputs, program.groups, program.space
        self.keys = [q.family if isinstance(q, SiteQuantity) else q for q in self.inputs]
        self._code = compile(program.source, "<exact pass>", "exec")
        self._runs = threading.local()
        self._double: Pass | None = None

    def _run(self, at: Any) -> Callable[..., Any]:
        known = self._runs.__dict__.setdefault("known", {})
        if at.prec not in known:
            space = {k: _ExactBox(v, at) if isinstance(v, NumberedAverage) else v for k, v in self.space.items()}
            names = loop_names(space, at)
            exec(self._code, names)  # noqa: S102 - code that was written here
            known[at.prec] = names["run"]
        return known[at.prec]

    @property
    def has_panels(self) -> bool:
        """Whether anything is integrated."""
        return any(g.kind != "sites" for g in self.groups)

    def is_ruled(self, env: Environment) -> bool:
        """Whether there are integrals, over fields or over densities."""
        return self.has_panels or any(
            env[LAWS][g.families[0].slots[0]].is_ruled(g.families) for g in self.groups if g.kind == "sites"
        )

    def guide(self, env: Environment) -> dict[Any, np.ndarray]:
        """Where panels end so that the array code has all of its digits."""
        if not self.has_panels:
            return {}
        if self._double is None:
            self._double = Pass(self.exprs)
        plain = {k: float(v) if hasattr(v, "_mpf_") else v for k, v in env.items()}
        grids = self._double.grids()
        self._double.refine(plain, grids)
        return panel_ends(self._double, grids)

    def at(
        self, env: Environment, prec: int, guide: Mapping[Any, np.ndarray], finer: int = 0
    ) -> list[Any]:
        """Return the values at a precision in bits, on the rules of a level of fineness."""
        return self._whole(env, prec, guide, finer)[: len(self.exprs)]

    def _whole(
        self, env: Environment, prec: int, guide: Mapping[Any, np.ndarray], finer: int
    ) -> list[Any]:
        """The values, and after them those of all averages; a budget of time is looked at."""
        tick()
        at = context(prec)
        digits = prec * 0.30103
        count = int(np.ceil(COUNT * digits / REACHED * STEP**finer)) + 2
        grids = [
            _LawPoints(g, at, finer) if g.kind == "sites" else _Panels(_ends(guide, g.key), at, count, digits)
            for g in self.groups
        ]
        try:
            inputs = [at.convert(env[key]) for key in self.keys]
        except KeyError as missing:
            raise ValuesError(f"{missing.args[0]} has no value.", "a value for every parameter") from None
        values: Sequence[Any] = self._run(at)(inputs, env.get(LAWS), grids)[0]
        return list(values)

    def settled(self, env: Environment, prec: int, guide: Mapping[Any, np.ndarray]) -> tuple[list[Any], int]:
        """Return the values, the number of nodes raised until two rules agree; and which level that was.

        The rules agree where all averages do: what is computed from these may cancel to any degree.  An average that
        is rounding, and shrinks with the precision, is zero, as that of an odd function is.

        Raises
        ------
        NotConverged
            If the rules do not agree.
        """
        if not self.is_ruled(env):
            return self.at(env, prec, guide), 0
        at = context(prec)
        count, spare = len(self.exprs), 3 * SPARE
        zeros: set[int] = set()
        before, last = self._whole(env, prec + spare, guide, 0), at.inf
        for level in range(1, ROUNDS):
            after = self._whole(env, prec + spare, guide, level)
            pairs = zip(before, after, strict=True)
            gaps = [0 if at.isinf(b) and a == b else abs(a - b) / (abs(b) or 1) for a, b in pairs]
            gap = max((g for k, g in enumerate(gaps) if k >= count and k not in zeros), default=0)
            if gap > last / 4 and spare < 2 * prec:  # it is rounding that the rules see
                spare += prec // 2
                coarse, after = after, self._whole(env, prec + spare, guide, level)
                zeros |= {k for k, v in enumerate(after) if at.ldexp(abs(v), prec // 4) < abs(coarse[k])}
                gap = max((g for k, g in enumerate(gaps) if k >= count and k not in zeros), default=0)
            if gap < at.eps * 4:
                return [at.zero if k in zeros else v for k, v in enumerate(after[:count])], level - 1
            before, last = after, gap
        raise NotConverged("An average did not converge.", before, float(gap), "fewer digits, or a smoother law")

    def __call__(self, env: Environment) -> list[Any]:
        """Return the values at mpmath's current precision."""
        values, _ = self.settled(env, mp.prec, self.guide(env))
        return [+mp.convert(v) if hasattr(v, "_mpf_") or hasattr(v, "_mpc_") else v for v in values]


def _outermost(expr: Basic) -> list[Basic]:
    """The averages of an expression that are in no other."""
    return [expr] if isinstance(expr, NODES) else [n for a in expr.args for n in _outermost(a)]


def _single(expr: Expr, _backend: str) -> Callable[[Environment], Any]:
    """One expression as a function of its environment, at mpmath's precision."""
    one = ExactPass([expr])
    return lambda env: one(env)[0]


def _ends(guide: Mapping[Any, np.ndarray], key: tuple[Any, ...]) -> np.ndarray:
    """The ends of the panels of an average; those over the weights of counts are sums over points in double."""
    if (found := guide.get(_in_double(key))) is None:
        raise ValuesError("Averages over the weight of a count are taken in double precision.", "dps <= 15")
    return found


def _in_double(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the same averages are called in double, where exponentials are written so that they do not overflow."""
    return tuple(without_overflow(part) if isinstance(part, Expr) else part for part in key)


def panel_ends(double: Pass, grids: Grids) -> dict[Any, np.ndarray]:
    """The ends of the panels of a pass in double, by what is integrated."""
    return {g.key: grid.ends for g, grid in zip(double.groups, grids, strict=True) if g.kind not in ("sites", "line")}


def scalar_function(expr: Expr, x: Symbol, at: Any) -> Callable[[Any], Any]:
    """Return an expression in one symbol as a function of the numbers of a context."""
    program = Program([expr], loops=True)
    names = loop_names(program.space, at)
    exec(program.source, names)  # noqa: S102 - code that was written here
    run = names["run"]
    return lambda value: run([value] if program.inputs == [x] else [], None, [])[0][0]
