"""Labels that know two teachers, in copies of a problem: against the problem itself, and instances."""

from functools import lru_cache

import pytest
from sympy import Rational, Sum, Symbol, sign
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w, a, c = Coupling("x"), Feature("w"), Quenched("a", i), Quenched("c", i)
gamma = Symbol("gamma", positive=True)
HALF = Rational(1, 2)


def heard(states):
    return Sum(x[mu, i] * states[i], (i, 1, N))


def ridge(label):
    return ConvexProblem(Sum((label - heard(w)) ** 2 / 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def values(problem):
    laws = {q: Normal(q.name, 0, 1) for q in problem.cavity().system.quenched}
    return {alpha: 2, gamma: HALF, **laws}


LABELS = {
    "product of signs": sign(heard(a)) * sign(heard(c)),
    "sign and sum": sign(heard(a)) + heard(c),
    "gated": sign(heard(a)) * heard(c),
}
SHARED = {"product of signs": {x: HALF}, "sign and sum": {a: 0}, "gated": {x: HALF}}


@lru_cache
def two(name):
    return ridge(LABELS[name]).copies(2, share=SHARED[name])


@pytest.mark.parametrize("name", LABELS)
def test_copies_against_instances(name):
    copies = two(name)
    theory, given = copies.cavity(), values(copies)
    sim = copies.simulate(given, N=150, seeds=12)
    first, second = copies["w_1"], copies["w_2"]
    keys = [average(first[i] * second[i]), average(first[i] ** 2)]
    assert theory.compare(sim, keys).agrees


@pytest.mark.parametrize("name", LABELS)
def test_a_copy_is_the_problem_itself(name):
    problem, copies = ridge(LABELS[name]), two(name)
    alone = problem.cavity().solve(values(problem))[average(w[i] ** 2)]
    assert float(copies.cavity().solve(values(copies))[average(copies["w_1"][i] ** 2)]) == pytest.approx(
        float(alone), rel=1e-9
    )
