"""States that move: declared, derived, run forward exactly or over paths, and held against spectra and instances."""

import re
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from pastur import pastur
from sympy import Eq, Max, Rational, Sum, Symbol, sign, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    Coupling,
    DeclarationError,
    N,
    P,
    Quenched,
    Sites,
    System,
    Time,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)

t, s = Time("t"), Time("s")
j = Symbol("j")
g, h, eta, gamma, m, theta = symbols("g h eta gamma m theta", positive=True)
r = Symbol("r", real=True)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}

x, a = Variable("x", i, over=t), Quenched("a", i)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
heard = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
NETWORK = System([Eq(x[i, t + 1], (1 - h) * x[i, t] + h * heard)], initial=[Eq(x[i, 0], a[i])])

X, w, lam = Coupling("x"), Variable("w", i, over=t), Variable("lambda", mu, over=t)
teacher, noise = Quenched("w0", i), Quenched("e", mu)
error = Sum(X[mu, i] * (w[i, t] - teacher[i]), (i, 1, N)) - noise[mu]
pull = gamma * w[i, t] + Sum(X[mu, i] * lam[mu, t], (mu, 1, P))
DESCENT = System([Eq(w[i, t + 1], w[i, t] - eta * pull), Eq(lam[mu, t], error)], initial=[Eq(w[i, 0], 0)])
MOMENTUM = System(
    [Eq(w[i, t + 1], w[i, t] + m * (w[i, t] - w[i, t - 1]) - eta * pull), Eq(lam[mu, t], error)],
    initial=[Eq(w[i, 0], 0), Eq(w[i, -1], 0)],
)
RIDGE = {
    alpha: 3, eta: Rational(1, 7), gamma: Rational(1, 8), teacher: HALF,
    noise: {Rational(1, 2): Rational(1, 2), Rational(-1, 2): Rational(1, 2)},
}  # fmt: skip
TEST, TRAIN = average((w[i, t] - teacher[i]) ** 2), average(lam[mu, t] ** 2)


@pytest.mark.parametrize(("system", "momentum"), [(DESCENT, Fraction(0)), (MOMENTUM, Fraction(1, 2))])
def test_descent_on_a_ridge_is_the_moments_of_the_spectrum_exactly(system, momentum):
    values = RIDGE if momentum == 0 else {**RIDGE, m: "1/2"}
    run = system.cavity().evolve(values, until=6)
    known = list(pastur(Fraction(3), Fraction(1, 7), Fraction(1, 8), Fraction(1, 4), 6, momentum))
    assert run.method == "exact"
    assert list(run[TEST]) == [test for test, _ in known]
    assert list(run[TRAIN]) == [train for _, train in known]


def test_digits_and_doubles_are_those_of_the_fractions():
    theory = DESCENT.cavity()
    exact = theory.evolve(RIDGE, until=5)[TEST][-1]
    with mp.workdps(45):
        known = mp.mpf(exact.numerator) / exact.denominator
        assert abs(theory.evolve(RIDGE, until=5, dps=40)[TEST][-1] - known) < mp.mpf(10) ** -38
    assert theory.evolve(RIDGE, until=60)[TEST][5] == pytest.approx(float(exact), rel=1e-13)


def test_message_passing_has_no_memory():
    """Onsager's term cancels what comes back, exactly."""
    local = Sum(X[mu, i] * (w[i, t] - teacher[i]), (i, 1, N)) - noise[mu]
    system = System(
        [
            Eq(lam[mu, t], local + theta / alpha * lam[mu, t - 1]),
            Eq(w[i, t + 1], theta * (w[i, t] - Sum(X[mu, i] * lam[mu, t], (mu, 1, P)) / alpha)),
        ],
        initial=[Eq(w[i, 0], 0), Eq(lam[mu, -1], 0)],
    )
    run = system.cavity().evolve({alpha: 2, theta: "1/3", teacher: HALF, noise: 0}, until=5)
    assert (run[response(lam[mu, t], s)] == np.eye(6, dtype=int)).all()
    q = run[TEST]  # theta (q - tau) of a linear denoiser: the state evolution, by hand
    for k in range(5):
        assert q[k + 1] == Fraction(1, 9) * q[k] / 2 + Fraction(4, 9)


