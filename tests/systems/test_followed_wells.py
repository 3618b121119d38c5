"""Smooth energies with several minima: the one that a state reaches downhill from its minimum without feedback."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol, log, tanh

from symcavity import (
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    UnstableSolution,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.algebra.lowest import FollowedAverage
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.sites.lowest import smooth
from symcavity.witness.judge import judge
from symcavity.witness.lowest import SearchedSite

pytestmark = pytest.mark.filterwarnings(f"ignore::{UnstableSolution.__module__}.{UnstableSolution.__name__}")

x, w = Coupling("x"), Feature("w")
t, e = Quenched("t", i), Quenched("e", mu)
c, gamma = Symbol("c", positive=True), Symbol("gamma", positive=True)
half = Rational(1, 2)
residue = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
TEACHER = {t: {1: half, -1: half}, e: {1: half, -1: half}}
ROBUST = {t: {1: half, -1: half}, e: {Rational(3, 10): half, 3: half}}
GRID = np.linspace(-30, 30, 240001)


@cache  # a problem remembers its theories; one that is derived with a broken rule is declared anew
def split():
    """A loss that is flat far out."""
    return Problem(Sum(residue**2 / (1 + residue**2), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


@cache
def skew():
    """Weights in a double well of which one side is lower."""
    well = (w[i] ** 2 - 1) ** 2 + w[i] ** 3 / 2
    return Problem(Sum(residue**2, (mu, 1, P)) / 2 + c * Sum(well, (i, 1, N)))


def descended(slope, start, places):
    """The first place on a grid, downhill from a start, at which a slope changes its sign; linear in between."""
    k, values = int(np.searchsorted(places, start)), slope(places)
    down = slope(np.array([start]))[0] > 0
    if down:
        below = np.flatnonzero(values[:k] <= 0)
        j = below[-1]
    else:
        above = np.flatnonzero(values[k:] >= 0)
        j = k + above[0] - 1
    a, b = values[j], values[j + 1]
    return places[j] - a * (places[j + 1] - places[j]) / (b - a)


def averaged(state, width, functions, cuts):
    """Averages over a Gaussian field of functions of a state and the field."""
    edges = np.array(sorted({*(np.linspace(-8, 8, 33) * width), *cuts}))
    z, u = np.polynomial.legendre.leggauss(10)
    field = (((edges[1:] + edges[:-1]) / 2)[:, None] + (np.diff(edges) / 2)[:, None] * z).ravel()
    share = ((np.diff(edges) / 2)[:, None] * u).ravel()
    share = share * np.exp(-((field / width) ** 2) / 2) / np.sqrt(2 * np.pi) / width
    states = np.array([state(f) for f in field])
    return [float(np.sum(share * f(states, field))) for f in functions]


def jumps_of(state, width):
    """Fields at which a state jumps, by bisection."""
    scan, out = np.linspace(-8, 8, 401) * width, []
    states = np.array([state(f) for f in scan])
    for k in np.flatnonzero(np.abs(np.diff(states)) > 0.2):
        a, b, ends = scan[k], scan[k + 1], states[k : k + 2]
        for _ in range(30):
            middle = (a + b) / 2
            here = state(middle)
            a, b = (middle, b) if abs(here - ends[0]) < abs(here - ends[1]) else (a, middle)
        out.append(b)
    return out


def test_a_loss_is_followed_from_its_cavity_field():
    """A datum that is far off stays so until its minimum ends: message and response by descent on a grid."""
    theory = split().cavity(select="local")
    values = {alpha: 1, gamma: Rational(1, 5), **ROBUST}
    found, other = theory.solve(values), split().cavity().solve(values)
    S_w, q = (float(found[k]) for k in (response(w), average((w[i] - t[i]) ** 2)))
    S_l = q_l = 0.0
    for shift in (0.3, 3.0):

        def state(field, shift=shift):
            def slope(h):
                d = h - shift
                return 2 * d / (1 + d**2) ** 2 + (h - field) / S_w

            return descended(slope, field, GRID)

        both = [lambda h, f: ((h - f) / S_w) ** 2, lambda h, f: (h - f) / S_w * f / q]
        one, two = averaged(state, np.sqrt(q), both, jumps_of(state, np.sqrt(q)))
        q_l, S_l = q_l + one / 2, S_l + two / 2
    assert float(found[response(w)]) == pytest.approx(1 / (0.2 - S_l), rel=1e-5)
    assert q == pytest.approx(S_w**2 * (q_l + 0.04), rel=1e-5)
    assert abs(q - float(other[average((w[i] - t[i]) ** 2)])) > 0.1
    assert float(found[theory.free_energy]) > float(other[split().cavity().free_energy]) + 0.001
    assert not np.isfinite(float(found.stability))


def test_a_double_well_is_followed_from_its_lower_side():
    """Without feedback the wells switch elsewhere than with it: overlap and response by descent on a grid."""
    theory = skew().cavity(select="local")
    found = theory.solve({alpha: 1, c: half, **TEACHER})
    S_w, q = (float(found[k]) for k in (response(w), average((w[i] - t[i]) ** 2)))
    stiff, width = 1 / (1 + S_w), np.sqrt(q + 1) / (1 + S_w)
    places = np.linspace(-6, 6, 120001)
    energy = ((places**2 - 1) ** 2 + places**3 / 2) / 2
    told = np.zeros(2)
    for side in (1, -1):

        def state(field, side=side):
            start = places[np.argmin(energy - (field + stiff * side) * places)]

            def slope(v):
                return 2 * v * (v**2 - 1) + 3 * v**2 / 4 + stiff * (v - side) - field

            return descended(slope, start, places)

        rows = [lambda v, _, side=side: (v - side) ** 2, lambda v, f: v * f / width**2]
        told += np.array(averaged(state, width, rows, jumps_of(state, width))) / 2
    assert told == pytest.approx([q, S_w], rel=1e-5)
    lowest = skew().cavity().solve({alpha: 1, c: half, **TEACHER})
    assert abs(float(lowest[average((w[i] - t[i]) ** 2)]) - q) > 1e-4


def test_where_nothing_jumps_both_are_one():
    values = {alpha: 1, gamma: 2, **ROBUST}
    one, two = (split().cavity(select=word).solve(values) for word in ("lowest", "local"))
    for observable in (response(w), average((w[i] - t[i]) ** 2)):
        assert float(one[observable]) == pytest.approx(float(two[observable]), rel=1e-13)


@pytest.mark.parametrize(("problem", "parameter", "load"), [(split, gamma, 1), (skew, c, half)])
def test_how_it_moves_with_a_parameter(problem, parameter, load):
    """Jumps move, of ends of minima and of places of rest too: derivatives against differences."""
    theory, q = problem().cavity(select="local"), average((w[i] - t[i]) ** 2)
    values = {alpha: load, parameter: Rational(1, 5), **(ROBUST if problem is split else TEACHER)}
    step = Rational(1, 400)
    a, b, d, e_ = (float(theory.solve({**values, parameter: Rational(1, 5) + k * step})[q]) for k in (1, -1, 2, -2))
    assert float(theory.sensitivity(q, parameter, values)) == pytest.approx((8 * (a - b) - (d - e_)) / 0.03, rel=1e-5)


def test_a_place_of_rest_that_repels():
    """A hill in a parabola: states go to the side on which they begin, and both programs say where that is."""
    y, a, s = (Symbol(name, real=True) for name in ("y", "a", "s"))
    # begins at z; the whole slope is y - s*tanh(y - a) - z: at rest at a, which repels where s is above one
    made = FollowedAverage(y, y, y - s * tanh(y - a), well=y**2 / 2)
    at = {a: mp.mpf("0.3"), s: mp.mpf("1.5")}

    def direct(a, s):
        z, u = np.polynomial.legendre.leggauss(200)
        total = 0.0
        for low, high in ((-9.0, a), (a, 9.0)):
            field = (low + high) / 2 + (high - low) / 2 * z
            side = np.sign(field - a)
            v = a + side * 6.0
            for _ in range(200):  # outside of both places at which it is flat
                v = field + s * np.tanh(v - a)
            total += np.sum(v * u * (high - low) / 2 * np.exp(-(field**2) / 2) / np.sqrt(2 * np.pi))
        return total

    assert float(Compiled(made, "numpy")(at)) == pytest.approx(direct(0.3, 1.5), rel=1e-10)
    with mp.workdps(25):
        one = Compiled(made, "mpmath")(at)
    with mp.workdps(35):
        other = Compiled(made, "mpmath")(at)
        assert abs(one - other) < mp.mpf(10) ** -24
    assert float(one) == pytest.approx(direct(0.3, 1.5), rel=1e-10)


def test_what_has_no_minimum_without_feedback_is_refused():
    price = c * Sum(log(1 + w[i] ** 2), (i, 1, N))
    problem = Problem(Sum(residue**2, (mu, 1, P)) / 2 + price)
    with pytest.raises(UnsupportedLaw, match="has no minimum where the force is beyond 0"):
        problem.cavity(select="local")


@pytest.mark.parametrize("problem", [split, skew])
def test_the_record(problem):
    """Every step holds; it says where the other minimum switches, and is read back."""
    theory = problem().cavity(select="local")
    for step in theory.derivation:
        if step.rule in ("site_energy", "implicit", "followed"):
            assert all(v.ok for v in judge(step)), step.key
    text = " ".join(theory.derivation.to_text().split())
    assert "The lowest minimum jumps instead at the slope of a common tangent" in text
    assert "jumps instead where" in " ".join(problem().cavity().derivation.to_text().split())


def test_a_start_elsewhere(monkeypatch):
    """States that begin in another well than that of their energy: the record says so, and its witness sees it."""
    right = smooth.SmoothMinimum.solve

    def tilted(self, problem):
        found = right(self, problem)
        if found.solved.well is None:
            return found
        (x, _) = found.solved.branches[0].implicit
        return replace(found, solved=replace(found.solved, well=found.solved.well + x / 5))

    assert all(v.ok for v in judge(skew().cavity(select="local").derivation["feature.jump"]))
    monkeypatch.setattr(smooth.SmoothMinimum, "solve", tilted)
    assert not all(v.ok for v in judge(skew.__wrapped__().cavity(select="local").derivation["feature.jump"]))


def test_a_start_at_the_minimum_that_is_reached(monkeypatch):
    """What begins at its lowest minimum stays there: a witness that looks elsewhere does not agree."""
    step = split().cavity(select="local").derivation["datum.jump"]
    assert all(v.ok for v in judge(step))
    monkeypatch.setattr(SearchedSite, "meant", lambda self, field: (self.lowest(field)[0] + 1.0, 0.0, 1e-7))
    assert not all(v.ok for v in judge(step))
