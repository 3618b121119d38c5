"""Losses by cases of labels whose values are not declared: every case is seen when branches are laid out."""

import pytest
from sympy import Eq, KroneckerDelta, Max, Piecewise, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, i, mu

x, w, b = Coupling("x"), Feature("w"), Global("b")
y = Quenched("y", mu)
h = Sum(x[mu, i] * w[i], (i, 1, N))
shrinkage = Symbol("lambda", positive=True)
HALVES = {alpha: 1, shrinkage: 1, y: {1: Rational(1, 2), -1: Rational(1, 2)}}


def fitted(loss, values=HALVES):
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + shrinkage * Sum(w[i] ** 2, (i, 1, N)) / 2)
    return float(problem.cavity().solve(values)[average(w[i] ** 2)])


@pytest.fixture(scope="module")
def by_product():
    return fitted(Max(0, 1 - y[mu] * h))


SPELLINGS = {
    "cases of kinks": Piecewise((Max(0, 1 - h), Eq(y[mu], 1)), (Max(0, 1 + h), True)),
    "a kink of cases": Max(0, Piecewise((1 - h, Eq(y[mu], 1)), (1 + h, True))),
    "indicators": KroneckerDelta(y[mu], 1) * Max(0, 1 - h) + KroneckerDelta(y[mu], -1) * Max(0, 1 + h),
    "signs": Piecewise((Max(0, 1 - h), y[mu] > 0), (Max(0, 1 + h), True)),
}


@pytest.mark.parametrize("loss", SPELLINGS.values(), ids=list(SPELLINGS))
def test_a_hinge_by_cases_of_its_label(loss, by_product):
    """A label drawn from the reals is never one: the branch at the kink of that case was lost."""
    assert fitted(loss) == pytest.approx(by_product, rel=1e-12)


def test_a_hinge_with_a_bias_by_cases_of_its_label():
    cases = Piecewise((Max(0, 1 - h + b), Eq(y[mu], 1)), (Max(0, 1 + h - b), True))
    uneven = HALVES | {y: {1: Rational(3, 4), -1: Rational(1, 4)}}
    assert fitted(cases, uneven) == pytest.approx(fitted(Max(0, 1 - y[mu] * (h - b)), uneven), rel=1e-12)


def test_a_label_beyond_a_far_bound(by_product):
    cases = Piecewise((Max(0, 1 - h), y[mu] > 40), (Max(0, 1 + h), True))
    values = HALVES | {y: {50: Rational(1, 2), 0: Rational(1, 2)}}
    assert fitted(cases, values) == pytest.approx(by_product, rel=1e-12)


def test_a_case_at_a_value_of_zero(by_product):
    declared = Quenched("y", mu, {0: Rational(1, 2), 1: Rational(1, 2)})
    cases = Piecewise((Max(0, 1 - h), Eq(declared[mu], 0)), (Max(0, 1 + h), True))
    assert fitted(cases, {alpha: 1, shrinkage: 1}) == pytest.approx(by_product, rel=1e-12)
