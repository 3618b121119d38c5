"""The states of a site at the lowest of the minima of its energy, for every value of its fields."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Add, And, Dummy, Eq, Expr, Min, Or, Piecewise, S, cancel, log, oo
from sympy.core.relational import Relational

from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average
from symcavity.model.convexity import seeded
from symcavity.model.laws import Weight
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.ranges import margins, values_in_range
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.draws import DRAWS, sample_value, symbols_in
from symcavity.sites.branching.solution import Region, SiteSolution
from symcavity.sites.lowest.atoms import LABELS, SUPPORTED, Candidate, OpenOrder, atoms_of, discrete
from symcavity.sites.lowest.envelope import Envelope, direct, local, numbers, sequence, simple, where_it_is
from symcavity.sites.protocol import Heard, SiteProblem, without_curvature
from symcavity.sites.thermal.summed import answer_to_states, moving_field, moving_fields, weight_of

TRIES = 400  # of parameters at which the energy has a minimum


@dataclass(frozen=True)
class StateForce:
    """The force on the state of a site: ``shift + slope*eta``, with the sources; and what it adds to the energy.

    Attributes
    ----------
    slope, shift : Expr
    curvature : Expr
        The site's energy grows by ``curvature*x**2/2``: by what others answer, or by what holds a field.
    """

    slope: Expr
    shift: Expr
    curvature: Expr


@dataclass(frozen=True)
class LowestSolution(SiteSolution):
    """The states of a site at its lowest minimum; regions of the field are those of one candidate.

    Attributes
    ----------
    envelope : Envelope
        The candidates and the forces at which they switch.
    force : Force
    state : SiteQuantity
        The variable whose energy it is.
    cases : tuple of (Boolean, LowestSolution)
        What it is instead where parameters and self-couplings meet a condition, or a label has a value: other minima
        are the lowest there.
    labels : mapping
        The values of labels at which it is laid out.
    """

    envelope: Envelope = None  # type: ignore[assignment]
    force: StateForce = None  # type: ignore[assignment]
    state: SiteQuantity = None  # type: ignore[assignment]
    cases: tuple[tuple[Any, LowestSolution], ...] = ()
    labels: Mapping[Any, Expr] = field(default_factory=dict)

    def xreplace(self, rule: dict[Any, Any]) -> LowestSolution:
        """Replace symbols throughout, for instance the self-coupling by its mean."""
        found: Any = super().xreplace(rule)
        force = StateForce(*(e.xreplace(rule) for e in (self.force.slope, self.force.shift, self.force.curvature)))
        cases = tuple((test.xreplace(rule), one.xreplace(rule)) for test, one in self.cases)
        return replace(found, envelope=self.envelope.xreplace(rule), force=force, cases=cases)

    def at(self, means: Mapping[Any, Expr], covariance: Mapping[Any, Expr]) -> SiteSolution:
        """The solution at the mean self-couplings; none where a piece of the energy would have no curvature."""
        if any(not a.is_point and a.c.xreplace(dict(means)) == 0 for a in self.envelope.atoms):
            raise without_curvature("its states are")
        return super().at(means, covariance)

    def by_cases(self, function: Callable[[LowestSolution], Expr]) -> Expr:
        """What a function gives of each case."""
        own = function(replace(self, cases=()))
        found = [(function(one), test) for test, one in self.cases]
        return Piecewise(*found, (own, True)) if any(value != own for value, _ in found) else own

    def where(self, values: Mapping[Any, Expr]) -> LowestSolution:
        """The case that holds at values of all parameters."""
        return next((one for test, one in self.cases if test.xreplace(dict(values)) == S.true), self)

    def expression(self, state: SiteQuantity) -> Expr:
        """One expression for a state: by cases where it jumps."""
        if self.cases:
            return self.by_cases(lambda one: one.expression(state))
        if not self.jumping:
            return super().expression(state)
        t = self.reflection * self.inner
        cases = [(region.values[state], t < region.high) for region in self.regions[:-1]]
        return Piecewise(*cases, (self.regions[-1].values[state], True))

    def freedom(self) -> Expr:
        """The logarithm of how far a field fluctuates about its minimum, in units of that without its energy."""
        if self.cases and not self.labels:
            return self.by_cases(lambda one: one.freedom())
        every = [self, *(one for _, one in self.cases)]
        if any(a.is_point for one in every for a in one.envelope.atoms):
            return -oo

        def width(one: LowestSolution) -> Expr:
            cases = [(-log(simple(a.c / one.force.curvature)) / 2, one.state < a.high) for a in one.envelope.atoms]
            return Piecewise(*cases[:-1], (cases[-1][0], True))

        return Average(self.by_cases(width))  # labels differ from site to site

    @property
    def jumping(self) -> frozenset[SiteQuantity]:
        """The states that have two values where two minima are equally low."""
        jumps = bool(self.envelope.jumps()) or any(one.jumping for _, one in self.cases)
        return frozenset(self.unknowns if jumps else ())


def force_on(problem: SiteProblem) -> StateForce:
    """What acts on the state of a site besides its own energy, with the self-couplings as symbols."""
    weight, heard = weight_of(problem), moving_field(problem)
    plain = problem.plain_sources()
    source = Add(*(plain[h.source] for h in moving_fields(problem)))
    if weight.is_field:
        strength = sum((k.symbol for k in heard.feedback if k.emission == weight.mean), S.Zero)
        if strength == 0:
            raise UnsupportedLaw(
                f"{problem.text}: no site responds to its messages.",
                "couplings that are heard both ways",
            )
        return StateForce(1 / strength, source / strength, 1 / strength)
    total, strength = answer_to_states(problem)
    slope = total.diff(heard.eta)
    return StateForce(slope, (total - slope * heard.eta).expand() + source, -strength)


def candidates(problem: SiteProblem, weight: Weight, told: Mapping[Any, Expr], curvature: Expr) -> list[Candidate]:
    """The candidates for the minimum of a site's energy, with what others answer."""
    state = weight.state
    energy, bounds = weight.energy.xreplace(dict(told)), [b.xreplace(dict(told)) for b in weight.bounds]
    values = () if weight.is_field else getattr(state.family, "values", ())
    if values:
        found = discrete([(v, energy.xreplace({state: v})) for v in values])
    else:
        x = Dummy("x", real=True)
        own = {state: x}
        energy = Min(*(energy.xreplace(choice) for choice in weight.choices()))
        positive = margins(problem.ranges)
        found = atoms_of(energy.xreplace(own), x, [b.xreplace(own) for b in bounds], positive)
    return [a.steeper(curvature) for a in found]


