"""Expression nodes of the method: disorder averages, responses between sites, sources, cavity symbols."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol, Tuple, sympify

from symcavity.model.quantities import DATUM, Family, SiteQuantity, latex_name


class Source(Family):
    """The infinitesimal sources ``I_i`` or ``I^mu`` of one equation of each site of a side."""

    _word = "source"

    def __new__(cls, side: str, label: str = "", components: Any = ()) -> Source:
        """Return the expression, read and checked."""
        return cls._make(f"I_{label}" if label else "I", Tuple(*components), side)

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """The side that the source acts on."""
        return (self._data[2],)


class DisorderAverage(Expr):
    """The average of an expression over the fresh couplings."""

    is_commutative = True
    is_real = True

    def __new__(cls, body: Any) -> Expr:
        """Return the expression, read and checked."""
        return Expr.__new__(cls, sympify(body))

    def _sympystr(self, printer: Any) -> str:
        return f"⟨{printer.doprint(self.args[0])}⟩"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\left\\langle {printer.doprint(self.args[0])} \\right\\rangle"
        return f"{tex}^{{{exp}}}" if exp else tex


class ResponseElement(Expr):
    """The response d(message at one site)/d(source at another) of the unperturbed system."""

    is_commutative = True
    is_real = True

    def __new__(cls, message: Any, source: Any) -> Expr:
        """Return the expression, read and checked."""
        message = sympify(message)
        return Expr.__new__(cls, message, source)

    @property
    def free_symbols(self) -> set[Any]:
        """The free indices of both sites."""
        return self.args[0].free_symbols | self.args[1].free_symbols

    def _sympystr(self, printer: Any) -> str:
        return f"d({printer.doprint(self.args[0])})/d{printer.doprint(self.args[1])}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        top, bottom = (printer.doprint(arg) for arg in self.args)
        if not isinstance(self.args[0], SiteQuantity):
            top = f"({top})"
        tex = f"\\frac{{d {top}}}{{d {bottom}}}"
        return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex


class Perturbation(Expr):
    """The small change of a quantity when a site is inserted."""

    is_commutative = True
    is_real = True

    def __new__(cls, body: Any) -> Expr:
        """Return the expression, read and checked."""
        return Expr.__new__(cls, sympify(body))

    @property
    def free_symbols(self) -> set[Any]:
        """The free indices of the body."""
        return self.args[0].free_symbols

    def _sympystr(self, printer: Any) -> str:
        return f"δ({printer.doprint(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = printer.doprint(self.args[0])
        tex = f"\\delta {body}" if isinstance(self.args[0], SiteQuantity) else f"\\delta\\left({body}\\right)"
        return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex


class CavitySymbol(Symbol):
    """A symbol of the inserted site: its cavity field or its self-coupling, with index 0 on its side."""

    __slots__ = ("side", "tag")
    side: str
    tag: str

    def __new__(cls, base: str, side: str, tag: str = "", **assumptions: Any) -> CavitySymbol:
        """Return the expression, read and checked."""
        zeros = "00" if base == "F" else "0"
        name = f"{base}{'^' if side == DATUM else '_'}{zeros}{'_' + tag if tag else ''}"
        assumptions.setdefault("real", True)
        symbol = super().__new__(cls, name, **assumptions)
        symbol.side, symbol.tag = side, tag
        return symbol

    def __getnewargs_ex__(self) -> Any:
        return (self.name.split("^")[0].split("_")[0], self.side, self.tag), super().__getnewargs_ex__()[1]

    def _latex(self, printer: Any, exp: str | None = None) -> str:  # noqa: ARG002 - SymPy's signature
        base = "\\eta" if self.name.startswith("eta") else self.name[0]
        zeros = "00" if base == "F" else "0"
        mark = f"{base}^{{{zeros}}}" if self.side == DATUM else f"{base}_{{{zeros}}}"
        if self.tag:
            mark = f"{base}_{{({self.tag})}}^{{{zeros}}}" if self.side == DATUM else f"{base}_{{{zeros},({self.tag})}}"
        return f"\\left({mark}\\right)^{{{exp}}}" if exp else mark

    @property
    def precedence(self) -> int:
        """Take brackets under a power, where an upper index already stands."""
        from sympy.printing.precedence import PRECEDENCE

        return PRECEDENCE["Pow"] - 1 if self.side == DATUM else PRECEDENCE["Atom"]


class ComponentSymbol(CavitySymbol):
    """A component of a vector or matrix of the inserted site: ``T_a``, ``F_ab``."""

    __slots__ = ("base", "indices")
    base: str
    indices: tuple[Any, ...]

    def __new__(cls, base: str, side: str, indices: Any, tag: str = "", **assumptions: Any) -> ComponentSymbol:
        """Return the symbol with its component indices."""
        marks = ",".join(str(k) for k in indices)
        symbol = super().__new__(cls, base, side, f"{tag}_{marks}" if tag else marks, **assumptions)
        symbol.base, symbol.indices = base, tuple(sympify(k) for k in indices)
        return symbol

    def __getnewargs_ex__(self) -> Any:
        tag = self.tag.rpartition("_")[0]
        sign = {"positive": True} if self.is_positive else {"negative": True} if self.is_negative else {}
        return (self.base, self.side, self.indices, tag), sign

    def at(self, *indices: Any) -> ComponentSymbol:
        """The same quantity at other components."""
        tag = self.tag.rpartition("_")[0]
        sign = {"positive": True} if self.is_positive else {"negative": True} if self.is_negative else {}
        return ComponentSymbol(self.base, self.side, indices, tag, **sign)

    def _xreplace(self, rule: Any) -> tuple[Any, bool]:
        if self in rule:
            return rule[self], True
        moved = tuple(rule.get(k, k) for k in self.indices)
        return (self.at(*moved), True) if moved != self.indices else (self, False)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbol itself and its component indices."""
        return {self}.union(*(k.free_symbols for k in self.indices))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        zeros = "00" if self.base == "F" else "0"
        below = " ".join(printer.doprint(k) for k in self.indices)
        mark = f"{self.base}^{{{zeros}}}_{{{below}}}" if self.side == DATUM else f"{self.base}_{{{zeros},{below}}}"
        return f"\\left({mark}\\right)^{{{exp}}}" if exp else mark


class OrderParameter(Symbol):
    """The symbol of an order parameter: ``q_...`` for a second moment, ``S_...`` for a response."""

    __slots__ = ()

    def __new__(cls, name: str, **assumptions: Any) -> OrderParameter:
        """Return the expression, read and checked."""
        assumptions.setdefault("real", True)
        return super().__new__(cls, name, **assumptions)

    def _latex(self, printer: Any, exp: str | None = None) -> str:  # noqa: ARG002 - SymPy's signature
        base, _, label = self.name.partition("_")
        inner = " ".join(latex_name(part) for part in label.split("_") if part)
        if label == "hat":
            base, inner = f"\\hat{{{latex_name(base)}}}", ""
            return f"{base}^{{{exp}}}" if exp else base
        if base == "S":
            tex = f"S^{{{inner}}}"
            return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex
        tex = f"{latex_name(base)}_{{{inner}}}" if inner else latex_name(base)
        return f"{tex}^{{{exp}}}" if exp else tex

    @property
    def precedence(self) -> int:
        """Take brackets under a power where an upper index already stands."""
        from sympy.printing.precedence import PRECEDENCE

        return PRECEDENCE["Pow"] - 1 if self.name.startswith("S_") else PRECEDENCE["Atom"]
