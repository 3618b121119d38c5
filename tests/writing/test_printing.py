"""The notation: one printer to TeX, and its translations."""

import importlib.util
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from sympy import (
    And,
    Eq,
    Float,
    Integral,
    Max,
    Min,
    Or,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    erf,
    exp,
    log,
    oo,
    pi,
    sqrt,
)

from symcavity.algebra.phi import phi
from symcavity.model.averages import average, response
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, P, alpha, i, mu
from symcavity.record.symbols import AtStep
from symcavity.writing.lines import lines, width
from symcavity.writing.nodes import MarkupError, to_tex
from symcavity.writing.printing import mathml, tex, text, tree
from symcavity.writing.reader import read
from symcavity.writing.unicode import to_text

_spec = importlib.util.spec_from_file_location("derivation_samples", Path(__file__).with_name("samples.py"))
s = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(s)
x, w, lam, h = s.x, s.w, s.lam, s.h
field = Sum(x[mu, i] * w[i], (i, 1, N))

CASES = [
    (lam[mu] ** 2, r"\left(\lambda^{\mu}\right)^{2}", "(λ^μ)²"),
    (w[i] ** 2, "w_{i}^{2}", "w_i²"),
    (average(w[i] ** 2), r"\left\langle w_{i}^{2} \right\rangle", "⟨w_i²⟩"),
    (average(lam[mu]) ** 2, r"\left\langle \lambda^{\mu} \right\rangle^{2}", "⟨λ^μ⟩²"),
    (s.S_w**2, r"\left(S^{w}\right)^{2}", "(S^w)²"),
    (s.eta**2, r"\left(\eta^{0}\right)^{2}", "(η⁰)²"),
    (Max(0, 1 - s.eta), r"\left[1 - \eta^{0}\right]_{+}", "[1 - η⁰]_+"),
    (Max(0, 1 - s.eta) ** 2, r"\left[1 - \eta^{0}\right]_{+}^{2}", "[1 - η⁰]_+²"),
    (Sum(w[i] ** 2, (i, 1, N)) / 2, r"\frac{1}{2} \sum_{i=1}^{N} w_{i}^{2}", "(1/2) Σ_i w_i²"),
    (field >= 1, r"\sum_{i=1}^{N} x_{i}^{\mu} w_{i} \ge 1", "Σ_i x_i^μ w_i ≥ 1"),
    (s.kronecker(s.nu, mu), r"\delta^{\mu \nu}", "δ^μν"),
    (s.kronecker(i, s.j), r"\delta_{i j}", "δ_ij"),
    (s.phi(2, s.kappa), r"\phi_{2}\left(\kappa\right)", "φ₂(κ)"),
    (Complementary(lam[mu], h[mu]), r"0 \le \lambda^{\mu} \perp h^{\mu} \ge 0", "0 ≤ λ^μ ⊥ h^μ ≥ 0"),
    (response(w[i]), r"\frac{dw_{i}}{dI_{i}}", "dw_i/dI_i"),
    (s.eta_w + s.F_w * w[0] + s.source_w[0], "\\eta_{0} + F_{00} w_{0} + I_{0}", "η₀ + F₀₀ w₀ + I₀"),
    (field - 1 + s.source[mu], r"\sum_{i=1}^{N} x_{i}^{\mu} w_{i} - 1 + I^{\mu}", "Σ_i x_i^μ w_i - 1 + I^μ"),
    (exp(-(s.kappa**2) / 2) / sqrt(2 * pi), r"\frac{e^{- \kappa^{2} / 2}}{\sqrt{2 \pi}}", "e^(-κ²/2)/√(2 π)"),
    (average(lam[mu] > 0), None, "⟨1[λ^μ > 0]⟩"),
    (-s.phi(0, s.kappa) / (1 - alpha * s.S_w), None, "-φ₀(κ)/(1 - α S^w)"),
    (s.kappa * (1 - alpha) * s.S_w, None, "κ (1 - α) S^w"),
    (-(1 - alpha), None, "α - 1"),
    (Rational(-3, 2) * s.kappa, None, "-3 κ/2"),
    (s.kappa / alpha * field, None, "(κ/α) Σ_i x_i^μ w_i"),
    (1 / ((1 + s.kappa) ** 2 * (2 + s.kappa)), None, "1/((κ + 1)² (κ + 2))"),
    (1 / s.phi(0, s.kappa), None, "1/φ₀(κ)"),
    (1 / sqrt(s.q_lam), None, "1/√q_λ"),
    ((s.kappa, w[i]), None, "κ, w_i"),
    (exp(h[mu]), None, "e^(h^μ)"),
    (Float("0.1"), None, "0.1"),
    (s.kappa ** Rational(3, 2), r"\kappa^{3/2}", "κ^(3/2)"),
    (Equation(alpha, P / N), None, "α = P/N"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "latex", "plain"), CASES, ids=[case[2] for case in CASES])
