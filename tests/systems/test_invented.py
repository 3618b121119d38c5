"""Declarations that no file of ours holds, against computations that share nothing with the engine.

For a convex problem ``min sum_mu loss(u_mu) + sum_i penalty(w_i)`` with ``u = x w`` the state evolution is
written down by hand in terms of two proximal maps, and iterated on a plain grid; or the literature has the
number.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, lambertw
from scipy.stats import norm
from sympy import Abs, Eq, Max, Piecewise, Rational, Sum, Symbol, cosh, exp, log, pi, sign, sqrt

from symcavity import (
    BipartiteSystem,
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Global,
    N,
    P,
    Quenched,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.witness.effective import solution as solution_witness

x, w, xi, zeta = Coupling("x"), Feature("w"), Datum("xi"), Datum("zeta")
y, t, noise, g = Quenched("y", mu), Quenched("t", i), Quenched("noise", mu), Quenched("g", i)
C, R = Symbol("C", positive=True), Symbol("R", positive=True)
kappa = Symbol("kappa", positive=True)
u = Sum(x[mu, i] * w[i], (i, 1, N))
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2

Z = np.linspace(-9.5, 9.5, 12001)
DENSITY = np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])


def data(body):
    return Sum(body, (mu, 1, P))


def features(body):
    return Sum(body, (i, 1, N))


def gauss(values):
    """Average over a standard Gaussian on the grid."""
    return float(np.sum(values * DENSITY))


def state_evolution(load, penalty, loss, labels=((0.0, 1.0),), strengths=((1.0, 1.0),)):
    """Iterate the state evolution to its fixed point.

    ``penalty(field, curvature, strength)`` minimises ``penalty(w) + curvature*w**2/2 - field*w``;
    ``loss(centre, width, label)`` minimises ``loss(u) + (u - centre)**2/(2*width)``.  Responses are taken
    by Gaussian integration by parts, so that no derivative is needed.
    """
    q, width = 1.0, 1.0
    for _ in range(500):
        force = [(p, (loss(np.sqrt(q) * Z, width, label) - np.sqrt(q) * Z) / width) for label, p in labels]
        power = load * sum(p * gauss(f * f) for p, f in force)
        curvature = -load * sum(p * gauss(Z * f) for p, f in force) / np.sqrt(q)
        states = [(p, penalty(np.sqrt(power) * Z, curvature, s)) for s, p in strengths]
        new_q = sum(p * gauss(v * v) for p, v in states)
        new_width = sum(p * gauss(Z * v) for p, v in states) / np.sqrt(power)
        gap = abs(new_q / q - 1) + abs(new_width / width - 1)
        q, width = q + 0.5 * (new_q - q), width + 0.5 * (new_width - width)
        if gap < 1e-11:
            return {"q": q, "S": width, "force": power / load, "zeros": sum(p * gauss(v == 0) for p, v in states)}
    raise AssertionError("the iteration did not settle")


def soft(v, by):
    return np.sign(v) * np.maximum(np.abs(v) - by, 0)


def ridge_map(field, curvature, strength=1.0):
    return field / (strength + curvature)


def newton_map(slope, bend, monotone_from=0.0):
    """Return the proximal map of a smooth loss by safeguarded Newton steps."""

    def prox(centre, width, label):
        v = np.full_like(centre, monotone_from) + 0 * centre
        low, high = np.full_like(centre, -80.0), np.full_like(centre, 80.0)
        for _ in range(30):
            f = v - centre + width * slope(v, label)
            low, high = np.where(f < 0, v, low), np.where(f > 0, v, high)
            step = v - f / (1 + width * bend(v, label))
            before, v = v, np.where((step >= low) & (step <= high), step, (low + high) / 2)
            if np.max(np.abs(v - before)) < 1e-13:
                break
        return v

    return prox


def lasso_map(c, l2=0.0):
    return lambda field, curvature, _: soft(field, c) / (l2 + curvature)


def square_loss(centre, width, label):
    return (centre + width * label) / (1 + width)


def hinge(c):
    return lambda centre, width, _: np.where(centre < 1 - width * c, centre + width * c, np.maximum(centre, 1.0))


def insensitive(c, gap):
    def prox(centre, width, label):
        r = centre - label
        return label + np.where(np.abs(r) <= gap, r, np.sign(r) * np.maximum(gap, np.abs(r) - width * c))

    return prox


def huber(c):
    def prox(centre, width, label):
        r = centre - label
        return label + np.where(np.abs(r) <= 1 + width * c, r / (1 + width * c), r - np.sign(r) * width * c)

    return prox


def pinball(up, down):
    def prox(centre, width, label):
        r = label - centre
        return label - np.where(r > width * up, r - width * up, np.where(r < -width * down, r + width * down, 0.0))

    return prox


def exponential(centre, width, _):
    return centre + np.real(lambertw(width * np.exp(-centre)))


def three_slopes(centre, width, _):
    return np.select(
        [centre > 1, centre > 1 - width, centre > -1 - width, centre > -1 - 2 * width],
        [centre, 1.0, centre + width, -1.0],
        centre + 2 * width,
    )


def cubic_map(field, curvature, _):
    """Solve v**3 + curvature*v = field."""
    root = 2 * np.sqrt(curvature / 3)
    return root * np.sinh(np.arcsinh(3 * field / (curvature * root)) / 3)


def even_map(slope):
    """Minimise an even convex function of w, by its slope at w > 0 (at zero: by which it jumps), by bisection."""

    def prox(field, curvature, _):
        size = np.abs(field)
        low, high = np.zeros_like(size), size / curvature
        for _ in range(60):
            middle = (low + high) / 2
            over = slope(middle) + curvature * middle > size
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.where(size <= slope(0.0), 0.0, np.sign(field) * low)

    return prox


def even_loss(slope):
    prox = even_map(slope)
    return lambda centre, width, label: label + prox((centre - label) / width, 1 / width, None)


def exponential_hinge(centre, width, _):
    below = centre + np.real(lambertw(width * np.exp(np.minimum(1 - centre, 40))))
    return np.where(centre > 1, centre, np.minimum(below, 1.0))


HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
THIRD = {2: Rational(1, 3), -1: Rational(2, 3)}
PLUS_MINUS = ((1.0, 0.5), (-1.0, 0.5))
THIRDS = ((2.0, 1 / 3), (-1.0, 2 / 3))

CASES = {
    "lasso": (
        lambda: data((u - y[mu]) ** 2) / 2 + C * features(Abs(w[i])),
        [],
        {alpha: "4/5", C: "1/2", y: HALF},
        lambda: state_evolution(0.8, lasso_map(0.5), square_loss, PLUS_MINUS),
    ),
    "elastic net": (
        lambda: data((u - y[mu]) ** 2) / 2 + features(C * Abs(w[i]) + R * w[i] ** 2 / 2),
        [],
        {alpha: "3/2", C: "2/5", R: "3/10", y: THIRD},
        lambda: state_evolution(1.5, lasso_map(0.4, 0.3), square_loss, THIRDS),
    ),
    "epsilon-insensitive": (
        lambda: ridge + C * data(Max(0, Abs(u - y[mu]) - R)),
        [],
        {alpha: 2, C: "3/2", R: "1/4", y: THIRD},
        lambda: state_evolution(2.0, ridge_map, insensitive(1.5, 0.25), THIRDS),
    ),
    "squared hinge": (
        lambda: ridge + C * data(Max(0, 1 - u) ** 2),
        [],
        {alpha: 2, C: 1},
        lambda: state_evolution(2.0, ridge_map, lambda c, v, _: np.where(c > 1, c, (c + 2 * v) / (1 + 2 * v))),
    ),
    "huber": (
        lambda: (
            ridge
            + C * data(Piecewise(((u - y[mu]) ** 2 / 2, Abs(u - y[mu]) <= 1), (Abs(u - y[mu]) - Rational(1, 2), True)))
        ),
        [],
        {alpha: "3/2", C: 2, y: THIRD},
        lambda: state_evolution(1.5, ridge_map, huber(2.0), THIRDS),
    ),
    "pinball": (
        lambda: ridge + data(Max(2 * (y[mu] - u), (u - y[mu]) / 2)),
        [],
        {alpha: "1/2", y: THIRD},
        lambda: state_evolution(0.5, ridge_map, pinball(2.0, 0.5), THIRDS),
    ),
    "logistic": (
        lambda: ridge + C * data(log(1 + exp(-u))),
        [],
        {alpha: 2, C: 3},
        lambda: state_evolution(
            2.0, ridge_map, newton_map(lambda v, _: -3 * expit(-v), lambda v, _: 3 * expit(v) * expit(-v))
        ),
    ),
    "exponential": (
        lambda: ridge + data(exp(-u)),
        [],
        {alpha: "3/2"},
        lambda: state_evolution(1.5, ridge_map, exponential),
    ),
    "sparse support vectors": (
        lambda: C * features(Abs(w[i])) + R * ridge + data(Max(0, 1 - u)),
        [],
        {alpha: 2, C: "1/2", R: "1/5"},
        lambda: state_evolution(2.0, lasso_map(0.5, 0.2), hinge(1.0)),
    ),
    "bounded weights": (
        lambda: ridge + C * data(Max(0, 1 - u)),
        [Abs(w[i]) <= R],
        {alpha: 2, C: 1, R: "1/2"},
        lambda: state_evolution(2.0, lambda f, a, _: np.clip(f / (1 + a), -0.5, 0.5), hinge(1.0)),
    ),
    "nonnegative weights": (
        lambda: ridge + C * data(Max(0, 1 - u)),
        [w[i] >= 0],
        {alpha: 2, C: 1},
        lambda: state_evolution(2.0, lambda f, a, _: np.maximum(f, 0) / (1 + a), hinge(1.0)),
    ),
    "two kinds of features": (
        lambda: features(g[i] * w[i] ** 2) / 2 + C * data(Max(0, 1 - u)),
        [],
        {alpha: 2, C: 1, g: {1: "1/4", 5: "3/4"}},
        lambda: state_evolution(2.0, ridge_map, hinge(1.0), strengths=((1.0, 0.25), (5.0, 0.75))),
    ),
    "both sides of a band": (
        lambda: ridge,
        [u >= 1, u <= 2],
        {alpha: "2/5"},
        lambda: state_evolution(0.4, ridge_map, lambda c, _v, _: np.clip(c, 1.0, 2.0)),
    ),
    "quenched margins": (
        lambda: ridge,
        [u >= y[mu]],
        {alpha: "1/2", y: THIRD},
        lambda: state_evolution(0.5, ridge_map, lambda c, _v, m: np.maximum(c, m), THIRDS),
    ),
    "quartic penalty": (
        lambda: features(w[i] ** 4) / 4 + data(Max(0, 1 - u)),
        [],
        {alpha: 2},
        lambda: state_evolution(2.0, cubic_map, hinge(1.0)),
    ),
    "quartic loss": (
        lambda: ridge + data((u - y[mu]) ** 4),
        [],
        {alpha: 1, y: THIRD},
        lambda: state_evolution(
            1.0, ridge_map, newton_map(lambda v, m: 4 * (v - m) ** 3, lambda v, m: 12 * (v - m) ** 2), THIRDS
        ),
    ),
    "three slopes": (
        lambda: ridge + data(Max(0, 1 - u, -2 * u)),
        [],
        {alpha: 2},
        lambda: state_evolution(2.0, ridge_map, three_slopes),
    ),
    "Huber weights": (
        lambda: (
            data((u - y[mu]) ** 2) / 2
            + features(Piecewise((w[i] ** 2, Abs(w[i]) <= R), (2 * R * Abs(w[i]) - R**2, True)))
        ),
        [],
        {alpha: 1, R: "1/4", y: THIRD},
        lambda: state_evolution(1.0, even_map(lambda m: 2 * np.minimum(m, 0.25)), square_loss, THIRDS),
    ),
    "exponential weights": (
        lambda: data((u - y[mu]) ** 2) / 2 + features(exp(Abs(w[i]))),
        [],
        {alpha: 1, y: THIRD},
        lambda: state_evolution(1.0, even_map(np.exp), square_loss, THIRDS),
    ),
    "a zone without penalty": (
        lambda: data(Max(0, 1 - u) ** 2) / 2 + features(Max(0, Abs(w[i]) - R) ** 2),
        [],
        {alpha: 2, R: "1/4"},
        lambda: state_evolution(
            2.0,
            even_map(lambda m: 2 * np.maximum(0, m - 0.25)),
            lambda c, v, _: np.where(c > 1, c, (c + v) / (1 + v)),
        ),
    ),
    "cubic errors": (
        lambda: ridge + data(Abs(u - y[mu]) ** 3) / 3,
        [],
        {alpha: 1, y: THIRD},
        lambda: state_evolution(1.0, ridge_map, even_loss(lambda m: m * m), THIRDS),
    ),
    "exponential hinge": (
        lambda: ridge + data(exp(Max(0, 1 - u))),
        [],
        {alpha: 1},
        lambda: state_evolution(1.0, ridge_map, exponential_hinge),
    ),
    "two slacks": (
        lambda: ridge + C * data(xi[mu] + zeta[mu]),
        [u - y[mu] <= R + xi[mu], y[mu] - u <= R + zeta[mu], xi[mu] >= 0, zeta[mu] >= 0],
        {alpha: 2, C: "3/2", R: "1/4", y: THIRD},
        lambda: state_evolution(2.0, ridge_map, insensitive(1.5, 0.25), THIRDS),
    ),
    "equalities and signs": (
        lambda: ridge,
        [Eq(u, y[mu]), w[i] >= 0],
        {alpha: "3/10", y: THIRD},
        lambda: state_evolution(0.3, lambda f, a, _: np.maximum(f, 0) / (1 + a), lambda c, _v, m: m + 0 * c, THIRDS),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_against_state_evolution(name):
    objective, constraints, values, expected = CASES[name]
    problem = ConvexProblem(minimize=objective(), subject_to=constraints)
    solution = problem.cavity().solve(values)
    want = expected()
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(want["q"], rel=2e-6)
    assert float(solution[response(w)]) == pytest.approx(want["S"], rel=2e-6)
    zeros = 1 - float(solution[average(Abs(w[i]) > 0)])
    assert zeros == pytest.approx(want["zeros"], abs=2e-3)  # the grid resolves the edge to its spacing
    assert solution.residual < 1e-10


# -- two fields: a teacher, two kinds of inputs ---------------------------------------------------


def test_ridge_with_noisy_teacher_is_marchenko_pastur():
    """The error of ridge regression is a trace of the resolvent of a Wishart matrix, known in closed form."""
    taught = Sum(x[mu, i] * t[i], (i, 1, N))
    problem = ConvexProblem(minimize=data((u - taught - noise[mu]) ** 2) / 2 + C * ridge)
    law = {"1/2": "1/2", "-1/2": "1/2"}
    solution = problem.cavity().solve({alpha: 2, C: "1/2", t: HALF, noise: law}, dps=30)
    c = Symbol("c", positive=True)
    trace = (sqrt((c + 1) ** 2 + 4 * c) - c - 1) / (2 * c)  # of 1/(c + x'x) at load 2, where c v^2 + (c+1) v = 1
    slope = trace.diff(c)
    error = c**2 * -slope + (trace + c * slope) / 4
    want = error.subs(c, Rational(1, 2)).evalf(30)
    assert abs(solution[average((w[i] - t[i]) ** 2)] - want) < 1e-28
    assert abs(solution[response(w)] - trace.subs(c, Rational(1, 2)).evalf(30)) < 1e-28
    together = ConvexProblem(minimize=data((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - noise[mu]) ** 2) / 2 + C * ridge)
    same = together.cavity().solve({alpha: 2, C: "1/2", t: HALF, noise: law}, dps=30)
    assert abs(same[average((w[i] - t[i]) ** 2)] - want) < 1e-28


def taught_state(load, loss):
    """State evolution of a ridge student whose labels are the signs of a teacher's field."""
    from scipy.special import ndtr

    q, overlap, width = 1.0, 0.5, 1.0
    for _ in range(500):
        centre = np.sqrt(q) * Z
        force = (loss(centre, width, None) - centre) / width
        mean, spread = overlap * centre / q, np.sqrt(1 - overlap**2 / q)
        above = ndtr(mean / spread)
        size = mean * above + spread * np.exp(-((mean / spread) ** 2) / 2) / np.sqrt(2 * np.pi)
        power = load * 2 * gauss(force**2 * above)
        along, across = 2 * gauss(force * size), 2 * gauss(force * centre * above)
        inverse = np.linalg.solve([[1.0, overlap], [overlap, q]], [along, across])
        signal, curvature = load * inverse[0], -load * inverse[1]
        new = (power + signal**2) / (1 + curvature) ** 2, signal / (1 + curvature), 1 / (1 + curvature)
        gap = max(abs(a - b) for a, b in zip(new, (q, overlap, width), strict=True))
        q, overlap, width = (b + 0.5 * (a - b) for a, b in zip(new, (q, overlap, width), strict=True))
        if gap < 1e-11:
            return q, overlap, width
    raise AssertionError("the iteration did not settle")


