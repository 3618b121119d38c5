"""Kinks as constraints: a variable that bounds each |.| and Max of the objective, and a constraint for each piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, combinations

from sympy import Abs, Dummy, Expr, Max, Min, Pow, S, cancel

from symcavity.algebra.signs import sign_given, sign_of, weak_sign_of
from symcavity.errors import DeclarationError, NotConvex, UnsupportedLaw
from symcavity.method.lagrangian import Lagrangian
from symcavity.method.norms import refuse_tips, without_norms
from symcavity.model.kinds import Kind
from symcavity.model.problem import Problem
from symcavity.model.quantities import Global, Variable, site_quantities
from symcavity.model.ranges import margins
from symcavity.model.reading import Constraint
from symcavity.model.support import Support
from symcavity.sites.branching.kinks import decided


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
    places: dict[Expr, list[tuple[Expr, Dummy, dict[Expr, Expr]]]] = {}
    for kink in sorted(body.atoms(Abs, Max, Min), key=str):
        mark = Dummy("t", real=True)
        if len(kink.args) > 2 or not kink.has(*varying or [mark]):
            continue
        if body.xreplace({kink: mark}).diff(mark).has(mark):
            continue
        first, second = (kink.args[0], S.Zero) if isinstance(kink, Abs) else (*kink.args[::-1],)
        gap = (first - second).expand()
        groups = places.setdefault(_place(gap, varying), [])
        ratios = [cancel(gap / place) for place, _, _ in groups]
        signs = [None if ratio.has(*varying) else sign_of(ratio) for ratio in ratios]
        number = next((k for k, sign in enumerate(signs) if sign in (1, -1)), len(groups))
        if number == len(groups):
            groups.append((gap, mark, {}))
            ratios, signs = [*ratios, S.One], [*signs, 1]
        ratio, sign, (place, hinge, members) = ratios[number], signs[number], groups[number]
        above = ratio * hinge if sign == 1 else -ratio * (hinge - place)  # the positive part of the gap
        if isinstance(kink, Abs):
            members[kink] = 2 * above - gap
        else:
            members[kink] = second + above if isinstance(kink, Max) else first - above
    for place, hinge, members in chain.from_iterable(places.values()):
        if len(members) > 1:
            body = body.xreplace(members)
            slope = body.diff(hinge)
            body = (body - slope * hinge).expand() + slope.expand() * Max(0, place)
    return body


def _place(gap: Expr, varying: list[Expr]) -> Expr:
    """What gaps have in common that vanish at one place: each by its rate along a variable; zero if not linear."""
    inner = next((q for q in varying if gap.has(q)), None)
    rate = S.One if inner is None else gap.diff(inner)
    return S.Zero if rate.has(*varying) else cancel(gap / rate)


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


def _to_bound(kink: Expr, body: Expr, varying: list[Expr]) -> tuple[Expr, tuple[Expr, ...]] | None:
    """The slope of a body in a kink, and what a bound on the kink exceeds; None where the body is smooth in it.

    A smooth function such as ``Max(0, .)**2`` has a derivative of its own; that of a convex set has none, and its
    bound need not be kept from being negative.
    """
    mark, sides = Dummy("t", real=True), _arguments(kink)
    slope = body.xreplace({kink: mark}).diff(mark)
    if not slope.has(mark, *varying):
        return slope, sides
    slopes = [s for s in _slopes_at(kink, mark, slope, varying) if s != 0]
    if not slopes:
        if not (isinstance(kink, Max) and S.Zero in sides and kink.has(Support)):
            return None
        return slope.xreplace({mark: Dummy("t", nonnegative=True)}), tuple(a for a in sides if a != 0)
    slope = slopes[0]
    if slope.has(S.NaN, S.ComplexInfinity) or any(p.base == 0 for p in slope.atoms(Pow)):
        raise UnsupportedLaw(
            f"{kink} stands in a function that may have an infinite slope where it vanishes, or none.",
            "powers that are numbers of at least one",
            f"{kink}**Rational(3, 2)",
        )
    return slope, sides


def epigraph(
    objective: dict[Kind, Expr], record: Lagrangian, fresh: Callable[..., str]
) -> tuple[dict[Kind, Expr], list[Constraint]]:
    """Replace |.| and Max in the objective by variables that bound them, and split them in constraints."""
    problem = record.problem
    constraints: list[Constraint] = []
    for c in problem.constraints:
        constraints += _split(c, problem)
    for side in problem.kinds:
        whole = objective.get(side, S.Zero)
        varying = _varying(side, whole, problem)
        body = _gathered(without_norms(whole, side, varying, record, fresh), varying)
        # a kink around others first: a bound on each would leave the inner one loose where it is not the largest
        for kink in sorted(body.atoms(Abs, Max, Min), key=lambda k: (-len(k.atoms(Abs, Max, Min)), str(k))):
            if not body.has(kink) or not kink.has(*_varying(side, kink, problem) or [Dummy()]):
                continue
            piece = decided(kink, [c.expr for c in problem.constraints if c.kind == side and not c.equality])
            if piece is not None:
                body = body.xreplace({kink: piece})
                continue
            found = _to_bound(kink, body, _varying(side, body, problem))
            if found is None:
                continue
            slope, sides = found
            sign = weak_sign_of(slope) or sign_given(slope, margins(problem.ranges))
            convex = isinstance(kink, Abs | Max) == (sign == 1)
            if sign is None or not convex:
                raise NotConvex(
                    f"{kink} enters the objective with the factor {slope}.",
                    "positive factors of Abs and Max, negative ones of Min",
                    "declare the factor's sign: Symbol('...', positive=True), Quenched('...', mu, positive=True); its "
                    "values, where it may be zero as a mask, Quenched('...', mu, law={0: '1/2', 1: '1/2'}); or a range "
                    "of parameters such as beta < 1 in subject_to",
                )
            bound = Variable(fresh("t", "r", "d"), side.index).at_site()
            body = body.xreplace({kink: bound})
            record.auxiliary.append((bound, kink))
            flip = 1 if sign == 1 else -1
            for a in sides:
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
