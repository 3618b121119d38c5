"""One problem, one answer: in any units, in any order of sites and data, and beside rounding errors of the data."""

import numpy as np
import pytest
from declarations_simulated import C, field, gamma, half_norm, w, y
from sympy import Abs, Eq, Max, Piecewise, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity.errors import SymcavityError
from symcavity.face import ConvexProblem
from symcavity.finite.run import simulate
from symcavity.model.averages import average, response
from symcavity.model.kinds import N, P, alpha, i, mu
from symcavity.model.quantities import Global

b, tau = Global("b"), Symbol("tau", positive=True)
error, loss = field - y[mu], Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2
lengths = Sum(Abs(w[i]), (i, 1, N))
huber = Piecewise((error**2 / 2, Abs(error) <= tau), (tau * Abs(error) - tau**2 / 2, True))
PROBLEMS = {  # name: declaration, load, parameters in units of the targets
    "least squares": (ConvexProblem(loss), 2, []),
    "ridge": (ConvexProblem(loss + gamma * half_norm), 1, []),
    "lasso": (ConvexProblem(loss + C * lengths), 1, [C]),
    "elastic net": (ConvexProblem(loss + C * lengths + gamma * half_norm), 1, [C]),
    "positive": (ConvexProblem(loss, [w[i] >= 0]), 2, []),
    "deviations": (ConvexProblem(Sum(Abs(error), (mu, 1, P))), 3, []),
    "quantile": (ConvexProblem(Sum(Max(3 * (error + b), -error - b), (mu, 1, P))), 3, []),
    "tube": (ConvexProblem(half_norm + gamma * Sum(Max(0, Abs(error) - tau), (mu, 1, P))), 2, [tau, gamma]),
    "huber": (ConvexProblem(Sum(huber, (mu, 1, P))), 5, [tau]),
    "pursuit": (ConvexProblem(lengths, [Eq(field, y[mu])]), Rational(1, 2), []),
    "interpolation": (ConvexProblem(half_norm, [Eq(field, y[mu])]), Rational(1, 2), []),
    "margins": (ConvexProblem(half_norm, [field >= tau]), 1, [tau]),
    "bounded": (ConvexProblem(loss, [w[i] <= tau, w[i] >= -tau]), 2, [tau]),
}
EVENTS = [Abs(w[i]) > 0, w[i] > 0, Eq(field, y[mu]), field > y[mu]]


def values_of(problem, load, scaled, size):
    values = {alpha: load, **dict.fromkeys(scaled, Rational(1, 2) * size)}
    names = {str(s) for s in problem.kkt().parameters}
    if "gamma" in names and gamma not in scaled:
        values[gamma] = Rational(1, 3)
    if problem.kkt().quenched:
        values[y] = Normal("y", 0, size)
    return values


def told(sim, what):
    """A number, or the kind of the refusal."""
    try:
        return sim[what].samples
    except SymcavityError as refused:
        return type(refused).__name__


@pytest.mark.parametrize("name", PROBLEMS)
def test_units_do_not_change_an_instance(name):
    problem, load, scaled = PROBLEMS[name]
    answers = []
    for size in (Rational(1), Rational(10) ** -100, Rational(3, 10**9), Rational(10) ** 100):
        sim = simulate(problem, values_of(problem, load, scaled, size), N=12, seeds=2)
        assert not sim.failed
        assert sim.residuals.worst < 1e-9
        numbers = [told(sim, average(e)) for e in EVENTS] if problem.kkt().quenched else [told(sim, average(EVENTS[1]))]
        scale = sim.arrays("w") / float(size)
        answers.append((sim.flat, numbers, scale))
    for flat, numbers, weights in answers[1:]:
        assert flat == answers[0][0]
        assert list(map(str, numbers)) == list(map(str, answers[0][1]))
        assert weights == pytest.approx(answers[0][2], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["lasso", "positive", "deviations", "ridge"])
def test_responses_follow_the_units(name):
    problem, load, scaled = PROBLEMS[name]
    found = [simulate(problem, values_of(problem, load, scaled, s), N=12, seeds=2) for s in (1, Rational(10) ** -50)]
    power = {"deviations": 1}.get(name, 0)  # of targets, over that of a source
    one, other = (sim[average(response(w))].samples for sim in found)
    assert other == pytest.approx(one * 1e-50**power, rel=1e-7)


class Drawn:
    """Couplings that are given, with sites in another order or beside rounding errors."""

    def __init__(self, data, features, noise):
        self.data, self.features, self.noise = data, features, noise

    def __call__(self, rng, shape):
        base = np.random.default_rng(5).standard_normal((len(self.data), len(self.features)))
        if self.noise:
            base *= 1 + 1e-15 * np.random.default_rng(self.noise).standard_normal(base.shape)
        return base[self.data][:, self.features] if shape == base.shape else rng.standard_normal(shape)


@pytest.mark.parametrize("name", PROBLEMS)
def test_orders_and_last_digits_do_not_change_events_or_refusals(name):
    problem, load, scaled = PROBLEMS[name]
    n = 12
    data, features = np.arange(round(float(load) * n)), np.arange(n)
    target = np.random.default_rng(6).standard_normal(len(data))
    answers = []
    for order, places, noise in ((data, features, 0), (data[::-1], features[::-1], 0), (data, features, 1)):
        values = values_of(problem, load, scaled, 1)
        if problem.kkt().quenched:
            values[y] = target[order] * (1 + 1e-15 * noise)
        sim = simulate(problem, values, N=n, seeds=1, couplings=Drawn(order, places, noise))
        events = EVENTS if problem.kkt().quenched else EVENTS[:2]
        numbers = [told(sim, r) for r in (average(w[i]), average(response(w)))]
        answers.append(([str(told(sim, average(e))) for e in events], sim.flat, numbers))
    for events, flat, numbers in answers[1:]:
        assert (events, flat) == answers[0][:2]
        for here, there in zip(numbers, answers[0][2], strict=True):
            assert here == (there if isinstance(there, str) else pytest.approx(there, rel=1e-6, abs=1e-9))


def test_a_distance_from_theory_does_not_depend_on_units():
    """All weights stand at their bounds, so that the average never varies: it is known to one site in all instances."""
    held = ConvexProblem(loss, [w[i] <= -tau, w[i] >= -tau])
    one, small = (
        simulate(held, {alpha: 1, tau: s, y: Normal("y", 0, s)}, N=12, seeds=2)[average(w[i])].z(-1.01 * float(s))
        for s in (Rational(1), Rational(10) ** -20)
    )
    assert small == pytest.approx(one, rel=0.5)  # units are powers of two
    assert one > 0.1
