"""Linear laws, filled forward exactly: each state is a sum of cavity fields and of quenched parameters.

Along with a state goes its response to each source, and what quenched parameters and initial values add. The
covariances of the cavity fields and the kernels follow row by row. Numbers are fractions, doubles, or of any digits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Expr, Integer, S

from symcavity.algebra.precision import mp
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.moving.linear_laws import linear_in, multiplying, refuse_nonlinear, shares_at
from symcavity.evaluate.moving.masks import Masked, without_masks
from symcavity.evaluate.moving.moments import average
from symcavity.evaluate.moving.monomials import Moments, add_to
from symcavity.evaluate.moving.plan import MovingPlan, Term
from symcavity.evaluate.moving.shares import Monomial, NotLinearLaw, Share, number_of
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.times import Time, lag_of
from symcavity.record.order_parameters import MovingParameter


class ExactRun:
    """A run of a theory whose laws are linear.

    Parameters
    ----------
    plan : Plan
    steps : int
        The last step.
    dps : int or None
        Digits; None for fractions.

    Raises
    ------
    NotLinear
        If a law is not linear in states and fields.
    """

    def __init__(self, plan: MovingPlan, steps: int, dps: int | None) -> None:
        self.plan, self.steps, self.dps = plan, steps, dps
        self.first = plan.motion.first
        self.number = number_of(dps)
        self.dtype = float if dps is not None and dps <= IN_DOUBLE else object
        self.zero, self.one = self.number(Integer(0)), self.number(Integer(1))
        self.moments = Moments(plan.values.laws, self.number)
        self.rows, self.masked = plan.rows, dict[SiteQuantity, Masked]()
        self._check()
        self.columns: dict[Kind, dict[tuple[RandomField, int], int]] = {kind: {} for kind in plan.sites}
        self._drawn: dict[RandomField, tuple[list[int], list[int]]] = {}  # steps and columns of each cavity field
        self.offset = {kind: sum(count for _, count in self.sources(kind)) for kind in plan.sites}
        self.added: dict[SiteQuantity, int] = {}  # by masked state: the first column of what its mask adds
        for q in self.masked:
            (kind,) = q.site
            self.added[q] = self.offset[kind]
            self.offset[kind] += steps + 1
        self.size = {kind: self._most(kind) for kind in plan.sites}
        self.shares = {kind: self._shares(kind) for kind in plan.sites}
        self.kernels: dict[str, Any] = {}
        self.ready: dict[str, int] = {}
        self._forms: dict[Any, Any] = {}
        with self.precise():
            self._run()

    def precise(self) -> Any:
        """A context with the digits of the run."""
        return mp.workdps((self.dps or 15) + 10)

    # -- what the laws are -----------------------------------------------------------------------

    def _check(self) -> None:
        for q in self.plan.shared:
            raise NotLinearLaw(f"{q} is shared by all sites")
        self.rows, self.masked = without_masks(self.plan)
        refuse_nonlinear(self.plan, self.rows, self.masked.values())

    def _most(self, kind: Kind) -> int:
        fields = [h.declared for h in self.plan.sites[kind].heard]
        return self.offset[kind] + sum(1 if f.time is None else self.steps + 1 for f in fields)

    def linear(self, expr: Expr) -> list[SiteQuantity]:
        """The variables in which an expression has to be linear."""
        return linear_in(expr)

    def sources(self, kind: Kind) -> list[tuple[SiteQuantity, int]]:
        """What is a Gaussian source of its own at a site, beside cavity fields, and how many there are of it."""
        masks = [m.mask.family for m in self.masked.values()]
        anew = [q for q in self.plan.system.drawn_anew if q.slots == (kind,) and q not in masks]
        return [(q.at_site(), self.steps + 1) for q in anew]

    def _begin_anew(self, kind: Kind, share: Share) -> None:
        """One more source for each, of its own variance."""
        assert share.scaled is not None  # noqa: S101 - made before the first step
        column = 0
        for q, count in self.sources(kind):
            mean, variance = self.number(S.Zero), self.zero
            if isinstance(q.family, Noise):
                variance = self.number(self.plan.values.put_into(q.family.variance))
            else:
                mean = self.moments.of(q)
                variance = self.moments.of(q**2) - mean * mean
            slopes = share.slopes[q] = self.zeros((self.steps + 1 - self.first, self.size[kind]))
            share.constants[q] = [{S.One: mean} if mean else {} for _ in slopes]
            for step in range(count):
                slopes[self.place(q, step)][column] = self.one
                share.scaled[column, column] = variance
                column += 1
        share.factors += [self.one] * self.offset[kind]

    def _multiplying(self, kind: Kind) -> list[Quenched]:
        """The quenched parameters of a kind that multiply states, fields, or stand in statistics."""
        return multiplying(self.plan, self.rows, self.masked, kind)

    def _shares(self, kind: Kind) -> list[Share]:
        return shares_at(self._multiplying(kind), self.plan.values.laws.get(kind), self.number)

    # -- forward -----------------------------------------------------------------------------------

    def _run(self) -> None:
        plan = self.plan
        for q in plan.rows:
            (kind,) = q.site
            for share in self.shares[kind]:
                share.slopes[q] = self.zeros((self.steps + 1 - self.first, self.size[kind]))
                share.constants[q] = [{} for _ in range(self.steps + 1 - self.first)]
        for kind, shares in self.shares.items():
            for share in shares:
                share.scaled = self.zeros((self.size[kind], self.size[kind]))
                self._begin_anew(kind, share)
        plan.forward(self.first, self.steps, self._hear, self._fill)

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """An array of zeros of the numbers of the run."""
        out = np.empty(shape, dtype=self.dtype)
        out[...] = self.zero
        return out

    def place(self, q: SiteQuantity, step: int) -> int:
        """Where a state stands at a step; what keeps still, at the first place."""
        return 0 if q.time is None else step - self.first

    def _fill(self, q: SiteQuantity, step: int) -> None:
        """The value of a state at one step."""
        if q not in self.plan.rows:
            return
        (kind,), row = q.site, self.rows[q]
        given = self.plan.initial.get(q, {})
        for share in self.shares[kind]:
            slopes, constants = share.slopes[q], share.constants[q]
            here = self.place(q, step)
            if step in given and q.time is not None:
                found, constants[here] = self._form(given[step], share, 0)
                if found is not None:
                    slopes[here] += found
                continue
            t = step - row.update.lead
            if q.time is not None and t < 0:
                continue
            at = slopes[here]
            found, total = self._form(row.rhs, share, t)
            if found is not None:
                at += found
            for f, factor in row.fields:
                when = 0 if f.time is None else t
                column = self.columns[kind][f, when]
                at[column] += self.one
                value = self._value(factor, share, t)
                for back, emission in self._returned(f, when, share):
                    e_slopes, e_constants = emission
                    at += value * (back @ e_slopes[: len(back)])
                    for k, b in enumerate(back):
                        add_to(total, e_constants[k], value * b)
            constants[here] = total
            if q in self.masked:
                self._add_masked(q, share, t, step)

    def _add_masked(self, q: SiteQuantity, share: Share, t: int, step: int) -> None:
        """One more source of a state: what its mask adds beyond its mean, of this variance."""
        one, cov, column = self.masked[q], share.scaled, self.added[q] + step
        inside, constant = self._form(one.inside, share, t)
        mean = self.moments.of(one.mask)
        assert cov is not None  # noqa: S101 - made before the first step
        size = self.moments.mean(constant, constant) + (self.zero if inside is None else inside @ (cov @ inside))
        cov[column, column] = (self.moments.of(one.mask**2) - mean * mean) * size
        share.slopes[q][self.place(q, step)][column] = self.one

    def _parts(self, expr: Expr, share: Share, t: int) -> list[tuple[Any, Any, Any]]:
        key = expr, id(share), t if expr.has(self.plan.time) and _explicit(expr, self.plan.time) else None
        if key not in self._forms:
            states = self.linear(expr)
            parts: list[tuple[Any, Any, Any]] = [(q, self._value(expr.diff(q), share, t), None) for q in states]
            rest = expr.xreplace(dict.fromkeys(states, S.Zero))
            self._forms[key] = [*parts, (None, None, self.moments.constant(self._timed(rest, t).xreplace(share.known)))]
        return self._forms[key]

    def _timed(self, expr: Expr, t: int) -> Expr:
        return expr.xreplace({self.plan.time: Integer(t)})

    def _value(self, expr: Expr, share: Share, t: int) -> Any:
        return self.number(self._timed(expr.xreplace(share.known), t))

    def _form(self, expr: Expr, share: Share, step: int) -> tuple[np.ndarray, dict[Monomial, Any]]:
        """An expression in states at one time, as slopes and constants."""
        kind = next(iter(next(iter(self.linear(expr))).site)) if self.linear(expr) else None
        total: dict[Monomial, Any] = {}
        slopes: Any = None if kind is None else self.zeros((self.size[kind],))
        for state, factor, constant in self._parts(expr, share, step):
            if state is None:
                add_to(total, constant, self.one)
                continue
            here = self.place(state, step + (0 if state.time is None else lag_of(state.time)))
            slopes += factor * share.slopes[state.now][here]
            add_to(total, share.constants[state.now][here], factor)
        return slopes, total

    def _emitted(self, expr: Expr, share: Share, last: int) -> tuple[np.ndarray, list[dict[Monomial, Any]]]:
        """An emission at all steps up to one."""
        key = "emitted", expr, id(share)
        (kind,) = next(iter(site_quantities(expr))).site
        if key not in self._forms:
            self._forms[key] = self.zeros((self.steps + 1, self.size[kind])), []
        rows, constants = self._forms[key]
        while len(constants) <= last:
            slopes, total = self._form(expr, share, len(constants))
            if slopes is not None:
                rows[len(constants)] = slopes
            constants.append(total)
        return rows, constants

    def _returned(self, f: RandomField, t: int, share: Share) -> list[tuple[np.ndarray, Any]]:
        """The feedback at one time: the self-couplings to all earlier times, and the emission at these."""
        out = []
        for echo in self.plan.echoes[f]:
            count = 1 if echo.through.time is None else t + 1 - echo.delay
            back = self.zeros((count,))
            for term in echo.terms:
                kernel = self._kernel_rows(term.kernel, t)
                row = kernel[t, :count] if len(term.kernel.times) > 1 else kernel[t]
                back += self._value(term.factor, share, t) * row
            out.append((back, self._emitted(echo.emission, share, count - 1)))
        return out

    def _hear(self, f: RandomField, t: int) -> None:
        """The covariances of a cavity field at one time with all before."""
        kind = f.hearer
        known = self.columns[kind]
        column = known[f, t] = self.offset[kind] + len(known)
        for numbers, number in zip(self._drawn.setdefault(f, ([], [])), (t, column), strict=True):
            numbers.append(number)
        before = {g: self._drawn[g] for g in (h.declared for h in self.plan.sites[kind].heard) if g in self._drawn}
        for share in self.shares[kind]:
            factor = self._value(self.plan.factors[f], share, t)
            share.factors.append(factor)
            cov = share.scaled
            assert cov is not None  # noqa: S101 - made before the first step
            for g, (steps, others) in before.items():
                scale = self._numbers([share.factors[k] for k in others])
                cov[column, others] = cov[others, column] = factor * scale * self._covariances(f, t, g, steps, share)

    def _numbers(self, values: Sequence[Any]) -> np.ndarray:
        out = np.empty(len(values), dtype=self.dtype)
        out[:] = values
        return out

    def _covariances(self, f: RandomField, t: int, g: RandomField, steps: Sequence[int], share: Share) -> np.ndarray:
        """The covariances of a cavity field at one time with another at several, none of them later."""
        out = self.zeros((len(steps),))
        for term in self.plan.covariances[f, g]:
            if term.kernel is None:
                out = out + self._factor(term, share)
                continue
            rows = self._kernel_rows(term.kernel, t)
            where = tuple(t if k == self.plan.time else steps for k in term.kernel.times)
            out = out + self._factor(term, share) * rows[where]
        return out

    def _factor(self, term: Term, share: Share) -> Any:
        key = "factor", term, id(share)
        if key not in self._forms:
            self._forms[key] = self.number(term.factor.xreplace(share.known))
        return self._forms[key]

    # -- kernels -----------------------------------------------------------------------------------

    def _kernel_rows(self, kernel: MovingParameter, last: int) -> np.ndarray:
        """A kernel up to one step; rows that are missing are filled in."""
        name = kernel.base
        if name not in self.kernels:
            self.kernels[name] = self.zeros((self.steps + 1,) * len(kernel.times))
            self.ready[name] = 0
        while self.ready[name] <= last:
            row = self.ready[name]
            self.ready[name] += 1
            if name in self.plan.responses:
                self._response_row(name, row)
            else:
                self._correlation_row(name, row)
        return self.kernels[name]

    def _response_row(self, name: str, t: int) -> None:
        found = self.plan.responses[name]
        kind, state, f = found.kind, found.state, found.field
        values = self.kernels[name]
        for share in self.shares[kind]:
            row = share.slopes[state.now][self.place(state, t)]
            weight = share.weight * self._value(found.weight, share, t)
            steps, columns = self._drawn.get(f, ([], []))
            count = bisect_right(steps, t) if f.time is not None else len(steps)
            if count:
                where = (t, steps[:count]) if values.ndim > 1 else (t,)
                values[where] += weight * row[columns[:count] if values.ndim > 1 else columns[0]]

    def _correlation_row(self, name: str, t: int) -> None:
        kind, body = self.plan.kernels[name]
        values = self.kernels[name]
        first, second = self.plan.split(body) or (S.One, S.One)
        if values.ndim == 1:
            whole = first * second.xreplace({self.plan.second: self.plan.time})
            values[t] = self.average(kind, whole, [self.plan.time], np.array([t]))[0]
            return
        values[t, : t + 1] = self.mean_products(kind, first, t, second, t)
        values[: t + 1, t] = values[t, : t + 1] if _same(first, second, self.plan) else self.mean_products(
            kind, self._turned(second), t, self._turned(first), t)

    def _turned(self, expr: Expr) -> Expr:
        return expr.xreplace({self.plan.time: self.plan.second, self.plan.second: self.plan.time})

    def mean_products(self, kind: Kind, first: Expr, t: int, second: Expr, last: int) -> np.ndarray:
        """The averages of what stands at one step, times what stands at each step up to a last one."""
        second = second.xreplace({self.plan.second: self.plan.time})
        out = self.zeros((last + 1,))
        for share in self.shares[kind]:
            slopes, constant = self._form(first, share, t)
            rows, constants = self._emitted(second, share, last) if site_quantities(second) else (None, None)
            n = len(share.factors)
            part = self.zeros((last + 1,))
            if slopes is not None and rows is not None:
                cov = share.scaled
                assert cov is not None  # noqa: S101 - made before the first step
                part = part + rows[: last + 1, :n] @ (cov[:n, :n] @ slopes[:n])
            if constants is None:
                constants = [self.moments.constant(second.xreplace(share.known))] * (last + 1)
            others = constants[: last + 1]
            for monomial in dict.fromkeys(m for other in others for m in other):
                value = self.moments.mean(constant, {monomial: self.one})
                part = part + value * self._numbers([other.get(monomial, self.zero) for other in others])
            out = out + share.weight * part
        return out

    # -- observables -------------------------------------------------------------------------------

    def average(self, kind: Kind, body: Expr, times: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        """The average of a polynomial of at most the second degree in states, on one axis for each time."""
        return average(self, kind, body, times, steps)

    def response(self, kind: Kind, state: SiteQuantity, f: RandomField, t: int, s: int) -> Any:
        """The response of a state at one step to a source at another."""
        column = self.columns[kind].get((f, s if f.time is not None else 0))
        if column is None or s > t:
            return self.zero
        at = self.place(state, t)
        return sum((h.weight * h.slopes[state.now][at][column] for h in self.shares[kind]), self.zero)


def _explicit(expr: Expr, time: Any) -> bool:
    """Whether the time stands in an expression outside of its quantities."""
    marks = dict.fromkeys(site_quantities(expr), S.One)
    return time in expr.xreplace(marks).free_symbols


def _same(first: Expr, second: Expr, plan: MovingPlan) -> bool:
    return first == second.xreplace({plan.second: plan.time})
