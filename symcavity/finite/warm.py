"""An instance at a temperature: its energy by configuration, from the weights of its sites and its own couplings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Dummy, Eq, Expr, Float, Heaviside, Min, Mul, Piecewise, S

from symcavity.algebra.compiled import compiled
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.integrals import Pass
from symcavity.finite.instance import Instance
from symcavity.finite.warm_sums import BEYOND, ConditionsOnSums
from symcavity.method.first_step import answering
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Weight, weighed_field
from symcavity.model.quantities import SiteQuantity, Variable
from symcavity.model.system import System

TOGETHER = 4096  # sites that are integrated over at once: more would take memory for all of their nodes

Configuration = Mapping[Any, np.ndarray]  # by state, one row a configuration, one column a site


class WarmInstance:
    """Energies of the configurations of one instance.

    Parameters
    ----------
    system : System
        A Gibbs measure.
    instance : Instance
        Its couplings and quenched parameters.

    Attributes
    ----------
    beta : float
    sent : dict
        By the kinds of sites whose states fluctuate, their weights.
    heard : dict
        By the kinds of sites that weigh a field, their weights.
    """

    def __init__(self, system: System, instance: Instance) -> None:
        self.system, self.instance = system, instance
        self.numbers = dict(zip(instance.system.constants, map(Float, instance.constants), strict=True))
        self.sent = {k: w for k, w in system.weights.items() if not w.is_field}
        self.heard = {k: w for k, w in system.weights.items() if w.is_field}
        first = next(iter(system.weights.values()))
        self.is_cold = first.is_cold  # at zero temperature energies are all that counts
        self.beta = 1.0 if first.is_cold else float(first.beta.xreplace(self.numbers))
        self.states: list[SiteQuantity] = [q for w in self.sent.values() for q in self.own(w)]
        self.cores = {w.mean: w.state for w in self.sent.values()}
        # a configuration meets the conditions on sums, or does not: no multiplier moves it there
        self.multipliers = dict.fromkeys(system.collective.multipliers, Float(0))

    @cached_property
    def sums(self) -> ConditionsOnSums:
        """What conditions on sums over all sites say of a configuration."""
        return ConditionsOnSums.of(self.system, self)

    @staticmethod
    def own(weight: Weight) -> list[SiteQuantity]:
        """The states of a kind of site."""
        return weight.states if weight.cold is None else [weight.state]

    def size(self, kind: Kind) -> int:
        """How many sites of a kind there are."""
        return self.instance.size[kind]

    # -- expressions of sites ----------------------------------------------------------------------

    def call(self, expr: Expr, arguments: Sequence[Any]) -> Callable[..., Any]:
        """An expression of one site as a function of some quantities, its quenched parameters and numbers put in."""
        function = self.calls([expr], arguments)

        def evaluated(*values: Any, at: Any = slice(None)) -> np.ndarray:
            return function(*values, at=at)[0]

        return evaluated

    def still(self, kind: Kind, body: Expr, response: float, zero: Sequence[Expr]) -> np.ndarray:
        """An expression of sites that have not spoken yet: some quantities are zero, and respond by a number."""
        body = answering(body, response).xreplace(dict.fromkeys(zero, S.Zero))
        return np.broadcast_to(self.call(body, [])(), (self.size(kind),))

    def calls(self, exprs: Sequence[Expr], arguments: Sequence[Any]) -> Callable[..., list[np.ndarray]]:
        """Several expressions of one site, together: what is integrated in them shares its nodes, and what is equal.

        Integrals are taken as those of theories are, at all sites, on nodes that are made finer until two rules agree
        (:class:`symcavity.evaluate.averages.integrals.Pass`).
        """
        integrated = any(e.has(GaussianAverage) for e in exprs)
        # numbers stay symbols in what is integrated: SymPy takes exponentials of multiples of logarithms apart
        constants = [s for s in self.numbers if integrated and any(e.has(s) for e in exprs)]
        told = {s: v for s, v in self.numbers.items() if s not in constants}
        bodies = [expr.xreplace(told | self.multipliers) for expr in exprs]
        given = [q for q in self.quenched if any(e.has(q) for e in bodies)]
        marks = {q: Dummy("x", real=True) for q in (*arguments, *given)}
        bodies, names = [e.xreplace(marks) for e in bodies], [*marks.values(), *constants]
        function = _integrated(names, bodies) if integrated else compiled(names, bodies, cse=len(bodies) > 1)
        known, fixed = [self.quenched[q] for q in given], [float(self.numbers[s]) for s in constants]

        def evaluated(*values: Any, at: Any = slice(None)) -> list[np.ndarray]:
            with np.errstate(all="ignore"):
                out = function(*values, *(v[at] for v in known), *fixed)
            return [np.asarray(v, dtype=float) for v in out]

        return evaluated

    @cached_property
    def quenched(self) -> dict[SiteQuantity, np.ndarray]:
        """The quenched parameters and the fields of given numbers, by site."""
        found: dict[SiteQuantity, np.ndarray] = {q.at_site(): v for q, v in self.instance.quenched.items()}
        start = self.instance.start()
        for kind, law in self.system.laws.items():
            for f in (f for f in law.fields if not f.states()):
                carrier = law.carrier(f)
                fields = self.instance.fields(kind, start)[:, law.fields.index(f)]
                slope = carrier.rhs.diff(f.symbol)
                rest = carrier.rhs.xreplace({f.symbol: S.Zero})
                numbers = [self._plain(e, found, self.size(kind)) for e in (slope, rest)]
                found[carrier.lhs] = numbers[0] * fields + numbers[1]
        return found

    def _plain(self, expr: Expr, known: Mapping[SiteQuantity, np.ndarray], size: int) -> np.ndarray:
        given = [q for q in known if expr.has(q)]
        marks = {q: Dummy("x", real=True) for q in given}
        function = compiled(list(marks.values()), [expr.xreplace(self.numbers).xreplace(marks)])
        (out,) = function(*(known[q] for q in given))
        return np.broadcast_to(np.asarray(out, dtype=float), (size,))

    # -- energies ------------------------------------------------------------------------------------

    def field(self, kind: Kind) -> RandomField:
        """The field of states that a kind of site hears."""
        return next(f for f in self.system.laws[kind].fields if f.states())

    def weighed(self, kind: Kind) -> dict[SiteQuantity, RandomField]:
        """The fields that a kind of site weighs, by their names in its energy."""
        return {q: weighed_field(self.system.laws[kind], q) for q, _ in self.system.weights[kind].forces}

    def emission(self, f: RandomField) -> Expr:
        """What is sent into a field at a configuration."""
        return f.emission.xreplace(self.cores)

    def fields(self, f: RandomField, x: Configuration) -> np.ndarray:
        """A field of all sites of a kind, by configuration."""
        own = self.own(self.sent[f.sender])
        sent = self.call(self.emission(f), own)(*(x[q] for q in own))
        return np.broadcast_to(sent, x[own[0]].shape) @ self.instance.matrix(f).T

    @cached_property
    def own_energies(self) -> dict[Kind, Callable[..., Any]]:
        """The energy of a site without what it hears, infinite beyond its bounds.

        A function of its states, and of the global variables that sums over all sites tell.
        """
        return {k: self.call(_bounded(w), [*self.own(w), *self.sums.tied]) for k, w in self.sent.items()}

    def energy_of_states(self, x: Configuration) -> np.ndarray:
        """The energy of configurations but for pairs and losses: of all sites, and of sums over them."""
        tied = self.sums.values(x)
        total: Any = self.sums.energy(x, tied)
        for kind, weight in self.sent.items():
            own = self.own_energies[kind](*(x[q] for q in self.own(weight)), *tied.values())
            total = total + np.broadcast_to(own, x[self.own(weight)[0]].shape).sum(axis=1)
        return np.asarray(total)

    @cached_property
    def losses(self) -> dict[Kind, Callable[..., Any]]:
        """The energy of fields, infinite beyond their bounds: a function of them, and of the global variables."""
        return {k: self.call(_bounded(w), [*w.states, *self.sums.tied]) for k, w in self.heard.items()}

    @cached_property
    def pairs(self) -> dict[RandomField, float]:
        """The factor of each field of other states with which sites meet in pairs."""
        laws = ((k, self.system.laws[k]) for k in self.sent)
        found = {f: law.coefficient(f) for _, law in laws for f in law.fields if f.sender in self.sent and f.states()}
        for f, factor in found.items():
            if factor.atoms(SiteQuantity):
                raise UnsupportedLaw(
                    f"The coupling of the {f.hearer.sites} in pairs has a factor that differs from site to site: "
                    f"{factor}.",
                    "instances in which such factors are the same at all sites",
                )
        return {f: float(factor.xreplace(self.numbers)) for f, factor in found.items()}

    def core(self, kind: Kind) -> Callable[..., Any]:
        """What a kind of site sends, as a function of its states."""
        return self.call(self.sent[kind].state, self.own(self.sent[kind]))

    def energy(self, x: Configuration) -> np.ndarray:
        """The energy of some configurations."""
        total: Any = self.energy_of_states(x)
        tied = self.sums.values(x).values() if self.heard else ()
        for f, factor in self.pairs.items():  # once from each end
            own = self.own(self.sent[f.hearer])
            core = self.core(f.hearer)(*(x[q] for q in own))
            total = total - factor * (core * self.fields(f, x)).sum(axis=1) / 2
        for kind in self.heard:
            heard = (self.fields(f, x) for f in self.weighed(kind).values())
            total = total + self.losses[kind](*heard, *tied).sum(axis=1)
        return np.asarray(total)


def _integrated(names: Sequence[Any], bodies: Sequence[Expr]) -> Callable[..., list[np.ndarray]]:
    """Expressions with integrals at all sites, some at once."""
    averages = Pass(bodies)

    def evaluated(*values: Any) -> list[np.ndarray]:
        size = max((np.size(v) for v in values), default=1)
        columns = [np.broadcast_to(np.asarray(v, dtype=float), (size,)) for v in values]
        out = np.empty((len(bodies), size))
        for block in (slice(k, k + TOGETHER) for k in range(0, size, TOGETHER)):
            some = dict(zip(names, (c[block] for c in columns), strict=True))
            for row, found in zip(out, averages(some), strict=True):
                row[block] = found
        return [*out]

    return evaluated


def _bounded(weight: Weight) -> Expr:
    """An energy that is out of reach where a bound does not hold; that of a lowest state on a step is the lower one."""
    energy = weight.energy
    steps = [h for h in sorted(energy.atoms(Heaviside), key=str) if h.args[1] == S.Half]
    for h in steps if weight.is_cold and not weight.is_field else ():
        sides = (energy.xreplace({h: side}) for side in (S.Zero, S.One))
        energy = Piecewise((Min(*sides), Eq(h.args[0], 0)), (energy, True))
    if not weight.bounds:
        return energy
    inside = Mul(*(Piecewise((1, b >= 0), (0, True)) for b in weight.bounds))
    return Piecewise((energy, inside > 0), (S(BEYOND), True))


def discrete(states: Sequence[SiteQuantity]) -> list[SiteQuantity]:
    """Those of some states that have a few values."""
    return [q for q in states if isinstance(q.family, Variable) and q.family.values]
