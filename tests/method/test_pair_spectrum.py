"""Eigenvalues of covariances at given couplings: random matrices, known laws, instances, a declared resolvent."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Piecewise, Rational, Sum, Symbol, sqrt, symbols, tanh
from sympy.stats import Normal, Uniform

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    System,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.derivations import structured_network as modes

g, gamma, d, z = (Symbol(n, positive=True) for n in ("g", "gamma", "d", "z"))
j, HALF = symbols("j", integer=True), Rational(1, 2)
s, y, b, f = Variable("s", i), Variable("y", i), Quenched("b", i), Quenched("f", i)
x, w, xi, c = Coupling("x"), Feature("w"), Quenched("xi", mu), Quenched("c", i, positive=True)
gap = xi[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
SIGNS = {1: HALF, -1: HALF}


def network(unit, reciprocity=0):
    J = Coupling("J", between=(i, i), reciprocity=reciprocity)
    return System([Eq(s[i], g * Sum(J[i, j] * unit(s[j]), (j, 1, N)) + b[i])])


def ridge(penalty=gamma):
    return ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + Sum(penalty * w[i] ** 2, (i, 1, N)) / 2).cavity()


def drawn(size, reciprocity, seed):
    a = np.random.default_rng(seed).standard_normal((size, size)) / np.sqrt(size)
    up, down = np.sqrt(1 + reciprocity), np.sqrt(1 - reciprocity)
    return (up + down) / 2 * a + (up - down) / 2 * a.T


def near(found, rows, size):
    """Whether a number is the mean of samples, but for parts of order 1/N."""
    return abs(np.mean(rows) - found) < 4 * np.std(rows) / np.sqrt(len(rows)) + 6 / size * abs(found)


def two_moments_of(solution, what, over):
    """A spectrum whose first two moments are the numbers of two sites."""
    found = solution.spectrum(what, over=over)
    first, second = map(float, solution.covariance(what, over=over).moments)
    assert found.moments(2) == pytest.approx((first, second), rel=1e-10)
    assert first**2 / second == pytest.approx(float(solution.dimension(what, over=over)), rel=1e-10)
    return found


@pytest.fixture(scope="module")
def penalized():
    return ridge()


def test_ridge_has_the_law_of_marchenko_and_pastur_in_another_variable(penalized):
    """The eigenvalues are ``s/(s + gamma)**2`` with those ``s`` of X'X: all above gamma, so one branch."""
    found = two_moments_of(penalized.solve({alpha: 4, gamma: HALF, xi: SIGNS}), w, [xi])
    ends = 9 / 9.5**2, 1 / 1.5**2
    assert found.edges == pytest.approx(ends, rel=1e-7)
    assert abs(found.at_zero) < 1e-9
    points = np.linspace(*ends, 9)[1:-1]
    root = (1 - points + np.sqrt(1 - 2 * points)) / (2 * points)  # of x (s + 1/2)**2 = s, the larger one
    density = np.sqrt((9 - root) * (root - 1)) / (2 * np.pi * root) * (root + 0.5) ** 3 / (root - 0.5)
    assert found.density(points) == pytest.approx(density, rel=1e-8)
    assert found.density([ends[0] / 2, 1.0]).tolist() == [0, 0]


def test_fewer_data_than_weights_leave_directions_without_noise(penalized):
    found = two_moments_of(penalized.solve({alpha: Rational(1, 3), gamma: 3, xi: SIGNS}), w, [xi])
    assert found.at_zero == pytest.approx(2 / 3, abs=1e-6)
    low, high = ((1 + k / np.sqrt(3)) ** 2 for k in (-1, 1))
    assert found.edges == pytest.approx((low / (low + 3) ** 2, high / (high + 3) ** 2), rel=1e-6)


def test_symmetric_couplings_have_the_semicircle():
    """``(1 - g u)**-2`` for u in the semicircle."""
    solution = network(lambda u: u, 1).cavity().solve({g: Rational(1, 4), b: Normal("b", 0, 1)})
    found = two_moments_of(solution, s, [b])
    assert found.edges == pytest.approx((4 / 9, 4), rel=1e-7)
    points = np.array([0.6, 1.0, 2.0, 3.5])
    u = (1 - 1 / np.sqrt(points)) * 4
    assert found.density(points) == pytest.approx(np.sqrt(4 - u**2) / (2 * np.pi) * 2 * points**-1.5, rel=1e-8)


