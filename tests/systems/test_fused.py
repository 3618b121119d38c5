"""Two tasks at once: weights that are drawn to each other, against two limits; and two teachers of one fit."""

from functools import lru_cache

import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, Sites, alpha, average, i, mu

nu, Q = Sites("nu", "Q", "second datum")
x, z = Coupling("x"), Coupling("z", between=(nu, i))
w, v = Feature("w"), Feature("v")
t, s, e, f = Quenched("t", i), Quenched("s", i), Quenched("e", mu), Quenched("f", nu)
o = Quenched("o", mu)
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


def on_one_coupling(penalty):
    """Two outputs that see the same data, each with a teacher and noise of its own."""
    told = ((w, t, e), (v, s, o))
    fits = [Sum(x[mu, i] * (u[i] - teacher[i]), (i, 1, N)) - noise[mu] for u, teacher, noise in told]
    size = gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2
    return ConvexProblem(Sum(sum(f**2 for f in fits) / 2, (mu, 1, P)) + size + Sum(penalty, (i, 1, N)))


def turned(way, penalty):
    """The sum of both outputs, or their difference, over sqrt(2): a fit of its own, for squares do not see a turn."""
    teacher, missed = (t[i] + way * s[i]) / sqrt(2), (e[mu] + way * o[mu]) / sqrt(2)
    fit = Sum(x[mu, i] * (w[i] - teacher), (i, 1, N)) - missed
    cost = gamma * w[i] ** 2 / 2 + penalty(w[i] * sqrt(2))
    problem = ConvexProblem(Sum(fit**2, (mu, 1, P)) / 2 + Sum(cost, (i, 1, N)))
    held = penalty(w[i]) != 0
    return problem.cavity().solve({k: value for k, value in OUTPUTS.items() if held or k != theta})[average(w[i] ** 2)]


OUTPUTS = {alpha: 2, gamma: Rational(1, 10), theta: Rational(1, 3), t: SIGNS, s: SIGNS, e: SIGNS, o: {0: 1}}


@pytest.mark.parametrize(
    ("penalty", "of_sum", "of_difference"),
    [
        (theta * Abs(w[i] - v[i]), lambda _: 0, lambda d: theta * Abs(d)),
        (theta * Max(w[i] - v[i], 0), lambda _: 0, lambda d: theta * Max(d, 0)),
        (theta * Max(w[i], v[i]), lambda p: theta * p / 2, lambda d: theta * Abs(d) / 2),
        (theta * (w[i] - v[i]) ** 2 + theta * Abs(w[i] + v[i]), lambda p: theta * Abs(p), lambda d: theta * d**2),
    ],
)
def test_two_outputs_on_the_same_data_are_their_sum_and_their_difference(penalty, of_sum, of_difference):
    """What each sends comes back to both: with the inverse of that in every branch, no theory was found in minutes."""
    solution = on_one_coupling(penalty).cavity().solve(OUTPUTS)
    first, second = turned(1, of_sum), turned(-1, of_difference)
    squares, product = average(w[i] ** 2 + v[i] ** 2), average(w[i] * v[i])
    assert float(solution[squares]) == pytest.approx(float(first + second), rel=1e-8)
    assert float(solution[product]) == pytest.approx(float(first - second) / 2, rel=1e-7)


@pytest.mark.parametrize("penalty", [Max(Abs(w[i]), Abs(v[i])), (w[i] - v[i]) ** 2 + Abs(w[i])])
def test_two_outputs_that_no_turn_takes_apart_against_instances(penalty):
    problem = on_one_coupling(theta * penalty)
    simulation = problem.simulate(OUTPUTS, N=100, seeds=10)
    observables = [average(q) for q in (w[i] ** 2, v[i] ** 2, w[i] * v[i], w[i] * t[i], v[i] * s[i])]
    assert problem.cavity().compare(simulation, observables).worst < 4.5


def test_weights_in_order_against_instances():
    """One output is nowhere below the other."""
    fits = [Sum(x[mu, i] * (u - q), (i, 1, N)) for u, q in ((w[i], t[i]), (v[i], s[i]))]
    size = gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2
    problem = ConvexProblem(Sum(fits[0] ** 2 + fits[1] ** 2, (mu, 1, P)) / 2 + size, subject_to=[w[i] >= v[i]])
    values = {k: OUTPUTS[k] for k in (alpha, gamma, t, s)}
    simulation = problem.simulate(values, N=100, seeds=10)
    observables = [average(q) for q in (w[i] ** 2, w[i] * v[i], w[i] * t[i])]
    assert problem.cavity().compare(simulation, observables).worst < 4.5


def logistic_and_squares(first, second, tie):
    """Labels of chance for one output, and a teacher for another one on the same data."""
    field, other = (Sum(x[mu, i] * u[i], (i, 1, N)) for u in (first, second))
    losses = log(1 + exp(-o[mu] * field)) + (Sum(x[mu, i] * t[i], (i, 1, N)) - other) ** 2 / 2
    return ConvexProblem(Sum(losses, (mu, 1, P)) + Sum(tie + gamma * (first[i] ** 2 + second[i] ** 2) / 2, (i, 1, N)))


MIXED = {alpha: 2, gamma: Rational(1, 5), t: SIGNS, o: SIGNS}


def test_a_smooth_loss_and_squares_on_the_same_data():
    """The answer of one output to the other has no known sign; tied they are one fit, and untied two."""
    tied = logistic_and_squares(w, v, theta * (w[i] - v[i]) ** 2 / 2).cavity()
    weak, strong = both(logistic_and_squares(w, v, 0).cavity().solve(MIXED)), both(tied.solve({**MIXED, theta: 10**7}))
    one = logistic_and_squares(w, w, 0).cavity().solve(MIXED)
    assert strong == pytest.approx(3 * [float(one[average(w[i] ** 2)])], rel=1e-5)
    fields = [Sum(x[mu, i] * e, (i, 1, N)) for e in (w[i], t[i] - v[i])]
    alone = [Sum(log(1 + exp(-o[mu] * fields[0])), (mu, 1, P)), Sum(fields[1] ** 2 / 2, (mu, 1, P))]
    for k, (loss, u) in enumerate(zip(alone, (w, v), strict=True)):
        values = {q: a for q, a in MIXED.items() if q is not (t, o)[k]}
        by_itself = ConvexProblem(loss + gamma * Sum(u[i] ** 2, (i, 1, N)) / 2).cavity().solve(values)
        assert weak[k] == pytest.approx(float(by_itself[average(u[i] ** 2)]), rel=1e-6)


def test_a_smooth_loss_and_squares_with_fused_weights_against_instances():
    problem, values = logistic_and_squares(w, v, theta * Abs(w[i] - v[i])), {**MIXED, theta: Rational(1, 2)}
    simulation = problem.simulate(values, N=100, seeds=10)
    observables = [average(e) for e in (w[i] ** 2, v[i] ** 2, w[i] * v[i], v[i] * t[i])]
    assert problem.cavity().compare(simulation, observables).worst < 4
