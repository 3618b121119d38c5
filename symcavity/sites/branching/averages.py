"""Averages of single-site quantities over the cavity fields and the quenched parameters, by whatever is simplest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    Heaviside,
    Matrix,
    Mul,
    Piecewise,
    S,
    Symbol,
    cancel,
    expand_mul,
    factor_terms,
    sign,
    sqrt,
)

from symcavity.algebra.gaussian import gaussian_average
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.sites.branching.branches import tidy_fraction
from symcavity.sites.branching.cases import over_cases
from symcavity.sites.branching.joining import in_combination, joined, of_one_field
from symcavity.sites.branching.part_averages import SiteParts, average_by_parts
from symcavity.sites.branching.region_averages import RegionAverage
from symcavity.sites.branching.shifts import Shift, find_shift
from symcavity.sites.branching.simplified import cancelled
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.branching.thresholds import Thresholds, find_thresholds
from symcavity.sites.by_parts import by_parts, infinite_square, weights
from symcavity.sites.quenched_laws import at_value, over_laws, quenched_average, switches_events

JUMPS = (sign, Heaviside, Piecewise)


@dataclass(frozen=True)
class SiteEnsemble:
    """A site whose fields are Gaussian: what every average of its quantities is computed from.

    Attributes
    ----------
    kind : Kind
    solution : SiteSolution
        The states as functions of the fields, at the mean self-couplings.
    fields : tuple of Symbol
        The cavity fields; the last one is the inner field of the solution.
    covariance : dict
        Covariances of the fields, by pairs of symbols.
    sources : dict
        For the quantity that names a field's equation (None where there is one field): its source symbol,
        the field, and the field's factor in that equation.
    at_jumps : Expr
        The weight of the places at which the lowest minimum of a smooth energy jumps, in units of the density.
    """

    kind: Kind
    solution: SiteSolution
    fields: tuple[Symbol, ...]
    covariance: dict[tuple[Symbol, Symbol], Expr]
    sources: dict[Any, tuple[Symbol, Symbol, Expr]]
    at_jumps: Expr = S.Zero

    @cached_property
    def thresholds(self) -> Thresholds | None:
        """The field that enters the law through thresholds only, if there is one."""
        return find_thresholds(self)

    @cached_property
    def shift(self) -> Shift | None:
        """The field that only shifts the law, if there is one."""
        return find_shift(self)

    @property
    def outer(self) -> tuple[Symbol, ...]:
        """All fields but the inner one."""
        return self.fields[:-1]

    def without(self, field: Symbol) -> SiteEnsemble:
        """The same site with all fields but one."""
        covariance = {ends: value for ends, value in self.covariance.items() if field not in ends}
        return replace(self, fields=tuple(f for f in self.fields if f != field), covariance=covariance)

    def at_zero(self, fields: Mapping[Symbol, Expr]) -> SiteEnsemble:
        """The same site where some of its fields are zero."""
        found = self
        for field in fields:
            found = found.without(field)
        solution = self.solution.xreplace(dict(fields))
        if found.fields and solution.inner not in found.fields:
            solution = replace(solution, inner=found.fields[-1])
        return replace(found, solution=solution)

    def standardised(self, body: Expr) -> tuple[dict[Symbol, Expr], list[Symbol], Expr, Expr]:
        """Write the fields by independent standard Gaussians.

        Returns
        -------
        rule, zs, mean, scale
            The outer fields by the variables ``zs[:-1]``; and the inner field as ``mean + scale*zs[-1]``.
        """
        zs = self._gaussians(body, len(self.fields))
        lower = cholesky([[self.covariance[a, b] for b in self.fields] for a in self.fields])
        values = [Add(*(lower[r, c] * zs[c] for c in range(r + 1))) for r in range(len(self.fields))]
        rule = dict(zip(self.outer, values[:-1], strict=True))
        if self.outer:  # the first field is a positive multiple of the first Gaussian
            rule[sign(self.outer[0])] = sign(zs[0])
        scale = lower[len(zs) - 1, len(zs) - 1]
        return rule, zs, values[-1].xreplace({zs[-1]: S.Zero}), scale

    def _gaussians(self, body: Expr, count: int) -> list[Symbol]:
        """Variables of integration, which no parameter is called."""
        taken = {s.name for e in (body, *self.covariance.values(), self.solution) for s in e.free_symbols}
        names = ["z"] if len(self.fields) == 1 else [f"z_{k + 1}" for k in range(count)]
        return [Symbol(fresh_name(taken, name), real=True) for name in names]

    def average(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities over its fields and its quenched parameters.

        An event that a parameter of the site holds with a factor, which may be zero, is another one there: such
        values are put into it first.
        """
        if (q := switches_events(body)) is not None:
            shares = ((weight, at_value(self.at_site(body.xreplace({q: v})), q, v)) for v, weight in q.family.law)
            return Add(*(weight * quenched_average(there) for weight, there in shares))
        if self.solution.parts:
            self._check(body)
            if (out := average_by_parts(self, body, over_laws)) is not None:
                return quenched_average(out)
        return quenched_average(self.at_site(body))

    def at_site(self, body: Expr) -> Expr:
        """Average over the fields only: a function of the site's quenched parameters."""
        self._check(body)
        return self.over_fields(body)

    def _check(self, body: Expr) -> None:
        for q in site_quantities(body):
            if set(q.site) != {self.kind}:
                raise DeclarationError(
                    f"{q} stands in an average over the {self.kind.sites}.",
                    f"quantities of one {self.kind}",
                    "averages of products across kinds of sites are not single-site quantities",
                )
            if not isinstance(q.family, Quenched) and q not in self.solution.unknowns:
                raise DeclarationError(
                    f"{q} is not a variable of the {self.kind.sites}.",
                    ", ".join(map(str, self.solution.unknowns)),
                )

        for free, values in self.solution.faces:
            states = body.xreplace({r: Dummy() for r in body.atoms(SiteResponse)})
            if cancel(states.xreplace(values)).has(*free):
                raise UnsupportedLaw(
                    f"{body} is not unique: several multipliers of constraints that meet at one place do.",
                    "averages of unique quantities: declared states, and messages",
                )

    def over_fields(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities and fields over its fields."""
        if not self.fields:
            return body
        out = self._reduced(body)
        return RegionAverage(self, body).value() if out is None else out

    def feels(self, body: Expr, label: SiteQuantity) -> bool:
        """Whether an expression may depend on a label: of a law of several parts, those in it decide."""
        return not self.solution.parts or SiteParts(self).feels(body, label)

    def on_piece(self, region: int, bend: Expr) -> Expr:  # noqa: ARG002 - of laws that know the piece of a region
        """What a modulus or an expression by cases is in one region of the field, by the place of the state there."""
        return bend

    def heard_in(self, body: Expr) -> tuple[Symbol, ...]:
        """The fields on which an expression may depend."""
        if self.solution.parts:
            return SiteParts(self).heard_in(body)
        expr = self._in_fields(body)
        return self.fields if expr is None else tuple(f for f in self.fields if expr.has(f))

    def _reduced(self, body: Expr) -> Expr | None:
        """The average by what is simpler than all regions of all fields; None where nothing is."""
        if self.solution.parts and (out := average_by_parts(self, body, lambda expr, _: expr)) is not None:
            return out
        stein = [r for r in body.atoms(SiteResponse) if self._jumps(r)]
        if stein:
            fields = {self._source(r)[1] for r in stein}
            moved = [q for q in self.solution.unknowns if self._moves_with(q, fields)]
            found = self._infinite(body, stein, moved) if fields == {self.solution.inner} else None
            return self._by_parts(body, stein) if found is None else found
        if (out := over_cases(self, body)) is not None:
            return out
        thresholds = self.thresholds
        if thresholds is not None and (out := thresholds.average(self, body)) is not None:
            return out
        shift = self.shift
        if shift is not None and (out := shift.average(self, body)) is not None:
            return out
        answers = body.atoms(SiteResponse)
        rest = body.xreplace({r: Dummy() for r in answers})
        states = [q for q in self.solution.unknowns if rest.has(q)]
        if self.outer and (states or answers) and not rest.has(SiteResponse, *self.fields):
            alone = joined(self, states, answers)
            if alone is not None:
                return alone.over_fields(body)
        return self._marginal(body)

    def _infinite(self, body: Expr, jumping: Sequence[SiteResponse], moved: Sequence[SiteQuantity]) -> Expr | None:
        """The average where it is infinite, as that of the square of a delta function is; None elsewhere."""
        return infinite_square(body, jumping, moved)

    def _marginal(self, body: Expr) -> Expr | None:
        """The average over those fields alone that the states in it hear; None where they hear all, or by branches."""
        expr = self._in_fields(body)
        if expr is None:
            return None
        heard = [f for f in self.fields if expr.has(f)]
        if len(heard) < len(self.fields):
            return self._over_heard(expr, heard)
        if (found := in_combination(expr, heard)) is not None:
            weights, alone = found
            return of_one_field(self, weights).over_fields(alone)
        if not expr.has(*JUMPS):
            return None
        apart = [self._apart(term) for term in Add.make_args(expand_mul(expr))]
        if any(len(own) == len(self.fields) for term in apart for _, own in term):
            return None
        return Add(*(Mul(*(self._over_heard(factor, own) for factor, own in term)) for term in apart))

    def _apart(self, term: Expr) -> list[tuple[Expr, list[Symbol]]]:
        """A product in factors of independent fields, each with the fields that it hears."""
        blocks: list[tuple[Expr, list[Symbol]]] = []
        for factor in Mul.make_args(term):
            own = [f for f in self.fields if factor.has(f)]
            tied = [b for b in blocks if own and any(self.covariance[f, g] != 0 for f in b[1] for g in own)]
            tied += [b for b in blocks if not own and not b[1]]
            blocks = [b for b in blocks if b not in tied]
            heard = {f for _, fields in tied for f in fields} | {*own}
            blocks.append((Mul(factor, *(e for e, _ in tied)), [f for f in self.fields if f in heard]))
        return blocks

    def _over_heard(self, expr: Expr, heard: list[Symbol]) -> Expr:
        """The average over some of the fields, of what hears no other: first over those in which it does not jump."""
        jumps = expr.atoms(*JUMPS)
        heard = sorted(heard, key=lambda f: not any(jump.has(f) for jump in jumps))
        zs = self._gaussians(expr, len(heard))
        lower = cholesky([[self.covariance[a, b] for b in heard] for a in heard])
        values = [Add(*(lower[r, c] * zs[c] for c in range(r + 1))) for r in range(len(heard))]
        expr = expr.xreplace(dict(zip(heard, values, strict=True)))
        for z in reversed(zs):
            expr = gaussian_average(expr, z)
        return expr

    def _in_fields(self, body: Expr) -> Expr | None:
        """An expression in the fields, where the law has one formula for all of several; None where it has not."""
        solution = self.solution
        if not self.outer or len(solution.regions) != 1 or solution.is_implicit:
            return None
        states = solution.regions[0].values
        row: dict[Any, Expr] = {r: self.response(states, None, r) for r in body.atoms(SiteResponse)}
        return body.xreplace(row).xreplace(dict(states)).xreplace(self._zero())

    def _zero(self) -> dict[Symbol, Expr]:
        return dict.fromkeys(self.solution.sources, S.Zero)

    def _source(self, response: SiteResponse) -> tuple[Symbol, Symbol, Expr]:
        if response.field in self.sources:
            return self.sources[response.field]
        if response.field is None:
            raise DeclarationError(
                f"{response} does not say to which field: the {self.kind.sites} hear several.",
                " or ".join(f"response({response.state}, {name})" for name in self.sources),
            )
        if len({*self.sources.values()}) == 1:
            return next(iter(self.sources.values()))
        names = ", ".join(str(name) for name in self.sources if name is not None)
        raise DeclarationError(f"{response.field} carries no source.", names)

    def response(self, values: dict[SiteQuantity, Expr], implicit: Any, response: SiteResponse) -> Expr:
        """The derivative of a state with respect to a source on one branch."""
        source = self._source(response)[0]
        value = values[response.state]
        direct = value.diff(source)
        if implicit is None:
            return tidy_fraction(direct)
        x, psi = implicit
        top, bottom = (factor_terms(e) for e in (value.diff(x), psi.diff(x)))  # powers of x cancel
        return direct - top / bottom * psi.diff(source)

    # -- responses to fields in which the law jumps ----------------------------------------------

    def _jumps(self, response: SiteResponse) -> bool:
        """Whether the states jump with the field whose source this is (a sign, a step)."""
        field = self._source(response)[1]
        if field == self.solution.inner:
            return response.state in self.solution.jumping
        for branch in self.solution.branches:
            for expr in (
                *branch.values.values(),
                *branch.conditions,
                *([branch.implicit[1]] if branch.implicit else []),
            ):
                if any(k.has(field) for k in expr.atoms(sign, Heaviside, Piecewise)):
                    return True
        return False

    def _moves_with(self, q: SiteQuantity, fields: set[Symbol]) -> bool:
        """Whether a state depends on some of the fields: a weight that does not is not differentiated."""
        pieces: list[Any] = [*self.solution.regions, *self.solution.branches]
        values = {b.values[q] for b in pieces}
        return len(values) > 1 or any(v.has(*fields) for v in values)

    def _by_parts(self, body: Expr, jumping: list[SiteResponse]) -> Expr:
        """Average a response by Gaussian integration by parts, or by what jumps times the density there."""
        moving = {self._source(r)[1] for r in jumping}
        rest, found = weights(body, jumping, [q for q in self.solution.unknowns if self._moves_with(q, moving)])
        total = self.over_fields(rest) if rest != 0 else S.Zero
        for response, weight in found:
            _, field, factor = self._source(response)
            state = weight / factor * response.state
            if self.thresholds is not None and self.thresholds.field == field:
                jump = self.thresholds.jump(self, state)
                if jump is not None:
                    total += jump
                    continue
            total += by_parts(self, field, state, self.over_fields, self.heard_in(state))
        return cancelled(total)


def cholesky(rows: list[list[Expr]]) -> Matrix:
    """Return the lower triangular square root of a covariance matrix of expressions."""
    size = len(rows)
    lower = Matrix.zeros(size, size)
    for r in range(size):
        for c in range(r + 1):
            rest = rows[r][c] - Add(*(lower[r, k] * lower[c, k] for k in range(c)))
            lower[r, c] = sqrt(rest) if r == c else (cancel(rest) / lower[c, c] if rest != 0 else S.Zero)
    return lower
