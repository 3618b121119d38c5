"""The precision of mpmath is one for the whole process: threads that mix digits do not disturb each other."""

from concurrent.futures import ThreadPoolExecutor

import mpmath
from sympy import Max, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, alpha, average, i, mu

C = Symbol("C", positive=True)
x, w = Coupling("x"), Feature("w")
u = Sum(x[mu, i] * w[i], (i, 1, N))
RIDGE = Sum(w[i] ** 2, (i, 1, N)) / 2
POINT = {alpha: "3/2", C: "1/2"}
LOSSES = (Max(0, 1 - u) ** 2, Max(0, 1 - u))


def norm(loss, dps):
    theory = ConvexProblem(minimize=RIDGE + C * Sum(loss, (mu, 1, P))).cavity()
    solution = theory.solve(POINT, dps=dps)
    again = theory.function(average(w[i] ** 2), C, values={alpha: "3/2"}, backend="mpmath")("1/2")
    return solution[average(w[i] ** 2)], solution.residual, again


def test_four_threads_with_different_digits():
    exact = [norm(loss, 110)[0] for loss in LOSSES]
    jobs = [(k, dps) for _ in range(2) for dps in (90, 15, 60, 30) for k in range(len(LOSSES))]
    with mpmath.workdps(22):
        before = mpmath.mp.prec
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda job: norm(LOSSES[job[0]], job[1]), jobs))
        assert mpmath.mp.prec == before
    with mpmath.workdps(120):
        for (k, dps), (value, residual, again) in zip(jobs, found, strict=True):
            assert abs(value / exact[k] - 1) < mpmath.mpf(10) ** (1 - dps)
            assert residual < mpmath.mpf(10) ** (1 - dps)
            assert abs(again / exact[k] - 1) < mpmath.mpf(10) ** -20
