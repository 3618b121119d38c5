"""Capacity, radius and dimension of point clouds given as data."""

import numpy as np
import pytest

from symcavity import cloud_geometry, manifold_capacity
from symcavity.shapes import Ball, PointCloud


def sphere_cloud(D, R, N=60, points=400, seed=0, distance=3.0):
    """Points on a sphere about a centre, in random orthogonal directions of R^N."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(N, D + 1)))[0]
    u = rng.normal(size=(points, D))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    u = np.concatenate([u, -u])
    return distance * np.column_stack([R * u, np.ones(len(u))]) @ frame.T


def test_a_dense_sphere_has_the_radius_dimension_and_capacity_of_its_ball():
    g = cloud_geometry([sphere_cloud(2, 0.8)], samples=8192)
    ball = manifold_capacity(Ball(2, 0.8))
    assert g.capacity[0] == pytest.approx(ball.alpha, abs=4 * g.capacity_stderr[0] + 1e-3)
    assert g.dimension[0] == pytest.approx(2, abs=4 * g.dimension_stderr[0] + 1e-2)
    assert g.ambient[0] == 2
    assert g.distance[0] == pytest.approx(3)
    # At the tip the anchor is inside the ball: <|s|^2> is R^2 P(not tip) + <tip part>, so R_M < R.
    t = np.random.default_rng(1).normal(size=(200_000, 3))
    s = Ball(2, 0.8).project(t, 0).anchor[:, :2]
    assert g.radius[0] == pytest.approx(np.sqrt((s**2).sum(axis=1).mean()), abs=5e-3)


def test_the_numbers_are_those_of_the_published_formulas():
    cloud = sphere_cloud(3, 0.6, points=10, seed=4)[:11] * (1 + 0.1 * np.arange(11))[:, None]
    g = cloud_geometry([cloud], kappa=0.3, samples=8192)
    centre = cloud.mean(axis=0)
    deviation = (cloud - centre) / np.linalg.norm(centre)
    left, sizes, _ = np.linalg.svd(deviation, full_matrices=False)
    D = int((sizes > 1e-9).sum())
    points = np.column_stack([left[:, :D] * sizes[:D], np.ones(11)])
    t = np.random.default_rng(3).normal(size=(60_000, D + 1))
    p = PointCloud(points).project(t, 0.3)
    s = p.anchor
    radius = np.sqrt(np.square((s - s.mean(axis=0))[:, :-1] / s[:, -1:]).sum(axis=1).mean())
    unit = s[:, :-1] / np.linalg.norm(s[:, :-1], axis=1, keepdims=True)
    direction = t[:, :-1] / np.linalg.norm(t[:, :-1], axis=1, keepdims=True)
    dimension = D * (unit * direction).sum(axis=1).mean() ** 2
    assert g.capacity[0] == pytest.approx(1 / np.square(p.lam_s).sum(axis=1).mean(), rel=0.02)
    assert g.radius[0] == pytest.approx(radius, rel=0.01)
    assert g.dimension[0] == pytest.approx(dimension, rel=0.01)


def test_rotation_and_scale_change_nothing():
    cloud = sphere_cloud(3, 0.6, points=15, seed=5)
    other = 7 * cloud @ np.linalg.qr(np.random.default_rng(6).normal(size=(60, 60)))[0]
    g, h = cloud_geometry([cloud], samples=4096), cloud_geometry([other], samples=4096)
    for name in ("capacity", "radius", "dimension"):
        gap = getattr(g, name)[0] - getattr(h, name)[0]
        assert abs(gap) < 5 * np.hypot(getattr(g, name + "_stderr")[0], getattr(h, name + "_stderr")[0])


def test_error_bars_are_honest():
    cloud = sphere_cloud(3, 0.6, points=15, seed=5)
    runs = [cloud_geometry([cloud], samples=512, seed=seed) for seed in range(24)]
    for name in ("capacity", "radius", "dimension"):
        scatter = np.std([getattr(g, name)[0] for g in runs], ddof=1)
        claimed = np.mean([getattr(g, name + "_stderr")[0] for g in runs])
        assert 0.5 < scatter / claimed < 1.8


def test_table_and_mixture():
    clouds = [sphere_cloud(2, R, points=20, seed=k) for k, R in enumerate((0.3, 0.9))]
    g = cloud_geometry(clouds, kappa="0.5", samples=512)
    assert len(g) == 2
    assert g.mean_capacity == pytest.approx(2 / (1 / g.capacity).sum())
    assert 0 < g.mean_capacity_stderr < g.capacity_stderr.max()
    text = str(g)
    assert "capacity" in text
    assert len(text.splitlines()) == 4
    assert [row["manifold"] for row in g.rows()] == [0, 1]
    assert g.capacity[1] < g.capacity[0]


def test_a_single_point_is_gardners_problem():
    g = cloud_geometry(np.ones((1, 1, 5)), kappa=0.5, samples=2**14)
    assert g.capacity[0] == pytest.approx(manifold_capacity(Ball(1, 0), kappa=0.5).alpha, rel=2e-3)
    assert g.radius[0] == 0
    assert g.ambient[0] == 0


def test_options_for_the_frame():
    cloud = sphere_cloud(2, 0.5, seed=2)[:7]
    kept = cloud_geometry([cloud], orthogonal=False, samples=512)
    dropped = cloud_geometry([cloud], samples=512)
    assert kept.ambient[0] == 2
    assert dropped.ambient[0] == 3 or dropped.ambient[0] == 2
    pair = cloud_geometry([cloud + 1, cloud - 2 * np.ones(60)], subtract_mean=True, samples=512)
    assert pair.distance[0] == pytest.approx(pair.distance[1])
