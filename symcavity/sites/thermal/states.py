"""Thermal averages as sums over discrete states and Gaussian integrals: no minimum is looked for.

A state that is continuous has a Gaussian weight at given discrete ones, times what is neither square nor linear in it.
The parts of the weight are summed with their totals; two of them by a hyperbolic tangent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    Heaviside,
    Mul,
    Piecewise,
    S,
    StrictGreaterThan,
    cancel,
    exp,
    log,
    pi,
    piecewise_fold,
    sign,
    sqrt,
    tanh,
    zoo,
)

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.signs import sign_of
from symcavity.algebra.tails import in_tails
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Fluctuating, SiteResponse
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.parts import ZETA, Part, split, squares

SUPPORTED = (
    "sites with discrete states and at most one continuous one, which is sent linearly, with an energy that is smooth "
    "but for kinks and bounds; losses of one field"
)


@dataclass(frozen=True)
class Mixture(ThermalAverages):
    """Thermal averages at one site, as functions of its fields.

    Attributes
    ----------
    field : Expr
        The cavity field, in units of what stands beside the state; of a field its mean without the energy. Where a
        state answers to several, their sum.
    carriers : tuple of (SiteQuantity, Expr, Expr)
        Of each field that a state answers to the name, and what it adds to the sum and to the feedback.
    """

    field: Expr
    carriers: tuple[tuple[SiteQuantity, Expr, Expr], ...] = ()

    @property
    def heard(self) -> Mapping[Any, Expr]:
        """The means of the fields that a state answers to."""
        return {name: field + strength * self.mean for name, field, strength in self.carriers}

    def xreplace(self, rule: Any) -> Mixture:
        """The same at other self-couplings."""
        rows = tuple((name, *(e.xreplace(rule) for e in own)) for name, *own in self.carriers)
        return replace(self, feedback=self.feedback.xreplace(rule), field=self.field.xreplace(rule), carriers=rows)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the weight."""
        if self.weight.is_field:
            return tuple(p for values in self.weight.choices() for p in self._of_a_field(values))
        discrete = [q for q in self.weight.states if q.family.values]
        rows = product(*(q.family.values for q in discrete))
        return tuple(p for row in rows for p in self._of_a_state(dict(zip(discrete, row, strict=True))))

    def _of_a_field(self, values: dict[Any, Expr]) -> tuple[Part, ...]:
        w, F, eta, x = self.weight, self.feedback, self.field, self.weight.state
        energy = w.energy.xreplace(values)
        fixed, slope, curvature, rest = split(energy, x)
        if rest != 0 and not w.bounds and (bent := squares(rest, x)) is not None:
            found: list[Part] = []
            for ends, (more, tilt, bend) in bent.between_places():
                tilt, bend = bent.turn * slope + tilt, curvature + bend
                place, least = _seen_from_end(ends, tilt, bend)
                level = cancel(fixed + more + tilt * place + bend * place**2 / 2)
                away, whole = bent.turn * eta - place, 1 + bend * F
                lost = level + (bend * away**2 + 2 * least * away - F * least**2) / (2 * whole)
                total, width = -w.beta * lost - log(whole) / 2, F / (w.beta * whole)
                middle = place + (away - F * least) / whole
                turned = {"turn": bent.turn, "slope": bent.slope}
                found.append(Part(values, total, x, middle, width, ends=ends, **turned))
            return tuple(found)
        if rest != 0 and not curvature.is_nonnegative:  # one that bends down has no Gaussian of its own
            return (Part(values, S.Zero, x, eta, F / w.beta, self._factor(energy, values)),)
        whole = 1 + curvature * F
        lost = fixed + (curvature * eta**2 + 2 * slope * eta - F * slope**2) / (2 * whole)
        part = Part(
            values, -w.beta * lost - log(whole) / 2, x, (eta - F * slope) / whole, F / (w.beta * whole),
            self._factor(rest, values), self._box(values) if rest == 0 else (None, None),
        )  # fmt: skip
        return (part,)

    def _of_a_state(self, values: dict[Any, Expr]) -> tuple[Part, ...]:
        w, F, eta = self.weight, self.feedback, self.field
        energy, sent = w.energy.xreplace(values), w.state.xreplace(values)
        free = [q for q in w.states if q not in values]
        if not free:
            return (Part(values, -w.beta * (energy - eta * sent - F * sent**2 / 2).expand()),)
        x = free[0]
        fixed, slope, curvature, rest = split(energy, x)
        constant, share, square, more = split(sent, x)
        bent = squares(rest, x) if rest != 0 and not w.bounds else None
        if bent is not None and any(curvature + bend == F * share**2 for *_, bend in bent.pieces[1:-1]):
            bent = None  # a line between two kinks, which no answer of the others bends, is no Gaussian
        if len(free) > 1 or square != 0 or more != 0:
            raise UnsupportedLaw(
                f"A site has the continuous states {' and '.join(map(str, free))}, and its message is {w.state}.",
                SUPPORTED,
                "one continuous state for each site, and a message that is linear in it",
            )
        if rest != 0 and bent is None and not curvature.is_nonnegative:  # the others' answers hold what bends down
            rest, curvature = rest + curvature * x**2 / 2, S.Zero
        pull = (eta + F * constant) * share - slope
        level = fixed - eta * constant - F * constant**2 / 2
        if bent is None:
            whole = curvature - F * share**2
            if rest != 0 and (F * share**2).is_positive:  # answers that bend down: only the energy holds the state
                whole = curvature if curvature != 0 else F * share**2
                rest += (curvature - F * share**2 - whole) * x**2 / 2
            place, factor = self._gaussian(level, pull, whole), self._factor(rest, values)
            return (Part(values, place[0], x, *place[1:], factor, self._box(values) if rest == 0 else (None, None)),)
        found: list[Part] = []
        for ends, (add, tilt, bend) in bent.between_places():
            drive, whole = bent.turn * pull - tilt, curvature + bend - F * share**2
            turned = {"turn": bent.turn, "slope": bent.slope}
            if whole == 0:  # a line beyond the kink, which no answer of the others bends
                way = 1 if ends[1] is None else -1
                end, decay = ends[0 if way > 0 else 1], -way * w.beta * drive
                total = w.beta * (drive * end - level - add) - log(decay)
                found.append(Part(values, total, x, ends=ends, **turned, decay=decay))
                continue
            total, middle, width = self._gaussian(level + add, drive, whole)
            found.append(Part(values, total, x, middle, width, ends=ends, **turned))
        return tuple(found)

    def _gaussian(self, level: Expr, pull: Expr, whole: Expr) -> tuple[Expr, Expr, Expr]:
        """The logarithm of the total, the mean and the variance of the weight of a square."""
        beta = self.weight.beta
        total = -beta * level + beta * pull**2 / (2 * whole) + log(2 * pi / (beta * whole)) / 2
        return total, pull / whole, 1 / (beta * whole)

    def _box(self, values: Mapping[Any, Expr]) -> tuple[Expr | None, Expr | None]:
        """The two ends between which a state is held; none where it has fewer bounds."""
        if len(self.weight.bounds) < 2:
            return None, None
        ends: dict[int | None, Expr] = {}
        for b in (b.xreplace(dict(values)) for b in self.weight.bounds):
            free = [q for q in self.weight.states if b.has(q)]
            slope = b.diff(free[0]) if len(free) == 1 else S.Zero
            if slope != 0 and not slope.has(*self.weight.states):
                ends[sign_of(slope)] = cancel(free[0] - b / slope)
        if len(self.weight.bounds) > 2 or not {1, -1} <= set(ends):
            raise UnsupportedLaw(
                f"{self.weight.state} has {len(self.weight.bounds)} bounds at a temperature, which are not one "
                "lower and one upper bound.",
                "one bound of a state, or a lower and an upper one",
                "a penalty in the place of one of them",
            )
        return ends[1], ends[-1]

    def _factor(self, rest: Expr, values: Mapping[Any, Expr]) -> Expr:
        """What the weight is multiplied by beside a Gaussian: by cases, and zero where a bound does not hold."""
        if rest == 0 and len(self.weight.bounds) > 1:  # a part of its own
            return S.One
        bounds = [Heaviside(b.xreplace(dict(values)), S.Half) for b in self.weight.bounds]
        if not rest.has(Heaviside, sign, Piecewise):
            return Mul(in_tails(exp(-self.weight.beta * rest)), *bounds)
        cases = piecewise_fold(rest.rewrite(Piecewise))
        rows = [(exp(-self.weight.beta * value), test) for value, test in cases.args]
        return Mul(Piecewise(*rows), *bounds)

    @property
    def positive(self) -> list[Any]:
        """The inequalities without which the weight has no total."""
        if self.weight.is_field:
            needed = [self.feedback / (self.weight.beta * p.width) for p in self.parts]
        else:
            widths = [p.width for p in self.parts if p.state is not None and p.decay == 0]
            needed = [cancel(1 / (self.weight.beta * width)) for width in widths]
            needed += [p.decay for p in self.parts if p.decay != 0]
        held = (p.ends for p in self.parts if p.is_held)
        needed += [cancel(high - low) for low, high in held if low is not None and high is not None]
        return [StrictGreaterThan(e, 0, evaluate=False) for e in needed if not e.is_positive]

    @property
    def widths(self) -> list[Expr]:
        """The variances of the Gaussian parts."""
        return [p.width for p in self.parts if p.state is not None and p.decay == 0]

    @property
    def is_square(self) -> bool:
        """Whether all of the weight is one Gaussian."""
        return len(self.parts) == 1 and self.parts[0].state is not None and self._is_plain(self.parts[0])

    @staticmethod
    def _is_plain(part: Part) -> bool:
        return bool(part.factor == 1) and part.is_whole

    @property
    def is_wide(self) -> bool:
        """Whether a part has no Gaussian to be compared with: an energy that is no square, before anything answers."""
        return any(p.width.has(zoo) for p in self.parts)

    @property
    def logarithm(self) -> Expr:
        """That of the sum of the weight over all states."""
        totals = [p.total for p in self.parts]
        return totals[0] if len(totals) == 1 else log(Add(*map(exp, totals)))

    def expected(self, body: Expr) -> Expr:
        """The thermal average of an expression in the states."""
        if body not in self._expected:
            inner = self._over_others(body)
            moves = inner.has(*self.weight.states)
            self._expected[body] = self._weighed([p.mean(inner) for p in self.parts]) if moves else inner
        return self._expected[body]

    @cached_property
    def _expected(self) -> dict[Expr, Expr]:
        """The averages that have been written."""
        return {}

    def _weighed(self, means: Sequence[Expr]) -> Expr:
        """The mean over all parts."""
        if len(set(means)) == 1:
            return means[0]
        if len(means) == 2:
            (one, other), gap = means, self._gap(0, 1)
            return (one + other) / 2 + (one - other) / 2 * tanh(gap / 2)
        shares = self._shares()
        return Add(*(m * share for m, share in zip(means, shares, strict=True))) / Add(*shares)

    def _gap(self, one: int, other: int) -> Expr:
        """By how much the logarithms of the totals of two parts differ."""
        gap = self.parts[one].total - self.parts[other].total
        return gap if self._is_sided else _tidy(gap)

    @property
    def _is_sided(self) -> bool:
        """Whether the parts are the sides of kinks of the state that is sent."""
        return len(self.parts) > 1 and all(not p.is_whole and p.state == self.weight.state for p in self.parts)

    def _over_others(self, body: Expr) -> Expr:
        """The average over what others make of fields, at a given state, to which they answer.

        It is a Gaussian, by which they add their answer to the weight of the state.
        """
        w, z = self.weight, Dummy("z", real=True)
        for name, field, strength in self.carriers:
            if body.has(node := Fluctuating(name)):
                there = field + strength * w.state + sqrt(strength / w.beta) * z
                body = gaussian_average(body.xreplace({node: there}).expand(), z)
        return body

    @property
    def mean(self) -> Expr:
        """What the site sends: the mean of its state, or of the force on its field."""
        if not self.weight.is_field:
            if self._end is None:
                return self.expected(self.weight.state)
            return self._end + sqrt(self.parts[0].width) * self._moment(1)
        if self._is_sided and len({p.turn for p in self.parts}) == 1:  # what they are away from the field, turned
            turn = self.parts[0].turn
            return turn * self._weighed([p.turned - turn * self.field for p in self.parts]) / self.feedback
        if len(self.parts) > 1:
            return (self.expected(self.weight.state) - self.field) / self.feedback
        (part,) = self.parts
        if self.is_square:
            return cancel((part.centre - self.field) / self.feedback)
        origin = part.centre if self._end is None else self._end
        return (origin - self.field + sqrt(part.width) * self._moment(1)) / self.feedback

    @property
    def variance(self) -> Expr:
        """The thermal variance of the state."""
        if self._is_sided:
            return self._variance_of_sides()
        if self._end is None and (not self.weight.is_field or len(self.parts) > 1):
            return super().variance
        (part,) = self.parts
        return part.width if self.is_square else part.width * (self._moment(2) - self._moment(1) ** 2)

    def _variance_of_sides(self) -> Expr:
        """Those of the sides of kinks, each counted from its end, and the squares of the distances of their means."""
        alike = len({p.turn for p in self.parts}) == 1  # only distances count, which are the same when all are turned
        means = [p.turned if alike else p.mean(self.weight.state) for p in self.parts]
        own = [p.variance for p in self.parts]
        if len(self.parts) == 2:
            lean = tanh(self._gap(0, 1) / 2)
            apart = (1 - lean**2) / 4 * (means[0] - means[1]) ** 2
            return (own[0] + own[1]) / 2 + lean * (own[0] - own[1]) / 2 + apart
        shares = self._shares()
        total = Add(*shares)
        within = Add(*(share * v for share, v in zip(shares, own, strict=True))) / total
        pairs = combinations(zip(shares, means, strict=True), 2)
        return within + Add(*(p * r * (m - n) ** 2 for (p, m), (r, n) in pairs)) / total**2

    def _shares(self) -> list[Expr]:
        """How much weight each part has, in units of that of the first one."""
        return [exp(self._gap(k, 0)) for k in range(len(self.parts))]

    @cached_property
    def _end(self) -> Expr | None:
        """Where the weight of a continuous state ends, if it has one end.

        A state that is far beyond its end is held close to it: what it is away from it is small there, and would be
        lost in the difference of two large numbers if it was counted from the center of the Gaussian.
        """
        if len(self.parts) != 1 or len(self.weight.bounds) != 1 or self.parts[0].state is None:
            return None
        x, (bound,) = self.weight.state, self.weight.bounds
        slope = bound.diff(x)
        if x != self.parts[0].state or slope == 0 or slope.has(x):
            return None
        return cancel(x - bound / slope)

    def _moment(self, power: int) -> Expr:
        """That of the fluctuation of a state in units of its width: about its end, or the center of its Gaussian."""
        (part,) = self.parts
        away = ZETA if self._end is None else ZETA - (self._end - part.centre) / sqrt(part.width)
        return part.over(away**power) / part.over(S.One)

    def moved(self, r: SiteResponse, given: SiteQuantity) -> Expr:
        """The response of a mean to a field of given numbers in the energy."""
        mean = self.mean if r.state == self.weight.mean else self.expected(self.weight.state)
        return mean.diff(given)


