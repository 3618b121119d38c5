"""What varies at given couplings, as it is named: parameters of a joint law, labels that are drawn on a field."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Eq, Rational, Sum, Symbol, exp, log, sign, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    N,
    P,
    Quenched,
    System,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    i,
    mu,
)
from symcavity.method.reach import Reach
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE
from symcavity.witness.judge import judge

HALF = Rational(1, 2)
x, w, gamma = Coupling("x"), Feature("w"), Symbol("gamma", positive=True)


def test_a_network_with_a_mode_of_given_strengths_by_its_own_integrals():
    """A mean m n/N of the couplings is a given drive m M: the overlap of two draws, in nested Gaussian rules."""
    unit, drive, j = Variable("s", i), Quenched("b", i), symbols("j", integer=True)
    m, n = Quenched(("m", "n"), i, law={(2, 1): HALF, (-1, HALF): HALF})
    J = Coupling("J", between=(i, i), mean=m[i] * n[j] / N, variance=HALF**2 / N)
    network = System([Eq(unit[i], Sum(J[i, j] * tanh(unit[j]), (j, 1, N)) + drive[i])])
    solution = network.cavity().solve({drive: Normal("b", HALF, 1)})
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    p = q = mode = 0.3
    for _ in range(300):
        given = np.array([2.0, -1.0])[:, None] * mode + 0.5 * np.sqrt(p) * z + 0.5
        sent = np.tanh(given[..., None] + np.sqrt(1 + 0.25 * (q - p)) * z)
        mean, square = sent @ weight, sent**2 @ weight
        sites = weight / 2
        p, q, mode = (mean**2 @ sites).sum(), (square @ sites).sum(), np.dot([1.0, 0.5], mean @ sites)
    varied, slope = square - mean**2, 1 - square
    first, second, gain = (float((e @ sites).sum()) for e in (varied, varied**2, slope**2))
    expected = first**2 * (1 - gain / 4) ** 2 / second
    assert float(solution.dimension(tanh(unit[i]), over=[drive])) == pytest.approx(expected, rel=1e-8)


def test_noises_of_a_joint_law_vary_together():
    """Their sum is a noise of variance three; a part of them would vary beside what says something of it."""
    one, other = Quenched(("a", "b"), mu, law=Normal("n", [0, 0], [[1, HALF], [HALF, 1]]))
    alone, fit = Quenched("e", mu), Sum(x[mu, i] * w[i], (i, 1, N))

    def problem(noise):
        return ConvexProblem(Sum((noise - fit) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)

    both, values = problem(one[mu] + other[mu]), {alpha: 2, gamma: HALF}
    found = both.cavity().solve(values).covariance(w, over=[one, other])
    plain = problem(alone[mu]).cavity().solve({**values, alone: Normal("e", 0, 3**HALF)}).covariance(w, over=[alone])
    assert float(found.off_diagonal) == pytest.approx(float(plain.off_diagonal), rel=1e-13)
    drawn = both.simulate(values, N=40, seeds=8).dimension(w, over=[one, other], draws=60)
    assert abs(drawn.mean - float(found.dimension)) < 4 * drawn.stderr + 1 / 40
    with pytest.raises(DeclarationError, match="names a, whose law is that of b too"):
        both.cavity().solve(values).dimension(w, over=[one])


@pytest.fixture(scope="module")
def drawn():
    """Least squares on labels that are drawn on the field of a teacher."""
    t, field = Quenched("t", i), Sum(x[mu, i] * Quenched("t", i)[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=field)
    gap = y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    return problem, {alpha: 2, gamma: HALF, t: {2: HALF, -2: HALF}}, t, y


def by_matrices(size, count):
    """The dimension of C = A X' D X A, A = (X'X + 1/2)^-1, with the variances D of the labels at given fields."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(2 * size, size)) / size**0.5
        field = inputs @ rng.choice([-2.0, 2.0], size=size)
        varied = np.linalg.inv(inputs.T @ inputs + np.eye(size) / 2) @ inputs.T / (2 * np.cosh(field / 2))
        covariance = 4 * varied @ varied.T
        found.append(np.trace(covariance) ** 2 / (size * np.sum(covariance**2)))
    return np.mean(found), np.std(found) / count**0.5


def test_labels_of_instances_are_drawn_again_on_their_fields(drawn):
    problem, values, t, y = drawn
    sim = problem.simulate(values, N=60, seeds=6)
    found, (expected, error) = sim.dimension(w, over=[y], draws=60), by_matrices(60, 20)
    assert abs(found.mean - expected) < 4 * (found.stderr**2 + error**2) ** 0.5
    with pytest.raises(ValuesError, match="y is drawn on a field that varies with t"):
        sim.dimension(w, over=[t])


