"""The common part of thermal averages of a site, however its weight is summed: means, responses, expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Dummy, Expr, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Expect, Fluctuating, LogWeight, SiteResponse
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity


@dataclass(frozen=True)
class ThermalAverages(ABC):
    """Thermal averages at one site, as functions of its fields.

    Attributes
    ----------
    weight : Weight
    feedback : Expr
        Of a field the strength F of the Gaussian that it has without the energy; of a state that of the square
        ``F*x**2/2`` that the others add.
    given : mapping
        By what names the equation of a field of given numbers: that field, as the energy holds it.
    """

    weight: Weight
    feedback: Expr
    given: Mapping[Any, SiteQuantity]

    @property
    @abstractmethod
    def widths(self) -> list[Expr]:
        """The variances of the Gaussians that averages are taken over."""

    @property
    @abstractmethod
    def is_square(self) -> bool:
        """Whether all of the weight is one Gaussian."""

    @abstractmethod
    def expected(self, body: Expr) -> Expr:
        """The thermal average of an expression in the states."""

    @property
    @abstractmethod
    def mean(self) -> Expr:
        """What the site sends: the mean of its state, or of the force on its field."""

    @property
    def heard(self) -> Mapping[Any, Expr]:
        """The mean of the field that a state answers to, where it has a name."""
        return {}

    @property
    def logarithm(self) -> Expr:
        """That of the sum of the weight over all states."""
        raise UnsupportedLaw(
            "The weight of a site is not summed in closed form.", "free energies of Problem(...).gibbs(beta)"
        )

    @property
    def variance(self) -> Expr:
        """The thermal variance of the state."""
        x = self.weight.state
        return self.expected(x**2) - self.expected(x) ** 2

    def response(self, r: SiteResponse) -> Expr:
        """The response of a mean to a source in the equation of a field: beta times a covariance."""
        w, F = self.weight, self.feedback
        if r.state not in (w.mean, w.state):
            raise UnsupportedLaw(f"{r} is not defined at a temperature.", f"response({w.mean})")
        if r.field in self.given:
            return self.moved(r, self.given[r.field])
        if not w.is_field:
            return cancel(w.beta * self.variance) if self.is_square else w.beta * self.variance
        whole = w.beta * self.variance / F
        answer = whole if r.state == w.state else (whole - 1) / F
        return cancel(answer) if self.is_square else answer

    def moved(self, r: SiteResponse, given: SiteQuantity) -> Expr:
        """The response of a mean to a field of given numbers in the energy."""
        w = self.weight
        pull = w.energy.diff(given)
        if pull == 0:
            return S.Zero
        moved = w.beta * (self.expected(w.state) * self.expected(pull) - self.expected(w.state * pull))
        return moved / self.feedback if w.is_field and r.state == w.mean else moved

    def written(self, body: Expr) -> Expr:
        """An expression in means, states and responses, in the fields of the site, or its state at zero temperature.

        What holds a state outside of :class:`Expect` is averaged thermally as a whole.
        """
        marks: dict[Expr, Dummy] = {}
        values: dict[Any, Expr] = {}
        w = self.weight
        for node in sorted(body.atoms(Expect, SiteResponse, LogWeight), key=str):
            mark = marks.setdefault(node, Dummy("e", real=True))
            values[mark] = self._value(node)
        mark = marks.setdefault(w.mean, Dummy("m", real=True))
        values[mark] = self.mean
        for q, value in self.heard.items():
            values[marks.setdefault(q, Dummy("h", real=True))] = value
        moving = {node: Dummy("u", real=True) for node in body.atoms(Fluctuating)}  # which a name of a mean stands in
        body = body.xreplace({**marks, **moving}).xreplace({mark: node for node, mark in moving.items()})
        body = self.expected(body) if body.has(*w.states, Fluctuating) else body
        return body.xreplace(values)

    def _value(self, node: Any) -> Expr:
        if isinstance(node, SiteResponse):
            return self.response(node)
        return self.logarithm if isinstance(node, LogWeight) else self.expected(node.body)
