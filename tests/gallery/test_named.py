"""What systems of the gallery are about has a name, and the value that is known otherwise."""

import numpy as np
import pytest
from gallery_shared import module
from scipy.stats import norm
from sympy import tanh

from symcavity import alpha, average, i, response
from symcavity.loading import installed

GIVEN = {  # whose result is the load itself, a variable, an average over a set, or an entropy
    "binary_margin",
    "binary_perceptron",
    "correlated_manifolds",
    "correlated_points",
    "manifold",
    "soft_manifold",
}


def test_each_system_at_rest_names_what_it_is_about():
    """A capacity is the load of a problem with a fixed norm; all others say what they measure."""
    nameless = []
    for name in installed():
        system = module(name).problem
        moving = getattr(system, "initial", ()) or hasattr(module(name), "until")
        if not (moving or getattr(system, "fixed", ()) or system.named or name in GIVEN):
            nameless.append(name)
    assert not nameless


def named(name, values=None):
    """The named observables of a system, at the values of the gallery or at others."""
    this = module(name)
    solution = this.problem.cavity().solve({**this.values, **(values or {})})
    return solution, {str(k): float(solution[v]) for k, v in this.problem.named.items()}


@pytest.mark.parametrize("load", [2, 5])
def test_the_cost_of_estimating_a_portfolio(load):
    """Pafka and Kondor: the true variance exceeds the least one by alpha/(alpha - 1), whatever the risks."""
    assert named("least_variance_portfolio", {alpha: load})[1]["q_0"] == pytest.approx(load / (load - 1), rel=1e-12)


def test_players_of_a_zero_sum_game_use_as_many_strategies():
    """At a vertex as many payoffs as strategies are met: their numbers, not their shares, are equal."""
    shares = named("zero_sum", {alpha: 3})[1]
    assert shares["n_w"] == pytest.approx(3 * shares["n_other"], rel=1e-10)


def test_half_of_the_synapses_are_silent_at_all_margins():
    """By the symmetry of the fields of weights."""
    assert named("sign_constrained")[1]["n_0"] == pytest.approx(0.5, abs=1e-12)


def test_species_survive_where_what_is_left_of_the_capacity_is_positive():
    """Bunin: a truncated Gaussian; its share above zero in the law's own moments."""
    this = module("competing_species")
    solution, found = named("competing_species")
    A, sigma = (float(solution[s]) if s in solution else float(v) for s, v in list(this.values.items())[:2])
    mean, square = float(solution[average(this.n[i])]), float(solution[average(this.n[i] ** 2)])
    assert found["phi_S"] == pytest.approx(norm.cdf((1 - A * mean) / (sigma * np.sqrt(square))), rel=1e-10)


def test_directions_that_a_network_explores():
    """From two sites that are inserted at once, against the formula of its declaration."""
    this = module("driven_network")
    solution, found = named("driven_network")
    assert float(solution.dimension(tanh(this.x[i]), over=[this.b])) == pytest.approx(found["D"], rel=1e-8)


def test_the_trace_of_a_resolvent():
    """Marchenko and Pastur: G solves z G = 1 - alpha + alpha/(1 + G), with unit covariances."""
    this = module("wishart_resolvent")
    solution, found = named("wishart_resolvent", {this.l: {1: 1}, this.s: {1: 1}})
    g = found["G"]
    assert 0.5 * g == pytest.approx(1 - 2 + 2 / (1 + g), rel=1e-12)
    assert float(solution[average(response(this.w[i]))]) == pytest.approx(g, rel=1e-14)


def test_a_named_result_is_factored_term_by_term():
    """Squares are not expanded: (S + 1)^2 q less the noise, and the shrunken teacher's part of the test error."""
    from importlib import import_module

    said = {}
    for name in ("best_subset", "noisy_teacher"):
        derivation = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation
        said[name] = {str(claim.lhs): str(claim.rhs) for claim in derivation["named.result"].claims}
    assert said["best_subset"]["E_w"] == "q_lambda*(S_w + 1)**2 - average(e[mu]**2)"
    assert "gamma**2*(S_w + 1)**2*average(t[i]**2)" in said["noisy_teacher"]["E_test"]
