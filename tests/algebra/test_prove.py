"""Proofs show sound steps, and refuse what is false; checks see the last digit."""

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from sympy import (
    Derivative,
    Eq,
    Function,
    IndexedBase,
    Integral,
    Max,
    Rational,
    S,
    Symbol,
    atan,
    cos,
    erfc,
    exp,
    expand_func,
    lambdify,
    log,
    pi,
    sin,
    sqrt,
    symbols,
)

from symcavity.algebra.checks import check
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.phi import gaussian_density, phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.errors import ValuesError
from symcavity.face import Proof, prove

kappa, z = symbols("kappa z", real=True)
n = Symbol("n", integer=True, positive=True)
x = Symbol("x")

IDENTITIES = {
    "the relation of the two capacities": (phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa)),
    "as the two formulas for the capacity": (
        phi(2, kappa),
        kappa * phi(1, kappa) / (1 - phi(0, kappa) / phi(2, kappa)),
    ),
    "another argument": (phi(2, kappa**2 - 1), phi(0, kappa**2 - 1) + (kappa**2 - 1) * phi(1, kappa**2 - 1)),
    "high order": (phi(6, kappa), expand_func(phi(6, kappa))),
    "first order": (phi(1, kappa), kappa * phi(0, kappa) + gaussian_density(kappa)),
    "error function": (phi(2, kappa), phi(2, kappa).rewrite(erfc)),
    "reflection": (phi(3, -kappa), phi(3, kappa) - kappa**3 - 3 * kappa),
    "both tails": (phi(0, kappa) + phi(0, -kappa), S.One),
    "a derivative": (Derivative(phi(2, kappa), kappa), 2 * phi(1, kappa)),
    "a density's derivative": (phi(0, kappa).diff(kappa), phi(1, kappa) - kappa * phi(0, kappa)),
    "a Gaussian average": (GaussianAverage(Max(0, kappa - z) ** 2, z), phi(2, kappa)),
    "symbolic order": (phi(n + 1, kappa), kappa * phi(n, kappa) + n * phi(n - 1, kappa)),
    "symbolic order, twice": (
        phi(n + 2, kappa),
        (kappa**2 + n + 1) * phi(n, kappa) + kappa * n * phi(n - 1, kappa),
    ),
    "a square": (
        phi(2, kappa) ** 2 - phi(0, kappa) ** 2,
        kappa * phi(1, kappa) * (phi(2, kappa) + phi(0, kappa)),
    ),
    "no phi at all": ((kappa + 1) ** 2, kappa**2 + 2 * kappa + 1),
    "trigonometry": (sin(kappa) ** 2 + cos(kappa) ** 2, S.One),
}


@pytest.mark.parametrize(("name", "order"), [("both tails", 0), ("reflection", 3)])
def test_a_reflection_is_said_in_words(name, order):
    """A power of order zero is not written."""
    said = str(prove(*IDENTITIES[name]))
    assert f"the moment of order {order} over the whole line" in said
    assert "**0" not in said



@pytest.mark.parametrize("name", IDENTITIES)
def test_true_identities_are_proved_and_their_falsified_forms_are_not(name):
    lhs, rhs = IDENTITIES[name]
    proof = prove(lhs, rhs)
    assert proof, str(proof)
    assert proof.difference == 0
    assert proof.counterexample is None
    assert proof.steps
    for wrong in (-rhs, rhs + phi(0, kappa) / 10**9):
        disproof = prove(lhs, wrong)
        assert not disproof
        assert disproof.difference != 0
    if not lhs.has(n):
        point = disproof.counterexample
        assert point is not None
        assert abs((lhs - wrong).subs(point).doit().evalf(30)) > 1e-15


def truth(side, values):
    """The value of a side, each truncated integral by quadrature."""
    side = side.subs(values)
    found = {}
    for node in side.atoms(TruncatedIntegral):
        body, t, upper = node.args
        top = mpf(str(upper.evalf(40)))
        grid = [top - 40, *[top - mpf(k) / 2 for k in range(24, -1, -1)]]
        inside = lambdify(t, body, "mpmath")
        found[node] = mp.quad(lambda u, inside=inside: inside(u) * mp.npdf(u), grid)
    return mp.mpmathify(side.xreplace({k: S(str(v)) for k, v in found.items()}).doit().evalf(30))


@pytest.mark.parametrize("name", ["the relation of the two capacities", "first order", "symbolic order"])
def test_every_line_of_a_proof_is_true_by_itself(name):
    proof = prove(*IDENTITIES[name])
    assert any("by parts" in step.text for step in proof.steps)
    for step in proof.steps:
        with mp.workdps(25):
            values = {kappa: Rational(7, 10), n: 3}
            left, right = truth(step.lhs, values), truth(step.rhs, values)
            assert abs(left - right) < mpf(10) ** -12, step
            assert abs(left + right) > mpf(10) ** -3


