"""A convex problem, declared as a paper writes it: an objective, constraints, fixed averages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Add, Basic, Dummy, Equality, Expr, GreaterThan, Integer, LessThan, Mul, S, Sum
from sympy.core.relational import Relational

from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError, NotConvex
from symcavity.model.cases import by_kinks
from symcavity.model.centring import Centring, in_one_unit
from symcavity.model.convexity import check_convex, check_increasing, pulls
from symcavity.model.domains import implied, squared
from symcavity.model.emissions import Emissions
from symcavity.model.equations import DECIDED, as_list, read_fixed, read_named
from symcavity.model.exact import exact
from symcavity.model.fields import FieldBook, FieldSymbol, as_sums, extract_fields, free_kind, is_affine, site_sum
from symcavity.model.joined import join_fields
from symcavity.model.kernels import Expansion
from symcavity.model.kinds import DATUM, FEATURE, Kind, N, P, SiteCount, in_units_of_n, sorted_kinds, to_leading_order
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, Variable, families, site_quantities
from symcavity.model.ranges import declared_ranges
from symcavity.model.refusals import check_names, check_words
from symcavity.model.support import Support, free_components, surrogate


def _check_convex(expr: Expr, varying: list[Any], where: str, ranges: Sequence[Any]) -> None:
    """Refuse what is not convex; support functions are concave, and stand for themselves in the message."""
    try:
        check_convex(surrogate(expr), varying, where, ranges)
    except NotConvex:
        sets = sorted({str(node.g) for node in expr.atoms(Support)})
        if not sets:
            raise
        raise NotConvex(
            f"{where[0].upper()}{where[1:]} is not convex: {' and '.join(sets)}, a minimum of linear functions, "
            "is concave.",
            f"constraints {sets[0]}(V) >= ... with positive factors; decreasing convex functions of {sets[0]}(V), "
            f"such as Max(0, 1 - {sets[0]}(V)), in the objective",
        ) from None


@dataclass(frozen=True)
class Constraint:
    """One constraint of every site of a kind: ``expr >= 0``, or ``expr = 0``."""

    kind: Kind
    expr: Expr
    equality: bool
    declared: Any


@dataclass(frozen=True)
class SumCondition:
    """One condition on sums over all sites: ``total >= 0``, or ``total = 0``.

    Attributes
    ----------
    parts : dict
        The summand of each kind of site, with random fields as placeholders.
    shared : Expr
        What depends on no site, in proportion to N.
    met : bool
        Whether an inequality is known to hold as an equality.
    """

    parts: dict[Kind, Expr]
    shared: Expr
    equality: bool
    declared: Any
    met: bool = False

    @property
    def total(self) -> Expr:
        """The sums and what is shared, with random fields as placeholders."""
        return Add(*(Sum(body, kind.range) for kind, body in self.parts.items()), self.shared)


def _constraint_hint(relation: Any) -> str:
    """What to write in place of something that is not a constraint."""
    if isinstance(relation, Relational):
        strict = {">": ">=", "<": "<="}.get(getattr(relation, "rel_op", ""))
        return f"{relation.lhs} {strict} {relation.rhs}; the closed set has the same minimum" if strict else ""
    if isinstance(relation, Expr):
        return f"{relation} >= 0, or Eq({relation}, 0)"
    return "a relation, without quotes" if isinstance(relation, str) else ""


def _terms(expr: Expr) -> list[Expr]:
    """The terms of an expression, with its sums as they stand: an expansion would split their summands."""
    sums = {}
    for total in expr.atoms(Sum):
        sizes = [f for f in Mul.make_args(total.function) if f.free_symbols and f.free_symbols <= {N, P}]
        body = Mul(*(f for f in Mul.make_args(total.function) if f not in sizes))
        sums[total] = Mul(*sizes, Dummy()), Sum(body, *total.limits)
    back = {next(iter(mark.atoms(Dummy))): total for mark, total in sums.values()}
    marked = expr.xreplace({total: mark for total, (mark, _) in sums.items()})
    return [term.xreplace(back) for term in marked.expand(deep=False).as_ordered_terms()]


def _distributed(expr: Expr) -> Expr:
    """A common factor of several sums over sites, beside each of them."""
    terms = Add.make_args(expr)
    return Add(*_terms(expr)) if any(t.as_independent(Sum, as_Add=False)[1].is_Add for t in terms) else expr


def _in_proportion(expr: Expr) -> Expr:
    """Sums over sites that are divided by their number, and terms of their order, in proportion to it instead."""
    terms = _terms(expr)
    sums = [in_units_of_n(t.as_independent(Sum, as_Add=False)[0]) for t in terms if t.has(Sum)]
    rest = Add(*(in_units_of_n(t) for t in terms if not t.has(Sum)))
    if sums:
        small = not any((f * N).cancel().has(N) for f in sums) and not rest.has(N)
        return Add(*(N * term for term in terms)) if small else expr
    scaled = ((rest / N**power).expand() for power in (S.Zero, S.Half, S.One, Integer(2)))
    return next((N * e for e in scaled if not e.has(N)), expr)


def _range_of(term: Expr) -> str:
    """The sum that a term without one asks for."""
    kinds = sorted_kinds(kind for q in site_quantities(term, Variable) for kind in q.site) or [FEATURE]
    return f"({', '.join(map(str, kinds[-1].range))})"


def _variables(expr: Expr) -> set[Any]:
    """What varies in a site's function: states, fields, globals."""
    return {*site_quantities(expr, Variable), *expr.atoms(FieldSymbol, Global)}


