"""Minima at which states vanish: limits of the closed equations, against instances and exact values."""

import numpy as np
import pytest
from mpmath import mp
from scipy.optimize import brentq, linprog
from scipy.stats import norm
from sympy import Abs, Eq, Heaviside, Max, Ne, Piecewise, Rational, Sum, Symbol, cosh, log, sign, sqrt, tanh

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    FlatMinimum,
    Global,
    N,
    NotConverged,
    P,
    Quenched,
    Sites,
    System,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.solving import attempts

x, w = Coupling("x"), Feature("w")
y, t = Quenched("y", mu), Quenched("t", i)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2
size = average(w[i] ** 2)


def data(loss):
    return Sum(loss, (mu, 1, P))


@pytest.mark.parametrize("loss", [u**2 / 2, log(cosh(u))], ids=["squares", "log cosh"])
def test_a_smooth_minimum_at_zero_responds_as_its_hessian_says(loss):
    """The Hessian at zero is 1 + x'x in both cases: (1/N) tr of its inverse is sqrt(2) - 1 at load two."""
    solution = ConvexProblem(data(loss) + half).cavity().solve({alpha: 2})
    assert solution[size] == 0
    assert float(solution[response(w)]) == pytest.approx(np.sqrt(2) - 1, rel=1e-10)
    assert solution.stability < 1
    assert "at rest" in str(solution)


def test_a_kink_at_zero_holds_the_states():
    solution = ConvexProblem(data(Abs(u)) + half).cavity().solve({alpha: 2})
    assert solution[size] == solution[response(w)] == solution[average(Abs(w[i]))] == 0


@pytest.mark.parametrize("load", ["1/2", 2, 5, 6])
def test_the_price_of_the_largest_weight_holds_all(load):
    """Zero is the minimum as long as the norm of the slope there is below the price: the load is less than 2 pi."""
    m = Global("M")
    problem = ConvexProblem(N * m + data((u - Rational(1, 2)) ** 2) / 2, [Abs(w[i]) <= m])
    solution = problem.cavity().solve({alpha: load})
    assert solution[m] == solution[size] == 0
    assert float(solution["q_lambda"]) == pytest.approx(1 / 4, rel=1e-12)
    assert float(solution["objective"]) == pytest.approx(float(Rational(load)) / 8, rel=1e-12)


def test_the_largest_weight_moves_beyond():
    """Beyond a load of 2 pi the slope at zero is steeper than the price: the largest weight is that of instances."""
    m = Global("M")
    problem = ConvexProblem(N * m + data((u - Rational(1, 2)) ** 2) / 2, [Abs(w[i]) <= m])
    solution, simulation = problem.cavity().solve({alpha: 8}), problem.simulate({alpha: 8}, N=120, seeds=6)
    assert float(solution[m]) > 0.01
    assert abs(simulation[size].z(solution[size])) < 4.5


def test_many_kinks_of_which_one_holds_the_states():
    """What remains of a limit at a finite depth is no sign that it ends further on."""
    loss = sum(Abs(u - Rational(k, 5)) / 10 for k in range(-5, 6))
    solution = ConvexProblem(data(loss) + half).cavity().solve({alpha: 2})
    assert solution[size] == solution[response(w)] == 0


@pytest.mark.parametrize(
    "problem",
    [
        ConvexProblem(data(Max(0, Abs(u - y[mu]) - 2)) + half),
        ConvexProblem(data(u**2) + Sum(Abs(w[i]), (i, 1, N))),
        ConvexProblem(half, [u >= -1]),
    ],
    ids=["tube", "absolute values", "slack margin"],
)
def test_what_is_at_rest_in_instances_is_at_rest_in_theory(problem):
    values = {alpha: 2, y: {1: 1}} if problem.cavity().system.quenched else {alpha: 2}
    solution, found = problem.cavity().solve(values), problem.simulate(values, N=40, seeds=2)
    assert solution[size] == 0
    assert found[size].mean < 1e-20
    for state in problem.cavity().datum.solution:  # multipliers do not vanish with the states: of cases of one law all
        for moment in (average(state), average(state**2)):
            assert float(solution[moment]) == pytest.approx(found[moment].mean, abs=1e-12)


def test_a_few_outliers_do_not_move_the_least_absolute_deviations():
    problem = ConvexProblem(data(Abs(u - y[mu])))
    values = {alpha: 3, y: {0: Rational(9, 10), 1: Rational(1, 10)}}
    assert problem.cavity().solve(values)[size] == 0
    assert problem.simulate(values, N=60, seeds=3)[size].mean < 1e-20


