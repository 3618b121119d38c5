"""Smooth convex instances whose law bends at many sites: Huber's loss with a small threshold."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sympy import Abs, Piecewise, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu

x, w, e = Coupling("x"), Feature("w"), Quenched("e", mu)
tau = Symbol("tau", positive=True)
r = Sum(x[mu, i] * w[i], (i, 1, N)) - e[mu]
huber = Piecewise((r**2 / 2, Abs(r) <= tau), (tau * Abs(r) - tau**2 / 2, True))
problem = ConvexProblem(Sum(huber, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 200)


@pytest.mark.parametrize("threshold", ["1/10", "1/100"])
def test_newton_follows_the_bends_of_hubers_loss(threshold):
    """Every instance is solved, and a quasi-Newton method of SciPy that starts there finds nothing lower."""
    sim = problem.simulate({alpha: 2, tau: threshold, e: Normal("e", 0, 1)}, N=24, seeds=3)
    assert not sim.failed
    t = 1 / float(threshold[2:])
    for seed, found in zip(sim.seeds, sim.arrays("w"), strict=True):
        instance = sim.setup.instance(24, seed)
        data, targets = instance.couplings[0].reshape(48, 24), np.ravel(instance.quenched[e])

        def objective(v, data=data, targets=targets):
            gap = np.abs(data @ v - targets)
            return np.sum(np.where(gap <= t, gap**2 / 2, t * gap - t**2 / 2)) + v @ v / 200

        lower = minimize(objective, found, method="BFGS", options={"gtol": 1e-10}).fun
        assert objective(found) == pytest.approx(lower, rel=1e-9)
