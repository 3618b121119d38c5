"""Sums over couplings in observables, by the variables of the site that hears them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Add, Dummy, Expr, S, Sum
from sympy.core.relational import Relational

from symcavity.errors import DeclarationError
from symcavity.model.averages import Average, Fluctuating, SiteResponse, average
from symcavity.model.fields import FieldBook, RandomField, extract_fields
from symcavity.model.joined import join_fields
from symcavity.model.laws import Law
from symcavity.model.quantities import SiteQuantity
from symcavity.model.site_sums import free_kind, kind_of_sum, site_sum
from symcavity.model.system import System


def without_fields(system: System, expr: Any) -> Any:
    """Write the sums over the other side that an observable is about in the variables of a site.

    Each random field stands linearly in one equation of its law, which is solved for it: a residual
    ``y[mu] - Sum(x[mu, i]*w[i], (i, 1, N))`` is what the law calls ``lambda[mu]``.

    Parameters
    ----------
    system : System
        Whose law it is.
    expr : Expr
        The observable.

    Returns
    -------
    Expr
        The same observable.

    Raises
    ------
    DeclarationError
        If it holds a sum that no law of the system hears.
    """
    if isinstance(expr, Average):
        inside = {Dummy(real=True): a for a in expr.body.atoms(Average)}  # averages over other sites are numbers
        body = expr.body.xreplace({a: mark for mark, a in inside.items()})
        side = free_kind(body.xreplace({r: r.state for r in body.atoms(SiteResponse)}), str(expr))
        found = expr if side is None else average(_in_variables(system, system.laws[side], body))
        return found.xreplace({mark: without_fields(system, a) for mark, a in inside.items()})
    if isinstance(expr, Sum):
        side, body = site_sum(expr, str(expr))
        return Sum(_in_variables(system, system.laws[side], body), side.range)
    if not getattr(expr, "args", ()) or isinstance(expr, SiteQuantity | SiteResponse) or not expr.has(Sum):
        return expr
    return expr.func(*(without_fields(system, a) for a in expr.args))


def in_states(system: System, body: Expr) -> Expr:
    """An expression of one site in its states, without sums over other sites."""
    found = without_fields(system, system.own(system.rewritten.observable(Average(body))))
    return found.args[0] if isinstance(found, Average) else found  # a sum that the law holds at a number


def _in_variables(system: System, law: Law, body: Expr) -> Expr:
    if not any(kind_of_sum(limits) for total in body.atoms(Sum) for limits in total.limits):
        return body  # sums over components are those of one site
    book = FieldBook(affine=not system.weights)  # at a temperature products of states are sent, too
    body = body.replace(lambda e: isinstance(e, Relational) and e.rhs.has(Sum), lambda e: e.func(e.lhs - e.rhs, 0))
    found = extract_fields(body, law.kind, book, f"the observable {body}")
    steps = sorted(found.atoms(Relational), key=str)  # whose values at seeded points say little
    read = [found, *(r.lhs - r.rhs for r in steps)]
    found = found.xreplace(join_fields(book, law.kind, read))
    rule: dict[Expr, Expr] = {}
    for f in book.all(law.kind):
        emissions = [f.emission], Add.make_args(f.emission.expand())  # a field as a whole, or a sum of several
        values = next((v for some in emissions if None not in (v := [_heard(system, law, f, e) for e in some])), None)
        if values is None:
            raise DeclarationError(
                f"The {law.kind.sites} do not hear {f.as_sum}.",
                "sums that stand in the declaration: " + ", ".join(_typed_sums(system, law)),
                "a variable of its own in its place, v = Variable(\"v\", "
                f"{law.kind.index}), with Eq(v[{law.kind.index}], {f.as_sum}) in the declaration",
            )
        rule[f.symbol] = Add(*values)
    return found.xreplace(rule)


def _heard(system: System, law: Law, wanted: RandomField, emission: Expr) -> Expr | None:
    """The sum of an emission by the field of the law that it is a multiple of; None if there is none."""
    for known in law.fields:
        if known.coupling == wanted.coupling and not (known.inner or known.components or wanted.inner):
            for sent, value in _meanings(system, law, known).items():
                ratio = (emission / sent).cancel()
                if not ratio.has(SiteQuantity):
                    return ratio * value
    return None


def _meanings(system: System, law: Law, field: RandomField) -> dict[Expr, Expr]:
    """What a field sums, and what the law calls it; at a temperature in states that fluctuate, too."""
    found = {field.emission: _solved(law, field)}
    weight, sender = law.weight, system.weights.get(field.sender)
    if weight is None or sender is None or sender.is_field or not field.states():
        return found
    typed = _typed(system, field)
    if weight.is_field and not weight.others:
        found[typed] = weight.state
    elif not weight.is_field and weight.cold is None:  # what meets in pairs
        name = law.carrier(field).lhs
        found[typed] = found[field.emission].xreplace({} if weight.is_cold else {name: Fluctuating(name)})
    return found


def _typed(system: System, field: RandomField) -> Expr:
    """What a field sums, in the words of the declaration: states, where their means are sent."""
    sender = system.weights.get(field.sender)
    if sender is None:
        return field.emission
    return sender.told.get(field.emission, field.emission.xreplace({sender.mean: sender.state}))


def _typed_sums(system: System, law: Law) -> list[str]:
    """The fields of a law, in the words of the declaration."""
    return [str(replace(f, emission=_typed(system, f)).as_sum) for f in law.fields]


def _solved(law: Law, field: RandomField) -> Expr:
    difference = law.carrier(field).difference
    return -difference.xreplace({field.symbol: S.Zero}) / difference.diff(field.symbol)
