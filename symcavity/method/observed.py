"""The record of how observables scatter between instances: source, move, close, coincide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Add, Expr, S, Symbol

from symcavity.method.fluctuation_steps import share_step
from symcavity.method.fluctuations import check_minimum
from symcavity.method.moved import Moved, Parts, mean, moved_of
from symcavity.method.naming import at_zero
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.names import fresh_name
from symcavity.model.quantities import SiteQuantity, Variable
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter

SECTION = "How observables scatter between instances"


@dataclass(frozen=True)
class Source:
    """An observable that is added to the objective, times the number of features and a small strength.

    Attributes
    ----------
    key : str or Expr
        The observable, as it was asked for.
    expr : Expr
        As it is made of averages.
    strength : OrderParameter
    parts : Parts
    own : dict
        The name of what a site of each kind has of it.
    added : dict
        The name of what the source adds to the minimum of a site of each kind.
    changes : dict
        The derivative of each number that moves in the strength, by a name.
    mixed : dict
        The name of the mixed derivative by each overlap of two copies and the strength.
    """

    key: Any
    expr: Expr
    strength: OrderParameter
    parts: Parts
    own: dict[Kind, SiteQuantity]
    added: dict[Kind, SiteQuantity]
    changes: dict[Symbol, OrderParameter]
    mixed: dict[Symbol, OrderParameter]


@dataclass(frozen=True)
class Observed:
    """The covariance of two observables between instances, as formulas.

    Attributes
    ----------
    theory : Theory
    sources : tuple of Source
        One for a variance, two for a covariance.
    moved : Moved
    turned : dict
        The derivative of each overlap of two copies in the strength of a source of one of them, by a name.
    symbol : OrderParameter
        The covariance.
    names : dict
        What has a name in the record: curvatures in given emissions, and averages that are order parameters.
    """

    theory: Theory
    sources: tuple[Source, ...]
    moved: Moved
    turned: dict[Symbol, OrderParameter]
    symbol: OrderParameter
    names: dict[Expr, Symbol]

    def owned(self, source: Source) -> list[Equation]:
        """What a site of each kind has of an observable."""
        return [Equation(name, source.parts.of(kind).xreplace(self.names)) for kind, name in source.own.items()]

    def additions(self, source: Source) -> list[Equation]:
        """What a source adds to the minimum of a site of each kind."""
        found = self.moved.found
        out = []
        for kind, name in source.added.items():
            moves = [source.changes[s] * found.moves(kind, s).xreplace(self.names) for s in found.unknowns]
            out.append(Equation(name, source.own.get(kind, S.Zero) + Add(*moves)))
        return out

    def closed(self, source: Source) -> list[Equation]:
        """The linear equations of what moves."""
        out = []
        for m in self.moved.found.moved:
            value = self.moved.answer(m, source.added.get(m.kind, S.Zero)) + self.moved.carried(m, source.changes)
            out.append(Equation(source.changes[m.symbol], value.xreplace(self.names)))
        return out

    def overlaps(self) -> list[Equation]:
        """The linear equations of the overlaps of two copies, of which one has a source."""
        source, squares = self.sources[-1], self.moved.squares
        exchanged, out = self.moved.found.copies.turned, []
        for m in squares:
            bent = [self.moved.curvature(m, n) * self.turned[n] for n in squares]
            out.append(Equation(Add(*bent).xreplace(self.names), -source.mixed[exchanged[m]]))
        return out

    def mixtures(self, source: Source) -> list[Equation]:
        """The mixed derivatives by overlaps of two copies, and the strength of a source of one of them."""
        out = []
        for symbol, name in source.mixed.items():
            pushes = [self.moved.pushed(symbol, kind, g) for kind, g in source.added.items()]
            value = Add(*pushes, self.moved.turned(symbol, source.changes))
            out.append(Equation(name, value.xreplace(self.names)))
        return out

    @property
    def equation(self) -> Equation:
        """The covariance of the two observables, times N."""
        one, other = self.sources[0], self.sources[-1]
        terms = []
        for kind, g in one.added.items():
            h = other.added[kind]
            terms += [self.moved.found.shares[kind] * e for e in (mean(g * h), -mean(g) * mean(h))]
        terms += [name * self.turned[symbol] for symbol, name in one.mixed.items()]
        terms.append(self.moved.tilted(one.changes, other.changes))
        for source, second in ((one, other), (other, one)):
            terms += [self.moved.pulled(second.changes, kind, g) for kind, g in source.added.items()]
        return Equation(self.symbol, Add(*terms).xreplace(self.names))


def observed_of(theory: Theory, keys: Sequence[Any]) -> Observed:
    """How observables scatter: one, or two together.

    Raises
    ------
    UnsupportedLaw
        As :func:`symcavity.method.perturbed.perturbed` and :func:`symcavity.method.moved.parts_of`.
    """
    check_minimum(theory)
    moved = moved_of(theory)
    taken = {*map(str, theory.system.parameters), *theory.system.variables, *map(str, theory.scaled_unknowns)}
    taken |= {q.name for q in theory.system.quenched}
    bends = [m.symbol for m in moved.found.moved if m.symbol in moved.found.bends]
    names: dict[Expr, Symbol] = {meaning: s for s, meaning in theory.order_parameters.items()}
    names |= {s: OrderParameter(fresh_name(taken, s.name if len(bends) > 1 else "K")) for s in bends}
    marks = [""] if len(keys) == 1 else [f"_{k}" for k in range(1, len(keys) + 1)]
    sources = tuple(_source(moved, key, mark, taken, names) for key, mark in zip(keys, marks, strict=True))
    turned = {s: OrderParameter(fresh_name(taken, f"y_{s}")) for s in moved.squares}
    return Observed(theory, sources, moved, turned, OrderParameter(fresh_name(taken, "V")), names)


def _source(moved: Moved, key: Any, mark: str, taken: set[str], names: dict[Expr, Symbol]) -> Source:
    parts, found = moved.parts(key), moved.found

    def named(letter: str) -> OrderParameter:
        return OrderParameter(fresh_name(taken, letter + mark))

    def at(letter: str, kinds: Sequence[Kind]) -> dict[Kind, SiteQuantity]:
        name = fresh_name(taken, letter + mark)
        return {kind: Variable(name, kind.index).at_site() for kind in kinds}

    strength = named("p")
    own = at("o", [kind for kind in found.sites if kind in parts.sites])
    moves = {kind: any(found.moves(kind, s) != 0 for s in found.unknowns) for kind in found.sites}
    added = at("G", [kind for kind in found.sites if kind in own or moves[kind]])
    changes = {s: named(f"d{names.get(s, s)}") for s in found.unknowns}
    mixed = {s: named(f"a_{s}") for s in moved.squares}
    return Source(key, moved.read(key), strength, parts, own, added, changes, mixed)


def observed_steps(found: Observed) -> list[Step]:
    """What follows of two copies with a source each, after the record of the theory."""
    theory, sources = found.theory, found.sources
    make = StepMaker(theory.system.source, theory.is_naive, SECTION)
    quenched = [q.at_site() for q in theory.system.quenched]
    shared = list(found.moved.found.shared)

    steps = [
        share_step(theory, make, "observed.share"),
        make(
            "observed.source",
            "observed_source",
            [_zeroed(e) for source in sources for e in found.owned(source)],
            data={
                "rows": [{"strength": source.strength, "observable": source.expr} for source in sources],
                "strengths": [source.strength for source in sources],
                "several": len(sources) > 1,
            },
            rests_on=("observed.share",),
        ),
        make(
            "observed.added",
            "observed_added",
            [_zeroed(e) for source in sources for e in found.additions(source)],
            data={
                "changes": [source.changes[s] for source in sources for s in found.moved.found.unknowns],
                "globals": shared,
                "bends": [found.names[s] for s in found.moved.found.bends],
            },
            assumptions=(("independence", {}),),
            rests_on=("observed.source", *(f"{kind.key}.effective_law" for kind in theory.inserted)),
        ),
        make(
            "observed.close",
            "observed_closed",
            [e for source in sources for e in found.closed(source)],
            data={"globals": shared, "sums": [_stationary(found, source) for source in sources] if shared else []},
            rests_on=("observed.added",),
        ),
        make(
            "observed.coincide",
            "observed_coincide",
            [e for source in sources for e in found.mixtures(source)] + found.overlaps() + [found.equation],
            data={
                "variance": len(sources) == 1,
                "quenched": quenched,
                "mixed": [name for source in sources for name in source.mixed.values()],
                "turned": list(found.turned.values()),
            },
            assumptions=(("self_averaging", {}),),
            rests_on=("observed.added", "observed.close"),
        ),
    ]
    return [replace(step, evidence={"theory": theory, "observed": found}) for step in steps]


def _stationary(found: Observed, source: Source) -> Expr:
    """What stays stationary in variables that all sites share."""
    return Add(*(found.moved.found.shares[kind] * mean(g) for kind, g in source.added.items()))


def _zeroed(equation: Equation) -> Equation:
    """The equation of the inserted site."""
    (kind,) = equation.lhs.site
    return at_zero(equation, kind)
