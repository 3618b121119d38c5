"""Gibbs measures over discrete states, beyond hard constraints and with jumps: identities, instances, refusals."""

import warnings

import numpy as np
import pytest
from sympy import Eq, Heaviside, Rational, Sum, Symbol, log
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    Global,
    N,
    NegativeEntropy,
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
    expect,
    i,
    mu,
    response,
)
from symcavity.witness.judge import judge

beta, field, sigma = (Symbol(name, positive=True) for name in ("beta", "H", "sigma"))
j = Symbol("j", integer=True)
x, s = Coupling("x"), Feature("s", values=(-1, 1))
J = Coupling("J", between=(i, i), reciprocity=1)
pairs = Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
MAGNET = Problem(-pairs - field * Sum(s[i], (i, 1, N)))
M = Global("M")
stored = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
MEMORY = Problem(N * M**2 / 2 - M * Sum(s[i], (i, 1, N)) - stored)  # M is the overlap with the pattern (1, 1, ...)
ERRORS = Problem(Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P)))
w, t = Feature("w"), Quenched("t", i, law=Normal("t", 0, 1))
u = Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
h = Sum(x[mu, i] * w[i], (i, 1, N))
TAUGHT = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [y[mu] * h >= 0])
z, v = Feature("z", values=(0, 1)), Feature("v")
c, g = Quenched("c", i, law={1: Rational(1, 5), 0: Rational(4, 5)}), Quenched("g", i, law=Normal("g", 0, 1))
xi = Quenched("xi", mu, law=Normal("xi", 0, 1))
miss = Sum(x[mu, i] * (z[i] * v[i] - c[i] * g[i]), (i, 1, N)) - sigma * xi[mu]
SPARSE = Problem(
    Sum(miss**2, (mu, 1, P)) / (2 * sigma**2) + Sum(v[i] ** 2 / 2 + z[i] * log(4), (i, 1, N))
)


def gaussian(function):
    """The average over a standard Gaussian, by the trapezoidal rule."""
    zs = np.linspace(-12, 12, 4001)
    weights = np.exp(-(zs**2) / 2)
    return float(np.sum(function(zs) * weights) / np.sum(weights))


@pytest.fixture(scope="module")
def magnet():
    return MAGNET.gibbs(beta)


def test_the_magnet_by_hand(magnet):
    """The overlap is the fixed point of ``<tanh**2>``, and the free energy that of Sherrington and Kirkpatrick."""
    q = 0.5
    for _ in range(400):
        q = gaussian(lambda zs, q=q: np.tanh(0.9 * (np.sqrt(q) * zs + 0.5)) ** 2)
    theory = magnet.cavity()
    solution = theory.solve({beta: Rational(9, 10), field: Rational(1, 2)})
    assert float(solution[average(expect(s[i]) ** 2)]) == pytest.approx(q, rel=1e-10)
    assert float(solution[average(s[i] ** 2)]) == pytest.approx(1, rel=1e-14)
    logarithm = gaussian(lambda zs: np.log(2 * np.cosh(0.9 * (np.sqrt(q) * zs + 0.5))))
    assert float(solution[theory.free_energy]) == pytest.approx(-logarithm / 0.9 - 0.9 * (1 - q) ** 2 / 4, rel=1e-10)


def test_the_line_of_almeida_and_thouless(magnet):
    """Stability ends where ``beta**2 <sech**4>`` is one, which is held against quadrature."""
    line = magnet.cavity().boundary("stability", across={beta: (1, 3)}, values={field: Rational(1, 2)})
    end = float(line.value)
    q = 0.5
    for _ in range(400):
        q = gaussian(lambda zs, q=q: np.tanh(end * (np.sqrt(q) * zs + 0.5)) ** 2)
    assert end**2 * gaussian(lambda zs: np.cosh(end * (np.sqrt(q) * zs + 0.5)) ** -4.0) == pytest.approx(1, rel=1e-9)
    with pytest.warns(UnstableSolution):
        magnet.cavity().solve({beta: 2, field: Rational(1, 2)})


def test_the_entropy_is_the_slope_of_the_free_energy(magnet):
    theory, at = magnet.cavity(), {field: Rational(1, 2)}
    near = (Rational(101, 200), Rational(99, 200))
    up, down = (float(theory.solve({**at, beta: b})[theory.free_energy]) for b in near)
    slope = (up - down) / (200 / 101 - 200 / 99)
    assert float(theory.solve({**at, beta: Rational(1, 2)})[theory.entropy]) == pytest.approx(-slope, rel=1e-4)


