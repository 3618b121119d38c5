"""Replicators with random interactions: strategies that share one population.

The share of strategies that survive is ``phi_S``.

Values: the cooperation pressure ``u`` and the reciprocity ``g`` of the payoffs. For symmetric payoffs (``g =
1``) all is a maximum of the fitness, which is single above ``u = sqrt(2)``.

S. Diederich, M. Opper, Phys. Rev. A 39, 4333 (1989).
"""

from sympy import Eq, Sum, Symbol, symbols

from symcavity import Complementary, Coupling, Feature, Global, N, System, average, i

s, f, j = Feature("s"), Global("f"), symbols("j", integer=True)
u, g = Symbol("u", positive=True), Symbol("g", real=True)
J = Coupling("J", between=(i, i), reciprocity=g)

problem = System(
    equations=[Eq(Sum(s[i], (i, 1, N)), N)],
    conditions=[Complementary(s[i], f + u * s[i] - Sum(J[i, j] * s[j], (j, 1, N)))],
    named={Symbol("phi_S"): average(s[i] > 0)},
    name="Replicators with random interactions",
    says=(
        "The strategies share one stable state above the cooperation pressure u = (1 + g)/√2, where half of them "
        "survive."
    ),
    cite="S. Diederich, M. Opper, Phys. Rev. A 39, 4333 (1989)",
)
values = {u: 2, g: 0}
shown = [average(s[i] > 0), average(s[i] ** 2), f]
