"""Reading averages, sums, responses and conditions off a solved instance, in the words of the declaration."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Dummy, Eq, Expr, Ge, Gt, Le, Lt, Ne, Sum, Symbol, solve, sympify
from sympy.core.relational import Relational

from symcavity.algebra.compiled import compiled
from symcavity.errors import FlatMinimum, ValuesError
from symcavity.finite.components import WrittenOut
from symcavity.finite.instance import Instance
from symcavity.finite.minimum import Solved
from symcavity.finite.newton import pinned
from symcavity.finite.responses import Responses
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convex_law import regime_of
from symcavity.model.fields import FieldBook, RandomField, extract_fields, free_kind, site_sum
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.shapes.base import SATURATED

TOUCHING, SAME = 1e-9, 1e-6


def _softened(expr: Expr) -> Expr:
    """Give every threshold a width: a variable held at a threshold is on it, whatever the last digit says."""
    rule: dict[Any, Any] = {}
    for r in expr.atoms(Relational):
        d = r.lhs - r.rhs
        if isinstance(r, Gt | Ge):
            rule[r] = d > (TOUCHING if isinstance(r, Gt) else -TOUCHING)
        elif isinstance(r, Lt | Le):
            rule[r] = d < (-TOUCHING if isinstance(r, Lt) else TOUCHING)
        elif isinstance(r, Eq):
            rule[r] = (d < TOUCHING) & (d > -TOUCHING)
        elif isinstance(r, Ne):
            rule[r] = (d >= TOUCHING) | (d <= -TOUCHING)
    return expr.xreplace(rule)


class Reader:
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

    def __init__(self, written: WrittenOut, instance: Instance, solved: Solved) -> None:
        self.written, self.system = written, written.system
        assert solved.state is not None  # noqa: S101 - infeasible instances have no reader
        self.instance, self.solved, self.state = instance, solved, solved.state
        if solved.idle:
            instance.idle[:] = solved.idle

    @cached_property
    def responses(self) -> Any:
        """The responses of every site, computed when first asked for."""
        return Responses(self.instance, self.solved)

    def __call__(self, observable: Any) -> float:
        """Return the value of an expression in averages, sums, responses, globals and parameters.

        Raises
        ------
        FlatMinimum
            If the minimum is not unique, and the value differs from one minimiser to another.
        """
        value = self._value(observable)
        if self._other is not None:
            self._compare(observable, value, self._other._value(observable))  # noqa: SLF001 - the same class
        return value

    @cached_property
    def _other(self) -> Reader | None:
        """The reader of another solution, where there is one."""
        if self.solved.flat is None:
            return None
        another = replace(self.solved, state=self.solved.flat[0], flat=None)
        return Reader(self.written, self.instance, another)

    def _compare(self, observable: Any, here: Any, there: Any) -> None:
        assert self.solved.flat is not None  # noqa: S101 - there is another solution
        if np.max(np.abs(here - there)) <= SAME * (1 + np.max(np.abs(here))):
            return
        dimension = self.solved.flat[1]
        raise FlatMinimum(
            f"The instance with seed {self.instance.seed} has no value of {observable}: its minimum is not unique, "
            f"the minimisers make up a set of {dimension} dimension{'s' if dimension > 1 else ''}, and the value "
            "differs from one to another.",
            dimension,
            "a penalty; another load; observables that are the same for all minimisers, such as the minimum",
        )

    def _value(self, observable: Any) -> float:
        expr = self._read(observable)
        numbers = self._numbers()
        expr = self._resolved(expr, numbers)
        stray = site_quantities(expr)
        if stray:
            raise ValuesError(
                f"The observable {observable} depends on the site, through {stray[0]}.",
                "averages, sums over sites, responses, and their combinations",
                f"average({observable})",
            )
        expr = expr.xreplace(numbers)
        missing = sorted(expr.free_symbols, key=str)
        if missing:
            expr = expr.xreplace({s: self._conditioned(s, numbers) for s in missing})
        return float(expr)

    def site_values(self, body: Expr, kind: Kind | None = None) -> np.ndarray:
        """Return an expression of one site at every site of its kind."""
        numbers = self._numbers()
        written = self._without_averages(self._read(body, kind), numbers)
        found = self._values(written, self._kind(written, kind), numbers)
        if self._other is not None:
            self._compare(body, found, self._other.site_values(body, kind))
        return found

    def _read(self, expr: Any, kind: Kind | None = None) -> Expr:
        """An observable in the words of the system that was solved."""
        declared = self.written.declared
        return self.written.observable(declared.own(declared.centring.observable(sympify(expr), kind)))

    def _without_averages(self, body: Expr, numbers: dict[Symbol, float]) -> Expr:
        means = {
            a for a in body.atoms(Average) if not any(a is not b and b.has(a) for b in body.atoms(Average))
        }
        return body.xreplace({a: self._site_mean(a, numbers) for a in sorted(means, key=str)})

    def _resolved(self, expr: Any, numbers: dict[Symbol, float]) -> Any:
        """Replace the outermost averages and sums by their values."""
        if isinstance(expr, Average | Sum):
            return self._site_mean(expr, numbers)
        if not getattr(expr, "args", ()) or isinstance(expr, SiteQuantity | SiteResponse):
            return expr
        return expr.func(*(self._resolved(a, numbers) for a in expr.args))

    def _numbers(self) -> dict[Symbol, float]:
        system, inst = self.instance.system, self.instance
        numbers = dict(zip(system.constants, map(sympify, inst.constants), strict=True))
        return numbers | dict(zip(system.globals, map(sympify, self.state.shared.tolist()), strict=True))

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
            return sympify(float(np.sum(self._values(body, kind, numbers, mean=True))))
        body = self._without_averages(total.body, numbers)
        if not (site_quantities(body) or body.has(SiteResponse)):
            return body
        return sympify(float(np.mean(self._values(body, self._kind(body), numbers, mean=True))))

    def _values(self, body: Expr, kind: Kind, numbers: dict[Symbol, float], *, mean: bool = False) -> np.ndarray:
        inst, law = self.instance, self.instance.system.laws[kind]
        n, columns = inst.size[kind], {}
        for k, response in enumerate(sorted(body.atoms(SiteResponse), key=str)):
            mark = Dummy(f"response{k}")
            columns[mark] = self._response(response, kind)
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
                columns[f.symbol] = self._field(f, numbers)
        known: dict[Any, np.ndarray] = {q: self.state.site[kind][:, j] for j, q in enumerate(law.unknowns)}
        known |= {q.at_site(): v for q, v in inst.quenched.items() if q.slots == (kind,)}
        if law.sets is not None and body.has(regime_of(kind)):
            known[regime_of(kind)] = self._regimes(kind)
        for k, quantity in enumerate(site_quantities(body)):
            if quantity not in known:
                names = ", ".join(sorted(map(str, known)))
                raise ValuesError(f"The system has no quantity {quantity} at the {kind.sites}.", names)
            mark = Dummy(f"q{k}", real=True)
            columns[mark] = known[quantity]
            body = body.xreplace({quantity: mark})
        body = body.xreplace(numbers)
        stray = {s: self._conditioned(s, numbers) for s in sorted(body.free_symbols - set(columns), key=str)}
        call = compiled(list(columns), _softened(body.xreplace(stray)))
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(call(*columns.values()), dtype=float), (n,))

    def _regimes(self, kind: Kind) -> np.ndarray:
        """How the set of a law touches; where slack holds the multiplier, its own equations do."""
        sets, z = self.instance.system.laws[kind].sets, self.state.site[kind]
        assert sets is not None  # noqa: S101 - the caller has looked
        held = pinned(self.instance, self.state, kind)[:, sets.lam] & (z[:, sets.lam] > 0)
        return np.where(held, float(SATURATED), sets.regimes(z))

    def _field(self, f: RandomField, numbers: dict[Symbol, float]) -> np.ndarray:
        try:
            x = self.instance.matrix(f)
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
        return self.responses.local(kind, law.unknowns.index(state), source_of(law.law, response.field))


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
