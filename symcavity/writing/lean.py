"""A derivation's plain algebra as Lean 4 source: statements with their hypotheses, whose proofs are left open."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

from sympy import Abs, Add, Expr, Integer, Max, Min, Mul, Pow, Rational, S, Sum, Symbol, exp, log

from symcavity.algebra.phi import phi
from symcavity.model.equations import Equation
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Derivation, Step

STATED = ("elimination", "result", "consistency")  # rules whose claims follow from the closed equations by algebra
_RESERVED = frozenset(
    (
        *("at", "by", "do", "end", "fun", "if", "in", "let", "of", "open", "then", "with", "where", "have", "from"),
        *("class", "def", "theorem", "else", "match", "show", "this", "using", "variable", "lambda", "phi", "Type"),
    )
)
_CALLS = {exp: "Real.exp", log: "Real.log", Abs: "abs", Max: "max", Min: "min"}
_HEAD = """import Mathlib

/-!
{title} ({method}).

The statements of this derivation that are plain algebra, or recurrences: what elimination and the consistency identity
claim, from the closed equations.  Written by symcavity; the proofs are left open.  Signs of symbols, and denominators
that do not vanish, are hypotheses; each average in the closed equations is a number `a_1`, `a_2`, ... of any value.
-/

open scoped BigOperators
"""
_PHI = """
open MeasureTheory ProbabilityTheory in
/-- The truncated Gaussian moment: the average of `(κ - z) ^ n` over a standard normal `z < κ`. -/
noncomputable def phi (n : ℕ) (κ : ℝ) : ℝ :=
  ∫ z in Set.Iio κ, (κ - z) ^ n ∂(gaussianReal 0 1)

/-- The recurrence of the truncated moments. -/
theorem phi_recurrence (n : ℕ) (κ : ℝ) : phi (n + 2) κ = κ * phi (n + 1) κ + (n + 1) * phi n κ := by
  sorry

/-- Their derivative. -/
theorem phi_derivative (n : ℕ) (κ : ℝ) : deriv (phi (n + 1)) κ = (n + 1) * phi n κ := by
  sorry
