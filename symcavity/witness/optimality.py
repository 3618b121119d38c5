"""Witnesses of the optimality conditions: the Lagrangian is rebuilt from what is minimised, and subject to what.

Written out in a small world, it is a function of finitely many numbers; its slopes are difference quotients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath
from sympy import Abs, Equality, Expr, Integer, LessThan, Max, Min

from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Complementary, Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.registry import result, witness
from symcavity.witness.world import Env, Key, World, free_points, same

STEP = mpmath.mpf(10) ** -20
PRECISION = 70
POINTS = 5
MANY = 60
EXPLICIT = "the declared problem, at two or three sites of each kind"


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
            if is_field and row.declared.rhs in self.sums.values():
                self.world.defined[lhs.family] = row.declared.rhs

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
                out[self._mark_at(here, env)] = (bound, env, here, mpmath.mpf(1))
                gaps = [world.value(_gap(here), env) for world in worlds] if len(kink.args) <= 2 else []
                for other in others if all(gaps) else ():
                    ratios = [w.value(_gap(other), env) / gap for w, gap in zip(worlds, gaps, strict=True)]
                    if ratios[0] != 0 and same(*ratios):
                        out.setdefault(self._mark_at(other, env), (bound, env, here, ratios[0]))
        return out

    def _mark_at(self, kink: Expr, env: Env) -> Any:
        with mpmath.workdps(PRECISION):
            return _mark(type(kink).__name__, [self.world.value(a, env) for a in kink.args])

    def objective(self) -> Any:
        """What is minimised, as the user wrote it; a kink is the variable that bounds it, where there is one."""
        rule = {norm.node.xreplace(self.sums): norm.product.xreplace(self.sums) for norm in self.record.norms}
        bounds = mpmath.fsum(
            self.world.value(norm.s, env) * self.world.value(norm.slack, env) / 2
            for norm in self.record.norms
            for env in self.sites(norm.s)
        )
        return self._bounded(self.problem.minimize.xreplace(rule)) + bounds

    def norms_hold(self) -> bool:
        """Whether each product is the norm at its own direction, and its bound is the unit ball."""
        ok = True
        for norm in self.record.norms:
            slopes = [norm.product.diff(q).xreplace(self.sums) for q in norm.p]
            for env in self.sites(norm.s):
                own = [self.world.value(q, env) for q in norm.p]
                along = [self.world.value(e, env) for e in slopes]
                whole = mpmath.sqrt(mpmath.fsum(v**2 for v in along))
                linear = mpmath.fsum(a * b for a, b in zip(own, along, strict=True))
                ok = ok and same(whole, self.world.value(norm.node.xreplace(self.sums), env))
                ok = ok and same(linear, self.world.value(norm.product.xreplace(self.sums), env))
                ok = ok and same(1 - mpmath.fsum(v**2 for v in own), self.world.value(norm.slack, env))
        return ok

    def _bounded(self, expr: Expr) -> Any:
        """The value of an expression; a kink is the variable that bounds it, where there is one."""
        self.world.kink = self._bound
        try:
            return self.world.value(expr.xreplace(self.sums))
        finally:
            self.world.kink = None

    def _bound(self, word: str, values: list[Any]) -> Any:
        """A kink by the variable that bounds it, or that bounds another one which opens at the same place."""
        found = self.kinks.get(_mark(word, values))
        if found is None:
            return None
        bound, env, kink, ratio = found
        own = self.world.number(self.world.key(bound, env), state=True)
        if ratio == 1 and word == type(kink).__name__:
            return own
        first, second = (self.world.value(a, env) for a in _two(kink))
        above = first - own if isinstance(kink, Min) else own - second  # the positive part of the gap
        above = ratio * above if ratio > 0 else -ratio * (above - (first - second))
        first, second = (values[0], -values[0]) if word == "Abs" else values
        return first - above if word == "Min" else second + above

    def constraint(self, expr: Expr, env: Env) -> Any:
        """The value of a constraint that holds a field's placeholder."""
        return self.world.value(expr.xreplace(self.sums), env)

    def total(self) -> Any:
        """The Lagrangian: the objective minus each multiplier times its constraint."""
        out = self.objective()
        for multiplier, expr, _ in self.record.multipliers:
            for env in self.sites(multiplier):
                out -= self.world.value(multiplier, env) * self.constraint(expr, env)
        return out - mpmath.fsum(self.world.value(nu) * value for nu, _, value in self.shared())

    def shared(self) -> Iterator[tuple[Global, bool, Any]]:
        """The multiplier of each declared condition on sums over all sites, and the condition as the user wrote it.

        One that was divided by the number of sites is taken N times, as its multiplier is.
        """
        declared = [r for r in self.problem.subject_to if kind_of(Equation(r.lhs, r.rhs)) is None]
        for (nu, condition), relation in zip(self.record.conditions, declared, strict=True):
            expr = relation.rhs - relation.lhs if isinstance(relation, LessThan) else relation.lhs - relation.rhs
            times = mpmath.nint(self.constraint(condition.total, {}) / self.world.value(expr))
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
        with mpmath.workdps(PRECISION):
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
            fields = [g for g in self.record.fields if g.hearer == f.hearer and g.coupling.family == f.coupling.family]
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
            with mpmath.workdps(PRECISION):
                found = mpmath.lu_solve(mpmath.matrix([r[0] for r in rows]), mpmath.matrix([r[1] for r in rows]))
            for g, value in zip(fields, found, strict=True):
                self._messages[g, mark[1]] = -value
        return self._messages[mark]

    def take_messages(self) -> None:
        """Give the variables that stand for messages their values."""
        for f in self.record.fields:
            dual = self.record.messages.get(f.symbol)
            if dual is None or dual not in {d for d, _ in self.record.duals}:
                continue
            for env in free_points(self.world, [dual]):
                self.world.given[self.world.key(dual, env)] = self.message(f, env)

    # -- what is declared ----------------------------------------------------------------------------

    def constraints(self) -> Iterator[tuple[Kind, bool, Any]]:
        """The values of the declared constraints at their sites, and of the bounds on kinks: never negative."""
        for relation in self.problem.subject_to:
            expr = relation.rhs - relation.lhs if isinstance(relation, LessThan) else relation.lhs - relation.rhs
            kind = kind_of(Equation(expr, expr * 0))
            if kind is not None:
                yield kind, isinstance(relation, Equality), self._over(kind, expr)
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
        """What the problem is minimised over: variables, the bounds on kinks, globals."""
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


