"""Consumers whose benefits differ from the harm that they do: ecosystems without reciprocity.

The shares of resources and of consumers that survive are ``phi_R`` and ``phi_C``.

Values: ``alpha``, ``sigma`` and the correlation ``rho`` between what a consumer gains and what a resource
loses; the law of the carrying capacities ``K``. At ``rho = 1`` the system is a minimization; with less
reciprocity its fixed point becomes unstable, and the abundances never settle.  Where consumers are few, the
equations have a second solution, which is unstable: ``SeveralSolutions``, and a gap in the curve.

E. Blumenthal, J. W. Rocks, P. Mehta, Phys. Rev. Lett. 132, 127401 (2024).
"""

from sympy import Rational, Sum, Symbol

from symcavity import Complementary, Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu

R, n, K = Feature("R"), Datum("n"), Quenched("K", i)
rho, sigma = Symbol("rho", positive=True), Symbol("sigma", positive=True)
gain = Coupling("c", mean=1 / N, variance=sigma**2 / N)
loss = Coupling("e", mean=1 / N, variance=sigma**2 / N, correlation={gain: rho})

problem = System(
    conditions=[
        Complementary(R[i], R[i] - K[i] + Sum(loss[mu, i] * n[mu], (mu, 1, P))),
        Complementary(n[mu], 1 - Sum(gain[mu, i] * R[i], (i, 1, N))),
    ],
    equations=[],
    named={Symbol("phi_R"): average(R[i] > 0), Symbol("phi_C"): average(n[mu] > 0)},
    name="Consumers and resources without reciprocity",
    says=(
        "The less the gain of a consumer has to do with the loss of its resource, the closer the state is to "
        "instability: Λ grows as ρ falls, from 0.26 at ρ = 1 to 0.41 at ρ = 0.8."
    ),
    cite="E. Blumenthal, J. W. Rocks, P. Mehta, Phys. Rev. Lett. 132, 127401 (2024)",
)
values = {alpha: Rational(1, 2), sigma: Rational(1, 2), rho: Rational(4, 5), K: {2: 1}}
shown = [average(R[i]), average(R[i] > 0), average(n[mu]), average(n[mu] > 0)]
