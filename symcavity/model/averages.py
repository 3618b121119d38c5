"""Averages over the sites and the disorder, and responses of a state to its own source: what a user asks for."""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Piecewise, S, Sum, sqrt
from sympy.logic.boolalg import Boolean

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part, raised
from symcavity.algebra.signs import Averaging
from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Family, Quenched, SiteQuantity
from symcavity.model.times import read_time


def _at_a_site(body: Any) -> Expr:
    """What is averaged, as an expression: a family at its site, a condition as its indicator."""
    if isinstance(body, Family):
        body = body.at_site()
    # a SymPy symbol is an expression and a Boolean at once: an average of a number is meant
    if isinstance(body, bool | Boolean) and not isinstance(body, Expr):
        body = Piecewise((1, body), (0, True))
    return as_sympy(body)


class Fresh(Node):
    """A quantity of a site that took no part in training: its fields are what the others send, without an echo."""

    def __new__(cls, body: Any) -> Expr:
        """Return the expression, read and checked."""
        body = _at_a_site(body)
        bare = body.xreplace(dict.fromkeys(body.atoms(Average), S.One))  # averages over other sites are numbers
        if bare.has(SiteResponse, Fresh):
            what = "a response" if bare.has(SiteResponse) else "fresh(...) itself"
            raise DeclarationError(
                f"fresh({body!s:.80}) holds {what}: a fresh site has no effect on others.",
                "functions of fields, such as Sum(x[mu, i]*w[i], (i, 1, N)), and of quenched parameters",
            )
        return Expr.__new__(cls, body) if bare.has(SiteQuantity) else body

    body: Expr = part(0, "What is asked of the fresh site.")

    def _eval_derivative(self, symbol: Any) -> Expr:
        return Fresh(self.args[0].diff(symbol))

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative

    def _sympystr(self, _printer: Any) -> str:
        return f"fresh({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\left[ {printer.doprint(self.args[0])} \\right]_{{\\mathrm{{fresh}}}}"
        return raised(tex, exp)


class Average(Node, Averaging):
    """The average of a quantity of one site, over the sites and the disorder."""

    def __new__(cls, body: Any) -> Expr:
        """Return the expression, read and checked."""
        body = _at_a_site(body)
        if not body.has(SiteQuantity, SiteResponse):
            return body
        inner = dict.fromkeys(body.atoms(Average), S.One)
        if not isinstance(body, Fresh) and body.xreplace(inner).has(Fresh):
            raise DeclarationError(
                f"{body!s:.80} mixes fresh(...) with other terms.",
                "an average over fresh sites, or one over the sites that took part in training",
                "average(fresh(...)), with all of the expression inside",
            )
        return Expr.__new__(cls, body)

    body: Expr = part(0, "What is averaged.")

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
        fresh = isinstance(self.body, Fresh)
        body = printer.doprint(self.body.args[0] if fresh else self.body)
        tex = f"\\left\\langle {body} \\right\\rangle" + ("_{\\mathrm{fresh}}" if fresh else "")
        return raised(tex, exp) if fresh else f"{tex}^{{{exp}}}" if exp else tex


