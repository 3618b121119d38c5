"""The printer of mathematics, in the notation of the source: it builds trees, from which all formats are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Add, Basic, Expr, Function, Integer, Integral, Mul, Piecewise, Pow, Rational, S, Sum
from sympy.printing.precedence import PRECEDENCE, precedence_traditional

from symcavity.algebra.flow import integrand
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.indexed import Unequal
from symcavity.algebra.memory import Memory
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.quantities import Family
from symcavity.record.symbols import AtStep, ResponseElement
from symcavity.writing.conditions import ONE, ConditionPrinter
from symcavity.writing.lines import width
from symcavity.writing.mathml import element
from symcavity.writing.nodes import (
    Atom,
    FormulaNode,
    Frac,
    MarkupError,
    Radical,
    Row,
    Script,
    atom,
    beside,
    has_fraction,
    in_brackets,
    joined,
    scripted,
    to_tex,
    words,
)
from symcavity.writing.ordering import (
    factor_key,
    gather_roots,
    is_negative,
    is_turned,
    light_terms,
    of_either_sign,
    plain_sum,
    term_key,
)
from symcavity.writing.unicode import to_text

_DATUM_INDICES = frozenset(["mu", "nu", "rho", "sigma", "tau", "xi", "chi"])
_LONG = 24.0
_SHORT = 1.6 * _LONG  # a fraction within another takes a slash up to here

_PRINTED = Memory(20000)
"""What was printed, for all writers and all formats: by the expression, and where it stood."""


class CavityPrinter(ConditionPrinter):
    """Formulas in the paper's notation: upper datum indices, lower feature indices, ``[x]_+``, averages."""

    def __init__(self, inline: bool = False) -> None:
        super().__init__()
        self._inline, self._nested = int(inline), 0

    def row(self, expr: Any, **power: str) -> Row:
        """Print; in the argument of a function, and in a derivative, short fractions take a slash."""
        key = (expr, self._inline > 0, self._nested > 0) if isinstance(expr, Basic) and not power else None
        if (known := _PRINTED.get(key)) is not None:
            return known
        within = isinstance(expr, Function | ResponseElement) and not isinstance(expr, Piecewise)
        self._nested += within
        try:
            out = super().row(expr, **power)
        finally:
            self._nested -= within
        if key is not None:
            _PRINTED[key] = out
        return out

    def _print_AtStep(self, expr: AtStep, exp: str | None = None) -> Row:
        body, shift = self.row(expr.args[0]), expr.shift
        step = beside(expr.letter, *(["+" if shift > 0 else "-", str(abs(shift))] if shift else []))
        for place, item in reversed([*enumerate(body.items)]):
            if isinstance(item, Script) and item.sup is not None:  # beside the upper index
                dated = Script(item.base, item.sub, beside(item.sup, ",", step))
                body = Row((*body.items[:place], dated, *body.items[place + 1 :]), body.spaced)
                break
        else:
            body = scripted(body, sup=step)
        return self._power(in_brackets(body), exp) if exp else body

    # -- powers, products, sums -----------------------------------------------------------------

    def _power_base(self, base: Expr) -> Row:
        body = self.row(base)
        low = not base.is_Symbol and precedence_traditional(base) < PRECEDENCE["Atom"]
        last = body.items[-1] if body.items else None
        crowded = len(body.items) != 1 or isinstance(last, Frac) or (isinstance(last, Script) and last.sup is not None)
        return beside(in_brackets(body)) if low or crowded else body

    def _in_script(self, expr: Any) -> Row:
        self._inline += 1
        try:
            return self.row(expr)
        finally:
            self._inline -= 1

    def _print_Pow(self, expr: Pow) -> Row:
        base, power = expr.args
        if power.is_Integer and power.is_even and is_turned(base):
            base = -base
            expr = Pow(base, power, evaluate=False)
        if power is S.Half:
            return beside(Radical(self.row(base)))
        if power.is_Rational and power.is_negative:
            return self._product((expr,))
        if power.is_Rational and power.q != 1:
            return scripted(self._power_base(base), sup=beside(str(power.p), "/", str(power.q)))
        exponent = self._in_script(power)
        if base.is_Function:
            try:
                return self.row(base, exp=self._marked(exponent))
            except (TypeError, MarkupError):  # a function that does not take its power inside
                pass
        return scripted(self._power_base(base), sup=exponent)

    def _print_Mul(self, expr: Mul) -> Row:
        return self._product(expr.args)

    def _product(self, factors: Iterable[Expr]) -> Row:
        number, above, below = S.One, [], []
        factors = tuple(factors)
        divided = any(factor.as_base_exp()[1].is_negative for factor in factors)
        for factor in factors:
            base, power = factor.as_base_exp()
            signs = set(map(is_negative, base.args)) if isinstance(base, Add) else {False}
            mixed = len(signs) > 1 and power == 1 and number.is_negative and not any(t.is_Rational for t in base.args)
            may = power.is_even or number < 0 or signs == {True} or power.is_negative
            turned = may and is_turned(base)
            if power.is_negative and power.is_odd and of_either_sign(base):  # 1/(alpha - 1), not -1/(1 - alpha)
                turned = number.is_negative
            if power.is_Integer and ((mixed and divided) or turned):
                number, factor = (-number if power.is_odd else number), Pow(-base, power)
            if factor.is_Rational:
                number *= factor
            elif isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp.is_negative:
                below.append(
                    factor.base if factor.exp == -1 else Pow(factor.base, -factor.exp, evaluate=False)
                )
            else:
                above.append(factor)
        quotient = self._quotient(above, below, abs(number))
        return beside("-", " ", quotient) if number.is_negative else quotient

    def _quotient(self, above: list[Expr], below: list[Expr], number: Rational) -> Row:
        number, above, below = gather_roots(number, above, below)
        above, below = sorted(above, key=factor_key), sorted(below, key=factor_key)
        tops: list[Expr] = [Integer(number.p)] if number.p != 1 else []
        bottoms: list[Expr] = [Integer(number.q)] if number.q != 1 else []
        bottoms += below
        if not bottoms:
            return self._factors(tops + above)
        behind = [factor for factor in above if self._stands_behind(factor)]
        if len(above) == 1 and isinstance(above[0], Add) and not tops and behind:
            behind = behind if width(self.row(above[0])) > 2 * _LONG else []
        ahead = tops + [factor for factor in above if factor not in behind]
        self._nested += 1
        top = self._factors(ahead, alone=True)
        high = [factor for factor in ahead if self._nested == 1 and self._is_tall(factor)]
        if high:  # no fraction stands above the bar of another
            ahead, behind = [f for f in ahead if f not in high], sorted([*behind, *high], key=factor_key)
            top = self._factors(ahead, alone=True)
        bottom = self._factors(bottoms, alone=True)
        self._nested -= 1
        out: FormulaNode = Frac(top, bottom)
        if self._inline or (self._nested and width(top) + width(bottom) < _SHORT):
            heavy = len(bottoms) > 1 or isinstance(bottoms[0], Add | Mul)
            total = len(ahead) == 1 and isinstance(ahead[0], Add)
            out = beside(*(in_brackets(top) if total else top, " ", "/", " ", in_brackets(bottom) if heavy else bottom))
        return beside(out, " ", self._factors(behind)) if behind else beside(out)

    def _stands_behind(self, factor: Expr) -> bool:
        core = factor.base if isinstance(factor, Pow) else factor
        name = type(core).__name__
        if name in ("Sum", "Integral", "Piecewise", "Product"):
            return True
        if isinstance(core, Add | Average) or name in ("GaussianAverage", "DisorderAverage"):
            return width(self.row(factor)) > _LONG
        return False

    def _is_tall(self, factor: Expr) -> bool:
        """Whether a factor holds a fraction, a sum over sites or an integral, which would stand small above a bar."""
        if self._inline:
            return False
        integral = type(factor) in (GaussianAverage, ImplicitAverage)
        return integral or factor.has(Sum) or has_fraction(self.row(factor))

    def _factors(self, factors: list[Expr], alone: bool = False) -> Row:
        if not factors:
            return beside("1")
        if len(factors) == 1 and alone:
            return self.row(factors[0])
        out = before = Row(())
        for place, factor in enumerate(factors):
            body = self.row(factor)
            open_ended = type(factor).__name__ in ("Sum", "Integral", "Product", "Limit", "Derivative")
            loose = isinstance(factor, Add) or getattr(factor, "is_Relational", False) or _is_subtracted(body)
            if loose or (open_ended and place < len(factors) - 1):
                body = beside(in_brackets(body))
            between: tuple[str, ...] = ()
            if _first(body).kind == "num" and _ends_with_number(before):
                between = (" ", "\\cdot")
            elif place and (_is_word(body) or _is_word(before)):  # c noise is not a word of six letters
                between = (" ", "\\,")
            out, before = beside(out, *between, *(" " * bool(place)), body), body
        return out

    def _print_MatAdd(self, expr: Any) -> Row:
        rows = map(self.row, expr.args)
        return self._total(sorted(rows, key=lambda row: (_is_subtracted(row), len(to_tex(row, close=True)))))

    def _print_Add(self, expr: Add, order: Any = None) -> Row:
        light = light_terms(expr)
        terms = [plain_sum(t) for t in self._as_ordered_terms(expr, order=order)]
        terms.sort(key=lambda t: (term_key(t), t not in light))
        if is_negative(terms[0]):  # a number leads, or else the first that is not subtracted
            last = 1 if terms[0].is_number else term_key(terms[0])
            ahead = [t for t in terms if not is_negative(t) and term_key(t) <= last]
            for lead in sorted(ahead, key=lambda t: not t.is_number)[:1]:
                terms.insert(0, terms.pop(terms.index(lead)))
        rows = []
        for term in terms:
            outside = isinstance(term, Sum) and is_negative(term)
            row = beside("-", self.row(Sum(-term.function, *term.limits))) if outside else self.row(term)
            loose = self._needs_add_brackets(term) or isinstance(term, Add)
            rows.append(beside(in_brackets(row)) if loose else row)
        return self._total(rows)

    @staticmethod
    def _total(rows: Iterable[Row]) -> Row:
        out: Row = Row(())
        for row in rows:
            if not out.items:
                out = row
            elif _is_subtracted(row):
                out = beside(out, " ", "-", " ", Row(row.items[1:], row.spaced[1:]))
            else:
                out = beside(out, " ", "+", " ", row)
        return out

    # -- sums and integrals ---------------------------------------------------------------------
    def _print_Integral(self, expr: Any) -> str:
        return super()._print_Integral(expr).replace("\\limits", "")

    def _print_Derivative(self, expr: Any) -> str:
        return super()._print_Derivative(expr).replace("{d ", "{d")

    def _print_Sum(self, expr: Any) -> Row:
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
        signs = [scripted(atom("\\sum"), beside(self.row(k), " ", "\\ne", " ", self.row(z))) for k, z in apart.items()]
        for bounds, dummies in groups.items():
            names = joined((self.row(d) for d in sorted(dummies, key=str)), ",")
            low, high = map(self.row, bounds[:2]) if len(bounds) >= 2 else (None, None)
            signs.append(scripted(atom("\\sum"), beside(names, "=", low) if low else names, high))
        ahead = joined(signs, " ")
        if integrals:
            return beside(ahead, " ", self.row(Integral(body, *integrals)))
        inner = self.row(body)
        loose = isinstance(body, Add) or _is_subtracted(inner)
        return beside(ahead, " ", in_brackets(inner) if loose else inner)

    # -- functions ------------------------------------------------------------------------------

    def _print_Identity(self, _expr: Any) -> Row:
        return beside(ONE)

    def _print_Max(self, expr: Any, exp: str | None = None) -> Row:
        rest = [arg for arg in expr.args if arg != 0]
        if len(rest) == 1 and len(expr.args) == 2:
            return self._power(scripted(in_brackets(self.row(rest[0]), "[", "]"), beside("+")), exp)
        return self._applied("\\max", expr.args, exp)

    def _print_Min(self, expr: Any, exp: str | None = None) -> Row:
        return self._applied("\\min", expr.args, exp)

    def _print_Heaviside(self, expr: Any, exp: str | None = None) -> Row:
        return self._applied("\\Theta", expr.args[:1], exp)

    def _applied(self, name: str, args: Iterable[Expr], exp: str | None) -> Row:
        return beside(self._power(atom(name), exp), in_brackets(joined(map(self.row, args), ",", " ")))

    def _print_Abs(self, expr: Any, exp: str | None = None) -> Row:
        body = self.row(expr.args[0])
        if _is_subtracted(body) or is_turned(expr.args[0]):  # one of both signs reads better
            body = self.row(-expr.args[0])
        return self._power(in_brackets(body, "|", "|"), exp)

    def _print_ExpBase(self, expr: Any, exp: str | None = None) -> Row:
        body = self._in_script(expr.args[0])
        if width(body) > _LONG:
            return self._applied("\\exp", expr.args, exp)
        out = scripted(atom("e"), sup=body)
        return self._power(in_brackets(out), exp) if exp else out

    def _print_KroneckerDelta(self, expr: Any, exp: str | None = None) -> Row:
        upper = any(getattr(index, "name", "").rstrip("0123456789'_") in _DATUM_INDICES for index in expr.args)
        indices = sorted(expr.args, key=lambda index: bool(index.is_number))  # a label, then the value that it may have
        between = () if all(index.is_Symbol for index in indices) else (",",)
        marks = joined(map(self.row, indices), *between, " ")
        out = scripted(atom("\\delta"), *((None, marks) if upper else (marks, None)))
        return self._power(in_brackets(out), exp) if exp else out


