"""The portfolio of least variance without short selling: a constraint that regularizes.

The true variance in units of the least one is ``q_0``; the share of assets that are held is ``n_0``.

Values: ``alpha``, the length of the history over the number of assets. Assets are dropped; the estimate
exists at all loads, where without the constraint it needs ``alpha > 1``; below ``alpha = 1/2`` it is no
longer unique.

I. Kondor, G. Papp, F. Caccioli, J. Stat. Mech. 123402 (2017).
"""

from sympy import Eq, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")

problem = ConvexProblem(
    minimize=Sum(Sum(x[mu, i] * w[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2,
    subject_to=[Eq(Sum(w[i], (i, 1, N)), N), w[i] >= 0],
    named={Symbol("q_0"): average(w[i] ** 2), Symbol("n_0"): average(w[i] > 0)},
    name="Portfolio without short selling",
    says=(
        "Without short sales the estimate exists for any length of the history, since assets are dropped: 32 % of "
        "them at α = 1. It is unique down to α = 1/2, where half of the assets are held."
    ),
    cite="I. Kondor, G. Papp, F. Caccioli, J. Stat. Mech. 123402 (2017)",
)
values = {alpha: 1}
shown = [average(w[i] ** 2), average(w[i] > 0)]
