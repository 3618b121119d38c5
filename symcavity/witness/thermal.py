"""Witnesses of thermal averages: the weight of a site, from the declared objective, summed over a grid of its state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sympy import Abs, Add, Dummy, Expr, Float, Heaviside, Max, Min, Piecewise, S, lambdify, log, sign
from sympy.core.relational import Relational

from symcavity.algebra.texsymbol import TexSymbol
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Expect
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.order_parameters import OrderParameter
from symcavity.witness.drawn import ALONG, stationary_states
from symcavity.witness.points import seeded_values
from symcavity.witness.registry import result, witness
from symcavity.witness.weights import MODULES, SiteWeight, one_of_each

STATES = 6001  # values of a state on its grid
HALVINGS = 12  # of order parameters, until a law admits them
WIDE = 14.0  # standard deviations of the Gaussian part, to both sides of where the state can be
NARROWED, NOTHING = 2, 80.0  # how often a grid is made to fit; logarithms by which a weight is nothing
SMOOTH, BENT = 6, 4  # digits of sums over the grid: with a kink the trapezoidal rule has fewer
KINKS = (Abs, Heaviside, Max, Min, Piecewise, sign, Relational)


def declared_energy(theory: Any, side: Any) -> Expr:
    """The energy of a site as it was declared, without what does not depend on its state.

    It is the objective with one site of each kind, of which the coupling is turned off, or only its effect is left.
    """
    weight, system = side.law.weight, theory.system
    total = system.own(one_of_each(system.rewritten.typed.objective))
    couplings = [q for q in site_quantities(total) if isinstance(q.family, Coupling)]
    alone = total.xreplace(dict.fromkeys(couplings, S.Zero))
    if not weight.is_field:  # what other kinds of sites have is a constant here
        return Add(*(term for term in Add.make_args(alone) if term.has(weight.state)))
    (f,) = (f for f in side.law.fields if f.states())
    total = total.xreplace(elsewhere(system, side.kind))
    sender = system.laws[f.sender].weight.state
    gone = dict.fromkeys(site_quantities(f.emission, Quenched), S.Zero)
    scale = f.emission.xreplace(gone).diff(system.laws[f.sender].weight.mean)
    bare = (total - alone).xreplace(dict.fromkeys(couplings, S.One)).xreplace(gone)
    return bare.xreplace({sender: weight.state / scale})


def elsewhere(system: Any, kind: Any) -> dict[Any, Expr]:
    """Zero for the couplings through which only other kinds of sites hear fields of states."""
    own = {f.coupling.family for f in system.laws[kind].fields}
    others = {f.coupling.family for f in system.fields if f.states()} - own
    declared = one_of_each(system.own(system.rewritten.typed.objective))
    return {q: S.Zero for q in site_quantities(declared, Coupling) if q.family in others}


def admitted(rule: dict[Any, Any], side: Any) -> dict[Any, Any]:
    """The numbers with order parameters so small that all holds which the derivation assumes of them."""
    free = stationary_states(side)

    def holds(c: Any, known: dict[Any, Any]) -> bool:
        """Whether a condition holds; that of an implicit law at many of its states."""
        every = [{x: v} for x in c.free_symbols & free for v in ALONG] or [{}]
        return all(c.xreplace(at).xreplace(known) != S.false for at in every)

    for way, ratio in ((1, 1 / S(2)), (-1, 1 / S(2)), (-1, S(2))):  # multipliers have either sign, so have responses
        here = rule
        for _ in range(HALVINGS):
            turned = (Global, OrderParameter)
            own = {s: way * v if isinstance(s, turned) and _turns(side, s) else v for s, v in here.items()}
            if all(holds(c, own) for c in side.solution.assumed):
                return own
            here = {s: v * ratio if isinstance(s, OrderParameter) else v for s, v in here.items()}
    raise UnsupportedLaw(f"No numbers are found that the law of {side.kind.site} admits.", "laws with a minimum")


def _turns(side: Any, s: Any) -> bool:
    """Whether a number may be negative: a multiplier, and what self-couplings alone are made of."""
    fixed = [e for (f, g), e in side.covariance.items() if f == g]
    return isinstance(s, Global) or not any(e.has(s) for e in fixed)


class WeightOnGrid(SiteWeight):
    """A site at numbers: its weight on a grid of one state about its minimum, for any value of its field."""

    def __init__(self, theory: Any, side: Any, rule: dict[Any, Any]) -> None:
        super().__init__(side, rule, declared_energy(theory, side))
        self.bent = self.energy.xreplace(rule).has(*KINKS)
        self.slope = self.compiled(self.energy.diff(self.weight.state))

    def nodes(self, fields: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """States that hold the weight at all of some fields: its Gaussian part, moved by the declared energy."""
        eta = fields + self.shift
        strength = self.strength if self.weight.is_field else -1 / self.strength
        centre = eta if self.weight.is_field else eta * strength
        reach = WIDE * np.sqrt(strength / self.beta) + np.abs(strength * np.asarray(self.slope(centre)))
        x = np.linspace(np.min(centre - reach), np.max(centre + reach), STATES)
        for _ in range(NARROWED):  # a steep energy confines states to a small part of that
            weight = self.exponent(fields, [x])
            held = x[np.any(weight > weight.max(axis=1, keepdims=True) - NOTHING, axis=0)]
            x = np.linspace(held[0] - (x[1] - x[0]), held[-1] + (x[1] - x[0]), STATES)
        return [x], np.full(STATES, x[1] - x[0])

    def means(self, fields: np.ndarray, nodes: tuple[list[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
        """What the site sends: the mean of its state, or of the force on it, each the mean over a cell of the grid."""
        (x,), parts = nodes or self.nodes(fields)
        half = (x[1] - x[0]) / 2
        force = (np.asarray(self.potential(x - half)) - np.asarray(self.potential(x + half))) / (2 * half)
        return np.asarray(self.shares(fields, [x], parts) @ (force if self.weight.is_field else x))


def weight_about_minimum(step: Step) -> list[Verdict]:
    """The weight against the declared objective: what they differ by is what the others add, a square in the state."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side, (claim,) = theory.inserted[kind], step.claims
    back = {S.Zero: kind.index}
    claimed = claim.rhs.xreplace({q: q.xreplace(back) for q in claim.rhs.atoms(SiteQuantity) if S.Zero in q.indices})
    rule = numbers_at(theory, claimed, side)
    weighed = WeightOnGrid(theory, side, rule)
    x, cavity = weighed.weight.state, fields_at(weighed.factors, 0.7)
    exponent = lambdify([x_ := Dummy("x", real=True)], log(claimed).xreplace(rule | cavity | {x: x_}), MODULES)
    at = np.array([-1.3, -0.4, 0.2, 0.9, 1.7])
    strength = weighed.strength if weighed.weight.is_field else -1 / weighed.strength
    centre = float(weighed.pull(cavity)) + weighed.shift
    centre = centre if weighed.weight.is_field else centre * strength
    cost = weighed.beta * (np.asarray(weighed.potential(at)) + (at - centre) ** 2 / (2 * strength))
    gap = np.array([float(exponent(v)) for v in at]) + cost
    ok = bool(np.ptp(gap) < 1e-9 * np.max(np.abs(cost)))
    return result(BRUTE_FORCE, ok, "the declared objective at one site, and the answer of the others")


