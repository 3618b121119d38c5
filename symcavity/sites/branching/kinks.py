"""Kinks of the equations of a site: on each side of all of them the equations are smooth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    S,
    Symbol,
    cancel,
    expand_mul,
    factor_terms,
    fraction,
    gcd_terms,
    linear_eq_to_matrix,
    sign,
)
from sympy.core.relational import GreaterThan, LessThan, Relational, StrictGreaterThan, StrictLessThan
from sympy.logic.boolalg import And, Or
from sympy.solvers.solveset import NonlinearError

from symcavity.algebra.linear_systems import solve_linear
from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw

KINKS = (Max, Min, Abs, sign, Heaviside, Piecewise)


def one_argument(
    equations: Sequence[Expr], unknowns: Sequence[Symbol]
) -> tuple[Symbol, Expr, Expr, dict[Symbol, Expr]] | None:
    """All unknowns by one combination of them, if all that is not linear depends on it alone; None where it does not.

    Returns
    -------
    (symbol, combination, equation, values)
        A symbol, the combination that it stands for, the equation that it obeys, and every unknown in terms of it.
    """
    rows = [[s for t in Add.make_args(e) for s in Add.make_args(expand_mul(t, deep=False))] for e in equations]
    found: dict[Expr, list[Expr]] = {}

    def bends(expr: Expr) -> bool:
        return any(expr.diff(u).has(*unknowns) for u in unknowns)

    def collect(expr: Expr) -> None:
        if expr.has(*unknowns) and not bends(expr):
            found[expr] = [expr.diff(u) for u in unknowns]
        elif expr.has(*unknowns):
            for arg in expr.args:
                collect(arg)

    for term in (t for row in rows for t in row if bends(t)):
        collect(term)
    first = min(found.values(), key=str, default=[])
    if sum(s != 0 for s in first) < 2:
        return None
    heard = gcd_terms(Add(*(s * u for s, u in zip(first, unknowns, strict=True))))
    common, _ = heard.as_independent(*unknowns, as_Add=False)
    first = [cancel(s / common) for s in first]
    lead = next(k for k, s in enumerate(first) if s != 0)
    shares = {e: cancel(slopes[lead] / first[lead]) for e, slopes in found.items()}
    if any(cancel(s - shares[e] * f) for e, slopes in found.items() for s, f in zip(slopes, first, strict=True)):
        return None
    whole, combination = Dummy("u", real=True), Add(*(s * u for s, u in zip(first, unknowns, strict=True)))
    zero = dict.fromkeys(unknowns, S.Zero)
    rule = {e: share * whole + e.xreplace(zero) for e, share in shares.items()}
    marks: dict[Expr, Symbol] = {}  # what depends on the combination is a number to the equations of the unknowns

    def put(row: list[Expr]) -> Expr:
        bent, plain = (Add(*(t for t in row if bends(t) is b)) for b in (True, False))
        if bent != 0:
            plain = split_off(plain, whole, combination, unknowns)
            bent, plain = bent + plain.coeff(whole) * whole, plain.xreplace({whole: S.Zero})
        bent = bent.xreplace(rule)
        return plain + (bent if bent.has(*unknowns) or not bent else marks.setdefault(bent, Dummy("b")))

    try:
        matrix, right = linear_eq_to_matrix(list(map(put, rows)), list(unknowns))
    except NonlinearError:
        return None
    point = solve_linear(matrix, right, unknowns)
    if point is None or any(v.has(*unknowns) for v in point):
        return None
    back = {mark: bent for bent, mark in marks.items()}
    values = dict(zip(unknowns, point, strict=True))
    gap = fraction(cancel(whole - combination.xreplace(values)))[0]
    return whole, combination, gap.xreplace(back), {u: v.xreplace(back) for u, v in values.items()}


def split_off(expr: Expr, whole: Symbol, combination: Expr, unknowns: Sequence[Symbol]) -> Expr:
    """An expression with a multiple of a combination named, if none of its unknowns is left besides it."""
    parts = {u: rate for u in unknowns if (rate := combination.diff(u)) != 0}
    share = next((cancel(turn / rate) for u, rate in parts.items() if (turn := expr.diff(u)) != 0), S.Zero)
    rest = (expr - share * combination).expand()
    return expr if share == 0 or rest.has(*parts) else rest + share * whole


def of_one_sign(condition: Expr) -> Expr:
    """The factors of a condition that may be positive and negative; 1 or -1 if there is none, as for ``exp(x)``."""
    if condition.is_polynomial(*condition.free_symbols):
        return condition
    parts = {f: sign_of(f) for f in Mul.make_args(factor_terms(condition))}
    return Mul(*(known or f for f, known in parts.items()))


def unkinked(
    equations: Sequence[Expr], others: Sequence[Expr], unknowns: Sequence[Symbol]
) -> Iterator[tuple[list[Expr], list[Expr], list[Expr]]]:
    """Yield (equations, others, conditions) for every choice of pieces of the kinks in the unknowns."""
    count = len(equations)

    def go(exprs: list[Expr], conditions: list[Expr]) -> Iterator[tuple[list[Expr], list[Expr], list[Expr]]]:
        kink = _innermost([*exprs, *conditions], unknowns)
        if kink is None:
            yield exprs[:count], exprs[count:], conditions
            return
        for value, new in _pieces(kink):
            rule = {kink: value}
            before = [c.xreplace(rule) for c in conditions]
            if not any(contradict(a, b, unknowns) for a in before for b in new):
                yield from go([_one_sided(e.xreplace(rule), kink, value) for e in exprs], before + new)

    yield from go([*equations, *others], [])


def contradict(one: Expr, two: Expr, unknowns: Sequence[Symbol]) -> bool:
    """Whether two linear expressions are never both non-negative: a positive combination is a negative constant."""
    x = next((u for u in unknowns if one.has(u) and two.has(u)), None)
    if x is None or one.has(*KINKS) or two.has(*KINKS):
        return False
    ratio = -one.diff(x) / two.diff(x)
    if ratio.has(*unknowns) or sign_of(ratio) != 1:
        return False
    total = (one + ratio * two).expand()
    return not total.has(*unknowns) and sign_of(total) == -1


def _one_sided(expr: Expr, kink: Expr, value: Expr) -> Expr:
    """Set the sign and the step of a kink's argument along with the kink itself."""
    if isinstance(kink, sign | Heaviside | Abs):
        argument = kink.args[0]
        up = value in (S.One, argument)
        rule = {
            sign(argument): S.One if up else S.NegativeOne,
            Abs(argument): argument if up else -argument,
            **{h: S.One if up else S.Zero for h in expr.atoms(Heaviside) if h.args[0] == argument},
        }
        return expr.xreplace(rule)
    return expr


