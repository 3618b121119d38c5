"""Observables and responses in the words of the declaration."""

import numpy as np
import pytest
from declarations_simulated import (
    VALUES,
    C,
    a,
    b,
    biased,
    hard,
    kappa,
    lasso,
    margin,
    response_by_source,
    ridge,
    soft,
    w,
    x,
    xi,
    y,
)
from sympy import Abs, Eq, Ne, Sum, log, sqrt

from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.face import ConvexProblem
from symcavity.finite.run import simulate
from symcavity.finite.setup import as_system
from symcavity.finite.simulation import Simulations
from symcavity.model.averages import average, response
from symcavity.model.kinds import DATUM, FEATURE, N, P, alpha, i, mu
from symcavity.model.quantities import Global


@pytest.fixture(scope="module")
def sim():
    return simulate(soft, {alpha: 1, C: 1}, N=60, seeds=4)


def test_averages_are_means_over_sites(sim):
    weights = sim.arrays(w)
    assert sim[average(w)].samples == pytest.approx(weights.mean(axis=1))
    assert sim[average(w[i] ** 2)].samples == pytest.approx((weights**2).mean(axis=1))
    assert sim[Sum(w[i] ** 2, (i, 1, N))].samples == pytest.approx((weights**2).sum(axis=1))
    assert sim[average(w[i] ** 2)].stderr == pytest.approx(np.std((weights**2).mean(axis=1), ddof=1) / 2)


def test_combinations_and_nested_averages(sim):
    second, first = sim[average(w[i] ** 2)].samples, sim[average(w[i])].samples
    assert sim[1 / sqrt(average(w[i] ** 2))].samples == pytest.approx(second**-0.5)
    assert sim[average((w[i] - average(w[i])) ** 2)].samples == pytest.approx(second - first**2)
    assert sim[C * alpha * N / P * average(w[i] ** 2)].samples == pytest.approx(second)


def test_conditions_are_probabilities_and_partition(sim):
    lam = sim.system["lam"]
    parts = [average(Eq(lam[mu], 0)), average((lam[mu] > 0) & (lam[mu] < C)), average(Eq(lam[mu], C))]
    assert sum(sim[p].samples for p in parts) == pytest.approx(np.ones(4))
    assert sim[average(lam[mu] >= C)].samples == pytest.approx(sim[parts[2]].samples)
    assert sim[average(Ne(lam[mu], C))].samples == pytest.approx(1 - sim[parts[2]].samples)
    assert all(sim[p].mean > 0 for p in parts)


def test_fields_of_the_declaration_are_observables(sim):
    field = Sum(x[mu, i] * w[i], (i, 1, N))
    assert sim[average((field - 1 + xi[mu] - sim.system["h"][mu]) ** 2)].mean < 1e-25
    assert 0 < sim[average(field < 0)].mean < 0.5


def test_globals_and_conditioned_parameters():
    sim = simulate(biased, VALUES["biased"][1], N=40, seeds=3)
    assert sim[Global("b")].samples == pytest.approx([s["b"] for s in sim.samples])
    assert sim[b].samples == pytest.approx(sim[average(b + w[i]) - average(w[i])].samples)
    assert sim[kappa].samples == pytest.approx((sim.arrays("w") ** 2).mean(axis=1) ** -0.5)
    assert sim[average(y[mu])].mean > 0


def test_what_is_not_a_number_is_explained(sim):
    with pytest.raises(ValuesError, match="depends on the site"):
        sim[w[i]]
    with pytest.raises(ValuesError, match="no quantity"):
        sim[average(a[i] * w[i])]
    with pytest.raises(ValuesError, match="kappa"):
        sim[kappa * average(w[i])]


@pytest.mark.parametrize(
    "name", ["hard", "soft", "biased", "logistic", "lasso", "positive", "mixed", "ridge"]
)
@pytest.mark.parametrize("side", [FEATURE, DATUM])
def test_linear_algebra_and_sources_agree(name, side):
    problem, values = VALUES[name]
    sim = simulate(problem, values, N=25, seeds=1)
    reader = sim.reader(0)
    matrix = reader.responses.matrix(side).site
    measured = response_by_source(as_system(problem), reader.instance, side, 4)
    for other in (FEATURE, DATUM):
        assert matrix[other][:, :, 4] == pytest.approx(
            measured[other], abs=2e-7 * max(1, np.abs(matrix[other]).max())
        )


