"""What SymPy does, where this package relies on it or works around it; a change there shows here first."""

import pytest
from sympy import (
    Abs,
    Dummy,
    Eq,
    Expr,
    Float,
    Heaviside,
    Indexed,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Sum,
    Symbol,
    SympifyError,
    cancel,
    linear_eq_to_matrix,
    linsolve,
    nan,
    oo,
    sign,
    symbols,
    sympify,
)
from sympy.solvers.solveset import NonlinearError

from symcavity import Coupling, Feature, Global, N, P, average, i, mu
from symcavity.model.fields import FieldSymbol

a, b, z = symbols("a b z", real=True)
w, x = Feature("w"), Coupling("x")


def test_equations_collapse():
    assert Eq(S(1), 1) is S.true
    assert Eq(average(w[i] ** 2), -1) is S.false
    assert isinstance(Eq(average(w[i] ** 2), 1), Eq)


def test_relations_with_infinity_collapse_and_with_nan_raise():
    assert (w[i] >= oo) is S.false
    with pytest.raises(TypeError):
        w[i] >= nan  # noqa: B015


def test_equal_sums_with_different_dummies_do_not_cancel():
    j = Symbol("j")
    assert Sum(w[i], (i, 1, N)) - Sum(w[j], (j, 1, N)) != 0


def test_xreplace_reaches_the_dummy_of_a_sum_and_its_limits():
    j = Symbol("j", integer=True, positive=True)
    assert Sum(w[i], (i, 1, N)).xreplace({i: j}) == Sum(w[j], (j, 1, N))


def test_a_sum_merges_nested_sums_and_keeps_its_name_by_the_limits():
    inner = Sum(x[mu, i], (i, 1, N))
    assert Sum(inner, (mu, 1, P)).function == x[mu, i]
    assert len(Sum(inner, (mu, 1, P)).limits) == 2
    assert isinstance(Sum(inner * w[i], (mu, 1, P)).function, Expr)


def test_delta_sums_leave_piecewise_residues():
    j = Symbol("j", integer=True, positive=True)
    assert Sum(KroneckerDelta(i, j), (j, 1, N)).doit().has(Piecewise)


def test_kronecker_delta_of_equal_symbols_is_one():
    assert KroneckerDelta(i, i) == 1
    assert KroneckerDelta(Integer(0), Integer(0)) == 1
    assert KroneckerDelta(i, mu) == KroneckerDelta(mu, i)


def test_floats_spread():
    assert (a * 0.5).atoms(Float)
    assert not sympify("1/2").atoms(Float)
    assert (0.5 * a / 2).atoms(Float) == {Float(0.25)}


def test_strict_sympify_refuses_what_would_be_executed():
    for text in ("__import__('os')", "1"):
        with pytest.raises(SympifyError):
            sympify(text, strict=True)
    with pytest.raises(SympifyError):
        sympify([1], strict=True)


def test_symbols_of_different_classes_differ():
    assert FieldSymbol("u", real=True) != Symbol("u", real=True)
    assert Global("b") != Symbol("b", real=True)
    assert Symbol("C") != Symbol("C", positive=True)


def test_substitution_tells_symbols_of_one_name_apart():
    placeholder, parameter = FieldSymbol("u", real=True), Symbol("u", real=True)
    assert (placeholder - parameter).xreplace({placeholder: S.One}) == 1 - parameter


def test_linear_systems():
    assert linsolve(([[S(1), 0], [0, S(1)]], [a, b]) if False else ([a - z, b - a]), a, b) == {(z, z)}
    assert linsolve([a - b], a, b) == {(b, b)}
    assert linsolve([a - 1, a - 2], a) == S.EmptySet
    with pytest.raises(NonlinearError):
        linear_eq_to_matrix([a**2 - 1], [a])


def test_kinks_evaluate_and_differentiate():
    assert Max(0, a).diff(a) == Heaviside(a)
    assert Abs(a).diff(a) == sign(a)
    assert Max(a, a) == a
    assert Max(0, -1) == 0
    assert Max(a, Max(b, z)) == Max(a, b, z)
    assert Min(a, b).args in ((a, b), (b, a))


def test_a_modulus_of_a_real_square_opens():
    assert Abs(a**2) == a**2
    assert Abs(2 * a) == 2 * Abs(a)


def test_cancel_keeps_values():
    expr = (a**2 - b**2) / (a - b)
    assert cancel(expr) == a + b


def test_as_independent_splits_a_term_by_types():
    factor, rest = (3 * N * Sum(w[i], (i, 1, N))).as_independent(Sum, as_Add=False)
    assert (factor, rest) == (3 * N, Sum(w[i], (i, 1, N)))


def test_indexed_families_of_sympy_are_not_ours():
    assert isinstance(IndexedBase("x")[mu, i], Indexed)
    assert not isinstance(x[mu, i], Indexed)


def test_dummies_are_never_equal_by_name():
    assert Dummy("t") != Dummy("t")


def test_rationals_of_strings_are_exact():
    assert Rational("0.1") == Rational(1, 10)
    assert Rational("1e-3") == Rational(1, 1000)
