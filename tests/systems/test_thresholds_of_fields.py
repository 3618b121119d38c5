"""Where the field of a smooth law passes a threshold; parameters in variances; logarithms with tiny factors."""

import numpy as np
import pytest
from scipy.stats import norm as normal
from sympy import Heaviside, Max, Piecewise, Rational, Sum, exp, log, sign, sqrt

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


def test_a_teacher_decides_which_loss_and_is_the_target_of_one():
    """Its field passes a threshold, beyond which the law holds the field itself."""
    t = Quenched("t", i)
    told = Sum(x[mu, i] * t[i], (i, 1, N))
    loss = Piecewise((h**4 / 4 + h**2 / 2, told < 0), ((told - h) ** 2 / 2, True))
    solution = ConvexProblem(over_data(loss) + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().solve(
        {alpha: 2, t: {1: Rational(1, 2), -1: Rational(1, 2)}}
    )  # fmt: skip
    grid = np.linspace(-7, 7, 400)
    field, other = (a.ravel() for a in np.meshgrid(grid, grid))
    weight = normal.pdf(field) * normal.pdf(other) * (grid[1] - grid[0]) ** 2
    q, r, s, z = 0.15, 0.3, 0.4, 0.0  # <w^2>, <t w>, the response of a weight
    for _ in range(40):
        eta, teacher = np.sqrt(q) * field, r / np.sqrt(q) * field + np.sqrt(1 - r * r / q) * other
        for _ in range(6):
            z = z - (z + s * (z**3 + z) - eta) / (1 + s * (3 * z**2 + 1))
        below = teacher < 0
        force = np.where(below, -(z**3) - z, (teacher - eta) / (1 + s))
        slope = np.where(below, -(3 * z**2 + 1) / (1 + s * (3 * z**2 + 1)), -1 / (1 + s))
        told_by = weight @ (force * other) / np.sqrt(1 - r * r / q)  # the slope along the teacher's own field
        answer = 1 / (1 - 2 * (weight @ slope))
        r, s = 2 * told_by * answer, answer
        q = 2 * (weight @ force**2) * s**2 + r**2
    assert float(solution[average(w[i] * t[i])]) == pytest.approx(r, rel=1e-3)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-3)
    assert float(solution[response(w)]) == pytest.approx(s, rel=1e-3)
