"""Optimality conditions of a convex problem, as a bipartite system.

The Lagrangian is a sum of site functions; the two sides meet only in the coupling sums.  So its
stationarity in a state X of one side is ``dL_site/dX = (d emission/dX) * sum over the other side of
coupling * message`` with the message ``-dL_site/d(field)`` of the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, count
from typing import Any

from sympy import Abs, Add, Dummy, Eq, Expr, Max, Min, S, Sum, Symbol, cancel

from symcavity.algebra.exponentials import as_fraction
from symcavity.algebra.hinges import without_steps
from symcavity.algebra.signs import sign_given, sign_of, weak_sign_of
from symcavity.errors import DeclarationError, NotConvex, UnsupportedLaw
from symcavity.method.lagrangian import Lagrangian
from symcavity.method.norms import refuse_tips, without_norms
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.problem import Constraint, Problem, SumCondition
from symcavity.model.quantities import Complementary, Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.ranges import margins
from symcavity.model.support import Support, VectorField, VectorVariable
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import MANY
from symcavity.sites.branching.branches import decided


class _Names:
    """Names that no declared family uses."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def fresh(self, *candidates: str) -> str:
        numbered = (f"{candidates[0]}_{k}" for k in count(2))
        name = next(name for name in chain(candidates, numbered) if name not in self.taken)
        self.taken.add(name)
        return name


def optimality(problem: Problem) -> System:
    """Return the Karush-Kuhn-Tucker conditions (paper, equations 6 to 9) of a declared problem."""
    record = Lagrangian(problem)
    every = [*problem.objective.values(), *(c.expr for c in problem.constraints), problem.global_objective]
    every += [e for c in problem.conditions for e in (*c.parts.values(), c.shared)]
    every += [f.emission for f in record.fields] + [f.coupling for f in record.fields]
    declared = {q.family.name for expr in every for q in site_quantities(expr)}
    declared |= {symbol.name for expr in every for symbol in expr.atoms(Symbol)}
    coefficients = {problem.kernels.coefficients.family.name} if problem.kernels else set()
    names = _Names(declared | coefficients | {"u", "v"})
    objective, record.shared = dict(problem.objective), problem.global_objective
    for condition in problem.conditions:
        nu = _multiplier(condition, names.fresh("nu"))
        record.conditions.append((nu, condition))
        for kind, body in condition.parts.items():
            objective[kind] = objective.get(kind, S.Zero) - nu * body
        record.shared -= nu * condition.shared
    objective, constraints = _epigraph(objective, record, names)
    equations: list[Eq | Equation] = []
    conditions, local = list[Complementary](), dict[Symbol, SiteQuantity]()
    for label, drawn in problem.labels.items():  # where a loss hears what a label is drawn on, it is one field
        u = local.get(drawn) or Field(names.fresh("u", f"u_{label.name}"), index=label.slots[0].index).at_site()
        if isinstance(drawn, Symbol):
            local[drawn] = u
        else:
            equations.append(Equation(u, drawn))
        record.labels[label.at_site()] = label.at_field(u).at_site()
    for side in problem.kinds:
        _multipliers(side, objective.get(side, S.Zero), constraints, record, names, equations, conditions, local)
    record.messages = {f.symbol: _message(f, record, names, equations, local) for f in record.fields}
    for side in problem.kinds:
        _stationarity(side, record, record.messages, local, equations)
    shared = _global_conditions(record, local)
    conditions += [c for c in shared if isinstance(c, Complementary)]
    equations += [*(e for e in shared if isinstance(e, Equation)), *(Equation(c.lhs, c.rhs) for c in problem.known)]
    rule: dict[Any, Any] = {f.symbol: f.as_sum for f in record.fields}
    rule |= record.labels
    named = [Equation(q, rule[s]) for s, q in local.items()]
    return System(
        [e.xreplace(rule) for e in equations] + named,
        [Complementary(*(q.xreplace(record.labels) for q in pair.pair)) for pair in conditions],
        problem.fixed,
        name=problem.name,
        source=problem.source,
        cite=problem.cite,
        named=problem.named,
        convex=True,
        record=record,
        centring=problem.centring,
    )


def _varying(side: Kind, expr: Expr, problem: Problem, *, present: bool = False) -> list[Expr]:
    """The variables of a site's function that depend on states; all fields of the side, or those present."""
    found: list[Expr] = [q for q in site_quantities(expr, Variable) if side in q.site]
    found += [f.symbol for f in problem.book.all(side) if f.states() and (not present or expr.has(f.symbol))]
    return [*found, *sorted(expr.atoms(Global), key=str)]


