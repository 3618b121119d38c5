"""A standard Gaussian between two ends: the logarithm of its total there, and its moments, which cancel nowhere."""

from __future__ import annotations

from math import comb
from typing import Any

from sympy import Add, Expr, Function, S, binomial, exp, log, pi, sqrt
from sympy.core.function import ArgumentIndexError

from symcavity.algebra.phi import phi

GUARD = 30  # bits


class _Between(Function):
    """A function of two ends that can be written by ``phi``, and has code of its own in double."""

    def _eval_evalf(self, prec: int) -> Expr | None:
        *order, u, v = self.args
        try:
            ends = [e._to_mpmath(prec + GUARD) for e in (u, v)]  # noqa: SLF001 - SymPy's own door to mpmath
        except (ValueError, TypeError, NotImplementedError, AttributeError):
            return None
        from symcavity.algebra.precision import context

        at = context(prec)
        found = between_in(at, int(order[0]) if order else 0, *map(at.convert, ends))
        return S(at.make_mpf(found._mpf_)).evalf(at.dps)

    def _numpycode(self, printer: Any) -> str:
        name = printer._module_format("symcavity.evaluate.averages.interval.np_between")  # noqa: SLF001
        order = self.args[:-2] or (S.Zero,)
        return f"{name}({int(order[0])}, {', '.join(printer._print(a) for a in self.args[-2:])})"  # noqa: SLF001

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return f"({printer._print(self.rewrite(phi))})"  # noqa: SLF001 - SymPy's printing protocol


class log_between(_Between):  # noqa: N801 - it is written like the mathematical function it is
    """The logarithm of the share of standard normal numbers between u and v, ``log(phi(0, v) - phi(0, u))``."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative: a density over the share."""
        end = self.args[argindex - 1]
        return (-1) ** argindex * exp(-(end**2) / 2 - self) / sqrt(2 * pi)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = str(printer.doprint(self.rewrite(phi)))
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(a.is_extended_real for a in self.args) else None

    def _eval_rewrite_as_phi(self, u: Expr, v: Expr, **_kwargs: Any) -> Expr:
        return log(phi(0, v) - phi(0, u))


class between(_Between):  # noqa: N801 - it is written like the mathematical function it is
    """Moments of a standard normal number z between u and v.

    ``between(1, u, v)`` is the mean of ``z - u``, ``between(n, u, v)`` with n > 1 that of the power n of what z is away
    from its mean.
    """

    nargs = 3

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        n, u, v = (printer._print(a) for a in self.args)  # noqa: SLF001 - SymPy's printing protocol
        power = f"^{{{exp}}}" if exp is not None else ""
        return rf"\Psi_{{{n}}}{power}\left({u}, {v}\right)"

    def fdiff(self, argindex: int = 3) -> Expr:
        """Return the derivative in one of the ends."""
        n, u, v = self.args
        if argindex == 1:
            raise ArgumentIndexError(self, argindex)
        mean = between(1, u, v)
        away = -mean if argindex == 2 else v - u - mean  # of that end from the mean
        density = log_between(u, v).fdiff(argindex - 1)
        if n == 1:
            return density * away - (S.One if argindex == 2 else S.Zero)
        below = between(n - 1, u, v) if n > 2 else S.Zero
        return density * (away**n - self - n * below * away)

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(a.is_extended_real for a in self.args) else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        n = self.args[0]
        return True if (n == 1 or n.is_even) and all(a.is_extended_real for a in self.args) else None

    def _eval_rewrite_as_phi(self, n: Expr, u: Expr, v: Expr, **_kwargs: Any) -> Expr:
        share, wide = phi(0, -u) - phi(0, -v), v - u

        def away(k: int) -> Expr:
            """The mean of the power k of z - u."""
            missing = Add(*(binomial(k, j) * wide ** (k - j) * phi(j, -v) for j in range(k + 1)))
            return (phi(k, -u) - missing) / share if k else S.One

        if n == 1:
            return away(1)
        return Add(*(binomial(n, k) * away(k) * (-away(1)) ** (n - k) for k in range(int(n) + 1)))


def between_in(at: Any, n: int, u: Any, v: Any) -> Any:
    """Return ``between(n, u, v)``, or the logarithm of the share for n = 0, as a number of an mpmath context.

    Parameters
    ----------
    at : mpmath context
    n : int
    u, v : numbers of the context
    """
    from symcavity.algebra.phi_values import phi_in

    if not v > u:
        return -at.inf if n == 0 else at.zero
    if at.isinf(u) or at.isinf(v):
        u, v = max(u, -at.mpf(10) ** 9), min(v, at.mpf(10) ** 9)
    turned = u + v < 0  # counted from the end that is nearer to zero, beyond which the other tail is the smaller one
    low, high = (-v, -u) if turned else (u, v)
    wide = high - low
    small = wide * max(at.one, low)  # of what is narrow all but powers of this cancels
    prec = at.prec
    extra = max(0, -int(at.mag(small))) * (n + 2) + n * int(at.mag(max(at.one, abs(low)))) + GUARD
    try:
        at.prec = prec + extra
        wide = high - low
        tails = [[phi_in(at, k, -e) for k in range(n + 1)] for e in (low, high)]
        raw = [
            tails[0][k] - sum(comb(k, j) * wide ** (k - j) * tails[1][j] for j in range(k + 1)) for k in range(n + 1)
        ]
        if n == 0:
            found = at.log(raw[0])
        else:
            mean = raw[1] / raw[0]
            if n == 1:
                found = wide - mean if turned else mean
            else:
                found = sum(comb(n, k) * raw[k] / raw[0] * (-mean) ** (n - k) for k in range(n + 1))
                found = -found if turned and n % 2 else found
    finally:
        at.prec = prec
    return +found
