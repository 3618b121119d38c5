"""Random fields: the sums over the other side through which a site hears it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sympy import Add, Dummy, Expr, Mul, Pow, S, Sum, Symbol, Tuple, expand_mul

from symcavity.errors import DeclarationError
from symcavity.model.quantities import (
    DATUM,
    FEATURE,
    INDEX,
    OTHER,
    SIZE,
    Average,
    Coupling,
    Datum,
    Feature,
    Field,
    SiteQuantity,
    i,
    mu,
    site_quantities,
)
from symcavity.model.refusals import check_slots, check_words, parameters_of
from symcavity.model.support import stays_whole


class FieldSymbol(Symbol):
    """The placeholder of a random field in a law; never equal to a parameter of the same name."""

    __slots__ = ()


@dataclass(frozen=True)
class RandomField:
    """One random field of a side: ``sum over the other side of coupling * emission``.

    Attributes
    ----------
    side : str
        The side that hears the field.
    coupling : SiteQuantity
        The coupling at the canonical site indices (with its component, if any).
    emission : Expr
        What the other side's site emits: affine in its states, at the canonical index.
    symbol : Symbol
        The placeholder that stands for the field in the side's law (for its component at the coupling's
        component index, where the field is a vector).
    inner : Tuple
        The range of a component index that is summed over as well; empty for a scalar emission.
    """

    side: str
    coupling: SiteQuantity
    emission: Expr
    symbol: Symbol
    inner: Tuple = field(default_factory=Tuple)

    @property
    def as_sum(self) -> Expr:
        """The field written out as a sum over the other side."""
        return Sum(self.coupling * self.emission, *self.limits)

    @property
    def limits(self) -> list[Any]:
        """The ranges of the sum: the other side's sites, and the components of a vector emission."""
        other = OTHER[self.side]
        return [(INDEX[other], 1, SIZE[other]), *([self.inner] if self.inner else [])]

    @property
    def components(self) -> Tuple:
        """The range of the free component index of a vector field; empty for a scalar."""
        family = self.coupling.family
        free = bool(family.components) and not self.inner and self.coupling.indices[-1].is_Symbol
        return Tuple(self.coupling.indices[-1], *family.components[1:]) if free else Tuple()

    def states(self) -> list[SiteQuantity]:
        """The state variables of the other side that this field hears."""
        return site_quantities(self.emission, Feature, Datum, Field)


class FieldBook:
    """Collects the random fields of a declaration, so that equal sums share one placeholder."""

    def __init__(self) -> None:
        self._fields: dict[tuple[str, SiteQuantity, Expr, Tuple], RandomField] = {}

    def all(self, side: str) -> list[RandomField]:
        """All fields heard by a side, in order of appearance."""
        return [field for field in self._fields.values() if field.side == side]

    def get(self, side: str, coupling: SiteQuantity, emission: Expr, inner: Tuple = Tuple()) -> Expr:  # noqa: B008
        """Return prefactor * placeholder for a sum, after moving site-independent factors out of it."""
        constant, emission = emission.as_independent(SiteQuantity, as_Add=False)
        if emission.is_Add:
            content, emission = emission.as_content_primitive()
            constant *= content
        elif emission.could_extract_minus_sign():
            constant, emission = -constant, -emission
        key = (side, coupling, emission, inner)
        if key not in self._fields:
            mark = "u" if side == DATUM else "v"
            count = len(self.all(side))
            name = mark if not count else f"{mark}_{count + 1}"
            self._fields[key] = RandomField(side, coupling, emission, FieldSymbol(name, real=True), inner)
        return constant * self._fields[key].symbol


def side_of_range(limits: Tuple) -> str | None:
    """Return the side that a summation range (index, 1, N) or (index, 1, P) runs over."""
    if len(limits) != 3:
        return None
    for side, size in SIZE.items():
        if limits[2] == size:
            if limits[1] != 1:
                raise DeclarationError(
                    f"A sum over the sites runs over {tuple(limits)}.", f"the whole range ({limits[0]}, 1, {size})"
                )
            if limits[0] == INDEX[OTHER[side]]:
                raise DeclarationError(
                    f"A sum runs over {tuple(limits)}: {limits[0]} counts the {OTHER[side]} sites, "
                    f"and there are {SIZE[OTHER[side]]} of them.",
                    f"({i}, 1, N) for features, ({mu}, 1, P) for data",
                    f"({limits[0]}, 1, {SIZE[OTHER[side]]})",
                )
            return side
    return None


