"""Signs that are proved, and those of which both are seen."""

from sympy import Abs, Rational, Symbol, exp, sqrt

from symcavity import Quenched, average, i
from symcavity.algebra.nonzero import takes_both_signs
from symcavity.algebra.signs import sign_of


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


def test_averages_are_no_cases_of_what_is_averaged():
    """At each value of two signs their product squared is one; its average squared is not."""
    law = {(a, b): Rational(1, 4) for a in (1, -1) for b in (1, -1)}
    s, t = Quenched(("s", "t"), i, law=law)
    assert sign_of(average(s[i] ** 2) - average(s[i] * t[i]) ** 2) is None
    assert sign_of(average(s[i] ** 2)) == 1
    assert sign_of(2 + s[i] * average(s[i] ** 2)) is None
