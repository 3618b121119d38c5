"""Every system of the gallery: its numbers against those published, closed forms, or a fixed point written by hand."""

import numpy as np
import pytest
from gallery_shared import (
    ROOTS,
    WEIGHTS,
    Z,
    agree,
    classification,
    clusters,
    density,
    gauss,
    hinge,
    module,
    newton,
    number,
    regression,
    settled,
    soft,
    solution,
    theory,
)
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, ndtr, ndtri
from sympy import Rational, tanh

from symcavity import P, SymcavityError, alpha, average, i, mu, response

logistic = newton(lambda v: -expit(-v), lambda v: expit(v) * expit(-v))


def square(centre, width):
    return centre / (1 + width)


def at_least_one(centre, _width):
    return np.maximum(centre, 1.0)


def truncated(mean, spread):
    """P(v > 0), <v_+> and <v_+^2> of a Gaussian v."""
    d = mean / spread
    return ndtr(d), mean * ndtr(d) + spread * density(d), (mean**2 + spread**2) * ndtr(d) + mean * spread * density(d)


# -- regression -----------------------------------------------------------------------------------


def error(name):
    m = module(name)
    return average((m.w[i] - getattr(m, "t", m.w)[i]) ** 2)


def test_noisy_teacher():
    """The trace of the resolvent of a Wishart matrix, ``gamma v^2 + (gamma + alpha - 1) v = 1``, gives the error."""
    c, load, noise = 0.5, 2.0, 0.25
    root = np.sqrt((c + load - 1) ** 2 + 4 * c)
    trace = (root - c - load + 1) / (2 * c)
    slope = -(trace**2 + trace) / root
    want = c**2 * -slope + noise * (trace + c * slope)
    agree("noisy_teacher", {module("noisy_teacher").shown[0]: want, response(module("noisy_teacher").w): trace}, 1e-11)


def test_interpolation():
    """The error is ``1 - alpha + alpha/(4 (1 - alpha))``, in closed form."""
    name = "interpolation"
    for load in (0.25, 0.5, 0.75):
        want = (1 - load) + 0.25 * load / (1 - load)
        assert number(name, error(name), alpha=Rational(load)) == pytest.approx(want, rel=1e-12)


def test_sparse_regression():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    m = module("sparse_regression")
    found, _ = regression(0.6, square, lambda f, c: soft(f, 0.5) / c, [(0.04, 1.0)], [(0, 0, 0.8), (0, 1, 0.2)])
    agree("sparse_regression", {average((m.w[i] - m.t) ** 2): found})


def test_elastic_net():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    signal = [(0, 0, 0.75), (1, 0, 0.125), (-1, 0, 0.125)]
    found, width = regression(1.0, square, lambda f, c: soft(f, 0.25) / (c + 0.5), [(0.25, 1.0)], signal)
    agree("elastic_net", {error("elastic_net"): found, response(module("elastic_net").w): width})


def test_basis_pursuit():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    signal = [(0, 0, 0.6), (1, 0, 0.2), (-1, 0, 0.2)]
    found, _ = regression(0.5, lambda c, _: 0 * c, lambda f, c: soft(f, 1) / c, [(0, 1)], signal)
    agree("basis_pursuit", {error("basis_pursuit"): found})


def test_basis_pursuit_recovers_up_to_the_published_line():
    """The weak threshold at delta = 1/10 is rho = 0.189429367759674, whatever is not zero."""
    m, load = module("basis_pursuit"), Rational(1, 10)
    for share, recovered in (("0.185", True), ("0.2", False)):
        filled = Rational(share) * load
        law = {0: 1 - filled, 1: filled / 2, -3: filled / 2}
        found = theory("basis_pursuit").solve({alpha: load, m.t: law})
        assert (float(found[error("basis_pursuit")]) == 0) == recovered


def test_the_error_of_robust_regression():
    """The error is 0.412190952374, which was computed without this package."""
    agree("robust_regression", {error("robust_regression"): 0.412190952374}, 1e-11)


