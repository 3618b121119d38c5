"""Least absolute deviations: the regression of medians, with noise and without penalty.

The error of the estimate is ``E_w``.

Values: ``alpha`` above one, the laws of the teacher ``t`` and of the ``noise``. With outliers alone (noise
that is zero for most data) the teacher is found exactly.

N. El Karoui, D. Bean, P. J. Bickel, C. Lim, B. Yu, Proc. Natl. Acad. Sci. 110, 14557 (2013).
"""

from sympy import Abs, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w = Coupling("x"), Feature("w")
t, noise = Quenched("t", i), Quenched("noise", mu)
residual = Sum(x[mu, i] * t[i], (i, 1, N)) + noise[mu] - Sum(x[mu, i] * w[i], (i, 1, N))

problem = ConvexProblem(
    minimize=Sum(Abs(residual), (mu, 1, P)),
    named={Symbol("E_w"): average((w[i] - t[i]) ** 2)},
    name="Least absolute deviations",
    says=(
        "For Gaussian noise the least deviations err more than the least squares: at α = 3 by 0.759 in units of "
        "the noise, against 1/2. Noise that is zero for most data is undone exactly."
    ),
    cite="N. El Karoui, D. Bean, P. J. Bickel, C. Lim, B. Yu, Proc. Natl. Acad. Sci. 110, 14557 (2013)",
)
values = {alpha: 3, t: {1: 1}, noise: Normal("noise", 0, 1)}
shown = [average((w[i] - t[i]) ** 2)]
