"""Two sites whose fields have a given part: means over what varies, beside other parameters that are given."""

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Rational, S, Sum, Symbol, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Derivation,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    System,
    UnsupportedLaw,
    Variable,
    alpha,
    i,
    mu,
)
from symcavity.derivations import rectified_network
from symcavity.method import pair_given as rules
from symcavity.method import pair_steps as steps
from symcavity.witness.judge import judge

j, gamma = symbols("j", integer=True), Symbol("gamma", positive=True)
J, s, b, c = Coupling("J", between=(i, i)), Variable("s", i), Quenched("b", i), Quenched("c", i)
x, w, xi, sc = Coupling("x"), Feature("w"), Quenched("xi", mu), Quenched("sc", mu)
HALF = Rational(1, 2)
ROOM = {b: Normal("b", 0, Rational(7, 10)), c: Normal("c", 0, 1)}
NOISY = {gamma: HALF, alpha: 2, xi: Normal("xi", 0, 1), sc: {1: HALF, 2: HALF}}


def network():
    return System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) / 2 + b[i] + c[i]))])


def regression():
    gap = sc[mu] * xi[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
    return ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def test_noise_of_given_sizes_by_random_matrices():
    """Least squares: C = R X' D X R with R = (X'X + gamma)^-1 and the variances D of the noise, which are given."""
    n, measured = 400, []
    for seed in range(8):
        rng = np.random.default_rng([7, seed])
        data = rng.standard_normal((2 * n, n)) / np.sqrt(n)
        size = np.repeat([1.0, 2.0], n)
        answer = np.linalg.solve(data.T @ data + np.eye(n) / 2, data.T) * size
        covariance = answer @ answer.T
        measured.append((np.trace(covariance) / n, np.trace(covariance) ** 2 / n / np.sum(covariance**2)))
    found = regression().cavity().solve(NOISY).covariance(w, over=[xi])
    expected = np.array([found.variance, found.dimension], dtype=float)
    assert np.all(abs(np.mean(measured, 0) - expected) < 4 * np.std(measured, 0) / np.sqrt(8) + 3 / n * expected)


def test_a_network_beside_given_drives_by_its_own_integrals():
    """The overlap p of two draws of b at given c, and D = <c>^2 (1 - <r^2>)^2/<c^2>, in nested Gaussian rules."""
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = weight / weight.sum()
    solution = network().cavity().solve(ROOM)
    q, p = float(solution["q_s"]), 0.0
    for _ in range(200):
        outside = np.sqrt(p / 4 + 1) * z  # the given part of the field, and c
        inside = np.sqrt((q - p) / 4 + 0.49) * z  # the rest of the field, and b
        unit = np.tanh(outside[:, None] + inside)
        mean, square = unit @ weight, unit**2 @ weight
        p = float(weight @ mean**2)
    spread, response = square - mean**2, (1 - square) / 2
    expected = (weight @ spread) ** 2 * (1 - weight @ response**2) ** 2 / (weight @ spread**2)
    found = solution.covariance(s, over=[b])
    assert float(found.variance) == pytest.approx(q - p, rel=1e-10)
    assert float(found.dimension) == pytest.approx(expected, rel=1e-10)
    assert solution.spectrum(s, over=[b]).moments(2) == pytest.approx([float(m) for m in found.moments], rel=1e-10)


def test_units_that_have_a_mean_by_instances():
    """Rectified units: nothing but their drives is quenched, and their outputs have a mean at given couplings."""
    net = System([Eq(s[i], Rational(9, 10) * Sum(J[i, j] * Max(0, s[j]), (j, 1, N)) + b[i])])
    values = {b: Normal("b", 0, 1)}
    measured = net.simulate(values, N=150, seeds=6).dimension(s, over=[b], draws=50)
    expected = float(net.cavity().solve(values).dimension(s, over=[b]))
    assert abs(measured.mean - expected) < 4 * measured.stderr
    assert measured.stderr < 0.04


def test_a_declared_network_of_rectified_units():
    theory = rectified_network.problem.cavity()
    solution = theory.solve(rectified_network.values)
    assert 0 < solution.dimension(rectified_network.s, over=[rectified_network.xi]) < 1
    pair = theory.pair(over=[rectified_network.xi], means=True)
    assert [pair.derivation[key].verdicts()[0].ok for key in ("pair.close", "pair.dimension")] == [True, True]
    again = Derivation.from_json(pair.derivation.to_json(verify=False))
    assert again == pair.derivation


def test_what_is_given_with_weight_one_is_not_there():
    """A given family of one value shifts nothing: the numbers are those without it."""
    plain = System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) / 2 + b[i]))])
    alone = plain.cavity().solve({b: ROOM[b]}, dps=15).dimension(s, over=[b])
    beside = network().cavity().solve({b: ROOM[b], c: {0: 1}}).dimension(s, over=[b])
    assert float(beside) == pytest.approx(float(alone), rel=1e-12)


