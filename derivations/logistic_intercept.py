"""Logistic regression with an intercept: classes of unequal size, drawn by a logistic teacher.

A fresh point is given to the wrong class with the probability ``epsilon_g``.

Values: ``alpha``, the penalty ``gamma``, the teacher's weights ``t`` and its intercept ``c``.

E. J. Candès, P. Sur, Ann. Statist. 48, 27 (2020), on when the estimate exists without penalty.
"""

from sympy import Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, fresh, i, mu

x, w, t, b = Coupling("x"), Feature("w"), Quenched("t", i), Global("b")
c, gamma = Symbol("c", real=True), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N)) + b
u = Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u - c)), -1: 1 / (1 + exp(u + c))}, given=u)

problem = ConvexProblem(
    minimize=Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("epsilon_g"): average(fresh(y[mu] * h < 0))},
    name="Logistic regression with an intercept",
    says=(
        "The ridge shrinks the weights more than the intercept, which has no penalty of its own: at α = 4, γ = "
        "1/2, the signal 2 and the intercept 1, to 0.42 along the teacher and to 0.76."
    ),
    cite="E. J. Candès, P. Sur, Ann. Statist. 48, 27 (2020)",
)
values = {alpha: 4, gamma: Rational(1, 2), c: 1, t: {2: 1}}
shown = [average(w[i] * t[i]), average(w[i] ** 2), b]
