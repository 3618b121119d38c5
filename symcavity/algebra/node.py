"""What all expression nodes of this package share: they are real numbers, and print as one piece."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sympy import Expr, default_sort_key

from symcavity.algebra.door import as_sympy


def part(k: int, says: str) -> Any:
    """The argument of a node at one place, by a name of its own."""
    return property(lambda node: node.args[k], doc=says)


class Node(Expr):
    """An expression of our own, which stands for a real number."""

    is_commutative = True
    is_real = True

    def __new__(cls, *args: Any) -> Any:
        """Return the expression of these arguments, read."""
        return Expr.__new__(cls, *map(as_sympy, args))


def replaced_by(rule: Any) -> Mapping[Any, Any]:
    """The pairs of a rule of ``xreplace``: none where SymPy's own simplifications transform what they choose."""
    return rule if isinstance(rule, Mapping) else {}


def raised(tex: str, exp: str | None) -> str:
    """A formula to a power, in brackets."""
    return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex


@lru_cache(maxsize=16384)
def holds(expr: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a node of some classes stands in an expression: ``expr.has(*kinds)``, where each part is looked at once.

    Averages over one law hold all of it, each for itself: what has looked at a law before knows it.
    """
    return isinstance(expr, kinds) or any(holds(a, kinds) for a in getattr(expr, "args", ()))


def unbound(expr: Any, kinds: tuple[Any, ...], z: Any) -> list[Any]:
    """The nodes of some classes that hold a variable and none that is bound around them, in order.

    What switches in a variable of integration is averaged over, and is no switch of the average.
    """
    found: set[Any] = set()

    def walk(node: Any, bound: frozenset[Any]) -> None:
        if not node.has(z):
            return
        if not (bound and node.has(*bound)) and isinstance(node, kinds):
            found.add(node)
        more = bound.union(getattr(node, "bound_symbols", ()))
        for part in node.args:
            walk(part, more)

    walk(expr, frozenset())
    return sorted(found, key=default_sort_key)
