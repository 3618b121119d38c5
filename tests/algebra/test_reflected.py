"""Sums of truncated moments without the polynomials that cancel in them."""

import mpmath
import pytest
from sympy import Symbol, lambdify, symbols

from symcavity import phi
from symcavity.algebra.reflected import reflected
from symcavity.evaluate.averages.integrals import Pass

a, b, s = symbols("a b s", positive=True)
k = (1 - s * a) / b
# the mean square of a message that is clipped to (0, 1)
clipped = (phi(2, 1 / b) - phi(2, k) - 2 * s * a / b * phi(1, k)) * b**2 / (s * a) ** 2


def quadrature(at):
    """The same by its definition: a clipped Gaussian, squared."""
    with mpmath.workdps(30):
        slope, width, strength = (mpmath.mpf(v) for v in at)
        ends = sorted({-12, -1 / width, (slope * strength - 1) / width, 12})
        ends = [e for e in ends if -12 <= e <= 12]
        message = lambda z: min(max((1 + width * z) / (slope * strength), 0), 1)  # noqa: E731
        return mpmath.quad(lambda z: message(z) ** 2 * mpmath.npdf(z), ends)


@pytest.mark.parametrize("at", [(1, 2, 3), (0.1, 0.2, 0.3), (1, 0.01, 0.5), (2, 5, 0.1), (1, 0.3, 4)])
def test_what_is_clipped_keeps_its_digits(at):
    (value,) = Pass([reflected(clipped)])(dict(zip((a, b, s), at, strict=True)))
    assert float(value) == pytest.approx(float(quadrature(at)), rel=1e-12)


def test_where_the_moments_as_they_are_have_lost_them():
    at = {a: 1e-6, b: 1e-4, s: 1.0}
    assert abs(Pass([clipped])(at)[0] - 1) > 1e-6
    assert abs(Pass([reflected(clipped)])(at)[0] - 1) < 1e-14


def test_it_is_an_identity_for_every_pattern_of_signs():
    moments = a * phi(3, b - 1) - s * phi(1, 1 - s) + phi(0, a - b) + s * b
    there = reflected(moments)
    assert there != moments
    for point in ((1, 2, 3), (3, 2, 1), (0.5, 0.3, 0.2), (0.2, 0.4, 2)):
        values = [lambdify((a, b, s), e, [{"phi": mp_phi}, "mpmath"])(*point) for e in (moments, there)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


def mp_phi(n, x):
    return mpmath.quad(lambda z: (x + z) ** int(n) * mpmath.npdf(z), [-x, -x + 1, -x + 3, -x + 8, -x + 16])


def test_other_expressions_are_left_alone():
    for e in (phi(2, a), phi(1, a) * phi(1, b), a + b, phi(1, a) ** 2 + phi(1, b)):
        assert reflected(e) == e


def test_the_slope_where_an_argument_is_zero():
    """Neither side of the reflection has it by itself: once it was lost there."""
    x = Symbol("x", real=True)
    for n, m in ((1, 2), (2, 3)):
        total = phi(n, -x) - phi(m, x)
        slopes = [float(e.diff(x).subs(x, 0)) for e in (total, reflected(total))]
        assert slopes[1] == pytest.approx(slopes[0], rel=1e-14)
        assert slopes[0] != 0
