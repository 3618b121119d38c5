"""How many directions instances explore over time: against each matrix's own covariance, the theory, and refusals."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from sympy import Derivative, Eq, Sum, Symbol, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    Coupling,
    DeclarationError,
    N,
    Noise,
    Quenched,
    System,
    Time,
    ValuesError,
    Variable,
    i,
)

t, s, j = Time("t"), Time("s"), Symbol("j")
g, D = symbols("g D", positive=True)
r = Symbol("r", real=True)
x, a, b, xi = Variable("x", i, over=t), Quenched("a", i), Quenched("b", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
BEGIN = Normal("a", 0, 1)
VALUES = {g: "9/10", r: "1/2", D: "1/2", a: BEGIN}


def network(phi, more=0):
    field = Sum(J[i, j] * phi(x[j, t]), (j, 1, N))
    return System([Eq(x[i, t + 1], x[i, t] / 2 + field / 2 + xi[i, t] + more)], initial=[Eq(x[i, 0], a[i])])


def test_a_linear_network_explores_what_the_covariance_of_its_matrix_says():
    """Site by site at a given matrix, with an input that stays: it is in the means, and not in the covariances."""
    sim = network(lambda u: u, b[i]).simulate(
        {**VALUES, g: "1/2", b: {1: "1/2", 3: "1/2"}}, N=30, seeds=6, until=160
    )
    found = {lag: sim.dimension(x, lag, over=[t], since=40, draws=6) for lag in (0, 1)}
    known = {0: [], 1: []}
    for seed in found[0].seeds:
        step = (np.eye(30) + sim.setup.instance(30, seed).couplings[0]) / 2
        covariance = solve_discrete_lyapunov(step, np.eye(30) / 2)
        for lag, rows in known.items():
            c = np.linalg.matrix_power(step, lag) @ covariance
            rows.append(np.trace(c) ** 2 / 30 / np.sum(c**2))
    for lag, estimate in found.items():
        gap = estimate.samples - np.array(known[lag])
        assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
        assert gap.std(ddof=1) < 0.1


def test_instances_explore_as_many_directions_as_the_stationary_theory_says():
    declared = network(tanh)
    rest = declared.cavity().stationary(VALUES, until=24, paths=1000, seed=2)
    sim = declared.simulate(VALUES, N=120, seeds=5, until=200)
    for what, lag in ((x, 2), (tanh(x[i, t]), 0)):
        found = sim.dimension(what, lag, over=[t], since=40, draws=4)
        assert abs(found.mean - rest.dimension(what, lag)) < 4 * np.hypot(
            found.stderr, rest.errors.dimension(what, lag)
        )
        assert found.stderr < 0.05


def test_in_continuous_time_lags_are_times():
    field = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
    flow = System([Eq(Derivative(x[i, t], t), -x[i, t] + field + xi[i, t])], initial=[Eq(x[i, 0], a[i])])
    sim = flow.simulate(VALUES, N=20, seeds=2, until=12, step="1/4")
    one = sim.dimension(x, "1/2", over=[t], since=6, draws=4)
    assert np.array_equal(one.samples, sim.inner.dimension(x, 2, over=[t], since=24, draws=4).samples)
    with pytest.raises(ValuesError, match="whole number of steps"):
        sim.dimension(x, "1/3", over=[t])


def test_what_cannot_be_measured_says_so():
    sim = network(tanh).simulate(VALUES, N=10, seeds=2, until=20)
    with pytest.raises(DeclarationError, match="over which the states move, t"):
        sim.dimension(x, over=[a])
    with pytest.raises(ValuesError, match="four or more"):
        sim.dimension(x, over=[t], draws=2)
    with pytest.raises(ValuesError, match="longer than the run"):
        sim.dimension(x, 11, over=[t])
    with pytest.raises(DeclarationError, match="not a function of states"):
        sim.dimension(xi, over=[t])
    alike = System([Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)))], initial=[Eq(x[i, 0], 1)])
    with pytest.raises(ValuesError, match="are equal"):
        alike.simulate({g: 2, r: 0}, N=10, seeds=2, until=20).dimension(x, over=[t])
