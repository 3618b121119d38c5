"""The declared problem in a small world: what is minimized, and subject to what, as functions of finitely many numbers.

Slopes are difference quotients; a point is one choice of states and couplings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sympy import Abs, Equality, Expr, Integer, LessThan, Max, Min, Pow, S

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.support import VectorField
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.moments import free_points
from symcavity.witness.world import Env, Key, World, same

STEP = mp.mpf(10) ** -20
PRECISION = 70
POINTS = 5


class Optimality:
    """The Lagrangian of a declared problem in a small world, and what follows from it.

    Parameters
    ----------
    theory : Theory
        Of a system that came from a problem.
    states : int
        The seed of the states and couplings; parameters are the same for all.
    """

    def __init__(self, theory: Any, states: int) -> None:
        self.theory, self.record, self.problem = theory, theory.system.record, theory.system.record.problem
        self.declared, self.states = declared_of(theory), states
        self.world: World = self.declared.world(5, states, PRECISION)
        self.sums = {f.symbol: f.as_sum for f in self.record.fields}
        self.kinks = self._kinks()
        self._messages: dict[Any, Any] = {}
        for row in (r for rows in self.declared.rows.values() for r in rows):
            lhs = row.declared.lhs
            is_field = isinstance(lhs, SiteQuantity) and isinstance(lhs.family, Field)
            whole = is_field and isinstance(lhs.family, VectorField)  # a sum of several of them
            if whole or (is_field and row.declared.rhs in self.sums.values()):
                self.world.defined[lhs.family] = row.declared.rhs
        self.norms = self._norms()

    # -- the Lagrangian ------------------------------------------------------------------------------

    def _kinks(self) -> dict[Any, tuple[SiteQuantity, Env, Expr, Any]]:
        """Which variable bounds a kink of the objective, by the values of its arguments; and how much wider it opens.

        Two kinks that open at one place share a bound.  Their gaps are then in one ratio, whatever the states are.
        """
        out: dict[Any, tuple[SiteQuantity, Env, Expr, Any]] = {}
        worlds = [self.world, self.declared.world(5, self.states + 1000, PRECISION)]
        declared = self.problem.minimize.atoms(Abs, Max, Min)
        for bound, kink in self.record.auxiliary:
            (kind,) = bound.site
            here = kink.xreplace(self.sums)
            others = [k for k in declared if len(k.args) <= 2 and kind_of(Equation(k, k * 0)) == kind]
            for at in self.world.sites(kind):
                env = {kind.index: at}
                out[self._mark_at(here, env)] = (bound, env, here, mp.mpf(1))
                gaps = [world.value(_gap(here), env) for world in worlds] if len(kink.args) <= 2 else []
                for other in others if all(gaps) else ():
                    ratios = [w.value(_gap(other), env) / gap for w, gap in zip(worlds, gaps, strict=True)]
                    if ratios[0] != 0 and same(*ratios):
                        out.setdefault(self._mark_at(other, env), (bound, env, here, ratios[0]))
        return out

    def _mark_at(self, kink: Expr, env: Env) -> Any:
        with mp.workdps(PRECISION):
            return _mark(kink.func, [self.world.value(a, env) for a in kink.args])

    def objective(self) -> Any:
        """What is minimized, as the user wrote it; a kink is the variable that bounds it, where there is one."""
        bounds = mp.fsum(
            self.world.value(norm.s, env) * self.world.value(norm.slack, env) / 2
            for norm in self.record.norms
            for env in self.sites(norm.s)
        )
        return self._bounded(self.problem.minimize.xreplace(self.norms)) + bounds

    def _norms(self) -> dict[Expr, Expr]:
        """The product of each norm of the objective, known by its values: sums may be written in other ways."""
        roots = [e for e in self.problem.minimize.atoms(Pow) if e.exp == S.Half]
        kinds = {e: kind_of(Equation(e, e * 0)) for e in roots}
        out: dict[Expr, Expr] = {}
        for norm in self.record.norms:
            node = norm.node.xreplace(self.sums)
            for root in (e for e, kind in kinds.items() if {kind} == set(norm.s.site)):
                if all(same(self.world.value(root, env), self.world.value(node, env)) for env in self.sites(norm.s)):
                    out[root] = norm.product.xreplace(self.sums)
        return out

    def norms_hold(self) -> bool:
        """Whether each product is the norm at its own direction, and its bound is the unit ball."""
        ok = True
        for norm in self.record.norms:
            slopes = [norm.product.diff(q).xreplace(self.sums) for q in norm.p]
            for env in self.sites(norm.s):
                own = [self.world.value(q, env) for q in norm.p]
                along = [self.world.value(e, env) for e in slopes]
                whole = mp.sqrt(mp.fsum(v**2 for v in along))
                linear = mp.fsum(a * b for a, b in zip(own, along, strict=True))
                ok = ok and same(whole, self.world.value(norm.node.xreplace(self.sums), env))
                ok = ok and same(linear, self.world.value(norm.product.xreplace(self.sums), env))
                ok = ok and same(1 - mp.fsum(v**2 for v in own), self.world.value(norm.slack, env))
        return ok

    def _bounded(self, expr: Expr) -> Any:
        """The value of an expression; a kink is the variable that bounds it, where there is one."""
        self.world.kink = self._bound
        try:
            return self.world.value(expr.xreplace(self.sums))
        finally:
            self.world.kink = None

    def _bound(self, kind: type[Expr], values: list[Any]) -> Any:
        """A kink by the variable that bounds it, or that bounds another one which opens at the same place."""
        found = self.kinks.get(_mark(kind, values))
        if found is None:
            return None
        bound, env, kink, ratio = found
        own = self.world.number(self.world.key(bound, env), state=True)
        if ratio == 1 and kind == kink.func:
            return own
        first, second = (self.world.value(a, env) for a in _two(kink))
        above = first - own if isinstance(kink, Min) else own - second  # the positive part of the gap
        above = ratio * above if ratio > 0 else -ratio * (above - (first - second))
        first, second = (values[0], -values[0]) if kind == Abs else values
        return first - above if kind == Min else second + above

    def constraint(self, expr: Expr, env: Env) -> Any:
        """The value of a constraint that holds a field's placeholder."""
        return self.world.value(expr.xreplace(self.sums), env)

    def total(self) -> Any:
        """The Lagrangian: the objective minus each multiplier times its constraint."""
        out = self.objective()
        for multiplier, expr, _ in self.record.multipliers:
            for env in self.sites(multiplier):
                out -= self.world.value(multiplier, env) * self.constraint(expr, env)
        return out - mp.fsum(self.world.value(nu) * value for nu, _, value in self.shared())

    def shared(self) -> Iterator[tuple[Global, bool, Any]]:
        """The multiplier of each declared condition on sums over all sites, and the condition as the user wrote it.

        One that was divided by the number of sites is taken N times, as its multiplier is.
        """
        declared = [r for r in self.problem.subject_to if kind_of(Equation(r.lhs, r.rhs)) is None]
        for (nu, condition), relation in zip(self.record.conditions, declared, strict=True):
            expr = relation.rhs - relation.lhs if isinstance(relation, LessThan) else relation.lhs - relation.rhs
            times = mp.nint(self.constraint(condition.total, {}) / self.world.value(expr))
            if times not in (1, self.world.value(N)):
                raise ValueError(f"{condition.total} is not the condition {relation}")
            yield nu, isinstance(relation, Equality), times * self._bounded(expr)

    def sites(self, q: Expr) -> Iterator[dict[Any, int]]:
        """The sites of a quantity; what is shared by all of them has one place."""
        if isinstance(q, Global):
            yield {}
            return
        (kind,) = q.site
        yield from ({kind.index: at} for at in self.world.sites(kind))

    def slope(self, key: Key, base: Any) -> Any:
        """The difference quotient of the Lagrangian in one of its numbers."""
        with mp.workdps(PRECISION):
            values = []
            for sign in (1, -1):
                self.world.given[key] = base + sign * STEP
                values.append(self.total())
            del self.world.given[key]
            return (values[0] - values[1]) / (2 * STEP)

    def slope_in(self, q: Expr, env: Env) -> Any:
        """Its slope in a variable at a site, or in a global variable."""
        if isinstance(q, Global):
            return self.slope(("symbol", q.name), self.world.value(q))
        key = self.world.key(q, env)
        return self.slope(key, self.world.number(key, state=True))

    def message(self, f: RandomField, env: Env) -> Any:
        """Minus the slope of the Lagrangian in a field of one site, by its slopes in the couplings of that field.

        A coupling enters by its fields only: its slope is the sum over them of slope times emission.
        """
        mark = (f, tuple(sorted(env.items(), key=str)))
        if mark not in self._messages:
            (site,) = (env[f.hearer.index],)
            own = f.coupling.xreplace({f.sender_index: S.Zero})
            heard = [g for g in self.record.fields if g.hearer == f.hearer]
            fields = [g for g in heard if g.coupling.xreplace({g.sender_index: S.Zero}) == own]
            senders = [k for k in self.world.sites(f.sender) if k != site or f.sender != f.hearer]
            rows = []
            for k in senders[: len(fields)]:
                at = {**env, f.sender_index: k}
                key = self.world.key(f.coupling, at)
                rows.append(
                    (
                        [self.world.value(g.sent, {**at, g.sender_index: k}) for g in fields],
                        self.slope(key, self.world.number(key, state=True)),
                    )
                )
            with mp.workdps(PRECISION):
                found = mp.lu_solve(mp.matrix([r[0] for r in rows]), mp.matrix([r[1] for r in rows]))
            for g, value in zip(fields, found, strict=True):
                self._messages[g, mark[1]] = -value
        return self._messages[mark]

    def take_messages(self) -> None:
        """Give the variables that stand for messages their values."""
        for f in self.record.fields:
            factor, dual = self.record.messages.get(f.symbol, S.Zero).as_independent(SiteQuantity)
            if dual not in {d for d, _ in self.record.duals}:
                continue
            for env in free_points(self.world, [dual]):
                self.world.given[self.world.key(dual, env)] = self.message(f, env) / self.world.value(factor)

    # -- what is declared ----------------------------------------------------------------------------

    def subject_to(self) -> Iterator[tuple[Kind, bool, Any]]:
        """The values of the declared constraints at their sites: never negative."""
        for relation in self.problem.subject_to:
            expr = relation.rhs - relation.lhs if isinstance(relation, LessThan) else relation.lhs - relation.rhs
            kind = kind_of(Equation(expr, expr * 0))
            if kind is not None:
                yield kind, isinstance(relation, Equality), self._over(kind, expr)

    def constraints(self) -> Iterator[tuple[Kind, bool, Any]]:
        """The values of the declared constraints at their sites, and of the bounds on kinks: never negative."""
        yield from self.subject_to()
        for bound, kink in self.record.auxiliary:
            (kind,) = bound.site
            expr = bound - kink if isinstance(kink, Max | Abs) else kink - bound
            yield kind, False, self._over(kind, expr.xreplace(self.sums))

    def pieces(self) -> Iterator[tuple[Kind, bool, Any]]:
        """The values of what the multipliers belong to, at their sites."""
        for multiplier, expr, equality in self.record.multipliers:
            (kind,) = multiplier.site
            yield kind, equality, self._over(kind, expr.xreplace(self.sums))

    def _over(self, kind: Kind, expr: Expr) -> list[Any]:
        return [self.world.value(expr, {kind.index: at}) for at in self.world.sites(kind)]

    def unknowns(self) -> list[Expr]:
        """What the problem is minimized over: variables, the bounds on kinks, globals."""
        exprs = [self.problem.minimize, *(r.lhs - r.rhs for r in self.problem.subject_to)]
        families = dict.fromkeys(q.family for e in exprs for q in site_quantities(e, Variable))
        own = [u for law in self.theory.system.laws.values() for u in law.unknowns if u.family.components]
        apart = {u.family for u in own if u.family.components[0] not in u.free_symbols}
        found = {q: None for family in families for q in (_each(family) if family in apart else [family.at_site()])}
        found |= dict.fromkeys([*(b for b, _ in self.record.auxiliary), *(q for n in self.record.norms for q in n.p)])
        shared = sorted(set().union(*(e.atoms(Global) for e in exprs)) - set(self.problem.given), key=str)
        return [*found, *shared, *(nu for nu, _ in self.record.conditions)]


