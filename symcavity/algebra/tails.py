"""Quotients of functions that vanish or overflow together, written so that they have numbers there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Expr, Function, Mul, Pow, S, cosh, erf, erfc, exp, log, pi, polygamma, sinh, sqrt, tanh
from sympy.core.function import ArgumentIndexError

from symcavity.algebra.node import holds
from symcavity.algebra.phi import by_phi, phi


class hazard(Function):  # noqa: N801 - it is written like the mathematical function it is
    """The density over its tail, ``exp(-x**2)/erfc(x)``, which with its slope has a number wherever doubles are."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        x = self.args[argindex - 1]
        return 2 * self.func(x) * (self.func(x) / sqrt(pi) - x)

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _eval_rewrite_as_erfc(self, x: Expr, **_kwargs: Any) -> Expr:
        return exp(-(x**2)) / erfc(x)

    def _numpycode(self, printer: Any) -> str:
        erfcx = printer._module_format("scipy.special.erfcx")  # noqa: SLF001
        return f"(1/{erfcx}({printer._print(self.args[0])}))"  # noqa: SLF001

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return f"({printer._print(self.rewrite(erfc))})"  # noqa: SLF001 - SymPy's printing protocol


class _ByPhi(Function):
    """A function that is written by ``phi`` where there are digits enough, and has a name of its own in double."""

    in_double = ""

    def _numpycode(self, printer: Any) -> str:
        name = printer._module_format(f"symcavity.evaluate.averages.special.{self.in_double}")  # noqa: SLF001
        return f"{name}({', '.join(printer._print(a) for a in self.args)})"  # noqa: SLF001

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return f"({printer._print(self.rewrite(phi))})"  # noqa: SLF001 - SymPy's printing protocol


class overhang(_ByPhi):  # noqa: N801 - it is written like the mathematical function it is
    """A truncated moment over its tail, ``phi(n, x)/phi(0, x)``, which has a number where both vanish in double."""

    nargs = 2
    in_double = "np_overhang"

    def fdiff(self, argindex: int = 2) -> Expr:
        """Return the derivative."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        n, x = self.args
        below = n * self.func(n - 1, x) if n > 1 else S.One
        return below - self.func(n, x) * sqrt(2 / pi) * hazard(-x / sqrt(2))

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.args[1].is_extended_real else None

    def _eval_rewrite_as_phi(self, n: Expr, x: Expr, **_kwargs: Any) -> Expr:
        return phi(n, x) / phi(0, x)


class log_tail(_ByPhi):  # noqa: N801 - it is written like the mathematical function it is
    """The logarithm of the tail, ``log(phi(0, x))``: exponentials of sums that hold it are not taken apart."""

    nargs = 1
    in_double = "np_log_phi"

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        return sqrt(2 / pi) * hazard(-self.args[argindex - 1] / sqrt(2))

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[0].is_extended_real

    def _eval_rewrite_as_phi(self, x: Expr, **_kwargs: Any) -> Expr:
        return log(phi(0, x))

    def _eval_evalf(self, prec: int) -> Expr | None:
        return self.rewrite(phi)._eval_evalf(prec)  # noqa: SLF001 - SymPy's evaluation protocol

    def _latex(self, printer: Any) -> str:
        return str(printer.doprint(self.rewrite(phi)))


class log_gamma(Function):  # noqa: N801 - it is written like the mathematical function it is
    """The logarithm of the gamma function: exponentials of sums that hold it are not taken apart."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        return polygamma(0, self.args[argindex - 1])

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[0].is_extended_positive

    def _latex(self, printer: Any) -> str:
        return rf"\log \Gamma\left({printer.doprint(self.args[0])}\right)"

    def _numpycode(self, printer: Any) -> str:
        return f"{printer._module_format('scipy.special.gammaln')}({printer._print(self.args[0])})"  # noqa: SLF001

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return f"{printer._module_format('mpmath.loggamma')}({printer._print(self.args[0])})"  # noqa: SLF001


_TAILED = (sinh, erf, erfc, phi)


def with_scaled_tails(expr: Any) -> Any:
    """Return an expression in which 1 + erf and 2 - erfc are phi, and exp over phi or erfc is :class:`hazard`.

    Hyperbolic sines over cosines are tangents.

    Parameters
    ----------
    expr : Expr
        Whatever holds none of these, and no truncated moment in a denominator, comes back as it is.
    """
    if not isinstance(expr, Expr) or not holds(expr, _TAILED):
        return expr
    if expr.has(sinh):
        expr = _everywhere(expr, Mul, sinh, _as_tangent)
    if not (expr.has(erf, erfc) or any(_is_below(p) for p in expr.atoms(Pow))):
        return expr
    for function in (erf, erfc, phi):
        expr = _everywhere(expr, Add, function, _as_tail)
    return _everywhere(_everywhere(expr, Mul, exp, _scaled), Mul, phi, _over_tails)