def test_student_of_a_sign_teacher():
    label = sign(Sum(x[mu, i] * t[i], (i, 1, N)))
    problem = ConvexProblem(minimize=ridge, subject_to=[label * u >= 1])
    solution = problem.cavity().solve({alpha: 2, t: HALF})
    got = [float(solution[o]) for o in (average(w[i] ** 2), average(w[i] * t[i]), response(w))]
    assert got == pytest.approx(taught_state(2.0, lambda c, _v, _: np.maximum(c, 1.0)), rel=3e-6)


def test_two_kinds_of_inputs_share_one_margin():
    z, v = Coupling("z"), Feature("v")
    problem = ConvexProblem(
        minimize=ridge + 2 * features(v[i] ** 2), subject_to=[u + Sum(z[mu, i] * v[i], (i, 1, N)) >= 1]
    )
    solution = problem.cavity().solve({alpha: "1/2"})
    # features of both kinds in one list: half of them four times as stiff, at half the load and twice the variance
    want = state_evolution(
        0.25,
        lambda f, a, s: np.sqrt(2) * np.sqrt(2) * f / (s + 2 * a),
        lambda c, _v, _: np.maximum(c, 1.0),
        strengths=((1.0, 0.5), (4.0, 0.5)),
    )
    total = solution[average(w[i] ** 2)] + solution[average(v[i] ** 2)]
    assert float(total) == pytest.approx(want["q"], rel=3e-6)


