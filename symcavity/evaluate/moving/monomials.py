"""What quenched parameters add to states, by monomials, and the averages of these."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from sympy import Add, Expr, S

from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.moving.plan import mean_of
from symcavity.evaluate.moving.shares import Monomial, Number
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity


class Moments:
    """Averages of products of quenched parameters, in the numbers of a run."""

    def __init__(self, laws: Mapping[Kind, SiteLaw], number: Number) -> None:
        self.laws, self.number = laws, number
        self.zero, self.one = number(S.Zero), number(S.One)
        self._known: dict[Monomial, Any] = {}

    def of(self, monomial: Monomial) -> Any:
        """The average of a product of quenched parameters."""
        if monomial not in self._known:
            self._known[monomial] = self.number(mean_of(self.laws, monomial))
        return self._known[monomial]

    def mean(self, one: Mapping[Monomial, Any], two: Mapping[Monomial, Any], weight: Monomial = S.One) -> Any:
        """The average of a product of what quenched parameters add to two quantities, times a weight."""
        out = self.zero
        for (a, x), (b, y) in product(one.items(), two.items()):
            out = out + x * y * self.of(a * b * weight)
        return out

    def constant(self, expr: Expr) -> dict[Monomial, Any]:
        """What quenched parameters and numbers add, by monomials."""
        out: dict[Monomial, Any] = {}
        for term in Add.make_args(expr.expand()):
            number, monomial = term.as_independent(SiteQuantity, as_Add=False)
            if number != 0:
                add_to(out, {monomial: self.number(number)}, self.one)
        return out


def add_to(total: dict[Monomial, Any], more: Mapping[Monomial, Any], factor: Any) -> None:
    """Add what is multiplied by a factor to a total."""
    for monomial, value in more.items():
        total[monomial] = total[monomial] + factor * value if monomial in total else factor * value
