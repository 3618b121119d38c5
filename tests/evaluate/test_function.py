"""Vectorised functions of parameters."""

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from sympy import Eq, Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Derivation,
    Feature,
    Infeasible,
    N,
    P,
    Quenched,
    System,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.derivations import anisotropic, gardner, kernel_ridge, soft_margin
from symcavity.derivations.gardner import kappa, w
from symcavity.evaluate.function import make_function
from symcavity.evaluate.solving import iterate


@pytest.fixture(scope="module")
def theory():
    return gardner.problem.cavity()


@pytest.fixture(scope="module")
def interpolation():
    x, v, y = Coupling("x"), Feature("v"), Quenched("y", mu)
    problem = ConvexProblem(
        minimize=Sum(v[i] ** 2, (i, 1, N)) / 2, subject_to=[Eq(Sum(x[mu, i] * v[i], (i, 1, N)), y[mu])]
    )
    return problem.cavity(), average(v[i] ** 2), {y: {1: "1/2", -1: "1/2"}}


def by_hand(k):
    return 1 / ((1 + k * k) * ndtr(k) + k * np.exp(-k * k / 2) / np.sqrt(2 * np.pi))


def test_broadcasts(theory):
    f = theory.function(alpha, kappa)
    assert isinstance(f(1.0), float)
    k = np.linspace(0, 3, 12).reshape(3, 4)
    assert f(k) == pytest.approx(by_hand(k), rel=1e-14)
    assert f([0.5, 1]).shape == (2,)
    assert f([]).shape == (0,)
    assert f("1/2") == f(Rational(1, 2)) == pytest.approx(by_hand(0.5))
    soft = soft_margin.problem.cavity().function(response(soft_margin.w), alpha, soft_margin.C)
    table = soft(np.array([[0.5], [2.0]]), np.array([0.1, 1.0, 10.0]))
    assert table.shape == (2, 3)
    one = soft_margin.problem.cavity().solve({alpha: 2, soft_margin.C: 10})[response(soft_margin.w)]
    assert table[1, 2] == pytest.approx(float(one), rel=1e-13)


def test_any_precision(theory):
    f = theory.function(alpha, kappa, backend="mpmath")
    with mpmath.workdps(60):
        k = mpmath.mpf(1) / 3
        want = 1 / ((1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k))
        assert abs(f("1/3") / want - 1) < mpmath.mpf("1e-58")
        assert abs(f([Rational(1, 3), 2])[0] / want - 1) < mpmath.mpf("1e-58")
        for wrong in (0.5, np.array([0.5])):
            with pytest.raises(ValuesError, match="float"):
                f(wrong)
        small = theory.function(response(w), kappa, backend="mpmath")("1e-20")
        want = theory.solve({kappa: "1e-20"}, dps=55)[response(w)]
        assert abs(small / want - 1) < mpmath.mpf("1e-50")


def test_without_a_closed_form(theory, monkeypatch):
    f = theory.function(kappa, alpha)
    loads = np.linspace(0.05, 1.95, 40)
    assert by_hand(f(loads)) == pytest.approx(loads, rel=1e-12)
    ways = []
    way = iterate.newton_many
    monkeypatch.setattr(iterate, "newton_many", lambda *args: ways.append(way(*args)) or ways[-1])
    assert by_hand(f(loads)) == pytest.approx(loads, rel=1e-12)
    assert len(ways) == 1  # none strays that has arrived
    assert np.isfinite(ways[0]).all()
    with mpmath.workdps(30):
        margin = theory.function(kappa, alpha, backend="mpmath")("1/2")
        assert abs(margin - theory.solve({alpha: "1/2"}, dps=30)[kappa]) < 1e-28


def test_infeasible_points(theory, interpolation):
    with pytest.raises(Infeasible, match="capacity"):
        theory.function(kappa, alpha)([1, 2.5])
    lenient = make_function(theory, kappa, [alpha], {}, "numpy", "nan")
    assert np.isnan(lenient([1, 2.5, -1, np.nan])).tolist() == [False, True, True, True]
    exact, target, values = interpolation
    f = exact.function(target, alpha, values=values)
    assert f([0.1, 0.5, 0.9]) == pytest.approx([1 / 9, 1, 9])
    with pytest.raises(Infeasible, match=r"alpha = 1\.5"):
        f([0.5, 1.5])
    with pytest.raises(Infeasible):
        exact.function(target, alpha, values=values, backend="mpmath")("3/2")
    lenient = make_function(exact, target, [alpha], values, "numpy", "nan")
    assert lenient([0.5, 1.5])[0] == 1
    assert np.isnan(lenient(1.5))


