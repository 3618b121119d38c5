"""Continuous time: rates of change, and sums over time that are integrals."""

from __future__ import annotations

from typing import Any

from sympy import Add, DiracDelta, Expr, KroneckerDelta, Mul, S, Sum, Symbol

from symcavity.algebra.node import Node, part, raised


class Rate(Node):
    """The derivative of what moves with respect to its time."""

    body: Expr = part(0, "What changes.")
    time: Any = part(1, "The time.")

    @property
    def free_symbols(self) -> set[Any]:
        """The free symbols of the body."""
        return self.args[0].free_symbols

    def _sympystr(self, printer: Any) -> str:
        return f"Derivative({printer.doprint(self.body)}, {printer.doprint(self.time)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = printer.doprint(self.body)
        tex = f"\\frac{{d}}{{d{printer.doprint(self.time)}}} {body}"
        return raised(tex, exp)


class Element(Node):
    """The element ds of a time: a sum over s that holds it is an integral."""

    is_positive = True

    def _sympystr(self, printer: Any) -> str:
        return f"d{printer.doprint(self.args[0])}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(f"d{printer.doprint(self.args[0])}", exp)


def past(body: Expr, s: Symbol, low: Expr, t: Symbol, delay: int | None) -> Sum:
    """A sum over what was before, up to a delay; without one, in continuous time, an integral."""
    return Sum(body * Element(s), (s, low, t)) if delay is None else Sum(body, (s, low, t - delay))


def at_once(t: Expr, s: Expr, *, flowing: bool) -> Expr:
    """What is one at equal times: in steps, or as a density in continuous time."""
    return DiracDelta(t - s) if flowing else KroneckerDelta(t, s)


def integrand(total: Sum) -> tuple[Expr, list[Any], list[Any]]:
    """The body of a sum without elements of time, the limits of its sums, and those of its integrals."""
    terms = Add.make_args(total.function)
    integrals = [lim for lim in total.limits if all(Element(lim[0]) in Mul.make_args(e) for e in terms)]
    if not integrals:
        return total.function, list(total.limits), []
    body = total.function.xreplace({Element(lim[0]): S.One for lim in integrals})
    return body, [lim for lim in total.limits if lim not in integrals], integrals
