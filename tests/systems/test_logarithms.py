"""Laws that end in a pole: logarithms of states and fields, and quotients by them."""

import pytest
from references import near
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from sympy import Abs, Eq, Heaviside, Max, Piecewise, Rational, Sum, Symbol, exp, log, sqrt
from sympy.stats import Poisson

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    NotConverged,
    P,
    Quenched,
    RoughSolution,
    System,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
)

x, w = Coupling("x"), Feature("w")
C = Symbol("C", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2
FAR = 4.5
BARRIER = ConvexProblem(ridge - C * Sum(log(heard), (mu, 1, P)), [heard >= 0])


def test_the_analytic_centre():
    """w = C sum x/h, and so |w|^2 = C P, at any load and in every instance."""
    theory = BARRIER.cavity()
    values = {alpha: Rational(3, 2), C: 2}
    assert near(theory.solve(values)[average(w[i] ** 2)], "3", "1e-12")
    simulation = BARRIER.simulate(values, N=40, seeds=3)
    assert float(simulation[average(w[i] ** 2)].mean) == pytest.approx(3, rel=1e-9)
    verdict = theory.derivation.verify()
    assert verdict
    assert not verdict.unchecked


def test_the_law_of_a_datum_by_hand():
    """h - S C/h = sqrt(q) z with q = alpha C: the response of the messages by quadrature."""
    values = {alpha: 1, C: 1}
    solution = BARRIER.cavity().solve(values)

    def gap(s):
        def slope(z):
            h = (z + (z * z + 4 * s) ** 0.5) / 2
            return 1 / (h * h + s) * norm.pdf(z)

        return s * (1 + quad(slope, -12, 12)[0]) - 1

    s = brentq(gap, 0.01, 0.99)
    assert near(solution["S_w"], str(s), "1e-8")


def test_weights_with_an_entropy():
    penalty = Sum(w[i] ** 2 / 2 - log(w[i]), (i, 1, N))
    problem = ConvexProblem(penalty + Sum((1 - heard) ** 2, (mu, 1, P)), [w[i] >= 0])
    theory = problem.cavity()
    comparison = theory.compare(problem.simulate({alpha: 1}, N=60, seeds=10), [average(w[i]), average(w[i] ** 2)])
    assert comparison.worst < FAR


def test_a_resource_that_is_supplied():
    """R (1 - consumption) = K: no resource dies out, and the pair never holds at its bound."""
    R, la, K = Feature("R"), Datum("la"), Quenched("K", i, positive=True)
    used = Sum(x[mu, i] * la[mu], (mu, 1, P))
    pair = Complementary(R[i], 1 - used - K[i] / R[i])
    system = System([Eq(la[mu], 1 - Sum(x[mu, i] * R[i], (i, 1, N)))], [pair])
    values = {alpha: 1, K: {1: "1/2", 2: "1/2"}}
    simulation = system.simulate(values, N=60, seeds=10)
    assert system.cavity().compare(simulation, [average(R[i]), average(R[i] ** 2)]).worst < FAR


def test_a_logarithm_implies_its_bound():
    barrier = ridge - C * Sum(log(heard), (mu, 1, P))
    plain, bounded = (ConvexProblem(barrier, some).cavity().solve({alpha: 1, C: 1}) for some in ([], [heard >= 0]))
    assert abs(plain[average(w[i] ** 2)] - bounded[average(w[i] ** 2)]) < 1e-13


def test_no_state_ends_beyond_the_case_in_which_a_logarithm_is_read():
    """Fair's loss and a power of a hinge by cases are those without cases; others with a pole in their own case."""
    error = 1 - heard
    power = Rational(3, 2)
    fair = (
        Abs(error) - log(1 + Abs(error)),
        Piecewise((error - log(1 + error), error >= 0), (-error - log(1 - error), True)),
        Heaviside(error) * (error - log(1 + error)) + Heaviside(-error) * (-error - log(1 - error)),
    )
    hinges = (Max(0, error) ** power, Piecewise((error**power, heard < 1), (0, True)))
    for losses in (fair, hinges):
        theories = [ConvexProblem(ridge + Sum(loss, (mu, 1, P))).cavity() for loss in losses]
        first, *others = (theory.solve({alpha: 2})[average(w[i] ** 2)] for theory in theories)
        assert all(abs(other / first - 1) < 1e-12 for other in others)


def test_a_logarithm_whose_end_other_cases_pass_by_is_refused():
    going_on = Piecewise((heard - log(1 + heard), heard > -2), (2, True)) - heard / 3
    with pytest.raises(UnsupportedLaw, match="may go on beyond its end"):
        ConvexProblem(ridge + Sum(going_on, (mu, 1, P)))
    ended = ConvexProblem(ridge + Sum(going_on, (mu, 1, P)), [1 + heard >= 0])
    assert ended.cavity().solve({alpha: 1}).residual < 1e-10


def test_beyond_separability_a_barrier_has_no_minimum():
    """Only zero weights meet h >= 0 there, and no field is positive; at the edge few digits are left."""
    theory = BARRIER.cavity()
    for load in ("21/10", 3):
        with pytest.raises(NotConverged):
            theory.solve({alpha: load, C: 1})
    with pytest.warns(RoughSolution, match="about"):
        theory.solve({alpha: 2, C: 1})


@pytest.mark.parametrize(("name", "factor"), [("s", Symbol("s")), ("k", Quenched("k", i)[i])])
def test_a_factor_without_a_sign_is_named(name, factor):
    problem = ConvexProblem(Sum((1 - heard) ** 2, (mu, 1, P)) - Sum(log(1 + factor * w[i]), (i, 1, N)), [w[i] >= 0])
    with pytest.raises(UnsupportedLaw, match=f"declare the sign of {name}, if it has one: positive=True"):
        problem.cavity()


def test_no_root_of_a_state_has_such_an_end():
    """sqrt has a slope that is infinite at zero, and a value that is not: the bound may be reached by none."""
    problem = ConvexProblem(ridge - Sum(sqrt(w[i]), (i, 1, N)) + Sum((1 - heard) ** 2, (mu, 1, P)), [w[i] >= 0])
    theory = problem.cavity()
    assert theory.compare(problem.simulate({alpha: 1}, N=60, seeds=10), [average(w[i])]).worst < FAR


class TestCountsOfZero:
    """Poisson regression with the identity link: where a count is zero, nothing keeps its mean from zero."""

    def problem(self, **law):
        n, h = Quenched("n", mu, **law), Sum(x[mu, i] * w[i], (i, 1, N))
        return n, ConvexProblem(Sum(1 + h - n[mu] * log(1 + h), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)

    def test_zero_is_refused_at_once(self):
        half = Rational(1, 2)
        n, open_ = self.problem()
        _, declared = self.problem(law={0: half, 2: half})
        u = Sum(x[mu, i] * Quenched("t", i, law={half: half, -half: half})[i], (i, 1, N))
        _, drawn = self.problem(law=Poisson("n", exp(u)), given=u)
        cases = (open_, {n: {0: half, 2: half}}), (open_, {n: Poisson("n", 2)}), (declared, {}), (drawn, {})
        for problem, values in cases:
            with pytest.raises(ValuesError, match="no logarithm keeps states from the edge"):
                problem.cavity().solve({alpha: 2, **values})

    def test_a_little_more_than_zero_is_the_limit(self):
        """Instances hold the mean at its edge themselves."""
        half = Rational(1, 2)
        n, problem = self.problem()
        found = problem.cavity().solve({alpha: 2, n: {Rational(1, 1000): half, 2: half}})
        instances = problem.simulate({alpha: 2, n: {0: half, 2: half}}, N=60, seeds=6)[average(w[i] ** 2)]
        assert abs(instances.mean - float(found[average(w[i] ** 2)])) < 4 * instances.stderr


def test_a_utility_as_a_further_variable():
    """Goods of logarithmic utility under budgets, and the same where ``u[i] <= log(w[i])`` is what a good is worth."""
    spent, u = Coupling("c", mean=1 / N, variance=1 / (4 * N)), Feature("u")
    bound = Sum(spent[mu, i] * w[i], (i, 1, N)) <= 1
    goods = ConvexProblem(-Sum(log(w[i]), (i, 1, N)), [bound])
    spelt = ConvexProblem(-Sum(u[i], (i, 1, N)), [bound, u[i] <= log(w[i])])
    shown, at = [average(w[i]), average(w[i] ** 2), average(log(w[i]))], {alpha: 2}
    found, expected = (p.cavity().solve(at) for p in (spelt, goods))
    assert [float(found[o]) for o in shown] == pytest.approx([float(expected[o]) for o in shown], rel=1e-9)
