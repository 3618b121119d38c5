"""Expressions of sites in numbers, at all sites of a solved instance: fields, states, responses, and their means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Sum, Symbol, solve

from symcavity.algebra.compiled import compiled
from symcavity.algebra.door import as_sympy
from symcavity.errors import ValuesError
from symcavity.finite.components import WrittenOut
from symcavity.finite.edges import EVENTS, Edges
from symcavity.finite.fresh import FreshSites
from symcavity.finite.instance import Instance, State
from symcavity.finite.minimisers import Sameness
from symcavity.finite.minimum import SolvedInstance
from symcavity.finite.newton import pinned
from symcavity.finite.responses import Responses
from symcavity.finite.units import InstanceUnits
from symcavity.model.averages import Average, Fresh, SiteResponse
from symcavity.model.convex_law import regime_of
from symcavity.model.fields import FieldBook, RandomField, extract_fields
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.site_sums import free_kind, site_sum
from symcavity.shapes.base import SATURATED


@dataclass(frozen=True)
class _Columns:
    """An expression of a site in symbols.

    Attributes
    ----------
    body : Expr
        The expression.
    values : dict
        The values of the symbols at all sites.
    moves : dict
        How those move among minimizers that do.
    moving : dict
        Which state or field of the law a symbol is; None for others that depend on states.
    written : dict
        What the symbols stand for.
    """

    body: Expr
    values: dict[Symbol, np.ndarray]
    moves: dict[Symbol, np.ndarray]
    moving: dict[Symbol, tuple[str, int] | None]
    written: dict[Symbol, Any]


class AtSites(ABC):
    """The values of expressions at all sites of one solved instance.

    Parameters
    ----------
    written : WrittenOut
        The system.
    instance : Instance
        The instance, with its couplings.
    solved : Solved
        Its solution.
    """

    def __init__(self, written: WrittenOut, instance: Instance, solved: SolvedInstance) -> None:
        self.written, self.system = written, written.system
        assert solved.state is not None  # noqa: S101 - infeasible instances have no reader
        self.instance, self.solved, self.state = instance, solved, solved.state
        if solved.idle:
            instance.idle[:] = solved.idle
        self._fresh: dict[Kind, FreshSites] = {}

    @cached_property
    def units(self) -> InstanceUnits:
        """The units of the instance: responses, edges and minimizers ask for them, and plain averages do not."""
        return InstanceUnits(self.instance)

    @cached_property
    def own(self) -> Instance:
        """The instance in its own units."""
        return self.units.instance(self.instance)

    @cached_property
    def own_state(self) -> State:
        """Its solution in these units."""
        return self.units.inward(self.state)

    @cached_property
    def responses(self) -> Any:
        """The responses of every site, computed when first asked for."""
        return Responses(self.own, replace(self.solved, state=self.own_state))

    @abstractmethod
    def _moved(self, field: RandomField, same: Sameness) -> np.ndarray:
        """How what a field sums moves among minimizers, at every sender."""

    def _sites(self, body: Expr, kind: Kind) -> tuple[Expr, Instance | FreshSites]:
        """An expression of one site, and the sites that are asked: those of the instance, or fresh ones."""
        if not isinstance(body, Fresh):
            return body, self.instance
        if kind not in self._fresh:
            self._fresh[kind] = FreshSites(self.instance, kind)
        return body.body, self._fresh[kind]

    def _read(self, expr: Any, kind: Kind | None = None) -> Expr:
        """An observable in the words of the system that was solved."""
        declared = self.written.declared
        return self.written.observable(declared.own(declared.rewritten.observable(as_sympy(expr), kind)))

    def _without_averages(self, body: Expr, numbers: dict[Symbol, float]) -> Expr:
        return body.xreplace({a: self._site_mean(a, numbers) for a in sorted(body.atoms(Average), key=str)})

    def _numbers(self) -> dict[Symbol, float]:
        system, inst = self.instance.system, self.instance
        numbers = dict(zip(system.constants, map(as_sympy, inst.constants), strict=True))
        return numbers | dict(zip(system.globals, map(as_sympy, self.state.shared.tolist()), strict=True))

    def _conditioned(self, symbol: Symbol, numbers: dict[Symbol, float]) -> float:
        """Return the value of a parameter that stands only in a condition on an average."""
        for equation in self.system.fixed:
            if equation.difference.has(symbol):
                value = equation.rhs.xreplace(numbers)
                left = self._site_mean(equation.lhs, numbers)
                found = (
                    [r for r in solve(value - left, symbol) if r.is_real]
                    if value.free_symbols == {symbol}
                    else []
                )
                if len(found) == 1:
                    return found[0]
        raise ValuesError(
            f"The observable contains {symbol}, which has no value in this simulation.",
            "variables and parameters of the declaration",
        )

    def _kind(self, body: Expr, kind: Kind | None = None) -> Kind:
        if kind is None:
            masked = body.xreplace({r: r.state for r in body.atoms(SiteResponse)})
            kind = free_kind(masked, f"the observable average({body})")
        if kind is None:
            raise ValuesError(
                f"{body} contains no quantity of a site.", "quantities of one kind of site: w[i], lambda[mu]"
            )
        return kind

    def _site_mean(self, total: Expr, numbers: dict[Symbol, float]) -> Any:
        if isinstance(total, Sum):
            total = total.func(self._without_averages(total.function, numbers), *total.limits)
            kind, body = site_sum(total, f"the observable {total}")
            if not (site_quantities(body) or body.has(SiteResponse)):
                return body * self.instance.size[kind]
            return as_sympy(float(np.sum(self._values(body, kind, numbers, mean=True))))
        body = self._without_averages(total.body, numbers)
        if not (site_quantities(body) or body.has(SiteResponse)):
            return body
        return as_sympy(float(np.mean(self._values(body, self._kind(body), numbers, mean=True))))

    def _values(self, body: Expr, kind: Kind, numbers: dict[Symbol, float], *, mean: bool = False) -> np.ndarray:
        made = self._columns(body, kind, numbers, None, mean=mean)
        sites = self._sites(body, kind)[1]
        count = sites.size[kind]
        shared = {g: np.full(1, float(numbers[g])) for g in self.instance.system.globals if made.body.has(g)}
        body = made.body.xreplace({s: v for s, v in numbers.items() if s not in shared})
        values = made.values | shared
        stray = {s: self._conditioned(s, numbers) for s in sorted(body.free_symbols - set(values), key=str)}
        moving = made.moving | {g: ("global", k) for k, g in enumerate(self.instance.system.globals) if g in shared}
        body = body.xreplace(stray)
        if sites is self.instance and body.has(*EVENTS):  # a fresh site is at no edge of a law
            body, marks = self._edges.decided(body, kind, values, moving, made.written)
            values |= marks
        with np.errstate(all="ignore"):
            found = np.asarray(compiled(list(values), body)(*values.values()), dtype=float)
        bad = np.count_nonzero(~np.isfinite(np.broadcast_to(found, (count,))))
        if bad:
            raise ValuesError(
                f"The observable is not a finite number at {bad} of {count} {kind.sites} of the "
                f"instance with seed {self.instance.seed}: {made.body.xreplace(made.written)}.",
                "expressions that are finite at all sites",
            )
        return np.broadcast_to(found, (count,))

    @cached_property
    def _edges(self) -> Edges:
        return Edges(self.own, self.own_state, self.units, sharp=self.solved.sharp)

    def _columns(
        self, body: Expr, kind: Kind, numbers: dict[Symbol, float], same: Sameness | None, *, mean: bool = False
    ) -> _Columns:
        """Put symbols in the place of responses, fields and quantities of a site, with their values at all sites."""
        inst, law = self.instance, self.instance.system.laws[kind]
        body, sites = self._sites(body, kind)
        columns: dict[Symbol, np.ndarray] = {}
        moves: dict[Symbol, np.ndarray] = {}
        moving_in: dict[Symbol, tuple[str, int] | None] = {}
        written: dict[Symbol, Any] = {}
        for k, response in enumerate(sorted(body.atoms(SiteResponse), key=str)):
            mark = Dummy(f"response{k}", real=True)
            columns[mark], written[mark], moving_in[mark] = self._response(response, kind), response, None
            body = body.xreplace({response: mark})
            moving = [q for q in site_quantities(body.diff(mark)) if not isinstance(q.family, Quenched)]
            if self.responses.by_parts is not None and (not mean or moving or body.diff(mark).has(mark, Sum)):
                raise ValuesError(
                    f"The instance with seed {inst.seed} jumps from branch to branch: it has average responses, and "
                    "none of a single site.",
                    "averages of responses, times parameters",
                )
        if body.has(Sum):
            book = FieldBook()
            body = extract_fields(body, kind, book, f"the observable {body}")
            for f in book.all(kind):
                columns[f.symbol], written[f.symbol] = self._field(f, numbers, sites), f.as_sum
                heard = [m for m, g in enumerate(law.fields) if replace(g, symbol=f.symbol) == f]
                if heard:
                    written[f.symbol] = law.fields[heard[0]].symbol
                if f.states():
                    moving_in[f.symbol] = ("field", heard[0]) if heard else None
                if same is not None and f.states():
                    moves[f.symbol] = same.field(sites.matrix(f), self._moved(f, same))
        known: dict[Any, np.ndarray] = {q.at_site(): v for q, v in sites.quenched.items() if q.slots == (kind,)}
        if sites is inst:
            known |= {q: self.state.site[kind][:, j] for j, q in enumerate(law.unknowns)}
        if law.sets is not None and body.has(regime_of(kind)):
            known[regime_of(kind)] = self._regimes(kind)
        for k, quantity in enumerate(site_quantities(body)):
            if quantity not in known:
                if sites is not inst and quantity in law.unknowns:
                    raise ValuesError(
                        f"{quantity} is a state of a {kind} that took part in training: fresh sites have none.",
                        "fields and quenched parameters",
                    )
                names = ", ".join(sorted(map(str, known)))
                raise ValuesError(f"The system has no quantity {quantity} at the {kind.sites}.", names)
            mark = Dummy(f"q{k}", real=True)
            columns[mark], written[mark] = known[quantity], quantity
            if quantity in law.unknowns:
                moving_in[mark] = ("state", law.unknowns.index(quantity))
            if same is not None and quantity in law.unknowns:
                moves[mark] = same.of_states(kind, law.unknowns.index(quantity))
            elif same is not None and quantity == regime_of(kind):
                moves[mark] = np.abs(same.moved.site[kind]).sum(axis=1)
            body = body.xreplace({quantity: mark})
        return _Columns(body, columns, {s: m for s, m in moves.items() if np.any(m)}, moving_in, written)

    def _regimes(self, kind: Kind) -> np.ndarray:
        """How the set of a law touches; where slack holds the multiplier, its own equations do."""
        sets, z = self.instance.system.laws[kind].sets, self.own_state.site[kind]
        assert sets is not None  # noqa: S101 - the caller has looked
        held = pinned(self.own, self.own_state, kind)[:, sets.lam] & (z[:, sets.lam] > 0)
        return np.where(held, float(SATURATED), sets.regimes(z))

    def _field(
        self, f: RandomField, numbers: dict[Symbol, float], sites: Instance | FreshSites
    ) -> np.ndarray:
        try:
            x = sites.matrix(f)
        except ValueError:
            raise ValuesError(
                f"The system has no coupling {f.coupling}.", ", ".join(map(str, self.instance.system.couplings))
            ) from None
        return x @ self._values(f.emission, f.sender, numbers)

    def _response(self, response: SiteResponse, kind: Kind) -> np.ndarray:
        law = self.instance.system.laws[kind]
        state = response.state
        if state not in law.unknowns:
            raise ValuesError(f"The system has no state {state}.", ", ".join(law.labels))
        j, m = law.unknowns.index(state), source_of(law.law, response.field)
        unit = self.units.site[kind][j] / self.units.equations[kind][law.carrier[m]]
        return self.responses.local(kind, j, m) * unit


def source_of(law: Any, quantity: SiteQuantity | None) -> int:
    """Return which random field of a law a response refers to.

    Parameters
    ----------
    law : Law
        The law of the kind.
    quantity : SiteQuantity or None
        The quantity whose equation carries the source, where there are several fields.
    """
    moving = [m for m, f in enumerate(law.fields) if f.states()]
    if quantity is None:
        if len({law.carrier(law.fields[m]) for m in moving}) != 1:
            raise ValuesError(
                f"The {law.kind.sites} hear {len(moving)} random fields; the response names no source.",
                "response(state, quantity): the quantity whose equation carries the source",
            )
        return moving[0]
    carriers = {m: law.carrier(law.fields[m]) for m in moving}
    for named in (lambda e: e.lhs == quantity, lambda e: e.difference.has(quantity)):
        for m, carrier in carriers.items():
            if named(carrier):
                return m
    raise ValuesError(
        f"No equation with a random field contains {quantity}.", ", ".join(map(str, law.unknowns))
    )
