"""Penalties of the largest of several weights: at zero more bounds meet than there are states.

Tasks that share their support by ``max(|w_1|, |w_2|)`` (S. N. Negahban and M. J. Wainwright, IEEE Trans. Inf. Theory
57, 3841, 2011): the multipliers of the bounds are not unique there, the weights are.
"""

import re
from functools import cache

import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, UnsupportedLaw, alpha, average, i, mu

HALF = Rational(1, 2)
c = Symbol("c", positive=True)
x, z, t = Coupling("x"), Coupling("z"), Quenched("t", i)
v, w, b = Feature("v"), Feature("w"), Feature("b")
noises = Quenched("e", mu), Quenched("n", mu)
VALUES = {alpha: 2, c: 1, t: {0: HALF, 2: HALF}} | {e: Normal("e", 0, 1) for e in noises}


def heard(coupling, emission):
    return Sum(coupling[mu, i] * emission, (i, 1, N))


def tasks(penalty, bounds=()):
    pairs = zip((x, z), (w, v), noises, strict=True)
    errors = (heard(k, t[i]) + e[mu] - heard(k, weight[i]) for k, weight, e in pairs)
    return ConvexProblem(sum(Sum(r**2, (mu, 1, P)) / 2 for r in errors) + c * Sum(penalty, (i, 1, N)), bounds)


SPELLINGS = {
    "sizes": (Max(Abs(w[i]), Abs(v[i])), ()),
    "pieces": (Max(w[i], -w[i], v[i], -v[i]), ()),
    "a bound": (b[i], [b[i] >= Abs(w[i]), b[i] >= Abs(v[i])]),
}


@cache
def fixed_point(load, cost, count=300):
    """State evolution by hand: least squares whose weights are shrunk by what is off the ball of the sum of sizes."""
    g = np.linspace(-8, 8, count)
    noise, rule = np.stack(np.meshgrid(g, g), axis=-1), np.exp(-(g**2) / 2)
    weight = np.outer(rule, rule) / rule.sum() ** 2
    width, ratio = 1.0, 1.0
    for _ in range(60):
        error, answer, square = 0.0, 0.0, 0.0
        for target in (0.0, 2.0):
            field = target + width * noise
            sizes, reach = np.abs(field), cost * ratio
            gap = sizes.sum(axis=-1) - reach
            on_side = sizes.min(axis=-1) > gap / 2  # of the ball; at a corner one size alone is cut
            most = np.where(on_side, gap / 2, sizes.max(axis=-1) - reach)
            cut = np.minimum(sizes, most[..., None])
            shrunk = np.where((gap > 0)[..., None], np.sign(field) * cut, 0.0)
            error += np.sum(weight[..., None] * (shrunk - target) ** 2) / 4
            square += np.sum(weight[..., None] * shrunk**2) / 4
            answer += np.sum(weight[..., None] * shrunk * noise) / (4 * width)  # Stein's identity
        width = np.sqrt((1 + error) / load)
        ratio = 1 / (load - answer)  # (1 + S)/load with S = answer*(1 + S)/load
    return square


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_weights_are_those_of_state_evolution(name):
    theory = tasks(*SPELLINGS[name]).cavity()
    solution = theory.solve(VALUES)
    found = [float(solution[average(weight[i] ** 2)]) for weight in (w, v)]
    assert found == pytest.approx([fixed_point(2.0, 1.0)] * 2, rel=2e-5)


def test_the_multipliers_have_no_average():
    with pytest.raises(UnsupportedLaw, match="undetermined"):
        tasks(*SPELLINGS["sizes"]).cavity().solve(VALUES)[average(Feature("nu")[i] ** 2)]


def one_field():
    y, s = Quenched("y", mu, law={1: HALF, -1: HALF}), Quenched("s", i)
    loss = Sum((1 - y[mu] * heard(x, w[i])) ** 2, (mu, 1, P)) / 2 - Sum(s[i] * v[i], (i, 1, N)) / 2
    return ConvexProblem(loss + Sum(c * Max(Abs(w[i]), Abs(v[i])) + v[i] ** 2 / 2, (i, 1, N))), s


@pytest.mark.parametrize("name", ["sizes", "a bound", "one field", "two bounds"])
def test_a_record_says_that_its_multipliers_are_one_choice_of_several(name):
    """Of the bounds of a box no two meet, so that its multipliers are unique."""
    box = ConvexProblem(Sum((1 - heard(x, w[i])) ** 2, (mu, 1, P)) / 2, [w[i] >= -1, w[i] <= 1])
    problem = box if name == "two bounds" else one_field()[0] if name == "one field" else tasks(*SPELLINGS[name])
    said = " ".join(str(problem.cavity().derivation["feature.solution"]).split())
    assert ("are not unique" in said) is (name != "two bounds")
    assert ("One choice of them is written" in said) is (name == "one field")
    assert "which has one solution" not in said


def test_the_states_of_bounds_that_meet_are_in_lowest_terms():
    numbers = re.findall(r"\d{3,}", str(one_field()[0].cavity().derivation["feature.solution"].claims))
    assert not numbers


def test_one_field_that_is_heard_by_both_weights():
    """Where the data hear one of the two alone, the law is laid out by branches, which do not overlap."""
    problem, s = one_field()
    values = {alpha: 2, c: HALF, s: {1: HALF, -1: HALF}}
    theory = problem.cavity()
    assert not theory.derivation.verify().failed
    sample = problem.simulate(values, N=150, seeds=8)
    assert theory.compare(sample, [average(w[i] ** 2), average(v[i] ** 2), average(s[i] * v[i])]).worst < 4
