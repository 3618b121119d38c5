"""What is sent through couplings and is no linear function of states: it gets a variable of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Add, Dummy, Expr, Mul, S, Sum, expand_mul, expand_multinomial

from symcavity.model.apart import taken_apart
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.fields import unfolded
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting, sides, with_sides
from symcavity.model.site_sums import is_affine, kind_of_sum


class Emissions(Rewriting):
    """The variables that stand for what a declaration sends through its couplings.

    ``Sum(J[i, j]*tanh(h[j]), (j, 1, N))`` is heard as ``Sum(J[i, j]*u_h[j], (j, 1, N))`` with ``u_h[i] = tanh(h[i])``,
    and a coupling sum inside of a coupling sum as one of a variable that is the inner sum.  Where the inner sum is
    over what the hearer is coupled to, ``Sum(v[a]*Sum(F[a, i]*x[mu, i], (i, 1, N)), (a, 1, K))``, the two are
    exchanged first.  ``sin(x[j] - x[i])`` is a sum of products, by its addition theorem, with couplings and without.
    The fields in an average that all moving sites share, ``Sum(x[i, t]*Sum(J[i, j]*x[j, t], (j, 1, N)), (i, 1, N))/N``,
    get variables, too.

    In a convex problem equations have to be linear: there only inner sums get variables, and what a global variable
    adds to the states, ``Sum(x[mu, i]*(w[i] + b*s[i]), (i, 1, N))``.

    Attributes
    ----------
    meanings : dict
        The expression that each variable replaces.
    replaced : dict
        For each sum over sites that was rewritten, the expression in its place.
    """

    key = "emissions"

    def __init__(self, declaration: Declaration) -> None:
        self._names = declaration.names
        self._convex, self._closed = declaration.objective is not None, False
        self.meanings: dict[SiteQuantity, Expr] = {}
        self.replaced: dict[Expr, Expr] = {}
        self._known: dict[Expr, SiteQuantity] = {}

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with linear emissions, and an equation for each variable."""
        out = declaration.mapped(lambda entry: with_sides(entry, [self._read(side) for side in sides(entry)]))
        self._closed = True
        said = [out.equation(variable, meaning) for variable, meaning in self.meanings.items()]
        return replace(out, entries=(*out.entries, *said))

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The expression that each variable replaces."""
        return dict(self.meanings)

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable with the variables that the declaration has."""
        return self._read(expr)

    def steps(self, make: Any) -> list[Any]:
        """The expression that each variable replaces, and the sums over couplings in the new variables."""
        if not (self.meanings or self.replaced):
            return []
        claims = [Equation(variable, meaning) for variable, meaning in self.meanings.items()]
        claims += [Equation(total, new) for total, new in self.replaced.items()]
        data = {"states": list(self.meanings), "apart": any(not total.has(Coupling) for total in self.replaced)}
        return [make(self.key, "emissions", claims, data=data, rests_on=("problem",))]

    def _read(self, expr: Expr) -> Expr:
        if self._convex and expr.has(Global):
            expr = expr.replace(lambda e: e.is_Mul and e.has(Sum), _moved_inside)
        return expr.xreplace({s: self._sum(s) for s in _outermost(expr)})

    def _sum(self, total: Sum) -> Expr:
        kind = kind_of_sum(total.limits[0]) if len(total.limits) == 1 else None
        turned = _turned(total) if kind is not None else total
        if turned != total:
            heard = self._read(turned)
            if not self._closed:
                self.replaced[total] = heard
            return heard
        body = self._read(total.function)
        if kind is not None and not body.has(Coupling):
            return self._of_two_sites(total, body)
        if kind is None:
            return total.func(body, *total.limits)
        if _is_shared(body):
            inner = {s: self._variable(s, kind, total.limits[0][0]) for s in _outermost(body)}
            return total.func(body.xreplace(inner), *total.limits)
        terms = Add.make_args(expand_mul(taken_apart(body, total.limits[0][0])))
        new = [self._term(term, kind, total.limits[0][0]) for term in terms]
        if new == list(terms):
            return total.func(body, *total.limits)
        heard = total.func(Add(*new), *total.limits)
        if not self._closed:
            self.replaced[total] = heard
        return heard

    def _of_two_sites(self, total: Sum, body: Expr) -> Expr:
        """A sum without couplings as sums over single sites, each times factors of the hearer's own site."""
        at, plain = total.limits[0][0], total.func(body, *total.limits)
        if self._convex or not _free(body) - {at}:
            return plain
        parts: dict[Expr, Expr] = {}
        for term in Add.make_args(expand_mul(expand_multinomial(taken_apart(body, at)))):
            alike = [q for q in site_quantities(term) if at in q.indices]
            own, summed = term.as_independent(*alike, as_Add=False)
            if _free(summed) - {at}:
                return plain
            parts[own] = parts.get(own, S.Zero) + summed
        heard = Add(*(own * total.func(summed, *total.limits) for own, summed in parts.items()))
        if not self._closed:
            self.replaced[total] = heard
        return heard

    def _term(self, term: Expr, kind: Kind, at: Any) -> Expr:
        """One product in a coupling sum, its emission linear."""
        sent: list[Expr] = []
        other: list[Expr] = []
        for factor in Mul.make_args(unfolded(term)):
            coupling = isinstance(factor, SiteQuantity) and isinstance(factor.family, Coupling)
            (sent if _free(factor) == {at} and not coupling else other).append(factor)
        if self._convex:  # what all sites share is sent by each of them
            sent, other = [*sent, *(f for f in other if f.has(Global))], [f for f in other if not f.has(Global)]
        emission = Mul(*sent)
        states = site_quantities(emission, Variable, Field)
        curved = not self._convex and states and not is_affine(emission, states)
        if not (emission.has(Sum, Global) or curved) or not site_quantities(Mul(*other), Coupling):
            return term
        return Mul(*other, self._variable(emission, kind, at))

    def _variable(self, meaning: Expr, kind: Kind, at: Any) -> Expr:
        """The variable at a site that has a meaning; the meaning itself where none has, and none is added any more."""
        bound = {lim[0] for s in meaning.atoms(Sum) for lim in s.limits}
        own = (meaning.as_dummy() if kind.index in bound else meaning).xreplace({at: kind.index})
        key = own.as_dummy() if own.args else own  # of a symbol that method makes a new one
        if key not in self._known:
            if self._closed:
                return meaning
            states = site_quantities(own, Variable, Field)
            parts = {q.family.name for q in states} or {g.name for g in own.atoms(Global)}
            word = fresh_name(self._names, "_".join(["u", *sorted(parts)]))
            over = next((q.family.over for q in states if q.family.over is not None), None)
            self._known[key] = Variable(word, kind.index, over=over).at_site()
            self.meanings[self._known[key]] = own
        return self._known[key].xreplace({kind.index: at})


def _moved_inside(product: Mul) -> Expr:
    """A global variable times a sum over couplings, as a sum over what each site sends."""
    shared = [f for f in product.args if isinstance(f, Global)]
    sums = [f for f in product.args if isinstance(f, Sum) and f.has(Coupling) and not site_quantities(f, Variable)]
    if not shared or len(sums) != 1:
        return product
    rest = (f for f in product.args if f not in (*shared, *sums))
    return Mul(*rest, Sum(Mul(sums[0].function, *shared), *sums[0].limits))


def _is_shared(body: Expr) -> bool:
    """Whether what is summed over sites that move holds the fields of these, and no coupling of its own."""
    sums = _outermost(body)
    alone = not site_quantities(body.xreplace({s: Dummy() for s in sums}), Coupling)
    return alone and any(q.time is not None for q in site_quantities(body)) and all(len(_free(s)) == 1 for s in sums)


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