def _rename(body: Expr, side: str, dummy: Symbol, where: str) -> Expr:
    """Rename the summation index to the canonical one, refusing a doubled index."""
    canonical = INDEX[side]
    for quantity in site_quantities(body):
        slot = next((slot for slot, index in quantity.site.items() if index == dummy and slot != side), None)
        if slot:
            raise DeclarationError(
                f"In {where} the index {dummy} runs over the {side} sites, 1 to {SIZE[side]}, "
                f"but stands in the place of a {slot} in {quantity}.",
                f"sums over features run to {SIZE[FEATURE]}, over data to {SIZE[DATUM]}",
                f"({dummy}, 1, {SIZE[slot]})",
            )
    if dummy == canonical:
        return body
    if body.has(canonical):
        raise DeclarationError(
            f"In {where} the index {canonical} stands inside a sum over {dummy}, which runs over the same sites.",
            "one index of each side in a coupling sum",
            f"write {dummy} for {canonical} inside the sum",
        )
    return body.xreplace({dummy: canonical})


def site_sum(expr: Sum, where: str) -> tuple[str, Expr]:
    """Return (side, body at the canonical index) of a sum over the sites of one side."""
    site_limits = [(lim, side_of_range(lim)) for lim in expr.limits]
    sites = [(lim, side) for lim, side in site_limits if side]
    index, low, high = expr.limits[0]
    if not sites and any(index in q.indices[len(q.family.slots) :] for q in site_quantities(expr.function)):
        raise DeclarationError(
            f"The component index {index} in {where} runs over {low}..{high}.",
            "explicit ranges of components, such as (a, 1, 2); open ranges in the argument of a support function",
        )
    if len(sites) != 1:
        own = next((str(lim[2]) for lim in expr.limits if str(lim[-1]) in ("N", "P") and lim not in dict(sites)), "")
        raise DeclarationError(
            f"{expr} in {where} runs over {' and '.join(str(tuple(lim)) for lim in expr.limits)}"
            + (f", where {own} is a symbol of your own." if own else "."),
            "sums over (i, 1, N) or (mu, 1, P), one side at a time; nested Sum(...) for the other",
            f"from symcavity import {own}" if own else "",
        )
    (limits, side) = sites[0]
    inner = [lim for lim, s in site_limits if not s]
    body = Sum(expr.function, *inner) if inner else expr.function
    body = expand_components(_rename(body, side, limits[0], where), where)
    check_slots(body, where)
    return side, body


def expand_components(expr: Expr, where: str) -> Expr:
    """Write out sums over component indices whose range is explicit."""
    for inner in sorted(expr.atoms(Sum), key=lambda s: (s.count_ops(), str(s))):
        ranges = [lim for lim in inner.limits if side_of_range(lim) is None]
        if not ranges:
            continue
        body = inner.function
        whole = [lim for lim in ranges if _is_whole(body, lim[0])]
        ranges = [lim for lim in ranges if lim not in whole]
        for index, low, high in ranges:
            if not (low.is_Integer and high.is_Integer):
                raise DeclarationError(
                    f"The component index {index} in {where} runs over {low}..{high}.",
                    "explicit ranges of components, such as (a, 1, 2)",
                )
            body = Add(*(body.xreplace({index: low + k}) for k in range(int(high - low) + 1)))
        kept = [lim for lim in inner.limits if lim not in ranges]
        expr = expr.xreplace({inner: Sum(body, *kept) if kept else body})
    return expr


def _is_whole(body: Expr, index: Symbol) -> bool:
    """Whether the components that an index counts are kept together."""
    return any(index in q.indices and stays_whole(q) for q in site_quantities(body))


def free_side(expr: Expr, where: str) -> str | None:
    """Return the side whose site index is free in ``expr``; None if there is none.

    Raises
    ------
    DeclarationError
        If both site indices are free, or a quantity carries a foreign index.
    """
    check_slots(expr, where)
    masked = expr.xreplace({s: Dummy() for s in _outer_sums(expr)})
    outside = {slot for q in site_quantities(masked) for slot in q.site}
    for total in _outer_sums(expr):
        bound = {side_of_range(lim): lim[0] for lim in total.limits}
        for q in site_quantities(total.function):
            for slot, index in q.site.items():
                own = {lim[0] for s in total.atoms(Sum) for lim in s.limits}
                if index not in own and index == INDEX[slot] and bound.get(slot) != index:
                    outside.add(slot)
    if len(outside) > 1:
        raise DeclarationError(
            f"{expr} in {where} has both a free feature index and a free datum index.",
            "expressions of one site; the other side enters through Sum(x[mu, i]*..., (i, 1, N))",
        )
    return outside.pop() if outside else None


