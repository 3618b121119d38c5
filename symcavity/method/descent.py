"""Gradient descent on a declared problem, as a system whose states move in steps.

The optimality conditions are the equations of motion but for one thing: where the slope of the objective in a state
is zero at rest, the state goes against it by a step. What answers at once (fields, messages, states that an equality
defines) is told by the same equations at each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Derivative, Eq, Expr, S, Symbol, factor_terms

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.kkt import optimality_of
from symcavity.method.lagrangian import Lagrangian
from symcavity.model.equations import Equation, as_equation, as_list
from symcavity.model.exact import exact
from symcavity.model.kinds import DATUM, N, mu
from symcavity.model.names import fresh_name
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, Quenched, SharedState, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System
from symcavity.model.times import Time
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker

LETTERS = ("t", "k", "n", "tau")  # of the time


@dataclass(frozen=True)
class DescentOrigin:
    """Where the equations of motion of a system come from.

    Attributes
    ----------
    problem : Problem
    objective : Expr
        What is descended, at the time of the system.
    rate : Expr or None
        None in continuous time.
    momentum, batch : Expr
        The last one is the share of the data that each step looks at.
    mask : SiteQuantity or None
        Which data are looked at, at the time of the system; None where all are.
    states : tuple of SiteQuantity
        What takes steps, at the time of the system.
    initial : tuple of Equation
        Where states begin, in the words of the problem; those that are not named begin at zero.
    """

    problem: Problem
    objective: Expr
    rate: Expr | None
    momentum: Expr
    batch: Expr
    mask: SiteQuantity | None
    states: tuple[SiteQuantity, ...]
    initial: tuple[Equation, ...]


def descent(problem: Problem, rate: Any, momentum: Any = 0, batch: Any = 1, initial: Sequence[Any] = ()) -> System:
    """Gradient descent on the objective of a problem; :meth:`symcavity.ConvexProblem.descent` says what is given.

    Without a rate it is the flow in continuous time.

    Raises
    ------
    UnsupportedLaw
        If there is a constraint, or a slope that jumps.
    DeclarationError
        For a rate, a momentum or initial values that are none.
    """
    rate, momentum, batch = _numbers(rate, momentum, batch)
    given = {s.name for e in (rate, momentum, batch) if e is not None for s in e.free_symbols}
    if problem.fixed:
        raise UnsupportedLaw(
            f"The problem fixes {problem.fixed[0].lhs}, which a descent does not.",
            "problems whose parameters are all given",
            "the declaration without fixed=",
        )
    bare = problem.with_means()
    taken = {*bare.rewritten.typed.names, *given}
    time, name = Time(fresh_name(taken, *LETTERS)), fresh_name(taken, "s", "s_batch")
    mask = None if batch == 1 else Quenched(name, mu, positive=True)[mu]
    if mask is not None:
        bare.objective = bare.objective | {DATUM: mask / batch * bare.objective[DATUM]}
    equations, pairs, record = optimality_of(bare)
    _refuse(bare, record, pairs)
    sums = {f.symbol: f.as_sum for f in record.fields}
    slopes = {q: _slope(q, e.xreplace(sums), record) for q, e in record.stationarity}
    held = _held(record, slopes, sums)
    steps = {q: e for q, e in slopes.items() if q not in held}
    gone = [e.xreplace(sums) for _, e in record.stationarity]
    gone += [Equation(S.Zero, e.xreplace(sums)) for _, e, _ in record.multipliers]
    instant = [*(e for e in equations if e not in gone), *(e for pair in held.values() for e in pair)]
    moving = _moving(steps, instant)
    over = {q: _over(q, _free_name(q, given, bare), time) for q in moving}
    if mask is not None:
        over[mask.family] = Quenched(name, mu, over=time, law={1: batch, 0: 1 - batch})

    def at(expr: Any, when: Any = time) -> Any:
        found = {q: over[q.family] for q in site_quantities(expr, Variable, Field, Quenched) if q.family in over}
        rule = {q: family[(*q.indices, when)] for q, family in found.items()}
        return expr.xreplace(rule | {g: over[g][when] for g in expr.atoms(Global) & set(over)})

    motion = [_step(q, e, at, time, rate, momentum) for q, e in steps.items()]
    begin = _initial(initial, list(steps))
    back = (0, -1) if momentum != 0 else (0,)
    start = [Equation(at(q, S(k)), begin.get(q, S.Zero)) for q in steps for k in back]
    objective, _ = problem.typed
    return System(
        [*motion, *(Equation(at(e.lhs), factor_terms(at(e.rhs)) if mask else at(e.rhs)) for e in instant)],
        [*problem.ranges, *([] if batch.is_number else [batch <= 1])],
        initial=start,
        name=f"Gradient {'flow' if rate is None else 'descent'}: {problem.name}" if problem.name else "",
        cite=problem.cite,
        says=problem.says,
        origin=DescentOrigin(
            problem, at(objective), rate, momentum, batch, mask and at(mask), tuple(map(at, steps)),
            tuple(Equation(q, value) for q, value in begin.items()),
        ),
    )


def _numbers(rate: Any, momentum: Any, batch: Any) -> tuple[Any, Any, Any]:
    """The rate, None in continuous time, the momentum and the batch as exact numbers or symbols."""
    rate = None if rate is None else _number(rate, "rate", "eta")
    momentum, batch = _number(momentum, "momentum", "m"), _number(batch, "batch", "b")
    if rate == 0:
        raise DeclarationError("The rate of the descent is 0: nothing moves.", "a positive rate", "rate=Symbol('eta')")
    if batch == 0 or (batch - 1).is_positive:
        raise DeclarationError(f"The batch of the descent is {batch}.", "a share of the data, above 0 and at most 1")
    return rate, momentum, batch


def descent_steps(system: System, make: StepMaker) -> list[Step]:
    """That each step goes against the slope of the objective."""
    if system.origin is None:
        return []
    origin, make = system.origin, make.within("The problem")
    claims = [Equation(Symbol("E"), origin.objective)]
    data = {"states": list(origin.states), "mean": origin.problem.is_mean}
    data["rate"] = [] if origin.rate is None else [origin.rate]
    data["momentum"] = [] if origin.momentum == 0 else [origin.momentum]
    data["batch"] = [] if origin.mask is None else [origin.batch]
    data["mask"] = [] if origin.mask is None else [origin.mask]
    return [make("descent", "descent", claims, data=data, rests_on=("problem",))]


def _slope(q: Any, e: Equation, record: Lagrangian) -> Expr:
    """The slope of the objective in a state, or in a variable that all sites share, per site."""
    slope = e.lhs - e.rhs
    return slope if isinstance(q, SiteQuantity) else (-slope if q in record.turned else slope) / N


def _step(q: Any, slope: Expr, at: Any, time: Time, rate: Expr | None, momentum: Expr) -> Equation:
    """What moves a state: against the slope of the objective, and on with the last step."""
    if rate is None:
        return Equation(Derivative(at(q), time), -at(slope))
    last = momentum * (at(q) - at(q, time - 1))
    return Equation(at(q, time + 1), at(q) + last - rate * at(slope))


def _refuse(problem: Problem, record: Lagrangian, pairs: Sequence[Any]) -> None:
    """Refuse what has no slope, and what keeps states from where the slope leads."""
    proximal = (
        "a System of your own: proximal steps, Eq(w[i, t + 1], prox(w[i, t] - rate*...)) with Max(0, ...) written out; "
        "or a smooth function, such as sqrt(u**2 + eps**2) for Abs(u)"
    )
    kinks = [*(kink for _, kink in record.auxiliary), *(norm.node for norm in record.norms)]
    if kinks:
        shown = kinks[0].xreplace({f.symbol: f.as_sum for f in record.fields})
        raise UnsupportedLaw(
            f"The slope of {shown} jumps: a descent along it has no limit of many steps.",
            "objectives with a slope everywhere",
            proximal,
        )
    stages = problem.rewritten.stages
    if stages["kernel"].before != stages["kernel"].after or stages["norms"].before != stages["norms"].after:
        raise UnsupportedLaw(
            f"The objective {problem.typed[0]} is not a sum of functions of one site each.",
            "sums over sites of losses and penalties",
            "the square of a norm; the features of a kernel as a kind of site of their own",
        )
    bounds = [relation for relation in problem.typed[1] if not isinstance(relation, Eq)]
    if problem.given:
        raise UnsupportedLaw(
            f"{next(iter(problem.given))} stands for an average of quenched parameters, which a descent does "
            "not support.",
            "averages of states",
        )
    if pairs or record.conditions or bounds:
        held = [*bounds, *(c.declared for _, c in record.conditions)] or list(problem.typed[1])
        said = (
            f"Gradient descent does not keep the constraint {held[0]}"
            if held
            else "Gradient descent does not keep a global variable from becoming negative"
        )
        raise UnsupportedLaw(
            f"{said}.",
            "objectives without constraints, but for equalities that define a state, Eq(u[i], Sum(...))",
            "a penalty; or a System of your own: projected steps, Max(0, w[i, t] - rate*...), or ascent in multipliers",
        )


def _held(record: Lagrangian, slopes: Mapping[Any, Expr], sums: Mapping[Any, Any]) -> dict[Any, list[Equation]]:
    """The states that an equality defines: what each is, and its multiplier, which its own slope tells."""
    out: dict[Any, list[Equation]] = {}
    for multiplier, constraint, _ in record.multipliers:
        rates = {q: constraint.diff(q) for q in site_quantities(constraint, Variable)}
        alone = [q for q, rate in rates.items() if not site_quantities(rate) and q in slopes and q not in out]
        if len(alone) != 1:
            raise UnsupportedLaw(
                f"The equality 0 = {constraint.xreplace(sums)} defines no state.",
                "equalities of one state and sums of others, Eq(u[i], Sum(F[a, i]*v[a], (a, 1, K)))",
                "a penalty on the square of the gap",
            )
        (state,) = alone
        terms = Add.make_args(slopes[state].expand(deep=False))
        own = Add(*(term / multiplier for term in terms if term.has(multiplier)))
        rest = Add(*(term for term in terms if not term.has(multiplier)))
        value = state - (constraint / rates[state]).expand()
        out[state] = [Equation(state, value.xreplace(sums)), Equation(multiplier, -rest / own)]
    return out


def _moving(steps: Mapping[Any, Any], instant: Sequence[Equation]) -> list[Any]:
    """The families that move: what takes steps, and what answers to it at once."""
    found = {q.family if isinstance(q, SiteQuantity) else q: None for q in steps}
    while True:
        known = set(found)
        more = [
            e.lhs.family
            for e in instant
            if any(q.family in known for q in site_quantities(e.rhs)) or e.rhs.atoms(Global) & known
        ]
        if all(family in found for family in more):
            return list(found)
        found |= dict.fromkeys(more)


def _free_name(family: Any, given: set[str], problem: Problem) -> str:
    """The name of a family; another one if it is ours and a parameter of the descent has it."""
    typed = problem.rewritten.typed.names
    return str(family.name) if family.name in typed else fresh_name({*given, *typed}, family.name)


def _over(family: Any, name: str, time: Time) -> Any:
    """The same family over a time."""
    if isinstance(family, Global):
        return SharedState(name, time)
    (kind,) = family.slots
    if family.components:
        raise UnsupportedLaw(
            f"{family.name} has components, and would depend on time.", "scalar states, of systems in time"
        )
    if isinstance(family, Field):
        return Field(name, index=kind.index, over=time)
    return Variable(name, kind.index, over=time)


def _initial(entries: Sequence[Any], states: Sequence[Any]) -> dict[Any, Expr]:
    """Where the states begin, by the words of the problem."""
    out: dict[Any, Expr] = {}
    for entry in as_list(entries, "initial"):
        equation = as_equation(entry, "an entry of initial")
        if equation.lhs not in states or equation.lhs in out:
            raise DeclarationError(
                f"The initial value {equation} is that of no state that the problem is minimized over"
                + (", or the second one." if equation.lhs in out else "."),
                ", ".join(map(str, states)),
                f'initial=[Eq({states[0]}, a[i])], with a = Quenched("a", i)',
            )
        out[equation.lhs] = equation.rhs
    return out


def _number(value: Any, what: str, letter: str) -> Expr:
    """A rate or a momentum: a number or a parameter."""
    found = exact(value, f"the {what} of the descent")
    if site_quantities(found) or found.has(Global) or found.is_negative:
        raise DeclarationError(
            f"The {what} of the descent is {value}.",
            "a number that is not negative, or a parameter",
            f'{what}=Symbol("{letter}", positive=True)',
        )
    return found
