"""Ranges of parameters: those that a declaration states, and those that its random numbers imply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from sympy import (
    Abs,
    Expr,
    GreaterThan,
    Heaviside,
    LessThan,
    Pow,
    S,
    StrictGreaterThan,
    StrictLessThan,
    Symbol,
    factor,
    log,
    sign,
    sympify,
)

from symcavity.errors import ValuesError
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import SiteCount, is_index
from symcavity.model.quantities import Family, Global, Quenched, SiteQuantity

TRIES = 200
RELATIONS = (GreaterThan, LessThan, StrictGreaterThan, StrictLessThan)


def declared_ranges(relations: Iterable[Any]) -> tuple[Any, ...]:
    """The relations that hold parameters only, such as ``tau < 1``."""
    return tuple(r for r in relations if isinstance(r, RELATIONS) and _holds_parameters(r))


def _holds_parameters(expr: Any) -> bool:
    other = expr.atoms(SiteQuantity, Global, SiteCount, Family)
    return not other and not any(map(is_index, expr.free_symbols)) and bool(expr.free_symbols)


def implied_ranges(
    couplings: Iterable[Coupling],
    labels: Iterable[Quenched],
    exprs: Iterable[Expr] = (),
    variances: Iterable[Expr] = (),
) -> tuple[Any, ...]:
    """What random numbers and formulas ask of parameters.

    Correlations of couplings lie between -1 and 1; variances, and weights of laws that hear signs only, are not
    negative; nor is what stands under a root, or in a logarithm.
    """
    found: list[Any] = []
    for expr in exprs:
        nodes = [p.base for p in expr.atoms(Pow) if p.exp.is_Rational and not p.exp.is_Integer]
        nodes += [node.args[0] for node in expr.atoms(log)]
        nodes = sorted((e for e in nodes if _holds_parameters(e) and e.is_nonnegative is None), key=str)
        found += [GreaterThan(e, 0, evaluate=False) for e in nodes]
    found += [GreaterThan(v, 0, evaluate=False) for v in variances if _holds_parameters(v) and v.is_nonnegative is None]
    for coupling in couplings:
        moments = (*coupling.correlation.values(), coupling.reciprocity)
        found += [LessThan(Abs(rho), 1, evaluate=False) for rho in moments if _holds_parameters(rho)]
        scale, _ = factor(coupling.variance).as_independent(SiteCount, SiteQuantity, as_Add=False)
        if _holds_parameters(scale) and scale.is_nonnegative is None:
            found.append(GreaterThan(scale, 0, evaluate=False))
    for label in labels:
        for _, weight in (label.law or ()) if label.few else ():
            steps = sorted(weight.atoms(sign, Heaviside), key=str)
            sides = [(S.NegativeOne if isinstance(s, sign) else S.Zero, S.One) for s in steps]
            for case in product(*sides):
                value = weight.xreplace(dict(zip(steps, case, strict=True)))
                open_sign = _holds_parameters(value) and value.is_nonnegative is not True
                found += [GreaterThan(value, 0, evaluate=False)] if open_sign else []
    return tuple(dict.fromkeys(found))


def margins(ranges: Iterable[Any]) -> tuple[Expr, ...]:
    """What inequalities say to be positive, or zero at the edge of a range."""
    return tuple(r.gts - r.lts for r in ranges)


def in_range(ranges: Iterable[Any], values: Mapping[Any, Any]) -> bool:
    """Whether values are in all ranges of which they give every parameter."""
    met = (r.xreplace({s: sympify(v) for s, v in values.items()}) for r in ranges if r.free_symbols <= set(values))
    return all(r.doit() != S.false for r in met)


def values_in_range(
    draw: Callable[[], list[float]], symbols: Sequence[Any], ranges: Sequence[Any]
) -> list[float]:
    """The first values of symbols that are drawn and in range; the last of many tries, where hardly any are."""
    for _ in range(TRIES):
        values = draw()
        if not ranges or in_range(ranges, dict(zip(symbols, values, strict=True))):
            break
    return values


def check_ranges(ranges: Sequence[Any], values: Mapping[Symbol, Any]) -> None:
    """Refuse values that are out of range.

    Raises
    ------
    ValuesError
        With the range.
    """
    for relation in ranges:
        if not in_range([relation], values):
            given = ", ".join(f"{s} = {values[s]}" for s in sorted(relation.free_symbols, key=str))
            raise ValuesError(f"{given} is out of range.", f"values with {relation.doit()}")
