"""Vector problems declared by explicit components: several constraints a datum, several fields that come back.

The averages over the fields are taken branch by branch over polyhedra.  What they must give is known from the
same problems declared by a convex set, from closed forms at zero margin, and from simulations.
"""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from sympy import Abs, And, Eq, Max, Or, Piecewise, Rational, Sum, Symbol, atan, pi, sqrt

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Feature,
    N,
    PointCloud,
    TwoPoints,
    ValuesError,
    alpha,
    average,
    i,
    manifold_capacity,
    mu,
    phi,
)
from symcavity.algebra.polyhedral import CellAverage
from symcavity.model.equations import Equation

HALF = Rational(1, 2)
a = Symbol("a", integer=True)
kappa, R = Symbol("kappa", positive=True), Symbol("R", positive=True)
w = Feature("w")


def fields(count):
    x = Coupling("x", components=(a, 1, count))
    return [Sum(x[mu, i, k] * w[i], (i, 1, N)) for k in range(1, count + 1)]


def problem(*constraints):
    return ConvexProblem(
        minimize=Sum(w[i] ** 2, (i, 1, N)) / 2,
        subject_to=list(constraints),
        fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)],
    )


def two_points(overlap):
    first, second = fields(2)
    low, high = sqrt((1 - overlap) / 2), sqrt((1 + overlap) / 2)
    return problem(high * second + low * first >= 1, high * second - low * first >= 1)


def interval(radius):
    first, second = fields(2)
    return problem(second - radius * Abs(first) >= 1)


def vertices(points):
    V = fields(len(points[0]))
    return problem(*(sum(Rational(c) * v for c, v in zip(point, V, strict=True)) >= 1 for point in points))


TRIANGLE = [[1, 0, 1], [-1, 1, 1], [0, -1, 1]]


@pytest.fixture(scope="module")
def halves():
    first, second = fields(2)
    return problem(second + first / 2 >= 1, second - first / 2 >= 1).cavity()


@pytest.fixture(scope="module")
def pair():
    return two_points(HALF).cavity()


@pytest.fixture(scope="module")
def ball():
    return interval(R).cavity()


@pytest.fixture(scope="module")
def triangle():
    return vertices(TRIANGLE).cavity()


def by_name(theory, name):
    return next(s for s in theory.closures if s.name == name)


