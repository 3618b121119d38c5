"""Averages over the sites and the disorder, and responses of a state to its own source: what a user asks for."""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Piecewise, sqrt, sympify
from sympy.logic.boolalg import Boolean

from symcavity.algebra.node import Node, raised
from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Family, SiteQuantity


class Average(Node):
    """The average of a quantity of one site, over the sites and the disorder."""

    def __new__(cls, body: Any) -> Expr:
        """Return the expression, read and checked."""
        if isinstance(body, Family):
            body = body.at_site()
        # a SymPy symbol is an expression and a Boolean at once: an average of a number is meant
        if isinstance(body, bool | Boolean) and not isinstance(body, Expr):
            body = Piecewise((1, body), (0, True))
        body = sympify(body)
        if not body.has(SiteQuantity, SiteResponse):
            return body
        return Expr.__new__(cls, body)

    @property
    def body(self) -> Expr:
        """What is averaged."""
        return self.args[0]

    @property
    def free_symbols(self) -> set[Any]:
        """The free symbols of the body; the site index is averaged over."""
        return {symbol for symbol in self.args[0].free_symbols if not is_index(symbol)}

    def _eval_derivative(self, symbol: Any) -> Expr:
        return Average(self.args[0].diff(symbol))

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative

    def _eval_is_polynomial(self, syms: set[Any]) -> bool:
        return not self.free_symbols & set(syms)

    _eval_is_rational_function = _eval_is_algebraic_expr = _eval_is_polynomial

    def _sympystr(self, _printer: Any) -> str:
        return f"average({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\left\\langle {printer.doprint(self.args[0])} \\right\\rangle"
        return f"{tex}^{{{exp}}}" if exp else tex


class SiteResponse(Node):
    """The response of a site's state to the source in the same site's own equation."""

    def __new__(cls, state: Any, field: Any = None) -> SiteResponse:
        """Return the expression, read and checked."""
        if isinstance(state, Family):
            state = state.at_site()
        if not isinstance(state, SiteQuantity):
            raise DeclarationError(
                f"response({state}) asks for the response of something that is not a state.",
                "a state variable of a site: response(w) or response(w[i])",
            )
        if field is None:
            return Expr.__new__(cls, state)
        return Expr.__new__(cls, state, field.at_site() if isinstance(field, Family) else field)

    @property
    def state(self) -> SiteQuantity:
        """The state that responds."""
        return self.args[0]

    @property
    def field(self) -> SiteQuantity | None:
        """The quantity whose equation carries the source, where there are several."""
        return self.args[1] if len(self.args) > 1 else None

    @property
    def free_symbols(self) -> set[Any]:
        """The free index symbols."""
        return set(self.args[0].free_symbols)

    def _sympystr(self, printer: Any) -> str:
        return f"response({', '.join(printer.doprint(arg) for arg in self.args)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        state = self.args[0]
        ((kind, index),) = state.site.items()
        source = state if self.field is None or not self.field.indices[len(state.site) :] else self.field
        inner = [printer.doprint(k) for k in source.indices[len(state.site) :]]
        mark = printer.doprint(index)
        mark = (
            f"^{{{mark}}}" + (f"_{{{inner[0]}}}" if inner else "")
            if kind.upper
            else f"_{{{' '.join([mark, *inner])}}}"
        )
        tex = f"\\frac{{d {printer.doprint(state)}}}{{d I{mark}}}"
        return raised(tex, exp)


def condition_of(body: Any) -> Any:
    """The condition that an expression indicates: it is one where that holds, and zero elsewhere; None of others."""
    cases: Any = body.args if isinstance(body, Piecewise) else ()
    return cases[0][1] if len(cases) == 2 and cases[0][0] == 1 and cases[1] == (0, True) else None


def average(body: Any) -> Expr:
    """Return the average of a single-site quantity over sites and disorder.

    Parameters
    ----------
    body : Expr, Boolean or Family
        An expression in the variables of one site, e.g. ``w[i]**2``; a condition such as
        ``lam[mu] > 0`` stands for its indicator, so its average is a probability.
    """
    return Average(body)


def norm(*parts: Any) -> Expr:
    """Return the length of a vector, ``sqrt(a**2 + b**2 + ...)``, such as ``norm(w1[i], w2[i])``.

    In the objective of a convex problem it may be multiplied by what is not negative. In a constraint a
    number bounds it; where other states do, the same is said by a :class:`SupportFunction` of a ball.
    """
    return sqrt(Add(*(sympify(part) ** 2 for part in parts)))


def response(state: Any, field: Any = None) -> Expr:
    """Return the response d(state)/d(source).

    ``response(w)``, of the family, is the average over sites; ``response(w[i])`` is the response of one
    site, for use inside :func:`average`.  The source is added to the right-hand side of the equation
    that carries the random field (paper, equations 28 and 29); with several of them, ``field`` says which.
    """
    single = SiteResponse(state, field)
    return Average(single) if isinstance(state, Family) else single
