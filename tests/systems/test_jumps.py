"""The lowest of several minima at zero temperature: what independent computations say of it."""

import json
import warnings
from itertools import product

import jsonschema
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import erf
from scipy.stats import norm
from sympy import Abs, Eq, Heaviside, KroneckerDelta, Max, Min, Ne, Piecewise, Rational, Sum, Symbol, log, sign, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    NotConverged,
    NotConvex,
    P,
    Problem,
    Quenched,
    SeveralSolutions,
    UnstableSolution,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.errors import NegativeEntropy
from symcavity.witness.judge import judge

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]

j = Symbol("j", integer=True)
x, w, s, M = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1)), Global("M")
t, e = Quenched("t", i), Quenched("e", mu)
gamma, theta, beta = (Symbol(name, positive=True) for name in ("gamma", "theta", "beta"))
J = Coupling("J", between=(i, i), reciprocity=1)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
residue = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
TEACHER = {
    t: {0: Rational(4, 5), 2: Rational(1, 5)},
    e: {Rational(1, 2): Rational(1, 2), -Rational(1, 2): Rational(1, 2)},
}

MAGNET = Problem(-Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2)
ERRORS = Problem(Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P)))
price = Piecewise((0, Eq(w[i], 0)), (theta, True))
SUBSET = Problem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(price + gamma * w[i] ** 2 / 2, (i, 1, N)))


def solved(problem, values, select="lowest"):
    theory = problem.cavity(select)
    return theory, theory.solve(values)


def test_the_magnet_of_random_pairs():
    """Sherrington and Kirkpatrick: the energy -sqrt(2/pi), and the entropy -1/(2 pi) of one lowest state."""
    theory, found = solved(MAGNET, {})
    assert float(found[theory.free_energy]) == pytest.approx(-np.sqrt(2 / np.pi), rel=1e-14)
    assert float(found[theory.entropy]) == pytest.approx(-1 / (2 * np.pi), rel=1e-14)
    assert float(found.stability) == np.inf


def test_squares_of_slopes_that_jump_are_infinite_of_their_sign():
    """The square of a delta function: what it is multiplied by says which infinity its average is."""
    found = solved(SUBSET, {alpha: 2, theta: Rational(1, 4), gamma: Rational(1, 20), **TEACHER})[1]
    slope = response(w[i])
    for factor, sided in ((1, np.inf), (-1, -np.inf), (t[i] ** 2, np.inf), (-(t[i] ** 2), -np.inf)):
        assert float(found[average(w[i] ** 2 + factor * slope**2)]) == sided


def test_both_say_that_one_state_is_wrong():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        MAGNET.cavity().solve({})
    told = {w.category: str(w.message) for w in said}
    assert "zero temperature is negative, -0.159" in told[NegativeEntropy]
    assert "lower bound of the minimum" in told[UnstableSolution]


def test_what_is_no_bound_is_not_called_one():
    """Guerra's bound is about pairs of discrete states of one square: no binary weights, and no states of zero."""
    u = Feature("u", values=(-1, 0, 1))
    spins = Problem(-Sum(u[i] * Sum(J[i, j] * u[j], (j, 1, N)), (i, 1, N)) / 2 + Sum(u[i] ** 2, (i, 1, N)) / 10)
    for theory, values in ((ERRORS.cavity(), {alpha: 2}), (spins.cavity(), {})):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            theory.solve(values)
        (told,) = [str(w.message) for w in said if w.category is UnstableSolution]
        assert "no bound of the minimum is known" in told


def test_minima_of_instances():
    """Enumeration by hand; one state is a lower bound (Guerra), annealing an upper one, and says so."""
    exact, cooled = (MAGNET.simulate({}, N=10, seeds=6, method=how) for how in ("enumeration", "annealing"))
    for one, other in zip(exact, cooled, strict=True):
        matrix = one.w.instance.matrix(one.w.field(next(iter(one.w.sent))))
        rows = np.array(list(product((-1, 1), repeat=10)))
        least = float(np.min(-np.einsum("ci,ij,cj->c", rows, matrix, rows) / 2))
        assert -one.measure.logarithm == pytest.approx(least, rel=1e-12)
        assert -other.measure.logarithm >= least - 1e-12
    assert "upper bounds" in str(cooled)
    assert "upper bounds" not in str(exact)