def _arguments(kink: Expr) -> tuple[Expr, ...]:
    return (kink.args[0], -kink.args[0]) if isinstance(kink, Abs) else kink.args


def _gathered(body: Expr, varying: list[Expr]) -> Expr:
    """Write kinks at one place as one: ``Max(0, -r)`` is ``Max(0, r) - r``, and ``|r|`` is ``2*Max(0, r) - r``.

    Their multipliers are not unique for themselves, and it is the sum of their factors that has to be positive.
    """
    groups: list[tuple[Expr, Dummy, dict[Expr, Expr]]] = []
    for kink in sorted(body.atoms(Abs, Max, Min), key=str):
        mark = Dummy("t", real=True)
        if len(kink.args) > 2 or not kink.has(*varying or [mark]):
            continue
        if body.xreplace({kink: mark}).diff(mark).has(mark):
            continue
        first, second = (kink.args[0], S.Zero) if isinstance(kink, Abs) else (*kink.args[::-1],)
        gap = (first - second).expand()
        ratios = [cancel(gap / place) for place, _, _ in groups]
        signs = [None if ratio.has(*varying) else sign_of(ratio) for ratio in ratios]
        number = next((k for k, sign in enumerate(signs) if sign in (1, -1)), None)
        if number is None:
            groups.append((gap, mark, {}))
            ratio, sign = S.One, 1
        else:
            ratio, sign = ratios[number], signs[number] or 1
        place, hinge, members = groups[-1 if number is None else number]
        above = ratio * hinge if sign == 1 else -ratio * (hinge - place)  # the positive part of the gap
        if isinstance(kink, Abs):
            members[kink] = 2 * above - gap
        else:
            members[kink] = second + above if isinstance(kink, Max) else first - above
    for place, hinge, members in groups:
        if len(members) > 1:
            body = body.xreplace(members)
            slope = body.diff(hinge)
            body = (body - slope * hinge).expand() + slope.expand() * Max(0, place)
    return body


def _slopes_at(kink: Expr, mark: Dummy, slope: Expr, varying: list[Expr]) -> list[Expr]:
    """The slopes of a function of a kink at the places where two of its pieces meet: what jumps there."""
    found = []
    for first, second in combinations(_arguments(kink), 2):
        gap = first - second
        inner = next((q for q in varying if (rate := gap.diff(q)) != 0 and not rate.has(*varying)), None)
        if inner is None:
            continue
        place = {inner: cancel(inner - gap / gap.diff(inner))}
        found.append(slope.xreplace({mark: first}).subs(place))
    return found


def _epigraph(
    objective: dict[Kind, Expr], record: Lagrangian, names: _Names
) -> tuple[dict[Kind, Expr], list[Constraint]]:
    """Replace |.| and Max in the objective by variables that bound them, and split them in constraints."""
    problem = record.problem
    constraints: list[Constraint] = []
    for c in problem.constraints:
        constraints += _split(c, problem)
    for side in problem.kinds:
        whole = objective.get(side, S.Zero)
        varying = _varying(side, whole, problem)
        body = _gathered(without_norms(whole, side, varying, record, names.fresh), varying)
        # a kink around others first: a bound on each would leave the inner one loose where it is not the largest
        for kink in sorted(body.atoms(Abs, Max, Min), key=lambda k: (-len(k.atoms(Abs, Max, Min)), str(k))):
            if not body.has(kink) or not kink.has(*_varying(side, kink, problem) or [Dummy()]):
                continue
            piece = decided(kink, [c.expr for c in problem.constraints if c.kind == side and not c.equality])
            if piece is not None:
                body = body.xreplace({kink: piece})
                continue
            mark = Dummy("t", real=True)
            slope = body.xreplace({kink: mark}).diff(mark)
            varying = _varying(side, body, problem)
            if slope.has(mark, *varying):
                slopes = _slopes_at(kink, mark, slope, varying)
                if not any(slopes):  # a smooth function of the kink, such as Max(0, .)**2: its own derivative exists
                    continue
                slope = next(s for s in slopes if s != 0)
            sign = weak_sign_of(slope) or sign_given(slope, margins(problem.ranges))
            convex = isinstance(kink, Abs | Max) == (sign == 1)
            if sign is None or not convex:
                raise NotConvex(
                    f"{kink} enters the objective with the factor {slope}.",
                    "positive factors of Abs and Max, negative ones of Min",
                    "declare the factor's sign: Symbol('...', positive=True), Quenched('...', mu, positive=True), or "
                    "a range of parameters such as beta < 1 in subject_to",
                )
            bound = Variable(names.fresh("t"), side.index).at_site()
            body = body.xreplace({kink: bound})
            record.auxiliary.append((bound, kink))
            flip = 1 if sign == 1 else -1
            for a in _arguments(kink):
                constraints += _split(Constraint(side, flip * (bound - a), False, kink), problem)
        objective[side] = body
    return objective, constraints


