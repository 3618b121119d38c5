"""What declarations say that is found, against what their theories give; numbers that other tests hold are left out."""

import math

import numpy as np
import pytest
from gallery_shared import MOVING, NAMES, density, module, number, solution, theory
from scipy.special import ndtr
from sympy import Rational
from sympy.stats import Normal

from symcavity import Ball, ConvexProblem, Datum, N, SymcavityError, UnstableSolution, alpha, average, mu, response
from symcavity.loading import installed
from symcavity.writing.latex import words


def named(name, word):
    return next(symbol for symbol in module(name).problem.named if str(symbol) == word)


def at(name, values, **changed):
    """The solution where a system is shown, with some values changed: by name, or by the symbol."""
    known = {key: changed.get(str(key), value) for key, value in module(name).values.items()}
    return theory(name).solve({**known, **values})


def says(name, *numbers):
    """The words of a declaration hold these numbers."""
    said = module(name).problem.says
    for one in numbers:
        assert str(one) in said, (name, one, said)


def share(name, word, want, digits, **changed):
    """A named observable, to the digits with which it is said."""
    found = number(name, named(name, word), **changed)
    assert round(found, digits) == want, (name, word, found)
    return found


@pytest.mark.parametrize("name", installed())
def test_every_declaration_says_what_is_found(name):
    said = module(name).problem.says
    assert said.endswith(".")
    assert said == " ".join(said.split())
    assert words(said).isascii()  # all characters have their commands in LaTeX


def test_the_gallery_is_what_is_installed():
    assert {*NAMES, *MOVING} == set(installed())


def test_balls_and_points():
    says("manifold", "0.238", "0.96")
    points = theory("gardner").solve({module("gardner").kappa: Rational(1, 2)})[alpha]
    assert round(float(points), 2) == 0.96
    balls = {module("manifold").kappa: Rational(1, 2), module("manifold").g: Ball(5, 1)}
    assert round(float(theory("manifold").solve(balls)[alpha]), 3) == 0.238
    says("gardner", 0.52)
    assert round(float(theory("gardner").solve({module("gardner").kappa: 1})[alpha]), 2) == 0.52


@pytest.mark.parametrize(("name", "slope"), [("sign_teacher", 0.50), ("bayes_perceptron", 0.44)])
def test_generalization_errors_fall_as_one_over_the_load(name, slope):
    says(name, f"{slope:.2f}/α")
    says("sign_teacher", "0.44/α")
    word = str(next(iter(module(name).problem.named)))
    found = [load * number(name, named(name, word), alpha=load) for load in (10, 20)]
    assert abs(found[1] - slope) < abs(found[0] - slope)
    assert found[1] == pytest.approx(slope, abs=0.005)


def test_a_machine_of_two_layers_freezes():
    """Without a field ``beta**4*K/N`` is the stability of the state without overlaps: with K = 2N up to 0.8409."""
    weak = Rational(1, 10**5)
    below = at("boltzmann_machine", {}, beta=Rational("0.84"), H=weak)
    with pytest.warns(UnstableSolution):
        above = at("boltzmann_machine", {}, beta=Rational("0.9"), H=weak)
    assert below.stability == pytest.approx(0.84**4 * 2, rel=1e-5)
    shown = module("boltzmann_machine").shown
    assert max(float(below[o]) for o in shown) < 1e-6 < min(float(above[o]) for o in shown)


def test_bits_are_found_beyond_half_as_many_receivers():
    errors = [number("box_detection", named("box_detection", "epsilon_b"), alpha=Rational(3, 5),
                     noise=Normal("noise", 0, Rational(s))) for s in ("0.2", "0.1", "0.05")]  # fmt: skip
    assert errors[0] > 50 * errors[1] > 50 * 50 * errors[2]
    with pytest.raises(SymcavityError, match="no unique solution"):
        at("box_detection", {}, alpha=Rational(9, 20), noise=Normal("noise", 0, Rational(1, 100)))


def test_a_weight_for_the_smaller_class():
    def missed(r):
        found = at("clusters_hinge", {}, r=r)
        overlap, size, bias = (float(found[o]) for o in module("clusters_hinge").shown)
        return ndtr(-(overlap + bias) / math.sqrt(size)), ndtr(-(overlap - bias) / math.sqrt(size))

    (large, small), (large_3, small_3) = missed(1), missed(3)
    assert small_3 < small
    assert large_3 > large


