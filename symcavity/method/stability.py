"""Stability: how far a small random change of every cavity field spreads, from kind to kind and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from sympy import Add, Expr, KroneckerDelta, Mul, S, Sum, cancel, expand_mul

from symcavity.errors import UnsupportedLaw
from symcavity.method.average import ParameterBook, field_covariance, message_response
from symcavity.method.close import over_sites
from symcavity.method.insert import second_component
from symcavity.method.naming import at_zero
from symcavity.method.respond import ORDER
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import MANY, AtStep
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site

GAINS = ("Lambda", "Gamma", "Xi", "G")  # what the gain may be called: as nothing else of the system is


@dataclass(frozen=True)
class FieldSpread:
    """One number that says how much the fields of a kind have changed.

    The changes of the fields ``first`` and ``second`` of a site have the covariance ``profile`` times this number,
    summed over all spreads of the pair.

    Attributes
    ----------
    first, second : Heard
        Two fields of one kind of site, or one field twice.
    profile : Expr
        The factor of the hearing site, in its quenched parameters.
    weight : Expr
        The factor of each sending site, with the size of its sum still to come.
    """

    first: Heard
    second: Heard
    profile: Expr
    weight: Expr

    @property
    def hearer(self) -> Kind:
        """The kind of site that hears the fields."""
        return self.first.declared.hearer

    @property
    def sender(self) -> Kind:
        """The kind of site whose emissions the fields sum."""
        return self.first.declared.sender


@dataclass(frozen=True)
class Gains:
    """What becomes of a spread of the fields after one step from kind to kind.

    Attributes
    ----------
    spreads : tuple of Spread
    matrix : tuple of tuple of Expr
        In averages of squared responses of single sites: the new spreads are this matrix times the old ones.
    there_and_back : bool
        Whether every way from a kind to itself has an even number of steps, as for features and data.
    """

    spreads: tuple[FieldSpread, ...]
    matrix: tuple[tuple[Expr, ...], ...]
    there_and_back: bool

    @property
    def product(self) -> Expr | None:
        """The gain as one expression, where a single spread goes round; None where an eigenvalue is needed."""
        if not self.spreads:
            return S.Zero
        if len(self.spreads) == 1:
            return self.matrix[0][0]
        if len(self.spreads) == 2 and self.there_and_back:
            return self.matrix[0][1] * self.matrix[1][0]
        return None

    @property
    def rounds(self) -> tuple[tuple[Expr, ...], ...]:
        """The matrix without what leads to no round: it has the same eigenvalues, and is finite in more cases."""
        places = range(len(self.matrix))
        leads = {(k, n) for n in places for k in places if self.matrix[n][k] != 0}
        for through in places:
            leads |= {(k, n) for k in places for n in places if {(k, through), (through, n)} <= leads}
        kept = {(n, k) for n, k in leads if (k, n) in leads}
        return tuple(
            tuple(e if (n, k) in kept else S.Zero for k, e in enumerate(row)) for n, row in enumerate(self.matrix)
        )


def gains(system: System, sites: Mapping[Kind, Site]) -> Gains:
    """Follow a small independent change of all cavity fields through the sites to the fields that they cause.

    A change of a field changes what its hearer emits, by the hearer's own response; the changes of many emissions
    add up in the next fields with independent couplings, so that their variances add.  Fixed disorder (quenched
    emissions) does not change.  The replica-symmetric solution is stable where the spread shrinks: the largest
    eigenvalue is below one.

    Of a vector all components change alike, and the squares of the entries of a matrix of responses add up.
    """
    heard = {kind: [h for h in site.heard if h.declared.states()] for kind, site in sites.items()}
    spreads = [
        spread
        for fields in heard.values()
        for a, b in combinations_with_replacement(fields, 2)
        for spread in _spreads(a, b)
    ]
    matrix = tuple(tuple(_gain(system, row, column) for column in spreads) for row in spreads)
    return Gains(tuple(spreads), matrix, _two_colours(spreads))


def _spreads(a: Heard, b: Heard) -> list[FieldSpread]:
    """What two fields of a site have in common: the terms of their covariance, without the emissions."""
    found: dict[Expr, Expr] = {}
    f, g = a.declared, b.declared
    for term in Add.make_args(field_covariance(a, b)):
        between = [d for d in term.atoms(KroneckerDelta) if not site_quantities(d)]  # components; others are labels
        term = term.xreplace(dict.fromkeys(between, S.One))
        for total in term.atoms(Sum):
            index = total.limits[0][0]
            emitted = (f.emission * g.emission).xreplace({f.sender.index: index, **second_component(f)})
            variance = expand_mul(cancel(total.function / emitted)) * (term / total)
            for part in Add.make_args(expand_mul(variance)):
                own = Mul(*(x for x in Mul.make_args(part) if any(S.Zero in q.indices for q in site_quantities(x))))
                rest = (part / own).xreplace({index: f.sender.index})
                profile = own.xreplace({S.Zero: f.hearer.index})
                found[profile] = found.get(profile, S.Zero) + rest
    return [FieldSpread(a, b, profile, weight) for profile, weight in found.items()]


def _gain(system: System, row: FieldSpread, column: FieldSpread) -> Expr:
    """How much of one spread of a kind's fields comes out in a spread of the fields that the kind sends to."""
    kind = row.sender
    if kind != column.hearer:
        return S.Zero

    inner = [limits for limits in (row.first.declared.inner, column.first.declared.components) if limits]

    def answer(message: Expr, h: Heard) -> Expr:
        return h.factor * message_response(system, message, h.declared)

    e, d = row.first.declared.emission, row.second.declared.emission
    g, h = column.first, column.second
    body = answer(e, g) * answer(d, h)
    if g is not h:
        body += answer(e, h) * answer(d, g)
    if len(inner) > 1:  # every component of what is sent answers to every component of the field
        other = second_component(column.first.declared)
        own = {r: SiteResponse(r.state, r.state.xreplace(other)) for r in body.atoms(SiteResponse)}
        body, inner = body.xreplace(own), [inner[0], (*other.values(), *inner[1][1:])]
    body = Sum(body, *inner) if inner else body
    book = ParameterBook()
    terms = (
        book.close(Sum(part, kind.range)) for part in Add.make_args(expand_mul(row.weight * column.profile * body))
    )
    return Add(*terms).xreplace(dict(book.meanings))


