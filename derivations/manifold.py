"""Capacity of manifolds: the widest margin that separates randomly embedded copies of a convex set.

Clark & Sompolinsky, section 3 and appendix; Chung, Lee and Sompolinsky, Phys. Rev. X 8, 031003 (2018).
Values: ``kappa`` or ``alpha``, and the set: ``theory.solve({kappa: "1/2", g: Ball(5, 1)})``.
"""

from sympy import Eq, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, SupportFunction, average, i, mu

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
)
