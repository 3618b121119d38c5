"""The declared problem is what is solved: residuals, independent solvers, negative controls."""

import numpy as np
import pytest
from declarations_simulated import (
    VALUES,
    C,
    field,
    gamma,
    hard,
    l,
    logistic,
    margin,
    rho,
    ridge,
    soft,
    tied,
    uneven,
    w,
    y,
)
from scipy.optimize import minimize
from sympy import Abs, Eq, Max, Min, Piecewise, Rational, Sum, Symbol, exp, sqrt, tanh

from symcavity.errors import NotConverged, UnstableSolution, UnsupportedLaw
from symcavity.evaluate.solve import solve_theory
from symcavity.face import ConvexProblem
from symcavity.finite.compare import compare
from symcavity.finite.compiled import compile_system
from symcavity.finite.draw import coupling_law
from symcavity.finite.given_values import read_values
from symcavity.finite.instance import Instance
from symcavity.finite.minimum import solve_instance
from symcavity.finite.quadratic import quadratic_program, solve_assembled
from symcavity.finite.run import simulate
from symcavity.finite.setup import as_system
from symcavity.method.theory import Theory
from symcavity.model.averages import average, norm, response
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import FEATURE, N, P, alpha, i, mu
from symcavity.model.quantities import Quenched, Variable
from symcavity.model.system import System


@pytest.mark.parametrize("name", VALUES)
def test_equations_hold(name):
    problem, values = VALUES[name]
    sim = simulate(problem, values, N=40, seeds=3)
    assert sim.infeasible == 0
    assert sim.residuals.worst < 1e-8
    assert set(sim.samples[0].arrays) == {*sim.system.variables, *(g.name for g in sim.system.globals)}


@pytest.mark.parametrize(
    "name", ["hard", "soft", "hinge", "biased", "uneven", "positive", "band", "exact", "lasso", "pursuit"]
)
def test_an_independent_conic_solver_agrees(name):
    pytest.importorskip("clarabel")
    problem, values = VALUES[name]
    system = as_system(problem)
    instance = Instance(compile_system(system), read_values(system, values), 20, 3, coupling_law("gaussian"))
    ours = solve_instance(system, instance)
    program = quadratic_program(system)
    theirs = solve_assembled(program.assemble(instance))
    weights = ours.state.site[FEATURE][:, compile_system(system).laws[FEATURE].labels.index("w[i]")]
    start = 20 * [str(q) for q in program.forms[FEATURE].states].index("w[i]")
    assert weights == pytest.approx(theirs.variables[start : start + 20], abs=1e-5)


def test_logistic_minimises_the_written_objective():
    sim = simulate(logistic, VALUES["logistic"][1], N=12, seeds=1)
    instance = sim.reader(0).instance
    signs, (x,) = instance.quenched[y], instance.couplings

    def objective(v):
        return v @ v / 2 + np.sum(np.log1p(np.exp(-signs * (x @ v))))

    assert sim.samples[0]["w"] == pytest.approx(minimize(objective, np.zeros(12), tol=1e-10).x, abs=1e-5)


def test_a_squared_hinge_with_a_sum_of_moduli_minimises_the_written_objective():
    problem = ConvexProblem(Sum(Max(0, 1 - field) ** 2, (mu, 1, P)) / 2 + Sum(Abs(w[i]), (i, 1, N)) / 5)
    sim = simulate(problem, {"alpha": 3}, N=8, seeds=2)
    for k in range(2):
        (x,) = sim.reader(k).instance.couplings

        def objective(v):  # w = v[:8] - v[8:], with both parts positive
            return np.sum(np.maximum(0, 1 - x @ (v[:8] - v[8:])) ** 2) / 2 + np.sum(v) / 5  # noqa: B023

        best = minimize(objective, np.full(16, 0.1), bounds=16 * [(0, None)], tol=1e-13).x
        assert 0 < np.count_nonzero(sim.samples[k]["w"]) < 8
        assert sim.samples[k]["w"] == pytest.approx(best[:8] - best[8:], abs=1e-5)


@pytest.mark.parametrize("name", ["sqrt", "exp", "numpy", "q0", "response0", "x0", "q_w", "S_w", "z_1", "lambda_"])
@pytest.mark.parametrize("assumptions", [{}, {"real": True}, {"positive": True}])
def test_parameters_may_have_any_name(name, assumptions):
    def read(scale):
        x = Coupling("x", variance=sqrt(1 + scale**2) / N)
        h = Sum(x[mu, i] * w[i], (i, 1, N))
        bowl = Sum(exp(w[i] - scale) + w[i] ** 2, (i, 1, N))
        problem = ConvexProblem(bowl + Sum(sqrt(1 + (h - scale) ** 2), (mu, 1, P)))
        sim = simulate(problem, {alpha: 1, scale: 0.3}, N=12, seeds=1)
        return [sim[o].mean for o in (average(scale * sqrt(1 + w[i] ** 2)), response(w) + average(scale * w[i]))]

    assert read(Symbol(name, **assumptions)) == read(Symbol("C", **assumptions))


