"""Regression of a quantile, with an intercept: the pinball loss.

The coverage, the share of fresh data below the estimated quantile, is ``c_g``.

Values: ``alpha``, the level ``tau`` between zero and one, the laws of the teacher and of the noise. The
intercept is not the quantile of the noise: the estimate covers less than ``tau`` of new data.

R. Koenker, G. Bassett, Econometrica 46, 33 (1978); on the coverage Y. Bai, S. Mei, H. Wang, C. Xiong, Adv.
Neural Inf. Process. Syst. 34 (2021).
"""

from sympy import Max, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, fresh, i, mu

x, w, b = Coupling("x"), Feature("w"), Global("b")
t, noise = Quenched("t", i), Quenched("noise", mu)
tau = Symbol("tau", positive=True)
r = Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)) + noise[mu] - b

problem = ConvexProblem(
    Sum(Max(tau * r, (tau - 1) * r), (mu, 1, P)),
    [tau < 1],
    named={Symbol("c_g"): average(fresh(r < 0))},
    name="Regression of a quantile",
    says=(
        "The estimated quantile covers too few of the fresh data: at α = 3 and Gaussian noise, 70 % of them at "
        "the level τ = 0.8."
    ),
    cite=(
        "R. Koenker, G. Bassett, Econometrica 46, 33 (1978); "
        "Y. Bai, S. Mei, H. Wang, C. Xiong, Adv. Neural Inf. Process. Syst. 34 (2021)"
    ),
)
values = {alpha: 3, tau: Rational(4, 5), t: {1: 1}, noise: Normal("noise", 0, 1)}
shown = [average((w[i] - t[i]) ** 2), b]
