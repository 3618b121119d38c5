"""Laws of several fields with many pieces: margins of several classes, largest components, sums of kinks.

What the engine finds is held against proximal maps that are written here (projections onto a simplex, a ball of the
sum of moduli, lengths of vectors), iterated over random fields or integrated, and against the same problem declared
by other means.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma as euler
from sympy import Abs, KroneckerDelta, Max, Rational, Sum, Symbol, exp, log, sqrt

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    norm,
)
from symcavity.algebra.signs import weak_sign_of
from symcavity.evaluate.averages import rays
from symcavity.evaluate.averages.faces import Faces
from symcavity.witness.judge import judge

gamma = Symbol("gamma", positive=True)
x = Coupling("x")
b = Quenched("b", mu)
HALF = Rational(1, 2)


def field(coupling, w):
    return Sum(coupling[mu, i] * w[i], (i, 1, N))


def classes(count):
    """The weights of some classes, their fields, and labels drawn at random."""
    w = Feature("w", components=(Symbol("k", integer=True), 1, count))
    h = [Sum(x[mu, i] * w[i, k], (i, 1, N)) for k in range(1, count + 1)]
    y = Quenched("y", mu, law={k: Rational(1, count) for k in range(1, count + 1)})
    return w, h, [KroneckerDelta(y[mu], k) for k in range(1, count + 1)]


def margin(count):
    """The hinge of Crammer and Singer."""
    w, h, own = classes(count)
    loss = Max(*(1 - d + u for d, u in zip(own, h, strict=True))) - sum(d * u for d, u in zip(own, h, strict=True))
    size = sum(w[i, k] ** 2 for k in range(1, count + 1))
    return w, ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(size, (i, 1, N)) / 2)


def penalised(penalty, count):
    """A regression on features that come in groups, each with a coupling of its own."""
    w = [Feature(f"w{k}") for k in range(1, count + 1)]
    residual = b[mu] - sum(field(Coupling(f"x{k}"), v) for k, v in enumerate(w))
    return w, ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(penalty(*(v[i] for v in w)), (i, 1, N)))


GIVEN = {alpha: 2, gamma: HALF, b: {1: 1}}


def on_simplex(v):
    """The nearest points of the simplex, row by row."""
    ordered = -np.sort(-v, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, v.shape[1] + 1)
    count = (ordered > excess).sum(axis=1)
    return np.maximum(v - excess[np.arange(len(v)), count - 1][:, None], 0)


def in_cross(v, size):
    """The nearest points whose moduli add up to at most a size."""
    inside = np.abs(v).sum(axis=1) <= size
    return np.where(inside[:, None], v, np.sign(v) * size * on_simplex(np.abs(v) / size))


@pytest.fixture(scope="module")
def three():
    w, problem = margin(3)
    theory = problem.cavity()
    return w, problem, theory, theory.solve({alpha: 2, gamma: 1})


def test_margin_of_three_classes_by_projections(three):
    """The order parameters come back from 10^6 random fields, whose messages are projections onto a simplex."""
    w, _, _, s = three
    q = np.array([[float(s[average(w[i, a] * w[i, c])]) for c in (1, 2, 3)] for a in (1, 2, 3)])
    width = float(s["S_w_1_to_w_1"] - s["S_w_1_to_w_2"])
    assert np.allclose(q, q[0, 0] * (1.5 * np.eye(3) - 0.5), rtol=1e-8)  # classes are alike, and add up to zero
    rng = np.random.default_rng(4)
    label = np.eye(3)[rng.integers(3, size=10**6)]
    plane = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
    eta = np.sqrt(1.5 * q[0, 0]) * rng.normal(size=(len(label), 2)) @ plane.T
    message = label - on_simplex((1 - label + eta + width * label) / width)
    square = np.mean(message**2, axis=0)
    assert 2 * width**2 * square == pytest.approx(np.diag(q), rel=5e-3)
    slope = np.mean(np.sum(message * eta, axis=1)) / 2 / (1.5 * q[0, 0])  # by parts, over the two dimensions
    assert width == pytest.approx(1 / (1 - 2 * slope), rel=3e-3)


def test_margin_of_three_classes_in_instances(three):
    w, problem, theory, s = three
    assert s.residual < 1e-9
    assert s.stability < 1
    sim = problem.simulate({alpha: 2, gamma: 1}, N=60, seeds=8)
    rows = theory.compare(sim, [average(w[i, 1] ** 2), average(w[i, 1] * w[i, 2]), average(w[i, 3] ** 2)])
    assert max(abs(row.z) for row in rows) < 4
    run = problem.message_passing({alpha: 2, gamma: 1}, N=40, seeds=4)
    assert all(one.changes[-1] < 1e-3 for one in run.runs)


def test_the_record_of_a_margin(three):
    """The law, its pairs and its slopes hold, and are printed."""
    derivation = three[2].derivation
    rules = {step.rule: step for step in derivation}
    assert all(v.ok for rule in ("lagrangian", "sources", "joint") for v in judge(rules[rule]))
    assert "together" in derivation.to_latex()


def test_the_largest_component():
    """The proximal map of the largest modulus is what a ball of the sum of moduli leaves; at 2*10^6 random fields."""
    (w1, w2), problem = penalised(lambda u, v: Max(Abs(u), Abs(v)), 2)
    theory = problem.cavity()
    s = theory.solve(GIVEN)
    q, V = float(s[average(w1[i] ** 2)]), float(s["S_w1_to_nu"])
    assert float(s[average(w2[i] ** 2)]) == pytest.approx(q, rel=1e-8)
    curvature = 2 / (1 + 2 * V)
    z = np.random.default_rng(5).normal(size=(2 * 10**6, 2))
    eta = np.sqrt(2 * (1 + 2 * q)) / (1 + 2 * V) * z
    state = (eta - in_cross(eta, 0.5)) / curvature
    assert q == pytest.approx(np.mean(state**2), rel=5e-3)
    assert pytest.approx(np.mean(state * eta) / np.mean(eta**2), rel=5e-3) == V
    # the two are often equal
    share = average(Abs(w1[i]) > Abs(w2[i]) + Rational(1, 10**6))
    assert float(s[share]) == pytest.approx(np.mean(np.abs(state[:, 0]) > np.abs(state[:, 1]) + 1e-9), abs=3e-3)
    with pytest.raises(UnsupportedLaw, match="undetermined"):
        _ = s[average(problem.kkt().laws[next(k for k in problem.kkt().laws if k.index == i)].pairs[0].args[0])]
    verdict = theory.derivation.verify()
    assert verdict, str(verdict)


def test_moduli_written_together_fall_into_parts():
    """Four moduli written together are one sum of moduli over four times as many features: nothing is sampled."""
    w, problem = penalised(lambda *u: sum(Max(v, -v) for v in u), 4)
    s = problem.cavity().solve(GIVEN)
    v = Feature("v")
    one = field(Coupling("x", variance=4 / N), v)
    lasso = ConvexProblem(Sum((b[mu] - one) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(v[i]), (i, 1, N)))
    exact = lasso.cavity().solve({**GIVEN, alpha: HALF})
    for k, own in enumerate(w, 1):
        heard = "nu" if k == 1 else f"nu_{2 * k - 1}"
        assert float(s[f"S_w{k}_to_{heard}"]) == pytest.approx(float(exact["S_v"]), rel=1e-12)
        assert float(s[average(own[i] ** 2)]) == pytest.approx(float(exact["q_v"]), rel=1e-12)
        assert s.stderr(f"q_w{k}") == 0


def test_groups_of_four():
    """The length of four weights, by integrals over the length of a Gaussian vector."""
    w, problem = penalised(norm, 4)
    q, V, size = 0.1, 0.6, 4
    for _ in range(300):
        variance, a = 2 * (1 + size * q) / (1 + size * V) ** 2, 2 / (1 + size * V)

        def mean(f, variance=variance):
            def weight(r):
                return f(r) * r ** (size - 1) * np.exp(-r * r / 2 / variance) / variance ** (size / 2)

            return quad(weight, 0.5, 0.5 + 12 * np.sqrt(variance), epsabs=1e-13)[0] / 2 ** (size / 2 - 1) / euler(2)

        q, V = mean(lambda r: (r - 0.5) ** 2) / size / a**2, mean(lambda r: size - (size - 1) * 0.5 / r) / size / a
    s = problem.cavity().solve(GIVEN)
    for k, own in enumerate(w, 1):
        assert abs(float(s[average(own[i] ** 2)]) - q) < 4.5 * max(s.stderr(f"q_w{k}"), 1e-9)
        assert abs(float(s[f"S_w_{k}{k}"]) - V) < 4.5 * max(s.stderr(f"S_w_{k}{k}"), 1e-9)


def test_kinks_of_three_weights():
    """Neighbours that are drawn together, in instances."""
    w, problem = penalised(lambda u, v, t: Abs(u - v) + Abs(v - t), 3)
    s = problem.cavity().solve(GIVEN)
    sim = problem.simulate(GIVEN, N=60, seeds=10)
    for key in (average(w[0][i] ** 2), average(w[1][i] ** 2), average(w[0][i] * w[1][i])):
        assert abs(sim[key].mean - float(s[key])) < 4 * np.hypot(sim[key].stderr, s.stderr(key))


def test_softmax_of_four_classes():
    """Three dimensions, integrated; the strong one of three classes is quick."""
    w, h, own = classes(4)
    loss = log(sum(map(exp, h))) - sum(d * u for d, u in zip(own, h, strict=True))
    size = sum(w[i, k] ** 2 for k in (1, 2, 3, 4))
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(size, (i, 1, N)) / 2)
    s = problem.cavity().solve({alpha: 2, gamma: 1})
    assert float(s[average(w[i, 1] * w[i, 2])]) == pytest.approx(-float(s[average(w[i, 1] ** 2)]) / 3, rel=1e-7)
    sim = problem.simulate({alpha: 2, gamma: 1}, N=60, seeds=8)
    found = sim[average(w[i, 1] ** 2)]
    assert abs(found.mean - float(s[average(w[i, 1] ** 2)])) < 4 * found.stderr


def test_ordinal_hinges():
    """Four hinges a datum and two thresholds, by proximal maps that bisection finds."""
    label = Quenched("y", mu, law={k: Rational(1, 3) for k in (1, 2, 3)})
    w, low, high = Feature("w"), Global("b1"), Global("b2")
    h, own = field(x, w), [KroneckerDelta(label[mu], k) for k in (1, 2, 3)]
    loss = own[0] * Max(0, 1 + h - low) + (own[1] + own[2]) * Max(0, 1 - h + low)
    loss += (own[0] + own[1]) * Max(0, 1 + h - high) + own[2] * Max(0, 1 - h + high)
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    s = problem.cavity().solve({alpha: 2, gamma: 1})
    q, V, b = float(s[average(w[i] ** 2)]), float(s["S_w"]), float(s["b2"])
    assert float(s["b1"]) == pytest.approx(-b, rel=1e-8)
    z = np.linspace(-8, 8, 20001)
    weight = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()
    eta, total = np.sqrt(q) * z, {}

    def slopes(u, k):
        up, down = [u > t - 1 for t in (-b, b)], [u < t + 1 for t in (-b, b)]
        first = up[0] * 1.0 if k == 0 else -1.0 * down[0]
        return first, -1.0 * down[1] if k == 2 else up[1] * 1.0

    for k in range(3):
        left, right = eta - 3 * V, eta + 3 * V
        for _ in range(60):
            u = (left + right) / 2
            above = u + V * sum(slopes(u, k)) > eta
            left, right = np.where(above, left, u), np.where(above, u, right)
        total[k] = (eta - left) / V  # minus the message
    square = np.mean([weight @ total[k] ** 2 for k in range(3)])
    slope = np.mean([-weight @ (total[k] * eta) for k in range(3)]) / q
    assert q == pytest.approx(2 * V**2 * square, rel=1e-5)
    assert pytest.approx(1 / (1 - 2 * slope), rel=1e-5) == V


def ordinal_logit(weights):
    """Minus the logarithm of differences of sigmoids at thresholds that are learned; their places are in any order."""
    label = Quenched("y", mu, law=dict(enumerate(weights)))
    w, places = Feature("w"), [Global(f"b{k}") for k in range(len(weights) - 1, 0, -1)]
    h = field(x, w)
    below = [0, *(1 / (1 + exp(h - b)) for b in places), 1]
    own = [-KroneckerDelta(label[mu], k) * log(below[k + 1] - below[k]) for k in range(len(weights))]
    return w, places, ConvexProblem(Sum(sum(own), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


@pytest.mark.parametrize(
    "weights", [[Rational(1, 3)] * 3, [Rational(1, 8), HALF, Rational(3, 8)]], ids=["even", "uneven"]
)
def test_a_likelihood_of_classes_in_order_and_its_thresholds(weights):
    """Where all thresholds are zero the term has no value: its slopes far out are read where it has one."""
    w, places, problem = ordinal_logit(weights)
    s = problem.cavity().solve({alpha: 2, gamma: 1})
    q, V, (low, high) = float(s[average(w[i] ** 2)]), float(s["S_w"]), [float(s[b]) for b in places]
    z, share = np.polynomial.hermite_e.hermegauss(120)
    eta, share = np.sqrt(q) * z, share / share.sum()

    def above(u, place):
        return 1 / (1 + np.exp(place - u))

    def slope(u, k):
        return above(u, low) * (k < 2) + above(u, high) * (k > 0) - (k > 0)

    squares = slopes = pulls = 0.0
    for k, weight in enumerate(map(float, weights)):
        left, right = eta - 3 * V, eta + 3 * V
        for _ in range(60):
            u = (left + right) / 2
            up = u + V * slope(u, k) > eta
            left, right = np.where(up, left, u), np.where(up, u, right)
        curved = sum(above(u, p) * above(-u, -p) for p in ((low,), (low, high), (high,))[k])
        squares += weight * share @ slope(u, k) ** 2
        slopes += weight * share @ (curved / (1 + V * curved))
        pulls += weight * share @ (-above(u, high) * (k > 0)) + weight * (k == 2)
    pulls -= float(weights[1]) / np.expm1(high - low)
    assert q == pytest.approx(2 * V**2 * squares, rel=1e-9)
    assert pytest.approx(1 / (1 + 2 * slopes), rel=1e-9) == V
    assert abs(pulls) < 1e-9 * float(weights[2])


def test_instances_with_thresholds_in_a_logarithm():
    """Where all thresholds are zero a cumulative logit has no value: instances begin elsewhere."""
    _, (low, high), problem = ordinal_logit([Rational(1, 3)] * 3)
    sim = problem.simulate({alpha: 2, gamma: 1}, N=40, seeds=6)
    assert sim[high].mean > 0.3 > -0.3 > sim[low].mean


def test_signs_of_what_labels_choose():
    """A sum of choices is never negative, and a difference may be."""
    label = Quenched("y", mu, law={k: Rational(1, 3) for k in (1, 2, 3)})
    one, two = (KroneckerDelta(label[mu], k) for k in (1, 2))
    assert [weak_sign_of(e) for e in (one + two, -two, one - two)] == [1, -1, None]


def test_faces_of_a_law():
    """The states at random fields against a quadratic program solved by enumeration of what is active."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    curve, normals, offset = root @ root.T + np.eye(3), rng.normal(size=(4, 3)), rng.normal(size=4) - 1
    # curve*u = eta + normals'*m, with m >= 0 against normals*u - offset >= 0
    matrix = np.zeros((3 + 8, 7))
    matrix[:3, :3], matrix[:3, 3:] = curve, -normals.T
    matrix[3:7, 3:], matrix[7:, :3] = np.eye(4), normals
    heard = np.zeros((11, 4))
    heard[:3, 1:], heard[7:, 0] = -np.eye(3), -offset
    faces = Faces(matrix, heard, 4, np.zeros((0, 11)), 3, None)
    fields = 3 * rng.normal(size=(3, 200))
    found = faces.values(faces.find(fields), fields)
    u, m = found[:3], found[3:]
    assert np.allclose(curve @ u - normals.T @ m, fields, atol=1e-9)
    gap = normals @ u - offset[:, None]
    assert min(gap.min(), m.min()) > -1e-9
    assert np.abs(gap * m).max() < 1e-9


