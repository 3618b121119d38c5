"""Two Gaussian clusters of unequal size, hinge loss with a bias and a weight for each class.

A fresh point of one of the classes is given to the other with the probability ``epsilon_g``.

Values: ``alpha``, ``gamma``, the law of the labels, the means ``m`` of the features, the weight ``r`` of the
class ``-1``.

F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020).
"""

from sympy import Eq, Max, Piecewise, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, fresh, i, mu

y, m = Quenched("y", mu, law={1: Rational(3, 4), -1: Rational(1, 4)}), Quenched("m", i)
x, w, b = Coupling("x", mean=y[mu] * m[i] / N), Feature("w"), Global("b")
gamma, r, epsilon_g = Symbol("gamma", positive=True), Symbol("r", positive=True), Symbol("epsilon_g")
h = Sum(x[mu, i] * w[i], (i, 1, N)) + b
weight = Piecewise((1, Eq(y[mu], 1)), (r, True))

problem = ConvexProblem(
    minimize=Sum(weight * Max(0, 1 - y[mu] * h), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={epsilon_g: average(fresh(y[mu] * h < 0))},
    name="Two clusters, hinge loss with class weights",
    says=(
        "A larger weight for the errors of the smaller class moves the threshold towards the larger one: the "
        "smaller class is recognised more often, and the larger one less often."
    ),
    cite="F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020)",
)
values = {alpha: 2, gamma: 1, r: 3, m: {1: 1}}
shown = [average(m[i] * w[i]), average(w[i] ** 2), b]