def _normalised(constraint: Constraint) -> Constraint:
    """Write ``c*g(V) >= ...`` with a positive factor as ``g(V) >= .../c``."""
    nodes = constraint.expr.atoms(Support)
    if len(nodes) != 1:
        return constraint
    (node,) = nodes
    factor = constraint.expr.expand().coeff(node)
    if factor == 1 or sign_of(factor) != 1 or site_quantities(factor, Variable):
        return constraint
    return replace(constraint, expr=(constraint.expr / factor).expand())


def _split(constraint: Constraint, problem: Problem) -> list[Constraint]:
    """Write ``c - Max(a, b) >= 0`` as two constraints."""
    body = constraint.expr
    for kink in sorted(body.atoms(Abs, Max, Min), key=lambda k: (-len(k.atoms(Abs, Max, Min)), str(k))):  # outer first
        if constraint.equality or not kink.has(*_varying(constraint.kind, kink, problem) or [Dummy()]):
            continue
        mark = Dummy("t", real=True)
        slope = body.xreplace({kink: mark}).diff(mark)
        sign = None if slope.has(mark) else sign_given(slope, margins(problem.ranges))
        if sign is None or (sign == 1) == isinstance(kink, Abs | Max):
            raise NotConvex(
                f"{kink} stands in the constraint {constraint.declared} with the factor {slope}.",
                "concave expressions g in g >= 0: positive factors of Min, negative ones of Abs and Max",
            )
        parts = [
            Constraint(constraint.kind, body.xreplace({kink: a}), False, constraint.declared)
            for a in _arguments(kink)
        ]
        return [piece for part in parts for piece in _split(part, problem)]
    if not constraint.equality and not _varying(constraint.kind, body, problem, present=True):
        if sign_of(body) in (0, 1):
            return []
        raise DeclarationError(
            f"A part of the constraint {constraint.declared} does not depend on the states: {body} >= 0"
            + (", which never holds." if sign_of(body) == -1 else "."),
            "constraints on states, whatever the parameters",
        )
    heard = [f.symbol for f in problem.book.all(constraint.kind) if f.states()]
    refuse_tips(body, _varying(constraint.kind, body, problem), heard, constraint.declared)
    return [_normalised(constraint)]


def _multiplier(condition: SumCondition, name: str) -> Global:
    """The multiplier of a condition on sums over all sites: of any sign, or from zero on, or above zero."""
    if condition.met:
        return Global.above_zero(name)
    return Global(name) if condition.equality else Global(name, positive=True)


def _multipliers(
    side: Kind,
    objective: Expr,
    constraints: list[Constraint],
    record: Lagrangian,
    names: _Names,
    equations: list[Eq | Equation],
    conditions: list[Complementary],
    local: dict[Symbol, SiteQuantity],
) -> None:
    """Attach a multiplier to each constraint of a side, and name the local fields."""
    fields = record.problem.book.all(side)
    mine = [c for c in constraints if c.kind == side]
    uses = {f.symbol: sum(c.expr.has(f.symbol) for c in mine) + int(objective.has(f.symbol)) for f in fields}
    lagrangian = objective
    for c in mine:
        heard = [f.symbol for f in fields if c.expr.has(f.symbol)]
        vector = c.expr.has(Support)
        names_for = ("lambda",) if heard else ("nu",)
        multiplier = Variable(names.fresh(*names_for), side.index).at_site()
        record.multipliers.append((multiplier, c.expr, c.equality))
        lagrangian -= multiplier * c.expr
        lone = len(heard) == 1 and uses[heard[0]] == 1 and not c.expr.diff(heard[0]).has(heard[0], Variable)
        if (lone or vector) and not c.equality:
            rename = {s: _local(s, side, names, local, fields) for s in heard} if vector else {}
            slack = Field(names.fresh("h"), index=side.index).at_site()
            record.slacks.append((slack, c.expr))
            equations.append(Equation(slack, c.expr.xreplace(rename)))
            conditions.append(Complementary(multiplier, slack))
            continue
        rename = {s: _local(s, side, names, local, fields) for s in heard} if not (lone and c.equality) else {}
        if c.equality:
            constant = c.expr.xreplace(rename)
            equations.append(Equation(S.Zero, constant))
        else:
            conditions.append(Complementary(multiplier, c.expr.xreplace(rename)))
    for norm in (n for n in record.norms if side in n.s.site):
        lagrangian += norm.s * norm.slack / 2
        conditions.append(Complementary(norm.s, norm.slack))
    record.site[side] = lagrangian


