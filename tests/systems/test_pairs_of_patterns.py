"""Sites that weigh several fields, and states beside a field: two memories against exact sums."""

import numpy as np
import pytest
from sympy import Abs, Rational, Sum, Symbol

from symcavity import Coupling, Datum, Feature, N, P, Problem, Sites, Variable, alpha, average, expect, i, mu
from symcavity.derivations import bidirectional_memory, projection_memory
from symcavity.errors import NegativeEntropy, UnstableSolution, UnsupportedLaw

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]
a, K = Sites("a", "K", "output unit")
x, z = Coupling("x"), Coupling("z", between=(mu, a))
s, v, w = Feature("s", values=(-1, 1)), Variable("v", a, values=(-1, 1)), Datum("w")
k = Symbol("k", integer=True)
beta, H = Symbol("beta", positive=True), Symbol("H", real=True)
h, u = Sum(x[mu, i] * s[i], (i, 1, N)), Sum(z[mu, a] * v[a], (a, 1, K))
HALF = Rational(1, 2)


def states(n):
    """All configurations of n units, one row each."""
    return 1.0 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def agrees(theory, rows, tolerance, errors=3):
    """Whether a number lies within some errors, and what a finite size may move it by, of the mean over instances."""
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    return np.all(np.abs(np.array(theory) - mean) < errors * error + tolerance)


