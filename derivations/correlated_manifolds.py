"""Classification of manifolds with correlated centers and orientations: sets in axes that lie near a common subspace.

A part ``rho`` of the variance of each axis, and of the center, is spanned by ``K`` random directions that all sets
share.  Values: ``alpha``, the ratio ``K/N``, the set.  The margin hears one vector, the sum of what the shared
directions and the noise contribute; the theory is that of independent sets with two ways back.

A. J. Wakhloo, T. J. Sussman, S. Chung, Phys. Rev. Lett. 131, 027301 (2023).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import Ball, ConvexProblem, Coupling, Feature, N, Sites, SupportFunction, Variable, alpha, average, i, mu

k, K = Sites("k", "K", "direction")
a = Symbol("a", integer=True, positive=True)
D = Symbol("D", integer=True, positive=True)
rho, g = Symbol("rho", positive=True), SupportFunction("g_S")
x = Coupling("x", components=(a, 1, D + 1), variance=(1 - rho) / N)
A = Coupling("A", between=(mu, k), components=(a, 1, D + 1), variance=rho / K)
B = Coupling("B", between=(k, i), variance=1 / N)
w, m = Feature("w"), Variable("m", k)
V = Sum(x[mu, i, a] * w[i], (i, 1, N)) + Sum(A[mu, k, a] * m[k], (k, 1, K))

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[Eq(m[k], Sum(B[k, i] * w[i], (i, 1, N))), g(V) >= 1],
    name="Manifolds that share directions",
    says=(
        "The more of their variance the manifolds have in common directions, the larger are the weights that "
        "separate them, and the smaller is the margin."
    ),
    cite="A. J. Wakhloo, T. J. Sussman, S. Chung, Phys. Rev. Lett. 131, 027301 (2023)",
)
values = {alpha: Rational(1, 5), K / N: 1, rho: Rational(1, 2), g: Ball(2, Rational(1, 2))}
shown = [average(w[i] ** 2), average(m[k] ** 2)]
