"""Portfolios by expected shortfall: the mean of the worst losses, and where it has no minimum.

The true risk exceeds that of the optimal portfolio by the factor ``sqrt(q_0)``.

Values: ``alpha``, the length of the history over the number of assets, and the level ``beta`` between zero
and one. Below a line ``alpha(beta)`` some portfolio seems to be without risk in the history, and the minimum
runs off to infinity.

S. Ciliberti, I. Kondor, M. Mézard, Quant. Finance 7, 389 (2007).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, alpha, average, i, mu

x, w, u, v = Coupling("x"), Feature("w"), Datum("u"), Global("v")
beta = Symbol("beta", positive=True)

problem = ConvexProblem(
    minimize=(1 - beta) * P * v + Sum(u[mu], (mu, 1, P)),
    subject_to=[u[mu] >= 0, u[mu] + v + Sum(x[mu, i] * w[i], (i, 1, N)) >= 0, Eq(Sum(w[i], (i, 1, N)), N), beta < 1],
    named={Symbol("q_0"): average(w[i] ** 2)},
    name="Portfolio of least expected shortfall",
    says=(
        "The estimated portfolio exists for long histories only: for more than 2.0001 days per asset at the level "
        "β = 0.9, below which some portfolio seems to be without risk. At twice that length its risk is still "
        "1.54 times the least possible one."
    ),
    cite="S. Ciliberti, I. Kondor, M. Mézard, Quant. Finance 7, 389 (2007)",
)
values = {alpha: 4, beta: Rational(9, 10)}
shown = [average(w[i] ** 2), v, average(u[mu] > 0)]
