"""Manifolds: the theory that the engine derives from a support function, its numbers, and negative controls."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, Symbol, sqrt, symbols

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Ellipsoid,
    Feature,
    N,
    NotConvex,
    P,
    PointCloud,
    Polytope,
    Segment,
    SupportFunction,
    TwoPoints,
    ValuesError,
    alpha,
    average,
    i,
    manifold_capacity,
    mu,
    response,
)
from symcavity.derivations.manifold import D, a, g, kappa, problem, u, w
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM
from symcavity.shapes import ExpressionShape
from symcavity.sites.sets.averages import GAP2, LAM, PSI, ProjectionAverage

HALF = Rational(1, 2)
x, y, z = symbols("x y z")
g_hard = g


@pytest.fixture(scope="module")
def theory():
    return problem.cavity()


@pytest.fixture(scope="module")
def derivation(theory):
    return theory.derivation


def test_optimality_conditions_have_anchor_points():
    system = problem.kkt()
    assert str(system.feature.written()[0]) == "w[i] = Sum(Lambda[mu, a]*u[mu, i, a], (mu, 1, P), (a, 1, D + 1))"
    rows = {str(e) for e in system.datum.written()}
    assert "Lambda[mu, a] = (grad g_S)_a(V[mu, a])*lambda[mu]" in rows
    assert "h[mu] = g_S(V[mu, a]) - 1" in rows
    assert system.parameters == (D, kappa)


def test_the_closed_system(theory):
    """Equations 84, 104, A.11: with D as a symbol, and no knowledge of the set."""
    gap2, psi = (ProjectionAverage(body, g, D + 1, kappa) for body in (GAP2, PSI))
    assert theory.closed_form(alpha) == 1 / gap2
    assert (theory.closed_form(response(w)) - 1 - psi / gap2).simplify() == 0
    means = theory.datum.self_coupling
    assert str(means) == "S_w*KroneckerDelta(a, b)"


def test_the_symmetry_and_the_naive_analysis():
    found = problem.symmetry()
    assert found
    assert {q.family.name for q in found.scaled} == {"Lambda", "lambda"}
    values = {kappa: HALF, g: Ball(5, 1)}
    naive, cavity = problem.naive().solve(values), problem.cavity().solve(values)
    assert naive[alpha] == pytest.approx(cavity[alpha], rel=1e-12)
    assert naive[response(w)] == 1


EXACT = [
    (Ball(5, 1), "0.237566017581866176763170048110", "0.1592226103043858358367499047", "16.83742498491639019856120213"),
    (Ball(1, 1), "0.587934160713582609188894682487", "0.2496041149998410444515538677", "6.803482885133180441930225739"),
    (TwoPoints("0.5"), "0.601631347750461208299846553892", "0.3147551136590471321700393946", None),
]


@pytest.mark.parametrize(("shape", "load", "S_w", "mean"), EXACT, ids=lambda x: repr(x)[:15])
def test_many_digits(theory, shape, load, S_w, mean):
    solution = theory.solve({kappa: HALF, g: shape}, dps=27)
    lam = problem.kkt()["lambda"]
    with mpmath.workdps(30):
        assert abs(solution[alpha] - mpmath.mpf(load)) < mpmath.mpf("1e-26")
        assert abs(solution[response(w)] - mpmath.mpf(S_w)) < mpmath.mpf("1e-26")
        if mean:
            assert abs(solution[average(lam[mu])] - mpmath.mpf(mean)) < mpmath.mpf("1e-24")


def test_other_sets_and_observables(theory):
    solution = theory.solve({kappa: HALF, g: Ellipsoid(["1", "0.5", "0.25"])})
    lam, regime = problem.kkt()["lambda"], theory.datum.regime
    assert solution[alpha] == pytest.approx(0.4396236165839523716, rel=1e-11)
    assert solution[response(w)] == pytest.approx(0.2325368227835083694, rel=1e-10)
    assert solution[average(lam[mu])] == pytest.approx(9.0986922656284167, rel=1e-10)
    assert solution[average(Eq(regime, 3))] == pytest.approx(0.03911278152635200045, rel=1e-9)
    assert solution[average(Eq(regime, 1))] == pytest.approx(0.8709585939061734544, rel=1e-9)
    assert solution[average(lam[mu] > 0)] == pytest.approx(0.8709585939061734544 + 0.03911278152635200045, rel=1e-9)
    with pytest.raises(ValuesError):
        theory.solve({kappa: HALF, g: Ellipsoid(["1", "0.5"])}, dps=30)


def test_both_capacity_formulas(theory):
    """1/alpha = kappa^2 <lambda> as well (section 3, appendix)."""
    solution = theory.solve({kappa: "0.7", g: Ball(3, "0.4")})
    lam = problem.kkt()["lambda"]
    assert solution[alpha] == pytest.approx(1 / (0.49 * solution[average(lam[mu])]), rel=1e-12)


def test_load_and_set_in_the_declaration(theory):
    inner = SupportFunction("g_S", shape=Ball(5, 1))
    V = Sum(u[mu, i, a] * w[i], (i, 1, N))
    fixed = [Eq(average(w[i] ** 2), 1 / kappa**2)]
    declared = ConvexProblem(minimize=Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[inner(V) >= 1], fixed=fixed)
    margin = declared.cavity().solve({alpha: "0.237566017581866"})["kappa"]
    assert margin == pytest.approx(0.5, rel=1e-12)
    with pytest.raises(ValuesError, match="not given"):
        theory.solve({kappa: HALF})
    with pytest.raises(ValuesError, match="follows from the set"):
        theory.solve({kappa: HALF, g: Ball(5, 1), D: 4})


def test_sampled_sets_agree_with_their_capacity(theory):
    cloud = PointCloud([[1, 0, 1], [0, 1, 1], [-1, -1, 1.0]])
    solution = theory.solve({kappa: HALF, g: cloud})
    reference = manifold_capacity(cloud, kappa="0.5")
    assert abs(solution[alpha] - reference.alpha) < 5 * reference.stderr + 1e-12
    assert solution[response(w)] == pytest.approx(reference.S_w, rel=2e-2)


def test_every_claim_is_judged(derivation):
    verdict = derivation.verify(dps=30)
    assert verdict, str(verdict)
    assert not verdict.unchecked
    keys = [step.key for step in derivation]
    for key in ("datum.interior", "datum.touching", "datum.tip", "datum.regimes", "stein", "euler"):
        assert key in keys


def test_the_record_names_all_three_regimes(derivation):
    text = derivation.to_text()
    assert "every one of the D + 1 directions is absorbed" in " ".join(text.split())
    assert "it is not a projection" in " ".join(text.split())
    assert "⟨t · (v - t)⟩" in text
    assert "\\bm{P}" in derivation.to_latex()


@pytest.mark.parametrize(
    "key",
    ["datum.differentiate", "datum.touching", "datum.touching_trace", "datum.tip", "datum.solution", "stein", "euler"],
)
def test_a_flipped_sign_is_caught(derivation, key):
    step = derivation[key]
    claim = step.claims[-1] if key != "datum.solution" else step.claims[0]
    wrong = Equation(claim.lhs, -claim.rhs if claim.rhs != 0 and "constraint" not in key else claim.lhs * 0 + 1)
    if key == "datum.differentiate":
        claim = step.claims[0]
        wrong = Equation(claim.lhs, -claim.rhs)
    claims = tuple(wrong if c is claim else c for c in step.claims)
    assert not all(v.ok for v in replace(step, claims=claims).verdicts(20))


def test_without_the_third_regime_the_response_is_wrong(derivation):
    """The two regimes of the appendix alone: the claim about psi fails, and S_w misses its value."""
    step = derivation["datum.regimes"]
    claim = step.claims[0]
    fewer = claim.rhs.func(*claim.rhs.args[:-1])
    changed = replace(step, claims=(Equation(claim.lhs, fewer),))
    assert not all(v.ok for v in changed.verdicts())
    capacity = manifold_capacity(Ball(5, 1), kappa="0.5")
    without = 1 + capacity.alpha * (capacity.mean_psi + 6 * capacity.fully_supporting)
    assert abs(without - capacity.S_w) > 0.1


def test_points_are_the_perceptron(theory):
    from symcavity.derivations.gardner import kappa as margin
    from symcavity.derivations.gardner import problem as points

    expected = points.cavity().solve({margin: 1})
    got = theory.solve({kappa: 1, g: Segment(0)})
    assert got[alpha] == pytest.approx(expected[alpha], rel=1e-12)
    assert got[response(w)] == pytest.approx(expected[response(w)], rel=1e-10)


def test_bad_declarations():
    V = Sum(u[mu, i, a] * w[i], (i, 1, N))
    with pytest.raises(NotConvex):
        ConvexProblem(minimize=Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[g(V) <= 1])
    x = Coupling("x")
    with pytest.raises(DeclarationError, match="no free component index"):
        g(Sum(x[mu, i] * w[i], (i, 1, N)))
    with pytest.raises(DeclarationError):
        SupportFunction("g", shape=3)
    assert isinstance(Feature("w"), type(w))
    assert LAM.is_nonnegative
    assert Symbol("D", integer=True, positive=True) == D


@pytest.fixture(scope="module")
def soft():
    from symcavity.derivations.soft_manifold import problem as declared

    return declared


class TestSlack:
    def test_the_multiplier_is_bounded(self, soft):
        from symcavity.derivations.soft_manifold import C

        system = soft.kkt()
        solution = soft.cavity().inserted[DATUM].solution
        assert solution.cap == C
        assert solution.bound == 1
        assert not system.symmetry()

    def test_one_point_is_the_soft_margin_machine(self, soft):
        from symcavity.derivations import soft_margin
        from symcavity.derivations.soft_manifold import C, g, xi
        from symcavity.derivations.soft_margin import problem as points
        from symcavity.derivations.soft_margin import xi as slack

        got = soft.cavity().solve({alpha: HALF, C: 1, g: Segment(0)})
        expected = points.cavity().solve({alpha: HALF, soft_margin.C: 1})
        assert got[average(w[i] ** 2)] == pytest.approx(expected[average(w[i] ** 2)], rel=1e-11)
        assert got[response(w)] == pytest.approx(expected[response(w)], rel=1e-11)
        assert got[average(xi[mu])] == pytest.approx(expected[average(slack[mu])], rel=1e-9)

    def test_a_squared_hinge_is_a_quadratic_slack(self):
        """What is missed is squared, as a hinge or as a variable of its own."""
        C, xi, V = Symbol("C", positive=True), Datum("xi"), Sum(u[mu, i, a] * w[i], (i, 1, N))
        size = Sum(w[i] ** 2, (i, 1, N)) / 2
        hinge = ConvexProblem(size + C * Sum(Max(0, 1 - g(V)) ** 2, (mu, 1, P)) / 2)
        slack = ConvexProblem(size + C * Sum(xi[mu] ** 2, (mu, 1, P)) / 2, [g(V) >= 1 - xi[mu]])
        values = {alpha: HALF, C: 2, g: Ball(2, Rational(1, 3))}
        one, other = (p.cavity().solve(values)[average(w[i] ** 2)] for p in (hinge, slack))
        assert float(one) == pytest.approx(float(other), rel=1e-10)
        assert hinge.cavity().derivation.verify()

    def test_the_work_identity_and_the_hard_limit(self, soft):
        from symcavity.derivations.soft_manifold import C, g, xi

        theory, lam = soft.cavity(), soft.kkt()["lambda"]
        solution = theory.solve({alpha: HALF, C: 1, g: Ball(2, "0.5")})
        energy = solution[average(w[i] ** 2)]
        assert energy == pytest.approx(0.5 * solution[average(lam[mu] * (1 - xi[mu]))], rel=1e-10)
        hard = theory.solve({alpha: HALF, C: 10**5, g: Ball(2, "0.5")})
        margin = problem.cavity().solve({alpha: HALF, g_hard: Ball(2, "0.5")})["kappa"]
        assert hard[average(w[i] ** 2)] == pytest.approx(1 / margin**2, rel=1e-6)

    def test_every_claim_is_judged(self, soft):
        verdict = soft.cavity().derivation.verify(dps=20)
        assert verdict, str(verdict)
        assert "datum.saturated" in [step.key for step in soft.cavity().derivation]

    @pytest.mark.parametrize("which", range(4))
    def test_a_flipped_sign_of_the_saturated_response_is_caught(self, soft, which):
        step = soft.cavity().derivation["datum.saturated"]
        claim = step.claims[which]
        claims = tuple(Equation(c.lhs, -c.rhs) if c is claim else c for c in step.claims)
        assert all(v.ok for v in step.verdicts(20))
        assert not all(v.ok for v in replace(step, claims=claims).verdicts(20))

    def test_without_the_fourth_regime_the_response_is_wrong(self, soft):
        from symcavity.derivations.soft_manifold import C, g

        step = soft.cavity().derivation["datum.regimes"]
        claim = step.claims[0]
        for cases in (claim.rhs.args[:-1], (*claim.rhs.args[:-1], (-claim.rhs.args[-1][0], claim.rhs.args[-1][1]))):
            changed = replace(step, claims=(Equation(claim.lhs, claim.rhs.func(*cases)),))
            assert not all(v.ok for v in changed.verdicts())
        theory = soft.cavity()
        solution = theory.solve({alpha: HALF, C: 1, g: Ball(2, "0.5")})
        saturated = solution[average(Eq(theory.datum.regime, 4))]
        assert saturated == pytest.approx(solution[average(Eq(soft.kkt()["lambda"][mu], 1))], rel=1e-9)
        assert 0.3 < saturated < 1

    @pytest.mark.parametrize(
        ("shape", "exact"),
        [
            (PointCloud([[0.5, 0.75**0.5], [-0.5, 0.75**0.5]]), TwoPoints("0.5")),
            (Ellipsoid(["0.5", "0.5"]), Ball(2, "0.5")),
        ],
        ids=lambda shape: type(shape).__name__,
    )
    def test_sampled_sets_agree_with_integrals(self, soft, shape, exact):
        """Other projections, and averages by sampling: within their standard errors of the integrals."""
        from symcavity.derivations.soft_manifold import C, g, xi

        theory = soft.cavity()
        one = theory.solve({alpha: HALF, C: 1, g: g.given(shape, samples=2**12)})
        two = theory.solve({alpha: HALF, C: 1, g: exact})
        for what in (average(w[i] ** 2), response(w), average(xi[mu])):
            assert abs(one[what] - two[what]) < 5 * one.stderr(what)
            assert one.stderr(what) < 5e-3 * two[what]
        # negative control: a set that is slightly larger is told apart
        other = theory.solve({alpha: HALF, C: 1, g: Ball(2, "0.55") if exact.D == 2 else TwoPoints("0.4")})
        assert abs(one[average(w[i] ** 2)] - other[average(w[i] ** 2)]) > 5 * one.stderr(average(w[i] ** 2))

    def test_a_ball_by_its_expression(self, soft):
        """The same fields, the nearest points by cutting planes and Newton's method in place of a formula."""
        from symcavity.derivations.soft_manifold import C, g

        declared = ExpressionShape(z - sqrt(x**2 + y**2) / 2, (x, y, z))
        one, two = (
            soft.cavity().solve({alpha: HALF, C: 1, g: g.given(shape, samples=2**10)})
            for shape in (declared, Ellipsoid(["0.5", "0.5"]))
        )
        for what in (average(w[i] ** 2), response(w)):
            assert one[what] == pytest.approx(two[what], rel=1e-9)

    def test_a_fine_polygon_is_a_disc(self, soft):
        from symcavity.derivations.soft_manifold import C, g

        angles = 2 * np.pi * np.arange(48) / 48
        reach = 0.5 * np.sqrt(2 * np.pi / 48 / np.sin(2 * np.pi / 48))  # of the same area
        polygon = PointCloud(np.column_stack([reach * np.cos(angles), reach * np.sin(angles), np.ones(48)]))
        theory = soft.cavity()
        one = theory.solve({alpha: HALF, C: 1, g: g.given(polygon, samples=2**10)})
        two = theory.solve({alpha: HALF, C: 1, g: g.given(Ball(2, "0.5"), samples=2**10)})
        assert one[average(w[i] ** 2)] == pytest.approx(two[average(w[i] ** 2)], rel=2e-3)
        assert one[response(w)] == pytest.approx(two[response(w)], rel=2e-3)

    @pytest.mark.parametrize(
        "shape",
        [PointCloud([[1, 0, 1], [0, 1, 1], [-1, -1, 1.0]]), Polytope([[0.5], [-0.5]]), Ellipsoid(["0.5", "0.25"])],
        ids=repr,
    )
    def test_an_expensive_slack_is_the_hard_margin(self, soft, shape):
        from symcavity.derivations.soft_manifold import C, g

        load = Rational(1, 4)
        soft_one = soft.cavity().solve({alpha: load, C: 10**4, g: g.given(shape, samples=2**12)})
        hard = problem.cavity().solve({alpha: load, g_hard: g_hard.given(shape, samples=2**12)})
        assert soft_one[average(w[i] ** 2)] == pytest.approx(float(1 / hard["kappa"] ** 2), rel=1e-4)

    def test_the_work_identity_of_a_cloud(self, soft):
        """q_w = alpha <lambda (1 - xi)> holds by Stein's lemma and the closed system together."""
        from symcavity.derivations.soft_manifold import C, g, xi

        cloud = PointCloud([[1, 0, 1], [0, 1, 1.5], [-1, -1, 1.0], [0.5, 0.5, 2]])
        theory, lam = soft.cavity(), soft.kkt()["lambda"]
        solution = theory.solve({alpha: Rational(3, 10), C: 1, g: g.given(cloud, samples=2**12)})
        assert solution[average(w[i] ** 2)] == pytest.approx(
            0.3 * solution[average(lam[mu] * (1 - xi[mu]))], rel=1e-9
        )


