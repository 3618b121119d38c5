"""Laws whose feedback has either sign, or is all the curvature that there is, against independent computations."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtr
from sympy import Abs, Eq, Max, Piecewise, Rational, S, Sum, Symbol, exp, factorial, log, sign, tanh
from sympy.stats import Exponential, Geometric, Normal, Poisson, Uniform

from symcavity import (
    BipartiteSystem,
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    FlatMinimum,
    Infeasible,
    InternalError,
    N,
    NotConverged,
    NotConvex,
    P,
    Quenched,
    SeveralSolutions,
    SymcavityError,
    UnstableSolution,
    alpha,
    average,
    i,
    mu,
    response,
)

x, w = Coupling("x"), Feature("w")
u = Sum(x[mu, i] * w[i], (i, 1, N))
noise = Quenched("noise", mu, law=Normal("noise", 0, 1))
t, flip, scale = Quenched("t", i), Quenched("flip", mu), Quenched("scale", mu)
kappa, d = Symbol("kappa", positive=True), Symbol("d", positive=True)
k = Symbol("k", real=True)
risk = average(w[i] ** 2)
HALF = {1: "1/2", -1: "1/2"}


def data(body):
    return Sum(body, (mu, 1, P))


def features(body):
    return Sum(body, (i, 1, N))


def huber(r):
    return Piecewise((r**2 / 2, Abs(r) <= d), (d * Abs(r) - d**2 / 2, True))


squares = ConvexProblem(minimize=data((u - noise[mu]) ** 2) / 2)


@pytest.fixture(scope="module")
def least_squares():
    return squares.cavity()


def agrees(problem, theory, values, observables=None, size=100, seeds=12):
    table = theory.compare(problem.simulate(values, N=size, seeds=seeds), observables)
    assert len(table) > 0
    assert not any(np.isnan(row.z) for row in table if not row.note)
    assert table.worst < 4, str(table)


# -- weights without penalty: the feedback is all the curvature -----------------------------------


def test_least_squares_has_the_risk_of_an_inverse_wishart_matrix(least_squares):
    """The mean of the inverse of a Wishart matrix: 1/(alpha - 1), for noise of unit variance."""
    assert least_squares.solve({alpha: 2}, dps=30)[risk] == 1
    assert least_squares.solve({alpha: "3/2"}, dps=30)[response(w)] == 2
    agrees(squares, least_squares, {alpha: 2})


def test_least_squares_below_its_transition_is_flat(least_squares):
    with pytest.raises(FlatMinimum, match="flat") as caught:
        least_squares.solve({alpha: "1/2"})
    assert "a larger alpha" in str(caught.value)
    assert caught.value.evidence.way == "larger"
    assert caught.value.evidence.load == pytest.approx(1, abs=0.01)
    assert {str(s) for s in caught.value.evidence.diverging} == {"S_w", "q_w"}


def test_a_closed_form_that_violates_a_sign_says_so(least_squares):
    with pytest.raises(Infeasible, match="would be") as caught:
        least_squares.function(risk, alpha)([2, 0.5])
    assert caught.value.evidence.values


def test_minimum_variance_portfolio():
    """The budget fixes the multiplier: 1/(1 - N/T) times the variance of equal weights (Pafka and Kondor)."""
    budget = data(u**2) / 2 - kappa * features(w[i])
    portfolio = ConvexProblem(minimize=budget, fixed=[Eq(average(w[i]), 1)]).cavity()
    solution = portfolio.solve({alpha: 2}, dps=30)
    assert solution[risk] == 2
    assert solution[kappa] == 1
    with pytest.raises(Infeasible, match="a larger alpha"):
        portfolio.solve({alpha: "1/2"})
    free = ConvexProblem(minimize=budget)
    agrees(free, free.cavity(), {alpha: 2, kappa: 1})


def test_a_condition_that_no_unknown_can_meet_is_refused():
    with pytest.raises(DeclarationError, match="whatever"):
        ConvexProblem(minimize=data(u**2) / 2, fixed=[Eq(average(w[i]), 1)]).cavity()


def test_huber_regression_with_outliers():
    """An independent computation with mpmath: 0.412190952374(1)."""
    z = Quenched("z", mu, law=Normal("z", 0, 1))
    problem = ConvexProblem(minimize=data(huber(u - scale[mu] * z[mu])))
    theory, values = problem.cavity(), {alpha: 5, d: 3, scale: {1: "19/20", 10: "1/20"}}
    assert float(theory.solve(values)[risk]) == pytest.approx(0.412190952374, abs=1e-11)
    agrees(problem, theory, values)


def test_least_absolute_deviations():
    """By hand: the residual is the soft threshold of a Gaussian of variance 1 + q, with the range of the feedback."""
    problem = ConvexProblem(minimize=data(Abs(u - noise[mu])))
    theory = problem.cavity()
    solution = theory.solve({alpha: 2})

    def power(b):  # mean of min(|z|, b)^2 of a standard Gaussian
        density = np.exp(-b * b / 2) / np.sqrt(2 * np.pi)
        return 2 * ndtr(b) - 1 - 2 * b * density + 2 * b * b * ndtr(-b)

    threshold = brentq(lambda b: 2 * (2 * ndtr(b) - 1) - 1, 0.01, 5)  # alpha times the share within it is one
    share = power(threshold) * 2 / 1.0  # q = alpha <min>^2 (1 + q) at unit slope
    assert float(solution[risk]) == pytest.approx(share / (1 - share), rel=1e-10)
    # at finite size the minimum is a vertex, which no infinitesimal source moves: responses are not compared
    lam, *_ = theory.datum.solution
    agrees(problem, theory, {alpha: 2}, [risk, average(lam), average(lam**2)])


def test_logistic_regression_without_signal():
    """A fixed point by hand, with Newton's proximal map on a grid."""
    z = np.linspace(-10, 10, 4001)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    q, width = 1.0, 1.0
    for _ in range(400):
        h = np.sqrt(q) * z
        for _ in range(40):
            h -= (h - np.sqrt(q) * z - width * expit(-h)) / (1 + width * expit(h) * expit(-h))
        slope = expit(h) * expit(-h)
        curvature = 10 * weight @ (slope / (1 + width * slope))
        q, width = 10 * weight @ expit(-h) ** 2 / curvature**2, 1 / curvature
    problem = ConvexProblem(minimize=data(log(1 + exp(-u))))
    theory = problem.cavity()
    solution = theory.solve({alpha: 10})
    assert float(solution[risk]) == pytest.approx(q, rel=1e-9)
    assert float(solution[response(w)]) == pytest.approx(width, rel=1e-9)
    agrees(problem, theory, {alpha: 10})


