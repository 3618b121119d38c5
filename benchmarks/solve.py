"""Solving closed equations beside fixed points written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
from scipy.special import ndtr
from sympy import Abs, Max, Sum, Symbol, exp, log, sign
from sympy.stats import Normal
from timing import Bench, run

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
y, noise = Quenched("y", mu), Quenched("noise", mu)
b, g = Quenched("b", i), Quenched("g", i)
lam, sigma = Symbol("lambda", positive=True), Symbol("sigma", positive=True)
h, teacher = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
ridge = lam * Sum(w[i] ** 2, (i, 1, N)) / 2
GAUSSIAN = Normal("gaussian", 0, 1)
GOAL = 1e-10


def of_data(loss: Any) -> Any:
    return Sum(loss, (mu, 1, P))


# -- by hand -------------------------------------------------------------------------------------------


RULE = np.polynomial.legendre.leggauss(16)


def nodes(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, w = RULE
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


Z, WEIGHT = nodes(np.linspace(-9, 9, 8))
WEIGHT = WEIGHT * np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi)


def iterate(update: Callable[[np.ndarray], np.ndarray], start: list[float]) -> np.ndarray:
    """Iterate a map until it stands still."""
    x = np.array(start)
    for _ in range(2000):
        new = update(x)
        if np.max(np.abs(new - x)) < GOAL / 10 * np.max(np.abs(new)):
            return new
        x = new
    raise RuntimeError("the fixed point did not settle")


class Logistic:
    """The message G(u) of a logistic loss at all nodes at once, by Newton's method from where it was last."""

    def __init__(self) -> None:
        self.h = np.zeros_like(Z)

    def __call__(self, u: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the message at the inputs u with the self-coupling s, and its slope."""
        h = self.h
        for _ in range(50):
            p = 1 / (1 + np.exp(h))
            step = (h - s * p - u) / (1 + s * p * (1 - p))
            h = h - step
            if np.max(np.abs(step)) < 1e-12:
                break
        self.h = h
        p = 1 / (1 + np.exp(h))
        return p, -p * (1 - p) / (1 + s * p * (1 - p))


def logistic(a: float, l: float) -> np.ndarray:
    message = Logistic()

    def update(v: np.ndarray) -> np.ndarray:
        s, q = v
        p, slope = message(np.sqrt(q) * Z, s)
        s = 1 / (l - a * (WEIGHT @ slope))
        return np.array([s, a * s * s * (WEIGHT @ (p * p))])

    return iterate(update, [1.0, 1.0])


def of_teacher(message: Callable[..., Any], a: float, l: float, width: float) -> np.ndarray:
    """Labels by the sign of a teacher of norm 1, with noise: ``width`` is the variance of both."""

    def update(v: np.ndarray) -> np.ndarray:
        s, q, r = v
        rest = q * width - r * r
        u, weight, p, slope = message(s, q)
        right = 2 * ndtr(u * r / np.sqrt(q * rest))
        density = 2 * np.exp(-r * r * u * u / (2 * q * rest)) / np.sqrt(2 * np.pi * rest / q)
        strength = weight @ (p * density)
        s = 1 / (l - a * (weight @ (slope * right)))
        r = s * a * strength
        return np.array([s, a * s * s * (weight @ (p * p * right)) + r * r, r])

    return iterate(update, [1.0, 1.0, 0.5])


def smooth(message: Logistic) -> Callable[..., Any]:
    def at(s: float, q: float) -> tuple[np.ndarray, ...]:
        u = np.sqrt(q) * Z
        return u, WEIGHT, *message(u, s)

    return at


def hinge(s: float, q: float) -> tuple[np.ndarray, ...]:
    """Panels between the kinks; the message is 1 below 1 - s, and 0 above 1."""
    root = np.sqrt(q)
    ends = np.concatenate([np.linspace(-9 * root, 1 - s, 5), np.linspace(1 - s, 1, 3)[1:]])
    u, weight = nodes(ends)
    p = np.minimum(1.0, (1 - u) / s)
    slope = np.where(u > 1 - s, -1 / s, 0.0)
    return u, weight * np.exp(-u * u / (2 * q)) / np.sqrt(2 * np.pi * q), p, slope


def squared(s: float, q: float) -> tuple[np.ndarray, ...]:
    u, weight = nodes(np.linspace(-9 * np.sqrt(q), 1, 7))
    p = (1 - u) / (1 + s)
    return u, weight * np.exp(-u * u / (2 * q)) / np.sqrt(2 * np.pi * q), p, np.full_like(u, -1 / (1 + s))


def lasso(a: float, l: float, share: float, noise: float) -> np.ndarray:
    """A teacher that is Gaussian with a probability, else zero: two widths of the field."""

    def update(v: np.ndarray) -> np.ndarray:
        s, gap = v
        k = a / (1 + s)
        width = np.sqrt(np.array([a * gap, a * gap + k * k]))
        edge = l / width
        active = 2 * ndtr(-edge)
        square = (1 + edge**2) * active - 2 * edge * np.exp(-edge * edge / 2) / np.sqrt(2 * np.pi)
        odds = np.array([1 - share, share])
        q = odds @ (width**2 * square) / k**2
        share_active = odds @ active
        # at a given share of active weights the equation of the response is solved at once; half a step settles
        s = (s + (share_active / (a - share_active) if share_active < 0.9 * a else 9.0)) / 2
        return np.array([s, (share + noise**2 - 2 * share * active[1] + q) / (1 + s) ** 2])

    return iterate(update, [0.0, share + noise**2])


def exact_logistic(a: Any, l: Any, dps: int) -> tuple[Any, Any]:
    """The same to many digits: fixed nodes in the unknown itself, and mpmath's own root finder."""
    mp = mpmath.mp
    with mp.workdps(dps + 8):
        s, q = (mp.mpf(float(v)) for v in logistic(float(a), float(l)))
        p = [float(v) for v in np.linspace(-14, 14, 15)]
        ends = [float(_inverse(float(s), float(q) ** 0.5 * v)) for v in p]
        rule = _legendre(40)
        grid = [
            ((e + f) / 2 + (f - e) / 2 * v, (f - e) / 2 * c)
            for e, f in zip(map(mp.mpf, ends), map(mp.mpf, ends[1:]), strict=False)
            for v, c in rule
        ]
        table = [(u, c, 1 / (1 + mp.exp(u))) for u, c in grid]

        def gaps(s: Any, q: Any) -> tuple[Any, Any]:
            first = second = mp.zero
            root = mp.sqrt(q)
            for u, c, r in table:
                field = (u - s * r) / root
                d = r * (1 - r)
                weight = c * mp.exp(-field * field / 2)
                first += weight * d  # the slope of the message times that of the change of variables
                second += weight * r * r * (1 + s * d)
            norm = root * mp.sqrt(2 * mp.pi)
            return 1 / (l + a * first / norm) - s, a * s * s * second / norm - q

        return tuple(mp.findroot(gaps, (s, q), tol=mp.mpf(10) ** (-2 * dps)))


def _legendre(count: int) -> list[tuple[Any, Any]]:
    mp = mpmath.mp
    out = []
    for start in np.polynomial.legendre.leggauss(count)[0]:
        v = mp.mpf(float(start))
        for _ in range(4):
            low, high = mp.one, v
            for k in range(1, count):
                low, high = high, ((2 * k + 1) * v * high - k * low) / (k + 1)
            slope = count * (v * high - low) / (v * v - 1)
            v -= high / slope
        out.append((v, 2 / ((1 - v * v) * slope**2)))
    return out


def _inverse(s: float, u: float) -> float:
    v = u
    for _ in range(100):
        p = 1 / (1 + np.exp(v))
        v -= (v - s * p - u) / (1 + s * p * (1 - p))
    return v


# -- the problems --------------------------------------------------------------------------------------

COIN = {1: "1/2", -1: "1/2"}
PROBLEMS: dict[str, tuple[Any, dict[Any, Any], Callable[[], np.ndarray]]] = {
    "logistic with ridge": (
        of_data(log(1 + exp(-y[mu] * h))) + ridge,
        {alpha: 2, lam: "1/10", y: COIN},
        lambda: logistic(2.0, 0.1),
    ),
    "hinge, sign teacher": (
        of_data(Max(0, 1 - sign(teacher) * h)) + ridge,
        {alpha: 2, lam: "1/10", t: GAUSSIAN},
        lambda: of_teacher(hinge, 2.0, 0.1, 1.0),
    ),
    "squared hinge, sign teacher": (
        of_data(Max(0, 1 - sign(teacher) * h) ** 2) / 2 + ridge,
        {alpha: 2, lam: "1/10", t: GAUSSIAN},
        lambda: of_teacher(squared, 2.0, 0.1, 1.0),
    ),
    "LASSO, Gauss-Bernoulli teacher": (
        of_data((Sum(x[mu, i] * b[i] * g[i], (i, 1, N)) + sigma * noise[mu] - h) ** 2) / 2
        + lam * Sum(Abs(w[i]), (i, 1, N)),
        {alpha: "1/2", lam: "1/10", sigma: "1/5", b: {0: "9/10", 1: "1/10"}, g: GAUSSIAN, noise: GAUSSIAN},
        lambda: lasso(0.5, 0.1, 0.1, 0.2),
    ),
    "logistic, Gaussian label noise": (
        of_data(log(1 + exp(-sign(teacher + sigma * noise[mu]) * h))) + ridge,
        {alpha: 2, lam: "1/10", sigma: "1/2", t: GAUSSIAN, noise: GAUSSIAN},
        lambda: of_teacher(smooth(Logistic()), 2.0, 0.1, 1.25),
    ),
}


def main(bench: Bench) -> None:
    for name, (objective, values, hand) in list(PROBLEMS.items())[: bench.size(None, 2)]:
        theory = ConvexProblem(minimize=objective).cavity()
        start = time.perf_counter()
        solution = theory.solve(values)
        first = time.perf_counter() - start
        by_hand = hand()
        s = next(v for k, v in solution.values.items() if str(k) == "S_w")
        assert abs(float(s) / by_hand[0] - 1) < GOAL, (name, s, by_hand)
        bench.race(name, 10, partial(theory.solve, values), hand, repeats=15)
        bench.row("  its first solve, against 500 ms", 1, [(first, 0.5)])
    digits = bench.size(30, 20)
    objective, values, _ = PROBLEMS["logistic with ridge"]
    theory = ConvexProblem(minimize=objective).cavity()
    exact = theory.solve(values, dps=digits)
    with mpmath.workdps(digits + 5):
        a, l = mpmath.mpf(2), mpmath.mpf(1) / 10
        s, q = exact_logistic(a, l, digits)
        assert abs(exact[average(w[i] ** 2)] / q - 1) < mpmath.mpf(10) ** (1 - digits)
        solved, by_hand = partial(theory.solve, values, dps=digits), partial(exact_logistic, a, l, digits)
        bench.race(f"{digits} digits of logistic regression", 3, solved, by_hand, repeats=3)


if __name__ == "__main__":
    run(main)