class TestTwoPoints:
    LOAD, S_W = "0.601631347750461208299846553892", "0.3147551136590471321700393946"

    @pytest.mark.parametrize("dps", [15, 27])
    def test_capacity_and_response(self, pair, dps):
        solution = pair.solve({kappa: HALF}, dps=dps)
        with mpmath.workdps(30):
            near = mpmath.mpf(10) ** (2 - dps)
            assert abs(solution[alpha] - mpmath.mpf(self.LOAD)) < near
            # each of the two equal fields carries half of the response of the projection
            assert abs(solution["S_w_to_v"] + solution["S_w_to_v_2"] - mpmath.mpf(self.S_W)) < near
        assert solution.residual < 1e-13

    def test_other_overlaps(self):
        low, high = Symbol("low", positive=True), Symbol("high", positive=True)
        first, second = fields(2)
        theory = problem(high * second + low * first >= 1, high * second - low * first >= 1).cavity()
        for rho, margin in (("9/10", "0.5"), ("1/5", "1.3")):
            half = {low: sqrt((1 - Rational(rho)) / 2), high: sqrt((1 + Rational(rho)) / 2)}
            solution = theory.solve({kappa: margin, **half})
            expected = manifold_capacity(TwoPoints(rho), kappa=margin)
            assert solution[alpha] == pytest.approx(expected.alpha, rel=1e-11)
            for name in ("S_w_to_v", "S_w_to_v_2"):  # with the factors in the messages, each field carries all of it
                assert solution[name] == pytest.approx(expected.S_w, rel=1e-11)

    def test_orthogonal_conditions_are_independent(self, pair):
        """Where one point is active, the field along it and the field across are two independent Gaussians."""
        inverse = 1 / pair.closed_form(alpha)
        assert inverse.coeff(phi(2, kappa)) == 2 * phi(0, -kappa / sqrt(3))
        assert all(len(node.conditions) == 2 for node in inverse.atoms(CellAverage))

    def test_the_load_may_be_given(self, pair):
        assert pair.solve({alpha: self.LOAD[:16]})["kappa"] == pytest.approx(0.5, rel=1e-12)

    def test_the_averages_by_a_grid(self, pair):
        """Each average against a sum over fields, with the branch found by projection: no formula is shared."""
        names = {s: by_name(pair, s) for s in ("q_w", "S_w_to_v", "S_w_to_v_2")}
        values = {names["q_w"]: 4.0, names["S_w_to_v"]: 0.3, names["S_w_to_v_2"]: 0.2}
        z = np.linspace(-8, 8, 1601) + 1e-4
        density = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
        eta = [2 * axis for axis in np.meshgrid(z, z, indexing="ij")]
        low, high = 0.5, np.sqrt(3) / 2
        # h = eta + S*(lambda - lambda_2), h_2 = eta_2 + S_2*sqrt(3)*(lambda + lambda_2): the projection in the
        # metric of S and S_2 on the two half-planes high*h_2 +- low*h >= 1, found by trying each and both
        S, S_2 = 2 * 0.3, 2 * 0.2
        own, cross = low**2 * S + high**2 * S_2, high**2 * S_2 - low**2 * S
        gaps = [1 - high * eta[1] - sign * low * eta[0] for sign in (1, -1)]
        both = [(gaps[k] * own - gaps[1 - k] * cross) / (own**2 - cross**2) for k in (0, 1)]
        lam = [np.where((both[0] > 0) & (both[1] > 0), b, 0.0) for b in both]
        for k in (0, 1):
            alone = np.maximum(gaps[k] / own, 0.0)
            fits = (alone > 0) & (gaps[1 - k] - alone * cross <= 0)
            lam[k] = np.where(fits, alone, lam[k])
        moments = {
            "q_lambda_minus_lambda_2": (lam[0] - lam[1]) ** 2,
            "q_1": 3 * (lam[0] + lam[1]) ** 2,
            # responses by parts: <d m/d eta> = <eta m>/q_w
            "S_lambda_minus_lambda_2_to_h": (lam[0] - lam[1]) * eta[0] / 4,
            "S_1": np.sqrt(3) * (lam[0] + lam[1]) * eta[1] / 4,
        }
        for name, table in moments.items():
            claimed = pair.closures[by_name(pair, name)].subs(values)
            assert float(claimed) == pytest.approx(float(density @ table @ density), rel=1e-5), name


    def test_observables_with_kinks(self, pair):
        """Fractions of data by the number of active points, which the convex set knows as its regimes."""
        kkt, solution = two_points(HALF).kkt(), pair.solve({kappa: HALF})
        first, second = kkt["lambda"][mu] > 0, kkt["lambda_2"][mu] > 0
        expected = manifold_capacity(TwoPoints("0.5"), kappa="0.5")
        both = solution[average(Piecewise((1, And(first, second)), (0, True)))]
        some = solution[average(Piecewise((1, Or(first, second)), (0, True)))]
        assert both == pytest.approx(expected.fully_supporting, rel=1e-12)
        assert some - both == pytest.approx(expected.touching, rel=1e-12)
        none_or_one = solution[average(Piecewise((3, And(first, second)), (2, True)))]
        assert none_or_one == pytest.approx(2 + both, rel=1e-12)
        zero = solution[average(Eq(kkt["lambda"][mu], 0))]
        assert zero == pytest.approx(1 - (both + some) / 2, rel=1e-12)
        gap = solution[average(Abs(kkt["lambda"][mu] - kkt["lambda_2"][mu]))]
        largest = solution[average(Max(kkt["lambda"][mu], kkt["lambda_2"][mu]))]
        assert 2 * largest - gap == pytest.approx(2 * solution[average(kkt["lambda"][mu])], rel=1e-12)


