"""Where the maximum likelihood estimate of logistic regression exists: the margin of a logistic teacher's labels.

Values: ``kappa`` and the law of the teacher's weights ``t``. The labels can be separated up to the load at
margin zero; beyond it, the estimate is finite. Without signal this is Cover's ``alpha = 2``.

E. J. Candès, P. Sur, Ann. Statist. 48, 27 (2020).
"""

from sympy import Eq, Rational, Sum, Symbol, exp

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[y[mu] * h >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Where the estimate of logistic regression exists",
    says=(
        "The labels of a logistic teacher can be separated, and the estimate of maximum likelihood does not "
        "exist, up to α = 2 without a signal and up to α = 2.90 at the signal <t²> = 4."
    ),
    cite="E. J. Candès, P. Sur, Ann. Statist. 48, 27 (2020)",
)
values = {alpha: Rational(6, 5), t: {2: 1}}
shown = [average(w[i] ** 2), average(w[i] * t[i])]