# -- systems that are not declared convex ---------------------------------------------------------

r, h, s, field = Feature("r"), Feature("h"), Datum("s"), Quenched("field", i)
back = k * Sum(x[mu, i] * s[mu], (mu, 1, P))
forth = Eq(s[mu], Sum(x[mu, i] * r[i], (i, 1, N)))
drive = {field: HALF}


def network(*law, conditions=()):
    return BipartiteSystem([*law, forth], list(conditions))


@pytest.fixture(scope="module")
def linear():
    system = network(Eq(r[i], back + field[i]))
    return system, system.cavity()


@pytest.mark.parametrize("gain", ["1/10", "-3/10"])
def test_linear_network_with_feedback_of_either_sign(linear, gain):
    """The resolvent of a Wishart matrix outside of its spectrum, by its density."""
    system, theory = linear
    g, load = float(Rational(gain)), 1.0
    solution = theory.solve({k: gain, alpha: 1, **drive}, dps=20)
    a = (np.arange(100_000) + 0.5) * np.pi / 100_000
    top = 2 + 2 * np.cos(a)  # Marchenko and Pastur at load one, on [0, 4]: sqrt(l(4 - l))/(2 pi l) dl
    weight = np.sqrt(top * (4 - top)) / (2 * np.pi * top) * 2 * np.sin(a) * (a[1] - a[0]) * load
    assert float(solution[response(r)]) == pytest.approx(weight @ (1 / (1 - g * top)), rel=1e-8)
    assert float(solution[average(r[i] ** 2)]) == pytest.approx(weight @ (1 / (1 - g * top) ** 2), rel=1e-8)
    assert solution.residual < 1e-20
    agrees(system, theory, {k: gain, alpha: 1, **drive})


