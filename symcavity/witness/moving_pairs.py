"""Witnesses of two sites over time: large linear instances with the declared couplings, on a ring of a few steps.

Each site answers to its fields by filters that are drawn, and adds noise of drawn spectra.  Nothing of a theory comes
in but what the claims are about: the couplings' declared moments, and what is sent from site to site.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Add, Expr, Mul, Pow, Sum, exp

from symcavity.algebra.flow import Element
from symcavity.method.average import message_response
from symcavity.method.moving_pair import MovingPair
from symcavity.method.pair_ends import Leg
from symcavity.model.averages import Average
from symcavity.model.kinds import FEATURE
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.record.order_parameters import MovingParameter
from symcavity.witness.pairs import drawn_couplings
from symcavity.witness.registry import result, witness

RING, SITES, SEEDS, LIMIT, ALLOWED = 5, 300, 6, 5.0, 6.0  # ALLOWED: parts in N that a finite size may contribute
GAIN = 0.55  # of all fields of a site together
GOOD = f"linear instances of {SITES} rows on a ring of {RING} steps, {SEEDS} seeds"

Numbers = dict[tuple[str, tuple[int, ...]], complex]


class RingInstances:
    """Linear instances, and what is measured of each: by name and frequencies on the ring.

    Attributes
    ----------
    measured : list of dict
        Transforms of single sites, and sums over pairs of sites.
    dimensions : list of ndarray
        At each lag.
    """

    def __init__(self, pair: MovingPair) -> None:
        self.pair, self.theory = pair, pair.theory
        rng = np.random.default_rng(17)
        free = sorted(self._free(), key=str)
        self.values = {s: rng.uniform(0.3, 0.8) for s in free}
        share = {k: 1.0 if k == FEATURE else float(k.ratio.xreplace(self.values)) for k in self.theory.inserted}
        self.fields = {k: [h.declared for h in site.heard] for k, site in self.theory.inserted.items()}
        self.sent = {k: list(dict.fromkeys(leg.sent for leg in pair.legs if leg.kind == k and leg.sent is not None))
                     for k in self.theory.inserted}  # fmt: skip
        self.features = int(SITES / sum(r * len(self.sent[k]) for k, r in share.items()))
        self.count = {k: max(round(r * self.features), 2) for k, r in share.items()}
        self.filters = {k: self._drawn(rng, len(self.sent[k]), len(self.fields[k])) for k in self.sent}
        self.noise = {k: self._drawn(rng, len(self.sent[k]), len(self.sent[k]) + 1) for k in self.sent}
        self.measured: list[Numbers] = []
        self.dimensions: list[np.ndarray] = []
        for seed in range(SEEDS):
            self._measure(np.random.default_rng([23, seed]))

    def _free(self) -> set[Any]:
        system = self.theory.system
        found = {s for f in system.fields for m in f.coupling.family.moments for s in m.free_symbols}
        found |= {s for k in self.theory.inserted for s in k.ratio.free_symbols}
        found |= {s for h in (leg.field for leg in self.pair.legs) if h is not None for s in h.factor.free_symbols}
        return {s for s in found if s not in {k.size for k in (*self.theory.inserted, FEATURE)}}

    def number(self, expr: Any) -> float:
        """An expression in parameters."""
        return float(expr.xreplace(self.values))

    @staticmethod
    def _drawn(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
        """The transforms of real filters, an array for each frequency."""
        return np.fft.fft(rng.standard_normal((rows, columns, RING)), axis=2).transpose(2, 0, 1)

    def _measure(self, rng: np.random.Generator) -> None:
        place: dict[Any, slice] = {}
        total = 0
        for k, several in self.sent.items():
            for e in several:
                place[k, e] = slice(total, total + self.count[k])
                total += self.count[k]
        every = [f for several in self.fields.values() for f in several]
        couplings = drawn_couplings(every, self.count, self.features, self.number, rng)
        spread = max(sum(np.sum(couplings[f] ** 2) / len(couplings[f]) for f in fs) for fs in self.fields.values())
        covariance, answers = [], []
        for w in range(RING // 2 + 1):
            step, noise, rows = np.zeros((total, total), complex), np.zeros((total, total), complex), {}
            for k, several in self.sent.items():
                filters = self.filters[k][w] * GAIN / np.sqrt(spread) / np.abs(self.filters[k]).max()
                filters = filters / max(1, len(several) * len(self.fields[k])) ** 0.5
                size = self.noise[k][w] @ self.noise[k][w].conj().T
                for a, e in enumerate(several):
                    for b, f in enumerate(self.fields[k]):
                        step[place[k, e], place[f.sender, f.emission]] += filters[a, b] * couplings[f]
                        rows[k, a, b] = filters[a, b]
                    for c, d in enumerate(several):
                        noise[place[k, e], place[k, d]] = size[a, c] * np.eye(self.count[k])
            answer = np.linalg.inv(np.eye(total) - step)
            covariance.append(answer @ noise @ answer.conj().T)
            found = {}
            for k, several in self.sent.items():
                for b, f in enumerate(self.fields[k]):
                    found[f] = sum(answer[:, place[k, e]] * rows[k, a, b] for a, e in enumerate(several))
            answers.append(found)
        for w in range(RING // 2 + 1, RING):  # filters are real
            covariance.append(covariance[RING - w].conj())
            answers.append({f: found.conj() for f, found in answers[RING - w].items()})
        self._note(place, covariance, answers)

    def _note(self, place: Mapping[Any, slice], covariance: list[np.ndarray], answers: list[Any]) -> None:
        pair, found = self.pair, Numbers()

        def block(a: Leg, b: Leg, w: int) -> np.ndarray:
            """What joins all sites by two ends, at a frequency."""
            if a.sent is not None and b.sent is not None:
                return covariance[w][place[a.kind, a.sent], place[b.kind, b.sent]]
            if b.sent is None:
                return answers[w][b.field.declared][place[a.kind, a.sent]]  # type: ignore[union-attr]
            return block(b, a, w).conj().T

        for (a, b), name in pair.names.items():
            for w in range(RING):
                found[name, (w,)] = complex(np.mean(np.diag(block(a, b, w))))
        target = pair.target[0]
        ends = {a for two in pair.symbols for a in two}
        joined = {a: np.array([block(a, target, w).ravel() for w in range(RING)]) for a in ends}
        for (a, b), symbol in pair.symbols.items():
            sums = joined[a] @ joined[b].T / self.features
            for w, v in np.ndindex(RING, RING):
                found[symbol.base, (w, v)] = complex(sums[w, v])
        self.measured.append(found)
        own = np.fft.ifft(np.array([block(target, target, w) for w in range(RING)]), axis=0).real
        self.dimensions.append(np.array([np.trace(c) ** 2 / len(c) / np.sum(c**2) for c in own]))

    # -- claims -------------------------------------------------------------------------------------------------------

    def value(self, expr: Expr, env: Mapping[Any, int], known: Numbers) -> complex:
        """A claimed expression, at frequencies, times and lags on the ring, with measured transforms."""
        if isinstance(expr, MovingParameter):
            return known[expr.base, tuple(self._place(w, env) for w in expr.times)]
        if isinstance(expr, Sum):
            total = 0j
            (symbol, *_), *rest = expr.limits
            body = Sum(expr.function, *rest) if rest else expr.function
            for k in range(RING):
                total += self.value(body, {**env, symbol: k}, known)
            return total
        if isinstance(expr, Element):
            return 2 * np.pi / RING if expr.args[0] in self.pair.frequencies else 1.0
        if isinstance(expr, Average):
            return self._kernel(expr, env, known)
        if isinstance(expr, Add):
            return complex(sum(self.value(a, env, known) for a in expr.args))
        if isinstance(expr, Mul):
            return complex(np.prod([self.value(a, env, known) for a in expr.args]))
        if isinstance(expr, exp):
            on_ring = {s: k * (2 * np.pi / RING if s in self.pair.frequencies else 1) for s, k in env.items()}
            return complex(expr.xreplace(on_ring))
        if isinstance(expr, Pow):
            return self.value(expr.base, env, known) ** int(expr.exp)
        return complex(expr.xreplace(self.values))

    def _place(self, where: Expr, env: Mapping[Any, int]) -> int:
        return int(where.xreplace(dict(env))) % RING

    def _kernel(self, node: Average, env: Mapping[Any, int], known: Numbers) -> complex:
        """An average at two times, by what stands in it: the measured function of the lag."""
        t, s = self.pair.time, self.pair.second
        lag = env[t] - env[s]
        for a, b in self.pair.names:
            if b.sent is not None:
                body, factor = a.sent * b.sent.xreplace({t: s}), 1.0
            else:
                body = message_response(self.theory.system, a.sent, b.field.declared, s)  # type: ignore[union-attr]
                factor = self.number(b.field.factor)  # type: ignore[union-attr]
            if body == node.body:
                rows = np.array([known[self.pair.names[a, b], (w,)] for w in range(RING)])
                return complex(np.fft.ifft(rows)[lag % RING]) / factor
        raise KeyError(node)


def _prepared(step: Step) -> RingInstances:
    pair: MovingPair = step.evidence["pair"]
    memory = pair.theory.memory.setdefault("moving linear instances", {})
    if pair.observed not in memory:
        memory[pair.observed] = RingInstances(pair)
    found: RingInstances = memory[pair.observed]
    return found


def _small(gaps: Any, size: float, features: int) -> bool:
    """Whether gaps of several instances are zero, within their scatter and what a finite size contributes."""
    gaps = np.asarray(gaps)
    error = np.hypot(gaps.real.std(ddof=1), gaps.imag.std(ddof=1)) / np.sqrt(len(gaps))
    return bool(abs(gaps.mean()) < LIMIT * error + ALLOWED / features * size)


@witness("moving_two_sites_local")
def local(step: Step, _dps: int) -> list[Verdict]:
    """Each transform, summed over the ring as it is claimed, against that of the instance's own covariances."""
    ring, (first, _) = _prepared(step), step.evidence["pair"].frequencies
    known, ok = ring.measured[0], bool(step.claims)
    for claim in step.claims:
        for w in range(RING):
            env = {first: w, ring.pair.time: 0}
            left, right = (ring.value(side, env, known) for side in (claim.lhs, claim.rhs))
            ok = ok and abs(left - right) < 1e-10 * max(1.0, abs(left))
    return result(SIMULATION, ok, GOOD)


