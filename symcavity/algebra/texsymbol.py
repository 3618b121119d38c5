"""Symbols that carry their TeX."""

from __future__ import annotations

from typing import Any

from sympy import Symbol


class TexSymbol(Symbol):
    """A real symbol with TeX of its own, which is pickled with it; symbols of one name with other TeX are others."""

    __slots__ = ("tex",)
    tex: str

    def __new__(cls, name: str, tex: str, **assumptions: Any) -> Any:
        """Return the symbol with its TeX."""
        assumptions.setdefault("real", True)
        symbol = Symbol.__xnew__(cls, name, **assumptions)  # not the remembered one, which may have other TeX
        symbol.tex = tex
        return symbol

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.tex)

    def __getnewargs_ex__(self) -> Any:
        sign = {"nonnegative": True} if self.is_nonnegative else {"nonpositive": True} if self.is_nonpositive else {}
        return (self.name, self.tex), sign

    def _latex(self, _printer: Any, exp: str | None = None) -> str:
        return f"{self.tex}^{{{exp}}}" if exp else self.tex
