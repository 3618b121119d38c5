"""The weight of a site from the declaration, in numbers: what is read off it is the same for all ways of summing it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Heaviside, S, Sum, lambdify

from symcavity.model.averages import Expect, LogWeight, SiteResponse
from symcavity.model.kinds import in_ratios

NEAR = 1e-4  # between two fields whose means are compared
MODULES: Any = ["numpy", "scipy"]


def one_of_each(expr: Expr) -> Expr:
    """A declared expression with one site of each kind: every sum is its only term."""
    return expr.replace(lambda e: isinstance(e, Sum), lambda e: e.function)


class SiteWeight(ABC):
    """A site as it was declared, at numbers: its weight by state, for any value of its field.

    A state is pulled by the sum of all fields of states that it answers to, each with its factor: that is its field.

    Parameters
    ----------
    side : Site
    rule : dict
        Numbers for all symbols.
    energy : Expr
        Of the site alone, as it was declared.
    bounds : sequence of Relational
        Where it has any weight.
    """

    def __init__(self, side: Any, rule: dict[Any, Any], energy: Expr, bounds: Sequence[Any] = ()) -> None:
        self.weight, self.rule, self.energy = side.law.weight, rule, in_ratios(energy)
        self.bounds = [in_ratios(bound) for bound in bounds]
        weight = self.weight
        self.beta = 1.0 if weight.is_cold else float(weight.beta.xreplace(rule))  # the lowest state is that of any beta
        moving = [h for h in side.heard if h.declared.states()]
        factors = {h.eta: S.One if weight.is_field else h.factor for h in moving}
        echoes = (factors[h.eta] * side.means[k.symbol] * k.emission for h in moving for k in h.feedback)
        whole = sum(echoes, S.Zero).expand()
        self.strength = float(whole.diff(weight.mean).xreplace(rule))
        self.shift = 0.0 if weight.is_field else float(whole.xreplace({weight.mean: S.Zero}).xreplace(rule))
        self.factors = {eta: float(factor.xreplace(rule)) for eta, factor in factors.items()}
        self.marks = {q: Dummy("x", real=True) for q in weight.states}
        self.potential, self.core = self.compiled(self.energy), self.compiled(weight.state)
        self.inside = [self.compiled(bound) for bound in self.bounds]
        self.calls: dict[Any, Any] = {}
        self.given: set[Any] = set()  # fields that hold no states, and stand in the energy

    @property
    def priced(self) -> list[Expr]:
        """What the energy of a state is made of, bounds among it, in expressions that jump where it jumps."""
        return [self.energy, *(Heaviside(b.lhs - b.rhs) for b in self.bounds)]

    def pull(self, cavity: Mapping[Any, Any]) -> Any:
        """The field of the state at values of all cavity fields."""
        return sum(factor * cavity[eta] for eta, factor in self.factors.items())

    def compiled(self, expr: Any) -> Any:
        """A function of all states."""
        return lambdify(list(self.marks.values()), expr.xreplace(self.rule).xreplace(self.marks), MODULES)

    @abstractmethod
    def nodes(self, fields: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The states of a sum that holds the weight at all of some fields, and the share of each in it."""

    @abstractmethod
    def means(self, fields: np.ndarray, nodes: tuple[list[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
        """What the site sends: the mean of what is heard of its states, or of the force on its field."""

    def exponent(self, fields: np.ndarray, x: list[np.ndarray]) -> np.ndarray:
        """The logarithm of the weight, by field and state."""
        core = np.asarray(self.core(*x), dtype=float)
        with np.errstate(divide="ignore", over="ignore"):  # a likelihood of zero is an infinite energy
            own = np.broadcast_to(np.asarray(self.potential(*x), dtype=float), x[0].shape)
        h = (fields + self.shift)[:, None]
        if self.weight.is_field:
            gain = -((core - h) ** 2) / (2 * self.strength)
        else:
            gain = h * core + self.strength * core**2 / 2
        out = np.asarray(self.beta * (gain - own))
        for inside in self.inside:
            out = np.where(np.broadcast_to(inside(*x), x[0].shape), out, -np.inf)
        return out

    def shares(self, fields: np.ndarray, x: list[np.ndarray], parts: np.ndarray) -> np.ndarray:
        """The shares of the weight, by field and state."""
        a = self.exponent(fields, x)
        share = np.exp(a - a.max(axis=1, keepdims=True)) * parts
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def logarithms(self, fields: np.ndarray, x: list[np.ndarray], parts: np.ndarray) -> np.ndarray:
        """The logarithm of the total weight, by field; of a field against that of its Gaussian without the energy."""
        a = self.exponent(fields, x)
        top = a.max(axis=1)
        volume = np.log(2 * np.pi * self.strength / self.beta) / 2 if self.weight.is_field else 0.0
        total = top + np.log(np.exp(a - top[:, None]) @ parts) - volume
        # what is not a function of the states is shared out among the sites by the derivation
        rule = {**self.rule, **dict.fromkeys(self.weight.states, S.One)}
        told = float(self.weight.energy.xreplace(rule)) - float(self.potential(*np.ones(len(x))))
        return np.asarray(total - self.beta * told)

    def values(self, body: Expr, arrays: dict[Any, np.ndarray], fields: np.ndarray) -> np.ndarray:
        """An expression in means, thermal averages and states, averaged thermally, by field."""
        x, parts = self.nodes(fields)
        share = self.shares(fields, x, parts)
        known = {self.weight.mean: self.means(fields, (x, parts))[:, None]}
        known |= {q: value[:, None] for q, value in arrays.items()}
        for node in sorted(body.atoms(SiteResponse), key=str):
            up, down = (self.means(fields + way * NEAR, (x, parts)) for way in (1, -1))
            known[node] = (up - down)[:, None] / (2 * NEAR)
        known |= {node: self.logarithms(fields, x, parts)[:, None] for node in body.atoms(LogWeight)}
        for node in sorted(body.atoms(Expect), key=str):
            known[node] = np.sum(self._at(node.body, known, x) * share, axis=1, keepdims=True)
        return np.asarray(np.sum(self._at(body, known, x) * share, axis=1))

    def _at(self, body: Expr, known: dict[Any, np.ndarray], x: list[np.ndarray]) -> np.ndarray:
        if body not in self.calls:
            marks = {q: Dummy("q", real=True) for q in known}
            plain = body.xreplace(marks).xreplace(self.rule).xreplace(self.marks)
            self.calls[body] = lambdify([*marks.values(), *self.marks.values()], plain, MODULES)
        call = self.calls[body]
        rows = len(known[self.weight.mean])
        return np.broadcast_to(np.asarray(call(*known.values(), *(v[None] for v in x)), float), (rows, len(x[0])))
