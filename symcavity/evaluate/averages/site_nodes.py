"""Averages of many functions of one site in double: its law is solved at nodes once, for all of them together.

The fields are standard Gaussians along lines of panels, which end where the law switches.  A site hears one field, or
two, of which only the last one switches its law, or falls into two parts with a field each.  Panels end, too, where
formulas or functions switch with a field, as the labels of a teacher do.  They are made smaller until averages agree;
a function with kinks elsewhere does not settle, and has no value here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sympy import Abs, DiracDelta, Dummy, Expr, Heaviside, Max, Min, Mul, Piecewise, S, Sum, default_sort_key, sign

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.legendre import legendre
from symcavity.algebra.quadrature import break_points
from symcavity.evaluate.averages.grids import REACH
from symcavity.evaluate.averages.inversion import COUNT
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.part_averages import SiteParts
from symcavity.sites.labels import LabelledEnsemble

PANELS = (6, 9, 18, 36)  # of a line, at first and each time that they are made smaller
SETTLED = 1e-13  # of the average modulus: what smaller panels may change
TOGETHER = 2**18  # nodes
MOST_FIELDS = 2
SWITCHES = (sign, Heaviside, Piecewise, Abs, Max, Min)
INNER = (Sum, GaussianAverage, ImplicitAverage)


@dataclass(frozen=True)
class FieldLine:
    """One field of a site, and the part of the site that it switches; None where it switches nothing.

    The bends are values of the field at which formulas are not smooth, at given fields of the lines before.
    """

    field: Any
    part: SiteEnsemble | None
    bends: tuple[Expr, ...] = ()

    def knows(self, q: Any) -> bool:
        """Whether a state, or the response of one, is a function of this field and those before it."""
        if self.part is None:
            return False
        if isinstance(q, SiteResponse):
            return q.state in self.part.solution.unknowns and q.field in self.part.sources
        return q in self.part.solution.unknowns

    def formulas(self, names: Sequence[Any]) -> list[list[Expr]]:
        """The reflection of the field, the ends of all regions but the last and the bends; what has a name in each."""
        if self.part is None:
            return [[S.One, *self.bends]]
        site, solution = self.part, self.part.solution
        out = [[solution.reflection, *(r.high for r in solution.regions[:-1]), *self.bends]]
        for region in solution.regions:
            values = region.values
            out.append([site.response(values, None, q) if isinstance(q, SiteResponse) else values[q] for q in names])
        return out


def lines_of(ensemble: Any) -> list[FieldLine]:
    """The fields of a site, one after the other; none of a law that formulas do not solve along one or two lines."""
    if not isinstance(ensemble, SiteEnsemble) or not 0 < len(ensemble.fields) <= MOST_FIELDS:
        return []
    if ensemble.solution.parts:
        parts = SiteParts(ensemble).alone
        found = [FieldLine(part.fields[-1], part) for part in parts]
        if {line.field for line in found} != {*ensemble.fields} or any(part.outer for part in parts):
            return []
    else:
        found = [*(FieldLine(f, None) for f in ensemble.outer), FieldLine(ensemble.fields[-1], ensemble)]
    for part in (line.part for line in found if line.part is not None):
        regions = part.solution.regions
        exprs = [e for r in regions for e in (*r.values.values(), r.high) if e is not None]
        if not regions or any(r.implicit for r in regions) or any(r.high is None for r in regions[:-1]):
            return []
        if any(e.has(*INNER) for e in exprs):
            return []
    return found


def bent(lines: Sequence[FieldLine], bodies: Sequence[Expr]) -> list[FieldLine]:
    """The lines with the places where formulas, or functions of what has one, switch: on the last line that they hear.

    A place that is not found costs time: averages do not settle on panels that it divides.
    """
    regions = [line.part.solution.regions for line in lines if line.part is not None]
    every = [e for rows in regions for r in rows for e in (*r.values.values(), r.high) if e is not None]
    switches = {s for body in bodies for s in body.atoms(*SWITCHES)}
    for chosen in product(*regions) if switches else ():
        values = {q: v for r in chosen for q, v in r.values.items()}
        every += [s.xreplace(values) for s in switches]
    found = sorted({s for e in every for s in e.atoms(*SWITCHES)}, key=default_sort_key)
    out = []
    for k, line in enumerate(lines):
        later = [other.field for other in lines[k + 1 :]]
        own = [s for s in found if s.has(line.field) and not (later and s.has(*later))]
        out.append(replace(line, bends=tuple({t: None for s in own for t in break_points(s, line.field)})))
    return out


class SiteNodes:
    """The averages of functions of a site at a solution.

    Parameters
    ----------
    ensemble : SiteEnsemble
    law : SiteLaw
    env : mapping
        The values of everything that is the same at all sites.
    read : callable
        An expression of the theory in what has a value there.
    number : callable
        The value of an average that stands in an expression, as of the weights of a teacher.
    """

    def __init__(
        self,
        ensemble: Any,
        law: SiteLaw,
        env: Mapping[Any, Any],
        read: Callable[[Expr], Expr],
        number: Callable[[Expr], Any],
    ) -> None:
        self.labels: tuple[Quenched, ...] = ()
        if isinstance(ensemble, LabelledEnsemble):
            ensemble, self.labels = ensemble.site, ensemble.labels
        self.ensemble, self.law, self.env, self.number = ensemble, law, env, number
        self.lines = lines_of(ensemble) if all(y.law is not None and y.low is None for y in self.labels) else []
        zero: dict[Any, Expr] = dict.fromkeys(ensemble.solution.sources, S.Zero) if self.lines else {}
        self.read = lambda expr: read(expr.xreplace(zero))

    def means(self, bodies: Sequence[Expr]) -> dict[Expr, float]:
        """The average of each function that has one here."""
        asked = [body for body in bodies if self._is_known(body)] if self.lines else []
        out: dict[Expr, float] = {}
        if asked:
            at_nodes, before = [FunctionsAtNodes(self, asked, *case) for case in self._labels()], None
            for level, panels in enumerate(PANELS):
                tick("averages of single sites at nodes")
                now, sizes = np.sum([at.sums(panels, level) for at in at_nodes], axis=0)
                if before is not None:
                    settled = abs(now - before) <= SETTLED * sizes
                    out = {body: float(v) for body, v, good in zip(asked, now, settled, strict=True) if good}
                    if all(settled):
                        break
                before = now
        return out

    def _labels(self) -> Iterator[tuple[dict[Expr, Expr], Expr]]:
        """All values of the labels that are drawn on fields of the site, each with its probability at these fields."""
        for chosen in product(*(y.law.args for y in self.labels if y.law is not None)):
            values = {y.at_site(): value for y, (value, _) in zip(self.labels, chosen, strict=True)}
            yield values, Mul(*(share for _, share in chosen))

    def _is_known(self, body: Expr) -> bool:
        """Whether a function is one of states that do not jump, responses to fields, and quenched parameters."""
        own, answers = self.ensemble.solution.unknowns, body.atoms(SiteResponse)
        jumping = {q for line in self.lines if line.part is not None for q in line.part.solution.jumping}
        if body.has(*INNER) or any(r.state in jumping or r.field not in self.ensemble.sources for r in answers):
            return False
        rows = (line.formulas([r for r in answers if line.knows(r)])[1:] for line in self.lines)
        if any(e.has(DiracDelta) for regions in rows for row in regions for e in row):
            return False  # of a state that jumps with what it hears
        if any(r.field == y.given for r in answers for y in self.labels):
            return False  # the label's law responds, too
        drawn = [q for q in site_quantities(body.replace(Average, lambda *_: S.One)) if q not in own]
        drawn = [q for q in drawn if q.family not in self.labels]
        return all(isinstance(q.family, Quenched) and q.family.given is None for q in drawn)


class FunctionsAtNodes:
    """Some functions of a site in code: the law along its lines, and the functions of what the site is there.

    Labels that are drawn on the fields have one of their values each, and functions a factor, its probability.
    """

    def __init__(self, nodes: SiteNodes, bodies: Sequence[Expr], labels: Mapping[Expr, Expr], share: Expr) -> None:
        self.law, self.env = nodes.law, dict(nodes.env)
        bodies = [share * body for body in bodies]
        lines = bent(nodes.lines, bodies)
        fields = [line.field for line in lines]
        names = {q for body in bodies for q in site_quantities(body) if not isinstance(q.family, Quenched)}
        names |= {r for body in bodies for r in body.atoms(SiteResponse)}
        named = [[q for q in sorted(names, key=str) if line.knows(q)] for line in lines]
        self.silent = sorted(names - {q for row in named for q in row}, key=str)  # responses to what others hear
        spread = [nodes.ensemble.covariance[a, b] for k, a in enumerate(fields) for b in fields[: k + 1]]
        laws = [line.formulas(row) for line, row in zip(lines, named, strict=True)]
        marks = {a: Dummy("k", real=True) for e in (*spread, *bodies, *_all(laws)) for a in e.atoms(Average)}
        self.env |= {mark: float(nodes.number(node)) for node, mark in marks.items()}

        def read(e: Expr) -> Expr:
            return nodes.read(e.xreplace(marks).xreplace(labels))

        laws = [[[read(e) for e in row] for row in rows] for rows in laws]
        spread, asked = [read(e) for e in spread], [read(e) for e in bodies]
        every = [*spread, *asked, *_all(laws)]
        quenched = {q.family for e in every for q in site_quantities(e, Quenched)}
        self.families = tuple(sorted(quenched, key=lambda f: f.name))
        self.params = sorted({s for e in every for s in e.free_symbols if s in self.env}, key=str)
        known = [*self.params, *(f.at_site() for f in self.families)]
        self.spread = function(known, spread, cse=True)
        self.sites = [[function([*known, *fields], row, cse=True) for row in rows] for rows in laws]
        self.bodies = function([*known, *(q for row in named for q in row), *self.silent], asked, cse=True)

    def sums(self, panels: int, level: int) -> tuple[np.ndarray, np.ndarray]:
        """The average of each function and of its modulus, on so many panels of each line."""
        columns, weights = self.law.table(self.families, level) if self.families else ((), np.ones(1))
        count = len(columns[0]) if columns else 1
        shares = np.full(count, 1 / count) if weights is None else weights
        width = (panels + 2) * COUNT
        step = max(1, TOGETHER // width ** len(self.sites))
        parts = [
            self._summed([c[k : k + step] for c in columns], shares[k : k + step], panels)
            for k in range(0, count, step)
        ]
        return np.sum([p[0] for p in parts], axis=0), np.sum([p[1] for p in parts], axis=0)

    def _summed(self, columns: Sequence[np.ndarray], shares: np.ndarray, panels: int) -> tuple[np.ndarray, np.ndarray]:
        values: list[Any] = [self.env[s] for s in self.params]
        depth = len(self.sites)

        def known(axes: int) -> list[Any]:
            return [*values, *(c.reshape(-1, *[1] * axes) for c in columns)]

        spread = [np.broadcast_to(np.asarray(e, dtype=float), shares.shape) for e in self.spread(*known(0))]
        lower = _roots(spread, depth)
        weight, standard, fields, found = shares, list[np.ndarray](), list[Any](), list[np.ndarray]()
        with np.errstate(all="ignore"):
            for k, (ends, *regions) in enumerate(self.sites):
                tied = [lower[k][j].reshape(-1, *[1] * k) * standard[j] for j in range(k)]
                mean = sum(tied) + np.zeros(weight.shape)
                scale = lower[k][k].reshape(-1, *[1] * k) + np.zeros(weight.shape)
                unknown = [np.nan] * (depth - k)
                way, *places = (np.asarray(e, dtype=float) for e in ends(*known(k), *fields, *unknown))
                cuts = [(high - way * mean) / scale for high in places[: max(0, len(regions) - 1)]]
                bends = [way * (place - mean) / scale for place in places[len(cuts) :]]
                z, rule, place = _nodes(cuts, bends, panels, weight.shape)
                weight = weight[..., None] * rule
                standard = [*(s[..., None] for s in standard), way[..., None] * z if way.ndim else way * z]
                fields = [*(f[..., None] for f in fields), mean[..., None] + scale[..., None] * standard[-1]]
                found = [v[..., None] for v in found]
                rows = [region(*known(k + 1), *fields, *unknown[1:]) for region in regions]
                for at in zip(*rows, strict=True) if rows else ():
                    found.append(_chosen(at, place))
            sums = self.bodies(*known(depth), *found, *([0.0] * len(self.silent)))
            pairs = [(np.sum(weight * v), np.sum(weight * np.abs(v))) for v in sums]
        return np.array([v for v, _ in pairs]), np.array([v for _, v in pairs])


def _all(laws: Sequence[Sequence[Sequence[Expr]]]) -> Iterator[Expr]:
    return (e for rows in laws for row in rows for e in row)


def _roots(spread: Sequence[np.ndarray], depth: int) -> list[list[np.ndarray]]:
    """The lower triangular square root of covariances of one or two fields."""
    first = np.sqrt(spread[0])
    if depth == 1:
        return [[first]]
    across = np.divide(spread[1], first, out=np.zeros_like(first), where=first != 0)
    return [[first], [across, np.sqrt(np.maximum(spread[2] - across**2, 0.0))]]


def _nodes(
    cuts: Sequence[np.ndarray], bends: Sequence[np.ndarray], panels: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Points and weights of a standard Gaussian in panels that end at cuts and bends, and the number of cuts below."""
    base = np.broadcast_to(np.linspace(-REACH, REACH, panels + 1), (*shape, panels + 1))
    inside = [np.broadcast_to(np.clip(np.nan_to_num(c), -REACH, REACH), shape)[..., None] for c in (*cuts, *bends)]
    edges = np.sort(np.concatenate([base, *inside], axis=-1), axis=-1)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, (edges[..., 1:] - edges[..., :-1]) / 2
    x, rule = legendre(COUNT)
    z = (middle[..., None] + half[..., None] * x).reshape(*shape, -1)
    weights = (half[..., None] * rule).reshape(z.shape) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    place = sum((np.broadcast_to(c, shape)[..., None] < middle).astype(int) for c in cuts)
    return z, weights, np.repeat(place, COUNT, axis=-1) if cuts else 0


def _chosen(values: Sequence[Any], place: Any) -> np.ndarray:
    """The quantities that differ between regions, by the region in which a node lies."""
    out = np.asarray(values[0], dtype=float)
    for k, value in enumerate(values[1:], start=1):
        out = np.where(place >= k, value, out)
    return out
