"""The capacity of a perceptron for random points, in digits."""

import mpmath
import pytest
from references import near
from sympy import Rational

from symcavity import Datum, Infeasible, alpha, average, i, mu, phi, response
from symcavity.derivations.gardner import kappa, problem, w

lam = Datum("lam")
REFERENCES = {
    "0": {
        "alpha_c": "2.000000000000000000000000000000000000000",
        "frac_support": "0.5000000000000000000000000000000000000000",
        "n_support_over_N": "1.000000000000000000000000000000000000000",
        "S_w": "0.0",
        "S_lambda": "-inf",
    },
    "0.1": {
        "alpha_c": "1.709631500248350839062531246879835745990",
        "frac_support": "0.5398278372770289814654046182391820830141",
        "n_support_over_N": "0.9229066753197496694632336263268066070765",
        "S_w": "0.07709332468025033053676637367319339292350",
        "S_lambda": "-7.002264327242347967159768505621603543799",
        "mean_lambda": "58.49213703975004478311116387716591239989",
        "mean_lambda_sq": "9841.559861516160500555756753329545426328",
    },
    "1": {
        "alpha_c": "0.5195722296049379694876559648691737282710",
        "frac_support": "0.8413447460685429485852325456320379224779",
        "n_support_over_N": "0.4371393655812332289044735602554694281110",
        "S_w": "0.5628606344187667710955264397445305718890",
        "S_lambda": "-1.494765657110397173046265462352044857795",
        "mean_lambda": "1.924660216656229246968295284199636499784",
        "mean_lambda_sq": "6.075084425290582554940059224349744957479",
    },
    "2": {
        "alpha_c": "0.2002310156017554608089095425599657571546",
        "frac_support": "0.9772498680518207927997173628334665625282",
        "n_support_over_N": "0.1956757335766975946153615680146121473880",
        "S_w": "0.8043242664233024053846384319853878526120",
        "S_lambda": "-1.214994883092972028095487968331131450765",
        "mean_lambda": "1.248557818321370016974928803747189994030",
        "mean_lambda_sq": "1.929951145198521291363636601328744352703",
    },
}
OBSERVABLES = {
    "alpha_c": alpha,
    "frac_support": average(lam[mu] > 0),
    "n_support_over_N": alpha * average(lam[mu] > 0),
    "S_w": response(w),
    "S_lambda": response(lam),
    "mean_lambda": average(lam[mu]),
    "mean_lambda_sq": average(lam[mu] ** 2),
}


pytestmark = pytest.mark.usefixtures("digits")


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.mark.parametrize("value", REFERENCES)
def test_references(theory, value):
    solution = theory.solve({kappa: value}, dps=38)
    for name, text in REFERENCES[value].items():
        assert (
            near(solution[OBSERVABLES[name]], text, "1e-36")
            if "inf" not in text
            else (solution[OBSERVABLES[name]] == mpmath.mpf(text))
        ), name
    assert solution.residual < mpmath.mpf("1e-45")


def test_closed_form(theory):
    assert theory.closed_form(alpha) == 1 / phi(2, kappa)


@pytest.mark.parametrize("value", ["1e-20", "1e-6", "1e-3", "5", "20", "50"])
def test_extreme_margins(theory, value):
    """Responses near zero keep all their digits."""
    solution = theory.solve({kappa: value}, dps=30)
    with mpmath.workdps(100):
        k = mpmath.mpf(value)
        second = (1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k)
        assert near(solution[alpha], 1 / second, "1e-29")
        assert near(solution[response(w)], 1 - mpmath.ncdf(k) / second, "1e-29")


@pytest.mark.parametrize("value", ["1e-6", "1e-3", "1/2", "1", "1.9", "1.999", "1.999999"])
def test_margin_at_a_load(theory, value):
    margin = theory.solve({alpha: value}, dps=30)[kappa]
    assert near(
        theory.solve({kappa: margin}, dps=30)[alpha], mpmath.mpf(Rational(value).p) / Rational(value).q, "1e-20"
    )


@pytest.mark.parametrize("load", [2, 3])
def test_above_capacity(theory, load):
    with pytest.raises(Infeasible, match="the capacity 2"):
        theory.solve({alpha: load})


def test_five_hundred_digits(theory):
    solution = theory.solve({kappa: "3/10"}, dps=500)
    with mpmath.workdps(520):
        k = mpmath.mpf(3) / 10
        want = 1 / ((1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k))
        assert abs(solution[alpha] / want - 1) < mpmath.mpf(10) ** -498


def test_norm(theory):
    assert theory.solve({kappa: 2})[average(w[i] ** 2)] == 0.25


@pytest.mark.parametrize("power", [30, 400])
def test_small_margins_are_large_and_not_infinite(power):
    """To leading order S_w = sqrt(2/pi)*kappa and S_lambda = -1/(2 S_w)."""
    solution = problem.cavity().solve({kappa: f"1e-{power}"})
    with mpmath.workdps(20):
        small = mpmath.mpf(10) ** -power
        assert abs(solution[response(w)] / (mpmath.sqrt(2 / mpmath.pi) * small) - 1) < 1e-14
        assert abs(solution[response(lam)] * 2 * solution[response(w)] + 1) < 1e-14
        assert abs(solution[average(lam[mu] ** 2)] * 2 * small**4 / (mpmath.pi / 2) - 1) < 1e-13
    assert solution.residual < 1e-28