def test_the_integration_by_parts_is_shown():
    text = str(prove(phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa)))
    assert "Integral(Dz (kappa - z)**2, z < kappa)" in text
    assert "-Integral(Dz z*(kappa - z), z < kappa) = Integral(Dz, z < kappa)" in text
    assert text.endswith("Proved.")
    written = prove(Eq(phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa)))._repr_latex_()
    assert r"\int_{-\infty}^{\kappa} \mathcal{D}z\, z \left(\kappa - z\right)" in written
    assert written.count("{") == written.count("}")
    failed = prove(phi(2, kappa), phi(0, kappa))
    assert "Not proved" in str(failed)
    assert "kappa =" in str(failed)
    assert "Not proved" in failed._repr_latex_()
    assert isinstance(failed, Proof)
    step = failed.steps[0]
    assert step.equation == Eq(step.lhs, step.rhs, evaluate=False)
    assert isinstance(step.rhs.doit(), Integral)
    assert prove(phi(2, z), phi(0, z) + z * phi(1, z)).steps[0].rhs.free_symbols == {z}


def test_one_side_alone_is_refused():
    with pytest.raises(ValuesError, match="One side only"):
        prove(phi(2, kappa))
    with pytest.raises(ValuesError, match="not an expression"):
        prove(phi(2, kappa), kappa > 0)


# -- checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dps", [1, 15, 50, 200])
def test_a_check_sees_the_last_digit(dps):
    lhs, rhs = IDENTITIES["the relation of the two capacities"]
    assert check(lhs, rhs, dps=dps)
    off = rhs * (1 + Rational(3, 10**dps))
    seen = check(lhs, off, dps=dps)
    assert not seen
    assert seen.residual > mpf(10) ** -dps
    assert len(seen.points) == 5
    assert check(lhs, off, dps=max(1, dps - 2)) or dps == 1
    assert mpmath.mp.dps == 15


def test_the_tail_is_compared_relatively():
    lhs, rhs = IDENTITIES["the relation of the two capacities"]
    there = [{kappa: -200}]
    assert check(lhs, rhs, points=there)
    assert not check(lhs, rhs * (1 + Rational(1, 10**40)), points=there)
    assert check(lhs - rhs, 0, points=there)
    assert not check(lhs, 0, points=there)


def test_points_respect_the_assumptions_and_repeat():
    k = Symbol("k", integer=True, positive=True)
    p, m, e = Symbol("p", positive=True), Symbol("m", negative=True), Symbol("e", even=True)
    seen = check(sqrt(p**2) + k + m + e, p + k + m + e, dps=20, points=12)
    assert seen
    for point in seen.points:
        assert point[p] > 0 > point[m]
        assert point[k].is_integer
        assert point[k] > 0
        assert point[e] % 2 == 0
    assert seen.points == check(sqrt(p**2) + k + m + e, p + k + m + e, dps=20, points=12).points
    assert seen.points != check(sqrt(p**2) + k + m + e, p + k + m + e, points=12, seed=1).points


def test_arrays_functions_and_averages_are_expressions_too():
    entry = IndexedBase("a")[Symbol("i", integer=True)]
    assert check((entry + 1) ** 2, entry**2 + 2 * entry + 1)
    f = Function("f")(x)
    assert check(log(exp(f**2)), f**2, dps=30)
    left = GaussianAverage(log(1 + exp(kappa - z)), z)
    right = GaussianAverage(log(1 + exp(kappa + z)), z)
    assert check(left, right, dps=30, points=2)
    assert not check(left, GaussianAverage(log(1 + exp(kappa + 2 * z)), z), dps=3, points=2)
    assert check(4 * atan(1), pi)


def test_what_a_check_prints():
    good = str(check(phi(2, kappa), phi(0, kappa) + kappa * phi(1, kappa), dps=30))
    assert "agree to 30 digits at 5 point(s)" in good
    bad = check(phi(2, kappa), phi(1, kappa), dps=30)
    assert "DISAGREE" in str(bad)
    assert "disagree" in bad._repr_latex_()
    assert "no free symbols" in str(check(S.One, 1))


@pytest.mark.parametrize("dps", [0, -3, 2.5, True])
def test_digits_below_one_are_refused(dps):
    with pytest.raises(ValuesError, match="dps"):
        check(kappa, kappa, dps=dps)


def test_other_refusals():
    with pytest.raises(ValuesError, match="no value for kappa"):
        check(kappa, kappa, points=[{x: 1}])
    with pytest.raises(ValuesError, match="points"):
        check(kappa, kappa, points=0)
    with pytest.raises(ValuesError, match="no finite value"):
        check(S.ComplexInfinity * kappa, kappa)
    assert not check(1 / kappa, 1 / kappa, points=[{kappa: 0}])
    assert np.isfinite(float(check(kappa, kappa).residual))
