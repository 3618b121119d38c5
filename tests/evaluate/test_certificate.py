"""Certificates: boxes that hold the solution, and none around what is no solution."""


import flint
import mpmath
import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, log, pi, sign, sqrt
from sympy.stats import Exponential, Gamma, Laplace, Logistic, LogNormal, Normal, StudentT, Uniform

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Feature,
    N,
    NotConverged,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
)
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.derivations import anisotropic, gardner, manifold, output_bias, structured_network
from symcavity.evaluate import solve as solving
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.certificates import enclosure
from symcavity.evaluate.certificates.certificate import certify
from symcavity.evaluate.certificates.enclosed import integrals, tail
from symcavity.evaluate.certificates.enclosure import Enclosure
from symcavity.model.kinds import FEATURE

HALF = Rational(1, 2)
x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2
gamma = Symbol("gamma", positive=True)
e, c = Quenched("e", mu), Quenched("c", mu, positive=True)
weighted = ConvexProblem(Sum(c[mu] * Max(0, 1 - u), (mu, 1, P)) + half)


def data(loss):
    return Sum(loss, (mu, 1, P))


def test_the_capacity_of_the_perceptron_lies_in_its_ball():
    solution = gardner.problem.cavity().solve({gardner.kappa: 1}, dps=35, certify=True)
    ball = solution.certified[alpha]
    with mpmath.workdps(50):  # 1/alpha = (1 + k^2) Phi(k) + k density(k)
        value = 1 / (2 * mpmath.ncdf(1) + mpmath.npdf(1))
        assert ball.overlaps(flint.arb(mpmath.nstr(value, 48)))
    assert ball.rad() < 1e-35
    assert "certified" in str(solution)


@pytest.mark.parametrize("dps", [15, 30])
def test_a_smooth_loss_is_enclosed_with_its_integrals(dps):
    """Logistic regression, against a fixed point on a plain grid."""
    solution = ConvexProblem(data(log(1 + exp(-u))) + half).cavity().solve({alpha: 2}, dps=dps, certify=True)
    z = np.linspace(-12, 12, 4801)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    q, s = 0.2, 0.7
    for _ in range(200):
        h = np.sqrt(q) * z
        for _ in range(60):
            p = 1 / (1 + np.exp(h))
            h -= (h - np.sqrt(q) * z - s * p) / (1 + s * p * (1 - p))
        p = 1 / (1 + np.exp(h))
        curvature = p * (1 - p)
        s = 1 / (1 + 2 * (weight @ (curvature / (1 + s * curvature))))
        q = 2 * (weight @ p**2) * s**2
    names = {str(k): v for k, v in solution.certified.items()}
    assert abs(float(names["q_w"].mid()) - q) < 1e-10
    assert abs(float(names["S_w"].mid()) - s) < 1e-10
    assert all(ball.rad() < 10.0 ** -(dps - 1) for ball in names.values())


CASES = {
    "bias": (output_bias.problem, {output_bias.kappa: HALF, output_bias.f: Rational(4, 5)}),
    "an array": (anisotropic.problem, {anisotropic.kappa: HALF, anisotropic.l: [0.25, 0.5, 2.0, 1.25]}),
    "kinks": (
        ConvexProblem(data((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))) ** 2) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))),
        {alpha: 2, gamma: HALF, t: {0: HALF, 1: HALF}},
    ),
    "a teacher": (
        ConvexProblem(data(Max(0, 1 - sign(Sum(x[mu, i] * t[i], (i, 1, N))) * u)) + half),
        {alpha: 2, t: {1: 1}},
    ),
    "a noisy teacher": (
        ConvexProblem(data(Max(0, 1 - sign(Sum(x[mu, i] * t[i], (i, 1, N)) + e[mu]) * u)) + half),
        {alpha: 2, t: Normal("t", 0, 1), e: Normal("e", 0, 1)},
    ),
    "Gaussian inputs of a network": (structured_network.problem, structured_network.values),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_enclosed_is_what_was_solved(case):
    problem, values = CASES[case]
    theory = problem.cavity()
    solution = theory.solve(values, certify=True)
    for symbol, ball in solution.certified.items():
        assert abs(float(ball.mid()) - float(solution.values[symbol])) < 1e-12 * (1 + abs(float(ball.mid())))
        assert ball.rad() < 1e-12


def test_a_wrong_root_is_not_certified():
    solution = gardner.problem.cavity().solve({gardner.kappa: 1})
    assert certify(solution)
    right = dict(solution.values)
    solution.values = {s: v * mpmath.mpf("1.00001") for s, v in right.items()}
    near = certify(solution)  # Newton's method leads back: the box is around the solution, not around what was given
    assert near[alpha].overlaps(flint.arb("0.51957222960493794693765648676917"))
    solution.values = {s: v * mpmath.mpf("1.3") for s, v in right.items()}
    with pytest.raises(NotConverged, match=r"not certified|degenerate"):
        certify(solution)


def test_a_false_equation_moves_the_box(monkeypatch):
    """The certificate is of the closed equations: with another one the box is elsewhere, or there is none."""
    theory = gardner.problem.cavity()
    solution = theory.solve({gardner.kappa: 1})
    first = solution.task.equations[0]
    wrong = [type(first)(first.lhs, 2 * first.rhs), *solution.task.equations[1:]]
    monkeypatch.setattr(solution.task, "equations", wrong)  # a theory is one object for all who ask for it
    with pytest.raises(NotConverged, match=r"not certified|degenerate"):
        certify(solution)


