"""Witnesses of the lowest minimum: a search over all states of the declared energy, at many fields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import DiracDelta, Expr, Rational, S, solve

from symcavity.algebra.quadrature import break_points
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.registry import result, witness
from symcavity.witness.states import Summed
from symcavity.witness.thermal import admitted, numbers_at

FIELDS = 241  # places of the field at which the lowest state is looked for
TURNS, STEP, FINEST, NONE = 40, 4e-3, 1e-7, 1e-9  # of a feedback that is turned on, and of steps downhill
ELSEWHERE = Rational(3, 8)  # where fields beside the first keep still
AT = tuple(Rational(k, 10) for k in (-31, -17, -8, -3, 2, 7, 13, 26))  # states of a smooth energy
FLAT = 1e-5  # by how much a search misses where an energy is flat to rounding
FAR = 6.0  # in the field's standard deviations
SOME, RUN = 24, 1e-2  # of the fields; by how much a state or a field is moved
STATES, ROUNDS = 20001, 3  # of a continuous state, on ever finer grids


class SearchedSite:
    """A site as it was declared, at numbers: its lowest state, by search over all of them."""

    def __init__(self, theory: Any, kind: Any, claims: Sequence[Any] = ()) -> None:
        self.kind, self.side = kind, theory.inserted[kind]
        exprs = [c.difference for c in claims]
        bare = sum((e.replace(DiracDelta, lambda a: a) for e in exprs), S.Zero)
        rule = admitted(numbers_at(theory, bare, self.side), self.side)
        zero = {q.xreplace({self.kind.index: S.Zero}): v for q, v in rule.items() if isinstance(q, SiteQuantity)}
        self.known = {k: v for k, v in {**rule, **zero}.items() if k not in {h.eta for h in self.side.heard}}
        self.summed = Summed(theory, self.side, rule)
        self.eta, *others = self.summed.factors
        self.others = {eta: S(ELSEWHERE) for eta in others}

    def pull(self, field: float) -> float:
        """What the state answers to, at a value of its first field: the others keep still."""
        return float(self.summed.pull({self.eta: field, **self.others}))

    def energies(self, field: float, x: np.ndarray) -> np.ndarray:
        """The declared energy by state, with what the others answer; that of the lowest of states beside a field."""
        return np.asarray(self.by_choice(field, x).min(axis=0))

    def by_choice(self, field: float, x: np.ndarray) -> np.ndarray:
        """The same for each choice of the discrete states beside a field."""
        columns = self.summed.columns(x) if self.summed.weight.beside else [x]
        return -self.summed.exponent(np.array([self.pull(field)]), columns)[0].reshape(-1, len(x))

    def lowest(self, field: float) -> tuple[float, float, float]:
        """The lowest state, its energy, and how fine the last grid of states was."""
        summed = self.summed
        if summed.free is None:
            x = np.array(sorted(float(v) for v in summed.weight.state.family.values))
            energy = self.energies(field, x)
            return float(x[np.argmin(energy)]), float(energy.min()), 0.0
        own = [float(b) for b in summed.breaks]
        low, high = -100.0, 100.0
        for _ in range(ROUNDS):
            x = np.unique([*np.linspace(low, high, STATES), *(b for b in own if low <= b <= high)])
            near = np.concatenate([x, *(np.array([b - 1e-12, b + 1e-12]) for b in own)])
            x = np.sort(near)
            energy = self.energies(field, x)
            best = float(x[np.nanargmin(energy)])
            step = (high - low) / STATES
            low, high = best - 20 * step, best + 20 * step
        return best, float(np.nanmin(energy)), step

    def followed(self, field: float) -> float:
        """The minimum without feedback, by search, and downhill in small steps as the feedback is turned on."""
        summed, whole = self.summed, self.summed.strength
        if summed.free is None:
            summed.strength = NONE
            found = self.lowest(field)[0]
            summed.strength = whole
            return found
        summed.strength = NONE
        x = field if summed.weight.is_field else self.lowest(field)[0]
        for share in np.linspace(0, 1, TURNS + 1)[1:]:
            summed.strength, step = max(whole * share, NONE) if summed.weight.is_field else whole * share, STEP
            while step > FINEST:
                here = self.energies(field, np.array([x - step, x, x + step]))
                if (way := int(np.argmin(here)) - 1) and here[way + 1] < here[1]:
                    x += way * step
                else:
                    step /= 4
        summed.strength = whole
        return x

    def meant(self, field: float) -> tuple[float, float, float]:
        """The state that is meant, its energy, and how exactly it was found."""
        if not self.summed.weight.is_local:
            return self.lowest(field)
        x = self.followed(field)
        return x, float(self.energies(field, np.array([x]))[0]), FINEST

    def number(self, expr: Expr, field: float) -> float:
        """A claimed expression at a value of the field."""
        value = expr.xreplace(self.known | self.others | {self.eta: S(field)})
        return float(value.evalf(20))

    def fields(self) -> np.ndarray:
        """Values of the field, none of which is a switch."""
        width = float(self.side.covariance[self.eta, self.eta].xreplace(self.known) ** 0.5)
        return np.linspace(-FAR, FAR, FIELDS) * width * 1.0123 + 0.00137 * width


@witness("site_energy")
def energy(step: Step, _dps: int) -> list[Verdict]:
    """The energy of the new site against the declared objective, up to what no state changes."""
    site, worst = SearchedSite(step.evidence["theory"], step.data["kind"], step.claims), 0.0
    (claim,) = step.claims
    state = site.side.law.weight.state.xreplace({site.kind.index: S.Zero})
    summed = site.summed
    if summed.free is None:
        x = np.array([float(v) for v in summed.weight.state.family.values])
    else:
        x = np.array([-1.37, -0.41, 0.29, 0.83, 1.71])
    index = {site.kind.index: S.Zero}
    choices = [{q.xreplace(index): v for q, v in one.items()} for one in site.side.law.weight.choices()]
    for field in (-0.9, 0.7):
        rows = [[site.number(claim.rhs.xreplace({state: S(float(v)), **one}), field) for v in x] for one in choices]
        told, direct = np.ravel(rows), site.by_choice(field, x).ravel()
        inside = np.isfinite(direct)
        gap = (told - direct)[inside]
        worst = max(worst, float(np.ptp(gap)) / max(1.0, float(np.ptp(told[inside]))))
    return result(BRUTE_FORCE, bool(worst < 1e-9), "the declared objective at several states", f"by {worst:.2g}")


@witness("lowest")
def lowest(step: Step, _dps: int) -> list[Verdict]:
    """The claimed state against the lowest of all, by search; where two are equally low either will do."""
    site, worst = SearchedSite(step.evidence["theory"], step.data["kind"], step.claims), 0.0
    weight, index = site.side.law.weight, {site.kind.index: S.Zero}
    (claim,) = (c for c in step.claims if c.lhs == weight.state.xreplace(index))
    beside = {c.lhs: c.rhs for c in step.claims if c.lhs in [q.xreplace(index) for q in weight.beside]}
    choices = [{q.xreplace(index): v for q, v in one.items()} for one in weight.choices()]
    if step.data.get("local"):
        gaps = [abs(site.number(claim.rhs, float(f)) - site.followed(float(f))) for f in site.fields()[::8]]
        ok = sum(gap > 1e-5 for gap in gaps) == 0
        how = f"a way downhill from the minimum without feedback at {len(gaps)} fields"
        return result(BRUTE_FORCE, ok, how, f"by {max(gaps):.2g}")
    for field in site.fields():
        told = site.number(claim.rhs, float(field))
        best, least = site.lowest(float(field))[:2]
        near = np.array([told, told - 1e-9, told + 1e-9]) if site.summed.free is not None else np.array([told])
        own = float(np.nanmin(site.energies(float(field), near)))
        worst = max(worst, (own - least) / max(1.0, abs(least)))
        if beside:
            every = {q: site.number(value, float(field)) for q, value in beside.items()}
            row = next(k for k, one in enumerate(choices) if all(float(one[q]) == every[q] for q in one))
            own = float(site.by_choice(float(field), np.array([told]))[row, 0])
            worst = max(worst, (own - least) / max(1.0, abs(least)))
        if worst > 1e-6:
            lower = f"at the field {field:.4g} the state {best:.6g} is lower than {told:.6g}"
            return result(BRUTE_FORCE, False, "", lower)
    return result(BRUTE_FORCE, True, f"a search over all states at {FIELDS} fields")


@witness("implicit")
def stationary(step: Step, _dps: int) -> list[Verdict]:
    """The state at which an energy is stationary against the lowest of all, by search."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    weight = theory.inserted[kind].law.weight
    if weight is None or not weight.is_cold:
        return []
    site, worst, index = SearchedSite(theory, kind, step.claims), 0.0, {kind.index: S.Zero}
    (field,) = (c.rhs for c in step.claims if c.lhs == site.eta)
    (state,) = (c.rhs for c in step.claims if c.lhs == weight.state.xreplace(index))
    still = {q.xreplace(index): S.Zero for q in site.side.problem.plain_sources()}
    (free,) = {b.implicit[0] for b in site.side.solution.branches if b.implicit}
    if step.data["switches"]:  # the states that are the lowest somewhere, or are followed
        for value in site.fields()[::SOME]:
            best, _, width = site.meant(float(value))
            told, beside = (site.number(field.xreplace({free: S(best + way), **still}), 0.0) for way in (0, 3 * width))
            worst = max(worst, abs(told - value) - abs(beside - told))
        how = f"a search over all states at {FIELDS // SOME} fields"
        return result(BRUTE_FORCE, bool(worst < FLAT), how, f"by {worst:.2g}")
    for value in AT:
        at = {free: S(value), **still}
        told = site.number(state.xreplace(at), 0.0)
        best, _, step_size = site.lowest(site.number(field.xreplace(at), 0.0))
        worst = max(worst, abs(best - told) - 3 * step_size)
    return result(BRUTE_FORCE, bool(worst < FLAT), f"a search over all states at {len(AT)} fields", f"by {worst:.2g}")


