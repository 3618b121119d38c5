"""Errors in variables: a student that sees its inputs with noise, and a teacher that sees them as they are.

The error on fresh data, which are noisy as well, is ``E_test``.

Values: ``alpha``, ``gamma``, the correlation ``rho`` between what both see, the law of the teacher's weights.
What the student does not see is noise in the labels: the same as inputs without errors, a teacher ``rho t``,
and noise of variance ``(1 - rho**2) <t**2>``.
"""

from sympy import Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, fresh, i, mu, response

rho, gamma = Symbol("rho", real=True), Symbol("gamma", positive=True)
x = Coupling("x")
z = Coupling("z", correlation={x: rho})
w, t = Feature("w"), Quenched("t", i)
error = Sum(z[mu, i] * w[i], (i, 1, N)) - Sum(x[mu, i] * t[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum(error**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    named={Symbol("E_test"): average(fresh(error**2))},
    name="Regression with errors in the inputs",
    says=(
        "Errors in the inputs act as a teacher that is shortened by the correlation ρ, and as noise of the "
        "variance (1 − ρ²) <t²> in the labels."
    ),
    cite="W. A. Fuller, Measurement Error Models (Wiley, 1987)",
)
values = {alpha: 2, gamma: Rational(1, 2), rho: Rational(4, 5), t: Normal("t", 0, 1)}
shown = [average(w[i] ** 2), average(w[i] * t[i]), response(w)]
