"""Sums, products, kinks, cases and relations in a small world: numbers from those of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import (
    ITE,
    Abs,
    Add,
    And,
    Expr,
    Float,
    Heaviside,
    Integer,
    Max,
    Min,
    Mul,
    Not,
    Number,
    NumberSymbol,
    Or,
    Piecewise,
    Pow,
    S,
    UnevaluatedExpr,
    sign,
)  # fmt: skip
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom

from symcavity.algebra.choice import Choice
from symcavity.algebra.precision import mp
from symcavity.model.couplings import Coupling
from symcavity.model.quantities import SiteQuantity
from symcavity.record.symbols import Emission
from symcavity.witness.responding import Env, Open


def _extremum(world: Any, node: Any, env: Env) -> Any:
    """The value of a kink, or what stands for it."""
    values = [world.evaluate(a, env) for a in node.args]
    if world.kink is not None and (known := world.kink(node.func, values)) is not None:
        return known
    return abs(values[0]) if isinstance(node, Abs) else max(values) if isinstance(node, Max) else min(values)


def _relation(world: Any, node: Any, env: Env) -> bool:
    """Whether a relation holds."""
    left, right = (world.evaluate(a, env) for a in node.args)
    gap = left - right
    word = node.rel_op
    if word in ("==", "!="):
        return bool((gap == 0) == (word == "=="))
    return bool({">": gap > 0, ">=": gap >= 0, "<": gap < 0, "<=": gap <= 0}[word])


def _cases(world: Any, node: Piecewise, env: Env) -> Any:
    """The value of the case that holds."""
    for value, test in node.args:
        if world.evaluate(test, env):
            return world.evaluate(value, env)
    raise Open(f"no case of {node} holds")


def any_function(world: Any, node: Any, env: Env) -> Any:
    """Any other function, by SymPy's own evaluation at numbers."""
    if not node.args:
        raise Open(f"{node} is unknown here")
    values = [world.evaluate(a, env) for a in node.args]
    call = getattr(mp, type(node).__name__, None)
    if call is not None and len(values) == 1:
        return call(values[0])
    found = node.func(*(Float(v, mp.dps) if not mp.isint(v) else Integer(int(v)) for v in values))
    found = found.evalf(mp.dps)
    if not found.is_Float and not found.is_Integer:
        raise Open(f"{node} is not a number here")
    return mp.mpf(found._to_mpmath(mp.prec))  # noqa: SLF001 - SymPy's own door


def _product(world: Any, node: Expr, env: Env) -> Any:
    """A product. Most couplings are zero while a mean is taken over them: what they multiply is not needed then."""
    out = mp.mpf(1)
    for arg in sorted(node.args, key=lambda a: not (isinstance(a, SiteQuantity) and isinstance(a.family, Coupling))):
        out = out * world.evaluate(arg, env)
        if out == 0 and world.seen is None:
            break
    return out


def _number(_world: Any, node: Any, _env: Env) -> Any:
    if node.is_Rational:
        return mp.mpf(int(node.p)) / int(node.q) if node.q != 1 else mp.mpf(int(node.p))
    if node in (S.Infinity, S.NegativeInfinity):
        return mp.inf if node is S.Infinity else -mp.inf
    return mp.mpf(node.evalf(mp.dps)._to_mpmath(mp.prec))  # noqa: SLF001 - SymPy's own door


def _step(world: Any, node: Expr, env: Env) -> Any:
    value = world.evaluate(node.args[0], env)
    return mp.sign(value) if isinstance(node, sign) else mp.mpf(value > 0)


FUNCTIONS: list[tuple[Any, Callable[..., Any]]] = [
    ((Number, NumberSymbol), _number),
    (Add, lambda w, e, env: mp.fsum(w.evaluate(a, env) for a in e.args)),
    (Mul, _product),
    (Pow, lambda w, e, env: w.evaluate(e.base, env) ** (int(e.exp) if e.exp.is_Integer else w.evaluate(e.exp, env))),
    (Choice, lambda w, e, env: w.evaluate(e.args[1][int(w.evaluate(e.args[0], env)) - 1], env)),
    ((Emission, UnevaluatedExpr), lambda w, e, env: w.evaluate(e.args[0], env)),
    ((Max, Min, Abs), _extremum),
    ((sign, Heaviside), _step),
    (Piecewise, _cases),
    (BooleanAtom, lambda _w, e, _env: bool(e)),
    (And, lambda w, e, env: all(w.evaluate(a, env) for a in e.args)),
    (Or, lambda w, e, env: any(w.evaluate(a, env) for a in e.args)),
    (Not, lambda w, e, env: not w.evaluate(e.args[0], env)),
    (ITE, lambda w, e, env: w.evaluate(e.args[1 if w.evaluate(e.args[0], env) else 2], env)),
    (Relational, _relation),
]
