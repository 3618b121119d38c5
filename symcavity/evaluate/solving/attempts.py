"""The attempts at solving closed equations, in order: each ends in one outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr, Mul, Symbol, factor_terms

from symcavity.algebra.precision import alone
from symcavity.algebra.signs import sign_given
from symcavity.errors import NotConverged, SeveralSolutions
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solving import saddle_attempt
from symcavity.evaluate.solving.admissible import inadmissible
from symcavity.evaluate.solving.continuation import (
    STRONGEST,
    WEAKEST,
    along_load,
    along_values,
    explicit_range,
    root_by_load,
)
from symcavity.evaluate.solving.eliminated import Eliminated, roots_of
from symcavity.evaluate.solving.evidence import NothingButZero, OnlyRoot
from symcavity.evaluate.solving.finish import finish, finished, limit_at_rest, limit_where_tight, where
from symcavity.evaluate.solving.iterate import root_from_afar, root_near
from symcavity.evaluate.solving.outcomes import Ended, Found, Handover, Lost, Outcome
from symcavity.evaluate.solving.roots import FEW, STARTS
from symcavity.evaluate.solving.search import Effort, Search
from symcavity.evaluate.solving.unsolved import not_found, unsolved
from symcavity.evaluate.watch import tick


@dataclass(frozen=True)
class Attempt:
    """One way to a solution.

    Attributes
    ----------
    name : str
    applies : callable
        Whether it is worth trying.
    run : callable
        Tries it.
    """

    name: str
    applies: Callable[[Search], bool]
    run: Callable[[Search], Outcome]


# -- the attempts -----------------------------------------------------------------------------------


def state_evolution(search: Search) -> Outcome:
    """Follow the state evolution of a convex problem to its one solution."""
    root = root_from_afar(search.whole, search.given.environment("numpy"), search.guess, units=search.units)
    if root is not None:
        return _finished(search, root)
    if search.whole.patient and not search.given.solve_for:
        said = f"The closed equations at {where(search.given)} did not settle when they were iterated."
        hint = "guess=, the values of a solution nearby; weaker fields, as with stronger penalties"
        return Lost(f"{said} {search.whole.why}".rstrip(), hint=hint, left=(AT_REST,))
    return Lost()


def saddle(search: Search) -> Outcome:
    """The root of a convex problem in the coordinates of its saddle, or the proof that there is none."""
    outcome = saddle_attempt.attempt(search.task, search.given)
    if isinstance(outcome, Handover) and search.given.solve_for:
        return Lost()  # a minimum exists, and the saddle does not know the parameter that names a result of it
    return outcome


def where_tight(search: Search) -> Outcome:
    """The limit in which multipliers of tight conditions go to infinity."""
    tightening = search.tightening
    assert tightening is not None  # noqa: S101 - it applies
    limit = limit_where_tight(search.task, search.given, search.observable, tightening)
    return Handover(tightening.point) if limit is None else Found(limit)


def continued_map(search: Search) -> Outcome:
    """Follow the solution by the map: from milder values, and from weak or large loads."""
    if (point := along_values(search.task, search.given, mapped=True)) is not None:
        return Handover(point)
    return _along_loads(search, mapped=True)


def continued_core(search: Search) -> Outcome:
    """Follow the solution by what elimination leaves: from milder values, and from weak or large loads."""
    if (point := along_values(search.task, search.given, mapped=False)) is not None:
        return Handover(point)
    return _along_loads(search, mapped=False)


def _along_loads(search: Search, *, mapped: bool) -> Outcome:
    for begin in (WEAKEST, STRONGEST):
        point, end = along_load(search.task, search.given, begin, mapped=mapped)
        if point is not None:
            return Handover(point)
        if end is not None:
            return Lost(seen=end)
    return Lost()


def at_rest(search: Search) -> Found | Lost:
    """The limit in which states vanish, as at the minimum of a convex problem they may."""
    limit = limit_at_rest(search.task, search.given, search.observable, search.recovery)
    return Lost() if limit is None else Found(limit)


def roots_of_core(search: Search) -> Outcome:
    """The roots of what elimination leaves: the admissible one, or all of them."""
    system, every = search.eliminated, search.every
    if search.guess is not None:
        admitted = search.admitted(roots_of(system, search.guess), first=True)
        if admitted:
            return search.chosen(admitted)
        if search.effort == "near":
            return Lost(left=())
    roots = roots_of(system, None, STARTS if every else FEW, every=every)
    admitted = search.admitted(roots, first=not every)
    if not admitted and not every and len(system.left) == 1:  # the first root is not always the admissible one
        admitted = search.admitted(roots_of(system, None, every=True), first=False)
    return search.chosen(admitted) if admitted else Lost()


def by_signs(search: Search) -> Outcome:
    """A proof by signs: an equation that is a product of factors that do not vanish."""
    closed = search.task.eliminated
    for expr in search.eliminated.core:
        factors = Mul.make_args(factor_terms(expr))
        if all(sign_given(f, closed.positive) in (1, -1) for f in factors):
            return Ended(NothingButZero(expr), tuple(search.complaints))
    return Lost()


def explicit_load(search: Search) -> Outcome:
    """A proof by the load as an explicit function of the parameter that is sought: the range of its values."""
    evidence = explicit_range(search.eliminated)
    return Lost() if evidence is None else Ended(evidence, tuple(search.complaints))


def by_load(search: Search) -> Outcome:
    """Follow the load as a function of the parameter that is sought to the load that is given."""
    root = root_by_load(search.eliminated)
    admitted = [] if root is None else search.admitted([root], first=True)
    return search.chosen(admitted) if admitted else Lost()


def only_root(search: Search) -> Outcome:
    """A proof by the one root that elimination gives explicitly, and the sign that it violates."""
    complaints = search.complaints
    if search.eliminated.left or not complaints or any("not a number" in c for c in complaints):
        return Lost()
    return Ended(OnlyRoot(search.given.outward(search.eliminated.complete([])), complaints[0]), tuple(complaints))


def _at_given_values(search: Search) -> bool:
    return search.is_mapped and not search.given.solve_for


def _may_rest(search: Search) -> bool:
    """Whether nothing seen speaks against states at rest; a minimum may jump there, where no norm vanishes before."""
    return search.seen is None or search.seen.is_at_rest or search.is_at_boundary


AT_REST = "states at rest"
ATTEMPTS = (
    Attempt("state evolution", lambda s: s.is_mapped or (s.is_large and s.whole.is_square), state_evolution),
    Attempt("range of an explicit load", lambda s: bool(s.given.solve_for), explicit_load),
    Attempt("saddle", lambda s: saddle_attempt.applies(s.task, s.given), saddle),
    Attempt("tight conditions", lambda s: s.tightening is not None, where_tight),
    Attempt("continuation of the map", lambda s: _at_given_values(s) and not s.is_at_boundary, continued_map),
    Attempt(AT_REST, lambda s: _at_given_values(s) and _may_rest(s), at_rest),
    Attempt("roots of what elimination leaves", lambda _: True, roots_of_core),
    Attempt("signs", lambda _: True, by_signs),
    Attempt("the load along the parameter", lambda s: bool(s.given.solve_for), by_load),
    # all starting points lead elsewhere, or nowhere: the thermal means of a measure may vanish
    Attempt("states at rest of a measure", lambda s: s.every and s.task.measure is not None, at_rest),
    Attempt("continuation of what elimination leaves", lambda _: True, continued_core),
    # thermal means may vanish, and elimination divides by their squares
    Attempt("the only root", lambda s: s.task.measure is None, only_root),
    Attempt("states at rest of a system", lambda s: not s.task.convex and s.task.measure is None, at_rest),
)


@alone
def solve(
    task: Task,
    values: Mapping[Any, Any],
    dps: int,
    observable: Callable[[Any], Expr],
    guess: Mapping[Symbol, Any] | None = None,
    *,
    double: bool = False,
    effort: Effort = "full",
) -> Solution:
    """Solve the closed equations.

    Parameters
    ----------
    task : Task
    values : mapping
        Values of the parameters, of the load or the sizes, and of the quenched parameters.
    dps : int
        Digits.
    observable : callable
        Turns an observable into order parameters (the theory's own).
    guess : mapping, optional
        A solution nearby, for continuation.
    double : bool
        Whether to stay in double precision throughout.
    effort : str
        How far to look: see :class:`Search`.

    Raises
    ------
    ValuesError
        If the values do not fit the theory.
    Infeasible
        If it is proved that the equations have no solution there; the proof is in ``.evidence``.
    FlatMinimum
        If it is proved that the minimum is not unique: as before.
    SeveralSolutions
        If there are several, and the problem is not declared convex.
    NotConverged
        If no root was found, or it could not be polished; the best point is in ``.best``.
    """
    given = read_values(task, values, dps).in_own_units(task)
    given = replace(given, double=True) if double else given
    near = None if guess is None else given.inward(guess)
    return solve_given(task, given, observable, near, effort=effort)


@alone
def resting(
    task: Task, values: Mapping[Any, Any], dps: int, observable: Callable[[Any], Expr]
) -> Solution | None:
    """Return the limit in which states of a convex problem vanish, as they do at its minimum; None if there is none."""
    given = read_values(task, values, dps).in_own_units(task)
    return limit_at_rest(task, given, observable) if _at_given_values(Search(task, given, observable)) else None


def solve_given(
    task: Task,
    given: Given,
    observable: Callable[[Any], Expr],
    guess: Mapping[Symbol, Any] | None = None,
    *,
    effort: Effort = "full",
) -> Solution:
    """Solve the closed equations at values that have been read, by one attempt after another.

    Raises
    ------
    Infeasible
        If an attempt ended with a proof that there is no solution.
    FlatMinimum
        If one ended with a proof that there are many.
    SeveralSolutions
        If there are several, and the problem is not declared convex.
    NotConverged
        If all attempts were lost.
    """
    search = Search(task, given, observable, guess, effort=effort)
    todo, named = list(ATTEMPTS), False
    while todo:
        attempt = todo.pop(0)
        tick(attempt.name)
        if not (named or attempt.applies(search)):
            continue
        outcome = _tried(attempt, search)
        if isinstance(outcome, Found):
            return outcome.solution
        if isinstance(outcome, Ended):
            raise unsolved(given, outcome)
        search.lost.append(outcome)
        if outcome.left is not None:
            todo, named = [a for a in ATTEMPTS if a.name in outcome.left], True
    if search.proof is not None:
        raise unsolved(given, search.proof)
    missed = not_found(search)
    missed.best = given.outward(missed.best) if isinstance(missed.best, Mapping) else missed.best
    raise missed


def _tried(attempt: Attempt, search: Search) -> Found | Ended | Lost:
    """The outcome of an attempt, after its point has been followed, and the questions that a proof leaves open."""
    try:
        outcome = attempt.run(search)
        if isinstance(outcome, Handover):
            outcome = _from_point(search, outcome.point)
        return _beyond(search, outcome) if isinstance(outcome, Ended) and outcome.evidence.is_at_rest else outcome
    except SeveralSolutions:
        raise
    except NotConverged as problem:  # averages that have no value, digits that are not reached
        return Lost.of(problem)


def _from_point(search: Search, point: Mapping[Symbol, Any]) -> Found | Lost:
    """The root close to a point: of the map where it leads to the solution, else of what elimination leaves."""
    if not search.is_mapped:
        admitted = search.admitted([search.eliminated.of_left(point)], first=True)
        return search.chosen(admitted) if admitted else Lost()
    root = root_near(search.whole, search.given.environment("numpy"), point)
    if root is not None:
        return _finished(search, root)
    whole = Eliminated.whole(search.task, search.given)
    if complaint := inadmissible(whole, point, solved=True):
        search.complaints.append(complaint)
        return Lost()
    return Found(finish(whole, whole.of_left(point), search.observable))


def _finished(search: Search, root: Root) -> Found | Lost:
    """The solution at a root of the map, if it is admissible."""
    if complaint := inadmissible(Eliminated.whole(search.task, search.given), root.point, solved=True):
        search.complaints.append(complaint)
        return Lost()
    return finished(search.task, search.given, root, search.observable)


def _beyond(search: Search, ended: Ended) -> Lost:
    """A proof that leaves the states at rest as the one way out."""
    if not search.task.convex:
        return Lost(left=(AT_REST,), proof=ended)
    # at rest the problem may have its minimum all the same: that there is none is not said
    reasons = "".join(f" {reason}." for reason in dict.fromkeys(ended.complaints))
    said = f"No root was found at {where(search.given)}.{reasons} {ended.evidence} The limit was not found."
    return Lost(said, hint="simulate(...) of the same values", left=(AT_REST,))