def test_quenched_values():
    spectrum = {anisotropic.l: {"0.2": "1/2", "1.8": "1/2"}}
    f = anisotropic.problem.cavity().function(alpha, anisotropic.kappa, values=spectrum)
    assert f([0.5, 2]) == pytest.approx([0.770241966999295868, 0.179810791695717380], rel=1e-13)
    k, rows = np.arange(1.0, 201), kernel_ridge
    error = Sum(rows.Delta[i] ** 2, (i, 1, N))
    ridge = rows.problem.cavity().function(error, P, rows.gamma, values={rows.rho: k**-2, rows.a: 1 / k})
    assert ridge([100, 400], 1) == pytest.approx([0.0853482204575521386, 0.0371201120135718936], rel=1e-12)
    assert ridge(100, [0.1]) == pytest.approx([0.0323877001539257081], rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.function(alpha, soft_margin.C), "not a parameter"),
        (lambda t: t.function(alpha, Symbol("kappa")), "not a parameter"),
        (lambda t: t.function(alpha), "no arguments"),
        (lambda t: t.function(alpha, kappa, kappa), "twice"),
        (lambda t: t.function(alpha, kappa, backend="arb"), "backend"),
        (lambda t: t.function(alpha, kappa, values={kappa: 1}), "given a value too"),
        (lambda t: t.function(Symbol("zz"), kappa), "zz"),
        (lambda t: t.function(response(w), alpha, kappa), "Too many"),
        (lambda _: soft_margin.problem.cavity().function(response(soft_margin.w), alpha), "C"),
        (lambda t: t.function(alpha, kappa)([-1, 1]), "positive"),
        (lambda t: t.function(alpha, kappa)([np.nan]), "nan"),
        (lambda t: t.function(alpha, kappa)("x"), "'x'"),
        (lambda t: t.function(alpha, kappa)(1j), "complex"),
        (lambda t: t.function(alpha, kappa)(1, 2), "got 2 arguments"),
    ],
)
def test_refused(theory, call, words):
    with pytest.raises(ValuesError, match=words):
        call(theory)


def test_targets_are_numbers(theory):
    with pytest.raises(DeclarationError):
        theory.function(w, kappa)


def test_shapes_must_broadcast():
    f = soft_margin.problem.cavity().function(response(soft_margin.w), alpha, soft_margin.C)
    with pytest.raises(ValuesError, match="shapes"):
        f([1, 2], [1, 2, 3])


def test_points_out_of_the_declared_range_are_refused_as_by_solve():
    """The range stands in the record, and in what is read back from it; it holds for systems as well."""
    x, v, g, j = Coupling("x"), Feature("v"), Symbol("g", positive=True), Symbol("j", integer=True)
    J = Coupling("J", between=(i, i), variance=g**2 / N)
    fit = Sum((1 - Sum(x[mu, i] * v[i], (i, 1, N))) ** 2, (mu, 1, P)) + g * Sum(v[i] ** 2, (i, 1, N))
    spread = Eq(v[i], 1 + Sum(J[i, j] * v[j], (j, 1, N)))
    size = average(v[i] ** 2)
    for problem, values in ((ConvexProblem(fit, [g < 1]), {alpha: 1}), (System([spread], [g < 1]), {})):
        theory = problem.cavity()
        again = Derivation.from_json(theory.derivation.to_json(verify=False))
        assert "satisfy g < 1" in str(theory.derivation)
        assert again["problem"].data["ranges"] == theory.derivation["problem"].data["ranges"] == [g < 1]
        for backend in ("numpy", "mpmath"):
            f = theory.function(size, g, values=values, backend=backend)
            assert f(0.5) == pytest.approx(float(theory.solve({**values, g: "1/2"})[size]), rel=1e-12)
            with pytest.raises(ValuesError, match=r"g = 3.* is out of range"):
                f(3)
            missing = theory.function(size, g, values=values, backend=backend, errors="nan")([0.5, 3.0])
            assert [bool(mpmath.isnan(value)) for value in missing] == [False, True]
