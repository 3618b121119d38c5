"""Equations in numbers that stand inside of averages: sums over the points of sites, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Symbol, lambdify, preorder_traversal

from symcavity.method.close import kind_of_body
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities

TINY = 1e-30  # of a step off the real axis: it leaves no rounding


class SiteSums:
    """Some rational expressions in symbols that stay, with numbers for all else.

    An average that holds none of these symbols is a number; of others the bodies are compiled, those of one kind of
    sites together, and summed over points.

    Parameters
    ----------
    instances : LinearInstances
        Knows the points of sites, and the numbers.
    sides : sequence of Expr
    symbols : list of Symbol
        By which the expressions are differentiated.
    argument : Symbol
        Another one that stays.
    """

    def __init__(self, instances: Any, sides: Sequence[Expr], symbols: list[Symbol], argument: Symbol) -> None:
        self.instances, self.stay = instances, (symbols, argument)
        nodes = dict.fromkeys(n for e in sides for n in preorder_traversal(e) if isinstance(n, Average))
        held: dict[Kind, dict[Average, Expr]] = {}  # the bodies of those that hold symbols
        for n in (n for n in nodes if n.has(*symbols)):
            body = n.body.xreplace({a: instances.number(a) for a in n.body.atoms(Average)})
            held.setdefault(kind_of_body(site_quantities(body)[0]), {})[n] = body
        inner = {n: Dummy("A") for row in held.values() for n in row}
        known = {n: instances.number(n) for n in nodes if n not in inner}
        found = [self._numbered(e.xreplace({**known, **inner})) for e in sides]
        self._sides = lambdify([symbols, argument, [*inner.values()]], found, "numpy")
        self._sums = [self._summed(kind, list(row.values())) for kind, row in held.items()]

    def __call__(self, now: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
        """The values, and their derivatives."""
        slopes = [self._values(now + TINY * 1j * row, z).imag / TINY for row in np.eye(len(now))]
        return self._values(now, z), np.array(slopes).T

    def _values(self, now: np.ndarray, z: float) -> np.ndarray:
        return np.array(self._sides(now, z, [total for sums in self._sums for total in sums(now, z)]))

    def _numbered(self, expr: Expr) -> Expr:
        symbols, argument = self.stay
        numbers = {*self.instances.solution.values, *self.instances.solution.given.exact}
        known = (expr.free_symbols - {*symbols, argument}) & numbers
        return expr.xreplace({s: self.instances.number(s) for s in sorted(known, key=str)})

    def _summed(self, kind: Kind, bodies: Sequence[Expr]) -> Callable[[np.ndarray, float], list[Any]]:
        """The sums of some expressions over the points of a kind, compiled together: they share their parts."""
        quantities = dict.fromkeys(q for body in bodies for q in site_quantities(body))
        rows = self.instances.points(kind)
        columns = [np.array([float(point[q]) for point, _ in rows]) for q in quantities]
        weights = np.array([float(weight) for _, weight in rows])
        marks = {q: Dummy("q") for q in quantities}
        plain = [self._numbered(body.xreplace(marks)) for body in bodies]
        call = lambdify([*self.stay, [*marks.values()]], plain, "numpy", cse=True)
        return lambda now, z: [np.sum(weights * value) for value in call(now, z, columns)]
