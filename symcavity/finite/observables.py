"""Reading averages, sums, responses and conditions off a solved instance, in the words of the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Sum, Symbol

from symcavity.errors import FlatMinimum, ValuesError
from symcavity.finite.at_sites import AtSites
from symcavity.finite.minimisers import Minimisers, Sameness
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.site_sums import site_sum


class Reader(AtSites):
    """Reads observables off one solved instance.

    Parameters
    ----------
    written : WrittenOut
        The system.
    instance : Instance
        The instance, with its couplings.
    solved : Solved
        Its solution.
    """

    @cached_property
    def sameness(self) -> Sameness | None:
        """What is the same for all minimizers; None where there is one."""
        if self.solved.flat is None:
            return None
        return Sameness(self.own, self.units.inward(self.solved.flat.another), self.units, sharp=self.solved.sharp)

    def __call__(self, observable: Any) -> float:
        """Return the value of an expression in averages, sums, responses, globals and parameters.

        Raises
        ------
        FlatMinimum
            If the minimum is not unique, and the value differs from one minimizer to another.
        """
        totals: dict[Dummy, Expr] = {}
        expr, numbers = self._marked(self._read(observable), totals), self._numbers()
        stray = site_quantities(expr)
        if stray:
            raise ValuesError(
                f"The observable {observable} depends on the site, through {stray[0]}.",
                "averages, sums over sites, responses, and their combinations",
                f"average({observable})",
            )
        values = {mark: self._site_mean(total, numbers) for mark, total in totals.items()}
        bare = set(numbers) | set(values)
        numbers |= {s: self._conditioned(s, numbers) for s in sorted(expr.free_symbols - bare, key=str)}
        if self.sameness is not None:
            self._check(observable, expr, totals, numbers)
        found = expr.xreplace(values).xreplace(numbers)
        if not (found.is_real and found.is_finite):
            raise ValuesError(
                f"The observable {observable} is {found} for the instance with seed {self.instance.seed}.",
                "expressions that are finite real numbers",
            )
        return float(found)

    def unit(self, observable: Any) -> float:
        """Return the unit of an average, as large as the data of the instance; one for what has none, or several."""
        totals: dict[Dummy, Expr] = {}
        expr = self._marked(self._read(observable), totals)
        if self.units.trivial or expr not in totals or not isinstance(totals[expr], Average):
            return 1.0
        numbers, body = self._numbers(), totals[expr].body
        body = self._without_averages(body, numbers)
        if not site_quantities(body):
            return 1.0
        made = self._columns(body, self._kind(body), numbers, None, mean=True)
        return self.units.observable(made.body.xreplace(made.written))

    def _marked(self, expr: Any, totals: dict[Dummy, Expr]) -> Any:
        """Put a mark in the place of each of the outermost averages and sums."""
        if isinstance(expr, Average | Sum):
            mark = next((m for m, total in totals.items() if total == expr), Dummy(f"total{len(totals)}", real=True))
            totals[mark] = expr
            return mark
        if not getattr(expr, "args", ()) or isinstance(expr, SiteQuantity | SiteResponse):
            return expr
        return expr.func(*(self._marked(a, totals) for a in expr.args))

    @cached_property
    def _other(self) -> Reader:
        """The reader of another solution, in a direction that nothing prefers."""
        assert self.solved.flat is not None  # noqa: S101 - there is one
        return Reader(self.written, self.instance, replace(self.solved, state=self.solved.flat.another, flat=None))

    def _check(
        self, observable: Any, expr: Expr, totals: Mapping[Dummy, Expr], numbers: Mapping[Symbol, float]
    ) -> None:
        """Refuse what differs among minimizers: its slopes are looked at at one of them that nothing prefers."""
        same = self.sameness
        assert same is not None  # noqa: S101 - the caller has looked
        there = self._other._numbers()  # noqa: SLF001 - the same class
        columns: dict[Symbol, np.ndarray] = {}
        moves: dict[Symbol, np.ndarray] = {}
        for mark, total in totals.items():
            value, along = self._other._total(total, same)  # noqa: SLF001
            if along is None:
                raise self._differs(observable)
            columns[mark] = np.array([value])
            if np.any(along):
                moves[mark] = along
        for s in sorted(expr.free_symbols - set(totals), key=str):
            columns[s] = np.array([float({**numbers, **there}[s])])
        moves |= self._globals(expr, same)
        along = same.slopes(expr, columns, moves, None)
        if along is None or np.any(along):
            raise self._differs(observable)

    def _globals(self, expr: Expr, same: Sameness) -> dict[Symbol, np.ndarray]:
        moved = {g: same.of_globals(k) for k, g in enumerate(self.instance.system.globals) if expr.has(g)}
        return {g: m for g, m in moved.items() if np.any(m)}

    def _total(self, total: Expr, same: Sameness) -> tuple[float, np.ndarray | None]:
        """The value of an average or a sum, and how it moves among minimizers; None where that is not settled."""
        numbers = self._numbers()
        value = float(self._site_mean(total, numbers))
        if isinstance(total, Sum):
            kind, body = site_sum(total, f"the observable {total}")
        else:
            kind, body = None, total.body
        if not (site_quantities(body) or body.has(SiteResponse)):
            return value, np.zeros((1, same.count))
        along = self._moves(self._inner(body, numbers, same), self._kind(body, kind), same)
        if along is None:
            return value, None
        n = len(along)
        total_moved = same.summed([(np.ones(1), along[k : k + 1]) for k in range(n)])
        return value, total_moved if isinstance(total, Sum) else total_moved / n

    def _inner(self, body: Expr, numbers: dict[Symbol, float], same: Sameness) -> Expr:
        """An expression of a site with its averages in numbers, which have to be the same for all minimizers."""
        for a in sorted(body.atoms(Average), key=str):
            _, along = self._total(a, same)
            if along is None or np.any(along):
                raise self._differs(a)
        return self._without_averages(body, numbers)

    def _moves(self, body: Expr, kind: Kind, same: Sameness) -> np.ndarray | None:
        """How an expression of one site moves at every site; None where that is not settled."""
        made, count = self._columns(body, kind, self._numbers(), same), self._sites(body, kind)[1].size[kind]
        shared = self._globals(made.body, same)
        numbers = {s: v for s, v in self._numbers().items() if s not in shared}
        columns = made.values | {g: np.full(1, float(self._numbers()[g])) for g in shared}
        expr = made.body.xreplace(numbers)
        stray = {s: self._conditioned(s, numbers) for s in sorted(expr.free_symbols - set(columns), key=str)}
        along = same.slopes(expr.xreplace(stray), columns, made.moves | shared, kind)
        return None if along is None else np.broadcast_to(along, (count, same.count))

    def _moved(self, field: RandomField, same: Sameness) -> np.ndarray:
        """How what a field sums moves among minimizers, at every sender."""
        along = self._moves(field.emission, field.sender, same)
        if along is None:
            raise self._differs(field.as_sum)
        return along

    def _differs(self, observable: Any) -> FlatMinimum:
        flat = self.solved.flat or Minimisers(self.state, 0)
        return FlatMinimum(
            f"The instance with seed {self.instance.seed} has no value of {observable}: {flat.words}, and the value "
            "differs from one to another.",
            flat.dimension,
            "a penalty; another load; observables that are the same for all minimizers, such as the minimum",
        )

    def site_values(self, body: Expr, kind: Kind | None = None) -> np.ndarray:
        """Return an expression of one site at every site of its kind."""
        numbers = self._numbers()
        written = self._without_averages(self._read(body, kind), numbers)
        if self.sameness is not None:
            along = self._other._moves(written, self._kind(written, kind), self.sameness)  # noqa: SLF001
            if along is None or np.any(along):
                raise self._differs(body)
        return self._values(written, self._kind(written, kind), numbers)

    def differs(self, variable: Any) -> bool:
        """Whether a variable, by its name or itself, differs from one minimizer to another."""
        same = self.sameness
        if same is None:
            return False
        key = variable.family if isinstance(variable, SiteQuantity) else variable
        name, system = key if isinstance(key, str) else key.name, self.instance.system
        moved = [same.of_globals(k) for k, g in enumerate(system.globals) if g.name == name]
        for kind, law in system.laws.items():
            moved += [same.of_states(kind, j) for j, q in enumerate(law.unknowns) if q.family.name == name]
        return any(np.any(m) for m in moved)
