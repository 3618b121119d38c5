"""Conditions on sums over all sites: budgets, norms, bounds that are minimised; against closed forms and instances."""

import mpmath
import numpy as np
import pytest
from references import near
from scipy.optimize import linprog
from sympy import Abs, Eq, Max, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Field,
    FlatMinimum,
    Global,
    N,
    NotConvex,
    P,
    Quenched,
    System,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.evaluate.solve import settles

x, w, xi, lam = Coupling("x"), Feature("w"), Datum("xi"), Datum("lam")
y, m = Quenched("y", mu), Quenched("m", i)
B = Symbol("B", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
budget = Eq(Sum(w[i], (i, 1, N)), N)
variance = Sum(h**2, (mu, 1, P)) / 2
loss = Sum((h - y[mu]) ** 2, (mu, 1, P)) / 2
SIGNS = {1: "1/2", -1: "1/2"}
FAR = 4.5


def agrees(problem, values, observables, n=120, seeds=12):
    """Hold a theory against instances; an observable that a condition fixes has no scatter."""
    theory = problem.cavity()
    simulation = problem.simulate(values, N=n, seeds=seeds)
    for row in theory.compare(simulation, observables).rows:
        error = max(row.simulation.stderr, 1e-9)
        assert abs(row.theory - row.simulation.mean) < FAR * error, str(row.observable)
    return theory.solve(values)


def test_minimum_variance_portfolio():
    theory = ConvexProblem(variance, [budget]).cavity()
    solution = theory.solve({alpha: 2}, dps=30)
    assert near(solution[average(w[i] ** 2)], "2", "1e-29")
    assert near(theory.solve({alpha: 4})[average(w[i] ** 2)], "1.33333333333333333", "1e-14")
    with pytest.raises(FlatMinimum, match="flat"):
        theory.solve({alpha: "1/2"})
    assert all(theory.derivation.verify())


@pytest.mark.parametrize(
    "condition",
    [Eq(Sum(w[i], (i, 1, N)) / N, 1), Eq(N, Sum(w[i], (i, 1, N))), Sum(w[i], (i, 1, N)) >= N],
    ids=["divided", "turned", "at least"],
)
def test_a_budget_in_other_words(condition):
    solution = ConvexProblem(variance, [condition]).cavity().solve({alpha: 2})
    assert near(solution[average(w[i] ** 2)], "2", "1e-13")


def test_no_short_selling():
    observables = [average(w[i] > 0), average(w[i] ** 2), response(w)]
    solution = agrees(ConvexProblem(variance, [budget, w[i] >= 0]), {alpha: 2}, observables)
    assert near(solution[average(w[i])], "1", "1e-13")


def test_a_norm_is_ridge_regression_where_it_holds_as_an_equality_and_nothing_where_it_idles():
    theory = ConvexProblem(loss, [Sum(w[i] ** 2, (i, 1, N)) <= N * B]).cavity()
    gamma = Symbol("gamma", positive=True)
    ridge = ConvexProblem(loss + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    tight = theory.solve({alpha: 2, B: "1/10", y: SIGNS}, dps=20)
    (nu,) = theory.system.globals
    same = ridge.solve({alpha: 2, gamma: 2 * Rational(mpmath.nstr(tight[nu], 24)), y: SIGNS}, dps=20)
    assert near(same[average(w[i] ** 2)], "0.1", "1e-17")
    idle = theory.solve({alpha: 2, B: 10, y: SIGNS}, dps=20)
    assert idle[nu] == 0
    assert near(idle[average(w[i] ** 2)], "1", "1e-18")  # least squares: 1/(alpha - 1)
    assert all(theory.derivation.verify())


def test_a_function_of_the_bound_goes_from_one_branch_to_the_other():
    theory = ConvexProblem(loss, [Sum(w[i] ** 2, (i, 1, N)) <= N * B]).cavity()
    size = theory.function(average(w[i] ** 2), B, values={alpha: 2, y: SIGNS})
    assert size(np.array([0.25, 0.5, 3.0])) == pytest.approx([0.25, 0.5, 1.0])


@pytest.mark.parametrize("bound", ["1/4", "4"])
def test_instances_with_a_bound_on_the_norm(bound):
    observables = [average(w[i] ** 2), average(lam[mu] ** 2)]
    agrees(ConvexProblem(loss, [Sum(w[i] ** 2, (i, 1, N)) <= N * B]), {alpha: 2, B: bound, y: SIGNS}, observables)


def test_a_sum_of_absolute_values():
    problem = ConvexProblem(loss, [Sum(Abs(w[i]), (i, 1, N)) / N <= B])
    solution = agrees(problem, {alpha: 2, B: "1/10", y: SIGNS}, [average(w[i] ** 2), average(Abs(w[i]))], 80, 8)
    assert near(solution[average(Abs(w[i]))], "0.1", "1e-13")


def test_several_conditions():
    """Two linear ones by the geometry of a projection: the weights are the least ones in the metric of the data."""
    theory = ConvexProblem(variance, [budget, Eq(Sum(m[i] * w[i], (i, 1, N)), N * B)]).cavity()
    solution = theory.solve({alpha: 2, B: 1, m: SIGNS}, dps=20)
    assert near(solution[average(w[i] ** 2)], "4", "1e-18")  # <(1 + m)^2>/(1 - 1/alpha)
    theory = ConvexProblem(loss, [Sum(w[i], (i, 1, N)) >= N, Sum(w[i] ** 2, (i, 1, N)) <= N * B]).cavity()
    solution = theory.solve({alpha: 2, B: "3/2", y: SIGNS})
    assert near(solution[average(w[i] ** 2)], "1.5", "1e-13")
    assert near(solution[average(w[i])], "1", "1e-13")


def test_a_matrix_game():
    """The value and the supports of optimal strategies; the other player's are the multipliers."""
    V = Global("V")
    problem = ConvexProblem(N * V, [h <= V, w[i] >= 0, budget])
    solution = agrees(problem, {alpha: 2}, [average(w[i] > 0), average(lam[mu] > 0), average(lam[mu])], 100, 10)
    assert near(solution[average(w[i] > 0)], "0.661693690063", "1e-11")
    assert near(solution[average(lam[mu] > 0)], "0.330846845031", "1e-11")
    other = problem.cavity().solve({alpha: "1/2"})
    assert near(other[average(w[i] > 0)], "0.330846845031", "1e-11")
    assert near(other[V], str(-(2**0.5) * solution[V]), "1e-11")


def test_a_bound_that_is_minimised():
    b, gamma = Global("b", positive=True), Symbol("gamma", positive=True)
    problem = ConvexProblem(loss + gamma * N * b, [w[i] <= b, w[i] >= -b])
    values = {alpha: 2, gamma: "1/10", y: SIGNS}
    agrees(problem, values, [average(w[i] ** 2), response(w)], 80, 8)
    assert all(problem.cavity().derivation.verify())


@pytest.mark.parametrize(("share", "found"), [("3/4", "0.5"), ("1/4", "0")])
def test_a_bias_that_is_bounded(share, found):
    b = Global("b", positive=True)
    problem = ConvexProblem(Sum((h + b - y[mu]) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)
    labels = {1: share, -1: 1 - Rational(share)}
    solution = agrees(problem, {alpha: 2, y: labels}, [average(w[i] ** 2), average(lam[mu] ** 2)], 100, 10)
    assert near(solution[b], found, "1e-13")


def test_a_system_with_a_pair_that_all_sites_share():
    """The conditions of the problem with a norm, written out by hand."""
    nu, u = Global("nu", positive=True), Field("u", mu)
    system = System(
        [
            Eq(2 * nu * w[i], Sum(x[mu, i] * lam[mu], (mu, 1, P))),
            Eq(u[mu], h),
            Eq(lam[mu], y[mu] - u[mu]),
        ],
        [Complementary(nu, N * B - Sum(w[i] ** 2, (i, 1, N)))],
    )
    problem = ConvexProblem(loss, [Sum(w[i] ** 2, (i, 1, N)) <= N * B])
    for bound in ("1/10", "10"):
        one = system.cavity().solve({alpha: 2, B: bound, y: SIGNS})
        other = problem.cavity().solve({alpha: 2, B: bound, y: SIGNS})
        assert near(one[average(w[i] ** 2)], str(other[average(w[i] ** 2)]), "1e-12")


def test_instances_are_the_least_weights_on_the_budget():
    """Against the formula of a portfolio: proportional to the inverse covariance of the returns times ones."""
    simulation = ConvexProblem(variance, [budget]).simulate({alpha: 2}, N=40, seeds=2)
    for k, sample in enumerate(simulation.feasible):
        X = simulation.reader(k).instance.couplings[0]
        wanted = np.linalg.solve(X.T @ X, np.ones(40))
        assert sample[w] == pytest.approx(40 * wanted / wanted.sum())


def test_the_site_that_is_added_to_an_instance():
    experiment = ConvexProblem(variance, [budget, w[i] >= 0]).cavity_experiment({alpha: 2}, N=60, seeds=15)
    assert "feature" in str(experiment)


def test_a_condition_on_an_average_is_one_of_two_things():
    with pytest.raises(NotConvex) as caught:
        ConvexProblem(variance, [Eq(Sum(w[i] ** 2, (i, 1, N)), N)])
    assert "fixed=" in str(caught.value)


@pytest.mark.parametrize("positive", [False, True])
def test_where_a_budget_idles_the_state_evolution_settles_without_it(positive):
    """Its multiplier is zero, where no search for a tight budget has to fail first."""
    signs = [w[i] >= 0] if positive else []
    hinge = Sum(Max(0, 1 - h), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4
    free = ConvexProblem(hinge, signs).cavity().solve({alpha: 2})
    theory = ConvexProblem(hinge, [*signs, Sum(w[i], (i, 1, N)) <= 5 * N]).cavity()
    assert [settles(branch, {alpha: 2}) for branch in theory.branches] == [False, True]
    solution = theory.solve({alpha: 2})
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(float(free[average(w[i] ** 2)]), rel=1e-12)
    assert [v for s, v in solution.values.items() if s.name.startswith("nu")] == [0]


def basis_pursuit(condition):
    return ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(h, y[mu]), condition])


@pytest.mark.parametrize("condition", [budget, Sum(w[i], (i, 1, N)) <= -N], ids=["equal", "below"])
def test_a_budget_that_all_sets_of_one_sign_meet_leaves_a_minimum_of_least_size_flat(condition):
    """``Abs(w) - w`` has all ``w >= 0`` for minima: below some load such weights meet the data, and many do."""
    with pytest.raises(FlatMinimum) as caught:
        basis_pursuit(condition).cavity().solve({alpha: "3/10", y: Normal("y", 0, 1)})
    edge = caught.value.evidence.load
    n, draw = 400, np.random.default_rng(1)
    for load, is_flat in ((0.8 * edge, True), (1.2 * edge, False)):
        p = int(load * n)
        x_, y_ = draw.normal(size=(p, n)) / np.sqrt(n), draw.normal(size=p)
        both, right = np.vstack([x_, np.ones(n)]), [*y_, n]
        found = linprog(np.ones(2 * n), A_eq=np.hstack([both, -both]), b_eq=right)
        assert (found.fun < n * (1 + 1e-9)) == is_flat


@pytest.mark.parametrize(("total", "size"), [(N / 10, "0.393632636555315"), (N, None)])
def test_a_budget_that_not_all_of_one_sign_meet_has_one_minimum_of_least_size(total, size):
    load = "3/10" if size else "7/10"
    theory = basis_pursuit(Eq(Sum(w[i], (i, 1, N)), total)).cavity()
    solution = theory.solve({alpha: load, y: Normal("y", 0, 1)})
    assert near(solution[average(w[i])], total / N, "1e-13")
    if size:
        assert near(solution[average(Abs(w[i]))], size, "1e-13")


def test_no_load_below_which_sets_of_one_sign_meet_no_data():
    """The orthant meets a random subspace up to half of the dimensions (J. Wendel, 1962)."""
    with pytest.raises(FlatMinimum) as caught:
        ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(h, 0), budget]).cavity().solve({alpha: "3/10"})
    assert caught.value.evidence.load == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("target", [Rational(1, 2), 3])
def test_bounds_on_sums_of_both_signs_are_a_size(target):
    """Where both are met their multipliers are known: that the variable is not negative is not said once more."""
    b = Global("b")
    gap = Sum(w[i] - target, (i, 1, N)) / N
    solution = ConvexProblem(loss + N * b, [b >= gap, b >= -gap]).cavity().solve({alpha: 3, y: SIGNS})
    shift = min(Rational(1, 2), target)  # the slope of the loss, 2 <w>, is at most that of the size, one
    assert near(solution[b], abs(target - shift), "1e-14")
    assert near(solution[average(w[i] ** 2)], Rational(7, 8), "1e-14")
    assert solution.residual < 1e-40
