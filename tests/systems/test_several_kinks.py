"""Penalties with corners of several weights at once: tasks and groups that share zeros, with sparse teachers."""

import numpy as np
import pytest
from sympy import Rational, Sum, sqrt, symbols
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, norm
from symcavity.algebra.joint import JointLaw, LawSymbol
from symcavity.evaluate.averages.selected import selected

k = symbols("k", integer=True)
b = symbols("b", positive=True)
x, z = Coupling("x"), Coupling("z")
w = Feature("w", components=(k, 1, 2))
v1, v2 = Feature("v1"), Feature("v2")
VALUES = {alpha: Rational(3, 5), b: Rational(3, 10)}
FAR = 4.5
SIGNS = {-1: Rational(1, 2), 1: Rational(1, 2)}
SPARSE = {0: Rational(7, 10), 1: Rational(3, 10)}


def teachers(law):
    """A teacher of each task."""
    return [Quenched(f"t{n}", i, law=law) for n in (1, 2)]


def tasks(law):
    """Two linear tasks with the same data; lengths of pairs of weights cost b."""
    missed = [Sum(x[mu, i] * (t[i] - w[i, n]), (i, 1, N)) for n, t in enumerate(teachers(law), 1)]
    cost = Sum(sum(m**2 for m in missed) / 2, (mu, 1, P))
    return ConvexProblem(cost + b * Sum(sqrt(Sum(w[i, k] ** 2, (k, 1, 2))), (i, 1, N)))


def moments(q, curve, cost):
    """The mean square error of a weight, and its mean response, over a fine grid of both fields."""
    line = np.linspace(-7.5, 7.5, 1000)  # without zero, where the length has no slope
    step = line[1] - line[0]
    fields = np.sqrt(q) * np.stack(np.meshgrid(line, line, indexing="ij"))
    weight = np.exp(-(line[:, None] ** 2 + line**2) / 2) * step**2 / (2 * np.pi)
    error = answer = 0.0
    for t1, p1 in SIGNS.items():
        for t2, p2 in SIGNS.items():
            share, t = float(p1 * p2), np.array([t1, t2])[:, None, None]
            pulled = t + fields / curve
            found = pulled * np.maximum(0, 1 - cost / curve / np.sqrt((pulled**2).sum(axis=0)))
            error += share * np.sum(weight * (found[0] - t1) ** 2)
            answer += share * np.sum(weight * found[0] * fields[0]) / q  # by parts
    return error, answer


@pytest.fixture(scope="module")
def symmetric():
    """Teachers of mean zero, whose tasks are not correlated: fields are independent."""
    return tasks(SIGNS).cavity().solve(VALUES)


def test_several_tasks_are_the_fixed_point_of_their_proximal_map(symmetric):
    """The proximal map of a length in closed form, over a grid of both fields; at another cost it is none."""
    (t1, _), load, cost = teachers(SIGNS), float(VALUES[alpha]), float(VALUES[b])
    error = float(symmetric[average((w[i, 1] - t1[i]) ** 2)])
    missed = float(symmetric[average(Sum(x[mu, i] * (t1[i] - w[i, 1]), (i, 1, N)) ** 2)])
    answer = np.sqrt(error / missed) - 1  # a residual is what it would be without the datum, over 1 + response
    curve, q = load / (1 + answer), load * error / (1 + answer) ** 2
    assert moments(q, curve, cost) == pytest.approx((error, answer), rel=5e-5)
    assert moments(q, curve, 1.1 * cost)[0] != pytest.approx(error, rel=1e-2)


def test_gaussian_teachers_widen_the_fields():
    """The length of what is pulled is Rayleigh; given that, teacher and noise have their shares of it."""
    law = Normal("t", 0, 1)
    (t1, t2), load, cost = teachers(law), float(VALUES[alpha]), float(VALUES[b])
    found = tasks(law).cavity().solve(VALUES)
    error = float(found[average((w[i, 1] - t1[i]) ** 2)])
    missed = float(found[average(Sum(x[mu, i] * (t1[i] - w[i, 1]), (i, 1, N)) ** 2)])
    answer = np.sqrt(error / missed) - 1
    curve, q = load / (1 + answer), load * error / (1 + answer) ** 2

    def at(cost):
        size = 1 + q / curve**2
        r = (np.arange(200000) + 0.5) * 1e-4
        weight = r * np.exp(-r * r / 2) * 1e-4
        pulled = np.sqrt(size) * r
        kept = np.maximum(0, pulled - cost / curve)
        square, along = np.sum(weight * kept**2) / 2, np.sum(weight * kept * pulled) / 2
        return 1 + square - 2 * along / size, along / (curve * size)

    assert at(cost) == pytest.approx((error, answer), rel=1e-6)
    assert at(1.1 * cost)[0] != pytest.approx(error, rel=1e-3)
    across = average((w[i, 1] - t1[i]) * (w[i, 2] - t2[i]))
    assert float(found[across]) == pytest.approx(0, abs=1e-9 * error)


