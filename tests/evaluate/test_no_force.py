"""Minima at which no force is left: flat where the costs of the sites leave them open, else at rest."""

import pytest
from sympy import Abs, Max, Rational, Sum

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.errors import FlatMinimum

x, w = Coupling("x"), Feature("w")
u = Sum(x[mu, i] * w[i], (i, 1, N))
overshoot = 3 * Sum(Max(0, u - 1) ** 2, (mu, 1, P)) / 10  # no datum asks for anything at zero


def test_a_quartic_cost_alone_holds_its_sites_at_zero():
    solution = ConvexProblem(Sum(w[i] ** 4, (i, 1, N)) / 4 + overshoot).cavity().solve({alpha: Rational(1, 20)})
    assert solution[average(w[i] ** 2)] == 0


def test_a_cost_that_is_zero_on_an_interval_leaves_its_sites_open():
    tube = Sum(Max(0, Abs(w[i]) - 1) ** 2, (i, 1, N)) / 2
    with pytest.raises(FlatMinimum, match="flat"):
        ConvexProblem(tube + overshoot).cavity().solve({alpha: Rational(1, 20)})


def test_a_minimum_that_jumps_to_zero_is_found_there():
    """Beyond two data a weight all fields are positive at zero only (Cover), where the norm is not small before."""
    theory = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 20 + Sum((u - 1) ** 2, (mu, 1, P)), [u >= 0]).cavity()
    assert theory.solve({alpha: 2 - Rational(1, 20)})[average(w[i] ** 2)] > Rational(1, 2)
    solution = theory.solve({alpha: 3})
    assert solution[average(w[i] ** 2)] == 0
    assert solution[average((u - 1) ** 2)] == pytest.approx(1, rel=1e-9)


def test_losses_without_curvature_at_their_minimum_still_fix_what_they_hear():
    """As many data as weights, each with one best field: the weights are the teacher's, and no minimum is flat."""
    t = Quenched("t", i)
    loss = Sum(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 4, (mu, 1, P)) / 4
    tube = Sum(Max(0, Abs(w[i]) - 1) ** 2, (i, 1, N)) / 2
    theory, at = ConvexProblem(loss + tube).cavity(), {t: {1: 1}}
    assert theory.solve({**at, alpha: 5})[average((w[i] - t[i]) ** 2)] == pytest.approx(0, abs=1e-9)
    with pytest.raises(FlatMinimum, match="flat"):
        theory.solve({**at, alpha: Rational(1, 5)})


def test_fewer_data_than_weights_have_many_solutions_and_that_is_no_proof_of_none():
    y = Quenched("y", mu, {1: Rational(1, 2), -1: Rational(1, 2)})
    theory = ConvexProblem(Sum((y[mu] - u) ** 2, (mu, 1, P)) / 2).cavity()
    with pytest.raises(FlatMinimum, match=r"no unique solution at alpha = 0\.5\. The minimum is flat") as caught:
        theory.solve({alpha: 0.5})
    assert caught.value.evidence.load == pytest.approx(1, rel=1e-3)


def test_a_cost_of_two_weights_may_hold_their_difference_alone():
    """Two regressions whose weights are drawn together: fewer data than weights in both leave a common shift open."""
    v, z, t = Feature("v"), Coupling("z"), Quenched("t", i)
    one = Sum(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 2, (mu, 1, P))
    two = Sum(Sum(z[mu, i] * (v[i] - t[i]), (i, 1, N)) ** 2, (mu, 1, P))
    theory, at = ConvexProblem((one + two + Sum((w[i] - v[i]) ** 2, (i, 1, N))) / 2).cavity(), {t: {1: 1}}
    with pytest.raises(FlatMinimum, match="flat"):
        theory.solve({**at, alpha: Rational(2, 5)})
    solution = theory.solve({**at, alpha: Rational(3, 4)})
    assert solution[average((w[i] - t[i]) ** 2)] == pytest.approx(0, abs=1e-9)
    assert solution[average((v[i] - t[i]) ** 2)] == pytest.approx(0, abs=1e-9)
