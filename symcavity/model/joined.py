"""Sums that a law hears as one: ``Sum(x*w) - Sum(x*t)`` is ``Sum(x*(w - t))``, however it was split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from sympy import Add, Expr, Rational, S, Symbol, cancel, fraction, preorder_traversal

from symcavity.model.convexity import sample_parameter, sample_quenched, seeded
from symcavity.model.fields import FieldBook, RandomField
from symcavity.model.kinds import Kind, is_index
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities

_POINTS, _TOLERANCE = 4, 1e-9


def join_fields(book: FieldBook, kind: Kind, exprs: Sequence[Expr]) -> dict[Symbol, Expr]:
    """Join fields that stand in one combination only, in everything that a kind of site declares.

    Parameters
    ----------
    book : FieldBook
        The fields; those that are joined are replaced by one, which keeps the placeholder of the first.
    kind : Kind
        The kind of site that hears them.
    exprs : sequence of Expr
        Everything that its sites declare, in placeholders.

    Returns
    -------
    dict
        What placeholders are from now on: zero those of fields that have gone, and the first in units of the whole.
    """
    rule: dict[Symbol, Expr] = {}
    while (found := _pair(book, kind, exprs)) is not None:
        first, second, share = found
        own = fraction(share)[1].as_coeff_Mul()[1]  # no parameter that may vanish divides what is sent
        book.join(first, second, own=own, other=cancel(own * share))
        step = {second.symbol: S.Zero} | ({} if own == 1 else {first.symbol: first.symbol / own})
        rule = {symbol: value.xreplace(step) for symbol, value in rule.items()}
        rule = step | rule
        exprs = [e.xreplace(step) for e in exprs]
    return rule


def _pair(book: FieldBook, kind: Kind, exprs: Sequence[Expr]) -> tuple[RandomField, RandomField, Expr] | None:
    """Two fields of one coupling, and the share of the second for which the laws see ``first + share*second``."""
    plain = [f for f in book.all(kind) if not f.components and not f.inner]
    others = {f.symbol for f in book.all(kind)}
    for first, second in permutations(plain, 2):
        if first.coupling != second.coupling or not first.states():
            continue
        heard = [e for e in exprs if e.has(first.symbol) or e.has(second.symbol)]
        shares = {_share(e, first.symbol, second.symbol, others) for e in heard}
        if len(shares) == 1 and (share := shares.pop()) is not None:
            whole = {first.symbol: first.symbol + share * second.symbol, second.symbol: 0}
            if all(_agree(e, e.xreplace(whole)) for e in heard):
                return first, second, share
    return None


def _share(expr: Expr, first: Symbol, second: Symbol, fields: set[Symbol]) -> Expr | None:
    """The ratio of the factors with which two placeholders stand in a sum; None where it is not that of all sites.

    Another field, as that of a second teacher in ``sign(u')*u - h``, differs from site to site.
    """
    for node in preorder_traversal(expr):
        if isinstance(node, Add) and node.has(first) and node.has(second):
            a, b = node.expand().coeff(first), node.expand().coeff(second)
            if a != 0 and b != 0 and not (a.has(first, second) or b.has(first, second)):
                share = cancel(b / a)
                return None if share.has(SiteQuantity, *fields) else share
    return None


def _agree(one: Expr, other: Expr) -> bool:
    """Whether two expressions have the same values at seeded points."""
    rng, gap = seeded(23), one - other
    quantities = site_quantities(gap)
    symbols = sorted((s for s in gap.free_symbols if not is_index(s)), key=str)
    for _ in range(_POINTS):
        drawn = [(q, isinstance(q.family, Quenched)) for q in quantities]
        point = {q: sample_quenched(q.family, rng) if fixed else rng.gauss(0, 1) for q, fixed in drawn}
        point |= {s: sample_parameter(s, rng) for s in symbols}
        value = gap.xreplace({k: Rational(str(round(v, 4))) for k, v in point.items()}).evalf(15, chop=True)
        if not value.is_number or abs(value) > _TOLERANCE:
            return False
    return True
