"""Losses and penalties as newcomers spell them, against a fixed point that is written down by hand."""

import numpy as np
import pytest
from references import by_hand
from scipy.special import log_ndtr, ndtr
from sympy import Abs, Eq, KroneckerDelta, Max, Min, Piecewise, Rational, Sum, Symbol, erfc, exp, log, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    phi,
    response,
)

half = Rational(1, 2)
x, w = Coupling("x"), Feature("w")
gamma, delta = Symbol("gamma", positive=True), Symbol("delta", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
y = Quenched("y", mu, law={1: half, -1: half})
signs = Quenched("s", i, positive=True)


def smoothed(m, width):
    return np.where(m > 1, 0, np.where(m > 1 - width, (1 - m) ** 2 / (2 * width), 1 - m - width / 2))


LOSSES = {
    "a ratio beside a line, as in distance weighted discrimination": (
        lambda m: Piecewise((1 / m, m > 1), (2 - m, True)),
        lambda m: np.where(m > 1, 1 / np.maximum(m, 1), 2 - m),
    ),
    "a difference of squared hinges": (
        lambda m: (Max(0, 1 - m) ** 2 - Max(0, 1 - delta - m) ** 2) / (2 * delta),
        lambda m: smoothed(m, 0.5),
    ),
    "a hinge that is round, by cases": (
        lambda m: Piecewise((0, m > 1), ((1 - m) ** 2 / (2 * delta), m > 1 - delta), (1 - m - delta / 2, True)),
        lambda m: smoothed(m, 0.5),
    ),
    "a logarithm beside a line": (
        lambda m: Piecewise((log(1 + exp(-m)), m > 0), (log(2) - m / 2, True)),
        lambda m: np.where(m > 0, np.log1p(np.exp(-np.abs(m))), np.log(2) - m / 2),
    ),
    "a hinge to a power between one and two": (
        lambda m: Max(0, 1 - m) ** Rational(3, 2),
        lambda m: np.maximum(0, 1 - m) ** 1.5,
    ),
    "a hinge to a power between two and three": (
        lambda m: Max(0, 1 - m) ** Rational(5, 2),
        lambda m: np.maximum(0, 1 - m) ** 2.5,
    ),
    "a modulus to a power between one and two": (
        lambda m: Abs(2 - m) ** Rational(4, 3),
        lambda m: np.abs(2 - m) ** (4 / 3),
    ),
    "powers with two ends": (
        lambda m: Max(0, 1 - m) ** Rational(3, 2) + Max(0, m + 1) ** Rational(5, 2),
        lambda m: np.maximum(0, 1 - m) ** 1.5 + np.maximum(0, m + 1) ** 2.5,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [1, y[mu]], ids=["absorbed", "labels"])
def test_a_loss_with_labels_and_without(name, label):
    loss, code = LOSSES[name]
    problem = ConvexProblem(Sum(loss(label * h), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 2, gamma: 1} | ({delta: half} if problem.minimize.has(delta) else {})
    solution = problem.cavity().solve(values)
    q, S = by_hand(code, 2, 1)
    assert abs(float(solution[average(w[i] ** 2)]) - q) < 2e-6
    assert abs(float(solution[response(w)]) - S) < 2e-6


def test_gaussian_labels_of_a_hinge_beside_a_field_that_is_known():
    """Averages over labels near zero diverge one by one, with the average of another kind of sites as a factor."""
    t, v, z = Quenched("t", i), Quenched("v", mu), Coupling("z")
    whole = h + Sum(z[mu, i] * t[i], (i, 1, N))
    hinge = ConvexProblem(Sum(Max(0, 1 - v[mu] * whole), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: Rational(3, 10), gamma: half, v: Normal("v", 0, 1), t: {0: half, 1: half}}
    solution = hinge.cavity().solve(values)
    label, share = (4.5 * a for a in np.polynomial.legendre.leggauss(300))
    label, share = label + 4.5, 2 * share * np.exp(-((label + 4.5) ** 2) / 2) / np.sqrt(2 * np.pi)
    nodes, weight = np.polynomial.legendre.leggauss(60)
    q, S = 0.2, 1.5
    for _ in range(60):  # a message is one below the first of two places, and zero beyond the second
        size, ends = np.sqrt(q + 0.5), (1 / label - S * label, 1 / label)
        field = ends[1][:, None] - S * label[:, None] * (1 + nodes) / 2
        between = (ends[1][:, None] - field) ** 2 * np.exp(-(field**2) / 2 / size**2) / np.sqrt(2 * np.pi) / size
        square = label**2 * ndtr(ends[0] / size) + (between @ weight) * label / 2 / S
        slope = -share @ (ndtr(ends[1] / size) - ndtr(ends[0] / size)) / S
        S = 1 / (0.5 - 0.3 * slope)
        q = 0.3 * S * S * (share @ square)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-6)
    assert float(solution[average(response(w[i]))]) == pytest.approx(S, rel=1e-6)


@pytest.mark.parametrize("count", [3, 20])
def test_a_loss_of_many_pieces(count):
    """Hinges at equally spaced thresholds: each is bent or not, and all but a few choices contradict each other."""
    places = [Rational(k, count) for k in range(1, count + 1)]
    loss = sum(Max(0, place - h) for place in places) / count
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    solution = problem.cavity().solve({alpha: 2})
    ends = np.array(places, dtype=float)[:, None]
    q, S = by_hand(lambda m: np.maximum(0, ends - m).mean(axis=0), 2, 1)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-4)
    assert float(solution[average(response(w[i]))]) == pytest.approx(S, rel=1e-4)


def test_a_power_of_a_kink_has_its_digits_its_checks_and_its_instances():
    hinge = Sum(Max(0, 1 - h) ** Rational(3, 2), (mu, 1, P))
    problem = ConvexProblem(hinge + Sum(w[i] ** 2 / 2 + Abs(w[i]) ** Rational(3, 2), (i, 1, N)))
    theory = problem.cavity()
    assert theory.solve({alpha: 2}, dps=25).residual < 1e-24
    assert "0 FAILED" in str(theory.derivation.verify())
    assert theory.compare(problem.simulate({alpha: 2}, N=80, seeds=6)).worst < 4


def test_a_smooth_and_a_kinked_state_of_one_field():
    """Conditions of a branch that are not linear in its unknown, and a slope that vanishes at one place only."""
    v = Feature("v")
    field = Sum(x[mu, i] * (w[i] - v[i]), (i, 1, N))
    smooth, kinked = sqrt(1 + w[i] ** 2), Max(0, Abs(v[i]) - 1) ** 2
    problem = ConvexProblem(Sum(smooth + kinked, (i, 1, N)) + Sum(sqrt(1 + (1 - field) ** 2), (mu, 1, P)))
    simulation = problem.simulate({alpha: 2}, N=120, seeds=8)
    table = problem.cavity().compare(simulation, [average((w[i] - v[i]) ** 2), average(v[i] ** 2)])
    assert table.worst < 4, str(table)


fit, size = Sum((1 - h) ** 2, (mu, 1, P)), Sum(w[i] ** 2, (i, 1, N))
MEANS = {
    "each sum over N": fit / (2 * N) + gamma * size / (2 * N),
    "all of it over N": (fit + gamma * size) / (2 * N),
    "inside of the sums": Sum((1 - h) ** 2 / (2 * N), (mu, 1, P)) + Sum(gamma * w[i] ** 2 / N, (i, 1, N)) / 2,
    "over P": fit / (2 * P) + gamma * size / (2 * P),
    "each over its own number, with a load in front": alpha * fit / (2 * P) + gamma * size / (2 * N),
}


@pytest.mark.parametrize("spelling", MEANS)
def test_an_objective_that_is_a_mean_over_sites(spelling):
    theory = ConvexProblem(MEANS[spelling]).cavity()
    sums = ConvexProblem(fit / 2 + gamma * size / 2).cavity()
    here, there = (t.solve({alpha: 2, gamma: half})[average(w[i] ** 2)] for t in (theory, sums))
    assert abs(here - there) < 1e-12
    assert all(v.ok for v in theory.derivation["lagrangian"].verdicts(20))
    assert "N times the objective" in theory.derivation.to_text()


def test_an_objective_of_norms_alone_is_of_order_one():
    norms = [sqrt(fit / N), gamma * sqrt(size / N)]
    one, many = ConvexProblem(sum(norms)), ConvexProblem(N * sum(norms))
    values = {alpha: 2, gamma: half}
    here, there = (p.cavity().solve(values)[average(w[i] ** 2)] for p in (one, many))
    assert abs(here - there) < 1e-12


def test_factors_that_cannot_vanish_stay_so_while_more_is_eliminated():
    """A norm that is positive keeps ``1 + S_lambda S_w`` from vanishing: its branch of interpolation is no solution."""
    theory = ConvexProblem(sqrt(fit / N) + gamma * sqrt(size / N)).cavity()
    solution = theory.solve({alpha: Rational(2, 5), gamma: Rational(37, 50)})
    claims = [c for step in theory.derivation.steps if step.rule == "elimination" for c in step.claims]
    assert claims
    for claim in claims:
        assert float(solution[claim.lhs]) == pytest.approx(float(solution[claim.rhs]), rel=1e-10)


def test_terms_of_different_orders_are_named_where_sizes_are_missing():
    for objective in (fit / P + gamma * size, fit + gamma * size / N, fit / N + average(w[i] ** 2) * N):
        with pytest.raises(DeclarationError, match="of different orders in the number of sites"):
            ConvexProblem(objective)
    for objective in (fit / P + gamma * size / P, fit + average(w[i] ** 2) * N, N * (fit / P + gamma * size / N)):
        ConvexProblem(objective)


# -- cases that a label or a teacher's field decides --------------------------------------------------

t, e = Quenched("t", i), Quenched("e", mu)
target = Sum(x[mu, i] * t[i], (i, 1, N)) + e[mu]
CENSORED = {
    "another weight": (h**2 / 4, lambda eta, S: -eta / 2 / (1 + S / 2)),
    "one-sided": (Max(0, h) ** 2 / 2, lambda eta, S: np.where(eta > 0, -eta / (1 + S), 0)),
}


def censored_by_hand(below, load, penalty):
    """The square of a weight: targets u + e with e = 1/2 or -1/2, seen where they are positive; t = 1."""
    z = (np.arange(1600) + 0.5) / 100 - 8  # noise of a half lies between two of them
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    u, rest = z[:, None], z[None, :]
    q, m, S = 0.5, 0.3, 0.5
    for _ in range(300):
        eta = m * u + np.sqrt(q - m * m) * rest
        sums = np.zeros(3)
        for noise in (0.5, -0.5):
            message = np.where(u + noise > 0, (u + noise - eta) / (1 + S), below(eta, S))
            weight = density[:, None] * density[None, :] / 2
            sums += [np.sum(weight * message * v) for v in (u, rest, message)]
        slope = sums[1] / np.sqrt(q - m * m)
        pull = sums[0] - slope * m
        S_next = 1 / (penalty - load * slope)
        m_next, q_next = S_next * load * pull, S_next**2 * (load * sums[2] + (load * pull) ** 2)
        done = abs(q_next - q) + abs(m_next - m) < 1e-11
        q, m, S = q_next, m_next, S_next
        if done:
            break
    return q, m


@pytest.mark.parametrize("name", CENSORED)
def test_a_loss_by_cases_of_the_target(name):
    below, code = CENSORED[name]
    loss = Piecewise(((target - h) ** 2 / 2, target > 0), (below, True))
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * size / 2)
    solution = problem.cavity().solve({alpha: 2, gamma: 1, t: {1: 1}, e: {half: half, -half: half}})
    q, m = censored_by_hand(code, 2, 1)
    assert abs(float(solution[average(w[i] ** 2)]) - q) < 2e-5 * q
    assert abs(float(solution[average(w[i] * t[i])]) - m) < 2e-5 * m


def test_a_loss_by_cases_of_a_label():
    k = Quenched("k", mu, law={0: half, 1: half / 2, 3: half / 2})
    cases = Piecewise((log(1 + exp(-h)), Eq(k[mu], 0)), ((1 - h) ** 2, k[mu] < 2), (exp(h), True))
    chosen = [log(1 + exp(-h)), (1 - h) ** 2, exp(h)]
    summed = sum(KroneckerDelta(k[mu], value) * loss for value, loss in zip((0, 1, 3), chosen, strict=True))
    values = {alpha: 2, gamma: 1}
    here, there = (
        ConvexProblem(Sum(body, (mu, 1, P)) + gamma * size / 2).cavity().solve(values)[average(w[i] ** 2)]
        for body in (cases, summed)
    )
    assert abs(here - there) < 1e-9


@pytest.mark.parametrize("nested", [False, True])
def test_cases_within_cases_and_a_maximum_of_what_is_bent(nested):
    """By hand; targets that are told apart by cases, each with its own, are one loss, reflected."""

    def bent(r):
        inside = Piecewise((r**2 / 2, Abs(r) < half), (Abs(r) / 2 - half**3, True))
        return inside if nested else Max(Abs(r), r**2)

    def numbers(r):
        return np.where(abs(r) < 0.5, r**2 / 2, abs(r) / 2 - 0.125) if nested else np.maximum(abs(r), r**2)

    loss = Piecewise((bent(h - 1), Eq(y[mu], 1)), (bent(h + 1), True)) if nested else bent(h - 1)
    solution = ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4).cavity().solve({alpha: 2})
    q, S = by_hand(lambda v: numbers(v - 1), 2, 0.5)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=2e-4)
    assert float(solution[response(w)]) == pytest.approx(S, rel=2e-4)