@witness("contact")
@witness("followed")
def contact(step: Step, _dps: int) -> list[Verdict]:
    """Common tangents of the declared energy at pairs of states; slopes by differences of states found by search."""
    site, worst = SearchedSite(step.evidence["theory"], step.data["kind"], step.claims), 0.0
    weight, zero, (low, high) = site.side.law.weight, {site.kind.index: S.Zero}, step.data["ends"]
    moving = [h for h in site.side.heard if h.eta in site.summed.factors]
    names = [None, *(h.carrier.xreplace(zero) for h in moving[:1] if h.carrier is not None)]
    factor = 1.0 if weight.is_field else float(site.summed.factors[site.eta])
    pull = 1 / site.summed.strength if weight.is_field else factor

    def energy(x: float) -> float:
        return float(site.energies(0.0, np.array([x]))[0]) / pull

    def slope_of(x: float) -> float:
        return sum(c * (energy(x + k * RUN) - energy(x - k * RUN)) for k, c in ((1, 4 / 3), (2, -1 / 6))) / (2 * RUN)

    claims = list(step.claims)
    if "start" in step.data:
        worst = _without_feedback(site, claims.pop(0), step.data["start"])
    first, second, *slopes = claims
    level = slopes.pop(0) if step.rule == "contact" else None
    for a, b in pairwise(map(float, AT)):
        at = {low: S(a), high: S(b)}
        rows = [(first, slope_of(a)), (second, slope_of(b)), *([(level, energy(b) - energy(a))] if level else [])]
        worst = max(worst, *(abs(site.number(c.rhs.xreplace(at), 0.0) - v) / max(1.0, abs(v)) for c, v in rows))
        for claim in (c for c in slopes if c.lhs.field in names):
            delta = next(iter(claim.rhs.atoms(DiracDelta)), DiracDelta(site.eta))
            own = claim.lhs.state == weight.state.xreplace(zero)
            gap = (b - a if own else (slope_of(a) - slope_of(b) + b - a) * pull) / factor
            worst = max(worst, abs(site.number(claim.rhs.coeff(delta).xreplace(at), 0.0) - gap) / max(1.0, abs(gap)))
    for claim in (c for c in slopes if c.lhs.field in names):
        worst = max(worst, _by_differences(site, claim, factor, zero))
    return result(BRUTE_FORCE, bool(worst < 1e-4), "the declared energy, and states found by search", f"by {worst:.2g}")


