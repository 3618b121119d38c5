"""Fixed points of a network of rectified units with random inhibition.

The share of active units is ``phi_A``.

Values: the gain ``g``, the mean inhibition ``A``, the law of the inputs ``xi``, the reciprocity ``r`` of the
connections. The fixed point is stable while ``g**2`` times the share of active units is below one where ``r =
0``.
"""

from sympy import Eq, Max, Rational, Sum, Symbol, symbols

from symcavity import Coupling, Feature, N, Quenched, System, average, i

s, xi, j = Feature("s"), Quenched("xi", i), symbols("j", integer=True)
g, A, r = Symbol("g", positive=True), Symbol("A", real=True), Symbol("r", real=True)
J = Coupling("J", between=(i, i), mean=-A / N, variance=g**2 / N, reciprocity=r)

problem = System(
    equations=[Eq(s[i], Max(0, xi[i] + Sum(J[i, j] * s[j], (j, 1, N))))],
    named={Symbol("phi_A"): average(s[i] > 0)},
    name="A network of rectified units",
    says=(
        "Without reciprocity the stability Λ is g² times the share of active units: silent units pass nothing on, "
        "and the fixed point is stable up to gains above one."
    ),
    cite="J. Kadmon, H. Sompolinsky, Phys. Rev. X 5, 041030 (2015)",
)
values = {g: Rational(1, 2), A: 1, r: 0, xi: {1: Rational(1, 2), 2: Rational(1, 2)}}
shown = [average(s[i]), average(s[i] ** 2), average(s[i] > 0)]
