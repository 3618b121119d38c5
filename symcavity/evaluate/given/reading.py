"""The one reader of the values of a call: which parameter, size or law each belongs to, as exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Symbol

from symcavity.errors import ValuesError
from symcavity.evaluate.given.sizes import resolved, sized
from symcavity.evaluate.numbers import brief, check_sign, exact_value, read_law
from symcavity.model.kinds import FEATURE, Kind, sizes_compared
from symcavity.model.names import ALIASES
from symcavity.model.quantities import Quenched, SiteQuantity

Foreign = Callable[[Any, Any], ValuesError]


@dataclass(frozen=True)
class Vocabulary:
    """What takes values.

    Attributes
    ----------
    parameters : tuple of Symbol
        Plain parameters.
    kinds : tuple of Kind
        The kinds of sites, whose numbers and ratios take values.
    quenched : tuple of Quenched
        The quenched parameters, which take laws and arrays.
    """

    parameters: tuple[Symbol, ...]
    kinds: tuple[Kind, ...]
    quenched: tuple[Quenched, ...]

    @property
    def names(self) -> dict[str, Any]:
        """What a text may stand for: parameters, sizes, their ratios, and quenched parameters, by their names."""
        every = tuple(dict.fromkeys((FEATURE, *self.kinds)))
        found: dict[str, Any] = {str(s): s for k in every for s in (k.size, k.ratio) if s.is_Symbol}
        found |= {f"{a.size}/{b.size}": a.size / b.size for a in every for b in every if a != b}
        return found | {str(s): s for s in self.parameters} | {q.name: q for q in self.quenched}

    def key(self, key: Any) -> Any:
        """The quantity that a key of the values means; None if it takes no value."""
        if isinstance(key, str):
            key = self.names.get(ALIASES.get(key, key))
        key = key.family if isinstance(key, SiteQuantity) else key
        if isinstance(key, Quenched):  # which a theory may have taken as positive
            return next((q for q in self.quenched if (q.name, q.slots) == (key.name, key.slots)), None)
        if (pair := sizes_compared(key)) is not None:
            return pair if set(pair) <= {FEATURE, *self.kinds} else None
        if not isinstance(key, Symbol):
            return None
        sizes = {FEATURE.size, *(s for kind in self.kinds for s in (kind.size, kind.ratio))}
        return key if key in {*self.parameters, *sizes} else None


@dataclass
class Read:
    """Values as they were given: exact numbers, and laws.

    Attributes
    ----------
    plain : dict
        Parameters, numbers of sites, and their ratios to N, by symbol.
    laws : dict
        Of quenched parameters, as :func:`symcavity.evaluate.numbers.read_law` returns them.
    """

    plain: dict[Symbol, Any] = field(default_factory=dict)
    laws: dict[Quenched, Any] = field(default_factory=dict)


def read_given(
    words: Vocabulary,
    values: Any,
    dps: int,
    foreign: Foreign,
    held: Collection[Symbol] = (),
    *,
    edges: bool = True,
) -> Read:
    """Read the values of a call.

    Parameters
    ----------
    words : Vocabulary
    values : mapping
        By symbol, by family, or by their names.
    dps : int
        The requested digits.
    foreign : callable
        The complaint about a value for something that takes none.
    held : collection of Symbol
        Parameters whose values hold a place only.
    edges : bool
        Whether a parameter that was declared positive may be zero, as a limit.

    Raises
    ------
    ValuesError
        If the values are no mapping, or one is given twice, of a wrong kind, or contradicts its symbol.
    """
    if not isinstance(values, Mapping):
        raise ValuesError(f"The values are {values!r:.80}.", "a mapping from parameters to values", "{kappa: '1/2'}")
    found, compared, seen = Read(), {}, {}  # type: Read, dict[tuple[Kind, Kind], Any], dict[Any, Any]
    for key, value in values.items():
        target = words.key(key)
        if target is None:
            raise foreign(key, value)
        if target in seen:
            raise ValuesError(
                f"{key} is given twice: {seen[target]!s:.40}, and {value!s:.40}.", "one value for each name"
            )
        seen[target] = value
        if isinstance(target, tuple):
            compared[target] = _positive(exact_value(value, str(key), dps), key)
        elif isinstance(target, Quenched):
            found.laws[target] = _law_given(target, value, dps)
        else:
            found.plain[target] = exact_value(value, str(target), dps)
            if target not in held:
                check_sign(target, found.plain[target], edges=edges)
    if compared:
        others = sized(words.kinds)
        stated = {kind: found.plain[kind.ratio] for kind in others if kind.ratio in found.plain}
        found.plain |= {kind.ratio: share for kind, share in resolved(stated, compared).items()}
    return found


def _law_given(target: Quenched, value: Any, dps: int) -> Any:
    """The law of a quenched quantity whose declaration leaves it open."""
    if target.law is not None:  # the theory may have averaged over it already
        raise ValuesError(
            f"{target} has a law by its declaration, and was given the value {brief(value):.80}.",
            "values for quenched parameters without a law",
            f"declare Quenched({target.name!r}, {target.slots[0].index}) without law=, and give laws as values",
        )
    law = read_law(target, value, dps)
    if target.over is not None and isinstance(law, list):
        raise ValuesError(
            f"{target} is drawn anew at each step, and is given as an array.",
            "a law: {value: weight}, or a random variable of sympy.stats",
        )
    return law


def _positive(value: Any, key: Any) -> Any:
    if value <= 0:
        raise ValuesError(f"{key} = {value}.", "a positive ratio of two numbers of sites")
    return value
