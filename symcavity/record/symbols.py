"""Expression nodes of the method: disorder averages, responses between sites, sources, cavity symbols."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part, raised, replaced_by
from symcavity.model.kinds import DATUM, FEATURE, Kind
from symcavity.model.names import latex_name
from symcavity.model.quantities import Family, SiteQuantity
from symcavity.model.times import Time

MANY = 3  # from so many fields of one site on, what belongs to them is numbered from one


def source_label(place: int, count: int) -> str:
    """What tells the source of a field from those of the others that a site hears: the first of two has no number."""
    return str(place + 1) if place or count >= MANY else ""


class Source(Family):
    """The infinitesimal sources ``I_i`` or ``I^mu`` of one equation of each site of a kind."""

    _word = "source"

    def __new__(cls, kind: Kind, label: str = "", components: Any = (), over: Time | None = None) -> Source:
        """Return the expression, read and checked."""
        moving = () if over is None else (over,)
        return cls._make(f"I_{label}" if label else "I", Tuple(*components), kind, *moving)


class DisorderAverage(Node):
    """The average of an expression over the fresh couplings."""

    def _sympystr(self, printer: Any) -> str:
        return f"⟨{printer.doprint(self.args[0])}⟩"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\left\\langle {printer.doprint(self.args[0])} \\right\\rangle"
        return f"{tex}^{{{exp}}}" if exp else tex


class ExampleAverage(Node):
    """The average of an expression over all couplings that hold one index: over one example, at fixed others."""

    def _sympystr(self, printer: Any) -> str:
        return f"⟨{printer.doprint(self.args[0])}⟩_{printer.doprint(self.args[1])}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, index = (printer.doprint(arg) for arg in self.args)
        tex = f"\\left\\langle {body} \\right\\rangle_{{x^{{{index}}}}}"
        return raised(tex, exp)


class ResponseElement(Node):
    """The response d(message at one site)/d(source at another) of the unperturbed system."""

    def _sympystr(self, printer: Any) -> str:
        return f"d({printer.doprint(self.args[0])})/d{printer.doprint(self.args[1])}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        top, bottom = (printer.doprint(arg) for arg in self.args)
        if not isinstance(self.args[0], SiteQuantity):
            top = f"({top})"
        tex = f"\\frac{{d{top}}}{{d{bottom}}}"
        return raised(tex, exp)


class Slope(Node):
    """The derivative of a function of order parameters, by its name, in one of them."""

    def _sympystr(self, printer: Any) -> str:
        return f"d{printer.doprint(self.args[0])}/d{printer.doprint(self.args[1])}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        top, bottom = (printer.doprint(arg) for arg in self.args)
        return raised(f"\\frac{{\\partial {top}}}{{\\partial {bottom}}}", exp)


class Perturbation(Node):
    """The small change of a quantity when a site is inserted."""

    def _sympystr(self, printer: Any) -> str:
        return f"δ({printer.doprint(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = printer.doprint(self.args[0])
        tex = f"\\delta {body}" if isinstance(self.args[0], SiteQuantity) else f"\\delta\\left({body}\\right)"
        return raised(tex, exp)


class Emission(Node):
    """What the inserted site emits, held together so that it can be told apart in a product."""

    body: Expr = part(0, "The emission, in the states and quenched parameters of the site.")

    def _sympystr(self, printer: Any) -> str:
        return printer.doprint(self.args[0])

    def _latex(self, printer: Any) -> str:
        return printer.doprint(self.args[0])


class AtStep(Node):
    """A quantity after step ``t + shift`` of message passing; the step may have another letter than ``t``."""

    @property
    def letter(self) -> str:
        """The letter of the step."""
        return str(self.args[2]) if len(self.args) > 2 else "t"

    @property
    def shift(self) -> int:
        """By how many steps it is later than ``t``."""
        return int(self.args[1])

    @property
    def free_symbols(self) -> set[Any]:
        """The free symbols of the quantity."""
        return self.args[0].free_symbols

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[0].is_nonnegative

    def _eval_is_nonpositive(self) -> bool | None:
        return self.args[0].is_nonpositive

    def _step(self) -> str:
        return f"{self.letter}{self.shift:+d}" if self.shift else self.letter

    def _sympystr(self, printer: Any) -> str:
        return f"{printer.doprint(self.args[0])}({self._step()})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = printer.doprint(self.args[0])
        head, mark, rest = body.rpartition("^{")
        ends = [k for k, c in enumerate(rest) if c == "}" and rest[:k].count("{") == rest[:k].count("}")]
        if mark and head.count("{") == head.count("}"):  # beside the upper index
            return raised(f"{head}^{{{rest[: ends[0]]},{self._step()}{rest[ends[0] :]}", exp)
        body = f"\\left({body}\\right)" if "^" in body else body
        return raised(f"{body}^{{{self._step()}}}", exp)


class LawFunction(Node):
    """A state of a site as a function of another one, ``lambda(h)``, or a derivative of it.

    Parameters
    ----------
    name : Symbol
        That of the state.
    argument : SiteQuantity or Tuple
        Several, of a function of several states.
    order : int
        How often it is differentiated.
    """

    def _listed(self, printer: Any) -> str:
        argument = self.args[1]
        return ", ".join(map(printer.doprint, argument if isinstance(argument, Tuple) else [argument]))

    def _sympystr(self, printer: Any) -> str:
        name, _, order = self.args
        return f"{name}{chr(39) * int(order)}({self._listed(printer)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name, _, order = self.args
        primes = "^{" + " ".join(["\\prime"] * int(order)) + "}" if order else ""
        name = printer.doprint(name) + (f"^{{{exp}}}" if exp and not order else "")
        tex = f"{name}{primes}\\left({self._listed(printer)}\\right)"
        return raised(tex, exp) if order else tex


class LabelSlope(Node):
    """The derivative of the logarithm of the probability of a label by the field that it is drawn on."""

    def _sympystr(self, printer: Any) -> str:
        label, field = map(printer.doprint, self.args)
        return f"d log P({label} | {field})/d {field}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        label, field = map(printer.doprint, self.args)
        return raised(f"\\frac{{\\partial \\log P\\left({label} \\mid {field}\\right)}}{{\\partial {field}}}", exp)


def opened(expr: Any) -> Any:
    """An expression with the emissions in it written out."""
    return expr.xreplace({node: node.body for node in expr.atoms(Emission)})


class CavitySymbol(Symbol):
    """A symbol of the inserted site: its cavity field or its self-coupling, with index 0."""

    __slots__ = ("kind", "tag")
    kind: Kind
    tag: str

    def __new__(cls, base: str, kind: Kind, tag: str = "", **assumptions: Any) -> CavitySymbol:
        """Return the expression, read and checked."""
        zeros = "00" if base == "F" else "0"
        own = "" if kind in (FEATURE, DATUM) else str(kind.index)  # features and data are told apart by the place
        name = f"{base}{'^' if kind.upper else '_'}{own}{zeros}{'_' + tag if tag else ''}"
        assumptions.setdefault("real", True)
        symbol = Symbol.__xnew__(cls, name, **assumptions)  # not the remembered one, of a kind with another size
        symbol.kind, symbol.tag = kind, tag
        return symbol

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), str(self.kind.size), self.kind.key)

    def __getnewargs_ex__(self) -> Any:
        return (self.name.split("^")[0].split("_")[0], self.kind, self.tag), super().__getnewargs_ex__()[1]

    def signed(self, sign: int) -> CavitySymbol:
        """The same symbol, with the assumption of a sign (none for 0)."""
        if not sign:
            return self
        base, where, tag = self.__getnewargs_ex__()[0]
        return type(self)(base, where, tag, **({"positive": True} if sign > 0 else {"negative": True}))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(self._mark(latex_name(self.__getnewargs_ex__()[0][0]), printer), exp)

    def _mark(self, base: str, printer: Any, *below: str) -> str:
        """The letter, the zeros of the inserted site, its kind where that does not show, and what tells it apart."""
        zeros = "00" if self.name.startswith("F") else "0"
        own = "" if self.kind in (FEATURE, DATUM) else f"({printer.doprint(self.kind.index)})"
        number = self.tag.rpartition("_")[0] if below else self.tag  # of several fields, before the indices below
        lower = ",".join(filter(None, ("" if self.kind.upper else zeros, number, " ".join(below))))
        upper = own + (zeros if self.kind.upper else "")
        return base + (f"_{{{lower}}}" if lower else "") + (f"^{{{upper}}}" if upper else "")


class ComponentSymbol(CavitySymbol):
    """A component of a vector or matrix of the inserted site: ``T_a``, ``F_ab``."""

    __slots__ = ("base", "indices")
    base: str
    indices: tuple[Any, ...]

    def __new__(cls, base: str, kind: Kind, indices: Any, tag: str = "", **assumptions: Any) -> ComponentSymbol:
        """Return the symbol with its component indices."""
        marks = ",".join(str(k) for k in indices)
        symbol = super().__new__(cls, base, kind, f"{tag}_{marks}" if tag else marks, **assumptions)
        symbol.base, symbol.indices = base, tuple(as_sympy(k) for k in indices)
        return symbol

    def __getnewargs_ex__(self) -> Any:
        tag = self.tag.rpartition("_")[0]
        sign = {"positive": True} if self.is_positive else {"negative": True} if self.is_negative else {}
        return (self.base, self.kind, self.indices, tag), sign

    def signed(self, sign: int) -> ComponentSymbol:
        """The same symbol, with the assumption of a sign (none for 0)."""
        if not sign:
            return self
        args, _ = self.__getnewargs_ex__()
        assumption: Any = {"positive": True} if sign > 0 else {"negative": True}
        return ComponentSymbol(*args, **assumption)

    def whole(self) -> str:
        """TeX of the vector or matrix that this is a component of."""
        zeros, number = "00" if self.base == "F" else "0", self.tag.rpartition("_")[0]
        if self.kind.upper:
            return f"\\bm{{{self.base}}}^{{{zeros}}}{f'_{{{number}}}' if number else ''}"
        return f"\\bm{{{self.base}}}_{{{zeros}{f',{number}' if number else ''}}}"

    def at(self, *indices: Any) -> ComponentSymbol:
        """The same quantity at other components."""
        tag = self.tag.rpartition("_")[0]
        sign = {"positive": True} if self.is_positive else {"negative": True} if self.is_negative else {}
        return ComponentSymbol(self.base, self.kind, indices, tag, **sign)

    def _xreplace(self, rule: Any) -> tuple[Any, bool]:
        if self in rule:
            return rule[self], True
        moved = tuple(replaced_by(rule).get(k, k) for k in self.indices)
        return (self.at(*moved), True) if moved != self.indices else (self, False)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbol itself and its component indices."""
        return {self}.union(*(k.free_symbols for k in self.indices))

    @property
    def moves(self) -> bool:
        """Whether its indices are times."""
        return any(k.atoms(Time) for k in self.indices)

    def _sympystr(self, printer: Any) -> str:
        if not self.moves:
            return self.name
        head = self.name.removesuffix("_" + ",".join(map(str, self.indices)))
        return f"{head}({', '.join(map(printer.doprint, self.indices))})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        indices = [printer.doprint(k) for k in self.indices]
        if not self.moves:
            return raised(self._mark(latex_name(self.base), printer, *indices), exp)
        head = CavitySymbol(self.base, self.kind, self.tag.rpartition("_")[0])
        return raised(f"{printer.doprint(head)}({','.join(indices)})", exp)
