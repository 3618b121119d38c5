"""Equations that have several roots, of which the bound of a state says which is meant: one spelling as the other."""

import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, exp, symbols

from symcavity import (
    Complementary,
    Coupling,
    DeclarationError,
    Derivation,
    Feature,
    N,
    Quenched,
    Sites,
    System,
    Variable,
    average,
    i,
)
from symcavity.model.rewritings import roots
from symcavity.sites.branching.arranging import IllPosed

half = Rational(1, 2)
n, K = Feature("n"), Quenched("K", i)
m, sigma = symbols("m sigma", positive=True)
j = symbols("j", integer=True)
J = Coupling("J", between=(i, i), mean=2 / N, variance=sigma**2 / N)
competition = Sum(J[i, j] * n[j], (j, 1, N))
VALUES = {m: Rational(1, 10), sigma: half}
SPELLINGS = {
    "a product": ([Eq(n[i] * (1 - n[i] - competition) + m, 0)], [n[i] >= 0]),
    "the other way round": ([Eq(-m, n[i] * (1 - n[i] - competition))], [n[i] > 0]),
    "multiplied out": ([Eq(n[i] ** 2 + n[i] * competition, n[i] + m)], [2 * n[i] >= 0]),
    "a quotient": ([Eq(n[i], 1 - competition + m / n[i])], [n[i] >= 0]),
    "a pair": ([], [Complementary(n[i], n[i] * (n[i] - 1 + competition) - m)]),
    "a pair that is divided": ([], [Complementary(n[i], n[i] - 1 + competition - m / n[i])]),
}


def by_quadrature(value, sd, mean):
    """Order parameters of species with immigration, from the positive root of their quadratic equation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def moments(M, q):
        gain = 1 - mean * M + sd * np.sqrt(q) * nodes
        states = (gain + np.sqrt(gain**2 + 4 * value)) / 2
        return weights @ states, weights @ states**2

    M, q = 0.5, 0.5
    for _ in range(2000):
        one, two = moments(M, q)
        M, q = (M + one) / 2, (q + two) / 2
    return M, q


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_immigration_keeps_every_species_at_its_positive_root(spelling):
    solution = System(*SPELLINGS[spelling]).cavity().solve(VALUES)
    M, q = by_quadrature(0.1, 0.5, 2)
    assert float(solution[average(n[i])]) == pytest.approx(M, rel=1e-8)
    assert float(solution[average(n[i] ** 2)]) == pytest.approx(q, rel=1e-8)


def test_instances_are_at_that_root():
    system = System(*SPELLINGS["a product"])
    simulation = system.simulate(VALUES, N=100, seeds=12)
    solution = system.cavity().solve(VALUES)
    assert abs(simulation[average(n[i])].z(solution[average(n[i])])) < 4
    assert system.cavity().derivation.verify()


def test_resources_that_are_supplied():
    """K - R - R*use = 0 for resources, as the pair that the documentation has: R = K/(1 + use)."""
    a, M = Sites("a", "M")
    R, F = Variable("R", a), Coupling("F", between=(a, i), mean=1 / N, variance=sigma**2 / N)
    use = Sum(F[a, i] * n[i], (i, 1, N))
    eaters = Complementary(n[i], n[i] + half - Sum(F[a, i] * R[a], (a, 1, M)))
    one = System([Eq(1 - R[a] - R[a] * use, 0)], [eaters, R[a] >= 0])
    other = System([], [eaters, Complementary(R[a], use + 1 - 1 / R[a])])
    values = {sigma: half, M / N: 2}
    first, second = (s.cavity().solve(values)[average(R[a] ** 2)] for s in (one, other))
    assert float(first) == pytest.approx(float(second), rel=1e-9)


def test_a_bound_that_the_equation_implies_is_left_out():
    for rhs in (1 / (1 + exp(competition)), Max(0, 1 - competition)):
        systems = (System([Eq(n[i], rhs)], bounds) for bounds in ([], [n[i] >= 0]))
        solutions = [system.cavity().solve({sigma: Rational(1, 10)}) for system in systems]
        first, second = (float(s[average(n[i] ** 2)]) for s in solutions)
        assert first == pytest.approx(second, rel=1e-12)


def test_quenched_supplies():
    law = {Rational(1, 10): half, half: half}
    one = System([Eq(n[i] * (1 - n[i] - competition) + K[i], 0)], [n[i] >= 0])
    other = System([], [Complementary(n[i], n[i] - 1 + competition - K[i] / n[i])])
    first, second = (float(s.cavity().solve({sigma: half, K: law})[average(n[i])]) for s in (one, other))
    assert first == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize(
    ("equation", "condition", "said"),
    [
        (Eq(n[i], 1 - competition), n[i] >= 0, "which may have no root there"),
        (Eq(n[i] * (1 - n[i] - competition), 0), n[i] >= 0, "which may have no root there"),
        (Eq(n[i], 1 - competition), n[i] + competition >= 0, "is not supported"),
        (Eq(n[i], 1 - competition), n[i] * K[i] >= 0, "is not supported"),
    ],
)
def test_bounds_that_are_none(equation, condition, said):
    with pytest.raises(DeclarationError, match=said):
        System([equation], [condition])


def test_two_roots_without_a_bound():
    with pytest.raises(IllPosed, match="the condition R"):
        System([Eq(n[i], 1 - competition + m / n[i])]).cavity().solve(VALUES)


def test_the_record_shows_the_equation_as_it_was_typed_and_the_root_that_its_bound_leaves():
    """It showed the pair of complementary quantities that nobody had typed."""
    derivation = System(*SPELLINGS["a product"]).cavity().derivation
    problem, said = derivation["problem"], derivation["roots"]
    assert problem.data["conditions"] == [n[i] >= 0]
    assert len(problem.data["equations"]) == 1
    assert said.claims[0].lhs == problem.data["equations"][0].difference
    text = derivation.to_text()
    assert "together with the conditions\n\n    n_i ≥ 0 " in text
    assert "the bound of a state says which root of its equation is meant" in text
    assert [v.ok for v in said.verdicts()] == [True]
    assert not any(checked.failed for checked in [Derivation.from_json(derivation.to_json()).verify(dps=15)])


def test_an_equation_without_a_choice_of_roots_says_nothing_of_bounds():
    assert "roots" not in {step.rule for step in System(*SPELLINGS["a pair that is divided"]).cavity().derivation}


def test_another_equation_in_the_place_of_the_typed_one_is_seen(monkeypatch):
    quotient = roots._quotient
    monkeypatch.setattr(roots, "_quotient", lambda left, rest: 2 * quotient(left, rest))
    derivation = System(*SPELLINGS["a product"]).cavity().derivation
    assert [v.ok for v in derivation["roots"].verdicts()] == [False]
