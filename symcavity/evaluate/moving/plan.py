"""The computation of a theory of states that move, as data: the parts of its laws, statistics and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Expr, Float, Mul, S

from symcavity.errors import InternalError, UnsupportedLaw
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.moving.values import RunValues
from symcavity.evaluate.progress import counted
from symcavity.method.moving import kind_of_kernel
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.motion import Update
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.times import Time, other_times
from symcavity.record.order_parameters import MovingParameter
from symcavity.sites.protocol import Feedback, Heard


@dataclass(frozen=True)
class Term:
    """One kernel in a covariance or in a self-coupling, with what multiplies it; without a kernel, a given number."""

    factor: Expr
    kernel: Any  # a MovingParameter, or None


@dataclass(frozen=True)
class Echo:
    """The feedback of an emission: its kernels, the emission, the field, and the smallest delay."""

    terms: tuple[Term, ...]
    emission: Expr
    through: RandomField
    delay: int


@dataclass(frozen=True)
class Response:
    """A kernel that is a mean response: of a state of a kind, times a weight, to the source of a field."""

    kind: Kind
    weight: Expr
    state: SiteQuantity
    field: RandomField


@dataclass(frozen=True)
class StateEquation:
    """What gives one state: its equation at values, and the fields in it with their factors."""

    update: Update
    rhs: Expr
    fields: tuple[tuple[RandomField, Expr], ...]


class MovingPlan:
    """A theory at values, part by part.

    Attributes
    ----------
    rows : dict
        By state.
    covariances : dict
        By pair of heard fields of one kind: the terms of the covariance of the first at t with the second at s.
    echoes : dict
        By heard field: what comes back.
    kernels : dict
        By name: the kind, and what is averaged, at the times t and s.
    shared : dict
        By variable that all sites share: what gives it, in averages.
    responses : dict
        By name of a kernel that is a response: what it is the response of.
    initial : dict
        By state: its first values at values, by step.
    """

    def __init__(self, theory: Any, values: RunValues) -> None:
        self.system, self.motion, self.values = theory.system, theory.system.motion, values
        self.time: Time = self.motion.time
        self.second = other_times(self.time)[0]
        self.sites = theory.inserted
        self.heard: dict[RandomField, Heard] = {h.declared: h for s in self.sites.values() for h in s.heard}
        self.rows = {q: self._row(u) for q, u in self.motion.updates.items() if q.site}
        self.shared = {q: values.put_into(u.equation.rhs) for q, u in self.motion.updates.items() if not q.site}
        self.initial = {
            q: {k: values.put_into(v) for k, v in some.items()} for q, some in self.motion.initial.items()
        }
        self.covariances: dict[tuple[RandomField, RandomField], tuple[Term, ...]] = {}
        self.echoes: dict[RandomField, tuple[Echo, ...]] = {}
        self.factors = {f: values.put_into(h.factor) for f, h in self.heard.items()}
        for site in self.sites.values():
            for h in site.heard:
                found = [self._echo(site.means[k.symbol], k) for k in h.feedback]
                self.echoes[h.declared] = tuple(e for e in found if e.terms)
                for g in site.heard:
                    self.covariances[h.declared, g.declared] = self._terms(site.covariance[h.eta, g.eta])
        self.kernels: dict[str, tuple[Kind, Expr]] = {}
        self.responses: dict[str, Response] = {}
        every = [*self.covariances.values(), *(e.terms for several in self.echoes.values() for e in several)]
        heard = {term.kernel.base for terms in every for term in terms if term.kernel is not None}
        for symbol, meaning in theory.order_parameters.items():
            kind, body = kind_of_kernel(meaning), values.put_into(meaning.args[0])
            nodes = body.atoms(SiteResponse)
            if not nodes:
                self.kernels[symbol.base] = kind, body
                continue
            if symbol.base not in heard:  # at these values it comes back nowhere
                continue
            (node, *others), weight = list(nodes), body.xreplace(dict.fromkeys(nodes, S.One))
            if others or (body - weight * node).expand() != 0:
                raise UnsupportedLaw(
                    f"The feedback through a sum of states is {meaning}, which is not the response of one state.",
                    "couplings that return the message of one state, or of one function of it",
                    "a state of its own for the message, Eq(m[i, t], ...), and m[j, t] in the sum",
                )
            self.responses[symbol.base] = Response(kind, weight, node.state, self.field_named(kind, node.field))

    def field_named(self, kind: Kind, name: SiteQuantity | None) -> RandomField:
        """The field whose equation a name stands for; of a kind that hears one field only, that one."""
        heard = self.sites[kind].heard
        return next(h.declared for h in heard if name is None or (h.carrier is not None and h.carrier.now == name.now))

    def _echo(self, mean: Expr, k: Feedback) -> Echo:
        return Echo(self._terms(mean), self.values.put_into(k.emission), k.through, k.delay or 0)

    def _row(self, update: Update) -> StateEquation:
        rhs = self.values.put_into(update.equation.rhs)
        (kind,) = update.state.site
        fields = [h.declared for h in self.sites[kind].heard if rhs.has(h.declared.symbol)]
        factors = tuple((f, rhs.diff(f.symbol)) for f in fields)
        return StateEquation(update, rhs.xreplace(dict.fromkeys((f.symbol for f in fields), S.Zero)), factors)

    def _terms(self, expr: Expr) -> tuple[Term, ...]:
        out = []
        expr = self.values.put_into(expr)
        given = {node: mean_of(self.values.laws, node.body) for node in expr.atoms(Average)}
        for term in Add.make_args(expr.xreplace(given).expand()):
            kernels = term.atoms(MovingParameter)
            if term == 0:
                continue
            if not kernels:
                out.append(Term(term, None))
                continue
            if len(kernels) != 1 or Mul(*(term / next(iter(kernels))).as_ordered_factors()).has(*kernels):
                raise InternalError(f"The term {term} of a covariance or of a self-coupling is not a kernel.")
            (kernel,) = kernels
            out.append(Term(term / kernel, kernel))
        return tuple(out)

    def forward(
        self, first: int, steps: int, hear: Callable[[RandomField, int], Any], fill: Callable[[SiteQuantity, int], Any]
    ) -> None:
        """Give fields and states their values step by step, in the order of the motion; what keeps still, once."""
        with counted(steps + 1, "steps filled") as count:
            for step in range(first, steps + 1):
                for node in self.motion.order:
                    if node.time is None and step != first:
                        continue
                    when = step if node.time is not None else 0
                    if not isinstance(node, RandomField):
                        fill(node, when)
                    elif when >= 0:
                        hear(node, when)
                if step >= 0:
                    count.advance()

    def at(self, kernel: MovingParameter, first: int, second: int) -> tuple[int, ...]:
        """The steps at which a kernel is taken, where t and s have values."""
        rule: Mapping[Any, int] = {self.time: first, self.second: second}
        return tuple(rule[k] for k in kernel.times)

    def split(self, body: Expr) -> tuple[Expr, Expr] | None:
        """An averaged product by its factors at t and at s; None if it is not a product."""
        first: list[Expr] = []
        second: list[Expr] = []
        for factor in Mul.make_args(body):
            here = {t for t in factor.free_symbols if isinstance(t, Time)}
            if {self.time, self.second} <= here:
                base, power = factor.as_base_exp()
                parts = self.split(base) if base.is_Mul and power.is_Integer else None
                if parts is None:
                    return None
                first.append(parts[0] ** power)
                second.append(parts[1] ** power)
            else:
                (second if self.second in here else first).append(factor)
        return Mul(*first), Mul(*second)


def mean_of(laws: Mapping[Kind, SiteLaw], body: Expr) -> Expr:
    """The average of a polynomial in quenched parameters of one kind, exactly where the laws allow it."""
    return Add(*(_moment(laws, term) for term in Add.make_args(body.expand())))


def _moment(laws: Mapping[Kind, SiteLaw], monomial: Expr) -> Expr:
    from sympy.stats import E

    quantities = site_quantities(monomial, Quenched)
    if not quantities:
        return monomial
    (kind,) = {k for q in quantities for k in q.site}
    law, powers = laws[kind], monomial.as_powers_dict()
    number = monomial.as_independent(*quantities, as_Add=False)[0]
    rest = (monomial / number) / Mul(*(q ** powers[q] for q in quantities))
    if rest != 1:
        raise UnsupportedLaw(f"{monomial} is not a product of powers of quenched parameters.", "polynomials in them")
    out = number
    for q, variable in law.continuous:
        if q.at_site() in quantities:
            out *= S(E(variable ** powers[q.at_site()]))
    names = [q.family for q in quantities if q.family in law.names]
    if names and law.arrays:
        columns = [law.arrays[q] ** float(powers[q.at_site()]) for q in names]
        return out * Float(float(np.prod(columns, axis=0).mean()))
    if names:
        total: Expr = S.Zero
        for point, weight in law.marginal(names).items():
            total += S(weight) * Mul(*(S(v) ** powers[q.at_site()] for q, v in zip(names, point, strict=True)))
        out *= total
    return out
