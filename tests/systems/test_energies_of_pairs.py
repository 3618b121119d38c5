"""The energy of states that meet in pairs, as it is typed: in theories, in instances, and as messages are passed."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sympy import Heaviside, Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, P, Problem, Sites, Variable, alpha, average, expect, i, mu
from symcavity.derivations import spin_glass
from symcavity.errors import NegativeEntropy, UnstableSolution

j, beta, D = Symbol("j", integer=True), Symbol("beta", positive=True), Symbol("D", real=True)
J, x = Coupling("J", between=(i, i), reciprocity=1), Coupling("x")
s, three = Feature("s", values=(-1, 1)), Feature("r", values=(-1, 0, 1))
half = Rational(1, 2)


def pull(q):
    return Sum(J[i, j] * q[j], (j, 1, N))


def pairs(q):
    return Sum(q[i] * pull(q), (i, 1, N)) / 2


def energy(q):
    return average(q[i] * pull(q))


BLUME = Problem(-pairs(three) + D * Sum(three[i] ** 2, (i, 1, N)) - Sum(three[i], (i, 1, N)) / 5).gibbs(beta)


@pytest.mark.parametrize(("cold", "field"), [(half, 1), (Rational(4, 5), half), (2, 2)])
def test_the_energy_of_a_magnet(cold, field):
    """Sherrington and Kirkpatrick: beta*(1 - q**2), twice the energy of pairs with the other sign."""
    solution = spin_glass.problem.cavity().solve({spin_glass.beta: cold, spin_glass.H: field})
    q = float(solution[average(expect(spin_glass.s[i]) ** 2)])
    found = average(spin_glass.s[i] * Sum(spin_glass.J[i, j] * spin_glass.s[j], (j, 1, N)))
    assert float(solution[found]) == pytest.approx(float(cold) * (1 - q**2), rel=1e-12)
    # and what fluctuates: the field of the others is a Gaussian about its mean at each state
    spread = average(pull(spin_glass.s) ** 2) - average(expect(pull(spin_glass.s)) ** 2)
    answer = float(cold) * (1 - q)
    assert float(solution[spread]) == pytest.approx(answer / float(cold) + answer**2 * (1 - q), rel=1e-12)


def test_it_is_a_slope_of_the_free_energy():
    theory = spin_glass.problem.cavity()
    at = {k: theory.solve({spin_glass.beta: 1 + k * Rational(1, 1000), spin_glass.H: half}) for k in (-1, 0, 1)}
    slope = sum(k * (1 + k / 1000) * float(at[k][theory.free_energy]) for k in (-1, 1)) * 500
    told = -at[0][energy(spin_glass.s)] / 2 - at[0][average(spin_glass.s[i])] / 2
    assert slope == pytest.approx(float(told), abs=1e-6)


def test_three_values_by_hand():
    """The model of Blume, Emery and Griffiths with random pairs: two order parameters, by quadrature."""
    solution = BLUME.cavity().solve({beta: 1, D: half})
    q, Q = float(solution[average(expect(three[i]) ** 2)]), float(solution[average(three[i] ** 2)])

    def over(f):
        return quad(lambda z: norm.pdf(z) * f(0.2 + np.sqrt(q) * z), -12, 12, epsabs=1e-12)[0]

    def moments(eta):
        weight = 2 * np.exp((Q - q) / 2 - 0.5)
        total = 1 + weight * np.cosh(eta)
        return weight * np.sinh(eta) / total, weight * np.cosh(eta) / total

    assert over(lambda eta: moments(eta)[0] ** 2) == pytest.approx(q, abs=1e-9)
    assert over(lambda eta: moments(eta)[1]) == pytest.approx(Q, abs=1e-9)
    assert float(solution[energy(three)]) == pytest.approx(Q**2 - q**2, rel=1e-9)
    run = BLUME.message_passing({beta: 1, D: half}, N=800, seeds=5, steps=40)
    last = run[energy(three)][-1]
    assert last.mean == pytest.approx(Q**2 - q**2, abs=4 * last.stderr + 2e-3)


def test_instances_by_all_configurations():
    values = {beta: 1, D: half}
    simulated = BLUME.simulate(values, N=8, seeds=2)
    for k, seed in enumerate(simulated.seeds):
        (couplings,) = simulated.setup.instance(8, seed).couplings
        states = np.array([*product((-1.0, 0.0, 1.0), repeat=8)])
        own = np.einsum("ci,ij,cj->c", states, couplings, states)
        logs = own / 2 - 0.5 * (states**2).sum(axis=1) + 0.2 * states.sum(axis=1)
        weights = np.exp(logs - logs.max())
        exact = weights @ own / weights.sum() / 8
        assert simulated[energy(three)].samples[k] == pytest.approx(exact, rel=1e-10)


def test_the_lowest_state():
    """At zero temperature: the ground state of each instance, and the formula of one lowest minimum."""
    problem = Problem(-pairs(s) - Sum(s[i], (i, 1, N)) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSolution)
        warnings.simplefilter("ignore", NegativeEntropy)
        solution = problem.cavity().solve({})
    # what the cavity field adds to its sign, and as much by the answer of the others
    assert float(solution[energy(s)]) == pytest.approx(4 * norm.pdf(0.5), rel=1e-9)
    simulated = problem.simulate({}, N=10, seeds=3)
    for k, seed in enumerate(simulated.seeds):
        (couplings,) = simulated.setup.instance(10, seed).couplings
        states = np.array([*product((-1.0, 1.0), repeat=10)])
        own = np.einsum("ci,ij,cj->c", states, couplings, states)
        best = np.argmax(own / 2 + states.sum(axis=1) / 2)
        assert simulated[energy(s)].samples[k] == pytest.approx(own[best] / 10, rel=1e-10)


def test_two_kinds_of_spins():
    a, K = Sites("a", "K", "other unit")
    v, G = Variable("v", a, values=(-1, 1)), Coupling("G", between=(i, a))
    between = Sum(G[i, a] * v[a], (a, 1, K))
    problem = Problem(-Sum(s[i] * between, (i, 1, N)) - Sum(s[i], (i, 1, N)) / 2).gibbs(beta)
    values = {beta: 1, K / N: 1}
    solution = problem.cavity().solve(values)
    q, r = (float(solution[average(expect(e) ** 2)]) for e in (s[i], v[a]))
    told = float(solution[average(s[i] * between)])
    assert told == pytest.approx(1 - q * r, rel=1e-10)
    run = problem.message_passing(values, N=800, seeds=5, steps=40)
    last = run[average(s[i] * between)][-1]
    assert last.mean == pytest.approx(told, abs=4 * last.stderr + 2e-3)


def test_losses_of_discrete_states_as_they_are_typed():
    """Counted errors: half of the share that is lost where errors cost, by the density of the fields."""
    h = Sum(x[mu, i] * s[i], (i, 1, N))
    problem = Problem(Sum(Heaviside(-h), (mu, 1, P))).gibbs(beta)
    values = {beta: 1, alpha: Rational(1, 2)}
    solution = problem.cavity().solve(values)
    q = float(solution[average(expect(s[i]) ** 2)])

    def wrong(z):
        below = norm.cdf(-np.sqrt(q) * z / np.sqrt(1 - q)) * np.exp(-1)
        return norm.pdf(z) * below / (below + norm.cdf(np.sqrt(q) * z / np.sqrt(1 - q)))

    assert float(solution[average(Heaviside(-h))]) == pytest.approx(quad(wrong, -12, 12)[0], rel=1e-9)
    run = problem.message_passing(values, N=800, seeds=5, steps=40)
    last = run[average(Heaviside(-h))][-1]
    assert last.mean == pytest.approx(float(solution[average(Heaviside(-h))]), abs=4 * last.stderr + 2e-3)
