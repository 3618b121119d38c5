"""Two bounds that differ from site to site, and that nothing in the declaration puts in an order."""

import pytest
from sympy import Rational, Sum, Symbol
from sympy.stats import Normal, Uniform

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
)

x, w = Coupling("x"), Feature("w")
z = Quenched("z", mu)
gamma = Symbol("gamma", positive=True)
field = Sum(x[mu, i] * w[i], (i, 1, N))
low, high = Quenched("low", i), Quenched("high", i)
first, last = Quenched("first", mu), Quenched("last", mu)
COMMON = {alpha: 2, gamma: 1, z: Normal("z", 0, 1)}
WITHIN = {low: Uniform("low", -1, 0), high: Uniform("high", 0, 1)}


def fit(below, above):
    cost = Sum((z[mu] - field) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    return ConvexProblem(cost, subject_to=[below <= w[i], w[i] <= above])


@pytest.fixture(scope="module")
def bounded():
    return fit(low[i], high[i])


@pytest.fixture(scope="module")
def theory(bounded):
    return bounded.cavity()


def test_as_with_positive_widths(theory):
    down, up = Quenched("down", i, positive=True), Quenched("up", i, positive=True)
    spelled = fit(-down[i], up[i]).cavity()
    own = {-1: Rational(1, 3), -Rational(1, 4): Rational(2, 3)}, {Rational(1, 5): Rational(1, 2), 1: Rational(1, 2)}
    one = theory.solve({**COMMON, low: own[0], high: own[1]})
    two = spelled.solve({**COMMON, down: {-v: p for v, p in own[0].items()}, up: own[1]})
    assert one[average(w[i] ** 2)] == pytest.approx(two[average(w[i] ** 2)], rel=1e-12)
    assert one[average(w[i])] == pytest.approx(two[average(w[i])], rel=1e-12)


def test_the_order_is_an_assumption_that_is_looked_at(theory):
    (order,) = (c for c in theory.assumed() if c.has(low[i]) and c.has(high[i]))
    assert (order.lhs - order.rhs) - (high[i] - low[i]) == 0
    with pytest.raises(ValuesError, match="has a state only where"):
        theory.solve({**COMMON, low: Uniform("low", -1, 1), high: Uniform("high", 0, 1)})


def test_bounds_that_are_equal_at_a_site_differ_by_rounding(theory):
    """0.1 + 0.2 is above 0.3 by a rounding error; a thousandth of it is not."""
    own = {P: 8, N: 4, gamma: 1, z: {1: 1}, high: [0.3, 1, 1, 1]}
    one, other = (theory.solve({**own, low: [least, 0, 0, -1]})[average(w[i] ** 2)] for least in (0.3, 0.1 + 0.2))
    assert other == pytest.approx(one, rel=1e-12)
    with pytest.raises(ValuesError, match="has a state only where"):
        theory.solve({**own, low: [0.3003, 0, 0, -1]})


def test_the_order_of_numbers_that_all_sites_share_is_asked_for():
    least, most = Symbol("a", real=True), Symbol("b", real=True)
    with pytest.raises(UnsupportedLaw, match=r"-a \+ b >= 0: declare that in subject_to"):
        fit(least, most).cavity()


def test_instances_agree(bounded, theory):
    instances = bounded.simulate({**COMMON, **WITHIN}, N=100, seeds=12)
    assert theory.compare(instances).worst < 4.5


def test_every_step_is_checked_where_the_bounds_are_in_order(theory):
    assert theory.derivation.verify()


def test_fields_between_two_bounds():
    band = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[first[mu] <= field, field <= last[mu]])
    width = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[(field - z[mu]) ** 2 <= 1])
    both = {(-2, 0): Rational(1, 2), (0, 2): Rational(1, 2)}
    joint = Quenched(("first", "last"), mu, both)
    together = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[joint[0][mu] <= field, field <= joint[1][mu]])
    one = width.cavity().solve({alpha: Rational(1, 2), z: {-1: Rational(1, 2), 1: Rational(1, 2)}})
    two = together.cavity().solve({alpha: Rational(1, 2)})
    far = band.cavity().solve({alpha: Rational(1, 2), first: {-1: 1}, last: {1: 1, 3: 0}})
    assert one[average(w[i] ** 2)] == pytest.approx(two[average(w[i] ** 2)], rel=1e-12)
    assert far[average(w[i] ** 2)] == 0
