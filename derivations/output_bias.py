"""Perceptron capacity with a free bias and unequal classes.

Values: the law of the labels ``y``, e.g. ``{1: '4/5', -1: '1/5'}``, and ``kappa`` or ``alpha``.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, Global, N, Quenched, alpha, average, i, mu

x = Coupling("x")
w, b = Feature("w"), Global("b")
y = Quenched("y", mu)
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[y[mu] * (Sum(x[mu, i] * w[i], (i, 1, N)) + b) >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Perceptron capacity with a bias and unequal classes",
    cite="E. Gardner, J. Phys. A 21, 257 (1988)",
)
values = {alpha: 1, y: {1: Rational(4, 5), -1: Rational(1, 5)}}
shown = [average(w[i] ** 2), b]