def test_notation(expr, latex, plain):
    assert latex in (None, tex(expr))
    assert text(expr) == plain
    ET.fromstring(mathml(expr))  # noqa: S314 - our own output


def test_nested_sums_of_equal_ranges_merge_and_others_do_not():
    inner = x[mu, 0] * x[s.nu, 0]
    merged = r"\sum_{\mu,\nu=1}^{P} x_{0}^{\mu} x_{0}^{\nu}"
    assert tex(Sum(inner, (mu, 1, P), (s.nu, 1, P))) == merged
    assert tex(Sum(Sum(inner, (s.nu, 1, P)), (mu, 1, P))) == merged
    assert tex(Sum(x[mu, i], (mu, 1, P), (i, 1, N))) == r"\sum_{i=1}^{N} \sum_{\mu=1}^{P} x_{i}^{\mu}"
    assert tex(Sum(x[mu, i], (mu, 1, i), (i, 1, N))) == r"\sum_{i=1}^{N} \sum_{\mu=1}^{i} x_{i}^{\mu}"


def test_a_sum_before_another_factor_is_bracketed():
    assert text(s.kappa * field * Sum(lam[mu], (mu, 1, P))).count("(") == 1


def test_inline_fractions_have_a_slash():
    assert tex(1 / sqrt(N), inline=True) == r"1 / \sqrt{N}"
    assert tex((1 + s.kappa) / (2 * alpha), inline=True) == r"\left(\kappa + 1\right) / \left(2 \alpha\right)"


def test_unknown_nodes_print_by_their_own_string():
    odd = s.Odd(s.kappa)
    assert text(3 * odd**2) == "3 Odd_thing{kappa}²"
    assert r"Odd\_thing\{kappa\}" in tex(odd)
    assert text("as it is") == "as it is"
    assert text(object) == str(object)


def test_piecewise_logic_and_integrals():
    pieces = Piecewise((0, s.eta > 1), ((1 - s.eta) / s.S_w, True))
    assert r"\begin{cases}" in tex(pieces)
    assert text(pieces) == "{0 if η⁰ > 1; (1 - η⁰)/S^w otherwise}"
    assert text(And(s.eta > 1, s.eta < 2)) == "1 < η⁰ < 2"
    assert text(And(s.eta > 1, s.z < 2)) == "η⁰ > 1 and z < 2"
    assert " or " in text(Or(s.eta > 1, s.eta < 0))
    assert text(Integral(exp(-s.z), (s.z, -oo, s.kappa))) == "∫[-∞..κ] e^(-z) dz"


def test_a_case_that_holds_where_an_earlier_one_does_says_that_it_is_the_next():
    """Read by itself, ``0 < 2`` would be in two cases."""
    three = Piecewise((0, s.eta < 1), (1, s.eta < 2), (2, True))
    assert text(three) == "{0 if η⁰ < 1; 1 else if η⁰ < 2; 2 otherwise}"
    apart = Piecewise((0, s.eta < 1), (1, s.eta > 2), (2, True))
    assert text(apart) == "{0 if η⁰ < 1; 1 if η⁰ > 2; 2 otherwise}"
    classes = Piecewise((0, Eq(s.z, 1)), (1, Eq(s.z, 2)), (2, True))
    assert text(classes) == "{0 if z = 1; 1 if z = 2; 2 otherwise}"


