"""Gradient descent on a ridge regression, by the moments of the Marchenko-Pastur law."""

from fractions import Fraction
from math import comb


def pastur(load, rate, ridge, noise, steps, momentum):
    """Test and training error by the moments of the Marchenko-Pastur law, for a teacher of unit variance."""

    def moment(k):
        return 1 if k == 0 else sum(Fraction(comb(k, q) * comb(k, q - 1), k) * load**q for q in range(1, k + 1))

    def times(p, q):
        out = [Fraction(0)] * (len(p) + len(q) - 1)
        for k, u in enumerate(p):
            for n, v in enumerate(q):
                out[k + n] += u * v
        return out

    def plus(p, q, factor=1):
        size = max(len(p), len(q))
        p, q = (list(e) + [Fraction(0)] * (size - len(e)) for e in (p, q))
        return [u + factor * v for u, v in zip(p, q, strict=True)]

    def mean(p):
        return sum(u * moment(k) for k, u in enumerate(p))

    first = last = [Fraction(-1)]  # w - w0 = first w0 + sqrt(eigenvalue) second e, along each eigenvector
    second = before = [Fraction(0)]
    for _ in range(steps + 1):
        test = mean(times(first, first)) + noise * mean([0, *times(second, second)])
        train = mean([0, *times(first, first)]) + noise * (mean([0, 0, *times(second, second)]) + load)
        yield test, (train - 2 * noise * mean([0, *second])) / load
        step, turn = [1 + momentum - rate * ridge, -rate], [-rate * ridge]
        first, last = plus(plus(times(first, step), last, -momentum), turn), first
        second, before = plus(plus(times(second, step), before, -momentum), [rate]), second
        # at the first step there is no momentum: w(-1) = w(0)