def test_least_deviations():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    found, width = regression(3.0, soft, lambda f, c: f / c, [(1.0, 1.0)], [(0, 0, 1)])
    agree("least_deviations", {error("least_deviations"): found, response(module("least_deviations").w): width})


def test_quantile_regression():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    tau, load = 0.8, 3.0

    def force(size, width, bias):
        centre = np.sqrt(size + 1) * Z - bias  # of label minus student
        return np.clip(centre / width, tau - 1, tau)

    def step(size, width):
        bias = brentq(lambda b: gauss(force(size, width, b)), -9, 9)
        f = force(size, width, bias)
        curvature = load * gauss(Z * f) / np.sqrt(size + 1)
        return load * gauss(f * f) / curvature**2, 1 / curvature

    size, width = settled(step, 1.0, 1.0)
    bias = brentq(lambda b: gauss(force(size, width, b)), -9, 9)
    agree("quantile_regression", {error("quantile_regression"): size, module("quantile_regression").b: bias})
    assert ndtr(bias / np.sqrt(1 + size)) < tau - 0.05  # what it covers of new data


def test_support_vector_regression():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    def tube(c, width):
        return np.where(np.abs(c) <= 0.5, c, np.sign(c) * np.maximum(0.5, np.abs(c) - width))

    found, width = regression(2.0, tube, lambda f, c: f / (1 + c), [(1 / 16, 1.0)], [(0, 1, 1)])
    name = "support_vector_regression"
    agree(name, {error(name): found, response(module(name).w): width})


def test_noisy_inputs():
    """Inputs without errors, the teacher ``rho t``, and noise of variance ``1 - rho^2``."""
    found, width = regression(2.0, square, lambda f, c: f / (0.5 + c), [(0.36, 1.0)], [(0, 0.64, 1)])
    m, shrunk = module("noisy_inputs"), 0.8 * (1 - 0.5 * width)
    agree("noisy_inputs", {average(m.w[i] * m.t[i]): shrunk, average(m.w[i] ** 2): found + 2 * 0.8 * shrunk - 0.64})


def kernel_error(count, gamma, l, t):
    """The error of ridge regression with P examples of independent modes of variances l (eigenlearning)."""
    ridge = brentq(lambda k: gamma / k + np.sum(l / (l + k)) - count, 1e-14, 1e9)
    variance = np.sum((l / (l + ridge)) ** 2) / count
    return np.sum(l * (t * ridge / (l + ridge)) ** 2) / (1 - variance)


def test_power_laws():
    m, k = module("power_laws"), np.arange(1, 61)
    (observable,) = m.shown
    agree("power_laws", {observable: kernel_error(30, 0.01, 1 / k**2, np.ones(60)) / 60}, 1e-9)


@pytest.mark.parametrize(("a", "b"), [(2, 2), (1.5, 4.5)], ids=["as P**(1 - b)", "as P**(-2 a)"])
def test_power_laws_of_the_learning_curve(a, b):
    """Without noise and with hardly any penalty: the exponents of Spigler, Geiger and Wyart."""
    m, modes = module("power_laws"), np.arange(1.0, 401)
    law = {m.gamma: Rational(1, 10**6), m.l: modes**-a, m.t: modes ** ((a - b) / 2)}
    found = [float(theory("power_laws").solve({**law, P: count})[m.shown[0]]) for count in (10, 20)]
    assert np.log2(found[0] / found[1]) == pytest.approx(min(b - 1, 2 * a), rel=0.15)


# -- random matrices and chains -------------------------------------------------------------------


