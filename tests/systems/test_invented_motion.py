"""Declarations that move, made up as a user would: delays, adaptation, mini-batches of a loss with a kink, a ring."""

from dataclasses import replace

import pytest
from sympy import Abs, Eq, Piecewise, Rational, Sum, Symbol, cos, exp, sign, sin, sqrt, symbols, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Derivation,
    Feature,
    Global,
    N,
    Noise,
    P,
    Quenched,
    Sites,
    System,
    Time,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

t, s, j, h = Time("t"), Time("s"), symbols("j", integer=True), Rational(1, 2)
HALF = {1: h, -1: h}
x, a = Variable("x", i, over=t), Quenched("a", i)


def excitation_and_inhibition():
    """Two populations, with delays of one and of two steps between them."""
    b, K = Sites("b", "K", "inhibitory unit")
    n, g, xi = Variable("n", b, over=t), Symbol("g", positive=True), Noise("xi", i, over=t, variance=Rational(1, 10))
    ends = {"E": (i, i), "F": (i, b), "G": (b, i)}
    own, down, up = (Coupling(name, between=pair, variance=g**2 / N) for name, pair in ends.items())
    heard = Sum(own[i, j] * tanh(x[j, t]), (j, 1, N)) - Sum(down[i, b] * tanh(n[b, t - 1]), (b, 1, K))
    laws = [
        Eq(x[i, t + 1], x[i, t] / 2 + heard / 2 + xi[i, t]),
        Eq(n[b, t + 1], Sum(up[b, i] * tanh(x[i, t - 2]), (i, 1, N))),
    ]
    begin = [Eq(q, v) for k in range(3) for q, v in ((x[i, k], a[i]), (n[b, k], 0))]
    values = {g: "6/5", K / N: h, a: HALF}
    return System(laws, initial=begin), values, [average(x[i, t] * x[i, s]), average(n[b, t] ** 2)]


def adaptation():
    """Units that jump, and whose threshold follows what they did."""
    y, b, r = Variable("y", i, over=t), Symbol("b", positive=True), Symbol("r", real=True)
    J = Coupling("J", between=(i, i), variance=1 / N, reciprocity=r)
    laws = [
        Eq(x[i, t + 1], sign(Sum(J[i, j] * x[j, t], (j, 1, N)) - y[i, t])),
        Eq(y[i, t + 1], Rational(4, 5) * y[i, t] + b * x[i, t]),
    ]
    system = System(laws, initial=[Eq(x[i, 0], a[i]), Eq(y[i, 0], 0)])
    return system, {r: h, b: "1/10", a: HALF}, [average(x[i, t] * x[i, s]), average(x[i, t] * y[i, s])]


def batches():
    """Descent with momentum on half of the data at a time, on Huber's loss with a teacher."""
    X, w, w0, e = Coupling("X"), Feature("w"), Quenched("w0", i), Quenched("e", mu)
    gamma, rate, m = symbols("gamma rate m", positive=True)
    gap = Sum(X[mu, i] * (w[i] - w0[i]), (i, 1, N)) - e[mu]
    loss = Piecewise((gap**2 / 2, Abs(gap) <= 1), (Abs(gap) - h, True))
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 3, rate: "1/5", m: h, gamma: "1/10", w0: HALF, e: {2: "1/4", 0: "3/4"}}
    asked = [average((w[i] - w0[i]) ** 2), average(w[i] * w0[i])]
    return problem.descent(rate=rate, momentum=m, batch=h), values, asked


