"""Random fields: the sums of couplings times emissions through which a site hears other sites."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Dummy, Expr, Mul, Piecewise, Pow, S, Sum, Symbol, Tuple, expand_mul

from symcavity.algebra.indexed import fresh_index
from symcavity.errors import DeclarationError
from symcavity.model.averages import Average
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteCount, i, is_index, kind_of_range, mu
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.refusals import check_slots, check_words
from symcavity.model.support import stays_whole
from symcavity.model.times import Time


class FieldSymbol(Symbol):
    """The placeholder of a random field in a law; never equal to a parameter of the same name."""

    __slots__ = ()


@dataclass(frozen=True)
class RandomField:
    """One random field of a kind of site: ``sum over the sender's sites of coupling * emission``.

    Attributes
    ----------
    hearer, sender : Kind
        The kind of site that hears the field, and the kind whose emissions it sums.
    coupling : SiteQuantity
        The coupling at the hearer's canonical index and at ``sender_index`` (with its component, if any).
    emission : Expr
        What a site of the sender emits: affine in its states, at the sender's canonical index.
    symbol : Symbol
        The placeholder that stands for the field in the hearer's law (for its component at the coupling's
        component index, where the field is a vector).
    inner : Tuple
        The range of a component index that is summed over as well; empty for a scalar emission.
    """

    hearer: Kind
    sender: Kind
    coupling: SiteQuantity
    emission: Expr
    symbol: Symbol
    inner: Tuple = field(default_factory=Tuple)

    @property
    def as_sum(self) -> Expr:
        """The field written out as a sum over the sender's sites."""
        return Sum(self.coupling * self.sent, *self.limits)

    @property
    def sender_index(self) -> Symbol:
        """The index that is summed over: the sender's, or a second one where a kind hears itself."""
        return summation_index(self.sender, self.hearer)

    @property
    def sent(self) -> Expr:
        """The emission at the index that is summed over."""
        return self.emission.xreplace({self.sender.index: self.sender_index})

    @property
    def limits(self) -> list[Any]:
        """The ranges of the sum: the sender's sites, and the components of a vector emission."""
        return [(self.sender_index, 1, self.sender.size), *([self.inner] if self.inner else [])]

    @property
    def turned(self) -> bool:
        """Whether the coupling is written with the sender's index first: ``x[mu, i]``, heard by i."""
        return bool(self.coupling.indices[0] != self.hearer.index)

    @property
    def components(self) -> Tuple:
        """The range of the free component index of a vector field; empty for a scalar."""
        family = self.coupling.family
        free = bool(family.components) and not self.inner and self.coupling.indices[-1].is_Symbol
        return Tuple(self.coupling.indices[-1], *family.components[1:]) if free else Tuple()

    @cached_property
    def time(self) -> Time | None:
        """The time at which it is taken; None where all that is sent keeps still."""
        return next((q.family.over for q in self.states() if q.family.over is not None), None)

    def states(self) -> list[SiteQuantity]:
        """The sender's state variables that this field hears."""
        return site_quantities(self.emission, Variable, Field)


def summation_index(sender: Kind, hearer: Kind) -> Symbol:
    """The index of a sender's sites in a sum that a hearer's site carries."""
    return sender.index if sender != hearer else fresh_index(sender.index, {sender.index})


def field_mark(kind: Kind) -> str:
    """What stands for the fields that a kind of site hears; kinds that a user adds are told apart by their index."""
    return "u" if kind == DATUM else "v" if kind == FEATURE else f"v_{kind.index}"


def field_letters(kind: Kind) -> tuple[str, ...]:
    """The letters of the fields that a kind of site hears, where they have names: no index is one of them."""
    return {DATUM: ("u",), FEATURE: ("v",)}.get(kind, ("psi", "chi", "omega"))


