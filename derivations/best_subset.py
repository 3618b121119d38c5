"""Regression with the best subset of features: a price for each weight that is not zero, whatever its size.

A weight is zero or as large as without a price: it jumps where both cost the same. The data are those of a sparse
teacher ``t`` with the noise ``e``; ``theta`` is the price, and a weak ridge ``gamma`` keeps the rest small. The subset
jumps from one choice to another, and one lowest state is an approximation, a good one where few subsets compete.

D. L. Donoho, A. Maleki, A. Montanari, PNAS 106, 18914 (2009), on thresholds; Y. Kabashima, T. Wadayama, T. Tanaka, J.
Stat. Mech. L09003 (2009).
"""

from sympy import Eq, Ne, Piecewise, Rational, Sum, Symbol

from symcavity import Coupling, Feature, N, P, Problem, Quenched, alpha, average, i, mu

x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
theta, gamma = Symbol("theta", positive=True), Symbol("gamma", positive=True)
error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]

problem = Problem(
    minimize=Sum(error**2, (mu, 1, P)) / 2
    + Sum(Piecewise((0, Eq(w[i], 0)), (theta, True)) + gamma * w[i] ** 2 / 2, (i, 1, N)),
    named={Symbol("E_w"): average((w[i] - t[i]) ** 2), Symbol("rho_w"): average(Ne(w[i], 0))},
    name="Regression with the best subset of features",
    says=(
        "A weight is dropped or kept, and what is kept is not shrunk by the price, as it is by a penalty of "
        "absolute values. Weights jump where both choices cost the same, so that one lowest state is an "
        "approximation."
    ),
    cite="Y. Kabashima, T. Wadayama, T. Tanaka, J. Stat. Mech. L09003 (2009)",
)
values = {
    alpha: 2, theta: Rational(1, 4), gamma: Rational(1, 20),
    t: {0: Rational(4, 5), 2: Rational(1, 5)}, e: {Rational(1, 2): Rational(1, 2), -Rational(1, 2): Rational(1, 2)},
}  # fmt: skip
shown = [average((w[i] - t[i]) ** 2), average(Ne(w[i], 0))]
instances = False  # subsets are searched in the tests
