"""Formulas in the form in which they are read: names for what is too wide, notation, signs, sources."""

import importlib
import re

import pytest
from sympy import Abs, Heaviside, Max, Piecewise, Rational, S, Sum, Symbol, exp, fraction, sqrt, symbols, together

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, i, mu
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.quantities import Global, SiteQuantity
from symcavity.record.derivation import Derivation, Step
from symcavity.record.order_parameters import OrderParameter
from symcavity.writing.abbreviate import repeats, shorten
from symcavity.writing.display_form import as_shown
from symcavity.writing.lines import lines, width
from symcavity.writing.nodes import Row, items_of, to_tex
from symcavity.writing.printing import tex, tree
from symcavity.writing.reader import read
from symcavity.writing.rows import fits, row_of

a, b, c, d, x, y = symbols("a b c d x y", positive=True)
root = sqrt(a**2 + b**2 + d)
wide = sum((exp(-k * (a * x + b * y + c) ** 2 / root) / (k + root) for k in range(1, 9)), a)


def flat(row):
    """TeX without blanks, and without the brackets that only hold one thing together."""
    return re.sub(r"\\left|\\right|[\s()]", "", to_tex(row))


@pytest.mark.parametrize("limit", [30.0, 45.0])
def test_names_stand_for_what_they_replace(limit):
    row = tree(Equation(d, wide**2 / (1 + wide)))

    def fits(row):
        found = lines(row, limit)
        return len(found) < 5 and all(width(line) < 1.06 * limit for line in found)

    assert not fits(row)
    known = {}
    (short,), old, new = shorten([row], known, fits)
    assert fits(short)
    assert all(map(fits, new))
    assert not old
    assert len(new) == len(known)
    text = flat(short)
    for _ in new:  # a definition may hold names that are defined after it
        for one in new:
            text = text.replace(flat(Row(one.items[:1])), flat(Row(one.items[2:])))
    assert text == flat(row)
    again, old, new = shorten([row], known, fits)
    assert all(map(fits, again))
    assert old
    assert not new


def test_brackets_that_mean_something_stay():
    inside = Symbol("r", real=True) - b - c + exp(-(a**2) - b**2 - c**2 - d**2)
    row = tree(Equation(d, Max(0, inside) ** 2 / (1 + Max(0, inside)) + Max(0, inside)))
    (short,), _, new = shorten([row], {}, lambda row: width(row) < 25)
    text = to_tex(short)
    assert new
    assert r"}_{1}_{+}" not in text.replace(" ", "")
    read(text)  # a doubled script raises
    product = tree(Equation(d, OrderParameter("q_w") * inside + phi(2, inside) * inside))
    (short,), _, (named,) = shorten([product], {}, lambda row: width(row) < 25)
    name = to_tex(named).split(" = ")[0]
    assert f"\\phi_{{2}} \\left( {name} \\right)" in to_tex(short)  # the brackets of a function, and of a factor not
    assert to_tex(short).count(name) == 3
    assert to_tex(short).count("left") == 1
    assert text.count("_{+}") + sum(to_tex(one).count("_{+}") for one in new) >= 1


def test_what_fits_has_no_names():
    row = tree(Equation(a, b + c))
    assert shorten([row], {}, lambda _row: True) == ([row], [], [])


def test_sums_have_their_parameters_first_and_turned_signs():
    S, alpha, gamma = OrderParameter("S_w"), Symbol("alpha", positive=True), Symbol("gamma", positive=True)
    assert tex(alpha * S + 1) == r"1 + \alpha S^{w}"
    assert tex((alpha * S - gamma) ** 2) == r"\left(\gamma - \alpha S^{w}\right)^{2}"
    assert tex(1 / (alpha * S - 1)) == r"- \frac{1}{1 - \alpha S^{w}}"
    assert tex(-a - b) == "- a - b"
    assert tex(a / (1 + S / gamma)) == r"\frac{a}{1 + S^{w} / \gamma}"
    assert tex(S < 0) == r"S^{w} < 0"
    assert tex(-S > 0) == r"S^{w} < 0"


def shown(name):
    derivation = importlib.import_module(f"symcavity.derivations.{name}").problem.cavity().derivation
    return derivation, as_shown(derivation)


def test_responses_to_different_sources_are_printed_apart():
    _, after = shown("logistic_teacher")
    left = [tex(claim.lhs) for step in after.steps if step.key == "datum.response" for claim in step.claims]
    assert len(left) == len(set(left)) == 2
    meanings = [tex(meaning) for _, meaning in after.parameters]
    assert len(meanings) == len(set(meanings))


def is_label(node):
    return isinstance(node, SiteQuantity) and node.family.name == "y"


