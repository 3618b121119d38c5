"""What can be declared in several ways is one problem: it has one answer, or one refusal."""

import pytest
import respelled
from sympy import Abs, Eq, Heaviside, Max, Min, Piecewise, Rational, Sum, Symbol, cosh, exp, log, sign, sinh, sqrt
from sympy.stats import Normal

from symcavity import (
    Ball,
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Field,
    Global,
    Infeasible,
    N,
    NotConvex,
    P,
    Quenched,
    SupportFunction,
    alpha,
    average,
    i,
    mu,
    norm,
)

x, w, v, t, e = Coupling("x"), Feature("w"), Feature("v"), Quenched("t", i), Quenched("e", mu)
z, d, xi = Coupling("z", variance=1), Symbol("d", positive=True), Datum("xi")
y = Quenched("y", mu)
h, heard = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
unit = Sum(z[mu, i] * w[i], (i, 1, N))
size, total = Sum(w[i] ** 2, (i, 1, N)) / 2, Sum(w[i], (i, 1, N))
length = sqrt(Sum(w[i] ** 2, (i, 1, N)) / N)
TARGETS = {e: {1: "1/2", -2: "1/2"}}
SIGNS = {y: {1: "1/2", -1: "1/2"}}


def over_data(body):
    return Sum(body, (mu, 1, P))


def solved(objective, constraints=(), values=None):
    theory = ConvexProblem(objective, constraints).cavity()
    return float(theory.solve({alpha: 2} | (values or {}))[average(w[i] ** 2)])