def _local(
    symbol: Symbol, side: Kind, names: _Names, local: dict[Symbol, SiteQuantity], fields: Sequence[RandomField]
) -> SiteQuantity:
    """The named local field of a placeholder."""
    if symbol not in local:
        components = next(f.components for f in fields if f.symbol == symbol)
        if components:
            family = VectorField(names.fresh("V", "V_2", "V_3"), tuple(components), side.index)
            local[symbol] = family.at_site()
            return local[symbol]
        local[symbol] = Field(names.fresh(*_numbered(("h", "h_2"), fields)), index=side.index).at_site()
    return local[symbol]


def _numbered(names: tuple[str, ...], fields: Sequence[RandomField]) -> tuple[str, ...]:
    """The names of what belongs to each of some fields: of many they are numbered."""
    count = sum(bool(f.states()) for f in fields)
    return names if count < MANY else tuple(f"{names[0]}_{k}" for k in range(1, count + 1))


def _message(
    f: RandomField,
    record: Lagrangian,
    names: _Names,
    equations: list[Eq | Equation],
    local: dict[Symbol, SiteQuantity],
) -> Expr:
    """What a site sends back through a field: ``-dL/d(field)``, a state of its own unless linear in states."""
    if not f.states():
        return S.Zero
    side = f.hearer
    raw = as_fraction(without_steps(-record.site[side].diff(f.symbol)), f.symbol)
    placeholders = [g.symbol for g in record.problem.book.all(side)]
    states = site_quantities(raw, Variable)
    linear = not raw.has(*placeholders) and all(not raw.diff(a).has(*states) for a in states)
    bare = [term for term in Add.make_args(raw.expand()) if not site_quantities(term, Variable)]
    drawn = bool(record.labels) and any(term.has(*record.labels) for term in bare)  # it answers to the label's field
    if linear and not drawn:
        return raw.expand()
    fields = record.problem.book.all(side)
    rename = {s: _local(s, side, names, local, fields) for s in placeholders if raw.has(s)}
    if f.components and side == FEATURE:
        raise UnsupportedLaw(
            f"A feature site hears a vector, {f.as_sum}.",
            "support functions of the data: vectors Sum(u[mu, i, a]*w[i], (i, 1, N))",
            "the problem is the same with the roles of features and data exchanged",
        )
    if f.components:
        dual = VectorVariable(names.fresh("Lambda", "G"), side.index, tuple(f.components)).at_site()
    else:
        dual = Variable(names.fresh(*_numbered(("lambda", "g"), fields)), side.index).at_site()
    record.duals.append((dual, raw))
    equations.append(Equation(dual, raw.xreplace(rename)))
    return dual


def _stationarity(
    side: Kind,
    record: Lagrangian,
    messages: dict[Symbol, Expr],
    local: dict[Symbol, SiteQuantity],
    equations: list[Eq | Equation],
) -> None:
    """Write ``dL/dX = 0`` for each state of a side."""
    multipliers = {m for m, _, _ in record.multipliers} | {norm.s for norm in record.norms}
    own = record.site[side]
    heard = record.problem.book.sent_by(side)
    states = dict.fromkeys(
        q
        for expr in (own, *(f.emission for f in heard))
        for q in site_quantities(expr, Variable)
        if side in q.site and q not in multipliers
    )
    for state in states:
        slope = own.diff(state).xreplace(local)
        force = Add(
            *(
                f.emission.diff(state) * _heard_back(f, messages[f.symbol])
                for f in heard
            )
        )
        forces: list[Expr] = []
        bare: list[Expr] = []
        for term in Add.make_args(slope.expand()):
            (forces if term.has(*multipliers) and multipliers else bare).append(term)
        lhs, rhs = Add(*bare), force - Add(*forces)
        equation = Equation(lhs, rhs)
        record.stationarity.append((state, equation))
        equations.append(equation)


