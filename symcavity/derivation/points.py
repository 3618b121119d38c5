"""Seeded points at which a whole theory is solved, for checks of its formulas."""

from __future__ import annotations

import random
from typing import Any

import mpmath
from sympy import Rational, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.declare.convexity import sample_parameter
from symcavity.declare.quantities import DATUM, N, P, Quenched, alpha, families
from symcavity.derivation.record import NUMERIC, Verdict
from symcavity.errors import SymcavityError

TRIES = 12


def seeded_values(theory: Any, seed: int) -> dict[Any, Any]:
    """Values for every parameter, the load where nothing fixes it, and finite laws for quenched parameters."""
    rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
    values: dict[Any, Any] = {}
    system = theory.system
    for s in system.parameters:
        values[s] = Rational(str(round(sample_parameter(s, rng), 2)))
    uses_sizes = any(e.difference.has(N, P) for e in theory.equations)
    if uses_sizes:
        values |= {P: 40 + 10 * seed, N: 60}
    elif not system.fixed:
        values[alpha] = Rational(rng.randint(4, 9), 10)
    for _ in range(max(len(system.fixed) - 1, 0)):
        values.pop(next(s for s in reversed(system.parameters) if s in values))
    scales = {q for law in system.laws.values() for f in law.fields for q in families([f.coupling.family.variance], Quenched)}
    for q in system.quenched:
        if q.law is None:
            half = Rational(1, 2)
            signed = q.slots == (DATUM,) and q not in scales
            values[q] = {Rational(1): Rational(3, 5), -1: Rational(2, 5)} if signed else {half: half, 3 * half: half}
    return values


def solved_point(theory: Any, dps: int) -> tuple[Any, int, str]:
    """Solve a theory at the first seeded point that is feasible.

    Returns
    -------
    (solution, digits, where)
        The digits that its formulas can be held to; the solution is None if no point was feasible.
    """
    key = "_solved_points"
    store = theory.__dict__.setdefault(key, {})
    if dps in store:
        return store[dps]
    numerical = any(e.difference.has(GaussianAverage, ImplicitAverage) for e in theory.equations)
    digits = 8 if numerical else dps - 10
    last = ""
    for seed in range(TRIES):
        values = seeded_values(theory, seed)
        try:
            solution = theory.solve(values, dps=15 if numerical else dps)
        except SymcavityError as problem:
            last = str(problem).splitlines()[0]
            continue
        where = ", ".join(f"{k} = {v}" for k, v in values.items() if isinstance(k, Symbol)) or "seeded values"
        store[dps] = (solution, digits, where)
        return store[dps]
    store[dps] = (None, 0, f"no seeded point could be solved: {last}")
    return store[dps]


def compare_with_naive(theory: Any, symmetric: bool, dps: int) -> list[Verdict]:
    """Hold the load or the first second moment of the cavity theory against the naive one."""
    cavity = theory.system.cavity() if theory.is_naive else theory
    naive = theory if theory.is_naive else theory.system.naive()
    few = min(dps, 30)
    solution, _, where = solved_point(cavity, few)
    if solution is None:
        return [Verdict(NUMERIC, False, where)]
    values = next(v for s in range(TRIES) if _solves(cavity, v := seeded_values(cavity, s)))
    try:
        other = naive.solve(values, dps=15)
    except SymcavityError as problem:
        return [Verdict("comparison with the naive theory", not symmetric, f"the naive theory has no solution: {problem.found}")]
    meanings = [m for m in cavity.order_parameters.values() if m.has(_moment_of(cavity))]
    target = alpha if theory.system.fixed else (meanings or list(cavity.order_parameters.values()))[0]
    a, b = (mpmath.mpf(s[target]) for s in (solution, other))
    gap = abs(a - b) / max(abs(a), abs(b))
    agree = bool(gap < mpmath.mpf("1e-9"))
    detail = f"{target}: cavity {mpmath.nstr(a, 8)}, naive {mpmath.nstr(b, 8)} at {where}"
    return [Verdict("comparison with the naive theory", agree == symmetric, detail)]


def _moment_of(theory: Any) -> Any:
    states = [q for f in theory.system.datum.fields for q in f.states()]
    return states[0] if states else next(iter(theory.system.feature.unknowns))


def _solves(theory: Any, values: dict[Any, Any]) -> bool:
    try:
        theory.solve(values, dps=15)
    except SymcavityError:
        return False
    return True


__all__ = ["compare_with_naive", "seeded_values", "solved_point"]
