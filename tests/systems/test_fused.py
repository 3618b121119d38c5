"""Two tasks at once: weights that are drawn to each other, against two limits; and two teachers of one fit."""

from functools import lru_cache

import pytest
from sympy import Abs, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, Sites, alpha, average, i, mu

nu, Q = Sites("nu", "Q", "second datum")
x, z = Coupling("x"), Coupling("z", between=(nu, i))
w, v = Feature("w"), Feature("v")
t, s, e, f = Quenched("t", i), Quenched("s", i), Quenched("e", mu), Quenched("f", nu)
gamma, theta = Symbol("gamma", positive=True), Symbol("theta", positive=True)
SIGNS = {1: Rational(1, 2), -1: Rational(1, 2)}
VALUES = {alpha: 2, Q / N: 1, gamma: Rational(1, 10), t: SIGNS, s: SIGNS, e: {-1: "1/2", 1: "1/2"}, f: {0: 1}}


def error(w, v):
    first = Sum((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]) ** 2, (mu, 1, P))
    second = Sum((Sum(z[nu, i] * (v[i] - s[i]), (i, 1, N)) - f[nu]) ** 2, (nu, 1, Q))
    return (first + second + gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N))) / 2


@lru_cache
def fused():
    return ConvexProblem(error(w, v) + theta * Sum(Abs(w[i] - v[i]), (i, 1, N))).cavity()


def both(solution):
    return [float(solution[average(e)]) for e in (w[i] ** 2, v[i] ** 2, w[i] * v[i])]


def test_a_weak_pull_leaves_two_tasks_and_a_strong_one_makes_them_one():
    """Four weights of the tasks with a teacher and noise each: the derivation once took minutes."""
    apart = both(ConvexProblem(error(w, v)).cavity().solve(VALUES))
    one = ConvexProblem(error(w, w)).cavity().solve(VALUES)
    weak, some, strong = (both(fused().solve({**VALUES, theta: k})) for k in (Rational(1, 10**8), "1/3", 40))
    assert weak == pytest.approx(apart, rel=1e-6, abs=1e-7)
    assert strong == pytest.approx([float(one[average(w[i] ** 2)])] * 3, rel=1e-9)
    assert some[0] + some[1] - 2 * some[2] < 0.9 * (apart[0] + apart[1] - 2 * apart[2])


def test_two_teachers_whom_shares_of_the_data_hear():
    """Least absolute deviations from one teacher or the other, by a label of a datum, or by two kinds of data.

    A datum hears three fields through one combination, with the label in it; written out over all three fields, its
    averages had 90,000 operations.  Where enough data hear one teacher, it is recovered.
    """
    s, c, load = Quenched("s", i), Quenched("c", mu, law={1: Rational(7, 10), 0: Rational(3, 10)}), Rational(5, 4)
    heard = c[mu] * Sum(x[mu, i] * t[i], (i, 1, N)) + (1 - c[mu]) * Sum(x[mu, i] * s[i], (i, 1, N))
    fitted = Sum(x[mu, i] * w[i], (i, 1, N))
    theory = ConvexProblem(Sum(Abs(heard - fitted), (mu, 1, P))).cavity()
    assert max(e.rhs.count_ops() for e in theory.equations) < 400
    teachers = {t: {1: "1/2", -1: "1/2"}, s: {1: "1/3", -1: "2/3"}}
    together = theory.solve({alpha: load, **teachers})

    first = Sum(Abs(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))), (mu, 1, P))
    second = Sum(Abs(Sum(z[nu, i] * (w[i] - s[i]), (i, 1, N))), (nu, 1, Q))
    apart = ConvexProblem(first + second).cavity()
    apart = apart.solve({alpha: load * Rational(7, 10), Q / N: load * Rational(3, 10), **teachers})
    for observable in (average(w[i] ** 2), average(w[i] * t[i]), average(w[i] * s[i])):
        assert float(together[observable]) == pytest.approx(float(apart[observable]), rel=1e-9)

    recovered = theory.solve({alpha: 20, **teachers})
    assert (recovered[average((w[i] - t[i]) ** 2)], recovered[average(w[i] * t[i])]) == (0, 1)
