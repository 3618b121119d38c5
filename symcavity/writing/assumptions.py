"""The words of the assumptions, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Expr, Mul
from sympy.core.relational import Relational

from symcavity.model.kinds import DATUM, FEATURE, N
from symcavity.model.quantities import Complementary
from symcavity.writing.fragments import Fragment, Fragments, formula, limit, listed, plural, quantity, small
from symcavity.writing.ordering import is_given


def assumption(name: str, data: dict[str, Any]) -> Fragments:
    """Return the words of an assumption, by its name.

    Parameters
    ----------
    name : str
        The name; one that is unknown is said by itself.
    data : dict
        What it needs to be said; ``text`` (a string or fragments) overrides the words of the table.
    """
    if "text" in data:
        own = data["text"]
        return [own] if isinstance(own, str) else list(own)
    words = _ASSUMPTIONS.get(name)
    if words is not None:
        return words(data)
    extra = [
        value
        for value in data.values()
        if isinstance(value, Expr | Complementary) or hasattr(value, "rel_op")
    ]
    return [name.replace("_", " ").strip().capitalize(), *([": ", *listed(extra)] if extra else []), "."]


def _signs(data: dict[str, Any]) -> Fragments:
    some = relations(data)
    return [f"The {plural(len(some), 'sign', 'signs')} ", *listed(some), "."] if some else ["A sign is assumed."]


def relations(data: dict[str, Any]) -> list[Any]:
    """The inequalities that an assumption of signs holds."""
    found = data.get("relations", data.get("sign_assumptions", data.get("relation", [])))
    every = list(found) if isinstance(found, list | tuple | set | frozenset) else [found]
    return list(dict.fromkeys(map(_without_positive, every)))


def _without_positive(relation: Any) -> Any:
    """A sign without the parameters that are positive, which do not change it."""
    if not isinstance(relation, Relational) or relation.rhs != 0 or not isinstance(relation.lhs, Mul):
        return relation
    number, body = relation.lhs.as_coeff_Mul()
    kept = [f for f in Mul.make_args(body) if not (f.is_positive and is_given(f))]
    return relation.func(number / abs(number) * Mul(*kept), 0, evaluate=False) if kept else relation


def _order(data: dict[str, Any]) -> Fragments:
    return ["Terms smaller by a factor of order ", small(data.get("order")), " are dropped."]


def _fixed_words(*fragments: Fragment) -> Callable[[dict[str, Any]], Fragments]:
    return lambda _data: list(fragments)


def _named(data: dict[str, Any], name: str) -> Fragments:
    """The quantities that a word stands for, where they are given."""
    found = [quantity(q) for q in data.get(name) or ()]
    return [*listed(found), " "] if found else []


_ASSUMPTIONS: dict[str, Callable[[dict[str, Any]], Fragments]] = {
    "iid": _fixed_words("The couplings are independent and identically distributed."),
    "independent": _fixed_words("The couplings are independent; their variances differ."),
    "correlated": _fixed_words("Couplings between different pairs of sites are independent."),
    "independence": _fixed_words(
        "The fresh couplings are independent of the unperturbed system: of its messages and of its responses."
    ),
    "clt": _fixed_words("A sum of many weak independent terms is Gaussian (central limit theorem)."),
    "self_averaging": _fixed_words(
        "Self-couplings and averages over sites take their mean value; their fluctuations vanish with "
            "the size."
    ),
    "linear_response": _order,
    "order": _order,
    "large_size": lambda data: ["We take ", *limit(data.get("kinds") or (FEATURE, DATUM)), "."],
    "uniqueness": _fixed_words(
        "The couplings determine the states uniquely, with infinitesimal sources as well as without."
    ),
    "convexity": _fixed_words("The problem is convex, so that the solution of the conditions is its "
        "minimum."),
    "sign": _signs,
    "signs": _signs,
    "naive_independence": lambda data: [
        "The messages ", *_named(data, "messages"), "are treated as independent of the couplings",
        *[" " for _ in data.get("couplings", ())][:1], *_named(data, "couplings")[:-1],
        ". This is incorrect: it defines the naive analysis.",
    ],
    "orders": lambda data: [
        "The sums over all sites ", *listed(data["sums"]), (" are of order one, as are responses: each of their terms "
        "is of order "), 1 / N, ", so that ", *listed(formula(q, f"= O(N^{{{p}}})") for q, p in data["orders"]), "."
    ],
    "replica_symmetry": _fixed_words("There is a single minimum, reached by every sequence of insertions."),
}  # fmt: skip