def test_basis_pursuit_recovers_a_sparse_signal_up_to_the_line_of_donoho_and_tanner():
    """Weak threshold at delta = 1/10: rho = 0.18942936775 (Donoho and Tanner 2009; computed independently)."""
    problem = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)])
    theory = problem.cavity()
    error = average((w[i] - t[i]) ** 2)
    line = Rational("0.18942936775") / 10

    def at(share):
        return theory.solve({alpha: Rational(1, 10), t: {0: 1 - share, 1: share / 2, -1: share / 2}})

    inside = at(line * Rational(98, 100))
    assert inside[error] == inside[response(w)] == 0
    assert 0.9 < inside.stability < 1
    assert at(line * Rational(9, 10)).stability < inside.stability
    outside = at(line * Rational(102, 100))
    assert outside[error] > 1e-6
    assert inside[average(Abs(w[i]))] == pytest.approx(float(line * Rational(98, 100)), rel=1e-8)


def test_dual_variables_of_an_exact_recovery_are_not_determined():
    """In an instance a functional of them has a range; in theory what differs from one choice to another is refused."""
    problem = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)])
    theory, share = problem.cavity(), Rational(1, 20)
    solution = theory.solve({alpha: Rational(1, 2), t: {0: 1 - share, 1: share / 2, -1: share / 2}})
    assert solution[average((w[i] - t[i]) ** 2)] == 0
    assert float(solution[average(Abs(w[i]))]) == pytest.approx(float(solution.objective)) == pytest.approx(0.05)
    lam = next(iter(theory.datum.solution))
    for dual in ("q_lambda", average(lam**2), 1 + average(lam**2), average(Abs(lam))):
        with pytest.raises(FlatMinimum, match="dual variables"):
            solution[dual]
    assert "q_lambda" not in [str(name) for name, _ in solution.rows()]
    assert "its dual variables are not unique" in str(solution)

    rng, size = np.random.default_rng(1), 60
    matrix = rng.standard_normal((size // 2, size)) / np.sqrt(size)
    signal = np.array([1.0, -1.0, 1.0] + [0.0] * (size - 3))
    bounds = np.concatenate([matrix[:, 3:], -matrix[:, 3:]], axis=1).T
    along = rng.standard_normal(size // 2)
    low, high = (
        linprog(way * along, bounds, np.ones(len(bounds)), matrix[:, :3].T, signal[:3], (None, None)).fun
        for way in (1, -1)
    )
    assert -high - low > 0.1 * abs(high)


def test_limits_have_digits_where_nothing_is_integrated():
    """Resolvents of Wishart matrices; one with half of the directions taken; and data that nobody misses."""
    smooth = ConvexProblem(data(u**2 / 2) + half).cavity().solve({alpha: 2}, dps=60)
    with mp.workdps(80):
        assert abs(smooth[response(w)] + 1 - mp.sqrt(2)) < 1e-60
        assert abs(smooth.stability - (mp.sqrt(2) - 1) ** 2) < 1e-60

    a, K = Sites("a", "K")
    F, v = Coupling("F", between=(a, i)), Feature("v")
    taken = Sum(Abs(Sum(F[a, i] * w[i], (i, 1, N))), (a, 1, K))
    solution = ConvexProblem(data(u**2) + taken + half).cavity().solve({alpha: 2, K / N: Rational(1, 2)}, dps=40)
    with mp.workdps(60):
        assert abs(solution["S_w_to_v"] - (mp.sqrt(5) - 2) / 2) < 1e-40

    missed = Max(0, Sum(x[mu, i] * (w[i] - v[i]), (i, 1, N)) - 1) ** 2 / 2
    two = ConvexProblem(half + Sum(v[i] ** 2, (i, 1, N)) / 2 + data(missed)).cavity()
    solution = two.solve({alpha: Rational(3, 2)}, dps=30)
    assert solution[size] == 0
    assert abs(solution[response(w)] - 1) < 1e-30

    label = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    loose = ConvexProblem(half, [label[mu] * u + Global("b") >= 1]).cavity().solve({alpha: 1}, dps=30)
    assert abs(loose[response(w)] - 1) < 1e-30

    with pytest.raises(NotConverged, match="known to 15 digits only"):
        ConvexProblem(data(log(cosh(u))) + half).cavity().solve({alpha: 2}, dps=30)


def test_no_rest_is_seen_where_there_is_none():
    gamma = Symbol("gamma", positive=True)
    solution = ConvexProblem(data((1 - u) ** 2) / 2 + gamma * half).cavity().solve({alpha: 2, gamma: 10**6})
    assert float(solution[size]) == pytest.approx(2e-12, rel=1e-4)
    assert not hasattr(solution, "at_rest")
    assert sqrt(float(solution[size])) > 1e-6


def test_global_variables_at_rest():
    """The largest deviation of data that a teacher made; its moments shrink as half the tails of a normal law say."""
    largest = Global("z", positive=True)
    taught = ConvexProblem(N * largest, [Abs(u - Sum(x[mu, i] * t[i], (i, 1, N))) <= largest])
    solution = taught.cavity().solve({alpha: 2, t: {1: 1}})
    edge = brentq(lambda a: 2 * ((1 + a * a) * norm.sf(a) - a * norm.pdf(a)) - 0.5, 0, 5)
    assert solution[average((w[i] - t[i]) ** 2)] == solution[largest] == 0
    assert float(solution.stability) == pytest.approx((4 * norm.sf(edge)) ** -2, rel=1e-9)
    assert taught.simulate({alpha: 2, t: {1: 1}}, N=40, seeds=2)[largest].mean < 1e-10


def test_a_bias_that_a_quartic_fixes_with_nothing_left(monkeypatch):
    """No weights, and a bias that is the label of all data, cost nothing; what is left shrinks as its third power."""
    images, image = [], ClosedMap.image
    monkeypatch.setattr(ClosedMap, "image", lambda *args: images.append(args[1]) or image(*args))
    monkeypatch.setattr(attempts, "along_load", lambda *_args, **_kwargs: (None, None))  # there is no other load to try
    bias, cost = Global("b"), Symbol("C", positive=True)
    problem = ConvexProblem(half + cost * data((y[mu] - u - bias) ** 4) / 4, [w[i] <= 1 + t[i]])
    theory = problem.cavity()
    assert "C*(y[mu] - _h - b)**3" in str(theory.datum)  # multiplied out, it would leave nothing but rounding
    solution = theory.solve({alpha: "1/20", cost: "1/2", y: {1: 1}, t: {0: "1/2", 1: "1/2"}})
    moment = list(theory.order_parameters.values()).index(size)
    assert max(x[moment] for x in images) <= 1  # no step leads away
    assert solution[size] == 0
    assert float(solution[bias]) == pytest.approx(1, abs=1e-12)
    assert float(solution[response(w)]) == pytest.approx(1, abs=1e-9)
    assert float(solution.stability) < 1e-50
    assert solution.loose == ()


def test_a_bias_that_balanced_labels_do_not_fix():
    bias = Global("b")
    label = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    problem = ConvexProblem(half, [label[mu] * u + bias >= 1])
    solution = problem.cavity().solve({alpha: 1})
    assert solution[size] == solution[average(Datum("lambda")[mu])] == 0
    assert "not fixed          : b" in str(solution)
    with pytest.raises(FlatMinimum, match="not unique"):
        solution[bias]
    assert len(problem.simulate({alpha: 1}, N=30, seeds=2).flat) == 2


def test_a_network_that_is_silent():
    """Rates spread by the variance of the couplings, and vanish at each strength below one."""
    v, g, j = Feature("v"), Symbol("g", positive=True), Symbol("j", integer=True)
    J = Coupling("J", between=(i, i), variance=g**2 / N)
    network = System([Eq(v[i], tanh(Sum(J[i, j] * v[j], (j, 1, N))))])
    solution = network.cavity().solve({g: Rational(1, 2)})
    assert solution[average(v[i] ** 2)] == 0
    assert float(solution.stability) == pytest.approx(0.25, rel=1e-9)
    assert network.simulate({g: Rational(1, 2)}, N=30, seeds=1)[average(v[i] ** 2)].mean < 1e-20


def test_positive_weights_that_the_data_alone_fix():
    """Active are the teacher's weights and half of the others: each round errors shrink by that share over alpha."""
    found = ConvexProblem(Sum(w[i], (i, 1, N)), [Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0), w[i] >= 0])
    solution = found.cavity().solve({alpha: Rational(7, 10), t: {0: Rational(8, 10), 1: Rational(2, 10)}})
    assert solution[average((w[i] - t[i]) ** 2)] == 0
    assert float(solution.stability) == pytest.approx(6 / 7, rel=1e-9)
    assert float(solution[average(w[i])]) == pytest.approx(0.2, rel=1e-9)


def test_a_norm_as_penalty_holds_all_weights():
    """Weights stay at zero as long as the penalty is at least the root of alpha times the mean squared message."""
    gamma, label = Symbol("gamma", positive=True), Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    spread, length = (sqrt(Sum(e, lim) / N) for e, lim in (((label[mu] - u) ** 2, (mu, 1, P)), (w[i] ** 2, (i, 1, N))))
    theory = ConvexProblem(N * spread + gamma * N * length).cavity()
    solution = theory.solve({alpha: 2, gamma: Rational(11, 10)})
    assert solution[size] == solution[response(w)] == 0
    assert float(solution["R_w"]) == pytest.approx(np.sqrt(2), rel=1e-9)
    assert not hasattr(theory.solve({alpha: 2, gamma: Rational(9, 10)}), "at_rest")


def test_a_parameter_that_is_looked_for_has_no_limit_at_rest():
    """All margins are met by the bias alone: no length of the weights is fixed by the load."""
    kappa, b = Symbol("kappa", positive=True), Global("b")
    rows = [u + b >= kappa]
    problem = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, rows, fixed=[Eq(size, 1 / kappa**2)])
    with pytest.raises(NotConverged, match="limit was not found"):
        problem.cavity().solve({kappa: "1/10"})


def test_a_limit_that_is_not_found_is_not_called_no_solution(monkeypatch):
    """A cap at the mean: all weights are one, which is the minimum, and no root of the closed equations."""
    finding = ("tight conditions", attempts.AT_REST)
    others = tuple(attempt for attempt in attempts.ATTEMPTS if attempt.name not in finding)
    monkeypatch.setattr(attempts, "ATTEMPTS", others)
    problem = ConvexProblem(Sum(u**2, (mu, 1, P)) / 2, [Eq(Sum(w[i], (i, 1, N)), N), w[i] <= 1])
    with pytest.raises(NotConverged, match="No root was found at alpha = 2") as caught:
        problem.cavity().solve({alpha: 2})
    assert "no solution" not in str(caught.value)


def test_a_theory_at_rest_is_not_compared_with_the_naive_one():
    problem = ConvexProblem(half, [Abs(u) <= 1])
    assert not problem.cavity().derivation.verify(dps=20).failed


def test_what_stands_still_only_with_what_has_vanished_goes_along():
    """A loss that idles at zero: a quartic weight has no curvature there, and answers without bound."""
    problem = ConvexProblem(Sum(w[i] ** 4, (i, 1, N)) / 4 + data(Max(0, Abs(u - y[mu]) - 5)))
    values = {y: {1: "1/2", -1: "1/2"}, alpha: "3/2"}
    solution = problem.cavity().solve(values)
    assert solution[size] == 0
    assert solution[response(w)] == mp.inf
    sim = problem.simulate(values, N=40, seeds=2)
    assert sim[size].mean < 1e-20  # one minimum, though its Hessian is zero
    with pytest.raises(NotConverged, match="has no response"):
        sim[response(w)]


def test_a_response_where_the_slope_of_a_law_jumps_is_not_measured():
    """At zero the squares of positive parts are flat to one side: an instance has no response there."""
    problem = ConvexProblem(half + data(Max(0, u) ** 2))
    theory, sim = problem.cavity(), problem.simulate({alpha: 2}, N=40, seeds=2)
    assert theory.solve({alpha: 2})[size] == 0
    with pytest.raises(NotConverged, match="changes its slope"):
        sim[response(w)]
    shifted = ConvexProblem(half + data(Max(0, 1 - u) ** 2)).simulate({alpha: 2}, N=40, seeds=2)
    assert 0 < shifted[response(w)].mean < 1


def test_a_bias_that_goes_to_the_labels_of_most_data():
    """Residuals of most data vanish along with the weights: the bias is their label, to all digits."""
    bias, cost = Global("b"), Symbol("C", positive=True)
    problem = ConvexProblem(half * 2 + Sum(Abs(w[i]), (i, 1, N)) + cost * data(Abs(y[mu] - u - bias)))
    values = {y: {2: "1/3", -1: "2/3"}, alpha: 2, cost: 1}
    solution = problem.cavity().solve(values)
    assert solution[size] == 0
    assert abs(solution[bias] + 1) < 1e-15
    assert solution.digits == 15
    sim = problem.simulate(values, N=60, seeds=2)
    assert sim[size].mean < 1e-12
    assert sim[bias].mean == pytest.approx(-1, abs=1e-8)


def test_a_bound_on_all_residuals_that_zero_weights_meet(monkeypatch):
    """At zero weights the residuals have the variance <t**2> + <n**2> = .45: a larger bound holds nothing."""
    bound = Symbol("b", positive=True)
    n = Quenched("n", mu)
    residual = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - n[mu]
    theory = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Sum(residual**2, (mu, 1, P)) <= bound * P]).cavity()
    fifth, fixed = Rational(1, 5), Rational(1, 2)
    values = {alpha: Rational(3, 4), t: {1: fifth, 0: 1 - fifth}, n: {fixed: fixed, -fixed: fixed}}
    below = theory.solve({**values, bound: "0.44"})
    assert 0 < float(below[average(Abs(w[i]))]) < 0.02
    assert float(below[average(residual**2)]) == pytest.approx(0.44, rel=1e-9)
    searched = []
    monkeypatch.setattr(attempts, "roots_of", lambda *args, **_: searched.append(args) or [])
    at_rest = theory.solve({**values, bound: "0.46"})
    assert at_rest[average(Abs(w[i]))] == 0
    assert float(at_rest[average(residual**2)]) == pytest.approx(0.45, rel=1e-12)
    assert not searched


