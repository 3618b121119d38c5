"""Two Gaussian clusters told apart by a square loss; the noise differs from feature to feature.

A fresh point is given to the wrong cluster with the probability ``epsilon_g``.

Values: ``alpha``, ``gamma``, the law of the means ``v`` and of the variances ``Delta`` of the features.

F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020).
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu, response

half = Rational(1, 2)
y, v = Quenched("y", mu, law={1: half, -1: half}), Quenched("v", i)
Delta = Quenched("Delta", i, positive=True)
x, w = Coupling("x", mean=y[mu] * v[i] / N, variance=Delta[i] / N), Feature("w")
gamma, epsilon_g = Symbol("gamma", positive=True), Symbol("epsilon_g")
h = Sum(x[mu, i] * w[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum((y[mu] - h) ** 2, (mu, 1, P)) / 2
    + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={epsilon_g: average(fresh(y[mu] * h < 0))},
    name="Two clusters, square loss",
    says=(
        "As the load grows the square loss comes to the best linear classifier, Fisher's discriminant, whose "
        "error is that of a Gaussian beyond √<v²/Δ> standard deviations."
    ),
    cite="F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020)",
)
values = {
    alpha: Rational(16, 13),
    gamma: Rational(1, 100),
    v: Normal("v", 0, 1),
    Delta: {Rational(1, 10): half, half: half},
}
shown = [average(v[i] * w[i]), average(Delta[i] * w[i] ** 2), average(Delta[i] * response(w[i]))]