def _mark(word: str, values: list[Any]) -> tuple[str, tuple[str, ...]]:
    values = [abs(values[0])] if word == "Abs" else values  # SymPy chooses the sign of what stands in it
    # far fewer digits than the step of a difference quotient moves: the kink is the same on both sides
    return word, tuple(sorted(mpmath.nstr(v, 12) for v in values))


def points(theory: Any, number: int = POINTS) -> list[Optimality]:
    """The declared problem at several points: other states and couplings, the same parameters."""
    if ("optimality", number) not in theory.memory:
        found: list[Optimality] = []
        decides = _has_decided(theory.system.record)
        for seed in range(400):
            point = Optimality(theory, 31 + seed)
            if not decides or all(v >= 0 for _, equality, row in point.constraints() if not equality for v in row):
                found.append(point)
            if len(found) == number:
                break
        theory.memory["optimality", number] = found or [Optimality(theory, 31 + k) for k in range(number)]
    return theory.memory["optimality", number]


def _has_decided(record: Any) -> bool:
    """Whether a constraint may have decided a kink of the objective: then it is one of admissible states only."""
    bounded = sum(len(k.atoms(Max, Abs)) for _, k in record.auxiliary)
    return len(record.problem.minimize.atoms(Max, Abs)) > bounded


# -- the constraints ---------------------------------------------------------------------------------


def are_declared(theory: Any) -> bool:
    """Whether the multipliers belong to the declared constraints: pieces whose least is a declared expression.

    A piece may carry a positive factor of the parameters; of an equality any factor.  A piece that is seldom the
    least one, such as the flat part of a narrow tube, may need many points to show.
    """
    return any(_declared_at(points(theory, number)) for number in (POINTS, MANY))


def _declared_at(every: list[Optimality]) -> bool:
    declared = [_joined(rows) for rows in zip(*(list(p.constraints()) for p in every), strict=True)]
    pieces = [_joined(rows) for rows in zip(*(list(p.pieces()) for p in every), strict=True)]
    left = list(range(len(pieces)))
    for kind, equality, values in declared:
        own = [k for k in left if pieces[k][:2] == (kind, equality)]
        used = _explains(values, {k: pieces[k][2] for k in own}, equality=equality)
        if used is None:
            return False
        left = [k for k in left if k not in used]
    return not left


def _joined(rows: Any) -> tuple[Kind, bool, list[Any]]:
    return rows[0][0], rows[0][1], [v for row in rows for v in row[2]]


