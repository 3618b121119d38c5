"""Couplings with a mean, and averages over sites that the user writes out: against published values and instances."""

from dataclasses import replace

import numpy as np
import pytest
from references import near
from sympy import Eq, Max, Rational, Sum, Symbol, exp, log, sign, symbols
from sympy.stats import Normal

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.equations import Equation
from symcavity.model.rewritings.means import Means

HALF = Rational(1, 2)
w, lam = Feature("w"), Datum("lam")
y, m = Quenched("y", mu, law={1: HALF, -1: HALF}), Quenched("m", i)
gamma, sigma = Symbol("gamma", positive=True), Symbol("sigma", positive=True)
ridge = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
x = Coupling("x")
CLUSTERS = Coupling("x", mean=y[mu] * m[i] / N)
VALUES = {alpha: 2, gamma: 1, m: {1: HALF, -1: HALF}}
FAR = 4.5


def field(coupling):
    return Sum(coupling[mu, i] * w[i], (i, 1, N))


def square(h, label=y[mu]):
    return ConvexProblem(Sum((label - h) ** 2, (mu, 1, P)) / 2 + ridge)


def agrees(problem, values, observables, n=120, seeds=12):
    theory = problem.cavity()
    simulation = problem.simulate(values, N=n, seeds=seeds)
    for row in theory.compare(simulation, observables).rows:
        assert abs(row.z) < FAR, str(row.observable)
    return theory.solve(values)


WRITTEN = Sum(m[i] * w[i], (i, 1, N)) / N
SPELLINGS = {
    "mean": square(field(CLUSTERS)),
    "absorbed": square(field(Coupling("x", mean=m[i] / N)), 1),
    "outside": square(y[mu] * field(CLUSTERS), 1),
    "written out": square(field(x) + y[mu] * WRITTEN),
    "inside": square(Sum((x[mu, i] + y[mu] * m[i] / N) * w[i], (i, 1, N))),
    "divided inside": square(field(x) + y[mu] * Sum(m[i] * w[i] / N, (i, 1, N))),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_clusters_in_other_words(name):
    solution = SPELLINGS[name].cavity().solve(VALUES)
    # the response is that of ridge regression; with d = 1/(1 + S) the overlap is alpha*d*S*(1 - M) = M
    S = 2**0.5 - 1
    overlap = 2 * S / (1 + S) / (1 + 2 * S / (1 + S))
    assert near(solution[response(w)], str(S), "1e-14")
    assert near(solution[average(m[i] * w[i])], str(overlap), "1e-13")


def test_two_clusters_as_published():
    v, delta = Quenched("v", i), Quenched("Delta", i, positive=True)
    problem = square(field(Coupling("x", mean=y[mu] * v[i] / N, variance=delta[i] / N)))
    law = {"0.1": HALF, "0.5": HALF}
    values = {alpha: "1.230408163265306", gamma: "0.01", v: Normal("v", 0, 1), delta: law}
    solution = problem.cavity().solve(values)
    assert near(solution[average(v[i] * w[i])], "0.8296632716023158", "1e-7")
    assert near(solution[average(delta[i] * w[i] ** 2)], "0.3462908996447508", "1e-7")
    assert near(solution[average(delta[i] * response(w[i]))], "2.3787537630917486", "1e-7")


def test_consumers_and_resources_as_published():
    R, K, need = Feature("R"), Quenched("K", i), Quenched("m", mu)
    c = Coupling("c", mean=1 / N, variance=sigma**2 / N)
    eaten = Sum(c[mu, i] * R[i], (i, 1, N))
    problem = ConvexProblem(Sum((R[i] - K[i]) ** 2, (i, 1, N)) / 2, [R[i] >= 0, eaten <= need[mu]])
    values = {sigma: 1, alpha: "1.1", K: Normal("K", 1, 1), need: Normal("m", 1, Rational(1, 10))}
    found = {
        average(lam[mu] > 0): "0.26750751158464403",
        average(lam[mu]): "0.3149782925563981",
        average(lam[mu] ** 2): "0.6197653055667264",
        average(R[i] > 0): "0.6928494383513383",
        average(R[i]): "0.5226280970125701",
        average(R[i] ** 2): "0.5821256086079138",
    }
    solution = agrees(problem, values, list(found), 100, 10)
    for observable, value in found.items():
        assert near(solution[observable], value, "2e-6"), observable


@pytest.mark.parametrize("loss", [lambda s: Max(0, 1 - s), lambda s: log(1 + exp(-s))], ids=["hinge", "logistic"])
def test_instances_of_two_clusters(loss):
    h = field(CLUSTERS)
    problem = ConvexProblem(Sum(loss(y[mu] * h), (mu, 1, P)) + ridge)
    agrees(problem, VALUES, [average(w[i] ** 2), average(m[i] * w[i]), response(w)], 100, 10)


def test_instances_are_ridge_regression_with_means():
    """The weights by the normal equations, with the means in the patterns."""
    problem = SPELLINGS["mean"]
    simulation = problem.simulate(VALUES, N=30, seeds=2)
    for k, sample in enumerate(simulation.feasible):
        instance = simulation.reader(k).instance
        labels, means = (instance.quenched[q] for q in (y, m))
        X = instance.couplings[0] + np.outer(labels, means) / 30
        assert sample[w] == pytest.approx(np.linalg.solve(X.T @ X + np.eye(30), X.T @ labels))


def test_competition_with_a_mean():
    """Lotka-Volterra: the mean interaction in the coupling, or written out beside it."""
    n, A, j = Feature("n"), Symbol("A", real=True), symbols("j", integer=True)
    J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N)
    J0 = Coupling("J", between=(i, i), variance=sigma**2 / N)
    coupled = System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))])
    mean = A * Sum(n[j], (j, 1, N)) / N
    written = System([], [Complementary(n[i], n[i] - 1 + mean + Sum(J0[i, j] * n[j], (j, 1, N)))])
    values = {A: 2, sigma: "1/2"}
    observables = [average(n[i]), average(n[i] ** 2), average(n[i] > 0)]
    one, other = agrees(coupled, values, observables), written.cavity().solve(values)
    assert near(one[average(n[i])], str(other[average(n[i])]), "1e-13")
    assert all(coupled.cavity().derivation.verify())
    # without fluctuations n = 1/(1 + A)
    assert near(written.cavity().solve({A: 2, sigma: "1/1000"})[average(n[i])], "0.333333", "1e-5")


