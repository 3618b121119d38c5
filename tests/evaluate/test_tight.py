"""Conditions on sums that local constraints meet just so: the minimum has its value, and multipliers are infinite."""

import numpy as np
import pytest
from mpmath import mp
from sympy import Abs, Eq, Rational, Sum, sqrt
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, Infeasible, N, P, Quenched, alpha, average, i, mu, response

x, w, c = Coupling("x"), Feature("w"), Quenched("c", i)
u = Sum(x[mu, i] * w[i], (i, 1, N))
risk = Sum(u**2, (mu, 1, P)) / 2
total, kept = Sum(w[i], (i, 1, N)), Sum(c[i] * w[i], (i, 1, N))
signs = {c: {1: Rational(1, 2), -1: Rational(1, 2)}}


@pytest.mark.parametrize(
    ("conditions", "value"),
    [
        ([Eq(total, N), w[i] <= 1], 1),
        ([Eq(total, N), w[i] <= 1, w[i] >= 0], 1),
        ([total >= N, w[i] <= 1], 1),
        ([total <= 2 * N, w[i] >= 2], 2),
    ],
    ids=["cap", "cap of positive weights", "inequality", "floor"],
)
def test_all_weights_are_where_the_bound_has_them(conditions, value):
    """One choice is left, and its risk is ``alpha value^2/2``; nothing moves it."""
    solution = ConvexProblem(risk, conditions).cavity().solve({alpha: 2}, timeout=90)
    assert float(solution[average(w[i])]) == pytest.approx(value, rel=1e-14)
    assert float(solution["q_w"]) == pytest.approx(value**2, rel=1e-14)
    assert solution[response(w)] == solution.stability == 0
    assert float(solution.objective) == pytest.approx(value**2, rel=1e-12)
    assert abs(solution["nu"]) == mp.inf
    assert float(solution[average(Eq(w[i], value))]) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("relation", [Eq, lambda a, b: a >= b], ids=["equal", "at least"])
def test_a_return_that_only_the_best_assets_give(relation):
    """The others have no share, and the best are a portfolio of half as many assets, with twice the data for each."""
    conditions = [Eq(total, N), w[i] >= 0, relation(kept, N)]
    solution = ConvexProblem(risk, conditions).cavity().solve({**signs, alpha: 2}, timeout=90)
    best = ConvexProblem(risk, [Eq(total, N), w[i] >= 0]).cavity().solve({alpha: 4})
    assert float(solution["q_w"]) == pytest.approx(2 * float(best["q_w"]), rel=1e-12)
    assert float(solution[average(w[i] > 0)]) == pytest.approx(float(best[average(w[i] > 0)]) / 2, rel=1e-10)
    assert float(solution[average((1 - c[i]) * w[i])]) == pytest.approx(0, abs=1e-14)
    assert (solution["nu"], solution["nu_2"]) in {(-mp.inf, mp.inf), (mp.inf, -mp.inf)}
    near = ConvexProblem(risk, [Eq(total, N), w[i] >= 0, relation(kept, Rational(999, 1000) * N)])
    assert float(near.cavity().solve({**signs, alpha: 2})["q_w"]) == pytest.approx(float(solution["q_w"]), rel=1e-2)


def test_tight_conditions_have_digits():
    solution = ConvexProblem(risk, [Eq(total, N), w[i] >= 0, Eq(kept, N)]).cavity().solve({**signs, alpha: 2}, dps=40)
    best = ConvexProblem(risk, [Eq(total, N), w[i] >= 0]).cavity().solve({alpha: 4}, dps=40)
    with mp.workdps(50):
        assert abs(solution["q_w"] - 2 * best["q_w"]) < 1e-37


@pytest.mark.parametrize(
    "conditions",
    [
        [Eq(total, N), w[i] <= Rational(99, 100)],
        [total <= Rational(199, 100) * N, w[i] >= 2],
        [Eq(total, N), w[i] >= 0, kept >= Rational(101, 100) * N],
    ],
    ids=["cap", "floor", "return"],
)
def test_just_beyond_there_is_a_proof(conditions):
    theory = ConvexProblem(risk, conditions).cavity()
    with pytest.raises(Infeasible, match=r"cannot be met|contradict"):
        theory.solve({alpha: 2, **(signs if theory.system.quenched else {})}, timeout=60)


