"""Quotients of tails of the Gaussian distribution, written so that they have numbers where both tails vanish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Expr, Function, Mul, Pow, S, default_sort_key, erf, erfc, exp, pi, sqrt

from symcavity.algebra.phi import phi

__all__ = ["erfcx", "with_scaled_tails"]


class erfcx(Function):  # noqa: N801 - it is written like the mathematical function it is
    """The scaled complementary error function ``exp(x**2)*erfc(x)``, which neither vanishes nor cancels."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        x = self.args[argindex - 1]
        return 2 * x * self.func(x) - 2 / sqrt(pi)

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _eval_rewrite_as_erfc(self, x: Expr, **_kwargs: Any) -> Expr:
        return exp(x**2) * erfc(x)

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('scipy.special.erfcx')}({printer._print(self.args[0])})"  # noqa: SLF001

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return str(printer._print(self.rewrite(erfc)))  # noqa: SLF001 - SymPy's printing protocol


def with_scaled_tails(expr: Any) -> Any:
    """Return an expression in which 1 + erf is phi, and exp over phi or erfc is one over :class:`erfcx`.

    Parameters
    ----------
    expr : Expr
        Whatever holds no error function or truncated moment in a denominator comes back as it is.
    """
    if not isinstance(expr, Expr) or not (expr.has(erf, erfc) or any(_is_below(p) for p in expr.atoms(Pow))):
        return expr
    expr = _everywhere(expr, Add, erf, _as_tail)
    return _everywhere(expr, Mul, exp, _scaled)


def _is_below(power: Pow) -> bool:
    return power.exp.is_negative is True and power.base.has(phi)


def _everywhere(expr: Expr, kind: Any, part: Any, change: Callable[[Expr], Expr]) -> Expr:
    """Change all sums or products that hold a part, the innermost first."""
    done: set[Expr] = set()
    while True:
        left = (e for e in expr.atoms(kind) if e.has(part) and e not in done)
        first = min(left, key=lambda e: (e.count_ops(), default_sort_key(e)), default=None)
        if first is None:
            return expr
        done.add(first)
        changed = change(first)
        if changed != first:
            expr = expr.xreplace({first: changed})


def _as_tail(total: Expr) -> Expr:
    """Join c and plus or minus c*erf(x) in a sum."""
    terms = list(total.args)
    for term in total.args:
        factor, function = term.as_independent(erf, as_Add=False)
        if not isinstance(function, erf):
            continue
        for sign in (1, -1):
            if sign * factor in terms and term in terms:
                terms.remove(sign * factor)
                terms.remove(term)
                terms.append(2 * sign * factor * phi(0, sqrt(2) * sign * function.args[0]))
    return Add(*terms)


def _scaled(product: Expr) -> Expr:
    """Divide exponentials by the tails in a denominator."""
    inner = next((f for f in product.args if isinstance(f, Add) and f.has(exp) and f.has(erfc, phi)), None)
    if inner is not None:  # the terms of a sum have exponentials of their own
        rest = Mul(*(f for f in product.args if f is not inner))
        return Add(*(_scaled(Mul(term, rest)) for term in inner.args))
    out, exponents, tails = [], [], []
    for f in product.args:
        base, power = f.as_base_exp() if isinstance(f, Pow) else (f, S.One)
        if isinstance(base, exp) and power.is_Integer:
            exponents.append(power * base.args[0])
        elif isinstance(base, erfc) and power.is_Integer:
            tails.append((base.args[0], power, S.One))
        elif isinstance(base, phi) and base.args[0] == 0 and power.is_Integer:
            tails.append((-base.args[1] / sqrt(2), power, S.Half))
        else:
            out.append(f)
    if not exponents or all(power > 0 for _, power, _ in tails):
        return product
    for x, power, factor in tails:
        out.append((factor * erfcx(x)) ** power)
        exponents.append(-power * x**2)
    return Mul(*out, exp(Add(*exponents).expand()))
