"""How a small world answers to small changes: entries of response matrices, disturbances, sets that are touched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from sympy import (
    Expr,
)

from symcavity.algebra.precision import mp
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.support import Support
from symcavity.record.symbols import (
    Perturbation,
    ResponseElement,
    Source,
)
from symcavity.witness.silent import silent

Env = Mapping[Any, int]
Key = tuple[Any, ...]
NOWHERE: Env = MappingProxyType({})


class Open(ValueError):
    """An expression holds a symbol without a value in this world."""


class Responding(ABC):
    """The part of a world that answers to small changes.

    Attributes
    ----------
    system : System
    labels : dict
        The fields that sources are told apart by, where a site hears several.
    causal : bool
        Whether what is later has no influence.
    disturbance : callable or None
        The change of a quantity in the system that has been disturbed.
    touching : tuple or None
        The value of a support function and its anchor, where a set is known.
    """

    system: Any
    labels: dict[tuple[Any, Any], str]
    causal = True
    disturbance: Callable[[Expr, Env], Any] | None = None
    touching: tuple[Any, Any] | None = None

    @abstractmethod
    def number(self, key: Key, *, positive: bool = False, state: bool = False) -> Any:
        """The value that belongs to a key."""

    @abstractmethod
    def key(self, q: SiteQuantity, env: Env) -> Key:
        """What a site quantity is known by."""

    @abstractmethod
    def index(self, index: Expr, env: Env) -> int:
        """The value of an index."""

    @abstractmethod
    def value(self, expr: Any, env: Env = NOWHERE) -> Any:
        """The value of an expression with all sums written out."""

    @abstractmethod
    def evaluate(self, expr: Any, env: Env) -> Any:
        """The value of a node."""

    def response(self, state: Key, source: Key) -> Any:
        """An entry of the response matrix: d(state)/d(source); what is later has no influence."""
        ((kind,), (_, _, label)) = source[2], source[1].partition("_")
        if (state[1], kind, int(label or 1) - 1) in self._silent:
            return mp.mpf(0)
        source, factor = self._through(source)
        timed = all(len(where) > len(slots) for _, _, slots, where in (state, source)) and self.system.time is not None
        if timed and source[3][-1] > state[3][-1] - (not self._is_instant(state, source)):
            at_once = source[3][-1] == state[3][-1]  # in continuous time, an answer that is no delta function
            if self.causal or (at_once and self.system.flowing):
                return mp.mpf(0)
        return self.number(("R", state, source)) * factor

    def _through(self, source: Key) -> tuple[Key, Any]:
        """The source of the vector that a site hears, and the factor in it of the field whose source is given."""
        ((kind,), (name, _, label)) = source[2], source[1].partition("_")
        share = self._shares[kind, int(label or 1) - 1]
        return (source, 1) if share is None else ((source[0], name, *source[2:]), self.value(share))

    @cached_property
    def _shares(self) -> dict[tuple[Any, int], Expr | None]:
        """By kind and number of a field: its factor in the vector that the site hears; None if there is none."""
        found: dict[tuple[Any, int], Expr | None] = {}
        for kind, law in self.system.laws.items():
            alone = len(law.fields) == 1 or not all(f.components for f in law.fields)
            for k, f in enumerate(law.fields):
                found[kind, k] = None
                if not alone:
                    part = law.carrier(f).lhs
                    (whole,) = (e for e in law.equations if e.lhs != part and e.difference.has(part))
                    found[kind, k] = whole.rhs.diff(part)
        return found

    @cached_property
    def _silent(self) -> frozenset[Any]:
        return silent(self.system)

    def _is_instant(self, state: Key, source: Key) -> bool:
        """Whether an equation tells a state at once what its source does."""
        ((kind,), (_, _, label)) = source[2], source[1].partition("_")
        return self._instant[state[1], kind, int(label or 1) - 1]

    @cached_property
    def _instant(self) -> dict[tuple[str, Any, int], bool]:
        motion = self.system.motion
        fields = [(kind, k, f) for kind, law in self.system.laws.items() for k, f in enumerate(law.fields)]
        return {(q.family.name, kind, k): motion.is_instant(q, f) for q in motion.updates for kind, k, f in fields}

    def site_response(self, node: SiteResponse, env: Env) -> Any:
        """The response of a site to the source in its own equation."""
        q = node.state
        ((kind, at),) = q.site.items()
        named = node.field
        label = "" if named is None else self.labels.get((named.family, named.indices[len(named.site) :]), "")
        field = self.system.laws[kind].fields[int(label or 1) - 1]
        inner = (named or q).indices[len(q.site) :] if field.components else ()
        when = () if node.time is None else (node.time,)
        source = Source(kind, label, field.components, field.time)[(at, *inner, *when)]
        return self.response(self.key(q, env), self.key(source, env))

    def response_element(self, node: ResponseElement, env: Env) -> Any:
        """An entry of a response matrix."""
        message, source = node.args
        at = self.key(source, env)
        return mp.fsum(
            self.evaluate(message.diff(q), env) * self.response(self.key(q, env), at)
            for q in site_quantities(message, Variable, Field)
        )

    def perturbation(self, node: Perturbation, env: Env) -> Any:
        """The change of a quantity in the disturbed system."""
        if self.disturbance is None:
            raise Open(f"nothing says how {node.args[0]} changes")
        return self.disturbance(node.args[0], env)


    def support(self, node: Any, env: Env) -> Any:
        """A smooth concave function of degree one: a linear one minus a norm; or a component of its gradient."""
        if self.touching is not None:
            level, anchor = self.touching
            if isinstance(node, Support):
                return mp.mpf(level)
            return mp.mpf(anchor[self.index(node.at, env) - int(self.evaluate(node.components.range[1], {}))])
        index, low, high = node.components.range
        count = int(self.evaluate(high, {})) - int(self.evaluate(low, {})) + 1
        first = int(self.evaluate(low, {}))
        V = [self.evaluate(node.body, {**env, index: first + k}) for k in range(count)]
        A = [[mp.mpf(1 + (r == c)) / (3 + abs(r - c)) for c in range(count)] for r in range(count)]
        size = mp.sqrt(mp.fsum(A[r][c] * V[r] * V[c] for r in range(count) for c in range(count)))
        if isinstance(node, Support):
            return mp.fsum((k + 2) * v for k, v in enumerate(V)) - size
        at = self.index(node.at, env) - first
        return at + 2 - mp.fsum(A[at][c] * V[c] for c in range(count)) / size