class FieldBook:  # noqa: PLW1641 - it grows while a declaration is read
    """Collects the random fields of a declaration, so that equal sums share one placeholder.

    Parameters
    ----------
    affine : bool
        Whether what is sent has to be linear in states.
    """

    def __init__(self, *, affine: bool = True) -> None:
        self.affine = affine
        self._fields: dict[tuple[Kind, SiteQuantity, Expr, Tuple], RandomField] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldBook) and self._fields == other._fields

    def all(self, kind: Kind) -> list[RandomField]:
        """All fields heard by a kind of site, in order of appearance."""
        return [field for field in self._fields.values() if field.hearer == kind]

    def sent_by(self, kind: Kind) -> list[RandomField]:
        """All fields that sum what a kind of site emits, in order of appearance."""
        return [field for field in self._fields.values() if field.sender == kind]

    def get(
        self, hearer: Kind, sender: Kind, coupling: SiteQuantity, emission: Expr, inner: Tuple = Tuple()  # noqa: B008
    ) -> Expr:
        """Return prefactor * placeholder for a sum, after moving site-independent factors out of it."""
        constant, emission = emission.as_independent(SiteQuantity, as_Add=False)
        if emission.is_Add:
            content = _leading(emission)
            constant, emission = constant * content, (emission / content).expand(deep=False)
        elif emission.could_extract_minus_sign():
            constant, emission = -constant, -emission
        key = (hearer, coupling, emission, inner)
        if key not in self._fields:
            mark = field_mark(hearer)
            count = len(self.all(hearer))
            name = mark if not count else f"{mark}_{count + 1}"
            self._fields[key] = RandomField(hearer, sender, coupling, emission, FieldSymbol(name, real=True), inner)
        return constant * self._fields[key].symbol

    def join(self, first: RandomField, second: RandomField, own: Expr, other: Expr) -> None:
        """Put one field in the place of two, ``own*first + other*second``; it keeps the placeholder of the first."""
        whole = replace(first, emission=(own * first.emission).expand(deep=False) + other * second.emission)
        self._fields = {
            (f.hearer, f.coupling, f.emission, f.inner): f
            for f in (whole if g == first else g for g in self._fields.values() if g != second)
        }


def _leading(emission: Expr) -> Expr:
    """The number beside the first state of what is sent: in its units what others hear is the same, however spelled."""
    states = [term for term in sorted(emission.args, key=lambda e: e.sort_key()) if site_quantities(term, Variable)]
    return abs(states[0].as_coeff_Mul()[0]) if states else emission.as_content_primitive()[0]


NO_ORDER = (
    "sites have no order, and no neighbors: short chains may be components of one site, as in "
    'Feature("w", components=(k, 1, 3)); parts of a sum are factors that are zero or one, Quenched("c", i)'
)


def kind_of_sum(limits: Tuple) -> Kind | None:
    """Return the kind of site that a summation range such as (index, 1, N) runs over; None for components.

    Raises
    ------
    DeclarationError
        If it is not the whole range, or if the index is the canonical one of another kind.
    """
    kind = kind_of_range(limits) if len(limits) == 3 else None
    if kind is None:
        return None
    index, low, size = limits
    if low != 1:
        raise DeclarationError(
            f"A sum over the sites runs over {tuple(limits)}.", f"the whole range ({index}, 1, {size})", NO_ORDER
        )
    if is_index(index) and index != kind.index:
        raise DeclarationError(
            f"A sum runs over {tuple(limits)}: {index} counts the {index.kind.sites}, "
            f"and there are {index.kind.size} of them.",
            f"({i}, 1, N) for features, ({mu}, 1, P) for data",
            f"({index}, 1, {index.kind.size})",
        )
    return kind


def _rename(body: Expr, kind: Kind, dummy: Symbol, where: str, hearer: Kind | None) -> Expr:
    """Rename the summation index to the canonical one (or to the second), refusing a doubled index."""
    canonical = kind.index
    for quantity in site_quantities(body):
        slot = next((slot for slot, index in quantity.site.items() if index == dummy and slot != kind), None)
        if slot:
            raise DeclarationError(
                f"In {where} the index {dummy} runs over the {kind.sites}, 1 to {kind.size}, "
                f"but stands in the place of a {slot} in {quantity}.",
                f"sums over features run to {FEATURE.size}, over data to {DATUM.size}",
                f"({dummy}, 1, {slot.size})",
            )
    if kind == hearer and dummy != canonical and couples_itself(body, kind):
        return body.xreplace({dummy: summation_index(kind, kind)})
    if dummy == canonical:
        return body
    if body.has(canonical):
        raise DeclarationError(
            f"In {where} the index {canonical} stands inside a sum over {dummy}, which runs over the same sites.",
            "one index of each kind in a coupling sum",
            f"write {dummy} for {canonical} inside the sum",
        )
    return body.xreplace({dummy: canonical})


def couples_itself(body: Expr, kind: Kind) -> bool:
    """Whether a coupling between the sites of one kind stands in a sum."""
    return any(q.family.slots == (kind, kind) for q in site_quantities(body, Coupling))