def test_ridge_is_the_textbook_solution():
    sim = simulate(ridge, VALUES["ridge"][1], N=15, seeds=1)
    (f,) = sim.reader(0).instance.couplings
    weights = np.linalg.solve(f.T @ f + 3 * np.eye(15), f.T @ f @ np.ones(15))
    assert sim.samples[0]["Delta"] == pytest.approx(1 - weights, abs=1e-12)
    assert sim.samples[0].method == "linear solve"
    assert rho in sim.reader(0).instance.quenched
    assert gamma in sim.setup.values.parameters


@pytest.mark.parametrize("method", ["message passing", "interior point"])
def test_methods_agree(method):
    chosen = simulate(hard, {"alpha": 0.8}, N=30, seeds=2)
    other = simulate(hard, {"alpha": 0.8}, N=30, seeds=2, method=method)
    assert other.arrays("w") == pytest.approx(chosen.arrays("w"), abs=1e-10)
    assert other.samples[0].method == method


def test_a_system_of_equations_gives_the_same_as_the_problem():
    from_equations = simulate(margin, {"alpha": 0.7}, N=30, seeds=2)
    from_problem = simulate(hard, {"alpha": 0.7}, N=30, seeds=2)
    assert from_equations.arrays("lambda") == pytest.approx(from_problem.arrays("lambda"), abs=1e-9)


def test_multipliers_off_the_margin_are_exactly_zero():
    sample = simulate(hard, {"alpha": 0.5}, N=40, seeds=1).samples[0]
    on = sample["lambda"] > 0
    assert np.all(sample["lambda"][~on] == 0)
    assert np.all(sample["h"][on] == 0)
    assert np.all(sample["h"][~on] > 0)


def test_a_penalised_bias_follows_its_condition():
    sim = simulate(tied, VALUES["tied"][1], N=30, seeds=1)
    signs = sim.reader(0).instance.quenched[y]
    assert 30 * sim.samples[0]["b"] == pytest.approx(np.sum(signs * sim.samples[0]["lambda"]))


def test_declared_variances_are_drawn():
    sim = simulate(uneven, VALUES["uneven"][1], N=200, seeds=1)
    instance = sim.reader(0).instance
    measured = 200 * instance.couplings[0].var(axis=0)
    for value in (0.2, 1.8):
        assert measured[instance.quenched[l] == value].mean() == pytest.approx(value, rel=0.1)


@pytest.mark.parametrize("broken", ["lambda", "w", "h"])
def test_residuals_notice_a_changed_variable(broken):
    sim = simulate(hard, {"alpha": 0.5}, N=30, seeds=1)
    instance, state = sim.reader(0).instance, sim.samples[0].solved.state.copy()
    for side, law in instance.system.laws.items():
        if broken in law.names:
            state.site[side][:, law.names.index(broken)] *= 1.001
    assert instance.residuals(state).worst > 1e-4


def test_residuals_notice_a_flipped_sign_in_the_law():
    from declarations_simulated import field, lam, w, x
    from sympy import Eq, Sum

    from symcavity import BipartiteSystem
    from symcavity.model.complementary import Complementary
    from symcavity.model.kinds import P, i, mu
    from symcavity.model.quantities import Field

    h = Field("h")
    wrong = BipartiteSystem(
        [Eq(w[i], -Sum(lam[mu] * x[mu, i], (mu, 1, P))), Eq(h[mu], field - 1)],
        [Complementary(lam[mu], h[mu])],
    )
    sim = simulate(margin, {"alpha": 0.5}, N=30, seeds=1)
    flipped = Instance(
        compile_system(wrong), read_values(wrong, {"alpha": 0.5}), 30, 0, coupling_law("gaussian")
    )
    assert flipped.residuals(sim.samples[0].solved.state).worst > 0.1
    with pytest.raises(NotConverged):
        simulate(wrong, {"alpha": 0.5}, N=30, seeds=1)


def test_a_norm_that_vanishes_at_the_minimum_has_no_slope_and_no_failing_factorisation():
    """The penalty is stronger than the gradient of the loss at zero, so that all weights vanish."""
    length = sqrt(Sum(w[i] ** 2, (i, 1, N)) / N)
    problem = ConvexProblem(Sum((field - 1) ** 2, (mu, 1, P)) / 2 + 10 * N * length)
    with pytest.raises(NotConverged, match="no slope there, as a norm has none at zero") as caught:
        simulate(problem, {alpha: 0.5}, N=20, seeds=1)
    assert "nan" not in str(caught.value)


def test_forced_methods_that_do_not_apply_are_refused():
    with pytest.raises(UnsupportedLaw):
        simulate(soft, {"alpha": 1, C: 1}, N=20, seeds=1, method="newton")
    with pytest.raises(UnsupportedLaw):
        simulate(ridge, VALUES["ridge"][1], N=20, seeds=1, method="interior point")
    with pytest.raises(UnsupportedLaw):
        simulate(hard, {"alpha": 0.5}, N=20, seeds=1, method="guess")