def in_discs(length):
    """Two linear tasks with the same data; the two weights of a feature lie in a disc."""
    missed = [Sum(x[mu, i] * (t[i] - w[i, n]), (i, 1, N)) for n, t in enumerate(teachers(SIGNS), 1)]
    return ConvexProblem(Sum(sum(m**2 for m in missed) / 2, (mu, 1, P)), subject_to=[length <= 1])


def test_discs_by_components_are_the_fixed_point_of_a_projection():
    """A sum over components is a length squared; covariances that vanish by symmetry are zero, and spoil no digits."""
    (t1, t2), load = teachers(SIGNS), float(VALUES[alpha])
    risk, across = average((w[i, 1] - t1[i]) ** 2), average((w[i, 1] - t1[i]) * (w[i, 2] - t2[i]))
    lengths = Sum(w[i, k] ** 2, (k, 1, 2)), norm(w[i, 1], w[i, 2])
    by_sum, by_norm = (in_discs(length).cavity().solve({alpha: VALUES[alpha]}) for length in lengths)
    assert float(by_sum[risk]) == pytest.approx(float(by_norm[risk]), rel=1e-9)
    assert by_sum.residual < 1e-9
    assert float(by_sum[across]) == pytest.approx(0, abs=1e-9 * float(by_sum[risk]))
    missed = float(by_sum[average(Sum(x[mu, i] * (t1[i] - w[i, 1]), (i, 1, N)) ** 2)])
    error = float(by_sum[risk])
    answer = np.sqrt(error / missed) - 1
    curve, q = load / (1 + answer), load * error / (1 + answer) ** 2

    def at(radius):
        line = np.linspace(-7.5, 7.5, 1000)
        weight = np.exp(-(line[:, None] ** 2 + line**2) / 2) * (line[1] - line[0]) ** 2 / (2 * np.pi)
        fields = np.sqrt(q) * np.stack(np.meshgrid(line, line, indexing="ij"))
        pulled = 1 + fields / curve  # the signs of a teacher are those of its fields
        found = pulled * np.minimum(1, radius / np.sqrt((pulled**2).sum(axis=0)))
        return np.sum(weight * (found[0] - 1) ** 2), np.sum(weight * found[0] * fields[0]) / q

    assert at(1) == pytest.approx((error, answer), rel=5e-5)
    assert at(1.1)[0] != pytest.approx(error, rel=1e-2)


def test_sparse_groups_against_instances():
    """One output, pairs of weights that vanish together, and a teacher that hears one of each pair."""
    t = Quenched("t", i, law=SPARSE)
    missed = Sum(x[mu, i] * (t[i] - v1[i]), (i, 1, N)) - Sum(z[mu, i] * v2[i], (i, 1, N))
    problem = ConvexProblem(Sum(missed**2, (mu, 1, P)) / 2 + b * Sum(norm(v1[i], v2[i]), (i, 1, N)))
    values = {alpha: Rational(4, 5), b: Rational(1, 5)}
    simulation = problem.simulate(values, N=100, seeds=10)
    observables = [average((v1[i] - t[i]) ** 2), average(v2[i] ** 2), average(t[i] * v1[i])]
    compared = problem.cavity().compare(simulation, observables)
    assert compared.worst < FAR


def test_tasks_with_correlated_teachers_against_instances():
    """Teachers of positive mean correlate the fields of both tasks."""
    problem, (t1, t2) = tasks(SPARSE), teachers(SPARSE)
    simulation = problem.simulate(VALUES, N=100, seeds=10)
    observables = [average((w[i, 1] - t1[i]) ** 2), average((w[i, 1] - t1[i]) * (w[i, 2] - t2[i]))]
    compared = problem.cavity().compare(simulation, observables)
    assert compared.worst < FAR


class TestSelected:
    """Of multipliers that a law leaves open one is chosen."""

    p, s, u, t, n1, n2, eta = (LawSymbol(name, name) for name in ("p", "s", "u", "t", "n1", "n2", "eta"))

    def law(self, curve):
        """The law of ``b|u| + |u| + curve*u**2/2 - eta*u``, by a slope p of the first and n1 - n2 of the second."""
        pairs = [(self.n1, self.t - self.u), (self.n2, self.t + self.u), (self.s, 1 - self.p**2)]
        equations = [
            b * self.u - self.p * self.s,
            self.n1 + self.n2 - 1,
            b * self.p + curve * self.u - self.eta - self.n1 + self.n2,
        ]
        unknowns = [self.p, self.s, self.u, self.t, self.n1, self.n2]
        return JointLaw(unknowns, [self.eta], equations, pairs, [], [])

    def test_the_bound_is_on_the_slope(self):
        law, chosen = selected(self.law(2))
        over = next(q for q in law.unknowns if q.name == "t_over_s")
        assert law.pairs[0] == (self.n1, over - self.p / b)
        assert law.definitions == ((self.t, self.s * over),)
        assert set(chosen) == {self.p, self.n1, self.n2}

    def test_a_bound_at_another_place_stays(self):
        law = self.law(2)
        moved = law.xreplace({self.t - self.u: self.t - self.u + 1})
        assert selected(moved) == (moved, [])
