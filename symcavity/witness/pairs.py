"""Witnesses of two sites at once: large linear instances with the declared couplings, solved as matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from sympy import Add, Dummy, Float, Rational, S, Symbol, Tuple

from symcavity.algebra.compiled import compiled
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.solutions.given_fields import GivenNumbers
from symcavity.finite.draw import reciprocal
from symcavity.method.average import message_response
from symcavity.method.pair import Pair
from symcavity.method.pair_ends import Leg, scales, weighed
from symcavity.method.pair_resolvent import Resolvent
from symcavity.model.averages import Average
from symcavity.model.couplings import correlation_of
from symcavity.model.families import families
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.witness.points import solved_point
from symcavity.witness.registry import result, witness
from symcavity.witness.site_sums import SiteSums

SITES, SEEDS, LIMIT, ALLOWED = 600, 5, 5.0, 5.0  # ALLOWED: parts in N that a finite size may contribute
ARGUMENTS = (-1.0, -0.1)  # of resolvents, in mean eigenvalues: below all of them
STEPS = 20
MOST = 0  # the highest level of the rule for the given parts of fields


@dataclass
class _Site:
    """What the sites of a kind do: ``sent = slopes @ fields + noise``, with one entry of these for each point or site.

    Of points the weights say how many sites have what is given there.
    """

    emissions: list[Any]
    fields: list[Any]
    slopes: np.ndarray
    noise: np.ndarray
    given: dict[Any, np.ndarray]
    weights: np.ndarray

    def drawn(self, count: int, rng: np.random.Generator) -> _Site:
        """As many sites, in any order: the share of each point is its weight, rounded up or down at random."""
        cuts = np.floor(np.cumsum([0.0, *self.weights]) / np.sum(self.weights) * count + rng.random()).astype(int)
        which = rng.permutation(np.repeat(np.arange(len(self.weights)), np.diff(cuts)))
        given = {q: values[which] for q, values in self.given.items()}
        return replace(self, slopes=self.slopes[which], noise=self.noise[which], given=given)


class LinearInstances:
    """The couplings of a declaration between sites that answer with given slopes, in matrices."""

    def __init__(self, pair: Pair, solution: Any) -> None:
        self.pair, self.solution, self.theory = pair, solution, pair.theory
        self._numbers: dict[Any, float] = {}
        self.beside = None if pair.given is None else GivenNumbers(solution, pair.given)
        kinds = self.theory.inserted if self.beside is None else dict.fromkeys(leg.kind for leg in pair.legs)
        share = {kind: self.number(kind.ratio) if kind != FEATURE else 1.0 for kind in kinds}
        self.features = int(SITES / sum(share.values()))
        self.count = {kind: max(round(r * self.features), 2) for kind, r in share.items()}
        self.points_of = {kind: self._site(kind) for kind in kinds}
        self.sites = self.points_of

    def number(self, expr: Any) -> float:
        """The number of an expression at the solution; many points ask for the same ones."""
        if expr not in self._numbers:
            self._numbers[expr] = float(self.solution[expr] if self.beside is None else self.beside.number(expr))
        return self._numbers[expr]

    def _site(self, kind: Kind) -> _Site:
        """Slopes at the full fields, and the noise that makes the mean squares what they are, point by point."""
        theory, site = self.theory, self.theory.inserted[kind]
        emissions = [f.emission for f in theory.system.fields if f.sender == kind and self.pair.reach.may_vary(f)]
        emissions = list(dict.fromkeys([*([self.pair.observed] if kind == self.pair.kind else []), *emissions]))
        heard = [h for h in site.heard if self.pair.reach.may_vary(h.declared)]
        if self.beside is not None:  # what does not vary has no covariances
            ends = [leg for leg in self.pair.legs if leg.kind == kind]
            emissions = [e for e in emissions if any(leg.sent is not None and self.sent(leg)[0] == e for leg in ends)]
            heard = [h for h in heard if any(leg.field == h for leg in ends)]
        local = self._local if self.beside is None else self._beside
        points = self.points(kind)
        rows = [local(kind, emissions, heard, point) for point, _ in points]
        slopes, noise = (np.array([row[k] for row in rows]) for k in (0, 1))
        held = [q for q in points[0][0] if isinstance(q.family, Quenched)]
        given = {q: np.array([float(point[q]) for point, _ in points]) for q in held}
        weights = np.array([float(weight) for _, weight in points])
        return _Site(emissions, [h.declared for h in heard], slopes, noise, given, weights)

    def sent(self, leg: Leg) -> tuple[Any, Any]:
        """What a site sends at an end of what joins two, and the scale of its couplings."""
        fields = [f for f in self.theory.system.fields if f.sender == leg.kind and self.pair.reach.may_vary(f)]
        return next(((f.emission, scales(f)[1]) for f in fields if weighed(f) == leg.sent), (leg.sent, S.One))

    def scale(self, leg: Leg) -> np.ndarray:
        """The scale of the couplings at an end, site by site."""
        own = self.sent(leg)[1] if leg.field is None else scales(leg.field.declared)[0]
        given = self.sites[leg.kind].given
        found = compiled(list(given), own)(*given.values())
        return np.broadcast_to(np.asarray(found, dtype=float), self.count[leg.kind])

    def points(self, kind: Kind) -> list[tuple[dict[Any, Any], float]]:
        """The values of what is given of a site, with their weights."""
        if self.beside is not None:
            sites = self.beside.at(kind, min(self.beside.level, MOST))
            known = {**sites.values, **sites.given}
            return [({q: row[k] for q, row in known.items()}, w) for k, w in enumerate(map(float, sites.weights))]
        sent = [f.emission for f in self.theory.system.fields if f.sender == kind]
        strengths = [f.coupling.family.variance for f in self.theory.system.fields if kind in (f.sender, f.hearer)]
        own = [q for q in families(strengths, Quenched) if q.slots == (kind,)]
        held = [*self.theory.inserted[kind].law.quenched(), *families(sent, Quenched), *own]
        given = [q for q in dict.fromkeys(held) if q not in self.pair.over]
        laws = [_finite(self.solution.beside.get(q, q.law), q) for q in given]
        found = []
        for row in product(*laws):
            point = {q.at_site(): value for q, (value, _) in zip(given, row, strict=True)}
            found.append((point, float(np.prod([float(weight) for _, weight in row]))))
        return found

    def _local(self, kind: Kind, emissions: list[Any], heard: list[Any], point: dict[Any, Any]) -> tuple[Any, Any]:
        theory, site = self.theory, self.theory.inserted[kind]

        def mean(body: Any) -> float:
            if not point:
                return self.number(Average(body))
            found = site.ensemble.at_site(body).xreplace(point) if body != 0 else body
            return self.number(found)

        local = np.zeros((len(emissions), len(heard)))
        for a, e in enumerate(emissions):
            for b, h in enumerate(heard):
                answer = mean(message_response(theory.system, e, h.declared))
                local[a, b] = self.number(h.factor.xreplace(point)) * answer
        means = np.array([mean(e) - self.number(Average(e)) for e in emissions] if point else [0.0] * len(emissions))
        size = np.array([[mean(e * d) for d in emissions] for e in emissions]) - np.outer(means, means)
        known = [[self.number(site.covariance[g.eta, h.eta].xreplace(point)) for h in heard] for g in heard]
        return self._at_full(kind, emissions, heard, (local, size, np.array(known)), point)

    def _beside(self, kind: Kind, emissions: list[Any], heard: list[Any], point: dict[Any, Any]) -> tuple[Any, Any]:
        """The same beside the given parts of fields: covariances of what varies."""
        assert self.beside is not None  # noqa: S101 - who calls it has looked
        legs = [leg for leg in self.pair.legs if leg.kind == kind]
        sent = [next(leg for leg in legs if leg.sent is not None and self.sent(leg)[0] == e) for e in emissions]
        fields = [next(leg for leg in legs if leg.field == h) for h in heard]
        scale = np.array([self.number(self.sent(leg)[1].xreplace(point)) for leg in sent])
        own = np.array([self.number(scales(h.declared)[0].xreplace(point)) for h in heard])
        names = self.beside.given.local
        local = np.array([[point.get(names(a, b), 0.0) for b in fields] for a in sent]).reshape(len(sent), len(fields))
        size = np.array([[point[names(a, b)] for b in sent] for a in sent])
        trained = [k for k, h in enumerate(self.beside.given.parts[kind].fields) if h in heard]
        known = self.beside.left(kind)[np.ix_(trained, trained)]
        found = (local / np.outer(scale, own), size / np.outer(scale, scale), known * np.outer(own, own))
        return self._at_full(kind, emissions, heard, found, point)

    def _at_full(
        self, kind: Kind, emissions: list[Any], heard: list[Any], found: tuple[Any, ...], point: dict[Any, Any]
    ) -> tuple[Any, Any]:
        """Slopes at the full fields, and noise, from the responses, the covariances, and those of the fields."""
        local, size, known = found
        back, may_vary = np.zeros((len(heard), len(emissions))), self.pair.reach.may_vary
        for b, h in enumerate(heard):
            for k in (k for k in h.feedback if k.emission in emissions and may_vary(k.through)):  # others move means
                mean = self.theory.inserted[kind].means[k.symbol]
                back[b, emissions.index(k.emission)] += self.number(mean.xreplace(point))
        left = size - local @ known.reshape(len(heard), len(heard)) @ local.T
        turn = np.linalg.inv(np.eye(len(emissions)) + local @ back)
        return turn @ local, turn @ left @ turn.T

    def joined(self, seed: int) -> tuple[np.ndarray, dict[Any, np.ndarray], dict[Any, slice]]:
        """All covariances of one instance, and the responses to the source of each field; what stands where.

        What is given of its sites is drawn with its couplings.
        """
        rng = np.random.default_rng(seed)
        self.sites = {kind: points.drawn(self.count[kind], rng) for kind, points in self.points_of.items()}
        place: dict[Any, slice] = {}
        total = 0
        for kind, site in self.sites.items():
            for e in site.emissions:
                place[kind, e] = slice(total, total + self.count[kind])
                total += self.count[kind]
        step, noise = np.zeros((total, total)), np.zeros((total, total))
        fields = [f for site in self.sites.values() for f in site.fields]
        given = {kind: site.given for kind, site in self.sites.items()}
        couplings = drawn_couplings(fields, self.count, self.features, self.number, rng, given)
        for kind, site in self.sites.items():
            for a, e in enumerate(site.emissions):
                for b, f in enumerate(site.fields):
                    step[place[kind, e], place[f.sender, f.emission]] += site.slopes[:, a, b, None] * couplings[f]
                for c, d in enumerate(site.emissions):
                    noise[place[kind, e], place[kind, d]] = np.diag(site.noise[:, a, c])
        answer = np.linalg.inv(np.eye(total) - step)
        sources = {}
        for kind, site in self.sites.items():
            for b, f in enumerate(site.fields):
                row = np.zeros((total, self.count[kind]))
                for a, e in enumerate(site.emissions):
                    row[place[kind, e]] = np.diag(site.slopes[:, a, b])
                sources[f] = answer @ row
        return answer @ noise @ answer.T, sources, place

    def resolvents(self, covariance: np.ndarray, sources: Any, place: Any) -> list[dict[Any, float]]:
        """The mean entries of ``G + G E (z - C)^(-1) E G`` at sites, by their symbols, and that of ``(z - C)^(-1)``."""
        names = Resolvent(self.pair)
        there = place[self.pair.kind, self.pair.observed]

        def between(sent: Leg, other: Leg) -> np.ndarray:
            rows, heard = place[sent.kind, self.sent(sent)[0]], other.field
            there = None if heard is not None else place[other.kind, self.sent(other)[0]]
            found = covariance[rows, there] if heard is None else sources[heard.declared][rows]
            return np.asarray(self.scale(sent)[:, None] * found * self.scale(other))

        seen = next(leg for leg in self.pair.legs if leg.sent == self.pair.observed and leg.kind == self.pair.kind)
        across = {leg: between(seen, leg).T for leg in self.pair.legs}
        local = {}
        for (a, b), symbol in names.symbols.items():
            sent, other = (a, b) if a.field is None else (b, a)
            local[symbol] = float(np.mean(np.diag(between(sent, other)))) if sent.field is None else 0.0
        values, vectors = np.linalg.eigh(covariance[there, there])
        turned = {leg: m @ vectors for leg, m in across.items()}
        out = []
        for z in self.arguments:
            found = {names.value: float(np.mean(1 / (z - values)))}
            for (a, b), symbol in names.symbols.items():
                found[symbol] = local[symbol] + float(np.sum(turned[a] * turned[b] / (z - values))) / self.count[a.kind]
            out.append(found)
        return out

    @property
    def arguments(self) -> list[float]:
        """Arguments of resolvents."""
        return [share * self.number(self.pair.variance) for share in ARGUMENTS]

    def measured(self) -> tuple[dict[Symbol, np.ndarray], np.ndarray, list[list[dict[Any, float]]]]:
        """Each number that the claims close, the dimension, and resolvents: one value for each instance."""
        observed = (self.pair.kind, self.pair.observed)
        found: dict[Symbol, list[float]] = {symbol: [] for symbol in self.pair.symbols.values()}
        dimension, resolvents = [], []
        for seed in range(SEEDS):
            covariance, sources, place = self.joined(seed)
            there = place[observed]
            for two, symbol in self.pair.symbols.items():
                ends = [
                    self.scale(leg)[:, None]
                    * (
                        covariance[place[leg.kind, self.sent(leg)[0]], there]
                        if leg.field is None
                        else sources[leg.field.declared][there].T
                    )
                    for leg in two
                ]
                found[symbol].append(float(np.sum(ends[0] * ends[1])) / self.features)
            own = covariance[there, there]
            dimension.append(float(np.trace(own) ** 2 / len(own) / np.sum(own**2)))
            resolvents.append(self.resolvents(covariance, sources, place))
        return {s: np.array(v) for s, v in found.items()}, np.array(dimension), resolvents


def drawn_couplings(
    fields: list[Any],
    count: Mapping[Kind, int],
    features: int,
    number: Any,
    rng: np.random.Generator,
    given: Mapping[Kind, Mapping[Any, np.ndarray]] = MappingProxyType({}),
) -> dict[Any, np.ndarray]:
    """The couplings of each field, its hearers as rows: drawn by the moments that the declaration gives."""
    out: dict[Any, np.ndarray] = {}
    for family in dict.fromkeys(f.coupling.family for f in fields):
        drawn = rng.standard_normal(tuple(count[kind] for kind in family.slots))
        tied = next((z for z in out if correlation_of(family, z) != 0), None)
        if tied is not None:
            rho = number(correlation_of(family, tied))
            drawn = rho * out[tied] + np.sqrt(1 - rho**2) * drawn
        if family.reciprocity != 0:
            own, other = reciprocal(number(family.reciprocity))
            drawn = own * drawn + other * drawn.T
        out[family] = drawn
    sizes: dict[Any, Any] = {kind.size: count.get(kind, features) for kind in (*count, FEATURE)}
    for x, standard in out.items():
        marks: dict[Any, Any] = {q: Dummy() for q in site_quantities(x.variance)}
        strength = x.variance.xreplace({**sizes, **marks})
        known = {s: Float(number(s)) for s in strength.free_symbols - {*marks.values()}}
        at = [given[k][q][:, None] if k == x.slots[0] else given[k][q] for q in marks for k in q.family.slots]
        out[x] = standard * np.sqrt(compiled(list(marks.values()), strength.xreplace(known))(*at))
    return {f: out[x].T if f.turned else out[x] for f in fields for x in [f.coupling.family]}


def _finite(law: Any, q: Quenched) -> list[tuple[Any, Any]]:
    """The values of a quenched parameter with their weights."""
    if isinstance(law, Mapping):
        return list(law.items())
    if isinstance(law, Tuple):
        return [(pair[0], pair[1]) for pair in law]
    raise UnsupportedLaw(f"{q} has no finite law.", "values with weights")


def _prepared(step: Step) -> tuple[Pair, LinearInstances, dict[Symbol, np.ndarray], np.ndarray, Any] | Verdict:
    pair: Pair = step.evidence["pair"]
    memory = pair.theory.memory.setdefault("linear instances", {})
    key = (pair.observed, pair.over)
    if key not in memory:
        solution, _, where = solved_point(pair.theory, 15)
        if solution is None:
            return Verdict(SIMULATION, None, where)
        try:
            instances = LinearInstances(pair, solution)
            memory[key] = (instances, *instances.measured())
        except UnsupportedLaw as problem:
            return Verdict(SIMULATION, None, problem.found)
    return (pair, *memory[key])


def _agrees(value: float, samples: np.ndarray, features: int, rounding: float = 0.0) -> bool:
    error = float(np.std(samples, ddof=1)) / np.sqrt(len(samples)) + rounding
    return bool(abs(value - np.mean(samples)) < LIMIT * error + ALLOWED / features * abs(value))


@witness("two_sites_closed")
def closed(step: Step, _dps: int) -> list[Verdict]:
    """The claims, solved for what they close, against sums over all pairs of sites of large linear instances."""
    prepared = _prepared(step)
    if isinstance(prepared, Verdict):
        return [prepared]
    pair, instances, measured, *_ = prepared
    symbols = [claim.lhs for claim in step.claims]
    if set(symbols) != set(pair.symbols.values()):
        return result(SIMULATION, False, "", "not one equation for each number")
    zero = dict.fromkeys(symbols, 0)
    first = np.array([instances.number(e) if (e := c.rhs.xreplace(zero)) != 0 else 0.0 for c in step.claims])
    rows = [[c.rhs.expand().coeff(s) for s in symbols] for c in step.claims]
    if any(Add(*row).has(*symbols) for row in rows):
        return result(SIMULATION, False, "", "the equations are not linear")
    matrix = np.array([[instances.number(e) if e != 0 else 0.0 for e in row] for row in rows])
    values = np.linalg.solve(np.eye(len(symbols)) - matrix, first)
    ok = all(_agrees(v, measured[s], instances.features) for v, s in zip(values, symbols, strict=True))
    return result(SIMULATION, ok, f"linear instances of {SITES} sites, {SEEDS} seeds", "linear instances differ")


@witness("two_sites_dimension")
def dimension(step: Step, _dps: int) -> list[Verdict]:
    """The participation ratio of the covariance matrices of large linear instances."""
    prepared = _prepared(step)
    if isinstance(prepared, Verdict):
        return [prepared]
    _, instances, measured, found, _ = prepared
    (claim,) = step.claims
    exact = {s: Rational(float(np.mean(v))) for s, v in measured.items()}
    value = instances.number(claim.rhs.xreplace(exact))
    ok = _agrees(value, found, instances.features)
    return result(SIMULATION, ok, f"linear instances of {SITES} sites, {SEEDS} seeds", "linear instances differ")


@witness("two_sites_resolvent")
def resolvent(step: Step, _dps: int) -> list[Verdict]:
    """The claims, solved for what they close, against the resolvents of large linear instances."""
    prepared = _prepared(step)
    if isinstance(prepared, Verdict):
        return [prepared]
    _, instances, *_, samples = prepared
    symbols = [claim.lhs for claim in step.claims]
    if set(symbols) != set(samples[0][0]):
        return result(SIMULATION, False, "", "not one equation for each number")
    call = SiteSums(instances, [c.rhs - c.lhs for c in step.claims], symbols, step.data["argument"])
    ok = True
    for k, z in enumerate(instances.arguments):
        seen = np.array([[row[k][s] for s in symbols] for row in samples])
        now = np.mean(seen, axis=0)
        for _ in range(STEPS):  # of Newton's method, from what was measured
            gap, slope = call(now, z)
            now = now - np.linalg.solve(slope, gap)
        rounding = len(now) * float(np.finfo(float).eps) * float(max(abs(now)))  # of linear equations of all of them
        ok &= all(_agrees(value, row, instances.features, rounding) for value, row in zip(now, seen.T, strict=True))
    return result(SIMULATION, ok, f"linear instances of {SITES} sites, {SEEDS} seeds", "linear instances differ")
