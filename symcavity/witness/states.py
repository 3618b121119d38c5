"""Witnesses of sums over states: the weight of a site, from the declaration, over its discrete states and a grid."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sympy import Abs, Add, Dummy, Expr, Heaviside, LessThan, Max, Min, Piecewise, Rational, S, Sum, lambdify, sign
from sympy.core.relational import Relational

from symcavity.algebra.quadrature import break_points
from symcavity.model.averages import Expect
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import SiteCount, alpha
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.registry import result, witness
from symcavity.witness.thermal import WeightOnGrid, admitted, elsewhere, fields_at, numbers_at, weight_about_minimum
from symcavity.witness.weights import MODULES, NEAR, SiteWeight, one_of_each

PANELS, ORDER = 60, 12  # of Gauss-Legendre rules between the places where an energy jumps
GIVEN = Rational(3, 5)  # fields that hold no states, in the energy of one site
APART = 1e-9  # of all panels, the least that a panel is wide: nodes within rounding of a cut lie on neither side
FAR, COARSE, SMALL = 60.0, 4001, 50.0  # how far states are looked for, on how many places; exponents that are nothing
SMOOTH, JUMPS = 8, (Abs, Heaviside, Max, Min, Piecewise, sign, Relational)  # and kinks


class Summed(SiteWeight):
    """A site as it was declared, at numbers: its weight by state, for any value of its field.

    Parameters
    ----------
    theory, side : Theory, Site
    rule : dict
        Numbers for all symbols, and for the fields of given numbers that stand in the energy: these are ``given``.
    """

    def __init__(self, theory: Any, side: Any, rule: dict[Any, Any]) -> None:
        weight, system = side.law.weight, theory.system
        sums = {h.declared.as_sum: h.eta for h in side.heard if not h.declared.states()}
        objective = one_of_each(lagrangian(system).xreplace(sums))
        every = system.rewritten.declaration.entries
        conditions = {c.declared for c in system.collective.multipliers.values()}
        entries = [one_of_each(e.xreplace(sums)) for e in every if e not in conditions]
        bounds = [b for b in map(system.own, entries) if isinstance(b, Relational)]
        couplings = [q for e in (objective, *bounds) for q in site_quantities(e) if isinstance(q.family, Coupling)]
        off, on = dict.fromkeys(couplings, S.Zero), dict.fromkeys(couplings, S.One)
        alone = objective.xreplace(off)
        heard = next(h for h in side.heard if h.declared.states())
        if weight.is_field:
            objective = objective.xreplace(elsewhere(system, side.kind))
            emitted, sender = heard.declared.emission, system.laws[heard.declared.sender].weight
            gone = dict.fromkeys(site_quantities(emitted, Quenched), S.Zero)
            first, *others = site_quantities(sender.state)
            scale = emitted.xreplace(gone).diff(sender.mean)
            told = on | gone | dict.fromkeys(others, S.One) | {first: weight.state / scale}
            own = [term for term in Add.make_args(alone.expand()) if weight.beside and term.has(*weight.beside)]
            energy = (objective - alone).xreplace(told) + Add(*own)
            bounds = [b.xreplace(told) for b in bounds if b.has(*couplings)]
        else:
            terms = Add.make_args(alone.expand())
            energy = Add(*(term for term in terms if term.has(*weight.states)))
            bounds = [b for b in bounds if not b.has(*couplings)]
        super().__init__(side, rule, energy, [b for b in bounds if b.has(*weight.states)])
        self.given = {*sums.values()} & set().union(*(e.free_symbols for e in (self.energy, *self.bounds)))
        self.bent = bool(self.bounds) or self.energy.has(*JUMPS)
        free = [q for q in weight.states if not getattr(q.family, "values", ())]
        self.free = free[0] if free else None
        self.breaks = self._breaks()

    def _breaks(self) -> list[float]:
        """Where the energy of the continuous state jumps or ends, whatever the discrete states."""
        if self.free is None or not self.bent:
            return []
        mark = self.marks[self.free]
        steps = sum((Heaviside(b.lhs - b.rhs) for b in self.bounds), S.Zero) + self.energy
        places = break_points(steps.xreplace(self.rule).xreplace(self.marks), mark)
        return sorted(float(p) for p in places if p.is_number)

    def nodes(self, fields: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """All states, of what is continuous the nodes of an integral that holds the weight, and the shares of nodes."""
        grid, parts = np.zeros(1), np.ones(1)
        if self.free is not None:
            ends = np.array([np.min(fields), np.max(fields)])
            rough = np.linspace(-FAR, FAR, COARSE) + (np.mean(ends) if self.weight.is_field else 0.0)
            a = self.exponent(ends, self.columns(rough)).reshape(2, -1, COARSE)
            seen = np.flatnonzero(np.any(a > a.max(axis=(1, 2), keepdims=True) - SMALL, axis=(0, 1)))
            low, high = rough[max(seen[0] - 1, 0)], rough[min(seen[-1] + 1, COARSE - 1)]
            cuts = [b for b in self.breaks if low < b < high]
            even = [e for e in np.linspace(low, high, PANELS) if all(abs(e - b) > APART * (high - low) for b in cuts)]
            edges = np.unique([*even, *cuts])
            z, w = np.polynomial.legendre.leggauss(ORDER)
            half = np.diff(edges)[:, None] / 2
            grid, parts = (edges[:-1, None] + half * (1 + z)).ravel(), (half * w).ravel()
        x = self.columns(grid)
        return x, np.tile(parts, len(x[0]) // len(grid))

    def columns(self, grid: np.ndarray) -> list[np.ndarray]:
        """The values of all states: the grid of the continuous one at every choice of the discrete ones."""
        discrete = {q: [float(v) for v in q.family.values] for q in self.weight.states if q != self.free}
        rows = list(product(*discrete.values()))
        columns = {q: np.repeat([row[k] for row in rows], len(grid)) for k, q in enumerate(discrete)}
        columns |= {} if self.free is None else {self.free: np.tile(grid, len(rows))}
        return [columns[q] for q in self.weight.states]

    def means(self, fields: np.ndarray, nodes: tuple[list[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
        """What the site sends: the mean of what is heard of its states, or the slope of the logarithm of its total."""
        x, parts = nodes or self.nodes(fields)
        core = np.asarray(self.core(*x), dtype=float)
        if not self.weight.is_field:
            return self.shares(fields, x, parts) @ core
        up, down = (self.exponent(fields + way * NEAR, x) for way in (1, -1))
        top = up.max(axis=1, keepdims=True)
        gap = np.log(np.exp(up - top) @ parts) - np.log(np.exp(down - top) @ parts)
        return np.asarray(gap / (2 * NEAR * self.beta))


def weighed(theory: Any, side: Any, rule: dict[Any, Any]) -> Any:
    """The weight of a site in numbers: on a grid about its minimum, or over all states."""
    return (Summed if side.law.weight.cold is None else WeightOnGrid)(theory, side, rule)


def of_states(step: Step) -> tuple[Summed, Any, dict[Any, Any]]:
    """The site of a step at numbers, the numbers of its fields, and those of all symbols."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side = theory.inserted[kind]
    exprs = [c.difference for c in step.claims]
    rule = admitted(numbers_at(theory, sum(exprs, S.Zero), side), side)
    rule |= fields_given(side, GIVEN)
    zero = {q.xreplace({kind.index: S.Zero}): v for q, v in rule.items() if isinstance(q, SiteQuantity)}
    return Summed(theory, side, rule), side, {**rule, **zero}


