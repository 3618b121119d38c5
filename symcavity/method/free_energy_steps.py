"""The free energy of a Gibbs measure as a function of the order parameters, stationary where these are closed.

A site of each kind has the logarithm ``log Z`` of its weight. What goes from a site to its neighbours and comes back is
in the weights of both: products of an overlap and a response, and a response squared over beta, take it off once. The
slope in an order parameter is a factor times the difference of another one and the average that it stands for, as that
of a minimum is (:mod:`symcavity.method.minimum`): by Gaussian integration by parts ``log Z`` changes by
``beta*<x**2>/2`` with a self-coupling, and by ``beta**2*(<x**2> - <x>**2)/2`` with the variance of a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from sympy import Add, Dummy, Expr, Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.method.free_energy import links_of, shared_over_n
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, Expect, LogWeight, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import Slope

NAMES = ("Phi", "F", "A")  # what it may be called: as nothing else is


@dataclass(frozen=True)
class FreeEnergy:
    """The free energy per feature as a function of order parameters and global variables.

    Attributes
    ----------
    theory : Theory
    logs : tuple of Expr
        The averaged logarithms of weights.
    loops : Expr
        The products of overlaps and responses, in order parameters.
    """

    theory: Theory
    logs: tuple[Expr, ...]
    loops: Expr

    @property
    def whole(self) -> Expr:
        """The function, with averaged logarithms of weights."""
        weights = self.theory.system.weights.items()
        sites = (kind.ratio * log / w.beta for (kind, w), log in zip(weights, self.logs, strict=True))
        return shared_over_n(self.theory.system) - Add(*sites) + self.loops

    def slope(self, symbol: Symbol) -> Expr:
        """The derivative of the function in an order parameter or a global variable, in averages over sites."""
        if not isinstance(symbol, Global):
            slope = self.loops.diff(symbol)
            return slope - slope.xreplace(self.theory.order_parameters)
        total = shared_over_n(self.theory.system).diff(symbol)
        for kind, weight in self.theory.system.weights.items():
            if (own := weight.energy.diff(symbol)) != 0:
                total += kind.ratio * Average(own if not own.has(*weight.states) else Expect(own))
        return total


def free_energy(theory: Theory) -> FreeEnergy:
    """The free energy of a Gibbs measure as a function of its order parameters.

    Raises
    ------
    UnsupportedLaw
        For other systems, and where statistics of single sites stand in it that are not order parameters.
    """
    system, words = theory.system, theory.order_parameters
    if not system.weights or theory.is_naive:
        raise UnsupportedLaw("There is no free energy as a function of order parameters.", "Gibbs measures")
    if any(weight.others for weight in system.weights.values()):
        raise UnsupportedLaw(
            "The free energy as a function of order parameters is not written for sites that weigh several fields.",
            "theory.free_energy, its value",
        )
    meanings = {meaning.body: symbol for symbol, meaning in words.items() if isinstance(meaning, Average)}
    loops: list[Expr] = []
    for kind, weight in system.weights.items():
        if weight.is_field:
            continue
        total = Add()
        for once, factor, power, own in links_of(theory.system, theory.inserted[kind], weight):
            of = {2: weight.mean**2 + own / weight.beta, 1: weight.mean, 0: own}
            total += once * factor * of[power]
        total, known = _in_squares(total.expand(), weight.mean, meanings)
        for term in Add.make_args(total):
            fixed, moving = term.as_independent(SiteQuantity, SiteResponse, as_Add=False)
            if moving.has(SiteResponse, weight.mean) and moving not in meanings:
                raise UnsupportedLaw(f"{Average(moving)} is not an order parameter.", "theory.free_energy, its value")
            loops.append(kind.ratio * fixed.xreplace(known) * meanings.get(moving, Average(moving)))
    logs = tuple(Average(LogWeight(weight.mean)) for weight in system.weights.values())
    return FreeEnergy(theory, logs, Add(*loops))


def _in_squares(total: Expr, mean: Expr, meanings: dict[Expr, Symbol]) -> tuple[Expr, dict[Dummy, Symbol]]:
    """A square of the mean in the words of an order parameter that is a square of the mean and something else."""
    inside = total.coeff(mean, 2)
    for meaning, symbol in meanings.items() if inside != 0 and mean**2 not in meanings else ():
        whole = meaning.expand()
        if (own := whole.coeff(mean, 2)) != 0 and not own.has(SiteQuantity):
            mark = Dummy("q", real=True)
            return (total + inside / own * (mark - whole)).expand(), {mark: symbol}
    return total, {}


def free_energy_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The function and its slopes; nothing where it is not derived."""
    if any(weight.is_cold for weight in theory.system.weights.values()):
        return []  # it is the energy
    try:
        found = free_energy(theory)
        values = [theory.observable(log) for log in found.logs]
    except UnsupportedLaw:
        return []
    make, system = make.within("The free energy"), theory.system
    name = _name(theory)
    brought = (said for _, said in system.rewritten.declaration.brought)
    given = {g for said in brought if not site_quantities(said, Variable, Field) for g in said.atoms(Global)}
    varied = [*theory.order_parameters, *(g for g in system.globals if g not in given)]
    logs = [Equation(log, value) for log, value in zip(found.logs, values, strict=True)]
    beta = next(iter(system.weights.values())).beta
    data: dict[str, Any] = {"function": name, "loops": bool(found.loops != 0)} | ({"beta": beta} if beta != 1 else {})
    bounded = [g for g in varied if isinstance(g, Global) and g.is_bounded]
    return [
        make(
            "free_energy",
            "free_energy",
            [*logs, Equation(name, found.whole)],
            data=data,
            rests_on=tuple(f"{kind.key}.weight" for kind in system.weights),
        ),
        make(
            "free_energy.slopes",
            "free_energy_slopes",
            [Equation(Slope(name, symbol), found.slope(symbol)) for symbol in varied],
            data=data | {"bounded": bounded},
            rests_on=("free_energy", "closed_system"),
        ),
    ]


def _name(theory: Theory) -> OrderParameter:
    system = theory.system
    taken = {str(s) for s in (*system.parameters, *system.globals, *theory.order_parameters, *system.named)}
    taken |= {*system.variables, *(q.name for q in system.quenched)}
    every = chain(NAMES, (f"{NAMES[0]}_{k}" for k in count(2)))
    return OrderParameter(next(name for name in every if name not in taken))
