"""Signs that are proved, and those of which both are seen."""

from sympy import Abs, Symbol, exp, sqrt

from symcavity.algebra.nonzero import takes_both_signs


def test_both_signs_are_seen_only_where_both_are_there():
    q, a, u = Symbol("q", positive=True), Symbol("a", positive=True), Symbol("u", real=True)
    assert takes_both_signs(a - q)
    assert takes_both_signs(exp(u) - 1)
    for expr, positive in (
        (a * sqrt(q) - 1, a - 1 / sqrt(q)),  # roots, moduli and exponentials of one argument go together
        (u**2 - Abs(u), Abs(u) - 1),
        (exp(2 * u) - exp(u), exp(u) - 1),
    ):
        assert takes_both_signs(expr)
        assert not takes_both_signs(expr, [positive])
