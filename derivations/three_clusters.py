"""Three Gaussian clusters on a line, the middle one against the outer two: what a linear unit can learn.

A fresh point is given the wrong label with the probability ``epsilon_g``.

Values: ``alpha``, ``gamma``, the means ``m``. Data of the clusters ``c = -1, 0, 1`` have the means ``c m``;
the label is one for ``c = 0`` and minus one for the others, so that a linear function learns what the unequal
sizes of the outer clusters say, and no more.
"""

from sympy import Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, fresh, i, mu, response

c = Quenched("c", mu, law={-1: Rational(1, 6), 0: Rational(1, 2), 1: Rational(1, 3)})
m = Quenched("m", i)
x, w, b = Coupling("x", mean=c[mu] * m[i] / N), Feature("w"), Global("b")
gamma = Symbol("gamma", positive=True)
y = 1 - 2 * c[mu] ** 2
h = Sum(x[mu, i] * w[i], (i, 1, N)) + b

problem = ConvexProblem(
    minimize=Sum((y - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("epsilon_g"): average(fresh(y * h < 0))},
    name="Three clusters on a line",
    says=(
        "A linear unit cannot tell the middle cluster from the outer two. It learns only that these have unequal "
        "sizes: at α = 2 and γ = 1 it errs on 49 % of fresh points."
    ),
    cite=(
        "B. Loureiro, G. Sicuro, C. Gerbelot, A. Pacco, F. Krzakala, L. Zdeborová, Adv. Neural Inf. "
        "Process. Syst. 34 (2021)"
    ),
)
values = {alpha: 2, gamma: 1, m: {1: 1}}
shown = [average(w[i] ** 2), average(m[i] * w[i]), b, response(w)]
