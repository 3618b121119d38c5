"""The monotone map of a convex problem in numbers: the slopes of its saddle function, from single-site averages."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.averages.integrals import LAWS, Grids
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.undefined import where_defined
from symcavity.method.saddle import FieldStatistics, Multiple, Saddle
from symcavity.model.kinds import Kind

WITHIN = 3  # r, tau, s come first in a group; beta and kappa after the covariances


class GroupPlaces:
    """Where the coordinates of a group stand, and its numbers at given values."""

    def __init__(self, group: FieldStatistics, first: int) -> None:
        self.group = group
        count = len(group.overlaps)
        self.r, self.tau, self.s = first, first + 1, first + 2
        self.c = np.arange(first + WITHIN, first + WITHIN + count)
        self.beta, self.kappa = first + WITHIN + count, first + WITHIN + count + 1
        self.n = self.kappa + 1 + np.arange(count)
        self.end = self.kappa + 1 + count
        self.factor: dict[Any, float] = {}
        self.inverse = np.zeros((0, 0))
        self.weight = 1.0

    def multiples(self) -> tuple[Multiple, ...]:
        """The statistics of the group, those that the hearers depend on first."""
        g = self.group
        return (g.size, g.answer, *g.overlaps, g.back_size, g.back_answer, *g.back_answers)

    def statistics(self, z: np.ndarray) -> dict[Any, tuple[float, np.ndarray]]:
        """The values of the statistics at a point, by role, with their slopes."""
        size = len(z)
        r, tau, s, beta, kappa = (z[k] for k in (self.r, self.tau, self.s, self.beta, self.kappa))
        c, n, turned = z[self.c], z[self.n], self.inverse @ z[self.c]

        def along(**slopes: Any) -> np.ndarray:
            out = np.zeros(size)
            for name, value in slopes.items():
                out[getattr(self, name)] = value
            return out

        whole = not self.group.is_apart
        rows = [
            (r * r + whole * (c @ turned), along(r=2 * r, c=whole * 2 * turned)),
            (tau / beta, along(tau=1 / beta, beta=-tau / beta**2)),
        ]
        for k in range(len(c)):
            unit = np.zeros(len(c))
            unit[k] = 1.0
            rows.append((c[k], along(c=unit)))
        rows.append((beta**2, along(beta=2 * beta)))
        rows.append((-kappa / s, along(kappa=-1 / s, s=kappa / s**2)))
        for k in range(len(c)):
            unit = np.zeros(len(c))
            unit[k] = 1.0
            value = kappa / s * turned[k] - n[k]
            rows.append(
                (value, along(kappa=turned[k] / s, s=-kappa / s**2 * turned[k], c=kappa / s * self.inverse[k], n=-unit))
            )
        factors = [self.factor[m] for m in self.multiples()]
        return {m.symbol: (v / f, d / f) for m, (v, d), f in zip(self.multiples(), rows, factors, strict=True)}

    def slopes(self, z: np.ndarray, image: Any) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the map that belong to the group, and their slopes, from the images of its statistics."""
        size, count = len(z), len(self.c)
        r, tau, s, beta, kappa = (z[k] for k in (self.r, self.tau, self.s, self.beta, self.kappa))
        c, n, turned = z[self.c], z[self.n], self.inverse @ z[self.c]
        found = [(f * v, f * d) for m in self.multiples() for f, (v, d) in [(self.factor[m], image[m.symbol])]]
        (x_f, dx_f), (y_f, dy_f), *hats = found[: 2 + count]
        (x_g, dx_g), (y_g, dy_g), *backs = found[2 + count :]
        hat, d_hat = np.array([v for v, _ in hats]), np.array([d for _, d in hats]).reshape(count, size)
        back, d_back = np.array([v for v, _ in backs]), np.array([d for _, d in backs]).reshape(count, size)
        unit = np.eye(size)
        e_r, e_tau, e_s, e_beta, e_kappa = (unit[k] for k in (self.r, self.tau, self.s, self.beta, self.kappa))
        e_c, e_n = unit[self.c], unit[self.n]
        if self.group.is_apart:
            miss, d_miss = hat - c, d_hat - e_c
            apart = x_f + miss @ self.inverse @ miss
            d_apart = dx_f + 2 * (self.inverse @ miss) @ d_miss
        else:
            apart = x_f - 2 * turned @ hat + c @ turned
            d_apart = dx_f - 2 * (turned @ d_hat + (self.inverse @ hat) @ e_c) + 2 * turned @ e_c
        value, slope = np.zeros(size), np.zeros((size, size))
        value[self.r], slope[self.r] = -kappa - r * y_g, -e_kappa - y_g * e_r - r * dy_g
        value[self.tau] = beta / 2 - x_g / (2 * beta)
        slope[self.tau] = e_beta / 2 - dx_g / (2 * beta) + x_g / (2 * beta**2) * e_beta
        value[self.s] = kappa / 2 * (1 - apart / s**2)
        slope[self.s] = (1 - apart / s**2) / 2 * e_kappa - kappa / (2 * s**2) * d_apart + kappa * apart / s**3 * e_s
        value[self.beta] = beta * y_f - tau / 2 * (1 + x_g / beta**2)
        slope[self.beta] = (
            y_f * e_beta + beta * dy_f - (1 + x_g / beta**2) / 2 * e_tau
            - tau / (2 * beta**2) * dx_g + tau * x_g / beta**3 * e_beta
        )
        value[self.kappa] = r - s / 2 - apart / (2 * s)
        slope[self.kappa] = e_r - e_s / 2 - d_apart / (2 * s) + apart / (2 * s**2) * e_s
        pull = self.inverse @ (c - hat)
        value[self.c] = -turned * y_g - back + kappa / s * pull - n
        slope[self.c] = (
            -y_g * self.inverse @ e_c - np.outer(turned, dy_g) - d_back
            + np.outer(pull, e_kappa / s - kappa / s**2 * e_s) + kappa / s * self.inverse @ (e_c - d_hat) - e_n
        )
        value[self.n], slope[self.n] = c - hat, e_c - d_hat
        return self.weight * value, self.weight * slope


