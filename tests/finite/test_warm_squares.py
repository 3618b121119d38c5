"""Messages at a temperature of sites that weigh several fields: a memory of pairs of patterns, and a Gaussian one."""

from itertools import product

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol

from symcavity import (
    Coupling,
    Feature,
    Global,
    N,
    P,
    Problem,
    Sites,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.finite import messages
from symcavity.model.kinds import FEATURE

a, K = Sites("a", "K", "output unit")
x, z = Coupling("x"), Coupling("z", between=(mu, a))
s, v = Feature("s", values=(-1, 1)), Variable("v", a, values=(-1, 1))
w, y = Feature("w"), Variable("y", a)
M, L, beta = Global("M"), Global("L"), Symbol("beta", positive=True)
PAIRS = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) * Sum(z[mu, a] * v[a], (a, 1, K)), (mu, 1, P))
SUMS = Sum(s[i], (i, 1, N)), Sum(v[a], (a, 1, K))
RECALLED = Problem(N * M * L - L * SUMS[0] - M * SUMS[1] - PAIRS).gibbs(beta)
PULLED = Problem(-PAIRS - SUMS[0] / 2 - 3 * SUMS[1] / 10).gibbs(beta)
MACHINE = Problem(
    Sum(w[i] ** 2, (i, 1, N)) + Sum(y[a] ** 2, (a, 1, K)) / 2 - Sum(w[i], (i, 1, N)) - Sum(y[a], (a, 1, K)) / 3
    - Sum(Sum(x[mu, i] * w[i], (i, 1, N)) * Sum(z[mu, a] * y[a], (a, 1, K)), (mu, 1, P)) / 4
).gibbs(beta)  # fmt: skip
OBSERVED = [average(s[i]), average(expect(s[i]) ** 2), average(expect(v[a]) ** 2), response(s)]


def sent(run, kind=FEATURE, seed=0):
    """The thermal means of a kind after the last step."""
    last, law = run.runs[seed].steps[-1].state, run.setup.system.laws[kind]
    return last.site[kind][:, law.unknowns.index(run.setup.system.weights[kind].mean)]


@pytest.mark.parametrize(
    ("problem", "values"),
    [
        (RECALLED, {alpha: Rational(1, 10), K / N: Rational(3, 2), beta: Rational(5, 2)}),
        (PULLED, {alpha: Rational(1, 2), K / N: Rational(1, 2), beta: Rational(4, 5)}),
    ],
)
def test_each_step_is_one_of_the_state_evolution(problem, values):
    run = problem.message_passing(values, N=1000, seeds=6, steps=6)
    assert run.compare(problem.cavity(), OBSERVED, steps=(0, 1, 2, 3, 5)).worst < 4


def test_a_gaussian_machine_has_the_mean_of_its_square():
    """All is quadratic: the means solve linear equations of the instance, whatever its size."""
    run = MACHINE.message_passing({alpha: 1, K / N: Rational(3, 4), beta: 2}, N=40, seeds=1, steps=300)
    X, Z = run.setup.instance(40, 0).couplings
    block = np.block([[2 * np.eye(40), -X.T @ Z / 4], [-Z.T @ X / 4, np.eye(30)]])
    exact = np.linalg.solve(block, np.r_[np.ones(40), np.full(30, 1 / 3)])
    assert sent(run) == pytest.approx(exact[:40], abs=1e-10)
    assert sent(run, a.kind) == pytest.approx(exact[40:], abs=1e-10)


def distance(seeds=6):
    """From sums over all configurations: the error of both kinds over their spread; the median of some instances."""
    values = {alpha: 1, K / N: Rational(1, 2), beta: Rational(1, 2)}
    run, missed = PULLED.message_passing(values, N=10, seeds=seeds, steps=300), []
    for seed in range(seeds):
        X, Z = run.setup.instance(10, seed).couplings
        spins = np.array([*product((-1.0, 1.0), repeat=15)])
        one, other = spins[:, :10], spins[:, 10:]
        logs = (np.sum((one @ X.T) * (other @ Z.T), axis=1) + one.sum(axis=1) / 2 + 0.3 * other.sum(axis=1)) / 2
        weights = np.exp(logs - logs.max())
        exact = weights @ spins / weights.sum()
        ours = np.r_[sent(run, FEATURE, seed), sent(run, a.kind, seed)]
        missed.append(np.sqrt(np.mean((ours - exact) ** 2)) / exact.std())
    return float(np.median(missed))


def test_means_by_all_configurations(monkeypatch):
    right = distance()
    assert right < 0.2
    monkeypatch.setattr(messages.Way, "echo", lambda *_: 0.0)
    assert distance() > 3 * right


def test_data_that_are_left_out_weigh_one_field():
    run = PULLED.message_passing({alpha: 1, K / N: 1, beta: Rational(1, 2)}, N=20, seeds=1, steps=5)
    with pytest.raises(UnsupportedLaw, match="several fields"):
        run.leave_one_out  # noqa: B018
