"""The derived theories in closed form, their parts by name, and how they show themselves."""

import pytest
from sympy import Abs, Eq, Heaviside, Rational, Sum, Symbol, sqrt, symbols

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    N,
    NoClosedForm,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    phi,
    response,
)
from symcavity.derivations import anisotropic, correlated_points, gardner, kernel_ridge, output_bias, soft_margin

kappa = gardner.kappa
w, lam, x = Feature("w"), Datum("lam"), Coupling("x")


def test_the_capacity_is_gardners():
    theory = gardner.problem.cavity()
    assert theory.closed_form(alpha) == 1 / phi(2, kappa)
    assert theory.closed_form(response(w)) == 1 - phi(0, kappa) / phi(2, kappa)
    assert theory.closed_form(average(w[i] ** 2)) == kappa**-2


def test_the_naive_capacity_is_right_and_its_response_is_not():
    naive, theory = gardner.problem.naive(), gardner.problem.cavity()
    assert naive.closed_form(alpha) == theory.closed_form(alpha)
    assert naive.closed_form(response(w)) == 1


def test_the_parts_of_a_theory_have_names():
    theory = gardner.problem.cavity()
    names = {s.name: s for s in theory.order_parameters}
    assert set(names) == {"S_lambda", "q_lambda", "S_w", "q_w"}
    assert theory.order_parameters[names["q_w"]] == average(w[i] ** 2)
    assert theory.datum.self_coupling == names["S_w"]
    assert theory.datum.variance == names["q_w"]
    assert theory.feature.self_coupling == alpha * names["S_lambda"]
    assert theory.feature.variance == alpha * names["q_lambda"]
    eta = theory.feature.solution[w[i]].free_symbols - {alpha, names["S_lambda"]}
    assert {s.name for s in eta} == {"eta_0"}
    assert theory.feature.response[w[i]] == 1 / (1 - alpha * names["S_lambda"])
    assert len(theory.equations) == len(theory.unknowns) + 1  # the load, for the fixed norm
    assert names["S_w"].is_positive
    assert names["S_lambda"].is_negative


def test_ridge_is_reduced_to_one_equation():
    theory = kernel_ridge.problem.cavity()
    assert len(theory.reduced.core) == 1
    with pytest.raises(NoClosedForm) as problem:
        theory.closed_form(average(kernel_ridge.eps[mu] ** 2))
    assert len(problem.value.remaining) == 1
    (unknown,) = {s.name for e in problem.value.remaining for s in e.lhs.free_symbols if s.name.startswith("S_")}
    assert unknown in {"S_rho_Delta", "S_varepsilon"}


def test_an_average_that_is_not_of_one_site_is_refused():
    theory = gardner.problem.cavity()
    x = gardner.x
    for wrong in (w, w[i], average(w[i] * lam[mu]), average(x[mu, i]), average(Feature("v")[i])):
        with pytest.raises(DeclarationError):
            theory.observable(wrong)


def test_observables_are_closed_in_order_parameters():
    theory = soft_margin.problem.cavity()
    xi = soft_margin.xi
    for words in (average(xi[mu]), average(xi[mu] > 0), average(Heaviside(xi[mu])), average(lam[mu] ** 3 * xi[mu])):
        expr = theory.observable(words)
        assert not expr.has(average(xi[mu]).func)


SYMMETRIC = {
    gardner: True,
    output_bias: True,
    soft_margin: False,
    anisotropic: False,
    kernel_ridge: False,
}


@pytest.mark.parametrize("module", SYMMETRIC, ids=lambda m: m.__name__.rsplit(".", 1)[-1])
def test_the_symmetry_finder(module):
    found = module.problem.symmetry()
    assert bool(found) is SYMMETRIC[module]
    assert bool(found.reason) is not SYMMETRIC[module]
    assert str(found)


def test_what_breaks_the_symmetry_is_named():
    l = anisotropic.l
    assert anisotropic.problem.symmetry().offending == l[i]
    assert "epsilon" in kernel_ridge.problem.symmetry().reason


def test_features_with_matched_penalties_are_not_called_identical():
    """A penalty proportional to the variance whitens the features; the finder must not overlook a site law."""
    l = Quenched("l", i)
    x = Coupling("x", variance=l[i] / N)
    problem = ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1]
    )
    assert not problem.symmetry()


def test_theories_show_themselves():
    for problem in (gardner.problem, kernel_ridge.problem, soft_margin.problem):
        theory = problem.cavity()
        assert str(theory).startswith("Cavity theory of")
        assert "<math" in theory._repr_html_()
        assert str(theory.feature)
        assert str(theory.datum)
        assert problem._repr_latex_().startswith("$$")
        assert problem.naive()._repr_html_() != theory._repr_html_()
        assert theory.derivation[0]._repr_latex_()
        assert theory.derivation._repr_html_()
        assert theory.equations[0]._repr_latex_()


def test_a_slack_that_costs_a_lot_is_a_hard_margin():
    theory, hard = soft_margin.problem.cavity(), gardner.problem.cavity()
    solution = theory.solve({alpha: Rational(1, 2), soft_margin.C: 10**6})
    norm = solution[average(w[i] ** 2)]
    assert abs(hard.solve({kappa: str(1 / sqrt(float(norm)))})[alpha] - Rational(1, 2)) < 1e-9


def test_a_fixed_mean_is_a_condition_like_any_other():
    c, m = symbols("c m", positive=True)
    x = Coupling("x")
    problem = ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + c * Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - 1) ** 2, (mu, 1, P)) / 2,
        fixed=[Eq(average(w[i] ** 2), m)],
    )
    theory = problem.cavity()
    solution = theory.solve({alpha: 2, m: Rational(1, 10)})
    again = theory.solve({alpha: 2, c: solution[c]})
    assert abs(again[average(w[i] ** 2)] - 0.1) < 1e-12
    assert Symbol("c", positive=True) in theory.system.parameters


def test_a_site_without_curvature_has_no_naive_theory():
    """A box whose end has an open sign: the branches have no order, and what lies between two of them is infinite."""
    t, c = Quenched("t", i), Symbol("C", positive=True)
    loss = c * Sum(sqrt(1 + Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 2), (mu, 1, P))
    problem = ConvexProblem(Sum(c * Abs(w[i]), (i, 1, N)) + loss, subject_to=[w[i] <= 1 + t[i]])
    with pytest.raises(UnsupportedLaw, match="no curvature"):
        problem.naive()
    (verdict,) = problem.cavity().derivation["symmetry"].verdicts(15)
    assert verdict.ok
    assert "no naive theory" in verdict.detail


def test_what_is_eliminated_keeps_the_denominators_of_its_equation():
    """Multiplied out it took five lines, and nobody saw the two denominators of which it is made."""
    theory = correlated_points.problem.cavity()
    solution = theory.solve(correlated_points.values, dps=30)
    (step,) = (s for s in theory.derivation if s.key == "eliminate.q_lambda")
    (claim,) = step.claims
    assert claim.rhs.count_ops() < 50
    assert abs(solution[claim.lhs] / solution[claim.rhs] - 1) < 1e-25
    (counted,) = (c for c in theory.derivation["interpretation.S_lambda_to_h_2"].claims if str(c.lhs) == "S_w_to_v_2")
    assert counted.rhs.count_ops() < 30
    assert abs(solution[counted.lhs] / solution[counted.rhs] - 1) < 1e-25
