"""Ratio of the kernel-ridge self-consistency with 10^5 modes to a hand-written NumPy Newton iteration."""

from __future__ import annotations

import numpy as np
from sympy import Rational, Sum
from timing import best

from symcavity import N, P, i
from symcavity.derivations.kernel_ridge import Delta, a, gamma, problem, rho

MODES = 100_000


def newton(spectrum: np.ndarray, target: np.ndarray, size: int, penalty: float) -> float:
    """Return the generalisation error; kappa = gamma + kappa*sum rho/(P rho + kappa)."""
    k = penalty
    for _ in range(100):
        inverse = 1 / (size * spectrum + k)
        share = spectrum * inverse
        total = share.sum()
        step = (penalty + k * total - k) / (total - k * (share * inverse).sum() - 1)
        k -= step
        if abs(step) < 1e-14 * k:
            break
    inverse = 1 / (size * spectrum + k)
    return float(((k * target * inverse) ** 2).sum() / (1 - size * ((spectrum * inverse) ** 2).sum()))


def main() -> None:
    theory = problem.cavity()
    error = Sum(Delta[i] ** 2, (i, 1, N))
    index = np.arange(1.0, MODES + 1)
    spectrum, target = index**-2, 1 / index
    print(f"{'10^5 modes, E_test':<34} {'ours, s':>9} {'Newton, s':>9} {'ratio':>6} {'bound':>6} {'relative gap':>13}")
    for size, penalty in ((1000, 1e-3), (1000, 1e-1), (50_000, 1.0)):
        values = {gamma: penalty, P: size, rho: spectrum, a: target}
        want = newton(spectrum, target, size, penalty)
        gap = abs(float(theory.solve(values)[error]) / want - 1)
        ours = best(lambda v=values: theory.solve(v)[error])
        hand = best(lambda s=size, g=penalty: newton(spectrum, target, s, g))
        print(f"{f'P = {size}, gamma = {penalty}':<34} {ours:9.5f} {hand:9.5f} {ours / hand:6.2f} {3:6} {gap:13.1e}")
    few = [Rational(1, n * n) for n in range(1, 201)], [Rational(1, n) for n in range(1, 201)]
    exact = {gamma: Rational(1, 1000), P: 100, rho: few[0], a: few[1]}
    for digits in (50, 200):
        taken = best(lambda d=digits: theory.solve(exact, dps=d)[error], 3)
        print(f"{f'200 modes to {digits} digits':<34} {taken:9.5f}")


if __name__ == "__main__":
    main()