def site_sum(expr: Sum, where: str, hearer: Kind | None = None) -> tuple[Kind, Expr]:
    """Return the kind that a sum runs over, and the body at its canonical index.

    In the sum of a site over its own kind, ``hearer``, the body is at the second index of that kind.
    """
    site_limits = [(lim, kind_of_sum(lim)) for lim in expr.limits]
    sites = [(lim, kind) for lim, kind in site_limits if kind]
    index, low, high = expr.limits[0]
    if not sites and any(index in q.indices[len(q.family.slots) :] for q in site_quantities(expr.function)):
        raise DeclarationError(
            f"The component index {index} in {where} runs over {low}..{high}.",
            "explicit ranges of components, such as (a, 1, 2); open ranges in the argument of a support function",
        )
    linear = hearer is None and len(sites) == len(expr.limits) > 1 and expr.function.has(Coupling)
    if linear and len({kind for _, kind in sites}) == len(sites):  # SymPy writes a sum of sums as one
        limits, kind = sites[-1]
        body = _rename(Sum(expr.function, *expr.limits[:-1]), kind, limits[0], where, None)
        check_slots(body, where)
        return kind, body
    outer = next((lim for lim, kind in sites if lim[0] == kind.index), None)
    if linear and len(sites) == 2 and outer is not None and couples_itself(expr.function, sites[0][1]):
        inner = next(lim for lim in expr.limits if lim != outer)  # a quadratic form of couplings within one kind
        return sites[0][1], Sum(expr.function, inner)
    if len(sites) != 1:
        paired = len(sites) > 1 and len({kind for _, kind in sites}) == 1
        level = 'a loss of pairs compares each site with a level that all share: b = Global("b") in place of the other'
        partly = any(not kind and lim[-1].atoms(SiteCount) for lim, kind in site_limits)
        short = [lim for lim, kind in site_limits if not kind]
        moved = next((lim for lim in short if isinstance(lim[-1] - lim[1] + 1, SiteCount)), None)
        whole = f"({moved[0]}, 1, {moved[-1] - moved[1] + 1}): sites are counted from 1" if moved else ""
        own = next((str(lim[2]) for lim in expr.limits if str(lim[-1]) in ("N", "P") and lim not in dict(sites)), "")
        raise DeclarationError(
            f"{expr} in {where} runs over {' and '.join(str(tuple(lim)) for lim in expr.limits)}"
            + (f", where {own} is a symbol of your own." if own else "."),
            "sums over (i, 1, N) or (mu, 1, P), one kind of site at a time; nested Sum(...) for another",
            f"from symcavity import {own}" if own else whole or (level if paired else NO_ORDER if partly else ""),
        )
    (limits, kind) = sites[0]
    inner = [lim for lim, s in site_limits if not s]
    body = Sum(expr.function, *inner) if inner else expr.function
    body = expand_components(_rename(body, kind, limits[0], where, hearer), where)
    check_slots(body, where, *([summation_index(kind, kind)] if kind == hearer else []))
    return kind, body


def expand_components(expr: Expr, where: str) -> Expr:
    """Write out sums over component indices whose range is explicit."""
    for inner in sorted(expr.atoms(Sum), key=lambda s: (s.count_ops(), str(s))):
        ranges = [lim for lim in inner.limits if kind_of_sum(lim) is None]
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


def free_kind(expr: Expr, where: str) -> Kind | None:
    """Return the kind of site whose index is free in ``expr``; None if there is none.

    Raises
    ------
    DeclarationError
        If indices of several kinds are free, or a quantity carries a foreign index.
    """
    check_slots(expr, where)
    masked = expr.xreplace({s: Dummy() for s in outer_sums(expr)})
    outside = {kind for q in site_quantities(masked) for kind in q.site}
    for total in outer_sums(expr):
        bound = {kind_of_sum(lim): lim[0] for lim in total.limits}
        own = {lim[0] for s in total.atoms(Sum) for lim in s.limits}
        for q in site_quantities(total.function):
            for kind, index in zip(q.family.slots, q.indices, strict=False):
                if index not in own and index == kind.index and bound.get(kind) != index:
                    outside.add(kind)
    if len(outside) > 1:
        names = " and ".join(f"a free {kind} index" for kind in sorted(outside, key=str, reverse=True))
        raise DeclarationError(
            f"{expr} in {where} has both {names}.",
            "expressions of one site; other kinds enter through sums such as Sum(x[mu, i]*..., (i, 1, N))",
            "SymPy takes cases out of a sum that stands in another sum: write them by Max, Heaviside or sign, or as a "
            "quenched parameter or a state of their own"
            if expr.has(Piecewise)
            else "",
        )
    return outside.pop() if outside else None


def outer_sums(expr: Expr) -> list[Sum]:
    """The sums of an expression that stand in no other sum or average."""
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


def is_total(expr: Expr) -> bool:
    """Whether an expression is made of sums over all sites, and what does not depend on sites."""
    sums = {s: Dummy(real=True) for s in outer_sums(expr)}
    if not sums or not all(len(s.limits) == 1 and kind_of_sum(s.limits[0]) for s in sums):
        return False
    rest = expr.xreplace(sums)
    of_a_site = free_kind(expr, f"the root of {expr}") is not None or site_quantities(rest)
    return not of_a_site and is_affine(rest, sums.values())


