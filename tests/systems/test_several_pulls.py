"""States that are heard in several fields: two kinds of data, pairs beside data, two species, against exact sums."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import Abs, Eq, Heaviside, Piecewise, Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Sites,
    Variable,
    alpha,
    average,
    expect,
    i,
    mu,
)
from symcavity.errors import NegativeEntropy, UnstableSolution, UnsupportedLaw
from symcavity.sites.lowest import strategy as lowest
from symcavity.sites.thermal import ensemble as warm_sites
from symcavity.sites.thermal import summed
from symcavity.witness.judge import judge

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]
a, K = Sites("a", "K", "second datum")
b, L = Sites("b", "L", "second unit")
x, z, J = Coupling("x"), Coupling("z", between=(a, i)), Coupling("J", between=(i, i), variance=1 / N, reciprocity=1)
s, w, v = Feature("s", values=(-1, 1)), Feature("w"), Variable("v", b, values=(-1, 1))
k, c = Symbol("k", integer=True), Symbol("c", integer=True)
beta, H = Symbol("beta", positive=True), Symbol("H", real=True)
HALF, ONE, OTHER = Rational(1, 2), Rational(3, 10), Rational(4, 10)
PAIRS = Sum(s[i] * Sum(J[i, k] * s[k], (k, 1, N)), (i, 1, N)) / 2


def of_one(loss, own, q, make=Problem):
    """A problem with one kind of data."""
    return make(Sum(loss(Sum(x[mu, i] * q[i], (i, 1, N))), (mu, 1, P)) + own)


def of_two(loss, own, q, make=Problem):
    """The same with two kinds of data of the same law."""
    first, second = Sum(x[mu, i] * q[i], (i, 1, N)), Sum(z[a, i] * q[i], (i, 1, N))
    return make(Sum(loss(first), (mu, 1, P)) + Sum(loss(second), (a, 1, K)) + own)


def at(theory):
    """Values of what a theory has beside its loads."""
    return {q: value for q, value in {beta: 2, H: HALF}.items() if q in theory.system.parameters}


PENALTY = Sum(w[i] ** 2, (i, 1, N)) / 2
PRICE = Sum(Piecewise((0, Eq(w[i], 0)), (HALF, True)) + w[i] ** 2 / 2, (i, 1, N))
CASES = {
    "binary": (lambda of: of(lambda h: (h - 1) ** 2 / 2, -H * Sum(s[i], (i, 1, N)), s).gibbs(beta), s),
    "counted errors": (lambda of: of(lambda h: Heaviside(-h), 0, s).gibbs(beta), s),
    "convex": (lambda of: of(lambda h: (h - 1) ** 2 / 2, PENALTY, w, ConvexProblem).gibbs(beta), w),
    "convex with a kink": (
        lambda of: of(lambda h: (h - 1) ** 2 / 2, PENALTY + Sum(Abs(w[i]), (i, 1, N)), w, ConvexProblem).gibbs(beta), w
    ),
    "a price for each": (lambda of: of(lambda h: (h - 1) ** 2 / 2, PRICE, w), w),
    "lowest signs": (lambda of: of(lambda h: (h - 2) ** 2 / 2, -H * Sum(s[i], (i, 1, N)), s), s),
}


@pytest.mark.parametrize("name", CASES)
def test_two_kinds_of_data_of_one_law_are_one_kind(name):
    """Their loads add up; in the numbers nothing else is seen of how the data are told apart."""
    make, q = CASES[name]
    numbers = []
    for of, loads in ((of_two, {alpha: ONE, K / N: OTHER}), (of_one, {alpha: ONE + OTHER})):
        theory = make(of).cavity()
        found = theory.solve({**loads, **at(theory)})
        words = [average(q[i] ** 2), theory.free_energy]
        words += [average(expect(q[i]) ** 2)] if beta in theory.system.parameters else [average(q[i])]
        numbers.append([float(found[word]) for word in words] + [float(found.stability)])
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-12, abs=1e-13)


def test_one_kind_at_a_smaller_load_is_another_system():
    """What the equality above would miss if loads were not seen at all."""
    theory = CASES["binary"][0](of_one).cavity()
    point = {beta: 2, H: HALF}
    found = [float(theory.solve({**point, alpha: load})[average(expect(s[i]))]) for load in (ONE, ONE + OTHER)]
    assert abs(found[0] - found[1]) > 0.01


def states(n):
    """All configurations of n units, one row each."""
    return 1.0 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def symmetric(rng, n):
    """Couplings of pairs, with a variance of 1/n."""
    upper = np.triu(rng.normal(size=(n, n)) / np.sqrt(n), 1)
    return upper + upper.T


def measured(energies, every):
    """The free energy per unit, the mean and its square, of all configurations."""
    log = -energies - (-energies).max()
    share = np.exp(log) / np.exp(log).sum()
    mean = share @ every
    free_energy = -(np.log(np.exp(log).sum()) + (-energies).max()) / every.shape[1]
    return [free_energy, mean.mean(), np.mean(mean**2)]


def agrees(theory, rows, tolerance, errors=3):
    """Whether numbers lie within some errors, and what a finite size may move them by, of means over instances."""
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    return bool(np.all(np.abs(np.array(theory) - mean) < errors * error + tolerance))


def test_pairs_beside_data():
    """Free energy and magnetization against sums over all configurations."""
    h = Sum(x[mu, i] * s[i], (i, 1, N))
    theory = Problem(Sum((h - 1) ** 2 / 2, (mu, 1, P)) - PAIRS - H * Sum(s[i], (i, 1, N))).gibbs(beta).cavity()
    found = theory.solve({alpha: HALF, beta: 1, H: HALF})
    told = [float(found[word]) for word in (theory.free_energy, average(expect(s[i])), average(expect(s[i]) ** 2))]
    rng, n, rows = np.random.default_rng(11), 14, []
    every = states(n)
    for _ in range(150):
        data, pairs = rng.normal(size=(n // 2, n)) / np.sqrt(n), symmetric(rng, n)
        energies = ((every @ data.T - 1) ** 2).sum(1) / 2 - ((every @ pairs) * every).sum(1) / 2 - every.sum(1) / 2
        rows.append(measured(energies, every))
    assert agrees(told, rows, tolerance=0.02)
    alone = Problem(-PAIRS - H * Sum(s[i], (i, 1, N))).gibbs(beta).cavity()
    one = alone.solve({beta: 1, H: HALF})
    other = [float(one[word]) for word in (alone.free_energy, average(expect(s[i])), average(expect(s[i]) ** 2))]
    assert not agrees(other, rows, tolerance=0.02)  # without the data


def test_one_datum_that_hears_states_in_two_fields():
    """A loss that is a square of two fields of the same states, against sums over all configurations."""
    second = Coupling("y_2")
    h, u = Sum(x[mu, i] * s[i], (i, 1, N)), Sum(second[mu, i] * s[i], (i, 1, N))
    loss = (h + 2 * u - 1) ** 2 / 4 + h**2 / 2
    theory = Problem(Sum(loss, (mu, 1, P)) - H * Sum(s[i], (i, 1, N))).gibbs(beta).cavity()
    found = theory.solve({alpha: HALF, beta: 1, H: HALF})
    told = [float(found[word]) for word in (theory.free_energy, average(expect(s[i])), average(expect(s[i]) ** 2))]
    rng, n, rows = np.random.default_rng(13), 14, []
    every = states(n)
    for _ in range(150):
        one, two = (every @ (rng.normal(size=(n, n // 2)) / np.sqrt(n)) for _ in range(2))
        rows.append(measured(((one + 2 * two - 1) ** 2 / 4 + one**2 / 2).sum(1) - every.sum(1) / 2, every))
    assert agrees(told, rows, tolerance=0.02)
    assert not agrees([told[0] + 0.1, told[1] + 0.1, told[2]], rows, tolerance=0.02)


def species():
    """Two species of units with pairs within each and between them."""
    one, two = (Coupling("J", between=(i, i), variance=1 / (2 * N), reciprocity=1),
                Coupling("G", between=(b, b), variance=1 / (2 * L), reciprocity=1))  # fmt: skip
    across = Coupling("M", between=(b, i), variance=1 / (2 * N))
    within = Sum(s[i] * Sum(one[i, k] * s[k], (k, 1, N)), (i, 1, N)) / 2
    within += Sum(v[b] * Sum(two[b, c] * v[c], (c, 1, L)), (b, 1, L)) / 2
    between = Sum(v[b] * Sum(across[b, i] * s[i], (i, 1, N)), (b, 1, L))
    return Problem(-within - between - H * Sum(s[i], (i, 1, N)) - H * Sum(v[b], (b, 1, L)))


def test_two_species_of_one_law_are_one_magnet():
    """To all digits, with free energy and stability; instances of it are summed and sampled alike."""
    theory = species().gibbs(beta).cavity()
    magnet = Problem(-PAIRS - H * Sum(s[i], (i, 1, N))).gibbs(beta).cavity()
    found, one = theory.solve({beta: 1, H: HALF, L / N: 1}), magnet.solve({beta: 1, H: HALF})
    numbers = [found[average(s[i])], found[average(v[b])], found[theory.free_energy], found.stability]
    alone = one[average(s[i])]
    known = [alone, alone, 2 * one[magnet.free_energy], one.stability]
    assert list(map(float, numbers)) == pytest.approx(list(map(float, known)), rel=1e-12)


def test_samples_of_several_kinds_of_states():
    """Chains of two kinds of states, and of data beside pairs, against sums over all configurations."""
    measure = species().gibbs(beta)
    values = {beta: 1, H: HALF, L / N: 1}
    exact, drawn = (measure.simulate(values, N=4, seeds=2, method=how) for how in ("enumeration", "sampling"))
    for word in (average(s[i]), average(expect(s[i]) ** 2), average(expect(v[b]) ** 2)):
        assert abs(float(exact[word].mean) - float(drawn[word].mean)) < 0.05
    least, bound = (species().simulate({H: HALF, L / N: 1}, N=5, seeds=3, method=how)
                     for how in ("enumeration", "annealing"))  # fmt: skip
    gaps = bound.free_energy.samples - least.free_energy.samples
    assert np.all(gaps > -1e-12)
    assert np.mean(gaps) < 0.02


# -- what the witnesses say --------------------------------------------------------------------------


def mixed(warm=True):
    """Pairs beside data."""
    h = Sum(x[mu, i] * s[i], (i, 1, N))
    problem = Problem(Sum((h - 1) ** 2 / 2, (mu, 1, P)) - PAIRS - H * Sum(s[i], (i, 1, N)))
    return problem.gibbs(beta) if warm else problem


RULES = ("weight", "thermal_sum", "site_energy", "lowest", "jump", "measure", "lowest_state", "response", "closure")


def failed(system):
    """The rules of the steps that some witness finds wrong."""
    steps = [step for step in system.cavity().derivation if step.rule in RULES]
    return {step.rule for step in steps if not all(verdict.ok for verdict in judge(step))}


@pytest.mark.parametrize("warm", [True, False])
def test_every_claim_holds(warm):
    """At a temperature and at the lowest minimum: at fields that differ from each other."""
    assert not failed(mixed(warm))


def test_a_field_that_is_left_out_is_seen(monkeypatch):
    """Of what pulls a state the second field alone: the declared energy tells."""
    right = summed.answer_to_states

    def wrong(problem):
        return right(replace(problem, heard=problem.heard[-1:]))

    monkeypatch.setattr(summed, "answer_to_states", wrong)
    assert {"weight", "thermal_sum"} <= failed(mixed())


@pytest.mark.parametrize("warm", [True, False])
def test_variances_of_fields_that_are_not_added_up_are_seen(monkeypatch, warm):
    """The sum of two fields with the variance of one of them."""
    right = summed.as_one

    def wrong(ensemble, problem):
        found, rule = right(ensemble, problem)
        (inner,) = found.fields
        return replace(found, covariance={(inner, inner): ensemble.covariance[inner, inner]}), rule

    for module in (warm_sites, lowest):
        monkeypatch.setattr(module, "as_one", wrong)
    assert {"response", "closure"} & failed(mixed(warm))


def test_responses_to_all_fields_are_alike():
    """A source in any of the fields pulls the state: its answer has a name for each of them, and one value."""
    theory = mixed().cavity()
    found = theory.solve({alpha: HALF, beta: 1, H: HALF})
    told = [float(found[q]) for q in theory.order_parameters if str(q).startswith("S_m")]
    assert len(told) == 2
    assert told[0] == pytest.approx(told[1], rel=1e-12)


def test_sites_that_send_two_quantities_are_refused():
    sizes = Feature("t")
    h, u = Sum(x[mu, i] * s[i] * sizes[i], (i, 1, N)), Sum(z[a, i] * s[i], (i, 1, N))
    with pytest.raises(UnsupportedLaw, match="send more than one quantity"):
        Problem(Sum(h**2, (mu, 1, P)) + Sum(u**2, (a, 1, K)) + Sum(sizes[i] ** 2, (i, 1, N))).gibbs(beta).cavity()
