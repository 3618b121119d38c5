"""Classification of manifolds with slack: randomly embedded copies of a convex set, the soft margin.

Values: ``alpha``, the penalty ``C`` and the set; ``C -> oo`` is the hard margin.  Copies of a large set collapse
above some load: the minimum is then at zero weights, which is no point of this theory.
"""

from sympy import Rational, Sum, Symbol

from symcavity import Ball, ConvexProblem, Coupling, Datum, Feature, N, P, SupportFunction, alpha, average, i, mu

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
    says=(
        "Copies of large sets are given up: for balls of five dimensions and unit radius at C = 1 the weights "
        "vanish at α = 0.44, and beyond no copy is separated."
    ),
    cite=(
        "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning "
        "problems, SciPost Phys. Lect. Notes, arXiv:2412.01110 (2024)"
    ),
    source={
        "disorder": "73, 74",
        "support.g_S": "68, 71",
        "dual.Lambda": "70",
        "stationarity.w": "72",
        "sources": "67, 86, 87",
        "feature.respond": "88",
        "feature.substitute": "89, 90",
        "feature.cavity_field": "92",
        "feature.self_coupling": "93",
        "feature.cavity_equation": "91",
        "feature.field_statistics": "94, 95",
        "feature.self_coupling_mean": "96",
        "datum.respond": "99",
        "datum.substitute": "100, 101",
        "datum.cavity_field": "103",
        "datum.self_coupling": "104",
        "datum.cavity_equation": "102",
        "datum.field_statistics": "105",
        "datum.self_coupling_mean": "107",
        "datum.effective_law": "108, A.1",
        "datum.differentiate": "A.3, A.4",
        "datum.touching": "A.5-A.8",
        "datum.touching_trace": "A.2, A.9",
        "datum.regimes": "A.10; which leaves out the third regime",
        "naive.feature.field_statistics": "75",
        "naive.closure.q_w": "76",
        "naive.substitution.put": "78",
        "naive.substitution.split": "79",
        "naive.substitution.statistics": "80-82",
        "naive.substitution.law": "83",
    },
)
values = {alpha: Rational(1, 2), C: 2, g: Ball(2, Rational(1, 2))}
shown = [average(w[i] ** 2), average(xi[mu] > 0)]
