"""The soft-margin support vector machine, in digits."""

import mpmath
import pytest
from references import near

from symcavity import Datum, Field, alpha, average, i, mu, response
from symcavity.derivations import gardner
from symcavity.derivations.soft_margin import C, problem, w, xi

lam, h = Datum("lam"), Field("h")
REFERENCES = {
    ("1", "1"): {
        "norm2_over_N": "0.411117458292589938969940313954",
        "frac_margin_violators": "0.665845731428222315812355584330",
        "frac_on_margin": "0.274728669499641561645510611877",
        "train_error": "0.128997433149648388282085532542",
        "mean_lambda": "0.827405008486728087372102453456",
        "mean_xi": "0.416287550194138148402162139502",
        "S_w": "0.725271330500358438354489388123",
        "objective_over_N": "0.621846279340433117887132296479",
    },
    ("2", "1"): {
        "norm2_over_N": "0.555204423697754504583178788455",
        "frac_margin_violators": "0.707144351899479217655548010307",
        "frac_on_margin": "0.203068182909610071615405047314",
        "train_error": "0.212724475770891950844348387272",
        "mean_lambda": "0.821025625113429533674736389638",
        "mean_xi": "0.543423413264552281383146995410",
        "S_w": "0.593863634180779856769189905372",
        "objective_over_N": "1.36444903837798181505788338505",
    },
    ("4", "0.1"): {
        "norm2_over_N": "0.0399989344363094759030167737615",
        "frac_margin_violators": "0.999996603384192023969278924444",
        "frac_on_margin": "0.00000311006323373701916031631275460",
        "train_error": "0.308537383924003502276725414832",
        "mean_lambda": "0.0999998718911676993716446066131",
        "mean_xi": "0.900001382820903303958904131727",
        "S_w": "0.999987559747065051923358734749",
        "objective_over_N": "0.380000020346516059535070039571",
    },
}
OBSERVABLES = {
    "norm2_over_N": average(w[i] ** 2),
    "frac_margin_violators": average(xi[mu] > 0),
    "frac_on_margin": average(lam[mu] > 0) - average(xi[mu] > 0),
    "train_error": average(xi[mu] > 1),
    "mean_lambda": average(lam[mu]),
    "mean_xi": average(xi[mu]),
    "S_w": response(w),
    "objective_over_N": average(w[i] ** 2) / 2 + C * alpha * average(xi[mu]),
}


pytestmark = pytest.mark.usefixtures("digits")


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.mark.parametrize("point", REFERENCES)
def test_references(theory, point):
    load, penalty = point
    solution = theory.solve({alpha: load, C: penalty}, dps=33)
    for name, text in REFERENCES[point].items():

        assert near(solution[OBSERVABLES[name]], text, "1e-29"), name
    assert solution.residual < mpmath.mpf("1e-38")


@pytest.mark.parametrize("penalty", ["1e-4", "1e-2", "100", "1e4", "1e6"])
@pytest.mark.parametrize("load", ["0.1", "1", "2", "10"])
def test_all_penalties(theory, load, penalty):
    solution = theory.solve({alpha: load, C: penalty}, dps=20)
    assert solution.residual < mpmath.mpf("1e-22")
    assert 0 < solution[response(w)] <= 1


def test_hard_margin_is_the_limit(theory):
    """Below capacity a large penalty leaves no slack, and the norm is that of the hard margin."""
    soft = theory.solve({alpha: "1/2", C: "1e6"}, dps=30)
    margin = gardner.problem.cavity().solve({alpha: "1/2"}, dps=30)[gardner.kappa]
    assert near(soft[average(w[i] ** 2)], 1 / margin**2, "1e-28")
    assert soft[average(xi[mu])] < 1e-28


def test_five_hundred_digits(theory):
    coarse = theory.solve({alpha: "3/10", C: 2}, dps=60)[response(w)]
    fine = theory.solve({alpha: "3/10", C: 2}, dps=500)
    assert fine.residual < mpmath.mpf("1e-500")
    assert near(coarse, mpmath.nstr(fine[response(w)], 80), "1e-44")
