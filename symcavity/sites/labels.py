"""Averages over labels whose law depends on a field of their site, such as a teacher's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, DiracDelta, Dummy, Expr, Heaviside, Piecewise, S, Symbol, erf, sign, sqrt

from symcavity.algebra.gathering import gathered
from symcavity.algebra.gaussian import gaussian_average
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.conditioning import given_others
from symcavity.sites.by_parts import by_parts
from symcavity.sites.joint.solution import JointEnsemble
from symcavity.sites.quenched_laws import quenched_average

JUMPS = (sign, Heaviside, Piecewise)


@dataclass(frozen=True)
class LabelledEnsemble:
    """A site with labels of a law ``P(y | u)``, on a field u that it hears from senders without states.

    Attributes
    ----------
    site : SiteEnsemble or JointEnsemble
        The site at given labels.
    labels : tuple of Quenched
        The families of labels; the weights of their values hold u.
    """

    site: Any
    labels: tuple[Quenched, ...]

    def average(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities over its fields, its labels and its quenched parameters."""
        return quenched_average(self.at_site(body))

    def at_site(self, body: Expr) -> Expr:
        """Average over the fields and the labels: a function of the site's other quenched parameters."""
        return gathered(self._over(body, self.labels))

    def _over(self, body: Expr, labels: tuple[Quenched, ...]) -> Expr:
        if not labels:
            return self._at_labels(body)
        if (fixed := self._fixed(body)) is not None:
            return fixed
        label, *others = labels
        known, total = label.at_site(), S.Zero
        rest = tuple(others)
        if isinstance(self.site, JointEnsemble | SiteEnsemble) and not self.site.feels(body, known):
            # as the label of another copy: the weights of its values add up to one
            return self._over(body, rest)
        for value, weight in label.law.args if label.law is not None else ():
            if label.low is not None:  # the sum over its values is taken with averages over quenched parameters
                value, weight = known, label.weight(known)
            total += self._over(weight * body, rest).xreplace({known: value})
            total += self._through_weight(weight, body, label.given, rest).xreplace({known: value})
        return total

    def whole(self, label: Quenched) -> Expr:
        """The probability of all values of a label, which is one, as it comes out of its weights and its field."""
        fields, z = self.site.fields, Dummy("z", real=True)
        zero = dict.fromkeys(self.site.solution.sources, S.Zero)
        drawn = self.site.solution.branches[0].values[label.given].xreplace(zero)
        terms = (drawn.diff(a) * drawn.diff(b) * self.site.covariance[a, b] for a in fields for b in fields)
        variance = sum(terms, S.Zero)
        drawn = drawn.xreplace(dict.fromkeys(fields, S.Zero)) + sqrt(variance) * z
        return quenched_average(gaussian_average(label.weight(label.at_site()).xreplace({label.given: drawn}), z))

    def _fixed(self, body: Expr) -> Expr | None:
        """The value of what is the same at all labels and fields, such as the response of a linear law."""
        regions = self.site.solution.regions
        responses = body.atoms(SiteResponse)
        if len(regions) != 1 or regions[0].implicit or not responses or getattr(self.site.solution, "cases", ()):
            return None
        zero = dict.fromkeys(self.site.solution.sources, S.Zero)
        found = body.xreplace({r: self.site.response(regions[0].values, None, r).xreplace(zero) for r in responses})
        moving = [*self.site.fields, *self.site.solution.unknowns, *(q.at_site() for q in self.labels)]
        through = any(r.field == label.given for r in responses for label in self.labels)
        return None if through or found.has(*moving) else found

    def _at_labels(self, body: Expr) -> Expr:
        """The average at given labels; where the law is implicit, first over the field that the states do not see."""
        solution = self.site.solution
        given = {label.given: self.site.sources[label.given][1] for label in self.labels}
        values = [v for b in solution.branches for q, v in b.values.items() if q not in given]
        seen = [*values, *(c for b in solution.branches for c in b.conditions)]
        (u, field), *more = given.items()
        if more or not solution.is_implicit or any(e.has(field) for e in seen) or field == solution.inner:
            return self.site.over_fields(body) if body.has(*self.site.fields) else self.site.at_site(body)
        mean, variance = given_others(self.site, field)
        z = Dummy("z", real=True)
        kept = {r: S.Zero if r.field == u else r for r in body.atoms(SiteResponse)}
        source, _, _ = self.site.sources[u]
        drawn_at = mean + sqrt(variance) * z
        drawn = solution.branches[0].values[u].xreplace({source: S.Zero, field: drawn_at})
        inside = _over_one(body.xreplace({**kept, u: drawn, field: drawn_at}), z)
        return self.site.without(field).over_fields(inside)

    def _through_weight(self, weight: Expr, body: Expr, u: SiteQuantity, rest: tuple[Quenched, ...]) -> Expr:
        """What a source in the equation of u does to an average by the weight of a label: responses are linear."""
        marks = {r: Dummy("R", real=True) for r in body.atoms(SiteResponse) if r.field == u}
        marked, out = body.xreplace(marks), S.Zero
        for response, mark in marks.items():
            factor = marked.diff(mark)
            if factor.has(*marks.values()):
                raise UnsupportedLaw(
                    f"{body} holds the square of a response to the field {u} that a label is drawn on.",
                    "averages of responses to such a field",
                )
            smooth = not weight.has(*JUMPS) or (not weight.has(Heaviside, Piecewise) and self._continues())
            whole = self._over(weight.diff(u) * factor * response.state, rest) if smooth else DiracDelta(u)
            out += self._by_parts(weight, factor, response, rest) if whole.has(DiracDelta) else whole
        return out

    def _continues(self) -> bool:
        """Whether no state jumps where the sign of a field changes, so that the density there is met by one value."""
        solution = self.site.solution
        parts = [e for b in solution.branches for e in (*b.values.values(), *b.conditions)]
        return not (solution.is_implicit or any(e.has(*JUMPS) for e in parts))

    def _by_parts(self, weight: Expr, factor: Expr, response: SiteResponse, rest: tuple[Quenched, ...]) -> Expr:
        """The whole response where the weight jumps, by parts, minus that of the states."""
        if rest:
            raise UnsupportedLaw("Two labels of a site are drawn on fields, with weights that jump.", "smooth weights")
        _, field, scale = self.site.sources[response.field]
        body = weight * factor / scale * response.state
        heard = self.site.heard_in(body) if isinstance(self.site, SiteEnsemble) else None
        whole = by_parts(self.site, field, body, self._at_labels, heard)
        return whole - self._at_labels(weight * factor * response)


def _over_one(body: Expr, z: Symbol) -> Expr:
    """The average of a weight over a standard Gaussian; that of an error function is one."""
    constant, rest = body.as_independent(z, as_Add=False)
    if rest.is_Add:
        return constant * Add(*(_over_one(term, z) for term in rest.args))
    if isinstance(rest, erf) and not (slope := rest.args[0].diff(z)).has(z):
        return constant * erf(rest.args[0].xreplace({z: S.Zero}) / sqrt(1 + 2 * slope**2))
    return constant * gaussian_average(rest, z) if rest.has(z) else body
