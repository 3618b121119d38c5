"""What rules of display write is what stood there: compared in numbers, and by the form that is wanted."""

import random

import pytest
from sympy import Eq, Mul, Ne, Piecewise, Rational, Sum, log, symbols, tanh

from symcavity import Feature, N, Quenched, i
from symcavity.model.averages import Expect
from symcavity.writing.energies import in_lowest_terms, numerator, priced, priced_sum, with_squares

a, b, c, S = symbols("a b c S", real=True)
p, q = symbols("p q", positive=True)


def at_random(expr, seed=3):
    draw = random.Random(seed)  # noqa: S311 - a seeded point
    return expr.subs({s: Rational(draw.randint(5, 40), 41) for s in (a, b, c, S, p, q)}).evalf(30)


@pytest.mark.parametrize(
    ("whole", "form"),
    [
        (a**2 - 2 * a * b + b**2 + c, c + (a - b) ** 2),
        (
            -(a**2) / (4 - 4 * S) - a * b / (2 - 2 * S) - b**2 / (4 - 4 * S),
            -((a + b) ** 2) / Mul(4, 1 - S, evaluate=False),
        ),
        (p * a**2 + 2 * p * b * a * q ** Rational(1, 2) + q * p * b**2, p * (a + b * q ** Rational(1, 2)) ** 2),
        (a**2 + a * b + b**2, None),  # no square
        (a**2 - 2 * a * b + 2 * b**2, None),
    ],
)
def test_three_terms_are_one_square(whole, form):
    found = with_squares(whole)
    assert abs(at_random(found - whole)) < 1e-25
    assert str(found) == str(whole if form is None else form)
    inside = with_squares(tanh(whole + log(2)))
    assert abs(at_random(inside - tanh(whole + log(2)))) < 1e-25


def test_numbers_leave_denominators_and_stay_in_squares():
    assert with_squares(a / (2 - 2 * S)) == Rational(1, 2) * a * (1 - S) ** -1
    assert with_squares((a / 2 - b) ** 2) == (a / 2 - b) ** 2


def test_a_price_stands_beside_what_it_is_added_to():
    w, y = Feature("w"), Quenched("y", i)
    node = Piecewise((c * w[i] ** 2, Eq(w[i], 0)), (c * w[i] ** 2 + p, True))
    assert priced(node) == c * w[i] ** 2 + p * Piecewise((1, Ne(w[i], 0)), (0, True))
    for value in (0, Rational(2, 3)):
        assert priced(node).subs(w[i], value) == node.subs(w[i], value)
    assert priced(Piecewise((a, a < 0), (b, True))) == Piecewise((a, a < 0), (b, True))
    classes = Piecewise((c * w[i], Eq(y[i], 1)), (c * w[i] + p, True))
    assert priced(classes) == classes
    written = priced_sum(Sum(node, (i, 1, N)))
    assert written == c * Sum(w[i] ** 2, (i, 1, N)) + p * Sum(Piecewise((1, Ne(w[i], 0)), (0, True)), (i, 1, N))
    assert priced_sum(Sum(classes, (i, 1, N))) == Sum(classes, (i, 1, N))


def test_a_thermal_mean_is_in_lowest_terms():
    assert in_lowest_terms(Expect((2 * p * a - 2 * b) / (2 * p**2))) == Expect((p * a - b) / p**2)


def test_a_condition_of_two_terms_stands_without_its_denominators():
    shares = (S - S * b) / (2 * (1 + S)) - S * (a + b + 1) / (3 * (1 + S)) + (S * a - S * b - S) / (6 * (1 + S))
    total = a / 6 + b + shares
    assert numerator(total) in (a + 6 * b, -a - 6 * b)
    assert at_random(total - numerator(total) / (6 * (1 + S))) == 0 or numerator(total) == -a - 6 * b
    assert numerator(a + b + c) == a + b + c
