"""Projections and capacities of manifolds beside general solvers, as ratios in one run.

Run as ``python benchmarks/manifolds.py``; needs cvxopt and clarabel.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np
from timing import best

from symcavity import manifold_capacity
from symcavity.shapes import Ball, Ellipsoid, PointCloud

KAPPA = 0.5


def report(name: str, ours: float, theirs: float, target: float) -> None:
    ratio = f"{theirs / ours:7.0f} x  (target {target:.0f})"
    print(f"{name:39s} {ours * 1e6:9.1f} us {theirs * 1e6:9.1f} us {ratio}")


def clouds(D: int, points: int, samples: int, compared: int, target: float) -> None:
    from cvxopt import matrix, solvers

    solvers.options.update(show_progress=False, maxiters=1000, abstol=1e-12, reltol=1e-12, feastol=1e-12)
    rng = np.random.default_rng(0)
    S = np.column_stack([rng.normal(size=(points, D)) / np.sqrt(D), np.ones(points)])
    t = rng.normal(size=(samples, D + 1))
    shape = PointCloud(S)
    v = shape.project(t, KAPPA).v
    ours = best(lambda: shape.project(t, KAPPA)) / samples

    def one_by_one() -> None:
        P, G, h = matrix(np.eye(D + 1)), matrix(-S), matrix(np.full(points, -KAPPA))
        for k in range(compared):
            x = np.array(solvers.qp(P, matrix(-t[k]), G, h)["x"])[:, 0]
            assert np.abs(x - v[k]).max() < 1e-6

    report(f"cloud D={D}, m={points}, beside cvxopt", ours, best(one_by_one) / compared, target)


def ellipsoids(D: int, samples: int, compared: int) -> None:
    import clarabel
    from scipy.sparse import csc_matrix

    radii = np.linspace(0.1, 1, D)
    shape = Ellipsoid(radii)
    t = np.random.default_rng(1).normal(size=(samples, D + 1))
    v = shape.project(t, KAPPA).v
    ours = best(lambda: shape.project(t, KAPPA)) / samples
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = np.zeros((D + 1, D + 1))
    A[0, -1] = -1.0
    A[1:, :-1] = -np.diag(radii)
    P, A, b = csc_matrix(np.eye(D + 1)), csc_matrix(A), np.append(-KAPPA, np.zeros(D))
    cones = [clarabel.SecondOrderConeT(D + 1)]

    def one_by_one() -> None:
        for k in range(compared):
            x = clarabel.DefaultSolver(P, -t[k], A, b, cones, settings).solve().x
            assert np.abs(np.array(x) - v[k]).max() < 1e-2

    report(f"ellipsoid D={D}, beside clarabel", ours, best(one_by_one) / compared, 50)


def balls() -> None:
    from scipy.integrate import dblquad

    shape, R, k = Ball(5, 1), 1.0, KAPPA
    weight = 3 * np.pi

    def density(z: float, r: float) -> float:
        return r**4 * np.exp(-(r * r + z * z) / 2) / weight

    def tip(z: float, r: float) -> float:
        return (r * r + (k - z) ** 2) * density(z, r)

    def side(z: float, r: float) -> float:
        return (R * r + k - z) ** 2 / (1 + R * R) * density(z, r)

    def whole(z: float, r: float) -> float:
        return 0.0 if z > k + R * r else side(z, r) if z > k - r / R else tip(z, r)

    tight = {"epsabs": 1e-12, "epsrel": 1e-12}
    found = []

    def pieces() -> None:
        total = dblquad(tip, 0, 10, -10, lambda r: k - r / R, **tight)[0]
        total += dblquad(side, 0, 10, lambda r: k - r / R, lambda r: k + R * r, **tight)[0]
        found.append(1 / total)

    def plain() -> None:
        found.append(1 / dblquad(whole, 0, 10, -10, lambda r: k + R * r, **tight)[0])

    ours = best(lambda: [manifold_capacity(shape, kappa=k) for _ in range(50)]) / 50
    report("ball D=5, beside dblquad on each regime", ours, best(pieces), 100)
    report("ball D=5, beside dblquad on all regimes", ours, best(plain, 1), 100)
    exact = manifold_capacity(shape, kappa=k).alpha
    print("relative differences:", *(f"{abs(x / exact - 1):.1e}" for x in (found[0], found[-1])))


def capacity_of_a_cloud() -> None:
    rng = np.random.default_rng(2)
    shape = PointCloud(np.column_stack([rng.normal(size=(1000, 20)) / np.sqrt(20), np.ones(1000)]))
    start = time.perf_counter()
    got = manifold_capacity(shape, kappa=KAPPA)
    print(
        f"capacity of a cloud D=20, m=1000: {got.alpha:.6f} +- {got.stderr:.1e}, {got.samples} sources, "
        f"{time.perf_counter() - start:.2f} s"
    )


if __name__ == "__main__":
    print(f"{'':39s} {'ours':>12s} {'other':>12s} {'ratio':>9s}")
    clouds(10, 100, 8000, 200, 100)
    clouds(20, 1000, 4000, 60, 50)
    ellipsoids(20, 20000, 300)
    balls()
    capacity_of_a_cloud()