def test_clusters_of_equal_size_and_hebb():
    says("clusters_logistic", 0.207)
    errors = [number("clusters_logistic", named("clusters_logistic", "epsilon_g"), gamma=Rational(g))
              for g in ("0.1", "0.5", "2", "1000")]  # fmt: skip
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(ndtr(-2 / math.sqrt(2**2 + 2)), rel=1e-3)


def test_the_square_loss_becomes_fishers_discriminant():
    """``<v**2/Delta>`` is (10 + 2)/2 where it is shown."""
    found = number("gaussian_clusters", named("gaussian_clusters", "epsilon_g"), alpha=1000)
    assert found == pytest.approx(ndtr(-math.sqrt(6)), rel=0.01)


@pytest.mark.parametrize("load", ["0.5", "1.1", "3"])
def test_competitive_exclusion_is_the_stability(load):
    found = at("consumer_resource", {}, alpha=Rational(load))
    resources, consumers = (float(found[named("consumer_resource", word)]) for word in ("phi_R", "phi_C"))
    assert found.stability == pytest.approx(float(Rational(load)) * consumers / resources, rel=1e-9)
    assert found.stability < 1


def test_supplied_resources_feed_less_than_half_as_many_consumers():
    for load, sigma in ((1, "0.25"), (4, "0.5"), (20, "1")):
        found = number("supplied_resources", named("supplied_resources", "phi_C"), alpha=load, sigma=Rational(sigma))
        assert 0 < load * found < 0.5


def test_shared_directions():
    norms = [number("correlated_manifolds", module("correlated_manifolds").shown[0], rho=Rational(r))
             for r in ("0.1", "0.5", "0.9")]  # fmt: skip
    assert norms == sorted(norms)
    m = module("correlated_points")
    slack = [float(at("correlated_points", {m.K / N: k})[m.shown[2]]) for k in (Rational(1, 4), 1, 4, 10**4)]
    assert slack == sorted(slack, reverse=True)
    assert slack[-1] == pytest.approx(number("soft_margin", module("soft_margin").shown[1], alpha=1), abs=1e-5)


def test_what_penalties_keep():
    says("elastic_net", "62 %", "25 %")
    share("elastic_net", "rho_w", 0.62, 2)
    says("group_lasso", "42 %")
    assert round(1 - number("group_lasso", module("group_lasso").shown[1]), 2) == 0.42
    says("sparse_regression", "21 %", "10 %", "3 %")
    for price, kept in {"0.25": 0.21, "0.5": 0.10, "1": 0.03}.items():
        found = number("sparse_regression", module("sparse_regression").shown[1], C=Rational(price))
        assert round(found, 2) == kept


def test_errors_of_losses():
    says("least_deviations", 0.759)
    share("least_deviations", "E_w", 0.759, 3)
    share("least_deviations", "E_w", 0, 12, noise={0: Rational(4, 5), 1: Rational(1, 10), -1: Rational(1, 10)})
    says("robust_regression", 0.41, 1.49)
    share("robust_regression", "E_w", 0.41, 2)
    share("robust_regression", "E_w", 1.49, 2, d=1000)  # least squares: the variance 5.95 of the noise over alpha - 1
    other = number("robust_regression", named("robust_regression", "E_w"), t={5: 1})
    assert other == pytest.approx(number("robust_regression", named("robust_regression", "E_w")), rel=1e-9)
    names = [number("robust_noise", named("robust_noise", "E_w"), **d) for d in ({}, {"d": 100})]
    assert names[0] < names[1]
    found = solution("robust_noise")
    lost, wide = float(found[response(Datum("lambda"))]), float(found[response(module("robust_noise").w)])
    assert 0 < -lost / (1 + lost * wide) < 1  # the penalty is divided by it
    says("quantile_regression", "70 %")
    share("quantile_regression", "c_g", 0.70, 2)


def test_flipped_labels_approach_their_share():
    says("flipped_labels", "0.30", 0.19)
    share("flipped_labels", "epsilon_g", 0.30, 2)
    share("flipped_labels", "epsilon_g", 0.19, 2, alpha=10)


def test_logistic_estimates():
    says("logistic_existence", "2.90")
    m = module("logistic_existence")
    loads = [float(theory("logistic_existence").solve({m.kappa: Rational(1, 10**6), m.t: {size: 1}})[alpha])
             for size in (Rational(1, 1000), 2)]  # fmt: skip
    assert [round(load, 2) for load in loads] == [2.00, 2.90]
    says("logistic_teacher", "1.50")
    assert round(number("logistic_teacher", module("logistic_teacher").shown[0]) / 5, 2) == 1.50
    says("logistic_intercept", 0.42, 0.76)
    along, _, bias = (number("logistic_intercept", o) for o in module("logistic_intercept").shown)
    assert (round(along / 4, 2), round(bias, 2)) == (0.42, 0.76)


