"""Solve a theory at given values: its sets are put in, and each alternative of its declaration is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sympy import Expr, Symbol

from symcavity.algebra.joint import NumberedAverage, one_set
from symcavity.algebra.precision import mp
from symcavity.errors import FlatMinimum, Infeasible, NotConverged, SeveralSolutions, UnsupportedLaw, ValuesError
from symcavity.evaluate.binding import bind, put_in
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.arguments import NO_SOLUTION
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.complex_values import has_complex
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solving import saddle_attempt
from symcavity.evaluate.solving.admissible import inadmissible
from symcavity.evaluate.solving.analytic import solve_analytic
from symcavity.evaluate.solving.attempts import resting, solve
from symcavity.evaluate.solving.eliminated import Eliminated
from symcavity.evaluate.solving.finish import limit_where_tight
from symcavity.evaluate.solving.guesses import read_guess
from symcavity.evaluate.solving.iterate import root_from_afar
from symcavity.evaluate.solving.missed import beside, one_of
from symcavity.evaluate.solving.outcomes import Ended, Handover, Lost
from symcavity.evaluate.solving.search import Effort
from symcavity.evaluate.solving.unsolved import unsolved
from symcavity.evaluate.tasks import task_of
from symcavity.evaluate.watch import watched
from symcavity.method.theory import Theory


def solve_theory(
    theory: Theory,
    values: Mapping[Any, Any] | None = None,
    dps: int = 15,
    guess: Mapping[Any, Any] | None = None,
    timeout: float | None = None,
    *,
    certify: bool = False,
    effort: Effort = "full",
) -> Solution:
    """Solve the closed equations of a theory; the values may hold convex sets.

    Raises
    ------
    ValuesError
        For missing, superfluous or contradictory values, before any work.
    Infeasible
        If there is no solution.
    NotConverged
        If a root could not be found or polished.
    """
    if certify:
        from symcavity.evaluate.certificates.certificate import certify as enclosed
        from symcavity.evaluate.certificates.certificate import enclosable
    near = read_guess(theory, guess)
    with watched(timeout):
        bound, rest = bind(theory, {} if values is None else values, dps)
        check_digits(bound, dps)
        if has_complex(rest):
            if certify or near:
                said = "guess=" if near else "certify=True"
                raise ValuesError(f"{said} was given with complex values.", "guess= and certify= with real values")
            found: Any = solve_analytic(task_of(bound), rest, dps, bound.observable)
        elif is_sampled(bound):
            if certify:
                raise UnsupportedLaw("Averages that are sampled are not enclosed.", "laws whose fields are numbers")
            found = sampled_solution(bound, rest, dps, near)
        else:
            for branch in bound.branches if certify else ():  # before any long work
                task = task_of(branch)
                enclosable(task, read_values(task, rest, dps))
            found = solve_bound(bound, rest, dps, near, effort=effort)
        if certify:
            found.certified = enclosed(found)
        numbers = {str(k) for k in found.given.exact}
        found.beside = {k: v for k, v in ({} if values is None else values).items() if str(k) not in numbers}
        return found


def solve_bound(
    theory: Theory,
    values: Mapping[Any, Any],
    dps: int,
    guess: Mapping[Any, Any] | None = None,
    *,
    double: bool = False,
    effort: Effort = "full",
) -> Solution:
    """Solve a theory that has its sets, on that branch of its conditions on all sites on which the signs are right.

    A convex problem has one; of another system all branches are looked at.

    Raises
    ------
    SeveralSolutions
        If a system that is not declared convex has solutions on several branches.
    """
    found: list[Solution] = []
    failed: list[Infeasible | FlatMinimum | NotConverged] = []
    tries = [(branch, guess) for branch in theory.branches]
    if theory.system.convex and len(tries) > 1 and guess is None:  # a search on the wrong one takes long
        first = _likely(theory, values, dps)
        if isinstance(first, Solution):
            return first
        tries = [first, *(row for row in tries if row[0] is not first[0])] if first else tries
    for branch, near in tries:
        try:
            found.append(solve(task_of(branch), values, dps, branch.observable, near, double=double, effort=effort))
            found[-1].origin = restored, branch, values
        except NO_SOLUTION as error:
            failed.append(error)
            continue
        if theory.system.convex:
            break
    if len(found) > 1:
        raise SeveralSolutions(
            "There are solutions in which the conditions on sums over all sites hold as equalities, and others "
            "in which they are slack.",
            tuple(s.values for s in found),
            "a system with one of the alternatives only, or guess=...",
        )
    if found:
        return found[0]
    missed = one_of(failed)
    if theory.system.convex and effort == "full" and isinstance(missed, NotConverged):
        task = task_of(theory)
        raise beside(task, read_values(task, values, dps).in_own_units(task), missed)
    raise missed


def _likely(theory: Theory, values: Mapping[Any, Any], dps: int) -> tuple[Theory, Any] | Solution | None:
    """The branch of a convex problem on which the solution is likely to be, and a point nearby; or the solution."""
    for branch in reversed(theory.branches):
        if (point := _settled(branch, values)) is not None:
            return branch, point
    if (there := _on_its_branch(theory, values, dps)) is not None:
        return there
    for branch in theory.branches:
        if (rest := resting(task_of(branch), values, dps, branch.observable)) is not None:
            rest.origin = restored, branch, values
            return rest
    return None


def _on_its_branch(theory: Theory, values: Mapping[Any, Any], dps: int) -> tuple[Theory, Any] | Solution | None:
    """The branch on which the saddle of a convex problem has its root, and the root; None where it has not been found.

    The solution itself where conditions are tight, and multipliers infinite.

    Raises
    ------
    Infeasible, FlatMinimum
        If the saddle has no root, or many.
    """
    task = task_of(theory)
    given = read_values(task, values, dps).in_own_units(task)
    outcome = saddle_attempt.attempt(task, given) if saddle_attempt.applies(task, given) else Lost()
    if isinstance(outcome, Ended):
        raise unsolved(given, outcome)
    tightening = outcome.tightening if isinstance(outcome, Lost) else None
    there = outcome if isinstance(outcome, Handover) else tightening
    if there is None:
        return None
    found = there.point
    idle = {g for g, unit in theory.units.items() if not all(found[s] for s in unit.free_symbols & found.keys())}
    for branch in theory.branches:
        pairs = zip(branch.global_equations, theory.system.partners, strict=True)
        if all((closed.lhs == partner) == (partner in idle) for closed, partner in pairs if partner is not None):
            if tightening is None:
                return branch, given.outward(found)
            limit = limit_where_tight(task_of(branch), given, branch.observable, tightening)
            if limit is not None:
                limit.origin = restored, theory, values
            return limit
    return None


def _evolved(branch: Theory, values: Mapping[Any, Any]) -> tuple[Eliminated, Root | None] | None:
    """The equations at some values, and where the state evolution leads; None of what is not solved by it."""
    task = task_of(branch)
    given = read_values(task, values, 15).in_own_units(task)
    closed = task.closed_map(given)[0]
    if given.solve_for or not (task.convex and closed.is_square):
        return None
    return Eliminated.whole(task, given), root_from_afar(closed, given.environment("numpy"))


def _settled(branch: Theory, values: Mapping[Any, Any]) -> dict[Symbol, Any] | None:
    """Where the state evolution on a branch settles, if that is admissible there."""
    whole, root = _evolved(branch, values) or (None, None)
    if whole is None or root is None or inadmissible(whole, root.point, solved=True):
        return None
    return whole.given.outward(root.point)


def settles(theory: Theory, values: Mapping[Any, Any]) -> bool:
    """Whether the state evolution of a convex problem leads to its solution; true of what is not solved by it."""
    bound, rest = bind(theory, values)
    for branch in reversed(bound.branches):  # that of an idle condition first, as a condition that idles is met nowhere
        if (found := _evolved(branch, rest)) is None:
            return True
        whole, root = found
        if root is not None and (branch is bound or not inadmissible(whole, root.point, solved=True)):
            return True
    return False


def check_digits(theory: Theory, dps: Any) -> None:
    """Refuse more digits than the averages over the sets have.

    Raises
    ------
    ValuesError
        If an average is sampled, or integrated in double precision.
    """
    if not isinstance(dps, int) or dps <= IN_DOUBLE:
        return
    nodes = {n for e in theory.equations for n in e.difference.atoms(NumberedAverage) if not n.has_many_digits}
    for what, supported in (node.precision for node in sorted(nodes, key=str)):
        raise ValuesError(f"{dps} digits were requested, but {what} are computed in double precision.", supported)


@lru_cache(maxsize=1024)
def _has_samples(expr: Expr) -> bool:
    return any(node.is_sampled for node in expr.atoms(NumberedAverage))


def is_sampled(theory: Theory) -> bool:
    """Whether some average has to be sampled."""
    return any(_has_samples(e.difference) for e in theory.equations)


def sampled_solution(theory: Theory, values: Mapping[Any, Any], dps: int, guess: Any) -> Solution:
    """Solve with all samples, and with each independent set of them for the standard errors."""
    def at(one: Theory, start: Any) -> Any:
        return solve(task_of(one), values, dps, one.observable, start)

    def part(number: int) -> Theory:
        sets = one_set((e.difference for e in theory.equations), number)
        return put_in(theory, {g: sets.get(bound, bound) for g, bound in theory.binding.items()} | sets, sets)

    try:  # one set of samples is a sixteenth of the work, and leads to where all of them agree
        start = guess or at(part(0), None).values
    except NO_SOLUTION:
        start = None
    whole = at(theory, start)
    whole.origin = restored, theory, values
    return SampledSolution(whole, lambda number: at(part(number), whole.values))


def restored(
    theory: Theory,
    values: Mapping[Any, Any],
    dps: int,
    found: dict[Symbol, Any] | None,
    quick: bool,
    guard: int,
    rest: dict[str, Any],
) -> Solution:
    """A solution that was pickled: as it was found; limits and samples are solved for again.

    What was known to more digits than double is refined again on request.
    """
    exact = {k: mp.mpf(v) if isinstance(v, float) else v for k, v in values.items()}

    def refine(more: int) -> dict[Symbol, Any]:
        return given.inward(dict(solve_bound(theory, exact, dps + more, found).values))

    if is_sampled(theory):
        out = sampled_solution(theory, values, dps, found)
    elif found is None:
        out = solve_bound(theory, values, dps)
    else:
        task = task_of(theory)
        given = replace(read_values(task, values, dps).in_own_units(task), double=quick)
        out = Solution(task, given, given.inward(found), theory.observable, None if quick else refine, guard)
        out.origin = restored, theory, values
    out.beside, out.remarks = rest["beside"], rest["remarks"]
    if rest["certified"]:
        from symcavity.evaluate.certificates.certificate import certify as enclosed

        out.certified = enclosed(out)
    return out
