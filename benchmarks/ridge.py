"""Kernel ridge regression with 10^5 modes beside Newton's method by hand, in double and to many digits."""

from __future__ import annotations

import mpmath
import numpy as np
from sympy import Rational, Sum
from timing import Bench, run

from symcavity import N, P, i
from symcavity.derivations.kernel_ridge import Delta, a, gamma, problem, rho


def newton(
    spectrum: np.ndarray, target: np.ndarray, size: int, penalty: float, above: bool = False
) -> tuple[float, float]:
    """Return the generalisation error and kappa = gamma + kappa*sum rho/(P rho + kappa).

    The gap is concave in kappa: from above, Newton's method finds the positive root; from below it is quicker,
    and may lose it where there are more modes than data.
    """
    k = penalty + (spectrum.sum() if above else 0)
    for _ in range(100):
        inverse = 1 / (size * spectrum + k)
        share = spectrum * inverse
        total = share.sum()
        step = (penalty + k * total - k) / (total - k * (share * inverse).sum() - 1)
        k -= step
        if abs(step) < 1e-14 * k:
            break
    inverse = 1 / (size * spectrum + k)
    error = ((k * target * inverse) ** 2).sum() / (1 - size * ((spectrum * inverse) ** 2).sum())
    return float(error), float(k)


def exact_newton(
    spectrum: list[Rational], target: list[Rational], size: int, penalty: Rational, digits: int
) -> mpmath.mpf:
    """Return the same to many digits."""
    with mpmath.workdps(digits + 5):
        rhos, targets = ([mpmath.mpf(v.p) / v.q for v in values] for values in (spectrum, target))
        gamma = mpmath.mpf(penalty.p) / penalty.q
        doubles = np.array(spectrum, float), np.array(target, float)
        k = mpmath.mpf(newton(*doubles, size, float(penalty), above=True)[1])
        for _ in range(20):
            inverse = [1 / (size * r + k) for r in rhos]
            share = [r * v for r, v in zip(rhos, inverse, strict=True)]
            total = mpmath.fsum(share)
            step = (gamma + k * total - k) / (total - k * mpmath.fdot(share, inverse) - 1)
            k -= step
            if abs(step) < mpmath.mpf(10) ** (-2 * digits / 3) * k:  # that of the next is its square
                break
        inverse = [1 / (size * r + k) for r in rhos]
        errors = mpmath.fsum((k * t * v) ** 2 for t, v in zip(targets, inverse, strict=True))
        return errors / (1 - size * mpmath.fsum((r * v) ** 2 for r, v in zip(rhos, inverse, strict=True)))


def main(bench: Bench) -> None:
    theory = problem.cavity()
    error = Sum(Delta[i] ** 2, (i, 1, N))
    index = np.arange(1.0, bench.size(100_000, 100) + 1)
    spectrum, target = index**-2, 1 / index
    for size, penalty in ((1000, 1e-3), (1000, 1e-1), (50_000, 1.0)):
        values = {gamma: penalty, P: size, rho: spectrum, a: target}
        want, _ = newton(spectrum, target, size, penalty)
        name = f"{index.size} modes, P = {size}, gamma = {penalty}"
        bench.error(f"{name}, E_test", abs(float(theory.solve(values)[error]) / want - 1), 1e-10)
        bench.race(
            name,
            3,
            lambda values=values: theory.solve(values)[error],
            lambda size=size, penalty=penalty: newton(spectrum, target, size, penalty),
            repeats=7,
        )
    few = range(1, bench.size(201, 11))
    rhos, targets = [Rational(1, n * n) for n in few], [Rational(1, n) for n in few]
    exact = {gamma: Rational(1, 1000), P: 100, rho: rhos, a: targets}
    for digits in bench.size((50, 200), (50,)):
        with mpmath.workdps(digits + 5):
            want = exact_newton(rhos, targets, 100, exact[gamma], digits)
            got = mpmath.mpf(theory.solve(exact, dps=digits)[error])
            assert abs(got / want - 1) < mpmath.mpf(10) ** (2 - digits)
        bench.race(
            f"{len(rhos)} modes to {digits} digits",
            12,
            lambda digits=digits: theory.solve(exact, dps=digits)[error],
            lambda digits=digits: exact_newton(rhos, targets, 100, exact[gamma], digits),
            repeats=3,
        )


if __name__ == "__main__":
    run(main)
