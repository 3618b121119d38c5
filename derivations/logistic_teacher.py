"""Logistic regression by maximum likelihood, with a logistic teacher: bias and variance of the estimate.

Values: ``alpha`` and the law of the teacher's weights ``t``. The estimate is too long by a factor that does
not vanish at finite ``P/N``. It exists above a line in the plane of ``N/P`` and the signal,
``logistic_existence``. The share ``epsilon_g`` of fresh labels that the sign of the field misses does not depend
on that factor.

P. Sur, E. J. Candès, Proc. Natl. Acad. Sci. 116, 14516 (2019).
"""

from sympy import Sum, Symbol, exp, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
epsilon_g = Symbol("epsilon_g")

problem = ConvexProblem(
    minimize=Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)),
    named={epsilon_g: average(fresh(y[mu] * h < 0))},
    name="Maximum likelihood with a logistic teacher",
    says=(
        "Maximum likelihood is biased where there are few data per weight: at α = 5 and the signal √5 the "
        "estimate is 1.50 times too long along the teacher. The fresh labels that its sign misses do not depend "
        "on that factor."
    ),
    cite="P. Sur, E. J. Candès, Proc. Natl. Acad. Sci. 116, 14516 (2019)",
)
values = {alpha: 5, t: {sqrt(5): 1}}
shown = [average(w[i] * t[i]), average(w[i] ** 2)]
