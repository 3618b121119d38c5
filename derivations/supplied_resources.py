"""Consumers and resources that are supplied from outside: a niche for each, and no extinction of resources.

The share of consumers that survive is ``phi_C``.

Values: ``alpha``, the number of consumers over that of resources, ``sigma``, the laws of the supply ``K`` and
of the costs ``m``. Each resource decays at unit rate, ``R (1 + consumption) = K``; it is positive, and named
by its logarithm ``r``.

W. Cui, R. Marsland, P. Mehta, Phys. Rev. Lett. 125, 048101 (2020).
"""

from sympy import Eq, Rational, Sum, Symbol, exp

from symcavity import Complementary, Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu

R, r, n = Feature("R"), Feature("r"), Datum("n")
K, m = Quenched("K", i, positive=True), Quenched("m", mu)
sigma = Symbol("sigma", positive=True)
c = Coupling("c", mean=1 / N, variance=sigma**2 / N)
eaten = Sum(c[mu, i] * n[mu], (mu, 1, P))

problem = System(
    equations=[Eq(R[i], exp(r[i])), Eq(1 + eaten, K[i] * exp(-r[i]))],
    conditions=[Complementary(n[mu], m[mu] - Sum(c[mu, i] * R[i], (i, 1, N)))],
    named={Symbol("phi_C"): average(n[mu] > 0)},
    name="Consumers and supplied resources",
    says=(
        "No resource that is supplied from outside dies out, and fewer consumers survive than half of the number "
        "of resources."
    ),
    cite="W. Cui, R. Marsland, P. Mehta, Phys. Rev. Lett. 125, 048101 (2020)",
)
values = {alpha: 1, sigma: Rational(1, 4), K: {2: 1}, m: {1: 1}}
shown = [average(R[i]), average(R[i] ** 2), average(n[mu]), average(n[mu] > 0)]