def _without_feedback(site: SearchedSite, claim: Any, start: Any) -> float:
    """By how much the field at which a state is at rest without feedback misses the slope of the declared energy."""
    summed, whole, worst = site.summed, site.summed.strength, 0.0
    factor = 1.0 if summed.weight.is_field else float(summed.factors[site.eta])
    summed.strength = NONE
    pull = 1 / NONE if summed.weight.is_field else factor
    for value in map(float, AT):
        at = np.array([value - 2 * RUN, value - RUN, value + RUN, value + 2 * RUN])
        slope = float(np.dot(site.energies(0.0, at), [1 / 6, -4 / 3, 4 / 3, -1 / 6])) / (2 * RUN * pull)
        told = site.number(claim.rhs.xreplace({start: S(value)}), 0.0)
        worst = max(worst, abs(told - slope) / max(1.0, abs(slope)))
    summed.strength = whole
    return worst


def _by_differences(site: SearchedSite, claim: Any, factor: float, zero: Any) -> float:
    """By how much a slope between jumps misses differences of the lowest states."""
    weight, worst, state = site.side.law.weight, 0.0, site.side.law.weight.state.xreplace(zero)
    slope, own = claim.rhs.replace(DiracDelta, lambda *_: S.Zero), claim.lhs.state == state

    def told(field: float) -> float:
        x = site.meant(field)[0]
        return x if own or not weight.is_field else (x - field) / site.summed.strength

    for field in map(float, site.fields()[::SOME]):
        near, far = ((told(field + h) - told(field - h)) / (2 * h * factor) for h in (RUN, 2 * RUN))
        if abs(near - far) < 0.1 * abs(near):  # elsewhere it jumps
            claimed = site.number(slope.xreplace({state: S(site.meant(field)[0])}), field)
            worst = max(worst, abs(claimed - (4 * near - far) / 3) / max(1.0, abs(near)) - abs(near - far) / 10)
    return worst


