"""Two Gaussian clusters told apart by the logistic loss, with ridge penalty.

A fresh point is given to the other cluster with the probability ``epsilon_g``.

Values: ``alpha``, ``gamma``, the means ``m`` of the features. The optimal classifier is along ``m``; the
penalty that comes closest to it is infinite, where the loss is linear (Hebb's rule).

F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020).
"""

from sympy import Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu

half = Rational(1, 2)
y, m = Quenched("y", mu, law={1: half, -1: half}), Quenched("m", i)
x, w = Coupling("x", mean=y[mu] * m[i] / N), Feature("w")
gamma = Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("epsilon_g"): average(fresh(y[mu] * h < 0))},
    name="Two clusters, logistic loss",
    says=(
        "For two clusters of equal size the error on fresh points falls as the ridge penalty grows, down to that "
        "of Hebb's rule, which the loss is for an infinite penalty: 0.207 at α = 2 and means of unit length."
    ),
    cite="F. Mignacco, F. Krzakala, Y. Lu, P. Urbani, L. Zdeborová, Int. Conf. Mach. Learn. (2020)",
)
values = {alpha: 2, gamma: half, m: {1: 1}}
shown = [average(m[i] * w[i]), average(w[i] ** 2)]
