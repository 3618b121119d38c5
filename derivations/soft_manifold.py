"""Classification of manifolds with slack: randomly embedded copies of a convex set, the soft margin.

Values: ``alpha``, the penalty ``C`` and the set; ``C -> oo`` is the hard margin.  Copies of a large set collapse
above some load: the minimum is then at zero weights, which is no point of this theory.
"""

from sympy import Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, SupportFunction, i, mu

a = Symbol("a", integer=True, positive=True)
D = Symbol("D", integer=True, positive=True)
u = Coupling("u", components=(a, 1, D + 1))
w, xi = Feature("w"), Datum("xi")
g = SupportFunction("g_S")
C = Symbol("C", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P)),
    subject_to=[g(Sum(u[mu, i, a] * w[i], (i, 1, N))) >= 1 - xi[mu], xi[mu] >= 0],
    name="Soft-margin classification of manifolds",
)