def test_chains_of_layers():
    m, rich = module("linear_chain"), {"alpha": 1000, "gamma": Rational(1, 100)}
    error = named("linear_chain", "E_g")
    assert float(at("linear_chain", {m.L / m.K: Rational(1, 3)}, **rich)[error]) == pytest.approx(0.5, abs=1e-3)
    assert float(at("linear_chain", {}, **rich)[error]) < 1e-6
    wide = at("linear_chain", {m.K / N: 10**4, m.L / m.K: 1}, gamma=Rational(10**8) / 2)  # variances of 1/N add up
    plain = at("noisy_teacher", {module("noisy_teacher").noise: {0: 1}})
    assert float(wide[error]) == pytest.approx(float(plain[module("noisy_teacher").shown[0]]), rel=0.01)


def test_portfolios():
    says("expected_shortfall", 2.0001, 1.54)
    beta = next(key for key in module("expected_shortfall").values if str(key) == "beta")
    found = theory("expected_shortfall").boundary(
        "feasibility", across={alpha: (Rational(3, 2), 4)}, values={beta: Rational(9, 10)}
    )
    assert round(float(found.points[0][1]), 4) == 2.0001
    assert round(math.sqrt(number("expected_shortfall", named("expected_shortfall", "q_0"))), 2) == 1.54
    says("no_short_selling", "32 %")
    share("no_short_selling", "n_0", 0.681, 3)
    edge = at("no_short_selling", {}, alpha=Rational(1, 2) + Rational(1, 10**4))
    assert edge.stability == pytest.approx(1, abs=1e-3)
    assert float(edge[named("no_short_selling", "n_0")]) == pytest.approx(0.5, abs=1e-3)


def test_a_penalty_as_large_as_the_noise_removes_the_peak():
    E = named("noisy_teacher", "E_test")
    loads = [Rational(a) for a in ("0.5", "0.9", "1", "1.1", "2")]
    errors = [number("noisy_teacher", E, alpha=load, gamma=Rational(1, 4)) for load in loads]
    assert errors == sorted(errors, reverse=True)
    assert number("noisy_teacher", E, alpha=1, gamma=Rational(1, 10**4)) > 10


def test_outliers_and_support_vectors():
    says("one_class", "13 %", "39 %")
    share("one_class", "n_out", 0.13, 2)
    assert round(number("one_class", average(Datum("lambda")[mu] > 0)), 2) == 0.39
    says("soft_margin", "91 %", "71 %")
    wanted = {"0.1": 1.0, "1": 0.91, "10": 0.71}
    for C, found in wanted.items():
        share("soft_margin", "n_SV", found, 2, C=Rational(C))
    says("support_vector_regression", "23 %", "10 %", "3 %")
    for width, found in {"0.25": 0.23, "0.5": 0.10, "1": 0.03}.items():
        share("support_vector_regression", "n_out", found, 2, epsilon=Rational(width))


def test_reciprocity_of_ecosystems():
    says("one_sided_diet", 0.26, 0.41)
    pace = [float(at("one_sided_diet", {}, rho=Rational(r)).stability) for r in ("1", "0.9", "0.8")]
    assert pace == sorted(pace)
    assert [round(pace[0], 2), round(pace[-1], 2)] == [0.26, 0.41]


@pytest.mark.parametrize("g", ["0", "0.5", "1"])
def test_replicators_at_the_edge_of_stability(g):
    """At ``u = (1 + g)/sqrt(2)``: the stability is one, and half of the strategies survive."""
    edge = (1 + float(g)) / math.sqrt(2)
    found = at("random_replicators", {}, u=Rational(round(1.001 * edge, 6)), g=Rational(g))
    assert 0.99 < found.stability < 1
    assert float(found[named("random_replicators", "phi_S")]) == pytest.approx(0.5, abs=0.005)


def test_stabilities_of_networks():
    found, active = solution("rectified_network"), number("rectified_network", named("rectified_network", "phi_A"))
    assert found.stability == pytest.approx(active / 4, rel=1e-9)
    assert at("rectified_network", {}, g=Rational("1.05")).stability < 1
    for name, input_size, drive in (("driven_network", 0.49, 1), ("structured_network", 0.5 * 2.5, 1)):
        z = np.linspace(-9, 9, 4001)
        weight = density(z) * (z[1] - z[0])
        size = 0.4
        for _ in range(200):
            size = float(np.sum(weight * np.tanh(np.sqrt(drive + input_size * size) * z) ** 2))
        slopes = 1 - np.tanh(np.sqrt(drive + input_size * size) * z) ** 2
        assert solution(name).stability == pytest.approx(input_size * float(np.sum(weight * slopes**2)), rel=1e-5)


