"""Averages at nodes of single sites whose formulas switch with a field, against their closed forms."""

import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.evaluate.averages import site_nodes
from symcavity.evaluate.solutions.spreads import nodes_of
from symcavity.model.kinds import DATUM

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
gamma, half = Symbol("gamma", positive=True), Rational(1, 2)
heard, taught = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
drawn = Quenched("s", mu, law={1: (1 + sign(taught)) / 2, -1: (1 - sign(taught)) / 2}, given=taught)
LABELS = {"signs": sign(taught), "moduli": Abs(taught - half), "drawn": drawn[mu]}


def ridge(label):
    problem = ConvexProblem(Sum((label - heard) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory = problem.cavity()
    return theory, theory.solve({alpha: 2, gamma: half, t: {1: half, 2: half}})


def asked(theory):
    """Functions of the message, of both fields and of the sign of the teacher's; and of numbers that are averages."""
    solution = theory.inserted[DATUM].solution
    message = next(q for q in solution.unknowns if q.family.name == "lambda")
    out = [message**2, *(message * q for q in solution.unknowns), *(message * sign(q) for q in solution.unknowns)]
    return [*out, message**2 / average(t[i] ** 2), Max(0, message - half) ** 2]


@pytest.mark.parametrize("name", LABELS)
def test_formulas_that_switch_with_a_teachers_field(name, monkeypatch):
    theory, solution = ridge(LABELS[name])
    functions = asked(theory)
    found = nodes_of(solution, theory, DATUM).means(functions)
    for body in functions:
        assert found[body] == pytest.approx(float(solution[average(body)]), rel=1e-11, abs=1e-13), body
    monkeypatch.setattr(site_nodes, "bent", lambda lines, _: lines)
    assert len(nodes_of(solution, theory, DATUM).means(functions)) < len(found)