class TestIntervals:
    @pytest.mark.parametrize("dps", [15, 27])
    def test_capacity_and_response(self, ball, dps):
        solution = ball.solve({kappa: HALF, R: 1}, dps=dps)
        with mpmath.workdps(30):
            near = mpmath.mpf(10) ** (2 - dps)
            assert abs(solution[alpha] - mpmath.mpf("0.587934160713582609188894682487")) < near
            assert abs(solution["S_w_to_v"] - mpmath.mpf("0.2496041149998410444515538677")) < near

    @pytest.mark.parametrize("radius", ["1/2", "2"])
    def test_other_radii(self, ball, radius):
        expected = manifold_capacity(Ball(1, radius), kappa="0.7")
        solution = ball.solve({kappa: "0.7", R: radius})
        assert solution[alpha] == pytest.approx(expected.alpha, rel=1e-12)
        assert solution["S_w_to_v"] == pytest.approx(expected.S_w, rel=1e-12)
        assert solution["S_w_to_v"] == solution["S_w_to_v_2"]

    @pytest.mark.parametrize("radius", [HALF, 1, 3])
    def test_zero_margin(self, ball, radius):
        expected = HALF + 2 / pi * atan(radius)
        assert abs(1 / ball.closed_form(alpha).subs({kappa: 0, R: radius}).evalf(25) - expected.evalf(25)) < 1e-23
        assert 1 / ball.solve({kappa: 0, R: radius})[alpha] == pytest.approx(float(expected), rel=1e-13)

    def test_a_closed_form_where_all_conditions_are_orthogonal(self):
        load = interval(1).cavity().closed_form(alpha)
        assert not load.has(CellAverage)
        gap = 1 / load - 2 * phi(2, kappa / sqrt(2))
        assert abs(gap.subs(kappa, HALF).evalf(30)) < 1e-28


def test_one_combination_of_fields_is_one_field():
    """The average over the field that is left of a truncated moment is a truncated moment: the perceptron."""
    first, second = fields(2)
    theory = problem(3 * first + 4 * second >= 5).cavity()
    assert theory.closed_form(alpha) == 1 / phi(2, kappa)


class TestScales:
    """Fields in different scales: the couplings of a component are those of the set, up to a factor."""

    @pytest.mark.parametrize("margin", ["1/2", 1, 2])
    def test_the_capacity_is_that_of_the_set(self, halves, margin):
        solution = halves.solve({kappa: margin})
        assert solution[alpha] == pytest.approx(manifold_capacity(Ball(1, HALF), kappa=margin).alpha, rel=1e-12)
        assert solution.residual < 1e-14

    def test_nothing_is_left_for_a_root_finder(self, halves):
        """The two self-couplings are in proportion, which shows when the load is gone."""
        assert halves.reduced_with_load.core == []
        load = halves.closed_form(alpha)
        assert load.free_symbols == {kappa}
        # the squared distance of a Gaussian pair of fields from the cone in which both constraints hold
        assert (1 / load).is_Add
        assert len((1 / load).args) == 3

    def test_the_results_can_be_read(self, halves):
        claims = halves.derivation["result"].claims
        assert claims[0].lhs == alpha
        assert all(claim.rhs.count_ops() < 400 for claim in claims)
        text = halves.derivation.to_latex()
        assert "nan" not in text.lower()
        # branches of one value stay apart, each under the conditions of its own
        assert text.count("\\begin{cases}") >= 4
        assert "\\text{ or }" not in text


class TestThreeFields:
    def test_capacity(self, triangle):
        solution = triangle.solve({kappa: HALF})
        expected = manifold_capacity(PointCloud(np.array(TRIANGLE, float)), kappa="0.5", samples=2**17)
        assert abs(solution[alpha] - expected.alpha) < 4 * expected.stderr
        assert solution["S_w_to_v"] == pytest.approx(expected.S_w, rel=2e-3)
        assert solution.residual < 1e-13

    def test_more_digits_than_there_are(self, triangle):
        with pytest.raises(ValuesError, match="3 fields"):
            triangle.solve({kappa: HALF}, dps=20)

    def test_four_fields_are_sampled(self):
        corners = [[1, 0, 0, 1], [-1, 1, 0, 1], [0, -1, 1, 1], [0, 0, -1, 1]]
        solution = vertices(corners).cavity().solve({kappa: HALF})
        expected = manifold_capacity(PointCloud(np.array(corners, float)), kappa="0.5", samples=2**17)
        error = np.hypot(expected.stderr, solution.stderr(alpha))
        assert abs(float(solution[alpha]) - expected.alpha) < 4 * error


