"""The attributes of a declared family, as they are read: the kind of its sites, its time, its states, its law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Basic, Tuple

from symcavity.errors import DeclarationError
from symcavity.model.exact import exact, finite_law, is_random
from symcavity.model.families import site_quantities
from symcavity.model.kinds import Kind, SiteIndex
from symcavity.model.times import Time


def discrete_values(values: Any, name: Any, *, alone: bool = True) -> tuple[Tuple, ...]:
    """The states of a discrete variable, read; nothing for a continuous one.

    Raises
    ------
    DeclarationError
        If there are fewer than two, one of them twice or no number, or if the variable moves or has components.
    """
    if values is None:
        return ()
    listed = list(values) if isinstance(values, list | tuple | Tuple) else []
    states = [exact(v, f"the values of {name}") for v in listed]
    if len(set(states)) < max(2, len(states)) or not all(v.is_number for v in states) or not alone:
        what = f"has the values {values!r:.60}" if alone else "has values, and moves or has components"
        raise DeclarationError(
            f"{name} {what}.",
            "two or more different numbers, of a variable that has no components and does not depend on time",
            f'Feature("{name}", values=(-1, 1))',
        )
    return (Tuple(*sorted(states, key=lambda v: v.evalf(30))),)


def moving_over(over: Any, name: Any, components: Any = None) -> tuple[Time, ...]:
    """The time over which a family moves, read; nothing for what keeps still.

    Raises
    ------
    DeclarationError
        If it is not a time, or if the family has components as well.
    """
    if over is None:
        return ()
    if not isinstance(over, Time) or components:
        raise DeclarationError(
            f"{name} is declared over {over!r}" + (", and with components." if components else "."),
            "a time, of quantities without components",
            't = Time("t"); Variable("x", i, over=t)',
        )
    return (over,)


def kind_of(index: Any, what: str, example: str) -> Kind:
    """The kind of site that an index belongs to.

    Raises
    ------
    DeclarationError
        If it is not the index of a kind of site.
    """
    if isinstance(index, SiteIndex):
        return index.kind
    raise DeclarationError(
        f"{what} has no site index." if index is None else f"{what} is declared over {index}.",
        "the site indices i (features) and mu (data), or an index of further sites",
        f'{example}; a, K = Sites("a", "K") for sites of another kind',
    )


def law_of(law: Any, name: str) -> Basic:
    """The law of a quenched parameter, read; an empty tuple where it is left open.

    Raises
    ------
    DeclarationError
        If it is no law of numbers of its own.
    """
    if law is None or law == Tuple():
        return Tuple()
    if isinstance(law, Mapping):
        return _alone(finite_law(law, name, exact_values=True), name)
    if isinstance(law, Tuple) and all(isinstance(entry, Tuple) and len(entry) == 2 for entry in law):
        return finite_law(dict(law), name, exact_values=True)
    if is_random(law):
        return _alone(law, name)
    raise DeclarationError(
        f"The law of {name} is {law!r}.",
        "a dictionary {value: weight}, or a random variable of sympy.stats",
        f"leave the law out, and give an array of values at evaluation: {{{name}: [...]}}",
    )


def _alone(law: Basic, name: str) -> Basic:
    """A law, where no quantity of a site stands in it."""
    if stray := site_quantities(law):
        raise DeclarationError(
            f"{stray[0]} stands in the law of {name}.",
            "numbers and parameters; with given=u, the field u of the site, and quenched parameters beside it, in "
            "weights or in the parameters of a law on the integers",
            f"u = Sum(x[mu, i]*t[i], (i, 1, N)) and the law of {name} in u, with given=u; where no field drives it, "
            f'one law of both, Quenched(("a", "{name}"), mu, {{(1, 0): S.Half, (2, 1): S.Half}}); a product with '
            f"{stray[0]}, or a sum, where {name} is continuous",
        )
    return law
