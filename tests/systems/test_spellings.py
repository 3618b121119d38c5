"""One problem in several spellings: the numbers are those of the plain one, whose theory other tests hold."""

import numpy as np
import pytest
from sympy import (
    Abs,
    And,
    Eq,
    Heaviside,
    Max,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    exp,
    log,
    sign,
    sqrt,
    symbols,
    tanh,
)
from sympy.stats import Normal

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    P,
    Quenched,
    Sites,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
    norm,
)
from symcavity.errors import DeclarationError, ValuesError
from symcavity.model.rewritings.kinks import by_kinks

x, w, t, noise = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("noise", mu)
X = Coupling("X", variance=1)
gamma, C, tau, beta = symbols("gamma C tau beta", positive=True)
b = Global("b")
half = Rational(1, 2)
squares = Sum(w[i] ** 2, (i, 1, N))
total = Sum(w[i], (i, 1, N))


def field(coupling=x, vector=w):
    return Sum(coupling[mu, i] * vector[i], (i, 1, N))


def over_data(body):
    return Sum(body, (mu, 1, P))


h, u = field(), field(x, t)
H, U = field(X) / sqrt(N), field(X, t) / sqrt(N)
r = u + noise[mu] - h - b


def label(field, given=None):
    return Quenched("y", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=given or field)[mu]


def quantile(loss):
    return ConvexProblem(over_data(loss), [tau < 1])