def directly(build, size, seeds=12):
    """Means and standard errors of what a function of a size and a generator of random numbers gives."""
    found = np.array([build(size, np.random.default_rng([size, seed])) for seed in range(seeds)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(seeds)


def within(name, build, size=200):
    means, errors = directly(build, size)
    for observable, mean, scatter in zip(module(name).shown, means, errors, strict=True):
        assert abs(number(name, observable) - mean) < 4 * scatter + 5 * abs(mean) / size, observable


def test_random_features():
    """The normal equations of instances with 200 features, solved directly."""
    def build(n, rng):
        data, hidden = 2 * n, 3 * n // 2
        x, mixing, extra = (rng.normal(size=s) / np.sqrt(n) for s in ((data, n), (hidden, n), (data, hidden)))
        t, noise = rng.normal(size=n), rng.normal(size=data) / 2
        design = x @ mixing.T + extra / 2
        v = np.linalg.solve(design.T @ design + np.eye(hidden) / 10, design.T @ (x @ t + noise))
        return [np.mean((t - mixing.T @ v) ** 2), np.mean(v**2)]

    within("random_features", build)


def test_random_features_diverge_where_they_interpolate():
    """The error at ``K = P`` grows as ``gamma**(-1/2)``; on either side it has a limit."""
    loads, shown = (1, Rational(3, 2), 2), module("random_features").shown[0]
    errors = [
        [number("random_features", shown, gamma=Rational(1, g), alpha=load) for load in loads] for g in (1000, 10000)
    ]
    ratios = np.divide(*errors[::-1])
    assert ratios[1] == pytest.approx(np.sqrt(10), rel=0.1)
    assert ratios[[0, 2]] == pytest.approx(1, abs=0.03)


def test_linear_chain():
    """The normal equations of instances with 200 features, solved directly."""
    def build(n, rng):
        x, first = (rng.normal(size=s) / np.sqrt(n) for s in ((2 * n, n), (3 * n // 2, n)))
        second, t = rng.normal(size=(6 * n // 5, 3 * n // 2)) / np.sqrt(n), rng.normal(size=n)
        design = x @ first.T @ second.T
        v = np.linalg.solve(design.T @ design + np.eye(6 * n // 5) / 2, design.T @ (x @ t))
        return [np.mean((t - first.T @ second.T @ v) ** 2), np.mean(v**2)]

    within("linear_chain", build)


def test_wishart_resolvent():
    """Two scalar equations, one for each side; the second observable is the derivative of the first."""
    l, s, load = np.array([0.5, 2.0]), np.array([1.0, 3.0]), 2.0
    weights = np.array([2 / 3, 1 / 3])

    def trace(z):
        def gap(e):
            return e - np.mean(l / (z + l * load * np.sum(weights * s / (1 + s * e))))

        e = brentq(gap, 1e-9, 1e3, xtol=1e-14)
        return np.mean(1 / (z + l * load * np.sum(weights * s / (1 + s * e))))

    step = 1e-4
    m = module("wishart_resolvent")
    slope = (trace(0.5 - step) - trace(0.5 + step)) / (2 * step)
    agree("wishart_resolvent", {m.shown[0]: trace(0.5), m.shown[1]: slope}, 1e-6)


# -- classification -------------------------------------------------------------------------------


def sigmoid(y, u):
    return expit(y * u)


def test_maximum_likelihood_as_published():
    """At N/P = 1/5 and a signal of variance 5: the factor 1.4994, the standard deviation 4.7436."""
    m = module("logistic_teacher")
    overlap, norm = (number("logistic_teacher", o) for o in m.shown)
    assert overlap / 5 == pytest.approx(1.4994, abs=5e-5)
    assert np.sqrt(5 * (norm - overlap**2 / 5)) == pytest.approx(4.7436, abs=5e-5)


def test_logistic_intercept():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    overlap, norm, _, bias = classification(4.0, logistic, 0.5, 4.0, lambda y, u: expit(y * (u + 1)), pull=1.0)
    m = module("logistic_intercept")
    agree("logistic_intercept", {m.shown[0]: overlap, m.shown[1]: norm, m.b: bias}, 1e-7)


def test_logistic_existence():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    overlap, norm, _, _ = classification(1.2, at_least_one, 1.0, 4.0, sigmoid)
    m = module("logistic_existence")
    agree("logistic_existence", {m.shown[0]: norm, m.shown[1]: overlap})


def test_where_the_estimate_exists():
    """``1/alpha = min over t of <(z - t y u)_+^2>``, with u the teacher's field over its standard deviation."""
    size = 2.0

    def loss(t):
        return sum(WEIGHTS @ (expit(y * size * ROOTS) * truncated(-t * y * ROOTS, 1.0)[2]) for y in (1, -1))

    m = module("logistic_existence")
    found = theory("logistic_existence").solve({m.kappa: "1e-6", m.t: {2: 1}})[alpha]
    assert float(found) == pytest.approx(1 / minimize_scalar(loss, bounds=(0, 5), method="bounded").fun, rel=1e-5)


def test_sign_teacher():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    overlap, norm, width, _ = classification(2.0, at_least_one, 1.0, 1.0)
    m = module("sign_teacher")
    agree("sign_teacher", {m.shown[0]: overlap, m.shown[1]: norm, response(m.w): width})


def test_the_generalisation_of_the_widest_margin_as_published():
    """The share of errors falls as 0.50/alpha (Opper, Kinzel, Kleinz, Nehl)."""
    m, load = module("sign_teacher"), 40
    found = theory("sign_teacher").solve({alpha: load, m.t: {1: 1}})
    angle = np.arccos(float(found[m.shown[0]]) / np.sqrt(float(found[m.shown[1]])))
    assert load * angle / np.pi == pytest.approx(0.50, abs=0.01)


def test_flipped_labels():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    overlap, norm, _, _ = classification(2.0, hinge(1.0), 1.0, 1.0, flips=0.1)
    m = module("flipped_labels")
    agree("flipped_labels", {m.shown[0]: overlap, m.shown[1]: norm})


def test_gaussian_clusters_as_published():
    """At the load 1.2304 the published numbers are 0.8296633, 0.3462909 and 2.3787538."""
    published = (0.8296632716023158, 0.3462908996447508, 2.3787537630917486)
    for observable, want in zip(module("gaussian_clusters").shown, published, strict=True):
        found = number("gaussian_clusters", observable, alpha=Rational("1.230408163265306"))
        assert found == pytest.approx(want, rel=1e-7)


def test_clusters_hinge():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    slope = {1: 1.0, -1: 3.0}
    overlap, norm, _, bias = clusters(
        2.0, lambda c, width, y: hinge(slope[y])(c, width), 1.0, 1.0, {1: 0.75, -1: 0.25}
    )
    m = module("clusters_hinge")
    agree("clusters_hinge", {m.shown[0]: overlap, m.shown[1]: norm, m.b: bias}, 2e-4)


def test_clusters_logistic():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    overlap, norm, _, _ = clusters(2.0, lambda c, width, _: logistic(c, width), 0.5, 1.0, {1: 0.5, -1: 0.5}, pull=0.0)
    m = module("clusters_logistic")
    agree("clusters_logistic", {m.shown[0]: overlap, m.shown[1]: norm}, 1e-8)


def test_three_clusters():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    kinds = ((-1, 1 / 6, -1.0), (0, 1 / 2, 1.0), (1, 1 / 3, -1.0))

    def step(overlap, q, width, bias):
        centres = [(c, p, y, y - c * overlap - bias) for c, p, y in kinds]
        along = 2 * sum(p * c * r for c, p, _, r in centres) / (1 + width)
        power = 2 * sum(p * (r * r + q) for _, p, _, r in centres) / (1 + width) ** 2
        total = 1 + 2 / (1 + width)
        return along / total, (power + along**2) / total**2, 1 / total, bias + sum(p * r for _, p, _, r in centres)

    overlap, norm, width, bias = settled(step, 0.0, 0.5, 0.5, 0.0)
    m = module("three_clusters")
    agree("three_clusters", {m.shown[0]: norm, m.shown[1]: overlap, m.b: bias, response(m.w): width}, 1e-9)


def test_sign_constrained():
    """Half of the capacity without signs, at every margin."""
    kappa = number("sign_constrained", module("sign_constrained").shown[0]) ** -0.5
    assert 0.5 / ((1 + kappa**2) * ndtr(kappa) + kappa * density(kappa)) == pytest.approx(0.5, rel=1e-10)


def test_one_class():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    load, slope, mean = 2.0, 4.0, 2.0

    def force(overlap, q, width, rho):
        return np.clip((rho - overlap - np.sqrt(q) * Z) / width, 0, slope)

    def threshold(overlap, q, width):
        return brentq(lambda r: gauss(force(overlap, q, width, r)) - 1, -50, 50)

    def step(overlap, q, width):
        f = force(overlap, q, width, threshold(overlap, q, width))
        total = 1 - load * gauss(Z * f) / np.sqrt(q)
        power, along = load * gauss(f * f), load * gauss(f)
        return mean**2 * along / total, (power + (mean * along) ** 2) / total**2, 1 / total

    overlap, q, width = settled(step, 3.0, 5.0, 0.5)
    m = module("one_class")
    agree("one_class", {m.shown[0]: q, m.shown[1]: overlap, m.rho: threshold(overlap, q, width)})
    assert number("one_class", m.shown[3]) < 0.25 < number("one_class", average(m.xi[mu] > -1))


# -- outside of learning --------------------------------------------------------------------------


def test_consumers_and_resources_as_published():
    """The published numbers are 0.5226281, 0.6928494, 0.3149783 and 0.2675075."""
    published = (0.5226280970125701, 0.6928494383513383, 0.3149782925563981, 0.26750751158464403)
    agree("consumer_resource", dict(zip(module("consumer_resource").shown, published, strict=True)), 2e-6)


def test_supplied_resources():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    spread, supply = 1 / 16, 2.0  # sigma squared

    def step(R, square_R, n, square_n, chi_R, chi_n):
        demand = 1 + n + np.sqrt(spread * square_n) * Z
        back = spread * chi_n  # a resource feeds those that eat it
        root = np.sqrt(demand**2 + 4 * back * supply)
        states = 2 * supply / (demand + root)
        active, mean, square_mean = truncated(R - 1, np.sqrt(spread * square_R))
        own = spread * chi_R
        return (
            gauss(states), gauss(states**2), mean / own, square_mean / own**2, gauss(states / root), active / own
        )  # fmt: skip

    R, square_R, n, *_ = settled(step, 0.8, 0.7, 1.2, 10.0, 0.5, 4.0, damping=0.2)
    shown = module("supplied_resources").shown
    agree("supplied_resources", dict(zip(shown, (R, square_R, n), strict=False)), 1e-7)


def test_one_sided_diet():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    load, spread, rho = 0.5, 0.25, 0.8

    def step(R, square_R, active_R, n, square_n, active_n):
        left = active_R - load * active_n  # resources over consumers
        own, harm = rho * spread * left, active_R / left
        p, one, two = truncated(2 - load * n, np.sqrt(spread * load * square_n))
        q, three, four = truncated(R - 1, np.sqrt(spread * square_R))
        return one / harm, two / harm**2, p, three / own, four / own**2, q

    R, _, active_R, n, _, active_n = settled(step, 1.0, 1.5, 0.9, 1.0, 2.0, 0.4, damping=0.05)
    agree("one_sided_diet", dict(zip(module("one_sided_diet").shown, (R, active_R, n, active_n), strict=True)), 1e-7)


def test_competing_species():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    mean, square_mean = settled(lambda m, q: truncated(1 - 4 * m, 0.6 * np.sqrt(q))[1:], 0.2, 0.1, damping=0.2)
    active, *_ = truncated(1 - 4 * mean, 0.6 * np.sqrt(square_mean))
    shown = module("competing_species").shown
    agree("competing_species", dict(zip(shown, (mean, square_mean, active), strict=True)), 1e-8)


def test_competing_species_lose_stability_where_bunin_says():
    """At ``sigma = sqrt(2)/(1 + g)``, where half of the species survive."""
    m = module("competing_species")
    found = theory("competing_species").solve({m.A: 4, m.g: 0, m.K: {1: 1}, m.sigma: Rational("1.4")})
    assert 0.97 < found.stability < 1
    assert float(found[m.shown[2]]) == pytest.approx(0.5, abs=0.01)


def test_random_replicators():
    """One-sided payoffs: the field of a strategy has the variance ``<s^2>``."""
    q = brentq(lambda v: 4 * v - truncated(lift(v), np.sqrt(v))[2], 0.5, 9)
    active, *_ = truncated(lift(q), np.sqrt(q))
    m = module("random_replicators")
    agree("random_replicators", {m.shown[0]: active, m.shown[1]: q, m.f: -lift(q)}, 1e-8)


def lift(q):
    return brentq(lambda f: truncated(f, np.sqrt(q))[1] - 2, -30, 30)


def test_minority():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    found, _ = regression(1.0, square, lambda f, c: np.clip(f / c, -1, 1), [(1, 1)], [(0, 0, 1)])
    width = number("minority", response(module("minority").s))
    agree("minority", {module("minority").shown[0]: found, module("minority").shown[1]: (1 + found) / (1 + width) ** 2})


def test_the_market_is_predictable_above_the_published_load():
    """The transition is at 0.33740018858708759188; below, the minimum is zero and flat."""
    m = module("minority")
    assert number("minority", m.shown[1], alpha=Rational("0.3375")) < 1e-6
    with pytest.raises(SymcavityError):
        theory("minority").solve({**m.values, alpha: Rational("0.3373")})


def test_least_variance_portfolio():
    """The variance of the optimum is ``1/<1/s^2>``; that of the estimate is ``alpha/(alpha - 1)`` times as large."""
    m = module("least_variance_portfolio")
    for load in (2, 4):
        found = number("least_variance_portfolio", m.shown[0], alpha=load)
        assert found == pytest.approx(load / (load - 1) / np.mean([1, 1 / 4]), rel=1e-12)


def test_no_short_selling():
    """``w = k (d + z)_+`` with ``k**2 = <w**2>/alpha``: at unit load the mean square of ``(d + z)_+`` is one."""
    d = brentq(lambda d: truncated(d, 1.0)[2] - 1, -3, 9)
    share, mean, square_mean = truncated(d, 1.0)
    shown = module("no_short_selling").shown
    agree("no_short_selling", {shown[0]: square_mean / mean**2, shown[1]: share}, 1e-9)


def test_expected_shortfall():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    load, tail = 4.0, 0.1

    def force(q, width, v):
        return np.clip((-v - np.sqrt(q) * Z) / width, 0, 1)

    def level(q, width):
        return brentq(lambda v: gauss(force(q, width, v)) - tail, -30, 30)

    def step(q, width):
        f = force(q, width, level(q, width))
        curvature = -load * gauss(Z * f) / np.sqrt(q)
        return 1 + load * gauss(f * f) / curvature**2, 1 / curvature

    q, width = settled(step, 2.0, 1.0)
    m = module("expected_shortfall")
    agree("expected_shortfall", {m.shown[0]: q, m.v: level(q, width)})


def test_the_value_of_the_zero_sum_game():
    """The value of the game is 0.657373990051, which was computed without this package."""
    m = module("zero_sum")
    agree("zero_sum", {m.shown[1]: 0.661693690063, m.shown[2]: 0.330846845031}, 1e-11)
    assert number("zero_sum", m.V) == pytest.approx(0.657373990051, rel=1e-10)


def test_random_linear_program():
    """As many constraints hold as there are variables: a share ``1/alpha`` of Gaussian fields is above one."""
    spread = -1 / ndtri(1 / 4)
    excess = 4 * truncated(-1, spread)[2]
    shown = module("random_linear_program").shown
    agree("random_linear_program", {shown[0]: np.sqrt(spread**2 - excess), shown[1]: spread**2}, 1e-11)


def test_box_detection():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    def clip(f, c):
        return np.clip(f / c, -1, 1)

    found, _ = regression(1.2, square, clip, [(0.25, 1)], [(1, 0, 0.5), (-1, 0, 0.5)])
    shown = module("box_detection").shown
    wrong = ndtr(-np.sqrt(1.2 / (found + 0.25)))
    agree("box_detection", {shown[0]: found, shown[1]: wrong})


def test_structured_network():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    def output(variance):
        return gauss(np.tanh(np.sqrt(1 + variance) * Z) ** 2)

    (variance,) = settled(lambda v: (0.5 * 2.5 * output(v),), 1.0)
    shown = module("structured_network").shown
    want = (output(variance), 2.5 * output(variance), 1 - output(variance))
    agree("structured_network", dict(zip(shown, want, strict=True)), 1e-9)
    slopes = gauss((1 - np.tanh(np.sqrt(1 + variance) * Z) ** 2) ** 2)
    assert float(solution("structured_network").stability) == pytest.approx(1.25 * slopes, rel=1e-9)


def test_driven_network():
    """A fixed point of one equation on Gaussian nodes; the dimension by the mean slope, not by that of its square."""
    def output(variance):
        return gauss(np.tanh(np.sqrt(1 + variance) * Z) ** 2)

    (variance,) = settled(lambda v: (0.49 * output(v),), 0.5)
    network = module("driven_network")
    agree("driven_network", dict(zip(network.shown, (output(variance), 1 + variance), strict=True)), 1e-9)
    slope = gauss(1 - np.tanh(np.sqrt(1 + variance) * Z) ** 2)
    found = solution("driven_network").dimension(network.x, over=[network.b])
    sent = (1 - 0.49 * slope**2) ** 2  # of tanh(x); x itself has the drives beside what it hears
    assert float(solution("driven_network").dimension(tanh(network.x[i]), over=[network.b])) == pytest.approx(sent)
    assert float(found) != pytest.approx(sent, rel=1e-3)


def test_robust_noise():
    """A fixed point of two equations on Gaussian nodes; the dimension at the penalty gamma/k."""
    def moments(width, variance):
        centre = np.sqrt(1 + variance) * Z
        inside = np.abs(centre) <= 0.3 * (1 + width)
        message = np.where(inside, centre / (1 + width), 0.3 * np.sign(centre))
        return gauss(message**2), gauss(message * Z) / np.sqrt(1 + variance)

    def step(width, variance):
        square, slope = moments(width, variance)
        new = 1 / (0.1 + 1.5 * slope)
        return new, new**2 * 1.5 * square

    width, variance = settled(step, 1.0, 1.0)
    noise = module("robust_noise")
    agree("robust_noise", dict(zip(noise.shown, (variance, width), strict=True)))
    slope = moments(width, variance)[1]
    penalty = 0.1 * (1 - slope * width) / slope
    nodes, weights = np.polynomial.legendre.leggauss(400)
    angle = np.pi * (nodes + 1) / 2
    low, high = (1 - np.sqrt(1.5)) ** 2, (1 + np.sqrt(1.5)) ** 2
    s = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weights = weights * np.pi / 2 * ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * np.pi * s)
    first, second = (np.sum(weights * (s / (s + penalty) ** 2) ** k) for k in (1, 2))
    found = solution("robust_noise").dimension(noise.w, over=[noise.xi])
    assert float(found) == pytest.approx(first**2 / second, rel=1e-4)


def test_rectified_network():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    def moments(mean, square_mean):
        return [truncated(drive - mean, 0.5 * np.sqrt(square_mean)) for drive in (1, 2)]

    mean, square_mean = settled(lambda *m: np.mean(moments(*m), axis=0)[1:], 0.5, 0.5)
    active = np.mean(moments(mean, square_mean), axis=0)[0]
    shown = module("rectified_network").shown
    agree("rectified_network", dict(zip(shown, (mean, square_mean, active), strict=True)), 1e-8)