def test_the_denominators_that_were_taken_as_positive_are_recorded(linear):
    _, theory = linear
    text = theory.derivation.to_text()
    assert "1 - k S^r > 0" in text
    assert "1 - α k S^s > 0" in text
    assert "0 FAILED, 0 unchecked" in str(theory.derivation.verify())


def test_inside_the_spectrum_there_is_no_solution(linear):
    """The largest eigenvalue is 4: beyond a gain of 1/4 the network runs away, and the resolvent is complex."""
    _, theory = linear
    with pytest.raises(SymcavityError) as caught:
        theory.solve({k: "1/2", alpha: 1, **drive})
    assert isinstance(caught.value, Infeasible | NotConverged)
    assert not isinstance(caught.value, SeveralSolutions)


@pytest.mark.parametrize("shape", [lambda v: Max(0, v), tanh], ids=["rectified", "tanh"])
def test_networks_with_positive_feedback(shape):
    system = network(Eq(r[i], shape(h[i])), Eq(h[i], back + field[i]))
    theory = system.cavity()
    assert not theory.feature._site.signs  # no sign of a self-coupling was needed
    values = {k: "3/20", alpha: 1, **drive}
    assert theory.solve(values)[response(s)] > 1
    agrees(system, theory, values)


def test_units_that_excite_and_are_inhibited_beside_random_feedback_among_themselves():
    """The second field moves the place where the law bends: no sign of a response follows from that."""
    e, j = Feature("e"), Symbol("j", integer=True)
    among, across = Coupling("J", between=(i, i)), Coupling("W", between=(i, mu))
    inhibition = Sum(across[i, mu] * s[mu], (mu, 1, P)) / 2
    heard = Sum(across[i, mu] * e[i], (i, 1, N)) / 2
    law = tanh(Rational(1, 2) + Sum(among[i, j] * e[j], (j, 1, N)) / 2 - inhibition)
    system = BipartiteSystem([Eq(e[i], law), Eq(s[mu], tanh(Rational(1, 2) + heard))])
    theory = system.cavity()
    assert not any(site._site.signs for site in theory.sites.values())
    assert theory.solve({alpha: "1/2"})[response(s)] > 0.3
    agrees(system, theory, {alpha: "1/2"}, size=100, seeds=6)


def test_mutualistic_species():
    """Lotka and Volterra with interactions k x'x: species that help each other, as far as the noise lets them."""
    system = network(Eq(h[i], back + field[i] - r[i]), conditions=[Complementary(r[i], -h[i])])
    theory = system.cavity()
    values = {k: "3/20", alpha: 1, **drive}
    assert theory.solve(values)[response(s)] > 1
    agrees(system, theory, values)


def test_the_equations_of_least_squares_need_no_sign():
    """Declared by its equations alone, nothing says that it is convex: the closed equations decide the signs."""
    system = BipartiteSystem(
        [Eq(0, Sum(x[mu, i] * s[mu], (mu, 1, P))), Eq(s[mu], Sum(x[mu, i] * r[i], (i, 1, N)) - flip[mu])]
    )
    solution = system.cavity().solve({alpha: 2, flip: HALF}, dps=30)
    assert solution[average(r[i] ** 2)] == 1
    assert solution[response(r)] == -1


# -- several solutions ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bistable():
    y = Coupling("y")
    system = BipartiteSystem(
        [
            Eq(h[i], 4 * Sum(x[mu, i] * s[mu], (mu, 1, P)) + Rational(1, 5)),
            Eq(r[i], tanh(h[i]) ** 3),
            Eq(s[mu], Sum(y[mu, i] * r[i], (i, 1, N))),
        ]
    )
    return system.cavity()


def test_several_fixed_points_are_all_listed(bistable):
    z = np.linspace(-10, 10, 200_001)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()

    def gap(t):
        return np.log(weight @ np.tanh(4 * np.exp(t / 2) * z + 0.2) ** 6) - t

    grid = np.linspace(-16, 0, 200)
    values = [gap(t) for t in grid]
    changes = [n for n in range(len(grid) - 1) if values[n] * values[n + 1] < 0]
    wanted = [np.exp(brentq(gap, grid[n], grid[n + 1])) for n in changes]
    moment = average(r[i] ** 2)
    with pytest.raises(SeveralSolutions, match="3 admissible") as caught:
        bistable.solve({alpha: 1})
    with pytest.warns(UnstableSolution):  # the one in the middle, and the chaotic one
        found = [bistable.solve({alpha: 1}, guess=point) for point in caught.value.solutions]
    assert [float(point.stability) < 1 for point in found] == [True, False, False]
    assert [line.endswith("(unstable)") for line in str(caught.value).splitlines()[1:4]] == [False, True, True]
    assert len(wanted) == 3
    assert [float(point[moment]) for point in found] == pytest.approx(wanted, rel=1e-8)
    assert all(point.residual < 1e-12 for point in found)


