"""Gaussian parameters that only shift a field widen it: averages over both become averages over one."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import Eq, Piecewise, Rational, Sum, Symbol, cosh, lambdify, log, sqrt, tanh
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage, implicit_average
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.gaussian_laws import absorb
from symcavity.evaluate.averages.integrals import LAWS, Pass

y = Quenched("y", mu)
u, z = Symbol("u", real=True), Symbol("z", real=True)
LAW = {y: (Rational(1, 3), Rational(2))}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(200)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def inverted(psi, z, label):
    return brentq(lambda x: psi(x, label) - z, -200, 200, xtol=1e-14)


@pytest.mark.parametrize(
    ("expr", "psi"),
    [
        (tanh(u - y[mu]) ** 2, (u + tanh(u - y[mu])) / 2),  # noise of a label in a loss
        (tanh(y[mu] - u) * (1 - tanh(y[mu] - u)), 2 * u + tanh(u - y[mu])),
        (1 / (1 + (u + y[mu] / 2) ** 2), 3 * u + 3 * y[mu] / 2 + tanh(u + y[mu] / 2)),  # the Gaussian is not touched
        (u**2, (u + tanh(u) - y[mu]) / 3),  # noise in the field itself
    ],
)
def test_noise_widens_an_implicit_average(expr, psi):
    """Against Gauss rules over both Gaussians, with the equation solved at each of their nodes."""
    wide = absorb(average(ImplicitAverage(expr, u, psi)), LAW)
    assert isinstance(wide, ImplicitAverage)
    assert not wide.has(y)
    value, law = (lambdify((u, y[mu]), e, "numpy") for e in (expr, psi))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    brute = sum(
        a * b * value(inverted(law, z, 1 / 3 + 2 * s), 1 / 3 + 2 * s)
        for a, s in zip(weights, nodes, strict=True)
        for b, z in zip(weights, nodes, strict=True)
    )
    assert Pass([wide])({})[0] == pytest.approx(brute, rel=1e-5)


def test_noise_widens_a_gaussian_average():
    wide = absorb(average(GaussianAverage(1 / (1 + (2 * z - 3 * y[mu]) ** 2), z)), LAW)
    assert isinstance(wide, GaussianAverage)
    assert not wide.has(y)
    brute = mpmath.quad(
        lambda v: mpmath.npdf(v, -1, mpmath.sqrt(40)) / (1 + v * v), [-60, -20, -5, -1, 0, 1, 5, 20, 60]
    )
    assert ExactPass([wide])({})[0] == pytest.approx(brute, rel=1e-12)


def test_noise_widens_a_field_beside_another_one():
    """Of two nested averages, whose integrand holds both variables in one sum."""
    v = Symbol("v", real=True)
    inner = GaussianAverage(tanh(z / 2 + tanh(v) / 2 + y[mu]) ** 2, v)
    wide = absorb(average(GaussianAverage(inner, z)), LAW)
    assert not wide.has(y)
    nodes, weights = NODES[None, :], WEIGHTS[None, :]
    field = 1 / 3 + np.sqrt(4 + 1 / 4) * NODES[:, None]
    brute = np.sum(WEIGHTS[:, None] * weights * np.tanh(field + np.tanh(nodes) / 2) ** 2)
    assert Pass([wide])({})[0] == pytest.approx(brute, rel=1e-8)


@pytest.mark.parametrize(
    "node",
    [
        ImplicitAverage(tanh(u - y[mu]) * y[mu], u, u + tanh(u - y[mu])),  # the parameter stands beside its shift
        ImplicitAverage(tanh(u), u, (u + tanh(u)) * sqrt(1 + y[mu] ** 2)),  # it is a scale
        ImplicitAverage(tanh(u), u, u + tanh(u) - y[mu] ** 2),  # its square is not Gaussian
        ImplicitAverage(tanh(u), u, u + tanh(u) - y[mu], 0),  # a half-line is not shifted into itself
        GaussianAverage(Piecewise((z**3, z > y[mu]), (1 / (1 + z**2), True)) * cosh(y[mu]), z),
    ],
)
def test_what_does_more_than_shift_stays(node):
    assert absorb(average(node), LAW) == average(node)


def test_all_roots_are_looked_for_on_rules_that_are_held(monkeypatch):
    """A system of two saturating kinds with Gaussian labels, against its fixed point iterated by hand."""
    x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
    strength = Symbol("strength", positive=True)
    system = System(
        [
            Eq(strength * w[i] + tanh(w[i]), Sum(x[mu, i] * xi[mu], (mu, 1, P))),
            Eq(xi[mu], tanh(y[mu] - Sum(x[mu, i] * w[i], (i, 1, N)))),
        ]
    )
    refined, refine = [], Pass.refine
    monkeypatch.setattr(Pass, "refine", lambda *args: refined.append(args) or refine(*args))
    values = {y: Normal("n", 0, 1), alpha: "1/20", strength: "3/10"}
    theory = system.cavity()
    solution = theory.solve(values, dps=25)
    assert len(refined) < 150  # forty starting points, and some thousand evaluations
    r, load, s_xi, q_xi, s_w, q_w = 0.3, 0.05, -0.5, 0.2, 0.5, 0.1

    def inverse(linear, gain, shift, at):
        """Solve ``linear*v + gain*tanh(v - shift) = at``."""
        found = np.zeros(np.broadcast(shift, at).shape)
        for _ in range(200):
            t = np.tanh(found - shift)
            found -= np.clip((linear * found + gain * t - at) / (linear + gain * (1 - t**2)), -1, 1)
        return found

    for _ in range(60):
        t = np.tanh(NODES[:, None] - inverse(1, s_w, NODES[:, None], np.sqrt(q_w) * NODES[None, :]))
        q_xi = WEIGHTS @ t**2 @ WEIGHTS
        s_xi = -(WEIGHTS @ ((1 - t**2) / (1 + s_w * (1 - t**2))) @ WEIGHTS)
        v = inverse(r - load * s_xi, 1, 0.0, np.sqrt(load * q_xi) * NODES)
        q_w = WEIGHTS @ v**2
        s_w = WEIGHTS @ (1 / (r - load * s_xi + 1 - np.tanh(v) ** 2))
    for name, value in (("S_xi", s_xi), ("q_xi", q_xi), ("S_w", s_w), ("q_w", q_w)):
        assert float(solution[name]) == pytest.approx(value, rel=1e-9)
    assert solution.residual < 1e-25
    coarse = theory.solve(values, dps=15)
    assert float(coarse["q_w"]) == pytest.approx(float(solution["q_w"]), rel=1e-13)


def test_labels_with_noise_are_those_of_a_wider_field():
    """A smooth loss of a noisy label: the closed equations hold with the label's own average taken by a rule."""
    x, w = Coupling("x"), Feature("w")
    penalty = Symbol("penalty", positive=True)
    field = Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) * penalty / 2 + Sum(log(cosh(y[mu] - field)), (mu, 1, P)))
    theory = problem.cavity()
    solution = theory.solve({y: Normal("n", 0, 2), alpha: 2, penalty: "1/2"}, dps=15)
    env = solution.environment("numpy")
    assert LAWS in env
    for equation in theory.equations:
        left, right = Pass([equation.lhs, equation.rhs])(env)
        assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("symbol", ["shift", "edge"])
def test_an_integrand_that_jumps_moves_with_its_ends(symbol):
    """The derivative of the share of an implicit unknown beyond an edge, against differences of the normal law."""
    shift, edge, x = Symbol("shift", real=True), Symbol("edge", real=True), Symbol("x", real=True)
    share = implicit_average(Piecewise((x, x > edge), (0, True)), x, x + tanh(x - shift))
    derivative = share.diff({"shift": shift, "edge": edge}[symbol])
    at = {"shift": 0.3, "edge": 0.7}

    def mean(move):
        moved = {**at, symbol: at[symbol] + move}

        def weighted(x):
            z, back = x + mpmath.tanh(x - moved["shift"]), mpmath.sech(x - moved["shift"]) ** 2
            return x * mpmath.npdf(z) * (1 + back)

        return mpmath.quad(weighted, [moved["edge"], 2, 5, 12])

    expected = (mean(mpmath.mpf("1e-5")) - mean(-mpmath.mpf("1e-5"))) / mpmath.mpf("2e-5")
    found = Compiled(derivative, "numpy")({k: at[k.name] for k in derivative.free_symbols})
    assert float(found) == pytest.approx(float(expected), rel=1e-7)
