"""One class: the hyperplane that keeps most of the data from the origin.

The share of outliers is ``n_out``.

Values: ``alpha``, the share ``nu`` of outliers, the means ``m`` of the features. ``nu`` bounds the share of
outliers from above and that of support vectors from below.

B. Schölkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, Neural Comput. 13, 1443 (2001).
"""

from sympy import Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, Quenched, alpha, average, i, mu

m, xi, rho = Quenched("m", i), Datum("xi"), Global("rho")
x, w = Coupling("x", mean=m[i] / N), Feature("w")
nu = Symbol("nu", positive=True)

problem = ConvexProblem(
    minimize=Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(xi[mu], (mu, 1, P)) / nu - P * rho,
    subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= rho - xi[mu], xi[mu] >= 0, nu < 1],
    named={Symbol("n_out"): average(xi[mu] > 0)},
    name="One class",
    says=(
        "The parameter ν bounds the share of outliers from above and that of support vectors from below: at α = "
        "2, ν = 1/4 and the mean 2, 13 % of the data are outliers and 39 % are support vectors."
    ),
    cite=(
        "B. Schölkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, Neural Comput. 13, "
        "1443 (2001)"
    ),
)
values = {alpha: 2, nu: Rational(1, 4), m: {2: 1}}
shown = [average(w[i] ** 2), average(m[i] * w[i]), rho, average(xi[mu] > 0)]