@pytest.mark.parametrize("away", [0.0, 1e-3, 0.1, 1.5, 4.0])
def test_rays_in_a_plane_see_a_half_plane(away):
    """Its share, whatever its distance, and its moments by nodes of both kinds."""
    from scipy.special import ndtr

    rows = np.array([[[-away, 0.6, 0.8]], [[away, -0.6, -0.8]]])
    units, shares = rays.turned(rows, 1, 20)
    for cubic in (False, True):
        points, weights, middles = rays.along(rays.crossings(rows, 1, units), units, shares, cubic=cubic)
        inside = np.repeat(rows[0, 0, 1:] @ middles > away, points.shape[1] // middles.shape[1])
        assert np.sum(weights * inside) == pytest.approx(ndtr(-away), rel=1e-8)
        first = np.exp(-(away**2) / 2) / np.sqrt(2 * np.pi)
        assert np.sum(weights * inside * (rows[0, 0, 1:] @ points)) == pytest.approx(first, rel=1e-8)


def test_a_factor_that_is_real_for_some_parameters_only():
    """A root of 1 - rho: the solution is written at values at which all of it is real."""
    x, w = Coupling("x"), Feature("w")
    rho, C = Symbol("rho", positive=True), Symbol("C", positive=True)
    margin = sqrt(1 - rho) * Sum(x[mu, i] * w[i], (i, 1, N))
    hinge = Sum(Max(0, 1 - margin), (mu, 1, P))
    theory = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + C * hinge).cavity()
    assert all(verdict.ok for verdict in theory.derivation["datum.solution"].verdicts(20))
