"""Order parameters and kernels over time: symbols that are printed by what they name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from sympy import Expr, Symbol

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import raised
from symcavity.model.names import latex_name

_BETWEEN = {"plus": " + ", "minus": " - ", "over": " / "}
_RATES = {"dS", "dq", "dK"}  # at which a response, an overlap, a curvature moves


class OrderParameter(Symbol):
    """The symbol of an order parameter: ``q_...`` for a second moment, ``S_...`` for a response."""

    __slots__ = ()

    def __new__(cls, name: str, **assumptions: Any) -> OrderParameter:
        """Return the expression, read and checked."""
        assumptions.setdefault("real", True)
        return super().__new__(cls, name, **assumptions)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        base, _, label = self.name.partition("_")
        if base in _RATES:
            return raised(f"d{printer.doprint(OrderParameter(self.name[1:]))}", exp)
        if label == "hat" or label.endswith("_hat"):
            head, label = f"\\hat{{{latex_name(base)}}}", label[:-3].rstrip("_")
        else:
            head = latex_name(base)
        inner, _, heard = label.partition("_to_") if base == "S" else (label, "", "")
        tex = _label_tex(inner)
        if base == "S":
            above = f"({tex})" if inner.isdigit() else tex  # a bare number would be a power
            whole = f"S^{{{above}}}" + (f"_{{{latex_name(heard)}}}" if heard else "")
            return raised(whole, exp)
        whole = f"{head}_{{{tex}}}" if tex else head
        return f"{whole}^{{{exp}}}" if exp else whole


def _label_tex(label: str) -> str:
    """The label of an order parameter in a formula: factors with their powers, differences as such."""
    weights, times, squared = label.partition("_times_")
    if times:
        return f"{_label_tex(weights)} \\left({_label_tex(squared)}\\right)^{{2}}"
    out, factors, parts = "", list[str](), [part for part in label.split("_") if part]
    for place, part in enumerate(parts):
        if part in _BETWEEN and 0 < place < len(parts) - 1:
            out, factors = out + _powers(factors) + _BETWEEN[part], []
        elif part.isdigit() and factors:  # a number belongs to the name before it
            factors[-1] = f"{factors[-1][:-1]},{part}}}" if "_{" in factors[-1] else f"{factors[-1]}_{{{part}}}"
        else:
            factors.append(latex_name(part))
    return out + _powers(factors)


def _powers(factors: list[str]) -> str:
    """Factors side by side, equal neighbors as a power; words need a space."""
    runs = [(tex, len(list(same))) for tex, same in groupby(factors)]
    written = [
        tex if n == 1 else f"{{{tex}}}^{{{n}}}" if " " in tex or "_" in tex else f"{tex}^{{{n}}}" for tex, n in runs
    ]
    return (" \\, " if any("\\mathrm" in tex for tex in factors) else " ").join(written)


class MovingParameter(OrderParameter):
    """An order parameter at one time or at two: ``C_x(t, s)`` for a correlation, ``S_x(t, s)`` for a response."""

    __slots__ = ("base", "times")
    base: str
    times: tuple[Expr, ...]

    def __new__(cls, base: str, times: Any) -> MovingParameter:
        """Return the symbol at its times."""
        read = tuple(map(as_sympy, times))
        symbol = Symbol.__xnew__(cls, f"{base}({', '.join(map(str, read))})", real=True)
        symbol.base, symbol.times = base, read
        return symbol

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.times)  # a symbol of another sort may be named as a time is

    def __getnewargs_ex__(self) -> Any:
        return (self.base, self.times), {}

    def at(self, *times: Any) -> MovingParameter:
        """The same order parameter at other times."""
        return MovingParameter(self.base, times)

    def xreplace(self, rule: Any) -> Any:
        """Replace the order parameter, or its times: by itself it would be an atom without parts."""
        return self._xreplace(rule)[0]

    def _xreplace(self, rule: Any) -> tuple[Any, bool]:
        if self in rule:
            return rule[self], True
        moved = tuple(k.xreplace(rule) for k in self.times) if isinstance(rule, Mapping) else self.times
        return (self.at(*moved), True) if moved != self.times else (self, False)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbol itself and its times."""
        return {self}.union(*(k.free_symbols for k in self.times))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        head = printer.doprint(OrderParameter(self.base))
        return raised(f"{head}({','.join(map(printer.doprint, self.times))})", exp)