def test_sampled_paths_agree_with_the_exact_run():
    theory = DESCENT.cavity()
    exact, paths = theory.evolve(RIDGE, until=6), theory.evolve(RIDGE, until=6, method="paths", paths=8000)
    z = (paths[TEST] - exact[TEST].astype(float))[1:] / paths.errors[TEST][1:]
    assert np.abs(z).max() < 4
    assert np.allclose(paths[response(w[i, t], s)], exact[response(w[i, t], s)].astype(float), atol=1e-12)


def test_double_digits_of_two_hundred_steps():
    run = DESCENT.cavity().evolve(RIDGE, until=120)
    assert run[TEST][-1] == pytest.approx(run[TEST][-2], rel=1e-6)


def agrees(system, values, observables, until=6, size=400, seeds=16, worst=4.5):
    run = system.cavity().evolve(values, until=until, paths=12000, seed=2)
    comparison = run.compare(system.simulate(values, N=size, seeds=seeds, until=until), observables)
    for row in comparison:
        assert row.rms < 2.5, str(comparison)
        assert np.abs(row.z).max() < worst, str(comparison)


@pytest.mark.parametrize(("reciprocity", "step"), [("-1/2", "1/5"), ("1/2", 1), (1, "1/5")])
def test_networks_with_reciprocity_against_instances(reciprocity, step):
    values = {g: "13/10", r: reciprocity, h: step, a: HALF}
    agrees(NETWORK, values, [average(tanh(x[i, t]) * tanh(x[i, s])), average(x[i, t] ** 2)])


def test_correlated_columns_and_a_kind_that_answers_at_once_against_instances():
    b, K = Sites("b", "K")
    rho = Symbol("rho", real=True)
    L = Coupling("L", between=(i, b), variance=1 / N)
    R = Coupling("R", between=(i, b), variance=1 / N, correlation={L: rho})
    z, d = Variable("z", b, over=t), Quenched("d", b)
    system = System(
        [
            Eq(x[i, t + 1], Sum(L[i, b] * d[b] * z[b, t], (b, 1, K))),
            Eq(z[b, t], Sum(R[i, b] * tanh(x[i, t]), (i, 1, N))),
        ],
        initial=[Eq(x[i, 0], a[i])],
    )
    values = {K / N: "1/2", rho: "1/2", d: {"3/2": "1/2", "1/2": "1/2"}, a: Normal("a", 0, 1)}
    agrees(system, values, [average(x[i, t] * x[i, s]), average(z[b, t] ** 2)])


RECTIFIED = System(
    [
        Eq(w[i, t + 1], w[i, t] - eta * Sum(X[mu, i] * Max(0, lam[mu, t]), (mu, 1, P))),
        Eq(lam[mu, t], Sum(X[mu, i] * w[i, t], (i, 1, N)) - Sum(X[mu, i] * teacher[i], (i, 1, N))),
    ],
    initial=[Eq(w[i, 0], 0)],
)


def test_a_teacher_heard_apart_and_a_kink_against_instances():
    values = {alpha: 2, eta: "1/4", teacher: HALF}
    agrees(RECTIFIED, values, [average(w[i, t] * teacher[i]), average(lam[mu, t] * lam[mu, s])])


def test_couplings_that_differ_from_site_to_site_and_a_sum_at_an_earlier_time_against_instances():
    gain, c, y = Quenched("gain", i, positive=True), Quenched("c", mu), Variable("y", mu, over=t)
    H = Coupling("H", between=(mu, i), variance=gain[i] / N)
    system = System(
        [
            Eq(x[i, t + 1], x[i, t] / 2 + Sum(H[mu, i] * tanh(y[mu, t]), (mu, 1, P)) / 2),
            Eq(y[mu, t + 1], y[mu, t] / 3 - Sum(H[mu, i] * x[i, t - 1], (i, 1, N)) / 2 + c[mu]),
        ],
        initial=[Eq(x[i, 0], a[i]), Eq(x[i, 1], a[i]), Eq(y[mu, 0], c[mu]), Eq(y[mu, 1], 0)],
    )
    values = {alpha: 2, gain: {1: "1/2", 2: "1/2"}, a: Normal("a", 0, 1), c: HALF}
    agrees(system, values, [average(x[i, t] * x[i, s]), average(y[mu, t] * c[mu])])


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", [NETWORK, DESCENT])
def test_every_claim_is_checked_and_holds(system):
    rows = list(system.cavity().derivation.verify(dps=15))
    assert all(row.ok for row in rows)
    assert all(row.checked for row in rows if row.step.claims)


