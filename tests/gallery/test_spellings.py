"""Families of the gallery in other words: labels absorbed or not, turned inequalities, split sums, divided ones."""

import pytest
from gallery_shared import module, number
from sympy import Abs, Eq, Max, Sum, sign

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, Quenched, average, i, mu

x, w, xi, t = Coupling("x"), Feature("w"), Datum("xi"), Quenched("t", i)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2


def sparse():
    """Regression with absolute and square penalties."""
    m = module("elastic_net")
    noise, C, gamma = m.noise, m.C, m.gamma
    penalty = C * Sum(Abs(w[i]), (i, 1, N)) + gamma * ridge
    yield "label less field", ConvexProblem(Sum((u + noise[mu] - h) ** 2, (mu, 1, P)) / 2 + penalty)
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - noise[mu]
    yield "one sum", ConvexProblem(Sum(error**2 / 2, (mu, 1, P)) + penalty)
    yield "penalties apart", ConvexProblem(
        Sum((h - u - noise[mu]) ** 2 / 2, (mu, 1, P)) + Sum(C * Max(w[i], -w[i]), (i, 1, N)) + gamma * ridge
    )
    yield "residual as a variable", ConvexProblem(
        Sum(xi[mu] ** 2, (mu, 1, P)) / 2 + penalty, [Eq(xi[mu], u + noise[mu] - h)]
    )


def margin():
    """The widest margin for the labels of a teacher."""
    y = sign(u)
    yield "below", ConvexProblem(ridge, [y * h >= 1])
    yield "turned", ConvexProblem(ridge, [-y * h <= -1])
    yield "moved", ConvexProblem(ridge, [y * h - 1 >= 0])
    yield "two cases", ConvexProblem(ridge, [Max(-h * y + 1, 0) <= 0])
    yield "objective divided", ConvexProblem(N * Sum(w[i] ** 2, (i, 1, N)) / N, [y * h >= 1])


def game():
    """Zero-sum games."""
    V, budget = Global("V"), Eq(Sum(w[i], (i, 1, N)), N)
    yield "difference", ConvexProblem(N * V, [V - h >= 0, w[i] >= 0, budget])
    yield "divided", ConvexProblem(N * V, [h <= V, w[i] >= 0, Eq(Sum(w[i], (i, 1, N)) / N, 1)])
    yield "per datum", ConvexProblem(P * V, [h <= V, -w[i] <= 0, Eq(N - Sum(w[i], (i, 1, N)), 0)])


FAMILIES = {"elastic_net": (sparse, average(w[i] ** 2)), "sign_teacher": (margin, average(w[i] ** 2)),
            "zero_sum": (game, average(w[i] > 0))}  # fmt: skip
CASES = [(name, *case) for name, (cases, _) in FAMILIES.items() for case in cases()]
IDS = [f"{name}: {words}" for name, words, _ in CASES]


@pytest.mark.parametrize(("name", "problem"), [(name, problem) for name, _, problem in CASES], ids=IDS)
def test_other_words(name, problem):
    observable = FAMILIES[name][1]
    found = problem.cavity().solve(module(name).values)
    assert float(found[observable]) == pytest.approx(number(name, observable), rel=1e-9)
