"""The stability of a solution: against matrices, transitions that are known, and finite systems that are disturbed."""

import warnings

import mpmath
import numpy as np
import pytest
from sympy import Eq, Rational, S, Sum, Symbol, sqrt, tanh

from symcavity import (
    Ball,
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Ellipsoid,
    Feature,
    FlatMinimum,
    N,
    NotConverged,
    P,
    Quenched,
    Sites,
    System,
    UnstableSolution,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.derivations import gardner, manifold

x, y = Coupling("x"), Coupling("y")
w, r, h, s, xi = Feature("w"), Feature("r"), Feature("h"), Datum("s"), Datum("xi")
gamma, gain = Symbol("gamma", positive=True), Symbol("g", positive=True)
HALF = Rational(1, 2)


def test_the_spread_of_a_resolvent_is_a_trace():
    """Ridge regression: (1/N) tr G^2 = <chi^2>/(1 - stability), where G is the inverse Hessian."""
    loss = Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2
    theory = ConvexProblem(loss + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    solution = theory.solve({gamma: HALF, alpha: 2}, dps=30)
    # (1/N) tr G = m solves m = 1/(gamma + alpha/(1 + m)), and (1/N) tr G^2 = -dm/dgamma
    g, m = Symbol("g", positive=True), Symbol("m", positive=True)
    law = m * (g + 2 / (1 + m)) - 1
    root = (sqrt(S(17)) - 3) / 2
    assert law.subs({g: HALF, m: root}).simplify() == 0
    slope = (law.diff(g) / law.diff(m)).subs({g: HALF, m: root})
    with mpmath.workdps(30):
        found = solution[average(response(w[i]) ** 2)] / (1 - solution.stability)
        assert abs(found - mpmath.mpf(slope.evalf(30))) < 1e-28
    matrix = np.random.default_rng(3).normal(size=(1200, 600)) / np.sqrt(600)
    inverse = np.linalg.inv(matrix.T @ matrix + np.eye(600) / 2)
    assert abs(np.sum(inverse**2) / 600 - float(found)) < 0.01


def test_the_minority_game_is_marginal_at_its_transition():
    field = Quenched("A", mu)
    spin = Feature("s")
    problem = ConvexProblem(
        Sum((field[mu] + Sum(x[mu, i] * spin[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2,
        [spin[i] <= 1, spin[i] >= -1],
    )
    theory = problem.cavity()
    critical = Rational("0.33740018858708759188")  # Challet, Marsili and Zecchina, Phys. Rev. Lett. 84, 1824 (2000)
    near = theory.solve({alpha: critical + Rational(1, 10**8), field: {1: HALF, -1: HALF}}, dps=25)
    assert 0 < 1 - near.stability < 1e-7
    above = theory.solve({alpha: HALF, field: {1: HALF, -1: HALF}})
    assert above.stability < 0.9
    with pytest.raises(NotConverged):  # nearer by, nothing is proved
        theory.solve({alpha: critical + Rational(1, 10**11), field: {1: HALF, -1: HALF}})
    with pytest.raises(FlatMinimum, match="flat"):
        theory.solve({alpha: Rational(33, 100), field: {1: HALF, -1: HALF}})


def test_competing_species_lose_their_unique_state_at_the_square_root_of_two():
    """Lotka and Volterra without reciprocity (Bunin, Phys. Rev. E 95, 042414): sigma_c = sqrt(2)."""
    J, n, u = Coupling("J", between=(i, i)), Feature("n"), Feature("u")
    sigma, j = Symbol("sigma", positive=True), Symbol("j", integer=True)
    system = System(
        [Eq(u[i], n[i] - 1 - sigma * Sum(J[i, j] * n[j], (j, 1, N)))], [Complementary(n[i], u[i])]
    )
    theory = system.cavity()
    values = [float(theory.solve({sigma: v}).stability) for v in (Rational(1, 2), 1, Rational(14, 10))]
    assert values == sorted(values)
    assert abs(float(theory.solve({sigma: Rational(1414213, 10**6)}).stability) - 1) < 1e-5
    assert theory.gains.product == sigma**2 * average(response(n[i]) ** 2)


def network():
    return System(
        [
            Eq(r[i], tanh(h[i])),
            Eq(h[i], gain * Sum(x[mu, i] * s[mu], (mu, 1, P)) + HALF),
            Eq(s[mu], Sum(y[mu, i] * r[i], (i, 1, N))),
        ]
    )


@pytest.mark.parametrize("strength", [HALF, 2])
def test_differences_between_two_trajectories_grow_by_the_stability(strength):
    """Without feedback the theory is that of the iterated map: two close states part, or meet, by this factor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSolution)
        claimed = float(network().cavity().solve({gain: strength, alpha: 1}).stability)
    rng = np.random.default_rng(1)
    size, ratios = 3000, []
    g = float(strength)
    for _ in range(3):
        a, b = (rng.normal(size=(size, size)) / np.sqrt(size) for _ in range(2))
        state = rng.normal(size=size)
        for _ in range(8):
            state = g * a @ (b @ np.tanh(state)) + 0.5
        change = rng.normal(size=size)
        growth = []
        for _ in range(4):
            slope = 1 - np.tanh(state) ** 2
            new = g * a @ (b @ (slope * change))
            state = g * a @ (b @ np.tanh(state)) + 0.5
            growth.append(np.sum(new**2) / np.sum(change**2))
            change = new
        ratios.append(np.exp(np.mean(np.log(growth))))
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    assert abs(np.mean(ratios) - claimed) < 4 * error + 0.02 * claimed
    assert (claimed > 1) == (strength > 1)


def test_an_unstable_solution_warns_by_name():
    theory = network().cavity()
    with pytest.warns(UnstableSolution, match=r"solution\.stability = 1\."):
        theory.solve({gain: 2, alpha: 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert theory.solve({gain: HALF, alpha: 1}).stability < 1


def test_three_kinds_and_several_fields():
    """A network of three kinds with two couplings into one of them: the eigenvalue is that of all the ways round."""
    a, K = Sites("a", "K", "hidden unit")
    F = Coupling("F", between=(a, i), variance=1 / N)
    G = Coupling("G", between=(a, i), variance=1 / N)
    z = Variable("z", a)
    u, v = Feature("u"), Datum("v")
    system = System(
        [
            Eq(u[i], gain * Sum(F[a, i] * z[a], (a, 1, K)) + Sum(x[mu, i] * v[mu], (mu, 1, P)) / 3 + 1),
            Eq(z[a], Sum(G[a, i] * u[i], (i, 1, N))),
            Eq(v[mu], Sum(y[mu, i] * u[i], (i, 1, N))),
        ]
    )
    theory = system.cavity()
    solution = theory.solve({gain: HALF, alpha: 2, K / N: Rational(3, 4)}, dps=30)
    exact = Rational(1, 4) * Rational(3, 4) + Rational(2, 9)  # variances of the two ways from features to features
    with mpmath.workdps(30):
        assert abs(solution.stability - mpmath.mpf(59) / 144) < 1e-28
    assert exact == Rational(59, 144)
    checked = {s.key: [v.ok for v in s.verdicts()] for s in theory.derivation if s.key.startswith("stability")}
    assert all(all(found) and found for found in checked.values())
    assert len(checked) == 3


def test_where_it_is_not_derived_it_says_so():
    naive = gardner.problem.naive().solve({gardner.kappa: 1})
    with pytest.raises(UnsupportedLaw, match="naive"):
        naive.stability  # noqa: B018


@pytest.mark.parametrize("softness", ["none", "linear", "quadratic"])
def test_the_spread_of_sets_is_that_of_their_projections(softness):
    """Of balls by integrals, against differences of numerical minima; other sets are sampled, with their error."""
    norm, cost = Sum(w[i] ** 2, (i, 1, N)) / 2, 2 * xi[mu] if softness == "linear" else xi[mu] ** 2
    least = 1 if softness == "none" else 1 - xi[mu]
    bounds = [manifold.g(Sum(manifold.u[mu, i, manifold.a] * w[i], (i, 1, N))) >= least]
    bounds += [xi[mu] >= 0] if softness == "linear" else []
    theory = ConvexProblem(norm if softness == "none" else norm + Sum(cost, (mu, 1, P)), bounds).cavity()
    given = {alpha: Rational(1, 4), manifold.g: Ball(2, HALF)}
    solution = theory.solve(given)
    F, q = (float(solution[key]) for key in (response(w), average(w[i] ** 2)))
    rng, size = np.random.default_rng(5), 1e-4
    T = np.sqrt(q) * rng.normal(size=(1500, 3))

    def multiplier(T):
        """F times the message at every field, by bisection of its length: an anchor of the ball has the length R."""
        low, high = np.zeros(len(T)), np.full(len(T), 2 * F if softness == "linear" else 1e3)
        for _ in range(80):
            lam = (low + high) / 2
            away = np.linalg.norm(T[:, :2], axis=1)
            level = T[:, 2] + lam - np.maximum(away - lam / 2, 0) / 2
            short = level < 1 - (lam / (2 * F) if softness == "quadratic" else 0)
            low, high = np.where(short, lam, low), np.where(short, high, lam)
        point = -T[:, :2] / np.maximum(2 * away, lam)[:, None]
        return lam[:, None] * np.column_stack([point, np.ones(len(T))])

    ways = (multiplier(T + size * e) - multiplier(T - size * e) for e in np.eye(3))
    squares = sum(np.square(way / (2 * size)).sum(axis=1) for way in ways)
    found = float(solution.stability / given[alpha])  # the squares of F and of the response of the weights cancel
    assert abs(squares.mean() - found) < 4 * squares.std() / np.sqrt(len(T))
    assert solution.stderr(theory.gains.product) == 0
    rough = theory.solve({**given, manifold.g: Ellipsoid([HALF, HALF + Rational(1, 10**6)])})
    error = rough.stderr(theory.gains.product)
    assert 0 < error < 0.01
    assert abs(float(rough.stability) - float(solution.stability)) < 5 * error
    if softness == "none":
        checked = {s.key: [v.ok for v in s.verdicts()] for s in theory.derivation if s.key.startswith("stability")}
        assert all(all(found) and found for found in checked.values())
        assert len(checked) == 3


def test_a_wrong_power_of_the_eigenvalue_is_noticed(monkeypatch):
    """Where no single product goes round, the words speak of a matrix: the spread that goes round judges them too."""
    F, G = Coupling("F"), Coupling("G")
    u, v, label = Feature("u"), Datum("v"), Quenched("label", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    system = System(
        [
            Eq(u[i], Sum(F[mu, i] * v[mu], (mu, 1, P)) / 2 + Sum(G[mu, i] * label[mu] * v[mu], (mu, 1, P)) / 3 + 1),
            Eq(v[mu], Sum(y[mu, i] * u[i], (i, 1, N)) / 2),
        ]
    )
    step = system.cavity().derivation["stability"]
    assert not step.claims
    assert all(found.ok for found in step.verdicts())
    monkeypatch.setitem(step.data, "round", not step.data["round"])
    assert not any(found.ok for found in step.verdicts())
