"""Which roots are solutions: signs, what the derivation assumed, and the closed equations themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Dummy, Expr, StrictGreaterThan, Symbol

from symcavity.algebra.precision import is_mpf, mp
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.twice import limited
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.eliminated import Eliminated, exactly
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.quantities import SiteQuantity
from symcavity.record.symbols import CavitySymbol

INFINITE = 1e10  # sides of an equation that are larger may be limits
_LINE = np.concatenate([-np.geomspace(1e3, 1e-3, 60), [0.0], np.geomspace(1e-3, 1e3, 60)])
_ABOVE = np.geomspace(1e-3, 1e3, len(_LINE))  # of what is not negative


def sift(
    system: Eliminated, roots: Iterable[np.ndarray], *, first: bool = False
) -> tuple[list[np.ndarray], list[str]]:
    """Return the admissible ones among roots, or the first of them, and what is wrong with the others."""
    admitted, rejected = [], []
    for root in roots:
        complaint = inadmissible(system, system.complete(root))
        if complaint and not system.given.is_quick(system.task):
            complaint = _exact_complaint(system, root) or ""
        if complaint:
            rejected.append(complaint)
        else:
            admitted.append(root)
            if first:
                break
    return admitted, rejected


def _exact_complaint(system: Eliminated, root: np.ndarray) -> str:
    """Repeat the complaint with digits enough that it is not a matter of rounding."""
    try:
        found, _, guard = exactly(system, root)
    except NotConverged as problem:
        return problem.found
    plain = {k: float(v) if is_mpf(v) else float("nan") for k, v in found.items()}
    if complaint := inadmissible(system, plain, solved=True):
        return complaint
    with mp.workdps(system.given.dps + guard):
        env = {**system.given.environment("mpmath"), **found}
        compiled = system.task.compiled
        return _spurious(system, plain, lambda es: [float(limited(compiled(e, "mpmath"), env)) for e in es])


def inadmissible(system: Eliminated, found: Mapping[Symbol, Any], *, solved: bool = False) -> str:
    """Say what is wrong with a root: an unknown that is not a number or of the wrong sign, or what was assumed."""
    for symbol, value in found.items():
        if np.isnan(value) and not system.given.at_edge:
            return f"{symbol} is not a number"
        slack = tolerances().violated * max(1.0, abs(value)) if np.isfinite(value) else 0.0
        if (symbol.is_nonnegative and value < -slack) or (symbol.is_nonpositive and value > slack):
            return f"{symbol} would be {value:.6g}"
        if symbol.is_integer and abs(value - round(value)) > tolerances().violated:
            return f"{symbol} would be {value:.6g}"
    env = {**system.given.environment("numpy"), **found}
    for condition in system.task.conditions:
        if not holds(system.task, system.given, condition, env):
            return f"the derivation assumed {condition}"
    return "" if solved else _spurious(system, found, lambda es: [float(v) for v in system.task.together(es)(env)])


def holds(task: Task, given: Given, condition: Any, env: Mapping[Any, Any]) -> bool:
    """Whether an assumed inequality holds: at all sites, and for all values of what is not fixed by the root."""
    gap = (condition.lhs - condition.rhs).xreplace(task.units)
    here = dict(env)
    families = sorted({q.family for q in gap.atoms(SiteQuantity)}, key=str)
    for kind in dict.fromkeys(q.slots[0] for q in families):
        own = [q for q in families if q.slots[0] == kind]
        columns, _ = given.laws[kind].table(own)
        here.update({q: np.asarray(v)[:, None] for q, v in zip(own, columns, strict=True)})
    free = [s for s in gap.free_symbols if isinstance(s, Dummy | CavitySymbol)]
    here.update({s: _ABOVE if s.is_nonnegative else -_ABOVE if s.is_nonpositive else _LINE for s in free})
    with np.errstate(all="ignore"):
        try:
            values = np.asarray(task.compiled(gap, "numpy")(here), dtype=float)
        except ZeroDivisionError:
            return given.at_edge
    least = values.min()
    if np.isnan(least) and not free:  # where functions overflow there is no value to be judged
        return given.at_edge
    is_strict = isinstance(condition, StrictGreaterThan)
    if np.any(values < 0) and (is_strict or not gap.is_Add):
        return False
    # a denominator whose terms cancel to rounding has been multiplied out: such a root solves the numerator only
    if not (gap.is_Add and (is_strict or least < 0)) or given.at_edge or np.isnan(least):
        return bool(np.isnan(least) or least >= 0)
    with np.errstate(all="ignore"):
        terms = [np.asarray(task.compiled(t, "numpy")(here), dtype=float) for t in gap.args]
    if least > tolerances().cancelled * sum(max(t.max(), -t.min()) for t in terms):
        return True
    size = sum(map(np.abs, terms))
    if not is_strict:  # sides that are equal, as bounds at some sites, differ by rounding
        return not np.any(values < -tolerances().cancelled * size)
    return not np.any((values <= tolerances().cancelled * size) & np.isfinite(size))  # what overflows has not canceled


def _spurious(
    system: Eliminated, found: Mapping[Symbol, Any], values: Callable[[tuple[Expr, ...]], Sequence[float]]
) -> str:
    """Say which closed equation a root does not solve: numerators vanish where denominators do, too."""
    unbounded = {s for s in system.order if not np.isfinite(found[s])}
    pairs = zip(system.task.sides[::2], system.task.sides[1::2], strict=True)
    kept = [  # at an edge, such as kappa = 0, some equations hold as limits
        (equation, pair)
        for equation, pair in zip(system.task.equations, pairs, strict=True)
        if not unbounded or not unbounded & set().union(*(e.free_symbols for e in pair))
    ]
    numbers = values(tuple(side for _, pair in kept for side in pair))
    for k, (equation, _) in enumerate(kept):
        sides = numbers[2 * k : 2 * k + 2]
        if np.isnan(sides).any() and not system.given.at_edge:
            return f"{equation.lhs} or its equation is not a number"
        size = max(map(abs, sides))
        near = tolerances().spurious * (size if all(sides) else max(size, 1.0))
        if size < INFINITE and abs(sides[0] - sides[1]) > near:
            return f"a root of the reduced equations has {equation.lhs} = {sides[0]:.4g}, and not {sides[1]:.4g}"
    return ""
