"""A derived theory, its closed equations and its sites as notebooks show them."""

from __future__ import annotations

from typing import Any

from sympy import Expr

from symcavity.method.theory import Theory
from symcavity.method.views import SiteView
from symcavity.model.equations import Equation
from symcavity.model.kinds import SiteIndex
from symcavity.record.order_parameters import OrderParameter


class Equations(list[Equation]):
    """The closed equations of a theory: a list, which notebooks show as formulas."""

    def __init__(self, theory: Theory, equations: list[Equation]) -> None:
        super().__init__(equations)
        self._theory = theory

    def __reduce__(self) -> Any:
        """As a list: what another process asks for is the equations."""
        return list, (list(self),)

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import equations_html

        return equations_html(self._theory, self)


class Meanings(dict[OrderParameter, Expr]):
    """The order parameters of a theory and what each stands for: a dictionary, which notebooks show as formulas."""

    def __reduce__(self) -> Any:
        """As a dictionary: what another process asks for is what it holds."""
        return dict, (dict(self),)

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import meanings_html

        return meanings_html(self)


class WrittenSite(SiteView):
    """What the theory says of the sites of one kind, which notebooks show as formulas."""

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import site_html

        return site_html(self)


class WrittenTheory(Theory):
    """A theory that shows itself, its equations and its sites as formulas."""

    def _meanings(self, found: dict[OrderParameter, Expr]) -> dict[OrderParameter, Expr]:
        return Meanings(found)

    @property
    def equations(self) -> Equations:
        """The closed system."""
        return Equations(self, super().equations)

    @property
    def sites(self) -> dict[SiteIndex, SiteView]:
        """What the theory says of the sites of each kind, by their index."""
        return {kind.index: WrittenSite(site) for kind, site in self.inserted.items()}

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import theory_html

        return theory_html(self)

    def _latex(self, printer: Any) -> str:
        """The closed equations, for ``sympy.latex``."""
        rows = " \\\\ ".join(printer.doprint(e.lhs) + " &= " + printer.doprint(e.rhs) for e in self.equations)
        return f"\\begin{{aligned}} {rows} \\end{{aligned}}"