def test_nan_does_not_stand_for_one_of_several_solutions(bistable):
    f = bistable.function(average(r[i] ** 2), alpha, errors="nan")
    with pytest.raises(SeveralSolutions):
        f([1.0])


# -- nothing that is not a number -----------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, Rational(1, 10)])
def test_ridge_regression_on_the_signs_of_a_teacher(wrong):
    """A sign is its linear part sqrt(2/pi) and noise that is uncorrelated: ridge regression with a linear teacher."""
    label = flip[mu] * sign(Sum(x[mu, i] * t[i], (i, 1, N)))
    problem = ConvexProblem(minimize=data((label - u) ** 2) + features(w[i] ** 2))
    theory = problem.cavity()
    law = {1: 1} if wrong == 0 else {1: 1 - wrong, -1: wrong}
    values = {alpha: 2, t: HALF, flip: law}
    solution = theory.solve(values, dps=20)
    c, slope, trace = 1.0, (1 - 2 * float(wrong)) * np.sqrt(2 / np.pi), lambda c: (
        np.sqrt((c + 1) ** 2 + 4 * c) - c - 1
    ) / (2 * c)  # the trace of 1/(c + x'x) at load 2, where c v^2 + (c + 1) v = 1
    step = 1e-4
    fall = (trace(c + step) - trace(c - step)) / (2 * step)
    # w = (c + x'x)^-1 x'(slope x t + rest): signal (1 - 2 c v - c^2 v') slope^2, noise (v + c v')(1 - slope^2)
    want = slope**2 * (1 - 2 * c * trace(c) - c**2 * fall) + (1 - slope**2) * (trace(c) + c * fall)
    assert float(solution[risk]) == pytest.approx(want, rel=1e-6)
    assert float(solution[average(w[i] * t[i])]) == pytest.approx(slope * (1 - c * trace(c)), rel=1e-9)
    assert solution.residual < 1e-20
    agrees(problem, theory, values, [risk, average(w[i] * t[i])])


def test_no_check_passes_what_is_not_a_number(least_squares):
    solution = least_squares.solve({alpha: 2})
    q = next(v for v in solution.values if str(v) == "q_w")
    solution.values[q] = solution._own[q] = mpmath.nan
    with pytest.raises(NotConverged, match="no value"):
        solution[risk]
    solution._residual = None
    assert solution.residual == mpmath.inf


def test_one_instance_agrees_with_nothing(least_squares):
    table = least_squares.compare(squares.simulate({alpha: 2}, N=20, seeds=1), [risk])
    assert not table.agrees()


def test_an_equation_that_reads_one_is_zero_is_called_a_defect():
    theory = network(Eq(r[i], back + field[i])).cavity()
    theory.reduced.core.append(S.One)
    with pytest.raises(InternalError, match="defect"):
        theory.solve({k: "1/10", alpha: 1, **drive})