def test_a_fit_to_drawn_labels_by_random_matrices(drawn):
    """Each label has the variance that its law has at the field of the teacher, which is given."""
    problem, values, _, y = drawn
    expected, error = by_matrices(500, 5)
    found = problem.cavity().solve(values).dimension(w, over=[y])
    assert abs(float(found) - expected) < 4 * error + 1 / 500


def logistic(count, size=100, draws=60):
    """The dimension of exact minima by Newton's method, over the labels at given inputs and fields."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(2 * size, size)) / size**0.5
        chance = 1 / (1 + np.exp(-inputs @ rng.choice([-2.0, 2.0], size=size)))
        fits = np.zeros((draws, size))
        for row in fits:
            labeled = np.where(rng.random(2 * size) < chance, 1.0, -1.0)[:, None] * inputs
            for _ in range(8):
                answer = 1 / (1 + np.exp(labeled @ row))
                curved = (labeled * (answer * (1 - answer))[:, None]).T @ labeled + np.eye(size) / 2
                row += np.linalg.solve(curved, answer @ labeled - row / 2)
        one, other = (np.cov(half.T) for half in (fits[::2], fits[1::2]))
        found.append(np.trace(one) * np.trace(other) / (size * np.sum(one * other)))
    return np.mean(found), np.std(found, ddof=1) / count**0.5


def test_a_logistic_regression_over_drawn_labels_by_instances(drawn):
    _, values, _, y = drawn
    margin = y[mu] * Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum(log(1 + exp(-margin)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    expected, error = logistic(8)
    assert abs(float(problem.cavity().solve(values).dimension(w, over=[y])) - expected) < 4 * error + 1 / 100


def test_a_teacher_of_signs_leaves_the_noise_of_a_linear_fit(drawn):
    """Where all answers are linear the covariances over a noise do not know what is given, and jumps with it."""
    _, values, t, _ = drawn
    noise, taught = Quenched("e", mu), sign(Sum(x[mu, i] * t[i], (i, 1, N)))

    def dimension(target):
        gap = target + noise[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
        problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
        at = values if target != 0 else {k: v for k, v in values.items() if k != t}
        return float(problem.cavity().solve({**at, noise: Normal("e", 0, 1)}).dimension(w, over=[noise]))

    assert dimension(taught) == pytest.approx(dimension(0), rel=1e-12)


def test_what_is_sent_back_to_what_is_given_counts_for_the_witness(monkeypatch):
    """The sabotage: a feature is not told what is given of it, which it hears through the labels."""
    plain, t = Reach.parameters, Quenched("t", i, law={3: HALF, -3: HALF})
    field = Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=field)
    gap = y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))

    def told():
        theory = ConvexProblem(Sum(gap**2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
        (verdict,) = judge(next(s for s in theory.pair(over=[y], of=w).derivation if s.key == "pair.given"))
        return verdict.ok

    assert told()

    monkeypatch.setattr(Reach, "parameters", lambda self, kind: plain(self, kind) if kind != FEATURE else [])
    assert not told()


def test_the_resolvent_over_drawn_labels_is_judged_and_a_wrong_one_is_seen(drawn):
    """Sums over sites that hold the unknowns, with their derivatives; the negative control leaves one term out."""
    problem, *_, y = drawn
    step = next(s for s in problem.cavity().pair(over=[y], of=w).derivation if s.key == "pair.resolvent")
    assert all(v.ok for v in judge(step))
    first, *others = step.claims
    wrong = replace(step, claims=(Equation(first.lhs, first.rhs * 21 / 20), *others))
    assert not all(v.ok for v in judge(wrong))


def test_labels_that_are_given_beside_a_teacher_that_varies_are_refused(drawn):
    problem, values, t, _ = drawn
    with pytest.raises(UnsupportedLaw, match="drawn on a field, where it is given"):
        problem.cavity().solve(values).dimension(w, over=[t])


def test_labels_vary_with_the_teacher_on_whom_they_are_drawn(drawn):
    """Instances draw the teacher again, and labels on its field."""
    problem, values, t, y = drawn
    found = float(problem.cavity().solve(values).dimension(w, over=[t, y]))
    seen = problem.simulate(values, N=50, seeds=6).dimension(w, over=[t, y], draws=30)
    assert abs(seen.mean - found) < 4 * seen.stderr + found / 25
