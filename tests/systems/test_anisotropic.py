"""Features of unequal variance: the participation ratio is what the naive analysis says, and is wrong."""

import numpy as np
import pytest
from references import near
from sympy.stats import DiscreteUniform, Gamma, Uniform

from symcavity import Datum, Infeasible, alpha, average, i, mu
from symcavity.derivations import gardner
from symcavity.derivations.anisotropic import kappa, l, problem, w

lam = Datum("lam")
TWO = {"1/5": "1/2", "9/5": "1/2"}
REFERENCES = {
    "iso 0.5": {
        "alpha_c": "0.961205052801541756533279334537",
        "frac_support": "0.691462461274013103637704610608",
        "mean_lambda": "4.16144295989866447373788393623",
        "mean_lambda_sq": "37.0010631064747124556740101416",
        "WRONG_alpha_PR_rescaled_kappa": "0.961205052802",
    },
    "two 0.01": {
        "alpha_c": "1.94787620763053445054779598939",
        "frac_support": "0.506591757958535265191949497144",
        "mean_lambda": "5133.79647065167137859774377784",
        "mean_lambda_sq": "81569136.4841383050035705682573",
        "WRONG_alpha_PR_rescaled_kappa": "1.20443035961",
        "mean_w2_low_l0.2": "17921.8700624233181958748351694",
    },
    "two 0.5": {
        "alpha_c": "0.770241966999295868164478214187",
        "frac_support": "0.699075723672980544549353284109",
        "mean_lambda": "5.19317327720167794834250923814",
        "mean_lambda_sq": "56.8321472856518905830498495990",
        "WRONG_alpha_PR_rescaled_kappa": "0.680838271956",
        "mean_w2_low_l0.2": "4.40807264093929251885316097654",
    },
    "two 2": {
        "alpha_c": "0.179810791695717379887574619164",
        "frac_support": "0.947151824552525223270143947323",
        "mean_lambda": "1.39035036575034635387615846679",
        "mean_lambda_sq": "2.58744753153778223068693768588",
        "WRONG_alpha_PR_rescaled_kappa": "0.178314649631",
        "mean_w2_low_l0.2": "0.0849299855710789564400567701582",
    },
}
OBSERVABLES = {
    "alpha_c": alpha,
    "frac_support": average(lam[mu] > 0),
    "mean_lambda": average(lam[mu]),
    "mean_lambda_sq": average(lam[mu] ** 2),
    # the weights of the two values of l, from the mean square and the mean of l w^2
    "mean_w2_low_l0.2": (9 * average(w[i] ** 2) / 5 - average(l[i] * w[i] ** 2)) * 5 / 4,
}


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.fixture(scope="module")
def naive():
    return problem.naive()


@pytest.mark.parametrize("name", REFERENCES)
def test_references(theory, name):
    spectrum, margin = name.split()
    law = TWO if spectrum == "two" else {1: 1}
    solution = theory.solve({kappa: margin, l: law}, dps=32)
    for quantity, text in REFERENCES[name].items():
        if quantity in OBSERVABLES:
            assert near(solution[OBSERVABLES[quantity]], text, "3e-28"), quantity


@pytest.mark.parametrize("margin", ["0.01", "0.5", "2"])
def test_the_participation_ratio_is_the_naive_answer_and_wrong(theory, naive, margin):
    claimed = REFERENCES[f"two {margin}"]["WRONG_alpha_PR_rescaled_kappa"]
    wrong = naive.solve({kappa: margin, l: TWO}, dps=20)[alpha]
    assert near(wrong, claimed, "1e-11")  # the reference has twelve digits
    right = theory.solve({kappa: margin, l: TWO}, dps=20)[alpha]
    assert abs(right - wrong) > 1e-3 * right


def test_equal_features_are_points(theory):
    plain = gardner.problem.cavity().solve({gardner.kappa: "0.7"}, dps=30)[alpha]
    assert near(theory.solve({kappa: "0.7", l: {1: 1}}, dps=30)[alpha], plain, "1e-29")


def test_participation_ratio_is_the_limit_of_large_margins(theory, naive):
    gaps = []
    for margin in (10, 100, 1000):
        right = theory.solve({kappa: margin, l: TWO}, dps=20)[alpha]
        wrong = naive.solve({kappa: margin, l: TWO}, dps=20)[alpha]
        gaps.append(abs(right / wrong - 1))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-5


@pytest.mark.parametrize("law", [TWO, {"1/100": "9/10", 10: "1/10"}])
def test_cover_at_margin_zero(theory, law):
    """Whatever the spectrum, twice as many points as features can be separated."""
    loads = [theory.solve({kappa: margin, l: law}, dps=20)[alpha] for margin in ("1e-3", "1e-5", "1e-7")]
    assert 2 > loads[2] > loads[1] > loads[0]
    assert 2 - loads[2] < 1e-5


def test_margin_at_a_load(theory):
    reference = REFERENCES["two 0.5"]["alpha_c"]
    assert near(theory.solve({alpha: reference, l: TWO}, dps=28)[kappa], "0.5", "1e-25")
    with pytest.raises(Infeasible):
        theory.solve({alpha: "21/10", l: TWO})


def test_wild_spectrum(theory):
    """Nine decades and a hundred thousand features, in both directions."""
    spectrum = 10 ** np.random.default_rng(0).uniform(-6, 3, 100_000)
    spectrum /= spectrum.mean()
    forward = theory.solve({kappa: "0.01", l: spectrum})
    assert forward.residual < 1e-13
    back = theory.solve({alpha: float(forward[alpha]), l: spectrum})
    assert float(back[kappa]) == pytest.approx(0.01, rel=1e-11)


def test_distributions(theory):
    """A distribution is the limit of its samples."""
    finite = theory.solve({kappa: "1/2", l: DiscreteUniform("d", [1, 2, 3])}, dps=20)[alpha]
    assert near(finite, theory.solve({kappa: "1/2", l: {1: "1/3", 2: "1/3", 3: "1/3"}}, dps=20)[alpha], "1e-18")
    middles = (np.arange(20_000) + 0.5) / 20_000
    uniform = theory.solve({kappa: "1/2", l: Uniform("u", 0, 2)})[alpha]
    assert float(uniform) == pytest.approx(float(theory.solve({kappa: "1/2", l: 2 * middles})[alpha]), rel=1e-8)
    from scipy.stats import gamma

    gammas = theory.solve({kappa: "1/2", l: Gamma("g", 2, 1)})[alpha]
    sampled = theory.solve({kappa: "1/2", l: gamma(2).ppf(middles)})[alpha]
    assert float(gammas) == pytest.approx(float(sampled), rel=1e-4)
