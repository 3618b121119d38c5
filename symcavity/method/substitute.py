"""Substitute: put one kind's equation into another's, and average as if couplings and messages were independent.

No site is inserted.  The equation of the kind whose feedback the naive analysis drops is put into the field of
those that hear it (paper, equations 15 and 78); the double sum is split into equal and different indices (16 and
79); and both parts are averaged (17, 18 and 80 to 82).  The sum at equal indices is what the naive analysis keeps
of feedback.  It needs a law that is linear in its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Dummy, Expr, KroneckerDelta, S, Sum, Symbol, cancel

from symcavity.algebra.indexed import (
    NothingMatched,
    average_pairs,
    contract,
    diagonal,
    flatten,
    fresh_index,
    joined,
    separated,
    split,
)
from symcavity.method.average import ParameterBook, coupling_covariance, is_coupling, opened_sum, protected
from symcavity.method.insert import second_component
from symcavity.method.naive import dropped_kind
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N, SiteCount
from symcavity.model.laws import Law
from symcavity.model.quantities import Field, SiteQuantity
from symcavity.model.support import VectorField
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.linear import Linear
from symcavity.sites.site import Site

LETTERS = ("zeta", "theta", "omega", "chi", *(f"zeta{k}" for k in range(2, 100)))


class Obstacle(Exception):
    """What stands in the way of a substitution: the name of the obstacle, and what it is about."""

    def __init__(self, obstacle: str, **values: Any) -> None:
        super().__init__(obstacle, values)


@dataclass(frozen=True)
class Substituted:
    """A field of a site after the equation of its senders has been put in.

    Attributes
    ----------
    field : RandomField
    written : Expr
        The field as sums over couplings and messages; messages of several terms are held together.
    own, others : Expr
        Its terms at equal indices, in which a site meets its own message, and those at different ones.
    name : SiteQuantity
        Stands for ``others`` in the law.
    factors : dict
        For each field of the senders that the site shifts: what multiplies its own message, as a sum over couplings.
    """

    field: RandomField
    written: Expr
    own: Expr
    others: Expr
    name: SiteQuantity
    factors: dict[RandomField, Expr]


def substituted(system: System, site: Site) -> list[Substituted]:
    """Put the equations of a kind of site into the fields of all that hear it.

    Raises
    ------
    NotLinear
        If they are not linear in their fields, or hear their own kind.
    """
    kind = site.kind
    if any(f.sender == kind for f in site.law.fields):
        raise Obstacle("own_kind", kind=kind)
    states = _states(site)
    fields, letter = system.sent_by(kind), _letter(system)
    several = len(fields) > 1
    return [_put(system, f, states, f"{letter}_{k + 1}" if several else letter) for k, f in enumerate(fields)]


def _letter(system: System) -> str:
    """A letter that nothing in the system has."""
    written = [e.difference for law in system.laws.values() for e in law.written()]
    taken = {q.family.name for e in written for q in e.atoms(SiteQuantity)} | {s.name for s in system.parameters}
    return next(name for name in LETTERS if not any(used.split("_")[0] == name for used in taken))


def _states(site: Site) -> dict[SiteQuantity, Expr]:
    """The states of a site as linear functions of its random fields."""
    law = site.law
    problem = site.problem.feeding_back(lambda _: False)
    if not Linear().applies(problem):
        raise Obstacle("not_linear", kind=site.kind, law=_obstacle(law))
    try:
        found = Linear().solve(problem).solved.without_sources()
    except IllPosed:
        raise Obstacle("not_fixed", kind=site.kind) from None
    back = {h.eta: h.declared.symbol for h in problem.heard}
    return {q: found.expression(q).xreplace(back) for q in law.unknowns}


def _obstacle(law: Law) -> Any:
    """The pair or the equation that is not linear."""
    if law.pairs:
        return law.pairs[0]
    marks = {q: Dummy() for q in (*law.unknowns, *(f.symbol for f in law.fields))}
    for equation, written in zip(law.equations, law.written(), strict=True):
        expr = equation.difference.xreplace(marks)
        if any(expr.diff(m).has(*marks.values()) for m in marks.values()):
            return written
    return law.written()[0]


def _put(system: System, f: RandomField, states: dict[SiteQuantity, Expr], name: str) -> Substituted:
    """Put the senders' states into one field, and split it at the site that hears it."""
    hearer, law = f.hearer, system.laws[f.sender]
    emission = f.emission.xreplace(states)
    sums = {g.symbol: _moved(g, f) for g in law.fields}
    written = flatten(Sum(f.coupling * emission.xreplace(sums), *f.limits))
    try:
        own, others = split(written, hearer.size, hearer.index)
    except NothingMatched:
        own, others = S.Zero, written
    factors = {}
    for g in (g for g in law.fields if g.sender == hearer and emission.has(g.symbol)):
        coupling = g.coupling.xreplace({g.sender_index: hearer.index}).xreplace(_renamed(f))
        factors[g] = flatten(Sum(f.coupling * emission.diff(g.symbol) * coupling, *f.limits))
    family = VectorField(name, tuple(f.components), hearer.index) if f.components else Field(name, index=hearer.index)
    return Substituted(f, written, own, others, family.at_site(), factors)


