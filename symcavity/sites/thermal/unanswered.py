"""A site without feedback: thermal averages where the general formulas divide by the feedback.

The weight of a state keeps its form, with no square of the others' in it.  A field has no spread without an answer: it
is its cavity field, and the force on it is the slope of the energy there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, DiracDelta, Expr, Heaviside, Mul, S, exp

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.states import Mixture


@dataclass(frozen=True)
class UnansweredField(ThermalAverages):
    """Thermal averages at a site whose field keeps still.

    Attributes
    ----------
    field : Expr
        The cavity field.
    """

    field: Expr

    @property
    def widths(self) -> list[Expr]:
        """None."""
        return []

    @property
    def is_square(self) -> bool:
        """Whether all of the weight is one Gaussian: it is not."""
        return False

    def expected(self, body: Expr) -> Expr:
        """The average of an expression over the discrete states beside the field."""
        w, rows = self.weight, []
        for values in w.choices():
            here = {**values, w.state: self.field}
            inside = Mul(*(Heaviside(b.xreplace(here), S.Half) for b in w.bounds))
            rows.append((inside * exp(-w.beta * w.energy.xreplace(here)), body.xreplace(here)))
        if len(rows) == 1 and not w.bounds:
            return rows[0][1]
        return Add(*(share * value for share, value in rows)) / Add(*(share for share, _ in rows))

    @property
    def mean(self) -> Expr:
        """The mean of the force; not a number where the energy jumps, for its slope is none."""
        slope = self.weight.energy.diff(self.weight.state)
        return S.NaN if slope.has(DiracDelta) else self.expected(-slope)

    def response(self, r: SiteResponse) -> Expr:
        """The response of a mean to a source in the equation of a field: almost everywhere, at a kink."""
        if r.field in self.given:
            return self.moved(r, self.given[r.field])
        answer = S.One if r.state == self.weight.state else self.mean.diff(self.field)
        return answer.replace(DiracDelta, lambda *_: S.Zero)

    def moved(self, r: SiteResponse, given: SiteQuantity) -> Expr:
        """The response of a mean to a field of given numbers in the energy."""
        told = self.mean if r.state == self.weight.mean else self.expected(self.weight.state)
        return told.diff(given).replace(DiracDelta, lambda *_: S.Zero)


def unanswered(found: Mixture) -> ThermalAverages:
    """The averages of a site at a feedback of zero."""
    w, given = found.weight, found.given
    if w.is_field:
        return UnansweredField(w, S.Zero, given, found.field)
    rows: tuple[tuple[Any, Expr, Expr], ...] = found.carriers
    return Mixture(w, S.Zero, given, found.field, rows)