def test_errors_of_binary_weights():
    """The limit of low temperature; below what a count of all choices allows, so that one state is wrong."""
    load = 2
    theory, found = solved(ERRORS, {alpha: load})
    warm, cold = ERRORS.gibbs(beta).cavity(), float(found[theory.free_energy])
    share = average(Heaviside(-ERRORS["h"][mu]))
    gaps = [load * float(warm.solve({alpha: load, beta: b})[share]) - cold for b in (20, 40)]
    assert 0 < gaps[1] < 0.6 * gaps[0] < 0.05
    assert found[theory.entropy] == -np.inf
    least = brentq(lambda f: -f * np.log(f) - (1 - f) * np.log(1 - f) - np.log(2) * (1 - 1 / load), 1e-6, 0.5)
    assert cold / load < least  # fewer errors than the best of 2**N independent choices makes
    assert float(found[share]) == pytest.approx(cold / load, rel=1e-12)


def test_the_best_subset_of_small_instances():
    """All subsets of twelve features: the share of weights that are kept, within the scatter of instances."""
    values = {alpha: 2, theta: Rational(1, 2), gamma: Rational(1, 5)}
    theory, found = solved(SUBSET, {**values, **TEACHER})
    rng, energies, size = np.random.default_rng(5), [], 12
    for _ in range(60):
        matrix = rng.normal(size=(2 * size, size)) / np.sqrt(size)
        teacher = 2.0 * (rng.random(size) < 0.2)
        label = matrix @ teacher + 0.5 * rng.choice([-1, 1], size=2 * size)
        best = np.inf
        for mask in range(1 << size):
            own = [k for k in range(size) if mask >> k & 1]
            a = matrix[:, own]
            v = np.linalg.solve(a.T @ a + 0.2 * np.eye(len(own)), a.T @ label) if own else np.zeros(0)
            best = min(best, np.sum((a @ v - label) ** 2) / 2 + 0.1 * v @ v + 0.5 * len(own))
        energies.append(best / size)
    scatter = np.std(energies) / np.sqrt(len(energies))
    assert abs(np.mean(energies) - float(found[theory.free_energy])) < 4 * scatter


def test_where_nothing_jumps_it_is_the_convex_theory():
    """To forty digits, in two independent ways from the declaration to the numbers."""
    objective = Sum(Max(0, 1 - heard) ** 2, (mu, 1, P)) + Sum(Abs(w[i]) / 3 + w[i] ** 2 / 2, (i, 1, N))
    found, convex = (one(objective).cavity().solve({alpha: 2}, dps=40) for one in (Problem, ConvexProblem))
    for observable in (average(w[i] ** 2), response(w)):
        assert abs(found[observable] - convex[observable]) < 1e-38 * abs(convex[observable])
    assert abs(found.stability - convex.stability) < 1e-36


def concave():
    size, a = Symbol("ell", positive=True), Symbol("a", positive=True)
    penalty = Piecewise((size * Abs(w[i]) - w[i] ** 2 / (2 * a), Abs(w[i]) <= a * size), (a * size**2 / 2, True))
    return Problem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(penalty, (i, 1, N))), size, a


