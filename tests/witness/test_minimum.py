"""The witness of the minimum: its searches against known minima, and claims that are falsified one by one."""

import numpy as np
import pytest
from scipy.special import erfc
from sympy import Abs, Max, Rational, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, Quenched, i, mu
from symcavity.algebra.precision import mp
from symcavity.derivations import soft_margin
from symcavity.model.equations import Equation
from symcavity.witness import brute_force, minimum, site_minima


def test_a_search_finds_the_minimum_of_a_kink_beside_a_spring():
    """|x| + (x - z)^2/2: half a square up to one, then |z| - 1/2."""
    z = np.linspace(-5, 5, 21)
    found = brute_force._searched(lambda x: np.abs(x) + (x - z) ** 2 / 2, 1, len(z))
    assert found == pytest.approx(np.where(np.abs(z) < 1, z * z / 2, np.abs(z) - 0.5), abs=1e-8)


def test_searches_within_searches():
    """max(0, 1 - x) + (x - y)^2/2 + (y - z)^2/2: two springs are one of half the strength."""
    z = np.array([-2.0, 0.5, 3.0])
    found = brute_force._searched(lambda x, y: np.maximum(0, 1 - x) + (x - y) ** 2 / 2 + (y - z) ** 2 / 2, 2, 3)
    assert found == pytest.approx([2.0, 0.0625, 0.0], abs=1e-7)


def test_a_grid_is_cut_where_something_jumps():
    """Of two fields of correlation 0.6: how likely the first exceeds 0.7, and the second exceeds the first by 0.3."""
    first, second = Symbol("first"), Symbol("second")
    root = np.array([[1.0, 0.0], [0.6, 0.8]])
    jumps = [first - Rational(7, 10), second - first - Rational(3, 10)]
    fields, weights = brute_force._grid(root, 40, jumps, (first, second))
    assert weights[fields[0] > 0.7].sum() == pytest.approx(erfc(0.7 / np.sqrt(2)) / 2, rel=1e-3)
    assert weights[fields[1] - fields[0] > 0.3].sum() == pytest.approx(erfc(0.3 / np.sqrt(2 * 0.8)) / 2, rel=1e-3)


def test_labels_that_a_threshold_decides():
    """The minimum of a squared hinge, with a bias, whose labels are signs of a teacher's field beyond a threshold."""
    x, w, t, b, theta = Coupling("x"), Feature("w"), Quenched("t", i), Global("b"), Symbol("theta", real=True)
    y = sign(Sum(x[mu, i] * t[i], (i, 1, N)) - theta)
    miss = Max(0, 1 - y * (Sum(x[mu, i] * w[i], (i, 1, N)) + b))
    problem = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(miss**2, (mu, 1, P)))
    assert all(v.ok for v in problem.cavity().derivation["minimum"].verdicts(20))


def test_a_bound_by_the_size_of_a_field_of_a_teacher():
    """The grid is cut where the bound bends: over equal steps the minimum of a datum was wrong by half a percent."""
    x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
    h, u = (Sum(x[mu, i] * vector[i], (i, 1, N)) for vector in (w, t))
    theory = ConvexProblem(-Sum(t[i] * w[i], (i, 1, N)), [Abs(h) <= Abs(u)]).cavity()
    assert all(v.ok for v in theory.derivation["minimum"].verdicts(20))


def test_a_point_is_taken_at_which_the_search_has_digits():
    """Far inside of its constraint a site costs less than what a search misses: other numbers are drawn."""
    x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
    C, R, kappa = (Symbol(name, positive=True) for name in ("C", "R", "kappa"))
    margin = Sum(x[mu, i] * w[i], (i, 1, N)) + kappa
    objective = Sum(R * w[i] ** 2 / 2, (i, 1, N)) + C * Sum(xi[mu], (mu, 1, P))
    theory = ConvexProblem(objective, [margin >= 1 - xi[mu], xi[mu] >= 0]).cavity()
    assert all(v.ok for v in theory.derivation["minimum"].verdicts(20))
    assert min(size for _, size in theory.memory["minimum by search"].averages.values()) > minimum.RESOLVED


@pytest.fixture(scope="module")
def record():
    return soft_margin.problem.cavity().derivation


CLAIMS = [("minimum", k) for k in range(3)] + [("minimum.slopes", k) for k in range(4)] + [("minimum.value", 0)]


@pytest.mark.parametrize(("key", "place"), CLAIMS)
@pytest.mark.parametrize("factor", [2, -1, Rational(9, 10)])
def test_a_wrong_claim_is_caught(record, key, place, factor):
    claims = list(record[key].claims)
    assert all(v.ok for v in record[key].verdicts(20))
    claims[place] = Equation(claims[place].lhs, factor * claims[place].rhs)
    assert not all(v.ok for v in record.replaced(key, claims=tuple(claims))[key].verdicts(20))


def test_what_is_not_searched_is_not_checked(record, monkeypatch):
    def refused(_):
        raise site_minima.NotSearched("too large")

    monkeypatch.setattr(minimum, "searched", refused)
    assert [v.ok for v in record["minimum"].verdicts(20)] == [None]


@pytest.fixture(scope="module")
def copies():
    return soft_margin.problem.copies(2, share={soft_margin.x: Symbol("u", nonnegative=True)}).cavity().derivation


def test_copies_are_searched_one_by_one(copies):
    """A datum of two soft margins has four variables and two fields, of which those of one copy meet."""
    with mp.workdps(30):
        sites = site_minima.site_costs(copies["minimum"].evidence["theory"])
    assert sorted(len(site.variables) + len(site.fields) for site in sites) == [1, 1, 2, 2]
    assert all(len(site.etas) == 1 for site in sites)


@pytest.mark.parametrize("place", [0, 1])
def test_a_wrong_minimum_of_copies_is_caught(copies, place):
    claims = list(copies["minimum"].claims)
    assert [v.ok for v in copies["minimum"].verdicts(20)] == [True, True]
    claims[place] = Equation(claims[place].lhs, Rational(9, 10) * claims[place].rhs)
    assert not all(v.ok for v in copies.replaced("minimum", claims=tuple(claims))["minimum"].verdicts(20))


def test_what_shares_a_term_is_searched_together(record):
    """The residual of a datum and its slack share a constraint."""
    with mp.workdps(30):
        sites = site_minima.site_costs(record["minimum"].evidence["theory"])
    data = [s for s in sites if str(s.kind) == "datum"]
    assert [len(s.variables) + len(s.fields) for s in data] == [2]


def test_a_bound_on_a_field_that_a_teacher_turns_is_judged():
    """How far it is missed is told by the teacher's field as well, which is given at a point."""
    from symcavity.derivations import sign_teacher

    derivation = sign_teacher.problem.cavity().derivation
    for key in ("minimum", "minimum.slopes"):
        assert all(verdict.ok for verdict in derivation[key].verdicts(20)), key
