"""Where what is averaged over a density is not smooth, its rules break; where it is infinite, that is said."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sympy import Abs, Piecewise, Rational, Sum, Symbol
from sympy.stats import Gamma, Normal, Uniform

from symcavity import ConvexProblem, Coupling, Feature, Infeasible, N, P, Quenched, ValuesError, alpha, average, i, mu
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.kinks import kinks
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.evaluate.averages.tails import check_tails

x, w, t, y = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("y", mu)
a, z = Symbol("a", positive=True), Symbol("z", real=True)
field = Sum(x[mu, i] * w[i], (i, 1, N))
penalty = Symbol("penalty", positive=True)
BOUNDED = ConvexProblem(penalty * Sum(Abs(w[i]), (i, 1, N)) + Sum((field - 1) ** 2, (mu, 1, P)) / 2, [w[i] <= 1 + t[i]])


def test_kinks_are_where_branches_switch_and_where_breaks_meet():
    own = Piecewise((t[i] ** 2, 2 * t[i] > -1), (0, True))
    meeting = GaussianAverage(Piecewise((z**3, (z > -a) & (t[i] + z + a >= -1)), (0, True)), z)
    assert kinks([own, meeting], t) == [Rational(-1, 2), -1]
    assert kinks([meeting.subs(z, 2)], y) == []


def test_a_random_bound_that_passes_the_kink_of_a_penalty():
    """Weights with an L1 penalty and a Gaussian bound, against adaptive quadrature that knows the kink."""
    values = {t: Normal("t", 0, 1), alpha: "1/2", penalty: "1/5"}
    solution = BOUNDED.cavity().solve(values)
    assert solution.residual < 1e-12
    s, q = (float(solution[name]) for name in ("S_w", "q_w"))
    load = 0.5
    curvature = load / (1 + s)  # of the squared loss, and the width of its messages
    width = np.sqrt(load * (1 + q)) / (1 + s)

    def weight(h, bound):
        return np.minimum(np.sign(h) * np.maximum(np.abs(h) - 0.2, 0) / curvature, bound)

    def moment(bound):
        places = sorted({-0.2, 0.2, 0.2 + curvature * bound, -0.2 + curvature * bound})
        inner = (p / width for p in places)
        return quad(
            lambda v: norm.pdf(v) * weight(width * v, bound) ** 2, -12, 12, points=[*inner], epsabs=1e-13, limit=200
        )[0]

    second = sum(
        quad(lambda c: norm.pdf(c - 1) * moment(c), *ends, epsabs=1e-12, limit=200)[0] for ends in ((-9, 0), (0, 11))
    )
    assert q == pytest.approx(second, rel=1e-9)


def test_a_one_sided_bound_leaves_half_the_capacity():
    """Large weights do not feel where a bound is: the capacity is 1, that of weights of one sign (Amit et al. 1989)."""
    pair = Piecewise((w[i] ** 2 / 2, Abs(w[i]) <= 1), (Abs(w[i]) - Rational(1, 2), True))
    theory = ConvexProblem(Sum(pair, (i, 1, N)), [field >= 1, w[i] <= 1 + t[i]]).cavity()
    with pytest.raises(Infeasible) as caught:
        theory.solve({t: Normal("t", 0, 1), alpha: 5})
    assert caught.value.evidence.load == pytest.approx(1, rel=1e-2)


def laws(law):
    return read_quenched([y], {y: law}, 15)


def test_a_hard_margin_of_labels_near_zero_has_no_finite_norm():
    """The second moment of 1/y is infinite for a law with weight at zero, and finite where it falls off there."""
    hard = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [y[mu] * field >= 1]).cavity()
    for law in (Normal("y", 0, 1), Uniform("y", 0, 1), Gamma("y", 1, 1)):
        with pytest.raises(ValuesError, match=r"is infinite: .* quantity that grows like \|y\|\*\*-2 near zero"):
            hard.solve({y: law, alpha: "3/10"})
    for law in (Uniform("y", 1, 2), Gamma("y", 4, 1)):
        assert hard.solve({y: law, alpha: "3/10"}).residual < 1e-9
    tiny = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum((y[mu] - field) ** 2, (mu, 1, P)), []).cavity()
    assert float(tiny.solve({y: Normal("y", 0, 1), alpha: 1})[average(w[i] ** 2)]) > 0
    check_tails({"it": average(1 / y[mu]) ** 2}, laws(Gamma("y", 2, 1)), {})  # each factor is finite
    with pytest.raises(ValuesError, match="it is infinite"):
        check_tails({"it": 1 + average(1 / y[mu] ** 2)}, laws(Gamma("y", 1, 1)), {})


def test_an_average_inside_of_another_is_a_number_there():
    """What divides by a second moment is finite, whatever the law has at zero; an inner moment may be infinite."""
    e = Quenched("e", mu)
    both = read_quenched([t, e], {t: Normal("t", 0, 1), e: {1: "1/2", -1: "1/2"}}, 15)
    shrunk = e[mu] ** 2 / (1 + e[mu] ** 2)
    check_tails({"it": average(shrunk / average(t[i] ** 2))}, both, {LAWS: both})
    with pytest.raises(ValuesError, match="it is infinite"):
        check_tails({"it": average(shrunk * average(1 / t[i] ** 2))}, both, {LAWS: both})
