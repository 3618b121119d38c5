"""Polynomials as lists of coefficients, from which those that vanish by their signs are dropped."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from sympy import Add, Expr, S, Symbol, binomial

from symcavity.algebra.signs import Signs, tidy

Coefficients = tuple[Expr, ...]


def stripped(coefficients: Iterable[Expr], signs: Signs) -> Coefficients:
    """Coefficients in their shortest form, without zeros at the end."""
    out = [tidy(signs.tidy(c)) for c in coefficients]
    while out and out[-1] == 0:
        out.pop()
    return tuple(out)


def add(p: Coefficients, q: Coefficients, signs: Signs) -> Coefficients:
    """The sum of two polynomials."""
    if not p or not q:
        return p or q
    size = max(len(p), len(q))
    p, q = p + (S.Zero,) * (size - len(p)), q + (S.Zero,) * (size - len(q))
    return stripped([a + b for a, b in zip(p, q, strict=True)], signs)


def times(p: Coefficients, q: Coefficients, signs: Signs) -> Coefficients:
    """The product of two polynomials."""
    if not p or not q:
        return ()
    out: list[list[Expr]] = [[] for _ in range(len(p) + len(q) - 1)]
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            if a != 0 and b != 0:
                out[i + j].append(a * b)
    return stripped([Add(*terms) for terms in out], signs)


def to_power(p: Coefficients, count: int, signs: Signs) -> Coefficients:
    """A power of a polynomial."""
    if len(p) == 2:
        return stripped([binomial(count, k) * p[0] ** (count - k) * p[1] ** k for k in range(count + 1)], signs)
    return reduce(lambda a, b: times(a, b, signs), [p] * count)


def as_expression(p: Coefficients, z: Symbol) -> Expr:
    """The polynomial as an expression."""
    return Add(*[c * z**k for k, c in enumerate(p)])
