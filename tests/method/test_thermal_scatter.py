"""How much a free energy varies between instances: by hand, by all configurations, and by what is known of it."""

from itertools import product

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    Sites,
    UnstableSolution,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.method import thermal_scatter

beta, j, HALF = Symbol("beta", positive=True), Symbol("j", integer=True), Rational(1, 2)
J, s, b = Coupling("J", between=(i, i), reciprocity=1), Feature("s", values=(-1, 1)), Quenched("b", i)
FIELDS = {2: HALF, -1: HALF}


def declared():
    pairs = Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
    return Problem(-pairs - Sum(b[i] * s[i], (i, 1, N)))


@pytest.fixture(scope="module")
def glass():
    return declared().gibbs(beta).cavity()


def test_spins_that_meet_in_pairs_by_hand(glass):
    """``Var(log 2 cosh(beta h))/beta**2 - q**2/2``, with ``q = <tanh(beta h)**2>``."""
    solution = glass.solve({beta: HALF, b: FIELDS})
    z, weights = np.polynomial.hermite_e.hermegauss(120)
    weights, q = np.tile(weights / weights.sum() / 2, 2), 0.5
    for _ in range(200):
        h = np.concatenate([2 + np.sqrt(q) * z, -1 + np.sqrt(q) * z]) / 2
        q = weights @ np.tanh(h) ** 2
    logs = 2 * np.log(2 * np.cosh(h))
    expected = weights @ logs**2 - (weights @ logs) ** 2 - q**2 / 2
    assert float(solution.variance(glass.free_energy)) == pytest.approx(expected, rel=1e-11)


def free_energies(size, count, warmth, rng):
    """Those of all configurations of small glasses."""
    states = np.array(list(product((-1.0, 1.0), repeat=size)))
    out = []
    for _ in range(count):
        couplings = np.triu(rng.standard_normal((size, size)), 1) / np.sqrt(size)
        energy = -np.sum(states @ couplings * states, axis=1) - states @ rng.choice([2.0, -1.0], size=size)
        least = energy.min()
        out.append(least - np.log(np.sum(np.exp(-(energy - least) / warmth))) * warmth)
    return np.array(out)


def extrapolated(sizes, count):
    """The variance per spin at no ``1/N``, from a parabola, with its standard error."""
    rng, values, errors = np.random.default_rng(8), [], []
    for size in sizes:
        seen = np.var(free_energies(size, count, 2.0, rng), ddof=1) / size
        values.append(seen)
        errors.append(seen * np.sqrt(2 / count))
    design = np.array([[1, 1 / n] for n in sizes])
    turn = np.linalg.pinv(design / np.array(errors)[:, None])
    return float(turn[0] @ (np.array(values) / errors)), float(np.linalg.norm(turn[0]))


def test_spins_in_pairs_by_all_configurations(glass):
    """The negative control: without a half of the couplings' overlap, or with all of it, instances would differ."""
    solution = glass.solve({beta: HALF, b: FIELDS})
    found, overlap = float(solution.variance(glass.free_energy)), float(solution["q_m"]) ** 2
    seen, error = extrapolated((6, 8, 10, 12), 4000)
    assert abs(seen - found) < 4 * error
    assert overlap / 2 > 4 * error


def test_without_a_field_it_grows_no_more_than_order_one(glass):
    assert abs(float(glass.solve({beta: HALF, b: {0: 1}}).variance(glass.free_energy))) < 1e-12


def test_where_one_state_does_not_describe_the_measure_it_is_refused(glass):
    with pytest.warns(UnstableSolution), pytest.raises(UnsupportedLaw, match="stable solutions"):
        glass.solve({beta: 3, b: {0: 1}}).variance(glass.free_energy)


x, w, y, gamma = Coupling("x"), Feature("w"), Quenched("y", mu), Symbol("gamma", positive=True)
loss = Sum((y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
VALUES = {alpha: 2, gamma: HALF, y: {1: HALF, -1: HALF}}


def test_of_a_quadratic_energy_it_is_the_variance_of_the_minimum():
    """What fluctuates adds the logarithm of a determinant, which varies by order one."""
    minimum = float(ConvexProblem(loss).cavity().solve(VALUES).variance())
    warm = ConvexProblem(loss).gibbs(beta).cavity()
    assert float(warm.solve({**VALUES, beta: 3}).variance(warm.free_energy)) == pytest.approx(minimum, rel=1e-11)
    cold = Problem(loss).cavity()
    solution = cold.solve(VALUES)
    for what in ("objective", cold.free_energy):
        assert float(solution.variance(what)) == pytest.approx(minimum, rel=1e-11)


def machine():
    """As many visible units as hidden ones, with fields on the first."""
    a, K = Sites("a", "K")
    F, v, u = Coupling("F", between=(a, i)), Feature("v", values=(-1, 1)), Variable("u", a, values=(-1, 1))
    met = Sum(u[a] * Sum(F[a, i] * v[i], (i, 1, N)), (a, 1, K))
    theory = Problem(-met - Sum(b[i] * v[i], (i, 1, N))).gibbs(beta).cavity()
    return theory, theory.solve({beta: HALF, K / N: 1, b: FIELDS})


def test_a_part_of_the_couplings_that_is_counted_twice_is_seen(monkeypatch):
    """The sabotage: units that meet in pairs are taken for units and data."""
    theory, solution = machine()
    right = float(solution.variance(theory.free_energy))
    monkeypatch.setattr(thermal_scatter, "meets", lambda *_: False)
    assert float(solution[thermal_scatter.variance_of_free_energy(theory)]) < 0.9 * right


def test_two_kinds_that_meet_by_all_configurations():
    """3000 instances of each size."""
    theory, solution = machine()
    found = float(solution.variance(theory.free_energy))
    rng, rows = np.random.default_rng(9), []
    sizes, count = (4, 6, 8, 10), 3000
    for n in sizes:
        states = np.array(list(product((-1.0, 1.0), repeat=n)))
        values = []
        for _ in range(count):
            heard = states @ rng.standard_normal((n, n)) / np.sqrt(n)
            logs = np.sum(np.log(2 * np.cosh(heard / 2)), axis=1) + states @ rng.choice([2.0, -1.0], size=n) / 2
            most = logs.max()
            values.append(2 * (most + np.log(np.sum(np.exp(logs - most)))))
        rows.append(np.var(values, ddof=1) / n)
    errors = np.array(rows) * np.sqrt(2 / count)
    turn = np.linalg.pinv(np.array([[1, 1 / n] for n in sizes]) / errors[:, None])
    assert abs(turn[0] @ (rows / errors) - found) < 4 * np.linalg.norm(turn[0]) + 0.02 * found


def test_other_words_say_what_is_derived():
    warm = ConvexProblem(loss).gibbs(beta).cavity()
    solution = warm.solve({**VALUES, beta: 3})
    for what in ("objective", average(w[i] ** 2)):
        with pytest.raises(UnsupportedLaw, match="free energy is derived alone"):
            solution.variance(what)
