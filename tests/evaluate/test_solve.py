"""Values that are read, refused, solved for; solutions that print and answer."""

import decimal
import fractions

import mpmath
import numpy as np
import pytest
from sympy import Abs, Float, Rational, S, Sum, Symbol, exp, oo, sqrt
from sympy.stats import Uniform

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Infeasible,
    N,
    NotConverged,
    P,
    Quenched,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.algebra.precision import mp
from symcavity.derivations import anisotropic, gardner, kernel_ridge, soft_margin
from symcavity.derivations.gardner import kappa, w
from symcavity.model.averages import Average

lam, y = Datum("lam"), Quenched("y", mu)
HALF = {1: "1/2", -1: "1/2"}


@pytest.fixture(scope="module")
def theory():
    return gardner.problem.cavity()


@pytest.fixture(scope="module")
def ridge():
    return kernel_ridge.problem.cavity()


@pytest.mark.parametrize(
    "half",
    [
        "1/2", "0.5", "5e-1", fractions.Fraction(1, 2), decimal.Decimal("0.5"), mpmath.mpf("0.5"), Rational(1, 2),
        0.5, np.float64(0.5), np.float32(0.5), Float(0.5),
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_kinds_of_numbers(theory, half):
    assert mpmath.nstr(theory.solve({kappa: half})[alpha], 14) == "0.96120505280154"


def test_surds_are_exact(theory):
    with mpmath.workdps(60):
        k = mpmath.sqrt(2) / 2
        want = 1 / ((1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k))
        assert abs(theory.solve({kappa: sqrt(2) / 2}, dps=50)[alpha] / want - 1) < mpmath.mpf("1e-49")


@pytest.mark.parametrize(
    ("values", "dps", "words"),
    [
        ({kappa: 0.5}, 30, "float 0.5"),
        ({kappa: 1}, 0, "number of digits"),
        ({kappa: 1}, 2.5, "number of digits"),
        ({kappa: 1}, True, "number of digits"),
        ({}, 15, "missing"),
        ({kappa: 1, alpha: "1/2"}, 15, "Too many"),
        ({kappa: "abc"}, 15, "'abc'"),
        ({kappa: float("nan")}, 15, "nan"),
        ({kappa: mpmath.nan}, 15, "nan"),
        ({kappa: mpmath.inf}, 15, "inf"),
        ({kappa: oo}, 15, "oo"),
        ({kappa: -1}, 15, "positive"),
        ({kappa: 1 + 2j}, 15, "1"),
        ({kappa: None}, 15, "None"),
        ({kappa: True}, 15, "True"),
        ({kappa: [1, 2]}, 15, "1, 2"),
        ({kappa: np.array([1.0, 2.0])}, 15, "1"),
        ({"kapa": 1}, 15, "kappa"),
        ({kappa: 1, "kappa": 2}, 15, "given twice"),
        ({Symbol("kappa"): 1}, 15, "use the kappa of the declaration"),
        ({Symbol("beta"): 1}, 15, "not a parameter"),
        ({kappa: 1, y: HALF}, 15, "not a quenched parameter"),
        ({kappa: 1, P: 10, N: 0}, 15, "positive"),
        ({kappa: 1, P: "10.5", N: 10}, 15, "integer"),
        ([1], 15, "mapping"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_refused(theory, values, dps, words):
    with pytest.raises(ValuesError, match=words):
        theory.solve(values, dps=dps)


def test_unknowns_take_no_values(theory):
    with pytest.raises(ValuesError, match="is an unknown"):
        theory.solve({theory.unknowns[0]: 1})


ROWS = {kernel_ridge.rho: np.arange(1.0, 51) ** -2, kernel_ridge.a: 1 / np.arange(1.0, 51)}


@pytest.mark.parametrize("one", [1, 1.0, "1", np.float64(1)])
def test_a_number_is_the_value_at_every_site(ridge, one):
    values = {kernel_ridge.gamma: 1, P: 100, **ROWS}
    found, known = (ridge.solve({**values, kernel_ridge.a: value}) for value in (one, [1] * 50))
    assert found.values == pytest.approx(known.values, rel=1e-14)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({kernel_ridge.a: None}, "no value"),
        ({kernel_ridge.a: [1, 2, 3]}, "3 entries"),
        ({kernel_ridge.a: [], kernel_ridge.rho: []}, "empty"),
        ({kernel_ridge.a: ROWS[kernel_ridge.a] * np.nan}, "not finite"),
        ({kernel_ridge.a: np.ones((2, 25))}, "shape"),
        ({kernel_ridge.a: [[1.0] * 50]}, "shape"),
        ({kernel_ridge.a: True}, "True"),
        ({kernel_ridge.a: "abc"}, "abc"),
        ({kernel_ridge.a: {1: "1/2", 2: "6/10"}}, "sum to 11/10"),
        ({kernel_ridge.a: {1: "3/2", 2: "-1/2"}}, "weights"),
        ({kernel_ridge.a: {1: "1/2", "1.0": "1/2"}}, "twice"),
        ({kernel_ridge.a: {}}, "empty"),
        ({kernel_ridge.a: ["x"] * 50}, "'x'"),
        ({kernel_ridge.a: np.full(50, 1 + 1j)}, "1"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_refused_arrays(ridge, changed, words):
    with pytest.raises(ValuesError, match=words):
        ridge.solve({kernel_ridge.gamma: 1, P: 100, **ROWS, **changed})


def test_float_arrays_have_fifteen_digits(ridge):
    with pytest.raises(ValuesError, match="float"):
        ridge.solve({kernel_ridge.gamma: 1, P: 100, **ROWS}, dps=30)


def test_a_regularisation_of_zero_has_an_edge(ridge):
    with pytest.raises(NotConverged, match="'1e-6'"):
        ridge.solve({kernel_ridge.gamma: 0, P: 10, **ROWS})


def test_end_of_feasibility_is_found():
    """Two-sided constraints with bounded weights: the load at which they conflict is named."""
    x, v = Coupling("x"), Feature("v")
    field = Sum(x[mu, i] * v[i], (i, 1, N))
    problem = ConvexProblem(minimize=Sum(v[i] ** 2, (i, 1, N)) / 2, subject_to=[field >= 1, field <= 3, Abs(v[i]) <= 2])
    with pytest.raises(Infeasible, match="cannot be met together") as caught:
        problem.cavity().solve({alpha: "0.9"})
    assert caught.value.evidence.load == pytest.approx(0.6849, abs=2e-4)


# -- solutions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solution(theory):
    return theory.solve({kappa: 1}, dps=30)


def test_observables(solution):
    with mpmath.workdps(30):
        assert solution[average(w[i] ** 2)] == 1
        assert solution["alpha"] == solution[alpha] == solution[2 * alpha] / 2
        assert solution[kappa] == 1
        assert abs(solution[average(w[i] ** 2) * response(w) + 1] - solution[response(w)] - 1) < 1e-28
        assert abs(solution[average(abs(w[i]))] - mpmath.sqrt(2 / mpmath.pi)) < 1e-28
        assert abs(solution[average(w[i] > sqrt(2))] - (1 - mpmath.ncdf(mpmath.sqrt(2)))) < 1e-28
        assert abs(solution[average(exp(w[i]))] - mpmath.exp(0.5)) < 1e-27
        assert abs(solution[average(lam[mu] > 1)] - mpmath.ncdf(1 - solution["S_w"])) < 1e-28
        assert 1 + solution[S.One] == 2


@pytest.mark.parametrize("key", [w, w[i], lam, average(w[i] * lam[mu]), average(Datum("xi")[mu]), None, [1]], ids=str)
def test_no_observables(solution, key):
    with pytest.raises(DeclarationError):
        solution[key]


@pytest.mark.parametrize("key", ["nope", Symbol("zzz"), Sum(w[i] ** 2, (i, 1, N)), average(0.3 * w[i] ** 2)], ids=str)
def test_unknown_names(solution, key):
    with pytest.raises(ValuesError):
        solution[key]


def test_sums_need_a_size(theory):
    sized = theory.solve({kappa: 2, N: 400}, dps=20)
    assert sized[Sum(w[i] ** 2, (i, 1, N))] == 100
    force = sized[Sum(lam[mu], (mu, 1, P))]
    assert abs(force - 400 * sized[alpha] * sized[average(lam[mu])]) < 1e-15


def test_residual_is_measured_more_precisely(theory):
    solution = theory.solve({kappa: 1}, dps=30)
    assert 0 < solution.residual < mpmath.mpf("1e-38")
    with mp.workdps(60):
        solution._own[alpha] *= 1 + mp.mpf("1e-20")
    solution._residual = None
    assert 1e-22 < solution.residual < 1e-18


def test_display(solution):
    text = str(solution)
    assert "kappa = 1" in text
    assert "0.519572229604937969487655964869" in text
    assert "residual" in text
    page = solution._repr_html_()
    assert page.startswith("<table>")
    assert "<msup><mi>S</mi><mrow><mi>λ</mi></mrow></msup>" in page
    assert alpha in solution
    assert kappa not in solution


def test_continuous_spectrum():
    spectrum = {anisotropic.l: Uniform("u", 0, 2)}
    solved = anisotropic.problem.cavity().solve({anisotropic.kappa: "1/2", **spectrum})
    assert solved.quick
    assert solved.residual < 1e-12


def test_guess_is_followed():
    soft = soft_margin.problem.cavity()
    near = soft.solve({alpha: 2, soft_margin.C: 1})
    there = soft.solve({alpha: "2.1", soft_margin.C: 1}, guess=near.values)
    assert there[response(soft_margin.w)] == soft.solve({alpha: "2.1", soft_margin.C: 1})[response(soft_margin.w)]


def test_averages_over_one_kind_inside_those_of_another():
    """Elimination puts the response of features, an average over l, into the law of data, which is averaged over s."""
    l, s = Quenched("l", i, positive=True), Quenched("s", mu, positive=True)
    x, w = Coupling("x", variance=l[i] * s[mu] / N), Feature("w")
    problem = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) + Sum(exp(-Sum(x[mu, i] * w[i], (i, 1, N))), (mu, 1, P)))
    theory = problem.cavity()
    solution = theory.solve({l: {1: "1/2", 2: "1/2"}, s: {1: "1/2", 3: "1/2"}, alpha: 1})
    nested = [
        c for step in theory.derivation.steps for c in step.claims
        if step.rule == "elimination" and any(a.body.has(Average) for a in c.rhs.atoms(Average))
    ]
    assert nested
    for claim in nested:
        assert float(solution[claim.rhs]) == pytest.approx(float(solution[claim.lhs]), rel=1e-12)
