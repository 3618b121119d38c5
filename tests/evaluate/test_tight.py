"""Conditions on sums that local constraints meet just so: the minimum has its value, and multipliers are infinite."""

import numpy as np
import pytest
from mpmath import mp
from sympy import Eq, Rational, Sum

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
