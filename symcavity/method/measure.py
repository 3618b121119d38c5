"""The Gibbs measure of a problem that may have several minima, discrete states and hard constraints: weights of sites.

What a site sends is the thermal mean of its state, of a product of its states, or of the force on the field that it
hears. Sites of one kind may also meet in pairs, through symmetric couplings. States that are heard in several fields
have a field of their own for each: what pulls them is the sum of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, NoReturn

from sympy import Add, Derivative, DiracDelta, Dummy, Expr, Heaviside, S, Sum

from symcavity.errors import UnsupportedLaw
from symcavity.method.kkt import multiplier
from symcavity.model.averages import Expect, Force
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Collective, Weight
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.reading import SumCondition
from symcavity.sites.thermal.fluctuation import KINKS

SUPPORTED = (
    "kinds of sites that send one product of their states into fields, to losses of one field or to squares of several "
    "ones, or meet in pairs, those of one kind through couplings of reciprocity 1"
)


@dataclass
class Measure:
    """The thermal means of a problem, and the weights that they are taken over.

    Attributes
    ----------
    problem : Problem
    beta : Expr
        The inverse temperature.
    equations : list of Equation
        What the thermal means of all kinds of sites meet.
    weights : dict
        That of each kind of site.
    pairs : list of Complementary
        What global variables meet that are bounded by zero.
    shared : Expr
        The energy that belongs to no site, with multipliers of conditions on sums.

    Raises
    ------
    UnsupportedLaw
        For kinds of sites that send several quantities, and energies of several fields that are no squares of them.
    """

    problem: Problem
    beta: Expr
    equations: list[Equation] = field(default_factory=list)
    weights: dict[Kind, Weight] = field(default_factory=dict)
    pairs: list[Complementary] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem = self.problem
        every = [*problem.objective.values(), problem.global_objective, *(c.expr for c in problem.constraints)]
        every += [e for c in problem.conditions for e in (*c.parts.values(), c.shared)]
        self._taken = {q.family.name for e in every for q in site_quantities(e)}
        self._taken |= {s.name for e in every for s in e.free_symbols if hasattr(s, "name")}
        fields = [f for kind in problem.kinds for f in problem.book.all(kind)]
        self._taken |= {q.family.name for f in fields for e in (f.emission, f.coupling) for q in site_quantities(e)}
        self._fields = [f for f in fields if f.states()]
        self.shared = problem.global_objective
        self._objective = dict(problem.objective)
        self._multipliers: dict[Global, Any] = {}
        for condition in problem.conditions:
            self._weigh(condition)
        self._means: dict[Kind, tuple[Expr, SiteQuantity]] = {}
        self._messages: dict[Any, SiteQuantity] = {}  # the force on each field that is weighed
        for f in self._fields:
            _, _, core = emission_parts(f)
            if self._means.setdefault(f.sender, (core, S.Zero))[0] != core or f.components or f.inner:
                self._refused(f"The {f.sender.sites} send more than one quantity.")
        senders = list(self._means)
        self._strengths = self._met()  # of pairs of sites, by the field that one of the two kinds hears
        for kind, (core, _) in self._means.items():
            name = name_of_mean(core, several=len(self._means) > 1)
            self._means[kind] = core, Variable(self._fresh(name), kind.index).at_site()
        order = sorted(problem.kinds, key=lambda kind: kind in senders)  # losses send the messages of the others
        for kind in order:
            heard = [f for f in self._fields if f.hearer == kind]
            if kind in self._means:
                self._states(kind)
            elif heard:
                self._loss(kind, *heard)
        self._stationary()

    def _weigh(self, condition: SumCondition) -> None:
        """Add a condition on a sum over all sites to the energy, times a multiplier that is not known yet.

        To leading order in N the sum does not fluctuate, so that its thermal mean meets the condition.
        """
        nu = multiplier(condition, self._fresh("nu"))
        self._multipliers[nu] = condition
        for kind, body in condition.parts.items():
            self._objective[kind] = self._objective.get(kind, S.Zero) - nu * body
        self.shared -= nu * condition.shared

    @property
    def collective(self) -> Collective:
        """What belongs to no site."""
        return Collective(self.shared, self._multipliers)

    # -- kinds of sites --------------------------------------------------------------------------

    def _loss(self, kind: Kind, *heard: RandomField) -> None:
        """A kind of site that weighs the field that it hears, or several by a square of them."""
        told, named = self._given(kind), []
        for f in heard:
            state = Field(self._fresh("h"), index=kind.index).at_site()
            message = Variable(self._fresh("lambda", "g"), kind.index).at_site()
            self._messages[f.symbol] = message
            told[f.symbol] = state
            named.append((state, message))
        energy = self._objective.get(kind, S.Zero).xreplace(told)
        bounds = self._bounds(kind, told)
        beside = tuple(sorted((q for q in site_quantities(energy, Variable) if kind in q.site), key=str))
        if beside and (len(heard) > 1 or bounds or not all(q.family.values for q in beside)):
            self._refused(f"The {kind.sites} have {beside[0]} beside the field that they hear.")
        if len(heard) > 1 and (bounds or not is_square(energy, [state for state, _ in named])):
            self._refused(f"The {kind.sites} hear several fields of states, and their energy is not quadratic in them.")
        jumps = bool(bounds) or energy.has(*KINKS)
        for f, (state, message) in zip(heard, named, strict=True):
            force = Force(state) if jumps else -energy.diff(state)
            self.equations += [Equation(Expect(state), self._mean_sum(f)), Equation(message, Expect(force))]
        first, *others = named
        self.weights[kind] = Weight(
            self.beta, energy, *first, is_field=True, bounds=bounds, others=tuple(others), beside=beside
        )

    def _met(self) -> dict[Any, Expr]:
        """By each field that stands beside states of those that hear it, linearly, what the pairs are multiplied by.

        A kind of site that hears its own states, or sends what it hears to nobody, may meet others so.
        """
        found: dict[Any, Expr] = {}
        for kind in self.problem.kinds:
            heard = [f for f in self._fields if f.hearer == kind]
            body, sends = self._objective.get(kind, S.Zero), kind in self._means
            own = [q for q in site_quantities(body, Variable) if kind in q.site]
            if not heard or not (own or sends):
                continue
            slopes = {f: -body.diff(f.symbol) for f in heard}
            moving = any(slope.has(*(f.symbol for f in heard)) for slope in slopes.values())
            if not sends and moving and all(q.family.values for q in own):
                continue  # they weigh the fields, and nobody hears their states
            for f, slope in slopes.items():
                fixed, _, _ = emission_parts(f)
                if f.sender == kind:
                    strength = (slope / f.emission).cancel()
                    if moving or site_quantities(strength) or fixed != 0 or f.coupling.family.reciprocity != 1:
                        self._refused(
                            f"The {kind.sites} hear {f.as_sum}, which is not a sum of pairs with symmetric "
                            "couplings (reciprocity=1)."
                        )
                else:
                    strength, core = slope.as_independent(*site_quantities(body), as_Add=False)
                    same = self._means.setdefault(kind, (core, S.Zero))[0] == core
                    if moving or core == 1 or families([core], Quenched) or fixed != 0 or not same:
                        self._refused(
                            f"The {kind.sites} have states of their own, and hear {f.as_sum} otherwise than in a "
                            "product with one function of these states."
                        )
                found[f.symbol] = strength
        return found

    def _states(self, kind: Kind) -> None:
        """A kind of site whose states others hear, or which meet others in pairs: a field for each of these sums."""
        core, mean = self._means[kind]
        energy = self._objective.get(kind, S.Zero)
        for f in self._fields:
            if kind not in (f.hearer, f.sender):
                continue
            strength, (_, share, _) = self._strengths.get(f.symbol, S.One), emission_parts(f)
            if f.hearer == kind:
                energy = energy.xreplace({f.symbol: S.Zero})
                total = (2 if f.sender == kind else 1) * strength * share * self._mean_sum(f)
            else:
                answer = self._messages.get(f.symbol) or self._means[f.hearer][1]
                total = strength * share * Sum(f.coupling * answer, f.hearer.range)
            carrier = Field(self._fresh("h", "H", "v"), index=kind.index).at_site()
            self.equations.append(Equation(carrier, total))
        self.equations.append(Equation(mean, Expect(core)))
        told = self._given(kind)
        bounds = self._bounds(kind, told)
        self.weights[kind] = Weight(self.beta, energy.xreplace(told), core, mean, is_field=False, bounds=bounds)

    def _stationary(self) -> None:
        """Global variables do not fluctuate: the mean energy is stationary in them."""
        given = self.problem.given
        every = [self.shared, *(e for w in self.weights.values() for e in (w.energy, *w.bounds))]
        found = set().union(*(e.atoms(Global) for e in every))
        for g in sorted(found - set(given), key=lambda g: g.name):
            slope = self.shared.diff(g)
            for kind, weight in self.weights.items():
                own = weight.energy.diff(g)
                if own.has(DiracDelta, Derivative) or any(b.has(g) for b in weight.bounds):
                    slope += Sum(self._shift(kind, weight, g) * weight.mean, kind.range)
                    continue
                slope += Sum(Expect(own), kind.range) if own != 0 else S.Zero
            if g.is_bounded:  # the energy is least in a variable, and largest in a multiplier
                sign = -1 if g in self._multipliers else 1
                self.pairs.append(Complementary(g, (sign * slope).expand(deep=False)))
            else:
                self.equations.append(Equation(slope, S.Zero))
        self.equations += [Equation(c.lhs, c.rhs) for c in self.problem.known]

    def _shift(self, kind: Kind, weight: Weight, g: Global) -> Expr:  # noqa: RET503 - a refusal does not return
        """By how much a field has to move with a global variable that its energy stays as it is.

        Where that jumps or ends, the slope of the energy in the variable is this times the force on the field.
        """
        parts, x, step = (weight.energy, *weight.bounds), weight.state, Dummy("step", real=True)
        places = [a.args[0] for e in parts for a in e.atoms(Heaviside)] + list(weight.bounds)
        for share in dict.fromkeys((-p.diff(g) / p.diff(x)).cancel() for p in places if p.has(g) and p.diff(x) != 0):
            moved = {x: x + share * step, g: g + step}
            if weight.is_field and all(is_same(e.xreplace(moved), e) for e in parts):
                return share
        self._refused(
            f"The energy of the {kind.sites} jumps or ends at a place that {g} shifts, but not as it shifts a field."
        )

    # -- parts ---------------------------------------------------------------------------------------

    def _mean_sum(self, f: RandomField) -> Expr:
        """The thermal mean of a field."""
        fixed, share, _ = emission_parts(f)
        sent = fixed + share * self._means[f.sender][1]
        return Sum(f.coupling * sent.xreplace({f.sender.index: f.sender_index}), *f.limits)

    def _bounds(self, kind: Kind, told: dict[Any, Any]) -> tuple[Expr, ...]:
        found = [c for c in self.problem.constraints if c.kind == kind]
        if equal := [c for c in found if c.equality]:
            self._refused(f"The equality {equal[0].declared} holds at every site.")
        return tuple(c.expr.xreplace(told) for c in found)

    def _given(self, kind: Kind) -> dict[Any, Any]:
        """The fields of given numbers that a kind of site hears and the labels drawn on them, by their names."""
        told: dict[Any, Any] = {}
        for label, drawn in self.problem.labels.items():
            if label.slots != (kind,):
                continue
            (f,) = [f for f in self.problem.book.all(kind) if drawn.has(f.symbol)]
            slope = drawn.diff(f.symbol)
            if f.symbol in told:
                named = told[f.symbol].atoms(SiteQuantity)
                (u,) = [q for q in named if isinstance(q.family, Field)]
                if (drawn.xreplace(told) - u).expand() != 0:
                    self._refused(f"Two labels are drawn on {u} and {drawn}.")
            else:
                u = Field(self._fresh("u", f"u_{label.name}"), index=kind.index).at_site()
                self.equations.append(Equation(u, drawn.xreplace({f.symbol: f.as_sum})))
                told[f.symbol] = (u - drawn.xreplace({f.symbol: S.Zero})) / slope
            told[label.at_site()] = label.at_field(u).at_site()
        for f in self.problem.book.all(kind):
            if f.states() or f.symbol in told:
                continue
            u = Field(self._fresh("u", "u_2"), index=kind.index).at_site()
            self.equations.append(Equation(u, f.as_sum))
            told[f.symbol] = u
        return told

    def _fresh(self, *names: str) -> str:
        """A name that the declaration leaves free."""
        every = chain(names, (f"{names[0]}_{k}" for k in count(2)))
        name = next(name for name in every if name not in self._taken)
        self._taken.add(name)
        return name

    @staticmethod
    def _refused(found: str) -> NoReturn:
        raise UnsupportedLaw(f"{found} A Gibbs measure of it is not derived.", SUPPORTED)


def is_same(one: Expr, other: Expr) -> bool:
    """Whether two expressions are equal, once the arguments of steps are expanded."""
    plain = (e.replace(Heaviside, lambda *args: Heaviside(args[0].expand(), *args[1:])).expand() for e in (one, other))
    return bool(next(plain) - next(plain) == 0)


def is_square(energy: Expr, states: Sequence[Any]) -> bool:
    """Whether an energy is a polynomial of the second degree in some states, and what it holds besides is given."""
    marks = {q: Dummy("x", real=True) for q in states}
    plain = energy.xreplace(marks)
    found = plain.as_poly(*marks.values())
    return found is not None and found.total_degree() <= 2 and not any(c.has(*marks.values()) for c in found.coeffs())


def emission_parts(f: RandomField) -> tuple[Expr, Expr, Expr]:
    """What is sent as ``fixed + share*core``, with a core of states alone.

    States that meet their like in pairs meet them whole, as ``2*b[i] - 1`` of bits: the free energy counts these.
    """
    moving = list(site_quantities(f.emission, Variable))
    fixed, rest = f.emission.expand().as_independent(*moving, as_Add=True)
    share, core = rest.as_independent(*moving, as_Add=False)
    if isinstance(core, Add) or families([core], Quenched):
        share, core = S.One, rest
    if f.sender == f.hearer and not site_quantities(fixed):
        fixed, core = S.Zero, core + fixed / share
    return fixed, share, core


def name_of_mean(core: Expr, *, several: bool) -> str:
    """The name of a thermal mean: m, with that of the state where several kinds of sites have one."""
    named = site_quantities(core, Variable)
    return f"m_{named[0].family.name}" if several and named else "m"
