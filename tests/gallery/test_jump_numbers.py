"""Systems at the lowest of several minima, against numbers from the literature and fixed points by hand."""

import warnings

import numpy as np
import pytest
from gallery_shared import agree, module, regression, solution, theory
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erfinv
from scipy.stats import norm
from sympy import Rational, Symbol

from symcavity import Global, UnstableSolution, alpha
from symcavity.errors import NegativeEntropy, UnsupportedLaw

BETA = Symbol("beta", positive=True)
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]


def test_associative_memory():
    """The largest load of Amit, Gutfreund and Sompolinsky, and the overlap there."""
    m = Symbol("m", positive=True)
    found = theory("associative_memory")
    top = Rational("0.96741711569")
    loads = [float(found.solve({m: top + shift})[alpha]) for shift in (Rational(-1, 1000), 0, Rational(1, 1000))]
    assert loads[1] == pytest.approx(0.13790556649, abs=2e-11)
    assert loads[0] < loads[1] > loads[2]
    assert float(solution("associative_memory")[Global("M")]) == pytest.approx(0.95, rel=1e-12)


def test_fewest_errors():
    """The equation of Gardner and Derrida: fields within sqrt(2x) below the margin are moved to it."""
    values = {str(k): float(v) for k, v in module("fewest_errors").values.items()}
    kappa = values["kappa"]

    def moved(x):
        return quad(lambda u: (kappa - u) ** 2 * norm.pdf(u), kappa - np.sqrt(2 * x), kappa)[0]

    x = brentq(lambda x: values["alpha"] * moved(x) - 1, 1e-3, 50, xtol=1e-14)
    share, width = module("fewest_errors").shown
    agree("fewest_errors", {share: norm.cdf(kappa - np.sqrt(2 * x)), width: x}, tolerance=1e-9)


def test_best_subset():
    """A fixed point with hard thresholds, where both choices of a weight cost the same; responses by parts."""
    values = {str(k): v for k, v in module("best_subset").values.items()}
    theta, gamma = float(values["theta"]), float(values["gamma"])

    def estimate(field, curvature):
        whole = curvature + gamma
        return np.where(field**2 > 2 * theta * whole, field / whole, 0.0)

    error, _ = regression(
        2.0, lambda r, width: r / (1 + width), estimate, [(0.25, 1.0)], [(0.0, 0.0, 0.8), (2.0, 0.0, 0.2)]
    )
    agree("best_subset", {module("best_subset").shown[0]: error}, tolerance=3e-3)  # the grid by hand has jumps


def test_binary_margin():
    """``alpha*<(M - z)_+**2> = 2/pi``: the margin vanishes at the load 4/pi, where the entropy is long negative."""
    def short(m):
        return quad(lambda z: (m - z) ** 2 * norm.pdf(z), -np.inf, m)[0]

    M = Global("M")
    agree("binary_margin", {M: brentq(lambda m: short(m) - 2 / np.pi, -3, 3, xtol=1e-14)}, tolerance=1e-9)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        near = theory("binary_margin").solve({alpha: Rational(12732, 10000)})
    assert abs(float(near[M])) < 1e-4
    assert any(w.category is NegativeEntropy and "minus infinity" in str(w.message) for w in said)


def test_bidirectional_memory():
    """Closed equations by hand for layers of equal size, and the largest load that follows from them."""
    m = Symbol("m", positive=True)

    def load(overlap):
        y = erfinv(overlap)
        c = 2 * y * np.exp(-(y**2)) / (np.sqrt(np.pi) * overlap)
        return overlap**2 * (1 - c**2) ** 2 / (2 * y**2 * (1 + c**2))

    found, M, L = solution("bidirectional_memory"), Global("M"), Global("L")
    agree("bidirectional_memory", {alpha: load(0.95), M: 0.95, L: 0.95}, tolerance=1e-12)
    assert float(found.stability) == np.inf
    top = Rational("0.93278839737")
    near = [top + shift for shift in (Rational(-1, 1000), 0, Rational(1, 1000))]
    equal = {key: value for key, value in module("bidirectional_memory").values.items() if key != m}
    loads = [float(theory("bidirectional_memory").solve({m: point, **equal})[alpha]) for point in near]
    assert loads == pytest.approx([load(float(point)) for point in near], rel=1e-12)
    assert loads[0] < loads[1] > loads[2]
    assert loads[1] == pytest.approx(0.19980154414, abs=2e-11)


def test_states_that_hear_and_send_nothing_have_no_instances():
    memory = module("projection_memory")
    for problem, more in ((memory.problem, {}), (memory.problem.gibbs(BETA), {BETA: 2})):
        with pytest.raises(UnsupportedLaw, match=r"s\[i\] stands in no sum over couplings"):
            problem.simulate({**memory.values, **more}, N=12, seeds=1)


def test_projection_memory():
    """The load ``1 - 2/pi`` of Kanter and Sompolinsky, at which the glass has no energy; and that of one pattern.

    With one pattern the nearest point is ``v*x``, and ``min sum (|x_i|*v - 1)**2/2`` is ``N*(1 - 2/pi)/2``.
    """
    found, energy = theory("projection_memory"), module("projection_memory").shown[0]
    few, many = (float(found.solve({alpha: load})[energy]) / 2 for load in (Rational(1, 10**6), Rational("0.3633")))
    assert few == pytest.approx((1 - 2 / np.pi) / 2, abs=2e-3)
    assert 0 < many < 1e-6
    # by hand: with r = sqrt(alpha*q) and c = sqrt(2/pi) what follows is (r - c)**2 = alpha*(r**2 - 2*c*r + 1)
    c, load = np.sqrt(2 / np.pi), 0.2
    r = brentq(lambda r: (r - c) ** 2 - load * (r**2 - 2 * c * r + 1), c, 5)
    left = 1 - load / (1 - c / r)  # what 1/(1 + F) is
    agree("projection_memory", {energy: left**2 * (r**2 - 2 * c * r + 1)}, tolerance=1e-12)
