"""Change one word of a rule, derive, and see that the record notices, at a step that rests on it.

`test_sabotage.py` changes what a rule returns; here its own text is changed, where a factor or a case may be lost.
"""

import inspect
import sys
import textwrap
from functools import cache

import pytest
from sympy import (
    Abs,
    Eq,
    Max,
    Rational,
    Sum,
    Symbol,
    cosh,
    erf,
    exp,
    log,
    sign,
    sqrt,
    symbols,
    tanh,
)

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    P,
    Quenched,
    Sites,
    System,
    Variable,
    average,
    i,
    mu,
)
from symcavity.algebra import gaussian, hinge_average, piecewise
from symcavity.derivations import kernel_ridge
from symcavity.evaluate.solutions import scattering
from symcavity.method import eliminate, kkt, messages, orders, stability, tidy
from symcavity.model.couplings import Coupling as CouplingFamily
from symcavity.model.rewritings import means, units
from symcavity.sites import by_parts, labels
from symcavity.sites.branching import averages, joining, kinks, region_averages, shifts, thresholds

HALF = Rational(1, 2)
x, w, z = Coupling("x"), Feature("w"), Coupling("z", variance=1)
t, c, e, y = Quenched("t", i), Quenched("c", mu), Quenched("e", mu), Quenched("y", mu, law={1: HALF, -1: HALF})
s, b, j = Variable("s", i), Global("b"), Symbol("j", integer=True)
gamma, q = symbols("gamma q", positive=True)
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
h, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
J = Coupling("J", between=(i, i), reciprocity=HALF)


def data(body):
    return Sum(body, (mu, 1, P))


def mutant(owner, name, old, new):
    """Replace a rule by its own text with one word changed, wherever it is used."""

    def sabotage(monkeypatch):
        kept = inspect.getattr_static(owner, name)
        rule = getattr(kept, "fget", None) or getattr(kept, "func", None) or inspect.unwrap(kept)
        text = textwrap.dedent(inspect.getsource(rule))
        assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
        space, found = vars(sys.modules[rule.__module__]), {}
        exec(compile(text.replace(old, new), f"<{name}>", "exec", 0x1000000), space, found)  # noqa: S102 - our own text
        (changed,) = found.values()
        if hasattr(changed, "__set_name__"):
            changed.__set_name__(owner, name)
        monkeypatch.setattr(owner, name, changed)
        if inspect.ismodule(owner):
            for module in [m for n, m in sys.modules.items() if n.startswith("symcavity.") and m is not owner]:
                if vars(module).get(name) is kept:
                    monkeypatch.setattr(module, name, changed)

    return sabotage


def ridge(**more):
    return ConvexProblem(data((e[mu] - h) ** 2) / 2 + weights, **more)


def scaled_weights():
    return ConvexProblem(data((e[mu] - Sum(x[mu, i] * t[i] * w[i], (i, 1, N))) ** 2) / 2 + weights)


def two_means():
    shifted = Coupling("x", mean=(2 + y[mu]) / N)
    return ConvexProblem(data((y[mu] - Sum(shifted[mu, i] * w[i], (i, 1, N))) ** 2) / 2 + weights)


def in_units():
    return ConvexProblem(data((e[mu] - Sum(z[mu, i] / sqrt(N) * w[i], (i, 1, N))) ** 2) / 2 + weights)


def quartic():
    return ConvexProblem(data((e[mu] - h) ** 4) / 4 + weights)


def noisy_teacher(loss):
    """A teacher who hears other couplings."""
    return ConvexProblem(data(loss(Sum(Coupling("a", correlation={x: HALF})[mu, i] * t[i], (i, 1, N)) - h)) + weights)


def noisy_cosh():
    return noisy_teacher(lambda gap: cosh(gap + h / 2))


def noisy_hinge():
    return noisy_teacher(lambda gap: Max(0, gap - 1))


def loop_of_three():
    a, K = Sites("a", "K")
    there, on, back = Coupling("A", between=(mu, i)), Coupling("B", between=(a, mu)), Coupling("C", between=(i, a))
    r, p = Variable("r", mu), Variable("p", a)
    return System([
        Eq(r[mu], 2 * Sum(there[mu, i] * s[i], (i, 1, N))),
        Eq(p[a], 3 * Sum(on[a, mu] * r[mu], (mu, 1, P))),
        Eq(s[i], 1 + Sum(back[i, a] * p[a], (a, 1, K)) / 12),
    ])  # fmt: skip


