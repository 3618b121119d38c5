"""Systems in time: sampled paths beside the same scheme written out in NumPy, and a long linear recursion."""

from __future__ import annotations

import numpy as np
from sympy import Eq, Rational, Sum, Symbol, symbols, tanh
from timing import Bench, run, work

from symcavity import Coupling, N, P, Quenched, System, Time, Variable, alpha, average, i, mu

t, s, j = Time("t"), Time("s"), Symbol("j")
g, h, eta, gamma = symbols("g h eta gamma", positive=True)
r = Symbol("r", real=True)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}


def network():
    """Units with correlated couplings, whose paths remember."""
    x, a = Variable("x", i, over=t), Quenched("a", i)
    J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
    heard = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N))
    return System([Eq(x[i, t + 1], (1 - h) * x[i, t] + h * heard)], initial=[Eq(x[i, 0], a[i])]).cavity(), x, a


def by_hand(steps, paths, gain, rate, reciprocity, seed=0):
    """The same scheme: fields drawn row by row of a Cholesky factor, tangents carried forward along each path."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], paths)
    sent, white = np.zeros((steps + 1, paths)), np.zeros((steps + 1, paths))
    answers, slopes = np.zeros((steps + 1, steps + 1, paths)), np.zeros((steps + 1, paths))
    factor, size = np.zeros((steps + 1, steps + 1)), np.zeros(steps + 1)
    for k in range(steps + 1):
        sent[k] = np.tanh(x)
        size[k] = np.mean(x**2)
        row = gain**2 * sent[: k + 1] @ sent[k] / paths
        for q in range(k):
            factor[k, q] = (row[q] - factor[q, :q] @ factor[k, :q]) / factor[q, q] if factor[q, q] > 1e-7 else 0
        factor[k, k] = np.sqrt(max(row[k] - factor[k, :k] @ factor[k, :k], 0))
        white[k] = rng.standard_normal(paths)
        field = factor[k, : k + 1] @ white[: k + 1]
        answers[k, :k] = (1 - sent[k] ** 2) * slopes[:k]
        back = gain**2 * reciprocity * rate * answers[k, :k].mean(axis=1)
        field += back @ sent[:k]
        slopes[:k] = (1 - rate) * slopes[:k] + rate * np.einsum("u,usm->sm", back, answers[:k, :k])
        slopes[k] = 1
        x = (1 - rate) * x + rate * field
    return size


def descent():
    """Gradient descent on a ridge regression."""
    X, w, lam = Coupling("x"), Variable("w", i, over=t), Variable("lambda", mu, over=t)
    teacher = Quenched("w0", i)
    pull = gamma * w[i, t] + Sum(X[mu, i] * lam[mu, t], (mu, 1, P))
    error = Sum(X[mu, i] * (w[i, t] - teacher[i]), (i, 1, N))
    system = System([Eq(w[i, t + 1], w[i, t] - eta * pull), Eq(lam[mu, t], error)], initial=[Eq(w[i, 0], 0)])
    return system.cavity(), average((w[i, t] - teacher[i]) ** 2), {alpha: 3, eta: "1/7", gamma: "1/8", teacher: HALF}


def main(bench: Bench) -> None:
    """Race a run over sampled paths, and one that is linear against a second."""
    theory, x, a = network()
    values = {g: "13/10", h: "1/2", r: "1/2", a: HALF}
    steps, paths = bench.size((40, 10000), (20, 4000))  # in shorter runs reading and compiling count, some 40 ms
    ours = theory.evolve(values, until=steps, paths=paths)[average(x[i, t] ** 2)]
    known = by_hand(steps, paths, 1.3, 0.5, 0.5)
    assert np.allclose(ours, known, rtol=0.1 if not bench.small else 0.5)
    bench.race(
        f"{paths} paths over {steps} steps",
        3,
        lambda: theory.evolve(values, until=steps, paths=paths),
        lambda: by_hand(steps, paths, 1.3, 0.5, 0.5),
    )
    theory, test, values = descent()
    last = bench.size(200, 35)
    found = theory.evolve(values, until=last)[test]
    assert abs(float(theory.evolve(values, until=20)[test][20]) - found[20]) < 1e-12
    name = f"linear recursion over {last} steps, a second of work"
    bench.row(name, 1, [(work(lambda: theory.evolve(values, until=last)), 1.0) for _ in range(3)])


if __name__ == "__main__":
    run(main)
