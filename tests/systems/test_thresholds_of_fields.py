"""Where the field of a smooth law passes a threshold; parameters in variances; logarithms with tiny factors."""

import numpy as np
import pytest
from scipy.stats import norm as normal
from sympy import Heaviside, Max, Rational, Sum, exp, log, sign, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, response

x, w = Coupling("x"), Feature("w")
h = Sum(x[mu, i] * w[i], (i, 1, N))


def over_data(body):
    return Sum(body, (mu, 1, P))


class TestEventsOfAnImplicitLaw:
    """Where the field of a smooth law passes a threshold, whatever the sign of its label."""

    ridge = Sum(w[i] ** 2, (i, 1, N)) / 4
    signs = Quenched("y", mu)

    @pytest.mark.parametrize("power", [None, Rational(3, 2), 3])
    def test_thresholds_on_margins_and_fields(self, power):
        y = self.signs
        gap = y[mu] * h
        loss = log(1 + exp(-gap)) if power is None else Max(0, 1 - gap) ** power
        solution = ConvexProblem(over_data(loss) + self.ridge).cavity().solve(
            {alpha: 2, y: {1: Rational(1, 2), -1: Rational(1, 2)}}
        )  # fmt: skip
        q, s = (float(solution[e]) for e in (average(w[i] ** 2), response(w)))

        def force(at):
            if power is None:
                return 1 / (1 + np.exp(at))
            return float(power) * max(0, 1 - at) ** float(power - 1)

        def above(at):
            return normal.sf((at - s * force(at)) / np.sqrt(q))

        for at in (Rational(1, 2), Rational(-1, 3), 2):
            assert float(solution[average(gap > at)]) == pytest.approx(above(float(at)), rel=1e-9)
            both = (above(float(at)) + 1 - above(-float(at))) / 2
            assert float(solution[average(h > at)]) == pytest.approx(both, rel=1e-9)
            assert float(solution[average(Heaviside(gap - at))]) == pytest.approx(above(float(at)), rel=1e-9)
            assert float(solution[average(sign(h - at))]) == pytest.approx(2 * both - 1, rel=1e-9, abs=1e-12)


def test_a_parameter_in_a_variance_is_one_name():
    """Where a law asks for a positive parameter, the couplings whose variance holds it have the same one."""
    s, t, e = Quenched("s", mu), Quenched("t", i), Quenched("e", mu)
    scaled = Coupling("x", variance=s[mu] / N)
    values = {alpha: 2, s: {Rational(1, 2): Rational(1, 2), 4: Rational(1, 2)}, t: {1: 1}, e: {1: 1}}

    def solved(coupling, root, divided):
        r = e[mu] - root * Sum(coupling[mu, i] * (w[i] - t[i]), (i, 1, N))
        loss = over_data(r**2 / divided) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2
        return float(ConvexProblem(loss).cavity().solve(values)[average(w[i] ** 2)])

    for divided in (1, s[mu]):
        assert solved(scaled, 1, divided) == pytest.approx(solved(x, sqrt(s[mu]), divided), rel=1e-12)


def test_a_feature_that_is_sharper_than_the_panels_is_found():
    """Panels as narrow as wanted have their ends where they belong: a count of 1e-7 has the limit of smaller ones."""
    n, e = Quenched("n", mu), Rational(1, 2)
    theory = ConvexProblem(over_data(1 + h - n[mu] * log(1 + h)) + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    q = [float(theory.solve({alpha: 2, n: {Rational(1, 10**k): e, 2: e}})[average(w[i] ** 2)]) for k in (5, 6, 7)]
    assert q[2] == pytest.approx(q[1], rel=3e-5)
    assert 0.05 < (q[2] - q[1]) / (q[1] - q[0]) < 0.3
