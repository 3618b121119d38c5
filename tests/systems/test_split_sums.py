"""One sum, written in parts: the same theory as the sum as a whole."""

import pytest
from references import near
from sympy import Abs, Eq, Max, Rational, Sum, sign, symbols

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, i, mu
from symcavity.model.fields import FieldBook

x, w, p, n = Coupling("x"), Feature("w"), Feature("p"), Feature("n")
gamma, g = symbols("gamma g", positive=True)
HALF = Rational(1, 2)
y = Quenched("y", mu, law={1: HALF, -1: HALF})
t = Quenched("t", i, law={0: Rational(9, 10), 1: Rational(1, 10)})


def heard(emission):
    return Sum(x[mu, i] * emission, (i, 1, N))


def parts(loss):
    """A weight as the difference of two that are not negative."""
    return ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(p[i] + n[i], (i, 1, N)), [p[i] >= 0, n[i] >= 0])


ridge = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
PAIRS = {
    "squares": (
        parts((y[mu] - heard(p[i]) + heard(n[i])) ** 2 / 2),
        ConvexProblem(Sum((y[mu] - heard(w[i])) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))),
        average((p[i] - n[i]) ** 2),
        average(w[i] ** 2),
    ),
    "hinges with labels": (
        parts(Max(0, 1 - y[mu] * heard(p[i]) + y[mu] * heard(n[i]))),
        ConvexProblem(Sum(Max(0, 1 - y[mu] * heard(w[i])), (mu, 1, P)) + gamma * Sum(Abs(w[i]), (i, 1, N))),
        average((p[i] - n[i]) ** 2),
        average(w[i] ** 2),
    ),
    "a teacher of size g": (
        ConvexProblem(Sum((heard(g * t[i]) - heard(w[i])) ** 2, (mu, 1, P)) / 2 + ridge),
        ConvexProblem(Sum(heard(g * t[i] - w[i]) ** 2, (mu, 1, P)) / 2 + ridge),
        average(w[i] ** 2),
        average(w[i] ** 2),
    ),
}
VALUES = {alpha: 2, gamma: HALF, g: 2}


@pytest.mark.parametrize("name", PAIRS)
def test_the_parts_are_heard_as_one(name):
    split, whole, mine, theirs = PAIRS[name]
    values = {k: v for k, v in VALUES.items() if k != g or "g" in name.split()[-1:]}
    found = split.cavity()
    assert len(found.system.datum.fields) == 1
    assert near(found.solve(values)[mine], str(float(whole.cavity().solve(values)[theirs])), "1e-12")
    assert found.derivation.verify()


def test_basis_pursuit_recovers_in_both_spellings():
    size = Sum(Abs(w[i]), (i, 1, N))
    for constraint in (Eq(heard(w[i]), heard(t[i])), Eq(heard(w[i] - t[i]), 0)):
        theory = ConvexProblem(size, [constraint]).cavity()
        assert theory.solve({alpha: HALF})[average((w[i] - t[i]) ** 2)] == 0
        assert theory.solve({alpha: Rational(1, 8)})[average((w[i] - t[i]) ** 2)] > 0.1
        assert theory.derivation.verify()


def test_sums_that_are_heard_apart_stay_apart():
    for loss in ((sign(heard(t[i])) - heard(w[i])) ** 2, (heard(t[i]) - heard(w[i])) ** 2 + heard(w[i]) ** 2):
        theory = ConvexProblem(Sum(loss, (mu, 1, P)) / 2 + ridge).cavity()
        assert len(theory.system.datum.fields) == 2
        assert theory.solve({alpha: 2, gamma: 1})[average(w[i] ** 2)] > 0


def test_a_teacher_with_zeros():
    """The average of t^2 in a weight is that of all sites, whatever t is at one: against its value by hand."""
    theory = ConvexProblem(Sum((sign(heard(t[i])) - heard(w[i])) ** 2, (mu, 1, P)) / 2 + ridge).cavity()
    solution = theory.solve({alpha: 2, gamma: 1})
    s = 2**0.5 - 1
    overlap = 2 * s / (1 + s)  # alpha S d, with d = 1/(1 + S) and S (1 + alpha d) = 1
    expected = overlap * (2 / 3.141592653589793) ** 0.5 * 0.1**0.5
    assert near(solution[average(w[i] * t[i])], str(expected), "1e-9")


def test_a_wrong_share_is_seen(monkeypatch):
    """Fields that are joined with another share than the declaration has."""
    rule = FieldBook.join
    monkeypatch.setattr(FieldBook, "join", lambda self, *fields, own, other: rule(self, *fields, own, 2 * other))
    problem = ConvexProblem(Sum((heard(t[i]) - heard(w[i])) ** 2, (mu, 1, P)) / 2 + ridge)
    failed = {row.step.key for row in problem.cavity().derivation.verify().failed}
    assert {"lagrangian", "dual.lambda", "stationarity.w"} <= failed


def test_a_direction_of_which_the_size_is_fitted():
    """Ridge regression penalizes only what is not along s: then ``<s w> = 0``, and the size is ``<s t>/<s**2>``."""
    s, e, b = Quenched("s", i), Quenched("e", mu), Global("b")
    target = heard(t[i]) + e[mu]
    losses = (heard(w[i]) + b * heard(s[i]), heard(w[i] + b * s[i]), heard(w[i]) - heard(-2 * b * s[i]) / 2)
    values = {alpha: 2, gamma: 1, s: {1: HALF, -2: HALF}, e: {1: HALF, -1: HALF}}
    theories = [ConvexProblem(Sum((target - f) ** 2, (mu, 1, P)) / 2 + ridge).cavity() for f in losses]
    found = [theory.solve(values) for theory in theories]
    assert [float(solution[b]) for solution in found] == pytest.approx([-0.05 / 2.5] * 3, rel=1e-12)
    assert [float(solution[average(s[i] * w[i])]) for solution in found] == pytest.approx([0] * 3, abs=1e-12)
    assert not theories[1].derivation.verify().failed
    instances = ConvexProblem(Sum((target - losses[1]) ** 2, (mu, 1, P)) / 2 + ridge).simulate(values, N=200, seeds=6)
    assert theories[1].compare(instances, [average(w[i] ** 2), average((target - losses[1]) ** 2)]).worst < 4