def test_a_concave_penalty_in_both_regimes():
    """MCP (Zhang 2010): where the site is convex, its own proximal map and stability; elsewhere it jumps."""
    problem, size, a = concave()
    theory = problem.cavity()
    at = {alpha: 2, size: Rational(1, 2), **TEACHER}
    smooth, steep = (theory.solve({**at, a: value}) for value in (3, Rational(1, 2)))
    assert float(smooth.stability) < 1
    assert float(steep.stability) == np.inf

    def fixed(flat, keep):
        z = np.linspace(-9, 9, 40001)
        p = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
        error, width = 0.2, 0.5
        for _ in range(600):
            total, power = 2 / (1 + width), 2 * (error + 0.25) / (1 + width) ** 2
            new, slope = 0.0, 0.0
            for mean, share in ((0.0, 0.8), (2.0, 0.2)):
                v = keep(total * mean + np.sqrt(power) * z, total, flat)
                new += share * np.sum(p * (v - mean) ** 2)
                slope += share * np.sum(p * z * v) / np.sqrt(power)
            error, width = (error + new) / 2, (width + slope) / 2
        return error

    def lowest(field, total, flat):
        grid = [np.zeros_like(field), field / total]
        middle = np.sign(field) * np.maximum(np.abs(field) - 0.5, 0) / (total - 1 / flat)
        grid += [np.clip(middle, -flat / 2, flat / 2), np.full_like(field, flat / 2), np.full_like(field, -flat / 2)]
        own = [np.where(np.abs(v) <= flat / 2, np.abs(v) / 2 - v**2 / (2 * flat), flat / 8) for v in grid]
        cost = np.array([c + total * v**2 / 2 - field * v for c, v in zip(own, grid, strict=True)])
        return np.take_along_axis(np.array(grid), np.argmin(cost, axis=0)[None], axis=0)[0]

    error = average((w[i] - t[i]) ** 2)
    assert float(smooth[error]) == pytest.approx(fixed(3.0, lowest), rel=1e-6)
    assert float(steep[error]) == pytest.approx(fixed(0.5, lowest), rel=2e-3)  # of a grid by hand that has jumps


def scad(field, total, size, a):
    """The state of Fan and Li (2001) by hand, where the energy of a site has one minimum; and where it bends."""
    f = np.abs(field)
    middle = ((a - 1) * f - a * size) / ((a - 1) * total - 1)
    kept = np.where(f <= size * (1 + total), np.maximum(f - size, 0) / total, np.minimum(middle, f / total))
    bends = size, size * (1 + total), a * size * total
    return np.sign(field) * np.where(f > bends[2], f / total, kept), bends


def test_scad_where_the_site_has_one_minimum():
    """Its proximal map by hand, integrated from bend to bend; the slope of it is the response."""
    size, a = Symbol("ell", positive=True), Symbol("a", positive=True)
    bent = (2 * a * size * Abs(w[i]) - w[i] ** 2 - size**2) / (2 * (a - 1))
    flat = size**2 * (a + 1) / 2
    penalty = Piecewise((size * Abs(w[i]), Abs(w[i]) <= size), (bent, Abs(w[i]) <= a * size), (flat, True))
    theory = Problem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(penalty, (i, 1, N)), [a > 2]).cavity()
    found = theory.solve({alpha: 2, size: Rational(1, 2), a: Rational(37, 10), **TEACHER})
    assert float(found.stability) < 1
    nodes, weights = np.polynomial.legendre.leggauss(60)
    error, width = 0.2, 0.5
    for _ in range(400):
        total, power = 2 / (1 + width), 2 * (error + 0.25) / (1 + width) ** 2
        new, slope = 0.0, 0.0
        for mean, share in ((0.0, 0.8), (2.0, 0.2)):
            bends = np.array(scad(0.0, total, 0.5, 3.7)[1])
            ends = (np.array([*-bends, *bends]) - total * mean) / np.sqrt(power)
            ends = np.sort([-10, *np.clip(ends, -10, 10), 10])
            z = ((ends[1:] + ends[:-1])[:, None] + (ends[1:] - ends[:-1])[:, None] * nodes) / 2
            p = (ends[1:] - ends[:-1])[:, None] * weights / 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            v = scad(total * mean + np.sqrt(power) * z, total, 0.5, 3.7)[0]
            new += share * np.sum(p * (v - mean) ** 2)
            slope += share * np.sum(p * z * v) / np.sqrt(power)
        error, width = (error + new) / 2, (width + slope) / 2
    assert float(found[average((w[i] - t[i]) ** 2)]) == pytest.approx(error, rel=1e-11)
    assert float(found[response(w)]) == pytest.approx(width, rel=1e-11)