def test_the_record_says_how_and_every_claim_is_judged():
    pair = regression().cavity().pair(over=[xi])
    assert "two draws" in str(pair.derivation)
    keys = ("pair.given", "pair.close", "pair.dimension", "pair.resolvent")
    assert [v.ok for key in keys for v in pair.derivation[key].verdicts()] == [True] * 4
    assert Derivation.from_json(pair.derivation.to_json(verify=False)) == pair.derivation


def _given(theory):
    made = {step.key: step for step in steps.pair_steps(theory.pair(over=[b]))}
    return [v.ok for v in judge(made["pair.given"])]


@pytest.mark.parametrize("broken", ["covariance", "meanings"])
def test_rules_that_are_broken_are_noticed(broken, monkeypatch):
    """The given part of a field is dropped; second moments are taken for covariances."""
    theory = System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) + (b[i] + c[i]) / 4))]).cavity()
    assert _given(theory) == [True]
    if broken == "covariance":
        whole = rules.GivenFields.whole
        monkeypatch.setattr(rules.GivenFields, broken, lambda self, kind: dict.fromkeys(whole(self, kind), S.Zero))
    else:
        kept = rules.GivenFields.meanings.func
        moments = property(lambda self: {q: (kind, e, 0 * off) for q, (kind, e, off) in kept(self).items()})
        monkeypatch.setattr(rules.GivenFields, broken, moments)
    assert _given(theory) == [False]


def test_what_is_not_known_is_refused():
    solution = network().cavity().solve({b: {1: HALF, -1: HALF}, c: {1: HALF, 2: HALF}}, dps=30)
    with pytest.raises(UnsupportedLaw, match="15 digits"):
        solution.dimension(s, over=[b])


def test_a_second_kind_of_data_without_parameters_of_its_own_by_instances():
    """Hinges push the weights to one side; 16 instances of N = 200 with 60 draws each had the dimension 0.763(11)."""
    a, K = Sites("a", "K", "label")
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    side = Sum(Coupling("z", between=(a, i))[a, i] * w[i], (i, 1, N))
    loss = Sum((xi[mu] - h) ** 2, (mu, 1, P)) / 2 + Sum(Max(0, 1 - side), (a, 1, K))
    theory = ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    solution = theory.solve({alpha: 1, K / N: 1, xi: Normal("xi", 0, 1)})
    assert abs(float(solution.dimension(w, over=[xi])) - 0.763) < 3 * 0.011


def test_what_does_not_reach_a_fit_leaves_the_other_as_it_is():
    """Two fits side by side, of noises of their own: over one of them, one fit varies as it does alone."""
    t, f, z, v = Quenched("t", i), Quenched("f", mu), Coupling("z"), Feature("v")
    gap = xi[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))
    other = f[mu] + Sum(z[mu, i] * (t[i] - v[i]), (i, 1, N))
    alone = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    both = ConvexProblem(
        Sum(gap**2 + other**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2
    )
    values = {gamma: HALF, alpha: 2, xi: Normal("xi", 0, 1), t: {1: HALF, -1: HALF}}
    solution = both.cavity().solve({**values, f: Normal("f", 0, 1)})
    expected = float(alone.cavity().solve(values).dimension(w, over=[xi]))
    assert float(solution.dimension(w, over=[xi])) == pytest.approx(expected, rel=1e-10)
    with pytest.raises(UnsupportedLaw, match="nothing of xi reaches it"):
        solution.dimension(v, over=[xi])
    with pytest.raises(UnsupportedLaw, match="the law of xi has one value"):
        regression().cavity().solve({**NOISY, xi: {1: 1}}).dimension(w, over=[xi])


def test_the_record_of_a_sparse_fit_in_which_few_weights_answer():
    """Covariances of data are small differences: the sites of linear instances have to be as many as the rule says."""
    x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
    gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
    fit = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + Symbol("gamma", positive=True) * Sum(Abs(w[i]), (i, 1, N)))
    found = {step.key: step for step in fit.cavity().pair(over=[e]).derivation}
    assert all(v.ok for key in ("pair.close", "pair.dimension", "pair.resolvent") for v in judge(found[key]))


def test_a_rule_that_has_no_solution_gives_way_to_a_finer_one():
    """A portfolio with costs, over given holdings, against instances: a rule of six nodes has no root."""
    m = Quenched("m", i)
    costs = Sum(Abs(w[i] - m[i]), (i, 1, N)) / 5
    risk = Sum(Sum(x[mu, i] * w[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
    problem = ConvexProblem(risk + costs, [Eq(Sum(w[i], (i, 1, N)), N)])
    values = {alpha: 2, m: {0: Rational(1, 2), 2: Rational(1, 2)}}
    found = float(problem.cavity().solve(values).dimension(w, over=[m]))
    seen = problem.simulate(values, N=50, seeds=6).dimension(w, over=[m], draws=30)
    assert abs(seen.mean - found) < 4 * seen.stderr + found / 25