"""


class NotAlgebra(Exception):
    """An expression with something in it that is no plain algebra."""


def lean_source(derivation: Derivation) -> str:
    """Return the statements of a derivation that are plain algebra, as Lean 4 source.

    Parameters
    ----------
    derivation : Derivation
    """
    closed = next((s.claims for s in derivation if s.rule == "closed_system"), ())
    units = next((s.claims for s in derivation if s.rule == "units"), ())
    out, missing, uses_phi = [], [], False
    for step in derivation:
        if step.rule not in STATED:
            continue
        for number, claim in enumerate(step.claims):
            try:
                out.append(_theorem(step, number, claim, [*closed, *units]))
                uses_phi = uses_phi or claim.difference.has(phi) or any(e.difference.has(phi) for e in closed)
            except NotAlgebra as reason:
                missing.append(f"-- not stated: {step.key}: {reason}")
    head = _HEAD.format(title=_comment(derivation.title), method=derivation.method)
    return "\n".join([head, *([_PHI] if uses_phi else []), *out, *dict.fromkeys(missing), ""])


def _averages(expr: Any) -> set[Any]:
    """The outermost averages and other functions that are no algebra; numbers like any others to an elimination."""
    try:
        lean(expr)
    except NotAlgebra:
        inner = set().union(*map(_averages, expr.args)) if isinstance(expr, Add | Mul | Pow) else set()
        return inner or {expr}
    return set()


def _comment(words: str) -> str:
    return words.replace("-/", "- /").replace("/-", "/ -")


def _theorem(step: Step, number: int, claim: Equation, closed: list[Equation]) -> str:
    """One claim, from the closed equations, with the signs of its symbols; averages are numbers."""
    nodes = sorted({n for e in closed for side in (e.lhs, e.rhs) for n in _averages(side)}, key=str)
    if nodes and step.rule == "consistency":
        raise NotAlgebra("it rests on averages that depend on each other")
    taken = {s.name for e in (claim, *closed) for s in e.difference.free_symbols}
    free = (f"a_{k}" for k in count(1) if f"a_{k}" not in taken)
    marks = {node: Symbol(next(free), real=True) for node in nodes}
    claim, *given = (Equation(e.lhs.xreplace(marks), e.rhs.xreplace(marks)) for e in (claim, *closed))
    stated = f"{lean(claim.lhs)} = {lean(claim.rhs)}"
    exprs = [side for e in (claim, *given) for side in (e.lhs, e.rhs)]
    symbols = sorted({s for e in exprs for s in _symbols(e)}, key=str)
    arrays = sorted({q.family for e in exprs for q in e.atoms(SiteQuantity)}, key=str)
    counts = sorted({s for e in exprs for s in e.atoms(SiteCount)}, key=str)
    lines = [f"    ({' '.join(map(name, symbols))} : ℝ)"] if symbols else []
    lines += [f"    ({' '.join(map(name, counts))} : ℕ)"] if counts else []
    lines += [f"    ({name(q)} : Fin {name(q.slots[0].size)} → ℝ)" for q in arrays]
    lines += [f"    (h_{name(s)} : {word})" for s in symbols if (word := _sign(s))]
    divided = sorted(set().union(*map(_denominators, exprs)), key=str)
    lines += [f"    (hn_{k} : {lean(d)} ≠ 0)" for k, d in enumerate(divided, 1)]
    lines += [f"    (hc_{k} : {lean(e.lhs)} = {lean(e.rhs)})" for k, e in enumerate(given, 1)]
    tail = f"_{number + 1}" if len(step.claims) > 1 else ""
    title = re.sub(r"\W", "_", step.key)
    source = f", equation {_comment(step.reference)} of the source" if step.reference else ""
    head = [f"/-- Step `{step.key}`, by the rule `{step.rule}`{source}. -/", f"theorem {title}{tail}"]
    return "\n".join([*head, *lines, f"    : {stated} := by", "  sorry", ""])


def name(symbol: Any) -> str:
    """The identifier of a symbol or of a family."""
    word = re.sub(r"\W", "_", symbol.name)
    return f"{word}'" if word in _RESERVED else word


def _symbols(expr: Expr) -> set[Symbol]:
    bound = {total.limits[0][0] for total in expr.atoms(Sum)}
    return {s for s in expr.atoms(Symbol) if not isinstance(s, SiteCount)} - bound


def _sign(s: Symbol) -> str:
    if s.is_positive:
        return f"0 < {name(s)}"
    if s.is_negative:
        return f"{name(s)} < 0"
    if s.is_nonnegative:
        return f"0 ≤ {name(s)}"
    return f"{name(s)} ≤ 0" if s.is_nonpositive else ""


def _denominators(expr: Expr) -> set[Expr]:
    """What is divided by and does not show that it is not zero; what sums over sites divide by stays in them."""
    if isinstance(expr, Sum):
        return set()
    found = set().union(*(_denominators(a) for a in expr.args)) if expr.args else set()
    if isinstance(expr, Pow) and expr.exp.is_negative and not expr.base.is_number:
        base = expr.base
        if not (base.is_Symbol and base.is_nonzero):
            found.add(base)
    return found


def lean(expr: Any) -> str:
    """An expression over the reals as Lean 4 writes it.

    Raises
    ------
    NotAlgebra
        For averages, conditions and other functions.
    """
    if isinstance(expr, Integer):
        return str(expr) if expr >= 0 else f"(-{-expr})"
    if isinstance(expr, Rational):
        return f"({expr.p} / {expr.q})"
    if isinstance(expr, SiteCount):
        return f"({name(expr)} : ℝ)"
    if isinstance(expr, Symbol):
        return name(expr)
    if isinstance(expr, SiteQuantity) and len(expr.indices) == 1 and expr.indices[0].is_Symbol:
        return f"{name(expr.family)} {name(expr.indices[0])}"
    if isinstance(expr, Add):
        return "(" + " + ".join(map(lean, expr.args)) + ")"
    if isinstance(expr, Mul):
        return "(" + " * ".join(f"({lean(a)})" if isinstance(a, SiteQuantity) else lean(a) for a in expr.args) + ")"
    if isinstance(expr, Pow):
        return _power(expr)
    if isinstance(expr, phi) and expr.args[0].is_Integer:
        return f"(phi {expr.args[0]} {_atom(expr.args[1])})"
    if isinstance(expr, Sum) and len(expr.limits) == 1:
        index, first, size = expr.limits[0]
        if first == 1 and isinstance(size, SiteCount):
            return f"(∑ {name(index)} : Fin {name(size)}, {lean(expr.function)})"
    word = _CALLS.get(type(expr))
    if word and expr.args:
        return f"({word} {' '.join(map(_atom, expr.args))})"
    if expr is S.Pi:
        return "Real.pi"
    raise NotAlgebra(f"{type(expr).__name__} is no plain algebra")


def _atom(expr: Expr) -> str:
    said = lean(expr)
    return said if said.startswith("(") or re.fullmatch(r"[\w']+", said) else f"({said})"


def _power(expr: Pow) -> str:
    base, power = expr.args
    if power.is_negative:
        return f"(1 / {_atom(1 / expr)})"
    if power == S.Half:
        return f"(Real.sqrt {_atom(base)})"
    if power.is_Integer:
        return f"({_atom(base)} ^ {power})"
    if power.is_Rational and power.q == 2:
        return f"((Real.sqrt {_atom(base)}) ^ {power.p})"
    raise NotAlgebra("a power that is no fraction of two")
