"""In what unknown an implicit branch is written: such that its law is smooth and finite, and its ends are linear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Pow, S, Symbol, apart, cancel, div, exp, fraction, log, nan, oo, solve, zoo

from symcavity.algebra.compiled import compiled
from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.convexity import seeded
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.draws import DRAWS, Draws, symbols_in

# all scales, and what bends near the middle, far from zero though another field may move it
GRID = np.array(
    sorted({*-np.geomspace(1e4, 1e-4, 200), *np.linspace(-30, 30, 601), *np.geomspace(1e-4, 1e4, 200)})
)
MOST_ROOTS = 12  # of which one unknown is taken


def has_poles(branch: Branch) -> bool:
    """Whether a branch stands where the law is infinite, such as the bound of a state whose logarithm it holds."""
    parts = [*branch.values.values(), *branch.conditions, *((branch.implicit[1],) if branch.implicit else ())]
    return any(part.has(zoo, nan, oo, -oo) for part in parts)


def smooth(branch: Branch) -> Branch:
    """A branch in the unknown in which its law is smooth, and finite wherever it is met."""
    return _by_logarithm(_by_root(branch))


def _by_root(branch: Branch) -> Branch:
    """Write what a condition keeps from being negative as a power, where the law holds roots of it: ``c = x^q``."""
    if branch.implicit is None:
        return branch
    x, psi = branch.implicit
    powers = {p for e in (psi, *branch.values.values()) for p in e.atoms(Pow) if p.exp.is_Rational and p.base.has(x)}
    for condition in branch.conditions:
        slope = condition.diff(x)
        if slope == 0 or slope.has(x):
            continue
        ratios = {p: cancel(p.base / condition) for p in powers if not p.exp.is_integer}
        bases = {p: r for p, r in ratios.items() if not r.has(x) and sign_of(r) == 1}
        degree = lcm(*(int(p.exp.q) for p in bases))
        if degree == 1 or degree > MOST_ROOTS:
            continue
        root = Dummy(f"{x.name}_root", positive=True)
        rule = {p: r**p.exp * root ** (degree * p.exp) for p, r in bases.items()}
        bound = {x: (x - (condition - root**degree) / slope).expand()}
        return Branch(
            {q: v.xreplace(rule).xreplace(bound).expand() for q, v in branch.values.items()},
            tuple(root if c == condition else c.xreplace(rule).xreplace(bound).expand() for c in branch.conditions),
            branch.label,
            (root, psi.xreplace(rule).xreplace(bound).expand()),
        )
    return branch


def _by_logarithm(branch: Branch) -> Branch:
    """Name an implicit unknown by a logarithm, where its law is infinite at its bounds: these are never reached.

    It is that of the distance from one bound, or of the quotient of the distances from two.
    """
    if branch.implicit is None:
        return branch
    x, psi = branch.implicit
    if any(p.base.has(x) and p.exp.is_negative for p in psi.atoms(Pow)):
        branch = replace(branch, implicit=(x, psi := _by_poles(psi, x)))
    ends: list[tuple[Expr, Expr, Expr]] = []  # a condition, its slope, and the bound where it vanishes
    for condition in branch.conditions:
        slope = condition.diff(x)
        if slope == 0 or slope.has(x):
            continue
        bound = (x - condition / slope).expand()
        opposite = all(sign_of(other / slope) == -1 for _, other, _ in ends)
        if opposite and _diverges(psi, x, bound):
            ends.append((condition, slope, bound))
    if not ends:
        return branch
    never = [condition for condition, _, _ in ends]
    rest = replace(branch, conditions=tuple(c for c in branch.conditions if c not in never))
    (_, slope, bound), *other = ends
    if other:
        there = _between(rest, x, bound, other[0][2])
    else:
        there = rest.where({x: bound + (sign_of(slope) or 1 / slope) * exp(x)})
        there = replace(there, conditions=tuple(c.expand() for c in there.conditions))
    named = there.where({x: _logarithm(x)})
    return replace(named, label=branch.label, implicit=named.implicit and (_logarithm(x), named.implicit[1]))


@lru_cache(maxsize=1024)
def _logarithm(x: Symbol) -> Symbol:
    """The symbol of the logarithm of a state, which has not its letter; the same in all branches."""
    return Dummy(f"ell_{x.name}", real=True)


def _by_poles(psi: Expr, x: Symbol) -> Expr:
    """A law whose quotients are written by their poles: of two that cancel there nothing is left."""
    quotients = [t for t in Add.make_args(psi) if t.has(x) and t.is_rational_function(x) and not t.is_polynomial(x)]
    return psi - Add(*quotients) + apart(Add(*quotients).together(), x) if len(quotients) > 1 else psi


def _diverges(psi: Expr, x: Symbol, bound: Expr) -> bool:
    """Whether a law is infinite at a bound."""
    powers = (p.base for p in psi.atoms(Pow) if p.exp.is_negative)
    inside = [*powers, *(node.args[0] for node in psi.atoms(log))]
    vanish = any(e.has(x) and e.subs(x, bound).expand() == 0 for e in inside)
    return vanish or psi.subs(x, bound).has(zoo, nan, oo, -oo)


def _between(branch: Branch, x: Symbol, first: Expr, last: Expr) -> Branch:
    """Name an implicit unknown between two bounds by the logarithm of the quotient of its distances from them.

    What is linear in it is a mean of its values at the bounds, such that nothing cancels near either of them.
    """
    near, far = 1 / (1 + exp(x)), 1 / (1 + exp(-x))  # shares of the two bounds

    def split(base: Expr) -> list[Expr]:
        """The factors of a polynomial: shares of the bounds at which it vanishes, and what is left."""
        if not base.is_polynomial(x):
            return [base]
        out: list[Expr] = []
        width = last - first
        for distance, share in (((x - first) / width, far), ((last - x) / width, near)):
            rest, left = div(base, distance.expand(), x)
            while base.has(x) and left.expand() == 0:
                out, base = [*out, share], rest
                rest, left = div(base, distance.expand(), x)
        return [*out, placed(base)] if out else [base]

    def placed(expr: Expr) -> Expr:
        if not expr.has(x):
            return expr
        if expr == x or (expr.is_Add and not expr.diff(x).has(x)):
            at_first, at_last = (expr.xreplace({x: end}).expand() for end in (first, last))
            return at_first * near + at_last * far
        if expr.is_Pow and len(factors := split(expr.base)) > 1:
            return Mul(*(f**expr.exp for f in factors))
        return expr.func(*map(placed, expr.args))

    return Branch(
        {q: placed(v) for q, v in branch.values.items()},
        tuple(map(placed, branch.conditions)),
        branch.label,
        branch.implicit and (x, placed(branch.implicit[1])),
    )


def turned(branch: Branch, turn: Expr) -> Branch:
    """An implicit branch in its unknown times plus or minus one."""
    x, psi = branch.implicit or (S.Zero, S.Zero)
    opposite = {"positive": "negative", "nonnegative": "nonpositive", "nonpositive": "nonnegative"}
    known = next((word for word in opposite if getattr(x, f"is_{word}")), "real")
    name, word = (f"{x.name}_-", opposite.get(known, "real")) if turn == -1 else (x.name, known)
    new = Dummy(name, **{word: True})  # what has the opposite sign of a state has not its letter
    rule = {x: turn * new}
    return replace(branch.where(rule), label=branch.label, implicit=(new, psi.xreplace(rule)))


def signed(branches: Iterable[Branch]) -> list[Branch]:
    """Branches whose implicit unknowns have the sign that conditions of all branches with this unknown give them.

    The field may be one-to-one there alone: ``y + y**2`` has two roots, and one of them for ``y >= 0``.
    """
    every = list(branches)
    words: dict[Symbol, set[str]] = {}
    for branch in every:
        if branch.implicit and not (branch.implicit[0].is_nonnegative or branch.implicit[0].is_nonpositive):
            words.setdefault(branch.implicit[0], set()).add(_sign_in_words(branch))
    rule = {x: Dummy(x.name, **{word: True}) for x, (word, *others) in words.items() if word and not others}

    def with_sign(branch: Branch) -> Branch:
        x, psi = branch.implicit or (S.Zero, S.Zero)
        if x not in rule:
            return branch
        return replace(branch.where({x: rule[x]}), label=branch.label, implicit=(rule[x], psi.xreplace(rule)))

    return [with_sign(branch) for branch in every]


def _sign_in_words(branch: Branch) -> str:
    """The sign that conditions of an implicit branch give its unknown, as an assumption; nothing where none does."""
    x, _ = branch.implicit or (S.Zero, S.Zero)
    signs = {sign_of(ratio) for c in branch.conditions if not (ratio := (c / x).expand()).has(x)} - {None, 0}
    if len(signs) != 1:
        return ""
    return "nonnegative" if signs == {1} else "nonpositive"


def straightened(branches: Sequence[Branch], field: Symbol, draws: Draws, text: str) -> list[Branch]:
    """Branches with conditions that are linear in their unknown, or in the field where they have none.

    Raises
    ------
    UnsupportedLaw
        If a condition is not linear and changes its sign more than once.
    """
    exprs = [e for b in branches for e in (*b.values.values(), *b.conditions, *(b.implicit or ())[1:])]
    symbols = symbols_in(exprs, {field, *(b.implicit[0] for b in branches if b.implicit)})
    out = []
    for branch in branches:
        x = branch.implicit[0] if branch.implicit else field
        lines = (c if _is_line(c, x) else _straight(c, x, symbols, draws, text) for c in branch.conditions)
        out.append(replace(branch, conditions=tuple(lines)))
    return out


NOWHERE = (S.ImaginaryUnit, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, S.NaN)
"""What a place does not hold at which a real function vanishes."""


def _is_line(condition: Expr, x: Symbol) -> bool:
    return not condition.expand().diff(x).has(x)


def _straight(condition: Expr, x: Symbol, symbols: Sequence[Any], draws: Draws, text: str) -> Expr:
    """One, minus one, or the unknown beside the only zero or pole of a condition: its sign at seeded parameters."""
    zeros = [*_zeros(condition, x), *_zeros(fraction(condition.together())[1], x)]
    beside = [way * (x - r) for r in zeros if not r.has(*NOWHERE) for way in (1, -1)]
    rng = seeded(5)
    points = [draws.sample(symbols, rng) for _ in range(DRAWS)]
    call = compiled([x, *symbols], condition)
    for candidate in (S.One, S.NegativeOne, *beside):
        other = compiled([x, *symbols], candidate)
        with np.errstate(all="ignore"):
            if all(_same_signs(x, call(GRID, *p), other(GRID, *p)) for p in points):
                return candidate
    raise UnsupportedLaw(
        f"{text}: the condition {condition} >= 0 of a branch is not linear, and changes its sign at several places, or "
        "at one that is not found.",
        "pairs and kinks whose arguments are linear, or change their sign once",
        _signs_to_declare(condition, symbols),
    )


def _zeros(expr: Expr, x: Symbol) -> Sequence[Any]:
    if not expr.has(x):
        return ()
    try:
        found: Sequence[Any] = solve(expr, x, check=False, simplify=False, cubics=False, quartics=False)
    except NotImplementedError:
        return ()
    return found


def _signs_to_declare(condition: Expr, symbols: Sequence[Any]) -> str:
    """The hint to declare the signs of the parameters in a condition that have none."""
    loose = [s for s in symbols if condition.has(s) and s.is_nonnegative is None and s.is_nonpositive is None]
    named = sorted({str(getattr(s, "family", s)) for s in loose})
    return f"declare the sign of {', '.join(named)}, if it has one: positive=True" if named else ""


def _same_signs(x: Symbol, one: Any, two: Any) -> bool:
    """Whether two functions have one sign on the grid, where the unknown may be and both are not near zero."""
    # a function of no real value somewhere, as a root of a negative number, has no sign there
    real = (np.where(np.isreal(v), np.real(v), np.nan) for v in (one, two))
    one, two = (np.broadcast_to(np.asarray(v, dtype=float), GRID.shape) for v in real)
    there = GRID > 0 if x.is_positive else GRID < 0 if x.is_negative else True
    seen = there & np.isfinite(one) & np.isfinite(two) & (np.abs(one) > 1e-12 * (1 + np.abs(two)))
    return bool(seen.any() and np.all((one[seen] > 0) == (two[seen] > 0)))
