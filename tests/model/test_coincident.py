"""Couplings that others determine by their correlations: against the declaration without them, and instances."""

import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, sign
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, Variable, alpha, average, i, mu
from symcavity.model.rewritings import coincident

x, y, w, t = Coupling("x"), Coupling("y"), Feature("w"), Quenched("t", i)
same = Coupling("same", variance=4 / N, correlation={x: 1})
against = Coupling("against", correlation={x: -1})
between = Coupling("z", correlation={x: Rational(3, 5), y: Rational(4, 5)})
gamma = Symbol("gamma", positive=True)
VALUES = {alpha: 2, gamma: Rational(1, 2), t: Normal("t", 0, 1)}


def heard(coupling, states):
    return Sum(coupling[mu, i] * states[i], (i, 1, N))


def taught(label):
    """Least squares on labels of a teacher."""
    return ConvexProblem(Sum((label - heard(x, w)) ** 2 / 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def overlaps(problem):
    solution = problem.cavity().solve(VALUES)
    return [float(solution[average(e)]) for e in (w[i] ** 2, w[i] * t[i])]


PAIRS = {
    "of twice the size": (sign(heard(x, t) + heard(same, t)), sign(heard(x, t))),
    "opposite": (sign(heard(x, t) - 2 * heard(against, t)), sign(heard(x, t))),
    "of two": (  # the labels hear x and y apart from each other, too
        sign(heard(x, t) + heard(between, t)) + heard(y, t),
        sign(8 * heard(x, t) / 5 + 4 * heard(y, t) / 5) + heard(y, t),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_labels_of_fields_that_are_multiples_of_each_other(name):
    """As the declaration reads with the couplings that are left; both lines of one sum are one field."""
    label, known = PAIRS[name]
    assert overlaps(taught(label)) == pytest.approx(overlaps(taught(known)), rel=1e-9)


def test_instances_draw_what_is_left():
    problem = taught(sign(heard(x, t) + heard(same, t)))
    sim = problem.simulate(VALUES, N=100, seeds=8)
    assert problem.cavity().compare(sim, [average(w[i] ** 2), average(w[i] * t[i])]).agrees


def test_each_claim_is_judged_and_a_wrong_sign_is_seen(monkeypatch):
    problem = taught(heard(x, t) + heard(same, t) / 2)
    derivation = problem.cavity().derivation
    assert [v.ok for v in derivation["coincident"].verdicts()] == [True]
    right = coincident._determined
    monkeypatch.setattr(coincident, "_determined", lambda x, kept: -e if (e := right(x, kept)) is not None else None)
    wrong = taught(heard(x, t) + heard(same, t) / 2).cavity().derivation
    assert [v.ok for v in wrong["coincident"].verdicts()] == [False]


def test_what_others_do_not_determine_stays():
    for other in (Coupling("z", correlation={x: Rational(99, 100)}), Coupling("z", correlation={x: Symbol("rho")})):
        assert not taught(heard(other, t)).rewritten["coincident"].meanings
    shifted = Coupling("z", correlation={x: 1}, mean=1 / N)
    assert not taught(Abs(heard(shifted, t))).rewritten["coincident"].meanings


def test_couplings_of_a_network():
    """Two currents through one coupling are one of the sum of both."""
    J, j, s, b = Coupling("J", between=(i, i)), Symbol("j", integer=True), Variable("s", i), Quenched("b", i)
    K = Coupling("K", between=(i, i), correlation={J: 1})
    two = System([Eq(s[i], Sum((J[i, j] + K[i, j]) * s[j], (j, 1, N)) / 4 + b[i])])
    one = System([Eq(s[i], Sum(J[i, j] * s[j], (j, 1, N)) / 2 + b[i])])
    found = [float(net.cavity().solve({b: {1: "1/2", -1: "1/2"}})[average(s[i] ** 2)]) for net in (two, one)]
    assert np.allclose(found, 4 / 3, rtol=1e-12)


