"""Logarithms and roots that end on both sides: a domain is an intersection, and no site reaches its ends."""

import numpy as np
import pytest
from scipy.optimize import fsolve
from sympy import Abs, Eq, Rational, Sum, log, sign, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")
t = Quenched("t", i)
y = Quenched("y", mu, law={1: Rational(1, 3), -1: Rational(2, 3)})
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
RIDGE = Sum((w[i] - Rational(1, 3)) ** 2, (i, 1, N)) / 2
Z = np.linspace(-9, 9, 4001)
WEIGHTS = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()

LABELLED = -log(1 - y[mu] * h) - log(1 + y[mu] * h)


def by_hand(slope, low, high, load):
    """The second moment and the mean of ridge weights around 1/3 with a loss of a given slope between two ends."""

    def moments(point):
        q, chi = np.exp(point)
        below, above = np.full(Z.size, float(low)), np.full(Z.size, float(high))
        for _ in range(60):  # halves the interval in which the state is
            middle = (below + above) / 2
            less = middle + chi * slope(middle) < np.sqrt(q) * Z
            below, above = np.where(less, middle, below), np.where(less, above, middle)
        pulls = (np.sqrt(q) * Z - middle) / chi
        response = 1 / (1 + load * (WEIGHTS @ (pulls * Z)) / np.sqrt(q))
        return (response / 3) ** 2 + load * (WEIGHTS @ pulls**2) * response**2, response

    def gaps(point):
        return np.log(moments(point)) - point

    q, response = moments(fsolve(gaps, np.log([0.1, 0.3]), xtol=1e-13))
    return q, response / 3


def numbers(loss, values=(), *constraints):
    problem = ConvexProblem(RIDGE + Sum(loss, (mu, 1, P)), subject_to=list(constraints))
    solution = problem.cavity().solve({alpha: 2, **dict(values)})
    return float(solution[average(w[i] ** 2)]), float(solution[average(w[i])])


@pytest.mark.parametrize(
    ("spellings", "slope", "ends"),
    [
        (
            [-log(1 - h) - log(1 + h), -log(1 - h**2), -log((1 - h) * (1 + h)), LABELLED, -log(1 - (y[mu] * h) ** 2)],
            lambda s: 2 * s / ((1 - s) * (1 + s)),
            (-1, 1),
        ),
        (
            [-log(1 - h) - 2 * log(3 + h), -log((1 - h) * (3 + h)) - log(3 + h)],
            lambda s: 1 / (1 - s) - 2 / (3 + s),
            (-3, 1),
        ),
        ([-sqrt(1 - h**2), -sqrt((1 - h) * (1 + h))], lambda s: s / np.sqrt((1 - s) * (1 + s)), (-1, 1)),
        ([(1 + h) * log(1 + h) + (1 - h) * log(1 - h)], lambda s: np.log1p(s) - np.log1p(-s), (-1, 1)),
    ],
    ids=["logarithms", "two strengths", "circle", "entropy"],
)
def test_losses_between_two_ends(spellings, slope, ends):
    expected = by_hand(slope, *ends, 2)
    for loss in spellings:
        assert numbers(loss) == pytest.approx(expected, rel=1e-9)


def test_barriers_of_labels_of_any_size():
    sizes, v = {1: "1/2", -2: "1/2"}, Quenched("v", mu)
    apart = numbers(-log(1 - v[mu] * h) - log(1 + v[mu] * h), {v: sizes})
    assert numbers(-log(1 - v[mu] ** 2 * h**2), {v: sizes}) == pytest.approx(apart, rel=1e-10)


def test_barriers_of_labels_on_one_side():
    assert numbers(-log(1 - y[mu] * h)) == pytest.approx(numbers(-log(1 - h)), rel=1e-10)
    assert numbers(-log(2 - sign(u) * h) - log(2 + sign(u) * h), {t: {1: 1}}) == pytest.approx(
        numbers(-log(4 - h**2)), rel=1e-10
    )


def test_bounds_that_are_declared_as_well_change_nothing():
    expected = numbers(-log(1 - h**2))
    assert numbers(-log(1 - h**2), (), h <= 1) == pytest.approx(expected, rel=1e-10)
    assert numbers(-log(1 - h**2), (), Abs(h) <= 1) == pytest.approx(expected, rel=1e-10)


def test_half_widths_that_differ_from_datum_to_datum():
    c, half = Quenched("c", mu, positive=True), Rational(1, 2)
    values = {c: {1: half, 2: half}}
    one, other = (numbers(loss, values) for loss in (-log(c[mu] - h) - log(c[mu] + h), -log(c[mu] ** 2 - h**2)))
    assert one == pytest.approx(other, rel=1e-10)
    problem = ConvexProblem(RIDGE - Sum(log(c[mu] ** 2 - h**2), (mu, 1, P)))
    sim = problem.simulate({alpha: 2, **values}, N=60, seeds=12)
    for row in problem.cavity().compare(sim, [average(w[i] ** 2), average(w[i])]).rows:
        assert abs(row.z) < 4


def test_weights_between_two_ends_in_instances_and_in_the_record():
    """Instances begin inside of the bounds of their sites, and the search of the witness stays there."""
    entropy = Sum(w[i] * log(w[i]) + (1 - w[i]) * log(1 - w[i]), (i, 1, N))
    problem = ConvexProblem(entropy + Sum((h - 1) ** 2, (mu, 1, P)) / 2)
    theory = problem.cavity()
    sim = problem.simulate({alpha: 2}, N=60, seeds=12)
    for row in theory.compare(sim, [average(w[i] ** 2), average(w[i]), average(w[i] > Rational(1, 2))]).rows:
        assert abs(row.z) < 4
    assert "0 FAILED, 0 unchecked" in str(theory.derivation.verify(dps=20))


def test_ends_that_no_spelling_hides():
    """Of poles that cancel nothing is left; a quotient ends where a side of it does; roots are multiplied out."""
    entropies = (
        w[i] * log(w[i]) + (3 - w[i]) * log(3 - w[i]),
        w[i] * log(w[i] / 3) + (3 - w[i]) * log(1 - w[i] / 3),
        w[i] * log(w[i] / (3 - w[i])) + 3 * log(3 - w[i]),
    )
    found = [
        ConvexProblem(Sum(h**2, (mu, 1, P)) / 2 + Sum(entropy, (i, 1, N)), [Eq(Sum(w[i], (i, 1, N)), N)])
        .cavity()
        .solve({alpha: 3})[average(w[i] ** 2)]
        for entropy in entropies
    ]
    assert list(map(float, found)) == pytest.approx([float(found[0])] * 3, rel=1e-10)
    one, other = numbers(-sqrt(4 - (h - y[mu]) ** 2)), numbers(-sqrt((2 - h + y[mu]) * (2 + h - y[mu])))
    assert other == pytest.approx(one, rel=1e-10)


def test_a_bend_inside_of_two_ends():
    expected = by_hand(lambda s: 2 * s / ((1 - s) * (1 + s)) + np.sign(s - 0.25), -1, 1, 2)
    assert numbers(-log(1 - h) - log(1 + h) + Abs(h - Rational(1, 4))) == pytest.approx(expected, rel=1e-5)
