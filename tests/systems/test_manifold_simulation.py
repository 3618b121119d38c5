"""Maximum-margin separation of finite manifolds, solved by cutting planes, against the theory of convex laws."""

import numpy as np
import pytest
from sympy import Rational

from symcavity import Ball, TwoPoints, alpha, average, i, mu, response
from symcavity.derivations.manifold import g, problem, w

daqp = pytest.importorskip("daqp")

N, SEEDS = 80, 12


def max_margin(shape, points, seed):
    """The least-norm weights with every copy of the shape on the right side, by cuts at anchor points.

    Returns the weights, the vectors V (copies x dimension) and the multipliers of the copies.
    """
    rng = np.random.default_rng(seed)
    dim = shape.dimension
    u = rng.standard_normal((points, N, dim)) / np.sqrt(N)
    start = np.zeros((points, dim))
    start[:, -1] = 1.0
    owners = np.arange(points)
    rows = np.einsum("pnd,pd->pn", u, shape.anchor(start))
    for _ in range(80):
        x, _, flag, info = daqp.solve(
            np.eye(N),
            np.zeros(N),
            rows,
            np.full(len(rows), 1e30),
            np.ones(len(rows)),
            np.zeros(len(rows), dtype=np.int32),
        )
        assert flag == 1
        v = np.einsum("pnd,n->pd", u, x)
        gap = 1 - shape.support(v)
        if gap.max() < 1e-6:
            break
        wrong = np.flatnonzero(gap > 1e-6)
        cuts = np.einsum("pnd,pd->pn", u[wrong], shape.anchor(v[wrong]))
        rows, owners = np.vstack([rows, cuts]), np.concatenate([owners, wrong])
    else:
        raise AssertionError("the cuts did not converge")
    multipliers = np.zeros(points)
    np.add.at(multipliers, owners, np.abs(info["lam"]))
    return x, v, multipliers


def measured(shape, load, tip):
    points = round(load * N)
    out = {"norm": [], "supporting": [], "tip": [], "multiplier": []}
    for seed in range(SEEDS):
        x, v, multipliers = max_margin(shape, points, seed)
        active = multipliers > 1e-8
        out["norm"].append(x @ x / N)
        out["supporting"].append(active.mean())
        out["tip"].append((active & tip(v)).mean())
        out["multiplier"].append(multipliers.mean())
    return {k: (np.mean(v), np.std(v, ddof=1) / np.sqrt(SEEDS)) for k, v in out.items()}, Rational(points, N)


def both_touch(v):
    """Both points of a pair at the same distance: along their difference, V has no component."""
    s, t = TwoPoints(Rational(1, 2)).anchor(np.eye(2)), TwoPoints(Rational(1, 2)).anchor(-np.eye(2))
    return np.abs(v @ (s[0] - t[0])) < 1e-5


CASES = {
    "ball": (Ball(2, 1), 0.3, lambda v: np.linalg.norm(v[:, :-1], axis=1) < 1e-3),
    "segment": (Ball(1, 1), 0.5, lambda v: np.abs(v[:, 0]) < 1e-5),
    "pair": (TwoPoints(Rational(1, 2)), 0.6, both_touch),
}


@pytest.mark.parametrize("name", CASES)
def test_the_theory_holds_at_finite_size(name):
    shape, load, tip = CASES[name]
    found, exact_load = measured(shape, load, tip)
    theory = problem.cavity()
    solution = theory.solve({alpha: exact_load, g: shape})
    capacity = float(solution[average(w[i] ** 2)])
    numbers = {
        "norm": capacity,
        "multiplier": float(solution[average(theory.system["lambda"][mu])]),
    }
    from symcavity import manifold_capacity

    regimes = manifold_capacity(shape, kappa=float(capacity**-0.5))
    numbers["tip"] = regimes.fully_supporting
    numbers["supporting"] = regimes.touching + regimes.partially_supporting + regimes.fully_supporting
    for key, expected in numbers.items():
        mean, error = found[key]
        assert abs(mean - expected) < 3 * error + 3 * abs(expected) / N, f"{key}: {mean} ± {error} against {expected}"
    # without the third regime the tips would be empty; and the response would be wrong
    assert found["tip"][0] > 10 * found["tip"][1] > 0
    assert 0 < float(solution[response(w)]) < 1
