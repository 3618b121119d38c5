"""The resolvent of a correlated random matrix: both sides have a covariance.

The trace of the resolvent per dimension is ``G``.

Values: ``alpha``, the distance ``z`` below the spectrum, the variances ``l`` of the features and ``s`` of the
data. The response of ``w`` is the normalized trace of ``(z + x'x)**(-1)``; for ``l = s = 1`` it is the law of
Marchenko and Pastur.

V. A. Marchenko, L. A. Pastur, Math. USSR Sb. 1, 457 (1967); R. Couillet, M. Debbah, Random Matrix Methods for
Wireless Communications (Cambridge University Press, 2011), on covariances of both sides.
"""

from sympy import Eq, Rational, Sum, Symbol

from symcavity import Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu, response

l, s, g = Quenched("l", i, positive=True), Quenched("s", mu, positive=True), Quenched("g", i)
x, w, u = Coupling("x", variance=l[i] * s[mu] / N), Feature("w"), Datum("u")
z = Symbol("z", positive=True)

problem = System(
    equations=[
        Eq(u[mu], Sum(x[mu, i] * w[i], (i, 1, N))),
        Eq(z * w[i], g[i] - Sum(x[mu, i] * u[mu], (mu, 1, P))),
    ],
    named={Symbol("G"): average(response(w[i]))},
    name="The resolvent of a correlated random matrix",
    says=(
        "The normalised trace G of the resolvent follows from two scalar equations, one for the covariance of "
        "each side. Without correlations it is the law of Marchenko and Pastur."
    ),
    cite=(
        "V. A. Marchenko, L. A. Pastur, Math. USSR Sb. 1, 457 (1967); R. Couillet, M. Debbah, Random "
        "Matrix Methods for Wireless Communications (Cambridge University Press, 2011)"
    ),
)
half = Rational(1, 2)
values = {alpha: 2, z: half, l: {half: half, 2: half}, s: {1: Rational(2, 3), 3: Rational(1, 3)}, g: {1: 1}}
shown = [average(response(w[i])), average(w[i] ** 2)]
