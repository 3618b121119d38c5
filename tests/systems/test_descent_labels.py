"""Descent on labels that are the sign of a teacher: responses to what a law jumps with, by integration by parts."""

import numpy as np
import pytest
from sympy import Rational, S, Sum, exp, log, sign, symbols

import symcavity.sites.causal as causal
from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, UnsupportedLaw, alpha, average, i, mu
from symcavity.model.equations import Equation

gamma = symbols("gamma", positive=True)
x, w = Coupling("x"), Feature("w")
t, e = Quenched("t", i), Quenched("e", mu)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
heard, taught = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
ridge = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
SQUARES = ConvexProblem(Sum((sign(taught) - heard) ** 2, (mu, 1, P)) / 2 + ridge)
LOGISTIC = ConvexProblem(Sum(log(1 + exp(-sign(taught) * heard)), (mu, 1, P)) + ridge)
OVERLAP, SQUARE = average(t[i] * w[i]), average(w[i] ** 2)


def test_squares_learn_a_sign_as_its_linear_part_with_noise():
    """For squares sign(u) is u sqrt(2/pi) and noise of the variance 1 - 2/pi: that descent is known as fractions."""
    share, noise = np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)
    run = SQUARES.descent(rate=Rational(1, 4)).cavity().evolve(
        {alpha: 3, gamma: "1/8", t: HALF}, until=8, paths=40000, seed=1
    )
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
    linear = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + ridge).descent(rate=Rational(1, 4)).cavity()
    laws = {q: {f"{s * size:.15f}": "1/2" for s in (1, -1)} for q, size in ((t, share), (e, noise))}
    known = linear.evolve({alpha: 3, gamma: "1/8", **laws}, until=8)
    for observable, unit in ((OVERLAP, share), (SQUARE, 1)):
        gap = np.asarray(run[observable], float) - np.array([float(v) for v in known[observable]]) / unit
        assert np.all(np.abs(gap) < 4.5 * run.errors[observable] + 1e-9)


@pytest.mark.parametrize("moving", [lambda p: p.descent(rate=Rational(1, 4)), lambda p: p.flow()])
def test_logistic_losses_agree_with_instances(moving):
    system, values = moving(LOGISTIC), {alpha: 2, gamma: "3/10", t: HALF}
    when = {"until": 6} if not system.cavity().system.flowing else {"until": 3, "step": "1/5"}
    run = system.cavity().evolve(values, paths=8000, seed=2, **when)
    found = run.compare(system.simulate(values, N=300, seeds=8, **when), [OVERLAP, SQUARE])
    assert all(np.all(np.abs(row.z) < 4.5) for row in found.rows)


def test_logistic_losses_end_at_rest():
    values = {alpha: 2, gamma: "3/10", t: HALF}
    run = LOGISTIC.descent(rate=Rational(1, 2), momentum=Rational(1, 2)).cavity().evolve(
        values, until=40, paths=8000, seed=3
    )
    rest = LOGISTIC.cavity().solve(values)
    assert abs(run[OVERLAP][-1] - float(rest[OVERLAP])) < 4.5 * run.errors[OVERLAP][-1]


@pytest.mark.parametrize("moving", [lambda p: p.descent(rate=Rational(1, 4)), lambda p: p.flow()])
def test_every_step_is_judged(moving):
    found = moving(LOGISTIC).cavity().derivation.verify()
    assert not found.failed
    assert not found.unchecked


def test_responses_to_each_of_two_fields_are_written_in_every_format():
    derivation = LOGISTIC.flow().cavity().derivation
    assert "{d I_{2}^{\\nu}}" in derivation.to_latex()
    assert "dI⁰(s)" in str(derivation)
    assert "<math" in derivation.to_html()


def test_without_the_fields_that_move_the_witness_fails(monkeypatch):
    by_parts = causal._by_parts

    def dropped(*arguments):
        claim = by_parts(*arguments)
        return Equation(claim.lhs, claim.rhs.xreplace(dict.fromkeys(claim.rhs.atoms(Sum), S.Zero)))

    monkeypatch.setattr(causal, "_by_parts", dropped)
    system = ConvexProblem(LOGISTIC.typed[0], name="without").descent(rate=Rational(1, 4))
    assert [checked.step.key for checked in system.cavity().derivation.verify().failed] == ["datum.by_parts"]


def test_a_law_that_jumps_with_what_moves_is_refused():
    steep = ConvexProblem(Sum(abs(sign(taught) - heard), (mu, 1, P)) + ridge)
    with pytest.raises(UnsupportedLaw, match="jumps"):
        steep.descent(rate=Rational(1, 4)).cavity().evolve({alpha: 2, gamma: 1, t: HALF}, until=3)


def test_couplings_that_differ_from_site_to_site_are_refused():
    """Covariances of the fields are then no numbers that all sites share, and integration by parts would need them."""
    scale = Quenched("scale", mu, positive=True)
    z = Coupling("z", variance=scale[mu] / N)
    near, far = Sum(z[mu, i] * w[i], (i, 1, N)), Sum(z[mu, i] * t[i], (i, 1, N))
    theory = ConvexProblem(Sum((sign(far) - near) ** 2, (mu, 1, P)) / 2 + ridge).descent(rate=Rational(1, 4)).cavity()
    values = {alpha: 2, gamma: 1, t: HALF, scale: {1: "1/2", 2: "1/2"}}
    with pytest.raises(UnsupportedLaw, match="jumps"):
        theory.evolve(values, until=3)
    with pytest.raises(UnsupportedLaw, match="jumps"):
        theory.derivation.to_text()
