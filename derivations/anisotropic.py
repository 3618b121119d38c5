"""Perceptron capacity for points whose features differ in variance (a covariance in its eigenbasis).

Values: the spectrum ``l`` (an array, a finite law or a distribution) and ``kappa`` or ``alpha``.

The response differs from feature to feature, so the rescaling that saves the naive analysis for identical
features does not exist.  The naive mean field gives the capacity of an effective dimension, the
participation ratio (sum l)^2 / sum l^2 of the paper's Conclusion (equation 159); the cavity theory does not:
at kappa -> 0 it gives Cover's alpha = 2 whatever the spectrum.  The ratio is only the limit of large kappa.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, alpha, average, i, mu

l = Quenched("l", i)
x = Coupling("x", variance=l[i] / N)
w = Feature("w")
kappa = Symbol("kappa", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1],
    fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    name="Perceptron capacity with anisotropic features",
    says=(
        "Features of unequal variance leave the capacity at zero margin as it is, two points per feature, "
        "whatever their spectrum. The participation ratio of the variances, which the naive analysis puts in the "
        "place of the number of features, does not count them."
    ),
    cite=(
        "D. G. Clark and H. Sompolinsky, Simplified derivations for high-dimensional convex learning "
        "problems, SciPost Phys. Lect. Notes, arXiv:2412.01110 (2024)"
    ),
)
half = Rational(1, 2)
values = {alpha: Rational(4, 5), l: {Rational(1, 5): half, Rational(9, 5): half}}
shown = [average(w[i] ** 2), average(l[i] * w[i] ** 2)]
