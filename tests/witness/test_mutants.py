"""Change one word of a rule, derive, and see that the record notices, at a step that rests on it.

`test_sabotage.py` changes what a rule returns; here its own text is changed, where a factor, a sign or a case may be lost.
"""

import inspect
import sys
import textwrap

import pytest
from sympy import Abs, Eq, Heaviside, Max, Min, Piecewise, Rational, Sum, Symbol, erf, exp, sign, sqrt, symbols, tanh

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
    response,
)
from symcavity.algebra import gaussian, phi, piecewise
from symcavity.derivations import kernel_ridge
from symcavity.evaluate import solution
from symcavity.method import eliminate, kkt, messages, named, orders, stability
from symcavity.model.couplings import Coupling as CouplingFamily
from symcavity.model.rewritings import means, units
from symcavity.sites import by_parts, labels
from symcavity.sites.branching import averages, branches, joining, shifts, thresholds
from symcavity.sites.linear import Linear

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


def teacher_quartic():
    return ConvexProblem(data((u - h) ** 4) / 4 + weights)


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
    return ConvexProblem(data((label[mu] - h) ** 2) / 2 + weights)


def cubic_hinge():
    return ConvexProblem(data(Max(0, 1 - h) ** 3) / 3 + weights)


def two_fields():
    other = Sum(Coupling("a")[mu, i] * w[i], (i, 1, N))
    return ConvexProblem(data(Max(0, 1 - h - other)) + weights)


def named_exponential():
    return ridge(named={Symbol("E"): average(exp(w[i]))})


def named_norm():
    return ridge(named={Symbol("E"): 3 * average(w[i] ** 2) + 1})


def spectrum():
    return kernel_ridge.problem


def tube():
    return ConvexProblem(data(Max(0, Abs(e[mu] - h) - 1)) + weights)


MUTANTS = {
    # optimality and rewriting
    "the slope of an emission": (scaled_weights, kkt, "_stationarity", "f.emission.diff(state) *", "f.emission.diff(state)**2 *", None),
    "a sum of two means": (two_means, means.Means, "_sum", "out += as_ratios(", "out = (out if out.has(Coupling) else 0) + as_ratios(", None),
    "the content of a mean": (two_means, means.Means, "_sum", "outside * content * sender.size", "outside * sender.size", None),
    "the condition of a mean": (two_means, means.Means, "conditions", "kind.size * g)", "2 * kind.size * g)", None),
    "the scale of units": (in_units, units, "units_of", "{x: sqrt(N)", "{x: 2 * sqrt(N)", None),
    "the unit of a variance": (in_units, CouplingFamily, "centred", "unit**2", "unit", None),
    # elimination
    "factors of numerators": (biased, eliminate, "numerator", "Mul(*kept)", "Mul(*kept[:1])", None),
    "factors that are known": (biased, eliminate, "numerator", "return any(factor in _factors(e) for e in some)", "return True", None),
    "the numerator of a line": (budget, eliminate, "linear_solution", "-rest / slope", "rest / slope", None),
    "constants out of averages": (scaled_weights, eliminate, "pull_constants", "parts.append(constant * Average(rest))", "parts.append(Average(rest))", None),
    # responses and stability
    "an explicit derivative": (teacher_quartic, averages.SiteEnsemble, "response", "return direct - top", "return 0 * direct - top", None),
    "two colours": (loop_of_three, stability, "_two_colours", "return False", "return True", None),
    "gains of a kind with itself": (network, stability, "_gain", "if kind != column.hearer:", "if kind != column.hearer or kind == row.hearer:", None),
    "the number of a stability": (loop_of_three, solution.Solution, "stability", "2 if found", "3 if not found", None),
    "crossed gains": (budget, stability, "_gain", "if g is not h:", "if g is h:", None),
    # message passing
    "messages: fields that are forgotten": (network, messages, "message_steps", "if not f.states():", "if f.states():", None),
    "messages: known fields": (budget, messages, "message_steps", "now = 1 if", "now = 0 if", None),
    "messages: globals": (biased, messages, "_evolution", "int(order.index(k) <= order.index(kind))", "int(order.index(k) < order.index(kind))", None),
    "messages: conditions": (biased, messages, "_evolution", "known(theory.global_equations[row].lhs, kind)", "known(2 + theory.global_equations[row].lhs, kind)", None),
    # names
    "the slope of what is named": (named_norm, named, "in_names", "slope = instead.diff(name)", "slope = 2 * instead.diff(name)", None),
    "laws assumed linear": (ridge, Linear, "applies", "return", "return not", None),
    "orders of magnitude": (spectrum, orders, "orders", "order + 1 for", "order - 1 for", None),
    # pieces
    "a piece of an absolute value": (lasso, branches, "_pieces", "Abs: -a,", "Abs: -a / 2,", None),
    "a condition of a piece": (lasso, branches, "_pieces", "[(high, [a]), (low, [-a])]", "[(high, [a]), (low, [-a - 1])]", None),
    "a piece of a maximum": (hinge, branches, "_pieces", "flip * (a - b)", "flip * (a - b + 1)", None),
    "pieces decided too early": (tube, branches, "decided", "if all(c == 0", "if any(c == 0", None),
    "the larger of two": (named_norm, piecewise.Builder, "_extreme", "if s == wanted", "if s != wanted", None),
    "a reflected variable": (hinge, piecewise.Builder, "build", "S.One if self.signs.s is None else self.signs.s", "S.One", None),
    "a reflected field": (hinge, averages.SiteEnsemble, "over_fields", "s = solution.reflection.xreplace(self._zero())", "s = S.One", None),
    # fields
    "the corner of a root": (lasso, averages, "cholesky", "sqrt(rest) if r == c", "sqrt(rows[r][c]) if r == c", None),
    "an inverse": (sign_squares, by_parts, "by_parts", "inverse[row, column]", "inverse[row, row]", None),
    "the density at a threshold": (sign_squares, thresholds.Thresholds, "jump", "/ sqrt(variance)) / sqrt(variance)", "/ sqrt(variance))", None),
    "the square of a shift": (teacher_quartic, shifts.Shift, "average", "self.beside**2 *", "self.beside *", None),
    "terms across joined fields": (two_fields, joining, "joined", "for g, b in weights.items()", "for g, b in weights.items() if f == g", None),
    "the error function of a label": (probit, labels, "_over_one", "1 + 2 * slope**2", "1 + slope**2", None),
    "an implicit law at its edge": (cubic_hinge, averages.SiteEnsemble, "_edge", "return ends.pop()", "return 2 * ends.pop()", None),
    # closed forms
    "moments of a hinge": (hinge, gaussian, "_hinges", "c if j % 2 else -c", "c", None),
    "shifts of an exponential": (named_exponential, gaussian, "_special_term", "exp(offset + slope**2 / 2)", "exp(offset + slope**2)", None),
    "where an exponential moves": (named_exponential, gaussian, "_special_term", "rest.subs(u, u + slope)", "rest", None),
    "slopes of a delta function": (sign_labels, gaussian, "_special_term", "/ Abs(slope)", "", None),
}  # fmt: skip
