"""An inserted site in a small world: what it adds to the declared equations, how the others answer, what returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.witness.declared import Carrier, Declared
from symcavity.witness.moments import component_range
from symcavity.witness.world import DIGITS, NOWHERE, STEPS, Env, Key, World


class InsertedSite:
    """A site 0 of a kind, with couplings of its own, in a world with explicit response matrices.

    Parameters
    ----------
    declared : Declared
    kind : Kind
    world : World
    """

    def __init__(self, declared: Declared, kind: Kind, world: World) -> None:
        self.declared, self.kind, self.world = declared, kind, world
        self.system = declared.system
        self.only: RandomField | None = None
        self._sources: dict[Kind, list[tuple[Carrier, dict[Any, int], Key]]] = {}
        self._shifts: dict[Kind, list[tuple[Key, Any]]] = {}
        self._moves: dict[Key, Any] = {}

    # -- what the site does to the others ------------------------------------------------------------

    def shifts(self, kind: Kind) -> list[tuple[Key, Any]]:
        """What the site adds to the declared equations at the sites of a kind, by their sources."""
        if kind not in self._shifts:
            moved, self.world.moved = self.world.moved, None
            try:
                self._shifts[kind] = [
                    (source, self.world.change(row.declared.rhs, self.kind, env) * self.measure(row.field))
                    for row, env, source in self.sources(kind)
                    if self.only in (None, row.field)
                ]
            finally:
                self.world.moved = moved
        return self._shifts[kind]

    def sources(self, kind: Kind) -> list[tuple[Carrier, dict[Any, int], Key]]:
        """The declared equations at the sites of a kind that hear the site, and what their sources are known by."""
        if kind not in self._sources:
            heard = [row for row in self.declared.carriers(kind) if row.field.sender == self.kind]
            self._sources[kind] = [
                (row, env, self.world.key(row.source, env)) for row in heard for env in self.places(row)
            ]
        return self._sources[kind]

    def move(self, key: Key) -> Any:
        """How a variable changes to first order: its responses to all that the site adds to equations of its kind."""
        if len(key[2]) != 1 or key[3][0] == 0:
            return mp.mpf(0)
        if key not in self._moves:
            (kind,) = key[2]
            added = [self.world.response(key, source) * shift for source, shift in self.shifts(kind)]
            self._moves[key] = mp.fsum(added)
        return self._moves[key]

    def measure(self, f: RandomField) -> Any:
        """What a sum over the times of a source is multiplied by: the element of time, where that is continuous."""
        return self.world.element() if self.system.flowing and f.time is not None else 1

    def places(self, row: Carrier) -> Iterator[dict[Any, int]]:
        """The sites of a row, and the components of its field."""
        for at in self.world.sites(row.kind):
            for inner in self.components(row.field):
                yield {row.kind.index: at, **inner}

    def components(self, f: RandomField) -> Iterator[dict[Any, int]]:
        """The components of a vector field, or the times of one that moves; one empty choice for a scalar."""
        if f.time is not None:
            yield from ({f.time: k} for k in range(STEPS))
            return
        limits = f.components
        if not limits:
            yield {}
            return
        for k in component_range(self.world, limits):
            yield {limits[0]: k}

    def answered(self, call: Callable[[], Any]) -> Any:
        """The value of an expression in the system that has responded to the new site."""
        self.world.moved = self.move
        try:
            return call()
        finally:
            self.world.moved = None

    def disturbance(self, expr: Expr, env: Env) -> Any:
        """The change of an expression of other sites."""
        moved, self.world.moved = self.world.moved, None
        try:
            before = self.world.value(expr, env)
            return self.answered(lambda: self.world.value(expr, env)) - before
        finally:
            self.world.moved = moved

    # -- what comes back -----------------------------------------------------------------------------

    def at_zero(self, env: Env = NOWHERE) -> dict[Any, int]:
        """The canonical index of the kind at the new site."""
        return {self.kind.index: 0, **env}

    def heard(self, f: RandomField, env: Env = NOWHERE) -> Any:
        """The field of the new site by the unperturbed emissions of the others: its cavity field."""
        return self.world.value(f.as_sum, self.at_zero(env))

    def echo(self, f: RandomField, env: Env = NOWHERE) -> Any:
        """What the answers of the others add to that field."""
        with mp.workdps(DIGITS):
            return self.answered(lambda: self.heard(f, env)) - self.heard(f, env)

    def self_coupling(self, f: RandomField, g: RandomField, env: Env = NOWHERE, sent: Env = NOWHERE) -> Any:
        """What multiplies the emission of the new site into a field g, in the echo through a field f."""
        return self.self_couplings([(f, env)], g, sent)[0]

    def self_couplings(self, heard: Sequence[tuple[RandomField, Env]], g: RandomField, sent: Env = NOWHERE) -> Any:
        """The same for several fields, or places in them, as a column; the others answer once for all of them."""
        states = g.states()
        self.only = g
        try:
            with mp.workdps(DIGITS):
                if not states:
                    self.forget()
                    return self._echoes(heard) / self._emission(g, sent) / self.measure(g)
                key = self.world.key(states[0], self.at_zero(sent))
                base = self.world.number(key, state=True)
                found = []
                for value in (base, base + 1):
                    self.world.given[key] = value
                    self.forget()
                    found.append((self._echoes(heard), self._emission(g, sent)))
                self.world.given[key] = base
                (low, first), (high, second) = found
                return (high - low) / (second - first) / self.measure(g)
        finally:
            self.only = None
            self.forget()

    def _echoes(self, heard: Sequence[tuple[RandomField, Env]]) -> Any:
        return mp.matrix([self.echo(f, env) for f, env in heard])

    def _emission(self, g: RandomField, sent: Env) -> Any:
        return self.world.value(g.emission, self.at_zero(sent))

    def forget(self) -> None:
        """Forget what was computed: something has been given another value."""
        self._shifts.clear()
        self._moves.clear()

    # -- pairs of fields -----------------------------------------------------------------------------

    def ways_back(self) -> Iterator[tuple[RandomField, RandomField]]:
        """The fields that the site hears, with those that it shifts at their senders."""
        for f in self.system.laws[self.kind].fields:
            if f.states():
                yield from ((f, g) for g in self.system.fields if g.sender == self.kind and g.hearer == f.sender)

    def sent(self, g: RandomField) -> Iterator[dict[Any, int]]:
        """The components of what the site sends into a field, or its times."""
        if g.time is not None:
            yield from ({g.time: k} for k in range(STEPS))
            return
        if not g.inner:
            yield {}
            return
        for k in component_range(self.world, g.inner):
            yield {g.inner[0]: k}
