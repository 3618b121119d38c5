"""Basis pursuit: the least absolute values that explain the data of a sparse teacher; exact recovery.

What is far from the teacher is the error ``E_w`` of the weights: zero where recovery is exact.

Values: ``alpha = P/N`` and the law of the teacher's weights ``t``. Below the line of Donoho and Tanner the
error is zero and the stability is below one; on the line the stability is one, whatever the law of the
non-zero weights.

D. L. Donoho, J. Tanner, Proc. Natl. Acad. Sci. 102, 9452 (2005); Y. Kabashima, T. Wadayama, T. Tanaka, J.
Stat. Mech. L09003 (2009).
"""

from sympy import Abs, Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)

problem = ConvexProblem(
    minimize=Sum(Abs(w[i]), (i, 1, N)),
    subject_to=[Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)],
    named={Symbol("E_w"): average((w[i] - t[i]) ** 2)},
    name="Basis pursuit",
    says=(
        "A sparse teacher is recovered exactly up to a sharp line, which depends on how many of its weights are "
        "not zero, and not on their values: at α = 1/10, up to 1.89 % of the weights."
    ),
    cite=(
        "D. L. Donoho, J. Tanner, Proc. Natl. Acad. Sci. 102, 9452 (2005); Y. Kabashima, T. Wadayama, T. "
        "Tanaka, J. Stat. Mech. L09003 (2009)"
    ),
)
values = {alpha: Rational(1, 2), t: {0: Rational(3, 5), 1: Rational(1, 5), -1: Rational(1, 5)}}
shown = [average((w[i] - t[i]) ** 2), average(Abs(w[i]))]
