"""A memory of pairs of patterns at zero temperature: two layers of binary units that hear each other only.

``M`` and ``L/alpha_K`` are the overlaps of the layers ``s`` and ``v`` with one pair of patterns, which are
``(1, 1, ...)``; ``x`` and ``z`` are the others, stored by Hebb's rule between the layers. The overlap of ``s`` is held
at ``m``, and the load follows, in pairs per unit of that layer. For layers of equal size the closed equations are
those of ``associative_memory`` with ``(1 + C**2)/(1 - C**2)**2`` in place of ``1/(1 - C)**2``: the load is largest at
``m = 0.93278839737``, where ``alpha = 0.19980154414``. The states jump: one lowest state is an approximation.

B. Kosko, IEEE Trans. Syst. Man Cybern. 18, 49 (1988); J. Kurchan, L. Peliti, M. Saber, J. Phys. I France 4, 1627
(1994).
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import Coupling, Feature, Global, N, P, Problem, Sites, Variable, alpha, average, i, mu

a, K = Sites("a", "K", "output unit")
x, z = Coupling("x"), Coupling("z", between=(mu, a))
s, v = Feature("s", values=(-1, 1)), Variable("v", a, values=(-1, 1))
M, L, m = Global("M"), Global("L"), Symbol("m", positive=True)
h, u = Sum(x[mu, i] * s[i], (i, 1, N)), Sum(z[mu, a] * v[a], (a, 1, K))

problem = Problem(
    minimize=N * M * L - L * Sum(s[i], (i, 1, N)) - M * Sum(v[a], (a, 1, K)) - Sum(h * u, (mu, 1, P)),
    fixed=[Eq(average(s[i]), m)],
    name="A memory of pairs of patterns",
    says=(
        "Two layers of equal size that hear each other only store up to α = 0.1998 pairs of patterns per unit of "
        "a layer, where they are recalled with the overlap 0.933. These numbers assume one lowest state, an "
        "approximation."
    ),
    cite="J. Kurchan, L. Peliti, M. Saber, J. Phys. I France 4, 1627 (1994)",
)
values = {m: Rational(19, 20), K / N: 1}
shown = [alpha, M, L]
instances = False  # the lowest state of a small instance recalls another pair as well as this one
