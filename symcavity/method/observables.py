"""Observables of a theory: what a user names, in order parameters, global variables and parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sympy import Dummy, Expr, S, Symbol

from symcavity.errors import DeclarationError
from symcavity.method.close import averaged_over, over_sites
from symcavity.method.fresh import fresh_average
from symcavity.method.observed_sums import without_fields
from symcavity.model.averages import Average, Fresh
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
from symcavity.model.system import System
from symcavity.model.typed import observable_of
from symcavity.record.order_parameters import OrderParameter
from symcavity.sites.site import Site


class NamedObservables:
    """The part of a theory that reads observables."""

    system: System
    inserted: dict[Kind, Site]
    order_parameters: dict[OrderParameter, Expr]
    binding: dict[Any, Any]

    @property
    @abstractmethod
    def scaled_unknowns(self) -> tuple[Symbol, ...]:
        """Order parameters, and the global variables in units of their fields."""

    def _averaged(self, expr: Expr) -> Expr:
        return averaged_over(self.inserted, expr).xreplace(self.binding)

    def named_by(self, key: Any) -> Expr:
        """The observable that a user names: an expression as it is, a text read in the words of this theory.

        Parameters
        ----------
        key : Expr, number or str
            ``"q_w"``, ``"average(w[i]**2)"``, ``"K/N"``.
        """
        words = {str(s): s for s in (*self.scaled_unknowns, *self.system.named)}
        if isinstance(key, str | Symbol) and str(key) in words:
            return words[str(key)]
        return observable_of(key, self.system, words.values())

    def in_words(self, key: Any) -> Expr:
        """An observable in the words of the declaration, with the names of its own observables written out."""
        found, named = self.named_by(key), self.system.named
        while names := [n for n in named if found.has(n)]:
            found = found.xreplace({n: named[n] for n in names})
        return found

    def observable(self, key: Any) -> Expr:
        """Return an observable in terms of order parameters, global variables and parameters.

        Parameters
        ----------
        key : Expr or Family
            ``average(...)``, ``Sum(..., (i, 1, N))``, ``response(w)``, any expression of these.

        Raises
        ------
        DeclarationError
            If it is not made of single-site quantities of this system.
        """
        expr, named = self.named_by(key), self.system.named
        if expr in named:
            return self.observable(named[expr])
        if names := [name for name in named if expr.has(name)]:
            known = {name: Dummy(name.name, real=True) for name in names}
            found = self.observable(expr.xreplace(known))
            return found.xreplace({mark: self.observable(name) for name, mark in known.items()})
        return self.in_parameters(self.system.own(self.system.rewritten.observable(expr)), key)

    def in_parameters(self, expr: Expr, key: Any = None) -> Expr:
        """An observable in the words of the system that was solved, in order parameters."""
        key = expr if key is None else key
        fresh = {a: Dummy("t", real=True) for a in expr.atoms(Average) if isinstance(a.body, Fresh)}
        expr = without_fields(self.system, expr.xreplace(fresh))
        rule = {meaning: symbol for symbol, meaning in self.order_parameters.items()}
        expr = expr.xreplace(rule)
        free = site_quantities(_without_averages(expr))
        if free:
            raise DeclarationError(
                f"{free[0]} in {key} stands outside of an average: it differs from site to site.",
                "average(...), Sum(..., (i, 1, N)) or Sum(..., (mu, 1, P)), response(...)",
                f"average({key})",
            )
        out, wanted = self._averaged(expr), fresh.items()
        found = {m: fresh_average(self.system, a.body.args[0], self.in_parameters) for a, m in wanted if out.has(m)}
        return out.xreplace({mark: value.xreplace(self.binding) for mark, value in found.items()})


def _without_averages(expr: Expr) -> Expr:
    return expr.xreplace(dict.fromkeys(over_sites(expr), S.One))
