"""Values of theories beside code by hand: functions, sweeps, a spectrum of 10^5 features; phi in double."""

from __future__ import annotations

import mpmath
import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from timing import Bench, run

from symcavity import alpha, average, i
from symcavity.algebra.phi_values import mp_phi
from symcavity.derivations import anisotropic, gardner, soft_margin
from symcavity.evaluate.averages.special import np_phi

kappa = gardner.kappa


def density(k: np.ndarray) -> np.ndarray:
    return np.exp(-k * k / 2) / np.sqrt(2 * np.pi)


def phi_2(k: np.ndarray) -> np.ndarray:
    return (1 + k * k) * ndtr(k) + k * density(k)


def by_hand_exactly(k: mpmath.mpf) -> mpmath.mpf:
    return 1 / ((1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k))


def functions(bench: Bench) -> None:
    """Alpha of kappa, in closed form."""
    theory = gardner.problem.cavity()
    margins = np.random.default_rng(0).uniform(0, 3, bench.size(10**6, 1000))
    f = theory.function(alpha, kappa)
    assert np.allclose(f(margins), 1 / phi_2(margins), rtol=1e-14)
    bench.race(f"alpha(kappa), {margins.size} points", 1.5, lambda: f(margins), lambda: 1 / phi_2(margins))
    with mpmath.workdps(50):
        points = [mpmath.mpf(n) / 333 for n in range(1, bench.size(1001, 11))]
        g = theory.function(alpha, kappa, backend="mpmath")
        name = f"alpha(kappa), {len(points)} points to 50 digits"
        bench.race(name, 1.3, lambda: g(points), lambda: [by_hand_exactly(k) for k in points], repeats=7)


def margins_by_newton(load: np.ndarray) -> np.ndarray:
    """Solve phi_2(kappa) = 1/alpha; phi_2 is convex and grows, so that Newton's method comes from above."""
    k = 1 + 1 / np.sqrt(load)
    for _ in range(50):
        step = (phi_2(k) - 1 / load) / (2 * (k * ndtr(k) + density(k)))
        k = k - step
        if np.max(np.abs(step)) < 1e-12:
            return k
    raise RuntimeError("Newton's method did not converge")


def norms_by_newton(load: float, penalty: np.ndarray) -> np.ndarray:
    """Return q_w of the soft margin; the unknowns are the response s and the root r of q_w."""
    s, r = np.full_like(penalty, 0.5), np.full_like(penalty, 0.7)
    for _ in range(100):
        k, d = 1 / r, penalty * s / r
        b = k - d
        at_k, at_b = ndtr(k), ndtr(b)
        one_k, one_b = k * at_k + density(k), b * at_b + density(b)
        gap_s = s - 1 + load * (at_k - at_b)
        gap_q = load * (at_k + k * one_k - at_b - b * one_b - 2 * d * one_b) - 1
        k_r, d_s, d_r = -1 / r**2, penalty / r, -d / r
        s_s = 1 + load * density(b) * d_s
        s_r = load * (density(k) * k_r - density(b) * (k_r - d_r))
        q_s = 2 * load * d * at_b * d_s
        q_r = 2 * load * ((one_k - one_b) * k_r - d * at_b * (k_r - d_r))
        determinant = s_s * q_r - s_r * q_s
        step_s = (gap_s * q_r - s_r * gap_q) / determinant
        step_r = (s_s * gap_q - q_s * gap_s) / determinant
        length = 1 / np.maximum(1, 2 * np.maximum(step_s / s, step_r / r))
        s, r = s - length * step_s, r - length * step_r
        if max(np.max(np.abs(step_s)), np.max(np.abs(step_r))) < 1e-12:
            return r**2
    raise RuntimeError("Newton's method did not converge")


def sweeps(bench: Bench) -> None:
    """Roots at many points: a function over an array."""
    count = bench.size(1000, 5)
    loads = np.linspace(0.3, 1.8, count)
    f = gardner.problem.cavity().function(kappa, alpha)
    assert np.allclose(f(loads), margins_by_newton(loads), rtol=1e-9)
    name = f"sweep of kappa(alpha), {count} points"
    bench.race(name, 10, lambda: f(loads), lambda: margins_by_newton(loads))
    penalties = np.linspace(0.5, 2, count)
    norm = average(soft_margin.w[i] ** 2)
    g = soft_margin.problem.cavity().function(norm, soft_margin.C, values={alpha: 2})
    assert np.allclose(g(penalties), norms_by_newton(2.0, penalties), rtol=1e-9)
    name = f"sweep of the soft margin's q_w, {count} points"
    bench.race(name, 10, lambda: g(penalties), lambda: norms_by_newton(2.0, penalties))


def load_by_brentq(spectrum: np.ndarray, margin: float) -> float:
    """Return alpha; A is the curvature that the data add to a feature of unit variance."""

    def parts(A: float) -> tuple[float, float, float]:
        weights = spectrum / (1 + A * spectrum)
        first, second = weights.mean(), weights @ weights / weights.size
        return first, second, margin * np.sqrt(((weights / (1 + A * spectrum)).mean()) / second)

    def gap(A: float) -> float:
        first, second, k = parts(A)
        return float(A * phi_2(k) * second - first * ndtr(k))

    A = float(brentq(gap, 1e-9, 1e9, xtol=1e-14, rtol=1e-14))
    first, _, k = parts(A)
    return float(A * first / ndtr(k))


def spectrum(bench: Bench) -> None:
    """The capacity for features of different variance, one equation in one unknown."""
    l = np.random.default_rng(2).exponential(size=bench.size(10**5, 100))
    theory = anisotropic.problem.cavity()
    values = {anisotropic.l: l, anisotropic.kappa: "1/2"}
    assert abs(float(theory.solve(values)[alpha]) / load_by_brentq(l, 0.5) - 1) < 1e-10
    name = f"anisotropic, {l.size} features"
    bench.race(name, 5, lambda: theory.solve(values)[alpha], lambda: load_by_brentq(l, 0.5))


def accuracy(bench: Bench) -> None:
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 4, 6):
        for low, high in ((-20, 0), (0, 20)):
            x = rng.uniform(low, high, bench.size(300, 20))
            with mpmath.workdps(40):
                errors = [float(mp_phi(n, mpmath.mpf(v)) / mpmath.mpf(np_phi(n, v)) - 1) for v in x]
            bench.error(f"phi({n}, x) in double, {low} < x < {high}", float(np.abs(errors).max()), 1e-13)


def main(bench: Bench) -> None:
    functions(bench)
    sweeps(bench)
    spectrum(bench)
    accuracy(bench)


if __name__ == "__main__":
    run(main)
