"""Functions that saturate have their values where exponentials in them overflow."""

import mpmath
import numpy as np
import pytest
from sympy import Symbol, cosh, exp, lambdify, log, sinh, symbols, tanh

from symcavity.algebra.compiled import compiled
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.node import holds
from symcavity.algebra.overflow import without_overflow
from symcavity.evaluate.averages.compiler import Compiled

x, y, z = symbols("x y z", real=True)
s = Symbol("s", positive=True)
FAR = (-1e4, -800.0, -40.0, -1e-9, 0.3, 37.0, 720.0, 1e4)
BODIES = [
    log(1 + exp(x)),
    log(1 + exp(-x) + exp(2 * x) / 3),
    log(exp(x) + exp(-x)),
    log(cosh(x)),
    log(1 + cosh(x) + sinh(x)) - x,
    1 / (1 + exp(-x)) ** 2,
    exp(x) / (1 + exp(x)) ** 2,
    exp(3 * x) / (1 + exp(x) + exp(2 * x)) ** 2,
    (exp(x) - exp(-x)) / (exp(x) + exp(-x)),
    (1 - exp(x)) / (1 + exp(x)),
    sinh(x) / cosh(x) ** 3,
    x / (1 + exp(x)),
    1 / (1 + exp(x) / (1 + exp(-2 * x))),
    exp(-exp(x)),
    (1 + exp(-x)) ** -0.5,
    exp(x - exp(x)) / (1 + exp(-exp(x))),
    1 - tanh(x) ** 2,
    (3 * y - 3 * y * tanh(x) ** 2).subs(y, 2) * tanh(x),
]


@pytest.mark.parametrize("body", BODIES, ids=str)
def test_values_and_slopes_far_out(body):
    """Against mpmath, whose exponentials have no largest value."""
    nested = any(e.args[0].has(exp) for e in body.atoms(exp))  # their slopes are products of zero and infinity far out
    for order in (0,) if nested else (0, 1):
        exact = lambdify(x, body.diff(x, order), "mpmath")
        with np.errstate(all="ignore"):
            found = compiled([x], without_overflow(body).diff(x, order))(np.array(FAR))
        with mpmath.workdps(60):
            right = np.array([float(exact(mpmath.mpf(v))) for v in FAR])
        assert np.allclose(np.broadcast_to(found, right.shape), right, rtol=3e-13, atol=3e-16)


def test_what_overflows_itself_is_infinite():
    """Nothing is clipped."""
    with np.errstate(over="ignore"):
        assert compiled([x], exp(x) / (1 + exp(-x)))(800.0) == np.inf
        assert np.isinf(Compiled(exp(x), "numpy")({x: 800.0}))


def test_complex_steps_pass():
    """Slopes along complex steps are those of the function."""
    body = log(1 + exp(x) + exp(y)) / (1 + exp(x - y))
    value = compiled([x, y], body)(np.array([0.4 + 1e-30j, 30.0 + 1e-30j]), np.array([0.2, 0.1]))
    slope = lambdify([x, y], body.diff(x), "numpy")(np.array([0.4, 30.0]), np.array([0.2, 0.1]))
    assert np.allclose(value.imag / 1e-30, slope, rtol=1e-13)


@pytest.mark.parametrize("width", [1e-3, 1.0, 100.0, 1000.0])
@pytest.mark.parametrize(
    ("body", "same"),
    [
        (log(1 + exp(s * z)), lambda h: np.logaddexp(0, h)),
        (log(cosh(s * z)), lambda h: np.logaddexp(h, -h) - np.log(2)),
        (1 / (1 + exp(-s * z)) ** 2, lambda h: np.exp(-2 * np.logaddexp(0, -h))),
        (z * tanh(s * z), None),
        (z * sinh(s * z) / cosh(s * z), None),
    ],
    ids=["softplus", "log cosh", "sigmoid", "tanh", "sinh over cosh"],
)
def test_averages_over_wide_fields(body, same, width):
    """Against a graded rule, and against each other."""
    found = Compiled(GaussianAverage(body, z), "numpy")({s: width})
    ends = np.concatenate([[0], np.geomspace(1e-6, 12, 60)])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    at = (middle + half * nodes).ravel()
    share = (half * weights).ravel() * np.exp(-at * at / 2) / np.sqrt(2 * np.pi)
    same = same or (lambda h: h / width * np.tanh(h))
    assert found == pytest.approx(share @ (same(width * at) + same(-width * at)), rel=1e-11)


@pytest.mark.parametrize("body", [*BODIES, x + 1, GaussianAverage(exp(x * z) / (1 + tanh(z) ** 2), z)], ids=str)
def test_what_is_remembered_of_an_expression_is_what_it_has(body):
    """An exponential is a power of e too, and a question about other classes is another question."""
    for kinds in ((exp,), (sinh, cosh), (log, tanh), (GaussianAverage,)):
        assert holds(body, kinds) is body.has(*kinds)