@pytest.fixture(scope="module")
def derivation(pair):
    return pair.derivation


class TestTheRecord:
    def test_every_claim_is_judged(self, derivation):
        verdict = derivation.verify(dps=15)
        assert verdict, str(verdict)
        assert not verdict.unchecked

    def test_intervals(self):
        verdict = interval(1).cavity().derivation.verify(dps=15)
        assert verdict, str(verdict)

    def test_it_can_be_written(self, derivation):
        assert "\\ge 0" in derivation.to_latex()
        assert "≥ 0" in derivation.to_text()
        assert derivation.to_html()

    def test_self_couplings_between_independent_couplings_are_named_and_vanish(self, derivation):
        claims = {str(c.lhs): c.rhs for c in derivation["datum.self_coupling_mean"].claims}
        assert {name for name, mean in claims.items() if mean == 0} == {"⟨F^00_12⟩", "⟨F^00_21⟩"}
        assert sum(len(c.rhs.atoms(Sum)) for c in derivation["feature.self_coupling"].claims) == 4

    @pytest.mark.parametrize("key", ["feature.self_coupling_mean", "datum.self_coupling_mean"])
    def test_a_cross_coupling_that_does_not_vanish_is_caught(self, derivation, key):
        step = derivation[key]
        *others, last = step.claims
        assert last.rhs == 0
        changed = replace(step, claims=(*others, Equation(last.lhs, others[0].rhs)))
        assert not all(v.ok for v in changed.verdicts(20))

    def test_an_equation_without_them_is_caught(self, derivation):
        step = derivation["feature.cavity_equation"]
        cross = next(s for s in step.claims[0].rhs.free_symbols if str(s) == "F_00_12")
        fewer = Equation(step.claims[0].lhs, step.claims[0].rhs.xreplace({cross: 0}))
        assert not all(v.ok for v in replace(step, claims=(fewer, *step.claims[1:])).verdicts(20))

    @pytest.mark.parametrize("name", ["S_lambda_minus_lambda_2_to_h", "q_1"])
    def test_a_missing_branch_is_caught(self, derivation, name):
        """Without the branch on which both constraints are active the averages are wrong."""
        step = derivation[f"closure.{name}"]
        claim = step.claims[0]
        joint = [node for node in claim.rhs.atoms(CellAverage) if _is_joint(node)]
        assert joint
        fewer = Equation(claim.lhs, claim.rhs.xreplace(dict.fromkeys(joint, 0)))
        assert not all(v.ok for v in replace(step, claims=(fewer,)).verdicts(20))

    def test_a_flipped_condition_is_caught(self, derivation):
        step = derivation["closure.q_lambda_minus_lambda_2"]
        claim = step.claims[0]
        node = min(claim.rhs.atoms(CellAverage), key=str)
        flipped = node.func(node.body, node.zs, -node.conditions[0], *node.conditions[1:])
        wrong = Equation(claim.lhs, claim.rhs.xreplace({node: flipped}))
        assert not all(v.ok for v in replace(step, claims=(wrong,)).verdicts(20))


def _is_joint(node):
    """Whether both conditions of a cell change together under the reflection of the first field's sign."""
    turned = {c.xreplace({z: -z for z in node.zs[1:]}).expand() for c in node.conditions}
    return turned == {c.expand() for c in node.conditions}


def test_without_the_joint_branch_the_response_is_wrong(pair):
    """The capacity formula of one active point alone misses the reference by far."""
    inverse = 1 / pair.closed_form(alpha)
    fewer = inverse.xreplace(dict.fromkeys(inverse.atoms(CellAverage), 0))
    assert abs(float(fewer.subs(kappa, HALF)) - float(inverse.subs(kappa, HALF))) > 0.1


@pytest.mark.parametrize(("declared", "load"), [(two_points(HALF), 0.45), (interval(1), 0.4)])
def test_at_finite_size(declared, load):
    table = declared.cavity().compare(declared.simulate({alpha: load}, N=200, seeds=20))
    scores = [row.z for row in table.rows]
    assert len(scores) > 5
    assert max(map(abs, scores)) <= 3, str(table)