c = Quenched("c", mu)[mu]
a, q = Datum("a"), Feature("q")
a0, a1, s = Global("a_0"), Global("a_1"), Quenched("s", mu, law={1: half, -1: half})
active = Coupling("x", mean=C, variance=C * (1 - C))
small = Coupling("x", mean=C / sqrt(N), variance=C * (1 - C) / N)
k, K = Sites("k", "K")
F, z, v = Coupling("F", between=(k, i)), Coupling("z", between=(mu, k)), Variable("v", k)
SPELLINGS = {  # a spelling, the plain one, values, observables
    "ridge, divided": (
        ConvexProblem(over_data((field(X, w) - field(X, t)) ** 2 / N) / 2 + gamma * squares),
        ConvexProblem(over_data((h - u) ** 2) / 2 + gamma * squares),
        {alpha: 2, gamma: 1, t: {1: 1}},
        [average(w[i] ** 2), average(w[i] * t[i])],
    ),
    "margins, divided": (
        ConvexProblem(squares / 2, [H >= 1]),
        ConvexProblem(squares / 2, [h >= 1]),
        {alpha: Rational(6, 5)},
        [average(w[i] ** 2)],
    ),
    "margins of order sqrt(N)": (
        ConvexProblem(squares / 2, [field(X) >= sqrt(N)]),
        ConvexProblem(squares / 2, [h >= 1]),
        {alpha: Rational(6, 5)},
        [average(w[i] ** 2)],
    ),
    "teacher, divided": (
        ConvexProblem(over_data(log(1 + exp(-label(U) * H))) + gamma * squares / 2),
        ConvexProblem(over_data(log(1 + exp(-label(u) * h))) + gamma * squares / 2),
        {alpha: 2, gamma: 1, t: {1: 1}},
        [average(w[i] ** 2), average(w[i] * t[i])],
    ),
    "quantile by cases": (
        quantile(Piecewise((tau * r, r >= 0), ((tau - 1) * r, True))),
        quantile(Max(tau * r, (tau - 1) * r)),
        {alpha: 3, tau: Rational(4, 5), t: {1: 1}, noise: Normal("noise", 0, 1)},
        [average((w[i] - t[i]) ** 2), b],
    ),
    "quantile by steps": (
        quantile(r * (tau - Heaviside(-r))),
        quantile(Max(tau * r, (tau - 1) * r)),
        {alpha: 3, tau: Rational(4, 5), t: {1: 1}, noise: Normal("noise", 0, 1)},
        [average((w[i] - t[i]) ** 2), b],
    ),
    "a range gives a sign": (
        ConvexProblem(b + over_data(Max(0, -h - b)) / ((1 - beta) * P), [Eq(total / N, 1), beta < 1]),
        ConvexProblem((1 - beta) * P * b + over_data(Max(0, -h - b)), [Eq(total, N)]),
        {alpha: 4, beta: Rational(9, 10)},
        [average(w[i] ** 2), b],
    ),
    "a common factor": (
        ConvexProblem(
            over_data((h - u - noise[mu]) ** 2) / 2 + C * (tau * Sum(Abs(w[i]), (i, 1, N)) + (1 - tau) * squares / 2),
            [tau < 1],
        ),
        ConvexProblem(
            over_data((h - u - noise[mu]) ** 2) / 2 + Sum(Abs(w[i]) / 4, (i, 1, N)) + squares / 4,
        ),
        {alpha: 1, C: Rational(3, 4), tau: Rational(1, 3), t: {0: half, 1: half}, noise: Normal("noise", 0, half)},
        [average((w[i] - t[i]) ** 2), average(Abs(w[i]) > 0)],
    ),
    "a norm of sums": (
        ConvexProblem(over_data((h - u - noise[mu]) ** 2) / 2, [norm(total, Sum(t[i] * w[i], (i, 1, N))) <= N * C]),
        ConvexProblem(
            over_data((h - u - noise[mu]) ** 2) / 2,
            [Eq(a0, total / N), Eq(a1, Sum(t[i] * w[i], (i, 1, N)) / N), a0**2 + a1**2 <= C**2],
        ),
        {alpha: 2, C: half, t: {1: half, 2: half}, noise: Normal("noise", 0, 1)},
        [average(w[i]), average(w[i] ** 2)],
    ),
    "a power of a sum": (
        ConvexProblem(squares**2, [h >= 1]),
        ConvexProblem(squares / 2, [h >= 1]),
        {alpha: Rational(6, 5)},
        [average(w[i] ** 2)],
    ),
    "exact recovery in units of one": (
        ConvexProblem(Sum(Abs(w[i]), (i, 1, N)) / N, [Eq(Sum(X[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)]),
        ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(h, u)]),
        {alpha: half, t: {0: half, 1: half}},
        [average(w[i] ** 2)],
    ),
    "active with probability C": (
        ConvexProblem(squares / 2, [s[mu] * (field(active) - N * tau) >= sqrt(N), w[i] >= 0]),
        ConvexProblem(squares / 2, [s[mu] * (field(small) - sqrt(N) * tau) >= 1, w[i] >= 0]),
        {alpha: Rational(3, 10), C: half, tau: 1},
        [average(w[i] ** 2), average(w[i] > 0)],
    ),
    "random features of features": (
        ConvexProblem(
            over_data((u - Sum((Sum(F[k, i] * x[mu, i], (i, 1, N)) + z[mu, k]) * v[k], (k, 1, K))) ** 2) / 2
            + gamma * Sum(v[k] ** 2, (k, 1, K))
        ),
        ConvexProblem(
            over_data((Sum(x[mu, i] * (t[i] - q[i]), (i, 1, N)) - Sum(z[mu, k] * v[k], (k, 1, K))) ** 2) / 2
            + gamma * Sum(v[k] ** 2, (k, 1, K)),
            [Eq(q[i], Sum(F[k, i] * v[k], (k, 1, K)))],
        ),
        {alpha: 2, K / N: Rational(3, 2), gamma: half, t: {1: 1}},
        [average(v[k] ** 2)],
    ),
    "a teacher with a shift": (
        ConvexProblem(over_data(log(1 + exp(-label(u + tau, u) * h))) + gamma * squares / 2),
        ConvexProblem(over_data(log(1 + exp(-label(u + tau) * h))) + gamma * squares / 2),
        {alpha: 2, gamma: 1, tau: half, t: {1: 1}},
        [average(w[i] * t[i])],
    ),
    "margins by their dual": (
        ConvexProblem(
            Sum(q[i] ** 2, (i, 1, N)) / 2 - over_data(a[mu]),
            [Eq(q[i], Sum(x[mu, i] * a[mu], (mu, 1, P))), a[mu] >= 0, a[mu] <= 1],
        ),
        ConvexProblem(Sum(q[i] ** 2, (i, 1, N)) / 2 + over_data(Max(0, 1 - field(x, q)))),
        {alpha: 2},
        [average(q[i] ** 2)],
    ),
    "labels by cases": (
        ConvexProblem(over_data((h + b + c - Piecewise((1, Eq(c, 0)), (-1, True))) ** 2) / 2 + gamma * squares / 2),
        ConvexProblem(over_data((h + b + c - 1 + 2 * c**2) ** 2) / 2 + gamma * squares / 2),
        {alpha: 2, gamma: 1, Quenched("c", mu): {-1: Rational(1, 6), 0: half, 1: Rational(1, 3)}},
        [average(w[i] ** 2), b],
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_has_the_numbers_of_the_plain_one(name):
    spelled, plain, values, observables = SPELLINGS[name]
    known = {k: v for k, v in values.items() if k not in (C, tau) or name != "a common factor"}
    found, wanted = spelled.cavity().solve(values), plain.cavity().solve(known)
    for observable in observables:
        assert abs(found[observable] - wanted[observable]) < 1e-9


@pytest.mark.parametrize(
    "name",
    ["ridge, divided", "margins of order sqrt(N)", "margins by their dual", "labels by cases",
     "random features of features"],
)
def test_the_record_of_a_spelling_is_verified(name):
    assert SPELLINGS[name][0].cavity().derivation.verify()


def test_fields_that_are_heard_as_one_and_apart():
    """Only ``h - u`` is heard, which has its shares; a variable in place of ``h`` keeps both."""
    values = {alpha: 1, t: {0: half, 1: half}, noise: {-1: Rational(1, 4), 2: Rational(3, 4)}}
    one = ConvexProblem(over_data(Abs(u + noise[mu] - h)) + squares / 2)
    apart = ConvexProblem(over_data(Abs(u + noise[mu] - a[mu])) + squares / 2, [Eq(a[mu], h)])
    whole, parts = (problem.cavity().solve(values) for problem in (one, apart))
    for share in (h > u, u <= h, h - u > 1):
        assert abs(whole[average(share)] - parts[average(share)]) < 1e-9
    assert 0.5 < whole[average(h > u)] < 1
    with pytest.raises(DeclarationError, match="a variable of its own"):
        whole[average(h * u > 0)]
    table = apart.cavity().compare(apart.simulate(values, N=100, seeds=6), [average(h * u > 0), average(h > u)])
    assert table.agrees(4)


def test_a_root_gives_the_range_of_a_parameter():
    """Couplings that correlate by a combination of independent ones, as they are and as they are declared."""
    R, n, z, y = Feature("R"), Datum("n"), Coupling("z"), Coupling("y", correlation={x: tau})
    pairs = []
    for loss in (tau * x[mu, i] + sqrt(1 - tau**2) * z[mu, i], y[mu, i]):
        eaten = Sum((1 / N + loss / 2) * n[mu], (mu, 1, P))
        grown = Sum((1 / N + x[mu, i] / 2) * R[i], (i, 1, N))
        pairs.append([Complementary(R[i], R[i] - 2 + eaten), Complementary(n[mu], 1 - grown)])
    found, known = (System([], p).cavity() for p in pairs)
    values = {alpha: half, tau: Rational(4, 5)}
    for observable in (average(R[i]), average(R[i] ** 2), average(n[mu] > 0)):
        assert abs(found.solve(values)[observable] - known.solve(values)[observable]) < 1e-10
    assert found.derivation.verify()
    with pytest.raises(ValuesError, match="range"):
        found.solve({**values, tau: 2})


def test_units_of_a_network():
    s, j = Feature("s"), symbols("j", integer=True)
    J, plain = Coupling("J", between=(i, i), variance=1), Coupling("J", between=(i, i))
    fields = Sum(J[i, j] * s[j], (j, 1, N)) / sqrt(N), Sum(plain[i, j] * s[j], (j, 1, N))
    spelled, wanted = (System([Eq(s[i], tanh(half * f + half))]) for f in fields)
    size = average(s[i] ** 2)
    assert abs(spelled.cavity().solve({})[size] - wanted.cavity().solve({})[size]) < 1e-12
    measured = spelled.simulate({}, N=200, seeds=8)[size]
    assert abs(measured.mean - 0.230754) < 4 * measured.stderr + 2 / 200


def test_losses_by_cases_keep_their_values():
    """Where the slope jumps the cases go, and where it does not they stay; the values are the same everywhere."""
    y, v = Quenched("y", mu)[mu], Symbol("v", real=True)
    losses = {
        Piecewise((0, y * h > 1), (1 - y * h, True)): False,
        Piecewise((-h, h < 0), (h**2, True)): False,
        Piecewise((0, Abs(r) < C), (Abs(r) - C, True)): False,
        Piecewise((-r - C, r < -C), (0, And(r >= -C, r < C)), (2 * (r - C), True)): False,
        h * sign(h): False,
        Piecewise((r**2 / 2, Abs(r) <= C), (C * Abs(r) - C**2 / 2, True)): True,
        Max(0, 1 - sign(u) * h): True,
    }
    rng = np.random.default_rng(4)
    for loss, stays in losses.items():
        found = by_kinks(over_data(loss)).function
        assert (found == loss) == stays
        for _ in range(20):
            values = dict(zip((h, u, b, y, noise[mu], C), rng.normal(size=6).tolist(), strict=True))
            values[C] = abs(values[C])
            one, other = (e.xreplace(values) for e in (loss, found))
            assert abs(float(one) - float(other)) < 1e-12, (loss, v)


def test_groups_by_components_vanish_together():
    """A pair of weights is zero where its Gaussian field is shorter than gamma: exp(-gamma^2/(2 alpha q_lambda))."""
    k = Symbol("k", integer=True)
    W, Y = Feature("W", components=(k, 1, 2)), Coupling("Y", components=(k, 1, 2))
    heard = Sum(Y[mu, i, 1] * W[i, 1] + Y[mu, i, 2] * W[i, 2], (i, 1, N))
    group = gamma * Sum(sqrt(W[i, 1] ** 2 + W[i, 2] ** 2), (i, 1, N))
    theory = ConvexProblem(over_data((1 - heard) ** 2) / 2 + group).cavity()
    solution = theory.solve({alpha: 2, gamma: 1})
    second = next(value for name, value in solution.values.items() if str(name) == "q_lambda")
    assert abs(solution[average(W[i, 1] ** 2 > 0)] - np.exp(-1 / (4 * float(second)))) < 1e-8
    assert theory.derivation.verify()


def test_a_ratio_of_sizes_in_a_law():
    """``P/N`` in an equation of a site is the load, also where its state is the root of an equation."""
    lam, w, x = Variable("lambda", mu), Variable("w", i), Coupling("x")

    def system(load):
        field = Sum(x[mu, i] * w[i], (i, 1, N)) + lam[mu]
        send = Eq(w[i], -Sum(x[mu, i] * lam[mu], (mu, 1, P)) - load * w[i] / 2)
        return System([send, Eq(lam[mu], -load / (1 + exp(field)))])

    found, told = (system(load).cavity().solve({alpha: 2}) for load in (P / N, alpha))
    assert found[average(w[i] ** 2)] == told[average(w[i] ** 2)]


def huber(r):
    return Piecewise((r**2 / 2, Abs(r) <= 1), (Abs(r) - half, True))


def squared_hinge(m):
    return Piecewise((half - m, m < 0), ((1 - m) ** 2 / 2, m < 1), (0, True))


z, v, y = Coupling("z"), Feature("v"), Quenched("y", mu, law={1: half, -1: half})
PAIRS = {
    "robust outputs": (huber(noise[mu] - field()), huber(noise[mu] - field(z, v))),
    "one of each": (squared_hinge(y[mu] * field()), huber(noise[mu] - field(z, v))),
    "one output is seen in half of the data": (
        Piecewise((huber(noise[mu] - field()), Eq(y[mu], 1)), (0, True)),
        huber(noise[mu] - field(z, v)),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_functions_by_cases_of_a_field_each_in_one_sum(pair):
    """SymPy writes one case for each pair of cases; the numbers are those of two sums, and of each part alone."""
    one, other = PAIRS[pair]
    ridge = squares / 2 + Sum(v[i] ** 2, (i, 1, N)) / 2
    values = {alpha: 2} | ({noise: {1: 1}} if (one + other).has(noise) else {})
    losses = over_data(one + other), over_data(one) + over_data(other)
    together, two = (ConvexProblem(loss + ridge) for loss in losses)
    found, apart = (problem.cavity().solve(values) for problem in (together, two))
    alone = ConvexProblem(over_data(other) + ridge - squares / 2).cavity().solve(values)
    for observable in (average(w[i] ** 2), average(v[i] ** 2)):
        assert float(found[observable]) == pytest.approx(float(apart[observable]), rel=1e-12)
    assert float(found[average(v[i] ** 2)]) == pytest.approx(float(alone[average(v[i] ** 2)]), rel=1e-12)
    assert abs(together.simulate(values, N=60, seeds=6)[average(w[i] ** 2)].z(found[average(w[i] ** 2)])) < 4.5