def fields_given(side: Any, value: Any) -> dict[Any, Any]:
    """One value for all fields of a site that hold no states, and for what carries them."""
    given = [h for h in side.heard if not h.declared.states()]
    return {key: S(value) for h in given for key in (h.eta, h.carrier) if key is not None}


@witness("thermal_sum")
def mean_of_states(step: Step, _dps: int) -> list[Verdict]:
    """The thermal mean against a sum over all states of the declared energy."""
    summed, side, known = of_states(step)
    (claim,) = step.claims
    worst = 0.0
    for field in (-1.1, 0.3, 0.8):
        told = {h.eta: S(field) for h in side.heard if h.declared.states()} | fields_at(summed.factors, field)
        moving = [h for h in side.heard if h.declared.states() and h.carrier]
        given = {h.carrier.xreplace({step.data["kind"].index: S.Zero}): S(field) for h in moving}
        value = float(claim.rhs.xreplace(known | told | given).evalf(20))
        direct = float(summed.means(np.array([float(summed.pull(told))]))[0])
        worst = max(worst, abs(value - direct) / max(abs(direct), 0.1))
    ok = bool(worst < 10.0**-SMOOTH)
    return result(BRUTE_FORCE, ok, "sums over all states at three fields", f"by {worst:.2g}", SMOOTH)


