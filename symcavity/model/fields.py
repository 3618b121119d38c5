"""Random fields: the sums of couplings times emissions through which a site hears other sites."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sympy import Add, Expr, Mul, Piecewise, Pow, S, Sum, Symbol, Tuple, expand_mul

from symcavity.errors import DeclarationError
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE, Kind, i, mu
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.refusals import check_words
from symcavity.model.site_sums import couples_itself, is_affine, is_whole, outer_sums, site_sum, summation_index
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


def field_mark(kind: Kind) -> str:
    """The symbols of the fields that a kind of site hears; added kinds are distinguished by their index."""
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
    if isinstance(body, Sum) and len(body.limits) == 1 and is_whole(body.function, body.limits[0][0]):
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


def _check_linear(emitted: Expr, term: Expr, where: str) -> None:
    if not is_affine(emitted, site_quantities(emitted, Variable, Field)):
        raise DeclarationError(
            f"The state in the term {term} of a coupling sum in {where} is not linear.",
            "in a convex problem emissions that are linear in the states, with quenched coefficients",
            "a System, by its equations: there any function of the states of a site may be sent",
        )
