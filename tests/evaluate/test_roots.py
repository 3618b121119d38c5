"""Roots without a starting point."""

import mpmath
import numpy as np
import pytest

from symcavity import NotConverged
from symcavity.algebra.precision import mp
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
    with mp.workdps(42), pytest.raises(NotConverged) as caught:
        polish(lambda v: [v * v + 1], [1.4], 30)
    assert caught.value.best is not None


@pytest.mark.parametrize("law", [lambda x: 1 / (x - 1), lambda x: mpmath.sqrt(x - 2) - 1, lambda _: mpmath.nan])
def test_steps_that_leave_the_range_are_no_defect(law):
    with pytest.raises(NotConverged, match="not defined near the root"):
        polish(lambda x: [law(x)], [1.0], 30)
