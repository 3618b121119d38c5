"""Support vector regression: an epsilon-insensitive loss on the labels of a noisy teacher.

The error of the weights is ``E_w``; that of fresh labels is larger by the variance of the noise. The share of
data outside of the tube is ``n_out``.

Values: ``alpha``, the penalty ``C``, the half width ``epsilon`` of the tube, the laws of the teacher and of
the noise.

V. Vapnik, The Nature of Statistical Learning Theory (Springer, 1995).
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")
above, below = Datum("above"), Datum("below")
t, noise = Quenched("t", i), Quenched("noise", mu)
C, epsilon = Symbol("C", positive=True), Symbol("epsilon", positive=True)
error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - noise[mu]

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(above[mu] + below[mu], (mu, 1, P)),
    subject_to=[error <= epsilon + above[mu], -error <= epsilon + below[mu], above[mu] >= 0, below[mu] >= 0],
    named={Symbol("E_w"): average((w[i] - t[i]) ** 2), Symbol("n_out"): average(above[mu] + below[mu] > 0)},
    name="Support vector regression",
    says=(
        "Data within the tube pull at no weight. The wider it is, the fewer remain outside: at α = 2 and C = 1, "
        "23 % at ε = 1/4, 10 % at ε = 1/2 and 3 % at ε = 1."
    ),
    cite="V. Vapnik, The Nature of Statistical Learning Theory (Springer, 1995)",
)
values = {
    alpha: 2,
    C: 1,
    epsilon: Rational(1, 2),
    t: Normal("t", 0, 1),
    noise: Normal("noise", 0, Rational(1, 4)),
}
shown = [average((w[i] - t[i]) ** 2), average(above[mu] > 0)]
