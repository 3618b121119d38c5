"""Roots without a starting point."""

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from sympy import Abs, Sum, Symbol
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    NotConverged,
    P,
    Quenched,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.algebra.precision import mp
from symcavity.evaluate.evolution import Evolution
from symcavity.evaluate.roots import Unknown, find_roots, newton, polish


def one(f):
    return lambda x: [(f(x), np.abs(f(x)) + 1.0)]


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("root", [1e-12, 1e-3, 1.0, 4e5, 1e14])
def test_one_positive_unknown(root, costly):
    (found,) = find_roots(lambda x: [(x - root, x + root)], [Unknown("x", 1)], costly=costly)
    assert found[0] == pytest.approx(root, rel=1e-12)


def test_a_guess_saves_evaluations():
    calls = []

    def f(x):
        calls.append(x)
        return [(x - 2e7, x + 2e7)]

    list(find_roots(f, [Unknown("x", 1)], costly=True))
    cold = len(calls)
    calls.clear()
    list(find_roots(f, [Unknown("x", 1)], costly=True, guesses=[[2.001e7]]))
    assert len(calls) < cold


def test_all_roots_of_one_unknown():
    roots = find_roots(one(lambda x: (x - 1) * (x - 2) * (x + 3)), [Unknown("x", 0)], costly=False)
    assert sorted(float(r[0]) for r in roots) == pytest.approx([-3, 1, 2])


def test_negative_unknown():
    (found,) = find_roots(one(lambda x: x**3 + 8), [Unknown("x", -1)], costly=False)
    assert found[0] == pytest.approx(-2)


def test_no_root():
    assert list(find_roots(one(lambda x: x * x + 1), [Unknown("x", 0)], costly=False)) == []
    assert list(find_roots(one(lambda x: x + 1), [Unknown("x", 1)], costly=True)) == []


def test_a_pole_is_no_root():
    assert list(find_roots(lambda x: [(1 / (x - 2), np.ones_like(x))], [Unknown("x", 1)], costly=False)) == []


def test_several_unknowns():
    def f(x, y):
        return [(x * y - 6, x * y + 6), (x - y - 1, x + abs(y) + 1)]

    roots = find_roots(f, [Unknown("x", 1), Unknown("y", 0)], costly=False)
    assert [list(map(float, r)) for r in roots] == [pytest.approx([3, 2])]
    near = newton(f, [Unknown("x", 1), Unknown("y", 0)], [2.5, 1.0])
    assert near == pytest.approx([3, 2], rel=1e-14)


def test_polish_reaches_the_precision():
    with mp.workdps(112):
        (x,) = polish(lambda v: [v * v - 2], [1.4], 100)
        assert abs(x - mp.sqrt(2)) < mp.mpf("1e-105")


def test_polish_says_where_it_stopped():
    seen = []
    with mp.workdps(42), pytest.raises(NotConverged) as caught:
        polish(lambda v: seen.append(v) or [v * v + 1], [1.4], 30)
    assert caught.value.best is not None
    assert len(seen) < 60  # steps that go astray are not followed to their end


@pytest.mark.parametrize("law", [lambda x: 1 / (x - 1), lambda x: mpmath.sqrt(x - 2) - 1, lambda _: mpmath.nan])
def test_steps_that_leave_the_range_are_no_defect(law):
    with pytest.raises(NotConverged, match="not defined near the root"):
        polish(lambda x: [law(x)], [1.0], 30)


def test_an_acceleration_that_leads_astray_is_taken_back(monkeypatch):
    """LASSO with a Gauss-Bernoulli teacher: S_w and q from a fixed point that was iterated by hand."""
    x, w, b, g = Coupling("x"), Feature("w"), Quenched("b", i), Quenched("g", i)
    noise, penalty = Quenched("noise", mu), Symbol("penalty", positive=True)
    error = Sum(x[mu, i] * (b[i] * g[i] - w[i]), (i, 1, N)) + noise[mu] / 5
    lasso = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + penalty * Sum(Abs(w[i]), (i, 1, N)))
    values = {alpha: "1/2", penalty: "1/10", b: {0: "9/10", 1: "1/10"}, g: Normal("g", 0, 1), noise: Normal("e", 0, 1)}
    maps, image = [], Evolution.image
    monkeypatch.setattr(Evolution, "image", lambda *args: maps.append(image(*args)) or maps[-1])
    solution = lasso.cavity().solve(values)
    assert len(maps) < 25
    s, gap = 0.0, 0.14
    for _ in range(400):
        k = 0.5 / (1 + s)
        width = np.sqrt([gap / 2, gap / 2 + k * k])
        edge = 0.1 / width
        active = 2 * ndtr(-edge)
        square = (1 + edge**2) * active - 2 * edge * np.exp(-(edge**2) / 2) / np.sqrt(2 * np.pi)
        q, share = (np.array([0.9, 0.1]) @ v for v in (width**2 * square / k**2, active))
        s = (s + (share / (0.5 - share) if share < 0.45 else 9.0)) / 2
        gap = (0.14 - 0.2 * active[1] + q) / (1 + s) ** 2
    assert float(solution[response(w)]) == pytest.approx(s, rel=1e-10)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-10)
