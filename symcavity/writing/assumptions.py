"""The words of an assumption, and the inequalities that those of signs hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Expr, Mul
from sympy.core.relational import Relational

from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE, Kind, N
from symcavity.writing.arranging import by_shares
from symcavity.writing.fragments import Fragments, listed, quantity, small
from symcavity.writing.ordering import is_given
from symcavity.writing.words import Said, has, say

Facts = dict[str, Any]


def quantities(value: Any) -> Any:
    """What the data of a step hold, with the quantities of each family at a site."""
    return [quantity(v) for v in value] if isinstance(value, list | tuple) else value


def limit(kinds: Iterable[Kind]) -> Said:
    """Return ``N and P to infinity at a fixed ratio alpha = P/N``."""
    every = list(kinds)
    ratios = [Equation(kind.ratio, kind.size / N) for kind in every if kind.ratio != 1]
    return Said(say("limit", sizes=list(dict.fromkeys((N, *(kind.size for kind in every)))), ratios=ratios))


def assumption(name: str, data: Facts) -> Fragments:
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
    known = {
        **{key: quantities(value) for key, value in data.items()},
        "order": small(data.get("order")),
        "inverse": 1 / N,
        "signs": relations(data),
        "limit": limit(data.get("kinds") or (FEATURE, DATUM)),
        "orders": [{"quantity": q, "power": str(p)} for q, p in data.get("orders", ())],
    }
    section = "assumption." + ("signs" if name == "sign" else name)
    return say(section, **known) if has(section) else _unknown(name, data)


def _unknown(name: str, data: Facts) -> Fragments:
    extra = [v for v in data.values() if isinstance(v, Expr | Complementary) or hasattr(v, "rel_op")]
    return [name.replace("_", " ").strip().capitalize(), *([": ", *listed(extra)] if extra else []), "."]


def relations(data: Facts) -> list[Any]:
    """The inequalities that an assumption of signs holds."""
    found = data.get("relations", data.get("sign_assumptions", data.get("relation", [])))
    every = list(found) if isinstance(found, list | tuple | set | frozenset) else [found]
    return list(dict.fromkeys(map(_without_positive, every)))


def _without_positive(relation: Any) -> Any:
    """A sign without the parameters that are positive, which do not change it, and with shares factored."""
    if isinstance(relation, Relational):
        relation = relation.func(by_shares(relation.lhs), relation.rhs, evaluate=False)
    if not isinstance(relation, Relational) or relation.rhs != 0 or not isinstance(relation.lhs, Mul):
        return relation
    number, body = relation.lhs.as_coeff_Mul()
    kept = [f for f in Mul.make_args(body) if not (f.is_positive and is_given(f))]
    return relation.func(number / abs(number) * Mul(*kept), 0, evaluate=False) if kept else relation