def test_the_response_with_slack_is_the_average_of_psi():
    """Sampled responses are found by parts; the divergences of the projections say the same."""
    from symcavity.shapes.sampling import gaussian_scrambles
    from symcavity.shapes.slack import saturate

    cloud = PointCloud([[1, 0, 1], [0, 1, 1.5], [-1, -1, 1.0], [0.5, 0.5, 2]])
    for shape in (cloud, Ellipsoid(["1", "0.4"]), Ball(2, "0.5")):
        gaps, psi = [], []
        for t in gaussian_scrambles(3, 2**14, 3):
            p = saturate(shape, t, shape.project(t, 1.0), 0.6)
            gaps.append((p.psi - (t * p.lam_s).sum(axis=1)).mean())
            psi.append(p.psi.mean())
        error = np.std(gaps, ddof=1) / 4
        assert abs(np.mean(gaps)) < 4.5 * error
        assert error < 5e-3 * abs(np.mean(psi))


def test_sampled_solutions_carry_standard_errors(theory):
    cloud = PointCloud([[1, 0, 1], [0, 1, 1], [-1, -1, 1.0]])
    capacity = manifold_capacity(cloud, kappa="0.5")
    solution = theory.solve({kappa: HALF, g: cloud})
    assert solution.stderr(alpha) == pytest.approx(capacity.stderr, rel=0.2)
    assert solution[alpha] == pytest.approx(capacity.alpha, rel=1e-6)
    sampled = theory.solve({kappa: HALF, g: g.given(Ball(5, 1), samples=2**14)})
    gap = sampled[alpha] - mpmath.mpf("0.237566017581866176763")
    assert abs(gap) < 5 * sampled.stderr(alpha)
    assert capacity.theory.solve({kappa: HALF})[alpha] == solution[alpha]
