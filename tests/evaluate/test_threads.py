"""Threads that mix digits do not disturb each other, nor the mpmath of whoever started them."""

import time
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
        before, third, seen = mpmath.mp.prec, mpmath.mpf(1) / 3, set()
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(norm, LOSSES[k], dps) for k, dps in jobs]
            while not all(r.done() for r in running):  # numbers of one's own, while others compute
                seen.add((mpmath.mp.prec, mpmath.mpf(1) / 3 == third))
                time.sleep(1e-4)
        found = [r.result() for r in running]
        assert seen == {(before, True)}
    assert all(isinstance(v, mpmath.mpf) for values in found for v in values)
    with mpmath.workdps(120):
        for (k, dps), (value, residual, again) in zip(jobs, found, strict=True):
            assert abs(value / exact[k] - 1) < mpmath.mpf(10) ** (1 - dps)
            assert residual < mpmath.mpf(10) ** (1 - dps)
            assert abs(again / exact[k] - 1) < mpmath.mpf(10) ** -20