def test_a_linear_network_at_rest_still_responds(linear):
    """Without drive all states vanish; the resolvent does not, and of its two roots it is the stable one."""
    _, theory = linear
    rest = theory.solve({k: "1/10", alpha: 1, field: {0: 1}})
    driven = theory.solve({k: "1/10", alpha: 1, **drive})
    assert rest[average(r[i] ** 2)] == 0
    assert rest[response(r)] == driven[response(r)]
    assert rest.stability == driven.stability < 1


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [(Exponential("c", 1), 0, np.inf), (Uniform("c", 0, 2), 0, 2), (Geometric("c", Rational(1, 2)), None, None)],
    ids=["exponential", "uniform", "geometric"],
)
def test_a_law_on_positive_numbers_says_the_sign_of_a_weight(law, low, high):
    """A hinge with costs drawn from it, as with the same costs by quadrature or by their sum."""
    cost = Quenched("c", mu, law=law)
    problem = ConvexProblem(data(cost[mu] * Max(0, 1 - u)) + features(w[i] ** 2) / 2)
    solution = problem.cavity().solve({alpha: 2})
    if low is None:
        costs = np.arange(1, 60)
        weights = 0.5**costs
    else:
        nodes, share = np.polynomial.legendre.leggauss(400)
        costs = low + (min(high, 40.0) - low) * (1 + nodes) / 2
        weights = share * (np.exp(-costs) if high == np.inf else 1.0)
    weights = weights / weights.sum()
    S_w, q = float(solution[response(w)]), float(solution[risk])
    z = np.linspace(-9, 9, 4001)
    Dz = np.exp(-z * z / 2)
    gap = 1 - np.sqrt(q) * z[:, None]
    message = np.clip(gap / S_w, 0, costs)  # minus the slope of c max(0, 1 - h) at h = field + S_w message
    moment = (Dz / Dz.sum()) @ message**2 @ weights
    assert q == pytest.approx(2 * S_w**2 * moment, rel=1e-6)
    sim = problem.simulate({alpha: 2}, N=60, seeds=8)[risk]
    assert abs(sim.mean - q) < 4 * sim.stderr + 3 * q / 60


def test_a_law_that_may_be_zero_or_negative():
    """Costs that count events may vanish; a law with negative values is no cost, whatever may be drawn."""
    counts, weights = range(20), [float(np.exp(-1.0) / factorial(k)) for k in range(20)]
    few = {k: Rational(p).limit_denominator(10**15) for k, p in zip(counts, weights, strict=True)}
    few[0] += 1 - sum(few.values())
    sizes = []
    for law in (Poisson("c", 1), few):
        cost = Quenched("c", mu, law=law)
        problem = ConvexProblem(data(cost[mu] * Max(0, 1 - u)) + features(w[i] ** 2) / 2)
        sizes.append(float(problem.cavity().solve({alpha: 2})[risk]))
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-9)
    signed = Quenched("c", mu, law=Normal("c", 1, 1))
    with pytest.raises(NotConvex, match="declare the factor's sign"):
        ConvexProblem(data(signed[mu] * Max(0, 1 - u)) + features(w[i] ** 2) / 2).cavity()

def test_weights_with_the_signs_of_a_teacher():
    """What holds a weight at zero is pulled back by the teacher: its square by quadrature over both, sign by sign."""
    v = Sum(x[mu, i] * t[i], (i, 1, N))
    problem = ConvexProblem(features(w[i] ** 2 / 2), [sign(v) * u >= 1, w[i] * sign(t[i]) >= 0])
    solution = problem.cavity().solve({alpha: 2, t: Normal("t", 0, 1)})
    size, answer = (float(solution[s]) for s in ("q_g", "S_g_2"))
    width, shift = np.sqrt(2 * size), 2 * answer

    def squared(pull):  # of the positive part of a Gaussian with mean -pull
        a = pull / width
        return width**2 * ((1 + a**2) * ndtr(-a) - a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi))

    grid = (np.arange(4000) + 0.5) * 0.002
    expected = np.sum(squared(shift * grid) * np.exp(-grid * grid / 2)) * 0.004 / np.sqrt(2 * np.pi)
    assert float(solution[average(problem["nu"][i] ** 2)]) == pytest.approx(expected, rel=1e-5)


def test_weights_with_the_signs_of_a_teacher_that_is_sparse():
    """Where the teacher is silent no sign is prescribed: the weight there is free, and nothing holds it."""
    v = Sum(x[mu, i] * t[i], (i, 1, N))
    problem = ConvexProblem(features(w[i] ** 2 / 2), [sign(v) * u >= 1, w[i] * sign(t[i]) >= 0])
    solution = problem.cavity().solve({alpha: 2, t: {0: "1/2", 1: "1/4", -1: "1/4"}})
    held = average(problem["nu"][i] ** 2)
    width, shift = (float(solution[s]) for s in ("q_g", "S_g_2"))
    a = 2 * shift / np.sqrt(2 * width)
    expected = width * ((1 + a**2) * ndtr(-a) - a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi))  # of half the weights
    assert float(solution[held]) == pytest.approx(expected, rel=1e-9)