def test_squares_of_labels_are_one_and_nothing_else_changes():
    before, after = shown("clusters_hinge")
    changed = named = 0
    nu = fresh_index(mu, {mu})
    other = {nu: fresh_index(mu, {mu, nu})}  # a multiplier is called nu, and couplings z
    other[Symbol("z", real=True)] = Symbol("zeta", real=True)
    for old, new in zip(before.steps, after.steps, strict=True):
        for one, two in zip(old.claims, new.claims, strict=True):
            if old.rule == "response" and one.lhs != two.lhs:  # the order parameter that it is
                named += 1
                assert dict(before.parameters)[two.lhs].xreplace({old.data["kind"].index: S.Zero}).args == one.lhs.args
                assert two in after[f"closure.{two.lhs}"].claims
                one = Equation(two.lhs, one.rhs)
            one = Equation(one.lhs.xreplace(other), one.rhs.xreplace(other))
            changed += one != two
            assert not any("y" in str(q) for q in two.difference.atoms(Abs))
            values = [c.difference.replace(is_label, lambda _y, v=v: v).expand() for c in (one, two) for v in (1, -1)]
            for here, there in zip(values[:2], values[2:], strict=True):  # the same statement for either label
                assert fraction(together(here - there))[0].expand() == 0
    assert changed
    assert named


def test_averages_hold_no_sign_and_like_terms_add():
    before, after = shown("gaussian_clusters")
    keys = ("closure.S_Delta_w", "closure.q_lambda", "global.1", "global.2")
    pairs = [(old, new) for key in keys for old, new in zip(before[key].claims, after[key].claims, strict=True)]
    for one, two in pairs:  # the same numbers, at a spectrum of one value
        at = {q: Rational(k + 3, 7) for k, q in enumerate(sorted(one.difference.free_symbols, key=str)) if q.is_Symbol}
        flat = [c.difference.replace(Average, lambda body: body) for c in (one, two)]
        at |= {q: Rational(5, 3) for c in flat for q in c.atoms(SiteQuantity)}
        assert flat[0].xreplace(at) == flat[1].xreplace(at)
        assert not any(node.body.could_extract_minus_sign() for node in two.difference.atoms(Average))
    text = before.to_latex()
    assert r"\left\langle -" not in text
    square = r"\left( 1 - M_{v w} \right)^{2}"
    top, below = rf"{square} + q_{{\Delta w^{{2}}}}", r"\left( 1 + S^{\Delta w} \right)^{2}"
    assert rf"q_{{\lambda}} = \frac{{{top}}}{{{below}}}." in text


def test_what_averages_share_is_written_once_and_nothing_is_divided_by_fractions():
    def shown(expr):
        step = Step("a", "closure", (Equation(d, expr),))
        (claim,) = as_shown(Derivation("", "", (step,))).steps[0].claims
        assert claim.lhs == d
        assert together(claim.rhs - expr).expand() == 0
        return claim.rhs

    one, two = phi(1, x), phi(2, y)
    assert shown(a * one + a * b * one + 2 * a * two) == a * (1 + b) * one + 2 * a * two
    assert shown(a * one - a * phi(1, y) + b**2 + 2 * b + 1) == a * (one - phi(1, y)) + (1 + b) ** 2
    assert shown(a * one + b * two + c) == a * one + b * two + c
    assert shown(-one / (Rational(1, 2) - one / (2 * two))) == -2 * one * two / (two - one)
    assert shown(a / (1 + exp(a) / 2) ** 2) == 4 * a / (2 + exp(a)) ** 2
    for kept in (1 / (1 + a / b), 1 / (Rational(1, 2) + exp(-a)), 1 / (a + b)):
        assert shown(kept) == kept


def test_denominators_hold_no_fractions_and_exponentials_are_one():
    def shown(expr):
        step = Step("a", "closure", (Equation(d, expr),))
        return as_shown(Derivation("", "", (step,))).steps[0].claims[0].rhs

    up = exp(a - b)
    cases = {
        exp(a) * exp(-b) / ((1 + exp(a) * exp(-b)) ** 2 * (1 + c * exp(a) * exp(-b) / (1 + exp(a) * exp(-b)) ** 2)):
            up / (c * up + (1 + up) ** 2),
        c * exp(-2 * a) / (1 + exp(-a)) ** 2: c / (1 + exp(a)) ** 2,
        1 / (c**2 * exp(a) + c**2): 1 / (c**2 * (1 + exp(a))),
        b / (sqrt(c) * sqrt(a - b**2 / c)): b / sqrt(a * c - b**2),
        c * exp(a) / (1 + exp(a)) ** 2: c * exp(a) / (1 + exp(a)) ** 2,
    }  # fmt: skip
    for expr, form in cases.items():
        assert shown(expr) == form
        at = {q: Rational(k + 7, 5 - k) for k, q in enumerate((b, c, a))}
        assert abs((expr - form).xreplace(at).n(30)) < 1e-28
    z = Symbol("z", real=True)
    for inside in (lambda body: GaussianAverage(body, z), lambda body: ImplicitAverage(body, z, z + a)):
        assert shown(inside(-a * z / (c * exp(z) + c))) == -a / c * inside(z / (1 + exp(z)))


