"""Ratios of evaluating alpha(kappa) to hand-written code, and the accuracy of phi in double."""

from __future__ import annotations

import mpmath
import numpy as np
from scipy.special import ndtr
from timing import best

from symcavity import alpha
from symcavity.algebra.phi import mp_phi
from symcavity.derivations.gardner import kappa, problem
from symcavity.evaluate.special import np_phi


def by_hand(k: np.ndarray) -> np.ndarray:
    return 1 / ((1 + k * k) * ndtr(k) + k * np.exp(-k * k / 2) / np.sqrt(2 * np.pi))


def by_hand_exactly(k: mpmath.mpf) -> mpmath.mpf:
    return 1 / ((1 + k * k) * mpmath.ncdf(k) + k * mpmath.npdf(k))


def row(name: str, ours: float, hand: float, bound: float) -> None:
    print(f"{name:<44} {ours:10.5f} {hand:10.5f} {ours / hand:7.2f} {bound:6}")


def main() -> None:
    theory = problem.cavity()
    print(f"{'alpha(kappa)':<44} {'ours, s':>10} {'by hand, s':>10} {'ratio':>7} {'bound':>6}")
    margins = np.random.default_rng(0).uniform(0, 3, 10**6)
    f = theory.function(alpha, kappa)
    assert np.allclose(f(margins), by_hand(margins), rtol=1e-14)
    row("10^6 points in double, kappa in (0, 3)", best(lambda: f(margins)), best(lambda: by_hand(margins)), 1.5)
    with mpmath.workdps(50):
        points = [mpmath.mpf(n) / 333 for n in range(1, 1001)]
        g = theory.function(alpha, kappa, backend="mpmath")
        hand = best(lambda: [by_hand_exactly(k) for k in points], 3)
        row("1000 points to 50 digits", best(lambda: g(points), 3), hand, 1.3)
    print(f"\n{'phi(n, x) in double, largest relative error':<44} {'-20..0':>10} {'0..20':>10} {'bound':>14}")
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 4, 6):
        errors = []
        for low, high in ((-20, 0), (0, 20)):
            x = rng.uniform(low, high, 300)
            with mpmath.workdps(40):
                exact = np.array([float(mp_phi(n, mpmath.mpf(v)) / mpmath.mpf(np_phi(n, v)) - 1) for v in x])
            errors.append(np.abs(exact).max())
        print(f"{f'n = {n}':<44} {errors[0]:10.1e} {errors[1]:10.1e} {1e-13:14.0e}")


if __name__ == "__main__":
    main()
