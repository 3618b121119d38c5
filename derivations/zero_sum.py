"""Zero-sum games with random payoffs: the value, and how many strategies are played.

The shares of strategies that the players use are ``n_w`` and ``n_other``.

Values: ``alpha``, the ratio of the numbers of strategies of the two players. The other player's strategies
are the multipliers ``lambda``, with the sum ``N``.

J. Berg, A. Engel, Phys. Rev. Lett. 81, 4999 (1998).
"""

from sympy import Eq, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, alpha, average, i, mu

x, w, V, other = Coupling("x"), Feature("w"), Global("V"), Datum("lambda")

problem = ConvexProblem(
    minimize=N * V,
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) <= V, w[i] >= 0, Eq(Sum(w[i], (i, 1, N)), N)],
    named={Symbol("n_w"): average(w[i] > 0), Symbol("n_other"): average(other[mu] > 0)},
    name="Zero-sum games",
    says=(
        "Both players use the same number of strategies, and the one who has more of them wins: V = 0.657 at α = "
        "2, and the game is fair at α = 1."
    ),
    cite="J. Berg, A. Engel, Phys. Rev. Lett. 81, 4999 (1998)",
)
values = {alpha: 2}
shown = [V, average(w[i] > 0), average(other[mu] > 0)]