@witness("weight")
def weight(step: Step, _dps: int) -> list[Verdict]:
    """The weight against the declared objective, up to a factor that is the same for all states."""
    if step.evidence["theory"].inserted[step.data["kind"]].law.weight.cold is not None:
        return weight_about_minimum(step)
    summed, side, known = of_states(step)
    (claim,) = step.claims
    weight, kind = side.law.weight, step.data["kind"]
    cavity = fields_at(summed.factors, 0.7)
    field = float(summed.pull(cavity))
    x, _ = summed.nodes(np.array([field]))
    whole = claim.rhs.xreplace(known | cavity)
    marks = {q.xreplace({kind.index: S.Zero}): mark for q, mark in summed.marks.items()}
    call = lambdify(list(summed.marks.values()), whole.xreplace(marks), MODULES)
    direct = summed.exponent(np.array([field]), x)[0]
    top = np.flatnonzero(direct > direct.max() - 200)
    with np.errstate(divide="ignore"):
        claimed = np.log(np.broadcast_to(np.asarray(call(*x), dtype=float), direct.shape))
    outside = np.isneginf(direct)
    known_there = np.all(claimed[outside] == -np.inf) and np.all(np.isfinite(claimed[top]))
    ok = bool(known_there) and bool(np.ptp(claimed[top] - direct[top]) < 1e-9 * max(1.0, np.ptp(direct[top])))
    return result(BRUTE_FORCE, ok, f"the declared objective at one {weight.mean.family.kind} site")


def lagrangian(system: Any) -> Expr:
    """The declared energy, less what each multiplier says of the condition on a sum that it belongs to."""
    total = system.rewritten.declaration.objective
    for nu, condition in system.collective.multipliers.items():
        told = condition.declared
        total -= nu * ((told.rhs - told.lhs) if isinstance(told, LessThan) else (told.lhs - told.rhs))
    return system.own(total)


SITES = 3  # of each kind, where energies are written out


class Few:
    """A few sites of each kind, with numbers for everything: energies and fields written out.

    Parameters
    ----------
    system : System
    """

    def __init__(self, system: Any) -> None:
        self.system, self.rng = system, np.random.default_rng(2)
        ratios = (alpha, *(kind.ratio for kind in system.kinds))
        self.values: dict[Any, float] = {r: 1.0 for r in ratios if r.is_Symbol}  # as many sites of each kind
        self.told: dict[Any, Any] = {}
        for weight in system.weights.values():
            if not weight.is_field and weight.mean != weight.state:
                self.told[weight.mean.family] = weight

    def elsewhere(self) -> Few:
        """The same sites at another configuration of their states."""
        other = Few(self.system)
        other.rng = self.rng
        other.values = {
            q: v for q, v in self.values.items() if isinstance(getattr(q, "family", None), Coupling | Quenched)
        } | {q: v for q, v in self.values.items() if not isinstance(q, SiteQuantity)}
        return other

    def number(self, expr: Expr) -> float:
        """The value of an expression, its sums over sites written out."""
        expr = written_out(expr)
        found = {q: S(self.value(q)) for q in expr.atoms(SiteQuantity)}
        expr = expr.xreplace(found)
        plain = {s: S(SITES) if isinstance(s, SiteCount) else S(self.value(s)) for s in expr.free_symbols}
        return float(expr.xreplace(plain))

    def value(self, q: Any) -> float:
        """The number of a quantity: a mean is what is sent at a configuration of states."""
        if q not in self.values:
            self.values[q] = self._drawn(q)
        return self.values[q]

    def _drawn(self, q: Any) -> float:
        family = getattr(q, "family", None)
        if family in self.told:
            weight = self.told[family]
            return self.number(weight.state.xreplace({weight.mean.indices[0]: q.indices[0]}))
        if isinstance(family, Coupling) and family.slots[0] == family.slots[1]:
            a, b = q.indices[:2]
            if a == b:
                return 0.0
            if a > b and family.reciprocity == 1:
                return self.value(family[b, a])
        if values := getattr(family, "values", ()) if not isinstance(family, Quenched) else ():
            return float(self.rng.choice([float(v) for v in values]))
        return float(self.rng.uniform(0.3, 1.5))

    def at(self, expr: Expr, kind: Any, k: int) -> float:
        """The value of an expression of one site, at the k-th site of its kind."""
        return self.number(expr.xreplace({kind.index: S(k)}))


def written_out(expr: Any) -> Any:
    """An expression with its sums over sites written out."""
    if isinstance(expr, Sum):
        body = written_out(expr.function)
        for index, *_ in expr.limits:
            body = Add(*(body.xreplace({index: S(k)}) for k in range(1, SITES + 1)))
        return body
    if not expr.args or isinstance(expr, SiteQuantity):
        return expr
    return expr.func(*map(written_out, expr.args))