def test_arguments_have_each_denominator_once_and_exponents_their_factors_in_front():
    def shown(expr):
        step = Step("a", "closure", (Equation(d, expr),))
        return as_shown(Derivation("", "", (step,))).steps[0].claims[0].rhs

    z, root = Symbol("z", real=True), sqrt(a * c - b**2)
    cases = {
        phi(1, a / sqrt(x) - b - c / sqrt(x)): phi(1, (a - c) / sqrt(x) - b),
        phi(1, a - b / x - c / y): phi(1, a - b / x - c / y),
        phi(0, x / root + y / sqrt(a - b**2 / c)): phi(0, (x + y * sqrt(c)) / root),
        phi(0, y / sqrt(a - b**2 / c)): phi(0, y / sqrt(a - b**2 / c)),
        GaussianAverage(phi(0, z * x / root - y / sqrt(a - b**2 / c)), z):
            GaussianAverage(phi(0, (z * x - y * sqrt(c)) / root), z),
        1 / (1 + exp(a * b + a * c)): 1 / (1 + exp(a * (b + c))),
        1 / (1 + exp(-a * b - a * c)): 1 / (1 + exp(-a * (b + c))),
        GaussianAverage(1 / (1 + exp(a * z + b)), z): GaussianAverage(1 / (1 + exp(a * z + b)), z),
    }  # fmt: skip
    for expr, form in cases.items():
        assert shown(expr) == form
        at = {q: Rational(k + 7, 5 - k) for k, q in enumerate((b, x, c, y))} | {a: 9}
        if not expr.has(GaussianAverage):
            assert abs((expr - form).xreplace(at).n(30)) < 1e-28
    other = phi(0, y / sqrt(a - b**2 / c) + x / sqrt(a - b**2))
    assert shown(other) == other


def test_cases_do_not_ask_again_and_constants_stand_before_averages():
    def shown(expr):
        step = Step("a", "closure", (Equation(d, expr),))
        return as_shown(Derivation("", "", (step,))).steps[0].claims[0].rhs

    z = Symbol("z", real=True)
    plus, minus = Piecewise((a, z > 0), (0, True)), Piecewise((b, z < 0), (0, True))
    asked = Piecewise((c + plus + minus, z > 0), (c * plus + minus, z < 0), (c + plus - minus, True))
    assert shown(asked) == Piecewise((a + c, z > 0), (b, z < 0), (c, True))
    for at in (-1, 0, 1):
        assert shown(asked).xreplace({z: S(at)}) == asked.xreplace({z: S(at)})
    open_ = Piecewise((Piecewise((a, z > 1), (b, True)), z > 0), (Piecewise((a, z >= 0), (b, True)), True))
    assert shown(open_) == open_  # neither is decided

    t = Quenched("t", i)[i]
    body = phi(1, a * t) * (2 * sqrt(b) / c - 2 * t * sqrt(b) / c)
    assert shown(Average(body)) == 2 * sqrt(b) / c * Average(phi(1, a * t) * (1 - t))
    assert shown(Average(t**2)) == Average(t**2)


def test_no_symbol_means_two_things():
    cases = {"clusters_logistic": ("nu", "rho"), "clusters_hinge": ("zeta",), "gardner": ("nu", "z")}
    cases |= {"structured_network": ("zeta",), "supplied_resources": ("zeta",)}
    for name, letters in cases.items():
        after = shown(name)[1]
        sides = [side for s in after.steps for e in s.claims if isinstance(e, Equation) for side in (e.lhs, e.rhs)]
        quantities = set().union(*(side.atoms(SiteQuantity) for side in sides))
        dummies = {str(limits[0]) for side in sides for total in side.atoms(Sum) for limits in total.limits}
        averages = (TruncatedIntegral, GaussianAverage)
        dummies |= {str(node.args[1]) for side in sides for node in side.atoms(*averages)}
        families = {q.family.name for q in quantities} | {str(s) for e in sides for s in e.atoms(Global)}
        assert not dummies & families
        assert {*letters} <= dummies | families