def test_a_bound_that_nothing_opens_leaves_the_data_to_themselves():
    """A large price of the largest weight: all are zero, no moment vanishes, and nothing answers to anything."""
    largest, noise = Global("largest", positive=True), Quenched("noise", mu)
    gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - noise[mu]
    problem = ConvexProblem(N * largest + data(gap**2) / 2, [largest >= w[i], largest >= -w[i]])
    solution = problem.cavity().solve({alpha: "1/2", t: {1: "1/2", -1: "1/2"}, noise: {1: "1/2", -1: "1/2"}})
    assert [solution[what] for what in (largest, size, response(w))] == [0, 0, 0]
    assert float(solution[average(gap**2)]) == pytest.approx(2, rel=1e-9)
    assert solution.stability == 0
    assert "at rest" in str(solution)


SHARE = Symbol("share")


@pytest.fixture(scope="module")
def recovered():
    """A sparse non-negative teacher that the smallest sum of weights recovers."""
    problem = ConvexProblem(
        Sum(w[i], (i, 1, N)),
        [Eq(u - Sum(x[mu, i] * t[i], (i, 1, N)), 0), w[i] >= 0],
        named={SHARE: average(w[i] > 0)},
    )
    law = {0: Rational(7, 10), 1: Rational(1, 5), Rational(1, 2): Rational(1, 10)}
    return problem.cavity().solve({alpha: Rational(4, 5), t: law})


