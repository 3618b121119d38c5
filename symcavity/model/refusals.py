"""Checks of the words of a declaration: undeclared names, indices, names used twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Basic, Derivative, Expr, Integral, Product, Sum, Symbol, ceiling, floor
from sympy.core.function import AppliedUndef
from sympy.tensor.indexed import Indexed

from symcavity.errors import DeclarationError
from symcavity.model.averages import Average, Expect, Fresh, SiteResponse
from symcavity.model.couplings import Coupling
from symcavity.model.exact import Count, exact, random_symbols
from symcavity.model.kinds import SiteCount, SiteIndex, alpha, is_index, kind_of_range
from symcavity.model.names import RESERVED, refuse_unprintable
from symcavity.model.quantities import (
    Family,
    Field,
    Global,
    Quenched,
    SiteQuantity,
    Variable,
    site_quantities,
)
from symcavity.model.times import Time

_DECLARED = "Feature, Datum, Field, Quenched, Coupling (indexed by sites), Global, and plain Symbols as parameters"


def check_words(expr: Expr, where: str, *, averages: bool = False) -> None:
    """Refuse what is neither a declared quantity nor a parameter, and indices that stand as numbers.

    Parameters
    ----------
    expr : Expr
        Part of a declaration.
    where : str
        Which part, for the message.
    averages : bool
        Whether averages and responses may stand there.
    """
    exact(expr, where)
    stray = sorted(expr.atoms(Indexed, AppliedUndef), key=str)
    if stray:
        name = str(stray[0]).split("[", maxsplit=1)[0].split("(", maxsplit=1)[0]
        raise DeclarationError(
            f"{stray[0]} in {where} is not declared.",
            _DECLARED,
            f'declare it, for instance {name} = Feature("{name}"), Quenched("{name}", mu) or Coupling("{name}")',
        )
    _refuse_nodes(expr, where, averages)
    found = _standing(expr)
    bare = sorted((node for node in found if isinstance(node, Family)), key=str)
    if bare:
        raise DeclarationError(
            f"{bare[0]} stands in {where} without an index.", "the quantity of one site", f"{bare[0].at_site()}"
        )
    bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits if kind_of_range(lim)}
    numbers = sorted({s for s in found if is_index(s)} | (found & bound), key=str)
    if numbers:
        raise DeclarationError(
            f"The site index {numbers[0]} stands as a number in {where}.",
            "indices inside brackets only: sites are exchangeable but for their quenched parameters",
            "declare a Quenched parameter that varies from site to site",
        )
    for symbol in sorted(found, key=str):
        if isinstance(symbol, Symbol):
            refuse_unprintable(symbol.name, "The name of a symbol")
        if isinstance(symbol, Symbol) and RESERVED.get(symbol.name, symbol) != symbol:
            raise DeclarationError(
                f"A symbol of your own named {symbol} stands in {where}.",
                f"the package's own {symbol}",
                f"from symcavity import {symbol}; or another name",
            )


def refuse_thermal(exprs: Iterable[Any]) -> None:
    """Refuse thermal averages in a declaration.

    Raises
    ------
    DeclarationError
        If there are some.
    """
    found = sorted((node for e in exprs for node in e.atoms(Expect)), key=str)
    if found:
        raise DeclarationError(
            f"The thermal average {found[0]} stands in the declaration.",
            "thermal averages as observables of problem.gibbs(beta)",
            f"average({found[0]}**2)",
        )


def _refuse_nodes(expr: Expr, where: str, averages: bool) -> None:
    hints: dict[type, str] = {
        Integral: "write the function out",
        Derivative: "take the derivative first: .doit()",
        Product: "a sum of logarithms, or separate terms",
        floor: "its steps by cases: Piecewise((-1, u < 0), (1, True))",
        ceiling: "its steps by cases: Piecewise((-1, u < 0), (1, True))",
    }
    several = 'a random number of every site is a quenched parameter: Quenched("z", mu, law=...)'
    hints |= dict.fromkeys(random_symbols(), several)
    if not averages:
        hints |= {
            Fresh: "an observable of the solution: training knows nothing of sites that took no part",
            Average: "a condition that the states have to meet, by a multiplier: Eq(Sum(w[i], (i, 1, N)), N) in "
            "subject_to; a value of an average, to which the load or a parameter adapts: fixed=[Eq(average(...), ...)]",
            SiteResponse: "a response is an observable of the solution",
        }
    for kind, hint in hints.items():
        for node in sorted(expr.atoms(kind), key=str):
            own = {Fresh: "observable"} | dict.fromkeys(random_symbols(), "random variable")
            what = own.get(kind, kind.__name__.lower())
            raise DeclarationError(f"The {what} {node} stands in {where}.", "functions of states and fields", hint)


def _standing(node: Basic) -> set[Any]:
    """The symbols and bare families of an expression, apart from indices in brackets and in sums."""
    if isinstance(node, SiteQuantity):
        return set()
    if isinstance(node, Sum):
        bounds = [_standing(bound) for lim in node.limits for bound in lim[1:]]
        return _standing(node.function).union(*bounds)
    if isinstance(node, Symbol | Family):
        return {node}
    return set().union(*(_standing(arg) for arg in node.args))


def check_slots(body: Expr, where: str, *known: Symbol) -> None:
    """Refuse quantities whose index is foreign: dangling, a number, or beyond the declared components."""
    bound = {lim[0] for s in body.atoms(Sum) for lim in s.limits}
    for quantity in site_quantities(body):
        for slot, index in zip(quantity.family.slots, quantity.indices, strict=False):
            if is_index(index) or index in bound or index in known:
                continue
            own = slot.index
            same = index.is_Symbol and index.name == own.name
            if index.has(own) and not index.is_Symbol:
                raise DeclarationError(
                    f"The index {index} of {quantity} in {where} is that of a neighbor: sites have no order.",
                    f"{own} for a {slot}, or the index of an enclosing Sum; couplings are random ones",
                    f"penalties of one site, {quantity.xreplace({index: own})}; or short chains of components, as in "
                    f'Variable("v", {own}, components=(k, 1, 3))',
                )
            raise DeclarationError(
                f"The index {index} of {quantity} in {where} "
                + (f"is a symbol of your own named {index}." if same else "belongs to no sum and is not a site index."),
                f"{own} for a {slot}, or the index of an enclosing Sum",
                f"from symcavity import {own}" if same else f"write {quantity.xreplace({index: own})}",
            )
        for index in quantity.indices[len(quantity.family.slots) :]:
            _, low, high = quantity.family.components
            if index.is_number and ((index - low).is_negative or (high - index).is_negative):
                raise DeclarationError(
                    f"The component {index} of {quantity} in {where} does not exist.", f"components {low} to {high}"
                )


def parameters_of(expr: Expr) -> set[Symbol]:
    """The plain parameters in an expression: every Symbol that is not an index, a size or a global."""
    bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits}
    inner = {index for q in site_quantities(expr) for index in q.indices}
    return {
        s
        for s in expr.atoms(Symbol) - inner
        if not isinstance(s, SiteIndex | SiteCount | Global | Count | Time) and s != alpha and s not in bound
    }


def check_names(exprs: Iterable[Expr]) -> None:
    """Refuse one name for two different things."""
    seen: dict[str, Any] = {}
    todo = list(exprs)
    while todo:
        expr = todo.pop(0)
        found: list[Any] = [q.family for q in site_quantities(expr)]
        found += sorted(expr.atoms(Global), key=str)
        found += sorted(parameters_of(expr), key=lambda s: (s.name, str(s.assumptions0)))
        for thing in dict.fromkeys(found):
            known = seen.setdefault(thing.name, thing)
            if known != thing:
                raise DeclarationError(
                    f"The name {thing.name} stands for two things: {' and '.join(sorted(map(_what, (known, thing))))}.",
                    "one name for one quantity",
                    "give one of them another name"
                    if type(known) is not type(thing) or getattr(known, "slots", None) != getattr(thing, "slots", None)
                    else "declare it once, and use that object everywhere",
                )
            if isinstance(thing, Coupling):
                todo += [*thing.moments, *(other.at_site() for other in thing.correlation)]


def _what(thing: Any) -> str:
    if isinstance(thing, Coupling):
        return f"a coupling of variance {thing.variance}"
    if isinstance(thing, Quenched):
        law = "" if thing.law is None else f" with the law {thing.law}"
        return f"a quenched parameter of each {thing.slots[0]}{law}"
    if isinstance(thing, Field):
        return f"a field of each {thing.slots[0]}"
    if isinstance(thing, Variable):
        inner = f" with components {thing.components}" if thing.components else ""
        return f"a state of each {thing.slots[0]}{inner}"
    if isinstance(thing, Global):
        return "a global variable"
    given = {k for k, v in thing.__getnewargs_ex__()[1].items() if v}
    return f"a parameter ({', '.join(sorted(given)) or 'without assumptions'})"
