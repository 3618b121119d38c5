"""The soft margin of points that lie near a common subspace of random directions.

A part ``rho`` of the variance of each point is spanned by ``K`` directions that all points share, ``B``, with
coordinates ``A`` of its own; the rest is its own noise.  Values: ``alpha``, the ratio ``K/N``, the penalty ``C`` of the
slack.  The fewer directions are shared, the more points need slack; of infinitely many all are independent.

A. J. Wakhloo, T. J. Sussman, S. Chung, Phys. Rev. Lett. 131, 027301 (2023).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Sites, Variable, alpha, average, i, mu

k, K = Sites("k", "K", "direction")
rho, C = Symbol("rho", positive=True), Symbol("C", positive=True)
z = Coupling("z", variance=(1 - rho) / N)
A, B = Coupling("A", between=(mu, k), variance=rho / K), Coupling("B", between=(k, i), variance=1 / N)
w, xi, m = Feature("w"), Datum("xi"), Variable("m", k)
h = Sum(z[mu, i] * w[i], (i, 1, N)) + Sum(A[mu, k] * m[k], (k, 1, K))

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P)),
    subject_to=[Eq(m[k], Sum(B[k, i] * w[i], (i, 1, N))), h >= 1 - xi[mu], xi[mu] >= 0],
    name="The soft margin of points that share directions",
    says=(
        "The fewer directions the points share, the more of them need slack. Points that share infinitely many "
        "directions are as good as independent."
    ),
    cite="A. J. Wakhloo, T. J. Sussman, S. Chung, Phys. Rev. Lett. 131, 027301 (2023)",
)
values = {alpha: 1, K / N: 1, C: 1, rho: Rational(1, 2)}
shown = [average(w[i] ** 2), average(m[k] ** 2), average(xi[mu] > 0)]
