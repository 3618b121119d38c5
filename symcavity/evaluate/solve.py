"""Solve a theory at given values: its sets are put in, and each alternative of its declaration is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from sympy import Expr, Integer, Symbol

from symcavity.algebra.joint import SCRAMBLE, NumberedAverage
from symcavity.algebra.precision import mp
from symcavity.errors import FlatMinimum, Infeasible, NotConverged, SeveralSolutions, UnsupportedLaw, ValuesError
from symcavity.evaluate.binding import bind, put_in
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.given.arguments import NO_SOLUTION
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.complex_values import has_complex
from symcavity.evaluate.given.values import GibbsMeasure, Given, Task
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.evaluate.solutions.solution import IN_DOUBLE, SHOWN, Solution
from symcavity.evaluate.solving import saddle_attempt
from symcavity.evaluate.solving.admissible import inadmissible
from symcavity.evaluate.solving.analytic import solve_analytic
from symcavity.evaluate.solving.attempts import resting, solve, solve_given
from symcavity.evaluate.solving.eliminated import Eliminated
from symcavity.evaluate.solving.finish import limit_where_tight
from symcavity.evaluate.solving.guesses import read_guess
from symcavity.evaluate.solving.iterate import root_from_afar
from symcavity.evaluate.solving.missed import beside, one_of
from symcavity.evaluate.solving.outcomes import Ended, Handover, Lost
from symcavity.evaluate.solving.search import Effort
from symcavity.evaluate.solving.unsolved import unsolved
from symcavity.evaluate.watch import watched
from symcavity.method.fluctuations import variance_of_minimum
from symcavity.method.mirrors import mirrors
from symcavity.method.moved import moved_of
from symcavity.method.pair import pair_of
from symcavity.method.recession import Side, widest_margin
from symcavity.method.saddle import saddle_of, scales_of
from symcavity.method.theory import Theory
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.support import SupportFunction


def task_of(theory: Theory) -> Task:
    """Return what the numerics need to know of a theory; it is made once."""
    if "task" not in theory.memory:
        system = theory.system
        if system.time is not None:
            raise UnsupportedLaw(
                "The states of this theory depend on time: run it forward in time instead of solving it.",
                "theory.evolve(values, until=...)",
            )
        held = {s: m.atoms(SiteQuantity) for s, m in theory.order_parameters.items()}
        states = set() if system.record is None else system.record.states
        theory.memory["task"] = Task(
            theory.equations,
            theory.scaled_unknowns,
            tuple(p for p in system.parameters if p not in theory.binding),
            tuple(q for q in system.quenched if q.given is None or q.low is not None),
            # without a condition that fixes it, no load follows
            lambda with_load: theory.reduced_with_load if with_load and system.fixed else theory.reduced,
            lambda: theory.gains,
            lambda: theory.objective,
            lambda: variance_of_minimum(theory),
            lambda: moved_of(theory),
            lambda observed, over: pair_of(theory, observed, over),
            theory.in_words,
            theory.units,
            theory.assumed(),
            system.name,
            variances=tuple(f.coupling.family.variance for f in system.fields),
            ranges=system.ranges,
            responses=tuple(s for s, m in theory.order_parameters.items() if m.has(SiteResponse)),
            primal=tuple(
                s for s, m in held.items() if {q.family for q in m if not isinstance(q, Quenched)} <= states
            ),
            convex=system.convex,
            linear=all(site.strategy.is_linear for site in theory.inserted.values()),
            kinds=system.kinds,
            jumping=frozenset() if system.convex else _jumping(theory),
            saddle=cache(lambda: saddle_of(theory)),
            has_margin=lambda sides, given: _has_margin(theory, sides, given),
            scales=cache(lambda: scales_of(theory)),
            measure=_measure(theory),
        )
    return theory.memory["task"]


def _has_margin(theory: Theory, sides: Sequence[Side], given: Given) -> bool | None:
    """Whether some direction to given sides of fields has a margin; None where that is open."""
    key = "margin", tuple(sides)
    if key not in theory.memory:
        theory.memory[key] = widest_margin(theory.system.record.problem, sides) if theory.system.record else None
    found: Theory | None = theory.memory[key]
    if found is None:
        return None
    task = task_of(found)
    held = {s: v for s, v in given.exact.items() if s in (*task.parameters, *task.ratios, *task.sizes)}
    try:
        at = replace(given, exact=held, solve_for=(), dps=min(given.dps, IN_DOUBLE))
        solution = solve_given(task, at, found.observable)
    except Infeasible:
        return False
    except (FlatMinimum, NotConverged):
        return None
    return True if solution.is_limit or solution.digits >= SHOWN else None  # a rough one proves nothing


def _measure(theory: Theory) -> GibbsMeasure | None:
    """What tells solutions of a Gibbs measure apart; those of a convex problem have no need of it."""
    weights = theory.system.weights.values()
    if not weights or theory.system.convex or theory.is_naive:
        return None
    states = [q for w in weights if not w.is_field for q in w.states]
    discrete = all(getattr(q.family, "values", ()) for q in states)
    found: list[Any] = []
    for word in ("free_energy", "entropy"):
        try:
            found.append(getattr(theory, word))
        except UnsupportedLaw:
            found.append(None)
    cold = any(w.is_cold for w in weights)
    free, entropy = found
    return GibbsMeasure(free, entropy, discrete, cold, _is_bound(theory), cache(lambda: mirrors(theory)))


def _is_bound(theory: Theory) -> bool:
    """Whether Guerra's bound holds: discrete states of one square that meet in pairs, and nothing else shared.

    The variance of the energy of pairs is then a square of the overlap of two configurations, which is convex, and that
    of a configuration with itself does not fluctuate.
    """
    system = theory.system
    fields = [f for f in system.fields if f.states()]
    pairs = all(f.sender == f.hearer and f.coupling.family.reciprocity == 1 for f in fields)
    if not pairs or system.globals or any(w.is_local or w.is_field for w in system.weights.values()):
        return False
    values = [getattr(w.state.family, "values", ()) for w in system.weights.values() if hasattr(w.state, "family")]
    return len(values) == len(system.weights) and all(len({v**2 for v in own}) == 1 for own in values)


def _jumping(theory: Theory) -> frozenset[Any]:
    """The states whose law jumps with a field that a change of them reaches again."""
    found: set[Any] = set()
    for kind, site in theory.inserted.items():
        if site.law.weight is not None:  # its law says which of several states is meant
            continue
        jumping: frozenset[Any] = getattr(site.solution, "jumping", frozenset())
        if jumping and any(f.states() for f in theory.system.laws[kind].fields) and _is_reached_again(theory, kind):
            found |= jumping
    return frozenset(found)


def _is_reached_again(theory: Theory, kind: Kind) -> bool:
    """Whether what a kind of site sends comes back to its fields, through whatever others."""
    try:
        gains = theory.gains
    except UnsupportedLaw:  # not derived
        return True
    own = [k for k, spread in enumerate(gains.spreads) if spread.hearer == kind]
    return any(row[k] != 0 for row in gains.rounds for k in own)


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
    if not isinstance(dps, int) or dps <= 15:
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
        rule = {**theory.binding, SCRAMBLE: Integer(number)}
        rule |= {g: bound.scramble(number) for g, bound in rule.items() if isinstance(g, SupportFunction)}
        sets = {b: rule[g] for g, b in theory.binding.items() if isinstance(g, SupportFunction)}
        return put_in(theory, rule, {**sets, SCRAMBLE: Integer(number)})

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

    What was known to more digits than double is refined again when that is asked for.
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
