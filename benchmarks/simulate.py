"""Simulated instances beside solvers called by hand on prepared arrays, and two processes beside one.

The widest margin beside the dense active-set solver and beside cvxpy; soft margins and LASSO beside the
coordinate descent of scikit-learn; balls, by cutting planes through the declaration, beside a conic solver.
Ours draws, solves and reads; the others only solve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Abs, Sum, Symbol
from sympy.stats import Normal
from timing import Bench, run

from symcavity import Ball, ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.derivations import gardner, soft_margin
from symcavity.derivations.manifold import g
from symcavity.derivations.manifold import problem as manifolds
from symcavity.finite.executors import processes

x, w = Coupling("x"), Feature("w")


def instances(
    problem: Any, values: dict[Any, Any], n: int, repeats: int
) -> tuple[dict[int, Any], dict[int, float]]:
    """Return instances with a solution, and what average(w^2) is in each."""
    sim = problem.simulate(values, N=n, seeds=repeats)
    solved = sim.feasible
    assert solved, "no instance has a solution"
    drawn = {s.seed: sim.setup.instance(n, s.seed) for s in solved}
    return drawn, {s.seed: float(np.mean(s["w"] ** 2)) for s in solved}


def widest_margin(bench: Bench, n: int, p: int, repeats: int) -> None:
    name = f"widest margin, N={n}, P={p}, beside daqp"
    if not bench.needs(name, "daqp"):
        return
    import daqp

    values = {alpha: p / n}
    drawn, norms = instances(gardner.problem, values, n, repeats)

    def by_hand(seed: int) -> None:
        X = drawn[seed].couplings[0]
        nothing, one = np.full(p, 1e30), np.ones(p)
        v, _, flag, _ = daqp.solve(np.eye(n), np.zeros(n), X, nothing, one, np.zeros(p, dtype=np.intc))
        assert flag == 1
        assert abs(np.mean(v**2) / norms[seed] - 1) < 1e-6

    def declared(seed: int) -> None:
        gardner.problem.simulate(values, N=n, seeds=[seed])

    bench.race(name, 1.5, declared, by_hand, cases=drawn)
    name = f"widest margin, N={n}, P={p}, beside cvxpy"
    if not bench.needs(name, "cvxpy"):
        return
    import cvxpy

    def by_cvxpy(seed: int) -> None:
        v = cvxpy.Variable(n)
        task = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(v) / 2), [drawn[seed].couplings[0] @ v >= 1])
        task.solve()
        assert abs(np.mean(v.value**2) / norms[seed] - 1) < 1e-2

    bench.race(name, 1 / 3, declared, by_cvxpy, cases=list(drawn)[:3])


def descent(
    bench: Bench,
    name: str,
    problem: Any,
    values: dict[Any, Any],
    n: int,
    repeats: int,
    fit: Callable[[Any], np.ndarray],
) -> None:
    """Race a declaration against coordinate descent, which takes an instance and returns the weights."""
    drawn, norms = instances(problem, values, n, repeats)
    for seed, instance in drawn.items():
        assert abs(np.mean(fit(instance) ** 2) / norms[seed] - 1) < 1e-4
    ours = lambda seed: problem.simulate(values, N=n, seeds=[seed])  # noqa: E731 - a call to time
    name = f"{name}, N={n}, beside coordinate descent"
    bench.race(name, 3, ours, lambda seed: fit(drawn[seed]), cases=drawn)


def support_vectors(bench: Bench, n: int, load: int, repeats: int) -> None:
    if not bench.needs("soft margin beside coordinate descent", "sklearn"):
        return
    from sklearn.svm import LinearSVC

    def fit(instance: Any) -> np.ndarray:
        X = instance.couplings[0]
        y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)  # two classes; a point and its mirror image are one
        svm = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
        return np.asarray(svm.fit(X * y[:, None], y).coef_[0])

    values = {alpha: load, soft_margin.C: 1}
    descent(bench, f"soft margin, P={load * n}", soft_margin.problem, values, n, repeats, fit)


def sparse_weights(bench: Bench, n: int, repeats: int) -> None:
    """LASSO with a Gauss-Bernoulli teacher and noise."""
    if not bench.needs("LASSO beside coordinate descent", "sklearn"):
        return
    from sklearn.linear_model import Lasso

    b, v, noise = Quenched("b", i), Quenched("v", i), Quenched("noise", mu)
    penalty, sigma = Symbol("lambda", positive=True), Symbol("sigma", positive=True)
    labels = Sum(x[mu, i] * b[i] * v[i], (i, 1, N)) + sigma * noise[mu]
    loss = Sum((labels - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2
    problem = ConvexProblem(minimize=loss + penalty * Sum(Abs(w[i]), (i, 1, N)))
    normal = Normal("normal", 0, 1)
    teacher = {b: {0: "9/10", 1: "1/10"}, v: normal, noise: normal}
    values = {alpha: "1/2", penalty: "1/10", sigma: "1/5", **teacher}

    def fit(instance: Any) -> np.ndarray:
        X, given = instance.couplings[0], instance.quenched
        y = X @ (given[b] * given[v]) + 0.2 * given[noise]
        lasso = Lasso(alpha=0.1 / len(y), fit_intercept=False, tol=1e-8, max_iter=10**5)
        return np.asarray(lasso.fit(X, y).coef_)

    descent(bench, "LASSO", problem, values, n, repeats, fit)


def balls(bench: Bench, n: int, load: float, D: int, repeats: int) -> None:
    """The widest margin of balls as a second-order cone program; Clarabel stops at its own eight digits."""
    name = f"balls D={D}, N={n}, P={round(load * n)}, beside clarabel"
    if not bench.needs(name, "clarabel"):
        return
    import clarabel
    from scipy import sparse

    values = {alpha: load, g: Ball(D, 1)}
    drawn, norms = instances(manifolds, values, n, repeats)

    def solver(seed: int) -> Any:
        couplings = drawn[seed].couplings  # the centre is the last
        rows = np.stack([-couplings[-1], *(-c for c in couplings[:-1])], axis=1)
        count, size, _ = rows.shape
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        offset = np.tile([-1.0] + [0.0] * (size - 1), count)
        cones = [clarabel.SecondOrderConeT(size) for _ in range(count)]
        matrix = sparse.csc_matrix(rows.reshape(count * size, n))
        unit = sparse.eye_array(n).tocsc()
        return clarabel.DefaultSolver(unit, np.zeros(n), matrix, offset, cones, settings)

    # each runs once, and one run is not counted
    prepared = {seed: [solver(seed), solver(seed)] for seed in drawn}

    def by_cones(seed: int) -> None:
        v = np.array(prepared[seed].pop().solve().x)
        assert abs(np.mean(v**2) / norms[seed] - 1) < 1e-4

    bench.race(name, 4, lambda seed: manifolds.simulate(values, N=n, seeds=[seed]), by_cones, cases=drawn)


def workers(bench: Bench, n: int, seeds: int) -> None:
    with processes(2) as pool:

        def one() -> None:
            gardner.problem.simulate({alpha: 1.0}, N=n, seeds=seeds)

        def two() -> None:
            gardner.problem.simulate({alpha: 1.0}, N=n, seeds=seeds, executor=pool)

        bench.race(f"{seeds} seeds at N={n}, two processes beside one", 0.65, two, one, repeats=3)


def main(bench: Bench) -> None:
    if bench.small:
        widest_margin(bench, 20, 30, 2)
        support_vectors(bench, 20, 2, 1)
        sparse_weights(bench, 20, 1)
        balls(bench, 20, 0.3, 2, 1)
        workers(bench, 10, 2)
        return
    widest_margin(bench, 200, 300, 25)
    widest_margin(bench, 1000, 1000, 5)
    support_vectors(bench, 500, 2, 7)
    sparse_weights(bench, 1000, 5)
    balls(bench, 200, 0.3, 2, 5)
    balls(bench, 400, 0.2, 5, 3)
    workers(bench, 1000, 20)


if __name__ == "__main__":
    run(main)
