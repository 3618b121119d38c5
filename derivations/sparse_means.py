"""The best estimate of a sparse signal: the posterior mean of a Gauss-Bernoulli signal from noisy random projections.

The error of the estimate is ``E_w``.

Values: ``alpha``, the share ``rho`` of entries that are not zero, and the noise ``sigma``. An entry of the
estimate is a product ``z*v`` of a switch and of a Gaussian size; signal and estimate have the same prior, so
that the overlap of the mean with the signal is its squared length.

F. Krzakala, M. Mézard, F. Sausset, Y. F. Sun, L. Zdeborová, Phys. Rev. X 2, 021005 (2012); D. Guo, S. Verdu,
IEEE Trans. Inf. Theory 51, 1983 (2005).
"""

from sympy import Rational, Sum, Symbol, log
from sympy.stats import Normal

from symcavity import Coupling, Feature, N, P, Problem, Quenched, alpha, average, expect, i, mu

x, z, v = Coupling("x"), Feature("z", values=(0, 1)), Feature("v")
rho, sigma = Rational(1, 5), Symbol("sigma", positive=True)
support, size = Quenched("c", i, law={1: rho, 0: 1 - rho}), Quenched("g", i, law=Normal("g", 0, 1))
noise, t = Quenched("xi", mu, law=Normal("xi", 0, 1)), support[i] * size[i]
miss = Sum(x[mu, i] * (z[i] * v[i] - t), (i, 1, N)) - sigma * noise[mu]
prior = v[i] ** 2 / 2 + z[i] * log((1 - rho) / rho)

problem = Problem(
    minimize=Sum(miss**2, (mu, 1, P)) / (2 * sigma**2) + Sum(prior, (i, 1, N)),
    named={Symbol("E_w"): average((expect(z[i] * v[i]) - t) ** 2)},
    name="The posterior mean of a sparse signal",
    says=(
        "The posterior mean has the least mean square error of all estimates: at α = 1 and σ = 1/2 it is 0.097, "
        "where the signal has the variance 0.2."
    ),
    cite=(
        "F. Krzakala, M. Mézard, F. Sausset, Y. F. Sun, L. Zdeborová, Phys. Rev. X 2, 021005 (2012); D. Guo, S. Verdu, "
        "IEEE Trans. Inf. Theory 51, 1983 (2005)"
    ),
).gibbs(1)
values = {alpha: 1, sigma: Rational(1, 2)}
shown = [average((expect(z[i] * v[i]) - t) ** 2), average(expect(z[i] * v[i]) * t), average(z[i])]