class SaddleMap:
    """The map at given values of the parameters.

    Parameters
    ----------
    saddle : Saddle
    task : Task
    given : Given

    Attributes
    ----------
    low : array of bool
        The coordinates that range from zero on.
    primal : array of bool
        Those in which the function is convex, and minimized; in the others it is concave.
    """

    def __init__(self, saddle: Saddle, task: Task, given: Given) -> None:
        self.saddle, self.task = saddle, task
        self.env = given.environment("numpy")
        self.symbols: list[Symbol] = [*saddle.closures]
        self.variables: list[Symbol] = [n.variable for n in saddle.shared]
        self.groups: list[GroupPlaces] = []
        end = 0
        for group in saddle.groups:
            self.groups.append(GroupPlaces(group, end))
            end = self.groups[-1].end
        self.places = end + np.arange(len(saddle.shared))
        self.size = end + len(saddle.shared)
        self.low, self.primal = np.zeros(self.size, dtype=bool), np.zeros(self.size, dtype=bool)
        for g in self.groups:
            self.low[[g.r, g.tau, g.s, g.beta, g.kappa]] = True
            self.primal[[g.r, g.tau, g.s, *g.c]] = True
        for place, number in zip(self.places, saddle.shared, strict=True):
            self.low[place], self.primal[place] = number.is_bounded, not number.is_multiplier
        self._read_numbers()
        exprs = (*saddle.closures.values(), *(n.slope for n in saddle.shared))
        self.pass_ = task.together(task.absorbed(given.laws, exprs), (*self.symbols, *self.variables))
        self.cancelling = task.cancelling(task.absorbed(given.laws, exprs), (*self.symbols, *self.variables))
        self.grids: Grids = self.pass_.grids()
        self._inputs = self.pass_.inputs_of(self.env, (*self.symbols, *self.variables))
        free = [*self.symbols, *self.variables]
        self._open = [(n, free.index(key)) for n, key in enumerate(self.pass_.keys) if self._inputs[n] is None]
        self._readings = self._by_kind()

    def _read_numbers(self) -> None:
        """The numbers of the groups: factors, covariances of quenched fields, weights."""
        rows: list[Expr] = []
        for g in self.groups:
            rows += [*(m.factor for m in g.multiples()), *(e for row in g.group.gram for e in row), g.group.weight]
        values = iter(self.task.together(tuple(rows))(self.env))
        for g in self.groups:
            g.factor = {m: float(next(values)) for m in g.multiples()}
            count = len(g.c)
            gram = np.array([[float(next(values)) for _ in range(count)] for _ in range(count)]).reshape(count, count)
            g.inverse, g.weight = _inverse(gram, g.group), float(next(values))

    def _by_kind(self) -> list[tuple[set[Kind], dict[Symbol, GroupPlaces]]]:
        """Whose coordinates the order parameters take for which kinds: one may be a statistic of two fields."""
        found: dict[tuple[Any, ...], tuple[set[Kind], dict[Symbol, GroupPlaces]]] = {}
        default: dict[Symbol, GroupPlaces] = {}
        for g in self.groups:
            default |= dict.fromkeys((*g.group.heard, *g.group.sent), g)
        for kind in dict.fromkeys(self.saddle.kinds.values()):
            own = dict(default)
            for g in self.groups:
                own |= dict.fromkeys(g.group.heard if g.group.field.hearer == kind else (), g)
                own |= dict.fromkeys(g.group.sent if g.group.field.sender == kind else (), g)
            found.setdefault(tuple(own.values()), (set(), own))[0].add(kind)
        return list(found.values())

    # -- one evaluation ----------------------------------------------------------------------------

    def __call__(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The map at a point, and its slopes; None where an average has no value."""
        with np.errstate(all="ignore"):
            if (found := where_defined(self._images, z)) is None:
                return None
            images, rows, slopes = found
            value, slope = np.zeros(self.size), np.zeros((self.size, self.size))
            for g in self.groups:
                v, d = g.slopes(z, images)
                value, slope = value + v, slope + d
            value[self.places], slope[self.places] = rows, slopes
        return (value, slope) if np.isfinite(value).all() and np.isfinite(slope).all() else None

    def _images(self, z: np.ndarray) -> tuple[dict[Symbol, Any], np.ndarray, np.ndarray]:
        images: dict[Symbol, Any] = {}
        rows = slopes = np.zeros(0)
        table = {g: g.statistics(z) for g in self.groups}
        count = len(self.symbols)
        for kinds, own in self._readings:
            statistics = [table[own[s]][s] for s in self.symbols]
            x = np.array([v for v, _ in statistics] + [z[p] for p in self.places])
            turn = np.array([d for _, d in statistics] + [np.eye(self.size)[p] for p in self.places])
            values, tangents = self._averages(x)
            moved = tangents @ turn
            images |= {s: (values[k], moved[k]) for k, s in enumerate(self.symbols) if self.saddle.kinds[s] in kinds}
            rows, slopes = values[count:], moved[count:]
        return images, rows, slopes

    def _averages(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = list(self._inputs)
        for n, k in self._open:
            inputs[n] = x[k]
        values, tangents = self.pass_.run(inputs, self.env.get(LAWS), self.grids)
        out, turn = np.array(values, dtype=float), np.array(tangents, dtype=float).reshape(len(values), len(x))
        for k, (value, row) in self.cancelling.slopes(x, self.env).items():
            out[k], turn[k] = value, row
        return out, turn

    def refine(self, z: np.ndarray) -> None:
        """Refine the grids of the averages at a point as far as they can be: far from the root they need not settle."""
        x = [table[s][0] for s, table in ((s, self._readings[0][1][s].statistics(z)) for s in self.symbols)]
        point = dict(zip([*self.symbols, *self.variables], [*x, *(z[p] for p in self.places)], strict=True))
        with suppress(NotConverged):
            self.pass_.refine({**self.env, **point}, self.grids)

    def point(self, z: np.ndarray) -> dict[Symbol, float]:
        """The order parameters and global variables at a point."""
        with np.errstate(all="ignore"):
            found = {s: float(self._readings[0][1][s].statistics(z)[s][0]) for s in self.symbols}
            for g in self.groups:
                if g.group.is_apart:
                    size = g.group.size
                    found[size.symbol] += float(z[g.c] @ g.inverse @ z[g.c]) / g.factor[size]
        return found | {g: float(z[p]) for g, p in zip(self.variables, self.places, strict=True)}


def _inverse(gram: np.ndarray, group: FieldStatistics) -> np.ndarray:
    """The inverse of the covariances of given fields; raises ValuesError where one does not vary by itself."""
    try:
        return np.asarray(np.linalg.inv(gram))
    except np.linalg.LinAlgError:
        fields = " and ".join(str(f.as_sum) for f in group.quenched)
        raise ValuesError(
            f"At these values the covariance matrix of {fields} is singular: a field vanishes, or is fixed by others.",
            "teachers that are not zero, and no combinations of each other",
        ) from None
