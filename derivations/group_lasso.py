"""Regression on pairs of weights that vanish together: the group lasso.

The error on the data of training is ``E_train``.

Values: ``alpha``, the penalty ``gamma``, the law of the labels ``b``. A pair is its cavity field with the length
softly thresholded.

M. Yuan, Y. Lin, J. R. Stat. Soc. B 68, 49 (2006).
"""

from sympy import Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, norm

x, z, w1, w2 = Coupling("x"), Coupling("z"), Feature("w1"), Feature("w2")
b, gamma = Quenched("b", mu), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w1[i] + z[mu, i] * w2[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum((b[mu] - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(norm(w1[i], w2[i]), (i, 1, N)),
    named={Symbol("E_train"): average((b[mu] - h) ** 2)},
    name="Regression on pairs of weights",
    says=(
        "A pair of weights is its cavity field with the length softly thresholded: pairs vanish together, 42 % of "
        "them at α = 2 and γ = 1."
    ),
    cite="M. Yuan, Y. Lin, J. R. Stat. Soc. B 68, 49 (2006)",
)
values = {alpha: 2, gamma: 1, b: {1: 1}}
shown = [average(w1[i] ** 2), average(w1[i] ** 2 > 0)]
