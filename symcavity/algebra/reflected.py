"""Sums of truncated moments, written so that the polynomials which they come close to cancel beforehand."""

from __future__ import annotations

from itertools import combinations

from sympy import Add, And, Expr, Gt, Piecewise, S, binomial, expand_mul, factorial2

from symcavity.algebra.phi import phi
from symcavity.algebra.quotients import cancelled

MOST = 4  # arguments, of whose signs all patterns are written out


def reflected(total: Expr) -> Expr:
    """Return a sum of truncated moments with the polynomials of those whose arguments are positive taken together.

    ``phi(n, k)`` is a polynomial, the moment over the whole line, and ``-(-1)**n*phi(n, -k)``, which vanishes quickly
    for large k.  A clipped field is a difference of such moments: where it does not reach its ends the polynomials
    are larger than what they add up to by any factor.

    Parameters
    ----------
    total : Expr
        What is not a sum over moments of a few arguments comes back as it is.
    """
    terms = [term.as_independent(phi, as_Add=False) for term in Add.make_args(expand_mul(total))]
    moments = [(factor, node) for factor, node in terms if node != 1]
    arguments = sorted({node.args[1] for _, node in moments if isinstance(node, phi)}, key=str)
    if not all(isinstance(node, phi) for _, node in moments) or not 2 <= len(arguments) <= MOST:
        return total
    faint = Add(*(factor * _faint(*node.args) for factor, node in moments))
    polynomials = {
        k: Add(*(factor * _whole(*node.args) for factor, node in moments if node.args[1] == k)) for k in arguments
    }
    rest = Add(*(factor for factor, node in terms if node == 1))
    patterns = [some for size in range(len(arguments), -1, -1) for some in combinations(arguments, size)]
    cases = [
        (cancelled(rest + Add(*(polynomials[k] for k in some))), And(*(Gt(k, 0) for k in some))) for some in patterns
    ]
    return faint + Piecewise(*cases)


def _whole(n: Expr, k: Expr) -> Expr:
    """The moment of order n over the whole line."""
    return Add(*(binomial(n, m) * k ** (n - m) * factorial2(m - 1) for m in range(0, int(n) + 1, 2)))


def _faint(n: Expr, k: Expr) -> Expr:
    """The moment, less its polynomial where the argument is positive; where that is zero, with its slope from below."""
    tail = phi(n, Piecewise((-k, Gt(k, 0)), (k, True)))
    return tail if n % 2 else tail * Piecewise((-S.One, Gt(k, 0)), (S.One, True))
