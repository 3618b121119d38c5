"""One operation as a line of code, in which its parts stand by name; and its derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    DiracDelta,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    cosh,
    exp,
    log,
    sign,
    sinh,
)
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne, Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import ITE, And, BooleanFalse, BooleanTrue, Not, Or

from symcavity.algebra.between import between, log_between
from symcavity.algebra.overflow import largest, log_sum, logistic
from symcavity.algebra.phi import phi
from symcavity.algebra.tails import log_tail, overhang
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.groups import Scope
from symcavity.evaluate.averages.layers import remainder
from symcavity.evaluate.averages.peaks import Peak

MOST_JOINED = 64  # parts of one line without brackets: Python's compiler goes down one level for each
COMPARED = {Lt: "<", Le: "<=", Gt: ">", Ge: ">=", Eq: "==", Ne: "!="}


class LineWriter:
    """Writes one operation in the innermost scope of a path.

    Parameters
    ----------
    program : Program
        Gives the names of the parts, and writes the lines that compute them before.
    path : sequence of Scope
        The scopes from the root to the one in which the line stands.
    """

    def __init__(self, program: Any, path: Sequence[Scope]) -> None:
        self.program, self.path, self.loops = program, path, program.loops

    def of(self, part: Any) -> str:
        """The name of the value of a part."""
        name: str = self.program.seen(part, self.path)
        return name

    def value(self, expr: Any) -> str:
        """The right-hand side of one line."""
        of = self.of
        if isinstance(expr, Add):
            return joined_by(" + ", list(map(of, self._gathered(expr))))
        if isinstance(expr, Mul):
            if expr.args[0] is S.NegativeOne:
                return "-" + of(Mul(*expr.args[1:]))
            return self._product(self._gathered(expr))
        if isinstance(expr, Pow):
            return self._power(expr)
        if isinstance(expr, Max | Min):
            return _nested("top" if isinstance(expr, Max) else "bottom", list(map(of, expr.args)))
        if isinstance(expr, Piecewise):
            return self._cases([(of(c), self._branch(v) if self.loops else of(v)) for v, c in expr.args])
        if isinstance(expr, Relational):
            return f"({of(expr.lhs)} {COMPARED[type(expr)]} {of(expr.rhs)})"
        if isinstance(expr, And | Or):
            words = (" and ", " or ") if self.loops else (" & ", " | ")
            word = words[isinstance(expr, Or)]
            return joined_by(word, [f"({of(a)})" for a in expr.args])
        if isinstance(expr, ITE):  # a condition by cases
            test, one, other = expr.args
            return of(Or(And(test, one), And(Not(test), other)))
        if isinstance(expr, Not):
            return f"not {of(expr.args[0])}" if self.loops else f"~{of(expr.args[0])}"
        if isinstance(expr, BooleanTrue | BooleanFalse | ExprCondPair):
            return str(bool(expr))
        if isinstance(expr, log) and isinstance(share := expr.args[0], phi) and share.args[0] == 0:
            return f"log_phi({of(share.args[1])})"
        if isinstance(expr, log_tail):
            return f"log_phi({of(expr.args[0])})"
        if isinstance(expr, phi):
            if not expr.args[0].is_Integer:
                raise UnsupportedLaw(f"{expr} cannot be evaluated: its order is a symbol.", "phi of a given integer")
            return f"phi({int(expr.args[0])}, {of(expr.args[1])})"
        if isinstance(expr, between | log_between):
            order = int(expr.args[0]) if isinstance(expr, between) else 0
            return f"between({order}, {', '.join(map(of, expr.args[-2:]))})"
        if isinstance(expr, overhang):
            return f"overhang({int(expr.args[0])}, {of(expr.args[1])})"
        if isinstance(expr, exp | sinh | cosh | largest | logistic | log_sum | remainder):
            return f"{expr.func.__name__}({', '.join(map(of, expr.args))})"
        if isinstance(expr, DiracDelta):
            raise UnsupportedLaw(f"{expr} stands outside of an average.", "averages over jumps, by parts")
        return self._printed(expr)

    def _product(self, args: Sequence[Any]) -> str:
        """A product with one division at most, and quotients of equal powers as powers of quotients."""

        def of(*factors: Any) -> str:
            return self.of(Mul(*factors))

        powers = [(a, *a.as_base_exp()) if a.is_Pow and a.exp.is_Integer else (a, a, S.One) for a in args]
        signed = {n for _, _, n in powers}
        for n in (n for n in (S(2), S(3)) if {n, -n} <= signed):
            quotient = of(*(base if m > 0 else 1 / base for _, base, m in powers if abs(m) == n))
            return joined_by("*", [*(of(a) for a, _, m in powers if abs(m) != n), *[quotient] * n])
        below = [(a, base**-n) for a, base, n in powers if n < 0 and self._is_inner(a)]
        over = [a for a in args if all(a is not b for b, _ in below)]
        text = joined_by("*", list(map(of, over))) or "1"
        return f"{text}/{of(*(b for _, b in below))}" if below else text

    def _gathered(self, expr: Any) -> Sequence[Any]:
        """The parts of a sum or product, those of outer scopes as one part: it is computed there, once."""
        outer = [a for a in expr.args if not self._is_inner(a)]
        if len(outer) < 2 or len(outer) == len(expr.args):
            return expr.args
        return [expr.func(*outer), *(a for a in expr.args if a not in outer)]

    def _is_inner(self, part: Any) -> bool:
        """Whether a part is known in the innermost scope only."""
        inner: bool = self.program.home(part, self.path) is self.path[-1]
        return inner

    def _printed(self, expr: Any) -> str:
        """Any other function, as SymPy's printers write it."""
        if not expr.args:
            name = f"c_{expr}"
            self.program.space[name] = expr
            return name
        marks = [Symbol(self.of(a)) for a in expr.args]
        try:
            text: str = self.program.printer.doprint(expr.func(*marks))
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            text = ""
        if not text or "Not supported" in text:
            raise UnsupportedLaw(
                f"There is no numerical code for {expr.func.__name__}.", "functions that SymPy can print as code"
            )
        return text

    def _power(self, expr: Pow) -> str:
        of, (base, power) = self.of, expr.args
        if power.is_Integer and 2 <= int(power) <= 3:
            return "*".join([of(base)] * int(power))
        if power.is_Integer and power > 3:
            half = of(base ** (power // 2))
            return f"{half}*{half}" + (f"*{of(base)}" if power % 2 else "")
        if power == -1:
            return f"1/{of(base)}"
        if power == S.Half:
            return f"sqrt({of(base)})"
        if power.is_Rational and power < 0:
            return f"1/{of(base**-power)}"
        if power.is_Rational and power.q == 2:
            return f"{of(base ** (power - S.Half))}*{of(base**S.Half)}"
        return f"{of(base)}**{of(power)}"

    def _branch(self, value: Any) -> str:
        """Write a branch as a function of its own: where another one holds it may have no value."""
        home = self.path[-1]
        lines, memo = home.lines, dict(home.memo)
        home.lines = []
        result = self.of(value)
        body, home.lines, home.memo = home.lines, lines, memo
        if not body:
            return result
        name = self.program.name("b")
        home.lines += [f"def {name}():", *("    " + line for line in body), f"    return {result}"]
        return f"{name}()"

    def _cases(self, cases: list[tuple[str, str]]) -> str:
        """The first value whose condition holds; many cases take several lines."""
        text = "nan"
        for count, (condition, value) in enumerate(reversed(cases), start=1):
            if condition == "True":
                text = value
            elif condition != "False":
                text = f"({value} if {condition} else {text})" if self.loops else f"where({condition}, {value}, {text})"
            if count % MOST_JOINED == 0:
                text = self._aside(text)
        return text

    def _aside(self, text: str) -> str:
        """Write a part of a line as a line of its own; of a loop as a function: it may have no value."""
        name, home = self.program.name("b"), self.path[-1]
        home.lines += [f"def {name}():", f"    return {text}"] if self.loops else [f"{name} = {text}"]
        return f"{name}()" if self.loops else name

    def slopes(self, expr: Any, k: int) -> list[str]:
        """The terms of a derivative: for every part that moves, its tangent times the partial derivative."""
        if isinstance(expr, sign | Heaviside | largest | Peak):
            return []
        moved = [(a, self.program.seen_tangent(a, k, self.path)) for a in expr.args if not isinstance(expr, Piecewise)]
        moving = [(n, a, t) for n, (a, t) in enumerate(moved) if t is not None]
        if isinstance(expr, Add):
            return [t for _, _, t in moving]
        if isinstance(expr, Mul):
            return [f"{t}*{self.of(Mul(*expr.args[:n], *expr.args[n + 1 :]))}" for n, _, t in moving]
        if isinstance(expr, Piecewise):
            slopes = [self.program.seen_tangent(v, k, self.path) for v, _ in expr.args]
            if not any(slopes):
                return []
            cases = [(self.of(c), t or "0.0") for (_, c), t in zip(expr.args, slopes, strict=True)]
            return [self._cases(cases)]
        if isinstance(expr, Max | Min):
            here = self.of(expr)
            cases = []
            for n, a, t in moving:
                rest = joined_by(" | ", [f"({self.of(b)} == {here})" for b in expr.args[:n]])
                cases.append((f"({self.of(a)} == {here})" + (f" & ~({rest})" if rest else ""), t))
            return [self._cases([*reversed(cases), ("True", "0.0")])] if moving else []
        if isinstance(expr, Abs):
            return [f"{t}*{self.of(sign(a))}" for _, a, t in moving]
        if isinstance(expr, Pow):
            base, power = expr.args
            out = []
            for n, _, t in moving:
                partial = power * base ** (power - 1) if n == 0 else expr * log(base)
                out.append(f"{t}*{self.of(partial)}")
            return out
        return [f"{t}*{self.of(expr.fdiff(n + 1))}" for n, _, t in moving]


def joined_by(word: str, parts: list[str]) -> str:
    """Parts with a word between them, many of them in brackets."""
    while len(parts) > MOST_JOINED:
        parts = [f"({word.join(parts[k : k + MOST_JOINED])})" for k in range(0, len(parts), MOST_JOINED)]
    return word.join(parts)


def _nested(function: str, args: list[str]) -> str:
    """A function of two arguments applied to many, in halves."""
    half = len(args) // 2
    return f"{function}({_nested(function, args[:half])}, {_nested(function, args[half:])})" if half else args[0]