def test_bias_of_a_soft_margin():
    """The bias by hand: the mean pull of the data vanishes."""
    from symcavity import Global

    b = Global("b")
    problem = ConvexProblem(minimize=ridge + C * data(Max(0, 1 - y[mu] * (u + b))))
    solution = problem.cavity().solve({alpha: 2, C: 1, y: {1: "4/5", -1: "1/5"}})
    q, width = float(solution[average(w[i] ** 2)]), float(solution[response(w)])

    def pull(bias):
        total = 0.0
        for label, p in ((1.0, 0.8), (-1.0, 0.2)):
            centre = np.sqrt(q) * Z + label * bias
            total += p * label * gauss(hinge(1.0)(centre, width, None) - centre)
        return total

    assert float(solution[b]) == pytest.approx(brentq(pull, -3, 3), rel=3e-6)


# -- numbers from the literature ------------------------------------------------------------------


def test_capacity_with_signs_is_half_of_covers():
    problem = ConvexProblem(
        minimize=ridge, subject_to=[u >= 1, w[i] >= 0], fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)]
    )
    assert problem.cavity().solve({kappa: 0}, dps=30)[alpha] == 1  # Amit, Wong and Campbell, 1989


def test_norm_fixed_through_the_mean_modulus():
    """For Gaussian weights the mean modulus fixes the norm, so the capacity is the one at that margin."""
    problem = ConvexProblem(minimize=ridge, subject_to=[u >= 1], fixed=[Eq(average(Abs(w[i])), 1 / kappa)])
    usual = ConvexProblem(minimize=ridge, subject_to=[u >= 1], fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)])
    modulus = problem.cavity().solve({kappa: Rational(1, 2)}, dps=30)[alpha]
    assert abs(modulus - usual.cavity().solve({kappa: sqrt(2 / pi) / 2}, dps=30)[alpha]) < 1e-28