def test_weights_above_zero_are_those_of_the_teacher(recovered):
    """On the way to the limit half of those that vanish are above zero; in instances none is."""
    assert recovered[average(w[i] > 0)] == recovered["average(w[i] > 0)"] == recovered[SHARE]
    found = [recovered[average(event)] for event in (w[i] > 0, Ne(w[i], 0), sign(w[i]), Heaviside(w[i], 0))]
    assert found == pytest.approx([0.3] * 4)


def test_a_threshold_at_a_value_of_the_teacher(recovered):
    events = (w[i] > 1, w[i] >= 1, Eq(w[i], Rational(1, 2)), w[i] < Rational(3, 4))
    assert [recovered[average(event)] for event in events] == pytest.approx([0, 0.2, 0.1, 0.8])


@pytest.mark.parametrize("size", [lambda u: Max(u, -u), lambda u: Piecewise((u, u > 0), (-u, True))])
def test_a_teacher_is_recovered_from_sizes_in_any_spelling(size):
    """Weights that stretch along an anchor within the sizes of a teacher's fields end at the teacher at enough data."""
    eighth = Rational(1, 8)
    t, c = Quenched(("t", "c"), i, law={(a, b): (2 + a * b) * eighth for a in (1, -1) for b in (1, -1)})
    h, u = (Sum(x[mu, i] * vector[i], (i, 1, N)) for vector in (w, t))
    problem = ConvexProblem(-Sum(c[i] * w[i], (i, 1, N)), [Abs(h) <= size(u)])
    assert float(problem.cavity().solve({alpha: 6})[average((w[i] - t[i]) ** 2)]) == 0


def test_species_that_all_die_out_leave_nothing_of_any_moment():
    """No species survives without a capacity: its moments vanish like exp(-1/q), and no ratio of them is infinite."""
    n, K, j = Feature("n"), Quenched("K", i), Symbol("j", integer=True)
    J = Coupling("J", between=(i, i), mean=1 / N, variance=1 / (4 * N))
    system = System([], [Complementary(n[i], n[i] - K[i] + Sum(J[i, j] * n[j], (j, 1, N)))])
    solution = system.cavity().solve({K: {-1: 1}})
    found = [solution[average(o)] for o in (n[i], n[i] ** 2, n[i] > 0, response(n[i]))]
    assert [*found, solution.residual] == [0] * 5
