"""Derive: a fold of the verbs over the kinds of sites, and the closure of what they leave open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from sympy import Add, Expr, KroneckerDelta, Mul, S, Sum, Symbol, cancel

from symcavity.algebra.indexed import contract, diagonal
from symcavity.algebra.precision import alone
from symcavity.algebra.signs import sign_given, sign_of
from symcavity.method.average import Averaged, ParameterBook, average
from symcavity.method.close import averaged_over, conditions, positive_parts
from symcavity.method.identify import Identified, identify
from symcavity.method.insert import insert
from symcavity.method.naive import drop, dropped_kind
from symcavity.method.naming import at_zero, cavity_of
from symcavity.method.respond import respond
from symcavity.method.sources import carrier_state
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.ranges import margins
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import MANY
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.protocol import LawSolution, SiteProblem, Strategy
from symcavity.sites.site import Site
from symcavity.sites.strategies import solved_by


@dataclass(frozen=True)
class Derived:
    """What the fold leaves.

    Attributes
    ----------
    system : System
        With those quenched parameters marked positive that the laws need.
    sites : dict
        The inserted site of each kind.
    meanings : dict
        Each order parameter and what it stands for.
    closures : dict
        Each order parameter by the single-site average that it stands for.
    steps : callable
        Gives what each verb claimed, kind by kind: a theory is solved without its record.
    taken : tuple of Quenched
        The parameters that were marked positive, as they are there.
    """

    system: System
    is_naive: bool
    sites: dict[Kind, Site]
    meanings: dict[OrderParameter, Expr]
    closures: dict[OrderParameter, Expr]
    global_equations: list[Equation]
    steps: Callable[[], tuple[Step, ...]]
    taken: tuple[Quenched, ...] = ()


@dataclass(frozen=True)
class _Opened:
    """One kind after the verbs that need no order parameters: its identified and solved law."""

    identified: Identified
    solution: LawSolution
    strategy: Strategy
    problem: SiteProblem
    steps: tuple[Step, ...]


@alone
def derive(system: System, *, naive: bool = False) -> Derived:
    """Derive the cavity theory of a system, or its naive mean field.

    Raises
    ------
    IllPosed
        If a law does not fix the states of its sites.
    UnsupportedLaw
        If no strategy solves a law.
    """
    last: IllPosed | None = None
    for candidate, strict in _readings(system):
        if strict and last is not None and last.shared:
            continue
        make = StepMaker(candidate.source, naive)
        try:
            opened = {kind: _open(candidate, kind, make, strict=strict) for kind in candidate.kinds}
        except IllPosed as problem:
            last = last if last is not None and not problem.shared else problem
            if not strict:
                raise
            continue
        marked = {q.name for q in system.quenched if q.positive}
        taken = tuple(q for q in candidate.quenched if q.positive and q.name not in marked)
        return replace(_closed(candidate, opened, make, dropped_kind(system) if naive else None), taken=taken)
    raise last or IllPosed("The system has no solution.")


def _readings(system: System) -> Iterator[tuple[System, bool]]:
    """The system as it is; with as few quenched parameters taken as positive as will do; with open signs at last."""
    yield system, True
    unsigned = [q for q in system.quenched if not q.positive and q.law is None]
    for size in range(1, len(unsigned) + 1):
        for chosen in combinations(unsigned, size):  # labels have both signs
            yield system.assuming_positive(chosen), True
    yield system, False


def _from_one(law: Law) -> set[str]:
    """The names of many fields that are numbered from one, as ``h_1``, ``h_2`` and ``h_3``."""
    names = {q.family.name for q in law.unknowns}
    rows = ([f"{name[:-1]}{k + 1}" for k in range(len(law.fields))] for name in names if name.endswith("1"))
    return {name for row in rows if len(row) >= MANY and names.issuperset(row) for name in row}


def _own(system: System, law: Law) -> set[SiteQuantity]:
    """What names the equation of a field of states, where a site hears one of them beside those of given parameters."""
    heard = [f for f in law.fields if f.states()]
    return {q for f in heard if len(heard) == 1 and (q := carrier_state(system, f)) is not None}


def _open(system: System, kind: Kind, make: StepMaker, *, strict: bool) -> _Opened:
    """Insert a site, follow the responses, identify its echo, and solve its law."""
    make = make.within(cavity_of(kind))
    inserted = insert(system, kind, make)
    responded = respond(system, inserted, make)
    identified = identify(system, responded, make)
    first = average(system, identified, ParameterBook(), make)  # which self-couplings vanish needs no order parameter
    problem = replace(
        identified.problem.feeding_back(lambda f: first.means[f] != 0),
        strict=strict,
        proved=_proved(system, identified.problem, first),
    )
    strategy, solution = solved_by(problem)
    steps = (inserted.step, *responded.steps, *identified.steps)
    return _Opened(identified, solution, strategy, problem.signed(solution.signs), steps)


def _proved(system: System, problem: SiteProblem, averaged: Averaged) -> dict[Symbol, int]:
    """The signs of self-couplings that convexity fixes.

    The states of a convex problem respond upwards to the force on them, and messages, minus the slopes of convex
    functions, downwards to the field.  The echo through a field and the answer to it has one sign; that through
    a field and the answer to another one may have either.
    """
    record = getattr(system, "record", None)
    if not system.convex or record is None:
        return {}
    primal = {f.as_sum: record.messages[f.symbol] for f in record.fields}
    out: dict[Symbol, int] = {}
    for h in problem.heard:
        for k in h.feedback:
            f, g = h.declared, k.through
            if f.coupling.family != g.coupling.family or averaged.means[k.symbol] == 0 or f.components or f.inner:
                continue
            if f.hearer == f.sender and f != g:
                continue  # both are heard by the same states: neither answers to the other as a message does
            if f.as_sum in primal:
                field, answer, way = f, g, 1
            elif g.as_sum in primal:
                field, answer, way = g, f, -1
            else:
                continue
            factor = cancel(primal[field.as_sum] / answer.emission)  # numbers stand in front of the field
            known = None if factor.atoms(SiteQuantity) else sign_of(factor)
            if known:
                out[k.symbol] = known * way
    return out


# -- closing -----------------------------------------------------------------------------------------


def _closed(system: System, opened: dict[Kind, _Opened], make: StepMaker, dropped: Kind | None) -> Derived:
    """Name the order parameters, average, and learn their signs until nothing new is found."""
    signs: dict[str, int] = {}
    while True:
        many = frozenset[str]().union(*map(_from_one, system.laws.values()))
        own = frozenset(q.family for law in system.laws.values() for q in _own(system, law))
        declared = frozenset(s.name for s in system.parameters)
        book = ParameterBook(signs=signs, declared=declared, many=many, own=own)
        averaged = {
            kind: average(system, o.identified, book, make.within(cavity_of(kind))) for kind, o in opened.items()
        }
        sites = {kind: _site(o, averaged[kind], kind == dropped) for kind, o in opened.items()}
        found = _signs_of_statistics(sites, dropped, book, margins(system.ranges))
        if not found:
            closures = {s: averaged_over(sites, meaning) for s, meaning in book.meanings.items()}
            positive = [*positive_parts(sites), *margins(system.ranges)]
            found = {s: sign_given(value, positive) or 0 for s, value in closures.items() if not _signed(s)}
        new = {s.name: sign for s, sign in found.items() if sign}
        if not new:
            break
        signs |= new
    return Derived(
        system,
        make.is_naive,
        sites,
        dict(book.meanings),
        closures,
        conditions(system, sites),
        partial(_steps, opened, averaged, sites, book, make, dropped),
    )


def _site(opened: _Opened, averaged: Averaged, dropped: bool) -> Site:
    """The inserted site at the statistics of its fields."""
    means: dict[Symbol, Expr] = {}
    for h, declared in zip(opened.problem.heard, opened.identified.problem.heard, strict=True):
        known = {k.through: averaged.means[k.symbol] for k in declared.feedback}
        means |= {k.symbol: S.Zero if dropped else known[k.through] for k in h.feedback}
    signs = {f.signed(s): s for f, s in opened.solution.signs.items()}
    return Site(opened.problem, opened.strategy, opened.solution.solved, signs, averaged.covariance, means)


def _signed(symbol: OrderParameter) -> bool:
    return bool(symbol.is_positive or symbol.is_negative)


def _signs_of_statistics(
    sites: dict[Kind, Site], dropped: Kind | None, book: ParameterBook, positive: Sequence[Expr]
) -> dict[OrderParameter, int]:
    """Signs of order parameters: those of variances, and those that the sign of a self-coupling implies."""
    out: dict[OrderParameter, int] = {}
    for kind, site in sites.items():
        if kind != dropped:
            for f, sign in site.signs.items():
                out |= _implied(site.means[f], sign, positive)
        for h in site.heard if site.law.time is None else ():
            out |= _implied(site.covariance[h.eta, h.eta], 1, positive)
    return {s: sign for s, sign in out.items() if s in book.meanings and not _signed(s)}


def _implied(expr: Expr, sign: int, positive: Sequence[Expr]) -> dict[OrderParameter, int]:
    """The sign of the one order parameter in an expression whose sign is known."""
    expr = diagonal(expr)
    parameters = sorted(expr.atoms(OrderParameter), key=str)
    if len(parameters) != 1:
        return {}
    prefactor = Mul(*(expr / parameters[0]).as_ordered_factors())
    if prefactor.has(parameters[0]):
        prefactor = prefactor.expand()
    if prefactor.has(parameters[0]):
        return {}
    prefactor = prefactor.xreplace({q: Symbol("v", positive=True) for q in prefactor.atoms(SiteQuantity)})
    known = sign_of(prefactor) or sign_given(prefactor, positive)
    return {parameters[0]: known * sign} if known else {}


# -- what the verbs claim --------------------------------------------------------------------------------


def _steps(
    opened: dict[Kind, _Opened],
    averaged: dict[Kind, Averaged],
    sites: dict[Kind, Site],
    book: ParameterBook,
    make: StepMaker,
    dropped: Kind | None,
) -> tuple[Step, ...]:
    """The steps of all kinds."""
    by_kind = (_steps_of(opened, averaged[k], sites[k], book, make, k == dropped) for k in opened)
    return tuple(step for steps in by_kind for step in steps)


def _steps_of(
    opened: dict[Kind, _Opened], averaged: Averaged, site: Site, book: ParameterBook, make: StepMaker, dropped: bool
) -> list[Step]:
    """The steps of one kind, in the order of the verbs."""
    kind = site.kind
    make = make.within(cavity_of(kind))
    steps = [*opened[kind].steps]
    if dropped:
        statistics, *_ = averaged.steps
        steps += [statistics, drop(opened[kind].identified, (o.problem for o in opened.values()), make)]
    else:
        steps += averaged.steps
    steps.append(_effective(site, make, dropped=dropped))
    wanted = [meaning for meaning in book.meanings.values() if meaning.has(SiteResponse)]
    steps += site.strategy.steps(site, make, _responses(wanted, kind))
    return steps


def _responses(meanings: list[Expr], kind: Kind) -> list[Expr]:
    """What is averaged in the order parameters that are responses of a kind: sums over components stay whole."""
    found: set[Any] = set()
    for meaning in meanings:
        body = meaning.args[0]
        sums = [s for s in body.atoms(Sum) if s.has(SiteResponse)]
        found |= set(sums) or body.atoms(SiteResponse)
    own = [r for r in found if all(kind in node.state.site for node in r.atoms(SiteResponse))]
    return sorted(own, key=str)


def _effective(site: Site, make: StepMaker, *, dropped: bool) -> Step:
    """The law of the new site with the mean self-couplings put in."""
    kind = site.kind
    claims = [at_zero(_contracted(e.xreplace(dict(site.means))), kind) for e in site.equations()]
    return make(
        f"{kind.key}.effective_law",
        "effective_law",
        claims,
        data={"kind": kind, "pairs": [at_zero(p, kind) for p in site.law.pairs], "selves": max(1, len(site.means))},
        rests_on=(
            f"{kind.key}.cavity_equation",
            f"{kind.key}.naive_drop" if dropped else f"{kind.key}.self_coupling_mean",
        ),
    )


def _contracted(equation: Equation) -> Equation:
    """Contract identity matrices."""
    if not equation.difference.has(KroneckerDelta):
        return equation
    terms = [contract(t) if t.has(KroneckerDelta) else t for t in Add.make_args(equation.rhs)]
    return Equation(equation.lhs, Add(*terms))