def _without_unequal(body: Expr, bound: set[Any]) -> tuple[Expr, dict[Any, Any]]:
    """The body of a sum without the factors that leave one site out, and what each index differs from."""
    apart = {f.args[0]: f.args[1] for f in Mul.make_args(body) if isinstance(f, Unequal) and f.args[0] in bound}
    kept = [f for f in Mul.make_args(body) if not (isinstance(f, Unequal) and f.args[0] in apart)]
    return (Mul(*kept), apart) if apart else (body, {})


def _first(row: Row) -> Atom:
    """The leaf with which a formula begins."""
    node: FormulaNode = row.items[0] if row.items else row
    while isinstance(node, Script):
        node = node.base
    return node if isinstance(node, Atom) else Atom("", "", "")


def _ends_with_number(row: Row) -> bool:
    """Whether a formula ends with a number."""
    last = row.items[-1] if row.items else None
    return isinstance(last, Atom) and last.kind == "num"


def _is_subtracted(row: Row) -> bool:
    """Whether a formula begins with a minus sign."""
    return _first(row).tex == "-"


def _is_word(row: Row) -> bool:
    """Whether a factor begins with a name of several letters."""
    return _first(row).tex.startswith(("\\text{", "\\mathrm{"))




def tree(obj: Any, inline: bool = False) -> Row:
    """Return the formula of an expression, an equation, a condition or a relation as a tree.

    Parameters
    ----------
    obj : object
        Anything; a tree stays as it is, and what is not mathematics is printed as its string.
    inline : bool
        Write fractions with a slash, for running text.
    """
    printer = CavityPrinter(inline=inline)
    if isinstance(obj, Row):
        return obj
    if isinstance(obj, str):
        return beside(words(obj))
    if isinstance(obj, Equation):
        both = (obj.lhs, obj.rhs)
        sides = [-Sum(-e.function, *e.limits) if isinstance(e, Sum) and is_negative(e) else e for e in both]
        return joined(map(printer.row, sides), " ", "=", " ")
    if isinstance(obj, tuple | list):
        return joined((tree(part, inline) for part in obj), ",", "\\;", " ")
    known = isinstance(obj, int | float | Basic | Family) or hasattr(obj, "_latex")
    return printer.row(obj) if known else printer.emptyPrinter(obj)


def tex(obj: Any, inline: bool = False) -> str:
    """Return the LaTeX of an expression, an equation, a condition or a relation; fractions with a slash if inline."""
    return to_tex(tree(obj, inline), close=True)


def text(obj: Any) -> str:
    """Return one line of Unicode text for an expression, an equation, a condition or a relation."""
    return obj if isinstance(obj, str) else to_text(tree(obj))


def mathml(obj: Any) -> str:
    """Return an expression, an equation or a condition in MathML."""
    return element(tree(obj))
