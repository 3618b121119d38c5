"""The printer that makes trees of SymPy's expressions, by its own methods, SymPy's, or those of the nodes."""

from __future__ import annotations

import re
from typing import Any

from sympy import Symbol
from sympy.printing.latex import LatexPrinter

from symcavity.writing.nodes import NAMES, Atom, FormulaNode, MarkupError, Row, beside, escape_tex, scripted, words
from symcavity.writing.reader import mark, read


class TreePrinter(LatexPrinter):
    """SymPy's printer, as one of trees.

    A method ``_print_X`` of this class returns a tree. Methods of SymPy's printer, and nodes that know their own LaTeX,
    return LaTeX in which a mark stands for each part that was printed before; it is read with the trees of the parts.
    """

    def __init__(self) -> None:
        super().__init__({"mul_symbol": None, "fold_short_frac": False, "inv_trig_style": "full"})
        self._given: list[Row] = []

    def row(self, expr: Any, **power: str) -> Row:
        """Print an expression."""
        try:
            return self._built(expr, **power)
        except MarkupError:  # LaTeX that cannot be read, or two indices in one place
            if power:
                raise
            return self.emptyPrinter(expr)

    def _built(self, expr: Any, **power: str) -> Row:
        name = f"_print_{type(expr).__name__}"
        own = getattr(type(self), name, None)
        known = own is not None and own is not getattr(LatexPrinter, name, None)
        found = getattr(self, name)(expr, **power) if known else super()._print(expr, **power)
        return beside(found) if isinstance(found, FormulaNode) else read(found, self._given)

    def _print(self, expr: Any, **power: Any) -> str:
        return self._marked(self.row(expr, **power))

    def _marked(self, row: Row) -> str:
        """Return the mark that stands for a formula in LaTeX."""
        self._given.append(row)
        return mark(len(self._given) - 1)

    def _power(self, base: FormulaNode, exp: str | None) -> Row:
        return scripted(base, sup=read(exp, self._given) if exp else None)

    def _print_Symbol(self, expr: Symbol, style: str = "plain") -> Row:
        found = re.sub(r"_\{([A-Za-z]{2,})\}", r"_{\\mathrm{\1}}", super()._print_Symbol(expr, style))
        found = re.sub(r"^[A-Za-z]{2,}", r"\\mathrm{\g<0>}", found)  # a name, and no product of its letters
        return _formula_of(expr.name, found) or beside(words(expr.name))

    def _print_str(self, expr: str) -> Row:
        return beside(words(expr))

    def _print_Float(self, expr: Any) -> str:
        return super()._print_Float(expr.round(6) if 1e-3 < abs(expr) < 1e6 else expr)

    def _print_Basic(self, expr: Any) -> Row:
        return self.emptyPrinter(expr)

    def emptyPrinter(self, expr: Any) -> Row:
        """Print an object without a printer by its string."""
        return beside(Atom("id", str(expr), f"\\mathtt{{{escape_tex(str(expr))}}}", "tt"))


def _formula_of(name: str, source: str) -> Row | None:
    """The formula of a symbol whose name, which a user may have written in TeX, is a name in TeX."""
    commands = set(re.findall(r"\\([A-Za-z]*)", name))
    if set(name) & set("%&#$~") or not commands <= NAMES or name.count("{") != name.count("}"):
        return None
    try:
        return read(source)
    except MarkupError:
        return None
