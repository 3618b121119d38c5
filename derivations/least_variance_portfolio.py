"""The portfolio of least variance, estimated from a finite history of returns.

The cost of estimation is ``q_0``, the true variance in units of the least one.

Values: ``alpha``, the length of the history over the number of assets, and the law of the assets' risks
``s``. The true variance of the estimated portfolio exceeds the optimum by ``alpha/(alpha - 1)``.

S. Pafka, I. Kondor, Physica A 319, 487 (2003).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

s, w = Quenched("s", i, positive=True), Feature("w")
x = Coupling("x", variance=s[i] ** 2 / N)

problem = ConvexProblem(
    minimize=Sum(Sum(x[mu, i] * w[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2,
    subject_to=[Eq(Sum(w[i], (i, 1, N)), N)],
    named={Symbol("q_0"): average(s[i] ** 2 * w[i] ** 2) * average(1 / s[i] ** 2)},
    name="Portfolio of least variance",
    says=(
        "The portfolio that has the least variance in a history of α days per asset has in truth α/(α − 1) times "
        "the least possible variance: the cost of estimation, which diverges at α = 1."
    ),
    cite="S. Pafka, I. Kondor, Physica A 319, 487 (2003)",
)
half = Rational(1, 2)
values = {alpha: 2, s: {1: half, 2: half}}
shown = [average(s[i] ** 2 * w[i] ** 2), average(w[i] < 0)]
