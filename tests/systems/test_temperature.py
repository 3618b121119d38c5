"""Convex problems at a temperature: limits, identities of Bayes, random matrices, and a sampler of instances."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, truncnorm
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, erfc, exp, log, sqrt
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
    expect,
    i,
    mu,
    response,
)

x, w = Coupling("x"), Feature("w")
beta, gamma = Symbol("beta", positive=True), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
square = Sum(w[i] ** 2, (i, 1, N)) / 2
LOSSES = {
    "logistic": Sum(log(1 + exp(-h)), (mu, 1, P)) + gamma * square,
    "hinge": Sum(Max(0, 1 - h), (mu, 1, P)) + gamma * square,
    "laplace": Sum((1 - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)),
}
sigma = Symbol("sigma", positive=True)
t, xi = Quenched("t", i, law=Normal("t", 0, 1)), Quenched("xi", mu, law=Normal("xi", 0, 1))
u = Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
LINEAR = Sum((Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)) + sigma * xi[mu]) ** 2, (mu, 1, P)) / 2 + gamma * square
POSTERIOR = Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + square
mean, second = average(expect(w[i]) ** 2), average(w[i] ** 2)


def declared(name):
    return ConvexProblem(LOSSES[name])


@pytest.mark.parametrize("name", LOSSES)
def test_large_beta_is_the_minimum(name):
    """What remains shrinks with the temperature; the thermal variance is the response over beta."""
    problem = declared(name)
    cold, theory = problem.cavity().solve({alpha: 2, gamma: 1}), problem.gibbs(beta).cavity()
    gaps = []
    for value in (100, 1000):
        warm = theory.solve({alpha: 2, gamma: 1, beta: value})
        assert float(warm[second] - warm[mean]) == pytest.approx(float(warm[response(w)]) / value, rel=1e-6)
        gaps.append(abs(float(warm[mean]) - float(cold[second])))
    assert gaps[1] < 0.4 * gaps[0] < 0.01  # of order 1/beta where the loss is smooth; more slowly at kinks


def test_the_variance_is_the_response_over_beta():
    """Fluctuation and response, with digits, where all is closed."""
    theory = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + gamma * square).gibbs(beta).cavity()
    solution = theory.solve({alpha: 2, gamma: 1, beta: 3}, dps=40)
    assert abs(solution[second] - solution[mean] - solution[response(w)] / 3) < 1e-38


def test_ridge_by_its_eigenvalues():
    """The posterior of a linear teacher: its mean and variance are traces of the resolvent of a Wishart matrix."""
    size, load, noise, penalty, cold = 1500, 2, 0.5, 0.25, 4.0
    rng = np.random.default_rng(5)
    couplings = rng.normal(size=(load * size, size)) / np.sqrt(size)
    s = np.linalg.eigvalsh(couplings.T @ couplings)
    error = np.mean((penalty**2 + noise**2 * s) / (s + penalty) ** 2)
    spread = np.mean(1 / (cold * (s + penalty)))
    values = {alpha: load, beta: 4, gamma: Rational(1, 4), sigma: Rational(1, 2)}
    solution = ConvexProblem(LINEAR).gibbs(beta).cavity().solve(values)
    assert float(solution[average((expect(w[i]) - t[i]) ** 2)]) == pytest.approx(error, rel=5e-3)
    assert float(solution[second] - solution[mean]) == pytest.approx(spread, rel=5e-3)
    # at this temperature and penalty it is the posterior
    assert float(solution[average(expect(w[i]) * t[i])]) == pytest.approx(float(solution[mean]), rel=1e-12)


def test_a_draw_of_the_posterior_is_like_the_teacher():
    """Nishimori: the overlap of the mean is its squared length, the second moment that of the teacher; only there."""
    theory = ConvexProblem(POSTERIOR).gibbs(beta).cavity()
    solution = theory.solve({alpha: 2, beta: 1})
    overlap = float(solution[average(expect(w[i]) * t[i])])
    assert overlap == pytest.approx(float(solution[mean]), rel=1e-12)
    assert float(solution[second]) == pytest.approx(1, rel=1e-12)
    assert float(solution[average(w[i] * t[i])]) == pytest.approx(overlap, rel=1e-12)
    tempered = theory.solve({alpha: 2, beta: 2})
    assert abs(float(tempered[mean]) - float(tempered[average(expect(w[i]) * t[i])])) > 0.001


def sampled(size, load, rng, steps):
    """Second moment and squared mean of a logistic posterior by Metropolis-adjusted Langevin steps: two chains."""
    data = rng.normal(size=(load * size, size)) / np.sqrt(size)
    width = 0.5 / size ** (1 / 6)

    def energy(v):
        fields = data @ v
        return np.sum(np.logaddexp(0, -fields)) + v @ v / 2, -data.T @ (1 / (1 + np.exp(fields))) + v

    chains = []
    for _ in range(2):
        v = np.zeros(size)
        cost, slope = energy(v)
        total, squares = np.zeros(size), 0.0
        for step in range(steps):
            noise = rng.normal(size=size)
            new = v - width**2 * slope / 2 + width * noise
            cost_new, slope_new = energy(new)
            back = v - new + width**2 * slope_new / 2
            change = cost - cost_new - back @ back / (2 * width**2) + noise @ noise / 2
            if np.log(rng.random()) < change:
                v, cost, slope = new, cost_new, slope_new
            if step >= steps // 10:
                total += v
                squares += v @ v
        kept = steps - steps // 10
        chains.append((total / kept, squares / kept / size))
    (first, one), (other, two) = chains
    return (one + two) / 2, first @ other / size  # independent chains: the noise of the means drops out


def test_logistic_instances_by_a_sampler():
    """Instances at beta = 1: a Monte Carlo of the measure that is declared, with the error bar between instances."""
    rng = np.random.default_rng(3)
    rows = np.array([sampled(100, 2, rng, 4000) for _ in range(6)])
    solution = declared("logistic").gibbs(1).cavity().solve({alpha: 2, gamma: 1})
    for k, observable in enumerate((second, mean)):
        error = rows[:, k].std(ddof=1) / np.sqrt(len(rows))
        assert abs(rows[:, k].mean() - float(solution[observable])) < 4 * error + 0.01
    assert error < 0.02


@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_every_step_is_verified(name):
    verified = declared(name).gibbs(beta).cavity().derivation.verify()
    assert all(verdict.ok for row in verified for verdict in row.verdicts)


def test_what_is_refused():
    problem = declared("logistic")
    with pytest.raises(DeclarationError, match="not known to be positive"):
        problem.gibbs(Symbol("T"))
    with pytest.raises(DeclarationError, match="do not fluctuate"):
        problem.cavity().observable(mean)
    with pytest.raises(UnsupportedLaw, match="equality"):
        ConvexProblem(square, [Eq(h, 1)]).gibbs(beta)
    with pytest.raises(UnsupportedLaw, match="fluctuate"):
        problem.gibbs(beta).sweep({beta: [1, 2]}, N=20)
    with pytest.raises(DeclarationError, match="thermal average"):
        ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) + Sum(expect(w[i]) ** 2, (i, 1, N)))


def test_a_normal_law_of_the_teacher_stays_open():
    """A teacher without a law gets one at evaluation."""
    s = Quenched("s", i)
    error = Sum(x[mu, i] * (w[i] - s[i]), (i, 1, N))
    theory = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + square).gibbs(beta).cavity()
    solution = theory.solve({alpha: 2, beta: 2, s: Normal("s", 0, 1)})
    assert float(solution[second] - solution[mean]) == pytest.approx(float(solution[response(w)]) / 2, rel=1e-10)


def test_a_fixed_average_is_met():
    """A thermal second moment that is held fixed says which penalty belongs to it."""
    problem = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + gamma * square, fixed=[Eq(average(w[i] ** 2), 1)])
    solution = problem.gibbs(beta).cavity().solve({alpha: 2, beta: 2})
    assert float(solution[second]) == pytest.approx(1, rel=1e-12)


def test_the_posterior_of_a_probit_teacher():
    """The sums over all states are closed. By hand, with ``q = <m t>``: ``q/(1-q)`` is the information of a label."""
    field = Sum(x[mu, i] * t[i], (i, 1, N))
    label = Quenched("y", mu, law={1: erfc(-field / sqrt(2)) / 2, -1: erfc(field / sqrt(2)) / 2}, given=field)
    problem = ConvexProblem(Sum(-log(erfc(-label[mu] * h / sqrt(2)) / 2), (mu, 1, P)) + square)
    theory = problem.gibbs(1).cavity()
    solution = theory.solve({alpha: 2})
    z = np.linspace(-12, 12, 4001)
    weight = norm.pdf(z) * (z[1] - z[0])

    def gap(q):
        u = np.sqrt(q / (2 - q)) * z
        information = np.exp(2 * norm.logpdf(u) - norm.logcdf(u) - norm.logcdf(-u))
        return q / (1 - q) - 2 / (2 - q) * np.sum(weight * information)

    assert float(solution[mean]) == pytest.approx(brentq(gap, 0.01, 0.99, xtol=1e-15), rel=1e-10)
    assert float(solution[second]) == pytest.approx(1, rel=1e-12)
    assert float(solution[average(expect(w[i]) * t[i])]) == pytest.approx(float(solution[mean]), rel=1e-12)
    assert all(verdict.ok for row in theory.derivation.verify() for verdict in row.verdicts)


kept = Quenched("k", i, law={0: Rational(1, 2), 1: Rational(1, 2)})
BOX = ConvexProblem(
    Sum(Sum(x[mu, i] * (w[i] - kept[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i], (i, 1, N)),
    [w[i] >= 0, w[i] <= 1],
)


def test_a_state_between_two_bounds():
    """Truncated normal laws of SciPy, over a grid of fields; at large beta the minimum."""
    theory = BOX.gibbs(beta).cavity()
    found = theory.solve({alpha: 2, beta: 5, gamma: Rational(1, 10)})
    z = np.linspace(-9, 9, 401)
    p = norm.pdf(z) * (z[1] - z[0])
    own, weight = np.array([[0.0], [1.0]]), p[None, :] / 2
    error, width = 0.2, 0.5
    for _ in range(60):
        answer = 2 / (1 + width)
        scale = 1 / np.sqrt(5 * answer)
        middle = own + (np.sqrt(2 * error) / (1 + width) * z[None, :] - 0.1) / answer
        ends = (0 - middle) / scale, (1 - middle) / scale
        means, variances = truncnorm.stats(*ends, loc=middle, scale=scale)
        error, width = np.sum(weight * (means - own) ** 2), 5 * np.sum(weight * variances)
    assert float(found[average((expect(w[i]) - kept[i]) ** 2)]) == pytest.approx(error, rel=1e-8)
    assert float(found[response(w)]) == pytest.approx(width, rel=1e-8)
    cold = BOX.cavity().solve({alpha: 2, gamma: Rational(1, 10)})[second]
    gaps = [float(theory.solve({alpha: 2, beta: b, gamma: Rational(1, 10)})[mean] - cold) for b in (100, 1000)]
    assert abs(gaps[1]) < 0.3 * abs(gaps[0]) < 0.01


def test_two_bounds_are_a_lower_and_an_upper_one():
    margin = Quenched("k", mu)
    with pytest.raises(UnsupportedLaw, match="not one lower and one upper"):
        ConvexProblem(square, [h >= margin[mu], h >= 1]).gibbs(1).cavity()


@pytest.mark.parametrize(("loss", "number"), [(log(1 + exp(-h)), lambda v: np.log1p(np.exp(-v))),
                                              (Max(0, 1 - h), lambda v: np.maximum(0, 1 - v))])  # fmt: skip
def test_losses_between_two_bounds_by_sums_over_states(loss, number):
    theory = ConvexProblem(square + Sum(loss, (mu, 1, P)), [h <= 1, h >= -2]).gibbs(2).cavity()
    found = theory.solve({alpha: 1})
    values = {str(name): float(found[name]) for name in theory.order_parameters}
    width, power = values["S_m"], values["q_m"]
    v = np.linspace(-2, 1, 3001)[1::2]
    field = np.linspace(-9, 9, 901)[:, None] * np.sqrt(power)
    weight = np.exp(-2 * (number(v) + (v - field) ** 2 / (2 * width)))
    share = np.exp(-(field[:, 0] ** 2) / (2 * power))
    message = ((weight @ v) / weight.sum(1) - field[:, 0]) / width
    assert share @ message**2 / share.sum() == pytest.approx(values["q_lambda"], rel=1e-5)
    assert power == pytest.approx(values["q_lambda"] * width**2, rel=1e-9)


def test_a_bound_far_from_its_state():
    """At low temperature the weight vanishes in double at far fields, and its mean does not."""
    theory = ConvexProblem(
        Sum(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i], (i, 1, N)), [w[i] >= 0]
    ).gibbs(beta).cavity()  # fmt: skip
    found = theory.solve({alpha: 2, beta: 5, gamma: Rational(1, 10)})
    z, p = np.polynomial.hermite_e.hermegauss(120)
    p = p / p.sum()
    own, weight = z[:, None], p[:, None] * p[None, :]
    error, width = 0.2, 0.5
    for _ in range(60):
        answer = 2 / (1 + width)
        scale = 1 / np.sqrt(5 * answer)
        middle = own + (np.sqrt(2 * error) / (1 + width) * z[None, :] - 0.1) / answer
        edge = middle / scale
        mills = np.exp(norm.logpdf(edge) - norm.logcdf(edge))
        error = np.sum(weight * (middle + scale * mills - own) ** 2)
        width = 5 * np.sum(weight * scale**2 * (1 - edge * mills - mills**2))
    assert float(found[average((expect(w[i]) - t[i]) ** 2)]) == pytest.approx(error, rel=1e-5)
    assert float(found[response(w)]) == pytest.approx(width, rel=1e-5)
