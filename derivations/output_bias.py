"""Perceptron capacity with a free bias and unequal classes.

Points of the class ``1`` are a fraction ``f`` of all, those of the class ``-1`` the rest.

Values: ``f``, and the margin ``kappa`` or the load ``alpha``, of which the other is found.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, Global, N, Quenched, alpha, average, i, mu

x = Coupling("x")
w, b = Feature("w"), Global("b")
kappa, f = Symbol("kappa", positive=True), Symbol("f", positive=True)
y = Quenched("y", mu, law={1: f, -1: 1 - f})

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[y[mu] * (Sum(x[mu, i] * w[i], (i, 1, N)) + b) >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Perceptron capacity with a bias and unequal classes",
    says=(
        "A free bias makes unequal classes easier to separate than equal ones: without a margin the capacity is "
        "2.67 points per weight for classes of 4/5 and 1/5, and 2 for halves."
    ),
    cite="E. Gardner, J. Phys. A 21, 257 (1988)",
)
values = {alpha: 1, f: Rational(4, 5)}
shown = [average(w[i] ** 2), b]
