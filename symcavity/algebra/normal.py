"""The normal distribution to any precision, in the raw numbers of mpmath."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import Any

from mpmath import libmp

BLOCK = 8  # bits over the square of the powers that are kept: flat around this
SHARE = 0.7213475204444817  # bits of exp(-x**2/2), over x**2
MARGIN = 30  # bits that the smallest term of the asymptotic series is below the last that counts
STEP = 32  # bits: precisions that differ by less share what is remembered


def normal(x: Any, prec: int) -> tuple[Any, Any]:
    """Return what share of standard normal numbers is below x, and their density at x.

    Parameters
    ----------
    x : raw mpf
        Finite, and taken as exact; below ``2**500`` in size, beyond which the exponential takes long.
    prec : int
        Bits, relative: of the share below a negative x too.
    """
    return _normal(x, -(-prec // STEP) * STEP)


@lru_cache(maxsize=512)
def _normal(x: Any, prec: int) -> tuple[Any, Any]:
    size, wp = libmp.to_float(libmp.mpf_abs(x), strict=False), prec + 10
    bits = SHARE * size * size
    if bits > wp + _spare(wp) + MARGIN:
        density = _density(x, wp)
        return (_far(x, density, wp) if x[0] else libmp.fone), density
    if x[0]:  # the two terms differ by as little as the answer is
        wp += int(bits) + _magnitude(x) + 2
    density = _density(x, wp)
    beside = libmp.mpf_mul(libmp.mpf_mul(x, density, wp), _near(x, wp), wp)
    return libmp.mpf_add(libmp.fhalf, beside, prec + 10), density


def _magnitude(x: Any) -> int:
    return max(0, x[2] + x[3])


def _density(x: Any, wp: int) -> Any:
    half = libmp.mpf_shift(libmp.mpf_neg(libmp.mpf_mul(x, x)), -1)
    norm = libmp.mpf_sqrt(libmp.mpf_shift(libmp.mpf_pi(wp + 5), 1), wp + 5)
    return libmp.mpf_div(_exponential(half, wp + 5), norm, wp)


def _exponential(x: Any, prec: int) -> Any:
    """The exponential; of a whole number that of its remainder by log(2): mpmath would multiply long powers of e."""
    if x[2] < 0 or not x[1]:
        return libmp.mpf_exp(x, prec)
    wp = prec + _magnitude(x) + 5
    power, rest = divmod(libmp.to_fixed(x, wp), libmp.libelefun.ln2_fixed(wp))
    return libmp.mpf_shift(libmp.mpf_exp(libmp.from_man_exp(rest, -wp), prec), int(power))


def _near(x: Any, prec: int) -> Any:
    """The share between 0 and x over x times the density: ``sum_k x**(2 k)/(1*3*...*(2 k + 1))``."""
    count = _count(prec)
    wp = prec + 2 * (count + 1) * _magnitude(x) + prec.bit_length() + 20
    root = libmp.to_fixed(x, wp)
    return libmp.from_man_exp(_summed(root * root >> wp, wp, count, rising=False), -wp, prec)


def _far(x: Any, density: Any, prec: int) -> Any:
    """The share below a negative x: ``density/|x| * sum_k (-1)**k 1*3*...*(2 k - 1)/x**(2 k)``."""
    wp = prec + _spare(prec)
    inverse = libmp.to_fixed(libmp.mpf_div(libmp.fone, libmp.mpf_mul(x, x), wp), wp)
    total = libmp.from_man_exp(_summed(-inverse, wp, _count(prec), rising=True), -wp, prec)
    return libmp.mpf_mul(libmp.mpf_div(density, libmp.mpf_neg(x), prec), total, prec)


def _spare(prec: int) -> int:
    """Bits that the asymptotic series takes: within a block, terms grow by its odd numbers."""
    return _count(prec) * (prec.bit_length() + 2) + 20


def _count(prec: int) -> int:
    return 2 * (isqrt(prec // BLOCK) // 2 + 1)


def _summed(square: int, wp: int, count: int, *, rising: bool) -> int:
    """The sum over k of ``square**k`` times, or over, the first odd numbers, in fixed point.

    Terms go to as many sums as powers are kept, an even number, so that few of the products are of two long numbers
    (D. M. Smith, Mathematics of Computation 52, 131 (1989)).
    """
    power = 1 << wp
    for _ in range(count):
        power = power * square >> wp
    sums, term, odd = [0] * count, 1 << wp, 1
    while term:
        for k in range(count):
            if rising:
                sums[k] += term
                term *= odd
            else:
                term //= odd
                sums[k] += term
            odd += 2
        term = term * power >> wp
    total = 0
    for part in reversed(sums):
        total = (total * square >> wp) + part
    return total
