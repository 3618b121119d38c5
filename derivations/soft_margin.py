"""Classification of random points with slack: the soft-margin support vector machine.

Points on the margin or inside of it are the support vectors, which alone fix the weights; their share is ``n_SV``.

Values: ``alpha`` and the penalty ``C``; ``C -> oo`` is the hard margin.
"""

from sympy import Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, alpha, average, i, mu

x = Coupling("x")
w, xi = Feature("w"), Datum("xi")
C = Symbol("C", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P)),
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1 - xi[mu], xi[mu] >= 0],
    named={Symbol("n_SV"): average(Datum("lambda")[mu] > 0)},
    name="Soft-margin classification of random points",
    says=(
        "Points on the margin or inside of it, the support vectors, alone fix the weights. The softer the margin, "
        "the more there are: at α = 2, all of them at C = 0.1, 91 % at C = 1 and 71 % at C = 10."
    ),
    cite="C. Cortes, V. Vapnik, Mach. Learn. 20, 273 (1995)",
)
values = {alpha: 2, C: 1}
shown = [average(w[i] ** 2), average(xi[mu] > 0)]