def test_the_entropy_of_binary_weights_vanishes():
    """Krauth and Mezard: beyond a load of 0.833 no binary weights are without an error, and the entropy is negative."""
    theory = ERRORS.gibbs(beta).cavity()
    below = theory.solve({alpha: Rational(83, 100), beta: 14})
    with pytest.warns(NegativeEntropy, match="there is none"):
        above = theory.solve({alpha: Rational(84, 100), beta: 14})
    assert float(below[theory.entropy]) > 0 > float(above[theory.entropy])
    assert below.remarks == ()
    assert "entropy" in str(above)


def memories(load, cold):
    """The solutions of a network that has stored random patterns, of which one is recalled."""
    theory = MEMORY.gibbs(beta).cavity()
    with pytest.raises(SeveralSolutions) as several:
        theory.solve({alpha: load, beta: cold})
    return theory, several.value.solutions


def test_memories_by_hand():
    """Amit, Gutfreund and Sompolinsky at a temperature: recall, its mirror image, and a glass beside them."""
    load, cold, m, q = 0.05, 4.0, 0.97, 0.95
    for _ in range(400):
        noise = np.sqrt(load * q) / (1 - cold * (1 - q))
        m, q = (gaussian(lambda zs, p=p: np.tanh(cold * (noise * zs + m)) ** p) for p in (1, 2))  # noqa: B023
    found = [float(point[M]) for point in memories(Rational(1, 20), 4)[1]]
    assert max(found) == pytest.approx(m, rel=1e-9)
    assert min(found) == pytest.approx(-m, rel=1e-9)
    assert any(abs(overlap) < 1e-9 for overlap in found)


def test_recall_without_errors_at_a_temperature():
    """A site that is all but fixed: its variance is ``1/cosh(20)**2``, which one minus a square would lose."""
    theory = MEMORY.gibbs(beta).cavity()
    found = theory.solve({alpha: Rational(1, 500), beta: 20})
    assert float(found[M]) == pytest.approx(1, rel=1e-12)
    noise = np.sqrt(1 / 500)  # of the fields
    slope = gaussian(lambda zs: 20 / np.cosh(20 * (1 + noise * zs)) ** 2)
    assert float(found[response(s)]) == pytest.approx(slope, rel=1e-6)


def test_recall_ends_at_the_known_load():
    """Recall ends near 0.138 at low temperature; well below, the glass beside it has the lower free energy."""
    _, near = memories(Rational(135, 1000), 100)
    overlaps = sorted(float(point[M]) for point in near)
    assert overlaps[-2:] == pytest.approx([0.948, 0.981], abs=1e-3)  # they meet at 0.967
    theory, points = memories(Rational(5, 100), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSolution)
        solved = [theory.solve({alpha: Rational(5, 100), beta: 4}, guess=point) for point in points]
    lowest = min(solved, key=lambda solution: float(solution[theory.free_energy]))
    assert abs(float(lowest[M])) < 1e-9
    recalled = theory.solve({alpha: Rational(2, 100), beta: 4})  # there recall has the lowest, and is alone stable
    assert float(recalled[M]) > 0.9
    assert [("mirror" in r, "other solution" in r) for r in recalled.remarks] == [(True, False), (False, True)]


def test_magnets_by_enumeration(magnet):
    """Overlaps, responses and free energies of all configurations, extrapolated."""
    sim = magnet.simulate({beta: Rational(4, 5), field: Rational(1, 2)}, N=[6, 10], seeds=80)
    theory = magnet.cavity()
    assert theory.compare(sim, [average(s[i]), average(expect(s[i]) ** 2), average(response(magnet["m"][i]))]).agrees()
    solution = theory.solve({beta: Rational(4, 5), field: Rational(1, 2)})
    assert abs(sim.free_energy.z(float(solution[theory.free_energy]))) < 3


def test_samples_are_what_is_enumerated(magnet):
    values = {beta: Rational(4, 5), field: Rational(1, 2)}
    exact, drawn = (magnet.simulate(values, N=8, seeds=2, method=how) for how in ("enumeration", "sampling"))
    gap = exact[average(expect(s[i]) ** 2)].samples - drawn[average(expect(s[i]) ** 2)].samples
    assert np.max(np.abs(gap)) < 0.03


def test_a_step_loss_by_enumeration():
    """The Ising perceptron with counted errors."""
    warm = ERRORS.gibbs(beta)
    sim = warm.simulate({beta: 2, alpha: Rational(1, 2)}, N=[8, 12], seeds=60)
    local = warm["h"]
    assert warm.cavity().compare(sim, [average(expect(s[i]) ** 2), average(Heaviside(-local[mu]))]).agrees()


