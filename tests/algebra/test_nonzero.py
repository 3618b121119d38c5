"""What is seen not to vanish: identities of signs and absolute values hold at the points where it is looked for."""

import pytest
from sympy import Abs, Symbol, sign, sqrt

from symcavity.algebra.nonzero import differs

z, a, c = Symbol("z", real=True), Symbol("a", positive=True), Symbol("c", real=True)


@pytest.mark.parametrize("expr", [a * sign(z) - c * z, Abs(z) * a - z**2, sqrt(a) * sign(z) / (a + 1) + c * Abs(z)])
def test_signs_of_a_variable_are_seen(expr):
    assert differs(expr)


@pytest.mark.parametrize(
    "expr",
    [
        Abs(z) - z * sign(z),
        (sign(z) + a) * (sign(z) - a) - 1 + a**2,
        sign(z) * Abs(z) * (1 + a) - z - a * z,
        Abs(z) ** 3 - z**3 * sign(z),
        1 / (a + sign(z)) - (a - sign(z)) / (a**2 - 1),
    ],
)
def test_what_vanishes_is_not(expr):
    """Whatever SymPy has made of it: by hand each of these is zero for every z that is not."""
    assert not differs(expr)