def fields_at(etas: Iterable[Any], value: float) -> dict[Any, Any]:
    """Values of all cavity fields of a site, no two of which are alike."""
    return {eta: S(value) / (1 + k) + S(k) / 9 for k, eta in enumerate(etas)}


@witness("fluctuation")
def about_the_minimum(step: Step, _dps: int) -> list[Verdict]:
    """The mean against a sum over a grid of states; what is implicit is taken at values of its unknown."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side = theory.inserted[kind]
    eta = side.solution.minimum.inner
    rule = numbers_at(theory, sum((c.difference for c in step.claims), S.Zero), side)
    zero = {q.xreplace({kind.index: S.Zero}): v for q, v in rule.items() if isinstance(q, SiteQuantity)}
    weighed, worst = WeightOnGrid(theory, side, rule), 0.0
    for field in (-1.1, 0.3, 0.8):
        known: dict[Any, Any] = {**rule, **zero}
        first = step.claims[0]
        if first.lhs == eta:
            known |= {h: v for h, v in fields_at(weighed.factors, field).items() if h != eta}
            (unknown,) = first.rhs.xreplace(known).free_symbols
            known[unknown] = S(field)
        else:
            known |= {h.eta: S(field) for h in side.heard} | fields_at(weighed.factors, field)
        for claim in step.claims:
            known[claim.lhs] = claim.rhs.xreplace(known).evalf(20)
        direct = weighed.means(np.array([float(weighed.pull(known))]))[0]
        mean = float(known[weighed.weight.mean.xreplace({kind.index: S.Zero})])
        worst = max(worst, abs(mean - direct) / (abs(direct) or 1.0))
    digits = BENT if weighed.bent else SMOOTH
    ok = bool(worst < 10.0**-digits)
    return result(f"quadrature to {digits} digits", ok, "sums over states at three fields", f"by {worst:.2g}", digits)


@witness("gibbs")
def identities(step: Step, _dps: int) -> list[Verdict]:
    """Each identity at one site of each kind, its measure summed over a grid of the state, from the objective."""
    theory = step.evidence["theory"]
    system = theory.system
    (sent,) = (w for w in system.weights.values() if not w.is_field)
    losses = {kind: w for kind, w in system.weights.items() if w.is_field}
    fields = {kind: next(f for f in system.laws[kind].fields if f.states()) for kind in losses}
    x = sent.state
    total = system.own(one_of_each(system.rewritten.typed.objective))
    couplings = [q for q in site_quantities(total) if isinstance(q.family, Coupling)]
    labels = {q.at_site(): S.One for q in system.quenched if q.given is not None}
    claims = [Equation(*(one_of_each(e) for e in (c.lhs, c.rhs))) for c in step.claims]
    rule: dict[Any, Any] = {s: S(7 + k) / 5 for k, s in enumerate(system.parameters)}
    rule |= labels | {q.at_site(): S(2) / 3 for q in system.quenched if q.given is None}
    rule |= {q: S(4) / 5 for q in {*couplings, *(f.coupling for f in fields.values())}}
    alone = total.xreplace(dict.fromkeys(couplings, S.Zero)).xreplace(rule)
    energy, beta = total.xreplace(rule), float(sent.beta.xreplace(rule))
    grid = np.linspace(-30, 30, 200001)
    mark = Dummy("x", real=True)

    def numbers(expr: Expr) -> np.ndarray:
        call = lambdify([mark], expr.xreplace({x: mark}), MODULES)
        return np.broadcast_to(np.asarray(call(grid), dtype=float), grid.shape)

    cost = beta * numbers(energy)
    share = np.exp(cost.min() - cost)
    share /= share.sum()

    def mean(expr: Expr) -> Float:
        return Float(float(np.sum(numbers(expr) * share)))

    told: dict[Any, Any] = {sent.mean: mean(x)}
    states: dict[Any, Any] = {}
    for kind, loss in losses.items():
        heard = one_of_each(fields[kind].as_sum).xreplace({sent.mean: x}).xreplace(rule)
        own = total.xreplace(elsewhere(system, kind)).xreplace(rule)
        states[loss.state] = heard
        told[loss.mean] = mean(-(own - alone).diff(x) / heard.diff(x))
    carriers = {c.lhs: c.rhs for c in claims if isinstance(c.lhs, SiteQuantity) and isinstance(c.lhs.family, Field)}
    carriers = {q: e for q, e in carriers.items() if e.has(*(loss.mean for loss in losses.values()))}
    worst = 0.0
    for claim in claims:
        sides_ = []
        for e in (claim.lhs.xreplace(carriers), claim.rhs.xreplace(carriers)):
            known = {n: mean(n.body.xreplace(states).xreplace(rule)) for n in e.atoms(Expect)} | told
            sides_.append(e.xreplace(known).xreplace(rule))
        if any(side.free_symbols or site_quantities(side) for side in sides_):
            continue  # a field of given numbers, by its name
        worst = max(worst, abs(float(sides_[0] - sides_[1])) / max(1.0, abs(float(sides_[1]))))
    ok = worst < (1e-3 if energy.has(*KINKS) else 1e-7)
    return result(BRUTE_FORCE, ok, "its measure at one site of each kind", f"by {worst:.2g}")


def numbers_at(theory: Any, expr: Expr, side: Any) -> dict[Any, Any]:
    """Seeded values of all symbols at one site, with the signs that its law needs."""
    values = {k: v for k, v in seeded_values(theory, 3).items() if not isinstance(k, Quenched)}
    exprs = [expr, *side.covariance.values(), *side.means.values(), side.law.weight.beta, side.law.weight.energy]
    exprs += side.law.weight.bounds
    known: dict[Any, Any] = dict(values)
    for k, s in enumerate(sorted(set().union(*(e.free_symbols for e in exprs)), key=str)):
        if s not in known and not is_index(s) and not isinstance(s, TexSymbol):
            known[s] = S(-1 if s.is_negative else 1) * S(5 + k) / 7
    fixed = {q.at_site(): (next(iter(q.values), S.One) if q.values else S(2) / 3) for q in theory.system.quenched}
    return known | fixed