def _random_expression(rng, depth):
    leaves = [
        s.kappa, alpha, s.S_w, s.S_lam, s.q_lam, lam[mu], w[i], h[0], s.eta, s.eta_w, s.F, s.source[mu], s.b,
        average(lam[mu]), response(w), s.phi(1, s.kappa), s.Odd(s.kappa), Symbol("T__a_1"), Symbol("x_0"),
    ]  # fmt: skip
    if depth == 0:
        return rng.choice(leaves)
    one, two = (_random_expression(rng, depth - 1) for _ in range(2))
    makers = [
        lambda: one + two, lambda: one - two, lambda: one * two, lambda: one / (two + 2), lambda: one**2,
        lambda: one**-3, lambda: Max(0, one), lambda: Max(0, one) ** 2, lambda: exp(-one),
        lambda: exp(one) ** 2,
        lambda: sqrt(one + 3), lambda: average(one) ** 2, lambda: Sum(one * lam[mu], (mu, 1, P)) * two,
        lambda: abs(one) ** 3, lambda: Min(one, two), lambda: log(one + 2) ** 2, lambda: erf(one) ** two,
        lambda: Piecewise((one, s.z > 1), (two, True)) ** 2, lambda: s.DisorderAverage(one) ** 2,
        lambda: s.Perturbation(one) ** 2, lambda: s.GaussianAverage(one * s.z, s.z) * two,
        lambda: s.response_of(lam[mu], s.source[s.nu]) ** 2 * one, lambda: s.kronecker(mu, s.nu) * one,
        lambda: one ** (two / 3),
    ]  # fmt: skip
    return rng.choice(makers)()


@pytest.mark.parametrize("seed", range(150))
def test_random_expressions_never_double_a_script(seed):
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    expr = _random_expression(rng, 3)
    row = read(tex(expr))  # a doubled script raises
    assert read(to_tex(row)) is not None
    assert to_text(row)
    ET.fromstring(mathml(expr))  # noqa: S314 - our own output
    assert read(tex(Eq(expr, s.L, evaluate=False)))


def test_nothing_that_was_printed_is_read_again(monkeypatch):
    sources = []
    monkeypatch.setattr("symcavity.writing.tree_printer.read", lambda *args: sources.append(args[0]) or read(*args))
    fresh = Symbol("kappa_unread", positive=True)
    expr = log(1 + erf(fresh * average(lam[mu] * log(2 + fresh)) / 2)) ** 2 + Max(0, fresh)
    assert tex(expr).count("unread") == 3
    assert {source for source in sources if "unread" in source} == {r"\kappa_{\mathrm{unread}}"}


def test_a_step_stands_beside_the_upper_index_of_a_quantity_and_not_within_an_average():
    assert tex(AtStep(s.S_w, 1)) == "S^{w,t+1}"
    assert tex(AtStep(average(w[i] ** 2), 0)) == r"\left\langle w_{i}^{2} \right\rangle^{t}"
    assert tex(AtStep(s.S_w, 0) ** 2) == r"\left(S^{w,t}\right)^{2}"


def test_what_cannot_be_read_is_its_string_and_the_rest_a_formula():
    class Unread(Symbol):
        __slots__ = ()

        def _latex(self, _printer):
            return "{open"

    assert text(s.kappa**2 / 2 + Unread("odd_one")) == "κ²/2 + odd_one"


def test_the_reader_refuses_what_is_wrong():
    for wrong in ("x^{2}^{3}", "{x", r"\frac{1}", r"\left(x"):
        with pytest.raises(MarkupError):
            read(wrong)


def test_long_lines_break_at_signs_and_lose_nothing():
    for claim in s.LONG:
        row = tree(claim)
        found = lines(row, 60)
        assert len(found) > 1 or width(row) <= 60
        assert max(width(line) for line in found) < 68
        plain = "".join(to_text(line) for line in found)
        for name in ("κ", "λ", "S"):
            assert plain.count(name) == to_text(row).count(name)


def test_a_product_that_a_line_breaks_keeps_its_blanks():
    """``d`` before ``S_w`` stood tight in such lines, as a differential does."""
    d, q, S_w, b, c = (Symbol(name, positive=True) for name in ("d", "q_w", "S_w", "b", "c"))
    first, second = phi(1, d + d * S_w + b), phi(1, d - c * S_w)
    row = tree(Equation(q, (b + d * S_w * first + d * q * second + b * c * S_w) / S_w**2))
    found = lines(row, 40)
    assert len(found) > 1
    assert "".join("".join(to_text(line).split()) for line in found).count("φ₁(d") == 2
    for line in map(to_text, found):
        assert not re.search(r"d[Sq(]|S\(|\)\(|\d[a-z]", line.replace("φ₁(", "φ")), line


def test_a_sum_of_negative_terms_is_taken_away():
    from sympy import Function, Sum, symbols

    k, n, a = symbols("k n a", integer=True)
    f = Function("f")
    assert tex(Sum(-f(k), (k, 1, n)) + a) == tex(a) + " - " + tex(Sum(f(k), (k, 1, n)))
    assert tex(2 * Sum(-f(k), (k, 1, n))).count("-") == 1