def test_two_layers_at_a_temperature():
    """The free energy and the overlaps against sums over one layer, with the other one summed in closed form."""
    problem = Problem(-Sum(h * u, (mu, 1, P)) - H * Sum(s[i], (i, 1, N))).gibbs(beta)
    theory, warm, field = problem.cavity(), 0.7, 0.5
    found = theory.solve({alpha: HALF, K / N: HALF, beta: Rational(7, 10), H: HALF})
    product = average(problem["h"][mu] * problem["h_2"][mu])
    told = [float(found[word]) for word in (theory.free_energy, average(expect(s[i]) ** 2), product)]
    rng, n, rows = np.random.default_rng(1), 14, []
    every = states(n)
    for _ in range(60):
        patterns = rng.normal(size=(2, n // 2, n)) / np.sqrt(n)
        pull = (every @ patterns[0].T) @ patterns[1][:, : n // 2]
        log = warm * field * every.sum(1) + np.log(2 * np.cosh(warm * pull)).sum(1)
        top = log.max()
        share = np.exp(log - top)
        free = -(np.log(share.sum()) + top) / (warm * n)
        share /= share.sum()
        energy = share @ (pull * np.tanh(warm * pull)).sum(1) / (n // 2)
        rows.append([free, np.mean((share @ every) ** 2), energy])
    assert agrees(told, rows, tolerance=[0.005, 0.005, 0.03])
    assert not agrees([told[0] - HALF * told[2], *told[1:]], rows, tolerance=[0.005, 0.005, 0.03])


def test_an_instance_of_two_layers():
    """The instances that the engine sums over, against sums by hand over the same couplings."""
    problem = Problem(-Sum(h * u, (mu, 1, P)))
    sim = problem.simulate({alpha: HALF, K / N: 1}, N=4, seeds=2)
    for one in sim:
        f, g = (one.w.weighed(next(iter(one.w.heard)))[q] for q in next(iter(one.w.heard.values())).states)
        matrix = one.w.instance.matrix(f).T @ one.w.instance.matrix(g)
        assert -one.measure.logarithm == pytest.approx(-np.abs(states(4) @ matrix).sum(1).max(), rel=1e-9)


def test_recall_of_pairs():
    """Units that follow their fields from a stored pair settle at the overlap and energy of the theory."""
    m = next(q for q in bidirectional_memory.values if q != K / N)
    theory = bidirectional_memory.problem.cavity()
    found = theory.solve({m: Rational(99, 100), K / N: 1})
    load, energy = float(found[alpha]), float(found[theory.free_energy])
    rng, n, rows = np.random.default_rng(3), 1500, []
    for _ in range(4):
        one, two = (rng.choice([-1.0, 1.0], size=(round(load * n), n)) for _ in range(2))
        one[0] = two[0] = 1
        matrix, left, right = one.T @ two / n, np.ones(n), np.ones(n)
        for _ in range(100):
            right = np.sign(left @ matrix)
            left = np.sign(matrix @ right)
        rows.append([left.mean(), right.mean(), -left @ matrix @ right / n])
    assert agrees([0.99, 0.99, energy], rows, tolerance=[0.003, 0.003, 0.004])
    assert not agrees([0.96, 0.96, energy + 0.05], rows, tolerance=[0.003, 0.003, 0.004])


def test_projection_at_a_temperature():
    """Magnetization and overlap against exact sums: the coefficients of the patterns are integrated over."""
    near = Sum(x[mu, i] * w[mu], (mu, 1, P))
    problem = Problem(Sum((s[i] - near) ** 2, (i, 1, N)) / 2 - H * Sum(s[i], (i, 1, N))).gibbs(beta)
    found = problem.cavity().solve({alpha: HALF, beta: 1, H: HALF})
    told = [float(found[word]) for word in (average(expect(s[i])), average(expect(s[i]) ** 2))]
    rng, n, rows = np.random.default_rng(5), 14, []
    every = states(n)
    for _ in range(80):
        patterns = rng.normal(size=(n // 2, n))
        inside = every @ (patterns.T @ np.linalg.solve(patterns @ patterns.T, patterns))
        log = (inside * every).sum(1) / 2 + every.sum(1) / 2
        share = np.exp(log - log.max())
        mean = (share / share.sum()) @ every
        rows.append([mean.mean(), np.mean(mean**2)])
    assert agrees(told, rows, tolerance=0.004)
    assert not agrees([np.tanh(0.5), np.tanh(0.5) ** 2], rows, tolerance=0.004)  # without the patterns


def test_states_beside_a_field_are_the_nearest():
    """Binary states beside a field are its signs: the declaration in which they are eliminated gives the same."""
    near = Sum(x[mu, i] * w[mu], (mu, 1, P))
    theory = Problem(Sum((Abs(near) - 1) ** 2, (i, 1, N)) / 2).cavity()
    found, other = (t.solve({alpha: Rational(1, 5)}) for t in (theory, projection_memory.problem.cavity()))
    inner = projection_memory.shown[1]
    assert float(found[average(Abs(near))]) == pytest.approx(float(other[inner]), rel=1e-12)
    forces = [float(solution[name]) for solution in (found, other) for name in ("S_lambda", "q_lambda")]
    assert forces[:2] == pytest.approx(forces[2:], rel=1e-12)


def test_glass_of_projection():
    """The lowest energies of small instances fall with the size, and stay above the theory."""
    rng, energies = np.random.default_rng(7), []
    for n in (10, 15):
        every, rows = states(n - 1), []
        every = np.hstack([every, np.ones((len(every), 1))])  # a state and its mirror image are one
        for _ in range(40):
            patterns = rng.normal(size=(n // 5, n))
            inside = every @ (patterns.T @ np.linalg.solve(patterns @ patterns.T, patterns))
            rows.append(0.5 - (inside * every).sum(1).max() / (2 * n))
        energies.append(np.mean(rows))
    theory = projection_memory.problem.cavity()
    limit = float(theory.solve({alpha: Rational(1, 5)})[theory.free_energy])
    assert energies[0] > energies[1] > limit > 0


@pytest.mark.parametrize("body", [-((h * u) ** 2), Abs(h + 2 * u) + Abs(h - u)])
def test_energies_of_several_fields_that_are_no_squares(body):
    with pytest.raises(UnsupportedLaw, match="their energy is not quadratic in them"):
        Problem(Sum(body, (mu, 1, P))).cavity()


def test_continuous_states_beside_a_field():
    t = Feature("t")
    near = Sum(x[mu, i] * w[mu], (mu, 1, P))
    with pytest.raises(UnsupportedLaw, match="otherwise than in a product"):
        Problem(Sum((t[i] - near) ** 2 + Abs(t[i]), (i, 1, N))).cavity()


def test_samples_of_what_a_field_weighs():
    """The field of a sampled instance moves with its states: samples and sums over all states agree."""
    warm = Problem(Sum((h - 1) ** 4, (mu, 1, P)) / 4).gibbs(beta)
    values = {alpha: 1, beta: 1}
    exact, drawn = (warm.simulate(values, N=8, seeds=2, method=how) for how in ("enumeration", "sampling"))
    for observable in (average(s[i]), average(expect(s[i]) ** 2)):
        assert abs(float(exact[observable].mean) - float(drawn[observable].mean)) < 0.03
