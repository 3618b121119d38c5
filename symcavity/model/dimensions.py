"""Which powers of which units belong to which quantity: read off the equations, each of which has to keep its form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import QQ, Abs, Add, Basic, Heaviside, Max, Min, Mul, Piecewise, Pow, Rational, Sum, ilcm, sign, sympify
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction
from sympy.polys.matrices import DomainMatrix

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
from symcavity.model.system import System

Form = Mapping[Any, Rational]  # the exponents of the units of symbols, whose sum is the exponent of an expression
_BARE: Form = {}


@dataclass
class _Analysis:
    """Collects what has to be of one unit, from expressions in given symbols.

    Attributes
    ----------
    known : set
        The nodes that may have units; all others are numbers.
    equal : list of Form
        Exponents that have to vanish.
    """

    known: set[Any]
    equal: list[Form] = field(default_factory=list)
    _seen: dict[Any, Form | None] = field(default_factory=dict)  # large equations hold the same parts many times
    _holding: dict[Any, bool] = field(default_factory=dict)

    def of(self, expr: Any) -> Form | None:
        """The exponents of an expression; None for zero, which has any unit."""
        if expr not in self._seen:
            self._seen[expr] = self._of(expr)
        return self._seen[expr]

    def _of(self, expr: Any) -> Form | None:
        if expr in self.known:
            return {expr: Rational(1)}
        if expr == 0:
            return None
        if not isinstance(expr, Basic) or not self._has(expr):
            return _BARE
        if isinstance(expr, Average | Sum) or type(expr) is GaussianAverage:  # others hold numbers beside their body
            return self.of(expr.args[0])
        if isinstance(expr, ImplicitAverage):
            body, x, reached, *ends = expr.args[:5]
            self.known.add(x)
            self._seen.clear()
            self._holding.clear()
            self.bare(reached)
            for end in (e for e in ends if e.is_finite):
                self.alike([x, end])
            return self.of(body)
        if isinstance(expr, Mul):
            parts = [self.of(a) for a in expr.args]
            return None if None in parts else _combined([(p, Rational(1)) for p in parts if p is not None])
        if isinstance(expr, Pow) and expr.exp.is_Rational:
            base = self.of(expr.base)
            return None if base is None else _combined([(base, expr.exp)])
        if isinstance(expr, Add | Max | Min | Abs):
            return self.alike(expr.args)
        if isinstance(expr, Relational):
            self.alike(expr.args)
            return _BARE
        if isinstance(expr, sign | Heaviside):
            self.of(expr.args[0])
            return _BARE
        if isinstance(expr, Piecewise):
            for _, condition in expr.args:
                self.of(condition)
            return self.alike(e for e, _ in expr.args)
        for a in expr.args if not isinstance(expr, BooleanFunction) else ():
            self.bare(a)
        for a in expr.args if isinstance(expr, BooleanFunction) else ():
            self.of(a)
        return _BARE

    def _has(self, expr: Basic) -> bool:
        if expr not in self._holding:
            self._holding[expr] = expr in self.known or any(self._has(a) for a in expr.args)
        return self._holding[expr]

    def alike(self, parts: Iterable[Any]) -> Form | None:
        """The unit that several expressions share."""
        forms = [form for form in map(self.of, parts) if form is not None]
        self.equal += [_combined([(form, Rational(1)), (forms[0], Rational(-1))]) for form in forms[1:]]
        return forms[0] if forms else None

    def bare(self, expr: Any) -> None:
        """Demand that an expression is a number."""
        form = self.of(expr)
        if form:
            self.equal.append(form)


def _combined(terms: list[tuple[Form, Rational]]) -> Form:
    out: dict[Any, Rational] = {}
    for form, factor in terms:
        for s, power in form.items():
            out[s] = out.get(s, Rational(0)) + factor * power
    return {s: power for s, power in out.items() if power != 0}


@dataclass(frozen=True)
class Dimensions:
    """Which units the quantities of a system have.

    Attributes
    ----------
    symbols : list
        Unknowns, fields and globals, quenched quantities, parameters, couplings.
    exponents : ndarray
        For each symbol the integer powers of independent units: (symbols, units).
    equations : dict
        By kind, the powers of each equation, (equations, units).
    """

    symbols: list[Any]
    exponents: np.ndarray
    equations: dict[Kind, np.ndarray]

    @property
    def count(self) -> int:
        """The number of independent units."""
        return self.exponents.shape[1]

    def of(self, symbol: Any) -> np.ndarray:
        """The powers of a symbol; zero for what has no unit."""
        return self.exponents[self.symbols.index(symbol)] if symbol in self.symbols else np.zeros(self.count)

    def observable(self, expr: Any) -> np.ndarray | None:
        """The powers of an expression in these symbols; None where its parts have different ones."""
        look = _Analysis(set(self.symbols))
        form = look.of(sympify(expr)) or _BARE
        return None if any(np.any(self.power(e)) for e in look.equal) else self.power(form)

    def power(self, form: Form) -> np.ndarray:
        """The powers of a product of powers of symbols."""
        return np.asarray(sum((float(p) * self.of(s) for s, p in form.items()), np.zeros(self.count)))


def dimensions(system: System, parameters: Iterable[Any], couplings: Iterable[Any]) -> Dimensions:
    """Find the units of a system.

    Parameters
    ----------
    system : System
        The system.
    parameters, couplings : iterable
        The parameters of its law, and the couplings that are drawn.
    """
    couplings = list(couplings)
    families = [x.family for x in couplings]
    symbols: list[Any] = [q for law in system.laws.values() for q in law.unknowns]
    symbols += [f.symbol for law in system.laws.values() for f in law.fields]
    symbols += [*system.globals, *(q.at_site() for q in system.quenched), *parameters]
    look = _Analysis({*symbols, *families})
    carried: dict[Kind, list[Form]] = {}
    for kind, law in system.laws.items():
        carried[kind] = [look.of(e.difference) or _BARE for e in law.equations]
        for f in law.fields:
            sum_of = {f.coupling.family: Rational(1)}, look.of(f.emission) or _BARE, {f.symbol: Rational(1)}
            look.equal.append(_combined(list(zip(sum_of, map(Rational, (1, 1, -1)), strict=True))))
        for pair in law.pairs:
            for member in pair.pair:
                look.of(member)
    for parts in system.global_conditions:
        look.alike(parts.values())
    for family in families:
        squared = look.of(family.variance.xreplace({q: q.family.at_site() for q in site_quantities(family.variance)}))
        look.equal.append(_combined([(squared or _BARE, Rational(1)), ({family: Rational(1)}, Rational(-2))]))
    symbols += families
    # a set has a size of its own, which no number of the values says
    basis = np.zeros((len(symbols), 0)) if system.support_functions else _integer_null_space(look.equal, symbols)
    out = Dimensions(symbols, basis, {})
    for kind, forms in carried.items():
        out.equations[kind] = np.array([out.power(form) for form in forms]).reshape(len(forms), basis.shape[1])
    return out


def dimensions_of(equations: Iterable[Any], symbols: Sequence[Any]) -> Dimensions:
    """Find the units of symbols in equations between numbers: those in which all of them keep their form.

    Parameters
    ----------
    equations : iterable of Expr
        Differences of two sides.
    symbols : sequence
        What may have units; what stands in no equation has none.
    """
    look = _Analysis(set(symbols))
    equations = list(equations)
    for difference in equations:
        look.of(difference)
    bound = sorted(look.known - set(symbols), key=str)
    present, left = set[Any](), list(equations)
    while left:
        expr = left.pop()
        if expr not in present:
            present.add(expr)
            left.extend(expr.args)
    absent = [s for s in symbols if s not in present]
    look.equal += [{s: Rational(1)} for s in absent]
    every = [*symbols, *bound]
    return Dimensions(every, _integer_null_space(look.equal, every), {})


def fitted(count: int, groups: Iterable[Iterable[tuple[np.ndarray, float]]]) -> np.ndarray:
    """The logarithms of units, to base two, in which numbers are of order one; zero for units that no number has.

    Parameters
    ----------
    count : int
        How many units there are.
    groups : iterable
        Powers of the units of numbers, with the logarithms of these: those of a later group settle what earlier ones
        leave open.
    """
    logarithms, free = np.zeros(count), np.eye(count)
    for group in groups:
        known = [(p, size) for p, size in group if np.any(p @ free)]
        if known:
            rows, sizes = np.array([p for p, _ in known]), np.array([size for _, size in known])
            left = sizes - rows @ logarithms
            logarithms = logarithms + free @ np.linalg.lstsq(rows @ free, left, rcond=1e-9)[0]
            _, s, vt = np.linalg.svd(rows @ free)
            free = free @ vt[np.count_nonzero(s > 1e-9 * s[0]) :].T
    return logarithms


def _integer_null_space(rows: list[Form], symbols: list[Any]) -> np.ndarray:
    """The integer vectors, as columns, to which all exponents that have to vanish are orthogonal."""
    place = {s: k for k, s in enumerate(symbols)}
    table = [[Rational(0)] * len(symbols) for _ in range(max(len(rows), 1))]
    for k, form in enumerate(rows):
        for s, power in form.items():
            table[k][place[s]] = power
    found = DomainMatrix([[QQ(e.p, e.q) for e in row] for row in table], (len(table), len(symbols)), QQ)
    null = found.nullspace().to_Matrix().tolist()
    columns = [[int(e * ilcm(*(e.q for e in row))) for e in row] for row in null]
    return np.array(columns, dtype=float).reshape(len(columns), len(symbols)).T