def test_a_memory_has_several_states():
    """Recall is lowest at a small load, and not at a larger one: equal energies at 0.051 (Amit et al. 1985)."""
    stored = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
    theory = Problem(N * M**2 / 2 - M * Sum(s[i], (i, 1, N)) - stored).cavity()

    def gap(load):
        with pytest.raises(SeveralSolutions) as told:
            theory.solve({alpha: load})
        found = [theory.solve({alpha: load}, guess=point) for point in told.value.solutions]
        by_overlap = {round(float(one[M]), 6): float(one[theory.free_energy]) for one in found}
        return by_overlap[max(by_overlap)] - by_overlap[0.0]

    assert gap(Rational(50, 1000)) < 0 < gap(Rational(53, 1000))


@pytest.mark.parametrize("load", [Rational(1, 50), Rational(1, 200), Rational(1, 500)])
def test_recall_at_small_loads(load):
    """The response is as small as exp(-250), and the number of Amit, Gutfreund and Sompolinsky; both mirror images."""
    stored = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
    theory = Problem(N * M**2 / 2 - M * Sum(s[i], (i, 1, N)) - stored).cavity()
    with pytest.raises(SeveralSolutions) as told:
        theory.solve({alpha: load})
    overlaps = [float(point[M]) for point in told.value.solutions]
    assert max(overlaps) == -min(overlaps) == pytest.approx(1, abs=1e-9)
    recalled = theory.solve({alpha: load}, guess=max(told.value.solutions, key=lambda point: float(point[M])))
    a = float(load)
    y = brentq(lambda y: y * (np.sqrt(2 * a) + 2 * np.exp(-y * y) / np.sqrt(np.pi)) - erf(y), 0.9 / np.sqrt(2 * a), 99)
    slope = 2 * y * np.exp(-y * y) / np.sqrt(np.pi) / erf(y)
    assert float(recalled[response(s)]) == pytest.approx(slope, rel=1e-9)


def test_the_minimum_that_is_followed():
    values = {alpha: 2, theta: Rational(1, 4), gamma: 1, **TEACHER}
    (theory, lowest), (other, followed) = (solved(SUBSET, values, select) for select in ("lowest", "local"))
    assert float(lowest[theory.free_energy]) < float(followed[other.free_energy])
    solution = other.derivation["feature.solution"]
    assert solution.data["local"]
    text, follows = (" ".join(one.derivation.to_text().split()) for one in (theory, other))
    assert "followed as the feedback is turned on, is" in follows
    assert "The lowest minimum switches instead at" in follows
    assert "followed as the feedback is turned on, switches instead" in text
    assert not MAGNET.cavity().derivation["feature.solution"].data["others"]


def test_a_memory_that_is_recalled():
    """Instances of a thousand units that begin in a pattern, and turn one by one while that lowers the energy."""
    stored = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
    theory = Problem(N * M**2 / 2 - M * Sum(s[i], (i, 1, N)) - stored).cavity()
    with pytest.raises(SeveralSolutions) as told:
        theory.solve({alpha: Rational(8, 100)})
    expected = max(point[M] for point in told.value.solutions)
    size, overlaps = 1000, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        patterns = rng.choice([-1.0, 1.0], size=(80, size))
        matrix = patterns.T @ patterns / size + 1 / size
        np.fill_diagonal(matrix, 0)
        unit, moving = np.ones(size), True
        while moving:
            moving = False
            for k in rng.permutation(size):
                way = 1.0 if matrix[k] @ unit > 0 else -1.0
                moving, unit[k] = moving or way != unit[k], way
        overlaps.append(unit.mean())
    scatter = np.std(overlaps) / np.sqrt(len(overlaps))
    assert abs(np.mean(overlaps) - expected) < 4 * scatter + 1 / size


