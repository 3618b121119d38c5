"""Lotka-Volterra with random competition: how many species survive.

The share of species that survive is ``phi_S``.

Values: the mean ``A`` and spread ``sigma`` of the competition, its reciprocity ``g`` (one: mutual; zero:
one-sided), the law of the carrying capacities ``K``. The fixed point is stable up to ``sigma = sqrt(2)/(1 +
g)`` for equal capacities.

G. Bunin, Phys. Rev. E 95, 042414 (2017).
"""

from sympy import Rational, Sum, Symbol, symbols

from symcavity import Complementary, Coupling, Feature, N, Quenched, System, average, i

n, K, j = Feature("n"), Quenched("K", i), symbols("j", integer=True)
A, g, sigma = Symbol("A", real=True), Symbol("g", real=True), Symbol("sigma", positive=True)
J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N, reciprocity=g)

problem = System(
    equations=[],
    conditions=[Complementary(n[i], n[i] - K[i] + Sum(J[i, j] * n[j], (j, 1, N)))],
    named={Symbol("phi_S"): average(n[i] > 0)},
    name="Competing species",
    says=(
        "Species of equal carrying capacity share one stable state up to the spread σ = √2/(1 + g) of their "
        "competition, where half of them survive."
    ),
    cite="G. Bunin, Phys. Rev. E 95, 042414 (2017)",
)
values = {A: 4, sigma: Rational(3, 5), g: 0, K: {1: 1}}
shown = [average(n[i]), average(n[i] ** 2), average(n[i] > 0)]