@pytest.fixture
def bits():
    """Ball arithmetic with ninety bits."""
    before, flint.ctx.prec = flint.ctx.prec, 90
    yield 60
    flint.ctx.prec = before


def over(law, bits):
    return Enclosure({FEATURE: SiteLaw(continuous=[(t, law)])}, bits)


KNOWN = [
    (Normal("t", 1, 2), {t[i] ** 2: 5, Abs(t[i] - 1): sqrt(8 / pi), exp(t[i]): exp(3)}),
    (Uniform("t", 0, 2), {t[i] ** 2: Rational(4, 3), Abs(t[i] - 1): HALF}),
    (Exponential("t", 1), {t[i] ** 2: 2, Abs(t[i] - 1): 2 * exp(-1), Max(0, t[i] - 3): exp(-3)}),
    (Gamma("t", HALF, 2), {t[i] ** 2: 3, exp(-t[i]): 1 / sqrt(3)}),
    (Laplace("t", 0, 1), {t[i] ** 2: 2, Abs(t[i]): 1, sign(t[i] - 1): exp(-1) - 1}),
    (LogNormal("t", 0, HALF), {t[i]: exp(HALF / 4), t[i] ** 2: exp(HALF)}),
    (Logistic("t", 0, 1), {t[i] ** 2: pi**2 / 3}),
    (StudentT("t", 5), {t[i] ** 2: Rational(5, 3)}),
]


@pytest.mark.parametrize(("law", "moments"), KNOWN, ids=[str(law.pspace.distribution) for law, _ in KNOWN])
def test_averages_over_densities_hold_what_is_known_of_them(law, moments, bits):
    for body, value in moments.items():
        found = over(law, bits)(average(body), {}).v
        assert found.contains(over(law, bits).number(value)), (body, found)
        assert found.rad() < 1e-16 * abs(float(found)), (body, found)


def test_the_ball_of_a_law_with_a_density_holds_the_solution_of_more_digits():
    theory, values = weighted.cavity(), {alpha: 2, c: Gamma("c", 2, 1)}
    solution = theory.solve(values, certify=True)
    fine = {s: flint.arb(mpmath.nstr(v, 28)) for s, v in theory.solve(values, dps=25).values.items()}
    for symbol, ball in solution.certified.items():
        assert ball.overlaps(fine[symbol]), symbol
        assert ball.rad() < 1e-15, symbol
    rough = theory.solve({alpha: 2, c: Gamma("c", 2, 0.7)}, certify=True).certified  # a float is a binary number
    exact = theory.solve({alpha: 2, c: Gamma("c", 2, Rational(0.7))}, certify=True).certified
    assert all(rough[s].overlaps(exact[s]) for s in exact)
    solution.values = {s: v * (1 + 1e-6) for s, v in solution.values.items()}
    for symbol, ball in certify(solution).items():  # led back, and never around what was given
        assert ball.overlaps(fine[symbol]), symbol
        assert not ball.contains(flint.arb(float(solution.values[symbol]))), symbol


def test_tails_and_the_errors_of_rules_are_in_the_balls(bits, monkeypatch):
    """Where they count: without them the truth is outside."""
    z = Symbol("z", real=True)

    def cut_off():
        return Enclosure({}, bits)(GaussianAverage(z**2, z), {}).v

    monkeypatch.setattr(Enclosure, "_reach", lambda _: 3.0)
    assert cut_off().contains(1)
    assert 0.01 < cut_off().rad() < 0.1
    monkeypatch.setattr(enclosure, "tail", lambda *_: [flint.arb(0)])
    assert not cut_off().contains(1)
    for ratio, of, truth in ((1.1, lambda v: v**-3, 0.5), (1 / 1.1, lambda v: v.rsqrt(), 2)):
        bound = tail(lambda v, of=of: [of(v)], 1, ratio)[0]
        assert truth < bound < 1.3 * truth
    assert not tail(lambda v: [1 / v], 1, 1.1)[0].is_finite()
    hidden = GaussianAverage(Abs(z) * sign(exp(z) - exp(Rational(1, 1000))), z)  # beside the kink that is seen
    with pytest.raises(NotConverged, match="kink"):
        Enclosure({}, bits)(hidden, {})
    truth = flint.arb(5).atan() / 5
    (found,) = integrals([lambda v: [1 / (1 + 25 * v * v)]], 1, 8)
    assert found.contains(truth)
    assert found.rad() < 1e-2
    assert abs(found.mid() - truth) > 1e-12  # which nothing but the bound on the rule's error covers


def test_what_is_not_enclosed_is_refused(monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(solving, "solve_bound", lambda *_: pytest.fail("solved first"))
        for loss, values, found in (
            (log(1 + exp(-c[mu] * u)), {c: Gamma("c", 2, 1)}, "a field inside of one over the law of c"),
            (c[mu] * Max(0, 1 - e[mu] * e[mu] * u), {c: Gamma("c", 2, 1), e: Uniform("e", 1, 2)}, "several densities"),
        ):
            with pytest.raises(UnsupportedLaw, match=found):
                ConvexProblem(data(loss) + half).cavity().solve({alpha: 2, **values}, certify=True)
    with pytest.raises(UnsupportedLaw, match="sets"):
        manifold.problem.cavity().solve({manifold.g: Ball(2, HALF), manifold.kappa: 1}, certify=True)
    with pytest.raises(UnsupportedLaw, match="limit"):
        ConvexProblem(data(u**2) + half).cavity().solve({alpha: 2}, certify=True)
