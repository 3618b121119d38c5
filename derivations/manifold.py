"""Capacity of manifolds: the widest margin that separates randomly embedded copies of a convex set.

Clark & Sompolinsky, section 3 and appendix (whose A.10 leaves out the tip of the cone); Chung, Lee and
Sompolinsky, Phys. Rev. X 8, 031003 (2018).

Values: ``kappa`` or ``alpha``, and the set: ``theory.solve({kappa: "1/2", g: Ball(5, 1)})``.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import Ball, ConvexProblem, Coupling, Feature, N, SupportFunction, alpha, average, i, mu

a = Symbol("a", integer=True, positive=True)
D = Symbol("D", integer=True, positive=True)
u = Coupling("u", components=(a, 1, D + 1))
w = Feature("w")
g = SupportFunction("g_S")
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[g(Sum(u[mu, i, a] * w[i], (i, 1, N))) >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Manifold capacity",
    says=(
        "Manifolds are harder to separate than points: at the margin 1/2 the capacity for balls of unit radius in "
        "five dimensions is 0.238 per weight, and 0.96 for points."
    ),
    cite=(
        "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning "
        "problems, SciPost Phys. Lect. Notes, arXiv:2412.01110 (2024); S. Chung, D. D. Lee, H. "
        "Sompolinsky, Phys. Rev. X 8, 031003 (2018)"
    ),
    source={
        "disorder": "73, 74",
        "support.g_S": "68, 71",
        "dual.Lambda": "70",
        "stationarity.w": "72",
        "complementarity": "69",
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
        "datum.field_statistics": "105, 106",
        "datum.self_coupling_mean": "107",
        "datum.effective_law": "108, A.1",
        "datum.minimum": "109",
        "datum.multiplier": "A.12",
        "datum.differentiate": "A.3, A.4",
        "datum.touching": "A.5-A.8",
        "datum.touching_trace": "A.2, A.9",
        "datum.regimes": "A.10; which leaves out the third regime",
        "load.1": "98, 110",
        "eliminate.S_w": "A.11",
        "eliminate.alpha": "84",
        "load.identity": "A.13",
        "consistency": "A.14",
        "euler": "A.15",
        "stein.parts": "A.16-A.19",
        "naive.feature.field_statistics": "75",
        "naive.substitution.put": "78",
        "naive.substitution.split": "79",
        "naive.substitution.statistics": "80-82",
        "naive.substitution.law": "83",
        "naive.datum.minimum": "85",
        "naive.closure.q_w": "76",
        "naive.load.1": "77, 84",
        "naive.eliminate.alpha": "84",
    },
)
values = {alpha: Rational(3, 10), g: Ball(2, 1)}
shown = [average(w[i] ** 2)]