@pytest.mark.parametrize("reciprocity", [0, HALF, -Rational(3, 5)])
def test_reciprocal_couplings_by_matrices(reciprocity):
    """(1 - g J)^-1 (1 - g J)^-T: higher moments, resolvents off the axis, the share of eigenvalues below one."""
    solution = network(lambda u: u, reciprocity).cavity().solve({g: Rational(3, 10), b: Normal("b", 0, 1)})
    found, n = two_moments_of(solution, s, [b]), 300
    rows = []
    for seed in range(6):
        answer = np.linalg.inv(np.eye(n) - 0.3 * drawn(n, float(reciprocity), seed))
        values = np.linalg.eigvalsh(answer @ answer.T)
        off = np.mean(1 / (values - 1 - 0.2j)).imag
        rows.append([np.mean(values**3), np.mean(values**4), off, np.mean(values < 1)])
    low, high = found.edges
    nodes = low + (1 - low) * (1 - np.cos(np.pi * (np.arange(60) + 0.5) / 120))
    share = np.sum(found.density(nodes) * (1 - low) * np.sin(np.pi * (np.arange(60) + 0.5) / 120)) * np.pi / 120
    known = [*found.moments(4)[2:], -found.resolvent(1 + 0.2j).imag, share]
    assert all(near(k, np.array(rows)[:, n_], n) for n_, k in enumerate(known))
    assert high < values[-1] * 1.1
    assert not near(1.03 * known[2], np.array(rows)[:, 2], 10**6)  # it would be seen


def test_the_whole_density_has_the_moments():
    solution = network(lambda u: u).cavity().solve({g: HALF, b: Normal("b", 0, 1)})
    found = solution.spectrum(s, over=[b])
    low, high = found.edges
    angle = (np.arange(80) + 0.5) * np.pi / 80
    points = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weights = found.density(points) * np.sin(angle) * (high - low) / 2 * np.pi / 80
    for power, moment in enumerate((1.0, *found.moments(3))):
        assert np.sum(weights * points**power) == pytest.approx(moment, rel=1e-9)


def test_robust_regression_by_random_matrices_refutes_the_naive_slope():
    """A third moment at the penalty gamma/k, with the slope k at the full field."""
    loss = Piecewise((gap**2 / 2, Abs(gap) <= d), (d * Abs(gap) - d**2 / 2, True))
    theory = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    solution = theory.solve({alpha: Rational(3, 2), gamma: Rational(1, 10), d: Rational(3, 10), xi: Normal("xi", 0, 1)})
    first, second, third = two_moments_of(solution, w, [xi]).moments(3)

    def skewness(penalty):
        angle = (np.arange(2000) + 0.5) * np.pi / 2000
        value = 2.5 - 2 * np.sqrt(1.5) * np.cos(angle)
        share = value / (value + penalty) ** 2
        moments = [np.sum(share**k * np.sin(angle) ** 2 / value) for k in range(4)]
        return moments[3] * moments[1] / moments[2] ** 2

    answer, back = float(solution["S_lambda"]), float(solution["S_w"])
    slope = -answer / (1 + answer * back)
    assert third * first / second**2 == pytest.approx(skewness(0.1 / slope), rel=1e-9)
    assert abs(third * first / second**2 - skewness(0.1 / -answer)) > 0.03


