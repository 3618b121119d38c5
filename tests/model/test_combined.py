"""Couplings in one combination only: against the combination declared as a coupling, and where there is none."""

import pytest
from sympy import Eq, Piecewise, Rational, Sum, exp, log, sign, sqrt, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, Variable, alpha, average, i, mu
from symcavity.loading import installed, load
from symcavity.model.rewritings.combined import _pair

x, z, v = Coupling("x"), Coupling("z"), Coupling("v", variance=4 / N)
w, t, label = Feature("w"), Quenched("t", i), Quenched("label", mu)
gamma, s = symbols("gamma s", positive=True)


def heard(coupling, states):
    return Sum(coupling * states, (i, 1, N))


def ranked(difference, teacher):
    """Pairs of items ranked by a teacher: the likelihood of Bradley and Terry."""
    loss = Sum(log(1 + exp(-sign(teacher) * difference)), (mu, 1, P))
    return ConvexProblem(loss + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


APART = {
    "in one sum": (heard(x[mu, i] - z[mu, i], w[i]), heard(x[mu, i] - z[mu, i], t[i])),
    "in two sums": (heard(x[mu, i], w[i]) - heard(z[mu, i], w[i]), heard(x[mu, i], t[i]) - heard(z[mu, i], t[i])),
    "in both": (heard(x[mu, i] - z[mu, i], w[i]), 3 * heard(x[mu, i], t[i]) - heard(3 * z[mu, i], t[i])),
}


@pytest.mark.parametrize("name", APART)
def test_a_difference_is_a_coupling_of_twice_the_variance(name):
    values = {alpha: 2, gamma: Rational(3, 10), t: Normal("T", 0, 1)}
    y = Coupling("y", variance=2 / N)
    known = ranked(heard(y[mu, i], w[i]), heard(y[mu, i], t[i])).cavity().solve(values)
    found = ranked(*APART[name]).cavity().solve(values)
    for observable in (average(w[i] ** 2), average(t[i] * w[i])):
        assert float(found[observable]) == pytest.approx(float(known[observable]), rel=1e-11)


LINEAR = {
    "three, with a parameter": (heard(x[mu, i] + s * z[mu, i] - 2 * v[mu, i], w[i]), 1 + s**2 + 16),
    "correlated": (heard(x[mu, i] + Coupling("z", correlation={x: Rational(1, 3)})[mu, i], w[i]), Rational(8, 3)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_variance_of_a_combination_and_every_claim(name):
    sum_, variance = LINEAR[name]
    values = {alpha: 2, gamma: Rational(3, 10), label: {1: "1/2", -1: "1/2"}, s: Rational(1, 2)}
    values = values if name.startswith("three") else {k: v for k, v in values.items() if k != s}

    def problem(field):
        return ConvexProblem(Sum((label[mu] - field) ** 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)))

    theory, y = problem(sum_).cavity(), Coupling("y", variance=variance / N)
    known = problem(heard(y[mu, i], w[i])).cavity().solve(values)
    assert float(theory.solve(values)["q_w"]) == pytest.approx(float(known["q_w"]), rel=1e-12)
    assert not theory.derivation.verify().failed


def test_a_wrong_variance_fails(monkeypatch):
    import symcavity.model.rewritings.combined as rule

    def without_cross(first, second, share, name):
        pair = _pair(first, second, share, name)
        variance = first.variance + share * second.variance
        return type(pair)(first, second, share, Coupling(name, variance=variance, between=(mu, i)))

    monkeypatch.setattr(rule, "_pair", without_cross)
    field = heard(x[mu, i] + 2 * z[mu, i], w[i])
    problem = ConvexProblem(Sum((label[mu] - field) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)))
    assert any(checked.step.key == "combined" for checked in problem.cavity().derivation.verify().failed)


def test_cases_by_a_combination():
    y = Coupling("y", variance=2 / N)

    def problem(u):
        loss = Piecewise(((1 - u) ** 2 / 2, u <= 1), (0, True))
        return ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)))

    values = {alpha: 2, gamma: 1}
    found = problem(heard(x[mu, i] - z[mu, i], w[i])).cavity().solve(values)
    assert float(found["q_w"]) == pytest.approx(float(problem(heard(y[mu, i], w[i])).cavity().solve(values)["q_w"]))
    apart = problem(heard(x[mu, i], w[i]) + heard(z[mu, i], t[i]))
    assert not apart.rewritten["combined"].pairs


def test_couplings_that_stand_alone_somewhere_stay():
    noisy = heard(x[mu, i] + s * z[mu, i], w[i])
    problem = ConvexProblem(Sum((heard(x[mu, i], t[i]) - noisy) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)))
    assert not problem.rewritten["combined"].pairs
    twice = heard(x[mu, i] + z[mu, i], w[i]) ** 2 + heard(x[mu, i] - z[mu, i], w[i]) ** 2
    problem = ConvexProblem(Sum(twice + label[mu] * heard(x[mu, i], w[i]), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)))
    assert not problem.rewritten["combined"].pairs


def test_a_system_hears_the_combination_on_both_sides():
    state, answer = Variable("w", i), Variable("l", mu)
    y = Coupling("y", variance=2 / N)

    def system(coupling):
        there = Sum(coupling * state[i], (i, 1, N))
        return System([Eq(answer[mu], label[mu] - there), Eq(s * state[i], Sum(coupling * answer[mu], (mu, 1, P)))])

    values = {alpha: 2, s: 1, label: {1: "1/2", -1: "1/2"}}
    found = system(x[mu, i] - z[mu, i]).cavity().solve(values)
    assert found["q_w"] == system(y[mu, i]).cavity().solve(values)["q_w"]
    root = system((x[mu, i] - z[mu, i]) / sqrt(2)).cavity().solve(values)
    assert float(root["q_w"]) == pytest.approx(float(system(x[mu, i]).cavity().solve(values)["q_w"]), rel=1e-12)


def test_no_system_of_the_gallery_has_one():
    rewritten = (getattr(load(name), "rewritten", None) for name in installed())
    assert not any(stage["combined"].pairs for stage in rewritten if stage is not None)
