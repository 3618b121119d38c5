"""The state of a site at a temperature: the minimum at its fields, and what fluctuates about it.

With ``x = x* + s*zeta`` about the minimum ``x*`` of ``E(x) - eta*x - F*x**2/2``, the weight is that of a standard
Gaussian zeta times ``exp(-beta*D)``. The excess D of the energy over its tangent and its square at ``x*`` is convex and
not negative where E is convex, so that no exponential overflows, at any temperature; for a square D vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Abs, Add, Expr, Heaviside, Max, Min, Piecewise, Poly, S, exp, log, pi, sign, sqrt

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.parts import ZETA

KINKS = (Abs, Heaviside, Max, Min, Piecewise, sign)


@dataclass(frozen=True)
class Fluctuation(ThermalAverages):
    """Thermal averages at one site, as functions of its fields and of its state at zero temperature.

    Attributes
    ----------
    minimum : Expr
        The state ``x*``, in the quantities of the site at zero temperature.
    slope : Expr
        That of the energy at ``x*``; any slope of its tangents where it has a kink.
    message : Expr
        What the site sends at zero temperature; used of a field.
    """

    minimum: Expr
    slope: Expr
    message: Expr

    @property
    def widths(self) -> list[Expr]:
        """The square of the scale."""
        return [self.width]

    @property
    def is_square(self) -> bool:
        """Whether all of the weight is one Gaussian."""
        return self.excess == 0

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
        return rest.xreplace(there) - rest.xreplace(here) - self._tangent(rest).xreplace(here) * sqrt(self.width) * ZETA

    def _tangent(self, rest: Expr) -> Expr:
        """The slope of what is neither square, linear nor constant, at the minimum."""
        x = self.weight.state
        if not rest.has(*KINKS):
            return rest.diff(x)
        return self.slope - (self.weight.energy - rest).expand().diff(x)

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
    def logarithm(self) -> Expr:
        """That of the sum of the weight over all states: what it is at the minimum, and what fluctuates about that."""
        w, F, x = self.weight, self.feedback, self.minimum
        least = w.energy.xreplace({w.state: x})
        # the slope is the field and the answer of the others to the state; a message says how far a field was moved
        least += F * self.message**2 / 2 if w.is_field else F * x**2 / 2 - self.slope.xreplace({w.state: x}) * x
        volume = w.beta * self.width / F if w.is_field else 2 * pi * self.width
        total = -w.beta * least + log(volume) / 2
        return total if self.excess == 0 else total + log(GaussianAverage(exp(-w.beta * self.excess), ZETA))

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
