"""An objective in proportion to the number of sites, however it was normalized."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Abs, Add, Dummy, Expr, Integer, Max, Min, Mul, Piecewise, Pow, Rational, S, Sum, preorder_traversal

from symcavity.errors import DeclarationError
from symcavity.model.couplings import Coupling
from symcavity.model.families import families
from symcavity.model.kinds import N, P, in_units_of_n
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.site_sums import kind_of_sum

_ORDERS = (S.Zero, S.Half, S.One, -S.Half, S.NegativeOne, Rational(3, 2), Integer(2), Rational(-3, 2), Integer(-2))


class Proportion(Rewriting):
    """Sums over sites that are divided by their number, norms, and terms of their order: N times them.

    Attributes
    ----------
    is_mean : bool
        Whether the objective was of another order: what is minimized is then N times what was declared, say.
    """

    key = "proportion"

    def __init__(self, declaration: Declaration) -> None:
        super().__init__(declaration)
        self.is_mean = False

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with an objective in proportion to N."""
        if declaration.objective is None:
            return declaration
        apart = _distributed(declaration.objective)
        whole = in_proportion(apart)
        self.is_mean = whole != apart
        return replace(declaration, objective=whole)


def terms_of(expr: Expr) -> list[Expr]:
    """The terms of an expression, with its sums as they stand: an expansion would split their summands."""
    sums = {}
    for total in (node for node in preorder_traversal(expr) if isinstance(node, Sum)):  # in the order of the expression
        sizes = [f for f in Mul.make_args(total.function) if _is_size(f)]
        body = Mul(*(f for f in Mul.make_args(total.function) if f not in sizes))
        sums[total] = Mul(*sizes, Dummy()), Sum(body, *total.limits)
    back = {next(iter(mark.atoms(Dummy))): total for mark, total in sums.values()}
    marked = expr.xreplace({total: mark for total, (mark, _) in sums.items()})
    return [term.xreplace(back) for term in marked.expand(deep=False).as_ordered_terms()]


def in_proportion(expr: Expr) -> Expr:
    """An expression times the power of N that makes it of the order of a sum over sites.

    Raises
    ------
    DeclarationError
        If sums stand in it that are of different orders.
    """
    terms = terms_of(expr)
    summed: dict[Expr, Any] = {term: _order(term) for term in terms if term.has(Sum)}
    orders = set(summed.values())
    rest = Add(*(in_units_of_n(term) for term in terms if not term.has(Sum)))
    if not summed and expr.has(SiteQuantity):  # it will be refused, as it was written
        return expr
    if not summed:
        scaled = ((rest / N**power).expand() for power in (S.Zero, S.Half, S.One, Integer(2)))
        return next((N * e for e in scaled if not e.has(N)), expr)
    plain = [t for t in summed if isinstance(t.as_independent(Sum, as_Add=False)[1], Sum)]
    known = None not in orders and not _have_variance_one(expr)  # what is beside such couplings may have any order
    if known and len({summed[t] for t in plain}) > 1:
        low, high = min(plain, key=lambda t: summed[t]), max(plain, key=lambda t: summed[t])
        raise DeclarationError(
            f"The terms {low} and {high} are of different orders in the number of sites: one is "
            f"{_word(summed[low])}, the other {_word(summed[high])}, and only the largest would count.",
            "terms of one order: sums over all sites, or each of them divided by a number of sites",
            f"{low * N ** (summed[high] - summed[low])}, or {high * N ** (summed[low] - summed[high])}",
        )
    order = orders.pop() if len(orders) == 1 else None
    if order is None or order == 1 or (order != 0 and _have_variance_one(expr)) or (rest / N**order).expand().has(N):
        return expr
    return Add(*(N ** (1 - order) * term for term in terms))


def _is_size(factor: Expr) -> bool:
    """Whether something depends on the numbers of sites, and on nothing else."""
    return bool(factor.free_symbols) and factor.free_symbols <= {N, P}


def _word(order: Expr) -> str:
    """An order in the number of sites in words."""
    return "of order one" if order == 0 else "in proportion to N" if order == 1 else f"of order {N**order}"


def _order(expr: Expr) -> Expr | None:
    """The power of the number of sites that an expression grows with, balanced means apart; None where it is open.

    A sum over couplings grows with the root of the number of sites, any other sum over sites with their number.
    """
    if isinstance(expr, SiteQuantity):
        order = _order(expr.family.variance) if isinstance(expr.family, Coupling) else S.Zero
        return None if order is None else order / 2
    if not expr.has(Sum, Coupling):
        unit = in_units_of_n(expr).cancel()
        return next((p for p in _ORDERS if not (unit / N**p).cancel().has(N)), None)
    if isinstance(expr, Sum):
        over_sites, terms = any(kind_of_sum(lim) for lim in expr.limits), Add.make_args(expr.function)
        one = _have_variance_one(expr)
        inner = _order(expr.function if one else Mul(*(f for f in Mul.make_args(expr.function) if _is_size(f))))
        coupled = any(q in Mul.make_args(term) for term in terms for q in site_quantities(term, Coupling))
        order = len(expr.limits) - (S.Half if one else S.One) if coupled else S.One
        return None if inner is None or not over_sites else inner + order
    if isinstance(expr, Pow):
        base = _order(expr.base)
        return None if base is None or not expr.exp.is_number else base * expr.exp
    args = [value for value, _ in expr.args] if isinstance(expr, Piecewise) else expr.args
    if not all(isinstance(arg, Expr) for arg in args):
        return None
    found = [_order(arg) for arg in args if arg != 0]
    if None in found:
        return None
    if isinstance(expr, Mul):
        return Add(*found)
    same = len(set(found)) == 1
    return found[0] if same and (isinstance(expr, Add | Max | Min | Abs | Piecewise) or found[0] == 0) else None


def _have_variance_one(expr: Expr) -> bool:
    """Whether couplings stand in an expression whose variance is of order one."""
    return any(not x.variance.has(N) for x in families([expr], Coupling))


def _distributed(expr: Expr) -> Expr:
    """A common factor of several sums over sites, beside each of them."""
    terms = Add.make_args(expr)
    return Add(*terms_of(expr)) if any(t.as_independent(Sum, as_Add=False)[1].is_Add for t in terms) else expr
