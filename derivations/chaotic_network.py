"""A random network in time: from rest to chaos.

Values: ``g``, the strength of the couplings; the law of the initial states ``a``. Every unit hears all
others through independent couplings, so that nothing comes back to it.

Known result: with this nonlinearity, whose slope is one at the origin, rest is unstable above ``g = 1``.

H. Sompolinsky, A. Crisanti, H. J. Sommers, Phys. Rev. Lett. 61, 259 (1988).
"""

from sympy import Derivative, Eq, Rational, Sum, Symbol, erf, pi, sqrt
from sympy.stats import Normal

from symcavity import Coupling, N, Quenched, System, Time, Variable, average, i

t, j, g = Time("t"), Symbol("j"), Symbol("g", positive=True)
x, a = Variable("x", i, over=t), Quenched("a", i)
J = Coupling("J", between=(i, i), variance=g**2 / N)
heard = Sum(J[i, j] * erf(sqrt(pi) * x[j, t] / 2), (j, 1, N))

problem = System(
    equations=[Eq(Derivative(x[i, t], t), -x[i, t] + heard)],
    initial=[Eq(x[i, 0], a[i])],
    name="A random network in time",
    says=(
        "Rest is stable below the strength g = 1 of the couplings. Above it the activity never settles: its "
        "variance stays finite, and the network is chaotic."
    ),
    cite="H. Sompolinsky, A. Crisanti, H. J. Sommers, Phys. Rev. Lett. 61, 259 (1988)",
)
values = {g: 2, a: Normal("a", 0, 1)}
until, step = 6, Rational(1, 5)
shown = [average(x[i, t] ** 2), average(x[i, t] * x[i, 0])]
