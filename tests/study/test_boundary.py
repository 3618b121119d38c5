"""Phase boundaries against published values and closed forms."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sympy import Abs, Eq, Rational, Sum, Symbol, symbols

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    System,
    ValuesError,
    alpha,
    average,
    i,
    mu,
)
from symcavity.errors import NotConverged, UnstableSolution
from symcavity.study import line as study_line

half = Rational(1, 2)
x, w = Coupling("x"), Feature("w")
h = Sum(x[mu, i] * w[i], (i, 1, N))


def test_the_minority_game_loses_stability_at_its_published_load():
    """Challet, Marsili and Zhang: responses diverge; below the minimum is flat."""
    A = Quenched("A", mu)
    game = ConvexProblem(Sum((h - A[mu]) ** 2, (mu, 1, P)) / 2, subject_to=[w[i] <= 1, w[i] >= -1])
    found = game.cavity().boundary("stability", {alpha: ("0.3", "0.6")}, values={A: {1: half, -1: half}}, dps=20)
    assert abs(found.value - mpmath.mpf("0.33740018858708759188")) < mpmath.mpf("1e-17")
    with mpmath.workdps(20):
        assert abs(found.value - mpmath.mpf("0.33740018858708759188")) < mpmath.mpf("1e-19")


def test_lotka_volterra_loses_stability_along_a_line(monkeypatch):
    """sigma_c = sqrt(2)/(1 + g): Bunin, Phys. Rev. E 95, 042414 (2017)."""
    n, j = Feature("n"), symbols("j", integer=True)
    g, A, sigma = Symbol("g", real=True), Symbol("A", real=True), Symbol("sigma", positive=True)
    J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N, reciprocity=g)
    species = System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))])
    places, solves = [0, 0.125, 0.25, 0.375, 0.5], []
    solve = study_line.solve_theory
    monkeypatch.setattr(study_line, "solve_theory", lambda *a, **k: (solves.append(a[1][g]), solve(*a, **k))[1])
    line = species.cavity().boundary("stability", {sigma: ("0.9", "1.5")}, {g: places}, {A: 2}, dps=12)
    assert [float(y) for _, y, _ in line] == pytest.approx([np.sqrt(2) / (1 + g) for g in places], rel=1e-11)
    assert solves.count(places[4]) < 0.7 * solves.count(places[1])  # followed, in the place of a look everywhere
    assert line.to_csv().splitlines()[0] == "g,sigma,error"
    axes = line.plot()
    assert axes.lines[0].get_xdata().tolist() == places


def test_a_smooth_law_loses_stability_after_a_few_searches(monkeypatch):
    """Lotka-Volterra with immigration: where the gain is one; places without a solution are not searched one by one."""
    n, j = Feature("n"), symbols("j", integer=True)
    A, sigma, m = Symbol("A", real=True), Symbol("sigma", positive=True), Symbol("m", positive=True)
    J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N)
    law = Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)) - m / n[i])
    theory = System([], [law]).cavity()
    efforts, solve = [], study_line.solve_theory

    def noted(*args, **options):
        efforts.append(options["effort"])
        return solve(*args, **options)

    monkeypatch.setattr(study_line, "solve_theory", noted)
    place = float(theory.boundary("stability", {sigma: ("0.5", "3")}, values={A: 2, m: "1/100"}))
    assert efforts.count("brief") <= 2 < efforts.count("near")
    assert theory.solve({A: 2, m: "1/100", sigma: place * (1 - 1e-6)}).stability < 1
    with pytest.warns(UnstableSolution):
        assert theory.solve({A: 2, m: "1/100", sigma: place * (1 + 1e-6)}).stability > 1


def test_basis_pursuit_succeeds_above_the_line_of_donoho_and_tanner():
    t = Quenched("t", i)
    pursuit = ConvexProblem(
        Sum(Abs(w[i]), (i, 1, N)), subject_to=[Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)]
    )
    law = {0: Rational(9, 10), 1: Rational(1, 20), -1: Rational(1, 20)}

    def load(z):
        return 2 * norm.pdf(z) / (z + 2 * (norm.pdf(z) - z * norm.cdf(-z)))

    z = brentq(lambda z: load(z) * (1 - z * norm.cdf(-z) / norm.pdf(z)) - 0.1, 1e-3, 8)
    found = pursuit.cavity().boundary("stability", {alpha: ("0.3", "0.36")}, values={t: law}, dps=9)
    assert float(found) == pytest.approx(load(z), rel=1e-8)


@pytest.mark.parametrize("what", ["stability", "feasibility", average(w[i] ** 2)])
def test_points_are_separable_up_to_two_for_each_dimension(what):
    """Cover's theorem; the norm of the weights diverges like 1/(2 - alpha)**2."""
    separation = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[h >= 1]).cavity()
    found = separation.boundary(what, {alpha: ("1.7", "2.05")}, dps=20)
    with mpmath.workdps(20):
        assert abs(found.value - 2) < mpmath.mpf("1e-18")


def test_an_equation_of_observables():
    separation = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[h >= 1]).cavity()
    found = separation.boundary(Eq(average(w[i] ** 2), 1), {alpha: ("0.2", "1")})
    from symcavity import phi

    assert float(found) == pytest.approx(float(1 / phi(2, 1)), rel=1e-13)


def test_bad_input_and_nothing_lost():
    separation = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, subject_to=[h >= 1]).cavity()
    with pytest.raises(ValuesError, match="one parameter"):
        separation.boundary("stability", {})
    with pytest.raises(ValuesError, match="chaos"):
        separation.boundary("chaos", {alpha: (1, 3)})
    with pytest.raises(NotConverged, match="No boundary"):
        separation.boundary("stability", {alpha: (1, "1.5")})
    with pytest.raises(ValuesError, match="not a line"):
        separation.boundary("stability", {alpha: ("1.9", "2.01")}).plot()
