"""Optimality conditions of a convex problem, as a bipartite system.

The Lagrangian is a sum of site functions; the two sides meet only in the coupling sums.  So its
stationarity in a state X of one side is ``dL_site/dX = (d emission/dX) * sum over the other side of
coupling * message`` with the message ``-dL_site/d(field)`` of the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import Any

from sympy import Add, Eq, Expr, S, Sum, Symbol, cancel

from symcavity.algebra.exponentials import as_fraction
from symcavity.algebra.hinges import without_signs, without_steps
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.epigraph import epigraph
from symcavity.method.lagrangian import Lagrangian
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.reading import Constraint, SumCondition
from symcavity.model.support import Anchor, Support, VectorField, VectorVariable
from symcavity.model.system import System
from symcavity.record.symbols import MANY


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
    equations, conditions, record = optimality_of(problem)
    return System(
        equations,
        conditions,
        convex=True,
        record=record,
        **problem.taken_over(),
    )


def optimality_of(problem: Problem) -> tuple[list[Equation], list[Complementary], Lagrangian]:
    """The equations and the pairs of the optimality conditions, with sums written out, and what they follow from."""
    record = Lagrangian(problem)
    every = [*problem.objective.values(), *(c.expr for c in problem.constraints), problem.global_objective]
    every += [e for c in problem.conditions for e in (*c.parts.values(), c.shared)]
    every += [f.emission for f in record.fields] + [f.coupling for f in record.fields]
    declared = {q.family.name for expr in every for q in site_quantities(expr)}
    declared |= {symbol.name for expr in every for symbol in expr.atoms(Symbol)}
    kernels = problem.rewritten["kernel"]
    coefficients = {kernels.coefficients.family.name} if kernels else set()
    names = _Names(declared | coefficients | {"u", "v"})
    objective, record.shared = dict(problem.objective), problem.global_objective
    for condition in problem.conditions:
        nu = multiplier(condition, names.fresh("nu"))
        record.conditions.append((nu, condition))
        for kind, body in condition.parts.items():
            objective[kind] = objective.get(kind, S.Zero) - nu * body
        record.shared -= nu * condition.shared
    objective, constraints = epigraph(objective, record, names.fresh)
    equations: list[Eq | Equation] = []
    conditions, local = list[Complementary](), dict[Expr, SiteQuantity]()
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
    named = [Equation(q, s.xreplace(rule)) for s, q in local.items()]
    pairs = [Complementary(*(q.xreplace(record.labels) for q in pair.pair)) for pair in conditions]
    return [Equation(e.lhs, e.rhs).xreplace(rule) for e in equations] + named, pairs, record


def multiplier(condition: SumCondition, name: str) -> Global:
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
    local: dict[Expr, SiteQuantity],
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
            said = _vectors(c.expr, heard) if vector else []
            rename = {s: _local(s, side, names, local, fields) for s in said}
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


def _vectors(expr: Expr, heard: Sequence[Symbol]) -> list[Expr]:
    """What the support functions of a constraint are taken of: sums of several fields are one vector."""
    joined = {node.body for node in expr.atoms(Support) if sum(node.body.has(s) for s in heard) > 1}
    alone = [s for s in heard if not any(body.has(s) for body in joined)]
    return [*sorted(joined, key=str), *alone]


def _local(
    what: Expr, side: Kind, names: _Names, local: dict[Expr, SiteQuantity], fields: Sequence[RandomField]
) -> SiteQuantity:
    """The named local field of a placeholder, or of a sum of vectors."""
    if what not in local:
        components = next(f.components for f in fields if what.has(f.symbol))
        if components:
            family = VectorField(names.fresh("V", "V_2", "V_3"), tuple(components), side.index)
            local[what] = family.at_site()
            return local[what]
        local[what] = Field(names.fresh(*_numbered(("h", "h_2"), fields)), index=side.index).at_site()
    return local[what]


def _numbered(names: tuple[str, ...], fields: Sequence[RandomField]) -> tuple[str, ...]:
    """The names of what belongs to each of some fields: of many they are numbered."""
    count = sum(bool(f.states()) for f in fields)
    return names if count < MANY else tuple(f"{names[0]}_{k}" for k in range(1, count + 1))


def _message(
    f: RandomField,
    record: Lagrangian,
    names: _Names,
    equations: list[Eq | Equation],
    local: dict[Expr, SiteQuantity],
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
    whole = {s: q for s, q in local.items() if s.is_Add}
    raw = raw.xreplace(whole)
    factor, rest = raw.as_independent(SiteQuantity, Anchor, as_Add=False)
    if (shared := next((dual for dual, other in record.duals if f.components and other == rest), None)) is not None:
        return factor * shared
    if not f.components:
        for dual, other in record.duals:  # a message that is another one, but for parameters, has no second name
            ratio = cancel(raw / other)
            bottom = ratio.as_numer_denom()[1]  # a parameter that may vanish is no divisor
            if bottom.is_nonzero and not ratio.has(SiteQuantity, Anchor, *placeholders):
                return ratio * dual
    if f.components and any(rest.has(q) for q in whole.values()):
        raw = rest
    else:
        factor = S.One
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
    return factor * dual


def _stationarity(
    side: Kind,
    record: Lagrangian,
    messages: dict[Symbol, Expr],
    local: dict[Expr, SiteQuantity],
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
        slope = without_signs(own.diff(state)).xreplace(local)
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
        if not site_quantities(equation.difference, Variable, Field) and not equation.difference.has(Global):
            raise DeclarationError(
                f"Nothing bounds {state}: the objective is linear in it, and no constraint holds it.",
                "objectives with a minimum",
                f"a penalty such as Sum({state}**2, ({state.site[side]}, 1, {side.size})), or a constraint on {state}",
            )
        record.stationarity.append((state, equation))
        equations.append(equation)


def _heard_back(f: RandomField, message: Expr) -> Expr:
    """The sum over the hearers of a field of coupling times message, as the sender's site hears it."""
    if f.hearer != f.sender:
        return _sum_over(f.hearer, f.coupling * message, f.components)
    own, second = f.hearer.index, f.sender_index
    symmetric = f.coupling.family.reciprocity == 1  # it is its own transpose
    turned = f.coupling if symmetric else f.coupling.xreplace({own: second, second: own})
    body = turned * message.xreplace({own: second})
    return Sum(body, (second, 1, f.hearer.size)) if message != 0 else S.Zero


def _sum_over(side: Kind, body: Expr, components: Sequence[Expr] = ()) -> Expr:
    limits = [side.range, *([tuple(components)] if components else [])]
    return Sum(body, *limits) if body != 0 else S.Zero


def _global_conditions(record: Lagrangian, local: dict[Expr, SiteQuantity]) -> list[Equation | Complementary]:
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
            record.turned ^= {variable}
        if isinstance(total, Sum) and total.function.could_extract_minus_sign():
            total = Sum(-total.function, *total.limits)
            record.turned ^= {variable}
        equation = Equation(total, S.Zero)
        record.stationarity.append((variable, equation))
        out.append(equation)
    return out
