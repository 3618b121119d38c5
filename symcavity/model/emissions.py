"""What is sent through couplings and is no linear function of states: it gets a variable of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Add, Eq, Expr, Mul, Sum, Symbol, expand_mul
from sympy.core.relational import Relational

from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.fields import is_affine, kind_of_sum
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Complementary, Field, SiteQuantity, Variable, site_quantities


def sides(entry: Any) -> list[Expr]:
    """The expressions of one entry of a declaration."""
    if isinstance(entry, Equation):
        return [entry.lhs, entry.rhs]
    if isinstance(entry, Relational | Complementary):
        return [a for a in entry.args if isinstance(a, Expr)]
    return [entry] if isinstance(entry, Expr) else []


def with_sides(entry: Any, new: list[Expr]) -> Any:
    """The same entry with other expressions."""
    if new == sides(entry):
        return entry
    return new[0] if isinstance(entry, Expr) else type(entry)(*new)


class Emissions:
    """The variables that stand for what a declaration sends through its couplings.

    ``Sum(J[i, j]*tanh(h[j]), (j, 1, N))`` is heard as ``Sum(J[i, j]*u_h[j], (j, 1, N))`` with ``u_h[i] = tanh(h[i])``,
    and a coupling sum inside of a coupling sum as one of a variable that is the inner sum.  Where the inner sum is
    over what the hearer is coupled to, ``Sum(v[a]*Sum(F[a, i]*x[mu, i], (i, 1, N)), (a, 1, K))``, the two are
    exchanged first.

    Parameters
    ----------
    exprs : iterable
        Everything declared.
    convex : bool
        Whether equations have to be linear: then only inner sums get variables.

    Attributes
    ----------
    equations : list of Eq
        What each variable stands for.
    replaced : dict
        By each coupling sum that was rewritten, what stands in its place.
    closed : bool
        Whether no more variables are brought in.
    """

    def __init__(self, exprs: Iterable[Any] = (), *, convex: bool = False) -> None:
        found = [side for e in exprs for side in sides(e)]
        self._names = {q.family.name for e in found for q in site_quantities(e)}
        self._names |= {s.name for e in found for s in e.atoms(Symbol)}
        self.convex, self.closed = convex, False
        self.equations: list[Eq] = []
        self.replaced: dict[Expr, Expr] = {}
        self._known: dict[Expr, SiteQuantity] = {}

    @property
    def variables(self) -> tuple[SiteQuantity, ...]:
        """Those that were brought in."""
        return tuple(self._known.values())

    def __call__(self, entry: Any) -> Any:
        """Return an entry of a declaration, or an observable, with linear emissions."""
        return with_sides(entry, [self._read(side) for side in sides(entry)])

    def _read(self, expr: Expr) -> Expr:
        return expr.xreplace({s: self._sum(s) for s in _outermost(expr)})

    def _sum(self, total: Sum) -> Expr:
        kind = kind_of_sum(total.limits[0]) if len(total.limits) == 1 else None
        turned = _turned(total) if kind is not None else total
        if turned != total:
            heard = self._read(turned)
            if not self.closed:
                self.replaced[total] = heard
            return heard
        body = self._read(total.function)
        if kind is None or not body.has(Coupling):
            return total.func(body, *total.limits)
        terms = Add.make_args(expand_mul(body))
        new = [self._term(term, kind, total.limits[0][0]) for term in terms]
        if new == list(terms):
            return total.func(body, *total.limits)
        heard = total.func(Add(*new), *total.limits)
        if not self.closed:
            self.replaced[total] = heard
        return heard

    def _term(self, term: Expr, kind: Kind, at: Any) -> Expr:
        """One product in a coupling sum, its emission linear."""
        sent: list[Expr] = []
        other: list[Expr] = []
        for factor in Mul.make_args(term):
            coupling = isinstance(factor, SiteQuantity) and isinstance(factor.family, Coupling)
            (sent if _free(factor) == {at} and not coupling else other).append(factor)
        emission = Mul(*sent)
        states = site_quantities(emission, Variable, Field)
        curved = not self.convex and states and not is_affine(emission, states)
        if not (emission.has(Sum) or curved) or not site_quantities(Mul(*other), Coupling):
            return term
        bound = {lim[0] for s in emission.atoms(Sum) for lim in s.limits}
        meaning = (emission.as_dummy() if kind.index in bound else emission).xreplace({at: kind.index})
        key = meaning.as_dummy()
        if key not in self._known:
            if self.closed:
                return term
            word = fresh_name(self._names, "_".join(["u", *sorted({q.family.name for q in states})]))
            self._known[key] = Variable(word, kind.index)[kind.index]
            self.equations.append(Eq(self._known[key], meaning, evaluate=False))
        return Mul(*other, self._known[key].family[at])



def _turned(total: Sum) -> Expr:
    """A sum with those inside of it outermost that couple the hearer to the summed sites; itself without any."""
    at = total.limits[0][0]
    kept: list[Expr] = []
    out: list[Expr] = []
    for term in Add.make_args(expand_mul(total.function)) if total.function.has(Sum) else ():
        inner = next((f for f in Mul.make_args(term) if isinstance(f, Sum) and _couples_two(f, at)), None)
        if inner is None:
            kept.append(term)
            continue
        for part in Add.make_args(expand_mul(inner.function)):
            outside, inside = part.as_independent(*(q for q in site_quantities(part) if at in q.indices), as_Add=False)
            out.append(Sum(outside * Sum(inside * term / inner, *total.limits), *inner.limits))
    return Add(*out, *([Sum(Add(*kept), *total.limits)] if kept else [])) if out else total


def _couples_two(inner: Sum, at: Any) -> bool:
    """Whether each product in a sum over sites couples them to a summed site, and to the hearer."""
    if len(inner.limits) != 1 or kind_of_sum(inner.limits[0]) is None or not _free(inner) - {at}:
        return False
    for part in Add.make_args(expand_mul(inner.function)):
        ends = {at in q.indices for q in site_quantities(part, Coupling) if inner.limits[0][0] in q.indices}
        if ends != {True, False}:
            return False
    return True


def _free(expr: Expr) -> set[Any]:
    """The indices of an expression, apart from those that its sums run over."""
    bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits}
    return {index for q in site_quantities(expr) for index in q.indices} - bound


def _outermost(node: Any) -> list[Sum]:
    """The sums of an expression that stand in no other sum."""
    return [node] if isinstance(node, Sum) else [s for arg in node.args for s in _outermost(arg)]