@pytest.mark.parametrize("loss", [log(1 + Abs(heard)), Max(0, heard) ** 4 - heard**2])
def test_energies_that_are_not_laid_out(loss):
    with pytest.raises(UnsupportedLaw, match=r"cannot be ordered|not quadratic"):
        Problem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))).cavity()


def test_another_word_than_lowest_or_local():
    with pytest.raises(ValuesError, match="'lowest' or 'local'"):
        MAGNET.cavity(select="best")


def test_a_record_is_read_back():
    from symcavity.writing.exchange import read_derivation, schema

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = SUBSET.cavity("local").derivation.to_json()
    jsonschema.validate(json.loads(text), schema())
    back = read_derivation(text)
    assert back.steps[0].data["lowest"]
    assert all(judge(back[key])[0].ok for key in ("feature.energy", "feature.solution", "feature.jump"))


def test_fewest_errors_at_a_margin_of_zero():
    """Gardner and Derrida: a share Phi(-c) is left wrong, with ``alpha*<z**2>`` one between 0 and c.

    The multiplier of the sphere vanishes, and the equation has changes of sign at 1e18 that are rounding.
    """
    counted = Problem(Sum(Heaviside(-heard), (mu, 1, P)), [Eq(Sum(w[i] ** 2, (i, 1, N)), N)])
    theory = counted.cavity()
    for load in (Rational(21, 10), 4, 20):
        found = theory.solve({alpha: load})
        c = brentq(lambda c, a=float(load): a * (norm.cdf(c) - 0.5 - c * norm.pdf(c)) - 1, 1e-3, 40, xtol=1e-15)
        assert float(found[average(Heaviside(-counted["h"][mu]))]) == pytest.approx(norm.cdf(-c), rel=1e-10)
        assert float(found[average(w[i] ** 2)]) == pytest.approx(1, rel=1e-12)


def test_pairs_that_push_away():
    """The same magnet with the sign of all couplings turned, as the largest cut of a random graph has it."""
    turned = Problem(Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2)
    for theory, values in ((turned.cavity(), {}), (turned.gibbs(beta).cavity(), {beta: Rational(3, 2)})):
        plain = MAGNET.cavity() if not values else MAGNET.gibbs(beta).cavity()
        one, other = (t.solve(values)[t.free_energy] for t in (theory, plain))
        assert float(one) == pytest.approx(float(other), rel=1e-13)


def test_labels_of_both_signs_turn_what_jumps():
    """Labels that are given: at a margin of zero they are a symmetry, and the errors those of Gardner and Derrida."""
    label = Quenched("y", mu)
    counted = Problem(Sum(Heaviside(-label[mu] * heard), (mu, 1, P)), [Eq(Sum(w[i] ** 2, (i, 1, N)), N)])
    found = counted.cavity().solve({alpha: 4, label: {1: Rational(1, 2), -1: Rational(1, 2)}})
    c = brentq(lambda c: 4 * (norm.cdf(c) - 0.5 - c * norm.pdf(c)) - 1, 1e-3, 40, xtol=1e-15)
    wrong = average(Heaviside(-label[mu] * counted["h"][mu]))
    assert float(found[wrong]) == pytest.approx(norm.cdf(-c), rel=1e-10)


def test_the_force_of_a_jump_is_not_measured():
    """Counted errors push nowhere: what messages are is named, where a raw NameError was raised."""
    sim = ERRORS.simulate({alpha: 2}, N=8, seeds=2)
    with pytest.raises(UnsupportedLaw, match=r"do not measure .*lambda\[mu\]"):
        sim[average(ERRORS["lambda"][mu] ** 2)]


