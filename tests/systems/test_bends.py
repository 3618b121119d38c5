"""Losses by cases of functions that are no polynomials: bends between them, and branches that are given implicitly."""

from dataclasses import replace

import pytest
from sympy import Abs, Heaviside, Max, Piecewise, Rational, Sum, exp, sign

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, i, mu
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

x, w = Coupling("x"), Feature("w")
y = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
h = Sum(x[mu, i] * w[i], (i, 1, N))


def problem(loss):
    return ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)


def norm(loss):
    return float(problem(loss).cavity().solve({alpha: 3})[average(w[i] ** 2)])


SPELLINGS = {
    "flat first": Piecewise((0, h > 1), (exp(1 - h) - 1, True)),
    "flat last": Piecewise((exp(1 - h) - 1, h < 1), (0, True)),
    "step": Heaviside(1 - h) * (exp(1 - h) - 1),
    "sign": (1 - sign(h - 1)) * (exp(1 - h) - 1) / 2,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_bend_between_functions_is_a_positive_part(name):
    """Held against the same loss as a maximum of convex functions, which is declared through a bound on each."""
    assert norm(SPELLINGS[name]) == pytest.approx(norm(Max(0, exp(1 - h) - 1)), abs=1e-6)


def test_every_claim_about_a_bend_is_checked():
    seen = problem(SPELLINGS["flat first"]).cavity().derivation.verify()
    assert seen
    assert not seen.unchecked


@pytest.fixture(scope="module")
def two_sided():
    r = y[mu] - h
    return problem(Piecewise((exp(r) - 1 - r, r > 0), (exp(-2 * r) - 1 + 2 * r, True))).cavity()


def test_two_implicit_branches_are_each_put_into_the_declaration(two_sided):
    step = two_sided.derivation["datum.solution"]
    assert [v.ok for v in judge(step)] == [True]


def test_a_wrong_law_of_one_implicit_branch_is_found(two_sided):
    step = two_sided.derivation["datum.solution"]
    field, law = step.claims[0].lhs, step.claims[0].rhs
    (first, test), *rest = law.args
    wrong = Equation(field, Piecewise((first + 1, test), *rest, evaluate=False))
    assert [v.ok for v in judge(replace(step, claims=(wrong, *step.claims[1:])))] == [False]


def test_formulas_with_bound_variables_can_be_simplified(two_sided):
    """SymPy's simplification transforms by rules that are no mappings."""
    claims = [c for c in two_sided.derivation["closure.q_lambda"].claims if c.rhs.has(ImplicitAverage)]
    assert claims
    assert all(c.rhs.simplify().has(ImplicitAverage) for c in claims)


def test_a_law_that_needs_positive_data_is_checked_there():
    """Rates without a declared sign: where they are negative, the law of a datum has no solution."""
    u = Quenched("u", mu)
    seen = problem(u[mu] * exp(h) - y[mu] * h).cavity().derivation.verify()
    assert seen
    assert not seen.unchecked


def test_shares_beyond_a_threshold_that_is_found_are_closed():
    """Six orders of breaks are open in the share of residuals beyond a radius that the problem chooses itself.

    Where the penalty of the radius balances: each residual beyond counts once, those on it a part, on average
    ``1/(3*alpha)``; and the average over instances agrees.
    """
    v, data = Global("v", positive=True), Quenched("z", mu)
    r = data[mu] - h
    given = {alpha: 2, data: {2: Rational(1, 2), -1: Rational(1, 2)}}
    balanced = ConvexProblem(
        N * v / 3 + Sum(Max(0, r**2 - v), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2
    )
    share = average(r**2 > v)
    theory = balanced.cavity()
    assert 0 < float(theory.solve(given)[share]) < 1 / 6
    compared = theory.compare(balanced.simulate(given, N=80, seeds=8), [share, average(Abs(r))])
    assert all(abs(row.z) < 4 for row in compared.rows)
