"""Sparse linear regression: least squares with an l1 penalty, a Gauss-Bernoulli teacher, and noise.

Values: ``alpha``, the penalty ``C``, the law of the support ``s`` (zero or one), of the teacher's ``size``
where it is not zero, of the ``noise``. The fixed point is that of the state evolution of approximate message
passing.

R. Tibshirani, J. R. Stat. Soc. B 58, 267 (1996); M. Bayati, A. Montanari, IEEE Trans. Inf. Theory 58, 1997
(2012).
"""

from sympy import Abs, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu

x, w = Coupling("x"), Feature("w")
s, size, noise = Quenched("s", i), Quenched("size", i), Quenched("noise", mu)
C, E_test = Symbol("C", positive=True), Symbol("E_test")
t = s[i] * size[i]
error = Sum(x[mu, i] * (w[i] - t), (i, 1, N)) - noise[mu]

problem = ConvexProblem(
    minimize=Sum(error**2, (mu, 1, P)) / 2 + C * Sum(Abs(w[i]), (i, 1, N)),
    named={E_test: average(fresh(error**2))},
    name="Sparse regression with an absolute penalty",
    says=(
        "The absolute penalty drops weights and shrinks those that it keeps. The larger it is, the fewer are "
        "kept: at α = 3/5, 21 % at C = 1/4, 10 % at C = 1/2 and 3 % at C = 1, where the teacher has 20 %."
    ),
    cite=(
        "R. Tibshirani, J. R. Stat. Soc. B 58, 267 (1996); M. Bayati, A. Montanari, IEEE Trans. Inf. "
        "Theory 58, 1997 (2012)"
    ),
)
values = {
    alpha: Rational(3, 5),
    C: Rational(1, 2),
    s: {0: Rational(4, 5), 1: Rational(1, 5)},
    size: Normal("size", 0, 1),
    noise: Normal("noise", 0, Rational(1, 5)),
}
shown = [average((w[i] - t) ** 2), average(Abs(w[i]) > 0)]