def solve_lowest(problem: SiteProblem) -> LowestSolution:
    """Lay out the lowest minimum of a site over its field.

    Raises
    ------
    IllPosed
        If the energy has no minimum whatever the feedback, or its candidates come in several orders.
    UnsupportedLaw
        If the energy is not made of squares.
    """
    try:
        return _at_given_labels(problem)
    except OpenOrder as found:
        known = [q for q in site_quantities(found.on, Quenched) if q.family.values]
        if not known:
            raise
    return _by_label(problem, known[0])


def _by_label(problem: SiteProblem, label: SiteQuantity) -> LowestSolution:
    """The lowest minimum at each value of a label that decides in which order the minima lie."""
    weight, rows = weight_of(problem), list[tuple[Any, LowestSolution]]()
    for value in label.family.values:
        here = {label: value}
        told = replace(
            weight, energy=weight.energy.xreplace(here), bounds=tuple(b.xreplace(here) for b in weight.bounds)
        )
        one = solve_lowest(replace(problem, law=replace(problem.law, weight=told)))
        for test, case in (*one.cases, (S.true, replace(one, cases=()))):
            rows.append((And(Eq(label, value), test), replace(case, labels=here | dict(case.labels))))
    *cases, (_, last) = rows
    assumed = dict.fromkeys(c for _, one in rows for c in one.assumed)
    plain = tuple((test, replace(one, assumed=())) for test, one in cases)
    return replace(last, cases=plain, assumed=tuple(assumed))


def _at_given_labels(problem: SiteProblem) -> LowestSolution:
    """The lowest minimum where no label decides in which order the minima lie."""
    weight, force, sources = weight_of(problem), force_on(problem), problem.plain_sources()
    for test in sorted(weight.energy.atoms(Relational), key=str):
        if not test.has(weight.state) and any(q.family.values for q in site_quantities(test, Quenched)):
            raise OpenOrder(f"{problem.text}: its energy has cases.", SUPPORTED, LABELS, on=test)
    told = {
        h.carrier: next(e for e in problem.equations() if e.lhs == h.carrier).rhs.xreplace(sources)
        for h in problem.heard
        if not h.declared.states() and h.carrier is not None
    }
    way = sign_of(force.slope)
    if not way:
        raise IllPosed(f"{problem.text}: the sign of {force.slope} is open.", "fields of one sign")
    if weight.is_local:
        found = _followed(problem, candidates(problem, weight, told, S.Zero), force)
    else:
        found = laid_out(problem, candidates(problem, weight, told, force.curvature))
    *others, last = [(e, _over_fields(problem, told, force, e, way)) for e in found]
    cases = tuple((And(*e.assumed), replace(one, assumed=())) for e, one in others)
    if not cases:
        return last[1]
    for test, _ in cases:
        if test in (S.true, S.false) or test.has(*(h.eta for h in problem.heard), SiteQuantity):
            raise OpenOrder(f"{problem.text}: its minima come in different orders.", SUPPORTED, LABELS, on=test)
    elsewhere = Or(*(test for test, _ in cases))
    assumed = (c.func(Piecewise((S.One, elsewhere), (c.lhs, True)), 0, evaluate=False) for c in last[1].assumed)
    return replace(last[1], cases=cases, assumed=tuple(assumed))


