"""The Gibbs measure of a problem that may have several minima, discrete states and hard constraints: weights of sites.

What a site sends is the thermal mean of its state, of a product of its states, or of the force on the field that it
hears. Sites of one kind may also meet in pairs, through symmetric couplings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, NoReturn

from sympy import Add, Expr, S, Sum

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Expect, Force
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Weight
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, Variable, families, site_quantities
from symcavity.sites.thermal.fluctuation import KINKS

SUPPORTED = (
    "kinds of sites that send one product of their states to losses of one field, or meet in pairs of one kind through "
    "couplings of reciprocity 1"
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

    Raises
    ------
    UnsupportedLaw
        For conditions on sums over all sites, and kinds of sites that send or hear several fields.
    """

    problem: Problem
    beta: Expr
    equations: list[Equation] = field(default_factory=list)
    weights: dict[Kind, Weight] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        every = [*problem.objective.values(), problem.global_objective, *(c.expr for c in problem.constraints)]
        self._taken = {q.family.name for e in every for q in site_quantities(e)}
        self._taken |= {s.name for e in every for s in e.free_symbols if hasattr(s, "name")}
        fields = [f for kind in problem.kinds for f in problem.book.all(kind)]
        self._taken |= {q.family.name for f in fields for e in (f.emission, f.coupling) for q in site_quantities(e)}
        self._fields = [f for f in fields if f.states()]
        if problem.conditions:
            self._refused("The problem has conditions on sums over all sites.")
        self._means: dict[Kind, tuple[Expr, SiteQuantity]] = {}
        for f in self._fields:
            _, _, core = emission_parts(f)
            if self._means.setdefault(f.sender, (core, S.Zero))[0] != core or f.components or f.inner:
                self._refused(f"The {f.sender.sites} send more than one quantity.")
        for kind, (core, _) in self._means.items():
            self._means[kind] = core, Variable(self._fresh("m"), kind.index).at_site()
        order = sorted(problem.kinds, key=lambda kind: kind in self._means)  # losses send the messages of the others
        for kind in order:
            heard = [f for f in self._fields if f.hearer == kind]
            sends, pair = kind in self._means, any(f.sender == kind for f in heard)
            if len(heard) > 1 or (sends and heard and not pair):
                self._refused(f"The {kind.sites} hear more than one field of states, or send and hear.")
            if sends or heard:
                (self._pairs if pair else self._sent if sends else self._loss)(kind, *heard)
        self._shared()

    # -- kinds of sites --------------------------------------------------------------------------

    def _loss(self, kind: Kind, heard: RandomField) -> None:
        """A kind of site that weighs the field that it hears."""
        state = Field(self._fresh("h"), index=kind.index).at_site()
        message = Variable(self._fresh("lambda", "g"), kind.index).at_site()
        told = {heard.symbol: state} | self._given(kind)
        energy = self.problem.objective.get(kind, S.Zero).xreplace(told)
        bounds = self._bounds(kind, told)
        force = -energy.diff(state)
        jumps = bool(bounds) or energy.has(*KINKS)
        thermal = self._mean_sum(heard)
        self.equations += [
            Equation(Expect(state), thermal),
            Equation(message, Expect(Force(state) if jumps else force)),
        ]
        if states := [q for q in site_quantities(energy, Variable) if kind in q.site]:
            self._refused(f"The {kind.sites} have {states[0]} beside the field that they hear.")
        self.weights[kind] = Weight(self.beta, energy, state, message, is_field=True, bounds=bounds)

    def _sent(self, kind: Kind) -> None:
        """A kind of site whose states others hear."""
        core, mean = self._means[kind]
        total = S.Zero
        for f in (f for f in self._fields if f.sender == kind):
            _, share, _ = emission_parts(f)
            total += share * Sum(f.coupling * self.weights[f.hearer].mean, f.hearer.range)
        self._states(kind, core, mean, total, self.problem.objective.get(kind, S.Zero), {})

    def _pairs(self, kind: Kind, heard: RandomField) -> None:
        """A kind of site that meets itself in pairs: a product of what is sent and of the field of it."""
        core, mean = self._means[kind]
        body = self.problem.objective[kind]
        fixed, share, _ = emission_parts(heard)
        strength = (-body.diff(heard.symbol) / heard.emission).cancel()
        symmetric = heard.coupling.family.reciprocity == 1
        if site_quantities(strength) or strength.has(heard.symbol) or fixed != 0 or not symmetric:
            self._refused(f"The {kind.sites} hear {heard.as_sum} otherwise than in pairs with symmetric couplings.")
        thermal = self._mean_sum(heard)
        energy = body.xreplace({heard.symbol: S.Zero})
        self._states(kind, core, mean, 2 * strength * share * thermal, energy, {})

    def _states(
        self, kind: Kind, core: Expr, mean: SiteQuantity, total: Expr, energy: Expr, told: dict[Any, Any]
    ) -> None:
        carrier = Field(self._fresh("h", "H", "v"), index=kind.index).at_site()
        self.equations += [Equation(carrier, total), Equation(mean, Expect(core))]
        told = told | self._given(kind)
        bounds = self._bounds(kind, told)
        self.weights[kind] = Weight(self.beta, energy.xreplace(told), core, mean, is_field=False, bounds=bounds)

    def _shared(self) -> None:
        """Global variables do not fluctuate: the mean energy is stationary in them."""
        shared = self.problem.global_objective
        found = shared.atoms(Global).union(*(w.energy.atoms(Global) for w in self.weights.values()))
        for g in sorted(found, key=lambda g: g.name):
            if g.is_bounded:
                self._refused(f"The global variable {g} is bounded.")
            slope = shared.diff(g)
            for kind, weight in self.weights.items():
                if weight.energy.has(*KINKS) and weight.energy.diff(g) != 0:
                    self._refused(f"The energy {weight.energy} of the {kind.sites} has kinks, and holds {g}.")
                if (own := weight.energy.diff(g)) != 0:
                    slope += Sum(Expect(own), kind.range)
            self.equations.append(Equation(slope, S.Zero))

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


def emission_parts(f: RandomField) -> tuple[Expr, Expr, Expr]:
    """What is sent as ``fixed + share*core``, with a core of states alone."""
    moving = list(site_quantities(f.emission, Variable))
    fixed, rest = f.emission.expand().as_independent(*moving, as_Add=True)
    share, core = rest.as_independent(*moving, as_Add=False)
    if isinstance(core, Add) or families([core], Quenched):
        share, core = S.One, rest
    return fixed, share, core