def _moved(g: RandomField, f: RandomField) -> Expr:
    """What a sender of f hears, with indices that f does not use."""
    rule: dict[Any, Any] = {}
    if g.sender_index == f.hearer.index:
        rule[g.sender_index] = fresh_index(g.sender_index, {g.sender_index})
    return protected(g.as_sum, g).xreplace(rule | _renamed(f))


def _renamed(f: RandomField) -> dict[Symbol, Symbol]:
    """Another name for the component index of a vector field: senders sum over it."""
    return second_component(f) if f.components else {}


# -- averages ----------------------------------------------------------------------------------------


def covariance(a: Substituted, b: Substituted) -> Expr:
    """The mean product of what two fields sum at different indices, as sums over messages.

    The couplings of the site itself and those of all others are independent: they are averaged one after the other.
    """
    hearer, second = a.field.hearer, _renamed(b.field)
    taken = {*second, *second.values()}
    first = _reindexed(a.others, taken)
    other = _reindexed(b.others, taken).xreplace(second)
    product = flatten(Add(*(s * t for s in Add.make_args(first) for t in Add.make_args(other))))
    for own in (True, False):

        def fresh(x: Expr, own: bool = own) -> bool:
            return is_coupling(x) and (hearer.index in x.indices) == own

        if any(fresh(x) for x in product.atoms(SiteQuantity)):
            product = _contracted(average_pairs(product, fresh, coupling_covariance))
    return opened_sum(separated(_reindexed(product, taken)))


def _reindexed(expr: Expr, taken: Iterable[Symbol]) -> Expr:
    """The same sums over the first indices of each range that are free and not taken."""

    def one(total: Sum) -> Expr:
        used, rule = {*taken, *total.free_symbols}, {}
        for index, _, high in total.limits:
            best = high.kind.index if isinstance(high, SiteCount) else index
            rule[index] = best if best not in used else fresh_index(best, used)
            used.add(rule[index])
        return total.xreplace(rule)

    return expr.xreplace({total: one(total) for total in expr.atoms(Sum)})


def _contracted(expr: Expr) -> Expr:
    return contract(expr) if expr.has(KroneckerDelta) else expr


def mean_factor(factor: Expr) -> Expr:
    """The mean of what multiplies a site's own message."""
    return _contracted(average_pairs(factor, is_coupling, coupling_covariance))


# -- steps -------------------------------------------------------------------------------------------