@pytest.mark.parametrize("method", ["", "interior point"])
def test_infeasible_instances_are_counted(method):
    sim = simulate(hard, {"alpha": 1.9}, N=20, seeds=12, method=method)
    assert 0 < sim.infeasible < 12
    assert sim.feasible_fraction.mean == 1 - sim.infeasible / 12
    assert f"{sim.infeasible}" in str(sim)
    assert sim[average(w[i] ** 2)].infeasible == sim.infeasible


@pytest.mark.parametrize(("mean", "stable"), [(2, False), (Rational(1, 2), True)])
def test_instances_leave_a_fixed_point_that_repels(mean, stable):
    """Silence solves a network of units that excite each other; where they excite enough it repels."""
    J, v, j = Coupling("J", between=(i, i), mean=mean / N, variance=1 / (9 * N)), Variable("v", i), Symbol("j")
    network = System([Eq(v[i], tanh(Sum(J[i, j] * v[j], (j, 1, N))))])
    sim = simulate(network, {}, N=40, seeds=3)
    assert not sim.unstable
    begun = "all variables at zero" if stable else "beside a fixed point that repels"
    assert f"fixed points found from {begun}: all stable" in str(sim)
    guess = None if stable else {"q_v": 0.9, "M_v": 0.95}
    (row,) = compare(solve_theory(Theory(network), {}, guess=guess), sim, [average(v[i] ** 2)])
    assert row.simulation.mean == 0 if stable else abs(row.simulation.mean - row.theory) < 0.05
    for k, sample in enumerate(sim.samples):
        (centred,) = sim.reader(k).instance.couplings
        whole = np.max(np.linalg.eigvals(centred + float(mean) / 40).real)
        at_silence = sample.solved.leading if stable else sample.solved.left
        assert at_silence == pytest.approx(whole, abs=0.02)
        if not stable:
            slope = 1 - sim.reader(k).site_values(v[i]) ** 2
            assert np.max(np.linalg.eigvals(slope[:, None] * (centred + float(mean) / 40)).real) < 1


def test_instances_say_where_their_fixed_point_repels():
    """A chaotic network: beside silence nothing comes to rest."""
    J, v, j = Coupling("J", between=(i, i), variance=9 / N), Variable("v", i), Symbol("j")
    network = System([Eq(v[i], tanh(Sum(J[i, j] * v[j], (j, 1, N))))])
    sim = simulate(network, {}, N=40, seeds=3)
    assert set(sim.unstable) == {0, 1, 2}
    assert "3 unstable (seeds 0, 1, 2)" in str(sim)
    with pytest.warns(UnstableSolution, match="do not settle in it"):
        theory = solve_theory(Theory(network), {}, guess={"q_v": 0.5})
    said = str(compare(theory, sim, [average(v[i])]))
    assert "3 instances were found, from all variables at zero, at a fixed point that repels" in said


def test_pieces_may_depend_on_numbers_and_on_sites_at_once():
    """Payments of banks: what is owed, what there is, and a cap that is the same for all."""
    J, v, j, owed = Coupling("J", between=(i, i), variance=1 / (9 * N)), Variable("v", i), Symbol("j"), Quenched("d", i)
    paid = Max(0, Min(owed[i], C, 1 + Sum(J[i, j] * v[j], (j, 1, N))))
    sim = simulate(System([Eq(v[i], paid)]), {owed: {1: "1/2", 2: "1/2"}, C: "3/2"}, N=20, seeds=2)
    assert sim.residuals.worst < 1e-12
    assert sim[average(v[i] >= owed[i])].mean > 0
    assert sim[average(v[i] > C)].mean == 0


def test_losses_that_stop_bending_beside_norms_of_groups():
    """Huber's loss far from its minimum is straight, and long steps run away; its convolution bends."""
    x, z, v1, v2, out = Coupling("x"), Coupling("z"), Variable("v1", i), Variable("v2", i), Variable("o", mu)
    e = Quenched("e", mu)
    error = Sum(x[mu, i] * v1[i], (i, 1, N)) + Sum(z[mu, i] * v2[i], (i, 1, N)) - e[mu]
    huber = Piecewise((error**2 / 2, Abs(error) <= Rational(1, 2)), (Abs(error) / 2 - Rational(1, 8), True))
    split = (error - out[mu]) ** 2 / 2 + Abs(out[mu]) / 2
    groups = Sum(norm(v1[i], v2[i]), (i, 1, N)) / 2
    values = {alpha: 2, e: {2: "1/2", -1: "1/2"}}
    one, other = (
        simulate(as_system(ConvexProblem(Sum(loss, (mu, 1, P)) + groups)), values, N=60, seeds=2)
        for loss in (huber, split)
    )
    assert not one.failed
    size = average(v1[i] ** 2)
    assert one[size].mean == pytest.approx(other[size].mean, rel=1e-9)
