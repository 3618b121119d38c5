"""Events at the edge of a law: a state that sits at the end of its range does so on a whole branch."""

import numpy as np
import pytest
from sympy import Eq, Ne, Rational, Sum, Symbol, exp, log, sqrt

from symcavity import Ball, ConvexProblem, Coupling, Datum, Feature, N, P, PointCloud, alpha, average, i, mu
from symcavity.algebra.joint import JointLaw, LawSymbol
from symcavity.derivations import soft_manifold
from symcavity.evaluate.averages.edges import VanishingPairs

C = Symbol("C", positive=True)
x, z = Coupling("x"), Coupling("z")
w, v, xi = Feature("w"), Feature("v"), Datum("xi")
h, k = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(z[mu, i] * v[i], (i, 1, N))
COST = Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P))


def cloud(noise):
    """Two points at unit length; sites turned and moved by rounding."""
    rng = np.random.default_rng(3)
    points = np.array([[0.5, 0.75**0.5], [-0.5, 0.75**0.5]])
    return PointCloud(points[rng.permutation(2)] * (1 + noise * rng.normal(size=points.shape)))


class TestOneSet:
    lam = soft_manifold.problem.kkt()["lambda"][mu]
    regime = soft_manifold.problem.cavity().datum.regime

    @pytest.mark.parametrize("shape", [Ball(2, "0.5"), cloud(0), cloud(1e-15)], ids=["ball", "two", "two, moved"])
    def test_a_multiplier_at_its_bound_is_a_regime(self, shape):
        given = shape if isinstance(shape, Ball) else soft_manifold.g.given(shape, samples=2**8)
        problem, lam = soft_manifold.problem, self.lam
        solution = problem.cavity().solve({alpha: Rational(1, 2), soft_manifold.C: "0.9", soft_manifold.g: given})
        full, none = (solution[average(Eq(self.regime, r))] for r in (4, 0))
        bound = Rational(9, 10)
        for event in (Eq(lam, bound), lam >= bound, Eq(lam, soft_manifold.C), soft_manifold.xi[mu] > 0):
            assert solution[average(event)] == pytest.approx(full, rel=1e-12)
        for event in (lam < bound, Ne(2 * lam, 2 * bound), Eq(soft_manifold.xi[mu], 0)):
            assert solution[average(event)] == pytest.approx(1 - full, rel=1e-9)
        assert solution[average(lam > bound)] == pytest.approx(0, abs=1e-15)
        assert solution[average(Eq(lam, 0))] == pytest.approx(none, rel=1e-9, abs=1e-15)
        assert 0.5 < full < 1

    @pytest.mark.parametrize(("k", "level", "cap"), [(1.0, 0.5, 1.0), (0.3, 0.2, 0.9)])
    def test_a_level_inside_of_the_range(self, k, level, cap):
        """The multiplier passes a level where it would be held if that were its bound: another quadrature."""
        rows, weights = Ball(2, "0.5").nodes(k, cap, (level,))
        exact = Ball(2, "0.5").averages(k, level)["saturated"]
        assert (rows["lam"] > level) @ weights == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("bound", [1, Rational(3, 10)])
def test_multipliers_that_share_a_bound(bound):
    """Two fields share a slack: where that is open, the two multipliers sum to its cost."""
    problem = ConvexProblem(COST, subject_to=[h >= 1 - xi[mu], k >= 1 - xi[mu], xi[mu] >= 0])
    system, solution = problem.kkt(), problem.cavity().solve({alpha: 1, C: bound})
    one, two, rest = (system[name][mu] for name in ("lambda", "lambda_2", "nu"))
    closed = solution[average(rest > 0)]
    for event in (Eq(one + two, C), Eq(one + two, bound), one + two >= C, Eq(rest, 0)):
        assert solution[average(event)] == pytest.approx(1 - closed, rel=1e-10)
    assert solution[average(one + two < C)] == pytest.approx(closed, rel=1e-10)
    assert solution[average(one >= bound)] == pytest.approx(solution[average(Eq(one, C))], rel=1e-9)


def test_an_edge_of_a_law_that_is_not_linear():
    """The multiplier is given by a formula with rounding in it; that it is at its bound is not."""
    a, b, field, c = (LawSymbol(name, name) for name in ("a", "b", "eta", "c"))
    size = Symbol("size", positive=True)
    gap = (a - field) / size + exp(a) / (1 + exp(a))
    law = JointLaw([a, b], [field], [], [(gap, a + b - 1), (C - gap, b)], [(c, gap)], [])
    edges = VanishingPairs(law, [c - C, c, 3 * c - 3 * C, c - C / 2, a + b - 1, sqrt(a) - c, log(c)], [size, C])
    found = edges.vanishing(np.arange(4), {size: 0.7234, C: 0.3})
    open_, free, idle = 0b10, 0b11, 0b01  # the second member of the first pair is zero and the first of the second...
    assert found[:, open_].tolist() == [True, False, True, False, True, False, False]
    assert found[:, free].tolist() == [False, False, False, False, True, False, False]
    assert found[:, idle].tolist() == [False, True, False, False, False, False, False]