def density_of(found: Any) -> Expr:
    """The weight of each state of a site in its field, up to normalization."""
    w, F, x = found.weight, found.feedback, found.weight.state
    gain = -((x - found.field) ** 2) / (2 * F) if w.is_field else found.field * x + F * x**2 / 2
    return exp(-w.beta * (w.energy - gain)) * Mul(*(Heaviside(b) for b in w.bounds))


def is_closed(weight: Weight) -> bool:
    """Whether the sum over all states of a weight that is neither a Gaussian nor discrete has a closed form."""
    x, center, scale = weight.state, Dummy("c", real=True), Dummy("s", positive=True)
    rest = split(weight.energy, x)[3]
    if has_kinks(weight):
        return True
    if not weight.is_field:
        return all(q.family.values for q in weight.states) or rest == 0
    factor = in_tails(exp(-weight.beta * rest)).xreplace({x: center + scale * ZETA})
    return not factor.has(ZETA) or not gaussian_average(factor, ZETA).has(GaussianAverage)


def has_kinks(weight: Weight) -> bool:
    """Whether a site has one state, whose energy has kinks and is a square between any two of them."""
    x = weight.state
    rest = split(weight.energy, x)[3] if weight.states == [x] else S.Zero
    return rest != 0 and not weight.bounds and squares(rest, x) is not None


def _seen_from_end(ends: tuple[Expr | None, Expr | None], tilt: Expr, bend: Expr) -> tuple[Expr, Expr]:
    """An end of a square, one where it is flat if there is one, and the slope there.

    What is counted from there depends on several fields as the place does, and grows with nothing that cancels.
    """
    rows = [(end, cancel(tilt + bend * end)) for end in ends if end is not None]
    return next((row for row in rows if row[1] == 0), rows[0])


def _tidy(gap: Expr) -> Expr:
    """The difference of two totals, in which what they have in common is gone."""
    return gap.expand()