def test_a_mask_of_a_loss_with_a_kink():
    """What is masked leaves fewer data; in instances, too."""
    mask = Quenched("m", mu, law={1: Rational(3, 4), 0: Rational(1, 4)})
    masked = ConvexProblem(Sum(mask[mu] * Max(0, 1 - h), (mu, 1, P)) + gamma * size / 2)
    plain = ConvexProblem(Sum(Max(0, 1 - h), (mu, 1, P)) + gamma * size / 2)
    here = masked.cavity().solve({alpha: 2, gamma: 1})[average(w[i] ** 2)]
    there = plain.cavity().solve({alpha: 2 * Rational(3, 4), gamma: 1})[average(w[i] ** 2)]
    assert abs(here - there) < 1e-12


MEETING = {
    "a bound beside a kink": (lambda w: gamma * Abs(w), [w[i] >= 0, 3 * w[i] >= 0], gamma * w[i], [w[i] >= 0]),
    "a kink at the end of a box": (
        lambda w: gamma * (Abs(w) + Abs(w - 1)),
        [w[i] <= 1],
        gamma * (Abs(w[i]) - w[i]),
        [w[i] <= 1],
    ),
    "three lines through one point": (lambda w: gamma * Max(w, -w, 2 * w), [], gamma * Max(-w[i], 2 * w[i]), []),
    "a bound on data, twice": (lambda w: gamma * w**2, [h >= -half, 2 * h >= -1], gamma * w[i] ** 2, [h >= -half]),
    "signs that are given": (
        lambda w: gamma * Abs(w),
        [signs[i] * w[i] >= 0],
        gamma * signs[i] * w[i] / signs[i],
        [w[i] >= 0],
    ),
}


