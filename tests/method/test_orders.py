"""Orders in the size that sums over all sites imply."""

from sympy import Rational

from symcavity import N, P
from symcavity.derivations import gardner, kernel_ridge, power_laws
from symcavity.method.orders import orders


def found(problem):
    theory = problem.cavity()
    solutions = {state: x for site in theory.sites.values() for state, x in site.solution.items()}
    return {q.family.name: power for q, power in orders(theory.order_parameters, solutions)}


def test_sums_over_sites_fix_the_orders_of_their_terms():
    half = Rational(1, 2)
    assert found(kernel_ridge.problem) == {"Delta": -half, "a": -half, "rho": -1}
    assert found(power_laws.problem) == {"l": -1}
    assert found(gardner.problem) == {}


def test_a_system_of_twice_the_size_has_the_same_order_parameters():
    rho, a, gamma = kernel_ridge.rho, kernel_ridge.a, kernel_ridge.gamma
    one = dict(kernel_ridge.values)
    powers = found(kernel_ridge.problem)
    two = {gamma: one[gamma], P: 2 * one[P]}
    two |= {q: [v * 2 ** powers[q.name] for v in one[q] for _ in range(2)] for q in (rho, a)}
    theory = kernel_ridge.problem.cavity()
    small, large = theory.solve(one), theory.solve(two)
    for symbol in theory.order_parameters:
        assert abs(float(small[symbol]) - float(large[symbol])) < 1e-9 * abs(float(small[symbol]))
    assert len(two[rho]) == 2 * len(one[rho])
    assert N not in two


def test_the_record_says_so():
    record = kernel_ridge.problem.cavity().derivation
    text = record.to_latex()
    assert r"$\rho_{i} = O(N^{-1})$" in text.replace("O( N^{- 1} )", "O(N^{-1})").replace("O(N^{- 1})", "O(N^{-1})")
    assert "are of order one, as are responses" not in gardner.problem.cavity().derivation.to_latex()
