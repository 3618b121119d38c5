"""Linear laws that send functions of their states, which do not come back: all states are Gaussian, at any digits.

A state is a sum of Gaussian sources, as where all is linear; averages of functions of two of them are sums over their
Hermite coefficients (:mod:`symcavity.evaluate.moving.hermite`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Expr, Mul, S, Symbol
from sympy.stats.crv_types import NormalDistribution

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.moving.exact import ExactRun
from symcavity.evaluate.moving.hermite import MOST, Profile, common, mehler
from symcavity.evaluate.moving.linear_laws import linear_in
from symcavity.evaluate.moving.moments import on_axes, open_time
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.shares import NotLinearLaw, Share
from symcavity.evaluate.undefined import where_defined
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.site_sums import is_affine
from symcavity.model.times import Time, step_of

X = Symbol("x", real=True)


@dataclass(frozen=True)
class Placed:
    """A function of a Gaussian number with a mean, in digits; its coefficients, where there are few."""

    profile: Profile
    mean: Any
    series: Any


class GaussianRun(ExactRun):
    """A run of a theory with linear dynamics, functions of the states at once, and no memory.

    Parameters
    ----------
    plan : Plan
    steps : int
        The last step.
    dps : int
        Digits.

    Raises
    ------
    NotLinear
        If the dynamics are not linear, or what is sent comes back.
    """

    def __init__(self, plan: MovingPlan, steps: int, dps: int) -> None:
        if any(plan.echoes.values()):
            raise NotLinearLaw("what is sent comes back")
        if plan.shared:
            raise NotLinearLaw("sites share a variable")
        self.functions: dict[SiteQuantity, Expr] = {}
        reduced, rows = copy(plan), {}
        for q in plan.motion.order:
            if q not in plan.rows:
                continue
            row = plan.rows[q]
            rhs = row.rhs.xreplace(self.functions)
            if is_affine(rhs, linear_in(rhs)):
                rows[q] = row
            elif row.fields or row.update.lead or site_quantities(rhs, Variable, Field) == []:
                raise NotLinearLaw(f"{row.update.equation}")
            else:
                self.functions[q] = rhs
        if any(site_quantities(row.rhs) and row.rhs.has(*self.functions) for row in rows.values() if self.functions):
            raise NotLinearLaw("a function of a state drives another one")
        reduced.rows = rows
        reduced.kernels = {name: (kind, self._written(body)) for name, (kind, body) in plan.kernels.items()}
        self._profiles: dict[Expr, Profile] = {}
        self._normal = {
            q: variable
            for law in plan.values.laws.values()
            for q, variable in law.continuous
            if isinstance(variable.pspace.distribution, NormalDistribution)
        }
        super().__init__(reduced, steps, dps)

    def _written(self, body: Expr) -> Expr:
        """An expression with all states that are functions of others written out, at their times."""
        rule = {}
        for q in site_quantities(body, Variable, Field):
            if q.now in self.functions:
                t: Any = q.family.over
                rule[q] = self.functions[q.now].xreplace({t: q.time})
        return body.xreplace(rule)

    # -- what the laws are -----------------------------------------------------------------------

    def linear(self, expr: Expr) -> list[SiteQuantity]:
        """The variables in which an expression has to be linear; normal quenched parameters are sources, too."""
        return [*super().linear(expr), *(q for q in site_quantities(expr, Quenched) if q.family in self._normal)]

    def sources(self, kind: Kind) -> list[tuple[SiteQuantity, int]]:
        """What is a Gaussian source of its own at a site, and how many there are of it."""
        return [*super().sources(kind), *((q.at_site(), 1) for q in self._normal if q.slots == (kind,))]

    def _check(self) -> None:
        for row in self.plan.rows.values():
            if any(f.has(*self.linear(f)) for _, f in row.fields if self.linear(f)):
                raise NotLinearLaw(f"{row.update.equation}")
        for _, body in self.plan.kernels.values():
            for term in Add.make_args(body.expand()):
                self._factors(term)

    def _multiplying(self, kind: Kind) -> list[Quenched]:
        """All quenched parameters of a kind that are given by points: each share has its own means."""
        law = self.plan.values.laws.get(kind)
        if law is not None and any(q not in self._normal and q.over is None for q, _ in law.continuous):
            raise NotLinearLaw("a quenched parameter is neither normal nor given by points")
        if law is not None and law.arrays:
            raise NotLinearLaw("a quenched parameter is given site by site")
        return [] if law is None else [q for q in law.names if q.over is None]

    # -- averages of functions ---------------------------------------------------------------------

    def _factors(self, term: Expr) -> tuple[Expr, list[tuple[SiteQuantity, Expr]]]:
        """A term as a number times functions of one source each, at most two of them.

        Raises
        ------
        NotLinear
            If it is no such product.
        """
        number: Expr = S.One
        found: dict[SiteQuantity, Expr] = {}
        for factor in Mul.make_args(term):
            inside = self.linear(factor)
            if not inside:
                number *= factor
            elif len(inside) > 1:
                raise NotLinearLaw(f"{factor} holds several states")
            else:
                found[inside[0]] = found.get(inside[0], S.One) * factor
        if len(found) > 2:
            raise NotLinearLaw(f"{term} is a product of {len(found)} states")
        for q, f in found.items():
            bare = f.xreplace({q: X}).xreplace(dict.fromkeys(site_quantities(f.xreplace({q: X})), S.One))
            try:
                self._profile(bare)
            except UnsupportedLaw as problem:
                raise NotLinearLaw(str(problem).split("\n")[0]) from None
        return number, list(found.items())

    def _profile(self, expr: Expr) -> Profile:
        if expr not in self._profiles:
            self._profiles[expr] = Profile(expr, X)
        return self._profiles[expr]

    def _expanded(self, q: SiteQuantity, function: Expr, share: Share, when: Sequence[int]) -> Any:
        """The slopes of a source at some steps, its standard deviations, and the coefficients of a function of it."""
        n, here = len(share.factors), [self.place(q.now, k) for k in when]
        key = "series", function, q.now, id(share)
        if key not in self._forms:
            count = len(share.slopes[q.now])
            shape, kind = ((count, MOST), float) if self.dtype is float else ((count,), object)
            self._forms[key] = self.zeros((count,)), np.zeros(shape, dtype=kind), np.zeros(count, dtype=int)
        sizes, series, lengths = self._forms[key]
        for k in here:
            if not lengths[k]:
                self._fill_series(q, function, share, k, key)
        found = series[here, : max(lengths[here])] if self.dtype is float else series[here]
        return share.slopes[q.now][here][:, :n], sizes[here], found

    def _fill_series(self, q: SiteQuantity, function: Expr, share: Share, k: int, key: Any) -> None:
        """The standard deviation of a source at one place, and the coefficients of a function of it."""
        sizes, series, lengths = self._forms[key]
        profile = self._profile(function.xreplace(share.known).xreplace({q: X}))
        n, cov, row = len(share.factors), share.scaled, share.slopes[q.now][k]
        assert cov is not None  # noqa: S101 - made before the first step
        variance = max(row[:n] @ (cov[:n, :n] @ row[:n]), self.zero)
        sizes[k], found = self._series(profile, share.constants[q.now][k].get(S.One, self.zero), variance)
        if self.dtype is float:
            lengths[k] = len(found)
            series[k, : len(found)] = found
        else:
            lengths[k], series[k] = 1, found

    def _series(self, profile: Profile, mean: Any, variance: Any) -> tuple[Any, Any]:
        """A standard deviation, and coefficients; in digits a function at a mean, with them if there are few."""
        if self.dtype is float:
            return variance**0.5, profile.coefficients(mean, variance, 15)
        size = mp.sqrt(variance)
        return size, Placed(profile, mean, where_defined(profile.coefficients, mean, variance, self.dps or 15))

    def _pair(self, a: Placed, b: Placed, size: Any, other: Any, rho: Any) -> Any:
        """The average of a product by coefficients, or by integrals where one of the two has too many."""
        if a.series is not None and b.series is not None:
            return mehler(*common(a.series, b.series), rho)
        return a.profile.average(b.profile, (a.mean, size), (b.mean, other), rho, self.dps or 15)

    def _product(self, factors: Any, share: Share, times: Sequence[Sequence[int]]) -> np.ndarray:
        """The average of a product of functions of two sources, at steps of each."""
        (q, f), (r, g) = factors
        (rows, sizes, one), (columns, others, two) = (
            self._expanded(*pair, share, when) for pair, when in zip(((q, f), (r, g)), times, strict=True)
        )
        n, cov = len(share.factors), share.scaled
        assert cov is not None  # noqa: S101 - made before the first step
        inside = cov[:n, :n]  # the few steps first: one of them, for a row of a kernel
        few = len(rows) < len(columns)
        products = self.zeros((len(one), len(two)))
        if n:
            products = (rows @ inside) @ columns.T if few else rows @ (inside @ columns.T)
        out = self.zeros(products.shape)
        for j, a in enumerate(one):
            if self.dtype is float:
                scale, count = sizes[j] * others, min(len(a), two.shape[1])
                rho = np.divide(products[j], scale, out=np.zeros(len(two)), where=scale > 0)
                out[j] = mehler(a[:count], two[:, :count].T, np.clip(rho, -1, 1))
                continue
            for k, b in enumerate(two):
                scale = sizes[j] * others[k]
                rho = products[j, k] / scale if scale else self.zero
                out[j, k] = self._pair(a, b, sizes[j], others[k], rho)
        return out

    def _one(self, pair: Any, share: Share, when: Sequence[int]) -> np.ndarray:
        q, function = pair
        _, sizes, series = self._expanded(q, function, share, when)
        if self.dtype is float:
            return self._numbers([row[0] for row in series])
        nothing = Placed(Profile(S.One, X), self.zero, None)
        return self._numbers([
            row.series[0] if row.series is not None else self._pair(row, nothing, size, self.one, self.one)
            for row, size in zip(series, sizes, strict=True)
        ])

    def _correlation_row(self, name: str, t: int) -> None:
        kind, body = self.plan.kernels[name]
        values, steps = self.kernels[name], range(t + 1)
        for term in Add.make_args(body.expand()):
            number, factors = self._factors(term)
            even = self._turned(term) == term
            for share in self.shares[kind]:
                weight = share.weight * self.number(number.xreplace(share.known))
                if values.ndim == 1:
                    values[t] += weight * self._at_times(factors, share, t, t)[0, 0]
                    continue
                row = weight * self._at_times(factors, share, [t], steps)[0]
                values[t, : t + 1] += row
                if t:
                    values[:t, t] += row[:t] if even else weight * self._at_times(factors, share, range(t), [t])[:, 0]

    def _at_times(self, factors: Any, share: Share, first: Any, second: Any) -> np.ndarray:
        """The average of a product where t and s have values."""
        first, second = ([v] if isinstance(v, int) else list(v) for v in (first, second))
        steps = [second if self.plan.second in q.free_symbols else first for q, _ in factors]
        when = [[step_of(q.time, k) if q.time is not None else 0 for k in own]
                for (q, _), own in zip(factors, steps, strict=True)]  # fmt: skip
        shape = len(first), len(second)
        if not factors:
            return np.broadcast_to(self.one, shape)
        late = [self.plan.second in q.free_symbols for q, _ in factors]
        if len(factors) == 1:
            found = self._one(factors[0], share, when[0])
            return np.broadcast_to(found[None, :] if late[0] else found[:, None], shape)
        if late == [True, False]:
            factors, when, late = factors[::-1], when[::-1], late[::-1]
        if late == [False, True] and len(second) == 1:
            return self._product(factors[::-1], share, when[::-1]).T
        found = self._product(factors, share, when)
        if late == [False, True]:
            return found
        same = np.diagonal(found)  # both at one time
        return np.broadcast_to(same[None, :] if late[0] else same[:, None], shape)

    # -- observables -------------------------------------------------------------------------------

    def average(self, kind: Kind, body: Expr, times: Sequence[Time], steps: np.ndarray) -> np.ndarray:
        """The average of a sum of products of functions of at most two states, on one axis for each time."""
        out = self.zeros(tuple(len(steps) for _ in times))
        with self.precise():
            for term in Add.make_args(self._written(body).expand()):
                try:
                    number, factors = self._factors(term)
                except NotLinearLaw as problem:
                    raise UnsupportedLaw(
                        f"The run has no average of {term}: {problem}.",
                        "smooth functions of a state at one time, and products of two of them",
                        'evolve(..., method="paths")',
                    ) from None
                for share in self.shares[kind]:
                    weight = share.weight * self.number(number.xreplace(share.known))
                    out = out + weight * self._on_axes(factors, share, times, steps)
        return out

    def _on_axes(self, factors: Any, share: Share, times: Sequence[Time], steps: np.ndarray) -> Any:
        if not factors:
            return self.one
        when = [[0] if q.time is None else [step_of(q.time, int(k)) for k in (steps if q.time.free_symbols else [0])]
                for q, _ in factors]  # fmt: skip
        if len(factors) == 1:
            found = self._one(factors[0], share, when[0])[:, None]
            return on_axes(found, [open_time(factors[0][0]), None], times)
        return on_axes(self._product(factors, share, when), [open_time(q) for q, _ in factors], times)

    def response(self, kind: Kind, state: SiteQuantity, f: Any, t: int, s: int) -> Any:
        """The response of a state at one step to a source at another."""
        if state.now in self.functions:
            raise UnsupportedLaw(f"{state} is a function of a state.", "responses of the states", 'method="paths"')
        return super().response(kind, state, f, t, s)