def extract_fields(expr: Expr, kind: Kind, book: FieldBook, where: str) -> Expr:
    """Replace every coupling sum in the expression of one site by prefactor * placeholder."""
    check_words(expr, where)
    replacement: dict[Expr, Expr] = {}
    for total in outer_sums(expr):
        summed, body = site_sum(total, where, kind)
        if summed == kind and not couples_itself(body, kind):
            others = sorted({k.name for q in site_quantities(expr, Coupling) for k in q.family.slots} - {kind.name})
            raise DeclarationError(
                f"{total} in {where} couples the {kind.sites} among themselves.",
                "sums over the sites of another kind, or couplings between sites of one kind",
                f'Coupling("J", between=({kind.index}, {kind.index}))'
                + (f", or {others[0]} variables through which the {kind.sites} interact" if others else ""),
            )
        replacement[total] = _coupling_sum(body, kind, summed, book, where)
    return expr.xreplace(replacement)


def _coupling_sum(body: Expr, hearer: Kind, sender: Kind, book: FieldBook, where: str) -> Expr:
    at = summation_index(sender, hearer)
    inner = Tuple()
    if isinstance(body, Sum) and len(body.limits) == 1 and _is_whole(body.function, body.limits[0][0]):
        body, (inner,) = body.function, body.limits
    if body.has(Sum):
        raise DeclarationError(
            f"A sum inside a coupling sum stands in {where}.", "one sum over another kind of site at a time"
        )
    groups: dict[tuple[SiteQuantity, Expr], list[Expr]] = {}
    for term in Add.make_args(expand_mul(body)):
        couplings, prefactor, emission = [], [S.One], [S.One]
        for factor in Mul.make_args(unfolded(term)):
            base, power = factor.as_base_exp()
            if isinstance(base, SiteQuantity) and isinstance(base.family, Coupling):
                couplings += [base] * (int(power) if isinstance(factor, Pow) and power.is_Integer else 1)
                continue
            if factor.has(Coupling):
                couplings.append(factor)
                continue
            indices = {index for q in site_quantities(factor) for index in q.indices}
            if {hearer.index, at} <= indices:
                raise DeclarationError(
                    f"The factor {factor} inside the coupling sum of {where} mixes both sites.",
                    "products of a coupling, quantities of the one site, and an emission of the other; sin, cos, exp, "
                    "sinh and cosh of sums, such as sin(x[j] - x[i])",
                )
            (prefactor if hearer.index in indices else emission).append(factor)
        if len(couplings) != 1 or not isinstance(couplings[0], SiteQuantity):
            what = "no coupling" if not couplings else f"the couplings {', '.join(map(str, couplings))}"
            states = site_quantities(term, Variable)
            raise DeclarationError(
                f"The term {term} of a sum in {where} has {what}"
                + (f"; it couples {' and '.join(map(str, states))} directly." if len(states) > 1 else "."),
                f"exactly one coupling x[{mu}, {i}] in every term, to the first power",
            )
        emitted = Mul(*emission).xreplace({at: sender.index})
        if book.affine:
            _check_linear(emitted, term, where)
        groups.setdefault((couplings[0], Mul(*prefactor)), []).append(emitted)
    return Add(*(pre * book.get(hearer, sender, x, Add(*terms), inner) for (x, pre), terms in groups.items()))


def unfolded(term: Expr) -> Expr:
    """A product in a coupling sum with its coupling in front of the cases into which SymPy takes it within sums."""
    rule = {}
    for cases in term.atoms(Piecewise):
        couplings = {q for piece, _ in cases.args for q in site_quantities(piece, Coupling)}
        if len(couplings) == 1:
            (x,) = couplings
            pieces = [(expand_mul(piece / x), condition) for piece, condition in cases.args]
            if not any(piece.has(x) for piece, _ in pieces):
                rule[cases] = x * Piecewise(*pieces)
    return term.xreplace(rule)


def is_affine(expr: Expr, variables: Iterable[Any]) -> bool:
    """Whether an expression is linear in some variables, constants aside."""
    return _is_affine(expr, tuple(variables))


@lru_cache(maxsize=1024)
def _is_affine(expr: Expr, variables: tuple[Any, ...]) -> bool:
    """Looked up once: each run of a theory asks the same of its laws."""
    marks = {v: Dummy(real=True) for v in variables}
    marked = expr.xreplace(marks)
    return all(not marked.diff(mark).has(*marks.values()) for mark in marks.values())


def _check_linear(emitted: Expr, term: Expr, where: str) -> None:
    if not is_affine(emitted, site_quantities(emitted, Variable, Field)):
        raise DeclarationError(
            f"The state in the term {term} of a coupling sum in {where} is not linear.",
            "in a convex problem emissions that are linear in the states, with quenched coefficients",
            "a System, by its equations: there any function of the states of a site may be sent",
        )
