"""The minimum as a function of the order parameters: its value, its letters, and where it is left out."""

from importlib import import_module

import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, UnsupportedLaw, alpha, average, i, mu
from symcavity.derivations import manifold, soft_margin, softmax
from symcavity.method.minimum import minimum

x, z, w, v = Coupling("x"), Coupling("z"), Feature("w"), Feature("v")
y, t = Quenched("y", mu), Quenched("t", i)
h = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2
signs = {1: Rational(1, 2), -1: Rational(1, 2)}


def test_for_one_coupling_it_is_the_formula_of_one_coupling():
    theory = soft_margin.problem.cavity()
    found = minimum(theory)
    s_w, s_l, q_w, q_l = (Symbol(name) for name in ("S_w", "S_lambda", "q_w", "q_lambda"))
    plain = found.loops.xreplace({s: Symbol(s.name) for s in theory.order_parameters})
    assert plain.subs(alpha, 3) == 3 * (q_l * s_w + q_w * s_l) / 2


PROBLEMS = {
    "a teacher beside the field": (
        ConvexProblem(Sum((sign(Sum(x[mu, i] * t[i], (i, 1, N))) - h) ** 2, (mu, 1, P)) + half),
        {alpha: 2, t: signs},
    ),
    "two groups and a condition": (
        ConvexProblem(
            Sum((y[mu] - h) ** 2, (mu, 1, P)) / 2 + half
            + Sum(Abs(y[mu] - Sum(z[mu, i] * v[i], (i, 1, N))), (mu, 1, P)) + Sum(v[i] ** 2, (i, 1, N)),
            [Eq(Sum(w[i], (i, 1, N)), N / 3)],
        ),
        {alpha: 2, y: signs},
    ),
    "a variance for each feature": (
        ConvexProblem(
            Sum((1 - Sum(Coupling("c", variance=Quenched("l", i, positive=True)[i] / N)[mu, i] * w[i], (i, 1, N))) ** 2,
                (mu, 1, P)) + half
        ),
        {alpha: 2, Quenched("l", i, positive=True): {1: Rational(1, 2), 2: Rational(1, 2)}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_at_the_solution_it_is_the_objective(name):
    problem, values = PROBLEMS[name]
    theory = problem.cavity()
    solution = theory.solve(values)
    found = minimum(theory).observable
    assert float(solution[found]) == pytest.approx(float(solution.objective), rel=1e-9)
    assert "minimum" in [step.key for step in theory.derivation]


def test_it_is_left_out_where_it_is_not_known():
    for theory in (softmax.problem.cavity(), manifold.problem.cavity(), soft_margin.problem.naive()):
        assert "minimum" not in [step.key for step in theory.derivation]
        with pytest.raises(UnsupportedLaw, match="not derived"):
            minimum(theory)


def test_its_letters_are_free():
    E, M = Symbol("E", positive=True), Quenched("M", i)
    theory = ConvexProblem(E * half, [h >= 1 + E], [Eq(average(w[i] ** 2), 1)]).cavity()
    assert str(theory.derivation["minimum"].claims[-1].lhs) == "Phi"
    theory = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) + half + Sum(M[i] * w[i], (i, 1, N))).cavity()
    assert "B" in {c.lhs.family.name for c in theory.derivation["minimum"].claims[:-1]}


def test_three_kinds_have_letters_of_their_own():
    claims = import_module("symcavity.derivations.random_features").problem.cavity().derivation["minimum"].claims
    assert len({c.lhs for c in claims[:-1]} | {c.lhs.family for c in claims[1:-1]}) > 3


def test_a_paper_does_without_the_minimum():
    record = soft_margin.problem.cavity().derivation
    full, paper = (record.to_text(detail=detail) for detail in ("full", "paper"))
    assert "average of the declared objective" in full
    assert "minimum of the problem is" in full
    assert "minimum of the problem is" not in paper