def test_how_a_lowest_minimum_varies_is_refused_by_its_name():
    """Of its observables only the energy has a variance, where the solution is stable, as that of the magnet is not."""
    theory = MAGNET.cavity()
    with pytest.raises(UnsupportedLaw, match="lowest of several minima, the variance of the free energy is derived"):
        theory.fluctuations()
    with pytest.raises(UnsupportedLaw, match="derived for stable solutions"):
        theory.solve({}).variance("objective")


def by_hand(load, ridge):
    """A clipped hinge with the labels of a teacher, at its lowest minima: second moment, overlap and response."""
    q, m, answer = 1.0, 0.5, 1.0
    z = np.linspace(-9, 9, 20001)
    p = norm.pdf(z) * (z[1] - z[0])
    for _ in range(150):
        eta = np.sqrt(q) * z
        mean, rest = m * eta / q, np.sqrt(1 - m * m / q)
        up = norm.cdf(mean / rest)
        share = {1: up, -1: 1 - up}
        told = {1: mean * up + rest * norm.pdf(mean / rest)}
        told[-1] = mean - told[1]
        force = {}
        for way in (1, -1):
            field = way * eta
            grid = np.array([np.minimum(field, 0), np.clip(field + answer, 0, 1), np.maximum(field, 1)])
            cost = np.minimum(1, np.maximum(0, 1 - grid)) + (grid - field) ** 2 / (2 * answer)
            at = np.take_along_axis(grid, np.argmin(cost, axis=0)[None], axis=0)[0]
            force[way] = way * (at - field) / answer
        power, own, other = (
            sum(p @ (weight[k] * force[k] ** n * side) for k in (1, -1))
            for weight, n, side in ((share, 2, 1), (share, 1, eta), (told, 1, 1))
        )
        slope, heard = np.linalg.solve([[q, m], [m, 1]], [own, other])
        new = 1 / (ridge - load * slope)
        q = (q + new**2 * (load * power + (load * heard) ** 2)) / 2
        m, answer = (m + new * load * heard) / 2, (answer + new) / 2
    return q, m, answer


def test_the_labels_of_a_teacher_where_the_student_jumps():
    """The response to the teacher holds what the labels do and what the jumps do, by parts on both fields."""
    teacher = Quenched("t", i, law=Normal("t", 0, 1))
    u = Sum(x[mu, i] * teacher[i], (i, 1, N))
    label = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    loss = Sum(Min(1, Max(0, 1 - label[mu] * heard)), (mu, 1, P))
    found = Problem(loss + Sum(w[i] ** 2, (i, 1, N)) / 4).cavity().solve({alpha: 3})
    shown = average(w[i] ** 2), average(w[i] * teacher[i]), response(w)
    assert [float(found[o]) for o in shown] == pytest.approx(by_hand(3, 0.5), rel=1e-3)  # of a grid that has jumps


@pytest.mark.parametrize(
    "price",
    [
        sign(w[i]) ** 2,
        Abs(sign(w[i])),
        Piecewise((1, Ne(w[i], 0)), (0, True)),
        2 * Heaviside(Abs(w[i])) - 1,  # a step is one half where it begins
        Heaviside(w[i] ** 2, 0),
        sign(Abs(w[i])),
    ],
)
def test_a_price_for_what_is_not_zero_however_it_is_spelled(price):
    """One but for a point: its lowest value is there, which only the lowest minimum sees; no convex problem has it."""
    squares = Sum(residue**2, (mu, 1, P)) / 2 + Sum(gamma * w[i] ** 2 / 2, (i, 1, N))
    problem = Problem(squares + theta * Sum(price, (i, 1, N)))
    at = {alpha: 2, theta: Rational(1, 4), gamma: 1, **TEACHER}
    one, other = (p.cavity().solve(at)[average(w[i] ** 2)] for p in (problem, SUBSET))
    assert float(one) == pytest.approx(float(other), rel=1e-12)
    with pytest.raises(NotConvex, match="bends downwards"):
        ConvexProblem(squares + Sum(price, (i, 1, N)))


