"""Averages as nodes of expressions: which there are, what they bind, and what their values depend on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sympy import Abs, Add, Dummy, Expr, Mul, Pow, Sum, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.node import holds
from symcavity.algebra.reflected import reflected
from symcavity.evaluate.averages.peaks import Peak
from symcavity.model.averages import Average
from symcavity.model.quantities import Quenched, SiteQuantity

NODES = (Average, Sum, GaussianAverage, ImplicitAverage)


def own_quantities(body: Expr) -> set[SiteQuantity]:
    """Return the site quantities that an average binds: those of averages inside it are bound there."""
    if isinstance(body, SiteQuantity):
        return {body}
    if isinstance(body, Average | Sum):
        return set()
    return set().union(*(own_quantities(arg) for arg in body.args))


class Needs:
    """Which symbols and quenched parameters an expression depends on; those that its averages bind left out."""

    def __init__(self) -> None:
        self._known: dict[Any, frozenset[Any]] = {}

    def __call__(self, expr: Any) -> frozenset[Any]:
        """Return the leaves that the value depends on."""
        if expr not in self._known:
            self._known[expr] = self._find(expr)
        return self._known[expr]

    def _find(self, expr: Any) -> frozenset[Any]:
        if isinstance(expr, Symbol | SiteQuantity):
            return frozenset((expr,))
        if isinstance(expr, Average | Sum):
            inner = self(expr.args[0]) - own_quantities(expr.args[0])
            return inner | (self(expr.limits[0][2]) if isinstance(expr, Sum) else frozenset())
        if isinstance(expr, NumberedAverage):
            return frozenset(leaf for leaf in frozenset().union(*map(self, expr.parts)) if not expr.binds(leaf))
        if isinstance(expr, GaussianAverage | Peak):
            return self(expr.args[0]) - {expr.args[1]}
        if isinstance(expr, ImplicitAverage):
            body, x, psi, low, high, *rest = expr.args
            return (frozenset().union(*map(self, (body, psi, *rest))) - {x}) | self(low) | self(high)
        return frozenset().union(*map(self, expr.args)) if expr.args else frozenset()


class Variables:
    """One variable for Gaussian averages of the same depth that depend on the same and break at the same places.

    Each formula binds a variable of its own; in one name for all, averages that several formulas hold are one.
    """

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._known: dict[Any, tuple[Any, int]] = {}

    def __call__(self, expr: Any) -> Any:
        """Return an expression whose averages bind these variables."""
        return self._renamed(expr)[0]

    def _renamed(self, expr: Any) -> tuple[Any, int]:
        """The expression, and how many averages in it stand inside of each other."""
        if not expr.args or not holds(expr, (GaussianAverage,)):
            return expr, 0
        if expr not in self._known:
            parts = [self._renamed(a) for a in expr.args]
            args, depth = [a for a, _ in parts], max(n for _, n in parts)
            new = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
            if isinstance(new, GaussianAverage) and isinstance(new.z, Symbol):
                depth += 1
                shared = _variable(new.z.name, depth, self._needs(new), frozenset(new.breaks))
                new = new.xreplace({new.z: shared})
            self._known[expr] = new, depth
        return self._known[expr]


@lru_cache(maxsize=4096)
def _variable(name: str, *_shared: Any) -> Symbol:
    """The variable of all averages that share something."""
    return Dummy(name, real=True)


def together(expr: Any) -> Any:
    """Write a sum of averages over values that may vanish, and by which they divide, as one average of the sum.

    Each of them may diverge, and only their sum be finite: ``<phi(2, 1/|y|)>`` over a Gaussian y does.  The same
    polynomials that diverge cancel in the sum before any number is put in.
    """
    return join(expr, _divides)


def join(expr: Any, joins: Callable[[Expr], bool]) -> Any:
    """Write sums of averages as averages of sums, those of which the bodies say so.

    In an average of a sum, the polynomials of truncated moments are taken together.
    """
    if not expr.args or not expr.has(Average):
        return expr
    args = [join(a, joins) for a in expr.args]
    if expr.is_Add:
        sums: dict[Any, list[tuple[Expr, Expr]]] = {}
        for term in args:
            nodes = [f for f in Mul.make_args(term) if isinstance(f, Average) and joins(f.body)]
            factor = Mul(*(f for f in Mul.make_args(term) if f not in nodes))  # averages over other sites may be in it
            one = len(nodes) == 1 and not own_quantities(factor)
            key = frozenset(q.family for q in own_quantities(nodes[0].body)) if one else None
            sums.setdefault(key, []).append((term, factor * nodes[0].body if one else term))
        args = [term for term, _ in sums.pop(None, ())]
        for key in sorted(sums, key=len):  # an average over fewer values is one over more as well
            if whole := next((other for other in sums if key < other), None):
                sums[whole] += sums.pop(key)
        for terms in sums.values():
            args.append(Average(reflected(Add(*(body for _, body in terms)))) if len(terms) > 1 else terms[0][0])
    return expr if tuple(args) == expr.args else expr.func(*args)


def _divides(body: Expr) -> bool:
    """Whether something is divided by a quenched value that may be zero."""
    bases = [p.base.args[0] if isinstance(p.base, Abs) else p.base for p in body.atoms(Pow) if p.exp.is_negative]
    return any(isinstance(b, SiteQuantity) and isinstance(b.family, Quenched) for b in bases)