def test_responses_of_known_problems():
    hard_sim = simulate(hard, {alpha: 0.5}, N=40, seeds=2)
    support = hard_sim[average(hard_sim.system["lam"][mu] > 0)]
    assert hard_sim[response(w)].samples == pytest.approx(1 - 0.5 * support.samples)
    ridge_sim = simulate(ridge, VALUES["ridge"][1], N=15, seeds=1)
    (f,) = ridge_sim.reader(0).instance.couplings
    exact = np.trace(np.linalg.inv(np.eye(15) + f.T @ f / 3)) / 15
    assert ridge_sim[response(ridge_sim.system["Delta"])].mean == pytest.approx(exact)


def test_the_response_of_a_pair_of_boxed_weights_vanishes():
    sim = simulate(lasso, VALUES["lasso"][1], N=40, seeds=1)
    local = sim.values(response(w[i]))[0]
    assert np.all(local[sim.samples[0]["w"] == 0] == 0)
    assert np.all(local[sim.samples[0]["w"] != 0] > 0)
    assert 0 < np.mean(sim.samples[0]["w"] == 0) < 1


def test_degenerate_instances_have_no_response():
    from declarations_simulated import field, half_norm
    from sympy import Abs, Max

    from symcavity import ConvexProblem

    flat = ConvexProblem(half_norm + C * Sum(Max(0, Abs(field - y[mu]) - 1), (mu, 1, P)))
    sim = simulate(flat, {alpha: 1, C: 1, y: {1: 0.5, -1: 0.5}}, N=15, seeds=1)
    assert sim[average(w[i] ** 2)].mean < 1e-15
    with pytest.raises(NotConverged, match="degenerate"):
        sim[response(w)]


def test_sizes_extrapolate_in_one_over_n():
    sims = simulate(ridge, VALUES["ridge"][1], N=[20, 40, 80], seeds=6)
    assert isinstance(sims, Simulations)
    eps = sims.system["eps"]
    found = sims[average(eps[mu] ** 2)]
    assert list(found.raw) == [20, 40, 80]
    x_, y_ = 1 / np.array([20, 40, 80]), np.array([e.mean for e in found.raw.values()])
    slope, limit = np.polyfit(x_, y_, 1, w=[1 / e.stderr for e in found.raw.values()])
    assert (found.mean, found.slope) == pytest.approx((limit, slope))
    assert "1/N" in str(found)
    assert [r["N"] for r in found.rows()] == [20, 40, 80]


def test_two_descriptions_have_the_same_responses():
    one, two = (simulate(p, {alpha: 0.6}, N=30, seeds=2) for p in (hard, margin))
    for sim in (one, two):
        assert sim[response(sim.system["lam"])].samples == pytest.approx(
            one[response(one.system["lam"])].samples, abs=1e-9
        )


def test_what_is_no_finite_number_at_some_sites_is_refused(sim):
    with pytest.raises(ValuesError, match=r"not a finite number at \d+ of 60 feature sites .*log"):
        sim[average(log(w[i]))]
    with pytest.raises(ValuesError, match="is zoo"):
        sim[1 / (average(w) - average(w))]


def test_sites_that_hear_nothing_have_no_measured_response():
    """Least deviations with as many data as weights: all messages vanish, but for rounding."""
    deviations = ConvexProblem(Sum(Abs(Sum(x[mu, i] * w[i], (i, 1, N)) - y[mu]), (mu, 1, P)))
    found = simulate(deviations, {alpha: 1, y: {1: "1/2", -1: "1/2"}}, N=16, seeds=1)
    assert found[average(w[i] ** 2)].mean > 0
    with pytest.raises(UnsupportedLaw, match="hear only messages that vanish"):
        found[average(response(w))]