def _innermost(exprs: Sequence[Expr], unknowns: Sequence[Symbol]) -> Expr | None:
    kinks = {k for e in exprs for k in e.atoms(*KINKS) if k.has(*unknowns)}
    found = sorted(kinks, key=lambda k: (k.count_ops(), str(k)))
    for kink in found:
        inner = [k for arg in kink.args for k in arg.atoms(*KINKS) if k.has(*unknowns)]
        if not inner:
            return kink
    return None


def _pieces(kink: Expr) -> list[tuple[Expr, list[Expr]]]:
    """The pieces of a kink: (value, expressions that must not be negative)."""
    if isinstance(kink, Abs | sign | Heaviside):
        a = kink.args[0]
        high = {Abs: a, sign: S.One, Heaviside: S.One}[type(kink)]
        low = {Abs: -a, sign: S.NegativeOne, Heaviside: S.Zero}[type(kink)]
        return [(high, [a]), (low, [-a])]
    if isinstance(kink, Max | Min):
        flip = 1 if isinstance(kink, Max) else -1
        return [(a, [flip * (a - b) for b in kink.args if b != a]) for a in kink.args]
    out: list[tuple[Expr, list[Expr]]] = []
    failed: list[list[Expr]] = [[]]
    for value, condition in kink.args:
        if condition == S.true:
            out += [(value, list(conds)) for conds in failed]
            break
        for case in condition.args if isinstance(condition, Or) else [condition]:
            holds = [_non_negative(part) for part in (case.args if isinstance(case, And) else [case])]
            out += [(value, [*conds, *holds]) for conds in failed]
            # it fails at the first inequality, or at the second and not the first: these do not overlap
            failed = [[*conds, *holds[:k], -holds[k]] for conds in failed for k in range(len(holds))]
    return out


def piece_of(kink: Expr, last: bool) -> Expr:
    """One piece of a kink: the first, or the last."""
    pieces = kink.args if isinstance(kink, Piecewise) else None
    return pieces[-1 if last else 0][0] if pieces else _pieces(kink)[-1 if last else 0][0]


def decided(kink: Expr, nonnegative: Sequence[Expr]) -> Expr | None:
    """The piece of a kink that holds where some expressions are not negative, such as ``|w|`` where ``w >= 0``."""

    def known(expr: Expr) -> bool:
        return any(sign_of(cancel(expr / g)) == 1 for g in nonnegative)

    return next((value for value, needed in _pieces(kink) if all(c == 0 or known(c) for c in needed)), None)


def _non_negative(condition: Any) -> Expr:
    if isinstance(condition, Relational):
        if isinstance(condition, GreaterThan | StrictGreaterThan):
            return condition.lhs - condition.rhs
        if isinstance(condition, LessThan | StrictLessThan):
            return condition.rhs - condition.lhs
    raise UnsupportedLaw(
        f"The condition {condition} of a Piecewise is not supported.",
        "inequalities, And(...) of inequalities, and Or(...) of these",
    )
