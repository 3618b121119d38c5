"""Unequal classes and a free bias, in digits."""

import mpmath
import pytest
from references import near
from sympy import Rational

from symcavity import Datum, Infeasible, ValuesError, alpha, average, i, mu, response
from symcavity.derivations import gardner
from symcavity.derivations.output_bias import b, f, kappa, problem, w

lam = Datum("lam")
REFERENCES = {
    ("0.2", "0"): {
        "alpha_c": "2.0527239818741444310484351035853052",
        "B": "0.16165750674585443663685829515691942",
        "frac_support": "0.48715755690007400687771238965672351",
        "S_w": "0",
    },
    ("0.6", "0"): {
        "alpha_c": "2.6675945914821025922861398921346953",
        "B": "0.54915582109930390399220457641937537",
        "frac_support": "0.37486955596367619689057823304093004",
        "S_w": "0",
    },
    ("0.6", "0.5"): {
        "alpha_c": "1.3056935397883358684033782827077347",
        "B": "0.68892481659407976721571911728857325",
        "frac_support": "0.51661377183702817895076671086715467",
        "S_w": "0.32546073554670697933275976642407715",
    },
}
OBSERVABLES = {"alpha_c": alpha, "B": kappa * b, "frac_support": average(lam[mu] > 0), "S_w": response(w)}


pytestmark = pytest.mark.usefixtures("digits")


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.mark.parametrize("point", REFERENCES)
def test_references(theory, point):
    imbalance, margin = point
    solution = theory.solve({kappa: margin, f: (1 + Rational(imbalance)) / 2}, dps=33)
    for name, text in REFERENCES[point].items():
        assert near(solution[OBSERVABLES[name]], text, "1e-31"), name
    if margin == "0":
        assert solution[response(w)] == 0


def test_equal_classes_need_no_bias(theory):
    solution = theory.solve({kappa: "1/2", f: "1/2"}, dps=30)
    assert solution[b] == 0
    plain = gardner.problem.cavity().solve({gardner.kappa: "1/2"}, dps=30)
    assert near(solution[alpha], plain[alpha], "1e-29")


@pytest.mark.parametrize("share", ["0.6", "0.99", "0.001"])
@pytest.mark.parametrize("load", ["0.01", "1", "2.05"])
def test_margin_at_a_load(theory, share, load):
    """Found for any load, the margin gives the load back."""
    margin = theory.solve({alpha: load, f: share}, dps=20)[kappa]
    assert near(theory.solve({kappa: margin, f: share}, dps=20)[alpha], load, "1e-15")


def test_swapping_the_classes_turns_the_bias(theory):
    one = theory.solve({kappa: "1/2", f: "0.8"}, dps=20)
    other = theory.solve({kappa: "1/2", f: "0.2"}, dps=20)
    assert near(one[b], -other[b], "1e-18")
    assert near(one[alpha], other[alpha], "1e-18")


@pytest.mark.parametrize("load", [5, "2.1"])
def test_above_capacity(theory, load):
    """The margin is looked for, but whether there is one at all does not depend on its value."""
    with pytest.raises(Infeasible, match="cannot be met") as caught:
        theory.solve({alpha: load, f: "0.6"})
    assert caught.value.evidence.load == pytest.approx(2.0527, rel=2e-3)


def test_a_share_of_points_is_at_most_one(theory):
    with pytest.raises(ValuesError, match="f = 6/5 is out of range"):
        theory.solve({kappa: 1, f: "6/5"})
    with pytest.raises(ValuesError, match=r"f = 1\.2 is out of range"):
        problem.simulate({alpha: 1, f: "6/5"}, N=20, seeds=1)


def test_no_margin_with_a_rare_class(theory):
    """At margin zero the responses of the data are infinite, and the bias in units of the norm is not."""
    solution = theory.solve({kappa: 0, f: "0.001"}, dps=20)
    assert solution[alpha] > 118
    assert mpmath.isfinite(solution[kappa * b])


def test_instances_with_a_share_that_is_a_parameter(theory):
    """The declared law of the classes holds in the comparison; a value for it would be refused."""
    simulation = problem.simulate({alpha: 1, f: Rational(4, 5)}, N=60, seeds=12)
    compared = theory.compare(simulation, [average(w[i] ** 2), average(lam[mu] > 0)])
    assert compared.agrees(4)
    other = theory.solve({alpha: 1, f: Rational(1, 2)})
    assert abs(simulation[average(lam[mu] > 0)].z(float(other[average(lam[mu] > 0)]))) > 2
