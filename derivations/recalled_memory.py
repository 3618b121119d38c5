"""A memory that is recalled: the overlap with a stored pattern, step by step, beside many others.

Values: ``alpha``, how many other patterns are stored for each unit; ``beta``, the gain of the units; the
law of the pattern ``xi``; ``a``, which is one where a unit begins as the pattern has it, and minus one
elsewhere. The patterns ``X`` are stored by Hebb's rule without self-coupling; each hears the network at
once, and answers.

E. Gardner, B. Derrida, P. Mottishaw, J. Phys. France 48, 741 (1987), on units with steps.
"""

from sympy import Eq, Rational, Sum, Symbol, tanh

from symcavity import Coupling, N, P, Quenched, System, Time, Variable, alpha, average, i, mu

t, beta = Time("t"), Symbol("beta", positive=True)
x, o = Variable("x", i, over=t), Variable("o", mu, over=t)
xi, a, X = Quenched("xi", i), Quenched("a", i), Coupling("X")
overlap = Sum(xi[i] * x[i, t], (i, 1, N)) / N
others = Sum(X[mu, i] * o[mu, t], (mu, 1, P)) - alpha * x[i, t]

problem = System(
    equations=[
        Eq(x[i, t + 1], tanh(beta * (xi[i] * overlap + others))),
        Eq(o[mu, t], Sum(X[mu, i] * x[i, t], (i, 1, N))),
    ],
    initial=[Eq(x[i, 0], xi[i] * a[i])],
    name="A memory that is recalled",
    says=(
        "A pattern of which 70 % of the units are right is recalled beside one other for ten units: its overlap "
        "grows from 0.4 to 0.8 in four steps. Beside one for four units it grows at first, and is lost again."
    ),
    cite="E. Gardner, B. Derrida, P. Mottishaw, J. Phys. France 48, 741 (1987)",
)
half = Rational(1, 2)
values = {alpha: Rational(1, 10), beta: 4, xi: {1: half, -1: half}, a: {1: Rational(7, 10), -1: Rational(3, 10)}}
until = 8
shown = [average(xi[i] * x[i, t]), average(x[i, t] ** 2)]
