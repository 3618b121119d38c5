"""Ridge regression on the labels of a noisy linear teacher: bias, variance, double descent.

Values: the load ``alpha``, the penalty ``gamma``, the laws of the teacher's weights ``t`` and of the
``noise``. The error is a function of the trace of the resolvent of a Wishart matrix; without penalty it
diverges at ``alpha = 1``, where the student begins to interpolate.

L. H. Dicker, Bernoulli 22, 1 (2016); T. Hastie, A. Montanari, S. Rosset, R. J. Tibshirani, Ann. Statist. 50,
949 (2022).
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu, response

x, w = Coupling("x"), Feature("w")
t, noise = Quenched("t", i), Quenched("noise", mu)
gamma = Symbol("gamma", positive=True)
E_train, E_test = Symbol("E_train"), Symbol("E_test")  # mean square errors
error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - noise[mu]

problem = ConvexProblem(
    minimize=Sum(error**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={E_train: average(error**2), E_test: average(fresh(error**2))},
    name="Ridge regression with a noisy teacher",
    says=(
        "Without a penalty the error on fresh data diverges at α = 1, where the student begins to interpolate "
        "(double descent). The penalty γ = <noise²>/<t²> removes the peak: the error then falls with the load."
    ),
    cite=(
        "L. H. Dicker, Bernoulli 22, 1 (2016); T. Hastie, A. Montanari, S. Rosset, R. J. Tibshirani, "
        "Ann. Statist. 50, 949 (2022)"
    ),
)
values = {alpha: 2, gamma: Rational(1, 2), t: Normal("t", 0, 1), noise: Normal("noise", 0, Rational(1, 2))}
shown = [average((w[i] - t[i]) ** 2), response(w)]
