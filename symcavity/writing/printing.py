"""The printer of mathematics, in the notation of the source: TeX, and Unicode text and MathML after it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sympy import Abs, Add, Basic, Expr, Function, Integer, Integral, Mul, Piecewise, Pow, Rational, S, Sum, Symbol
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE, precedence_traditional

from symcavity.algebra.flow import integrand
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.indexed import Unequal
from symcavity.algebra.memory import Memory
from symcavity.model.averages import Average, condition_of
from symcavity.model.equations import Equation
from symcavity.model.quantities import Complementary, Family
from symcavity.record.symbols import ResponseElement
from symcavity.sites.sets.averages import REGIME
from symcavity.writing.lines import width
from symcavity.writing.markup import NAMES, Frac, MarkupError, Row, Script, has_fraction, parse
from symcavity.writing.mathml import element
from symcavity.writing.ordering import (
    factor_key,
    gather_roots,
    is_negative,
    is_turned,
    light_terms,
    plain_sum,
    term_key,
)
from symcavity.writing.unicode import to_text

_DATUM_INDICES = frozenset(["mu", "nu", "rho", "sigma", "tau", "xi", "chi"])
_LONG = 24.0
_SHORT = 1.6 * _LONG  # a fraction within another takes a slash up to here

_REGIMES = ("inside", "touching", "on a face", "at the tip", "at the bound")  # of a projection, by their numbers

_PRINTED = Memory(20000)
"""What was printed, for all writers and all formats: by the expression, and where it stood."""


class CavityPrinter(LatexPrinter):
    """LaTeX in the paper's notation: upper datum indices, lower feature indices, ``[x]_+``, averages."""

    def __init__(self, settings: dict[str, Any] | None = None, inline: bool = False) -> None:
        super().__init__({"mul_symbol": None, "fold_short_frac": False, "inv_trig_style": "full"} | (settings or {}))
        self._inline, self._nested = int(inline), 0
        self._printed = {} if settings else _PRINTED

    def _print_Symbol(self, expr: Symbol, style: str = "plain") -> str:
        found = re.sub(r"_\{([A-Za-z]{2,})\}", r"_{\\mathrm{\1}}", super()._print_Symbol(expr, style))
        found = re.sub(r"^[A-Za-z]{2,}", r"\\mathrm{\g<0>}", found)  # a name, and no product of its letters
        return found if _is_formula(expr.name, found) else f"\\text{{{escape_tex(expr.name)}}}"

    def _print(self, expr: Any, **kwargs: Any) -> str:
        """Print; in the argument of a function, and in a derivative, short fractions take a slash."""
        key = (expr, self._inline > 0, self._nested > 0) if isinstance(expr, Basic) and not kwargs else None
        if (known := self._printed.get(key)) is not None:
            return known
        within = isinstance(expr, Function | ResponseElement) and not isinstance(expr, Piecewise)
        self._nested += within
        try:
            out: str = super()._print(expr, **kwargs)
        finally:
            self._nested -= within
        if key is not None:
            self._printed[key] = out
        return out

    # -- powers, products, sums -----------------------------------------------------------------

    def _helper_print_standard_power(self, expr: Pow, template: str) -> str:
        exponent = self._in_script(expr.exp)
        return template % (self._power_base(expr.base), exponent)

    def _power_base(self, base: Expr) -> str:
        body = self._print(base)
        if not base.is_Symbol and precedence_traditional(base) < PRECEDENCE["Atom"]:
            return self._bracket(body)
        items = _tree(body).items
        crowded = (
            len(items) != 1
            or isinstance(items[0], Frac)
            or (isinstance(items[0], Script) and items[0].sup is not None)
        )
        return self._bracket(body) if crowded else body

    @staticmethod
    def _bracket(body: str) -> str:
        return f"\\left({body}\\right)"

    def _in_script(self, expr: Any) -> str:
        self._inline += 1
        try:
            return self._print(expr)
        finally:
            self._inline -= 1

    def _print_Pow(self, expr: Pow) -> str:
        base, power = expr.as_base_exp() if isinstance(expr, Pow) else (expr, S.One)
        base, power = expr.args if isinstance(expr, Pow) else (base, power)
        if power.is_Integer and power.is_even and is_turned(base):
            base = -base
            expr = Pow(base, power, evaluate=False)
        if power is S.Half:
            return f"\\sqrt{{{self._print(base)}}}"
        if power.is_Rational and power.is_negative:
            return self._product((expr,))
        if power.is_Rational and power.q != 1:
            return f"{self._power_base(base)}^{{{power.p}/{power.q}}}"
        if base.is_Function:
            try:
                return self._print(base, exp=self._in_script(power))
            except TypeError:  # a function that does not take its power inside
                pass
        return self._helper_print_standard_power(expr, "%s^{%s}")

    def _print_Mul(self, expr: Mul) -> str:
        return self._product(expr.args)

    def _product(self, factors: Iterable[Expr]) -> str:
        number, above, below = S.One, [], []
        factors = tuple(factors)
        divided = any(factor.as_base_exp()[1].is_negative for factor in factors)
        for factor in factors:
            base, power = factor.as_base_exp()
            signs = set(map(is_negative, base.args)) if isinstance(base, Add) else {False}
            mixed = len(signs) > 1 and power == 1 and number.is_negative and not any(t.is_Rational for t in base.args)
            may = power.is_even or number < 0 or signs == {True} or power.is_negative
            if power.is_Integer and ((mixed and divided) or (may and is_turned(base))):
                number, factor = (-number if power.is_odd else number), Pow(-base, power)
            if factor.is_Rational:
                number *= factor
            elif isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp.is_negative:
                below.append(
                    factor.base if factor.exp == -1 else Pow(factor.base, -factor.exp, evaluate=False)
                )
            else:
                above.append(factor)
        sign = ""
        if number.is_negative:
            sign, number = "- ", -number
        return sign + self._quotient(above, below, number)

    def _quotient(self, above: list[Expr], below: list[Expr], number: Rational) -> str:
        number, above, below = gather_roots(number, above, below)
        above, below = sorted(above, key=factor_key), sorted(below, key=factor_key)
        tops: list[Expr] = [Integer(number.p)] if number.p != 1 else []
        bottoms: list[Expr] = [Integer(number.q)] if number.q != 1 else []
        bottoms += below
        if not bottoms:
            return self._factors(tops + above)
        behind = [factor for factor in above if self._stands_behind(factor)]
        if len(above) == 1 and isinstance(above[0], Add) and not tops and behind:
            behind = behind if width(_tree(self._print(above[0]))) > 2 * _LONG else []
        ahead = tops + [factor for factor in above if factor not in behind]
        self._nested += 1
        top = self._factors(ahead, alone=True)
        high = [factor for factor in ahead if self._nested == 1 and self._is_tall(factor)]
        if high:  # no fraction stands above the bar of another
            ahead, behind = [f for f in ahead if f not in high], sorted([*behind, *high], key=factor_key)
            top = self._factors(ahead, alone=True)
        bottom = self._factors(bottoms, alone=True)
        self._nested -= 1
        if self._inline or (self._nested and width(_tree(f"{top} {bottom}")) < _SHORT):
            top = self._bracket(top) if len(ahead) == 1 and isinstance(ahead[0], Add) else top
            heavy = len(bottoms) > 1 or isinstance(bottoms[0], Add | Mul)
            out = f"{top} / {self._bracket(bottom) if heavy else bottom}"
        else:
            out = f"\\frac{{{top}}}{{{bottom}}}"
        return f"{out} {self._factors(behind)}" if behind else out

    def _stands_behind(self, factor: Expr) -> bool:
        core = factor.base if isinstance(factor, Pow) else factor
        name = type(core).__name__
        if name in ("Sum", "Integral", "Piecewise", "Product"):
            return True
        if isinstance(core, Add | Average) or name in ("GaussianAverage", "DisorderAverage"):
            return width(_tree(self._print(factor))) > _LONG
        return False

    def _is_tall(self, factor: Expr) -> bool:
        """Whether a factor holds a fraction, a sum over sites or an integral, which would stand small above a bar."""
        if self._inline:
            return False
        integral = type(factor) in (GaussianAverage, ImplicitAverage)
        return integral or factor.has(Sum) or has_fraction(_tree(self._print(factor)))

    def _factors(self, factors: list[Expr], alone: bool = False) -> str:
        if not factors:
            return "1"
        if len(factors) == 1 and alone:
            return self._print(factors[0])
        out: list[str] = []
        for place, factor in enumerate(factors):
            body = self._print(factor)
            last = place == len(factors) - 1
            open_ended = (
                type(factor).__name__ in ("Sum", "Integral", "Product", "Limit", "Derivative") and not last
            )
            loose = isinstance(factor, Add) or getattr(factor, "is_Relational", False) or body.startswith("-")
            if open_ended or loose or (isinstance(factor, Mul) and body.startswith("-")):
                body = self._bracket(body)
            if out and re.match(r"\d", body) and re.search(r"\d$", out[-1]):
                out.append("\\cdot")
            elif out and (_is_word(body) or _is_word(out[-1])):  # c noise is no word of six letters
                out.append("\\,")
            out.append(body)
        return " ".join(out)

    def _print_MatAdd(self, expr: Any) -> str:
        out = ""
        for body in sorted(map(self._print, expr.args), key=lambda body: (body.startswith("-"), len(body))):
            out += f" - {body[1:].lstrip()}" if out and body.startswith("-") else f" + {body}" if out else body
        return out

    def _print_Add(self, expr: Add, order: Any = None) -> str:
        light = light_terms(expr)
        terms = [plain_sum(t) for t in self._as_ordered_terms(expr, order=order)]
        terms.sort(key=lambda t: (term_key(t), t not in light))
        if is_negative(terms[0]):  # a number leads, or else the first that is not subtracted
            last = 1 if terms[0].is_number else term_key(terms[0])
            ahead = [t for t in terms if not is_negative(t) and term_key(t) <= last]
            for lead in sorted(ahead, key=lambda t: not t.is_number)[:1]:
                terms.insert(0, terms.pop(terms.index(lead)))
        out = ""
        for term in terms:
            outside = isinstance(term, Sum) and is_negative(term)
            body = f"-{self._print(Sum(-term.function, *term.limits))}" if outside else self._print(term)
            if self._needs_add_brackets(term) or isinstance(term, Add):
                body = self._bracket(body)
            if out:
                out += f" - {body[1:].lstrip()}" if body.startswith("-") else f" + {body}"
            else:
                out = body
        return out

    # -- sums and integrals ---------------------------------------------------------------------

    def _print_Integral(self, expr: Any) -> str:
        return super()._print_Integral(expr).replace("\\limits", "")

    def _print_Sum(self, expr: Any) -> str:
        limits: list[Any] = []
        body = expr
        integrals: list[Any] = []
        while type(body).__name__ == "Sum":
            body, sums, more = integrand(body)
            limits, integrals = limits + sums, integrals + more
        limits.reverse()
        body, apart = _without_unequal(body, {entry[0] for entry in limits})
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for entry in limits:
            if entry[0] in apart:
                continue
            bounds = tuple(entry[1:])
            free = set().union(*(b.free_symbols for b in bounds)) & {e[0] for e in limits}
            groups.setdefault((*bounds, entry[0]) if free else bounds, []).append(entry[0])
        out = "".join(f"\\sum_{{{self._print(k)} \\ne {self._print(other)}}} " for k, other in apart.items())
        for bounds, dummies in groups.items():
            names = ",".join(self._print(d) for d in sorted(dummies, key=str))
            low, high = (self._print(b) for b in bounds[:2]) if len(bounds) >= 2 else ("", "")
            out += f"\\sum_{{{names}={low}}}^{{{high}}} " if low else f"\\sum_{{{names}}} "
        if integrals:
            return out + self._print(Integral(body, *integrals))
        inner = self._print(body)
        return out + (self._bracket(inner) if isinstance(body, Add) or inner.startswith("-") else inner)

    # -- functions ------------------------------------------------------------------------------

    def _print_Identity(self, _expr: Any) -> str:
        return "\\mathbf{1}"

    def _print_Max(self, expr: Any, exp: str | None = None) -> str:
        rest = [arg for arg in expr.args if arg != 0]
        power = f"^{{{exp}}}" if exp else ""
        if len(rest) == 1 and len(expr.args) == 2:
            return f"\\left[{self._print(rest[0])}\\right]_{{+}}{power}"
        return f"\\max{power}\\left({', '.join(self._print(arg) for arg in expr.args)}\\right)"

    def _print_Min(self, expr: Any, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        return f"\\min{power}\\left({', '.join(self._print(arg) for arg in expr.args)}\\right)"

    def _print_Abs(self, expr: Any, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        body = self._print(expr.args[0])
        if body.startswith("-") or is_turned(expr.args[0]):  # one of both signs reads better
            body = self._print(-expr.args[0])
        return f"\\left|{body}\\right|{power}"

    def _print_Heaviside(self, expr: Any, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        return f"\\Theta{power}\\left({self._print(expr.args[0])}\\right)"

    def _print_ExpBase(self, expr: Any, exp: str | None = None) -> str:
        body = self._in_script(expr.args[0])
        if width(_tree(body)) > _LONG:
            power = f"^{{{exp}}}" if exp else ""
            return f"\\exp{power}\\left({self._print(expr.args[0])}\\right)"
        out = f"e^{{{body}}}"
        return f"{self._bracket(out)}^{{{exp}}}" if exp else out

    def _print_KroneckerDelta(self, expr: Any, exp: str | None = None) -> str:
        upper = any(
            getattr(index, "name", "").rstrip("0123456789'_") in _DATUM_INDICES for index in expr.args
        )
        indices = sorted(expr.args, key=lambda index: bool(index.is_number))  # a label, then the value that it may have
        between = " " if all(index.is_Symbol for index in indices) else ", "
        marks = between.join(self._print(index) for index in indices)
        out = f"\\delta{'^' if upper else '_'}{{{marks}}}"
        return f"{self._bracket(out)}^{{{exp}}}" if exp else out

    def _print_Piecewise(self, expr: Any) -> str:
        if (test := condition_of(expr)) is not None:
            return f"\\mathbf{{1}}\\left[{self._print(test)}\\right]"
        rows: list[str] = []
        for value, condition in expr.args:
            if value is S.NaN and condition == True and rows:  # noqa: E712 - the cases before are all there are
                continue
            words = "\\text{otherwise}" if condition == True else f"\\text{{if }} {self._print(condition)}"  # noqa: E712
            rows.append(f"{self._print(value)}, & {words}")
        return "\\begin{cases} " + " \\\\ ".join(rows) + " \\end{cases}"

    # -- relations and words --------------------------------------------------------------------

    def _print_Relational(self, expr: Any) -> str:
        signs = {"==": "=", ">": ">", "<": "<", ">=": "\\ge", "<=": "\\le", "!=": "\\ne"}
        if expr.lhs == REGIME:
            return f"\\text{{{'' if expr.rel_op == '==' else 'not '}{_REGIMES[int(expr.rhs)]}}}"
        if expr.rhs == 0 and not isinstance(expr.lhs, Add) and is_negative(expr.lhs):
            expr = expr.reversedsign
        if isinstance(expr.rhs, Abs) and not isinstance(expr.lhs, Abs):
            expr = expr.reversed
        return f"{self._print(expr.lhs)} {signs[expr.rel_op]} {self._print(expr.rhs)}"

    def _print_And(self, expr: Any) -> str:
        between = _interval(expr)
        if between is not None:
            (low, first), middle, (last, high) = between
            return f"{self._print(low)} {first} {self._print(middle)} {last} {self._print(high)}"
        parts = sorted(expr.args, key=str)
        return " \\text{ and } ".join(self._print(part) for part in parts)

    def _print_Or(self, expr: Any) -> str:
        parts = sorted(expr.args, key=str)
        return " \\text{ or } ".join(self._print(part) for part in parts)

    def _print_BooleanTrue(self, _expr: Any) -> str:
        return "\\text{always}"

    def _print_BooleanFalse(self, _expr: Any) -> str:
        return "\\text{never}"

    def _print_Complementary(self, expr: Complementary) -> str:
        p, q = (self._print(part) for part in expr.pair)
        return f"0 \\le {p} \\perp {q} \\ge 0"

    def _print_str(self, expr: str) -> str:
        return f"\\text{{{escape_tex(expr)}}}"

    def _print_Float(self, expr: Any) -> str:
        return super()._print_Float(expr.round(6) if 1e-3 < abs(expr) < 1e6 else expr)

    def _print_Basic(self, expr: Any) -> str:
        return self.emptyPrinter(expr)

    def emptyPrinter(self, expr: Any) -> str:
        """Print what nobody knows how to print by its own string."""
        return f"\\mathtt{{{escape_tex(str(expr))}}}"


def _without_unequal(body: Expr, bound: set[Any]) -> tuple[Expr, dict[Any, Any]]:
    """The body of a sum without the factors that leave one site out, and what each index differs from."""
    apart = {f.args[0]: f.args[1] for f in Mul.make_args(body) if isinstance(f, Unequal) and f.args[0] in bound}
    kept = [f for f in Mul.make_args(body) if not (isinstance(f, Unequal) and f.args[0] in apart)]
    return (Mul(*kept), apart) if apart else (body, {})


_ESCAPES = {
    "\\": "\\textbackslash ", "{": "\\{", "}": "\\}", "$": "\\$", "%": "\\%", "&": "\\&", "#": "\\#",
    "_": "\\_", "^": "\\textasciicircum ", "~": "\\textasciitilde ",
}  # fmt: skip


def escape_tex(words: str) -> str:
    """Escape the characters that TeX reads as commands."""
    return "".join(_ESCAPES.get(char, char) for char in words)


def _is_word(source: str) -> bool:
    """Whether a factor is a name of several letters."""
    return source.startswith(("\\text{", "\\mathrm{"))


def _is_formula(name: str, source: str) -> bool:
    """Whether the name of a symbol, which a user may have written in TeX, is a name in TeX."""
    if set(name) & set("%&#$~") or not set(re.findall(r"\\([A-Za-z]*)", name)) <= NAMES:
        return False
    try:
        _tree(source)
    except MarkupError:
        return False
    return name.count("{") == name.count("}")


@lru_cache(maxsize=4096)
def _tree(source: str) -> Row:
    return parse(source)


def _interval(expr: Any) -> tuple[tuple[Any, str], Any, tuple[str, Any]] | None:
    """Read two bounds of one quantity as an interval."""
    if len(expr.args) != 2 or not all(
        getattr(part, "rel_op", "") in ("<", "<=", ">", ">=") for part in expr.args
    ):
        return None
    pairs = [(part.lts, part.gts, "<" if "=" not in part.rel_op else "\\le") for part in expr.args]
    for (low, one, first), (two, high, last) in (pairs, pairs[::-1]):
        if one == two and not one.is_number:
            return (low, first), one, (last, high)
    return None


def tex(obj: Any, inline: bool = False) -> str:
    """Return the LaTeX of an expression, an equation, a condition or a relation.

    Parameters
    ----------
    obj : object
        Anything; what is not mathematics is printed as its string.
    inline : bool
        Write fractions with a slash, for running text.
    """
    if isinstance(obj, str):
        return f"\\text{{{escape_tex(obj)}}}"
    printer = CavityPrinter(inline=inline)
    if isinstance(obj, Equation):
        both = (obj.lhs, obj.rhs)
        sides = [-Sum(-e.function, *e.limits) if isinstance(e, Sum) and is_negative(e) else e for e in both]
        return " = ".join(map(printer.doprint, sides))
    if isinstance(obj, tuple | list):
        return ",\\; ".join(tex(part, inline) for part in obj)
    if isinstance(obj, int | float | Basic | Family):
        return printer.doprint(obj)
    if hasattr(obj, "_latex"):
        return obj._latex(printer)  # noqa: SLF001 - SymPy's printing protocol
    return printer.emptyPrinter(obj)


def tree(obj: Any, inline: bool = False) -> Row:
    """Return the formula of an object as a tree; its plain string where its TeX cannot be read."""
    try:
        return _tree(tex(obj, inline))
    except MarkupError:
        return _tree(CavityPrinter().emptyPrinter(obj))


def text(obj: Any) -> str:
    """Return one line of Unicode text for an expression, an equation, a condition or a relation.

    Parameters
    ----------
    obj : object
        Anything; what is not mathematics is printed as its string.
    """
    return obj if isinstance(obj, str) else to_text(tree(obj))


def mathml(obj: Any) -> str:
    """Return an expression, an equation or a condition in MathML."""
    return element(tree(obj))
