"""The law of each kind of site as vectorized functions: residuals, slopes, emissions; nothing here is drawn yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Abs, Add, DiracDelta, Dummy, Expr, Heaviside, Max, Min, Ne, Piecewise, Pow, S, Symbol, sign, sympify
from sympy.core.function import AppliedUndef
from sympy.tensor.indexed import Indexed

from symcavity.algebra.compiled import compiled
from symcavity.errors import UnsupportedLaw
from symcavity.finite.given_values import Values, law_symbols, sized_kinds
from symcavity.finite.set_law import SetPart
from symcavity.model.averages import Expect, Force, Lowest
from symcavity.model.couplings import correlation_of
from symcavity.model.dimensions import Dimensions, dimensions
from symcavity.model.fields import RandomField
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.laws import Law
from symcavity.model.quantities import Global, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System

Args = list[Any]


class SiteExpressions:
    """An array of expressions in the variables of a site, evaluated at all sites at once.

    Parameters
    ----------
    rows : nested sequence of Expr
        The entries; the shape of the table is the shape of the nesting (one or two levels).
    shape : tuple
        That shape, which an empty nesting would not show.
    arguments : sequence of Symbol
        What the entries may depend on.
    local : set of Symbol
        The arguments that differ from site to site.
    """

    def __init__(
        self, rows: Any, shape: tuple[int, ...], arguments: Sequence[Symbol], local: set[Symbol]
    ) -> None:
        flat: list[Expr] = [sympify(e) for row in rows for e in (row if len(shape) == 2 else [row])]
        self.shape = shape
        self.where = [k for k, e in enumerate(flat) if e != 0]
        self.exprs = [flat[k] for k in self.where]
        self._entries = math.prod(shape)
        self.constant = not any(e.free_symbols & local for e in self.exprs)
        self._call = _function(arguments, self.exprs)

    def __call__(self, args: Args, size: int) -> np.ndarray:
        """Return the array of shape ``(size, *shape)``."""
        out = np.zeros((size, self._entries))
        if self.where:
            with np.errstate(all="ignore"):
                for k, value in zip(self.where, self._call(*args), strict=True):
                    out[:, k] = value
        return out.reshape((size, *self.shape))


def _function(arguments: Sequence[Symbol], exprs: list[Expr]) -> Callable[..., list[Any]]:
    stray = {a for e in exprs for a in e.atoms(Indexed, AppliedUndef)}
    if stray:
        raise UnsupportedLaw(f"{min(map(str, stray))} has no numerical meaning.", "elementary functions")
    call = compiled(arguments, exprs, cse=True)
    try:
        if exprs:
            with np.errstate(all="ignore"):
                call(*(np.full(1, 0.5),) * len(arguments))
    except (NameError, TypeError) as error:
        raise UnsupportedLaw(
            f"The law has no numerical form: {error}.",
            "elementary functions, Max, Min, Abs, sign, Piecewise, erf",
        ) from error
    return call


def slope_almost_everywhere(expr: Expr, variable: Symbol) -> Expr:
    """Return the derivative almost everywhere: a jump contributes nothing, nor does the root of what is zero."""
    slope = expr.diff(variable).replace(DiracDelta, lambda *_: S.Zero)
    roots = [p for p in slope.atoms(Pow) if isinstance(p.base, Max | Min | Abs) and p.exp.is_negative]
    return slope.xreplace({p: Piecewise((p, Ne(p.base, 0)), (S.Zero, True)) for p in roots})


def _name(q: SiteQuantity) -> str:
    """The name of a variable, with the component where it is one of a vector."""
    return f"{q.family.name}_{q.indices[-1]}" if q.family.components else str(q.family.name)


class Chained:
    """A table of derivatives whose expressions also hold what a convex set gives, by the chain rule.

    Parameters
    ----------
    table : Table
        The derivatives with g(V) and the anchor point held fixed.
    by_set : Table
        The derivatives in g(V) and the components of the anchor point.
    sets : SetPart
        Gives the derivatives of these in the variables.
    """

    constant = False

    def __init__(self, table: SiteExpressions, by_set: SiteExpressions, sets: SetPart) -> None:
        self.table, self.by_set, self.sets = table, by_set, sets

    def __call__(self, args: Args, size: int) -> np.ndarray:
        """Return the array of shape ``(size, *shape)``."""
        out = self.table(args, size)
        if self.by_set.where:
            z = np.stack(args[: self.table.shape[1]], axis=1)
            out = out + self.by_set(args, size) @ self.sets.slopes(z)
        return out


class CompiledLaw:
    """The law of one kind of site as functions of arrays.

    Attributes
    ----------
    unknowns, fields : tuple
        As in :class:`symcavity.model.system.Law`.
    heard_in : tuple of RandomField
        The fields that sum what the sites send.
    residual, slopes, hears, shared : Table
        The equations, and their derivatives in the unknowns, the fields heard and the globals.
    p, q : Table
        The two members of every complementary pair; ``p_slopes`` and so on are their derivatives.
    emission, emits : Table
        What the sites send, for each field in which they are heard, and its derivative in the unknowns.
    carrier : list of int
        For each field heard, the equation that carries it, and so carries the source.
    moving : list of int
        The fields that sum states; others sum given parameters.
    affine : bool
        Whether everything is affine in the unknowns, the fields and the globals.
    steps, heights : Table
        What decides on which side of a sign or a step a state is, and by how much equations and emissions jump there.
    sets : SetPart or None
        The convex set in the law.
    multiplying : list of int
        The unknowns that are members of pairs and multiply other unknowns: multipliers of what is not linear.
    """

    def __init__(self, law: Law, system: System, parameters: list[Symbol]) -> None:
        self.kind, self.law = law.kind, law
        self.unknowns, self.fields, self.globals = law.unknowns, law.fields, system.globals
        self.names = [_name(q) for q in law.unknowns]
        self.labels = [str(q) for q in law.unknowns]
        self.quenched: list[Quenched] = [q for q in system.quenched if q.slots == (law.kind,)]
        marks: dict[Any, Symbol] = {q: Dummy(f"z{k}", real=True) for k, q in enumerate(law.unknowns)}
        marks |= {q.at_site(): Dummy(q.name, real=True) for q in self.quenched}
        fields = [f.symbol for f in law.fields]
        self.constants = parameters
        self.sets = SetPart.read(law)
        given = [] if self.sets is None else self.sets.symbols
        marks_of_set: dict[Any, Symbol] = {} if self.sets is None else self.sets.marks
        self._quenched = [marks[q.at_site()] for q in self.quenched]
        self._marks = {**marks, **marks_of_set}
        z = [marks[q] for q in law.unknowns]
        moving = [*z, *fields, *system.globals]
        self.arguments: list[Symbol] = [*moving, *self._quenched, *parameters, *given]
        self.local = {*z, *fields, *self._quenched, *given}
        # what a thermal mean is says no equation of states
        differences = [S.Zero if e.difference.has(Expect, Force, Lowest) else e.difference for e in law.equations]
        equations = [e.xreplace(self._marks) for e in differences]
        pairs = [tuple(e.xreplace(self._marks) for e in p.pair) for p in law.pairs]
        self.heard_in = system.sent_by(law.kind)
        emissions = [f.emission.xreplace(self._marks) for f in self.heard_in]
        self.k, self.m, self.out = len(z), len(fields), len(self.heard_in)
        self.ke, self.kp = len(equations), len(pairs)
        self.moving = [m for m, f in enumerate(law.fields) if f.states()]
        self.residual = self._vector(equations)
        self.slopes, self.hears = self._chained(equations, z), self._matrix(equations, fields)
        self.shared = self._matrix(equations, list(system.globals))
        ps, qs = [p for p, _ in pairs], [q for _, q in pairs]
        self.p, self.p_slopes = self._vector(ps), self._chained(ps, z)
        self.q, self.q_slopes = self._vector(qs), self._chained(qs, z)
        self.p_shared, self.q_shared = (self._matrix(e, list(system.globals)) for e in (ps, qs))
        held = {q: [e.diff(q) for e in equations if e.has(q)] for q in z if q in (*ps, *qs)}
        self.multiplying = [
            z.index(q) for q, ways in held.items() if any(e.has(*z) for e in ways) and not any(e.has(q) for e in ways)
        ]
        self.emission, self.emits = self._vector(emissions), self._matrix(emissions, z)
        every = [*equations, *ps, *qs, *emissions]
        jumps = {a for e in every for a in e.atoms(sign, Heaviside) if a.has(*z, *(fields[m] for m in self.moving))}
        places = sorted({a.args[0] for a in jumps}, key=str)
        self.steps, self.heights = self._vector(places), self._vector([_height(every, jumps, p) for p in places])
        self.affine = self.sets is None and not jumps and all(
            not slope_almost_everywhere(e, s).has(*moving) for e in every for s in moving if e.has(s)
        )
        self.carrier = [
            next(k for k, e in enumerate(law.equations) if e.difference.has(f.symbol)) for f in law.fields
        ]

    def _vector(self, exprs: list[Expr]) -> SiteExpressions:
        return SiteExpressions(exprs, (len(exprs),), self.arguments, self.local)

    def _matrix(self, exprs: list[Expr], variables: list[Symbol]) -> SiteExpressions:
        rows = [[slope_almost_everywhere(e, s) for s in variables] for e in exprs]
        return SiteExpressions(rows, (len(exprs), len(variables)), self.arguments, self.local)

    def _chained(self, exprs: list[Expr], z: list[Symbol]) -> SiteExpressions | Chained:
        table = self._matrix(exprs, z)
        if self.sets is None:
            return table
        return Chained(table, self._matrix(exprs, self.sets.symbols), self.sets)

    def expression(self, exprs: list[Expr]) -> SiteExpressions:
        """Return further expressions in the same variables, for instance a global condition."""
        return self._vector([e.xreplace(self._marks) for e in exprs])

    def expression_slopes(self, exprs: list[Expr]) -> tuple[SiteExpressions, SiteExpressions]:
        """Return their derivatives in the unknowns and in the globals."""
        marked = [e.xreplace(self._marks) for e in exprs]
        z = [self._marks[q] for q in self.unknowns]
        return self._matrix(marked, z), self._matrix(marked, list(self.globals))


def _height(exprs: list[Expr], jumps: set[Expr], place: Expr) -> Expr:
    """By how much expressions jump where a sign or a step changes: by nothing where what it multiplies vanishes."""
    steps = [a for a in jumps if a.args[0] == place]
    above, below = dict.fromkeys(steps, S.One), {a: -S.One if isinstance(a, sign) else S.Zero for a in steps}
    return Add(*(Abs(e.xreplace(above) - e.xreplace(below)) for e in exprs if e.has(*steps)))


class CompiledSystem:
    """The laws, the global conditions and the couplings of a system, ready for arrays.

    Parameters
    ----------
    system : System
        The declared or derived system.

    Attributes
    ----------
    couplings : list of SiteQuantity
        Each coupling that is drawn, at the canonical indices of the two kinds that it joins.
    own : tuple
        Which unknowns of each kind, and which globals, are variables of the declaration and no multipliers.
    """

    def __init__(self, system: System) -> None:
        self.declared, self.globals = system, system.globals
        self.parameters: list[Symbol] = sorted(law_symbols(system), key=str)
        self.sized = sized_kinds(system)
        ratios = [kind.ratio for kind in self.sized if kind.ratio.is_Symbol]
        self.constants: list[Symbol] = [*self.parameters, *(kind.size for kind in self.sized), *ratios]
        still = system.laws if system.time is None else {}  # laws of states that move are run forward, not solved
        self.laws = {kind: CompiledLaw(law, system, self.constants) for kind, law in still.items()}
        self.couplings: list[SiteQuantity] = sorted({_drawn(f) for f in system.fields}, key=str)
        self._columns = {f: k for kind in system.kinds for k, f in enumerate(system.sent_by(kind))}
        self._places: dict[RandomField, int] = {}
        self.variances = [self._variance(x) for x in self.couplings]
        self.conditions: dict[Kind, tuple[list[int], SiteExpressions, SiteExpressions, SiteExpressions]] = {}
        for kind, law in self.laws.items():
            rows = [k for k, parts in enumerate(system.global_conditions) if kind in parts]
            sums = (system.global_conditions[k][kind] for k in rows)
            bodies = [S.Zero if body.has(Expect) else body for body in sums]  # thermal means are no equations
            self.conditions[kind] = (rows, law.expression(bodies), *law.expression_slopes(bodies))
        self.count = len(system.global_conditions)
        parts = [list(parts.values()) for parts in system.global_conditions]
        # conditions that are not linear
        self.bent = [k for k, bodies in enumerate(parts) if any(_bends(b, self.globals) for b in bodies)]
        self.partners = [-1 if g is None else system.globals.index(g) for g in system.partners]
        self.affine = all(law.affine for law in self.laws.values()) and self._affine_conditions()
        self.pairs = sum(law.kp for law in self.laws.values())
        self.own = _own_variables(system, self.laws)

    @cached_property
    def dimensions(self) -> Dimensions:
        """Which units its quantities have."""
        return dimensions(self.declared, self.parameters, self.couplings)

    def correlated(self, constants: Sequence[float]) -> list[tuple[list[int], np.ndarray]]:
        """Return the groups of couplings that are correlated, each with its matrix of coefficients."""
        numbers = dict(zip(self.constants, constants, strict=True))
        groups: list[list[int]] = []
        every = [x.family for x in self.couplings]
        for k, x in enumerate(every):
            mine = [g for g in groups if any(correlation_of(x, every[j]) != 0 for j in g)]
            groups = [*(g for g in groups if g not in mine), sorted([k, *(j for g in mine for j in g)])]

        def value(x: Any, y: Any) -> float:
            return 1.0 if x == y else float(correlation_of(x, y).subs(numbers))

        tied = [g for g in groups if len(g) > 1]
        return [(g, np.array([[value(every[a], every[b]) for b in g] for a in g])) for g in tied]

    def reciprocities(self, constants: Sequence[float]) -> list[tuple[int, float]]:
        """Return the couplings of a kind with itself that have a reciprocity, and its value."""
        numbers = dict(zip(self.constants, constants, strict=True))
        known = [(k, x.family.reciprocity) for k, x in enumerate(self.couplings)]
        return [(k, float(g.subs(numbers))) for k, g in known if g != 0]

    def place(self, f: RandomField) -> int:
        """Which of the couplings a field is heard through.

        Raises
        ------
        ValueError
            If it is none of this system.
        """
        if f not in self._places:
            self._places[f] = self.couplings.index(_drawn(f))
        return self._places[f]

    def column(self, f: RandomField) -> int:
        """Which of the emissions of its sender a field sums."""
        return self._columns[f]

    @cached_property
    def pair(self) -> dict[Kind, RandomField]:
        """Where two kinds of sites hear one field of states each, of each other, through one coupling: these fields."""
        moving = {kind: [law.fields[m] for m in law.moving] for kind, law in self.laws.items()}
        heard = {kind: fields[0] for kind, fields in moving.items() if len(fields) == 1}
        senders, places = {f.sender for f in heard.values()}, {self.place(f) for f in heard.values()}
        return heard if len(moving) == len(heard) == len(senders) == 2 and len(places) == 1 else {}

    def numbers(self, values: Values, size: Mapping[Kind, int]) -> list[float]:
        """Return the values of the constants at given sizes: parameters, sizes and ratios."""
        counts = [size[kind] for kind in self.sized]
        shares = [size[kind] / size[FEATURE] for kind in self.sized if kind.ratio.is_Symbol]
        return [*(values.parameters[s] for s in self.parameters), *counts, *shares]

    def _affine_conditions(self) -> bool:
        moving: set[Symbol] = set(self.globals)
        for law in self.laws.values():
            moving |= set(law.arguments[: law.k + law.m])
        return not any(
            e.free_symbols & moving
            for kind in self.laws
            for table in self.conditions[kind][2:]
            for e in table.exprs
        )

    def _variance(self, x: SiteQuantity) -> tuple[Expr, Callable[..., Any], list[Quenched]]:
        expr = x.family.variance
        quenched = sorted({q.family for q in expr.atoms(SiteQuantity)}, key=lambda q: q.name)
        marks = {q.at_site(): Dummy(q.name) for q in quenched}
        arguments = [*marks.values(), *self.constants]
        return expr, compiled(arguments, expr.xreplace(marks)), quenched


def _drawn(f: RandomField) -> SiteQuantity:
    """The coupling of a field at the canonical indices, in which both of its ends hear it."""
    family = f.coupling.family
    ends = [kind.index for kind in family.slots]
    if ends[0] == ends[1]:
        ends[1] = f.sender_index
    return family[(*ends, *f.coupling.indices[2:])]


def _own_variables(system: System, laws: Mapping[Kind, CompiledLaw]) -> tuple[dict[Kind, list[int]], list[int]]:
    """Return which unknowns and globals are variables of the declaration and no multipliers; without a problem, all."""
    if system.record is None:
        return {kind: list(range(law.k)) for kind, law in laws.items()}, list(range(len(system.globals)))
    problem = system.record.problem
    parts: list[Expr] = [*problem.objective.values(), problem.global_objective, *(c.expr for c in problem.constraints)]
    parts += [e for c in problem.conditions for e in (*c.parts.values(), c.shared)]
    parts += [f.emission for f in system.record.fields]
    mine = {q.family for e in parts for q in site_quantities(e, Variable)}
    shared = set().union(*(e.atoms(Global) for e in parts))
    sites = {kind: [j for j, q in enumerate(law.unknowns) if q.family in mine] for kind, law in laws.items()}
    return sites, [j for j, g in enumerate(system.globals) if g in shared]


@lru_cache(maxsize=32)
def compile_system(system: System) -> CompiledSystem:
    """Return the compiled form of a system; it is made once for each system."""
    return CompiledSystem(system)


def _bends(body: Expr, shared: Sequence[Symbol]) -> bool:
    """Whether an expression is not linear in states and in what all sites share."""
    states = [q for q in site_quantities(body) if not isinstance(q.family, Quenched)]
    unknowns = [*states, *shared]
    return any(body.diff(q).has(*unknowns) for q in unknowns)