def network():
    return System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) / 2 + t[i]))])


def biased():
    return ConvexProblem(data(Max(0, 1 - y[mu] * (h + b)) ** 2) + weights)


def budget():
    return ConvexProblem(data((u - h) ** 2) / 2 + weights, [Eq(Sum(w[i], (i, 1, N)), N)])


def lasso():
    return ConvexProblem(data((u - h) ** 2) / 2 + weights + Sum(Abs(w[i]), (i, 1, N)))


def hinge():
    return ConvexProblem(data(Max(0, 1 - y[mu] * h)) + weights)


def sign_labels():
    return ConvexProblem(data(Max(0, 1 - sign(u) * h)) + weights)


def sign_squares():
    return ConvexProblem(data((sign(u) - h) ** 2) / 2 + weights)


def probit():
    label = Quenched("y", mu, law={1: (1 + erf(u)) / 2, -1: (1 - erf(u)) / 2}, given=u)
    return ConvexProblem(data(log(1 + exp(-label[mu] * h))) + weights)


def quartic_hinge():
    return ConvexProblem(data(Max(0, 1 - h) ** 4) / 4 + weights)


def named_exponential():
    return ConvexProblem(data((sign(u) - h) ** 2) / 2 + weights, named={Symbol("E"): average(exp(u))})


def named_norm():
    return ridge(named={Symbol("E"): 3 * average(w[i] ** 2) + 1})


def spectrum():
    source = kernel_ridge.problem
    return System(source.declared, source.conditions, source.fixed, named=source.named)


def bent():
    lam = Datum("lambda")
    equations = [Eq(w[i], t[i] - Sum(x[mu, i] * lam[mu], (mu, 1, P))), Eq(lam[mu], h + Abs(h) / 2 + Max(0, h - 1) / 3)]
    return System(equations)


def one_way():
    lam, other = Datum("lambda"), Coupling("a", correlation={x: HALF})
    signal = Max(0, h) * (1 + Sum(other[mu, i] * w[i], (i, 1, N)))
    return System([Eq(w[i], t[i] + Sum(Coupling("n")[mu, i] * lam[mu], (mu, 1, P)) / 9), Eq(lam[mu], signal)])


def named_excess():
    return ConvexProblem(data((e[mu] - h) ** 2) / 2 + weights, named={Symbol("E"): average(Max(0, w[i] - 1))})


def named_kink():
    return ConvexProblem(data(Max(0, 1 - h) ** 4) / 4 + weights, named={Symbol("E"): average(Max(0, 2 - h))})


def steps():
    label = Quenched("y", mu, law={1: (1 + sign(2 * u)) / 2, -1: (1 - sign(2 * u)) / 2}, given=u)
    return ConvexProblem(data((label[mu] - h) ** 2) / 2 + weights)


