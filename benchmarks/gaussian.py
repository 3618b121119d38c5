"""Gaussian averages and phi, timed against SymPy, NumPy/SciPy and mpmath; ratios measured in one run.

Run by hand: ``python benchmarks/gaussian.py [seconds that SymPy is given for each average]``.
"""

from __future__ import annotations

import multiprocessing as mp
import sys
import time
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from sympy import Abs, Expr, Max, Min, Piecewise, exp, integrate, oo, pi, sign, sqrt, symbols
from sympy.core.cache import clear_cache
from timing import best

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.phi import mp_phi
from symcavity.algebra.signs import _sign_of
from symcavity.evaluate.special import np_phi

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
    """Time one rival in a process of its own, which may be ended."""
    expr = cases()[case]
    RIVALS[name](z**2)  # loads what SymPy loads on first use
    start = time.perf_counter()
    try:
        done = not RIVALS[name](expr).has(*_integrals())
    except Exception as problem:  # noqa: BLE001 - whatever SymPy raises, it has given up
        pipe.send((None, type(problem).__name__))
        return
    pipe.send((time.perf_counter() - start, "") if done else (None, "left as an integral"))


def _integrals() -> tuple[type, ...]:
    from sympy import Integral
    from sympy.stats.symbolic_probability import Expectation

    return Integral, Expectation


def timed_rival(name: str, case: str, limit: float) -> tuple[float | None, str]:
    here, there = mp.Pipe(duplex=False)
    process = mp.Process(target=rival, args=(name, case, there))
    process.start()
    late = (None, f"no answer in {limit:g} s")
    result: tuple[float | None, str] = here.recv() if here.poll(limit) else late
    process.terminate()
    process.join()
    return result


def cold(expr: Expr) -> object:
    clear_cache()
    _sign_of.cache_clear()
    return gaussian_average(expr, z)


def averages(limit: float) -> None:
    gaussian_average(Max(0, 1 - z), z)
    for case, expr in cases().items():
        closed = gaussian_average(expr, z)
        assert not closed.has(GaussianAverage)
        ours = best(lambda expr=expr: cold(expr))
        quickest, notes = None, []
        for name in RIVALS:
            seconds, note = timed_rival(name, case, limit)
            notes.append(f"{name}: {seconds:.2f} s" if seconds is not None else f"{name}: {note}")
            if seconds is not None and (quickest is None or seconds < quickest):
                quickest = seconds
        ratio = f"{quickest / ours:6.0f} times as fast" if quickest is not None else "where the others give up"
        print(f"{case:42s} {ours * 1e3:7.2f} ms, {ratio}   ({'; '.join(notes)})")


def special() -> None:
    from scipy.special import ndtr

    x = np.random.default_rng(0).uniform(0, 3, 10**6)

    def by_hand() -> Any:
        return (1 + x * x) * ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    assert np.allclose(by_hand(), np_phi(2, x), rtol=1e-14)
    ours, hand = best(lambda: np_phi(2, x)), best(by_hand)
    print(f"phi_2, 10^6 points in double: {ours / hand:.2f} of hand-written SciPy ({ours * 1e3:.1f} ms)")
    with mpmath.workdps(50):
        points = [mpmath.mpf(float(v)) for v in x[:1000]]

        def by_mpmath() -> Any:
            return [(1 + v * v) * mpmath.ncdf(v) + v * mpmath.npdf(v) for v in points]

        ours, hand = best(lambda: [mp_phi(2, v) for v in points]), best(by_mpmath)
        ratio = ours / hand
        print(f"phi_2, 1000 points to 50 digits: {ratio:.2f} of hand-written mpmath ({ours * 1e3:.1f} ms)")
        tail = [-v - 20 for v in points]
        ours = best(lambda: [mp_phi(2, v) for v in tail])
        print(f"the same in the tail, -23 < kappa < -20, with guard digits: {ours * 1e3:.1f} ms")
    points = np.linspace(-37, 200, 2001)
    with mpmath.workdps(40):
        for n in range(9):
            exact = [mp_phi(n, mpmath.mpf(float(v))) for v in points]
            values = np_phi(n, points)
            worst = max(abs(mpmath.mpf(float(v)) / e - 1) for v, e in zip(values, exact, strict=True))
            print(f"phi_{n} in double, kappa from -37 to 200: relative error {mpmath.nstr(worst, 2)}")


if __name__ == "__main__":
    averages(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
    special()