@pytest.mark.parametrize("name", MEETING)
def test_constraints_that_meet_at_one_place(name):
    """Their multipliers are not unique, the states are: as in the other spelling, where they do not meet."""
    penalty, bounds, other, fewer = MEETING[name]
    losses = Sum((h - target) ** 2, (mu, 1, P)) / 2
    values = {alpha: 2, gamma: half, t: {1: half, -1: half}, e: {1: half, -1: half}}
    one = ConvexProblem(losses + Sum(penalty(w[i]), (i, 1, N)), bounds)
    two = ConvexProblem(losses + Sum(other, (i, 1, N)), fewer)
    given = {signs: {1: half, 2: half}} if one.minimize.has(signs) or name.startswith("signs") else {}
    theory = one.cavity()
    here, there = theory.solve(values | given), two.cavity().solve(values)
    for observable in (average(w[i] ** 2), average(Abs(w[i]) > 0), response(w)):
        assert abs(here[observable] - there[observable]) < 1e-10
    assert all(v.ok for v in theory.derivation["feature.solution"].verdicts(20))
    assert all(v.ok for v in theory.derivation["datum.solution"].verdicts(20))


def test_a_multiplier_that_is_not_unique_has_no_average():
    theory = ConvexProblem(fit / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)), [Min(w[i], 2 * w[i]) >= 0]).cavity()
    solution = theory.solve({alpha: 2, gamma: half})
    with pytest.raises(UnsupportedLaw, match="not unique"):
        solution[average(Feature("nu")[i])]