def test_exact_interpolation():
    """With equalities alone everything is rational."""
    problem = ConvexProblem(minimize=ridge, subject_to=[Eq(u, y[mu])])
    solution = problem.cavity().solve({alpha: "3/4", y: HALF}, dps=40)
    assert solution[average(w[i] ** 2)] == 3
    assert solution[response(w)] == Rational(1, 4)


def test_lasso_in_an_anisotropic_design():
    """Averages over the two sides nest here after elimination."""
    l = Quenched("l", i)
    field = Sum(Coupling("x", variance=l[i] / N)[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(minimize=data((field - y[mu]) ** 2) / 2 + C * features(Abs(w[i])))
    solution = problem.cavity().solve({alpha: "4/5", C: "1/2", y: HALF, l: {"1/5": "1/2", "9/5": "1/2"}})
    # in the variables sqrt(l) w the design is isotropic, and the penalty is C/sqrt(l)
    want = state_evolution(
        0.8, lambda f, a, s: soft(f, 0.5 / np.sqrt(s)) / a, square_loss, PLUS_MINUS, ((0.2, 0.5), (1.8, 0.5))
    )
    assert float(solution[average(l[i] * w[i] ** 2)]) == pytest.approx(want["q"], rel=3e-6)


def test_instances_see_kinks_inside_of_convex_functions():
    """Multipliers of both signs of a weight at rest, and all states, in instances too."""
    problem = ConvexProblem(minimize=data(Max(0, 1 - u) ** 2) / 2 + features(exp(Abs(w[i]))))
    theory = problem.cavity()
    comparison = theory.compare(problem.simulate({alpha: 1}, N=[40, 80], seeds=20))
    assert comparison.agrees(4), comparison
    assert len(comparison) > 6


def test_a_variance_that_is_a_sum_of_products():
    """Noise of the features and of the data add up in the couplings: each weighs an order parameter of its own."""
    l, s = Quenched("l", i), Quenched("s", mu)
    z = Coupling("z", variance=(l[i] + s[mu]) / N)
    u = Sum(z[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum((1 - u) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)
    half = Rational(1, 2)
    values = {alpha: 2, l: {1: half, 2: half}, s: {1: half, 3: half}}
    theory = problem.cavity()
    assert theory.compare(problem.simulate(values, N=100, seeds=10)).agrees(4)
    assert "0 FAILED, 0 unchecked" in str(theory.derivation.verify())
    with pytest.raises(DeclarationError, match="does not factorize"):
        Coupling("z", variance=1 / (1 + l[i] * s[mu]) / N)


def test_competitors_whose_growth_bends_have_one_of_two_roots():
    """Abundances that limit themselves quadratically: ``y + y**2`` is one-to-one for ``y >= 0`` alone."""
    m, g, y, k = Symbol("m", real=True), Symbol("g", positive=True), Variable("y", i), Quenched("k", i)
    J, j = Coupling("J", between=(i, i), mean=-m / N, variance=g**2 / N, reciprocity=Rational(1, 2)), Symbol("j")
    theory = System([], [Complementary(y[i], y[i] ** 2 + y[i] - k[i] + Sum(J[i, j] * y[j], (j, 1, N)))]).cavity()
    assert "_y_- < 0" in str(theory)  # the average is over one root
    assert not theory.derivation.verify().failed
    spread, pull, q, mean, answer = 0.5, 0.5, 0.5, 0.7, -0.4
    for _ in range(400):
        rate, total, square, slope = 1 + spread**2 / 2 * answer, 0.0, 0.0, 0.0
        for growth in (0.5, 2.0):
            room = growth + pull * mean - spread * np.sqrt(q) * Z
            state = np.where(room > 0, (np.sqrt(rate**2 + 4 * np.maximum(room, 0)) - rate) / 2, 0.0)
            total += np.sum(state * DENSITY) / 2
            square += np.sum(state**2 * DENSITY) / 2
            slope -= np.sum((state > 0) / (2 * state + rate) * DENSITY) / 2
        mean, q, answer = (mean + total) / 2, (q + square) / 2, (answer + slope) / 2
    solution = theory.solve({m: pull, g: spread, k: {0.5: Rational(1, 2), 2: Rational(1, 2)}})
    assert float(solution[average(y[i])]) == pytest.approx(mean, rel=1e-3)
    assert float(solution[average(y[i] ** 2)]) == pytest.approx(q, rel=1e-3)


def test_a_witness_reads_a_condition_on_a_mean():
    """Units that divide what they hear by the size of the whole population: ``q = 1 + g**2``."""
    g, Z_, h, k = Symbol("g", positive=True), Global("Z"), Variable("h", i), Quenched("k", i)
    J, j = Coupling("J", between=(i, i), variance=g**2 / N), Symbol("j", integer=True)
    mean = Eq(Sum(h[i] ** 2, (i, 1, N)) / N, Z_**2)
    theory = System([Eq(h[i], k[i] + Sum(J[i, j] * h[j], (j, 1, N)) / Z_)], conditions=[mean]).cavity()
    verdicts = theory.derivation.verify()
    assert not verdicts.failed
    assert not verdicts.unchecked
    solution = theory.solve({g: Rational(1, 2), k: {1: Rational(1, 2), -1: Rational(1, 2)}})
    assert abs(solution[average(h[i] ** 2)] - Rational(5, 4)) < 1e-14


def test_a_unit_that_is_silent_is_no_kink():
    """Depressed synapses: the slope of ``u r`` passes through zero where a unit is silent, and does not jump there."""
    rate, supply, j = Variable("r", i), Variable("u", i), Symbol("j", integer=True)
    J = Coupling("J", between=(i, i), mean=-1 / N, variance=1 / (4 * N))
    drive = Sum(J[i, j] * supply[j] * rate[j], (j, 1, N)) + 1
    system = System([Eq(rate[i], Max(0, drive)), Eq(supply[i], 1 / (1 + rate[i] / 2))])
    sim = system.simulate({}, N=200, seeds=[6, 7])
    assert min(np.min(s["r"]) for s in sim) == 0
    (row,) = system.cavity().compare(sim, [average(response(rate[i]))])
    assert row.simulation.mean == pytest.approx(row.theory, abs=0.02)


def test_a_law_with_a_pole_is_solved_on_one_side_of_it():
    """Consumers that saturate: the law of a resource has a root beyond the pole; the record says which it means."""
    m, g, b = Symbol("m", real=True), Symbol("g", positive=True), Symbol("b", positive=True)
    n, R = Feature("n"), Datum("R")
    eats = Coupling("c", mean=m / N, variance=g**2 / N)
    eaten = R[mu] - b + Sum(eats[mu, i] * n[i], (i, 1, N))
    grown = C - Sum(eats[mu, i] * R[mu] / (1 + R[mu]), (mu, 1, P))
    theory = BipartiteSystem([], [Complementary(n[i], grown), Complementary(R[mu], eaten)]).cavity()
    step = next(s for s in theory.derivation if s.key == "datum.solution")
    assert [str(domain) for domain in step.data["domains"]] == ["_u < -M_n*m + b"]
    assert all(v.ok for v in solution_witness(step, 50))
    anywhere = replace(step, data={**step.data, "domains": []})  # the claim for all roots is wrong
    assert not all(v.ok for v in solution_witness(anywhere, 50))
    values = {m: 1, g: 1, C: Rational(1, 2), b: 2, alpha: 2}
    sim = theory.system.simulate(values, N=100, seeds=8)
    rows = theory.compare(sim, [average(R[mu]), average(R[mu] ** 2), average(n[i])])
    assert all(abs(row.z) < 3.5 for row in rows)


@pytest.mark.parametrize("load", [1, 5, 8])
def test_messages_and_states_that_undo_each_other_settle(load):
    """Least absolute deviations with a penalty that grows fast: the plain map turns back and forth for ever."""
    growing = Sum(cosh(w[i]) + Abs(w[i]), (i, 1, N))
    solution = ConvexProblem(minimize=growing + Sum(Abs(u - 1), (mu, 1, P))).cavity().solve({alpha: load})
    q, answer = 0.3, 0.25
    for _ in range(400):
        gap = 1 - np.sqrt(q) * Z
        square = np.sum(np.clip(gap / answer, -1, 1) ** 2 * DENSITY)
        slope = (norm.cdf((1 + answer) / np.sqrt(q)) - norm.cdf((1 - answer) / np.sqrt(q))) / answer
        field, state = np.sqrt(load * square) * Z, np.zeros_like(Z)
        beyond = np.maximum(np.abs(field) - 1, 0)
        for _ in range(30):  # sinh is convex there: Newton's steps from above
            state -= (np.sinh(state) + load * slope * state - beyond) / (np.cosh(state) + load * slope)
        response = np.sum((beyond > 0) / (np.cosh(state) + load * slope) * DENSITY)
        q, answer = (q + np.sum(state**2 * DENSITY)) / 2, (answer + response) / 2
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=2e-3)


def test_a_sum_may_be_divided_by_what_differs_from_site_to_site():
    """A resolvent with a random diagonal: the equation solved for its state, and not."""
    z, g = Symbol("z", positive=True), Symbol("g", positive=True)
    J, v = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=1), Variable("v", i)
    c, s = Quenched("c", i), Quenched("s", i, positive=True)
    j = Symbol("j")
    heard = c[i] + Sum(J[i, j] * v[j], (j, 1, N))
    values = {g: 1, z: 5, c: {1: "1/2", -1: "1/2"}, s: {1: "1/2", 2: "1/2"}}
    found = [
        float(System([law]).cavity().solve(values)[average(v[i] ** 2)])
        for law in (Eq(v[i], heard / (z - s[i])), Eq((z - s[i]) * v[i], heard))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    sim = System([Eq(v[i], heard / (z - s[i]))]).simulate(values, N=200, seeds=6)
    assert abs(sim[average(v[i] ** 2)].mean - found[0]) < 4 * sim[average(v[i] ** 2)].stderr