def _outer_sums(expr: Expr) -> list[Sum]:
    found: list[Sum] = []

    def walk(node: Any) -> None:
        if isinstance(node, Sum):
            found.append(node)
        elif isinstance(node, Average):
            return
        else:
            for arg in node.args:
                walk(arg)

    walk(expr)
    return found


def extract_fields(expr: Expr, side: str, book: FieldBook, where: str) -> Expr:
    """Replace every coupling sum in the expression of one site by prefactor * placeholder."""
    check_words(expr, where)
    replacement: dict[Expr, Expr] = {}
    for total in _outer_sums(expr):
        summed, body = site_sum(total, where)
        if summed == side:
            raise DeclarationError(
                f"{total} in {where} couples the {side} sites among themselves.",
                f"coupling sums over the {OTHER[side]} sites only (the graph is bipartite)",
                f"introduce {OTHER[side]} variables through which the {side} sites interact",
            )
        replacement[total] = _coupling_sum(body, side, book, where)
    return expr.xreplace(replacement)


def _coupling_sum(body: Expr, side: str, book: FieldBook, where: str) -> Expr:
    other = OTHER[side]
    inner = Tuple()
    if isinstance(body, Sum) and len(body.limits) == 1 and _is_whole(body.function, body.limits[0][0]):
        body, (inner,) = body.function, body.limits
    if body.has(Sum):
        raise DeclarationError(
            f"A sum inside a coupling sum stands in {where}.", "one sum over the other side at a time"
        )
    groups: dict[tuple[SiteQuantity, Expr], list[Expr]] = {}
    for term in Add.make_args(expand_mul(body)):
        couplings, prefactor, emission = [], [S.One], [S.One]
        for factor in Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, SiteQuantity) and isinstance(base.family, Coupling):
                couplings += [base] * (int(power) if isinstance(factor, Pow) and power.is_Integer else 1)
                continue
            if factor.has(Coupling):
                couplings.append(factor)
                continue
            slots = {slot for q in site_quantities(factor) for slot in q.site}
            if slots == {side, other}:
                raise DeclarationError(
                    f"The factor {factor} inside the coupling sum of {where} mixes both sides.",
                    "products of a coupling, quantities of the one site, and an emission of the other",
                )
            (prefactor if side in slots else emission).append(factor)
        if len(couplings) != 1 or not isinstance(couplings[0], SiteQuantity):
            what = "no coupling" if not couplings else f"the couplings {', '.join(map(str, couplings))}"
            states = site_quantities(term, Feature, Datum)
            raise DeclarationError(
                f"The term {term} of a sum in {where} has {what}"
                + (f"; it couples {' and '.join(map(str, states))} directly." if len(states) > 1 else "."),
                f"exactly one coupling x[{mu}, {i}] in every term, to the first power",
            )
        emitted = Mul(*emission)
        _check_linear(emitted, term, where)
        groups.setdefault((couplings[0], Mul(*prefactor)), []).append(emitted)
    return Add(*(pre * book.get(side, x, Add(*terms), inner) for (x, pre), terms in groups.items()))


def _check_linear(emitted: Expr, term: Expr, where: str) -> None:
    states = site_quantities(emitted, Feature, Datum, Field)
    marks = {state: Dummy() for state in states}
    marked = emitted.xreplace(marks)
    for mark in marks.values():
        slope = marked.diff(mark)
        if slope.has(*marks.values()):
            raise DeclarationError(
                f"The state in the term {term} of a coupling sum in {where} is not linear.",
                "emissions that are linear in the states, with quenched coefficients",
                "declare the non-linear function as a variable of its own, with an equation that defines it",
            )


__all__ = [
    "FieldBook",
    "FieldSymbol",
    "RandomField",
    "check_slots",
    "check_words",
    "expand_components",
    "extract_fields",
    "free_side",
    "parameters_of",
    "side_of_range",
    "site_sum",
]
