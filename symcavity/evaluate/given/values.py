"""The data of the numerics: the closed system of a theory (Task), and the values of a call (Given)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sympy import Expr, Sum, Symbol, sympify

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.memory import Memory
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.cancelling import Cancelling
from symcavity.evaluate.averages.compiler import Compiled, to_mpf
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.gaussian_laws import absorb
from symcavity.evaluate.averages.integrals import LAWS, Pass
from symcavity.evaluate.averages.kinks import kinks
from symcavity.evaluate.averages.quenched import MANY_SITES, SiteLaw
from symcavity.evaluate.closed_map import INTEGRALS, ClosedMap
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.own_units import SymbolUnits
from symcavity.evaluate.given.sizes import sized
from symcavity.evaluate.watch import tick
from symcavity.method.eliminate import Closed
from symcavity.method.moved import Moved
from symcavity.method.pair import Pair
from symcavity.method.recession import Side
from symcavity.method.saddle import Saddle
from symcavity.method.stability import Gains
from symcavity.model.averages import Average
from symcavity.model.dimensions import Dimensions, dimensions_of
from symcavity.model.equations import Equation
from symcavity.model.far_numbers import FarNumber
from symcavity.model.kinds import Kind, N, SiteCount
from symcavity.model.quantities import Quenched
from symcavity.sites.sets.averages import ProjectionAverage

GUARD = 12
GUARDS = (GUARD, 5 * GUARD, 25 * GUARD)  # digits beyond the requested ones, tried in turn
NEAR = 2  # powers of ten within which parameters cost no digits


@dataclass(frozen=True)
class GibbsMeasure:
    """What tells solutions of a Gibbs measure apart.

    Attributes
    ----------
    free_energy, entropy : Expr or None
        As observables; None where weights are not summed.
    is_discrete : bool
        Whether all states are discrete: their entropy is the logarithm of a number.
    is_cold : bool
        Whether the temperature is zero: only the lowest minimum has any weight.
    is_bound : bool
        Whether the free energy of one state is a lower bound of the true one.
    mirrors : callable
        Which unknowns change their sign together, between a solution and its mirror image.
    """

    free_energy: Expr | None
    entropy: Expr | None
    is_discrete: bool
    is_cold: bool
    is_bound: bool
    mirrors: Callable[[], tuple[dict[Symbol, int], ...]]


@dataclass
class Task:
    """A closed system to be solved: what the numerics need to know of a theory.

    Attributes
    ----------
    equations : sequence of Equation
        The closed equations, for the residual.
    unknowns : tuple of Symbol
        Order parameters and scaled globals.
    parameters : tuple of Symbol
        Plain parameters, in order.
    quenched : tuple of Quenched
    closed : callable
        Eliminates the order parameters, and the load alpha as well if it is called with True.
    gains : callable
        How far a small change of all fields spreads; raises UnsupportedLaw where that is not derived.
    objective : callable
        The minimum of a convex problem per feature, as an observable; raises UnsupportedLaw without one.
    variance_of_minimum : callable
        N times the variance of the minimum, or of a free energy, per feature between instances, by the kinds of sites
        whose parameters are the same in all of them; raises UnsupportedLaw likewise.
    meant : callable
        What a user may call the minimum, or the free energy of a measure: a word, and formulas.
    moved : callable
        What a small term in the objective moves; raises UnsupportedLaw likewise.
    pair : callable
        Two sites at given couplings: of an observed quantity and what varies; raises UnsupportedLaw likewise.
    words : callable
        An observable in the words of the declaration.
    units : dict
        Globals by their scaled unknowns.
    conditions : tuple
        Inequalities that the symbolic derivation assumed.
    title : str
    variances : tuple of Expr
        Variances of the couplings, which must not be negative at any site.
    ranges : tuple of Relational
        What parameters have to meet.
    responses : tuple of Symbol
        The unknowns that are responses.
    primal : tuple of Symbol
        The unknowns that are responses or moments of the states of a convex problem, and of none of its multipliers.
    kinds : tuple of Kind
        The kinds of sites.
    convex : bool
        Whether the problem is declared convex: its first admissible root is the root.
    linear : bool
        Whether all laws are linear: the states are unique, and of several roots the stable one is theirs.
    jumping : frozenset
        States of a system that is not declared convex whose law jumps with fields that answer to them.
    saddle : callable
        The coordinates in which a convex problem is a saddle, or None.
    has_margin : callable
        Whether some direction to given sides of fields has a margin, at given values; None where that is open.
    scales : callable
        What order parameters of a convex problem are where each statistic of its fields is one, at ratios of one.
    measure : GibbsMeasure or None
        What tells solutions of a Gibbs measure apart; None where states do not fluctuate.
    """

    equations: Sequence[Equation]
    unknowns: tuple[Symbol, ...]
    parameters: tuple[Symbol, ...]
    quenched: tuple[Quenched, ...]
    closed: Callable[[bool], Closed]
    gains: Callable[[], Gains]
    objective: Callable[[], Expr]
    variance_of_minimum: Callable[[Collection[Kind]], Expr]
    meant: Callable[[], tuple[Any, ...]]
    moved: Callable[[], Moved]
    pair: Callable[[Any, Any], Pair]
    words: Callable[[Any], Expr]
    units: dict[Symbol, Expr]
    conditions: tuple[Any, ...] = ()
    title: str = ""
    variances: tuple[Expr, ...] = ()
    ranges: tuple[Any, ...] = ()
    responses: tuple[Symbol, ...] = ()
    primal: tuple[Symbol, ...] = ()
    kinds: tuple[Kind, ...] = ()
    convex: bool = False
    linear: bool = False
    jumping: frozenset[Any] = frozenset()
    saddle: Callable[[], Saddle | None] = lambda: None
    has_margin: Callable[[tuple[Side, ...], Given], bool | None] = lambda *_: None
    scales: Callable[[], Mapping[Any, Expr]] = dict
    measure: GibbsMeasure | None = None
    cache: dict[tuple[Expr, str], Compiled] = field(default_factory=Memory)
    passes: dict[Any, Pass] = field(default_factory=Memory)
    watched: dict[Any, Cancelling] = field(default_factory=Memory)
    observables: dict[Any, Expr] = field(default_factory=Memory)
    maps: dict[Any, tuple[ClosedMap, ExactPass]] = field(default_factory=Memory)
    cores: dict[Any, tuple[ClosedMap, ExactPass]] = field(default_factory=Memory)
    averaged: dict[Any, tuple[Expr, ...]] = field(default_factory=Memory)
    kinks: dict[Quenched, list[Expr]] = field(default_factory=Memory)
    analytic: dict[Any, Any] = field(default_factory=Memory)  # the equations at complex parameters

    def compiled(self, expr: Expr, backend: str) -> Compiled:
        """Compile an expression, once."""
        key = (expr, backend)
        if key not in self.cache:
            self.cache[key] = Compiled(expr, backend)
        return self.cache[key]

    @cached_property
    def sides(self) -> tuple[Expr, ...]:
        """Both sides of every closed equation, in scaled unknowns, one after the other."""
        return tuple(side.xreplace(self.units) for e in self.equations for side in (e.lhs, e.rhs))

    def absorbed(self, laws: Mapping[Any, SiteLaw], exprs: tuple[Expr, ...] = ()) -> tuple[Expr, ...]:
        """The same sides, or expressions, with averages over Gaussian laws carried out.

        A rule for these averages need not see narrow kinks then.
        """
        gaussian = {q: v for law in laws.values() for q, v in law.gaussian.items()}
        key = exprs, frozenset(gaussian.items())
        if key not in self.averaged:
            self.averaged[key] = tuple(absorb(e, gaussian) for e in exprs or self.sides)
        return self.averaged[key]

    def together(self, exprs: tuple[Expr, ...], wrt: tuple[Symbol, ...] = ()) -> Pass:
        """Compile several expressions to one pass in double, once; with derivatives in some directions."""
        if (exprs, wrt) not in self.passes:
            self.passes[exprs, wrt] = Pass(exprs, wrt)
        return self.passes[exprs, wrt]

    def cancelling(self, exprs: tuple[Expr, ...], unknowns: tuple[Symbol, ...]) -> Cancelling:
        """The closed forms among expressions, watched where they are evaluated in double, once."""
        if (exprs, unknowns) not in self.watched:
            closed = {k: e for k, e in enumerate(exprs) if not e.has(*INTEGRALS)}
            self.watched[exprs, unknowns] = Cancelling(closed, unknowns)
        return self.watched[exprs, unknowns]

    @cached_property
    def sizes_used(self) -> frozenset[SiteCount]:
        """The sizes that stand in the equations themselves, and not only their ratios."""
        return frozenset().union(*(e.difference.atoms(SiteCount) for e in self.equations))

    @property
    def ratios(self) -> tuple[Symbol, ...]:
        """The numbers of sites over N that take values: alpha, and one for each further kind."""
        return tuple(kind.ratio for kind in sized(self.kinds))

    @property
    def sizes(self) -> tuple[Symbol, ...]:
        """N, and the number of sites of each other kind."""
        return (N, *(kind.size for kind in sized(self.kinds)))

    @cached_property
    def eliminated(self) -> Closed:
        """The system with the order parameters eliminated."""
        return self.closed(False)

    @cached_property
    def with_load(self) -> Closed:
        """The system with the load alpha eliminated as well."""
        return self.closed(True)

    def closed_map(self, given: Given) -> tuple[ClosedMap, ExactPass]:
        """The closed equations as a map, in scaled unknowns, in double and exactly; Gaussian laws are averaged.

        Parameters that are sought are unknowns like others, and the conditions that fix them equations like others.
        """
        sides = self.absorbed(given.laws)
        if (sides, given.solve_for) not in self.maps:
            unknowns = (*self.unknowns, *given.solve_for)
            found = ClosedMap(list(map(Equation, sides[::2], sides[1::2])), unknowns, self.responses)
            self.maps[sides, given.solve_for] = found, ExactPass(found.exprs)
        return self.maps[sides, given.solve_for]

    @cached_property
    def is_numerical(self) -> bool:
        """Whether the equations hold averages without a closed form."""
        return any(e.difference.has(GaussianAverage, ImplicitAverage) for e in self.equations)

    @cached_property
    def is_projected(self) -> bool:
        """Whether the equations hold averages over projections, which may be sampled."""
        return any(e.difference.has(ProjectionAverage) for e in self.equations)

    def kinks_at(self, family: Quenched, exact: Mapping[Symbol, Any]) -> tuple[Expr, ...]:
        """The values of a quenched parameter at which averages are not smooth, as far as parameters fix them."""
        if family not in self.kinks:
            bodies = [node.args[0] for e in self.sides for node in e.atoms(Average, Sum)]
            self.kinks[family] = kinks(sorted(bodies, key=str), family)
        found = {e.xreplace({s: sympify(v) for s, v in exact.items()}) for e in self.kinks[family]}
        return tuple(sorted((e for e in found if e.is_number and e.is_finite and e.is_real), key=float))

    @cached_property
    def dimensions(self) -> Dimensions:
        """Which units the symbols of the closed equations have."""
        tick("units")
        quenched = [q.at_site() for q in self.quenched if q.given is None and q.low is None]
        differences = [a - b for a, b in zip(self.sides[::2], self.sides[1::2], strict=True)]
        return dimensions_of([*differences, *self.conditions], [*self.unknowns, *self.parameters, *quenched])

    @property
    def excess(self) -> int:
        """How many of alpha and the parameters follow from the others."""
        return len(self.equations) - len(self.unknowns)


@dataclass
class Given:
    """Values, read and checked.

    Attributes
    ----------
    exact : dict
        Values of parameters, load and sizes.
    laws : dict
        The joint law of the quenched parameters of each side.
    solve_for : tuple of Symbol
        Which of alpha and the parameters are unknown.
    dps : int
    double : bool
        Whether double precision was asked for, whatever the problem.
    units : Units or None
        The units of these values, if they are not the declared ones.
    declared : Given or None
        The same in the declared units, then.
    """

    exact: dict[Symbol, Any]
    laws: dict[Kind, SiteLaw]
    solve_for: tuple[Symbol, ...]
    dps: int
    double: bool = False
    units: SymbolUnits | None = None
    declared: Given | None = None

    def in_own_units(self, task: Task) -> Given:
        """The same in the units in which they are of order one; as they are where there are none."""
        if self.units is not None or not task.dimensions.count:
            return self
        units = SymbolUnits(task.dimensions, self.exact, self.laws)
        if units.trivial:
            return self
        laws = {kind: units.law(law) for kind, law in self.laws.items()}
        return replace(self, exact=units.inward(self.exact), laws=laws, units=units, declared=self)

    @property
    def told(self) -> dict[Symbol, Any]:
        """The values that a user gave, without the numbers of the declaration."""
        return {k: v for k, v in self.as_declared.exact.items() if not isinstance(k, FarNumber)}

    @property
    def as_declared(self) -> Given:
        """The values as they were given."""
        return self.declared or self

    def outward(self, point: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
        """Unknowns in the declared units."""
        return dict(point) if self.units is None else self.units.outward(point)

    def inward(self, point: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
        """Unknowns in the units of these values."""
        return dict(point) if self.units is None else self.units.inward(point)

    def environment(self, backend: str) -> dict[Any, Any]:
        """Return the values for compiled expressions of a backend."""
        convert = float if backend == "numpy" else to_mpf
        return {LAWS: self.laws, **{k: convert(v) for k, v in self.exact.items()}}

    @property
    def at_edge(self) -> bool:
        """Whether a parameter is zero: equations may be undefined there, and hold as limits."""
        return any(v == 0 for v in self.exact.values())

    @property
    def guards(self) -> tuple[int, ...]:
        """Guard digits beyond the requested ones, tried in turn: powers of a far parameter may cancel."""
        far = [v for k, v in self.exact.items() if v != 0 and not isinstance(k, SiteCount)]  # counts stand in ratios
        sizes = (abs(mp.log10(abs(to_mpf(v)))) for v in far)
        lost = max(0, int(4 * (max(sizes, default=0) - NEAR)))
        return tuple(guard + lost for guard in GUARDS)

    @property
    def sites(self) -> int:
        """The largest number of quenched points on a side."""
        return max((law.count for law in self.laws.values()), default=1)

    def is_quick(self, task: Task) -> bool:
        """Whether double precision serves: few digits, and many sites or numerical averages."""
        if self.double:
            return True
        if self.dps > IN_DOUBLE:
            return False
        return self.is_ruled(task) or self.sites > MANY_SITES

    def is_ruled(self, task: Task) -> bool:
        """Whether anything is integrated: over fields without a closed form, or over continuous laws."""
        return task.is_numerical or any(law.continuous for law in self.laws.values())
