"""Values of quenched parameters: finite laws, arrays over the sites, distributions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from sympy import Expr, Float, Integer, Rational, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.errors import ValuesError
from symcavity.evaluate.averages.densities import FINEST, Counting, finest, rule
from symcavity.evaluate.averages.gaussian_laws import gaussian_laws
from symcavity.evaluate.numbers import LAWS, read_law
from symcavity.model.exact import is_random
from symcavity.model.kinds import DATUM, FEATURE, Kind, sorted_kinds
from symcavity.model.quantities import Quenched

MOST_VALUES = 20000
MANY_SITES = 4000  # of which more digits than double has would take too long


@dataclass
class SiteLaw:
    """The joint law of the quenched parameters of one side, as weighted points or densities.

    Attributes
    ----------
    names : list of Quenched
        The parameters that are given by points.
    points : list of tuples, exact or float
        Joint values; weights sum to one.
    continuous : list of (Quenched, random variable)
        Parameters with a density; independent of all others.
    arrays : dict
        Parameters that are given site by site, as doubles.
    held : tuple of Quenched
        All parameters that are given site by site: they are the same in all instances.
    uniform : bool
        Whether all points have one weight.
    kinks : dict
        Numbers at which averages are not smooth, by parameters with a density.
    powers : dict
        By which power of two values of a parameter with a density are multiplied, in place of its law.
    """

    names: list[Quenched] = field(default_factory=list)
    points: list[tuple[Any, ...]] = field(default_factory=lambda: [()])
    weights: list[Any] = field(default_factory=lambda: [Rational(1)])
    continuous: list[tuple[Quenched, Any]] = field(default_factory=list)
    arrays: dict[Quenched, np.ndarray] = field(default_factory=dict)
    held: tuple[Quenched, ...] = ()
    uniform: bool = False
    kinks: dict[Quenched, tuple[Expr, ...]] = field(default_factory=dict)
    powers: dict[Quenched, int] = field(default_factory=dict)
    _tables: dict[Any, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_tables": {}}

    @property
    def count(self) -> int:
        """The number of quenched points."""
        return max(len(self.points), *(len(v) for v in self.arrays.values()), 1)

    def finest(self, families: Sequence[Quenched]) -> int:
        """The finest level of the rules for the densities of some parameters: far out for one of them at a time."""
        own = [variable for q, variable in self.continuous if q in families]
        return finest(own[0]) if len(own) == 1 else FINEST

    def is_ruled(self, families: Sequence[Quenched]) -> bool:
        """Whether averages over these parameters are integrals over a density."""
        return any(q in families for q, _ in self.continuous)

    def table(self, families: Sequence[Quenched], level: int = 0) -> tuple[tuple[np.ndarray, ...], np.ndarray | None]:
        """Joint values of some parameters as columns of doubles, and their weights; None where all weigh the same.

        Parameters
        ----------
        families : sequence of Quenched
        level : int
            How fine the rules for continuous laws are.
        """
        return self.kept(partial(self._joint, families, level), families, level)

    def kept(self, make: Callable[[], Any], families: Sequence[Quenched], level: int, at: Hashable = None) -> Any:
        """What is made of the points of some parameters at a level, in double or for a context of mpmath: made once."""
        key = (tuple(families), level if self.is_ruled(families) else 0, at)
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]

    def _joint(self, families: Sequence[Quenched], level: int) -> tuple[tuple[np.ndarray, ...], np.ndarray | None]:
        columns: dict[Quenched, np.ndarray] = {}
        weights: np.ndarray | None = np.ones(1)
        own = [q for q in self.names if q in families]
        if own and self.arrays:
            columns, weights = {q: self.arrays[q] for q in own}, None
        elif own:
            merged = self.marginal(own)
            columns = {q: np.array([float(p[k]) for p in merged]) for k, q in enumerate(own)}
            weights = np.array([float(w) for w in merged.values()])
            if self.uniform and len(merged) == len(self.points):
                weights = None
        for q, variable in self.continuous:
            if q not in families:
                continue
            nodes, rule_weights = rule(variable, level, self.kinks.get(q, ()))
            nodes = np.ldexp(nodes, self.powers.get(q, 0))
            if weights is None:
                count = len(next(iter(columns.values())))
                weights = np.full(count, 1.0 / count)
            columns = {name: np.repeat(v, len(nodes)) for name, v in columns.items()}
            columns[q] = np.tile(nodes, len(weights))
            weights = np.repeat(weights, len(nodes)) * np.tile(rule_weights, len(weights))
        return tuple(columns[q] for q in families), weights

    @property
    def drawn(self) -> tuple[Quenched, ...]:
        """The parameters that are drawn anew in each instance."""
        return tuple(q for q in (*self.names, *(q for q, _ in self.continuous)) if q not in self.held)

    def scaled(self, powers: Mapping[Quenched, int]) -> SiteLaw:
        """The law of the parameters times powers of two, which round nothing."""
        factors = [Integer(2) ** powers.get(q, 0) for q in self.names]
        points = [tuple(v * f for v, f in zip(p, factors, strict=False)) for p in self.points]  # none of arrays
        arrays = {q: np.ldexp(v, powers.get(q, 0)) for q, v in self.arrays.items()}
        return replace(self, points=points, arrays=arrays, powers=dict(powers), _tables={})

    @property
    def gaussian(self) -> dict[Quenched, tuple[Expr, Expr]]:
        """The mean and the standard deviation of each parameter whose law is Gaussian."""
        units = {q: Integer(2) ** self.powers.get(q, 0) for q, _ in self.continuous}
        return {q: (mean * units[q], std * units[q]) for q, (mean, std) in gaussian_laws(self.continuous).items()}

    def marginal(self, names: Sequence[Quenched]) -> dict[tuple[Any, ...], Any]:
        """The joint law of some parameters that are given by points: weights by values."""
        used = [self.names.index(q) for q in names]
        merged: dict[tuple[Any, ...], Any] = {}
        for point, weight in zip(self.points, self.weights, strict=True):
            key = tuple(point[k] for k in used)
            merged[key] = merged.get(key, 0) + weight
        return merged

    @property
    def parameters(self) -> list[Quenched]:
        """All parameters that have values."""
        return [*self.names, *(q for q, _ in self.continuous)]


def read_quenched(quenched: Sequence[Quenched], given: Mapping[Any, Any], dps: int) -> dict[Kind, SiteLaw]:
    """Read the values of all quenched parameters, whatever the sizes; return the joint law of each kind of site.

    Arrays of one side pair site by site; finite laws and distributions are independent of everything else.

    Raises
    ------
    ValuesError
        If a value is missing, or an array has a wrong length or shape.
    """
    # values of other parameters are not read: a law given a field has weights that are formulas, averaged by then;
    # of a law on the counts only where it begins is needed
    read = {q: read_law(q, given[q], dps) for q in quenched if q in given and q.low is None}
    return site_laws(quenched, read, dps, {})


def site_laws(
    quenched: Sequence[Quenched],
    given: Mapping[Any, Any],
    dps: int,
    sizes: Mapping[Any, Any],
    plain: Mapping[Any, Any] = MappingProxyType({}),
) -> dict[Kind, SiteLaw]:
    """The same of values that :func:`symcavity.evaluate.numbers.read_law` has read.

    Declared laws may hold parameters, whose values are ``plain``; one with a parameter that is sought is left out:
    equations hold no average over a finite law that was declared.
    """
    kinds = sorted_kinds([FEATURE, DATUM, *(kind for q in quenched for kind in q.slots)])
    laws = {kind: SiteLaw() for kind in kinds}
    arrays: dict[Kind, list[tuple[Quenched, Any]]] = {kind: [] for kind in kinds}
    for q in quenched:
        (side,) = q.slots
        value = given.get(q, q.law)
        if value is None:
            missing = [other.name for other in quenched if given.get(other, other.law) is None]
            who = f"parameters {', '.join(missing)} have" if len(missing) > 1 else f"parameter {q.name} has"
            raise ValuesError(f"The quenched {who} no value.", LAWS, f"{{{q.name}: {{1: '1/2', -1: '1/2'}}}}")
        law = laws[side]
        if q.low is not None:
            law.continuous.append((q, Counting(q.name, int(q.low))))
            continue
        if isinstance(value, Tuple):
            value = value.xreplace({k: as_sympy(v) for k, v in plain.items()})
            if value.free_symbols:
                continue
        if is_random(value):
            finite = _finite_distribution(value) or _counted(value, dps)
            if finite is None:
                law.continuous.append((q, value))
                continue
            value = finite
        if isinstance(value, Tuple):
            pairs = [(v, w) for v, w in value]
            law.points = [(*p, v) for p, (v, _) in itertools.product(law.points, pairs)]
            law.weights = [u * w for u, (_, w) in itertools.product(law.weights, pairs)]
            law.names.append(q)
            continue
        arrays[side].append((q, value))
    for side, entries in arrays.items():
        if entries:
            _join_arrays(laws[side], entries, side, sizes)
    return laws


def _finite_distribution(variable: Any) -> Tuple | None:
    from sympy.stats import density
    from sympy.stats.frv import FinitePSpace

    if isinstance(variable.pspace, FinitePSpace):
        law = density(variable)
        pairs = law if isinstance(law, dict) else law.dict
        return Tuple(*(Tuple(v, w) for v, w in sorted(pairs.items(), key=lambda pair: str(pair[0]))))
    return None


@lru_cache(maxsize=64)
def _counted(variable: Any, dps: int) -> Tuple | None:
    """A law on the integers: its values until what is left does not show in the requested digits.

    The terms are summed until their sum is 1 to the precision, and as far again as rounding allows, so that
    averages of powers have their digits too.
    """
    from sympy.stats import density
    from sympy.stats.drv import DiscretePSpace

    if not isinstance(variable.pspace, DiscretePSpace):
        return None
    low, high = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    if not low.is_Integer:
        raise ValuesError(
            f"The law of {variable} has the values {variable.pspace.domain.set}.",
            "laws on the integers from a smallest one upwards, finite laws, laws with a density",
        )
    pdf = density(variable)
    digits = 2 * dps + 25
    pairs: list[tuple[Any, Any]] = []
    rest, k = Rational(1).evalf(digits), int(low)
    least = Float(10, digits) ** (-dps - 20)
    while len(pairs) < MOST_VALUES and (high.is_infinite or k <= int(high)):
        weight = pdf(k)
        size = weight.evalf(digits)
        rest -= size
        if size:
            pairs.append(Tuple(Rational(k), weight))
        k += 1
        if abs(rest) < least and size * k**8 < least:
            return Tuple(*pairs)
    if high.is_infinite:
        raise ValuesError(
            f"{MOST_VALUES} values of {variable} leave a probability of {float(rest):.3g}.",
            "discrete laws whose tail falls off quickly",
            "a finite law {value: weight, ...}",
        )
    return Tuple(*pairs)


def _join_arrays(
    law: SiteLaw, entries: list[tuple[Quenched, Any]], side: Kind, sizes: Mapping[Any, Any]
) -> None:
    expected = sizes.get(side.size)
    length = 0
    columns: list[list[Any] | np.ndarray] = []
    for q, column in entries:
        if (length and len(column) != length) or (expected is not None and len(column) != expected):
            raise ValuesError(
                f"The array of {q.name} has {len(column)} entries, against {length or expected} sites.",
                f"arrays of one length on the {side} side, equal to {side.size} where that is given",
            )
        length = len(column)
        columns.append(column)
    law.held = tuple(q for q, _ in entries)
    if law.points == [()] and all(isinstance(c, np.ndarray) for c in columns):
        law.names = [q for q, _ in entries]
        law.arrays = dict(zip(law.names, columns, strict=True))  # type: ignore[arg-type]
        law.points = [()]
        law.uniform = True
        return
    rows = list(zip(*columns, strict=True))
    uniform = law.points == [()]
    law.weights = [w / length for w in law.weights for _ in rows] if not uniform else [Rational(1, length)] * length
    law.points = [(*p, *row) for p in law.points for row in rows]
    law.names = [*law.names, *(q for q, _ in entries)]
    law.uniform = uniform
