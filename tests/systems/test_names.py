"""Symbols of a user's own that are named like what the package writes: code, order parameters, TeX."""

import pytest
from sympy import Eq, Max, Sum, Symbol, exp, log, symbols

from symcavity import ConvexProblem, Coupling, Feature, N, P, System, alpha, average, i, mu
from symcavity.writing.printing import tex, text

x, w = Coupling("x"), Feature("w")
u = Sum(x[mu, i] * w[i], (i, 1, N))
NORM = average(w[i] ** 2)
CODE = ["q_w", "S_w", "S_lambda", "sqrt", "z_1", "phi", "exp", "np", "mp", "x0", "v1", "I", "class", "E", "eta_0", "1a"]
TEX = ["a$b^c{", "100%", "a_b_c", "C#", "~x", r"\input{a}", r"\gamma", r"\mathcal{E}_0", "x^2", "a&b", "}", "\\"]


def problem(name, loss):
    strength = Symbol(name, positive=True)
    body = Max(0, 1 - u) ** 2 if loss == "hinge" else log(1 + exp(-u))
    return ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + strength * Sum(body, (mu, 1, P)) / 2, name=name
    ), strength


@pytest.fixture(scope="module")
def usual():
    declared, strength = problem("C", "logistic")
    return float(declared.cavity().solve({alpha: 2, strength: "3/2"})[NORM])


@pytest.mark.parametrize("name", CODE)
def test_a_name_is_only_a_name(name, usual):
    for loss, expected in (("hinge", 0.2995987568065416), ("logistic", usual)):
        declared, strength = problem(name, loss)
        theory = declared.cavity()
        solution = theory.solve({alpha: 2, strength: "3/2"})
        assert float(solution[NORM]) == pytest.approx(expected, rel=1e-6)
        assert float(solution[strength]) == 1.5
        assert float(theory.function(NORM, strength, values={alpha: 2})(1.5)) == pytest.approx(expected, rel=1e-6)
        assert declared.simulate({alpha: 2, strength: 1.5}, N=20, seeds=1)[NORM].mean > 0
        written = [str(s) for s in (*theory.order_parameters, *theory.system.parameters)]
        assert len(set(written)) == len(written)
        assert float(solution[name]) == 1.5


@pytest.mark.parametrize("name", ["q_w", "z_1"])
def test_such_a_derivation_is_verified(name):
    assert problem(name, "hinge")[0].cavity().derivation.verify(dps=20)


@pytest.mark.parametrize("name", TEX)
def test_tex_in_a_name_is_escaped(name):
    written = tex(Symbol(name, positive=True) ** 2)
    assert written.count("{") - written.count(r"\{") == written.count("}") - written.count(r"\}")
    assert r"\input" not in written
    assert text(Symbol(name)) == {r"\gamma": "γ", r"\mathcal{E}_0": "ℰ₀", "x^2": "x²", "a_b_c": "a_bc"}.get(name, name)


@pytest.mark.parametrize("name", [r"a$b^c{", "\\"])
def test_a_derivation_with_such_names_compiles(name, typeset):
    typeset(problem(name, "hinge")[0].cavity().derivation.to_latex())


MARGINS = {
    "steps": lambda q: Sum(Max(0, q - u), (mu, 1, P)),
    "smooth": lambda q: Sum(log(1 + exp(q - u)), (mu, 1, P)),
    "two fields": lambda q: Sum(Max(0, q - u, -Sum(Coupling("v")[mu, i] * w[i], (i, 1, N))), (mu, 1, P)),
}


@pytest.mark.parametrize("name", MARGINS)
def test_a_real_parameter_is_no_symbol_of_the_engine(name):
    """Sources and variables of integration are real, too, and had these names."""
    found = []
    for letter in ("other", "z_1") if name == "two fields" else ("other", "I", "I1", "z", "z_1"):
        shift = Symbol(letter, real=True)
        declared = ConvexProblem(MARGINS[name](shift) + Sum(w[i] ** 2, (i, 1, N)) / 2)
        found.append(float(declared.cavity().solve({alpha: 1, shift: 1})[NORM]))
    assert found == pytest.approx([found[0]] * len(found), rel=1e-9)


def test_a_parameter_at_a_temperature_is_no_symbol_of_the_engine():
    found = []
    for letter in ("other", "zeta"):
        shift = Symbol(letter, real=True)
        declared = ConvexProblem(MARGINS["smooth"](shift) + Sum(w[i] ** 2, (i, 1, N)) / 2)
        found.append(float(declared.gibbs(2).cavity().solve({alpha: 1, shift: 1})[NORM]))
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_a_threshold_and_an_input_may_have_any_names():
    j, out = symbols("j", integer=True), []
    J = Coupling("J", between=(i, i), mean=1 / N)
    for shift in (0, 41, 61, 101, 1000):
        current, threshold = Symbol("I", real=True), Symbol("theta", real=True)
        heard = Sum(J[i, j] * w[j], (j, 1, N)) + current - threshold
        theory = System([Eq(w[i], 1 / (1 + exp(-heard)))]).cavity()
        out.append(float(theory.solve({current: shift, threshold: shift})[NORM]))
    assert out == pytest.approx([out[0]] * len(out), rel=1e-9)