def in_tails(expr: Expr) -> Expr:
    """Return an expression with ``phi(0, .)`` in the place of error functions, and of what one leaves of a constant."""
    return _everywhere(by_phi(expr), Add, phi, _as_tail)


def _is_below(power: Pow) -> bool:
    return power.exp.is_negative is True and power.base.has(phi)


def _everywhere(expr: Expr, kind: Any, part: Any, change: Callable[[Expr], Expr]) -> Expr:
    """Change all sums or products that hold a part, the innermost first."""
    done: dict[Any, Any] = {}

    def walk(e: Any) -> Any:
        if not e.args or not e.has(part):
            return e
        if e not in done:
            args = [walk(a) for a in e.args]
            new = e if all(a is b for a, b in zip(args, e.args, strict=True)) else e.func(*args)
            done[e] = change(new) if isinstance(new, kind) else new
        return done[e]

    return walk(expr)


def _as_tangent(product: Expr) -> Expr:
    """Write ``sinh(x)**n/cosh(x)**n`` as ``tanh(x)**n``."""
    powers = product.as_powers_dict()
    for f in product.atoms(sinh):
        n, m = (powers.get(g, S.Zero) for g in (f, cosh(*f.args)))
        if n.is_Integer and n > 0 and m.is_Integer and m < 0:
            joined = min(n, -m)
            product = product * (tanh(*f.args) * cosh(*f.args) / f) ** joined
    return product


def _as_tail(total: Expr) -> Expr:
    """Join a constant and the tail that it cancels: ``1 - erf(x)``, ``2 - erfc(x)`` and ``1 - phi(0, x)``."""
    terms = list(total.args)
    for term in total.args:
        factor, function = term.as_independent(erf, erfc, phi, as_Add=False)
        if isinstance(function, erf):
            x = sqrt(2) * function.args[0]
            joined = [(sign * factor, 2 * sign * factor * phi(0, sign * x)) for sign in (1, -1)]
        elif isinstance(function, erfc):
            joined = [(-2 * factor, -2 * factor * phi(0, sqrt(2) * function.args[0]))]
        elif isinstance(function, phi) and function.args[0] == 0:
            joined = [(-factor, -factor * phi(0, -function.args[1]))]
        else:
            continue
        for constant, tail in joined:
            if constant in terms and term in terms:
                terms.remove(constant)
                terms.remove(term)
                terms.append(tail)
    return Add(*terms)


def _over_tails(product: Expr) -> Expr:
    """Write truncated moments over the tail of the same argument as one function."""
    powers = product.as_powers_dict()
    tails = {f.args[1]: -int(m) for f, m in powers.items() if _is_tail(f) and m.is_Integer and m < 0}
    sums = [f for f in product.args if isinstance(f, Add) and any(g.args[1] in tails for g in f.atoms(phi))]
    if sums:
        rest = Mul(*(f for f in product.args if f is not sums[0]))
        return Add(*(_over_tails(term * rest) for term in sums[0].args))
    for f, m in powers.items():
        left = tails.get(f.args[1], 0) if isinstance(f, phi) and not _is_tail(f) and m.is_Integer and m > 0 else 0
        if joined := min(int(m) if left else 0, left):
            tails[f.args[1]] = left - joined
            product *= (phi(0, f.args[1]) * overhang(*f.args) / f) ** joined
    return product


def _is_tail(f: Expr) -> bool:
    return isinstance(f, phi) and f.args[0] == 0


def _is_divisor(factor: Expr) -> bool:
    base, power = factor.as_base_exp()
    return power.is_negative is True and isinstance(base, erfc | phi)


def _scaled(product: Expr) -> Expr:
    """Divide exponentials by the tails in a denominator."""
    inner = next((f for f in product.args if isinstance(f, Add) and f.has(exp) and f.has(erfc, phi)), None)
    rest = [f for f in product.args if f is not inner]
    if inner is not None and not any(_is_divisor(f) for f in rest):
        return product
    if inner is not None:  # the terms of a sum have exponentials of their own
        return Add(*(_scaled(Mul(term, *rest)) for term in inner.args))
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
    if not exponents or all(power > 0 for _, power, _ in tails) or any(e.has(log_tail) for e in exponents):
        return product  # an exponent that holds the logarithm of a tail is weighed against it already
    # a tail above may be one for all to see, where what scales it vanishes: it is scaled only to meet what is left
    left = Add(*exponents, *(-power * x**2 for x, power, _ in tails if power < 0)).expand()
    for x, power, factor in tails:
        if power > 0 and left == 0:
            out.append((factor * erfc(x)) ** power)
            continue
        out.append((factor / hazard(x)) ** power)
        exponents.append(-power * x**2)
    return Mul(*out, exp(Add(*exponents).expand() if left != 0 else S.Zero))
