"""Witnesses of the scatter of observables: problems with a source in the objective, and instances that are solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sympy import Add, Expr, Float, Poly, Rational, Sum, Symbol

from symcavity.errors import DeclarationError, SymcavityError
from symcavity.finite.observables import Reader
from symcavity.finite.run import run_one
from symcavity.finite.setup import prepare
from symcavity.method.fluctuations import minimum_of
from symcavity.method.kkt import optimality
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.kinds import FEATURE, N
from symcavity.model.quantities import site_quantities
from symcavity.record.derivation import SIMULATION, Step, Verdict
from symcavity.witness.fluctuations import ALLOWED, LIMIT, SEEDS, SIZE
from symcavity.witness.points import seeded_values, solve_shared
from symcavity.witness.registry import largest, result, witness

SHIFT, NEAR, DIGITS = Rational(1, 5000), 1e-4, 4  # of a difference quotient
QUOTIENT = "difference quotients of problems with a source"
UNDONE = Verdict(QUOTIENT, None, "with the source the problem is not convex, or its solution was not found")


class Sourced:
    """The problem with multiples of a source in the objective, solved: what moves, by difference quotients."""

    def __init__(self, theory: Theory, source: Any, solution: Any, values: Mapping[Any, Any]) -> None:
        self.theory, self.solution = theory, solution
        written, self._size = _written(source, solution)
        for sign in (1, -1):
            try:
                self._at = [_with(theory, sign * k * SHIFT, written) for k in range(3)]
                self._solved = [solve_shared(made, dict(values), 15) for made in self._at]
            except DeclarationError:
                continue
            self._step = sign * SHIFT
            return
        raise DeclarationError("The source bends downwards.")

    def rate(self, keys: list[Any]) -> float:
        """The derivative in the strength of the source, of an observable of each of the problems."""
        first, second, third = (float(s.number(key)) for s, key in zip(self._solved, keys, strict=True))
        return (4 * second - 3 * first - third) / (2 * float(self._step)) * float(self._size)

    def minimum(self) -> float:
        """By how much the minimum moves."""
        return self.rate([made.objective for made in self._at])

    def number(self, symbol: Symbol) -> float:
        """By how much an unknown moves."""
        return self.rate([str(symbol)] * 3)

    def of_site(self, kind: Any) -> float:
        """By how much the mean of the minimum of a single site moves."""
        return self.rate([Average(minimum_of(made, made.inserted[kind])) for made in self._at])


def _written(source: Any, solution: Any) -> tuple[Expr, Rational]:
    """The source in the words of the declaration, with numbers for the factors of averages; over the largest one."""
    terms = [(_exact(solution.number(rate)), g * N) for g, rate in source.parts.shared.items()]
    for kind, parts in source.parts.typed.items():
        terms += [(_exact(solution.number(factor)), Sum(body, kind.range)) for factor, body in parts]
    size = max(abs(factor) for factor, _ in terms)
    return Add(*(factor / size * term for factor, term in terms)), size


def _exact(number: Any) -> Rational:
    return Rational(str(float(number))).limit_denominator(10**9)


def _with(theory: Theory, strength: Expr, source: Expr) -> Theory:
    problem = theory.system.record.problem
    objective, entries = problem.typed
    made = type(problem)(objective + strength * source, [*entries, *problem.ranges])
    return Theory(optimality(made))


def _sourced(step: Step) -> Iterator[Any]:
    """Each source of a record, with the problems that hold it; kept for the other steps."""
    theory, found = step.evidence["theory"], step.evidence["observed"]
    values = seeded_values(theory, 0)
    known = theory.memory.setdefault("sourced", {})
    for source in found.sources:
        if source.expr not in known:
            solution = solve_shared(theory, values, 15)
            try:
                known[source.expr] = Sourced(theory, source, solution, values)
            except SymcavityError:
                known[source.expr] = None
        yield source, known[source.expr], solve_shared(theory, values, 15)


def _names(step: Step, source: Any) -> dict[Any, Expr]:
    """The named quantities of a record in the states of a site, by its own claims, with rates as symbols."""
    found = step.evidence["observed"]
    own = {e.lhs: e.rhs for e in found.owned(source)}
    return {e.lhs: e.rhs.xreplace(own) for e in found.additions(source)}


def _rates(source: Any, sourced: Sourced, step: Step, solution: Any) -> dict[Any, float]:
    """The rates of what moves; of what no solution tells by its name, by their claims."""
    told = _told(step)
    known = {r: sourced.number(s) for s, r in source.changes.items() if told(s)}
    return known | _solved(step, source, solution, known)


def _told(step: Step) -> Callable[[Symbol], bool]:
    """Whether a solution tells an unknown: no curvature, and no order parameter that only the source tells apart."""
    found = step.evidence["observed"].moved.found
    return lambda s: s not in found.bends and s not in found.same and s not in found.same.values()


def _solved(step: Step, source: Any, solution: Any, known: Mapping[Any, float]) -> dict[Any, float]:
    """What linear claims say of the rates that are left, where others are known."""
    claims = [e for e in step.evidence["observed"].closed(source) if e.lhs not in known]
    names, left = _names(step, source), [e.lhs for e in claims]

    def at(values: Mapping[Any, float]) -> np.ndarray:
        return np.array([_value(e.rhs.xreplace(names), {**known, **values}, solution) for e in claims])

    none = dict.fromkeys(left, 0.0)
    base = at(none)
    slopes = np.array([at({**none, rate: 1.0}) - base for rate in left]).reshape(len(left), len(left))
    return dict(zip(left, np.linalg.solve(np.eye(len(left)) - slopes.T, base), strict=True)) if left else {}


def _value(expr: Expr, known: Mapping[Any, float], solution: Any) -> float:
    return sum(_terms(expr, known, solution))


def _terms(expr: Expr, known: Mapping[Any, float], solution: Any) -> list[float]:
    """The numbers of the terms of a formula in which names stand in averages, as polynomials."""
    rule = {s: Float(v) for s, v in known.items()}
    rule |= {s: Float(float(solution.number(s))) for s in expr.free_symbols - set(rule) if isinstance(s, Symbol)}
    for node in expr.atoms(Average):
        held = sorted(node.free_symbols & set(known), key=str)
        terms = Poly(node.body, *held).terms() if held else [((), node.body)]
        powers = [float(np.prod([known[s] ** n for s, n in zip(held, each, strict=True)])) for each, _ in terms]
        means = [float(solution.number(Average(body))) for _, body in terms]
        rule[node] = Float(sum(m * p for m, p in zip(means, powers, strict=True)))
    return [float(term.xreplace(rule)) for term in Add.make_args(expr)]


@witness("observed_source")
def source(step: Step, _dps: int) -> list[Verdict]:
    """The minimum with the source in the objective has the observable as its derivative."""
    worst = 0.0
    for source_, sourced, solution in _sourced(step):
        if sourced is None:
            return [UNDONE]
        shares = step.evidence["observed"].moved.found.shares
        claims = {e.lhs: e.rhs for e in step.evidence["observed"].owned(source_)}
        parts = [solution.number(shares[kind] * Average(claims[q])) for kind, q in source_.own.items()]
        parts += [solution.number(g * rate) for g, rate in source_.parts.shared.items()]
        worst = largest(worst, _apart(sourced.minimum(), [float(p) for p in parts]))
    return _said(worst, "the minimum moves by what sites have of the source")


@witness("observed_added")
def added(step: Step, _dps: int) -> list[Verdict]:
    """The mean of what a source adds to the minimum of a site, against minima of sites with the source."""
    worst, found = 0.0, step.evidence["observed"]
    for source_, sourced, solution in _sourced(step):
        if sourced is None:
            return [UNDONE]
        rates = _rates(source_, sourced, step, solution)
        # the minima of single sites have no part of what given emissions feel
        rates |= {r: 0.0 for s, r in source_.changes.items() if s in found.moved.found.bends}
        # what belongs to no site, of a condition on a sum, a record may count with any kind
        held = [source_.changes.get(nu) for nu, _ in step.evidence["theory"].system.record.conditions]
        for kind, name in source_.added.items():
            body = _names(step, source_)[name].expand()
            own = [term for term in Add.make_args(body) if site_quantities(term) or not set(held) & term.free_symbols]
            terms = [_value(Average(term), rates, solution) for term in own]
            least = NEAR * max(map(abs, rates.values()), default=0)
            worst = largest(worst, _apart(sourced.of_site(kind), terms, least))
    return _said(worst, "the minima of single sites move by what it adds")


@witness("observed_closed")
def closed(step: Step, _dps: int) -> list[Verdict]:
    """The rates at which order parameters and shared variables move, against solutions with the source."""
    worst, told = 0.0, _told(step)
    claims = {e.lhs: e.rhs for e in step.claims}
    for source_, sourced, solution in _sourced(step):
        if sourced is None:
            return [UNDONE]
        rates, names = _rates(source_, sourced, step, solution), _names(step, source_)
        for symbol, rate in source_.changes.items():
            if rate in claims and told(symbol):
                terms = _terms(claims[rate].xreplace(names), rates, solution)
                worst = largest(worst, _apart(rates[rate], terms, NEAR * max(map(abs, rates.values()))))
    return _said(worst, "order parameters move as it says")


@witness("observed_coincide")
def coincide(step: Step, _dps: int) -> list[Verdict]:
    """The covariance of the observables of instances, each solved as it was declared."""
    theory, found = step.evidence["theory"], step.evidence["observed"]
    values = seeded_values(theory, 0)
    shared = found.moved.found.shared
    known: dict[Any, float] = {}
    for source_, sourced, _ in _sourced(step) if shared else ():
        if sourced is None:
            return [UNDONE]
        known |= {source_.changes[g]: sourced.number(g) for g in shared}
    claimed = _claimed(step, solve_shared(theory, values, 15), known)
    size = int(values.get(N, SIZE))  # where sums do not grow with the number of sites, it is part of the values
    setup = prepare(theory.system, {k: v for k, v in values.items() if k != N})
    samples = [sample for sample in (run_one(setup, (size, seed)) for seed in range(SEEDS)) if sample.feasible]
    if len(samples) < SEEDS:
        return [Verdict(SIMULATION, None, "not all instances have a solution")]
    readers = [Reader(setup.written, setup.instance(s.counts[FEATURE], s.seed), s.solved) for s in samples]
    rows = [np.array([read(source_.expr) for read in readers]) for source_ in found.sources]
    one, other = rows[0] - rows[0].mean(), rows[-1] - rows[-1].mean()
    products = size * one * other
    measured, error = float(products.mean()), float(products.std(ddof=1)) / np.sqrt(SEEDS)
    scale = size * float(np.sqrt(np.mean(one**2) * np.mean(other**2)))
    ok = abs(measured - claimed) < LIMIT * error + ALLOWED / size * scale
    where = f"{SEEDS} instances of N = {size}"
    return result(SIMULATION, bool(ok), where, f"{where} have {measured:.4g}, and {claimed:.4g} is claimed")


def _claimed(step: Step, solution: Any, shared: Mapping[Any, float]) -> float:
    """The claims of a record as one linear system in the named quantities."""
    found, known = step.evidence["observed"], dict(shared)
    names: dict[Any, Expr] = {}
    for source_ in found.sources:
        names |= _names(step, source_)
        known |= _solved(step, source_, solution, shared)
    claims = {e.lhs: e.rhs.xreplace(names) for e in step.claims if isinstance(e.lhs, Symbol)}
    mixed = [name for source_ in found.sources for name in source_.mixed.values()]
    known |= {name: _value(claims[name], known, solution) for name in mixed}
    turned = list(found.turned.values())
    linear = [e for e in step.claims if e.lhs.has(*turned)] if turned else []

    def at(values: Mapping[Any, float]) -> np.ndarray:
        return np.array([_value(e.lhs - e.rhs, {**known, **values}, solution) for e in linear])

    none = dict.fromkeys(turned, 0.0)
    base = at(none)
    slopes = np.array([at({**none, name: 1.0}) - base for name in turned]).T
    known |= dict(zip(turned, np.linalg.solve(slopes, -base), strict=True)) if turned else {}
    return _value(claims[found.symbol], known, solution)


def _apart(one: float, terms: list[float], least: float = 0.0) -> float:
    """By how much a number differs from a sum, in units of its terms, or of what counts as zero beside others."""
    size = max(sum(map(abs, terms)), least)
    return abs(sum(terms) - one) / size if size else abs(one)


def _said(worst: float, where: str) -> list[Verdict]:
    return result(QUOTIENT, bool(worst < NEAR), where, f"{where}, but for a part of {worst:.2g}", DIGITS)
