"""Roots of sums over all sites: each is one number for all of them, a global variable."""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Pow, Sum, sqrt

from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Global, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting, holds_sums, sides, with_sides
from symcavity.model.rewritings.units import as_ratios
from symcavity.model.site_sums import is_total


class Norms(Rewriting):
    """Names for the roots of sums over sites, such as the norm ``sqrt(sum w_i^2 / N)``.

    Attributes
    ----------
    norms : dict
        By each global variable that is the root of a sum over sites, in units of N: that sum.
    """

    key = "norms"

    def __init__(self, declaration: Declaration) -> None:
        self._names = declaration.names | {"u", "v"}
        self._known: dict[Expr, Global] = {}
        self._closed = False
        self.norms: dict[Global, Expr] = {}

    @property
    def meanings(self) -> dict[Global, Expr]:
        """What each of the global variables is, in sums over sites."""
        return {g: sqrt(total / N) for g, total in self.norms.items()}

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with global variables for norms."""
        out = declaration.mapped(self._read)
        self._closed = True
        return out.bringing({g: (_shares(total, g), N * g) for g, total in self.norms.items()})

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The expression that each variable replaces."""
        return dict(self.meanings)

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable with the norms that the declaration has."""
        return self._named(expr) if self.norms else expr

    def _read(self, entry: Any) -> Any:
        return with_sides(entry, [self._named(side) for side in sides(entry)]) if holds_sums(entry) else entry

    def _named(self, expr: Expr) -> Expr:
        """Name the roots of sums over sites, which belong to no site."""
        rule = {}
        for node in sorted(expr.atoms(Pow), key=str):
            total, power = node.args
            if power.is_Integer or not power.is_number or not is_total(total):
                continue
            if any(q.time is not None for q in site_quantities(total)):
                continue  # of states that move: a function of their mean, which has a name at each time
            unit = _unit(total)
            total = (total / unit).expand(deep=False)
            key = total.as_dummy()
            if key not in self._known:
                if self._closed:
                    continue
                word = "_".join(sorted({q.family.name for q in site_quantities(total, Variable)}))
                self._known[key] = Global.above_zero(fresh_name(self._names, f"R_{word}"))
                self.norms[self._known[key]] = total
            rule[node] = (sqrt(N * unit) * self._known[key]) ** (2 * power)
        return as_ratios(expr.xreplace(rule)) if rule else expr

    def steps(self, make: Any) -> list[Any]:
        """What each of the global variables is."""
        if not self.norms:
            return []
        claims = [Equation(g, meaning) for g, meaning in self.meanings.items()]
        return [make(self.key, "centre", claims, data={"norms": list(self.norms)}, rests_on=("problem",))]


def _unit(total: Expr) -> Expr:
    """The power of N that stands before sums over sites: 1 in ``sum x_j^2``, 1/N in ``1 + sum x_j^2 / N``."""
    term = next(t for t in Add.make_args(total.expand(deep=False)) if t.has(Sum))
    return in_units_of_n(term.as_independent(Sum, as_Add=False)[0]).as_independent(N, as_Add=False)[1]


def _shares(total: Expr, g: Global) -> Expr:
    """Sums over sites divided by a global variable, which stands in each term."""
    terms = [term.as_independent(Sum, as_Add=False) for term in Add.make_args(total.expand(deep=False))]
    return Add(*(f * Sum(s.function / g, *s.limits) if isinstance(s, Sum) else f * s / g for f, s in terms))