def ring():
    """Three kinds, each of which hears the one before; one of them answers with delay."""
    b, K = Sites("b", "K")  # letters that another test uses for other sites
    c, M = Sites("c", "M")
    y, z = Variable("y", b, over=t), Variable("z", c, over=t)
    A, B, C = (Coupling(k, between=e, variance=1 / N) for k, e in (("A", (b, i)), ("B", (c, b)), ("C", (i, c))))
    laws = [
        Eq(x[i, t + 1], h * x[i, t] + h * Sum(C[i, c] * tanh(z[c, t]), (c, 1, M))),
        Eq(y[b, t], Sum(A[b, i] * tanh(x[i, t]), (i, 1, N))),
        Eq(z[c, t], Sum(B[c, b] * y[b, t], (b, 1, K))),
    ]
    system = System(laws, initial=[Eq(x[i, 0], a[i])])
    return system, {K / N: 2, M / N: "3/2", a: HALF}, [average(x[i, t] * x[i, s]), average(y[b, t] ** 2)]


@pytest.mark.parametrize("made", [excitation_and_inhibition, adaptation, batches, ring])
def test_a_run_agrees_with_instances_and_its_record_is_read_back(made):
    system, values, observables = made()
    theory = system.cavity()
    run = theory.evolve(values, until=6, paths=6000, seed=1)
    found = run.compare(system.simulate(values, N=300, seeds=8, until=6), observables)
    assert all(row.rms < 2.5 for row in found.rows)
    text = theory.derivation.to_json(verify=False)
    assert Derivation.from_json(text).to_json(verify=False) == text


@pytest.mark.parametrize("made", [excitation_and_inhibition, adaptation, batches, ring])
def test_every_step_is_judged(made):
    found = made()[0].cavity().derivation.verify(15)
    assert not found.failed
    assert not found.unchecked


def test_a_ring_of_kinds_has_a_stationary_state():
    system, values, (lag, _) = ring()
    rest = system.cavity().stationary(values, until=16, paths=400)
    assert rest.moves
    assert rest[lag](0) > rest[lag](8) > 0


# -- functions of a difference of states, and averages of fields -------------------------------------

J, g = Coupling("J", between=(i, i), variance=1 / N), Symbol("g", positive=True)


def driven_by(heard):
    return System([Eq(x[i, t + 1], x[i, t] / 2 + g * heard)], initial=[Eq(x[i, 0], a[i])])


def summed(body):
    return Sum(J[i, j] * body, (j, 1, N))


SPELT = {
    "sine": (summed(sin(x[j, t] - x[i, t])), cos(x[i, t]) * summed(sin(x[j, t])) - sin(x[i, t]) * summed(cos(x[j, t]))),
    "exponential": (summed(exp(sin(x[j, t]) - cos(x[i, t]))), exp(-cos(x[i, t])) * summed(exp(sin(x[j, t])))),
    "power": (summed(2 ** (tanh(x[j, t]) - a[i])), 2 ** (-a[i]) * summed(2 ** tanh(x[j, t]))),
}


def check_spellings(first, second):
    """Two spellings of what sites hear have one theory, and the instances of the first agree with it."""
    values = {g: "1/4", a: HALF}
    short, long = (driven_by(heard).cavity() for heard in (first, second))
    size = average(x[i, t] * x[i, s])
    runs = [theory.evolve(values, until=4, paths=500, seed=1)[size] for theory in (short, long)]
    assert runs[0] == pytest.approx(runs[1], rel=1e-9)
    sim = driven_by(first).simulate(values, N=300, seeds=8, until=4)
    assert short.evolve(values, until=4, paths=6000).compare(sim, [size]).rows[0].rms < 3
    return short


@pytest.mark.parametrize("name", SPELT)
def test_a_function_of_two_sites_is_a_sum_of_products(name):
    check_spellings(*SPELT[name])


# sums without couplings, beside one with them
OVER_ALL = {
    "sine": (
        Sum((J[i, j] + 1 / N) * sin(x[j, t] - x[i, t]), (j, 1, N)),
        SPELT["sine"][1] + cos(x[i, t]) * average(sin(x[i, t])) - sin(x[i, t]) * average(cos(x[i, t])),
    ),
    "square": (
        summed(tanh(x[j, t])) + Sum((x[j, t] - x[i, t]) ** 2, (j, 1, N)) / N / 4,
        summed(tanh(x[j, t])) + (average(x[i, t] ** 2) - 2 * x[i, t] * average(x[i, t]) + x[i, t] ** 2) / 4,
    ),
    "quenched": (
        summed(tanh(x[j, t])) + Sum(a[j] ** 2 * (x[j, t] - x[i, t]), (j, 1, N)) / N,
        summed(tanh(x[j, t])) + average(a[i] ** 2 * x[i, t]) - x[i, t],  # the values of a are 1 and -1
    ),
}


