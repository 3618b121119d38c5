"""Forms of couplings within one kind in an objective: random quadratic programs; resolvents of laws with a density."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from sympy import Eq, Rational, Sum, Symbol, symbols
from sympy.stats import Exponential, Uniform

from symcavity import ConvexProblem, Coupling, Feature, N, Quenched, System, average, i, response
from symcavity.errors import NotConvex

w, b, j = Feature("w"), Quenched("b", i), symbols("j", integer=True)
half, signs = Rational(1, 2), {1: Rational(1, 2), -1: Rational(1, 2)}
SHOWN = average(w[i] ** 2), average(w[i])


def program(curvature, reciprocity, variance=1, nested=False, constraints=(w[i] >= 0,)):
    J = Coupling("J", between=(i, i), variance=Rational(variance) / N, reciprocity=reciprocity)
    form = Sum(J[i, j] * w[i] * w[j], (j, 1, N), (i, 1, N))
    if nested:
        form = Sum(w[i] * Sum(J[i, j] * w[j], (j, 1, N)), (i, 1, N))
    return ConvexProblem(Sum(curvature * w[i] ** 2 / 2 - b[i] * w[i], (i, 1, N)) + form / 2, list(constraints))


def test_a_form_sees_the_symmetric_part_only():
    """Independent couplings of variance one are in a form what symmetric ones of variance one half are."""
    one = program(3, 0).cavity().solve({b: signs})
    two = program(3, 1, half, nested=True).cavity().solve({b: signs})
    assert [float(one[s]) for s in SHOWN] == pytest.approx([float(two[s]) for s in SHOWN], rel=1e-9)
    assert float(one.objective) == pytest.approx(-float(one[average(b[i] * w[i])]) / 2, rel=1e-8)


def test_a_program_without_constraints_is_a_resolvent():
    """``w = (3 + J)**(-1) b``: its squares are an integral over the semicircle."""
    found = program(3, 1, constraints=()).cavity().solve({b: {1: 1}})
    square = quad(lambda x: np.sqrt(4 - x**2) / (2 * np.pi) / (3 + x) ** 2, -2, 2)[0]
    assert float(found[SHOWN[0]]) == pytest.approx(square, rel=1e-7)


def test_instances():
    problem = program(3, half)
    sample = problem.simulate({b: signs}, N=100, seeds=8)
    assert problem.cavity().compare(sample, list(SHOWN)).worst < 4


def test_its_steps_hold():
    told = {step.key: step for step in program(3, 1).cavity().derivation}
    for key in ("stationarity.w", "sources", "feature.self_coupling_mean", "feature.field_statistics"):
        verdicts = told[key].verdicts(15)
        assert verdicts, key
        assert all(v.ok for v in verdicts), key


@pytest.mark.parametrize(("curvature", "reciprocity"), [(Rational(19, 10), 1), (Rational(7, 5), 0)])
def test_the_edge_of_the_spectrum_decides(curvature, reciprocity):
    """The least eigenvalue of the symmetric part is -2, or minus the root of two."""
    with pytest.raises(NotConvex):
        program(curvature, reciprocity)
    program(curvature + Rational(1, 5), reciprocity)


@pytest.mark.parametrize(
    ("law", "density", "end"),
    [(Uniform("d", 0, 2), lambda _: 0.5, 2), (Exponential("d", 1), lambda d: np.exp(-d), np.inf)],
    ids=["uniform", "exponential"],
)
def test_resolvents_of_wigner_matrices_with_a_diagonal(law, density, end):
    z, d = Symbol("z", positive=True), Quenched("d", i, law=law)
    J = Coupling("J", between=(i, i), reciprocity=1)
    system = System([Eq((z + d[i]) * w[i], 1 + Sum(J[i, j] * w[j], (j, 1, N)))])
    found = system.cavity().solve({z: 3})[average(response(w[i]))]
    trace = brentq(lambda S: quad(lambda x: density(x) / (3 + x - S), 0, end)[0] - S, 0, 2.5)
    assert float(found) == pytest.approx(trace, rel=1e-9)
