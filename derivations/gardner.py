"""The capacity of a perceptron for random points: the widest margin that separates them.

Clark & Sompolinsky, section 2; E. Gardner, J. Phys. A 21, 257 (1988).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, alpha, average, i, mu, response

x = Coupling("x")
w = Feature("w")
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Perceptron capacity for random points",
    says=(
        "A perceptron with the margin κ separates up to α(κ) random points per weight: two without a margin, 0.52 "
        "at κ = 1. This load is the capacity. Since the fields are at least one, the norm of the weights is the "
        "inverse of the margin, and the least norm belongs to the widest margin."
    ),
    cite=(
        "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning "
        "problems, SciPost Phys. Lect. Notes, arXiv:2412.01110 (2024); E. Gardner, J. Phys. A 21, 257 "
        "(1988)"
    ),
    source={
        "problem": "1, 4",
        "disorder": "11, 12",
        "lagrangian": "5",
        "stationarity.w": "6",
        "complementarity": "2, 7-9",
        "sources": "26, 27",
        "feature.respond": "28",
        "feature.substitute": "29, 30",
        "feature.cavity_field": "32",
        "feature.self_coupling": "33",
        "feature.cavity_equation": "31",
        "feature.field_statistics": "34, 35",
        "feature.self_coupling_mean": "36",
        "feature.effective_law": "37",
        "feature.solution": "39",
        "feature.response": "38",
        "datum.respond": "41",
        "datum.substitute": "42, 43",
        "datum.cavity_field": "45",
        "datum.self_coupling": "46",
        "datum.cavity_equation": "44",
        "datum.field_statistics": "47, 48",
        "datum.self_coupling_mean": "49",
        "datum.effective_law": "50",
        "datum.solution": "51",
        "datum.response": "54",
        "truncated_moments": "55",
        "eliminate.S_lambda": "54, 56",
        "eliminate.S_w": "57",
        "eliminate.alpha": "21",
        "work_identity": "22-24",
        "consistency": "61",
        "proof.1": "62",
        "proof.2": "62",
        "proof.3": "63",
        "proof.4": "64",
        "interpretation.S_lambda": "58",
        "load.1": "40, 52, 59",
        "load.identity": "59",
        "symmetry": "53",
        "naive.feature.field_statistics": "13",
        "naive.substitution.put": "15",
        "naive.substitution.split": "16",
        "naive.substitution.statistics": "17, 18",
        "naive.substitution.law": "19",
        "naive.datum.solution": "20",
        "naive.eliminate.alpha": "21",
        "naive.load.1": "14, 21",
        "naive.load.identity": "25",
    },
)
values = {alpha: Rational(6, 5)}
shown = [average(w[i] ** 2), response(w)]