@witness("jump")
def jump(step: Step, _dps: int) -> list[Verdict]:
    """The slope with its delta functions, summed up between two far fields, against the states there."""
    site, worst = SearchedSite(step.evidence["theory"], step.data["kind"], step.claims), 0.0
    weight, zero = site.side.law.weight, {site.kind.index: S.Zero}
    moving = [h for h in site.side.heard if h.eta in site.summed.factors]
    names = [h.carrier.xreplace(zero) for h in moving if h.carrier is not None]
    low, high = float(site.fields()[0]), float(site.fields()[-1])
    for claim in step.claims:
        if claim.lhs.field is not None and claim.lhs.field not in names:
            continue
        ends = [site.lowest(field)[0] for field in (low, high)]
        if weight.is_field and claim.lhs.state == weight.mean.xreplace(zero):  # what it sends is the force on its field
            ends = [(end - field) / site.summed.strength for end, field in zip(ends, (low, high), strict=True)]
        elif claim.lhs.state != weight.state.xreplace(zero):
            continue
        whole = (ends[1] - ends[0]) / site.summed.factors[site.eta]
        worst = max(worst, abs(_summed_up(site, claim.rhs, low, high) - whole) / max(1.0, abs(whole)))
    return result(BRUTE_FORCE, bool(worst < 1e-5), "states found by search at two far fields", f"by {worst:.2g}")


def _summed_up(site: SearchedSite, slope: Expr, low: float, high: float) -> float:
    """The integral of a slope over the field: between its breaks, and over its delta functions."""
    expr, eta, total = slope.xreplace(site.known | site.others), site.eta, 0.0
    for delta in expr.atoms(DiracDelta):
        (place,) = solve(delta.args[0], eta)
        if low < place < high:
            total += float(expr.coeff(delta).xreplace({eta: place}) / abs(delta.args[0].diff(eta)))
    rest = expr.replace(DiracDelta, lambda *_: S.Zero)
    breaks = sorted(float(b) for b in break_points(rest, eta) if low < b < high)
    z, w = np.polynomial.legendre.leggauss(12)
    for a, b in pairwise([low, *breaks, high]):
        places = (a + b + (b - a) * z) / 2
        total += sum(float(rest.xreplace({eta: S(v)})) * u for v, u in zip(places, w, strict=True)) * (b - a) / 2
    return total