class Problem:
    """A convex problem, read and validated: what :class:`symcavity.ConvexProblem` holds.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a bipartite problem of this form.
    NotConvex
        If an objective or a constraint is provably not convex.
    """

    def __init__(
        self,
        minimize: Any,
        subject_to: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        *,
        name: str = "",
        source: dict[str, str] | None = None,
        cite: str = "",
        named: Any = None,
    ) -> None:
        self.name, self.source, self.cite = name, dict(source or {}), cite
        self.named = read_named(named or {})
        self.minimize = as_sums(exact(minimize, "the objective"))
        relations = tuple(map(as_sums, as_list(subject_to, "subject_to")))
        self.ranges = declared_ranges(relations)
        self.subject_to = tuple(r for r in relations if r not in self.ranges)
        self._centre()
        self.fixed = tuple(read_fixed(as_list(fixed, "fixed")))
        self.book = FieldBook()
        self.objective: dict[Kind, Expr] = {FEATURE: S.Zero, DATUM: S.Zero}
        parts, self.global_objective = self._summed(self.minimize, "the objective")
        self.objective |= parts
        read = [self._read_constraint(c) for c in self.subject_to]
        self.constraints = tuple(c for c in read if isinstance(c, Constraint))
        self.conditions = tuple(c for c in read if isinstance(c, SumCondition))
        every = [*parts.values(), *(c.expr for c in self.constraints)]
        every += [e for c in self.conditions for e in c.parts.values()]
        self.labels = {q: self._drawn_on(q) for q in families(every, Quenched) if q.given is not None}
        self._join()
        self._check()

    def _centre(self) -> None:
        """Write means as global variables; what the user wrote is kept."""
        self.minimize = _distributed(self.minimize)
        whole = _in_proportion(self.minimize)
        self.is_mean, self.minimize = whole != self.minimize, by_kinks(whole)
        domain = implied(self.minimize, self.subject_to)
        self.subject_to = (*(in_one_unit(squared(c)) for c in self.subject_to), *domain)
        self.typed = (self.minimize, self.subject_to)
        emissions = Emissions([self.minimize, *self.subject_to], convex=True)
        self.minimize = emissions(self.minimize)
        self.subject_to = (*(emissions(c) for c in self.subject_to), *emissions.equations)
        self.written = (self.minimize, self.subject_to)
        self.kernels = Expansion([self.minimize, *(c for c in self.subject_to if isinstance(c, Basic))])
        self.minimize = self.kernels(self.minimize)
        self.subject_to = tuple(self.kernels(c) for c in self.subject_to)
        self.centring = Centring([self.minimize, *self.subject_to], emissions)
        self.minimize = self.centring(self.minimize, "the objective", objective=True)
        whole = _in_proportion(self.minimize)  # norms alone are of order one: they are global variables by now
        if whole != self.minimize:
            self.is_mean, size = True, (whole / self.minimize).cancel()
            self.written = (size * self.written[0], self.subject_to)
            self.typed = (size * self.typed[0], self.typed[1])
            self.minimize = whole
        self.subject_to = tuple(self.centring(c, f"the constraint {c}") for c in self.subject_to)
        conditions = self.centring.bounds
        self.known = tuple(c for c in conditions if not site_quantities(c, Variable, Field))
        self.subject_to += tuple(c for c in conditions if c not in self.known)
        self.centring.closed = emissions.closed = True

    def _join(self) -> None:
        """Take sums together that all laws hear as one."""
        for kind in self.kinds:
            mine = [self.objective.get(kind, S.Zero), *(c.expr for c in self.constraints if c.kind == kind)]
            mine += [c.parts[kind] for c in self.conditions if kind in c.parts]
            gone = dict.fromkeys(join_fields(self.book, kind, [*mine, *self.labels.values()]), S.Zero)
            if not gone:
                continue
            self.objective[kind] = self.objective.get(kind, S.Zero).xreplace(gone)
            self.constraints = tuple(replace(c, expr=c.expr.xreplace(gone)) for c in self.constraints)
            self.conditions = tuple(
                replace(c, parts={k: e.xreplace(gone) for k, e in c.parts.items()}) for c in self.conditions
            )

    @property
    def given(self) -> dict[Global, Any]:
        """The averages of quenched parameters, each with its condition: nothing is minimised over them."""
        return {g: c for c in self.known for g in c.atoms(Global)}

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of sites of the problem, in a fixed order."""
        found = {*self.objective, *(c.kind for c in self.constraints)}.union(*(c.parts for c in self.conditions))
        for kind in list(found):
            found |= {f.sender for f in self.book.all(kind)}
        return sorted_kinds(found)

    # -- reading ---------------------------------------------------------------------------------

    def _summed(self, expr: Expr, where: str) -> tuple[dict[Kind, Expr], Expr]:
        """Read sums over sites, each of one kind, and terms in proportion to N: the summands, and those terms."""
        check_words(expr, where)
        parts: dict[Kind, Expr] = {}
        shared: Expr = S.Zero
        objective = where == "the objective"
        for term in _terms(expr):
            factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
            if isinstance(rest, Sum):
                kind, body = site_sum(rest, where)
                if objective and not site_quantities(body, Variable, Field) and not body.has(Global):
                    raise DeclarationError(
                        f"The term {term} of {where} depends on no variable.", "terms with states or globals"
                    )
                if free_kind(body, where) not in (kind, None):
                    raise DeclarationError(
                        f"{rest} in {where} leaves an index of another kind of site free.",
                        "a sum over every site of one kind, with nested Sum(...) over another",
                    )
                factor, shared_factor = factor.as_independent(Global, as_Add=False)
                body *= shared_factor
                share = in_units_of_n(factor).cancel()
                factor = factor if share.has(N) else share
                parts[kind] = parts.get(kind, S.Zero) + factor * extract_fields(body, kind, self.book, where)
                continue
            if rest.has(SiteQuantity):
                raise DeclarationError(
                    f"The term {term} of {where} is not summed over the sites.",
                    "Sum(..., (i, 1, N)) or Sum(..., (mu, 1, P)), times constants",
                    f"Sum({term}, {_range_of(term)})",
                )
            if objective and not term.has(Global) and term != 0:
                raise DeclarationError(
                    f"The term {term} of {where} depends on no variable.", "terms with states or globals"
                )
            density = (in_units_of_n(term) / N).cancel()
            if to_leading_order(density).has(N):
                sized = term.has(SiteCount)
                what = "is not in proportion to the number of sites" if sized else "is of order one"
                raise DeclarationError(
                    f"The {'penalty' if objective else 'term'} {term} "
                    f"{'on a global variable' if objective else 'of ' + where} {what}, against sums over all sites.",
                    f"extensive {'penalties' if objective else 'terms'}, in proportion to N or P",
                    f"N*({(density if sized else term).subs(N, 1)})",
                )
            shared += term
        return parts, shared

    def _read_constraint(self, relation: Any) -> Constraint | SumCondition:
        if relation in (True, False, S.true, S.false):
            raise DeclarationError(
                f"A constraint of the problem is the constant {relation}.",
                "relations between quantities of a site",
                DECIDED,
            )
        if not isinstance(relation, GreaterThan | LessThan | Equality):
            raise DeclarationError(
                f"The constraint {relation!r} is not supported.",
                ">=, <= and Eq between quantities of one site",
                _constraint_hint(relation),
            )
        lhs = exact(relation.lhs, f"the constraint {relation}")
        rhs = exact(relation.rhs, f"the constraint {relation}")
        expr = rhs - lhs if isinstance(relation, LessThan) else lhs - rhs
        where = f"the constraint {relation}"
        check_words(expr, where)
        kind = free_kind(expr, where)
        if kind is None and not site_quantities(expr) and not expr.has(Global):
            raise DeclarationError(
                f"The constraint {relation} contains no quantity of a site.",
                "constraints on states and on global variables",
                "declare what is known of a parameter by its assumptions: Symbol('...', positive=True)",
            )
        if kind is None:
            return self._read_condition(expr, relation, where)
        body = extract_fields(expr, kind, self.book, where)
        if not site_quantities(body, Variable) and not body.has(*self._placeholders(kind)):
            raise DeclarationError(f"The constraint {relation} contains no variable.", "constraints on states")
        bare = body.xreplace(dict.fromkeys(body.atoms(Support), S.One))
        loose: dict[Any, Any] = {**free_components(body)}
        loose |= {f.components[0]: () for f in self.book.all(kind) if f.components and bare.has(f.symbol)}
        if loose:
            raise DeclarationError(
                f"The component index {', '.join(map(str, loose))} of the constraint {relation} is free.",
                "vectors in the argument of a support function, or explicit components such as u[mu, i, 1]",
                "g(Sum(u[mu, i, a]*w[i], (i, 1, N))) >= 1",
            )
        if isinstance(relation, Equality) and not self._is_affine(body, kind):
            raise NotConvex(
                f"The equality {relation} is not linear in the states.",
                "linear equalities; concave g in g >= 0",
                "the set on which a non-linear equality holds is not convex",
            )
        return Constraint(kind, body, isinstance(relation, Equality), relation)

    def _drawn_on(self, label: Quenched) -> Expr:
        """What a label is drawn on, in random fields."""
        where = f"what {label} is given on"
        (kind,) = label.slots
        if free_kind(label.given, where) != kind:
            raise DeclarationError(f"{label} is drawn on {label.given}.", f"a field of the same {kind}")
        return extract_fields(self.centring(label.given, where), kind, self.book, where)

    def _read_condition(self, expr: Expr, relation: Any, where: str) -> SumCondition:
        """Read a condition on sums over all sites, or on global variables."""
        parts, shared = self._summed(_in_proportion(expr), where)
        equality = isinstance(relation, Equality)
        if not any(_variables(e) for e in (*parts.values(), shared)):
            raise DeclarationError(f"The constraint {relation} contains no variable.", "constraints on states")
        if equality and not all(self._is_affine(body, kind) for kind, body in [*parts.items(), (FEATURE, shared)]):
            raise NotConvex(
                f"The equality {relation} is not linear in the states.",
                "linear equalities; Sum(w[i]**2, (i, 1, N)) <= N*B with convex summands",
                "fixed=[Eq(average(...), ...)] holds an average at a value without a multiplier, and solves for the "
                "load or a parameter",
            )
        met = not equality and relation in self.centring.bounds
        return SumCondition(parts, shared, equality, relation, met)

    def _is_affine(self, body: Expr, kind: Kind) -> bool:
        heard = [f.symbol for f in self.book.all(kind) if f.states()]
        return is_affine(body, [*site_quantities(body, Variable, Field), *heard, *body.atoms(Global)])

    def _placeholders(self, kind: Kind) -> list[Any]:
        return [f.symbol for f in self.book.all(kind)] or [SiteQuantity]

    def _check_convex(self, expr: Expr, varying: list[Any], where: str) -> None:
        _check_convex(expr.xreplace({g: Dummy(g.name, real=True) for g in self.given}), varying, where, self.ranges)

    def _check(self) -> None:
        stray = [
            q
            for expr in (*self.objective.values(), *(c.expr for c in self.constraints))
            for q in site_quantities(expr, Field)
        ]
        if stray:
            raise DeclarationError(
                f"The field {stray[0]} stands in an optimisation problem.",
                "states (Feature, Datum), which are minimised over",
                "write the field out, or declare the system by its equations with BipartiteSystem",
            )
        if not any(self.objective.values()) and self.global_objective == 0:
            raise DeclarationError("The objective is zero.", "sums over the sites of one kind")
        check_names([self.minimize, *(c.lhs - c.rhs for c in self.subject_to)])
        self._check_coupled()
        check_convex(self.global_objective, [], "the objective")
        self._check_bounds()
        self._check_balances()
        for kind in self.kinds:
            varying = [f.symbol for f in self.book.all(kind) if f.states()]
            self._check_convex(self.objective.get(kind, S.Zero), varying, "the objective")
            for constraint in self.constraints:
                if constraint.kind == kind and not constraint.equality:
                    self._check_convex(-constraint.expr, varying, f"the constraint {constraint.declared}")
            for condition in self.conditions:
                if kind in condition.parts and not condition.equality:
                    self._check_convex(-condition.parts[kind], varying, f"the constraint {condition.declared}")
        for condition in self.conditions:
            if not condition.equality:
                self._check_convex(-condition.shared, [], f"the constraint {condition.declared}")

    def _check_bounds(self) -> None:
        """Refuse a problem that falls with a convex average of all sites."""
        for bound in (c for c in self.centring.bounds if isinstance(c, LessThan)):
            (g,) = bound.rhs.atoms(Global)
            meaning = self.centring.meaning(g)
            for body in (*self.objective.values(), self.global_objective):
                check_increasing(body, g, meaning, "the objective", self.ranges)
            held = [(c.expr, c) for c in self.constraints] + [(c.shared, c) for c in self.conditions if not c.met]
            for body, constraint in held:
                check_increasing(-body, g, meaning, f"the constraint {constraint.declared}", self.ranges)

    def _check_balances(self) -> None:
        """Refuse sums of order sqrt(N) that nothing pulls one way: what remains of them would run away."""
        bodies = [*self.objective.values(), *(-c.expr for c in self.constraints)]
        free = {g for c in self.constraints if c.equality for g in c.expr.atoms(Global)}
        for g, balance in self.centring.balances.items():
            ways = pulls(bodies, g, self.ranges)
            if len(ways) != 1 or g in free:
                continue
            bound = (LessThan if ways == {True} else GreaterThan)(balance.total, N * balance.average, evaluate=False)
            raise DeclarationError(
                f"Sums of order sqrt(N) are held from one side alone: what remains of {balance.total} beyond "
                f"{N * balance.average} would {'fall' if ways == {True} else 'grow'} for ever.",
                "sums with a mean of order 1/sqrt(N) that are pulled both ways: by labels of both signs, an equality, "
                "a loss that grows to both sides",
                f"to leading order all of them are the one condition {bound}, which may stand in their place; or a "
                "mean of order 1/N",
            )

    def _check_coupled(self) -> None:
        """Refuse a variable that no chain of terms connects to a random field."""
        terms = [t for body in self.objective.values() for t in Add.make_args(body.expand())]
        groups = [_variables(t) for t in [*terms, *(c.expr for c in self.constraints), self.global_objective]]
        groups += [set().union(*map(_variables, (*c.parts.values(), c.shared))) for c in self.conditions]
        heard = {f.symbol for kind in self.kinds for f in self.book.all(kind)}
        reached: set[Any] = set(heard).union(*(f.states() for kind in self.kinds for f in self.book.all(kind)))
        while grown := [g for g in groups if g & reached and not g <= reached]:
            reached.update(*grown)
        loose = sorted(set().union(*groups) - reached, key=str)
        if loose and heard:
            raise DeclarationError(
                f"{loose[0]} interacts with no random field: its minimisation is a problem of its own.",
                "variables that a coupling sum, a constraint or a penalty ties to the rest",
                "leave it out, or tie it in, as in Sum(x[mu, i]*w[i], (i, 1, N)) >= 1 - xi[mu]",
            )

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        minimize, subject_to = self.typed
        lines = [f"minimise    {plain(minimize)}"]
        lines += [f"subject to  {plain(c)}" for c in subject_to]
        lines += [f"where       {r}" for r in self.ranges]
        lines += [f"fixed       {e}" for e in self.fixed]
        return "\n".join(lines)

    __repr__ = __str__
