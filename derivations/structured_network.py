"""Fixed points of a network whose connections are a product of random modes: ``J = L D R^T`` with saturating units.

The activity of the modes is ``q_in``.

Values: ``K/N`` modes, of strengths ``D``, the law of the inputs ``xi``. Reading and writing directions are
independent, so that no site hears itself; the fixed point is stable while ``(K/N) <D^2> <f'^2> < 1``.

Known result: the variance of the input is one number, ``(K/N) <D^2> <s^2>``, whatever else the modes are.
"""

from sympy import Eq, Rational, Sum, Symbol, tanh
from sympy.stats import Normal

from symcavity import Coupling, N, Quenched, Sites, System, Variable, average, i, response

a, K = Sites("a", "K", "mode")
L, R = Coupling("L", between=(i, a)), Coupling("R", between=(a, i))
s, z = Variable("s", i), Variable("z", a)
D, xi = Quenched("D", a), Quenched("xi", i)

problem = System(
    equations=[
        Eq(z[a], D[a] * Sum(R[a, i] * s[i], (i, 1, N))),
        Eq(s[i], tanh(Sum(L[i, a] * z[a], (a, 1, K)) + xi[i])),
    ],
    named={Symbol("q_in"): average(z[a] ** 2)},
    name="A network of random modes",
    says=(
        "Reading and writing directions are independent, so that no unit hears an echo of itself. The input has "
        "the variance (K/N) <D²> <s²>, whatever else the modes are, and the fixed point is stable while Λ = (K/N) "
        "<D²> <f'²> is below one."
    ),
)
half = Rational(1, 2)
values = {K / N: half, D: {1: half, 2: half}, xi: Normal("xi", 0, 1)}
shown = [average(s[i] ** 2), average(z[a] ** 2), response(s)]
