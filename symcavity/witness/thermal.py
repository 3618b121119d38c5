"""Witnesses of thermal averages: the weight of a site, from the declared objective, summed over a grid of its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Abs, Add, Dummy, Expr, Float, Heaviside, Max, Min, Piecewise, S, Sum, lambdify, log, sign
from sympy.core.relational import Relational

from symcavity.algebra.texsymbol import TexSymbol
from symcavity.model.averages import Expect, LogWeight, SiteResponse
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.points import seeded_values
from symcavity.witness.registry import result, witness

STATES = 6001  # values of a state on its grid
WIDE = 14.0  # standard deviations of the Gaussian part, to both sides of where the state can be
SMOOTH, BENT = 6, 4  # digits of sums over the grid: with a kink the trapezoidal rule has fewer
NEAR = 1e-4  # between two fields whose means are compared
KINKS = (Abs, Heaviside, Max, Min, Piecewise, sign, Relational)
MODULES: Any = ["numpy", "scipy"]


def one_of_each(expr: Expr) -> Expr:
    """A declared expression with one site of each kind: every sum is its only term."""
    return expr.replace(lambda e: isinstance(e, Sum), lambda e: e.function)


@dataclass
class Declared:
    """The energy of a site as it was declared, in numbers.

    Attributes
    ----------
    state : SiteQuantity
        What fluctuates.
    energy : Expr
        Without what does not depend on the state.
    """

    state: SiteQuantity
    energy: Expr

    @classmethod
    def of(cls, theory: Any, side: Any) -> Declared:
        """The objective with one site of each kind, of which the coupling is turned off, or only its effect is left."""
        weight, system = side.law.weight, theory.system
        total = system.own(one_of_each(system.rewritten.typed.objective))
        couplings = [q for q in site_quantities(total) if isinstance(q.family, Coupling)]
        alone = total.xreplace(dict.fromkeys(couplings, S.Zero))
        if not weight.is_field:  # what other kinds of sites have is a constant here
            return cls(weight.state, Add(*(term for term in Add.make_args(alone) if term.has(weight.state))))
        (f,) = (f for f in side.law.fields if f.states())
        sender = system.laws[f.sender].weight.state
        gone = dict.fromkeys(site_quantities(f.emission, Quenched), S.Zero)
        scale = f.emission.xreplace(gone).diff(system.laws[f.sender].weight.mean)
        bare = (total - alone).xreplace(dict.fromkeys(couplings, S.One)).xreplace(gone)
        return cls(weight.state, bare.xreplace({sender: weight.state / scale}))


class Weighed:
    """A site at numbers: its weight on a grid of states, for any value of its field."""

    def __init__(self, theory: Any, side: Any, rule: dict[Any, Any]) -> None:
        declared = Declared.of(theory, side)
        self.weight, self.rule = side.law.weight, rule
        self.energy = declared.energy.xreplace(rule)
        self.bent = self.energy.has(*KINKS)
        x = Dummy("x", real=True)
        plain = self.energy.xreplace({declared.state: x})
        self.potential = lambdify([x], plain, MODULES)
        self.slope = lambdify([x], plain.diff(x), MODULES)
        heard = next(h for h in side.heard if h.declared.states())
        self.beta = float(self.weight.beta.xreplace(rule))
        echo = sum((side.means[k.symbol] * k.emission for k in heard.feedback), S.Zero)
        if self.weight.is_field:
            self.factor, self.shift = 1.0, 0.0
            self.F = float(echo.diff(self.weight.mean).xreplace(rule))
        else:
            echo = (heard.factor * echo).expand()
            self.factor = float(heard.factor.xreplace(rule))
            self.shift = float(echo.xreplace({self.weight.mean: S.Zero}).xreplace(rule))
            self.F = float(echo.diff(self.weight.mean).xreplace(rule))

    def grid(self, fields: np.ndarray) -> np.ndarray:
        """States that hold the weight at all of some fields: its Gaussian part, moved by the declared energy."""
        eta = self.factor * fields + self.shift
        strength = self.F if self.weight.is_field else -1 / self.F
        centre = eta if self.weight.is_field else eta * strength
        reach = WIDE * np.sqrt(strength / self.beta) + np.abs(strength * np.asarray(self.slope(centre)))
        return np.linspace(np.min(centre - reach), np.max(centre + reach), STATES)

    def costs(self, fields: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Minus the logarithm of the weight over beta, by field and state."""
        eta = (self.factor * fields + self.shift)[:, None]
        own = np.asarray(self.potential(x), dtype=float)
        return own + ((x - eta) ** 2 / (2 * self.F) if self.weight.is_field else -eta * x - self.F * x**2 / 2)

    def logarithms(self, fields: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The logarithm of the total weight, by field; of a field against that of its Gaussian without the energy."""
        cost = self.costs(fields, x)
        least = cost.min(axis=1)
        volume = np.log(2 * np.pi * self.F / self.beta) / 2 if self.weight.is_field else 0.0
        total = np.exp(self.beta * (least[:, None] - cost)).sum(axis=1) * (x[1] - x[0])
        # what is not a function of the state is shared out among the sites by the derivation
        told = float(self.weight.energy.xreplace({**self.rule, self.weight.state: S.One})) - float(self.potential(1.0))
        return np.asarray(np.log(total) - self.beta * (least + told) - volume)

    def shares(self, fields: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The shares of the weight, by field and state."""
        cost = self.costs(fields, x)
        share = np.exp(self.beta * (cost.min(axis=1, keepdims=True) - cost))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def means(self, fields: np.ndarray, x: np.ndarray | None = None) -> np.ndarray:
        """What the site sends: the mean of its state, or of the force on it, each the mean over a cell of the grid."""
        x = self.grid(fields) if x is None else x
        half = (x[1] - x[0]) / 2
        force = (np.asarray(self.potential(x - half)) - np.asarray(self.potential(x + half))) / (2 * half)
        return np.asarray(self.shares(fields, x) @ (force if self.weight.is_field else x))

    def values(self, body: Expr, arrays: dict[Any, np.ndarray], fields: np.ndarray) -> np.ndarray:
        """An expression in means, thermal averages and states, averaged thermally, by field."""
        x = self.grid(fields)
        share = self.shares(fields, x)
        known = {self.weight.mean: self.means(fields, x)[:, None]}
        known |= {q: value[:, None] for q, value in arrays.items()}
        for node in sorted(body.atoms(SiteResponse), key=str):
            up, down = (self.means(fields + way * NEAR, x) for way in (1, -1))
            known[node] = (up - down)[:, None] / (2 * NEAR * self.factor)
        known |= {node: self.logarithms(fields, x)[:, None] for node in body.atoms(LogWeight)}
        for node in sorted(body.atoms(Expect), key=str):
            inside = self._on_grid(node.body, known, x)
            known[node] = np.sum(inside * share, axis=1, keepdims=True)
        return np.asarray(np.sum(self._on_grid(body, known, x) * share, axis=1))

    def _on_grid(self, body: Expr, known: dict[Any, np.ndarray], x: np.ndarray) -> np.ndarray:
        marks = {q: Dummy("q", real=True) for q in [*known, self.weight.state]}
        call = lambdify(list(marks.values()), body.xreplace(marks).xreplace(self.rule), MODULES)
        rows = len(known[self.weight.mean])
        return np.broadcast_to(np.asarray(call(*known.values(), x[None]), dtype=float), (rows, len(x)))


def weight_about_minimum(step: Step) -> list[Verdict]:
    """The weight against the declared objective: what they differ by is what the others add, a square in the state."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side, (claim,) = theory.inserted[kind], step.claims
    back = {S.Zero: kind.index}
    claimed = claim.rhs.xreplace({q: q.xreplace(back) for q in claim.rhs.atoms(SiteQuantity) if S.Zero in q.indices})
    eta = next(h.eta for h in side.heard if h.declared.states())
    rule = numbers_at(theory, claimed, side)
    weighed = Weighed(theory, side, rule)
    x, field = weighed.weight.state, 0.7
    exponent = lambdify([x_ := Dummy("x", real=True)], log(claimed).xreplace(rule | {eta: field, x: x_}), MODULES)
    at = np.array([-1.3, -0.4, 0.2, 0.9, 1.7])
    strength = weighed.F if weighed.weight.is_field else -1 / weighed.F
    centre = weighed.factor * field + weighed.shift
    centre = centre if weighed.weight.is_field else centre * strength
    cost = weighed.beta * (np.asarray(weighed.potential(at)) + (at - centre) ** 2 / (2 * strength))
    gap = np.array([float(exponent(v)) for v in at]) + cost
    ok = bool(np.ptp(gap) < 1e-9 * np.max(np.abs(cost)))
    return result(BRUTE_FORCE, ok, "the declared objective at one site, and the answer of the others")


@witness("fluctuation")
def about_the_minimum(step: Step, _dps: int) -> list[Verdict]:
    """The mean against a sum over a grid of states; what is implicit is taken at values of its unknown."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side = theory.inserted[kind]
    eta = side.solution.minimum.inner
    rule = numbers_at(theory, sum((c.difference for c in step.claims), S.Zero), side)
    zero = {q.xreplace({kind.index: S.Zero}): v for q, v in rule.items() if isinstance(q, SiteQuantity)}
    weighed, worst = Weighed(theory, side, rule), 0.0
    for field in (-1.1, 0.3, 0.8):
        known: dict[Any, Any] = {**rule, **zero}
        first = step.claims[0]
        if first.lhs == eta:
            (unknown,) = first.rhs.xreplace(known).free_symbols
            known[unknown] = S(field)
        else:
            known |= {h.eta: S(field) for h in side.heard}
        for claim in step.claims:
            known[claim.lhs] = claim.rhs.xreplace(known).evalf(20)
        direct = weighed.means(np.array([float(known[eta])]))[0]
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
    sides = {w.is_field: w for w in system.weights.values()}
    f = next(f for f in system.fields if f.states() and system.laws[f.hearer].weight.is_field)
    x, message, field = sides[False].state, sides[True].mean, sides[True].state
    total = system.own(one_of_each(system.rewritten.typed.objective))
    couplings = [q for q in site_quantities(total) if isinstance(q.family, Coupling)]
    labels = {q.at_site(): S.One for q in system.quenched if q.given is not None}
    claims = [Equation(*(one_of_each(e) for e in (c.lhs, c.rhs))) for c in step.claims]
    rule: dict[Any, Any] = {s: S(7 + k) / 5 for k, s in enumerate(system.parameters)}
    rule |= labels | {q.at_site(): S(2) / 3 for q in system.quenched if q.given is None}
    rule |= {q: S(4) / 5 for q in {*couplings, f.coupling}}
    heard = one_of_each(f.as_sum).xreplace({sides[False].mean: x}).xreplace(rule)
    alone = total.xreplace(dict.fromkeys(couplings, S.Zero)).xreplace(rule)
    energy, beta = total.xreplace(rule), float(sides[False].beta.xreplace(rule))
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

    force = -(energy - alone).diff(x) / heard.diff(x)
    worst = 0.0
    for claim in claims:
        sides_ = []
        for e in (claim.lhs, claim.rhs):
            known = {n: mean(n.body.xreplace({field: heard}).xreplace(rule)) for n in e.atoms(Expect)}
            known |= {sides[False].mean: mean(x), message: mean(force)}
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
