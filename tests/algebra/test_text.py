"""The text of expressions, as people write it."""

import pytest
from sympy import Piecewise, Sum, sqrt, symbols

from symcavity.algebra.text import plain

x, y, s, alpha = symbols("x y s alpha")


@pytest.mark.parametrize(
    ("expr", "written"),
    [
        ((y - x) ** 2, "(y - x)**2"),
        (1 / (1 - alpha * s), "1/(1 - alpha*s)"),
        (-x - y, "-x - y"),
        (x - y * (y - x), "x - y*(y - x)"),
        (sqrt(2) - x, "sqrt(2) - x"),
        (y - x - alpha, "y - alpha - x"),
        (Sum(y - x, (x, 1, 3)), "Sum(y - x, (x, 1, 3))"),
        (Piecewise((1, y - x > 2), (0, True)), "Piecewise((1, x - y < -2), (0, True))"),
    ],
)
def test_what_is_subtracted_comes_last(expr, written):
    assert plain(expr) == written
    assert eval(written) == expr  # noqa: S307 - our own lines
