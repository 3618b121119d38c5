"""Roots without a starting point."""

import numpy as np
import pytest
from scipy.special import ndtr
from sympy import Abs, Rational, S, Sum, Symbol, sqrt
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
from symcavity.derivations import gardner
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import LAWS, Pass
from symcavity.evaluate.averages.inversion import invert
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.solving.exact_root import exact_root
from symcavity.evaluate.solving.iterate import root_near
from symcavity.evaluate.solving.newton import wander
from symcavity.evaluate.solving.roots import Unknown, find_roots, starting_points
from symcavity.model.equations import Equation


def one(f):
    return lambda x: [(f(x), np.abs(f(x)) + 1.0)]


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("root", [1e-12, 1e-3, 1.0, 4e5, 1e14])
def test_one_positive_unknown(root, costly):
    (found,) = find_roots(lambda x: [(x - root, x + root)], Unknown("x", 1), costly=costly)
    assert found[0] == pytest.approx(root, rel=1e-12)


def test_a_guess_saves_evaluations():
    calls = []

    def f(x):
        calls.append(x)
        return [(x - 2e7, x + 2e7)]

    list(find_roots(f, Unknown("x", 1), costly=True))
    cold = len(calls)
    calls.clear()
    list(find_roots(f, Unknown("x", 1), costly=True, guess=[2.001e7]))
    assert len(calls) < cold


def test_signs_are_looked_for_with_few_digits_and_roots_found_with_all_of_them():
    """Where few digits leave a doubt, or are none, all are taken: no root is lost, none is added."""
    calls = []

    def fine(x):
        calls.append(x)
        return [((x - 2) * (x - 3e7), (x + 2) * (x + 3e7))]

    def rough(x):
        if x > 1e12:
            raise NotConverged("An average has no value.")
        ((value, size),) = [((x - 2) * (x - 3e7), (x + 2) * (x + 3e7))]
        return [(value - 1e-4 * np.sign(value) * size, size)]  # of the other sign where it is small

    roots = list(find_roots(fine, Unknown("x", 1), costly=True, rough=rough, every=True))
    assert [float(r[0]) for r in roots] == pytest.approx([2, 3e7], rel=1e-13)
    assert sum(x < 1e12 for x in calls) < 40


def test_a_point_at_which_a_law_is_bounded_keeps_no_other_from_its_nodes():
    targets, bounded = np.array([-2.0, 0.5, 3.0]), np.array([[True], [False]])

    def law(x):
        return np.where(bounded, np.tanh(x), x + x**3), np.where(bounded, 1 - np.tanh(x) ** 2, 1 + 3 * x**2)

    with pytest.raises(NotConverged):
        invert(law, targets)
    without, found = invert(law, targets, each=True)
    assert np.isnan(without).all()
    assert np.all(np.abs(found + found**3 - targets) < 0.3)


def test_all_roots_of_one_unknown():
    roots = find_roots(one(lambda x: (x - 1) * (x - 2) * (x + 3)), Unknown("x", 0), costly=False)
    assert sorted(float(r[0]) for r in roots) == pytest.approx([-3, 1, 2])


def test_negative_unknown():
    (found,) = find_roots(one(lambda x: x**3 + 8), Unknown("x", -1), costly=False)
    assert found[0] == pytest.approx(-2)


def test_no_root():
    assert list(find_roots(one(lambda x: x * x + 1), Unknown("x", 0), costly=False)) == []
    assert list(find_roots(one(lambda x: x + 1), Unknown("x", 1), costly=True)) == []


def test_a_pole_is_no_root():
    assert list(find_roots(lambda x: [(1 / (x - 2), np.ones_like(x))], Unknown("x", 1), costly=False)) == []


X, Y, LAWLESS = Symbol("x", positive=True), Symbol("y", real=True), {LAWS: {}}


def frame(*exprs):
    return ClosedMap([Equation(e, S.Zero) for e in exprs], [X, Y][: len(exprs)])