def test_values_of_games_and_programs():
    says("zero_sum", 0.657)
    assert float(at("zero_sum", {}, alpha=1)[module("zero_sum").V]) == pytest.approx(0, abs=1e-9)
    own, other = (number("zero_sum", named("zero_sum", word)) for word in ("n_w", "n_other"))
    assert own == pytest.approx(2 * other, rel=1e-9)
    says("random_linear_program", "0.94")
    share("random_linear_program", "V", 0.94, 2)


@pytest.mark.parametrize("load", ["0.25", "0.9"])
def test_half_of_the_weights_of_given_signs_are_silent(load):
    found = number("sign_constrained", named("sign_constrained", "n_0"), alpha=Rational(load))
    assert found == pytest.approx(0.5, rel=1e-9)


def test_posteriors_and_losses():
    for name, word, want in (("softmax", "l_train", 0.816), ("sparse_means", "E_w", 0.097)):
        says(name, want)
        share(name, word, want, 3)
    says("spiked_matrix", 0.917)
    assert round(number("spiked_matrix", module("spiked_matrix").shown[0]), 3) == 0.917
    says("three_clusters", "49 %")
    share("three_clusters", "epsilon_g", 0.49, 2)


def evolved(name, until, **changed):
    m = module(name)
    values = {key: changed.get(str(key), value) for key, value in m.values.items()}
    span = {"step": m.step} if hasattr(m, "step") else {}
    return theory(name).evolve(values, until=until, paths=3000, seed=3, **span)


def test_rest_is_stable_up_to_a_strength_of_the_couplings():
    small = {Rational(1, 100): Rational(1, 2), -Rational(1, 100): Rational(1, 2)}
    for name, edge, start, until in (("chaotic_network", 1, Normal("a", 0, Rational(1, 100)), 8),
                                     ("reciprocal_network", 1 / 1.5, small, 30)):  # fmt: skip
        below, above = (evolved(name, until, g=Rational(round(edge * f, 3)), a=start) for f in (0.85, 1.3))
        square = module(name).shown[0]
        assert below[square][-1] < 0.3 * below[square][0]
        assert above[square][-1] > 3 * above[square][0]


def test_a_memory_is_recalled_or_lost():
    says("recalled_memory", "0.4 to 0.8 in four steps")
    overlap = module("recalled_memory").shown[0]
    few = evolved("recalled_memory", 4)[overlap]
    many = evolved("recalled_memory", 12, alpha=Rational(1, 4))[overlap]
    assert few[-1] == pytest.approx(0.8, abs=0.05)
    assert many[1] > many[0] + 0.05
    assert many[-1] < many[0]


def test_echoes_keep_the_activity_alive():
    says("moving_modes", "ten times")
    square = module("moving_modes").shown[0]
    alive, noise = (evolved("moving_modes", 8, **changed)[square][-1] for changed in ({}, {"rho": 0}))
    assert alive / noise == pytest.approx(10, abs=1)


def test_abundances_settle_at_the_fixed_point():
    says("moving_species", "0.360")
    m = module("competing_species")
    half = Rational(1, 2)
    capacities = {Rational(3, 4): half, Rational(5, 4): half}
    rest = theory("competing_species").solve({m.A: 2, m.sigma: half, m.g: half, m.K: capacities})
    assert round(float(rest[m.shown[0]]), 3) == 0.360
    assert evolved("moving_species", 8)[module("moving_species").shown[0]][-1] == pytest.approx(0.360, abs=0.01)


def test_momentum_comes_to_the_minimum_sooner():
    m = module("descent_momentum")
    values = {key: value for key, value in m.values.items() if str(key) not in ("epsilon", "beta")}
    rest = float(ConvexProblem(*m.problem.origin.problem.typed).cavity().solve(values)[m.b])
    fast, slow = (evolved("descent_momentum", 40, beta=Rational(b)) for b in ("0.5", "0.01"))
    assert abs(fast[m.b][-1] - rest) < 4 * fast.errors[m.b][-1]
    assert abs(fast[m.b][20] - fast[m.b][-1]) < 0.01
    assert slow[m.b][20] < slow[m.b][-1] - 0.05
