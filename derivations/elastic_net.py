"""Sparse regression with both penalties: the elastic net, on labels of a sparse teacher.

The error on fresh data is ``E_test``; the share of weights that are kept is ``rho_w``.

Values: ``alpha``, the penalties ``C`` (absolute values) and ``gamma`` (squares), the laws of the teacher
``t`` and of the ``noise``.

H. Zou, T. Hastie, J. R. Stat. Soc. B 67, 301 (2005).
"""

from sympy import Abs, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu

x, w = Coupling("x"), Feature("w")
t, noise = Quenched("t", i), Quenched("noise", mu)
C, gamma = Symbol("C", positive=True), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
y = Sum(x[mu, i] * t[i], (i, 1, N)) + noise[mu]

problem = ConvexProblem(
    minimize=Sum((y - h) ** 2, (mu, 1, P)) / 2 + Sum(C * Abs(w[i]) + gamma * w[i] ** 2 / 2, (i, 1, N)),
    named={Symbol("E_test"): average(fresh((y - h) ** 2)), Symbol("rho_w"): average(Abs(w[i]) > 0)},
    name="Regression with absolute and square penalties",
    says=(
        "The penalty of absolute values drops weights, and that of squares shrinks the others. At α = 1, C = 1/4 "
        "and γ = 1/2 the student keeps 62 % of the weights, where the teacher has 25 %."
    ),
    cite="H. Zou, T. Hastie, J. R. Stat. Soc. B 67, 301 (2005)",
)
values = {
    alpha: 1,
    C: Rational(1, 4),
    gamma: Rational(1, 2),
    t: {0: Rational(3, 4), 1: Rational(1, 8), -1: Rational(1, 8)},
    noise: Normal("noise", 0, Rational(1, 2)),
}
shown = [average((w[i] - t[i]) ** 2), average(Abs(w[i]) > 0)]
