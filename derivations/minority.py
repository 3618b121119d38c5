"""The minority game: agents with two strategies, the predictability of the market, and its phase transition.

Values: ``alpha = P/N``, of the number of states of the world over that of agents. The agents minimize the
predictability; the common part of the strategies of each state is a field ``o`` of its own, with the variance
of the couplings times ``N``. Below ``alpha = 0.3374`` the minimum is zero, and flat.

D. Challet, M. Marsili, R. Zecchina, Phys. Rev. Lett. 84, 1824 (2000).
"""

from sympy import Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, s, o = Coupling("x"), Feature("s"), Quenched("o", mu)
H = Symbol("H")  # the predictability
market = o[mu] + Sum(x[mu, i] * s[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum(market**2, (mu, 1, P)) / 2,
    subject_to=[s[i] >= -1, s[i] <= 1],
    named={H: average(market**2)},
    name="The minority game",
    says=(
        "The market is predictable where there are more than 0.3374 states of the world per agent. At fewer the "
        "agents remove all predictability, and their choices are not unique: a phase transition."
    ),
    cite="D. Challet, M. Marsili, R. Zecchina, Phys. Rev. Lett. 84, 1824 (2000)",
)
values = {alpha: 1, o: Normal("o", 0, 1)}
shown = [average(s[i] ** 2), average(market**2), average(s[i] >= 1)]