def test_what_is_not_tight_has_finite_multipliers():
    solution = ConvexProblem(risk, [Eq(total, N), w[i] <= Rational(101, 100)]).cavity().solve({alpha: 2}, timeout=60)
    assert np.isfinite(float(solution["nu"]))
    assert float(solution[average(w[i])]) == pytest.approx(1, rel=1e-12)


y, t = Quenched("y", mu), Quenched("t", i)
NORMAL = {y: Normal("y", 0, 1)}
misfit = average((u - y[mu]) ** 2)
lengths, gains = Sum(Abs(w[i]), (i, 1, N)), Sum(t[i] * w[i], (i, 1, N))
GIVEN = {t: Normal("t", 0, 1)}


@pytest.mark.parametrize(
    ("objective", "conditions", "values", "size"),
    [
        (lengths, [misfit <= Rational(1, 2)], {alpha: 2, **NORMAL}, 1),
        (Sum(w[i] ** 2, (i, 1, N)), [misfit <= Rational(1, 2)], {alpha: 2, **NORMAL}, 1),
        (-gains, [Sum((u - y[mu]) ** 2, (mu, 1, P)) <= 2 * P / 3], {alpha: 3, **NORMAL, **GIVEN}, Rational(1, 2)),
        (lengths, [Eq(u, y[mu]), average(w[i] ** 2) <= 1], {alpha: Rational(1, 2), **NORMAL}, 1),
        (-gains, [Eq(total, N), Sum(u**2, (mu, 1, P)) <= N], {alpha: 2, **GIVEN}, 2),
        (lengths, [Eq(total, N), average(u**2) <= Rational(2, 3)], {alpha: 3}, Rational(3, 2)),
    ],
    ids=["lengths", "squares", "gains", "the least norm", "the least risk", "the least risk, lengths"],
)
def test_a_curved_condition_at_its_edge_leaves_what_meets_it_best(objective, conditions, values, size):
    """It is ``1/(alpha - 1)`` by least squares, the least ``alpha/(1 - alpha)``, of risk ``alpha/(alpha - 1)``."""
    solution = ConvexProblem(objective, conditions).cavity().solve(values, timeout=60)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(float(size), rel=1e-14)
    mean = float(solution[average(w[i])])
    deviation = float(sqrt(size - round(mean) ** 2))
    assert float(solution[average(Abs(w[i] - round(mean)))]) == pytest.approx(deviation * np.sqrt(2 / np.pi), rel=1e-12)
    load = values[alpha]
    assert float(solution.stability) == pytest.approx(float(min(load, 1 / load)), rel=1e-12)
    assert solution[response(w)] == 0
    assert "inf" in str(solution)


def test_a_curved_condition_at_its_edge_has_digits():
    solution = ConvexProblem(lengths, [misfit <= Rational(1, 2)]).cavity().solve({alpha: 2, **NORMAL}, dps=40)
    with mp.workdps(50):
        assert abs(solution[average(Abs(w[i]))] - mp.sqrt(2 / mp.pi)) < 1e-39
        assert abs(solution.objective - mp.sqrt(2 / mp.pi)) < 1e-39


def test_beside_the_edge_of_a_curved_condition_the_minimum_is_away_by_the_root():
    """Where a share e**2 is left: the multiplier is finite, and says so; a share below it there is none."""
    theory = ConvexProblem(lengths, [misfit <= Rational(1, 2) + Rational(1, 10**10)]).cavity()
    near = theory.solve({alpha: 2, **NORMAL})
    assert 1e-6 < 1 - float(near[average(w[i] ** 2)]) < 1e-4
    assert np.isfinite(float(near["nu"]))
    with pytest.raises(Infeasible):
        ConvexProblem(lengths, [misfit <= Rational(49, 100)]).cavity().solve({alpha: 2, **NORMAL})
