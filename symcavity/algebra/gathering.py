"""Sums of averages over a Gaussian, with one term for each: the reflection of the variable leaves its law as it is."""

from __future__ import annotations

from sympy import Add, Expr, Mul, expand_mul

from symcavity.algebra.factors import factor
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.phi import phi


def gathered(expr: Expr) -> Expr:
    """Return a sum with one term for each product of truncated moments and averages over a Gaussian.

    Of a function of ``z`` and the same function of ``-z``, the one is taken in which ``z`` has no minus sign in the
    first truncated moment.
    """
    nodes = {node: new for node in expr.atoms(GaussianAverage) if (new := _reflected(node)) != node}
    if not (nodes or (expr.is_Add and expr.has(GaussianAverage, phi))):
        return expr
    factors: dict[Expr, list[Expr]] = {}
    for term in Add.make_args(expand_mul(expr.xreplace(nodes))):
        known = [f for f in Mul.make_args(term) if f.has(GaussianAverage, phi)]
        factors.setdefault(Mul(*known), []).append(term / Mul(*known))
    return Add(*(known * (factor(Add(*cs)) if len(cs) > 1 else cs[0]) for known, cs in factors.items()))


def _reflected(node: GaussianAverage) -> Expr:
    moments = sorted((m for m in node.expr.atoms(phi) if m.has(node.z)), key=str)
    slope = moments[0].args[1].diff(node.z) if moments else node.z
    if slope.has(node.z) or not slope.could_extract_minus_sign():
        return node
    factor, body = node.expr.xreplace({node.z: -node.z}).as_coeff_Mul()
    return factor * GaussianAverage(body, node.z)
