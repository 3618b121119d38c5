"""Speed of simulated instances, as ratios within one run.

A hard-margin instance through the declaration against the dense active-set solver called by hand on
prepared arrays, and against the same problem through cvxpy; and twenty seeds on two processes against
one.  Run with one linear-algebra thread, as the worker processes do: the script sets that itself.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import statistics
import sys
import time

import daqp
import numpy as np
from sympy import Eq, Sum, Symbol

from symcavity.declare.problem import ConvexProblem
from symcavity.declare.quantities import Coupling, Feature, N, alpha, average, i, mu
from symcavity.simulate import processes, simulate

LIMITS = {"hand": 1.5, "cvxpy": 3.0, "processes": 0.65}


def declared():
    x, w, kappa = Coupling("x"), Feature("w"), Symbol("kappa", positive=True)
    return ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
        subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1],
        fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    )


def median_time(function, repeats):
    times = []
    for k in range(repeats):
        start = time.perf_counter()
        function(k)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_hand(arrays):
    x = arrays
    p, n = x.shape
    _, _, flag, _ = daqp.solve(
        np.eye(n), np.zeros(n), x, np.full(p, 1e30), np.ones(p), np.zeros(p, dtype=np.intc)
    )
    assert flag == 1


def by_cvxpy(x):
    import cvxpy

    w = cvxpy.Variable(x.shape[1])
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w) / 2), [x @ w >= 1]).solve()


def main():
    problem = declared()
    passed = True
    for n, p, repeats in ((200, 300, 15), (1000, 1000, 5)):
        load = {alpha: p / n}
        sim = simulate(problem, load, N=n, seeds=repeats)
        prepared = [sim.setup.instance(n, s.seed).couplings[0] for s in sim.samples if s.feasible]
        hand = median_time(lambda k, a=prepared: by_hand(a[k % len(a)]), repeats)
        ours = median_time(lambda k, n=n, load=load: simulate(problem, load, N=n, seeds=[k]), repeats)
        print(f"N={n}, P={p}: by hand {1e3 * hand:.1f} ms, declared {1e3 * ours:.1f} ms, ratio {ours / hand:.2f}")
        passed &= ours / hand <= LIMITS["hand"]
        try:
            layer = median_time(lambda k, a=prepared: by_cvxpy(a[k % len(a)]), 2)
        except ImportError:
            print("  cvxpy is not installed")
            continue
        print(f"  cvxpy {1e3 * layer:.1f} ms, {layer / ours:.1f} times as slow as the declaration")
        passed &= layer / ours >= LIMITS["cvxpy"]
    n, load = 700, {alpha: 1.0}
    with processes(2) as pool:
        simulate(problem, load, N=20, seeds=8, executor=pool)
        one = median_time(lambda _: simulate(problem, load, N=n, seeds=20), 1)
        two = median_time(lambda _: simulate(problem, load, N=n, seeds=20, executor=pool), 1)
    print(f"20 seeds at N={n}: one process {one:.2f} s, two {two:.2f} s, ratio {two / one:.2f}")
    passed &= two / one <= LIMITS["processes"]
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
