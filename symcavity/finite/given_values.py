"""Reading what a user gives at evaluation: numbers for parameters, laws or arrays for quenched families."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Basic, Expr, Symbol, Tuple
from sympy.stats.rv import RandomSymbol

from symcavity.algebra.door import as_sympy, in_double
from symcavity.errors import ValuesError
from symcavity.evaluate.given.reading import Vocabulary, read_given
from symcavity.evaluate.numbers import read_law
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteCount, sizes_compared
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.ranges import check_ranges
from symcavity.model.refusals import parameters_of
from symcavity.model.system import System

_ALPHA_HINT = (
    "{alpha: 1}; where the average is known instead, solve(...) at {kappa: 1} says which alpha belongs to it"
)


@dataclass(frozen=True)
class Values:
    """Checked values: numbers by parameter, laws or arrays by quenched family, and how many sites there are.

    Attributes
    ----------
    parameters : dict
        Plain parameters of the law, as floats.
    quenched : dict
        A law (Tuple of (value, weight), random variable) or an array, by quenched family.
    kinds : tuple of Kind
        The kinds of sites that have a size.
    ratios : dict
        The number of sites over N, by kind, where that is given.
    counts : dict
        The number of sites, by kind, where that is given; that of the features where it stands among the values.
    """

    parameters: dict[Symbol, float]
    quenched: dict[Quenched, Any] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    ratios: dict[Kind, float] = field(default_factory=dict)
    counts: dict[Kind, int] = field(default_factory=dict)

    @property
    def features(self) -> int | None:
        """The number of features, where it stands among the values."""
        return self.counts.get(FEATURE)

    def sizes(self, features: int) -> dict[Kind, int]:
        """Return the number of sites of each kind, those given by a ratio rounded to the nearest integer.

        N is among them whether there are features or not: the other sizes are given in its units.
        """
        return {FEATURE: features} | {k: self._size(k, features) for k in self.kinds if k != FEATURE}

    def _size(self, kind: Kind, features: int) -> int:
        ratio = self.ratios.get(kind)
        rounded = None if ratio is None else round(ratio * features)
        if kind in self.counts:
            if rounded not in (None, self.counts[kind]):
                raise ValuesError(
                    f"{kind.size} = {self.counts[kind]}, but {kind.ratio} = {ratio:g} at N = {features}.",
                    f"{kind.size} or {kind.ratio}, or values that agree",
                )
            return self.counts[kind]
        if not rounded:
            raise ValuesError(
                f"N = {features} with {kind.ratio} = {ratio} gives no {kind} at all.",
                f"sizes with at least one {kind}",
                f"N = {math.ceil(1 / ratio)} or more" if ratio and ratio > 1e-9 else f"a larger {kind.ratio}",
            )
        return rounded


def law_symbols(system: System) -> set[Symbol]:
    """Return the plain parameters that the law itself needs, conditions on averages left aside."""
    return set(_words(system)[0])


@lru_cache(maxsize=32)
def _words(system: System) -> tuple[frozenset[Symbol], frozenset[Quenched], frozenset[Symbol]]:
    """Return what the law needs, the quenched families, and all plain parameters; found once a system."""
    return frozenset(_law_symbols(system)), frozenset(system.quenched), frozenset(system.parameters)


@lru_cache(maxsize=32)
def _ranges(system: System) -> tuple[Any, ...]:
    """What values have to meet, which is read off all expressions of a system: once, not for each instance."""
    return system.ranges


def _law_symbols(system: System) -> set[Symbol]:
    exprs: list[Expr] = [body for parts in system.global_conditions for body in parts.values()]
    exprs += [e.rhs for e in (*system.initial, *system.shared)]
    exprs += [q.variance for q in system.drawn_anew if isinstance(q, Noise)]
    for law in system.laws.values():
        exprs += [e.difference for e in law.equations] + [q for p in law.pairs for q in p.pair]
        exprs += [f.emission for f in law.fields] + [e for f in law.fields for e in f.coupling.family.moments]
    exprs += [e for w in system.weights.values() for e in (w.beta, w.energy, *w.bounds)]
    marks = {f.symbol for law in system.laws.values() for f in law.fields}
    found: set[Symbol] = set().union(*(parameters_of(e) for e in exprs)) - marks
    found -= {kind.ratio for kind in system.kinds}
    for family in system.quenched:
        if isinstance(family.law, Tuple):
            found |= {s for pair in family.law for e in pair for s in parameters_of(e)}
        elif isinstance(family.law, RandomSymbol):
            found |= family.law.pspace.distribution.free_symbols
    return found


def sized_kinds(system: System) -> tuple[Kind, ...]:
    """The kinds of sites that have a size: those of the system, and the features, in whose number N others count."""
    return tuple(dict.fromkeys((FEATURE, *system.kinds)))


def read_values(system: System, values: Mapping[Any, Any]) -> Values:
    """Check the values of a simulation against the declaration.

    Parameters
    ----------
    system : System
        The system that is simulated.
    values : mapping
        Numbers by symbol (parameters, sizes such as ``P``, ratios such as ``alpha`` or ``K/N``); laws or arrays
        by quenched family.

    Raises
    ------
    ValuesError
        If a value is missing, superfluous, of a wrong kind or out of range.
    """
    needed, wanted, every = _words(system)
    kinds = sized_kinds(system)
    drawn = sorted((q for q in wanted if q.given is None), key=lambda q: q.name)
    words = Vocabulary(tuple(sorted(needed, key=str)), kinds, tuple(drawn))
    read = read_given(words, values, 15, lambda key, _: _foreign(system, key, every - needed), edges=False)
    plain = {s: in_double(v, str(s)) for s, v in read.plain.items() if s in needed}
    quenched = {q: _as_floats(read_law(q, v, 15)) for q, v in read.laws.items()}
    ratios, counts = _read_sizes(kinds, {s: v for s, v in read.plain.items() if s not in needed})
    missing = sorted(needed - set(plain), key=str)
    lawless = sorted((q for q in wanted if q not in quenched and q.law is None), key=lambda q: q.name)
    if missing or lawless:
        raise ValuesError(
            f"No value is given for {', '.join(str(m) for m in (*missing, *lawless))}.",
            "a number for each parameter; a law {value: weight} or an array for a quenched family",
        )
    check_ranges(_ranges(system), plain)
    for q in wanted:
        quenched.setdefault(q, q.law)
    laws = {q: law if q.given is not None else _substituted(law, plain) for q, law in quenched.items()}
    return Values(plain, laws, kinds, ratios, counts)


def _foreign(system: System, key: Any, fixed_only: Collection[Symbol]) -> ValuesError:
    """The complaint about a value for something that takes none."""
    needed, wanted, _ = _words(system)
    target = key.family if isinstance(key, SiteQuantity) else key
    label = next((q for q in wanted if q.given is not None and target in (q, q.name)), None)
    if label is not None:
        found = f"A law is given for {label}, which is drawn on {label.given}."
        return ValuesError(found, "the law in its declaration")
    if str(target) in set(map(str, fixed_only)):
        return ValuesError(
            f"A value is given for {target}, which stands only in a condition on an average; at finite size "
            f"it comes out of the instance.",
            "values of alpha (or P) and of the parameters of the law",
            _ALPHA_HINT,
        )
    known = {*needed, *wanted, *(s for k in sized_kinds(system) for s in (k.size, k.ratio) if s.is_Symbol)}
    if isinstance(target, SiteCount):
        return ValuesError(f"The system has no {target.kind} sites, and {target} is given.", _listed(known))
    if sizes_compared(target):
        return ValuesError(f"{target} is not a number of sites of this system.", _listed(known))
    word = "quenched parameter" if isinstance(target, Quenched) else "parameter"
    near = get_close_matches(str(target), list(map(str, known)), n=1)
    return ValuesError(f"The system has no {word} {target!s:.60}.", _listed(known), near[0] if near else "")


def _read_sizes(kinds: tuple[Kind, ...], given: Mapping[Symbol, Any]) -> tuple[dict[Kind, float], dict[Kind, int]]:
    """Return the numbers of sites over N, and the numbers of sites, by kind."""
    ratios: dict[Kind, float] = {}
    counts: dict[Kind, int] = {}
    for kind in kinds:
        if kind.size in given:
            size = given[kind.size]
            if size != int(size):
                raise ValuesError(f"{kind.size} = {size}.", f"a positive whole number of {kind.plural}")
            counts[kind] = int(size)
        if kind != FEATURE and kind.ratio in given:
            ratios[kind] = in_double(given[kind.ratio], str(kind.ratio))
            if ratios[kind] <= 0:
                raise ValuesError(f"{kind.ratio} = {given[kind.ratio]}.", f"a positive ratio {kind.size}/N")
        if kind != FEATURE and kind not in ratios and kind not in counts:
            raise ValuesError(
                f"The {'load ' if kind == DATUM else 'ratio '}{kind.ratio} = {kind.size}/N has no value.",
                f"{kind.ratio if kind == DATUM else kind.size / FEATURE.size}, or {kind.size}",
                _ALPHA_HINT if kind == DATUM else f"{{{kind.size / FEATURE.size}: 2}}",
            )
    return ratios, counts


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _as_floats(law: Any) -> Any:
    """A law as it is; numbers site by site as doubles."""
    return np.array([in_double(v, "an entry") for v in law]) if isinstance(law, list) else law


def _substituted(law: Any, parameters: dict[Symbol, float]) -> Any:
    return law.xreplace({k: as_sympy(v) for k, v in parameters.items()}) if isinstance(law, Basic) else law


def draw_quenched(family: Quenched, law: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return one value of a quenched parameter for every site.

    Parameters
    ----------
    family : Quenched
        The family, for its name and side.
    law : Tuple, RandomSymbol or ndarray
        A finite law, a distribution, or given values.
    size : int
        The number of sites.
    rng : Generator
        The random numbers.
    """
    if isinstance(law, np.ndarray):
        if law.shape != (size,):
            letter = family.slots[0].size
            raise ValuesError(
                f"{law.shape[0]} values are given for {family}, and {letter} = {size}.",
                f"one value for each site ({letter} of them), or a law: values with weights, {{1: 1/2, -1: 1/2}}",
            )
        return law.copy()
    if isinstance(law, Tuple):
        atoms, weights = (np.array([float(pair[k]) for pair in law]) for k in (0, 1))
        if np.any(weights < 0) or abs(weights.sum() - 1) > 1e-9:
            raise ValuesError(
                f"The weights of the law of {family} are {weights.tolist()}.",
                "non-negative weights that sum to one",
            )
        return rng.choice(atoms, size=size, p=weights / weights.sum())
    from sympy.stats import sample

    try:
        return np.asarray(sample(law, size=(size,), library="numpy", seed=rng), dtype=float)
    except NotImplementedError:
        return np.asarray(sample(law, size=(size,), library="scipy", seed=rng), dtype=float)
