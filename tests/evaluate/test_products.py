"""Averages of products of what two parts hear by correlated fields: closed forms, slopes, and broken correlations."""

import numpy as np
import pytest
from sympy import Piecewise, Rational, Symbol, asin, pi, sign

from symcavity.algebra.joint import JointLaw, LawSymbol
from symcavity.algebra.products import Half, Pairing, ProductAverage
from symcavity.errors import NotConverged
from symcavity.evaluate.averages import hermite_series
from symcavity.evaluate.averages.hermite_series import CompiledProduct

t, e, s, g = (LawSymbol(name, name) for name in "tesg")
r, m, q, S = (Symbol(name, positive=True) for name in "rmqS")


def alone(body, field, variance=1):
    return Half(body, JointLaw((), (field,), (), (), (), ()), [variance])


def told(field, teacher, height):
    """A margin whose sign a teacher gives, and whose price begins to bend at a height."""
    x = sign(teacher) * field
    body = Piecewise((1, x < 1 - height), ((1 - x) / height, x < 1), (0, True))
    return Half(body, JointLaw((), (teacher, field), (), (), (), ()), [1, m, q])


def compiled(one, other, cross):
    return CompiledProduct(ProductAverage(one.body * other.body, [Pairing(one, other, cross)]), None, "numpy")


@pytest.mark.parametrize("rho", [Rational(1, 10), Rational(1, 2), Rational(4, 5)])
def test_the_signs_of_two_fields(rho):
    """Sheppard 1899."""
    found = compiled(alone(sign(e), e), alone(sign(g), g), [r])
    assert float(found({r: float(rho)})) == pytest.approx(float(2 * asin(rho) / pi), rel=1e-11)


def test_squares_and_cubes_are_exact():
    """Isserlis: <x^2 y^2> = ab + 2c^2, <x^3 y^3> = 9abc + 6c^3."""
    for power, known in ((2, 6 + 2 * 1.2**2), (3, 9 * 6 * 1.2 + 6 * 1.2**3)):
        found = compiled(alone(e**power, e, 2), alone(g**power, g, 3), [r])
        assert float(found({r: 1.2})) == pytest.approx(known, rel=1e-12)


def test_margins_of_two_teachers_by_sampling():
    values = {r: 0.6, m: 0.5, q: 1.3, S: 0.7}
    found = float(compiled(told(e, t, S), told(g, s, S), [r, r * m, r * m, r * q])(values))
    within = np.array([[1, 0.5], [0.5, 1.3]])
    root = np.linalg.cholesky(np.block([[within, 0.6 * within], [0.6 * within, within]]))
    z = root @ np.random.default_rng(1).standard_normal((4, 10**6))
    sides = (np.clip((1 - np.sign(z[k]) * z[k + 1]) / 0.7, 0, 1) for k in (0, 2))
    sampled = np.prod(list(sides), axis=0)
    assert abs(found - sampled.mean()) < 4 * sampled.std() / 1000


def test_slopes_are_those_of_differences():
    found = compiled(told(e, t, S), told(g, s, Rational(1, 2)), [r, r * m, r * m, r * q])
    values = {r: np.float64(0.4), m: np.float64(0.5), q: np.float64(1.3), S: np.float64(0.7)}
    value, slopes = found.with_slopes(values, [{x: 1.0} for x in values])
    assert value == found(values)
    for x, slope in zip(values, slopes, strict=True):
        up, down = (float(found({**values, x: values[x] + way * 1e-4})) for way in (1, -1))
        assert slope == pytest.approx((up - down) / 2e-4, rel=1e-6)


def test_factors_may_be_put_together_in_either_way():
    """Two labels and two states, each of one field: pairs that share more or less give one number."""
    fields = [e, t, g, s]
    near = ({e, t}, {g, s})
    rows = {(a, b): 1 if a == b else Rational(1, 2) if {a, b} in near else r for a in fields for b in fields}

    def pairing(one, other):
        halves = []
        for a, b in (one, other):
            law = JointLaw((), (a, b), (), (), (), ())
            halves.append(Half((1 + a / 2 + a**2) * (b - b**2 / 3), law, [1, rows[a, b], 1]))
        return Pairing(*halves, [rows[a, b] for a in one for b in other])

    pairings = [pairing((e, t), (g, s)), pairing((e, s), (g, t))]
    (one, other) = (float(CompiledProduct(ProductAverage(e, [p]), None, "numpy")({r: 0.2})) for p in pairings)
    both = CompiledProduct(ProductAverage(e, pairings), None, "numpy")
    assert one == pytest.approx(other, rel=1e-11)
    assert float(both({r: 0.2})) == one  # these are correlated least


def test_what_is_almost_the_same_is_no_silent_number():
    found = compiled(alone(sign(e), e), alone(sign(g), g), [r])
    with pytest.raises(NotConverged, match="almost the same"):
        found({r: 0.999999})


def test_polynomials_that_are_lowered_wrongly_are_seen(monkeypatch):
    right = hermite_series._two_by_two
    monkeypatch.setattr(hermite_series, "_two_by_two", lambda table: np.sqrt(right(table)))
    found = compiled(alone(sign(e), e), alone(sign(g), g), [r])
    assert float(found({r: 0.5})) != pytest.approx(float(2 * asin(Rational(1, 2)) / pi), rel=0.05)
