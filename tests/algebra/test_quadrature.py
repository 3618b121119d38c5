"""Where integrands switch their branch."""

from sympy import Abs, Function, Max, Piecewise, Symbol, exp

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.quadrature import break_points

z, a = Symbol("z", real=True), Symbol("a", positive=True)
y = Symbol("y", real=True)
f = Function("f", real=True)


def test_what_does_not_hold_the_variable_is_kept_as_it_is():
    """Code for an average is written once, and found by its expression: no expansion may reach into it."""
    inner = f((a + 1) ** 2)
    assert break_points(Max(0, 2 * z * inner - (a + 1)), z)[0].atoms(Function) == {inner}
    low, high = break_points(Piecewise((1, z**2 < inner), (0, True)), z)
    assert low == -high
    assert high**2 == inner


def test_what_a_variable_is_bound_in_has_no_switches_of_its_own():
    inner = GaussianAverage(exp(-Max(0, Abs(z + y) - 1) ** 2), y)
    assert break_points(Max(0, z - 1) * inner, z) == [1]
