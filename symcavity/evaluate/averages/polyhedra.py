"""Gaussian averages over polyhedra in numbers: the last integral in closed form, the others by panels.

The panels end at the corners of the polyhedron, where the integrand is not smooth, and where one of its sides
passes close to the origin, so that no panel holds a step that its nodes would miss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.cells import cell_in
from symcavity.algebra.legendre import legendre
from symcavity.algebra.polyhedral import MOST_FIELDS, CellAverage
from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.averages.special import np_phi
from symcavity.evaluate.constants import TINIEST

REACH = {1: 38.0, 2: 38.0, 3: 9.0}  # how far the panels go: to where doubles underflow, or to rounding
PANEL = 3.0
NEAR = (-8.0, -4.0, 0.0, 4.0, 8.0)  # distances of a side from the origin at which a panel ends
RULES = {1: (14,), 2: (14, 28, 56, 112, 224), 3: (10, 16, 24, 36)}
GOAL = 1e-13
WORST = {1: 0.0, 2: 1e-11, 3: 1e-9}  # what two rules may differ by, relative to the integral of the modulus
ROUNDED = 8 * float(np.finfo(float).eps)  # of ends of intervals of standard Gaussians

Terms = Mapping[tuple[int, ...], np.ndarray]


class Cell:
    """A compiled average over a polyhedron: call it with a mapping from symbols to values."""

    def __init__(self, node: CellAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        self.count, self.backend, self.node = len(node.zs), backend, node
        if self.count > MOST_FIELDS:
            raise ValuesError(
                f"An average over {self.count} fields of one site that contain its own feedback.",
                f"at most {MOST_FIELDS} such fields in numbers",
                "a SupportFunction for the constraints of a datum, with a PointCloud: its averages are sampled",
            )
        self.compiled = compiled
        self.rows = [[compiled(c, backend) for c in row] for row in node.rows()]
        self.terms = [(powers, compiled(c, backend)) for powers, c in node.terms()]
        self.slopes: dict[Any, list[Any]] = {}

    def __call__(self, env: Mapping[Any, Any]) -> Any:
        """Evaluate at the values of a mapping; arrays broadcast."""
        rows = [[c(env) for c in row] for row in self.rows]
        terms = [(powers, c(env)) for powers, c in self.terms]
        if self.backend == "mpmath":
            return cell_in(mp, rows, terms)
        value = np_cell(*self._arrays([c for row in rows for c in row], [c for _, c in terms]))
        return value if value.ndim else value[()]

    def with_slopes(self, env: Mapping[Any, Any], tangents: Sequence[Mapping[Any, Any]]) -> tuple[Any, list[Any]]:
        """The average, and its derivatives along tangents of its symbols."""
        calls = [c for row in self.rows for c in row] + [c for _, c in self.terms]
        moved: list[list[Any]] = [[np.zeros(())] * len(calls) for _ in tangents]
        for rates, tangent in zip(moved, tangents, strict=True):
            for symbol, rate in tangent.items():
                if symbol not in self.slopes:
                    self.slopes[symbol] = [self._slope(expr, symbol) for expr in self.exprs]
                for k, slope in enumerate(self.slopes[symbol]):
                    if slope is not None:
                        rates[k] = rates[k] + rate * np.asarray(slope(env), dtype=float)
        here = [np.asarray(c(env), dtype=float) for c in calls]
        shape = np.broadcast_shapes(*(v.shape for entries in (here, *moved) for v in entries))
        flat = [np.broadcast_to(v, shape) for v in here]
        size = len(calls) - len(self.terms)
        rows, terms = self._arrays(flat[:size], flat[size:])
        changes = [[np.broadcast_to(v, shape) for v in rates] for rates in moved]
        value, slopes = np_cell_slopes(rows, terms, [self._arrays(c[:size], c[size:]) for c in changes])
        return value if value.ndim else value[()], [s if s.ndim else s[()] for s in slopes]

    @cached_property
    def exprs(self) -> list[Expr]:
        """The entries of the conditions, and the coefficients."""
        return [c for row in self.node.rows() for c in row] + [c for _, c in self.node.terms()]

    def _slope(self, entry: Expr, symbol: Any) -> Any:
        slope = entry.diff(symbol)
        return None if slope == 0 else self.compiled(slope, self.backend)

    def _arrays(self, entries: Sequence[Any], coefficients: Sequence[Any]) -> tuple[np.ndarray, Terms]:
        """The conditions as one array, and the coefficients of the monomials, of one shape."""
        flat = np.broadcast_arrays(*(np.asarray(c, dtype=float) for c in (*entries, *coefficients)))
        matrix = np.stack(flat[: len(entries)], axis=-1).reshape(*flat[0].shape, len(self.rows), self.count + 1)
        return matrix, dict(zip((p for p, _ in self.terms), flat[len(entries) :], strict=True))


def np_cell(rows: np.ndarray, terms: Terms) -> np.ndarray:
    """Return ``<sum of c*z^powers * 1[all rows >= 0]>`` in double, for arrays of cells.

    Parameters
    ----------
    rows : array, shape (..., conditions, 1 + variables)
        The offsets and slopes of the conditions.
    terms : mapping
        By the exponents of a monomial: its coefficients, shape (...).

    Raises
    ------
    NotConverged
        If the finest two rules differ.

    Notes
    -----
    Relative to the integral of the modulus the result has 13 digits as a rule, and eleven (two variables) or nine
    (three) in any case; with two variables that holds far into the tails.
    """
    count = rows.shape[-1] - 1
    if np.all(_is_empty(rows)):
        return np.zeros(rows.shape[:-2])
    if count > 2:
        rows, terms = _turned(rows, terms)
    previous, gap = None, 0.0
    value = np.zeros(rows.shape[:-2])
    for rule in RULES[max(count, 1)]:
        value, size = _integral(rows, terms, count, rule)
        if previous is None:
            if count < 2:
                return value
        else:
            with np.errstate(all="ignore"):
                gaps = np.abs(value - previous) / (size + TINIEST)
                gap = float(np.max(gaps, initial=0.0, where=~np.isnan(gaps)))  # what is not a number stays none
            if gap < GOAL:
                return value
        previous = value
    if not gap <= WORST[count]:
        raise NotConverged(
            f"A Gaussian average over {count} fields did not converge.",
            value,
            gap,
            "dps above 15, with one or two fields; parameters less far apart in size",
        )
    return value


def np_cell_slopes(
    rows: np.ndarray, terms: Terms, changes: Sequence[tuple[np.ndarray, Terms]]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """:func:`np_cell` and its derivatives where conditions and coefficients move at given rates, one by one.

    The polynomial changes inside; and each condition that moves takes or leaves what the polynomial is on its plane,
    which is an average over a polyhedron with one variable less.
    """
    stacked = np.broadcast_to(rows, (1 + len(changes), *rows.shape))
    inside = np_cell(stacked, {p: np.stack([c, *(more[p] for _, more in changes)]) for p, c in terms.items()})
    slopes = list(inside[1:])
    crossing = [k for k in range(rows.shape[-2]) if any(np.any(moved[..., k, :]) for moved, _ in changes)]
    if not crossing:
        return inside[0], slopes
    length = np.linalg.norm(rows[..., crossing, 1:], axis=-1)
    divisor = np.where(length > 0, length, 1.0)  # a condition on parameters alone jumps: nothing moves beside its jump
    place = -rows[..., crossing, 0] / divisor
    normal = rows[..., crossing, 1:] / divisor[..., None]
    frame = np.linalg.qr(normal[..., None], mode="complete")[0][..., 1:]  # the own directions of the planes
    origin = normal * place[..., None]
    others = rows[..., np.array([[m for m in range(rows.shape[-2]) if m != k] for k in crossing], dtype=int), :]
    offsets = others[..., 0] + np.einsum("...ri,...i->...r", others[..., 1:], origin)
    planes = np.concatenate([offsets[..., None], others[..., 1:] @ frame], axis=-1)
    here = _substituted({p: c[..., None] for p, c in terms.items()}, origin, frame)
    count = normal.shape[-1]
    unit = [(0,) * count, *(tuple(int(n == j) for n in range(count)) for j in range(count))]
    polynomials = []
    for moved, _ in changes:
        rate = {power: moved[..., crossing, k] for k, power in enumerate(unit)}
        polynomials.append(_product(here, _substituted(rate, origin, frame)))
    powers = dict.fromkeys(p for polynomial in polynomials for p in polynomial)
    zero = np.zeros(place.shape)
    together = {p: np.stack([one.get(p, zero) + zero for one in polynomials]) for p in powers}
    weight = np.where(length > 0, np.exp(-place * place / 2) / np.sqrt(2 * np.pi), 0.0) / divisor
    with np.errstate(all="ignore"):
        found = weight * np_cell(np.broadcast_to(planes, (len(changes), *planes.shape)), together)
    found = np.sum(np.where(weight > 0, found, 0.0), axis=-1)
    return inside[0], [slope + more for slope, more in zip(slopes, found, strict=True)]


def _is_empty(rows: np.ndarray) -> np.ndarray:
    """Whether conditions on parameters, or on the first variable alone, exclude each other."""
    alone = np.all(rows[..., 2:] == 0, axis=-1)
    low, high = _range(np.where(alone, rows[..., 1:2].sum(axis=-1), 0.0), rows[..., 0])
    return np.any(np.all(rows[..., 1:] == 0, axis=-1) & (rows[..., 0] < 0), axis=-1) | (low > high)


def _product(one: Terms, other: Terms) -> Terms:
    """The product of two polynomials."""
    out: dict[tuple[int, ...], Any] = {}
    for a, c in one.items():
        for b, d in other.items():
            key = tuple(m + n for m, n in zip(a, b, strict=True))
            out[key] = out.get(key, 0.0) + c * d
    return out


def _substituted(terms: Terms, origin: np.ndarray, frame: np.ndarray) -> Terms:
    """A polynomial in ``origin + frame @ y``, in powers of ``y``."""
    count = frame.shape[-1]
    unit = [(0,) * count, *(tuple(int(n == j) for n in range(count)) for j in range(count))]
    out: dict[tuple[int, ...], Any] = {}
    for powers, c in terms.items():
        product: Terms = {unit[0]: c}
        for k in (k for k, n in enumerate(powers) for _ in range(n)):
            line = dict(zip(unit, (origin[..., k], *(frame[..., k, j] for j in range(count))), strict=True))
            product = _product(product, line)
        for key, value in product.items():
            out[key] = out.get(key, 0.0) + value
    return out


def _turned(rows: np.ndarray, terms: Terms) -> tuple[np.ndarray, Terms]:
    """Rotate the variables so that the first condition has the first one only, the second the first two.

    The integrand is then smooth over long panels: of a cone only its own sides are left as ends.
    """
    frame, triangle = np.linalg.qr(np.swapaxes(rows[..., 1:], -1, -2), mode="complete")
    turned = np.concatenate([rows[..., :1], np.swapaxes(triangle, -1, -2)], axis=-1)
    return turned, _substituted(terms, np.zeros(frame.shape[:-1]), frame)


def _integral(rows: np.ndarray, terms: Terms, reach: int, rule: int) -> tuple[np.ndarray, np.ndarray]:
    """The average, and that of the modulus of what is left after the inner integrals."""
    count = rows.shape[-1] - 1
    if count == 0:
        inside = np.all(rows[..., 0] >= 0, axis=-1)
        value = np.where(inside, terms[()], 0.0)
        return value, np.abs(value)
    if count == 1:
        value = _segment(rows, {p[0]: c for p, c in terms.items()})
        return value, np.abs(value)
    low, high = _panels(rows, REACH[reach])
    x, w = legendre(rule)
    middle, half = (high + low) / 2, (high - low) / 2
    nodes = (middle[..., None] + half[..., None] * x).reshape(*low.shape[:-1], -1)
    weights = (half[..., None] * w).reshape(nodes.shape) * np.exp(-nodes * nodes / 2) / np.sqrt(2 * np.pi)
    sliced = np.concatenate(
        [
            (rows[..., None, :, 0] + nodes[..., None] * rows[..., None, :, 1])[..., None],
            np.broadcast_to(rows[..., None, :, 2:], (*nodes.shape, rows.shape[-2], count - 1)),
        ],
        axis=-1,
    )
    here: dict[tuple[int, ...], np.ndarray] = {}
    for (n, *rest), c in terms.items():
        here[tuple(rest)] = here.get(tuple(rest), 0.0) + c[..., None] * nodes**n
    value, size = _integral(sliced, here, reach, rule)
    return np.sum(value * weights, axis=-1), np.sum(size * weights, axis=-1)


def _panels(rows: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of each panel of the first variable, which end at corners, and where a side passes by the origin.

    Conditions on this variable alone bound all panels; those of no width stand last, and are left out where they can.
    """
    count = rows.shape[-1] - 1
    shape = rows.shape[:-2]
    regular = np.linspace(-reach, reach, 2 * int(np.ceil(reach / PANEL)) + 1)
    cuts = [np.broadcast_to(regular, (*shape, regular.size))]
    with np.errstate(all="ignore"):
        if chosen := list(combinations(range(rows.shape[-2]), count)):
            corners = rows[..., np.array(chosen), :]
            tops = np.concatenate([-corners[..., :1], corners[..., 2:]], axis=-1)
            cuts.append(np.linalg.det(tops) / np.linalg.det(corners[..., 1:]))
        inner = np.linalg.norm(rows[..., 2:], axis=-1)[..., None]
        near = (np.array(NEAR) * inner - rows[..., 0, None]) / rows[..., 1, None]
        cuts.append(near.reshape(*shape, -1))
    least, most = _range(np.where(np.all(rows[..., 2:] == 0, axis=-1), rows[..., 1], 0.0), rows[..., 0])
    least, most = np.clip(least, -reach, reach)[..., None], np.clip(most, -reach, reach)[..., None]
    edges = np.sort(np.clip(np.nan_to_num(np.concatenate(cuts, axis=-1), nan=0.0), least, most), axis=-1)
    width = np.diff(edges)
    order = np.argsort(width <= 0, axis=-1, kind="stable")[..., : max(1, np.max(np.sum(width > 0, axis=-1)))]
    return np.take_along_axis(edges[..., :-1], order, axis=-1), np.take_along_axis(edges[..., 1:], order, axis=-1)


