"""The quenched parameters that vary at given couplings, as a user names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from symcavity.errors import DeclarationError
from symcavity.model.dependent import Member
from symcavity.model.quantities import Quenched, SiteQuantity


def varied_families(over: Any, known: Iterable[Quenched], example: str) -> tuple[Quenched, ...]:
    """Return the families that are named; parameters of one joint law vary together.

    Raises
    ------
    DeclarationError
        For families that a system does not hold, and for a part of the parameters of a joint law.
    """
    held = tuple(known)
    words = ", ".join(sorted(map(str, held))) or "no family"
    given = [over] if isinstance(over, Quenched | SiteQuantity | Member) else over
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise DeclarationError(f"over={over!r:.80}.", f"a list of quenched families: {words}", example)
    members = {q.name for q in given if isinstance(q, Member)}
    for q in given:
        if isinstance(q, Member) and (others := [name for name in q.joint if name not in members]):
            raise DeclarationError(
                f"over= names {q}, whose law is that of {', '.join(others)} too: where these are given, that of "
                f"{q} changes.",
                f"all parameters of a joint law: {', '.join(q.joint)}",
                example,
            )
    found = dict.fromkeys(family for q in given for family in _families(q, held))
    for q in found:
        if q not in held:
            raise DeclarationError(f"over= names {q!r:.80}, which does not vary here.", words, example)
    return tuple(found)


def _families(named: Any, held: Sequence[Quenched]) -> Iterator[Any]:
    """The families that one name stands for: of a joint law those on which its parameters depend."""
    if isinstance(named, Member):
        yield from (q for q in held if named.value.has(q.at_site()))
    else:
        family = named.family if isinstance(named, SiteQuantity) else named
        label = isinstance(family, Quenched) and family.given is not None  # whose field has a name in a system
        yield next((q for q in held if label and q.given is not None and q.name == family.name), family)
