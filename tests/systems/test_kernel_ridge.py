"""Kernel ridge regression from its equations and from its loss, in digits."""

import mpmath
import numpy as np
import pytest
from references import near
from sympy import Rational, Sum, sqrt

from symcavity import Infeasible, N, P, ValuesError, alpha, average, i, mu
from symcavity.derivations.kernel_ridge import Delta, a, eps, from_loss, gamma, problem, rho, w

MODES = 200
SPECTRA = {
    "pow2": ([Rational(1, k * k) for k in range(1, MODES + 1)], [Rational(1, k) for k in range(1, MODES + 1)]),
    "flat": ([Rational(1, MODES)] * MODES, [1 / sqrt(MODES)] * MODES),
}
REFERENCES = {
    ("pow2", 100, "1e-3"): {
        "E_test": "0.0135924491243981217538194773694",
        "E_train": "0.0000524616321566344498623693899496",
    },
    ("pow2", 100, "0.1"): {
        "E_test": "0.0323877001539257081326570612139",
        "E_train": "0.0132452620194075577028582777984",
    },
    ("pow2", 100, "1"): {
        "E_test": "0.0853482204575521385601161011499",
        "E_train": "0.0636162504833199731851676004490",
    },
    ("pow2", 400, "1e-3"): {
        "E_test": "0.0000878933152943104527503213351630",
        "E_train": "0.0000245564934271357154256221197674",
    },
    ("pow2", 400, "0.1"): {
        "E_test": "0.0101200802099528446352501222544",
        "E_train": "0.00674674326826732868862584819638",
    },
    ("pow2", 400, "1"): {
        "E_test": "0.0371201120135718935905090030198",
        "E_train": "0.0321140585439662397809624193580",
    },
    ("flat", 100, "1e-3"): {
        "E_test": "0.500003952522302354079739063276",
        "E_train": "0.00000198414260625030483875696488252",
    },
    ("flat", 100, "0.1"): {
        "E_test": "0.517261241912424384684553480880",
        "E_train": "0.0113808993529939507747642784704",
    },
    ("flat", 100, "1"): {
        "E_test": "0.674437343813582703658086308703",
        "E_train": "0.212678125181664867594532310581",
    },
}
TEST, TRAIN = Sum(Delta[i] ** 2, (i, 1, N)), average(eps[mu] ** 2)


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.fixture(scope="module")
def loss_theory():
    return from_loss.cavity()


@pytest.mark.parametrize("point", REFERENCES)
def test_references(theory, point):
    spectrum, size, penalty = point
    values = dict(zip((rho, a), SPECTRA[spectrum], strict=True))
    solution = theory.solve({gamma: penalty, P: size, **values}, dps=32)
    assert near(solution[TEST], REFERENCES[point]["E_test"], "3e-29")
    assert near(solution[TRAIN], REFERENCES[point]["E_train"], "3e-29")
    assert solution.residual < mpmath.mpf("1e-40")


@pytest.mark.parametrize("point", [("pow2", 100, "1e-3"), ("flat", 100, "0.1")])
def test_the_loss_gives_the_same(theory, loss_theory, point):
    spectrum, size, penalty = point
    values = {gamma: penalty, P: size, **dict(zip((rho, a), SPECTRA[spectrum], strict=True))}
    one, other = theory.solve(values, dps=32), loss_theory.solve(values, dps=32)
    assert near(other[Sum((a[i] - w[i]) ** 2, (i, 1, N))], one[TEST], "1e-30")


def test_naive_is_wrong(theory):
    """Without the echo the error comes out too large, and soon without a bound."""
    rows = dict(zip((rho, a), SPECTRA["pow2"], strict=True))
    naive = problem.naive()
    right = theory.solve({gamma: 20, P: 10, **rows}, dps=20)[TEST]
    wrong = naive.solve({gamma: 20, P: 10, **rows}, dps=20)[TEST]
    assert wrong > right * mpmath.mpf("1.05")
    with pytest.raises(Infeasible):
        naive.solve({gamma: "1/10", P: 100, **rows}, dps=20)


def test_sizes(theory):
    """Of P, N and alpha two are enough, and three must agree."""
    rows = {rho: np.arange(1.0, 51) ** -2, a: 1 / np.arange(1.0, 51)}
    one = theory.solve({gamma: 1, P: 100, **rows})[TEST]
    assert theory.solve({gamma: 1, alpha: 2, **rows})[TEST] == one
    assert theory.solve({gamma: 1, alpha: 2, P: 100, N: 50, **rows})[TEST] == one
    for wrong in ({P: 100, N: 60}, {P: 100, alpha: 3}, {}, {P: 0.5}):
        with pytest.raises(ValuesError):
            theory.solve({gamma: 1, **wrong, **rows})


@pytest.mark.parametrize(("size", "penalty"), [(1000, 1e-3), (50_000, 1.0), (1000, 1e-6), (200_000, 1e-3)])
def test_many_modes(theory, size, penalty):
    """A hundred thousand modes against a self-consistency written by hand."""
    from scipy.optimize import brentq

    index = np.arange(1.0, 100_001)
    solution = theory.solve({gamma: penalty, P: size, rho: index**-2, a: 1 / index})

    def gap(log_kappa):
        k = np.exp(log_kappa)
        return (penalty + k * np.sum(index**-2 / (size * index**-2 + k))) / k - 1

    k = np.exp(brentq(gap, -40, 40, xtol=1e-15))
    share = size * np.sum((index**-2 / (size * index**-2 + k)) ** 2)
    want = np.sum((k / index / (size * index**-2 + k)) ** 2) / (1 - share)
    assert float(solution[TEST]) == pytest.approx(want, rel=1e-11)
    assert solution.residual < 1e-13
