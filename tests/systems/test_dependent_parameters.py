"""Quenched parameters that depend on each other: against arrays of the same values, closed forms, and instances."""

import pytest
from references import near
from sympy import Abs, Rational, Sum, Symbol, sqrt, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, DeclarationError, Feature, N, P, Quenched, alpha, average, i, mu

w = Feature("w")
gamma, r = symbols("gamma r", positive=True)
QUARTER, HALF = Rational(1, 4), Rational(1, 2)
LAW = {(1, 2): QUARTER, (3, 0): QUARTER, (1, -1): HALF}
FAR = 4.5


def lasso(size, teacher):
    heard = Sum(Coupling("x", variance=size / N)[mu, i] * (w[i] - teacher), (i, 1, N))
    return ConvexProblem(Sum(heard**2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))


def test_a_finite_law_is_pairs_of_values():
    """The same as arrays that pair site by site; and not as two laws that do not know of each other."""
    l, t = Quenched(("l", "t"), i, law=LAW)
    theory = lasso(l[i], t[i]).cavity()
    joint = theory.solve({alpha: 1, gamma: HALF})
    size, teacher = Quenched("l", i, positive=True), Quenched("t", i)
    problem = lasso(size[i], teacher[i])
    paired = problem.cavity().solve({alpha: 1, gamma: HALF, size: [1, 3, 1, 1], teacher: [2, 0, -1, -1]})
    for one, other in ((l[i] * w[i] ** 2, size[i] * w[i] ** 2), (l[i] * t[i] * w[i], size[i] * teacher[i] * w[i])):
        assert near(joint[average(one)], str(paired[average(other)]), "1e-13")
    apart = {size: {1: 3 * QUARTER, 3: QUARTER}, teacher: {2: QUARTER, 0: QUARTER, -1: HALF}}
    single = problem.cavity().solve({alpha: 1, gamma: HALF} | apart)
    assert abs(single[average(w[i] ** 2)] - joint[average(w[i] ** 2)]) > 0.1
    assert theory.derivation.verify()
    assert "(1, 2), (3, 0) and (1, -1)" in str(theory.derivation)


def test_instances_draw_them_together():
    l, t = Quenched(("l", "t"), i, law=LAW)
    problem = lasso(l[i], t[i])
    simulation = problem.simulate({alpha: 1, gamma: HALF}, N=100, seeds=12)
    observables = [average(w[i] ** 2), average(l[i] * w[i]), average(t[i] * w[i])]
    assert all(abs(row.z) < FAR for row in problem.cavity().compare(simulation, observables))


def test_a_joint_gaussian():
    """Ridge regression on labels a, with weights 1 + b^2 of the data: <a^2 g(b)> by its definition."""
    a, b = Quenched(("a", "b"), mu, law=Normal("g", [0, 0], [[1, r], [r, 1]]))
    heard = Sum(Coupling("x")[mu, i] * w[i], (i, 1, N))
    loss = (a[mu] - heard) ** 2 * (1 + b[mu] ** 2)
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 1, gamma: HALF, r: Rational(3, 5)}
    solution = problem.cavity().solve(values)
    z, u = (Quenched(name, mu, law=Normal(name, 0, 1)) for name in "zu")
    plain = (Rational(4, 5) * u[mu] + Rational(3, 5) * z[mu] - heard) ** 2 * (1 + z[mu] ** 2)
    by_hand = ConvexProblem(Sum(plain, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    same = by_hand.cavity().solve({alpha: 1, gamma: HALF})
    assert near(solution[average(w[i] ** 2)], str(same[average(w[i] ** 2)]), "1e-10")
    apart = problem.cavity().solve(values | {r: 0})[average(w[i] ** 2)]
    assert abs(apart - solution[average(w[i] ** 2)]) > 0.01
    simulation = problem.simulate(values, N=100, seeds=12)
    assert abs(problem.cavity().compare(simulation, [average(w[i] ** 2)]).worst) < FAR


WRONG = {
    "too few values": (lambda: Quenched(("l", "t"), i, law={1: HALF, 2: HALF}), "with 2 values each"),
    "no law": (lambda: Quenched(("l", "t"), i), "with 2 values each"),
    "weights": (lambda: Quenched(("l", "t"), i, law={(1, 2): HALF, (2, 2): QUARTER}), "sum to 3/4"),
    "a field": (lambda: Quenched(("l", "t"), i, law=LAW, given=w[i]), "joint laws alone"),
    "one Gaussian": (lambda: Quenched(("l", "t"), i, law=Normal("z", 0, 1)), "with 2 values each"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_joint_law(name):
    declare, words = WRONG[name]
    with pytest.raises(DeclarationError, match=words):
        declare()


def test_symbolic_weights_and_values():
    p, s = Symbol("p", positive=True), Symbol("s", positive=True)
    l, t = Quenched(("l", "t"), i, law={(s, 1): p, (1, s): 1 - p})
    heard = Sum(Coupling("x")[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum(heard**2, (mu, 1, P)) / 2 + Sum(l[i] * (w[i] - t[i]) ** 2, (i, 1, N)) / 2)
    solution = problem.cavity().solve({alpha: "1/1000", p: "1/3", s: 2})
    assert near(solution[average(w[i] ** 2)], "3", "0.01")  # hardly any data: w = t
    assert near(solution[average(l[i] * w[i])], "2", "0.01")
    assert near(solution[average(sqrt(l[i]) * w[i])], str(2 * 2 / 3 + 2**0.5 / 3), "0.01")