def _followed(problem: SiteProblem, atoms: Sequence[Candidate], force: StateForce) -> list[Envelope]:
    """The minima that a site has without feedback, followed as that is turned on."""
    positive = margins(problem.ranges)
    if weight_of(problem).is_field:
        ends = (atoms[0], atoms[-1])
        found = None if any(a.is_point for a in ends) else where_it_is(atoms, force.curvature, positive)
        still = [] if found is None else [found]
    else:
        still = [local(e, force.curvature, positive) for e in laid_out(problem, atoms)]
    if len(still) != 1:
        raise UnsupportedLaw(
            f"{problem.text}: which minimum it follows depends on parameters, or it ends at a bound.",
            "select='lowest'; energies whose minima come in one order",
        )
    return still


def _over_fields(
    problem: SiteProblem, told: Mapping[Any, Expr], force: StateForce, envelope: Envelope, way: int
) -> LowestSolution:
    """The lowest minimum as a function of the field."""
    weight, heard = weight_of(problem), moving_field(problem)
    sources = problem.plain_sources()
    size = way * force.slope
    places = [simple((t - force.shift) / size) for t in envelope.switches]
    s = force.shift + force.slope * heard.eta
    regions = []
    for k, atom in enumerate(envelope.atoms):
        values = states(problem, told, simple(atom.state(s)), heard.eta + sources[heard.source])
        if weight.beside:
            values |= chosen(weight, told, atom.steeper(-force.curvature))
        values = {q: values[q] for q in problem.law.unknowns}
        regions.append((places[k - 1] if k else None, places[k] if k < len(places) else None, values))
    t = way * heard.eta
    return LowestSolution(
        heard.eta,
        tuple(problem.law.unknowns),
        tuple(Region(*row) for row in regions),
        tuple(
            Branch(values, (*([t - low] if low is not None else []), *([high - t] if high is not None else [])))
            for low, high, values in regions
        ),
        S(way),
        envelope.assumed,
        tuple(sources.values()),
        envelope=envelope,
        force=force,
        state=weight.state,
    )


def states(problem: SiteProblem, told: Mapping[Any, Expr], x: Expr, eta: Expr) -> dict[SiteQuantity, Expr]:
    """All states of a site by its own one."""
    weight = weight_of(problem)
    if weight.is_field:
        strength = force_on(problem).curvature
        found = {weight.state: x, weight.mean: simple((x - eta) * strength)}
    else:
        found = {weight.state: x}
        for h in moving_fields(problem):
            found[problem.law.carrier(h.declared).lhs] = (answered(problem, h) + 0).xreplace({weight.mean: x})
    return {**told, **found}


def chosen(weight: Weight, told: Mapping[Any, Expr], atom: Candidate) -> dict[SiteQuantity, Expr]:
    """The discrete states beside a field at a candidate for its minimum: those whose energy it is."""
    x = weight.state if not atom.is_point else atom.low
    for choice in weight.choices():
        energy = weight.energy.xreplace(dict(told)).xreplace(choice).xreplace({weight.state: x})
        if cancel(energy - atom.energy(x)) == 0:
            return choice
    raise UnsupportedLaw(
        f"Which of the values of {weight.beside[0]} is the lowest differs within a piece of the energy.", SUPPORTED
    )


def answered(problem: SiteProblem, heard: Heard) -> Expr:
    """What a field that a state hears is, with the answer to the state."""
    return heard.factor * heard.effective() + problem.plain_sources()[heard.source]


def laid_out(problem: SiteProblem, atoms: Sequence[Candidate]) -> list[Envelope]:
    """The lowest candidates in each order that they have at some parameters: first where nothing jumps."""
    parts = [e for a in atoms for e in (a.low, a.high, a.a, a.b, a.c)]
    symbols = symbols_in([e for e in parts if e not in (oo, -oo)], set())
    call, rng = numbers(atoms, symbols), seeded(29)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(TRIES):
        point = values_in_range(lambda: [_drawn(s, rng) for s in symbols], symbols, problem.ranges)
        order = sequence(call(*point))
        if order is not None:
            found[order] = found.get(order, 0) + 1
        if sum(found.values()) == DRAWS:
            break
    if not found:
        raise IllPosed(
            f"{problem.text}: its energy has no minimum.",
            "energies that grow with the states",
            "a penalty on each state",
        )
    positive = margins(problem.ranges)
    every = [direct(atoms, order, positive) for order in sorted(found, key=lambda order: (-found[order], order))]
    return sorted(every, key=lambda e: bool(e.jumps()))


def _drawn(symbol: Any, rng: random.Random) -> float:
    return float(sample_value(symbol, rng))
