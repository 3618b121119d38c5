"""Consumers and resources that renew themselves: a random quadratic program, and MacArthur's ecosystem.

The shares of resources and of consumers that survive are ``phi_R`` and ``phi_C``.

Values: ``alpha``, the number of consumers over that of resources; ``sigma``, the spread of the preferences
``c``; the laws of the carrying capacities ``K`` and of the costs ``m``. The abundances of the consumers are
the multipliers ``lambda``.

P. Mehta, W. Cui, C.-H. Wang, R. Marsland, Phys. Rev. E 99, 052111 (2019).
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, Quenched, alpha, average, i, mu

R, K, m = Feature("R"), Quenched("K", i), Quenched("m", mu)
sigma = Symbol("sigma", positive=True)
c = Coupling("c", mean=1 / N, variance=sigma**2 / N)
consumers = Datum("lambda")

problem = ConvexProblem(
    minimize=Sum((R[i] - K[i]) ** 2, (i, 1, N)) / 2,
    subject_to=[R[i] >= 0, Sum(c[mu, i] * R[i], (i, 1, N)) <= m[mu]],
    named={Symbol("phi_R"): average(R[i] > 0), Symbol("phi_C"): average(consumers[mu] > 0)},
    name="Consumers and resources that renew themselves",
    says=(
        "Fewer consumers survive than resources: the ratio of their numbers is the stability Λ of the state, "
        "which stays below one (competitive exclusion)."
    ),
    cite="P. Mehta, W. Cui, C.-H. Wang, R. Marsland, Phys. Rev. E 99, 052111 (2019)",
)
values = {alpha: Rational(11, 10), sigma: 1, K: Normal("K", 1, 1), m: Normal("m", 1, Rational(1, 10))}
shown = [average(R[i]), average(R[i] > 0), average(consumers[mu]), average(consumers[mu] > 0)]
