"""A memory of binary units at zero temperature: the overlap with a stored pattern, and how many others it bears.

``M`` is the overlap with one pattern, which is ``(1, 1, ...)``; the patterns ``x`` are the others, stored by Hebb's
rule. The overlap is held at ``m``, and the load follows. It is largest at ``m = 0.96741711569``, where
``alpha = 0.13790556649``: above, nothing is recalled. Every load below has a second solution of smaller overlap, and a
third without one, a glass; their energies say which is the lowest. The states jump, and the stability is infinite: one
lowest state is an approximation, by which the largest load is a little too small.

J. J. Hopfield, PNAS 79, 2554 (1982); D. J. Amit, H. Gutfreund, H. Sompolinsky, Phys. Rev. Lett. 55, 1530 (1985).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import Coupling, Feature, Global, N, P, Problem, alpha, average, i, mu

x, s, M = Coupling("x"), Feature("s", values=(-1, 1)), Global("M")
m = Symbol("m", positive=True)

problem = Problem(
    minimize=N * M**2 / 2 - M * Sum(s[i], (i, 1, N)) - Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2,
    fixed=[Eq(average(s[i]), m)],
    name="A memory of binary units",
    says=(
        "Hebb's rule stores up to α = 0.1379 random patterns per unit: there a stored pattern is still recalled "
        "with the overlap 0.967, and above it none is. These numbers assume one lowest state, an approximation."
    ),
    cite="D. J. Amit, H. Gutfreund, H. Sompolinsky, Phys. Rev. Lett. 55, 1530 (1985)",
)
values = {m: Rational(19, 20)}
shown = [alpha, M]
instances = False  # the lowest state of a small instance recalls another pattern as well as this one
