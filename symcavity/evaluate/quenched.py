"""Values of quenched parameters: finite laws, arrays over the sites, distributions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from sympy import Basic, Expr, Float, Rational, Symbol, Tuple, lambdify, oo, sympify
from sympy.stats import density
from sympy.stats.rv import RandomSymbol

from symcavity.errors import DeclarationError, ValuesError
from symcavity.model.kinds import DATUM, FEATURE, Kind, sorted_kinds
from symcavity.model.quantities import Quenched, finite_law


def exact_value(value: Any, name: str, dps: int) -> Any:
    """Read one number: exact types stay exact, floats are taken up to 15 digits and refused above.

    Returns
    -------
    sympy Rational or Expr for exact values, float for floats.
    """
    if isinstance(value, bool):
        raise ValuesError(f"The value of {name} is {value}.", "numbers")
    if isinstance(value, str):
        try:
            return Rational(Fraction(value.replace(" ", "")))
        except (ValueError, ZeroDivisionError):
            raise ValuesError(
                f"The value of {name} is the text {str(value)!r}.",
                "exact decimals or fractions: '0.1', '1e-3', '1/2'",
            ) from None
    if isinstance(value, Fraction):
        return Rational(value.numerator, value.denominator)
    if isinstance(value, int | np.integer):
        return Rational(int(value))
    if isinstance(value, float | np.floating | Float):
        if dps > 15:
            raise ValuesError(
                f"The value of {name} is the float {float(value)!r}, and {dps} digits are asked for.",
                "exact values above 15 digits: integers, fractions, decimal strings",
                f"{name} = '{float(value)!r}'",
            )
        if not np.isfinite(float(value)):
            raise ValuesError(f"The value of {name} is {value}.", "finite numbers")
        return float(value)
    if isinstance(value, mpmath.mpf):
        if not mpmath.isfinite(value):
            raise ValuesError(f"The value of {name} is {value}.", "finite numbers")
        return Rational(*_mpf_ratio(value))
    expr = sympify(value) if isinstance(value, Basic) else None
    if expr is None or not isinstance(expr, Expr) or expr.free_symbols or not expr.is_real:
        if isinstance(value, Decimal) and value.is_finite():
            return Rational(str(value))
        raise ValuesError(
            f"The value of {name} is {value!r}.",
            "a number: int, Fraction, Rational, decimal string, or float",
        )
    if expr.has(Float):
        return exact_value(float(expr), name, dps)
    return expr


def _mpf_ratio(value: Any) -> tuple[int, int]:
    sign, man, exponent, _ = value._mpf_
    number = -man if sign else man
    return (int(number) << exponent, 1) if exponent >= 0 else (int(number), 1 << -exponent)


@dataclass
class SiteLaw:
    """The joint law of the quenched parameters of one side, as weighted points or densities.

    Attributes
    ----------
    names : list of Quenched
        The parameters that are given by points.
    points : list of tuples, exact or float
        Joint values; weights sum to one.
    columns : dict
        The same as NumPy arrays, for evaluation in double.
    continuous : list of (Quenched, random variable)
        Parameters with a density; independent of all others.
    """

    names: list[Quenched] = field(default_factory=list)
    points: list[tuple[Any, ...]] = field(default_factory=lambda: [()])
    weights: list[Any] = field(default_factory=lambda: [Rational(1)])
    continuous: list[tuple[Quenched, Any]] = field(default_factory=list)
    arrays: dict[Quenched, np.ndarray] = field(default_factory=dict)
    uniform: bool = False
    _columns: tuple[dict[Quenched, np.ndarray], np.ndarray] | None = None

    @property
    def count(self) -> int:
        """The number of quenched points."""
        return max(len(self.points), *(len(v) for v in self.arrays.values()), 1)

    def columns(self) -> tuple[dict[Quenched, np.ndarray], np.ndarray]:
        """Values and weights as arrays of doubles, densities turned into quadrature nodes."""
        if self._columns is None:
            values = {q: self._column(q, k) for k, q in enumerate(self.names)}
            if self.uniform:
                size = len(self.points) if self.points != [()] else len(next(iter(self.arrays.values())))
                weights = np.full(size, 1.0 / size)
            else:
                weights = np.array([float(w) for w in self.weights])
            for q, variable in self.continuous:
                nodes, node_weights = quadrature_nodes(variable)
                count = len(weights)
                values = {name: np.repeat(v, len(nodes)) for name, v in values.items()}
                values[q] = np.tile(nodes, count)
                weights = np.repeat(weights, len(nodes)) * np.tile(node_weights, count)
            self._columns = values, weights
        return self._columns

    def _column(self, q: Quenched, k: int) -> np.ndarray:
        if q in self.arrays:
            return self.arrays[q]
        return np.array([float(p[k]) for p in self.points])


def quadrature_nodes(variable: RandomSymbol) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights in double for averages over a continuous distribution (double-exponential rule).

    The coarsest of three rules is taken that has the norm, the mean and the spread of the finest.
    """
    finest = _nodes(variable, 241)
    moments = _moments(*finest)
    for count in (61, 121):
        found = _nodes(variable, count)
        if np.allclose(_moments(*found), moments, rtol=1e-12, atol=1e-12):
            return found
    return finest


