"""Lotka-Volterra with random competition, in time: how abundances settle.

Values: ``c`` and ``sigma``, the mean and the spread of the competition; ``r``, the correlation of ``A[i,
j]`` with ``A[j, i]``; the law of the carrying capacities ``K``. All species begin at the abundance one
half.

F. Roy, G. Biroli, G. Bunin, C. Cammarota, J. Phys. A 52, 484001 (2019).
"""

from sympy import Derivative, Eq, Rational, Sum, Symbol, symbols

from symcavity import Coupling, N, Quenched, System, Time, Variable, average, i

t, j, r = Time("t"), Symbol("j"), Symbol("r", real=True)
c, sigma = symbols("c sigma", positive=True)
n, K = Variable("n", i, over=t), Quenched("K", i)
A = Coupling("A", between=(i, i), mean=c / N, variance=sigma**2 / N, reciprocity=r)
suffered = Sum(A[i, j] * n[j, t], (j, 1, N))

problem = System(
    equations=[Eq(Derivative(n[i, t], t), n[i, t] * (K[i] - n[i, t] - suffered))],
    initial=[Eq(n[i, 0], Rational(1, 2))],
    name="Random competition in time",
    says=(
        "At a weak spread of the competition the abundances settle at the fixed point of Lotka-Volterra, with the "
        "mean 0.360 at c = 2, σ = 1/2 and r = 1/2; species that do not survive there die out on the way."
    ),
    cite="F. Roy, G. Biroli, G. Bunin, C. Cammarota, J. Phys. A 52, 484001 (2019)",
)
half = Rational(1, 2)
values = {c: 2, sigma: half, r: half, K: {Rational(3, 4): half, Rational(5, 4): half}}
until, step = 6, Rational(1, 4)
shown = [average(n[i, t]), average(n[i, t] ** 2)]