def _explains(values: list[Any], pieces: dict[int, list[Any]], *, equality: bool) -> set[int] | None:
    """The pieces whose least is a multiple of the declared values; none where a bound says nothing."""
    ratios = {mpmath.nstr(row[k] / values[k], 25): row[k] / values[k] for row in pieces.values() for k in (0, 1)}
    for ratio in ratios.values():
        if equality:
            exact = {k for k, row in pieces.items() if _equal(row, [ratio * v for v in values])}
            if exact:
                return {min(exact)}
            continue
        if ratio <= 0:
            continue
        wanted = [ratio * v for v in values]
        above = {k: row for k, row in pieces.items() if _not_below(row, wanted)}
        if not above:
            continue
        least = [min(column) for column in zip(*above.values(), strict=True)]
        touched = [same(p, w) for p, w in zip(least, wanted, strict=True)]
        # a piece that always holds has been left out; where it is the least one, the others are positive
        fits = all(t or (w > 0 and p > 0) for t, p, w in zip(touched, least, wanted, strict=True))
        if fits and 3 * sum(touched) >= len(values):
            return {k for k, row in above.items() if any(same(p, w) for p, w in zip(row, wanted, strict=True))}
    return set() if not pieces and all(v > 0 for v in values) else None


def _not_below(row: list[Any], wanted: list[Any]) -> bool:
    return all(p >= w or same(p, w) for p, w in zip(row, wanted, strict=True))


def _equal(one: list[Any], two: list[Any]) -> bool:
    return all(same(a, b) for a, b in zip(one, two, strict=True))


# -- the witnesses -----------------------------------------------------------------------------------


@witness("lagrangian")
def lagrangian(step: Step, _dps: int) -> list[Verdict]:
    """The claimed sum against the declared objective and constraints."""
    theory = step.evidence["theory"]
    ok = len(step.claims) == 1 and are_declared(theory)
    for point in points(theory)[:2]:
        ok = ok and point.norms_hold()
        for claim in step.claims:
            ok = ok and same(point.world.value(claim.rhs), point.total())
        for multiplier, expr, _ in step.data["multipliers"]:
            every = [*point.record.multipliers, *((nu, c.total, c.equality) for nu, c in point.record.conditions)]
            known = next((e for m, e, _ in every if m == multiplier), None)
            ok = ok and known is not None
            for env in point.sites(multiplier) if known is not None else ():
                ok = ok and same(point.world.value(expr, env), point.constraint(known, env))
    return result(BRUTE_FORCE, ok, EXPLICIT, "not the Lagrangian of the declared problem")


@witness("dual")
def dual(step: Step, _dps: int) -> list[Verdict]:
    """The message against the slope of the Lagrangian, as a difference quotient in the couplings of its field."""
    ok = bool(step.claims)
    for point in points(step.evidence["theory"])[:2]:
        ok = ok and all(_is_message(point, claim) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"minus the slope of {EXPLICIT}", "not minus the slope of the Lagrangian")


def _is_message(point: Optimality, claim: Equation) -> bool:
    f = next((f for f in point.record.fields if point.record.messages.get(f.symbol) == claim.lhs), None)
    if f is None:
        return False
    return all(
        same(point.world.value(claim.rhs, env), point.message(f, env)) for env in free_points(point.world, [claim])
    )


@witness("stationarity")
def stationarity(step: Step, _dps: int) -> list[Verdict]:
    """The claim against the slope of the Lagrangian in its state, up to a factor."""
    state = step.data["state"]
    every = points(step.evidence["theory"])[:3]
    ok = len(step.claims) == 1 and all(_is_slope(every, claim, state) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"the slope of {EXPLICIT}", "not the slope of the Lagrangian")


def _is_slope(every: list[Optimality], claim: Equation, state: Expr) -> bool:
    """Whether an equation is the slope in a state, times one factor, at every point and site."""
    rows: dict[int, list[tuple[Any, Any]]] = {}
    for point in every:
        point.take_messages()
        places = [{}] if isinstance(state, Global) else free_points(point.world, [state])
        for number, env in enumerate(places):
            value = point.world.value(claim.difference, env)
            rows.setdefault(number, []).append((point.slope_in(state, env), value))
    for pairs in rows.values():  # a factor may hold parameters of the site, which are the same at each point
        ratios = [a / b for a, b in pairs if b != 0]
        if not ratios or abs(ratios[0]) < mpmath.mpf("1e-15"):
            return False
        if not all(same(a, ratios[0] * b) for a, b in pairs):
            return False
    return True


@witness("complementarity")
def complementarity(step: Step, _dps: int) -> list[Verdict]:
    """Each inequality's multiplier is paired with what the constraint says, and with nothing else."""
    theory = step.evidence["theory"]
    ok = are_declared(theory)
    for point in points(theory)[:2]:
        left = {m: expr for m, expr, equality in point.record.multipliers if not equality}
        left |= {norm.s: norm.slack for norm in point.record.norms}
        slacks = {c.lhs: c.rhs for c in step.claims}
        ok = ok and _shared_pairs(point, step.data["pairs"])
        for pair in step.data["pairs"]:
            if isinstance(pair.args[0], Global):
                continue
            multiplier, other = _split(pair, left)
            if multiplier is None:
                ok = False
                continue
            expr = left.pop(multiplier)
            shown = slacks.get(other, other)
            ok = ok and all(
                same(point.world.value(shown, env), point.constraint(expr, env)) for env in point.sites(multiplier)
            )
        ok = ok and not left and set(step.data["pairs"]) == set(_law_pairs(theory))
        ok = ok and all(_explained(theory, Equation(q, e)) for q, e in slacks.items())
    return result(BRUTE_FORCE, ok, EXPLICIT, "not the pairs of the declared constraints")