def test_the_record_reads_as_one():
    text = NETWORK.cavity().derivation.to_text()
    assert "A source has no influence on earlier states" in " ".join(text.split())
    assert "the equations are solved forward in time" in " ".join(text.split())
    assert "S^ux(t, s)" in text
    latex = NETWORK.cavity().derivation.to_latex()
    assert "\\eta_{0} ( t )" in latex


def test_the_closed_system_holds_laws_statistics_and_averages():
    theory = DESCENT.cavity()
    assert len(theory.equations) == 8
    known = {"C_w_minus_w0(t, s)", "C_lambda(t, s)", "S_w(t, s)", "S_lambda(t, s)"}
    assert {str(q) for q in theory.order_parameters} == known


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("equations", "initial", "said"),
    [
        ([Eq(x[i, t + 1], heard)], [], "x\\[i, 0\\] is missing"),
        ([Eq(x[i, t + 1], heard.xreplace({t: t - 1}))], [Eq(x[i, 0], 0)], r"sum Sum.*x\[j, -1\].* is missing"),
        ([Eq(x[i, t], heard)], [], "not causal"),
        ([Eq(x[i, t + 1] + x[i, t], heard)], [Eq(x[i, 0], 0)], "newest value"),
        ([Eq(x[i, t + 1], heard.xreplace({t: s}))], [Eq(x[i, 0], 0)], "a time of its own"),
        ([Eq(x[i, t + 1], heard)], [Eq(x[i, 0], x[i, 1])], "no given number"),
        ([Eq(x[i, t + 1], heard)], [Eq(x[i, 0], 0), Eq(x[i, 0], 1)], "two initial values"),
        ([Eq(x[i, t + 1], heard), Eq(x[i, t + 1], 2 * heard)], [Eq(x[i, 0], 0)], "4 equations|Two equations"),
    ],
)
def test_a_system_that_cannot_move_is_refused_as_it_is_declared(equations, initial, said):
    with pytest.raises(DeclarationError, match=said):
        System(equations, initial=initial)


@pytest.mark.parametrize(
    ("equations", "initial", "said"),
    [
        ([Eq(x[i, t + 1], heard.xreplace({t: t + 1}))], [Eq(x[i, 0], 0)], r"causal: x\[i, t\] needs itself at"),
        ([Eq(x[i, t], heard.xreplace({t: t + 1}))], [], r"equation x\[i, t\] = Sum\(tanh\(x\[j, t \+ 1\]\)"),
        ([Eq(2 * x[i, t + 1], heard)], [Eq(x[i, 0], 0)], r"equation 2\*x\[i, t \+ 1\] = Sum\(tanh\(x\[j, t\]\)"),
        ([Eq(x[i, t + 1], heard)], [], r"term tanh\(x\[i, t\]\) of a sum needs it"),
        ([Eq(x[i, t + 1], heard.xreplace({t: t - 2}))], [Eq(x[i, 0], 0)], r"Sum\(tanh\(x\[j, -2\]\).* is missing"),
    ],
)
def test_messages_name_nothing_that_was_not_declared(equations, initial, said):
    with pytest.raises(DeclarationError, match=said) as problem:
        System(equations, initial=initial)
    first = str(problem.value).partition("\n")[0]
    assert not {"v", "v_2", "u_x", "m"} & set(re.findall(r"\w+", first)), first


def test_what_is_not_supported_says_so():
    theory = NETWORK.cavity()
    with pytest.raises(UnsupportedLaw, match="depend on time"):
        theory.solve({g: 1, r: 0, h: 1, a: 1})
    with pytest.raises(UnsupportedLaw, match="not exact"):
        theory.evolve({g: 1, r: 0, h: 1, a: 1}, until=3, method="exact")
    still = Variable("q", i)
    rest = System([Eq(still[i], Sum(J[i, j] * still[j], (j, 1, N)) / 3 + a[i])])
    with pytest.raises(UnsupportedLaw, match="do not depend on time"):
        rest.cavity().evolve({g: 1, r: 0, a: 1}, until=3)


