"""Linear dynamics that send smooth functions of their states, without memory: no paths are sampled."""

import numpy as np
import pytest
from sympy import Derivative, Eq, Rational, Sum, Symbol, erf, pi, sign, sqrt, symbols, tanh
from sympy.stats import Normal

from symcavity import Coupling, N, Noise, Quenched, Sites, System, Time, UnsupportedLaw, Variable, average, i, response

t, s, j = Time("t"), Time("s"), Symbol("j")
g, h, D = symbols("g h D", positive=True)
r = Symbol("r", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
SIZE, SENT = average(x[i, t] ** 2), average(tanh(x[i, t]) * tanh(x[i, s]))


def network(phi, more=0):
    field = Sum(J[i, j] * phi(x[j, t]), (j, 1, N))
    return System([Eq(x[i, t + 1], (1 - h) * x[i, t] + h * field + more)], initial=[Eq(x[i, 0], a[i])])


TANH = network(tanh, xi[i, t])


def sigmoid(u):
    return erf(sqrt(pi) * u / 2)


@pytest.mark.parametrize("law", [HALF, Normal("a", Rational(1, 3), 1)])
def test_paths_agree_within_their_errors(law):
    values = {g: 2, h: "1/2", r: 0, D: "1/10", a: law}
    theory = TANH.cavity()
    run, paths = theory.evolve(values, until=6), theory.evolve(values, until=6, method="paths", paths=10000)
    assert run.method == "gaussian"
    for key in (SIZE, SENT, average(a[i] * tanh(x[i, t])), average(x[i, t] ** 4), average(x[i, 1] * x[i, t])):
        gap = np.abs(run[key] - paths[key])
        assert np.all(gap <= 4.5 * paths.errors[key] + 2e-3), key
    assert run[response(x[i, t], s)][3, 0] == 0.25  # what is heard by half, and kept by half, twice


def test_the_arcsine_law_by_hand():
    """x' = J phi(x): the covariance of x at t + 1 is g^2 times the arcsine of that at t."""
    run = network(sigmoid).cavity().evolve({g: "3/2", h: 1, r: 0, a: Normal("a", 0, 1)}, until=5)
    v, known = 1.0, []
    for _ in range(5):
        v = 2.25 * 2 / np.pi * np.arcsin(np.pi / 2 * v / (1 + np.pi / 2 * v))
        known.append(v)
    assert run[SIZE][1:] == pytest.approx(known, rel=1e-13)


def test_the_strength_of_couplings_may_be_a_float():
    """The strength stands alone in the factor of the field; one step by hand: v(1) = h^2 g^2 <phi^2> + (1 - h)^2."""
    theory = network(tanh).cavity()
    run = theory.evolve({g: 1.5, h: 0.25, r: 0, a: HALF}, until=2)
    assert run[SIZE][1] == pytest.approx(0.25**2 * 1.5**2 * np.tanh(1) ** 2 + 0.75**2, rel=1e-13)
    assert run[SIZE] == pytest.approx(theory.evolve({g: "3/2", h: "1/4", r: 0, a: HALF}, until=2)[SIZE], rel=1e-13)


def test_more_digits_continue_the_double_ones():
    values = {g: "1/2", h: "1/2", r: 0, a: HALF}
    theory = network(sigmoid).cavity()
    few, many = (theory.evolve(values, until=3, dps=n)[SIZE][-1] for n in (15, 20))
    assert few == pytest.approx(float(many), rel=1e-14)


def test_two_kinds_and_continuous_time_against_instances():
    b, K = Sites("b", "K")
    L, R = Coupling("L", between=(i, b), variance=1 / N), Coupling("R", between=(i, b), variance=1 / N)
    z = Variable("z", b, over=t)
    system = System(
        [
            Eq(Derivative(x[i, t], t), -x[i, t] + Sum(L[i, b] * z[b, t], (b, 1, K))),
            Eq(z[b, t], Sum(R[i, b] * tanh(x[i, t]), (i, 1, N))),
        ],
        initial=[Eq(x[i, 0], a[i])],
    )
    values = {K / N: 2, a: HALF}
    run = system.cavity().evolve(values, until=2, step="1/4")
    assert run.method == "gaussian"
    comparison = run.compare(system.simulate(values, N=400, seeds=range(100, 116), until=2, step="1/4"), [SIZE, SENT])
    assert all(row.rms < 2.5 for row in comparison), str(comparison)


def test_a_long_run_ends_at_the_stationary_state():
    field = Sum(J[i, j] * sigmoid(x[j, t]), (j, 1, N))
    flow = System([Eq(Derivative(x[i, t], t), -x[i, t] + field + xi[i, t])], initial=[Eq(x[i, 0], a[i])]).cavity()
    values = {g: "6/5", r: 0, D: "1/2"}
    run = flow.evolve({**values, a: HALF}, until=16, step="1/4")
    free = Coupling("J", between=(i, i), variance=g**2 / N)
    field = Sum(free[i, j] * sigmoid(x[j, t]), (j, 1, N))
    rest = System([Eq(Derivative(x[i, t], t), -x[i, t] + field + xi[i, t])], initial=[Eq(x[i, 0], a[i])]).cavity()
    gap = abs(run[SIZE][-1] - rest.stationary({g: "6/5", D: "1/2"}).variance)
    assert gap < run.errors[SIZE][-1] / 3 < 0.01


def test_what_is_not_gaussian_is_sampled_or_refused():
    values = {g: 1, h: 1, r: 0, a: HALF}
    free = Coupling("J", between=(i, i), variance=g**2 / N)
    jumps = System([Eq(x[i, t + 1], Sum(free[i, j] * sign(x[j, t]), (j, 1, N)))], initial=[Eq(x[i, 0], a[i])])
    assert jumps.cavity().evolve({g: 1, a: HALF}, until=2, paths=400).method == "paths"
    assert TANH.cavity().evolve({**values, r: "1/2", D: 1}, until=2, paths=400).method == "paths"
    with pytest.raises(UnsupportedLaw, match="comes back"):
        TANH.cavity().evolve({**values, r: "1/2", D: 1}, until=2, method="gaussian")
    run = TANH.cavity().evolve({**values, D: 1}, until=2)
    with pytest.raises(UnsupportedLaw, match="has no average"):
        run[average(x[i, t] * x[i, s] * x[i, 0])]