@witness("moving_two_sites_closed")
def closed(step: Step, _dps: int) -> list[Verdict]:
    """The claimed sums over all pairs of sites, at all frequencies, in each instance."""
    ring = _prepared(step)
    symbols, ok = [claim.lhs for claim in step.claims], bool(step.claims)
    if set(symbols) != set(ring.pair.symbols.values()):
        return result(SIMULATION, False, "", "not one equation for each function")
    for claim in step.claims:
        for w in range(RING):
            for v in range(RING):
                env = dict(zip(ring.pair.frequencies, (w, v), strict=True))
                both = [[ring.value(s, env, m) for s in (claim.lhs, claim.rhs)] for m in ring.measured]
                gaps = [a - b for a, b in both]
                ok = ok and _small(gaps, max(abs(a) for a, _ in both), ring.features)
    return result(SIMULATION, ok, GOOD, "linear instances differ")


@witness("moving_two_sites_dimension")
def dimension(step: Step, _dps: int) -> list[Verdict]:
    """The participation ratio of the covariances of each instance after each lag."""
    ring, ok = _prepared(step), len(step.claims) == 1
    for claim in step.claims:
        for lag in range(RING):
            env = {ring.pair.lag: lag}
            said = [ring.value(claim.rhs, env, m) for m in ring.measured]
            gaps = [a - b[lag] for a, b in zip(said, ring.dimensions, strict=True)]
            ok = ok and _small(gaps, max(abs(a) for a in said), ring.features)
    return result(SIMULATION, ok, GOOD, "linear instances differ")
