"""Rules of composition prove convexity where a function is convex, and of nothing else."""

from itertools import product
from random import Random

import pytest
from sympy import Abs, Max, Min, Piecewise, Rational, S, Sum, cosh, exp, log, sqrt, symbols, tanh

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.errors import NotConvex, ValuesError
from symcavity.model.composition import Rules

u, v, g = symbols("u v g", real=True)
R, C, k = symbols("R C k", positive=True)
a, c, d = symbols("a c d", positive=True)
x, w = Coupling("x"), Feature("w")
field = Sum(x[mu, i] * w[i], (i, 1, N))
STATES = u, v, R
CONVEX = [
    u**2 / 2,
    C * (u - v) ** 2, u**2 - 2 * u * v + v**2, u**2 + u * v + v**2, u**4, Abs(u - 1) ** 3, (u - v) ** 2 / R,
    u**4 / R**2,
    1 / R, Max(0, u) ** Rational(3, 2), C * Max(0, 1 - u), Abs(u) - 2 * u, -Min(u, v, 0), Max(Abs(u) - 1, 0),
    (Abs(u - 1) - S.Half + Abs(Abs(u - 1) - S.Half)) / 2, Max(0, 1 - u + k * R) ** 2, sqrt(u**2 + v**2) + 1,
    sqrt(1 + u**2), -sqrt(R), -log(R), exp(-u), exp(u**2), cosh(u - v), log(1 + exp(-u)), u + log(1 + exp(-u)),
    log(2 * cosh(u / 2)), log(exp(u) + exp(v)), exp(u) + u * g, C * u**2 / 2 - g * u,
    Piecewise(((u - g) ** 2 / 2, Abs(u - g) <= C), (C * Abs(u - g) - C**2 / 2, True)),
    Piecewise((0, u > 1), ((1 - u) ** 2 / (2 * C), u > 1 - C), (1 - u - C / 2, True)),
    Piecewise((u**2, g > 0), (exp(u), True)), Piecewise((exp(u) / 2 - u, u < 0), (exp(-u) / 2, True)),
    Max(0, 1 - u) ** 2 - Max(0, -1 - u) ** 2, Min(Max(0, 1 - u), 1) ** 2 / 2 + Max(0, -u), 2 * Max(0, u) - Abs(u) / 2,
    Piecewise((exp(-C * u), u < 1), (exp(-C) - C * exp(-C) * (u - 1), True)),
]  # fmt: skip
OTHER = [
    -(u**2), u * v, g * u**2, u**3, -exp(u), -Abs(u), sqrt(Abs(u)), Min(u, 0), Max(0, 1 - Abs(u)), u**2 * v**2, -(R**2),
    log(1 + u**2), tanh(u), 1 / (1 + u**2), u**2 - 3 * u * v + v**2, Max(0, u) - 2 * Max(0, v), u**2 / v, u**2 / R**2,
    (u - Abs(u)) / 2, exp(-(u**2)), cosh(Abs(u) - 1),
    Max(0, 1 - u) ** 2 - 2 * Max(0, -1 - u) ** 2, Min(Max(0, 1 - u), 1) ** 2 / 2 + Max(0, -u) / 2, Max(0, u) - Abs(u),
    Piecewise((exp(u) / 2, u < 0), (exp(-u) / 2, True)),
    Piecewise((u, u < 0), (-u, True)),
    Piecewise((exp(u), u < 0), (exp(u) + 9, True)), Piecewise((u + exp(u), u < 0), (exp(u), True)),
    Piecewise((0, u > 0), (1, True)), Piecewise((u**2, g > 0), (-(u**2), True)),
]  # fmt: skip


HELD = [  # convex where some affine function is not negative, and not elsewhere
    (u**3, u),
    (u**3, 2 * u - C),
    (1 / (u + 1), u + a),
    (1 / (C - 2 * u), C - 2 * u),
    ((u - v) ** 5, 3 * u - 3 * v),
    (u**2 / (v + C), v),
]


@pytest.mark.parametrize(("expr", "held"), HELD)
def test_what_is_convex_where_a_constraint_holds(expr, held):
    expr, held = expr.xreplace({a: Rational(1, 2)}), held.xreplace({a: Rational(1, 2)})
    assert not Rules(STATES)(expr).convex
    assert Rules(STATES, held=[held])(expr).convex
    assert not Rules(STATES, held=[held + 2])(expr).convex or held + 2 == held
    assert not Rules(STATES, held=[-held])(expr).convex


@pytest.mark.parametrize(
    ("cost", "bounds"),
    [
        (w[i] ** 3, [w[i] >= -1]),
        (-(w[i] ** 2), [Abs(w[i]) <= 1]),
        (-(w[i] ** 2), [w[i] >= 0, w[i] <= Rational(1, 10**6)]),
        (1 / (2 + w[i]), [w[i] <= -3]),
    ],
)
def test_a_cost_that_bends_down_where_the_constraints_hold(cost, bounds):
    with pytest.raises(NotConvex, match="bends downwards"):
        ConvexProblem(Sum((field - 1) ** 2, (mu, 1, P)) + Sum(cost, (i, 1, N)), bounds)