class SiteResponse(Node):
    """The response of a site's state to the source in the same site's own equation."""

    def __new__(cls, state: Any, field: Any = None, time: Any = None) -> SiteResponse:
        """Return the expression, read and checked."""
        if isinstance(state, Family):
            state = state.at_site()
        if not isinstance(state, SiteQuantity) or isinstance(state.family, Quenched):
            raise DeclarationError(
                f"response({state}): {state} is not a variable of a site.",
                "a state variable of a site: response(w) or response(w[i])",
            )
        if isinstance(field, Sum):
            raise DeclarationError(
                f"response({state}, {plain(field)}): the source of a response is named by a variable.",
                "the variable that a sum over couplings defines",
                f"Eq(u[i], {plain(field)}) in the declaration, u[i] in place of this sum, and response({state}, u[i])",
            )
        if field is not None and not isinstance(field, Family | SiteQuantity) and time is None:
            field, time = None, field
        over = state.family.over
        named = None if field is None else field.at_site() if isinstance(field, Family) else field
        still = named is not None and named.family.over is None  # the source keeps still, whatever the state does
        if (over is None or still) != (time is None):
            raise DeclarationError(
                f"response({state}) asks for the response of a state that "
                + (
                    "does not depend on time, to a source at a time."
                    if over is None
                    else "depends on time, without the time of its source."
                ),
                "the time of the source for states that depend on time, and only for them",
                f"response({state})" if over is None else f'response({state}, s), with s = Time("s")',
            )
        when = [] if time is None or over is None else [read_time(time, f"the source of {state}", over)]
        return Expr.__new__(cls, state, *([] if named is None else [named]), *when)

    state: SiteQuantity = part(0, "The state that responds.")

    @property
    def field(self) -> SiteQuantity | None:
        """The quantity whose equation carries the source, where there are several."""
        return next((a for a in self.args[1:] if isinstance(a, SiteQuantity)), None)

    @property
    def time(self) -> Expr | None:
        """The time of the source; None where states keep still."""
        return next((a for a in self.args[1:] if not isinstance(a, SiteQuantity)), None)

    @property
    def times(self) -> tuple[Expr, Expr]:
        """The times of the state and of the source; zero for what keeps still."""
        return (S.Zero if self.state.time is None else self.state.time), (S.Zero if self.time is None else self.time)

    @property
    def free_symbols(self) -> set[Any]:
        """The free index symbols, times among them."""
        return set(self.args[0].free_symbols) | (set() if self.time is None else self.time.free_symbols)

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
        mark += "" if self.time is None else f"({printer.doprint(self.time)})"
        tex = f"\\frac{{d{printer.doprint(state)}}}{{dI{mark}}}"
        return raised(tex, exp)


class Expect(Node):
    """The thermal average of a quantity of one site, at given disorder."""

    body: Expr = part(0, "What is averaged.")

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative

    def _sympystr(self, _printer: Any) -> str:
        return f"expect({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, force = self.args[0], isinstance(self.args[0], Force)
        inner = body.slope(printer) if force else printer.doprint(body)
        tex = f"\\left\\langle {inner} \\right\\rangle_{{\\beta}}"
        return raised(f"\\left( -{tex} \\right)" if force and exp else f"-{tex}" if force else tex, exp)


class Fluctuating(Node):
    """The field that others make at a site, as their states fluctuate; named by its thermal mean."""

    mean: SiteQuantity = part(0, "The thermal mean.")

    def _sympystr(self, _printer: Any) -> str:
        return f"fluctuating({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(f"\\hat{{{printer.doprint(self.args[0])}}}", exp)


class LogWeight(Node):
    """The logarithm of the sum of a site's weight over all of its states, by the mean that the site sends."""

    state: SiteQuantity = part(0, "The thermal mean that names the site.")

    def _sympystr(self, _printer: Any) -> str:
        return f"log_weight({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        ((kind, index),) = self.args[0].site.items()
        tex = f"\\log Z{'^' if kind.upper else '_'}{{{printer.doprint(index)}}}"
        return raised(tex, exp)


def energy(node: Any) -> str:
    """The letter of the energy in what is printed of a node."""
    return str(node.args[1]) if len(node.args) > 1 else "E"


class Force(Node):
    """The force on a field where the energy jumps or ends: the slope of the logarithm of its weight, over beta."""

    def _sympystr(self, _printer: Any) -> str:
        return f"force({plain(self.args[0])})"

    def slope(self, printer: Any) -> str:
        """The slope of the energy in the field, in LaTeX: the force is minus this."""
        return f"\\frac{{\\partial {energy(self)}}}{{\\partial {printer.doprint(self.args[0])}}}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"-{self.slope(printer)}"
        return raised(f"\\left( {tex} \\right)" if exp else tex, exp)


