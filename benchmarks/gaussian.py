"""Gaussian averages beside SymPy's integrals, and phi beside hand-written SciPy and mpmath."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy.special import ndtr
from sympy import Abs, Expr, Max, Min, Piecewise, exp, integrate, oo, pi, sign, sqrt, symbols
from sympy.core.cache import clear_cache
from timing import Bench, run, seconds

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.phi_values import mp_phi
from symcavity.algebra.signs import _sign_of
from symcavity.evaluate.averages.special import np_phi

z, a, kappa = symbols("z a kappa", real=True)
b, c = symbols("b c", positive=True)
unknown = symbols("unknown", real=True)


def cases() -> dict[str, Expr]:
    return {
        "E[max(0, a + b z)^2]": Max(0, a + b * z) ** 2,
        "E[clip(z, -1, 1)^2]": Min(Max(z, -1), 1) ** 2,
        "E[soft(z, b)^2]": (sign(z) * Max(Abs(z) - b, 0)) ** 2,
        "three branches": Piecewise((z**2, z < -b), (z**3 + 1, z < c), (2 * z, True)),
        "phi_2": Max(0, kappa - z) ** 2,
        "phi_6": Max(0, kappa - z) ** 6,
        "E[max(0, a + b z)^2], b of unknown sign": Max(0, a + unknown * z) ** 2,
    }


def by_integrate(expr: Expr) -> Expr:
    return integrate(expr * exp(-(z**2) / 2) / sqrt(2 * pi), (z, -oo, oo))


def by_integrate_piecewise(expr: Expr) -> Expr:
    return integrate((expr * exp(-(z**2) / 2) / sqrt(2 * pi)).rewrite(Piecewise), (z, -oo, oo))


def by_stats(expr: Expr) -> Expr:
    from sympy import stats

    return stats.E(expr.subs(z, stats.Normal("Z", 0, 1)))


RIVALS: dict[str, Callable[[Expr], Expr]] = {
    "integrate": by_integrate,
    "integrate, as Piecewise": by_integrate_piecewise,
    "stats.E": by_stats,
}


def rival(name: str, case: str, pipe: Any) -> None:
    """Time one rival and us in turn, in a process of its own, which may be ended."""
    expr = cases()[case]
    RIVALS[name](z**2)  # loads what SymPy loads on first use
    cold(expr)
    found: list[Expr] = []
    try:
        times = [(seconds(lambda: cold(expr)), seconds(lambda: found.append(RIVALS[name](expr))))]
        times.append((seconds(lambda: cold(expr)), times[0][1]))
    except Exception as problem:  # noqa: BLE001 - whatever SymPy raises, it has given up
        pipe.send(type(problem).__name__)
        return
    pipe.send("left as an integral" if found[0].has(*_integrals()) else times)


def _integrals() -> tuple[type, ...]:
    from sympy import Integral
    from sympy.stats.symbolic_probability import Expectation

    return Integral, Expectation


def timed_rival(name: str, case: str, limit: float) -> list[tuple[float, float]] | str:
    """Return times of us and the rival, or why there are none."""
    here, there = mp.Pipe(duplex=False)
    process = mp.Process(target=rival, args=(name, case, there))
    process.start()
    result = here.recv() if here.poll(limit) else f"no answer in {limit:g} s"
    process.terminate()
    process.join()
    return result


def cold(expr: Expr) -> object:
    clear_cache()
    _sign_of.cache_clear()
    return gaussian_average(expr, z)


def averages(bench: Bench) -> None:
    """Race the quickest rival of each average, or the time that all of them were given in vain."""
    limit = bench.size(20.0, 3.0)
    for case in list(cases())[: bench.size(None, 2)]:
        assert not gaussian_average(cases()[case], z).has(GaussianAverage)
        results = {name: timed_rival(name, case, limit) for name in list(RIVALS)[: bench.size(None, 1)]}
        for name, result in results.items():
            if isinstance(result, str):
                print(f"{case}, {name}: {result}", flush=True)
        answers = {name: result for name, result in results.items() if not isinstance(result, str)}
        if answers:
            quickest = min(answers, key=lambda name: answers[name][0][1])
            bench.row(f"{case}, {quickest}", 0.1, answers[quickest])
        else:
            bench.row(f"{case}, no other", 0.1, [(seconds(lambda c=case: cold(cases()[c])), limit)])


def special(bench: Bench) -> None:
    x = np.random.default_rng(0).uniform(0, 3, bench.size(10**6, 1000))

    def by_hand() -> Any:
        return (1 + x * x) * ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    assert np.allclose(by_hand(), np_phi(2, x), rtol=1e-14)
    bench.race(f"phi_2, {x.size} points in double", 1.5, lambda: np_phi(2, x), by_hand)
    with mpmath.workdps(50):
        points = [mpmath.mpf(float(v)) for v in x[: bench.size(1000, 10)]]

        def by_mpmath() -> Any:
            return [(1 + v * v) * mpmath.ncdf(v) + v * mpmath.npdf(v) for v in points]

        name = f"phi_2, {len(points)} points to 50 digits"
        bench.race(name, 1.3, lambda: [mp_phi(2, v) for v in points], by_mpmath)
        tail = [-v - 20 for v in points]
        # guard digits, which the closed form by hand lacks there
        name = "  the same for -23 < kappa < -20, beside 0 < kappa < 3"
        bench.race(name, 5, lambda: [mp_phi(2, v) for v in tail], by_mpmath)
    grid = np.linspace(-37, 200, bench.size(2001, 50))
    with mpmath.workdps(40):
        for n in range(9):
            exact = [mp_phi(n, mpmath.mpf(float(v))) for v in grid]
            values = np_phi(n, grid)
            worst = max(abs(mpmath.mpf(float(v)) / e - 1) for v, e in zip(values, exact, strict=True))
            bench.error(f"phi_{n} in double, kappa from -37 to 200", float(worst), 1e-13)


def main(bench: Bench) -> None:
    averages(bench)
    special(bench)


if __name__ == "__main__":
    run(main)