def test_a_law_that_jumps_needs_no_response_where_its_couplings_are_independent_at_the_values():
    """Spins by the sign of what they hear: independent of the beginning after one step."""
    spins = System([Eq(x[i, t + 1], sign(Sum(J[i, j] * x[j, t], (j, 1, N))))], initial=[Eq(x[i, 0], a[i])])
    run = spins.cavity().evolve({g: 1, r: 0, a: HALF}, until=4, paths=8000, seed=1)
    C, error = (e[average(x[i, t] * x[i, 0])] for e in (run, run.errors))
    assert C[0] == 1
    assert np.all(abs(C[1:]) < 4 * error[1:])


def test_a_sum_at_an_earlier_time_begins_with_the_state_that_it_drives():
    late = [Eq(x[i, t + 1], x[i, t] / 2 + Sum(J[i, j] * x[j, t - 1], (j, 1, N)))]
    with pytest.raises(DeclarationError, match=r"Try: initial=\[Eq\(x\[i, 1\], 0\)\]"):
        System(late, initial=[Eq(x[i, 0], a[i])])
    late = [Eq(x[i, t + 1], x[i, t - 1] / 2 + Sum(J[i, j] * x[j, t - 1], (j, 1, N)))]
    run = System(late, initial=[Eq(x[i, 0], a[i]), Eq(x[i, 1], 0)]).cavity().evolve({g: 1, r: 0, a: HALF}, until=4)
    # x_2 = x_0/2 + eta_0 and x_4 = x_2/2 + eta_2: 5/4; then 5/16 + 5/4 + <eta_0 eta_2>, which is <x_0 x_2> = 1/2
    assert list(run[average(x[i, t] ** 2)]) == [1, 0, Fraction(5, 4), 0, Fraction(33, 16)]


def test_a_sum_before_the_beginning_is_heard_where_its_states_are_given():
    """Senders remember what they were: by hand, with an echo, and step by step in the record."""
    late = [Eq(x[i, t + 1], x[i, t - 1] / 2 + Sum(J[i, j] * x[j, t - 1], (j, 1, N)))]
    theory = System(late, initial=[Eq(x[i, 0], a[i]), Eq(x[i, -1], 2 * a[i])]).cavity()
    run = theory.evolve({g: 1, r: "1/2", a: HALF}, until=3)
    # x_1 = a + eta_0, and <eta_0^2> = <x_{-1}^2> = 4; x_2 = a/2 + eta_1, and <eta_1^2> = <x_0^2> = 1;
    # x_3 = x_1/2 + eta_2 + x_{-1}/2, of which the last comes back; <eta_2^2> = <x_1^2> = 5, and <eta_0 eta_2> is
    # <x_{-1} x_1> = 2
    assert list(run[average(x[i, t] ** 2)]) == [1, 5, Fraction(5, 4), Fraction(9, 4) + 1 + 5 + 2]
    found = theory.derivation.verify(15)
    assert not found.failed
    assert not found.unchecked
    assert "or the state that it sums" in " ".join(theory.derivation.to_text().split())


def test_a_saturating_sum_before_the_beginning_against_instances():
    both = Sum(J[i, j] * tanh(x[j, t - 2]), (j, 1, N)) + Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
    system = System([Eq(x[i, t + 1], x[i, t] / 2 + both)], initial=[Eq(x[i, k], (k + 3) * a[i]) for k in (-2, -1, 0)])
    agrees(system, {g: 1, r: "1/2", a: HALF}, [average(x[i, t] ** 2), average(x[i, t] * x[i, s])], until=5)


def test_values_and_observables_are_checked_before_any_work():
    theory = DESCENT.cavity()
    with pytest.raises(ValuesError, match="missing: gamma"):
        theory.evolve({k: v for k, v in RIDGE.items() if k != gamma}, until=3)
    with pytest.raises(ValuesError, match="until = 0"):
        theory.evolve(RIDGE, until=0)
    with pytest.raises(ValuesError, match="last step"):
        DESCENT.simulate(RIDGE, N=50)
    run = theory.evolve(RIDGE, until=3)
    for key in (w[i, t], average(x[i, t]), average(w[i, t + 1]), average(w[i, 9])):
        with pytest.raises(DeclarationError):
            run[key]
    with pytest.raises(UnsupportedLaw, match="second moments"):
        run[average(w[i, t] ** 4)]
    assert run[average(w[i, 2] * w[i, t])][1] == run[average(w[i, t] * w[i, s])][2, 1]
