"""The value of phi_n(kappa) as a number of mpmath, relatively accurate at every precision."""

from __future__ import annotations

import operator
from functools import partial
from math import factorial, log2, sqrt
from typing import Any

import mpmath
from mpmath import libmp

from symcavity.algebra.normal import normal
from symcavity.algebra.precision import GENERATED, mp
from symcavity.errors import ValuesError


def mp_phi(n: Any, x: Any) -> Any:
    """Return phi(n, x) as an mpmath number, relatively accurate at mpmath's current precision.

    Parameters
    ----------
    n : int
        A nonnegative integer.
    x : mpf, mpc or anything that mpmath converts
        The argument, taken as exact.

    Raises
    ------
    ValuesError
        If ``n`` is not a nonnegative integer.

    Notes
    -----
    For x >= 0 every term of the recurrence is positive: no guard digits. For x < 0 the two terms
    cancel, phi_n ~ n! * density / |x|**(n+1), and the number of digits that this takes is known in
    advance from bounds on the ratios phi_k/phi_(k-1); they are added to the working precision.
    """
    return phi_in(mpmath.mp, n, x)


def phi_in(at: Any, n: Any, x: Any) -> Any:
    """Return phi(n, x) as a number of an mpmath context, relatively accurate at its precision.

    Parameters
    ----------
    at : mpmath context
    n, x
        As for :func:`mp_phi`.
    """
    order = checked_order(n)
    x = at.convert(x)
    if not hasattr(x, "_mpf_"):
        return _complex_phi(at, order, x)
    return at.make_mpf(_phis_mpf(order, x._mpf_, at.prec)[-1])


GENERATED["mp_phi"] = partial(phi_in, mp)


def phis_in(at: Any, n: int, x: Any) -> list[Any]:
    """Return phi(0, x) to phi(n, x) of a real x, each relatively accurate at the precision of an mpmath context."""
    return [at.make_mpf(v) for v in _phis_mpf(n, at.convert(x)._mpf_, at.prec)]


def checked_order(n: Any) -> int:
    """The order of phi as an integer; a ValuesError if it is none, or negative."""
    try:
        order = operator.index(n)
    except TypeError:
        order = int(n) if n == int(n) else -1
    if order < 0:
        raise ValuesError(f"The order of phi is {n}.", "a nonnegative integer.")
    return order


FAR = 500  # bits of an argument beyond which its square is beyond every precision


def _phis_mpf(n: int, x: Any, prec: int) -> list[Any]:
    """Return phi(0, x) to phi(n, x) for a raw mpf, rounded to ``prec`` bits."""
    sign, mantissa, exponent, size = x
    if not mantissa and exponent:  # inf, -inf, nan
        if x == libmp.fninf:
            return [libmp.fzero] * (n + 1)
        return [libmp.fone if x == libmp.finf else x] + [x] * n
    wp = prec + 12
    if sign and exponent + size > FAR:
        return [_tail(k, libmp.mpf_neg(x), prec, wp) for k in range(n + 1)]
    if sign:
        wp += 2 * max(0, exponent + size) + _cancelled_bits(n, libmp.to_float(libmp.mpf_neg(x), strict=False))
    below, density = normal(x, wp) if exponent + size <= FAR else (libmp.fone, libmp.fzero)
    found = [below]
    if n > 0:
        found.append(libmp.mpf_add(libmp.mpf_mul(x, below, wp), density, wp))
    for k in range(1, n):
        below = libmp.mpf_mul_int(found[-2], k, wp)
        found.append(libmp.mpf_add(libmp.mpf_mul(x, found[-1], wp), below, wp))
    return [libmp.mpf_pos(v, prec, libmp.round_nearest) for v in found]


def _tail(n: int, size: Any, prec: int, wp: int) -> Any:
    """Return phi(n, -size) where ``size**2`` is beyond every precision: n!/size**(n + 1) times the density."""
    half = libmp.mpf_shift(libmp.mpf_neg(libmp.mpf_mul(size, size)), -1)
    norm = libmp.mpf_sqrt(libmp.mpf_shift(libmp.mpf_pi(wp), 1), wp)
    below = libmp.mpf_mul(norm, libmp.mpf_pow_int(size, n + 1, wp), wp)
    top = libmp.mpf_mul_int(libmp.mpf_exp(half, wp), factorial(n), wp)
    return libmp.mpf_div(top, below, prec, libmp.round_nearest)


def _cancelled_bits(n: int, size: float) -> int:
    """Return a bound on the bits that the upward recurrence to phi(n, -size) cancels.

    An error mixes in the other solution of the recurrence, (-1)**n phi(n, size). The moments are
    log-convex in n, so that phi_k/phi_(k-1) at -size is at least k/u and at size at most about u, with
    u = (size + sqrt(size**2 + 4*k + 4))/2: the ratio of the two solutions grows at most by u**2/k a step.
    """
    if size > 1e150:
        return int(2 * n * log2(size)) + 4 if size != float("inf") else n * 2100
    bits = 0.0
    for k in range(1, n + 1):
        u = 0.5 * (size + sqrt(size * size + 4 * k + 4))
        bits += log2(u * u / k)
    return int(bits) + 4


def _complex_phi(at: Any, n: int, x: Any) -> Any:
    """Return phi(n, x) at a complex point, raising the precision until two values agree; nan beyond all precisions."""
    if at.mag(x) > FAR:
        return at.nan
    prec = at.prec
    extra = 30
    previous = None
    while extra < 200 * prec + 10**5:
        with at.workprec(prec + extra):
            lower = at.erfc(-x / at.sqrt(2)) / 2
            upper = x * lower + at.exp(-x * x / 2) / at.sqrt(2 * at.pi)
            for k in range(1, n):
                lower, upper = upper, x * upper + k * lower
            value = lower if n == 0 else upper
            if previous is not None and abs(value - previous) <= abs(value) * at.ldexp(1, -prec - 5):
                break
            previous = value
        extra *= 2
    return +value