def _two_colours(spreads: list[FieldSpread]) -> bool:
    """Whether the kinds fall into two groups that hear each other only."""
    colour: dict[Kind, int] = {}
    links = [(s.hearer, s.sender) for s in spreads]
    for start in [kind for pair in links for kind in pair]:
        waiting = [] if start in colour else [(start, 0)]
        while waiting:
            kind, mark = waiting.pop()
            if colour.setdefault(kind, mark) != mark:
                return False
            for ends in links:
                if kind in ends:
                    other = ends[1 - ends.index(kind)]
                    if other not in colour:
                        waiting.append((other, 1 - mark))
                    elif colour[other] == mark:
                        return False
    return True


def stability_steps(theory: Any, make: StepMaker) -> list[Step]:
    """What the stability of the theory rests on; nothing where it is not derived."""
    try:
        found = theory.gains
    except UnsupportedLaw:
        return []
    make = make.within("Stability")
    symbols = _named(found.spreads)
    now = [AtStep(symbol, 0) for symbol in symbols]
    claims = [
        Equation(AtStep(symbol, 1), Add(*(gain * other for gain, other in zip(row, now, strict=True))))
        for symbol, row in zip(symbols, found.matrix, strict=True)
    ]
    if not any(claim.rhs != 0 for claim in claims):
        return []
    averages = {node for row in found.matrix for e in row for node in over_sites(e) if node.has(SiteResponse)}
    fields = [
        (s.first.eta, s.second.eta, at_zero(s.profile, s.hearer) * size)
        for s, size in zip(found.spreads, now, strict=True)
    ]
    fixed = any(f.emission.xreplace(dict.fromkeys(f.states(), 0)) != 0 for f in theory.system.fields)
    squared = {node: theory.observable(node) for node in sorted(averages, key=str)}
    boundless = [node for node, value in squared.items() if value.is_infinite]
    infinite = bool(boundless) and any(e.has(*boundless) for row in found.rounds for e in row)
    steps = [
        make(
            "stability.spread",
            "spread",
            claims,
            data={"fields": fields, "fixed": fixed},
            assumptions=(("independence", {}), ("linear_response", {"order": ORDER})),
            rests_on=("disorder", *(f"{kind.key}.response" for kind in theory.inserted)),
            evidence={"spreads": found.spreads, "symbols": symbols},
        ),
        make(
            "stability.average",
            "stability_average",
            [Equation(node, value) for node, value in squared.items()],
            rests_on=tuple(f"{kind.key}.solution" for kind in theory.inserted),
        ),
    ]
    product = found.product
    gain = _gain_symbol(theory.system)
    steps.append(
        make(
            "stability",
            "stability",
            [] if product is None else [Equation(gain, product)],
            data={
                "round": found.there_and_back, "gain": gain,
                "convex": theory.system.convex and not theory.system.weights,  # the minimum, and no measure
                "globals": list(theory.system.globals), "infinite": infinite,
                "lowest": any(law.weight is not None and law.weight.is_cold for law in theory.system.laws.values()),
            },
            rests_on=("stability.spread",),
            evidence={"symbols": symbols},
        )
    )
    return steps


def _gain_symbol(system: System) -> OrderParameter:
    """The symbol of the gain, of a letter that the system leaves free."""
    taken = {*system.variables, *(p.name for p in system.parameters), *(q.name for q in system.quenched)}
    return OrderParameter(next((name for name in GAINS if name not in taken), GAINS[0]), positive=True)


def _named(spreads: Sequence[FieldSpread]) -> list[OrderParameter]:
    """A symbol for each spread: of a variance positive."""
    out: list[OrderParameter] = []
    heard = dict.fromkeys(h.declared for s in spreads for h in (s.first, s.second))
    every = {kind: [f for f in heard if f.hearer == kind] for kind in {f.hearer for f in heard}}

    def named(f: RandomField) -> str:
        """As the field is called; of many the first has its number, too."""
        name = str(f.symbol).replace("_", "")
        return f"{name}1" if len(every[f.hearer]) >= MANY and not name[-1].isdigit() else name

    for s in spreads:
        fields = dict.fromkeys(named(h.declared) for h in (s.first, s.second))
        base = "_".join(["Delta", *fields])
        sign = {"positive": True} if len(fields) == 1 else {}
        count = sum(1 for known in out if known.name == base or known.name.startswith(f"{base}_"))
        out.append(OrderParameter(f"{base}_{count + 1}" if count else base, **sign))
    return out
