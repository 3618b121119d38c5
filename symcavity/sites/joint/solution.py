"""The states of a site that a system of equations fixes together, and their averages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr, Symbol

from symcavity.algebra.joint import JointAverage, JointLaw, LawSymbol, slope
from symcavity.errors import DeclarationError
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.sites.by_parts import by_parts, weights
from symcavity.sites.joint.apart import apart, halved
from symcavity.sites.joint.combined import combined
from symcavity.sites.protocol import Unbranched
from symcavity.sites.quenched_laws import quenched_average


@dataclass(frozen=True)
class JointSolution(Unbranched):
    """The states as the law itself fixes them.

    Attributes
    ----------
    law : JointLaw
    symbols : dict
        The symbol in the law of each state, of each cavity field and of each source.
    unknowns : tuple of SiteQuantity
    inner : Symbol
        One of the cavity fields.
    """

    law: JointLaw
    symbols: Mapping[Any, LawSymbol]
    unknowns: tuple[SiteQuantity, ...]
    inner: Symbol

    def at(self, means: Mapping[Any, Expr], covariance: Mapping[Any, Expr]) -> JointSolution:  # noqa: ARG002
        """The solution at the mean self-couplings."""
        return replace(self, law=self.law.xreplace(dict(means)))

    @property
    def names(self) -> dict[LawSymbol, Any]:
        """What the symbols of the law stand for."""
        return {symbol: q for q, symbol in self.symbols.items()}

    def expression(self, state: SiteQuantity) -> Expr:
        """A state in terms of the others, or itself where the equations fix it."""
        defined = dict(self.law.definitions).get(self.symbols[state])
        return state if defined is None else self.quiet(defined).xreplace(self.names)

    def quiet(self, expr: Expr) -> Expr:
        """An expression at zero sources."""
        return expr.xreplace(dict.fromkeys(self.law.sources, 0))


@dataclass(frozen=True)
class JointEnsemble:
    """A site of a joint law whose fields are Gaussian.

    Attributes
    ----------
    fields : tuple of Symbol
        The cavity fields.
    covariance : dict
    sources : dict
        For what names a field's equation: its source, the field, and the field's factor there.
    """

    kind: Kind
    solution: JointSolution
    fields: tuple[Symbol, ...]
    covariance: Mapping[tuple[Symbol, Symbol], Expr]
    sources: Mapping[Any, tuple[Symbol, Symbol, Expr]]

    def average(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities over its fields and its quenched parameters."""
        return quenched_average(self.at_site(body))

    def at_site(self, body: Expr) -> Expr:
        """Average over the fields only: a function of the site's quenched parameters."""
        for q in site_quantities(body):
            if set(q.site) != {self.kind} or not (isinstance(q.family, Quenched) or q in self.solution.unknowns):
                raise DeclarationError(
                    f"{q} is not a variable of the {self.kind.sites}.", ", ".join(map(str, self.solution.unknowns))
                )
        return self.over_fields(body)

    def over_fields(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities and fields over its fields."""
        if jumping := [r for r in sorted(body.atoms(SiteResponse), key=str) if self._jumps(r)]:
            rest, found = weights(body, jumping, self.solution.unknowns)
            total = self.over_fields(rest)
            for response, weight in found:
                _, field, factor = self.sources[response.field]
                state = weight / factor * response.state
                total += by_parts(self, field, state, self.over_fields, self._heard(self._inside(state)[1]))
            return total
        inside, law = self._inside(body)
        fields = self._heard(law)
        lower = [self.covariance[a, b] for k, a in enumerate(fields) for b in fields[: k + 1]]
        found = JointAverage(inside, *combined(inside, law, lower))
        if not (isinstance(found, JointAverage) and found.is_sampled):
            return found
        symbols = self.solution.symbols
        listed = [f for f in symbols if f in fields]  # as they are declared
        named = {(symbols[a], symbols[b]): self.covariance[a, b] for a in listed for b in listed}
        apart_ = halved(inside, law, named)
        return found if apart_ is None else apart_

    def _heard(self, law: JointLaw) -> list[Symbol]:
        """The fields that a part of the law hears."""
        return [f for f in self.fields if self.solution.symbols[f] in law.fields]

    def _inside(self, body: Expr) -> tuple[Expr, JointLaw]:
        """An expression in the symbols of the law, and the part of the law that it needs."""
        symbols = self.solution.symbols
        rule: dict[Any, Any] = {r: slope(symbols[r.state], symbols[self._source(r)]) for r in body.atoms(SiteResponse)}
        return apart(body.xreplace(rule).xreplace(dict(symbols)), self.solution.law)

    def feels(self, body: Expr, label: SiteQuantity) -> bool:
        """Whether an expression depends on a label, itself or by the states in it."""
        jumping = {r: r.state for r in body.atoms(SiteResponse) if self._jumps(r) or r.field == label.family.given}
        inside, law = self._inside(body.xreplace(jumping))
        return bool(inside.has(label) or (inside.has(LawSymbol) and law.has(label)))

    def _jumps(self, response: SiteResponse) -> bool:
        """Whether the law has no derivative along the source of this response, for it jumps there."""
        return self.solution.symbols[self._source(response)] not in self.solution.law.sources

    def _source(self, response: SiteResponse) -> Symbol:
        if response.field in self.sources:
            return self.sources[response.field][0]
        raise DeclarationError(
            f"{response} does not say to which field: the {self.kind.sites} hear several.",
            " or ".join(f"response({response.state}, {name})" for name in self.sources),
        )