def test_what_vanishes_is_told_by_its_unknown_or_its_number():
    zero, nu, S, alpha = Rational(0), Global("nu"), OrderParameter("S_w"), Symbol("alpha", positive=True)
    w = Feature("w")
    said = {
        nu / alpha - phi(1, x) / 2 - phi(1, y) / 2: r"\nu = \frac{\alpha \left(\phi_{1}",
        1 - alpha * phi(2, x): r"\alpha \phi_{2}\left(x\right) = 1",
        nu / (alpha * S) + 1: r"\nu = - \alpha S^{w}",
        S * phi(1, x) - S * nu: r"\nu S^{w} = S^{w}",
        alpha * phi(1, x) - phi(1, y): r"\phi_{1}\left(y\right) = \alpha \phi_{1}",
        S - alpha * phi(1, x) - phi(1, S): r"0 = ",
        nu * N - Sum(w[i], (i, 1, N)): r"\sum_{i = 1}^{N} w_{i} = N",
        Sum(-w[i], (i, 1, N)) + N: r"\sum_{i = 1}^{N} w_{i} = N",
        nu - w[i]: r"0 = ",
    }
    for total, form in said.items():
        assert to_tex(row_of(Equation(zero, total))).replace(" ", "").startswith(form.replace(" ", ""))
        read(to_tex(row_of(Equation(zero, total))))


def test_parameters_stand_before_a_sum_and_what_it_counts_stays():
    w, k = Feature("w"), Symbol("k", integer=True)
    every = Sum(a * (w[i] ** 2 + 1) / 2, (i, 1, N))
    step = Step("a", "lagrangian", (Equation(d, every), Equation(d, Sum(k * x**k, (k, 1, 3)))))
    first, second = as_shown(Derivation("", "", (step,))).steps[0].claims
    assert first.rhs == a * Sum(w[i] ** 2 + 1, (i, 1, N)) / 2
    assert second.rhs == Sum(k * x**k, (k, 1, 3))


def test_a_long_formula_that_repeats_itself_is_given_a_name():
    long = exp(a) + exp(b) + exp(c) + exp(d)
    repeated = Equation(x, sum((Symbol(f"s_{k}") * exp(k * a) / long**k for k in range(1, 25)), a))
    (row,), _, named = shorten([tree(repeated)], {}, fits)
    assert [flat(line) for line in named] == [flat(read("\\mathcal{A}_{1} = e^{a} + e^{b} + e^{c} + e^{d}"))]
    assert repeats(tree(repeated)) == 24
    assert repeats(row) == 0


def test_lines_end_between_statements_and_nothing_is_said_of_zero():
    text = {n: shown(n)[0].to_latex() for n in ("basis_pursuit", "clusters_hinge", "interpolation")}
    for one in text.values():
        cases = [part for part in re.findall(r"begin\{align\*\}(.*?)end\{align", one, re.DOTALL) if "{if }" in part]
        assert len(cases) == (one is not text["interpolation"])
        assert not any(re.search(r"& \\qquad [-+=]", part) for part in cases)
        assert one.count("eq:feature.substitute}") > 1  # one number for what a field is, before and after
        assert "eq:feature.substitute:2" not in one
        assert "eq:datum.substitute:2" not in one
        assert "0 = 0" not in one
    assert "the two sides of the exact identity agree." in " ".join(text["interpolation"].split())
    assert r"\left( 1 - \alpha \right)^{2}" in text["interpolation"]
    assert not re.search(r"(?<![a-z\\{_])u [+)\\]", text["clusters_hinge"])  # a name of the engine for a field


def test_notation_is_said_once_and_where_it_is_first_used():
    text = importlib.import_module("symcavity.derivations.gardner").problem.cavity().derivation.to_latex()
    assert text.count("is a positive part") == text.count("is the standard Gaussian measure") == 1
    assert text.index("]_{+}") < text.index("is a positive part") < text.index("\\section{Self-consistent")
    assert text.index("\\mathcal{D}") < text.index("is the standard Gaussian measure")
    assert "is held fixed" not in text
    assert "We hold fixed" in text
    assert items_of(tree(a)) == tree(a).items


def test_what_a_measure_excludes_is_said_with_its_energy():
    """Constraints, and the field of a teacher, are part of the problem: without them the energy is of another one."""
    x, w, t = Coupling("x"), Feature("w"), Quenched("t", i, law={1: S.Half, -1: S.Half})
    h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    energy = Sum(w[i] ** 2, (i, 1, N)) / 2
    held = ((y[mu] * h >= 0, 1), (h >= 1, 2))
    texts = [ConvexProblem(energy, [bound]).gibbs(b).cavity().derivation.to_text() for bound, b in held]
    for text, weight in zip(texts, ("exp(-E)", "exp(-2 E)"), strict=True):
        assert weight in text
        assert "subject to" in text
        assert "a configuration that violates one has no weight" in " ".join(text.split())
        assert "with the variables w_i" in " ".join(text.split())
    assert "where u_y^μ = Σ_i t_i x_i^μ" in " ".join(texts[0].split())
    free = ConvexProblem(energy + Sum((h - 1) ** 2, (mu, 1, P))).gibbs(2).cavity().derivation.to_text()
    assert "subject to" not in free
    assert "violates" not in free
