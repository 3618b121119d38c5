"""A theory in any units is one computation: targets from 1e-100 to 1e100, with what follows from its solution."""

import pickle

import pytest
from sympy import Abs, Eq, Max, Piecewise, Rational, Sum, Symbol, sqrt
from sympy.stats import Laplace, Normal, Uniform

from symcavity.face import ConvexProblem
from symcavity.model.averages import average, response
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import N, P, alpha, i, mu
from symcavity.model.quantities import Feature, Global, Quenched

x, w, t, y, b = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("y", mu), Global("b")
C, gamma = Symbol("C", positive=True), Symbol("gamma", positive=True)
h, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
r, lengths, half_norm = h - y[mu], Sum(Abs(w[i]), (i, 1, N)), Sum(w[i] ** 2, (i, 1, N)) / 2
squares, spread = Sum(r**2, (mu, 1, P)) / 2, sqrt(Sum(w[i] ** 2, (i, 1, N)) / N)
PROBLEMS = {  # name: declaration, load, parameters in units of the targets
    "least squares": (ConvexProblem(squares), 2, []),
    "ridge": (ConvexProblem(squares + gamma * half_norm), 1, []),
    "lasso": (ConvexProblem(squares + C * lengths), 1, [C]),
    "elastic net": (ConvexProblem(squares + C * lengths + gamma * half_norm), 1, [C]),
    "positive": (ConvexProblem(squares, [w[i] >= 0]), 2, []),
    "deviations": (ConvexProblem(Sum(Abs(r), (mu, 1, P))), 3, []),
    "quantile": (ConvexProblem(Sum(Max(3 * (r + b), -r - b), (mu, 1, P))), 3, []),
    "tube": (ConvexProblem(half_norm + gamma * Sum(Max(0, Abs(r) - C), (mu, 1, P))), 2, [C, gamma]),
    "huber": (
        ConvexProblem(Sum(Piecewise((r**2 / 2, Abs(r) <= C), (C * Abs(r) - C**2 / 2, True)), (mu, 1, P))), 5, [C]
    ),
    "pursuit": (ConvexProblem(lengths, [Eq(h, y[mu])]), Rational(1, 2), []),
    "interpolation": (ConvexProblem(half_norm, [Eq(h, y[mu])]), Rational(1, 2), []),
    "margins": (ConvexProblem(half_norm, [h >= C]), 1, [C]),
    "bounded": (ConvexProblem(squares, [w[i] <= C, w[i] >= -C]), 2, [C]),
    "budget": (ConvexProblem(squares, [Eq(Sum(w[i], (i, 1, N)), C * N), w[i] >= 0]), 2, [C]),
    "norm": (ConvexProblem(squares, [Sum(w[i] ** 2, (i, 1, N)) <= C**2 * N]), 2, [C]),
    "teacher": (ConvexProblem(Sum(Abs(h - u - y[mu]), (mu, 1, P)) + half_norm / C), 3, [C]),
    "quartic": (ConvexProblem(squares + gamma * Sum(w[i] ** 4, (i, 1, N)) / C**2), 2, [C]),
}
SIZES = (Rational(1), Rational(10) ** -100, Rational(3, 10**9), Rational(10) ** 30, Rational(10) ** 100)
OBSERVED = {average(w[i] ** 2): 2, average(w[i]): 1, average(Abs(w[i]) > 0): 0, average(w[i] > 0): 0}


def values_of(problem, load, scaled, size):
    known = {"gamma": Rational(1, 3), "C": size / 2, "t": {size: Rational(1, 2), 0: Rational(1, 2)}}
    system = problem.kkt()
    values = {alpha: load, **{s: known[str(s)] for s in (*system.parameters, *system.quenched) if str(s) in known}}
    if gamma in scaled:
        values[gamma] = size / 3
    return values | ({y: Normal("y", 0, size)} if y in system.quenched else {})


@pytest.mark.parametrize("name", PROBLEMS)
def test_units_do_not_change_a_theory(name):
    problem, load, scaled = PROBLEMS[name]
    theory, answers = problem.cavity(), []
    for size in SIZES:
        solution = theory.solve(values_of(problem, load, scaled, size))
        assert not hasattr(solution, "at_rest")
        assert solution.residual < 1e-9
        answers.append([float(solution[o] / size**power) for o, power in OBSERVED.items()])
    for found in answers[1:]:
        assert found == pytest.approx(answers[0], rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("size", SIZES[1:])
def test_what_follows_from_a_solution_is_in_the_declared_units(size):
    problem, load, scaled = PROBLEMS["deviations"]
    theory = problem.cavity()
    one, other = (theory.solve(values_of(problem, load, scaled, s)) for s in (Rational(1), size))
    powers = {response(w): 1, average(h**2): 2, average(Abs(r)): 1, average(r**2) / average(w[i] ** 2): 0}
    for what, power in powers.items():
        assert float(other[what] / size**power) == pytest.approx(float(one[what]), rel=1e-9)
    assert float(other.objective / size) == pytest.approx(float(one.objective), rel=1e-9)
    assert float(other.stability) == pytest.approx(float(one.stability), rel=1e-9)
    assert float(other[average(w[i] > size)]) == pytest.approx(float(one[average(w[i] > 1)]), rel=1e-9)
    mixed = average(w[i] ** 2) / size**2 + average(Abs(w[i]) > size / 2)  # terms of different units
    assert float(other[mixed]) == pytest.approx(
        float(one[average(w[i] ** 2) + average(Abs(w[i]) > Rational(1, 2))]), rel=1e-9
    )
    again = pickle.loads(pickle.dumps(other))  # noqa: S301 - our own
    assert again["q_w"] == other["q_w"]
    assert again[average(w[i] > size)] == other[average(w[i] > size)]
    near = theory.solve(values_of(problem, load, scaled, size), guess=other)
    assert float(near["q_w"] / other["q_w"]) == pytest.approx(1, rel=1e-12)
    assert f"{size}" in str(other)


@pytest.mark.parametrize("size", SIZES[1:4])
def test_slopes_digits_and_other_laws_follow_the_units(size):
    problem, load, scaled = PROBLEMS["lasso"]
    theory, found = problem.cavity(), []
    for s in (Rational(1), size):
        values = values_of(problem, load, scaled, s)
        pair = values | {y: {s: "1/2", -s: "1/2"}}
        slope = theory.sensitivity(average(w[i] ** 2), C, values=pair) / s
        many = theory.solve(pair, dps=40)[average(w[i] ** 2)] / s**2
        laws = [theory.solve(values | {y: law})["q_w"] / s**2 for law in (Uniform("y", -s, 2 * s), Laplace("y", 0, s))]
        found.append([*map(float, (slope, *laws)), many])
    assert found[1][:3] == pytest.approx(found[0][:3], rel=1e-9)
    assert abs(found[1][3] / found[0][3] - 1) < 1e-38
