"""A network in time whose couplings are partly symmetric: each unit hears an echo of its own past.

Values: ``g``, the strength of the couplings; ``r``, the correlation of ``J[i, j]`` with ``J[j, i]``, from
-1 to 1; ``h``, the length of a step; the law of the initial states ``a``.

D. Martí, N. Brunel, S. Ostojic, Phys. Rev. E 97, 062314 (2018).
"""

from sympy import Eq, Rational, Sum, Symbol, symbols, tanh

from symcavity import Coupling, N, Quenched, System, Time, Variable, average, i

t, j, r = Time("t"), Symbol("j"), Symbol("r", real=True)
g, h = symbols("g h", positive=True)
x, a = Variable("x", i, over=t), Quenched("a", i)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
heard = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))

problem = System(
    equations=[Eq(x[i, t + 1], (1 - h) * x[i, t] + h * heard)],
    initial=[Eq(x[i, 0], a[i])],
    name="A network of partly symmetric couplings",
    says=(
        "Each unit hears an echo of its own past. Couplings with r > 0 reinforce it, and rest is unstable above g "
        "= 1/(1 + r), earlier than without reciprocity."
    ),
    cite="D. Martí, N. Brunel, S. Ostojic, Phys. Rev. E 97, 062314 (2018)",
)
half = Rational(1, 2)
values = {g: Rational(3, 2), r: half, h: half, a: {1: half, -1: half}}
until = 12
shown = [average(x[i, t] ** 2), average(x[i, t] * a[i])]
