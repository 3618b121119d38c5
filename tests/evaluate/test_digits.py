"""Many digits where an equation cancels at its root, and where an average is zero by symmetry."""

import mpmath
import pytest
from sympy import Eq, Max, Sum, Symbol, exp, tanh

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu
from symcavity import response as response_of
from symcavity.evaluate.averages.integrals import Pass
from symcavity.evaluate.closed_map import ClosedMap

x, w, xi = Coupling("x"), Feature("w"), Datum("xi")


@pytest.fixture(scope="module")
def solution():
    """A law with a smooth term: the equation that is left is a response minus its average."""
    heard = Eq(w[i] + tanh(w[i]), Sum(x[mu, i] * xi[mu], (mu, 1, P)))
    return System([heard, Eq(xi[mu], 1 - Sum(x[mu, i] * w[i], (i, 1, N)))]).cavity().solve({alpha: 1}, dps=22)


def test_an_equation_that_cancels_at_its_root(solution):
    """The single site by hand: w + tanh(w) + w/(1 + S_w) = sqrt(q_xi) z, integrated over z."""
    with mpmath.workdps(26):
        response, moment = (solution[k] for k in solution.values if str(k) in ("S_w", "q_xi"))
        if str(next(iter(k for k in solution.values if str(k) in ("S_w", "q_xi")))) == "q_xi":
            response, moment = moment, response

        def weight(z):
            def gap(v):
                return v * (1 + 1 / (1 + response)) + mpmath.tanh(v) - mpmath.sqrt(moment) * z

            return mpmath.findroot(gap, z / 4, tol=1e-50)

        def averaged(f):
            return 2 * mpmath.quad(lambda z: f(weight(z)) * mpmath.npdf(z), range(13))

        local = averaged(lambda v: 1 / (1 + 1 / (1 + response) + 1 / mpmath.cosh(v) ** 2))
        assert abs(local / response - 1) < mpmath.mpf(10) ** -20
        assert abs((averaged(lambda v: v * v) + 1) / (1 + response) ** 2 / moment - 1) < mpmath.mpf(10) ** -20


@pytest.mark.parametrize("odd", [w[i], tanh(w[i]), w[i] ** 3], ids=str)
def test_the_average_of_an_odd_function_is_zero(solution, odd):
    assert solution[average(odd)] == 0


def test_what_is_small_is_not_zero(solution):
    small = average(w[i] + w[i] ** 2 / 10**9)
    with mpmath.workdps(22):
        assert abs(solution[small] * 10**9 / solution[average(w[i] ** 2)] - 1) < mpmath.mpf(10) ** -20


def test_a_response_that_is_left_of_terms_that_cancel():
    """Two slopes that meet at 1, and nearly all data below it: the response is the mass of a narrow strip."""
    C = Symbol("C", positive=True)
    u = Sum(x[mu, i] * w[i], (i, 1, N))
    loss = Sum(Max(2 * (u - 1), -(u - 1) / 2), (mu, 1, P))
    theory = ConvexProblem(minimize=Sum(w[i] ** 2 / 2, (i, 1, N)) + C * loss).cavity()
    solution = theory.solve({alpha: 5, C: "1/10"}, dps=15)
    response, moment = (solution[k] for k in (average(response_of(w[i])), average(w[i] ** 2)))
    small = next(v for k, v in solution.values.items() if str(k).startswith("S_1"))
    with mpmath.workdps(30):
        slope, width = 1 / (mpmath.mpf(1) - small * 5 / 2), mpmath.sqrt(mpmath.mpf("0.0125"))
        strip = mpmath.quad(lambda h: mpmath.npdf(h / width) / width, [1 - slope / 20, 1 + slope / 5])
        assert abs(small / (-2 * strip / slope) - 1) < 1e-14
        assert abs(small) < 1e-16
    assert abs(response - 1) < 1e-15
    assert abs(moment - mpmath.mpf("0.0125")) < 1e-16
    assert solution.residual < 1e-20


def test_what_cancellation_is_measured_by_is_known_roughly(monkeypatch):
    """Counts whose mean a teacher sets: moduli have kinks, and all of their digits took half of the time."""
    runs, inside, run, measured = [0], [], Pass.run, ClosedMap._without_cancelled

    def counted(self, *args):
        runs[0] += 1
        return run(self, *args)

    def watched(self, *args):
        before, found = runs[0], measured(self, *args)
        inside.append(runs[0] - before)
        return found

    monkeypatch.setattr(Pass, "run", counted)
    monkeypatch.setattr(ClosedMap, "_without_cancelled", watched)
    x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
    h, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
    counts = ConvexProblem(Sum(exp(h) - exp(u) * h, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    values, size = {alpha: 2, t: {1: "1/2", -1: "1/2"}}, average(w[i] ** 2)
    solution = counts.cavity().solve(values)
    assert inside[-1] <= 20
    measure = counts.simulate(values, N=100, seeds=8)[size]
    assert abs(measure.mean - solution[size]) < 4 * measure.stderr
