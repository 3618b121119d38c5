"""Formulas by cases: conditions that are decided, and soft thresholds."""

from __future__ import annotations

from typing import Any

from sympy import Eq, Expr, Ge, Gt, Le, LessThan, Lt, Max, Mul, Ne, Piecewise, S, StrictLessThan, default_sort_key

from symcavity.algebra.quotients import vanishes

_SIGNS = {Gt: "+", Lt: "-", Ge: "0+", Le: "0-", Eq: "0", Ne: "+-"}


def decided(node: Piecewise) -> Expr:
    """Cases in which conditions that are decided by that of the case, and by those before it, are left out."""
    before: dict[Any, set[str]] = {}
    cases = []
    for value, condition in node.args:
        here = {key: {*signs} for key, signs in before.items()}
        if (known := _known(condition)) is not None:
            key, signs = known
            here[key] = here.get(key, {*"-0+"}) & signs
            before[key] = before.get(key, {*"-0+"}) - signs
        cases.append((_within(value, here), condition))
    return Piecewise(*cases, evaluate=False)  # cases of one value stay apart


def _known(condition: Any) -> tuple[Any, set[str]] | None:
    """The difference of two sides and the signs that it has where a condition holds; None for other conditions."""
    signs = _SIGNS.get(type(condition))
    if signs is None:
        return None
    difference = condition.lhs - condition.rhs
    first = min(difference, -difference, key=default_sort_key)
    turn = {} if first == difference else {"+": "-", "-": "+"}
    return first, {turn.get(sign, sign) for sign in signs}


def _within(value: Expr, here: dict[Any, set[str]]) -> Expr:
    """A value where some differences have some signs only."""
    rule = {}
    for node in value.atoms(Piecewise):
        for _, condition in node.args:
            if (known := _known(condition)) is None or known[0] not in here:
                continue
            left, signs = here[known[0]], known[1]
            if left <= signs:
                rule[condition] = S.true
            elif not left & signs:
                rule[condition] = S.false
    return value.xreplace(rule)


def soft_threshold(node: Piecewise) -> Expr:
    """What vanishes between two ends, or beyond one, and is linear elsewhere, by positive parts; other cases as is."""
    if len(node.args) == 2:
        return _positive_part(node)
    if len(node.args) != 3:
        return node
    (low, below), (middle, within), (high, _) = node.args
    known = all(isinstance(c, StrictLessThan | LessThan) and c.lhs == below.lhs for c in (below, within))
    if not known or middle != 0 or not getattr(below.lhs, "is_Symbol", False):
        return node
    x, first, last = below.lhs, below.rhs, within.rhs
    slopes = [low.diff(x), high.diff(x)]
    ends = [low.xreplace({x: first}), high.xreplace({x: last})]
    if any(s.has(x) for s in (*slopes, first, last)) or not all(map(vanishes, ends)):
        return node
    return slopes[1] * Max(0, x - last) - slopes[0] * Max(0, first - x)


def _positive_part(node: Piecewise) -> Expr:
    """A factor times a positive part for cases of which one is zero, and the other a multiple of its own condition."""
    (value, condition), (rest, _) = node.args
    if rest != 0 or _SIGNS.get(type(condition)) not in ("+", "-", "0+", "0-"):
        return node
    gap = (condition.gts - condition.lts).expand()
    for factor in Mul.make_args(value):
        for sign in (1, -1):
            if factor.is_Add and (factor - sign * gap).expand() == 0:
                return sign * value / factor * Max(0, sign * factor)
    return node