@witness("measure", "lowest_state")
def measured(step: Step, _dps: int) -> list[Verdict]:
    """The declared energy of two configurations, put together from the weights of the sites and what they hear."""
    system = step.evidence["theory"].system
    objective = lagrangian(system)
    first = Few(system)
    gap = _rebuilt(step, first) - first.number(objective)
    other = first.elsewhere()
    moved = _rebuilt(step, other) - other.number(objective) - gap  # what no site has a part in is gone
    ok = abs(moved) < 1e-12 * max(1.0, abs(first.number(objective)))
    ok = ok and abs(_heard_back(step, first)) < 1e-12
    ok = ok and all(abs(gap) < 1e-12 for gap in _slopes(step, first, objective))
    return result(BRUTE_FORCE, ok, "the declared energy at three sites of each kind")


def _named(claim: Any) -> Any:
    """The field whose mean or sum a claim tells; None of others."""
    if isinstance(claim.lhs, Expect):
        return claim.lhs.body
    is_sum = isinstance(claim.lhs, SiteQuantity) and isinstance(claim.lhs.family, Field)
    return claim.lhs if is_sum and not claim.rhs.has(Expect) else None


def _rebuilt(step: Step, few: Few) -> float:
    """The energy of a configuration by the claims; the fields get their values on the way."""
    weights, total = few.system.weights, 0.0
    means = [w.mean.family for w in weights.values() if not w.is_field]  # of sites that meet in pairs, from both ends
    for claim in step.claims:
        if (named := _named(claim)) is None:
            continue
        (kind,) = named.site
        weight = weights[kind]
        own = not weight.is_field and claim.rhs.has(*means)
        for k in range(1, SITES + 1):
            value = few.at(claim.rhs, kind, k)
            few.values[named.xreplace({kind.index: S(k)})] = value
            total -= few.at(weight.state, kind, k) * value / 2 if own else 0.0
    return total + sum(few.at(w.energy, kind, k) for kind, w in weights.items() for k in range(1, SITES + 1))


def _heard_back(step: Step, few: Few) -> float:
    """What senders hear of losses against what the losses hear of them: one matrix, and its transpose."""
    weights, gap = few.system.weights, 0.0
    means = {w.mean.family for w in weights.values() if not w.is_field}
    told = {field: force for w in weights.values() for field, force in w.forces}
    for claim in step.claims:
        if (named := _named(claim)) is None:
            continue
        (kind,) = named.site
        silent = claim.rhs.replace(lambda e: isinstance(e, SiteQuantity) and e.family in means, lambda _: S.Zero)
        for k in range(1, SITES + 1):
            if named in told:
                gap -= few.at(told[named], kind, k) * (few.at(claim.rhs, kind, k) - few.at(silent, kind, k))
            elif not weights[kind].is_field and not claim.rhs.has(*means):
                gap += few.at(weights[kind].state, kind, k) * few.at(claim.rhs, kind, k)
    return gap


def _held(system: Any, g: Any) -> Any:
    """What constraints of sites that move with a global variable add to the slope: the force that each holds."""
    total = S.Zero
    for entry in system.rewritten.declaration.entries:
        is_bound = isinstance(entry, Relational) and entry.has(g) and entry.has(Sum)
        if not is_bound or entry in system.collective.multipliers.values():
            continue
        (weight,) = (w for w in system.weights.values() if w.is_field and w.bounds)
        (heard,) = (lhs for lhs in entry.atoms(Sum))
        mark = Dummy("h", real=True)
        bound = (entry.lhs - entry.rhs).xreplace({heard: mark})
        total += Sum(-bound.diff(g) / bound.diff(mark) * weight.mean, weight.mean.family.kind.range)
    return written_out(total)


def _slopes(step: Step, few: Few, objective: Expr) -> list[float]:
    """The slopes of the declared energy in global variables, against the sums that vanish on average."""
    system = few.system
    known = {g for _, said in system.rewritten.declaration.brought for g in said.atoms(Global)}
    known = {g for g in known if not any(g in c.declared.atoms(Global) for c in system.collective.multipliers.values())}
    shared = sorted(objective.atoms(Global) - known, key=lambda g: (bool(g.is_bounded), g.name))
    claims = [c for c in step.claims if not c.rhs.has(SiteQuantity) and c.lhs.has(Sum)]
    found = [c for c in claims if not (known and c.lhs.has(*known))]
    told = [few.number(c.lhs.replace(lambda e: isinstance(e, Expect), lambda e: e.body)) for c in found]
    largest = {g for g in shared if g.is_bounded and g in system.collective.multipliers}
    slopes = {g: few.number(written_out(objective).diff(g) + _held(system, g)) for g in shared}
    direct = [-slope if g in largest else slope for g, slope in slopes.items()]
    return [a - b for a, b in zip(told, direct, strict=len(told) == len(direct))] if found or shared else []
