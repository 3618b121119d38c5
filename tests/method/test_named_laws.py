"""Averages by the functions of an implicit law have the values of the closed equations, by plain quadrature."""

from importlib import import_module

import numpy as np
import pytest
from sympy import Symbol, lambdify

from symcavity.algebra.implicit import ImplicitAverage
from symcavity.method.named_laws import named_averages
from symcavity.model.averages import Average
from symcavity.model.quantities import site_quantities
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import LabelSlope, LawFunction

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(121)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def logistic(t):
    return 1 / (1 + np.exp(-t))


def message(y, h, order=0, bias=0.0):
    """Minus the slope of the logistic loss, and the derivative of that."""
    p = logistic(-(y * h + bias))
    return -p * (1 - p) if order else y * p


def root(y, eta, S, bias):
    """The field at which ``h = eta + S*message``, by bisection."""
    low, high = eta - S - 1, eta + S + 1
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - eta - S * message(y, middle, 0, bias) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def averaged(body, solution, points, bias=0.0):
    """The average over labels and fields, each function by hand: arrays of label, fields, weight."""
    y, u, eta, weight = points
    h = root(y, eta, float(solution["S_w"]), bias)
    rule = {f: Symbol(f"f{f.args[2]}") for f in body.atoms(LawFunction)}
    rule |= dict.fromkeys(body.atoms(LabelSlope), Symbol("slope"))
    rule |= {s: float(solution[s]) for s in body.atoms(OrderParameter)}
    rest = body.xreplace(rule)
    rest = rest.xreplace({q: Symbol("y" if q.family.name == "y" else "h") for q in site_quantities(rest)})
    found = lambdify([Symbol(n) for n in ("f0", "f1", "slope", "y", "h")], rest)
    known = message(y, h, 0, bias), message(y, h, 1, bias), y * logistic(-y * u), y, h
    return float(np.sum(weight * found(*known)))


def two_clusters(solution):
    y, z = np.meshgrid([1.0, -1.0], NODES)
    return y, 0 * y, np.sqrt(float(solution["q_w"])) * z, np.meshgrid([0.5, 0.5], WEIGHTS)[1] / 2


def with_teacher(solution):
    q, m, t2 = float(solution["q_w"]), float(solution["q_t_w"]), 5.0
    y, z, x = np.meshgrid([1.0, -1.0], NODES, NODES)
    _, a, b = np.meshgrid([1.0, 1.0], WEIGHTS, WEIGHTS)
    u, eta = np.sqrt(t2) * z, m / np.sqrt(t2) * z + np.sqrt(q - m**2 / t2) * x
    return y, u, eta, a * b * logistic(y * u)


@pytest.mark.parametrize(
    ("name", "points", "bias"), [("clusters_logistic", two_clusters, "M_m_w"), ("logistic_teacher", with_teacher, "")]
)
def test_named_averages_are_those_of_the_closed_equations(name, points, bias):
    system = import_module(f"symcavity.derivations.{name}")
    theory = system.problem.cavity()
    solution = theory.solve(system.values)
    named = named_averages(theory.inserted)
    checked = 0
    for symbol, meaning in theory.order_parameters.items():
        found = named.of(meaning)
        if not theory.closures[symbol].has(ImplicitAverage):
            continue
        assert isinstance(found, Average)
        assert not found.has(ImplicitAverage)
        got = averaged(found.body, solution, points(solution), float(solution[bias]) if bias else 0.0)
        assert got == pytest.approx(float(solution[symbol]), rel=1e-8), symbol
        checked += 1
    assert checked >= 2


@pytest.mark.parametrize("name", ["gardner", "robust_regression", "structured_network"])
def test_laws_that_are_solved_as_formulas_need_no_names(name):
    theory = import_module(f"symcavity.derivations.{name}").problem.cavity()
    assert named_averages(theory.inserted) is None


def test_the_document_writes_the_law_once():
    from symcavity.derivations import clusters_logistic

    said = clusters_logistic.problem.cavity().derivation.to_latex()
    assert said.count("\\mathcal{A}") == 0
    assert "\\left\\langle \\left." not in said
    assert "\\lambda^{\\prime}" in said
