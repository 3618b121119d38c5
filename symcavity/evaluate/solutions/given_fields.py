"""The given parts of fields in numbers: overlaps of two draws of what varies, and what a site has beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sympy import Add, Expr, S, Symbol

from symcavity.algebra.compiled import compiled
from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.integrals import Pass
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.pair_ends import scales
from symcavity.method.pair_given import GivenFields, GivenPart
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity

REACH = 8.5  # of standard Gaussians
ENDS = 3.2  # of the variable in which nodes crowd at an end
GAUSS = (3, 6)  # nodes of the first rules, which are exact where the sites' means are linear or quadratic
COARSEST, LEVELS = 0.5, 6  # the step of the trapezoidal rule after them, and how often it is halved
TOGETHER = 500  # sites
CLOSED = 1e-13  # what overlaps of two draws may differ from their closures by, in units of those of one

WeightedPoints = tuple[np.ndarray, np.ndarray]  # points and weights


@dataclass(frozen=True)
class WeightedSites:
    """What the sites of a kind have, by name, at points with weights; and the parameters that are given there."""

    values: Mapping[SiteQuantity, np.ndarray]
    weights: np.ndarray
    given: Mapping[SiteQuantity, np.ndarray]

    def matrices(self, names: Sequence[Sequence[Expr]]) -> np.ndarray:
        """Of each site the matrix of what it has by name, zero for what is no name."""
        none = np.zeros_like(self.weights)
        return np.array([[self.values.get(q, none) for q in row] for row in names]).transpose(2, 0, 1)

    def mean(self, body: Expr) -> float:
        """The average over the sites of a product of names."""
        found = self.weights
        for q, power in body.as_powers_dict().items():
            found = found * self.values[q] ** int(power)
        return float(np.sum(found))


class SiteValues:
    """The quantities of a site as functions of the given parameters: averages over the varying ones, compiled once."""

    def __init__(self, given: GivenFields, part: GivenPart, solution: Any) -> None:
        self.part = part
        held = (*part.given, *part.fields.values())
        self.symbols = {q: Symbol(f"at_{q.name}", real=True) for q in held}
        rule = {q.at_site(): s for q, s in self.symbols.items()}
        own = {name: (body, off) for name, (kind, body, off) in given.meanings.items() if kind == part.kind}
        self.off = {name: off for name, (_, off) in own.items()}
        exprs = [Average(part.over_fields(body).xreplace(rule)) for body, _ in own.values()]
        exprs = [e.xreplace(solution.task.units) for e in exprs]
        self._pass = Pass(solution.task.absorbed(solution.given.laws, tuple(exprs)))
        self.refine()

    def at(self, env: Mapping[Any, Any], left: np.ndarray, points: Mapping[Any, np.ndarray]) -> dict[Any, np.ndarray]:
        """Every name at the values of what is given, and at the covariances of the parts of fields that vary."""
        heard = list(self.part.fields)
        known = {s: left[heard.index(h), heard.index(g)] for (h, g), s in self.part.left.items() if s != 0}
        count = len(next(iter(points.values()))) if points else 1
        rows = []
        for k in range(0, count, TOGETHER):
            here = {self.symbols[q]: column[k : k + TOGETHER] for q, column in points.items()}
            found = self._averages({**env, **known, **here})
            rows.append([np.broadcast_to(np.ravel(v), min(TOGETHER, count - k)) for v in found])
        self._fresh = False
        out = {name: np.concatenate([row[n] for row in rows]) for n, name in enumerate(self.off)}
        for name, off in self.off.items():
            if off != 0:
                out[name] = out[name] - np.prod([out[q] ** int(n) for q, n in off.as_powers_dict().items()], axis=0)
        return out

    def refine(self) -> None:
        """Refine the rules anew, for the next sites."""
        self._grids, self._fresh = self._pass.grids(), True

    def _averages(self, env: Mapping[Any, Any]) -> Any:
        """The averages at some sites; sites between those for which the rules were refined need no finer ones."""
        if self._fresh:
            self._pass.refine(env, self._grids)
        return self._pass.at(env, self._grids)[0]


class GivenNumbers:
    """The overlaps of two draws at a solution, and averages of what sites have beside the given parts of fields.

    In double.  Averages over the given parts are taken by rules that are refined until they agree: at the levels below
    zero by those of Gauss and Hermite, then by the trapezoidal one.  ``level`` is the last one.

    Raises
    ------
    UnsupportedLaw
        For more digits, and parameters given site by site beside others that vary.
    NotConverged
        If the rules do not agree.
    """

    def __init__(self, solution: Any, given: GivenFields) -> None:
        self.solution, self.given = solution, given
        self.env: dict[Any, Any] = solution.environment("numpy")
        self.sites = {kind: SiteValues(given, part, solution) for kind, part in given.parts.items()}
        self.overlaps = dict.fromkeys(given.overlaps, 0.0)
        self.kinds: dict[Kind, WeightedSites] = {}
        self._numbers: dict[Expr, float] = {}
        self._linear: dict[Kind, tuple[np.ndarray, dict[Any, np.ndarray]]] = {}
        self.level = 0
        before: dict[Kind, np.ndarray] = {}
        for level in range(-len(GAUSS) if all(map(self._is_gaussian, self.sites)) else 0, LEVELS):
            self.level = level
            if not self._close(level):  # so coarse a rule may give two draws more in common than one has
                self.overlaps, before = dict.fromkeys(given.overlaps, 0.0), {}
                continue
            if not before:  # with rules that are refined at these overlaps
                for site in self.sites.values():
                    site.refine()
                if not self._close(level):
                    continue
            seen = {kind: _moments(sites) for kind, sites in self.kinds.items()}
            if before and all(self._agree(before[kind], seen[kind], sites) for kind, sites in self.kinds.items()):
                return
            before = seen
        raise NotConverged(
            "Averages over the given parts of fields did not converge.", hint="parameters that vary more widely"
        )

    def _agree(self, one: np.ndarray, other: np.ndarray, sites: WeightedSites) -> bool:
        """Whether two rules give the same, in units of what each is at most: covariances in those of variances."""
        own = dict(zip(sites.values, np.sqrt(np.diag(other)), strict=True))
        size = [np.sqrt(np.prod([own[q] for q in self.given.bounds.get(name, (name, name))])) for name in own]
        return bool(np.all(abs(one - other) <= tolerances().ruled * np.outer(size, size)))

    def number(self, expr: Expr) -> Any:
        """The number of an expression in averages of names, and in what the solution knows."""
        total = mp.zero
        for term in Add.make_args(expr.expand()):
            nodes = {node: kind for node in term.atoms(Average) if (kind := self._kind(node)) is not None}
            factor, rest = term.as_independent(*nodes, as_Add=False) if nodes else (term, S.One)
            value = self.solution.number(factor) if factor != 0 else mp.zero
            for node, power in rest.as_powers_dict().items() if nodes else ():
                value *= mp.mpf(self.kinds[nodes[node]].mean(node.body)) ** int(power)
            total += value
        return total

    def _is_gaussian(self, kind: Kind) -> bool:
        """Whether all that is given of a site is Gaussian, or has few values, and nothing jumps with it."""
        part, law = self.given.parts[kind], self.solution.given.laws.get(kind, SiteLaw())
        others = [q for q in part.given if q not in law.gaussian]
        return not law.is_ruled(others) and not (part.jumps and len(part.trained) < len(part.fields))

    def _kind(self, node: Average) -> Kind | None:
        """The kind of sites whose names are averaged; None of what the solution knows."""
        meanings = self.given.meanings
        return next((meanings[q][0] for q in node.body.atoms(SiteQuantity) if q in meanings), None)

    # -- closing -----------------------------------------------------------------------------------

    def _close(self, level: int) -> bool:
        """Solve for the overlaps of two draws: by Broyden's method, from those that are known, at first from zero.

        The map is a power series in them with positive coefficients, where there is one; from below its iteration ends
        at the smallest root, at which small differences of two draws shrink.  A step ends where parts of fields still
        vary.  False if no root is found by the rule of this level.
        """
        names = list(self.overlaps)
        whole = np.array([max(abs(self._known(one)), np.finfo(float).tiny) for one, _ in self.given.overlaps.values()])
        now, turn = np.array([self.overlaps[s] for s in names]), np.eye(len(names))
        gap = self._map(now, level) - now
        for _ in range(NEWTON):
            if np.all(abs(gap) <= CLOSED * whole):
                return True
            step = turn @ gap
            while not self._varies(now + step):
                step = step / 2
                if np.all(abs(step) <= CLOSED * whole):
                    return False  # at the edge, beyond which the rule has no parts of fields that vary
            after = self._map(now + step, level) - (now + step)
            moved = turn @ (after - gap)
            if step @ moved != 0:
                turn = turn - np.outer(step + moved, step @ turn) / (step @ moved)
            now, gap = now + step, after
        return False

    def _set(self, overlaps: np.ndarray) -> None:
        self.overlaps = dict(zip(self.overlaps, map(float, overlaps), strict=True))

    def _varies(self, overlaps: np.ndarray) -> bool:
        """Whether the parts of fields that are not given have variances at these overlaps that are not negative."""
        self._set(overlaps)
        return all(np.all(np.diag(self.left(kind)) >= 0) for kind in self.sites)

    def _map(self, overlaps: np.ndarray, level: int) -> np.ndarray:
        """The closures at given overlaps; what sites have there is kept."""
        self._set(overlaps)
        for kind in self.sites:
            self.kinds[kind] = self.at(kind, level)
        return np.array([float(self.number(e)) for _, e in self.given.overlaps.values()])

    def at(self, kind: Kind, level: int) -> WeightedSites:
        """The sites of a kind at the overlaps as they are, by the rule of a level."""
        site, part = self.sites[kind], self.given.parts[kind]
        shared = self._shared(kind, self.overlaps)
        columns, weights = self._given(kind, level)
        spread, lines = self._spread(part, shared, level)
        standard = np.array(list(product(*(line for line, _ in lines)))).T
        fields = spread @ standard
        share = np.array(list(product(*(density for _, density in lines)))).prod(axis=1)
        count = len(weights)
        points = {q: np.repeat(v, len(share)) for q, v in columns.items()}
        known = {q.at_site(): column for q, column in points.items()}
        for (h, m), row in zip(part.fields.items(), fields, strict=True):
            strength = compiled(list(known), scales(h.declared)[0])(*known.values())
            points[m] = np.tile(row, count) * strength
        return WeightedSites(site.at(self.env, self.left(kind), points), np.outer(weights, share).ravel(), known)

    @staticmethod
    def _spread(part: GivenPart, shared: np.ndarray, level: int) -> tuple[np.ndarray, list[WeightedPoints]]:
        """The given parts of fields by independent standard Gaussians, and a rule for each of these.

        Those of given emissions come first; where the law may jump with them, each has a rule for either sign.
        """
        first = [k for k, h in enumerate(part.fields) if h not in part.trained]
        rest = [k for k in range(len(shared)) if k not in first]
        lower = np.linalg.cholesky(shared[np.ix_(first, first)])
        along = np.linalg.solve(lower, shared[np.ix_(first, rest)]).T
        size, roots = np.linalg.eigh(shared[np.ix_(rest, rest)] - along @ along.T)
        wide = [k for k in range(len(size)) if size[k] > 0]
        spread = np.zeros((len(shared), len(first) + len(wide)))
        spread[first, : len(first)], spread[rest, : len(first)] = lower, along
        spread[rest, len(first) :] = (roots * np.sqrt(np.maximum(size, 0)))[:, wide]
        jumping = _halves(COARSEST / 2**level) if part.jumps and first else _smooth(level)
        return spread, [jumping] * len(first) + [_smooth(level)] * len(wide)

    def left(self, kind: Kind) -> np.ndarray:
        """The covariances of the parts of the fields of a site that vary."""
        whole = {s: self._known(one) for s, (one, _) in self.given.overlaps.items()}
        return self._shared(kind, whole) - self._shared(kind, self.overlaps)

    def _shared(self, kind: Kind, overlaps: Mapping[Any, float]) -> np.ndarray:
        """The covariances of the given parts of the fields of a site: they are linear in overlaps of two draws."""
        if kind not in self._linear:
            self._linear[kind] = self._coefficients(kind)
        fixed, rates = self._linear[kind]
        return np.add(fixed, sum(overlaps[s] * rate for s, rate in rates.items()))

    def _coefficients(self, kind: Kind) -> tuple[np.ndarray, dict[Any, np.ndarray]]:
        heard, entries = list(self.given.parts[kind].fields), self.given.covariance(kind)

        def matrix(parts: Mapping[Any, Expr]) -> np.ndarray:
            out = np.zeros((len(heard), len(heard)))
            for (h, g), e in parts.items():
                out[heard.index(h), heard.index(g)] = self._known(e)
            return out

        none = dict.fromkeys(self.overlaps, S.Zero)
        found = [s for s in self.overlaps if any(e.has(s) for e in entries.values())]
        rates = {s: matrix({two: e.coeff(s) for two, e in entries.items()}) for s in found}
        return matrix({two: e.xreplace(none) for two, e in entries.items()}), rates

    def _known(self, expr: Expr) -> float:
        if expr not in self._numbers:
            self._numbers[expr] = float(self.solution.number(expr)) if expr != 0 else 0.0
        return self._numbers[expr]

    def _given(self, kind: Kind, level: int) -> tuple[dict[Any, np.ndarray], np.ndarray]:
        """The values of the parameters that are given at the sites of a kind, with their weights."""
        families = self.given.parts[kind].given
        if not families:
            return {}, np.ones(1)
        law = self.solution.given.laws[kind]
        if both := [q for q in self.given.over if q in law.arrays]:
            raise UnsupportedLaw(
                f"{both[0]} has its values site by site, as {families[0]} has: it does not vary beside it.",
                "laws, {value: weight}, of what varies",
            )
        gaussian = {q: (float(mean), float(std)) for q, (mean, std) in law.gaussian.items() if level < 0}
        others = [q for q in families if q not in gaussian]
        known, weights = dict[Any, np.ndarray](), np.ones(1)
        if others:
            columns, shares = law.table(others, max(level, 0))
            known, count = dict(zip(others, columns, strict=True)), len(columns[0])
            weights = np.full(count, 1 / count) if shares is None else shares
        points, density = _smooth(level)
        for q in (q for q in families if q in gaussian):
            mean, std = gaussian[q]
            known = {name: np.repeat(column, len(points)) for name, column in known.items()}
            known[q] = np.tile(mean + std * points, len(weights))
            weights = np.repeat(weights, len(points)) * np.tile(density, len(weights))
        return known, weights


def _smooth(level: int) -> WeightedPoints:
    """The points of a standard Gaussian and their shares: of Gauss and Hermite, or at equal distances."""
    if level < 0:
        points, widths = np.polynomial.hermite_e.hermegauss(GAUSS[level])
        return points, widths / np.sum(widths)
    step = COARSEST / 2**level
    line = np.arange(-round(REACH / step), round(REACH / step) + 1) * step
    return _weighed(line, np.ones_like(line))


def _weighed(points: np.ndarray, widths: np.ndarray) -> WeightedPoints:
    """The shares of points of a standard Gaussian."""
    density = np.exp(-(points**2) / 2) * widths
    return points, density / np.sum(density)


def _halves(step: float) -> WeightedPoints:
    """A rule that is as good where its function jumps at zero: with nodes that crowd there, on either side."""
    s = np.arange(-round(ENDS / step), round(ENDS / step) + 1) * step
    bent = np.pi / 2 * np.sinh(s)
    points, widths = REACH / (1 + np.exp(-2 * bent)), np.cosh(s) / np.cosh(bent) ** 2
    return _weighed(np.concatenate([-points[::-1], points]), np.concatenate([widths[::-1], widths]))


def _moments(sites: WeightedSites) -> np.ndarray:
    """The means of products of two names, in units of their sizes."""
    values = np.array(list(sites.values.values()))
    return (values * sites.weights) @ values.T

