"""Reading what a user gives at evaluation: numbers for parameters, laws or arrays for quenched families."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Basic, Expr, Symbol, Tuple, sympify
from sympy.stats.rv import RandomSymbol

from symcavity.errors import DeclarationError, ValuesError
from symcavity.evaluate.quenched import exact_value, is_one_number
from symcavity.evaluate.sizes import resolved
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteCount, sizes_compared
from symcavity.model.quantities import Quenched, SiteQuantity, finite_law
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
                f"N = {math.ceil(1 / ratio)} or more" if ratio else f"a positive {kind.ratio}",
            )
        return rounded


def law_symbols(system: System) -> set[Symbol]:
    """Return the plain parameters that the law itself needs, conditions on averages left aside."""
    return set(_words(system)[0])


@lru_cache(maxsize=32)
def _words(system: System) -> tuple[frozenset[Symbol], frozenset[Quenched], frozenset[Symbol]]:
    """Return what the law needs, the quenched families, and all plain parameters; found once a system."""
    return frozenset(_law_symbols(system)), frozenset(system.quenched), frozenset(system.parameters)


def _law_symbols(system: System) -> set[Symbol]:
    exprs: list[Expr] = [body for parts in system.global_conditions for body in parts.values()]
    for law in system.laws.values():
        exprs += [e.difference for e in law.equations] + [q for p in law.pairs for q in p.pair]
        exprs += [f.emission for f in law.fields] + [e for f in law.fields for e in f.coupling.family.moments]
    marks = {f.symbol for law in system.laws.values() for f in law.fields}
    found: set[Symbol] = set().union(*(parameters_of(e) for e in exprs)) - marks
    found -= {kind.ratio for kind in system.kinds}
    for family in system.quenched:
        if isinstance(family.law, Tuple):
            found |= {s for pair in family.law for e in pair for s in parameters_of(e)}
        elif isinstance(family.law, RandomSymbol):
            found |= family.law.pspace.distribution.free_symbols
    return found


def number(value: Any, name: Any) -> float:
    """Return a finite real number, or say what is wrong with it; a text is a decimal or a fraction, and no code."""
    try:
        result = float(Fraction(value.replace(" ", "")) if isinstance(value, str) else sympify(value))
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError):
        result = math.nan
    if not math.isfinite(result):
        raise ValuesError(f"The value of {name} is {value!r}.", "finite real numbers")
    return result


def _count(value: Any, kind: Kind) -> int:
    size = number(value, kind.size)
    if size != round(size) or size < 1:
        raise ValuesError(f"{kind.size} = {value}.", f"a positive whole number of {kind.plural}")
    return round(size)


def sized_kinds(system: System) -> tuple[Kind, ...]:
    """The kinds of sites that have a size: those of the system, and the features, in whose number N others count."""
    return tuple(dict.fromkeys((FEATURE, *system.kinds)))


def _size_words(system: System) -> dict[str, Expr]:
    """What a user may call the sizes: ``alpha``, ``P/N``, ``P`` for data, and so on for other kinds."""
    every = sized_kinds(system)
    words = [s for kind in every for s in (kind.size, kind.ratio, kind.size / FEATURE.size)]
    return {str(s): s for s in words if not s.is_Number}


def _key(key: Any, system: System) -> Any:
    if isinstance(key, SiteQuantity):
        return key.family
    if isinstance(key, str):
        known: dict[str, Any] = {s.name: s for s in law_symbols(system)}
        known |= _size_words(system)
        known |= {q.name: q for q in system.quenched}
        if key not in known:
            raise ValuesError(f"No parameter is named {key!r}.", ", ".join(sorted(known)))
        return known[key]
    return key


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
    if not isinstance(values, Mapping):
        raise ValuesError(f"The values are {values!r}.", "a dictionary {symbol: number}", "{alpha: 1.2}")
    needed, wanted, every = _words(system)
    fixed_only = every - needed
    given = {_key(k, system): v for k, v in values.items()}
    plain: dict[Symbol, float] = {}
    quenched: dict[Quenched, Any] = {}
    sizes: dict[Expr, Any] = {}
    kinds = sized_kinds(system)
    ratios = [kind.ratio for kind in kinds]
    for key, value in given.items():
        if isinstance(key, SiteCount) or key in ratios or sizes_compared(key):
            sizes[key] = value
        elif isinstance(key, Quenched) and key.given is not None:
            raise ValuesError(f"A law is given for {key}, which is drawn on {key.given}.", "the law in its declaration")
        elif isinstance(key, Quenched):
            if key not in wanted:
                raise ValuesError(f"The system has no quenched parameter {key}.", _listed(wanted))
            quenched[key] = _quenched(key, value)
        elif key in needed:
            plain[key] = _in_domain(key, number(value, key))
        elif key in fixed_only:
            raise ValuesError(
                f"A value is given for {key}, which stands only in a condition on an average; at finite size "
                f"it comes out of the instance.",
                "values of alpha (or P) and of the parameters of the law",
                _ALPHA_HINT,
            )
        else:
            found = {*needed, *wanted, *(k.ratio for k in kinds if k != FEATURE)}
            raise ValuesError(f"The system has no parameter {key}.", _listed(found))
    fractions, counts = _read_sizes(kinds, sizes)
    missing = sorted(needed - set(plain), key=str)
    lawless = sorted((q for q in wanted if q not in quenched and q.law is None), key=lambda q: q.name)
    if missing or lawless:
        raise ValuesError(
            f"No value is given for {', '.join(str(m) for m in (*missing, *lawless))}.",
            "a number for each parameter; a law {value: weight} or an array for a quenched family",
        )
    check_ranges(system.ranges, plain)
    for q in wanted:
        quenched.setdefault(q, q.law)
    laws = {q: law if q.given is not None else _substituted(law, plain) for q, law in quenched.items()}
    return Values(plain, laws, kinds, fractions, counts)


def _read_sizes(kinds: tuple[Kind, ...], given: Mapping[Expr, Any]) -> tuple[dict[Kind, float], dict[Kind, int]]:
    """Return the numbers of sites over N, and the numbers of sites, by kind."""
    ratios: dict[Kind, float] = {}
    counts: dict[Kind, int] = {}
    compared: dict[tuple[Kind, Kind], float] = {}
    for key, value in given.items():
        pair = sizes_compared(key)
        named = pair or [k for k in kinds if key in (k.size, k.ratio)] or [key.kind]
        if stranger := next((k for k in named if k not in kinds), None):
            raise ValuesError(f"The system has no {stranger} sites, and {key} is given.", _listed(kinds))
        if isinstance(key, SiteCount):
            counts[key.kind] = _count(value, key.kind)
            continue
        share = number(value, key)
        if share <= 0:
            raise ValuesError(f"{key} = {value}.", f"a positive ratio {named[0].size}/{(pair or (0, FEATURE))[1].size}")
        if pair:
            compared[pair] = share
        else:
            ratios[named[0]] = share
    ratios = resolved(ratios, compared)
    for kind in kinds:
        if kind != FEATURE and kind not in ratios and kind not in counts:
            raise ValuesError(
                f"The {'load ' if kind == DATUM else 'ratio '}{kind.ratio} = {kind.size}/N has no value.",
                f"{kind.ratio if kind == DATUM else kind.size / FEATURE.size}, or {kind.size}",
                _ALPHA_HINT if kind == DATUM else f"{{{kind.size / FEATURE.size}: 2}}",
            )
    return ratios, counts


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _in_domain(symbol: Symbol, value: float) -> float:
    wrong = (symbol.is_positive and value <= 0) or (symbol.is_nonnegative and value < 0)
    if wrong or (symbol.is_negative and value >= 0):
        kind = "positive" if symbol.is_positive else "non-negative" if symbol.is_nonnegative else "negative"
        raise ValuesError(f"{symbol} = {value:g}, but {symbol} is declared {kind}.", f"a {kind} value")
    return value


def _quenched(family: Quenched, value: Any) -> Any:
    value = {exact_value(value, family.name, 15): 1} if is_one_number(value) else value
    if isinstance(value, Mapping):
        try:
            return finite_law(value, family.name, exact_values=False)
        except DeclarationError as error:
            raise ValuesError(error.found, error.supported, error.hint) from None
    if isinstance(value, RandomSymbol):
        return value
    if isinstance(value, Basic) and not value.is_number:
        raise ValuesError(
            f"The law of {family} is {value}.", "{value: weight}, a sympy.stats variable, or an array"
        )
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not np.all(np.isfinite(array)):
        raise ValuesError(
            f"The values of {family} are {value!r}.",
            f"a finite law, a distribution, or an array with one number for each {(family.slots[0]).index}",
        )
    return array


def _substituted(law: Any, parameters: dict[Symbol, float]) -> Any:
    return law.xreplace({k: sympify(v) for k, v in parameters.items()}) if isinstance(law, Basic) else law


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
        if law.ndim == 0:
            return np.full(size, float(law))
        if law.shape != (size,):
            letter = family.slots[0].size
            raise ValuesError(
                f"{law.shape[0]} values are given for {family}, and {letter} = {size}.",
                f"one value for each site ({letter} of them), or a law: values with weights, {{1: 1/2, -1: 1/2}}",
            )
        return law.copy()
    if isinstance(law, Tuple):
        atoms = np.array([number(v, family) for v, _ in law])
        weights = np.array([number(q, f"a weight of {family}") for _, q in law])
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