def test_a_network_of_saturating_units_by_instances():
    """The third moment from three independent parts of the draws, which is not biased."""
    solution = network(tanh).cavity().solve({g: Rational(7, 10), b: Normal("b", 0, sqrt(Rational(2, 5)))})
    found = two_moments_of(solution, tanh(s[i]), [b])
    n, draws, rows = 150, 900, []
    for seed in range(8):
        rng = np.random.default_rng([7, seed])
        coupling = 0.7 * rng.standard_normal((n, n)) / np.sqrt(n)
        drives, sent = np.sqrt(0.4) * rng.standard_normal((n, draws)), np.zeros((n, draws))
        for _ in range(40):
            sent = np.tanh(coupling @ sent + drives)
        parts = [part @ part.T / (draws // 3) for part in np.split(sent, 3, axis=1)]
        rows.append(np.trace(parts[0] @ parts[1] @ parts[2]) / n)
    first, _, third = found.moments(3)
    assert near(third, rows, n)
    assert abs(np.mean(rows) - 2 * first**3) > 0.02 * third


def test_what_is_given_at_sites_makes_each_its_own():
    """Modes of given strengths; penalties with a density: moments and resolvents of large matrices."""
    n, net = 400, modes
    solution = net.problem.cavity().solve(net.values)
    q, size = (float(solution[average(v.at_site() ** 2)]) for v in (net.s, net.z))
    slope = float(solution.spectrum(net.s, over=[net.xi]).dyson.local[0, 1])
    strength, rows = np.repeat([1.0, 2.0], n // 4), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        into, out = rng.standard_normal((n, n // 2)) / np.sqrt(n), rng.standard_normal((n // 2, n)) / np.sqrt(n)
        answer = np.linalg.inv(np.eye(n) - slope * into @ (strength[:, None] * out))
        sent = strength[:, None] * out @ ((q - slope**2 * size / 2) * answer @ answer.T) @ (strength[:, None] * out).T
        values = np.linalg.eigvalsh(sent)
        rows.append([np.mean(values**3), np.mean(1 / (values - 1 - 0.3j)).imag])
    found = two_moments_of(solution, net.z, [net.xi])
    known = found.moments(3)[2], -found.resolvent(1 + 0.3j).imag
    assert all(near(k, row, n // 2) for k, row in zip(known, np.array(rows).T, strict=True))


def test_a_density_of_penalties_by_matrices():
    solution = ridge(c[i]).solve({alpha: 2, c: Uniform("c", Rational(1, 5), 2), xi: SIGNS})
    found, n, rows = two_moments_of(solution, w, [xi]), 300, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        data = rng.standard_normal((2 * n, n)) / np.sqrt(n)
        fit = np.linalg.solve(data.T @ data + np.diag(0.2 + 1.8 * (rng.permutation(n) + 0.5) / n), data.T)
        values = np.linalg.eigvalsh(fit @ fit.T)
        rows.append([np.mean(values**3), np.mean(1 / (values - 0.2 - 0.05j)).imag])
    known = found.moments(3)[2], -found.resolvent(0.2 + 0.05j).imag
    assert all(near(k, row, n) for k, row in zip(known, np.array(rows).T, strict=True))


def test_the_resolvent_is_a_declaration_that_the_engine_solves():
    """``(z - R R')^-1 f`` with ``R = (1 - g J)^-1`` as linear equations in both directions of the same couplings."""
    J = Coupling("J", between=(i, i))
    forward, back = Sum(J[i, j] * s[j], (j, 1, N)), Sum(J[j, i] * y[j], (j, 1, N))
    declared = System([Eq(s[i], g * forward + y[i]), Eq(y[i], g * back - (s[i] + f[i]) / z)])
    solved = declared.cavity().solve({g: Rational(3, 10), z: 2, f: SIGNS}, dps=20)
    expected = -(1 + solved[average(f[i] * s[i])]) / 2
    solution = network(lambda u: u).cavity().solve({g: Rational(3, 10), b: Normal("b", 0, 1)})
    assert solution.spectrum(s, over=[b]).resolvent(-2).real == pytest.approx(float(expected), rel=1e-10)
    assert mpmath.mpf(expected) != 0


def test_the_equations_are_met_by_the_numbers(penalized):
    solution = penalized.solve({alpha: 2, gamma: 1, xi: SIGNS})
    spectrum, pair = solution.spectrum(w, over=[xi]), penalized.pair(over=[xi])
    at, symbols_, legs = 0.2 + 0.1j, pair.resolvent.symbols, list(pair.legs)
    means = spectrum.dyson.at(at)
    put = {symbol: complex(means[legs.index(a), legs.index(e)]) for (a, e), symbol in symbols_.items()}
    put |= {pair.resolvent.argument: at, pair.resolvent.value: spectrum.resolvent(at)}
    put |= {k: float(v) for k, v in solution.values.items()} | {alpha: 2, gamma: 1}
    for claim in pair.resolvent.equations:
        assert abs(complex((claim.lhs - claim.rhs).xreplace(put).evalf())) < 1e-12


def test_what_is_no_argument_is_refused(penalized):
    found = penalized.solve({alpha: 2, gamma: 1, xi: SIGNS}).spectrum(w, over=[xi])
    with pytest.raises(ValuesError, match="no negative eigenvalues"):
        found.density([0.1, -1])
    with pytest.raises(ValuesError, match="not numbers"):
        found.density(["a"])
    with pytest.raises(ValuesError, match="not a number"):
        found.resolvent("z")
    with pytest.raises(ValuesError, match="moments"):
        found.moments(0)
    assert found.resolvent(0.2 - 0.1j) == found.resolvent(0.2 + 0.1j).conjugate()
