"""The largest Lyapunov exponent of stationary states that are sampled: closed forms, the particle, instances."""

import numpy as np
import pytest
from sympy import Derivative, Eq, Rational, Sum, Symbol, erf, log, pi, sign, sqrt, symbols, tanh

from symcavity import Coupling, Global, N, Noise, Quenched, Sites, System, Theory, Time, UnsupportedLaw, Variable, i
from symcavity.evaluate.moving import growth
from symcavity.evaluate.moving.flow import scheme
from symcavity.evaluate.moving.recurring import recurring
from symcavity.model.nearby import nearby

t, j = Time("t"), Symbol("j")
g, D = symbols("g D", positive=True)
r = Symbol("r", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
BEGIN = [Eq(x[i, 0], a[i])]


def heard(phi):
    return Sum(J[i, j] * phi(x[j, t]), (j, 1, N))


NOISY = System([Eq(x[i, t + 1], heard(tanh) + xi[i, t])], initial=BEGIN)
POINT = {g: 2, D: "1/2", r: 0, a: HALF}


def exact(gain, noise):
    """Fields without memory of one step: ``log(g^2 <tanh'(x)^2>)/2`` at the variance that they have."""
    z, weights = np.polynomial.hermite_e.hermegauss(120)
    weights, size = weights / weights.sum(), 1.0
    for _ in range(200):
        size = gain**2 * np.tanh(np.sqrt(size) * z) ** 2 @ weights + noise
    return np.log(gain**2 * np.cosh(np.sqrt(size) * z) ** -4 @ weights) / 2


def test_a_network_in_steps_has_the_exponent_of_one_integral_and_a_change_that_is_not_heard_another(monkeypatch):
    """L. Molgedey, J. Schuchhardt and H. G. Schuster, Phys. Rev. Lett. 69, 3717 (1992)."""
    rest = NOISY.cavity().stationary(POINT, until=16, paths=600, seed=1)
    value, error = rest.lyapunov, rest.errors.lyapunov
    assert abs(value - exact(2, 0.5)) < 4 * error
    assert error < 0.015
    right = growth.nearby

    def steeper(system):
        """The emission of a change by the half of its slope."""
        whole = right(system)
        *known, last = whole.system.typed[0]
        wrong = System([*known, Eq(last.lhs, last.rhs / 2)], initial=whole.system.initial)
        return type(whole)(wrong, whole.changes, whole.beginnings)

    monkeypatch.setattr(growth, "nearby", steeper)
    del rest._growth
    assert abs(rest.lyapunov - value + np.log(2)) < 10 * error


@pytest.mark.parametrize(("gain", "reciprocity"), [("4/5", 0), ("1/2", "1/2")])
def test_a_linear_network_forgets_at_the_edge_of_its_spectrum(gain, reciprocity):
    linear = System([Eq(x[i, t + 1], x[i, t] / 2 + heard(lambda u: u) / 2 + xi[i, t])], initial=BEGIN)
    rest = linear.cavity().stationary({**POINT, g: gain, r: reciprocity}, until=24, paths=800, seed=1)
    edge = float(log((1 + Rational(gain) * (1 + Rational(reciprocity))) / 2))
    assert abs(rest.lyapunov - edge) < 4 * rest.errors.lyapunov
    assert rest.errors.lyapunov < 0.02


def test_a_kind_that_answers_at_once_has_no_beginning_and_passes_changes_on():
    """Modes between units: the product of two random matrices is one, of the variance <d^2> K/N."""
    k, K = Sites("k", "K")
    L, R = (Coupling(name, between=(i, k), variance=1 / N) for name in "LR")
    z, d = Variable("z", k, over=t), Quenched("d", k)
    laws = [
        Eq(x[i, t + 1], Sum(L[i, k] * d[k] * z[k, t], (k, 1, K)) + xi[i, t]),
        Eq(z[k, t], Sum(R[i, k] * tanh(x[i, t]), (i, 1, N))),
    ]
    values = {K / N: "1/2", d: {3: "1/2", 1: "1/2"}, D: "1/2", a: HALF}
    rest = System(laws, initial=BEGIN).cavity().stationary(values, until=16, paths=2500, seed=1)
    assert abs(rest.lyapunov - exact(np.sqrt(2.5), 0.5)) < 4 * rest.errors.lyapunov < 0.1


def test_what_is_sampled_is_the_lowest_state_of_a_particle():
    chaotic = System(
        [Eq(Derivative(x[i, t], t), -x[i, t] + heard(lambda u: erf(sqrt(pi) * u / 2)))], initial=BEGIN
    ).cavity()
    values, want = {g: 2, r: 0, a: HALF}, chaotic.stationary({g: 2, r: 0}).lyapunov
    rate, error = growth.growth(Theory(scheme(chaotic.system, Rational(1, 2))), values, 32, 1000, 1)
    assert abs(2 * rate - want) < 8 * error + 0.01  # and steps of one half
    assert 2 * error < 0.02


def test_exponents_of_continuous_time_are_rates():
    linear = System([Eq(Derivative(x[i, t], t), -x[i, t] + heard(lambda u: u) + xi[i, t])], initial=BEGIN).cavity()
    values = {g: "1/2", D: 1, r: 0, a: HALF}
    rest = recurring(linear, values, 8, "1/2", 200, 1)
    assert linear.stationary(values).lyapunov == pytest.approx(-0.5)
    assert abs(rest.lyapunov + 0.5) < 4 * rest.errors.lyapunov < 0.24
    assert repr(rest.errors).startswith("<standard errors: of any observable")


def test_two_populations_with_delays_against_instances():
    b, K = Sites("b", "K")
    n = Variable("n", b, over=t)
    down, up = Coupling("F", between=(i, b), variance=g**2 / N), Coupling("G", between=(b, i), variance=g**2 / N)
    system = System(
        [
            Eq(x[i, t + 1], x[i, t] / 2 + heard(tanh) - Sum(down[i, b] * tanh(n[b, t - 1]), (b, 1, K))),
            Eq(n[b, t + 1], Sum(up[b, i] * tanh(x[i, t]), (i, 1, N))),
        ],
        initial=[Eq(x[i, 0], a[i]), Eq(x[i, 1], a[i]), *(Eq(n[b, k], 0) for k in range(2))],
    )
    rest = system.cavity().stationary({g: "3/2", r: 0, K / N: "1/2", a: HALF}, until=16, paths=600, seed=1)
    found, size = [], 500
    for seed in range(6):
        rng = np.random.default_rng([5, seed])
        shapes = (size, size), (size, 250), (250, size)
        own, back, forth = (rng.standard_normal(shape) * 1.5 / np.sqrt(size) for shape in shapes)
        here, late, late_before = rng.standard_normal(size), np.zeros(250), np.zeros(250)
        d, e, e_before, total = rng.standard_normal(size), np.zeros(250), np.zeros(250), 0.0
        for step in range(600):
            new = here / 2 + own @ np.tanh(here) - back @ np.tanh(late_before)
            d_new = d / 2 + own @ (d / np.cosh(here) ** 2) - back @ (e_before / np.cosh(late_before) ** 2)
            e_new = forth @ (d / np.cosh(here) ** 2)
            late_before, late, here = late, forth @ np.tanh(here), new
            grown = np.linalg.norm(d_new)
            d, e, e_before = d_new / grown, e_new / grown, e / grown
            total += np.log(grown) if step >= 100 else 0.0
        found.append(total / 500)
    mean, spread = np.mean(found), np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(rest.lyapunov - mean) < 4 * np.hypot(rest.errors.lyapunov, spread) + 0.01  # and 1/N
    assert rest.errors.lyapunov < 0.03


def test_changes_of_what_all_sites_share_and_of_averages_stand_in_the_system_beside():
    b = Global("b", over=t)
    shared = System(
        [
            Eq(x[i, t + 1], heard(lambda u: tanh(u - b[t])) + Sum(x[j, t], (j, 1, N)) / N),
            Eq(b[t + 1], b[t] / 2 + Sum(x[i, t] ** 2, (i, 1, N)) / N),
        ],
        initial=[*BEGIN, Eq(b[0], 0)],
    )
    both = nearby(shared)
    text = " ".join(map(str, both.system.typed[0]))
    for part in ("Sum(change_of_x[j, t], (j, 1, N))", "2*change_of_x[i, t]*x[i, t]", "change_of_b[t]*J[i, j]"):
        assert part in text, text
    assert [str(q) for q in both.changes] == ["change_of_x[i, t]"]


def test_changes_of_a_law_that_jumps_do_not_stay_small():
    spins = System([Eq(x[i, t + 1], sign(heard(lambda u: u) + xi[i, t]))], initial=BEGIN)
    rest = spins.cavity().stationary({**POINT, g: 1}, until=16, paths=200, seed=1)
    with pytest.raises(UnsupportedLaw, match="jumps: changes do not stay small"):
        assert rest.lyapunov