def _range(slope: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between which numbers ``offset + slope*z`` is nowhere negative, where the slope is not zero."""
    with np.errstate(all="ignore"):
        end = -offset / slope
    low = np.max(np.where(slope > 0, end, -np.inf), axis=-1, initial=-np.inf)
    return low, np.min(np.where(slope < 0, end, np.inf), axis=-1, initial=np.inf)


def _segment(rows: np.ndarray, polynomial: Mapping[int, np.ndarray]) -> np.ndarray:
    """Average a polynomial of one Gaussian over the interval on which all rows are positive."""
    offset, slope = rows[..., 0], rows[..., 1]
    low, high = _range(slope, offset)
    reach = 1 + sum(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high))
    empty = np.any((slope == 0) & (offset < 0), axis=-1) | ~(high - low > ROUNDED * reach)  # ends that coincide
    # a tail on the right is reflected: then both ends are on the left, where phi is small
    mirror = np.where(low > 0, -1.0, 1.0)
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    here = {k: c * mirror**k for k, c in polynomial.items()}
    there = {k: c * (-1.0) ** k for k, c in here.items()}
    right = high > 0
    whole = sum((c * _moment(k) for k, c in here.items()), np.zeros(np.shape(low)))
    below_low = _below(here, low)
    beyond = np.where(right, _below(there, np.where(right, -high, -np.inf)), 0.0)
    up_to_high = np.where(right, whole - beyond, _below(here, np.where(right, -np.inf, high)))
    return np.where(empty, 0.0, up_to_high - below_low)


def _moment(order: int) -> float:
    return 0.0 if order % 2 else float(np.prod(np.arange(order - 1, 0, -2)))


def _below(polynomial: Mapping[int, np.ndarray], end: np.ndarray) -> np.ndarray:
    """Average a polynomial over ``z < end`` for ends that are not positive, in powers of ``end - z``."""
    end = np.maximum(end, -REACH[1] - 2)  # beyond it is zero
    degree = max(polynomial)
    shifted: list[Any] = [0.0] * (degree + 1)
    for k, c in polynomial.items():
        binomial = 1.0
        for j in range(k + 1):
            shifted[j] = shifted[j] + binomial * (-1.0) ** j * c * end ** (k - j)
            binomial *= (k - j) / (j + 1)
    return sum((c * np_phi(j, end) for j, c in enumerate(shifted)), np.zeros(np.shape(end)))
