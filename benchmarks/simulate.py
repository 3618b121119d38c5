"""Speed of simulated instances, as ratios within one run.

A hard-margin instance through the declaration against the dense active-set solver called by hand on
prepared arrays, and against the same problem through cvxpy; balls, by cutting planes through the declaration,
against a conic solver on prepared matrices; and twenty seeds on two processes against one.  Linear algebra
has one thread, as in worker processes: the script starts itself again to set that.
"""

import os
import sys
import time

import daqp
import numpy as np
from sympy import Eq, Sum, Symbol

from symcavity import Ball, ConvexProblem
from symcavity.derivations.manifold import g
from symcavity.derivations.manifold import problem as manifolds
from symcavity.finite import processes, simulate
from symcavity.model.quantities import Coupling, Feature, N, alpha, average, i, mu

LIMITS = {"hand": 1.5, "cvxpy": 3.0, "cones": 0.25, "processes": 0.65}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def declared():
    x, w, kappa = Coupling("x"), Feature("w"), Symbol("kappa", positive=True)
    return ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
        subject_to=[Sum(x[mu, i] * w[i], (i, 1, N)) >= 1],
        fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    )


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def by_hand(x):
    p, n = x.shape
    nothing, one = np.full(p, 1e30), np.ones(p)
    _, _, flag, _ = daqp.solve(np.eye(n), np.zeros(n), x, nothing, one, np.zeros(p, dtype=np.intc))
    assert flag == 1


def by_cvxpy(x):
    import cvxpy

    w = cvxpy.Variable(x.shape[1])
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(w) / 2), [x @ w >= 1]).solve()


def instances(problem, n, p, repeats):
    """Time both ways in turn on the same instances, so that a busy machine disturbs both alike."""
    load = {alpha: p / n}
    sim = simulate(problem, load, N=n, seeds=repeats)
    seeds = [s.seed for s in sim.feasible]
    prepared = [sim.setup.instance(n, seed).couplings[0] for seed in seeds]
    hand, ours, layer = [], [], []
    for seed, x in zip(seeds, prepared, strict=True):
        hand.append(seconds(lambda x=x: by_hand(x)))
        ours.append(seconds(lambda seed=seed: simulate(problem, load, N=n, seeds=[seed])))
    try:
        layer = [seconds(lambda x=x: by_cvxpy(x)) for x in prepared[:2]]
    except ImportError:
        print("cvxpy is not installed")
    ratio = float(np.median(np.array(ours) / np.array(hand)))
    print(
        f"N={n}, P={p}: by hand {1e3 * min(hand):.1f} ms, declared {1e3 * min(ours):.1f} ms, "
        f"ratio {ratio:.2f}"
    )
    passed = ratio <= LIMITS["hand"]
    if layer:
        slower = min(layer) / min(ours)
        print(f"  cvxpy {1e3 * min(layer):.1f} ms, {slower:.1f} times as slow as the declaration")
        passed &= slower >= LIMITS["cvxpy"]
    return passed


def by_cones(blocks, n):
    """The widest margin of balls of radius one as a second-order cone program."""
    import clarabel
    from scipy import sparse

    matrix = sparse.csc_matrix(np.concatenate([-np.stack([b[-1], *b[:-1]]) for b in blocks]))
    size = len(blocks[0])
    offset = np.tile([-1.0] + [0.0] * (size - 1), len(blocks))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.SecondOrderConeT(size) for _ in blocks]
    solver = clarabel.DefaultSolver(sparse.eye_array(n).tocsc(), np.zeros(n), matrix, offset, cones, settings)
    return seconds(solver.solve)


def balls(n, load, D, repeats):
    """Time both ways in turn on the same instances; the conic solver stops at its own eight digits."""
    values = {alpha: load, g: Ball(D, 1)}
    manifolds.simulate(values, N=20, seeds=1)
    ours, cones = [], []
    for seed in range(repeats):
        ours.append(seconds(lambda seed=seed: manifolds.simulate(values, N=n, seeds=[seed])))
        x = manifolds.simulate(values, N=n, seeds=[seed]).setup.instance(n, seed).couplings
        cones.append(by_cones([np.stack([c[p] for c in x]) for p in range(len(x[0]))], n))
    ratio = float(np.median(np.array(cones) / np.array(ours)))
    print(
        f"balls D={D}, N={n}, P={round(load * n)}: conic solver {1e3 * min(cones):.0f} ms, "
        f"declared {1e3 * min(ours):.0f} ms, ratio {ratio:.1f}"
    )
    return ratio >= LIMITS["cones"]


def workers(problem, n=1000):
    load = {alpha: 1.0}
    with processes(2) as pool:
        simulate(problem, load, N=20, seeds=8, executor=pool)
        one = min(seconds(lambda: simulate(problem, load, N=n, seeds=20)) for _ in range(2))
        two = min(seconds(lambda: simulate(problem, load, N=n, seeds=20, executor=pool)) for _ in range(2))
    print(f"20 seeds at N={n}: one process {one:.2f} s, two {two:.2f} s, ratio {two / one:.2f}")
    return two / one <= LIMITS["processes"]


def main():
    problem = declared()
    passed = [instances(problem, 200, 300, 25), instances(problem, 1000, 1000, 5)]
    passed += [balls(200, 0.3, 2, 5), balls(400, 0.2, 5, 3), workers(problem)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):
        one = dict.fromkeys(THREADS, "1")
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **one})  # noqa: S606 - itself
    sys.exit(main())
