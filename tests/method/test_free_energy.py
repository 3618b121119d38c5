"""The free energy of Gibbs measures as a function of order parameters, and the identities of posteriors."""

from dataclasses import replace

import pytest
from sympy import Abs, Heaviside, Rational, S, Sum, Symbol, exp, log
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, alpha, average, expect, i, mu
from symcavity.method import free_energy_steps
from symcavity.method.bayes import posterior
from symcavity.model.equations import Equation
from symcavity.sites.thermal import averages
from symcavity.witness.judge import judge

beta, field, sigma = (Symbol(name, positive=True) for name in ("beta", "H", "sigma"))
j = Symbol("j", integer=True)
x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
J = Coupling("J", between=(i, i), reciprocity=1)
h = Sum(x[mu, i] * w[i], (i, 1, N))
t, xi = Quenched("t", i, law=Normal("t", 0, 1)), Quenched("xi", mu, law=Normal("xi", 0, 1))
u = Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
square = Sum(w[i] ** 2, (i, 1, N)) / 2
LOGISTIC = Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + square
LINEAR = Sum((h - u - sigma * xi[mu]) ** 2, (mu, 1, P)) / (2 * sigma**2) + square
MAGNET = -Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2 - field * Sum(s[i], (i, 1, N))
ERRORS = Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P))
NET = Sum((1 - h) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2 / 2 + Abs(w[i]), (i, 1, N))
QUARTIC = Sum((1 - h) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2 / 2 + w[i] ** 4 / 4, (i, 1, N))  # no closed sum


def steps_of(measure, *rules):
    return [step for step in measure.cavity().derivation if step.rule in rules]


def seen(steps):
    """Whether some witness contradicts some step."""
    return any(verdict.ok is False for step in steps for verdict in judge(step))


MEASURES = {
    "magnet": lambda: Problem(MAGNET).gibbs(beta),
    "errors": lambda: Problem(ERRORS).gibbs(beta),
    "linear": lambda: ConvexProblem(LINEAR).gibbs(1),
    "net": lambda: ConvexProblem(NET).gibbs(beta),
    "quartic": lambda: ConvexProblem(QUARTIC).gibbs(beta),
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_function_is_stationary_where_the_equations_are_closed(name):
    """Weights summed over states, and difference quotients off a solution; another factor somewhere is seen."""
    steps = steps_of(MEASURES[name](), "free_energy", "free_energy_slopes")
    assert [step.rule for step in steps] == ["free_energy", "free_energy_slopes"]
    assert all(verdict.ok for step in steps for verdict in judge(step))
    *logs, whole = steps[0].claims
    loop = next(term for term in whole.rhs.args if not term.has(averages.LogWeight))
    for wrong in (Equation(whole.lhs, whole.rhs - loop), Equation(whole.lhs, whole.rhs + logs[0].lhs)):
        assert seen([replace(steps[0], claims=(*logs, wrong))])
    told = steps[1].claims
    assert seen([replace(steps[1], claims=(Equation(told[0].lhs, told[0].rhs * 2), *told[1:]))])


def test_a_function_without_beta(monkeypatch):
    """Two responses that are not divided by beta."""
    right = free_energy_steps.links_of

    def wrong(*site):
        return [(once, factor, power, beta * own) for once, factor, power, own in right(*site)]

    monkeypatch.setattr(free_energy_steps, "links_of", wrong)
    assert seen(steps_of(Problem(MAGNET + Sum(s[i], (i, 1, N)) / 7).gibbs(beta), "free_energy"))


def test_a_weight_without_its_volume(monkeypatch):
    """The logarithm of a total from which something is missing."""
    from symcavity.sites.thermal.fluctuation import Fluctuation

    right = Fluctuation.logarithm.fget
    monkeypatch.setattr(Fluctuation, "logarithm", property(lambda self: right(self) - log(self.width)))
    assert seen(steps_of(ConvexProblem(QUARTIC + Sum(w[i] ** 2, (i, 1, N)) / 7).gibbs(beta), "free_energy"))


def test_the_free_energy_of_a_convex_measure():
    """By two ways it is one number; its slope in beta is the energy, its limit a minimum."""
    problem = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + square)
    one, other = problem.gibbs(beta).cavity(), Problem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + square).gibbs(beta).cavity()
    values = {alpha: 2, beta: 3}
    solution = one.solve(values)
    free, entropy = float(solution[one.free_energy]), float(solution[one.entropy])
    assert free == pytest.approx(float(other.solve(values)[other.free_energy]), rel=1e-12)
    near = (Rational(301, 100), Rational(299, 100))
    up, down = (float(one.solve({alpha: 2, beta: b})[one.free_energy]) * float(b) for b in near)
    assert (up - down) / 0.02 == pytest.approx(free + entropy / 3, rel=1e-5)
    cold = float(problem.cavity().solve({alpha: 2}).objective)
    late = one.solve({alpha: 2, beta: 10**6})
    assert float(late[one.free_energy]) == pytest.approx(cold, rel=1e-4)


@pytest.mark.parametrize(
    ("measure", "is_one"),
    [
        (ConvexProblem(LOGISTIC).gibbs(1), True),
        (ConvexProblem(LOGISTIC).gibbs(2), False),  # colder than the posterior
        (ConvexProblem(LOGISTIC).gibbs(beta), False),
        (ConvexProblem(LOGISTIC + square).gibbs(1), False),  # another prior
        (ConvexProblem(LINEAR).gibbs(1), True),
        (ConvexProblem(LINEAR / beta).gibbs(beta), True),
        (ConvexProblem(Sum((h - u - 2 * sigma * xi[mu]) ** 2, (mu, 1, P)) / (2 * sigma**2) + square).gibbs(1), False),
        (Problem(MAGNET).gibbs(1), False),
    ],
)
def test_posteriors_are_known_by_their_declaration(measure, is_one):
    assert (posterior(measure.cavity()) is not None) == is_one
    assert bool(steps_of(measure, "bayes")) == is_one


def test_the_identities_of_a_posterior():
    """They hold at the posterior; where they are claimed of another measure, the solved equations say no."""
    (step,) = steps_of(ConvexProblem(LOGISTIC).gibbs(1), "bayes")
    assert all(verdict.ok for verdict in judge(step))
    tempered = ConvexProblem(LOGISTIC).gibbs(2).cavity()
    assert seen([replace(step, evidence={**step.evidence, "theory": tempered})])
    assert "Nishimori" in ConvexProblem(LOGISTIC).gibbs(1).cavity().derivation.to_latex()


def test_a_field_that_keeps_still_moves_the_mean():
    """A loss that holds the field of a teacher, and is not a square: its response was zero, without a word."""
    v = Feature("v", values=(-1, 1))
    heard = Sum(x[mu, i] * v[i], (i, 1, N))
    steps = steps_of(Problem(Sum((heard**2 - u**2) ** 2, (mu, 1, P)) / 2).gibbs(1), "response")
    assert not any(claim.rhs == S.Zero for step in steps for claim in step.claims)


def test_means_of_states_are_those_of_the_posterior():
    solution = ConvexProblem(LOGISTIC).gibbs(1).cavity().solve({alpha: 2})
    assert float(solution[average(expect(w[i]) ** 2)]) == pytest.approx(float(solution[average(expect(w[i]) * t[i])]))