class Lowest(Node):
    """The state of a site at which the declared objective is lowest, at given couplings."""

    body: Expr = part(0, "The state.")

    def _sympystr(self, _printer: Any) -> str:
        return f"argmin({plain(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(f"\\operatorname*{{arg\\,min}}_{{{printer.doprint(self.args[0])}}} {energy(self)}", exp)


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

    Examples
    --------
    >>> from symcavity import alpha, average, i
    >>> from symcavity.derivations.soft_margin import C, problem, w
    >>> round(float(problem.cavity().solve({alpha: 2, C: 1})[average(w[i]**2)]), 6)
    0.555204
    """
    return Average(body)


def fresh(body: Any) -> Expr:
    """Return a quantity of a site that took no part in training, for use as ``average(fresh(body))``: test errors.

    The fields of a fresh datum sum what the features of the trained system send, through fresh
    couplings.  In a theory they are Gaussian, with the covariances of the cavity fields, and they have no feedback; in
    finite instances new sites are drawn (``simulate(..., fresh=1000)``).

    Parameters
    ----------
    body : Expr or Boolean
        An expression in fields and quenched parameters of one site, such as
        ``(Sum(x[mu, i]*w[i], (i, 1, N)) - y[mu])**2``; a condition stands for its indicator.

    Raises
    ------
    DeclarationError
        If it holds a response; where it is evaluated, if it holds a state of the site, which only training fixes.

    Examples
    --------
    >>> from sympy import Sum
    >>> from symcavity import Coupling, Feature, N, average, fresh, i, mu
    >>> x, w = Coupling("x"), Feature("w")
    >>> average(fresh(Sum(x[mu, i] * w[i], (i, 1, N)) > 1))
    average(fresh(Piecewise((1, Sum(w[i]*x[mu, i], (i, 1, N)) > 1), (0, True))))
    """
    return Fresh(body)
def expect(body: Any) -> Expr:
    """Return the thermal average of a quantity of one site, for use inside :func:`average`.

    ``average(expect(w[i])**2)`` averages the square of a thermal mean over the disorder; without the word, all of
    ``average(w[i]**2)`` is averaged thermally first.

    Parameters
    ----------
    body : Expr, Boolean or Family
        An expression in the variables of one site; a condition such as ``w[i] > 0`` stands for its indicator, so that
        its thermal average is a probability.

    Examples
    --------
    >>> from symcavity import average, expect, i
    >>> from symcavity.derivations.spin_glass import problem, s, values
    >>> round(float(problem.cavity().solve(values)[average(expect(s[i])**2)]), 6)
    0.203403
    """
    return Expect(_at_a_site(body))


def norm(*parts: Any) -> Expr:
    """Return the length of a vector, ``sqrt(a**2 + b**2 + ...)``, such as ``norm(w1[i], w2[i])``.

    In the objective of a convex problem it may be multiplied by a non-negative factor. In a constraint a
    number bounds it; a bound that depends on other states is declared by a :class:`SupportFunction` of a ball.

    Examples
    --------
    >>> from symcavity import Feature, i, norm
    >>> v, w = Feature('v'), Feature('w')
    >>> norm(v[i], w[i])
    sqrt(v[i]**2 + w[i]**2)
    """
    return sqrt(Add(*(as_sympy(part) ** 2 for part in parts)))


def response(state: Any, field: Any = None, time: Any = None) -> Expr:
    """Return the response d(state)/d(source).

    ``response(w)``, of the family, is the average over sites; ``response(w[i])`` is the response of one
    site, for use inside :func:`average`.  The source is added to the right-hand side of the equation
    that carries the random field (paper, equations 28 and 29); with several of them, ``field`` says which.
    Of a state that moves, ``response(x[i, t], s)`` is the response at the time t to a source at the time s.

    Parameters
    ----------
    state : Expr or Family
        A state of a site, ``w[i]``, or its family, ``w``.
    field : Expr, optional
        The equation that carries the source, by the state or the field that it gives, ``h[mu]``; a sum has no name.
    time : Time, optional
        Of states that move, the time of the source.

    Examples
    --------
    >>> from symcavity import alpha, response
    >>> from symcavity.derivations.soft_margin import C, problem, w
    >>> round(float(problem.cavity().solve({alpha: 2, C: 1})[response(w)]), 6)
    0.593864
    """
    single = SiteResponse(state, field, time)
    return Average(single) if isinstance(state, Family) else single