def test_a_teacher_that_sees_the_mean():
    """The average of the teacher's weights is given: nothing is minimised over it, and its field may jump."""
    c, t = Symbol("c", real=True), Quenched("t", i)
    common = Coupling("x", mean=c / N)
    teacher = Sum(common[mu, i] * t[i], (i, 1, N))
    values = {alpha: 2, gamma: 1, c: 1, t: {1: "3/4", -1: "1/4"}}
    agrees(square(field(common), sign(teacher)), values, [average(w[i] ** 2), average(w[i] * t[i]), average(w[i])])
    split = square(field(common), teacher).cavity().solve(values)
    joint = ConvexProblem(Sum(Sum(common[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2 + ridge)
    assert near(split[average(w[i] ** 2)], str(joint.cavity().solve(values)[average(w[i] ** 2)]), "1e-13")


def test_several_products():
    """Two clusters in orthogonal directions, of which the labels know one."""
    y2, m2 = Quenched("z", mu, law={1: HALF, -1: HALF}), Quenched("n", i)
    common = Coupling("x", mean=(y[mu] * m[i] + y2[mu] * m2[i]) / N)
    values = {**VALUES, m2: {2: HALF, -2: HALF}}
    solution = square(field(common)).cavity().solve(values)
    assert near(solution[average(m[i] * w[i])], "0.369398062518129", "1e-13")
    assert abs(solution[average(m2[i] * w[i])]) < 1e-14


def test_two_kinds_that_hear_one_mean():
    """Excitation and inhibition both hear the mean excitation: it is one unknown, and the theory agrees."""
    a, M, j = *Sites("a", "M", "inhibitory"), Symbol("j", integer=True)
    u, v, h = Variable("u", i), Variable("v", a), Quenched("h", i)
    excite = Coupling("J", between=(i, i), mean=3 / (4 * N), variance=1 / (4 * N))
    inhibit = Coupling("K", between=(i, a), mean=-2 / N, variance=1 / (4 * N))
    drive = Coupling("L", between=(a, i), mean=3 / (4 * N), variance=1 / (4 * N))
    heard = Sum(excite[i, j] * u[j], (j, 1, N)) + Sum(inhibit[i, a] * v[a], (a, 1, M))
    problem = System([
        Eq(u[i], Max(0, heard + h[i])),
        Eq(v[a], Max(0, Sum(drive[a, i] * u[i], (i, 1, N)) - 1)),
    ])  # fmt: skip
    assert [str(g) for g in problem.cavity().system.globals] == ["M_u", "M_v"]
    assert all(row.ok for row in problem.cavity().derivation.verify())
    values = {M / N: HALF, h: {0: HALF, 2: HALF}}
    agrees(problem, values, [average(u[i]), average(v[a]), average(u[i] ** 2), average(v[a] > 0)], n=80)


def test_a_penalty_on_the_sum():
    """(sum w)^2/N: by the average, of which it is a function."""
    square_sum = gamma * Sum(w[i], (i, 1, N)) ** 2 / N / 2
    problem = ConvexProblem(Sum((1 - field(x)) ** 2, (mu, 1, P)) / 2 + square_sum + Sum((w[i] - 1) ** 2, (i, 1, N)) / 2)
    agrees(problem, {alpha: 1, gamma: 1}, [average(w[i] ** 2), average(w[i])], 100, 10)
    assert all(problem.cavity().derivation.verify())


@pytest.mark.parametrize("name", ["mean", "written out", "inside"])
def test_the_record(name):
    derivation = SPELLINGS[name].cavity().derivation
    assert all(derivation.verify())
    text = str(derivation)
    assert "becomes an average over these sites" in text
    assert ("has a mean" in text) == (name == "mean")


def broken_sum(monkeypatch):
    rule = Means._average
    monkeypatch.setattr(Means, "_average", lambda *args: 2 * rule(*args))


def broken_average(monkeypatch):
    rule = Means.conditions.fget
    doubled = property(lambda self: {g: (2 * lhs, rhs) for g, (lhs, rhs) in rule(self).items()})
    monkeypatch.setattr(Means, "conditions", doubled)


def broken_coupling(monkeypatch):
    monkeypatch.setattr(Coupling, "centred", lambda self, name, *_: Coupling(name, variance=2 * self.variance))


@pytest.mark.parametrize("sabotage", [broken_sum, broken_average, broken_coupling])
def test_a_wrong_rule_is_seen(monkeypatch, sabotage):
    sabotage(monkeypatch)
    derivation = square(field(Coupling("x", mean=y[mu] * m[i] / N))).cavity().derivation
    (step,) = (s for s in derivation if s.rule == "centre")
    assert not all(v.ok for v in step.verdicts())


def test_a_wrong_claim_is_seen():
    derivation = SPELLINGS["mean"].cavity().derivation
    (step,) = (s for s in derivation if s.rule == "centre")
    for k, claim in enumerate(step.claims):
        wrong = Equation(claim.lhs, 3 * claim.rhs)
        flipped = replace(step, claims=(*step.claims[:k], wrong, *step.claims[k + 1 :]))
        assert not all(v.ok for v in flipped.verdicts())


def test_a_sum_that_grows():
    with pytest.raises(DeclarationError, match="grows with N") as caught:
        square(field(x) + Sum(w[i], (i, 1, N)))
    assert "/N" in str(caught.value)


def test_the_site_that_is_added_to_an_instance():
    experiment = SPELLINGS["mean"].cavity_experiment(VALUES, N=60, seeds=15)
    assert "feature" in str(experiment)


def test_the_declaration_is_shown_as_it_was_written():
    assert "x[mu, i]" in str(SPELLINGS["mean"])
    assert "M_m_w" not in str(SPELLINGS["mean"])
