"""The state of a site at a temperature: the minimum at its fields, and what fluctuates about it.

With ``x = x* + s*zeta`` about the minimum ``x*`` of ``E(x) - eta*x - F*x**2/2``, the weight is that of a standard
Gaussian zeta times ``exp(-beta*D)``. The excess D of the energy over its tangent and its square at ``x*`` is convex and
not negative where E is convex, so that no exponential overflows, at any temperature; for a square D vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Abs, Add, Dummy, Expr, Heaviside, Max, Min, Piecewise, Poly, S, cancel, exp, sign, sqrt

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Expect, SiteResponse
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity

# the fluctuation, in units of what a square and the feedback leave of it; no parameter is the same symbol
ZETA = TexSymbol("zeta", "\\zeta")
KINKS = (Abs, Heaviside, Max, Min, Piecewise, sign)


@dataclass(frozen=True)
class Fluctuation:
    """Thermal averages at one site, as functions of its fields and of its state at zero temperature.

    Attributes
    ----------
    weight : Weight
    minimum : Expr
        The state ``x*``, in the quantities of the site at zero temperature.
    slope : Expr
        That of the energy at ``x*``; any slope of its tangents where it has a kink.
    feedback : Expr
        Of a field the strength F of the Gaussian that it has without the energy; of a state that of the square
        ``F*x**2/2`` that the others add.
    message : Expr
        What the site sends at zero temperature; used of a field.
    given : mapping
        By what names the equation of a field of given numbers: that field, as the energy holds it.
    """

    weight: Weight
    minimum: Expr
    slope: Expr
    feedback: Expr
    message: Expr
    given: Mapping[Any, SiteQuantity]

    @property
    def _parts(self) -> tuple[Expr, Expr]:
        """The second derivative of the square in the energy, and what is neither square, linear nor constant."""
        x, curvature, rest = self.weight.state, S.Zero, S.Zero
        for term in Add.make_args(self.weight.energy.expand()):
            if term.is_polynomial(x):
                powers = dict(Poly(term, x).terms())
                curvature += 2 * powers.pop((2,), S.Zero)
                rest += Add(*(c * x**n for (n,), c in powers.items() if n > 2))
            else:
                rest += term
        return curvature, rest

    @property
    def width(self) -> Expr:
        """The square of the scale s."""
        curvature, _ = self._parts
        beta, F = self.weight.beta, self.feedback
        return F / (beta * (1 + curvature * F)) if self.weight.is_field else 1 / (beta * (curvature - F))

    @property
    def excess(self) -> Expr:
        """What the energy at ``x* + s*zeta`` exceeds its tangent and its square by."""
        x, (_, rest) = self.weight.state, self._parts
        if rest == 0:
            return S.Zero
        here, there = ({x: self.minimum}, {x: self.minimum + sqrt(self.width) * ZETA})
        tangent = rest.diff(x).xreplace(here)
        if rest.has(*KINKS):
            square = (self.weight.energy - rest).expand().diff(x).xreplace(here)
            tangent = self.slope - square
        return rest.xreplace(there) - rest.xreplace(here) - tangent * sqrt(self.width) * ZETA

    def expected(self, body: Expr) -> Expr:
        """The thermal average of an expression in the state."""
        inside = body.xreplace({self.weight.state: self.minimum + sqrt(self.width) * ZETA})
        return self._over(inside)

    def _over(self, inside: Expr) -> Expr:
        excess = self.excess
        if excess == 0:
            return gaussian_average(inside, ZETA) if inside.has(ZETA) else inside
        factor = exp(-self.weight.beta * excess)
        return GaussianAverage(inside * factor, ZETA) / GaussianAverage(factor, ZETA)

    @property
    def shift(self) -> Expr:
        """By how much the mean of the state exceeds the minimum."""
        return sqrt(self.width) * self._over(ZETA) if self.excess != 0 else S.Zero

    @property
    def variance(self) -> Expr:
        """The thermal variance of the state."""
        if self.excess == 0:
            return self.width
        return self.width * (self._over(ZETA**2) - self._over(ZETA) ** 2)

    @property
    def mean(self) -> Expr:
        """What the site sends: the mean of its state, or of the force on its field."""
        if not self.weight.is_field:
            return self.minimum + self.shift
        return self.message + self.shift / self.feedback

    def response(self, r: SiteResponse) -> Expr:
        """The response of a mean to a source in the equation of a field: beta times a covariance."""
        w, F = self.weight, self.feedback
        if r.state not in (w.mean, w.state):
            raise UnsupportedLaw(f"{r} is asked of a site at a temperature.", f"response({w.mean})")
        if r.field in self.given:
            pull = w.energy.diff(self.given[r.field])
            if pull == 0:
                return S.Zero
            moved = w.beta * (self.expected(w.state) * self.expected(pull) - self.expected(w.state * pull))
            return moved / F if w.is_field and r.state == w.mean else moved
        if not w.is_field:
            return cancel(w.beta * self.variance) if self.excess == 0 else w.beta * self.variance
        whole = w.beta * self.variance / F
        answer = whole if r.state == w.state else (whole - 1) / F
        return cancel(answer) if self.excess == 0 else answer

    def written(self, body: Expr) -> Expr:
        """An expression in means, states and responses, in the quantities of the site at zero temperature.

        What holds the state outside of :class:`Expect` is averaged thermally as a whole.
        """
        marks: dict[Expr, Dummy] = {}
        values: dict[Any, Expr] = {}
        w = self.weight
        for node in sorted(body.atoms(Expect, SiteResponse), key=str):
            mark = marks.setdefault(node, Dummy("e", real=True))
            values[mark] = self.response(node) if isinstance(node, SiteResponse) else self.expected(node.body)
        mark = marks.setdefault(w.mean, Dummy("m", real=True))
        values[mark] = self.mean
        body = body.xreplace(marks)
        body = self.expected(body) if body.has(w.state) else body
        return body.xreplace(values)
