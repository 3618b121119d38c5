"""Declarations that the tests of the simulation share, and a measurement of responses."""

import numpy as np
from sympy import Abs, Eq, Max, Sum, Symbol, exp, log, sign

from symcavity import BipartiteSystem, ConvexProblem
from symcavity.finite.minimum import solve_instance
from symcavity.model.averages import average
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import N, P, i, mu
from symcavity.model.quantities import Datum, Feature, Field, Global, Quenched

x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
y, l, t = Quenched("y", mu), Quenched("l", i), Quenched("t", i)
z = Coupling("x", variance=l[i] / N)
kappa, C, gamma = (Symbol(name, positive=True) for name in ("kappa", "C", "gamma"))
b = Global("b")
field = Sum(x[mu, i] * w[i], (i, 1, N))
half_norm = Sum(w[i] ** 2, (i, 1, N)) / 2
on_sphere = [Eq(average(w[i] ** 2), 1 / kappa**2)]

hard = ConvexProblem(half_norm, [field >= 1], on_sphere)
soft = ConvexProblem(half_norm + C * Sum(xi[mu], (mu, 1, P)), [field >= 1 - xi[mu], xi[mu] >= 0])
hinge = ConvexProblem(half_norm + C * Sum(Max(0, 1 - field), (mu, 1, P)))
biased = ConvexProblem(half_norm, [y[mu] * (field + b) >= 1], on_sphere)
tied = ConvexProblem(half_norm + N * b**2 / 2, [y[mu] * (field + b) >= 1])
uneven = ConvexProblem(half_norm, [Sum(z[mu, i] * w[i], (i, 1, N)) >= 1], on_sphere)
positive = ConvexProblem(half_norm, [field >= 1, w[i] >= 0])
band = ConvexProblem(half_norm, [field >= 1, field <= 3, Abs(w[i]) <= 2])
exact = ConvexProblem(half_norm, [Eq(field, y[mu])])
lasso = ConvexProblem(Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2 + C * Sum(Abs(w[i]), (i, 1, N)))
pursuit = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(field, y[mu])])
logistic = ConvexProblem(half_norm + C * Sum(log(1 + exp(-y[mu] * field)), (mu, 1, P)))
teacher = sign(Sum(x[mu, i] * t[i], (i, 1, N)))
taught = ConvexProblem(half_norm + C * Sum(log(1 + exp(-teacher * field)), (mu, 1, P)))
squared_hinge = ConvexProblem(half_norm + C * Sum(Max(0, 1 - field) ** 2, (mu, 1, P)))
mixed = ConvexProblem(half_norm + C * Sum(log(1 + exp(-field)), (mu, 1, P)), [w[i] <= 1, w[i] >= -1])

phi, a, rho = Coupling("phi", variance=1), Quenched("a", i), Quenched("rho", i)
Delta, eps, lam, h = Feature("Delta"), Datum("eps"), Datum("lam"), Field("h")
ridge = BipartiteSystem(
    [
        Eq(eps[mu], Sum(phi[mu, i] * Delta[i], (i, 1, N))),
        Eq(Delta[i], a[i] - rho[i] / gamma * Sum(phi[mu, i] * eps[mu], (mu, 1, P))),
    ]
)
margin = BipartiteSystem(
    [Eq(w[i], Sum(lam[mu] * x[mu, i], (mu, 1, P))), Eq(h[mu], field - 1)], [Complementary(lam[mu], h[mu])]
)

SIGNS = {1: 0.5, -1: 0.5}
VALUES = {
    "hard": (hard, {"alpha": 0.5}),
    "soft": (soft, {"alpha": 2, C: 1}),
    "hinge": (hinge, {"alpha": 2, C: 1}),
    "biased": (biased, {"alpha": 0.5, y: {1: 0.8, -1: 0.2}}),
    "tied": (tied, {"alpha": 0.5, y: {1: 0.8, -1: 0.2}}),
    "uneven": (uneven, {"alpha": 0.5, l: {"1/5": 0.5, "9/5": 0.5}}),
    "positive": (positive, {"alpha": 0.3}),
    "band": (band, {"alpha": 0.5}),
    "exact": (exact, {"alpha": 0.5, y: SIGNS}),
    "lasso": (lasso, {"alpha": 0.5, C: 0.1, y: SIGNS}),
    "pursuit": (pursuit, {"alpha": 0.5, y: SIGNS}),
    "logistic": (logistic, {"alpha": 2, C: 1, y: SIGNS}),
    "taught": (taught, {"alpha": 2, C: 1, t: SIGNS}),
    "squared_hinge": (squared_hinge, {"alpha": 2, C: 1}),
    "mixed": (mixed, {"alpha": 2, C: 5}),
    "ridge": (ridge, {"alpha": 2, a: 1, rho: 1, gamma: 3}),
    "margin": (margin, {"alpha": 0.5}),
}


def assert_contradicts(evidence):
    """Hold a proof of infeasibility against its own definition."""
    rows, offset, y = evidence.program.matrix.toarray(), evidence.program.offset, evidence.multipliers
    assert np.all(y[~evidence.program.equal] >= 0)
    assert np.max(np.abs(rows.T @ y)) < 1e-9
    assert y @ offset < -1e-3


def response_by_source(system, instance, kind, site, *, field=0, size=1e-6):
    """Measure the response to the source of one site by solving the instance again, from scratch, on either side.

    By kind, an array of shape (sites, variables).
    """
    row = instance.system.laws[kind].carrier[field]
    ends = []
    for sign_ in (1.0, -1.0):
        instance.source[kind][site, row] += sign_ * size
        try:
            solved = solve_instance(system, instance)
        finally:
            instance.source[kind][site, row] -= sign_ * size
        assert solved.state is not None, f"the instance with seed {instance.seed} is infeasible"
        ends.append(solved.state)
    return {s: (up - ends[1].site[s]) / (2 * size) for s, up in ends[0].site.items()}
