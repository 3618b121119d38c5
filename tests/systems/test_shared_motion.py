"""Variables that all sites share and that move: means of couplings, averages, biases; descents on clusters."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Eq, Rational, Sum, Symbol, exp, log, sqrt, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    Global,
    N,
    P,
    Quenched,
    System,
    Time,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

t, s, j = Time("t"), Time("s"), Symbol("j")
beta, c, g, gamma, h, m, eta = symbols("beta c g gamma h m eta", positive=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Quenched("xi", i)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}

J = Coupling("J", between=(i, i), variance=g**2 / N, mean=c / N, reciprocity=Rational(1, 2))
NETWORK = System([Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)))], initial=[Eq(x[i, 0], a[i])])

X, o = Coupling("X"), Variable("o", mu, over=t)
overlap = Sum(xi[i] * x[i, t], (i, 1, N)) / N
MEMORY = System(
    [
        Eq(x[i, t + 1], tanh(beta * (xi[i] * overlap + Sum(X[mu, i] * o[mu, t], (mu, 1, P)) - alpha * x[i, t]))),
        Eq(o[mu, t], Sum(X[mu, i] * x[i, t], (i, 1, N))),
    ],
    initial=[Eq(x[i, 0], xi[i] * a[i])],
)
b = Global("b", over=t)
SLOW = System(
    [
        Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t] - b[t]), (j, 1, N)) + a[i]),
        Eq(b[t + 1], b[t] + h * (Sum(x[i, t] ** 2, (i, 1, N)) / N - b[t])),
    ],
    initial=[Eq(x[i, 0], 0), Eq(b[0], 0)],
)


def agrees(system, values, observables, until=6, size=400, seeds=12, paths=8000):
    run = system.cavity().evolve(values, until=until, paths=paths, seed=2)
    comparison = run.compare(system.simulate(values, N=size, seeds=seeds, until=until), observables)
    for row in comparison:
        assert row.rms < 2.5, str(comparison)
        assert np.abs(row.z).max() < 4.5, str(comparison)
    return run


def test_couplings_with_a_mean_against_instances():
    agrees(NETWORK, {g: "1/2", c: "3/2", a: {1: "3/4", -1: "1/4"}}, [average(x[i, t]), average(x[i, t] * x[i, s])])


def test_a_memory_is_recalled_as_in_instances_and_its_first_step_is_one_integral():
    values = {alpha: "1/10", beta: 4, xi: HALF, a: {1: "4/5", -1: "1/5"}}
    run = agrees(MEMORY, values, [average(xi[i] * x[i, t]), average(x[i, t] ** 2)], until=5)
    z, weights = np.polynomial.hermite_e.hermegauss(80)
    first = 0.8 * np.tanh(4 * (0.6 + np.sqrt(0.1) * z)) + 0.2 * np.tanh(4 * (0.6 + np.sqrt(0.1) * z))
    seen, error = (found[average(xi[i] * x[i, t])][1] for found in (run, run.errors))
    assert abs(seen - first @ weights / weights.sum()) < 4 * error
    assert run[average(xi[i] * x[i, t])][5] > 0.85


def test_a_variable_with_an_equation_of_its_own_against_instances():
    run = agrees(SLOW, {g: 1, c: "1/2", h: "1/2", a: Normal("a", 0, 1)}, [b[t], average(x[i, t] ** 2), b[t] * b[s]])
    assert run[b[t]].shape == (7,)
    assert run["b"][3] == run[b[3]]


k = Symbol("k", integer=True)
FREE = Coupling("J", between=(i, i), variance=g**2 / N)
GAIN = System(
    [Eq(x[i, t + 1], Sum(FREE[i, j] * x[j, t], (j, 1, N)) / (1 + Sum(x[j, t] ** 2, (j, 1, N)) / N) + a[i])],
    initial=[Eq(x[i, 0], 1)],
)
APART = System(
    [Eq(x[i, t + 1], Sum(FREE[i, j] * tanh(x[j, t] - Sum(x[k, t], (k, 1, N)) / N), (j, 1, N)) + a[i])],
    initial=[Eq(x[i, 0], a[i])],
)


@pytest.mark.parametrize("system", [GAIN, APART])
def test_averages_that_divide_a_field_or_stand_in_what_is_sent_against_instances(system):
    """Nothing comes back to sites, and states are no functions of Gaussian ones alone: sites share a variable."""
    run = agrees(system, {g: "3/2", a: Normal("a", Rational(1, 2), 1)}, [average(x[i, t]), average(x[i, t] * x[i, s])])
    assert run.method == "paths"


y, bias = Quenched("y", mu), Global("b")
V, direction = Feature("w"), Quenched("d", i)
Z = Coupling("x", mean=y[mu] * direction[i] / N)
field = Sum(Z[mu, i] * V[i], (i, 1, N)) + bias
CLUSTERS = ConvexProblem(Sum(log(1 + exp(-y[mu] * field)), (mu, 1, P)) + gamma * Sum(V[i] ** 2, (i, 1, N)) / 2)
GIVEN = {alpha: 2, gamma: "1/2", direction: {1: "1/2", 2: "1/2"}, y: {1: "3/4", -1: "1/4"}}
SEEN = [bias, average(direction[i] * V[i]), average(V[i] ** 2)]


def test_a_descent_on_clusters_with_a_bias_against_instances():
    descent = CLUSTERS.descent(rate=eta, momentum=m)
    agrees(descent, {**GIVEN, eta: "1/2", m: "1/2"}, SEEN, size=300)


def test_a_flow_on_clusters_with_a_bias_against_instances():
    flow = CLUSTERS.flow()
    run = flow.cavity().evolve(GIVEN, until=3, step="1/4", paths=6000)
    comparison = run.compare(flow.simulate(GIVEN, N=300, seeds=10, until=3, step="1/4"), SEEN)
    assert all(row.rms < 2.5 for row in comparison), str(comparison)


def test_a_long_descent_on_clusters_ends_at_rest():
    run = CLUSTERS.descent(rate=Rational(1, 2), momentum=Rational(4, 5)).cavity().evolve(GIVEN, until=36, paths=8000)
    rest = CLUSTERS.cavity().solve(GIVEN)
    for seen in SEEN:
        left = abs(run[seen][-1] - run[seen][-4])
        assert abs(run[seen][-1] - float(rest[seen])) < 4 * run.errors[seen][-1] + 4 * left
        assert run[seen][-1] == pytest.approx(float(rest[seen]), rel=0.05)


@pytest.mark.parametrize("system", [NETWORK, SLOW, CLUSTERS.descent(rate=eta, momentum=m), CLUSTERS.flow()])
def test_every_claim_is_checked_and_holds(system):
    rows = list(system.cavity().derivation.verify(dps=15))
    assert all(row.ok for row in rows)
    assert all(row.checked for row in rows if row.step.claims)


def test_the_record_tells_of_what_is_shared():
    derivation = SLOW.cavity().derivation
    text = " ".join(derivation.to_text().split())
    assert "The variables b(t), M_(u, x)(t) and M_x(t), which all sites share, follow" in text
    assert "b(t + 1) = " in text


def test_what_is_falsified_or_dropped_is_noticed():
    step = next(q for q in SLOW.cavity().derivation if q.rule == "shared_motion")
    assert judge(step, 15)[0].ok
    for wrong in (step.claims[:1], tuple(Equation(claim.lhs, 2 * claim.rhs) for claim in step.claims)):
        assert not judge(replace(step, claims=wrong), 15)[0].ok


@pytest.mark.parametrize(
    ("equations", "initial", "error", "said"),
    [
        ([Eq(b[t + 1], Sum(x[i, t], (i, 1, N)))], [Eq(b[0], 0)], DeclarationError, "not of order one"),
        ([Eq(b[t], b[t - 1])], [], DeclarationError, "missing"),
        ([Eq(b[t], Sum(x[i, t + 1], (i, 1, N)) / N)], [], DeclarationError, "newest value"),
        ([Eq(b[t] + b[t - 1], Sum(x[i, t], (i, 1, N)) / N)], [Eq(b[0], 0)], DeclarationError, "no site index"),
    ],
)
def test_what_cannot_be_shared_says_so(equations, initial, error, said):
    law = Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)) - b[t])
    with pytest.raises(error, match=said):
        System([law, *equations], initial=[Eq(x[i, 0], 0), *initial])


def test_means_that_grow_are_refused():
    K = Coupling("K", between=(i, i))
    strong = Coupling("S", between=(i, i), variance=1 / N, mean=-1 / N ** Rational(1, 2))
    with pytest.raises(UnsupportedLaw, match="of order sqrt"):
        System([Eq(x[i, t + 1], Sum(strong[i, j] * x[j, t], (j, 1, N)))], initial=[Eq(x[i, 0], 0)])
    with pytest.raises(DeclarationError, match="without a coupling"):
        System([Eq(x[i, t + 1], Sum(K[i, j] * x[j, t], (j, 1, N)) - Sum(x[j, t], (j, 1, N)))], initial=[Eq(x[i, 0], 0)])
    still = Global("B")
    with pytest.raises(UnsupportedLaw, match="over=t"):
        System([Eq(x[i, t + 1], Sum(J[i, j] * x[j, t], (j, 1, N)) - still)], initial=[Eq(x[i, 0], 0)])


def test_a_shared_number_that_is_a_factor_of_an_average():
    grown = Eq(b[t + 1], b[t] * average(x[i, t] ** 2) / 2)
    system = System([SLOW.typed[0][0], grown], initial=[Eq(x[i, 0], a[i]), Eq(b[0], 1)])
    both = b[t] * average(x[i, t] ** 2)
    run = agrees(system, {g: "1/2", c: "1/2", a: {1: "3/4", -1: "1/4"}}, [b[t], both], until=4)
    assert run[both] == pytest.approx(run[b[t]] * run[average(x[i, t] ** 2)], rel=0.01)  # batches differ
    assert run[b[t]][1] == pytest.approx(0.5, rel=1e-12)


def test_a_root_of_a_mean_divides_at_each_step():
    """A field divided by the norm of the states has the variance g^2 whatever they are: q(t) = g^2 from step one on."""
    W = Coupling("W", between=(i, i), variance=g**2 / N)
    field = Sum(W[i, j] * x[j, t], (j, 1, N))
    values = {g: 2, a: Normal("z", 0, 1)}
    for root in (sqrt(average(x[i, t] ** 2)), (average(x[i, t] ** 2) ** 2) ** Rational(1, 4)):
        system = System([Eq(x[i, t + 1], field / root)], initial=[Eq(x[i, 0], a[i])])
        run = system.cavity().evolve(values, until=3)
        assert np.allclose(run[average(x[i, t] ** 2)][1:], 4, rtol=1e-9)
        sim = system.simulate(values, N=200, seeds=8, until=3)
        assert run.compare(sim, average(x[i, t] ** 2)).rows[0].rms < 3


def test_what_is_compared_by_default():
    """The states that were declared; names that the engine brings in are no states of the user."""
    values = {g: Rational(1, 2), c: 1, a: Normal("z", 0, 1)}
    table = NETWORK.cavity().evolve(values, until=2).compare(NETWORK.simulate(values, N=50, seeds=4, until=2))
    assert [row.observable for row in table.rows] == [average(x[i, t] ** 2)]
