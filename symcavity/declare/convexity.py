"""Refusing what is provably not convex: a midpoint test at seeded points."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from sympy import Expr, Symbol, Tuple, lambdify
from sympy.stats.rv import RandomSymbol

from symcavity.declare.fields import parameters_of
from symcavity.declare.quantities import Datum, Feature, Global, Quenched, site_quantities
from symcavity.errors import NotConvex

_DRAWS, _POINTS, _TOLERANCE = 12, 60, 1e-9


def sample_parameter(symbol: Symbol, rng: random.Random) -> float:
    """Draw a value of a parameter that respects its assumptions."""
    size = rng.choice([0.2, 0.7, 1.0, 1.7, 3.1]) * rng.uniform(0.8, 1.25)
    if symbol.is_integer:
        size = float(rng.randint(1, 6))
    if symbol.is_nonnegative:
        return size
    if symbol.is_nonpositive:
        return -size
    return size if rng.random() < 0.5 else -size


def sample_quenched(family: Quenched, rng: random.Random) -> float:
    """Draw a value of a quenched parameter: from its finite law, or from the reals."""
    if isinstance(family.law, Tuple):
        return float(rng.choice(list(family.law))[0])
    positive = isinstance(family.law, RandomSymbol) and family.law.pspace.domain.set.inf.is_nonnegative
    value = rng.gauss(0, 1.5)
    return abs(value) if positive else value


def check_convex(expr: Expr, fields: Sequence[Symbol], where: str) -> None:
    """Raise NotConvex if a site's function violates midpoint convexity for every draw of the parameters.

    Parameters
    ----------
    expr : Expr
        A function of the states of a site, its fields and the global variables.
    fields : sequence of Symbol
        The random fields that depend on states; other fields count as parameters.
    where : str
        What is being checked, for the message.
    """
    states: list[Any] = [*site_quantities(expr, Feature, Datum), *sorted(expr.atoms(Global), key=str)]
    states += [f for f in fields if expr.has(f)]
    if not states or expr.is_polynomial(*states) and all(expr.diff(a, b) == 0 for a in states for b in states):
        return
    quenched = site_quantities(expr, Quenched)
    marks = {q: Symbol(f"q{k}") for k, q in enumerate([*states, *quenched])}
    parameters = sorted(parameters_of(expr) - set(states) , key=lambda s: s.name)
    plain = [Symbol(f"p{k}") for k in range(len(parameters))]
    body = expr.xreplace(marks).xreplace(dict(zip(parameters, plain, strict=True)))
    call = lambdify([*(marks[s] for s in states), *(marks[q] for q in quenched), *plain], body, "math")
    rng = random.Random(20)  # noqa: S311 - seeded sampling, not cryptography
    witness = None
    for _ in range(_DRAWS):
        tail = [sample_quenched(q.family, rng) for q in quenched] + [sample_parameter(p, rng) for p in parameters]
        witness = _violation(call, len(states), tail, rng)
        if witness is None:
            return
    point = ", ".join(f"{s} = {v:.3g}" for s, v in zip(states, witness or (), strict=False))
    raise NotConvex(
        f"{where[0].upper()}{where[1:]} is not convex: {expr} bends downwards near {point}.",
        "convex objectives; constraints g >= 0 with concave g",
        "check the sign; the cavity equations of a non-convex problem need not describe its minimum",
    )


def _violation(call: Any, count: int, tail: list[float], rng: random.Random) -> list[float] | None:
    """Return a midpoint where the function lies above its chord, or None."""
    for _ in range(_POINTS):
        scale = rng.choice([0.3, 1.0, 4.0])
        a = [rng.gauss(0, scale) for _ in range(count)]
        b = [rng.gauss(0, scale) for _ in range(count)]
        middle = [(p + q) / 2 for p, q in zip(a, b, strict=True)]
        try:
            ends, centre = (call(*a, *tail) + call(*b, *tail)) / 2, call(*middle, *tail)
        except (ArithmeticError, ValueError, TypeError):
            continue
        if centre > ends + _TOLERANCE * (1 + abs(ends) + abs(centre)):
            return middle
    return None
