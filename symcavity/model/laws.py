"""The law of the sites of one kind, and how it is read: every field stands linearly in one of its equations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from sympy import Expr, S, Symbol, oo

from symcavity.errors import DeclarationError
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.fields import FieldBook, RandomField, field_letters
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.support import VectorField, free_components, stays_whole
from symcavity.model.times import Time


@dataclass(frozen=True)
class Weight:
    """The Gibbs weight ``exp(-beta*energy)`` of a site without its fields.

    Attributes
    ----------
    beta : Expr
        The inverse temperature.
    energy : Expr
        In the state and the quenched parameters of the site.
    state : Expr
        What fluctuates and is heard: a variable of the site, a product of several, or the field that it hears.
    mean : SiteQuantity
        The variable of the law that is a thermal mean: of the state, or of the force ``-d(energy)/d(state)``.
    is_field : bool
        Whether the state is a field that the site hears.
    cold : Law or None
        The law of the minimum, at zero temperature; None where averages are sums over all states.
    told : mapping
        What each kind of site sends at zero temperature, by what it sends at this one.
    bounds : tuple of Expr
        What is not negative where there is any weight.
    is_local : bool
        At zero temperature: whether a site follows the minimum that it has without feedback, not the lowest one.
    others : tuple of (SiteQuantity, SiteQuantity)
        Of an energy that is a square in several fields: those beside ``state``, each with the mean force on it.
    beside : tuple of SiteQuantity
        Discrete states of a site that weighs a field: no other site hears them.
    """

    beta: Expr
    energy: Expr
    state: Any
    mean: SiteQuantity
    is_field: bool
    cold: Law | None = None
    told: Mapping[Expr, Expr] = field(default_factory=dict)
    bounds: tuple[Expr, ...] = ()
    is_local: bool = False
    others: tuple[tuple[SiteQuantity, SiteQuantity], ...] = ()
    beside: tuple[SiteQuantity, ...] = ()

    def choices(self) -> list[dict[SiteQuantity, Expr]]:
        """All values that the discrete states beside a field have together; one of nothing without any."""
        rows = product(*(q.family.values for q in self.beside))
        return [dict(zip(self.beside, row, strict=True)) for row in rows]

    @property
    def forces(self) -> tuple[tuple[SiteQuantity, SiteQuantity], ...]:
        """The fields that it weighs, each with the variable that is the mean force on it."""
        return ((self.state, self.mean), *self.others) if self.is_field else ()

    @property
    def is_cold(self) -> bool:
        """Whether only the state of lowest energy has any weight."""
        return bool(self.beta == oo)

    @property
    def states(self) -> list[SiteQuantity]:
        """The quantities that fluctuate."""
        if self.is_field:
            return [*(field for field, _ in self.forces), *self.beside]
        found = (site_quantities(e, Variable) for e in (self.state, self.energy, *self.bounds))
        return sorted({q for own in found for q in own}, key=str)

    def where(self, changed: Callable[[Any], Any]) -> Weight:
        """The same weight, with a function applied to all that it holds."""
        law, bounds = self.cold, tuple(map(changed, self.bounds))
        if law is None:
            others = tuple((changed(field), force) for field, force in self.others)
            return replace(
                self, energy=changed(self.energy), state=changed(self.state), bounds=bounds, others=others
            )
        equations = tuple(Equation(changed(e.lhs), changed(e.rhs)) for e in law.equations)
        fields = tuple(replace(f, emission=changed(f.emission)) for f in law.fields)
        cold = replace(law, equations=equations, pairs=tuple(map(changed, law.pairs)), fields=fields)
        told = {changed(warm): changed(was) for warm, was in self.told.items()}
        return replace(self, energy=changed(self.energy), cold=cold, told=told)


@dataclass(frozen=True)
class Collective:
    """What a Gibbs measure holds that belongs to no site.

    Attributes
    ----------
    energy : Expr
        In global variables, with multipliers of conditions on sums over sites.
    multipliers : mapping
        By multiplier the :class:`SumCondition` that it belongs to.
    """

    energy: Expr = S.Zero
    multipliers: Mapping[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Law:
    """The law of one kind of site: what fixes its states, given its random fields.

    Attributes
    ----------
    kind : Kind
    unknowns : tuple of SiteQuantity
        The variables of a site, at the canonical index.
    equations : tuple of Equation
        They contain the placeholders of the random fields; each placeholder stands in one equation,
        linearly, and that equation carries the source.
    pairs : tuple of Complementary
        Complementarity conditions.
    fields : tuple of RandomField
        The random fields that a site hears.
    weight : Weight or None
        Of a site at a temperature: what its thermal averages are taken over.
    """

    kind: Kind
    unknowns: tuple[SiteQuantity, ...]
    equations: tuple[Equation, ...]
    pairs: tuple[Complementary, ...]
    fields: tuple[RandomField, ...]
    weight: Weight | None = None

    @property
    def index(self) -> Symbol:
        """The canonical site index."""
        return self.kind.index

    @property
    def time(self) -> Time | None:
        """The time over which its states move; None where all keep still."""
        return next((q.family.over for q in self.unknowns if q.family.over is not None), None)

    def carrier(self, random_field: RandomField) -> Equation:
        """The equation in which a random field stands (and which therefore carries a source)."""
        return next(e for e in self.equations if e.difference.has(random_field.symbol))

    def coefficient(self, random_field: RandomField) -> Expr:
        """The factor of the field on the right-hand side of its equation."""
        return self.carrier(random_field).rhs.diff(random_field.symbol)

    def quenched(self) -> list[Any]:
        """The families of quenched parameters in this law and in its statistics."""
        exprs = [e.difference for e in self.equations] + [q for p in self.pairs for q in p.pair]
        exprs += [e for f in self.fields for e in f.coupling.family.moments]
        exprs += [] if self.weight is None else [self.weight.energy, *self.weight.bounds]
        return [q for q in families(exprs, Quenched) if q.slots == (self.kind,)]

    def weighed(self, weight: Weight | None) -> Law:
        """The law of thermal means over a weight: states that are summed over are no unknowns of it."""
        summed = weight is not None and weight.cold is None and not weight.is_cold
        over = [] if weight is None or not summed else weight.beside if weight.is_field else weight.states
        return replace(self, weight=weight, unknowns=tuple(q for q in self.unknowns if q not in over))

    def written(self) -> list[Equation]:
        """The equations with their random fields written out as sums."""
        rule = {f.symbol: f.as_sum for f in self.fields}
        return [e.xreplace(rule) for e in self.equations]


def weighed_field(law: Law, name: SiteQuantity) -> RandomField:
    """The field of states that stands under a name in the weight of a site."""
    fields = [f for f in law.fields if f.states()]
    return next((f for f in fields if law.carrier(f).lhs.has(name)), fields[0])


def componentwise(equations: Iterable[Equation]) -> list[Equation]:
    """Write an equation with a free component index once for each value of the index."""
    out = []
    for equation in equations:
        whole = {q.indices[-1] for q in site_quantities(equation.difference) if stays_whole(q)}
        rows = [equation]
        for index, (low, high) in sorted(free_components(equation.difference).items(), key=lambda item: item[0].name):
            if index in whole:
                continue
            if not (low.is_Integer and high.is_Integer):
                raise DeclarationError(
                    f"The component index {index} runs over {low}..{high}.", "explicit ranges, such as (a, 1, 2)"
                )
            rows = [row.xreplace({index: low + k}) for row in rows for k in range(int(high - low) + 1)]
        out += rows
    return out


def pair_components(pair: Complementary) -> list[Complementary]:
    """Write a pair with a free component index once for each value of the index."""
    rows = componentwise([Equation(*pair.pair)])
    return [Complementary(row.lhs, row.rhs) for row in rows]


def read_law(
    kind: Kind,
    site: dict[Kind, list[Equation]],
    pairs: dict[Kind, list[Complementary]],
    book: FieldBook,
    taken: set[str],
) -> Law:
    """Bring the law of a kind of site to the form in which every field stands linearly in one equation."""
    equations = list(site.get(kind, ()))
    own = pairs.get(kind, [])
    fields = book.all(kind)
    named: dict[Symbol, SiteQuantity] = {}
    for f in fields:
        users = [e for e in equations if e.difference.has(f.symbol)]
        in_pairs = any(q.has(f.symbol) for p in own for q in p.pair)
        if len(users) == 1 and not in_pairs and _carries(users[0], f.symbol, fields):
            continue
        word, moving = (VectorField, {}) if f.components else (Field, {"over": f.time} if f.time else {})
        family = word(fresh_name(taken, *field_letters(kind)), tuple(f.components) or None, kind.index, **moving)
        named[f.symbol] = family.at_site()
    equations = [e.xreplace(named) for e in equations]
    equations += [Equation(q, symbol) for symbol, q in named.items()]
    conditions = tuple(Complementary(*(q.xreplace(named) for q in p.pair)) for p in own)
    exprs = [e.difference for e in equations] + [q for p in conditions for q in p.pair]
    exprs += [f.emission for f in book.sent_by(kind)]
    unknowns = [q.now for expr in exprs for q in site_quantities(expr, Variable, Field) if kind in q.site]
    ordered = tuple(dict.fromkeys(unknowns))
    return Law(kind, ordered, tuple(equations), conditions, tuple(fields))


def _carries(equation: Equation, symbol: Symbol, fields: Sequence[RandomField]) -> bool:
    """Whether the equation can carry the source of a field: it stands alone and linearly on the right."""
    others = [f.symbol for f in fields if f.symbol != symbol]
    if equation.lhs.has(symbol) or (others and equation.difference.has(*others)):
        return False
    slope = equation.rhs.diff(symbol)
    moving = any(q.time is not None for q in site_quantities(slope))  # the factor of a field keeps still
    bent = slope == 0 or slope.has(symbol)  # a step has no slope, but where it jumps
    return not bent and not moving and not site_quantities(slope, Variable, Field)
