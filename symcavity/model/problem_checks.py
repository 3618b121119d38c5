"""Checks of a problem that has been read."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import Abs, Add, Dummy, Expr, GreaterThan, LessThan, S, sqrt

from symcavity.algebra.signs import weak_sign_of
from symcavity.errors import DeclarationError, NotConvex, UnsupportedLaw
from symcavity.model.convexity import Convexity, check_convex, check_increasing, pulls, takes_both_signs
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.reading import Constraint, variables_of
from symcavity.model.refusals import check_names
from symcavity.model.support import Support, surrogate


def check_problem(problem: Any) -> None:
    """Refuse what is not a problem of sites that hear each other, or cannot be convex where it has to be.

    Raises
    ------
    DeclarationError
        If a variable hears nothing, or what remains of sums of order sqrt(N) would run away.
    NotConvex
        If the objective falls with a norm or an average, is bounded below for one sign of a parameter only, or has
        discrete states.
    """
    stray = [
        q
        for expr in (*problem.objective.values(), *(c.expr for c in problem.constraints))
        for q in site_quantities(expr, Field)
    ]
    if stray:
        raise DeclarationError(
            f"The field {stray[0]} stands in an optimization problem.",
            "states (Feature, Datum), which are minimized over",
            "write the field out, or declare the system by its equations with BipartiteSystem",
        )
    nothing = not any(problem.objective.values()) and problem.global_objective == 0
    if nothing and (problem.asks_convexity or not problem.constraints):  # all states within bounds are a measure too
        raise DeclarationError("The objective is zero.", "sums over the sites of one kind")
    check_names([problem.minimize, *(c.lhs - c.rhs for c in problem.subject_to)])
    _check_labels(problem)
    _check_coupled(problem)
    if not problem.asks_convexity:
        return
    discrete = [q for e in (*problem.objective.values(), problem.minimize) for q in site_quantities(e, Variable)]
    if found := [q for q in discrete if q.family.values]:
        raise NotConvex(
            f"The states of {found[0]} are discrete.",
            "continuous states in a convex problem",
            "Problem(...), which asks for no convexity",
        )
    _check_bounds(problem)
    _check_costs(problem)
    _check_balances(problem)


def convexity(problem: Any) -> Convexity:
    """Return whether convexity follows from how the parts of a problem are put together; refuse what is refuted.

    Raises
    ------
    NotConvex
        If the objective or a constraint lies above its chords.
    """
    parts: list[tuple[Kind | None, Expr, str]] = [(None, problem.global_objective, "the objective")]
    parts += [(kind, at_the_edge(problem, kind), "the objective") for kind in problem.kinds]
    parts += [(c.kind, -c.expr, f"the constraint {c.declared}") for c in problem.constraints if not c.equality]
    for condition in (c for c in problem.conditions if not c.equality):
        where = f"the constraint {condition.declared}"
        parts += [(kind, -body, where) for kind, body in condition.parts.items()] + [(None, -condition.shared, where)]
    fields = {kind: [f.symbol for f in problem.book.all(kind) if f.states()] for kind in problem.kinds}
    held = {kind: [c.expr for c in problem.constraints if c.kind == kind and not c.equality] for kind in problem.kinds}
    found = [_convexity(problem, expr, fields.get(kind, []), where, held.get(kind, [])) for kind, expr, where in parts]
    needed = dict.fromkeys(r for part in found for r in part.where)
    return Convexity(all(part.proved for part in found), tuple(needed))


def at_the_edge(problem: Any, kind: Kind) -> Expr:
    """What the sites of a kind cost, with the least values of quadratic forms of couplings among them.

    ``Sum(w[i]*J[i, j]*w[j])`` lies above ``-e*Sum(w[i]**2)``, where the spectrum of the symmetric part of J ends at
    ``-e = -sqrt(2*(1 + g)*<N J**2>)``, with the reciprocity g: convex with these in place of the forms is convex.
    """
    body = problem.objective.get(kind, S.Zero)
    for f in problem.book.all(kind):
        states = f.states()
        if f.sender != kind or len(states) != 1:
            continue
        ((state,), family) = states, f.coupling.family
        share, size = f.emission / state, N * family.variance
        factor = body.diff(f.symbol, state)
        if factor == 0 or any(e.has(SiteQuantity, f.symbol) for e in (share, size, factor)):
            continue
        edge = sqrt(2 * (1 + family.reciprocity) * size)
        body = (body - factor * state * f.symbol).expand() - Abs(factor * share) * edge * state**2
    return body


def _check_labels(problem: Any) -> None:
    """Refuse constraints that hold no state at some value of a label: their multipliers are then not determined."""
    for constraint in problem.constraints:
        labels = [q for q in site_quantities(constraint.expr, Quenched) if q.family.values]
        for values in product(*(q.family.values for q in labels)):
            at = dict(zip(labels, values, strict=True))
            if labels and not variables_of(constraint.expr.xreplace(at)):
                where = ", ".join(f"{q} = {value}" for q, value in at.items())
                raise UnsupportedLaw(
                    f"The constraint {constraint.declared} holds no state where {where}: nothing fixes its multiplier.",
                    "constraints of all sites of a kind, whose bounds may depend on a label",
                    f"a bound that no site reaches there: u >= Piecewise((0, Eq({labels[0]}, 1)), (-10**4, True))",
                )


def _check_bounds(problem: Any) -> None:
    """Refuse a problem that falls with a convex average of all sites."""
    meanings = problem.rewritten["norms"].meanings | problem.rewritten["centre"].meanings
    for g in (g for g, said in problem.rewritten.declaration.brought if isinstance(said, LessThan)):
        meaning = meanings[g]
        for body in (*problem.objective.values(), problem.global_objective):
            check_increasing(body, g, meaning, "the objective", problem.ranges)
        held = [(c.expr, c) for c in problem.constraints] + [(c.shared, c) for c in problem.conditions if not c.met]
        for body, constraint in held:
            check_increasing(-body, g, meaning, f"the constraint {constraint.declared}", problem.ranges)


def _check_costs(problem: Any) -> None:
    """Refuse states that are held from one side alone at a cost whose sign is not declared."""
    for kind, body in problem.objective.items():
        sent = set().union(*(f.states() for f in problem.book.sent_by(kind)))
        for state in (q for q in site_quantities(body, Variable) if q not in sent):
            cost = body.diff(state)
            held = [c for c in problem.constraints if c.kind == kind and c.expr.has(state)]
            held += [c for c in problem.conditions if any(e.has(state) for e in c.parts.values())]
            pushes = [weak_sign_of(c.expr.diff(state)) for c in held if isinstance(c, Constraint) and not c.equality]
            if len(pushes) < len(held) or len(set(pushes)) != 1 or pushes[0] is None or site_quantities(cost):
                continue
            if cost.atoms(Global) or not takes_both_signs(cost, problem.ranges):
                continue
            word = "positive" if pushes[0] == 1 else "negative"
            raise NotConvex(
                f"The objective is bounded below only if {cost} is {word}, and its sign is not declared.",
                "parameters with declared signs, where the problem depends on them",
                f'{cost} = Symbol("{cost}", {word}=True)' if cost.is_Symbol else "",
            )


def _check_balances(problem: Any) -> None:
    """Refuse sums of order sqrt(N) that nothing pulls one way: what remains of them would run away."""
    bodies = [*problem.objective.values(), *(-c.expr for c in problem.constraints)]
    free = {g for c in problem.constraints if c.equality for g in c.expr.atoms(Global)}
    for g, balance in problem.rewritten["centre"].balances.items():
        ways = pulls(bodies, g, problem.ranges)
        if len(ways) != 1 or g in free:
            continue
        bound = (LessThan if ways == {True} else GreaterThan)(balance.total, N * balance.average, evaluate=False)
        raise DeclarationError(
            f"Sums of order sqrt(N) are bounded from one side only: the rest of {balance.total} beyond "
            f"{N * balance.average} would {'fall' if ways == {True} else 'grow'} for ever.",
            "sums with a mean of order 1/sqrt(N) that are pulled both ways: by labels of both signs, an equality, "
            "a loss that grows to both sides",
            f"to leading order all of them are the one condition {bound}, which may stand in their place; or a "
            "mean of order 1/N",
        )


def _check_coupled(problem: Any) -> None:
    """Refuse a variable that no chain of terms connects to a random field."""
    terms = [t for body in problem.objective.values() for t in Add.make_args(body.expand())]
    groups = [variables_of(t) for t in [*terms, *(c.expr for c in problem.constraints), problem.global_objective]]
    groups += [set().union(*map(variables_of, (*c.parts.values(), c.shared))) for c in problem.conditions]
    heard = {f.symbol for kind in problem.kinds for f in problem.book.all(kind)}
    reached: set[Any] = set(heard).union(*(f.states() for kind in problem.kinds for f in problem.book.all(kind)))
    while grown := [g for g in groups if g & reached and not g <= reached]:
        reached.update(*grown)
    loose = sorted(set().union(*groups) - reached, key=str)
    if loose and heard:
        raise DeclarationError(
            f"{loose[0]} interacts with no random field: its minimization is a problem of its own.",
            "variables that a coupling sum, a constraint or a penalty ties to the rest",
            "leave it out, or tie it in, as in Sum(x[mu, i]*w[i], (i, 1, N)) >= 1 - xi[mu]",
        )


def _convexity(problem: Any, expr: Expr, varying: list[Any], where: str, held: list[Expr]) -> Convexity:
    """What is known of a part; support functions are concave, and stand for themselves in the message."""
    given = {g: Dummy(g.name, real=True) for g in problem.given}
    expr, *held = (e.xreplace(given) for e in (expr, *held))
    try:
        found = check_convex(surrogate(expr), varying, where, problem.ranges, [surrogate(c) for c in held])
        return Convexity(False) if any(r.atoms(Dummy) for r in found.where) else found  # an average is no parameter
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