PROBITS = [
    lambda m: -log(erfc(-m / sqrt(2)) / 2),
    lambda m: -log(1 - erfc(m / sqrt(2)) / 2),
    lambda m: -log(1 - phi(0, -m)),
    lambda m: -log(phi(0, m)),
]


@pytest.mark.parametrize("probit", PROBITS)
def test_a_probit_however_its_tail_is_written(probit):
    theory = ConvexProblem(Sum(probit(y[mu] * h), (mu, 1, P)) + gamma * size / 2).cavity()
    q, S = by_hand(lambda m: -log_ndtr(m), 2, 1)
    solution = theory.solve({alpha: 2, gamma: 1})
    assert abs(float(solution[average(w[i] ** 2)]) - q) < 2e-6
    assert abs(float(solution[response(w)]) - S) < 2e-6


def test_a_loss_that_hears_what_a_label_is_drawn_on():
    """Half a teacher's probabilities, half its labels: the sum of the two losses, against direct minimisation."""
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    drawn = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    soft = log(1 + exp(h)) - h / (1 + exp(-u))
    problem = ConvexProblem(Sum(soft + log(1 + exp(-drawn[mu] * h)), (mu, 1, P)) + gamma * size / 2)
    theory = problem.cavity()
    solution = theory.solve({alpha: 2, gamma: 1, t: {1: 1}})
    rng, found = np.random.default_rng(5), []
    for _ in range(6):
        X = rng.normal(size=(800, 400)) / 20
        p = 1 / (1 + np.exp(-X.sum(axis=1)))
        y_ = np.where(rng.random(800) < p, 1, -1)
        v = np.zeros(400)
        for _ in range(12):  # Newton's method
            f = X @ v
            s = 1 / (1 + np.exp(-f))
            slope = X.T @ (s - p - y_ / (1 + np.exp(y_ * f))) + v
            v -= np.linalg.solve((X.T * (2 * s * (1 - s))) @ X + np.eye(400), slope)
        found.append([np.mean(v * v), np.mean(v)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(6)
    for k, observable in enumerate((average(w[i] ** 2), average(t[i] * w[i]))):
        assert abs(float(solution[observable]) - mean[k]) < 4 * error[k]
        assert error[k] < 0.02
    for key in ("lagrangian", "stationarity.w", "sources"):
        assert all(verdict.ok for verdict in theory.derivation[key].verdicts(20)), key


def test_a_penalty_whose_sign_a_shared_parameter_decides():
    """Dropout: p/(1 - p) is positive for p < 1; nothing is said of the signs of a teacher."""
    p = Symbol("p", positive=True)
    losses = Sum((h - target) ** 2, (mu, 1, P)) / 2
    dropped = ConvexProblem(losses + p / (1 - p) * alpha * size / 2 + gamma * size / 2)
    ridge = ConvexProblem(losses + gamma * size / 2)
    values = {alpha: 2, t: {1: half, -1: half}, e: {half: half, -half: half}}
    here = dropped.cavity().solve({**values, gamma: half, p: Rational(1, 3)})[average(w[i] ** 2)]
    there = ridge.cavity().solve({**values, gamma: Rational(3, 2)})[average(w[i] ** 2)]
    assert abs(here - there) < 1e-12


def test_a_mask_beside_clusters():
    """Branches that meet where the mask is zero, and not otherwise."""
    mask, m = Quenched("l", mu, law={1: Rational(1, 4), 0: Rational(3, 4)}), Quenched("m", i)
    z = Coupling("z", mean=y[mu] * m[i] / N)
    hinge = Max(0, 1 - y[mu] * Sum(z[mu, i] * w[i], (i, 1, N)))
    masked, plain = (
        ConvexProblem(Sum(factor * hinge, (mu, 1, P)) + gamma * size / 2).cavity() for factor in (mask[mu], 1)
    )
    values = {gamma: 1, m: {1: half, 2: half}}
    here, there = masked.solve({**values, alpha: 4}), plain.solve({**values, alpha: 1})
    assert abs(here[average(w[i] ** 2)] - there[average(w[i] ** 2)]) < 1e-12


@pytest.mark.parametrize("hinged", [0, 1], ids=["linear", "beside a hinge"])
def test_a_message_that_is_a_label_answers_to_the_teacher(hinged):
    """Averaging: the weights are a sum of labelled patterns.  Beside a hinge, against one kink for both."""
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    drawn = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    margin = drawn[mu] * h
    loss = -margin / 2 + hinged * Max(0, 1 - margin)
    theory = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * size / 2).cavity()
    solution = theory.solve({alpha: 2, gamma: 1, t: {1: 1}})
    found = float(solution[average(t[i] * w[i])])
    if not hinged:
        z = (np.arange(4000) - 1999.5) / 200
        slope = np.sum(np.exp(-z * z / 2) / np.sqrt(2 * np.pi) / 4 / np.cosh(z / 2) ** 2) / 200 * 2
        assert abs(found - slope) < 1e-6  # alpha/gamma * half the mean slope of the label, which is tanh(u/2)
        return
    kinks = Sum(Max(-margin / 2, 1 - 3 * margin / 2), (mu, 1, P)) + gamma * size / 2
    other = ConvexProblem(kinks).cavity().solve({alpha: 2, gamma: 1, t: {1: 1}})
    assert abs(found - float(other[average(t[i] * w[i])])) < 1e-7