def _shared_pairs(point: Optimality, pairs: list[Complementary]) -> bool:
    """Whether each bounded variable makes a pair: a multiplier with its condition, another with its slope."""
    claimed = {p.args[0]: p.args[1] for p in pairs if isinstance(p.args[0], Global)}
    wanted = {nu: value for nu, equality, value in point.shared() if not equality and nu.is_bounded}
    point.take_messages()
    for b in point.unknowns():
        if isinstance(b, Global) and b.is_bounded and b not in wanted:
            wanted[b] = point.slope_in(b, {})
    return claimed.keys() == wanted.keys() and all(same(point.world.value(claimed[b]), v) for b, v in wanted.items())


def _law_pairs(theory: Any) -> list[Complementary]:
    own = [p for law in theory.system.laws.values() for p in law.pairs]
    return [*own, *theory.system.shared_pairs]


def _split(pair: Complementary, multipliers: Any) -> tuple[Any, Any]:
    p, q = pair.pair
    return (p, q) if p in multipliers else (q, p) if q in multipliers else (None, None)


def _explained(theory: Any, equation: Equation) -> bool:
    """Whether an equation of the system that a problem became follows from the problem."""
    every = points(theory)[:2]
    record = every[0].record
    lhs = equation.lhs
    if any((c.lhs, c.rhs) == (lhs, equation.rhs) for c in record.problem.known):
        return True  # the witness of the means has looked at it
    if any(lhs == slack for slack, _ in record.slacks):
        expressions = [expr for m, expr, equality in record.multipliers if not equality and m.site == lhs.site]
        return any(
            all(
                same(p.world.value(equation.rhs, env), p.constraint(expr, env)) for p in every for env in p.sites(lhs)
            )
            for expr in expressions
        )
    if any(lhs == dual for dual, _ in record.duals):
        return all(_is_message(p, equation) for p in every)
    if isinstance(lhs, SiteQuantity) and isinstance(lhs.family, Field):
        return any(
            all(
                same(p.world.value(equation.rhs, env), p.world.value(f.as_sum, env))
                for p in every
                for env in free_points(p.world, [f.as_sum])
            )
            for f in record.fields
            if f.hearer in lhs.site
        )
    for multiplier, expr, equality in record.multipliers:
        (kind,) = multiplier.site
        if equality and kind_of(equation) == kind:
            gaps = [
                (p.world.value(equation.difference, env), p.constraint(expr, env))
                for p in every
                for env in p.sites(multiplier)
            ]
            if all(same(a, b) for a, b in gaps) or all(same(a, -b) for a, b in gaps):
                return True
    return any(_is_slope(every, equation, state) for state in every[0].unknowns() if _fits(state, equation))


def _fits(state: Expr, equation: Equation) -> bool:
    kind = kind_of(equation)
    return kind is None if isinstance(state, Global) else kind in getattr(state, "site", {})


@witness("sources")
def conditions_of_the_problem(step: Step, _dps: int) -> list[Verdict]:
    """Every equation of the system is a condition of the declared problem, and there are as many as unknowns."""
    theory = step.evidence["theory"]
    if theory.system.record is None:
        return []
    found = points(theory)[0]
    ok = are_declared(theory) and all(_explained(theory, e) for e in theory.system.declared)
    states = len(found.unknowns())
    names = {e.lhs for e in theory.system.declared if isinstance(e.lhs, SiteQuantity)}
    extra = [e for e in theory.system.declared if e.lhs in names and _is_definition(found, e)]
    equalities = sum(equality for *_, equality in found.record.multipliers)
    states += len(found.problem.known) - len(theory.system.shared_pairs)
    ok = ok and len(theory.system.declared) - len(extra) == states + equalities
    return result(BRUTE_FORCE, ok, f"the conditions of {EXPLICIT}", "not the conditions of the declared problem")


def _is_definition(point: Optimality, equation: Equation) -> bool:
    known = {slack for slack, _ in point.record.slacks} | {d for d, _ in point.record.duals}
    return equation.lhs in known or isinstance(equation.lhs.family, Field)


__all__ = ["Optimality", "are_declared", "points"]