def test_the_lowest_state_is_no_posterior():
    """A teacher with the law of the states, whose record was no record."""
    k = Feature("k", values=(0, 1, 2))
    sent = Quenched("r", i, law={v: Rational(1, 3) for v in (0, 1, 2)})
    error = Sum(x[mu, i] * (k[i] - sent[i]), (i, 1, N)) - Quenched("xi", mu, law=Normal("xi", 0, 1))[mu]
    problem = Problem(Sum(error**2, (mu, 1, P)) / 2)
    assert "bayes" not in [step.key for step in problem.cavity().derivation.steps]
    assert "bayes" in [step.key for step in problem.gibbs(1).cavity().derivation.steps]


@pytest.mark.parametrize("price", [sqrt(Abs(w[i])), log(1 + Abs(w[i]))])
def test_energies_that_are_no_squares_are_refused(price):
    with pytest.raises(UnsupportedLaw, match="not quadratic"):
        Problem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(price, (i, 1, N))).cavity()


def test_a_count_of_weights_that_are_not_zero_in_either_word():
    counted = Sum(theta * (1 - KroneckerDelta(w[i], 0)) + gamma * w[i] ** 2 / 2, (i, 1, N))
    values = {**TEACHER, alpha: 2, theta: Rational(1, 4), gamma: Rational(1, 20)}
    _, one = solved(Problem(Sum(residue**2, (mu, 1, P)) / 2 + counted), values)
    _, other = solved(SUBSET, values)
    assert one[average(w[i] ** 2)] == pytest.approx(other[average(w[i] ** 2)], rel=1e-12)
    assert one[average(KroneckerDelta(w[i], 0))] == pytest.approx(1 - other[average(Ne(w[i], 0))], rel=1e-12)


@pytest.mark.parametrize("spread", [Rational(1, 10), Rational(1, 100), Rational(1, 10**4)])
def test_the_density_where_a_state_jumps_is_one_exponential(spread):
    """A support that is found, and least squares on it: rho s^2/(alpha - rho). The parts of the exponent overflow."""
    theory = SUBSET.cavity(select="lowest")
    rho, values = Rational(1, 4), {alpha: 2, theta: Rational(1, 5), gamma: 0, e: Normal("e", 0, spread)}
    found = theory.solve({**values, t: {0: 1 - rho, 1: rho}})[average((w[i] - t[i]) ** 2)]
    assert float(found) == pytest.approx(float(rho * spread**2 / (2 - rho)), rel=1e-4)


def test_a_capped_penalty_is_verified():
    """Without its feedback a weight has no curvature: there is no naive theory, and the record says so."""
    capped = Problem(Sum(residue**2, (mu, 1, P)) / 2 + theta * Sum(Min(Abs(w[i]), 1), (i, 1, N))).cavity()
    assert all(verdict.ok for verdict in judge(capped.derivation["symmetry"]))


def test_a_boundary_where_all_is_unstable():
    held = Problem(-Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2 - theta * Sum(s[i], (i, 1, N))).cavity()
    with pytest.raises(NotConverged, match="unstable wherever a solution is found"):
        held.boundary("stability", across={theta: (1, 2)}, values={})


def test_jumps_far_out_are_seen():
    """Random fields of a magnet move the field at which a spin turns."""
    f, g = Quenched("f", i, law={1: Rational(1, 2), -1: Rational(1, 2)}), Symbol("g", positive=True)
    pairs = g * Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
    magnet = Problem(3 * N * M**2 / 4 - 3 * M * Sum(s[i], (i, 1, N)) / 2 - pairs - 4 * Sum(f[i] * s[i], (i, 1, N)) / 5)
    step = magnet.cavity().derivation["stability.average"]
    assert all(verdict.ok for verdict in judge(step))