def substitution_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The substitution, and that it leads to the same order parameters as the fold; or why it does not apply."""
    system, make = theory.system, make.within("Substitution")
    kind = dropped_kind(system)
    try:
        found = substituted(system, theory.inserted[kind])
    except Obstacle as reason:
        return [make("substitution", "no_substitution", data={"kind": kind, "obstacle": reason.args})]
    return _steps(theory, kind, found, make)


def _steps(theory: Theory, kind: Kind, found: Sequence[Substituted], make: StepMaker) -> list[Step]:
    system = theory.system
    hearers = list(dict.fromkeys(s.field.hearer for s in found))
    heard = system.laws[kind].fields
    messages = list(dict.fromkeys(g.emission for g in heard if g.sender in hearers))
    couplings = list(dict.fromkeys(g.coupling for g in heard))
    data = {"kind": kind, "hearers": hearers, "messages": messages, "couplings": couplings}
    evidence = {"names": {s.name: s.field for s in found}}
    independence = ("naive_independence", {"messages": messages, "couplings": couplings})
    means, claims, agreed = _statistics(theory, found)

    def step(name: str, claims: Iterable[Any], on: Sequence[str], rule: str = "", **parts: Any) -> Step:
        rule = rule or f"substitution_{name}"
        return make(f"substitution.{name}", rule, claims, rests_on=on, **{"data": data, **parts})

    def written(part: Callable[[Substituted], Expr]) -> list[Equation]:
        return _written(system, found, hearers, part)

    split, field, statistics = (f"substitution.{name}" for name in ("split", "field", "statistics"))
    echoing = written(lambda s: s.name + Add(*(_echo(s.field, g, means[s.field, g]) for g in s.factors)))
    pairs = [p for hearer in hearers for p in system.laws[hearer].pairs]
    assumed: tuple[Any, ...] = (independence, ("clt", {}), ("order", {"order": 1 / N}))
    drawn, told = data | {"echoes": any(s.factors for s in found)}, data | {"pairs": pairs}
    alike = dict.fromkeys(e for e in agreed if e.lhs != e.rhs)
    return [
        step("put", written(lambda s: s.written), ("sources",), "substitution"),
        step("split", written(lambda s: s.own + s.others), ("substitution.put",)),
        step("field", [Equation(s.name, opened_sum(s.others)) for s in found], (split,), evidence=evidence),
        step(
            "statistics", dict.fromkeys(claims), ("disorder", field), data=drawn, assumptions=assumed, evidence=evidence
        ),
        step(
            "law", echoing, (split, statistics), data=told, assumptions=(("self_averaging", {}),), evidence=evidence
        ),
        step("agreement", alike, (statistics, "closed_system")),
    ]


def _written(
    system: System, found: Sequence[Substituted], hearers: Sequence[Kind], part: Callable[[Substituted], Expr]
) -> list[Equation]:
    """The equations of those that hear the kind, with some expression in place of each field."""
    rule = {s.field.symbol: part(s) for s in found}
    out = []
    for hearer in hearers:
        law = system.laws[hearer]
        full = {f.symbol: f.as_sum for f in law.fields} | rule
        out += [e.xreplace(full) for e in law.equations if e.difference.has(*rule)]
    return [Equation(opened_sum(e.lhs), opened_sum(e.rhs)) for e in out]


def _statistics(
    theory: Theory, found: Sequence[Substituted]
) -> tuple[dict[tuple[RandomField, RandomField], Expr], list[Equation], list[Equation]]:
    """The means of self-couplings, claims on the statistics of the fields, and what the fold says of the same."""
    book = ParameterBook(meanings=dict(theory.order_parameters))
    claims = [Equation(DisorderAverage(s.name), S.Zero) for s in found]
    agreed: list[Equation] = []
    for k, a in enumerate(found):
        for b in found[k:]:
            if a.field.hearer != b.field.hearer:
                continue
            exact = covariance(a, b)
            value = book.close(separated(joined(exact)))
            lhs = DisorderAverage(a.name * b.name.xreplace(_renamed(b.field)))
            claims += [Equation(lhs, e) for e in dict.fromkeys((exact, value))]
            agreed.append(Equation(_fold_covariance(theory, a, b), value))
    means = {(s.field, g): book.close(mean_factor(x)) for s in found for g, x in s.factors.items()}
    for s in found:
        for g, x in s.factors.items():
            constant, total = x.as_independent(Sum, as_Add=False)
            claims.append(Equation(DisorderAverage(total), cancel(means[s.field, g] / constant)))
            agreed.append(Equation(_fold_mean(theory, s.field, g) / constant, means[s.field, g] / constant))
    return means, claims, [Equation(*(_plain(side) for side in (e.lhs, e.rhs))) for e in agreed]


def _echo(f: RandomField, g: RandomField, mean: Expr) -> Expr:
    """A site's own message through the sum at equal indices, at its mean."""
    body = mean * g.emission.xreplace(_renamed(f))
    if not f.components:
        return body
    total = Sum(body, (*_renamed(f).values(), *f.components[1:]))
    return contract(total) if body.has(KroneckerDelta) else total


def _plain(expr: Expr) -> Expr:
    """An expression without identity matrices: components that are equal."""
    return diagonal(expr).expand()


def _fold_covariance(theory: Theory, a: Substituted, b: Substituted) -> Expr:
    """The covariance of two cavity fields of the inserted site."""
    site = theory.inserted[a.field.hearer]
    first, second = (next(h.eta for h in site.heard if h.declared == s.field) for s in (a, b))
    return site.covariance[first, second]


def _fold_mean(theory: Theory, f: RandomField, g: RandomField) -> Expr:
    """The mean self-coupling of the inserted site through one field, back by another."""
    site = theory.inserted[f.hearer]
    (heard,) = (h for h in site.heard if h.declared == f)
    return Add(*(site.means[k.symbol] for k in heard.feedback if k.through == g))