def test_a_draw_of_all_students_is_like_the_teacher():
    """Nishimori, for hard constraints: the overlap with the teacher is that of two students."""
    solution = TAUGHT.gibbs(1).cavity().solve({alpha: 2})
    overlap = float(solution[average(expect(w[i]) * t[i])])
    assert overlap == pytest.approx(float(solution[average(expect(w[i]) ** 2)]), rel=1e-10)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(1, rel=1e-10)
    # q = (alpha/pi) sqrt(1 - q) <exp(-q z**2/2) / Phi(sqrt(q) z)>_z / sqrt(2), at the same overlap
    scale = np.sqrt(overlap / (1 - overlap))
    from scipy.stats import norm

    force = gaussian(lambda zs: norm.pdf(scale * zs) ** 2 / norm.cdf(scale * zs)) * 2 / (1 - overlap)
    assert overlap / (1 - overlap) == pytest.approx(2 * force, rel=1e-8)


def test_students_by_samples():
    sim = TAUGHT.gibbs(1).simulate({alpha: 2}, N=16, seeds=8, sweeps=120)
    theory = TAUGHT.gibbs(1).cavity()
    assert theory.compare(sim, [average(expect(w[i]) * t[i]), average(w[i] ** 2)]).agrees(4)


def test_sparse_means_of_bayes():
    """A product of a discrete and a Gaussian state: Nishimori, and instances with exact sums over supports."""
    warm = SPARSE.gibbs(1)
    solution = warm.cavity().solve({alpha: 1, sigma: Rational(1, 2)})
    mean = expect(z[i] * v[i])
    assert float(solution[average(mean**2)]) == pytest.approx(float(solution[average(mean * c[i] * g[i])]), rel=1e-10)
    assert float(solution[average(z[i])]) == pytest.approx(0.2, rel=1e-10)
    sim = warm.simulate({alpha: 1, sigma: Rational(1, 2)}, N=8, seeds=60)
    assert sim.method == "integration"
    assert warm.cavity().compare(sim, [average((mean - c[i] * g[i]) ** 2), average(z[i])]).agrees()


def test_ridge_by_two_ways():
    """What is integrated over all states is what fluctuates about the minimum."""
    energy = Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2
    one, other = (kind(energy).gibbs(beta).cavity().solve({alpha: 2, beta: 3}) for kind in (ConvexProblem, Problem))
    for observable in (average(expect(w[i]) ** 2), average(w[i] ** 2)):
        assert float(one[observable]) == pytest.approx(float(other[observable]), rel=1e-12)


@pytest.mark.parametrize("problem", [MAGNET, MEMORY], ids=["magnet", "memory"])
def test_every_step_is_verified(problem):
    derivation = problem.gibbs(beta).cavity().derivation
    assert all(verdict.ok for row in derivation.verify() for verdict in row.verdicts)


@pytest.mark.parametrize("problem", [ERRORS, TAUGHT], ids=["errors", "taught"])
def test_weights_are_verified(problem):
    """Sums over states, and averages of them over the fields, of which one jumps where a label is drawn on it."""
    derivation = problem.gibbs(beta if problem is ERRORS else 1).cavity().derivation
    rules = ("weight", "thermal_sum", "measure", "response", "closure", "stability_average")
    steps = [step for step in derivation if step.rule in rules]
    assert {step.rule for step in steps} == set(rules)
    assert all(verdict.ok for step in steps for verdict in judge(step))


def test_what_is_refused():
    with pytest.raises(NotConvex, match="discrete"):
        ConvexProblem(Sum((1 - Sum(x[mu, i] * s[i], (i, 1, N))) ** 2, (mu, 1, P)))
    with pytest.raises(DeclarationError, match="values"):
        Feature("s", values=(1,))
    one_way = Coupling("K", between=(i, i))
    with pytest.raises(UnsupportedLaw, match="symmetric"):
        Problem(-Sum(s[i] * Sum(one_way[i, j] * s[j], (j, 1, N)), (i, 1, N))).gibbs(1)
    with pytest.raises(UnsupportedLaw, match="equality"):
        Problem(Sum(w[i] ** 2, (i, 1, N)), [Eq(Sum(x[mu, i] * w[i], (i, 1, N)), 1)]).gibbs(1)
    with pytest.raises(UnsupportedLaw, match="global variable M"):
        MEMORY.gibbs(1).simulate({alpha: 1}, N=8, seeds=1)
    with pytest.raises(ValuesError, match="does not apply"):
        TAUGHT.gibbs(1).simulate({alpha: 2}, N=8, seeds=1, method="enumeration")