def _heard_back(f: RandomField, message: Expr) -> Expr:
    """The sum over the hearers of a field of coupling times message, as the sender's site hears it."""
    if f.hearer != f.sender:
        return _sum_over(f.hearer, f.coupling * message, f.components)
    own, second = f.hearer.index, f.sender_index
    body = f.coupling.xreplace({own: second, second: own}) * message.xreplace({own: second})
    return Sum(body, (second, 1, f.hearer.size)) if message != 0 else S.Zero


def _sum_over(side: Kind, body: Expr, components: Sequence[Expr] = ()) -> Expr:
    limits = [side.range, *([tuple(components)] if components else [])]
    return Sum(body, *limits) if body != 0 else S.Zero


def _global_conditions(record: Lagrangian, local: dict[Symbol, SiteQuantity]) -> list[Equation | Complementary]:
    """Stationarity in each global variable; of one that is bounded by zero, the pair that it makes with its slope."""
    out: list[Equation | Complementary] = []
    multipliers = {nu for nu, _ in record.conditions}
    found = set().union(*(body.atoms(Global) for body in record.site.values()))
    for variable in sorted((found | record.shared.atoms(Global)) - set(record.problem.given), key=lambda g: g.name):
        total = record.shared.diff(variable)
        for side, body in record.site.items():
            slope = body.diff(variable).xreplace(local)
            if slope != 0:
                total += _sum_over(side, slope)
        if variable.is_bounded:
            sign = -1 if variable in multipliers else 1  # the Lagrangian is largest in a multiplier
            out.append(Complementary(variable, (sign * total).expand(deep=False)))
            continue
        if total.could_extract_minus_sign():
            total = -total
        if isinstance(total, Sum) and total.function.could_extract_minus_sign():
            total = Sum(-total.function, *total.limits)
        equation = Equation(total, S.Zero)
        record.stationarity.append((variable, equation))
        out.append(equation)
    return out


# -- the record ------------------------------------------------------------------------------------


def optimality_steps(system: System, make: StepMaker) -> list[Step]:
    """The Lagrangian and its optimality conditions."""
    kkt, make = system.record, make.within("Optimality conditions")
    rule = {f.symbol: f.as_sum for f in kkt.fields}
    multipliers = [(m, expr.xreplace(rule), equality) for m, expr, equality in kkt.multipliers]
    multipliers += [(nu, c.total.xreplace(rule), c.equality) for nu, c in kkt.conditions]
    steps = [
        make(
            "lagrangian",
            "lagrangian",
            [Equation(Symbol("L"), kkt.total)],
            data={
                "multipliers": multipliers,
                "auxiliary": [(bound, kink.xreplace(rule)) for bound, kink in kkt.auxiliary],
                "mean": kkt.problem.is_mean,
                "norms": [(n.node.xreplace(rule), n.product.xreplace(rule), n.slack, n.s) for n in kkt.norms],
            },
            assumptions=(("convexity", {}),),
            rests_on=("problem",),
        )
    ]
    for dual, _ in kkt.duals:
        equation = next(e for law in system.laws.values() for e in law.equations if e.lhs == dual)
        steps.append(
            make(
                f"dual.{dual.family.name}",
                "dual",
                [equation],
                data={"dual": dual, "fields": system.fields_in(equation)},
                rests_on=("lagrangian",),
            )
        )
    for state, equation in kkt.stationarity:
        name = state.family.name if isinstance(state, SiteQuantity) else str(state)
        steps.append(
            make(
                f"stationarity.{name}",
                "stationarity",
                [equation.xreplace(rule)],
                data={"state": state},
                rests_on=("lagrangian",),
            )
        )
    pairs = [*(p for law in system.laws.values() for p in law.pairs), *system.shared_pairs]
    if pairs:
        slacks = [Equation(q, expr.xreplace(rule)) for q, expr in kkt.slacks]
        steps.append(
            make(
                "complementarity",
                "complementarity",
                slacks,
                data={"pairs": pairs},
                rests_on=("lagrangian",),
            )
        )
    return steps