def _two(kink: Expr) -> tuple[Expr, Expr]:
    """What a kink chooses from."""
    return (kink.args[0], -kink.args[0]) if isinstance(kink, Abs) else kink.args


def _gap(kink: Expr) -> Expr:
    first, second = _two(kink)
    return first - second


def _each(family: Any) -> list[Any]:
    """The components of a variable that a law has apart, at a site."""
    index, low, high = family.components
    return [family.at_site().xreplace({index: Integer(k)}) for k in range(int(low), int(high) + 1)]


def _mark(kind: type[Expr], values: list[Any]) -> tuple[type[Expr], tuple[str, ...]]:
    values = [abs(values[0])] if kind == Abs else values  # SymPy chooses the sign of what stands in it
    # far fewer digits than the step of a difference quotient moves: the kink is the same on both sides
    return kind, tuple(sorted(mp.nstr(v, 12) for v in values))


def points(theory: Any, number: int = POINTS) -> list[Optimality]:
    """The declared problem at several points: other states and couplings, the same parameters."""
    if ("optimality", number) not in theory.memory:
        found: list[Optimality] = []
        decides = _has_decided(theory.system.record)
        for seed in range(400):
            point = Optimality(theory, 31 + seed)
            if not decides or all(v >= 0 for _, equality, row in point.subject_to() if not equality for v in row):
                found.append(point)
            if len(found) == number:
                break
        theory.memory["optimality", number] = found or [Optimality(theory, 31 + k) for k in range(number)]
    return theory.memory["optimality", number]


def _has_decided(record: Any) -> bool:
    """Whether a constraint may have decided a kink of the objective: then it is one of admissible states only."""
    bounded = sum(len(k.atoms(Max, Abs)) for _, k in record.auxiliary)
    return len(record.problem.minimize.atoms(Max, Abs)) > bounded
