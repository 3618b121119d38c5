"""Minima and where they are taken, as expressions that say what is minimized over what."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part, raised
from symcavity.model.quantities import SiteQuantity
from symcavity.model.support import bold


class Extremum(Node):
    """The least value of an expression over a vector, or a component of the vector at which it is taken.

    Parameters
    ----------
    body : Expr
        What is minimized; vectors are written by their components.
    point : Symbol
        The vector.
    domain : Symbol, Relational or True
        A set that holds the vector, or a condition on it, or nothing.
    at : Expr or None
        Which component of the minimizer; None for the least value itself.
    """

    def __new__(cls, body: Any, point: Symbol, domain: Any = True, at: Any = None) -> Expr:
        """Return the expression."""
        return Expr.__new__(cls, as_sympy(body), point, as_sympy(domain), *([] if at is None else [as_sympy(at)]))

    body: Expr = part(0, "What is minimized.")
    domain: Any = part(2, "A set, a condition, or True.")

    @property
    def at(self) -> Expr | None:
        """Which component of the minimizer is meant; None for the value."""
        return self.args[3] if len(self.args) > 3 else None

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        own = {self.args[1]}
        return (self.body.free_symbols - own) | (self.at.free_symbols if self.at is not None else set())

    def _condition(self, printer: Any) -> str:
        return printer.doprint(self.domain) if isinstance(self.domain, Relational) else ""

    def _sympystr(self, printer: Any) -> str:
        point, body, condition = printer.doprint(self.args[1]), printer.doprint(self.body), self._condition(printer)
        word = "min" if self.at is None else f"argmin_{printer.doprint(self.at)}"
        where = f" in {printer.doprint(self.domain)}" if self.domain.is_Symbol else ""
        return f"{word}({body}, {point}{where}{' with ' + condition if condition else ''})"

    def _point(self, printer: Any) -> str:
        """The varied quantity, as it occurs in the body."""
        own = sorted((q for q in self.body.atoms(SiteQuantity) if q.family.name == str(self.args[1])), key=str)
        point = printer.doprint(bold(own[0], own[0].indices[-1]) if own else self.args[1])
        return str(point) if own else f"\\bm{{{point}}}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, condition = printer.doprint(self.body), self._condition(printer)
        where = f" \\in {printer.doprint(self.domain)}" if self.domain.is_Symbol else ""
        below = f"_{{{self._point(printer)}{where}}}"
        tail = f"\\ :\\ {condition}" if condition else ""
        word = "\\min" if self.at is None else "\\arg\\min"
        tex = f"{word}{below}\\, {body}{tail}"
        if self.at is not None:
            tex = f"\\left({tex}\\right)_{{{printer.doprint(self.at)}}}"
        return raised(tex, exp)
