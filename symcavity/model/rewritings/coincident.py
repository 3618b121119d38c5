"""Couplings that others determine: of correlation one, or a combination of several by all their correlations."""

from __future__ import annotations

from typing import Any

from sympy import Add, Basic, Expr, Matrix, S, cancel, sqrt

from symcavity.model.couplings import Coupling, correlation_of
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting


class Coincident(Rewriting):
    """A coupling ``z`` of correlation one with ``x`` is ``x``, in units of its own: what hears both hears one field.

    So the covariance of the fields of a site has an inverse, whatever correlations are declared.

    Attributes
    ----------
    meanings : dict
        Each coupling that others determine, at its own sites, and the combination of these that it is.
    """

    key = "coincident"

    def __init__(self, declaration: Declaration) -> None:
        self.meanings: dict[SiteQuantity, Expr] = {}
        kept: list[Coupling] = []
        for x in sorted(families(declaration.expressions, Coupling), key=lambda x: x.name):
            meaning = _determined(x, kept)
            if meaning is None:
                kept.append(x)
            else:
                self.meanings[x.at_site()] = meaning

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration without the couplings that others determine."""
        return declaration.mapped(self._read) if self.meanings else declaration

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable without them."""
        return self._read(expr) if self.meanings else expr

    def _read(self, entry: Any) -> Any:
        if not isinstance(entry, Basic):
            return entry
        rule = {}
        for q in site_quantities(entry, Coupling):
            own = q.family.at_site()
            if own in self.meanings:
                rule[q] = self.meanings[own].replace(
                    lambda e: isinstance(e, SiteQuantity), lambda e, at=q.indices: e.family[at]
                )
        return entry.xreplace(rule)

    def steps(self, make: Any) -> list[Any]:
        """What each of these couplings is."""
        if not self.meanings:
            return []
        claims = [Equation(x, meaning) for x, meaning in self.meanings.items()]
        return [make(self.key, "coincident", claims, data={"couplings": list(self.meanings)}, rests_on=("problem",))]


def _determined(x: Coupling, kept: list[Coupling]) -> Expr | None:
    """The combination of couplings that one is, by its correlations with them; None if it is not one."""
    others = [z for z in kept if correlation_of(x, z) != 0]
    others += [z for z in kept if z not in others and any(correlation_of(z, y) != 0 for y in others)]
    if not others or x.reciprocity != 0:
        return None
    r = Matrix([correlation_of(x, z) for z in others])
    among = Matrix(len(others), len(others), lambda a, b: S.One if a == b else correlation_of(others[a], others[b]))
    shares = among.LUsolve(r).applyfunc(cancel)
    left = cancel(1 - (r.T * shares)[0])
    units = [cancel(x.variance / z.variance) for z in others]
    if not (left.equals(0) if left.is_number else left == 0) or any(site_quantities(u) for u in units):
        return None
    factors = [share * sqrt(unit) for share, unit in zip(shares, units, strict=True)]
    mean = x.mean - Add(*(c * z.mean for c, z in zip(factors, others, strict=True)))
    return Add(*(c * z.at_site() for c, z in zip(factors, others, strict=True))) if cancel(mean) == 0 else None