def test_a_step_beside_the_constraint_of_a_slack():
    """Half of all draws of a slack meet no constraint: chords begin at those that do."""
    xi = Datum("xi")
    share = Sum(C * xi[mu] + Piecewise((1, field > 1), (0, True)) / 1000, (mu, 1, P))
    with pytest.raises(NotConvex, match="bends downwards"):
        ConvexProblem(share + Sum(w[i] ** 2, (i, 1, N)), [field >= 1 - xi[mu], xi[mu] >= 0])


def chords(expr):
    """Whether an expression lies below its chords, at seeded points."""
    rng = Random(5)  # noqa: S311
    symbols_ = sorted(expr.free_symbols, key=str)

    def draw(symbol):
        value = rng.uniform(-3, 3)
        return Rational(str(round(abs(value) + 0.1 if symbol.is_positive else value, 3)))

    for _ in range(40):
        fixed = {s: draw(s) for s in symbols_ if s not in STATES}
        one, two = ({s: draw(s) for s in symbols_ if s in STATES} for _ in range(2))
        middle = {s: (one[s] + two[s]) / 2 for s in one}
        a, b, c = (float(expr.xreplace(fixed | at)) for at in (one, two, middle))
        if c > (a + b) / 2 + 1e-9 * (1 + abs(a) + abs(b)):
            return False
    return True


@pytest.mark.parametrize("expr", CONVEX, ids=str)
def test_what_is_convex_is_proved(expr):
    assert chords(expr)
    assert Rules(STATES)(expr).convex
    assert Rules(STATES)(-expr).concave


@pytest.mark.parametrize("expr", OTHER, ids=str)
def test_what_is_not_convex_is_not_proved(expr):
    assert not chords(expr)
    assert not Rules(STATES)(expr).convex


def test_signs_that_a_range_gives():
    assert Rules(STATES, [g - 1])((g - 1) * u**2).convex
    assert not Rules(STATES)((g - 1) * u**2).convex


UNDECIDED = {  # of positive a, c, d: where a loss is convex
    c * Max(0, u) ** 2 + (1 - c) * Max(0, -u) ** 2: c <= 1,
    Piecewise((c * u**2, u > 0), ((1 - c) * u**2, True)): c <= 1,
    a * (u - 1) ** 2 - d * u**2: a >= d,
    Piecewise((a * u, u > 0), (d * u, True)): a >= d,
    Max(0, u) ** c: c >= 1,
    (1 - c) * u**2 + u**4: c <= 1,
}


@pytest.mark.parametrize("loss", UNDECIDED, ids=str)
def test_a_loss_that_is_convex_for_some_values_says_for_which(loss):
    problem = ConvexProblem(minimize=Sum(loss.xreplace({u: field}), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)))
    assert problem.is_proved_convex
    assert problem.ranges == (UNDECIDED[loss],)
    for values in product((Rational(1, 5), Rational(3, 5), 2), repeat=3):
        at = dict(zip((a, c, d), values, strict=True))
        assert chords(loss.xreplace(at)) == bool(UNDECIDED[loss].xreplace(at))


def test_what_a_loss_asks_of_numbers_of_sites_is_asked_of_their_ratios():
    cost, known = Quenched("s", mu, positive=True), Quenched("b", i)
    penalty = Sum(w[i] ** 2, (i, 1, N))
    weighed = ConvexProblem(minimize=Sum((P / N - c) * cost[mu] * (1 - field) ** 2, (mu, 1, P)) + penalty)
    assert weighed.ranges == (alpha >= c,)
    with pytest.raises(ValuesError, match="alpha = 2, c = 3 is out of range"):
        weighed.cavity().solve({alpha: 2, c: 3, cost: {1: 1}})
    averaged = ConvexProblem(minimize=Sum((c - average(known[i])) * Max(0, 1 - field) ** 2, (mu, 1, P)) + penalty)
    assert averaged.ranges == ()  # what is asked of an average cannot be asked of a parameter


def test_values_where_a_loss_is_not_convex_are_refused():
    problem = ConvexProblem(minimize=Sum(c * Max(0, 1 - field) ** 2 + (1 - c) * Max(0, field - 1) ** 2, (mu, 1, P)))
    theory = problem.cavity()
    for work in (theory.solve, problem.simulate):
        with pytest.raises(ValuesError, match=r"c = 2.* is out of range"):
            work({alpha: 3, c: 2})
    assert "where       c <= 1" in str(problem)


def test_a_part_that_others_may_bend_upwards_is_not_confined():
    """The rules ask for ``a <= 1``, but the loss is convex up to ``a = 1 + d``."""
    problem = ConvexProblem(minimize=Sum(field**4 + (1 - a) * field**2 + d * field**2, (mu, 1, P)))
    assert problem.ranges == ()


def test_a_constant_that_is_not_real_everywhere_asks_for_no_range():
    loss = sqrt(c - 1) * Max(0, field) ** 2 + (1 - c / 3) * Max(0, -field) ** 2
    assert ConvexProblem(minimize=Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))).ranges == ()


def test_the_witnesses_look_where_a_loss_is_convex():
    noise, teacher = Quenched("e", mu), Quenched("b", i)
    gap = Sum(x[mu, i] * (teacher[i] - w[i]), (i, 1, N)) + noise[mu]
    loss = Piecewise((c * gap**2, gap > 0), ((1 - c) * gap**2, True))
    verdicts = ConvexProblem(minimize=Sum(loss, (mu, 1, P))).cavity().derivation.verify()
    assert not verdicts.failed
    assert not verdicts.unchecked
