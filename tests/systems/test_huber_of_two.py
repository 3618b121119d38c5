"""Huber's loss of two outputs on the same data, whose weights meet in one term: a law of two fields with bends."""

from sympy import Abs, Piecewise, Rational, Sum

from symcavity import ConvexProblem, Coupling, Feature, N, P, alpha, average, i, mu

x, w, v = Coupling("x"), Feature("w"), Feature("v")


def huber(r):
    return Piecewise((r**2 / 2, Abs(r) <= 1), (Abs(r) - Rational(1, 2), True))


def test_weights_that_are_tied_by_a_product_against_instances():
    missed = [1 - Sum(x[mu, i] * out[i], (i, 1, N)) for out in (w, v)]
    size = Sum(w[i] ** 2 + v[i] ** 2 + w[i] * v[i], (i, 1, N))
    problem = ConvexProblem(Sum(huber(missed[0]) + huber(missed[1]), (mu, 1, P)) + size)
    simulation = problem.simulate({alpha: 2}, N=400, seeds=10)
    assert problem.cavity().compare(simulation, [average(w[i] ** 2), average(w[i] * v[i])]).worst < 4.5