@pytest.mark.parametrize("name", OVER_ALL)
def test_a_sum_over_all_sites_may_hold_the_site_that_hears(name):
    assert "N" not in str(check_spellings(*OVER_ALL[name]))  # numbers of sites have cancelled


def test_a_function_of_two_sites_without_couplings_is_judged():
    derivation = driven_by(OVER_ALL["square"][0]).cavity().derivation
    found = derivation.verify(15)
    assert not found.failed
    assert not found.unchecked
    step = derivation["emissions"]
    *kept, last = step.claims
    wrong = replace(step, claims=(*kept, Equation(last.lhs, 2 * last.rhs)))
    assert not all(verdict.ok for verdict in judge(wrong, 15))
    assert "sum of products" in derivation.to_text()


def test_oscillators_are_judged():
    found = driven_by(SPELT["sine"][0]).cavity().derivation.verify(15)
    assert not found.failed
    assert not found.unchecked


def test_a_function_without_an_addition_theorem_is_refused():
    with pytest.raises(DeclarationError, match="mixes both sites"):
        driven_by(summed(tanh(x[j, t] - x[i, t])))


def test_an_average_of_fields_that_all_sites_share():
    """A spherical model: its multiplier follows from states and fields; the field need not have a name."""
    z, u = Global("z", over=t), Variable("u", i, over=t)
    S = Coupling("S", between=(i, i), variance=1 / N, reciprocity=1)
    pull = Sum(S[i, j] * x[j, t], (j, 1, N))
    values, size = {g: "1/5", a: HALF}, average(x[i, t] * x[i, s])
    begin = [Eq(x[i, 0], a[i]), Eq(z[0], 1)]
    step = Eq(x[i, t + 1], x[i, t] + g * (pull - z[t] * x[i, t]))
    short = System([step, Eq(z[t + 1], average(x[i, t] * pull))], initial=begin)
    named = System([step, Eq(u[i, t], pull), Eq(z[t + 1], average(x[i, t] * u[i, t]))], initial=begin)
    runs = [one.cavity().evolve(values, until=5, paths=4000, seed=1) for one in (short, named)]
    assert runs[0][size] == pytest.approx(runs[1][size], rel=1e-9)
    shared = average(x[i, t] * pull)
    assert runs[0].compare(short.simulate(values, N=300, seeds=8, until=5), [size, shared]).rows[1].rms < 3
    found = short.cavity().derivation.verify(15)
    assert not found.failed
    assert not found.unchecked


def test_a_parameter_of_a_descent_may_have_any_name():
    """Fields, messages, the time and the mask of a descent take other names than the rate and the momentum."""
    X, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
    problem = ConvexProblem(Sum(sqrt(1 + (Sum(X[mu, i] * w[i], (i, 1, N)) - y[mu]) ** 2), (mu, 1, P)))
    names = (("eta", "m", "b"), ("h", "t", "lambda"), ("lambda", "h", "s"))
    runs = []
    for rate, momentum, batch in ((Symbol(name, positive=True) for name in row) for row in names):
        theory = problem.descent(rate=rate, momentum=momentum, batch=batch).cavity()
        values = {rate: h, momentum: "1/4", batch: h, alpha: 2, y: HALF}
        runs.append(theory.evolve(values, until=3, paths=4000, seed=1))
    first, *others = ((run[average(w[i] ** 2)], run.errors[average(w[i] ** 2)]) for run in runs)
    for size, error in others:
        assert (abs(size - first[0]) <= 5 * (error + first[1])).all()
