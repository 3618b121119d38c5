"""Smooth energies with several minima, at zero temperature: the lowest wins, and switches where two are equally low."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sympy import DiracDelta, Heaviside, Rational, S, Sum, Symbol, log

from symcavity import (
    Coupling,
    Feature,
    N,
    NegativeEntropy,
    P,
    Problem,
    Quenched,
    UnstableSolution,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM
from symcavity.sites.lowest import smooth
from symcavity.witness.judge import judge

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
t, e = Quenched("t", i), Quenched("e", mu)
c, gamma = Symbol("c", positive=True), Symbol("gamma", positive=True)
half = Rational(1, 2)
residue = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
TEACHER = {t: {1: half, -1: half}, e: {1: half, -1: half}}
ROBUST = {t: {1: half, -1: half}, e: {Rational(3, 10): half, 3: half}}
Z = np.linspace(-9, 9, 4001)
SHARE = np.exp(-(Z**2) / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])


def well():
    """Regression towards a teacher of signs, with weights in a double well."""
    return Problem(Sum(residue**2, (mu, 1, P)) / 2 + c * Sum((w[i] ** 2 - 1) ** 2, (i, 1, N)))


def split():
    """A loss that is flat far out: with a strong answer a datum is fitted or given up."""
    return Problem(Sum(residue**2 / (1 + residue**2), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def lowest(energy, field, reach):
    """The lowest state at each of some fields, on a fine grid of states, and on a finer one around each."""
    rough = np.linspace(-reach, reach, 8001)
    found = np.array([rough[np.argmin(energy(rough, v))] for v in field])
    for width in (2 * reach / 8000, 2 * reach / 8000 / 100):
        near = found[:, None] + width * np.linspace(-1, 1, 201)
        found = near[np.arange(len(field)), np.argmin(energy(near, field[:, None]), axis=1)]
    return found


def jump_between(energy, states, field):
    """Fields at which the state moves by much more than beside: the average is cut there, by bisection."""
    out = []
    for k in np.flatnonzero(np.abs(np.diff(states)) > 0.3):
        a, b, ends = field[k], field[k + 1], (states[k], states[k + 1])
        for _ in range(40):
            middle = (a + b) / 2
            here = lowest(energy, np.array([middle]), 6.0)[0]
            a, b = (middle, b) if abs(here - ends[0]) < abs(here - ends[1]) else (a, middle)
        out.append(b)
    return out


def averaged(energy, width, functions, reach=6.0):
    """Averages over a Gaussian field of functions of the lowest state and the field, cut where the state jumps."""
    scan = np.linspace(-8, 8, 801) * width
    cuts = jump_between(energy, lowest(energy, scan, reach), scan)
    edges = np.array(sorted([*(np.linspace(-8, 8, 17) * width), *cuts]))
    z, u = np.polynomial.legendre.leggauss(24)
    field = ((edges[1:] + edges[:-1]) / 2)[:, None] + (np.diff(edges) / 2)[:, None] * z
    share = (np.diff(edges) / 2)[:, None] * u * np.exp(-((field / width) ** 2) / 2) / np.sqrt(2 * np.pi) / width
    field, share = field.ravel(), share.ravel()
    found = lowest(energy, field, reach)
    return [float(np.sum(share * f(found, field))) for f in functions]


@pytest.mark.parametrize("barrier", [0.2, 1.0])
def test_a_double_well_by_search(barrier):
    """The closed equations with averages over states that a search finds, the mean response by parts."""
    load = 0.5
    found = well().cavity().solve({alpha: half, c: Rational(str(barrier)), **TEACHER})
    S_w, q = (float(found[k]) for k in (response(w), average((w[i] - t[i]) ** 2)))
    stiff = load / (1 + S_w)  # losses are squares: lambda = -(h - e)/(1 + S)
    width = np.sqrt(load * (q + 1)) / (1 + S_w)

    def energy(v, field):  # at a teacher of one; the other sign is its mirror image
        return barrier * (v**2 - 1) ** 2 + stiff * (v - 1) ** 2 / 2 - field * v

    told = averaged(energy, width, [lambda v, _: (v - 1) ** 2, lambda v, f: v * f / width**2], reach=4.0)
    assert told == pytest.approx([q, S_w], rel=2e-6)
    assert not np.isfinite(float(found.stability))


def test_a_loss_that_gives_data_up_by_search():
    """A datum at 0.3 is fitted at all fields, or given up at some: message and response by search."""
    found = split().cavity().solve({alpha: 1, gamma: Rational(1, 5), **ROBUST})
    S_w, q = (float(found[k]) for k in (response(w), average((w[i] - t[i]) ** 2)))
    S_l = q_l = 0.0
    for shift in (0.3, 3.0):

        def energy(h, field, shift=shift):
            d = h - shift
            return d**2 / (1 + d**2) + (h - field) ** 2 / (2 * S_w)

        def message(h, field):
            return (h - field) / S_w

        both = [lambda h, f: message(h, f) ** 2, lambda h, f: message(h, f) * f / q]
        one, two = averaged(energy, np.sqrt(q), both, 12.0)
        q_l, S_l = q_l + one / 2, S_l + two / 2
    assert float(found[response(w)]) == pytest.approx(1 / (0.2 - S_l), rel=3e-6)
    assert q == pytest.approx(S_w**2 * (q_l + 0.04), rel=3e-6)


def test_a_steep_well_has_signs():
    """Weights that a steep well holds at plus and minus one: as discrete states, up to the inverse height."""
    discrete = Problem(Sum((Sum(x[mu, i] * (s[i] - t[i]), (i, 1, N)) - e[mu]) ** 2, (mu, 1, P)) / 2).cavity()
    wanted = float(discrete.solve({alpha: half, **TEACHER})[average((s[i] - t[i]) ** 2)])
    theory = well().cavity()
    solved = [theory.solve({alpha: half, c: height, **TEACHER}) for height in (1000, 4000)]
    at = [float(found[average((w[i] - t[i]) ** 2)]) for found in solved]
    assert abs(at[1] - wanted) < abs(at[0] - wanted) / 3 < 1e-4
    assert (4 * at[1] - at[0]) / 3 == pytest.approx(wanted, rel=1e-7)


def test_where_nothing_jumps_the_convex_theory_holds():
    """A price that is convex but not known to be: the same numbers as from averages that know nothing of jumps."""
    theory = Problem(Sum(residue**2, (mu, 1, P)) / 2 + c * Sum(log(1 + w[i] ** 2), (i, 1, N))).cavity()
    found = theory.solve({alpha: 3, c: half, **TEACHER})
    S_w, q = (float(found[k]) for k in (response(w), average((w[i] - t[i]) ** 2)))
    stiff, width = 3 / (1 + S_w), np.sqrt(3 * (q + 1)) / (1 + S_w)
    states = np.linspace(-30, 30, 400001)
    field = stiff * (states - 1) + states / (1 + states**2)
    assert np.all(np.diff(field) > 0)
    v = np.interp(width * Z, field, states)
    slope = 1 / (stiff + (1 - v**2) / (1 + v**2) ** 2)
    assert [float(SHARE @ (v - 1) ** 2), float(SHARE @ slope)] == pytest.approx([q, S_w], rel=1e-6)
    assert float(found.stability) < 1


def test_digits():
    """The place of a switch, and averages that are cut there, to forty digits: the residual with more of them."""
    found = well().cavity().solve({alpha: half, c: half, **TEACHER}, dps=40)
    assert found.residual < 1e-38


def test_messages_are_not_passed_where_states_may_jump():
    """Local responses do not hold what a jump does to the average: the record claims no algorithm."""
    assert not [step for step in well().cavity().derivation if step.rule in ("messages", "state_evolution")]


def test_events():
    """The share of weights in the upper well, by symmetry one half; more are on the side of the teacher."""
    theory = well().cavity()
    found = theory.solve({alpha: half, c: half, **TEACHER})
    assert float(found[average(Heaviside(w[i]))]) == pytest.approx(0.5, rel=1e-10)
    assert float(found[average(Heaviside(w[i] * t[i]))]) > 0.5


def test_instances():
    """Energies and squares of instances, by descent from many starts: upper bounds of the minimum, marked as such."""
    problem = well()
    values = {alpha: half, c: Rational(1, 5), **TEACHER}
    theory = problem.cavity()
    sim = problem.simulate(values, N=60, seeds=10)
    assert "upper bounds" in str(sim)
    found = theory.solve(values)
    for observable in (average(w[i] ** 2), average((w[i] - t[i]) ** 2)):
        estimate = sim[observable]
        assert abs(estimate.mean - float(found[observable])) < 4 * estimate.stderr + 0.05


def test_a_small_instance_is_the_lowest_of_all():
    """Five weights: the configuration that is found against a search from each vertex of a grid."""
    sim = well().simulate({alpha: 1, c: half, **TEACHER}, N=5, seeds=3)
    for one in sim:
        (couplings,) = [one.w.instance.matrix(f) for k in one.w.heard for f in one.w.weighed(k).values()]
        teacher, noise = one.w.quenched[t[i]], one.w.quenched[e[mu]]

        def cost(v, couplings=couplings, teacher=teacher, noise=noise):
            d = couplings @ (v - teacher) - noise
            return d @ d / 2 + 0.5 * np.sum((v**2 - 1) ** 2)

        best = min(minimize(cost, start, method="BFGS").fun for start in product((-1.0, 0.0, 1.0), repeat=5))
        (row,) = one.measure.x.values()
        assert cost(row[0]) == pytest.approx(best, rel=1e-6)


# -- what is broken on purpose ---------------------------------------------------------------------


def step_of(problem, key):
    return problem.cavity().derivation[key]


def failed(*keys, problem=well):
    derivation = problem().cavity().derivation
    return {key for key in keys if any(v.ok is False for v in judge(derivation[key]))}


KEYS = ("feature.solution", "feature.jump", "feature.response", "closure.S_w", "stability.average")


def test_nothing_fails_unbroken():
    assert not failed(*KEYS)
    assert not failed("datum.solution", "datum.jump", "datum.response", "closure.q_lambda", problem=split)


def test_the_second_lowest_minimum(monkeypatch):
    """A well in which the minima are compared at other energies than those of the site."""
    right = smooth.SmoothMinimum.solve

    def tilted(self, problem):
        found = right(self, problem)
        (region,) = found.solved.regions
        return replace(found, solved=replace(found.solved, well=found.solved.well + region.implicit[0] ** 3 / 2))

    monkeypatch.setattr(smooth.SmoothMinimum, "solve", tilted)
    assert {"feature.jump", "closure.q_w_minus_t"} <= failed("feature.jump", "closure.q_w_minus_t")


def test_the_delta_dropped_from_the_mean(monkeypatch):
    monkeypatch.setattr(smooth.SmoothEnsemble, "_jumps", lambda *_: False)
    assert {"feature.response", "closure.S_w"} <= failed("feature.response", "closure.S_w")


def test_the_delta_dropped_from_the_record():
    step = step_of(well(), "feature.jump")
    claims = (Equation(k.lhs, k.rhs.replace(DiracDelta, lambda *_: S.Zero)) for k in step.claims)
    assert not any(v.ok for v in judge(replace(step, claims=tuple(claims))))


def test_what_instances_of_a_lowest_minimum_do_not_measure():
    """The response of a message is named as it was asked for, and not by the force that it is."""
    gap = e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
    problem = Problem(Sum(log(1 + gap**2), (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)))
    simulation = problem.simulate({alpha: 1, e: TEACHER[t]}, N=10, seeds=2)
    (message,) = (q for q in problem.cavity().system.laws[DATUM].unknowns if q.family.name == "lambda")
    with pytest.raises(UnsupportedLaw, match=r"of a lowest minimum do not measure response\(lambda\[mu\]\)"):
        simulation[average(response(message))]


def test_instances_do_not_depend_on_units():
    """Slopes are small beside those at the start: an absolute bound left all states at zero in large units."""
    sizes = []
    for unit in (Rational(1, 10**9), 1, 10**9):
        gap = (e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) / unit
        problem = Problem(Sum(log(1 + gap**2), (mu, 1, P)) / 2 + Sum((w[i] / unit) ** 2, (i, 1, N)))
        simulation = problem.simulate({alpha: 2, e: {unit: half, -3 * unit: half}}, N=10, seeds=2)
        sizes.append(simulation[average(w[i] ** 2)].mean / float(unit) ** 2)
    assert sizes == pytest.approx([sizes[1]] * 3, rel=1e-6)
    assert sizes[1] > 1e-3


@pytest.mark.parametrize(
    ("shape", "unit"), [("well", Rational(1, 10**9)), ("well", 10**9), ("split", 10**3), ("split", 10**9)]
)
def test_the_theory_does_not_depend_on_units(shape, unit):
    """Numbers of a declaration are given like values: no solution was found where they were far from one."""
    gap, v = residue / unit, w[i] / unit
    if shape == "well":
        problem = Problem(Sum(gap**2, (mu, 1, P)) / 2 + Sum((v**2 - 1) ** 2, (i, 1, N)) / 2)
        plain, values = well().cavity().solve({alpha: half, c: half, **TEACHER}), {alpha: half, **TEACHER}
    else:
        problem = Problem(Sum(gap**2 / (1 + gap**2), (mu, 1, P)) + Sum(v**2, (i, 1, N)) / 10)
        values = {alpha: 1, **ROBUST}
        plain = split().cavity().solve({gamma: Rational(1, 5), **values})
    laws = {q: {k * unit: p for k, p in values[q].items()} for q in (t, e)}
    found = problem.cavity().solve({**values, **laws})
    for observable, power in ((average(w[i] ** 2), 2), (average(w[i] * t[i]), 2), (response(w), 2)):
        assert float(found[observable]) == pytest.approx(float(plain[observable]) * float(unit) ** power, rel=1e-10)


@pytest.mark.parametrize("unit", [Rational(1, 10**9), 10**9])
def test_energies_do_not_depend_on_units(unit):
    """The same, for the unit of the energy; a value that is missing is named, and no number."""
    problem = Problem(unit * (Sum(residue**2, (mu, 1, P)) / 2 + Sum((w[i] ** 2 - 1) ** 2, (i, 1, N)) / 2))
    theory, values = problem.cavity(), {alpha: half, **TEACHER}
    found, plain = theory.solve(values), well().cavity().solve({c: half, **values})
    for observable, power in ((average(w[i] ** 2), 0), (response(w), -1)):
        assert float(found[observable]) == pytest.approx(float(plain[observable]) * float(unit) ** power, rel=1e-10)
    energies = found[theory.free_energy], plain[well().cavity().free_energy]
    assert float(energies[0]) == pytest.approx(float(energies[1]) * float(unit), rel=1e-10)
    assert str(found).splitlines()[0] == str(plain).splitlines()[0].replace("c = 1/2, ", "")
    with pytest.raises(ValuesError, match=r"alpha = P/N is not given.*\n.*values for alpha, e, t"):
        theory.solve(TEACHER)
