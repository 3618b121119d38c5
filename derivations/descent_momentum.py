"""Gradient descent with momentum on the logistic loss: two Gaussian clusters, a bias and a ridge.

Values: ``alpha``; ``gamma``, the ridge penalty; ``epsilon`` and ``beta``, the rate and the momentum; the laws
of the labels ``y`` and of the direction ``m`` of the clusters. Weights and bias begin at zero; the descent
ends at the minimum of the declared problem.

F. Mignacco, F. Krzakala, P. Urbani, L. Zdeborová, Adv. Neural Inf. Process. Syst. 33 (2020), on descents in
Gaussian mixtures.
"""

from sympy import Rational, Sum, exp, log, symbols

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, i, mu

beta, epsilon, gamma = symbols("beta epsilon gamma", positive=True)
w, b = Feature("w"), Global("b")
m, y = Quenched("m", i), Quenched("y", mu)
x = Coupling("x", mean=y[mu] * m[i] / N)
margin = y[mu] * (Sum(x[mu, i] * w[i], (i, 1, N)) + b)

problem = ConvexProblem(
    minimize=Sum(log(1 + exp(-margin)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    name="clusters and the logistic loss",
    says=(
        "The descent ends at the minimum of the declared loss, and with momentum it comes there sooner: the bias, "
        "whose direction is the slowest, gains most."
    ),
).descent(rate=epsilon, momentum=beta)
half = Rational(1, 2)
clusters = {m: {1: half, 2: half}, y: {1: 3 * half / 2, -1: half / 2}}
values = {alpha: 2, gamma: half, epsilon: half, beta: half, **clusters}
until = 12
shown = [average(m[i] * w[i]), average(w[i] ** 2), b]