def test_a_load_that_stands_in_averages_alone_is_left_to_newtons_method(monkeypatch):
    """No step of the state evolution searches for it, since no value of it meets the condition on the weights."""
    monkeypatch.setattr("symcavity.evaluate.solving.iterate.where_met", None)
    solution = gardner.problem.cavity().solve({gardner.kappa: Rational(1, 2)})
    assert solution[alpha] == pytest.approx(0.96120505280154, rel=1e-12)


def test_several_unknowns():
    both = frame(X * Y - 6, X - Y - 1)
    ends = {tuple(np.round(x, 9)) for x in wander(both, starting_points(2, 40), LAWLESS)}
    assert ends == {(3.0, 2.0)}
    root = root_near(both, LAWLESS, {X: 2.5, Y: 1.0})
    assert [root.point[s] for s in (X, Y)] == pytest.approx([3, 2], rel=1e-14)


def test_points_without_an_average_do_not_spoil_the_others(monkeypatch):
    def run(self, inputs, laws, grids):
        if np.any(np.asarray(inputs[self.keys.index(X)]) > 100):
            raise NotConverged("An implicit law could not be bracketed.")
        return plain(self, inputs, laws, grids)

    plain = Pass.run
    monkeypatch.setattr(Pass, "run", run)
    ends = list(wander(frame(X * Y - 6, X - Y - 1), starting_points(2, 40), LAWLESS))
    assert len(ends) > 10
    assert np.max(np.abs(np.array(ends) - [3, 2])) < 1e-9


def test_all_roots_of_several_unknowns():
    ends = {tuple(np.round(x, 9)) for x in wander(frame(X - 2, Y**3 - Y * X), starting_points(2, 40), LAWLESS)}
    assert {round(y, 6) + 0.0 for _, y in ends} == {-1.414214, 0.0, 1.414214}


@pytest.mark.parametrize("at", [1e-12, 1.0, 1e14])
def test_a_root_in_double_is_polished_to_any_number_of_digits(at):
    one = frame(X**2 - 2 * Rational(at) ** 2)
    root = root_near(one, LAWLESS, {X: 1.4 * at})
    with mp.workdps(120):
        found = exact_root(one, ExactPass(one.exprs), LAWLESS, root, 100)
        assert abs(mp.convert(found[X]) / (mp.sqrt(2) * mp.mpf(Rational(at).p) / Rational(at).q) - 1) < mp.mpf("1e-100")


def test_polishing_says_where_it_stopped():
    one = frame(X**2 + 1)
    with mp.workdps(50), pytest.raises(NotConverged, match="not polished to 30 digits") as caught:
        exact_root(one, ExactPass(one.exprs), LAWLESS, one.held(LAWLESS, {X: 1.4}), 30)
    assert caught.value.best is not None


@pytest.mark.parametrize("law", [1 / (X - 1), sqrt(X - 2) - 1])
def test_steps_that_leave_the_range_are_no_defect(law):
    with pytest.raises(NotConverged, match="not defined"):
        frame(law).held(LAWLESS, {X: 1.0})


def test_an_acceleration_that_leads_astray_is_taken_back(monkeypatch):
    """LASSO with a Gauss-Bernoulli teacher: S_w and q from a fixed point that was iterated by hand."""
    x, w, b, g = Coupling("x"), Feature("w"), Quenched("b", i), Quenched("g", i)
    noise, penalty = Quenched("noise", mu), Symbol("penalty", positive=True)
    error = Sum(x[mu, i] * (b[i] * g[i] - w[i]), (i, 1, N)) + noise[mu] / 5
    lasso = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + penalty * Sum(Abs(w[i]), (i, 1, N)))
    values = {alpha: "1/2", penalty: "1/10", b: {0: "9/10", 1: "1/10"}, g: Normal("g", 0, 1), noise: Normal("e", 0, 1)}
    maps, image = [], ClosedMap.image
    monkeypatch.setattr(ClosedMap, "image", lambda *args: maps.append(image(*args)) or maps[-1])
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
