"""Seeded numbers for the laws that a convex set gives: couplings, sources, and the matrices of its response."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Expr, S

from symcavity.algebra.matrices import NamedTrace, evaluate
from symcavity.algebra.precision import mp
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.record.order_parameters import OrderParameter
from symcavity.witness.registry import largest
from symcavity.witness.set_averages import quenched_laws, quenched_points, seeded


def response_matrices(response: Any, strength: Any, lam: Any, rows: int, seed: int, softness: Any) -> dict[Any, Any]:
    """Seeded s and H; J and l by solving the differentiated law as one linear system of numbers."""
    rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography

    def draw() -> Any:
        return mp.mpf(rng.randint(-900, 900)) / 1000

    s = mp.matrix([draw() + 1 for _ in range(rows)])
    B = mp.matrix([[draw() for _ in range(rows)] for _ in range(rows)])
    H = -(B * B.T)
    return with_response(response, strength, lam, s, H, rows, softness)


def with_response(
    response: Any, strength: Any, lam: Any, s: Any, H: Any, rows: int, softness: Any = 0
) -> dict[Any, Any]:
    """All matrices of a point: the unknown ones from the bordered linear system of the law."""
    F, ell = strength, lam
    system = mp.zeros(rows + 1, rows + 1)
    system[rows, rows] = softness
    for r in range(rows):
        for c in range(rows):
            system[r, c] = (r == c) - F * ell * H[r, c]
        system[r, rows], system[rows, r] = -F * s[r], s[r]
    J, l = mp.zeros(rows, rows), mp.zeros(rows, 1)
    for c in range(rows):
        right = mp.matrix([mp.mpf(r == c) for r in range(rows + 1)])
        found = mp.lu_solve(system, right)
        for r in range(rows):
            J[r, c] = found[r]
        l[c] = found[rows]
    P = mp.inverse(mp.eye(rows) - F * ell * H)
    M = (s * l.T) + ell * (H * J)
    return {response.J: J, response.l: l, response.s: s, response.H: H, response.P: P, response.message.lhs: M}


def response_point(side: Any, response: Any, rows: int, seed: int) -> dict[Any, Any]:
    """Seeded numbers for everything that the claims about a response name, at one site."""
    strength = side.solution.strength
    convex = side.solution.convex
    lam = convex.lam.xreplace({side.law.index: S.Zero})
    rng = random.Random(seed + 40)  # noqa: S311 - seeded sampling, not cryptography
    values = in_strength(side, lambda: mp.mpf(rng.randint(300, 1700)) / 1000)
    values[lam] = mp.mpf(rng.randint(300, 1700)) / 1000
    F = evaluate(strength, values)
    values |= {s: rows - int(convex.components.size.subs(s, 0)) for s in convex.components.size.free_symbols}
    softness = evaluate(side.solution.softness, values)
    return {**values, **response_matrices(response, F, values[lam], rows, seed, softness)}


def in_strength(side: Any, draw: Callable[[], Any]) -> dict[Any, Any]:
    """Values for everything in the self-coupling and the softness, at a site and at the inserted one."""
    nodes: set[Expr] = set()
    for expr in (side.solution.strength, side.solution.softness):
        nodes |= expr.atoms(Average) | {*site_quantities(expr, Quenched)}
        nodes |= {s for s in expr.free_symbols if not is_index(s)}
    values = {}
    for node in sorted(nodes, key=str):
        values[node] = values[node.xreplace({side.law.index: S.Zero})] = draw()
    return values


def with_strength(side: Any, value: Any) -> dict[Any, Any]:
    """The same, such that the self-coupling, which is proportional to a response, has a given value."""
    values = in_strength(side, lambda: mp.mpf(1))
    scale = value / evaluate(side.solution.strength, values)
    return values | dict.fromkeys(side.solution.strength.atoms(OrderParameter), scale)


def shares(total: np.ndarray, factors: list[float], seed: int) -> list[np.ndarray]:
    """Seeded vectors that add up to a vector, each times a factor: what each of several fields is."""
    rng = np.random.default_rng(seed)
    others = [rng.normal(size=total.shape) for _ in factors[1:]]
    first = (total - sum(c * t for c, t in zip(factors[1:], others, strict=True))) / factors[0]
    return [first, *others]


def site_values(side: Any, seed: int) -> dict[Any, Any]:
    """Seeded values of everything in bound, strength and cap, quenched parameters included."""
    solution = side.solution
    parts = [solution.bound, solution.strength, solution.variance, solution.softness]
    parts += [solution.cap] if solution.cap.is_finite is not False else []
    (*_, (_, rule)) = quenched_points(quenched_laws(parts, seed, parts[1:]), side.kind)
    return {**seeded(parts, seed), **rule}


def of_size(size: Any, rows: int) -> dict[Any, int]:
    """The value of the symbol in a number of components that makes it the given one."""
    return {symbol: rows - int(size.subs(symbol, 0)) for symbol in size.free_symbols}


def gap_of(claim: Equation, values: dict[Any, Any]) -> Any:
    """By how much the two sides of a claim differ, in numbers."""
    left, right = (value_of(x, values) for x in (claim.lhs, claim.rhs))
    difference = left - right
    return largest(*map(abs, difference)) if isinstance(difference, mp.matrix) else abs(difference)


def value_of(expr: Any, values: dict[Any, Any]) -> Any:
    """One side of a claim in numbers."""
    if isinstance(expr, NamedTrace):
        matrix = values[expr.args[0]]
        return mp.fsum(matrix[k, k] for k in range(matrix.rows))
    return evaluate(expr, values)
