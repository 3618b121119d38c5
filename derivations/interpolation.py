"""Interpolation by the least norm: ridge regression without penalty, beyond the interpolation threshold.

Values: ``alpha`` below one, the laws of the teacher and of the noise. The error descends a second time as
``alpha`` falls below one: it is ``(1 - alpha) <t^2> + <noise^2> alpha/(1 - alpha)`` in units of the noise of
one datum.

T. Hastie, A. Montanari, S. Rosset, R. J. Tibshirani, Ann. Statist. 50, 949 (2022).
"""

from sympy import Eq, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, fresh, i, mu, response

x, w = Coupling("x"), Feature("w")
t, noise = Quenched("t", i), Quenched("noise", mu)
h, y = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N)) + noise[mu]
E_test = Symbol("E_test")

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[Eq(h, y)],
    named={E_test: average(fresh((y - h) ** 2))},
    name="Interpolation by the least norm",
    says=(
        "The error beyond the noise of a fresh label, (1 − α) <t²> + <noise²> α/(1 − α), diverges at the "
        "interpolation threshold α = 1, and falls a second time as there are more weights than data."
    ),
    cite="T. Hastie, A. Montanari, S. Rosset, R. J. Tibshirani, Ann. Statist. 50, 949 (2022)",
)
values = {alpha: Rational(1, 2), t: Normal("t", 0, 1), noise: Normal("noise", 0, Rational(1, 2))}
shown = [average((w[i] - t[i]) ** 2), response(w)]
