"""A small world: numbers for everything that is declared, at two or three sites of each kind.

Every check that writes sums out evaluates expressions here.  Nothing in this file knows a rule of the method: a
sum is a loop, a coupling an entry of a matrix, a response an entry of another one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from sympy import (
    Derivative,
    DiracDelta,
    Expr,
    KroneckerDelta,
    S,
    Sum,
    Symbol,
)

from symcavity.algebra.flow import Element, Rate
from symcavity.algebra.indexed import Unequal
from symcavity.algebra.precision import mp
from symcavity.model.averages import Average, Expect, Force, Lowest, SiteResponse
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import Kind, N, SiteCount, is_index
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.record.order_parameters import MovingParameter
from symcavity.record.symbols import CavitySymbol, ComponentSymbol, Perturbation, ResponseElement
from symcavity.witness.functions import FUNCTIONS, any_function
from symcavity.witness.responding import NOWHERE, Env, Key, Open, Responding

STEPS = 3  # times that are written out
WIDTH = 2  # components that are written out, where their number is a symbol
DIGITS = 40
CLOSE = mp.mpf(10) ** -20


class World(Responding):
    """Numbers for the quantities of a system.

    Parameters
    ----------
    system : System
        Whose kinds, components and parameters are given sizes and values.
    seed : int
        Values depend on it and on the name of what they belong to only.
    states : int, optional
        Another seed for variables and couplings; parameters and quenched quantities stay as they are.
    digits : int
        The working precision.

    Attributes
    ----------
    sizes : dict
        The number of sites of each kind, and the ratios that follow.
    given : dict
        Values by key that take the place of seeded ones.
    defined : dict
        Families whose value at a site is that of an expression.
    meanings : dict
        What symbols stand for.
    extended : Kind or None
        The kind whose sums start at the inserted site 0.
    without : tuple or None
        A kind and one of its sites, which sums leave out.
    moved : callable or None
        The change of a variable, by its key, in the system that has been disturbed.
    kink : callable or None
        The replacement of a kink with given arguments, if there is one.
    """

    def __init__(self, system: Any, seed: int, states: int | None = None, digits: int = DIGITS) -> None:
        self.system, self.seed, self.digits = system, seed, digits
        self.states = seed if states is None else states
        self.sizes: dict[Any, Any] = {N: 3}
        for place, kind in enumerate(system.kinds):
            times = 1 if system.time is None else STEPS
            self.sizes[kind.size] = max(2 if place else 3, _most_sums(system, kind) * times)
        for kind in system.kinds:
            if kind.ratio.is_Symbol:
                self.sizes[kind.ratio] = mp.mpf(self.sizes[kind.size]) / self.sizes[N]
        self.given: dict[Key, Any] = {}
        self.defined: dict[Any, Expr] = {}
        self.meanings: dict[Any, Expr] = {}
        self.extended: Kind | None = None
        self.without: tuple[Kind, int] | None = None
        self.moved: Callable[[Key], Any] | None = None
        self.kink: Callable[[type[Expr], list[Any]], Any] | None = None
        self.labels: dict[tuple[Any, Any], str] = {}
        self.seen: set[Key] | None = None
        self._numbers: dict[Key, Any] = {}
        self._positive = {q.name for q in system.quenched if q.positive}
        for f in system.fields:
            self._positive |= {q.family.name for q in site_quantities(f.coupling.family.variance, Quenched)}
        for q in {q.family for e in _everything(system) for q in site_quantities(e)}:
            self._size_components(q)

    def _size_components(self, family: Any) -> None:
        if family.components:
            size = family.components[2] - family.components[1] + 1
            for symbol in size.free_symbols:
                self.given[("symbol", symbol.name)] = mp.mpf(WIDTH - int(size.xreplace({symbol: S.Zero})))

    # -- values --------------------------------------------------------------------------------------

    def number(self, key: Key, *, positive: bool = False, state: bool = False) -> Any:
        """The value that belongs to a key."""
        if key in self.given:
            return self.given[key]
        if key not in self._numbers:
            draw = random.Random(f"{self.states if state else self.seed} {key}")  # noqa: S311 - not cryptography
            value = mp.mpf(draw.randint(100, 1900)) / draw.randint(701, 1301)
            self._numbers[key] = value if positive or draw.random() < 0.5 else -value
        return self._numbers[key]

    def key(self, q: SiteQuantity, env: Env) -> Key:
        """What a site quantity is known by: its family, whatever is known of its sign, and its indices."""
        family = q.family
        where = tuple(self.index(k, env) for k in q.args[1:])
        if isinstance(family, Coupling) and family.reciprocity == 1:
            where = (*sorted(where[:2]), *where[2:])  # it is its own transpose
        return (type(family).__name__, family.name, family.slots, where)

    def index(self, index: Expr, env: Env) -> int:
        """The value of an index."""
        if index in env:
            return env[index]
        if index.is_Integer:
            return int(index)
        if index.is_Symbol:
            raise Open(f"the index {index} is free")
        return int(self.evaluate(index, env))

    def value(self, expr: Any, env: Env = NOWHERE) -> Any:
        """The value of an expression with all sums written out, for given values of its free indices."""
        with mp.workdps(self.digits):
            return self.evaluate(S(expr), env)

    def change(self, expr: Expr, kind: Kind, env: Env = NOWHERE) -> Any:
        """What an inserted site of a kind adds: the expression with its sums over that kind longer, minus without."""
        before = self.value(expr, env)
        self.extended = kind
        try:
            return self.value(expr, env) - before
        finally:
            self.extended = None

    def evaluate(self, expr: Any, env: Env) -> Any:
        """The value of a node; the precision is set by the caller."""
        rule = _RULES.get(type(expr))
        if rule is None:
            rule = _RULES[type(expr)] = next((r for t, r in _FIRST if isinstance(expr, t)), any_function)
        return rule(self, expr, env)

    def quantity(self, q: SiteQuantity, env: Env) -> Any:
        """The value of a site quantity."""
        family = q.family
        if family in self.defined:
            where = (self.index(k, env) for k in q.indices)
            sites: dict[Any, int] = dict(zip((s.index for s in family.slots), where, strict=False))
            inner = q.indices[len(family.slots) :]
            if inner:
                sites[family.components[0]] = self.index(inner[0], env)
            if q.time is not None:
                sites[family.over] = self.index(q.time, env)
            return self.evaluate(self.defined[family], sites)
        key = self.key(q, env)
        if self.seen is not None:
            self.seen.add(key)
        if isinstance(family, Quenched):
            if family.values and key not in self.given:
                draw = random.Random(f"{self.seed} {key}")  # noqa: S311 - not cryptography
                telling = [v for v in family.values if v != 0] or family.values  # a zero hides what it multiplies
                return self.evaluate(draw.choice(telling), env)
            return self.number(key, positive=family.name in self._positive)
        if isinstance(family, Coupling):
            return self.number(key, state=True)
        value = self.number(key, state=True)
        if self.moved is not None and isinstance(family, Variable | Field):
            value = value + self.moved(key)
        return value

    def symbol(self, symbol: Symbol, env: Env) -> Any:
        """The value of a symbol: an index, a size, a parameter, or what it stands for."""
        if symbol in env:
            return mp.mpf(env[symbol])
        if symbol in self.sizes:
            return mp.mpf(self.sizes[symbol])
        if isinstance(symbol, MovingParameter):
            return self.kernel(symbol, env)
        if symbol in self.meanings:
            return self.evaluate(self.meanings[symbol], env)
        if is_index(symbol):
            raise Open(f"the index {symbol} is free")
        if isinstance(symbol, CavitySymbol):
            return self.number(self.cavity_key(symbol, env))
        key = ("symbol", symbol.name)
        if symbol.is_integer:
            return self.given.get(key, mp.mpf(2))
        value = self.number(key, positive=bool(symbol.is_nonnegative or symbol.is_nonpositive))
        return -value if symbol.is_nonpositive else value

    def kernel(self, symbol: MovingParameter, env: Env) -> Any:
        """The value of an order parameter at its times, by what it stands for."""
        for known, meaning in self.meanings.items():
            if isinstance(known, MovingParameter) and known.base == symbol.base:
                when = {t: self.index(k, env) for t, k in zip(known.times, symbol.times, strict=True)}
                return self.evaluate(meaning, {**env, **when})
        raise Open(f"nothing says what {symbol} is")

    def cavity_key(self, symbol: CavitySymbol, env: Env) -> Key:
        """What a cavity field or a self-coupling is known by, whatever is known of its sign."""
        if isinstance(symbol, ComponentSymbol):
            tag = symbol.tag.rpartition("_")[0]
            return ("cavity", symbol.base, symbol.kind, tag, tuple(self.index(k, env) for k in symbol.indices))
        return ("cavity", symbol.name)

    def total(self, total: Sum, env: Env) -> Any:
        """A sum, written out."""
        out = mp.mpf(0)
        for point in self.points(total.limits, env):
            out += self.evaluate(total.function, {**env, **point})
        return out

    def points(self, limits: Any, env: Env = NOWHERE) -> Iterator[dict[Any, int]]:
        """The values of the indices of a sum; time ends with this world."""
        ranges = []
        for index, low, high in limits:
            kind = high.kind if isinstance(high, SiteCount) else None
            if kind is not None:
                first, last = 0 if kind == self.extended else 1, self.sizes[high]
            else:
                first = int(self.evaluate(low, env))
                last = STEPS - 1 if high is S.Infinity else int(self.evaluate(high, env))
            ranges.append([(index, k) for k in range(first, last + 1) if (kind, k) != self.without])
        return (dict(chosen) for chosen in product(*ranges))

    def sites(self, kind: Kind) -> range:
        """The indices of the sites of a kind."""
        return range(1, self.sizes[kind.size] + 1)

    def force(self, node: Force, env: Env) -> Any:
        """The force on a field where the energy jumps: any function of the field."""
        return self.expectation(Expect(node), env)

    def expectation(self, node: Any, env: Env) -> Any:
        """A thermal average: here that of a state which does not fluctuate, and of some force on it."""
        rule = {f: -f.args[0] / 3 - f.args[0] ** 2 / 5 for f in node.atoms(Force)}
        return self.evaluate(node.body.xreplace(rule), env)

    def average(self, node: Average, env: Env) -> Any:
        """The average over the sites of a kind."""
        body = node.body
        found = {k for q in site_quantities(body) for k, at in q.site.items() if is_index(at)}
        found |= {k for r in body.atoms(SiteResponse) for k in r.state.site}
        (kind,) = found
        values = [self.evaluate(body, {**env, kind.index: k}) for k in self.sites(kind)]
        return mp.fsum(values) / len(values)

    def element(self) -> Any:
        """The length of a step by which integrals over time are sums, and rates are differences."""
        return self.number(("element",), positive=True)

    def rate(self, body: Any, time: Any, env: Env) -> Any:
        """A rate as a difference over a step."""
        here = self.index(time, env)
        late, early = (self.evaluate(body, {**env, time: k}) for k in (here + 1, here))
        return (late - early) / self.element()

    def density(self, node: Any, env: Env) -> Any:
        """A delta function of a difference of times: one over a step where they are equal."""
        return (self.evaluate(node.args[0], env) == 0) / self.element()


_FIRST: list[tuple[Any, Callable[..., Any]]] = [
    (SiteQuantity, World.quantity),
    (Symbol, World.symbol),
    (Sum, World.total),
    (Average, World.average),
    (Expect, World.expectation),
    (Lowest, World.expectation),
    (Force, World.force),
    (SiteResponse, World.site_response),
    (ResponseElement, World.response_element),
    (Perturbation, World.perturbation),
    (Unequal, lambda w, e, env: mp.mpf(w.index(e.args[0], env) != w.index(e.args[1], env))),
    (KroneckerDelta, lambda w, e, env: mp.mpf(w.index(e.args[0], env) == w.index(e.args[1], env))),
    (Element, lambda w, _e, _env: w.element()),
    (Rate, lambda w, e, env: w.rate(e.body, e.time, env)),
    (Derivative, lambda w, e, env: w.rate(e.expr, e.variables[0], env)),
    (DiracDelta, World.density),
    ((Support, Anchor), World.support),
    *FUNCTIONS,
]
_RULES: dict[type, Callable[..., Any]] = {}


def _most_sums(system: Any, kind: Kind) -> int:
    """The largest number of fields of one site that sum a kind's emissions by one family of couplings."""
    counts: dict[Any, int] = {}
    for f in system.fields:
        if f.sender == kind:
            counts[f.hearer, f.coupling.family] = counts.get((f.hearer, f.coupling.family), 0) + 1
    return max(counts.values(), default=0)


def _everything(system: Any) -> list[Expr]:
    """Expressions that hold every quantity of a system."""
    out = [e.difference for e in system.declared]
    out += [q for law in system.laws.values() for q in law.unknowns]
    return out + [f.coupling for f in system.fields]


def same(left: Any, right: Any) -> bool:
    """Whether two numbers agree to twenty digits, relative to the larger of them and one."""
    return bool(abs(left - right) <= CLOSE * max(1, abs(left), abs(right)))
