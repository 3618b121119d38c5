"""Projections and capacities of manifolds beside general solvers: cvxopt, clarabel, SciPy's quadrature."""

from __future__ import annotations

import numpy as np
from timing import Bench, run

from symcavity import manifold_capacity
from symcavity.shapes import Ball, Ellipsoid, PointCloud

KAPPA = 0.5


def random_cloud(seed: int, D: int, points: int) -> np.ndarray:
    """Return points at unit distance from the origin's hyperplane."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(points, D)) / np.sqrt(D), np.ones(points)])


def clouds(bench: Bench, D: int, points: int, samples: int, compared: int, bound: float) -> None:
    name = f"cloud D={D}, m={points}, beside cvxopt"
    if not bench.needs(name, "cvxopt"):
        return
    from cvxopt import matrix, solvers

    solvers.options.update(show_progress=False, maxiters=1000, abstol=1e-12, reltol=1e-12, feastol=1e-12)
    S = random_cloud(0, D, points)
    t = np.random.default_rng(1).normal(size=(samples, D + 1))
    shape = PointCloud(S)
    v = shape.project(t, KAPPA).v

    def one_by_one() -> None:
        P, G, h = matrix(np.eye(D + 1)), matrix(-S), matrix(np.full(points, -KAPPA))
        for k in range(compared):
            x = np.array(solvers.qp(P, matrix(-t[k]), G, h)["x"])[:, 0]
            assert np.abs(x - v[k]).max() < 1e-6

    bench.race(name, bound, lambda: shape.project(t, KAPPA), one_by_one, repeats=3, units=(samples, compared))


def ellipsoids(bench: Bench, D: int, samples: int, compared: int) -> None:
    name = f"ellipsoid D={D}, beside clarabel"
    if not bench.needs(name, "clarabel"):
        return
    import clarabel
    from scipy.sparse import csc_matrix

    radii = np.linspace(0.1, 1, D)
    shape = Ellipsoid(radii)
    t = np.random.default_rng(1).normal(size=(samples, D + 1))
    v = shape.project(t, KAPPA).v
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

    project = lambda: shape.project(t, KAPPA)  # noqa: E731 - a call to time
    bench.race(name, 1 / 50, project, one_by_one, repeats=3, units=(samples, compared))


def balls(bench: Bench) -> None:
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

    exact = manifold_capacity(shape, kappa=k).alpha

    def pieces(digits: int) -> None:
        tight = {"epsabs": 10.0**-digits, "epsrel": 10.0**-digits}
        total = dblquad(tip, 0, 10, -10, lambda r: k - r / R, **tight)[0]
        total += dblquad(side, 0, 10, lambda r: k - r / R, lambda r: k + R * r, **tight)[0]
        assert abs(total * exact - 1) < 1e-9

    def plain(digits: int) -> None:
        tight = {"epsabs": 10.0**-digits, "epsrel": 10.0**-digits}
        total = dblquad(whole, 0, 10, -10, lambda r: k + R * r, **tight)[0]
        assert abs(total * exact - 1) < 1e-4

    def ours() -> object:
        return manifold_capacity(shape, kappa=k)

    digits = bench.size(12, 10)
    bench.race("ball D=5, beside dblquad on each regime", 1 / 100, ours, lambda: pieces(digits), repeats=9)
    digits = bench.size(12, 5)
    bench.race("ball D=5, beside dblquad on all regimes", 1 / 100, ours, lambda: plain(digits), repeats=1)


def capacity_of_a_cloud(bench: Bench, D: int, points: int) -> None:
    """Nothing else computes this; the bare projections of as many sources stand for the machine."""
    S = random_cloud(2, D, points)
    shape = PointCloud(S)
    got = manifold_capacity(shape, kappa=KAPPA)
    t = np.random.default_rng(3).normal(size=(got.samples, D + 1))
    found = shape.project(t, KAPPA)
    distances = ((found.v - t) ** 2).sum(axis=1)
    error = got.alpha**2 * distances.std() / np.sqrt(got.samples)
    assert abs(1 / distances.mean() - got.alpha) < 5 * np.hypot(error, got.stderr)
    name = f"capacity of a cloud D={D}, m={points}, beside projecting"
    fresh = lambda: manifold_capacity(PointCloud(S), kappa=KAPPA)  # noqa: E731 - a call to time
    bench.race(name, 3, fresh, lambda: shape.project(t, KAPPA), repeats=3)


def main(bench: Bench) -> None:
    if bench.small:
        clouds(bench, 5, 20, 50, 2, 1 / 100)
        ellipsoids(bench, 5, 50, 2)
    else:
        clouds(bench, 10, 100, 8000, 200, 1 / 100)
        clouds(bench, 20, 1000, 4000, 60, 1 / 50)
        ellipsoids(bench, 20, 20000, 300)
    balls(bench)
    capacity_of_a_cloud(bench, *bench.size((20, 1000), (3, 10)))


if __name__ == "__main__":
    run(main)