MUTANTS = {
    # optimality and rewriting
    "the slope of an emission": (
        scaled_weights, kkt, "_stationarity",
        "f.emission.diff(state) *", "f.emission.diff(state)**2 *", "stationarity.w",
    ),
    "a sum of two means": (
        two_means, means.Means, "_sum",
        "out += as_ratios(", "out = Sum(Add(*kept), (at, 1, sender.size)) + as_ratios(", "centre",
    ),
    "the content of a mean": (
        two_means, means.Means, "_sum",
        "outside * content * sender.size", "2 * outside * content * sender.size", "centre",
    ),
    "the condition of a mean": (
        two_means, means.Means, "conditions",
        "kind.size * g)", "2 * kind.size * g)", "centre",
    ),
    "the scale of units": (in_units, units, "units_of", "{x: sqrt(N)", "{x: 2 * sqrt(N)", "centre"),
    "the unit of a variance": (in_units, CouplingFamily, "centred", "unit**2", "unit", "centre"),
    # elimination
    "factors of numerators": (
        biased, eliminate, "numerator",
        "Mul(*kept)", "1 + Mul(*kept)", "eliminate.S_lambda",
    ),
    "the numerator of a line": (
        budget, eliminate, "linear_solution",
        "-rest / slope", "rest / slope", "eliminate.S_w",
    ),
    "constants out of averages": (
        scaled_weights, tidy, "pull_constants",
        "parts.append(constant * Average(rest))", "parts.append(Average(rest))", "closure.q_lambda",
    ),
    # responses and stability
    "gains of a kind with itself": (
        network, stability, "_gain",
        "book.close(Sum(part, kind.range))",
        "book.close(Sum(part * (2 if kind == row.hearer else 1), kind.range))",
        "stability.spread",
    ),
    "the number of a stability": (
        loop_of_three, scattering.Scattering, "stability",
        "** (2 if", "** (2 if not", "stability",
    ),
    "crossed gains": (budget, stability, "_gain", "if g is not h:", "if g is h:", "stability.spread"),
    # message passing
    "messages: fields that are forgotten": (
        budget, messages, "message_steps",
        "if not f.states():", "if not f.states() or f.sender == order[0]:", "messages",
    ),
    "messages: known fields": (budget, messages, "message_steps", "now = 1 if", "now = 0 if", "messages"),
    "messages: globals": (
        biased, messages, "_evolution",
        "int(order.index(k) <= order.index(kind))",
        "int(order.index(k) < order.index(kind))",
        "messages.evolution",
    ),
    "messages: conditions": (
        biased, messages, "_evolution",
        "known(theory.global_equations[row].lhs, kind)",
        "known(2 + theory.global_equations[row].lhs, kind)",
        "messages.evolution",
    ),
    # names
    "orders of magnitude": (spectrum, orders, "orders", "f.at_site(), values", "f.at_site(), -values", "closed_system"),
    # pieces
    "a piece of an absolute value": (bent, kinks, "_pieces", "Abs: -a,", "Abs: -a / 2,", "datum.solution"),
    "pieces decided too early": (
        named_kink, kinks, "decided",
        "sign_of(cancel(expr / g)) == 1", "sign_of(cancel(expr / g)) != 0", "named.result",
    ),
    "the larger of two": (
        named_excess, piecewise.Builder, "_extreme",
        "if s == wanted", "if s != wanted", "named.result",
    ),
    "a reflected field": (
        hinge, region_averages.RegionAverage, "__init__",
        "self.solution.reflection.xreplace(self.no_sources)", "S.One", "site.q_lambda",
    ),
    # fields
    "the corner of a root": (
        one_way, averages, "cholesky",
        "sqrt(rest) if r == c", "sqrt(rows[r][c]) if r == c", "closure.q_lambda",
    ),
    "an inverse": (
        sign_squares, by_parts, "by_parts",
        "inverse[row, column]", "inverse[row, row]", "datum.response",
    ),
    "the density at a threshold": (
        sign_labels, thresholds.Thresholds, "jump",
        "/ sqrt(variance)) / sqrt(variance)", "/ sqrt(variance))", "datum.response",
    ),
    "the square of a shift": (
        noisy_cosh, shifts.Shift, "average",
        "self.beside**2 *", "self.beside *", "datum.response",
    ),
    "terms across joined fields": (
        noisy_hinge, joining, "of_one_field",
        "for g, b in weights.items()", "for g, b in weights.items() if f == g", "closure.q_lambda",
    ),
    "the error function of a label": (
        probit, labels, "_over_one",
        "1 + 2 * slope**2", "1 + slope**2", "closure.q_lambda",
    ),
    "an implicit law at its edge": (
        quartic_hinge, region_averages.RegionAverage, "_edge",
        "return found.xreplace", "return 1 + found.xreplace", "closure.q_lambda",
    ),
    # closed forms
    "moments of a hinge": (hinge, hinge_average, "_hinges", "c if j % 2 else -c", "c", "datum.response"),
    "shifts of an exponential": (
        named_exponential, gaussian, "_special_term",
        "exp(offset + slope**2 / 2)", "exp(offset + slope**2)", "named.result",
    ),
    "slopes of a delta function": (steps, gaussian, "_special_term", "/ Abs(slope)", "", "datum.response"),
}  # fmt: skip


@cache
def right(make):
    """The record by the rules as they are."""
    return make().cavity().derivation


@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_word_is_noticed(name, monkeypatch):
    make, *changed, key = MUTANTS[name]
    assert all(verdict.ok for verdict in right(make)[key].verdicts(20))
    mutant(*changed)(monkeypatch)
    assert not all(verdict.ok for verdict in make().cavity().derivation[key].verdicts(20))