def _moments(nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.array(
        [weights @ nodes**k for k in (1, 2, 4)] + [weights @ np.exp(-(np.abs(nodes - weights @ nodes) ** 2))]
    )


def _nodes(variable: RandomSymbol, count: int) -> tuple[np.ndarray, np.ndarray]:
    x = Symbol("x", real=True)
    pdf = lambdify(x, density(variable)(x), ["scipy", "numpy"])
    low, high = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    t = np.linspace(-3.6, 3.6, count)
    step = t[1] - t[0]
    inner, slope = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
    if low == -oo and high == oo:
        centre, spread = _location(variable)
        t = t * (2.2 / 3.6)
        step = t[1] - t[0]
        inner, slope = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
        nodes, jacobian = centre + spread * np.sinh(inner), spread * np.cosh(inner) * slope
    elif high == oo:
        t = np.linspace(-4.8, 3.4, count)  # a density may grow towards its finite end
        step = t[1] - t[0]
        inner, slope = np.pi / 2 * np.sinh(t), np.pi / 2 * np.cosh(t)
        _, spread = _location(variable)
        nodes, jacobian = float(low) + spread * np.exp(inner), spread * np.exp(inner) * slope
    elif low == -oo:
        _, spread = _location(variable)
        nodes, jacobian = float(high) - spread * np.exp(inner), spread * np.exp(inner) * slope
    else:
        a, b = float(low), float(high)
        nodes = a + (b - a) / (1 + np.exp(-2 * inner))
        jacobian = (b - a) / 2 * slope / np.cosh(inner) ** 2
    with np.errstate(all="ignore"):
        weights = np.asarray(pdf(nodes) * np.ones_like(nodes), dtype=float) * jacobian * step
    good = np.isfinite(weights) & (weights > 1e-19)
    weights, nodes = weights[good], nodes[good]
    total = weights.sum()
    if not abs(total - 1) < 1e-6:
        raise ValuesError(
            f"The density of {variable} integrates to {total:.6g}.",
            "distributions with an integrable density",
        )
    return nodes, weights / total


def _location(variable: RandomSymbol) -> tuple[float, float]:
    from sympy.stats import E, variance

    centre, spread = float(E(variable)), float(variance(variable)) ** 0.5
    return centre, spread


def read_quenched(
    quenched: Sequence[Quenched], given: Mapping[Any, Any], dps: int, sizes: Mapping[Any, Any]
) -> dict[Kind, SiteLaw]:
    """Read the values of all quenched parameters; return the joint law of each kind of site.

    Arrays of one side pair site by site; finite laws and distributions are independent of everything else.

    Raises
    ------
    ValuesError
        If a value is missing, or an array has a wrong length or shape.
    """
    kinds = sorted_kinds([FEATURE, DATUM, *(kind for q in quenched for kind in q.slots)])
    laws = {kind: SiteLaw() for kind in kinds}
    arrays: dict[Kind, list[tuple[Quenched, Any]]] = {kind: [] for kind in kinds}
    for q in quenched:
        (side,) = q.slots
        value = given.get(q, q.law)
        if value is None:
            raise ValuesError(
                f"The quenched parameter {q.name} has no value.",
                "a dictionary {value: weight}, an array with one entry a site, or a SymPy distribution",
                f"{{{q.name}: {{1: '1/2', -1: '1/2'}}}}",
            )
        law = laws[side]
        if isinstance(value, Mapping):
            value = _finite(value, q, dps)
        if isinstance(value, RandomSymbol):
            finite = _finite_distribution(value)
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
            _join_arrays(laws[side], entries, side, dps, sizes)
    return laws


def _finite(law: Mapping[Any, Any], q: Quenched, dps: int) -> Tuple:
    """Read a dictionary value -> weight."""
    exact = {exact_value(v, q.name, dps): exact_value(w, f"a weight of {q.name}", dps) for v, w in law.items()}
    if len(exact) != len(law):
        raise ValuesError(f"A value stands twice in the law of {q.name}.", "one weight for each value")
    try:
        return finite_law(exact, q.name, exact_values=False)
    except DeclarationError as problem:
        raise ValuesError(problem.found, problem.supported, problem.hint) from None


def _finite_distribution(variable: RandomSymbol) -> Tuple | None:
    from sympy.stats.frv import FinitePSpace

    if isinstance(variable.pspace, FinitePSpace):
        law = density(variable)
        pairs = law if isinstance(law, dict) else law.dict
        return Tuple(*(Tuple(v, w) for v, w in sorted(pairs.items(), key=lambda pair: str(pair[0]))))
    return None


def _join_arrays(
    law: SiteLaw, entries: list[tuple[Quenched, Any]], side: Kind, dps: int, sizes: Mapping[Any, Any]
) -> None:
    expected = sizes.get(side.size)
    length = None
    columns: list[list[Any] | np.ndarray] = []
    for q, value in entries:
        if (isinstance(value, Basic) and not hasattr(value, "__iter__")) or isinstance(value, int | float | str):
            raise ValuesError(
                f"The value of the quenched parameter {q.name} is {value!r}.",
                "a dictionary {value: weight}, an array with one entry a site, or a SymPy distribution",
                f"{{{q.name}: {{{value}: 1}}}} for the same value at every site",
            )
        column: list[Any] | np.ndarray
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and dps <= 15:
            column = np.asarray(value, dtype=float)
            if column.ndim != 1 or not np.all(np.isfinite(column)):
                raise ValuesError(
                    f"The array of {q.name} has shape {column.shape} or entries that are not finite.",
                    f"one finite number for each of the {side.size} sites",
                )
        else:
            if isinstance(value, str) or not hasattr(value, "__len__") or any(np.ndim(v) for v in value):
                raise ValuesError(
                    f"The value of {q.name} is {value!s:.60}.",
                    f"one number for each of the {side.size} sites",
                )
            column = [exact_value(v, q.name, dps) for v in value]
        if (length is not None and len(column) != length) or (expected is not None and len(column) != expected):
            raise ValuesError(
                f"The array of {q.name} has {len(column)} entries, against {length or expected} sites.",
                f"arrays of one length on the {side} side, equal to {side.size} where that is given",
            )
        length = len(column)
        columns.append(column)
    if not length:
        raise ValuesError(f"The array of {entries[0][0].name} is empty.", "one number for each site")
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


__all__ = ["SiteLaw", "exact_value", "quadrature_nodes", "read_quenched"]
