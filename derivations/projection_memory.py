"""A memory that recalls without errors: the energy is the distance of a state to the space that the patterns span.

Its couplings are the projection ``x^T (x x^T)^-1 x``, the pseudo-inverse rule. The coefficients ``v`` of the patterns
are those of the nearest point of that space, so that the energy is ``(N - s^T x^T (x x^T)^-1 x s)/2``. Every stored
pattern has no energy, as long as there are fewer patterns than units: the capacity is ``alpha = 1``. What is solved
here is the lowest state that resembles none of them, a glass. Its energy falls with the load, and vanishes at
``alpha = 1 - 2/pi``. The states jump: one lowest state is an approximation, by which the energy is too low.

L. Personnaz, I. Guyon, G. Dreyfus, J. Phys. Lett. 46, L359 (1985); I. Kanter, H. Sompolinsky, Phys. Rev. A 35, 380
(1987).
"""

from sympy import Abs, Rational, Sum, Symbol

from symcavity import Coupling, Datum, Feature, N, P, Problem, alpha, average, i, mu

x, s, v = Coupling("x"), Feature("s", values=(-1, 1)), Datum("v")
near = Sum(x[mu, i] * v[mu], (mu, 1, P))

problem = Problem(
    minimize=Sum((s[i] - near) ** 2, (i, 1, N)) / 2,
    named={Symbol("E_s"): average((s[i] - near) ** 2) / 2},
    name="A memory that recalls without errors",
    says=(
        "Every stored pattern has no energy as long as there are fewer patterns than units. The lowest states "
        "that resemble no pattern lose theirs already at α = 1 − 2/π = 0.363, with one lowest state, an "
        "approximation."
    ),
    cite="I. Kanter, H. Sompolinsky, Phys. Rev. A 35, 380 (1987)",
)
h = problem["h"]
values = {alpha: Rational(1, 5)}
shown = [average((s[i] - h[i]) ** 2), average(Abs(h[i]))]
instances = False  # the coefficients are continuous, and nobody finds the lowest of so many minima over them