fit, r = over_data((h - 1) ** 2) / 2, h - e[mu]
huber = Piecewise((r**2 / 2, Abs(r) <= d), (d * Abs(r) - d**2 / 2, True))
R, M = Global("R", positive=True), Global("M")
u = 1 - h + length / 2
logistic = -y[mu] * h
V = Sum(Coupling("u", components=(a := Symbol("a", integer=True), 1, 3))[mu, i, a] * w[i], (i, 1, N))
g = SupportFunction("g", Ball(2, "0.5"))
SPELLINGS = {
    "cases by a square": [
        (over_data(Piecewise((r**2 / 2, test), (d * Abs(r) - d**2 / 2, True))) + size, [], {d: 1, **TARGETS})
        for test in (Abs(r) <= d, r**2 <= d**2, d**2 > r**2)
    ],
    "steps that jump by themselves": [
        (over_data(loss) + size, [], {d: 1, **TARGETS})
        for loss in (
            Piecewise((r**2 / 2, Abs(r) <= d), (d * Abs(r) - d**2 / 2, True)),
            r**2 / 2 * Heaviside(d**2 - r**2) + (d * Abs(r) - d**2 / 2) * Heaviside(r**2 - d**2),
        )
    ],
    "steps beside a norm": [(over_data(loss) + size, [], {}) for loss in (Max(0, u) ** 2, u**2 * Heaviside(u))],
    "the number of data": [
        (Sum((h - e[mu]) ** 2, (mu, 1, top)) / top + size / N, [Sum(h, (mu, 1, top)) <= top], TARGETS)
        for top in (P, alpha * N)
    ],
    "a cone": [(fit + N * length, [], {}), (fit + N * R, [length <= R], {})],
    "a sign": [(size, [s * h >= 1], {t: {1: 1}}) for s in (sign(heard), heard / Abs(heard))],
    "a positive part": [
        (over_data(loss) + size, [], TARGETS)
        for loss in (Max(0, Abs(r) - 1), (Abs(r) - 1 + Abs(Abs(r) - 1)) / 2)
    ],
    "the largest of bounds": [
        (N * M, c, {e: Normal("e", 0, 1)})
        for c in ([r <= M, -2 * r <= M], [Max(r, -2 * r) <= M], [Max(0, r, -2 * r) <= M], [-r >= -M, -r <= M / 2])
    ],
    "the largest of lines, with some that never are": [
        (over_data(loss) + size, [], TARGETS)
        for loss in (2 * Max(0, r), Max(0, r, 2 * r), -Min(-r, -2 * r, 0), Max(r / 2, 0, 2 * r, r, r - 3))
    ],
    "bounds of which one is idle where the others meet": [
        (over_data(xi[mu]) + size, c, TARGETS)
        for c in ([xi[mu] >= 0, xi[mu] >= 2 * r], [xi[mu] >= 0, xi[mu] >= 2 * r, xi[mu] >= r])
    ],
    "a cube of what is not negative": [
        (fit + Sum(cube, (i, 1, N)), [w[i] >= 0], {}) for cube in (w[i] ** 3, Abs(w[i]) ** 3, w[i] ** 2 * Max(0, w[i]))
    ],
    "a bound on a loss": [
        (Sum(Abs(w[i]), (i, 1, N)), [bound], {e: Normal("e", 0, 1), d: "3/5"})
        for bound in (over_data(r**2) <= d * P, average(r**2) <= d, sqrt(average(r**2)) <= sqrt(d))
    ],
    "cases of a teacher that meet, in a size": [
        (over_data(Abs(label - h)) + size, [], {t: {1: 1}})
        for label in (
            Max(-1, Min(1, heard)),
            Piecewise((-1, heard < -1), (1, heard > 1), (heard, True)),
            (Abs(heard + 1) - Abs(heard - 1)) / 2,
        )
    ],
    "a root below a bound": [
        (fit - Sum(gain, (i, 1, N)), c, {})
        for gain, c in ((sqrt(w[i]), []), (v[i], [v[i] ** 2 <= w[i]]), (v[i], [v[i] <= sqrt(w[i])]))
    ],
    "a logarithm below a bound": [
        (fit - Sum(gain, (i, 1, N)), c, {})
        for gain, c in ((log(w[i]), []), (v[i], [exp(v[i]) <= w[i]]), (v[i], [v[i] <= log(w[i])]))
    ],
    "a bound above what is curved": [
        (over_data(loss) + size, c, TARGETS)
        for loss, c in ((sqrt(1 + r**2), []), (xi[mu], [xi[mu] >= sqrt(1 + r**2)]))
    ],
    "a condition": [
        (over_data(h**2) / 2, c, {})
        for c in (
            [Eq(total, N)],
            [Eq(total, N), Eq(2 * total, 2 * N)],
            [total >= N, total <= N],
            [total >= N, Eq(total, N)],
            [Eq(average(w[i]), 1)],
            [Abs(total / N - 1) <= 0],
        )
    ],
    "an equality at each site": [
        (fit, c, {})
        for c in (
            [Eq(w[i], 1)],
            [Eq(w[i], 1), Eq(2 * w[i], 2)],
            [w[i] >= 1, w[i] <= 1],
            [(w[i] - 1) ** 2 <= 0],
            [Abs(w[i] - 1) <= 0],
        )
    ],
    "variance one": [
        (over_data(f**2) / 2, [Eq(total, N)], {})
        for f in (h, Sum(z[mu, i] / sqrt(N) * w[i], (i, 1, N)), unit / sqrt(N))
    ],
    "a scaled set": [
        (size, [bound], {alpha: "2/5"})
        for bound in (g(V) >= 1, g(3 * V) >= 3, g(Rational(2, 7) * V) >= Rational(2, 7), 2 * g(V / 2) >= 1)
    ],
    "a set stated twice": [(size, c, {alpha: "2/5"}) for c in ([g(V) >= 1], [g(V) >= 1, 3 * g(V) >= 3, g(V) >= 0])],
    "a bound that is idle": [
        (over_data(log(1 + exp(logistic))) + size, c, SIGNS) for c in ([], [h >= -(10**4)], [h <= 10**4, h <= 10**5])
    ],
    "a bound that is idle, at a field beyond all others": [
        (over_data(r**4) / 4 + size, c, TARGETS)
        for c in ([], [h >= -(10**4)], [h >= -(10**4), h <= 10**8], [h <= 10**20])
    ],
    "a bound that is idle beside a steep loss": [
        (over_data(exp(logistic)) + size, c, SIGNS) for c in ([], [h >= -100], [h >= -20, h <= 100])
    ],
    "a bound that is idle beside a teacher and a steep loss": [
        (over_data((h - heard) ** 4) / 4 + size, c, {t: {1: 1}}) for c in ([], [h >= -(10**4)], [w[i] <= 10**4])
    ],
    "a bound that is idle, beside kinks at targets": [
        (over_data(huber) + d * Sum(Abs(w[i]), (i, 1, N)) / 2, c, {d: 1, **TARGETS})
        for c in ([], [h >= -(10**4)], [h <= 10**8])
    ],
    "constants": [
        (fit + size, [], {}),
        (fit + size + 3 * N + 5, [], {}),
        (over_data(h**2) / 2 - over_data(h) + over_data(1) / 2 + size, [], {}),
    ],
    "a teacher, multiplied out": [
        (over_data((h - heard) ** 2) / 2 + size, [], {t: {1: 1}}),
        (over_data(h**2) / 2 - over_data(h * heard) + over_data(heard**2) / 2 + size, [], {t: {1: 1}}),
    ],
    "logistic": [
        (over_data(loss) + size, [], SIGNS)
        for loss in (
            log(1 + exp(logistic)),
            log(1 + exp(-logistic)),
            logistic + log(1 + exp(-logistic)),
            log(1 + cosh(logistic) + sinh(logistic)),
        )
    ],
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_one_problem_have_one_answer(name):
    found = [solved(*spelling) for spelling in SPELLINGS[name]]
    assert all(f > 0 for f in found)
    assert found == pytest.approx([found[0]] * len(found), rel=1e-9)


def test_weights_at_rest_do_not_violate_a_bound_on_a_loss():
    """Where least squares just meet the bound, d = 1 - 1/alpha, its multiplier is infinite; w = 0 violates it."""
    found = solved(Sum(Abs(w[i]), (i, 1, N)), [average(r**2) <= d], {e: Normal("e", 0, 1), d: "1/2"})
    assert found == pytest.approx(1, rel=1e-14)


def test_a_bound_on_a_square_is_two_bounds():
    """One law, of lines: a multiplier of the square would give an implicit one."""
    c = Symbol("c", positive=True)
    for state, objective in ((w[i], fit), (h - 1, size)):
        plain, squared, multiple, again = (
            ConvexProblem(objective, bounds).cavity()
            for bounds in (
                [state >= -sqrt(c), state <= sqrt(c)],
                [state**2 <= c],
                [3 * c >= 3 * state**2],
                [state**2 <= c, state <= sqrt(c)],
            )
        )
        assert plain.equations == squared.equations == multiple.equations == again.equations
    with pytest.raises(NotConvex):
        ConvexProblem(fit, [w[i] ** 2 >= 1])


SAMPLE = 23  # of so many spellings one is tried in every run, all of them with --full
EVERY = [
    pytest.param(*pair, marks=[] if place % SAMPLE == 0 else pytest.mark.whole)
    for place, pair in enumerate(sorted(respelled.pairs(), key=lambda pair: (pair[2], pair[1], pair[0])))
]
KNOWN = {}


@pytest.mark.parametrize(("name", "family", "number"), EVERY)
def test_a_problem_that_is_spelled_otherwise_has_the_same_answer(name, family, number):
    base = respelled.BASES[name]
    if name not in KNOWN:
        KNOWN[name] = base.answer()
    assert KNOWN[name] > 0
    other = list(respelled.FAMILIES[family](base))[number]
    assert other.answer() == pytest.approx(KNOWN[name], rel=1e-8)


def test_conditions_that_contradict_each_other():
    for constraints in ([Eq(total, N), Eq(total, 2 * N)], [w[i] >= 2, w[i] <= 1], [Eq(w[i], 1), 2 * w[i] >= 3]):
        with pytest.raises(Infeasible, match="contradict") as caught:
            ConvexProblem(fit, constraints)
        assert len(caught.value.evidence) == 2
    ConvexProblem(fit, [w[i] >= 1, w[i] <= 2, w[i] >= 0])


@pytest.mark.parametrize("constant", [0, 1])
def test_entropies_that_a_condition_makes_one_are_infeasible_together(constant):
    """``w log w`` and ``w log w - w`` are one problem where the sum of w is given, and one refusal."""
    entropy = Sum(w[i] * log(w[i]) - constant * w[i], (i, 1, N))
    with pytest.raises(Infeasible, match="contradict each other"):
        solved(entropy, [Abs(h) <= d, Eq(total, N)], {alpha: 1, d: "1/2"})


def test_a_bound_whose_field_is_beyond_double_precision_has_its_place_among_the_branches():
    """At ``h = -10**4`` the force of an exponential loss is ``exp(10**4)``, whatever the label's sign."""
    theory = ConvexProblem(over_data(exp(logistic)) + size, [h >= -(10**4)]).cavity()
    assert [len(site.solution.regions) for site in theory.inserted.values()] == [1, 2]


@pytest.mark.parametrize(
    "loss",
    [
        Piecewise((r**2 / 2, Eq(y[mu], 1)), (Max(0, 1 - Abs(r)), True)),
        Piecewise((-(h**2), y[mu] > 0), (h**2, True)),
        Quenched("s", mu, law={1: "1/2", -1: "1/2"})[mu] * h**2,
    ],
)
def test_a_loss_is_convex_for_each_value_of_a_label(loss):
    with pytest.raises(NotConvex):
        ConvexProblem(over_data(loss) + size)
    ConvexProblem(over_data(loss.xreplace({Max(0, 1 - Abs(r)): Max(0, Abs(r) - 1), -(h**2): h**4}) ** 2) + size)


def test_the_sign_of_a_cost_is_asked_for():
    C = Symbol("C", real=True)
    for objective in (size + C * over_data(xi[mu]), C * size + over_data((h - 1) ** 2)):
        with pytest.raises(NotConvex, match="its sign is not declared"):
            ConvexProblem(objective, [h >= 1 - xi[mu], xi[mu] >= 0] if objective.has(xi) else [])
    ConvexProblem(size + d * over_data(xi[mu]), [h >= 1 - xi[mu], xi[mu] >= 0])
    ConvexProblem(size + C * over_data(xi[mu]), [h >= 1 - xi[mu], xi[mu] >= 0, C >= 1])


@pytest.mark.parametrize("name", ["__w__", "__w", "w__", "a\x00b", "w\n"])
def test_names_that_cannot_be_printed(name):
    with pytest.raises(DeclarationError):
        Feature(name)
    with pytest.raises(DeclarationError):
        ConvexProblem(size * Symbol(name, positive=True) + fit)


def test_titles_that_cannot_be_printed():
    for word in ("name", "cite", "says"):
        with pytest.raises(DeclarationError, match="control characters"):
            ConvexProblem(size + fit, **{word: "a\x1b[2J"})
        with pytest.raises(DeclarationError, match="control characters"):
            BipartiteSystem([Eq(Field("h")[mu], h), Eq(w[i], 1)], **{word: "\x00"})
    assert norm(w[i]) == Abs(w[i])


def test_an_observable_may_hold_a_norm_of_the_declaration():
    problem = ConvexProblem(over_data(Max(0, u) ** 2) + size)
    solution = problem.cavity().solve({alpha: 2})
    assert float(solution[length]) == pytest.approx(float(solution[average(w[i] ** 2)]) ** 0.5, rel=1e-12)
    run = problem.simulate({alpha: 2}, N=12, seeds=1)
    assert run[length].mean == pytest.approx(run[average(w[i] ** 2)].mean ** 0.5, rel=1e-6)
    margin = run[average(u)].mean
    assert margin == pytest.approx(1 - run[average(h)].mean + run[length].mean / 2, rel=1e-6)
