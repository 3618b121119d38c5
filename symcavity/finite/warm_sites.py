"""Single sites at a temperature for messages: thermal means and responses at many cavity fields and self-couplings.

A site's own weight takes in what the others answer: ``eta*x + F*x**2/2`` of a state, a Gaussian about eta of a field.
Its averages are those of theories: sums, and integrals where these have no closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, S, oo, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.finite.affine_laws import SiteStates
from symcavity.finite.compiled import CompiledLaw
from symcavity.finite.warm import WarmInstance
from symcavity.model.averages import SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law, Weight
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.states import Mixture
from symcavity.sites.thermal.unanswered import unanswered

Evaluated = Callable[[Sequence[np.ndarray]], np.ndarray]


class WarmLaw:
    """The averages of one kind of site as expressions of what pulls it.

    Attributes
    ----------
    pulls, answers : list of Dummy
        For each field of states that the sites hear: what it adds to the pull without what comes back, and the factor
        of what the site sends in what comes back.
    shared : dict
        The global variables, by the names that they have here.
    summed : Mixture
        The averages in these, as sums and integrals.
    free : ThermalAverages
        Those of a field without its own energy: what it is over the measure of all other sites.
    """

    def __init__(self, law: Law, weight: Weight, shared: Sequence[Any] = ()) -> None:
        self.law, self.weight = law, weight
        self.moving = [m for m, f in enumerate(law.fields) if f.states()]
        named = [law.carrier(f).lhs for f in law.fields]
        given = {q: q for q, f in zip(named, law.fields, strict=True) if not f.states() and isinstance(q, SiteQuantity)}
        self.names = {m: named[m] for m in self.moving}
        signs = {"positive": True} if weight.is_field else {"real": True}
        self.pulls = [Dummy("eta", real=True) for _ in self.moving]
        self.answers = [Dummy("F", **signs) for _ in self.moving]
        self.shared = {g: Dummy(str(g), real=True) for g in shared}
        rows = () if weight.is_field else tuple(zip(self.names.values(), self.pulls, self.answers, strict=True))
        field, answer = Add(*self.pulls), Add(*self.answers)
        self.summed = Mixture(weight, answer, given, field, rows)
        bare = replace(weight, energy=S.Zero, bounds=(), beside=()) if weight.is_field else weight
        self.free = replace(self.summed, weight=bare)

    @cached_property
    def alone(self) -> ThermalAverages:
        """The averages where nothing comes back."""
        return unanswered(self.summed)

    @property
    def arguments(self) -> list[Dummy]:
        """What the expressions depend on."""
        return [*self.pulls, *self.answers, *self.shared.values()]


@lru_cache(maxsize=32)
def warm_laws(system: System) -> dict[Kind, WarmLaw]:
    """The averages of each kind of site that weighs one field or a state; written once for each system."""
    weights = {kind: weight for kind, weight in system.weights.items() if not weight.others}
    return {kind: WarmLaw(system.laws[kind], weight, system.globals) for kind, weight in weights.items()}


def passable(system: System) -> None:
    """Refuse Gibbs measures whose messages are not passed, before any instance is drawn.

    Raises
    ------
    UnsupportedLaw
        For the lowest minimum, and states whose energy is no square.
    """
    for weight in system.weights.values():
        if weight.is_cold:
            raise UnsupportedLaw(
                "Messages are not passed for the lowest minimum: where a site has two minima, its message jumps "
                "when the other one becomes the lower one.",
                "problem.gibbs(beta) at a finite temperature",
            )
    for kind in system.laws:
        if kind not in system.weights and system.weights:
            raise UnsupportedLaw(
                f"The {kind.sites} have no weight.", "measures in which every kind of site has a weight"
            )
    for kind, weight in system.weights.items():
        if not weight.others:
            warm_laws(system)[kind].summed.written(weight.mean)  # states whose energy is no square are refused by it


class WarmSites:
    """The sites of one kind, each alone with its fields.

    Parameters
    ----------
    w : WarmInstance
        The instance.
    law : CompiledLaw
        What the sites hear and send.
    """

    def __init__(self, w: WarmInstance, law: CompiledLaw) -> None:
        self.w, self.compiled, self.kind = w, law, law.kind
        self.site = warm_laws(w.system)[law.kind]
        weight = self.site.weight
        self._known: dict[Any, Any] = {}
        answers = [SiteResponse(weight.mean), *([SiteResponse(weight.state)] if weight.is_field else [])]
        self._solution = self._at([weight.mean, *answers, *law.unknowns])
        sent = [f.emission for f in law.heard_in]
        # what does not fluctuate is sent as it is, and what is sent of a mean is linear in it
        self._shares = [self._own(e.diff(weight.mean)) for e in sent]
        self._rests = [self._own(e.xreplace({weight.mean: S.Zero})) for e in sent]
        self._factors = {m: self._own(self._factor(law.fields[m])) for m in self.site.moving}

    def _factor(self, f: RandomField) -> Expr:
        return S.One if self.site.weight.is_field else self.site.law.coefficient(f)

    def _at(
        self,
        bodies: Sequence[Expr],
        by: Sequence[Expr] = (),
        averages: ThermalAverages | None = None,
        beside: Sequence[Any] = (),
    ) -> Evaluated:
        """Thermal averages at all sites, and their derivatives in some quantities, one row each.

        Where nothing comes back they are those of sites without an answer.  They are functions of the site's
        arguments, and of quantities beside them.
        """
        usual = averages or self.site.summed

        def call(averages: ThermalAverages) -> Any:
            if isinstance(averages, Mixture) and averages.is_wide:
                return self.w.calls([S.NaN] * (len(bodies) * (1 + len(by))), [*self.site.arguments, *beside])
            written = [averages.written(body) for body in bodies]
            rows = [*written, *(e.diff(g) for e in written for g in by)]
            rows = [S.NaN if e.has(zoo, oo, -oo) else e.xreplace(self.site.shared) for e in rows]  # nothing holds them
            return self.w.calls(rows, [*self.site.arguments, *beside])

        whole, alone = call(usual), cache(lambda: call(self.site.alone))
        k, n = len(self.site.moving), self.w.size(self.kind)

        def evaluated(args: Sequence[np.ndarray]) -> np.ndarray:
            quiet = np.broadcast_to(np.sum(args[k : 2 * k], axis=0) == 0, (n,))
            out = np.empty((len(bodies) * (1 + len(by)), n))
            for function, rows in ((alone, np.flatnonzero(quiet)), (lambda: whole, np.flatnonzero(~quiet))):
                if rows.size:
                    values = function()(*(a[rows] for a in args), at=rows)
                    out[:, rows] = [np.broadcast_to(v, rows.shape) for v in values]
            return out

        return evaluated

    def _own(self, expr: Expr) -> Callable[[np.ndarray], np.ndarray]:
        """An expression in the site's own parameters and the global variables, at all sites."""
        function = self.w.call(expr.xreplace(self.site.shared), [*self.site.shared.values()])
        return lambda shared: np.broadcast_to(function(*shared.T), (self.w.size(self.kind),))

    def _refuse_lost(self, spread: np.ndarray, mean: np.ndarray) -> None:
        """Say so where a weight is zero in double: its Gaussian is far from where the energy is low."""
        lost = int(np.sum((spread > 0) & np.isnan(mean)))
        if lost and self.site.summed.mean.has(GaussianAverage):
            raise NotConverged(
                f"The weight of a single {self.kind} site is too small for a number at {lost} of {len(mean)} fields.",
                hint="a higher temperature, or problem.message_passing(...) at none",
            )

    def values(self, body: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
        """The thermal average of an expression of a site, at all sites."""
        if body not in self._known:
            self._known[body] = self._at([body])
        return np.asarray(self._known[body](args)[0])

    def without_energy(self, body: Expr, args: Sequence[np.ndarray], given: Mapping[Any, np.ndarray]) -> np.ndarray:
        """The average of an expression of a field over the measure of all other sites.

        Parameters
        ----------
        body : Expr
        args : sequence of ndarray
            At what the sites were averaged last.
        given : mapping
            Numbers that the expression holds, by site.
        """
        found = self._at([body], averages=self.site.free, beside=list(given))
        return np.asarray(found([*args, *given.values()])[0])

    def factors(self, shared: np.ndarray) -> np.ndarray:
        """Those of the fields in what pulls the sites: (sites, fields)."""
        out = np.zeros((self.w.size(self.kind), self.compiled.m))
        for m, of in self._factors.items():
            out[:, m] = of(shared)
        return out

    def unmoved(self, shared: np.ndarray) -> list[np.ndarray]:
        """The arguments of sites that hear nothing."""
        n = self.w.size(self.kind)
        return [*np.zeros((2 * len(self.site.moving), n)), *np.tile(shared, (n, 1)).T]

    def summed(
        self, bodies: Sequence[Expr], args: Sequence[np.ndarray], among: Sequence[Expr]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Averages of expressions of a site, (sites, expressions), and their derivatives in global variables."""
        key, n = (tuple(bodies), tuple(among)), self.w.size(self.kind)
        if key not in self._known:
            self._known[key] = self._at(*key)
        found = self._known[key](args)
        return found[: len(bodies)].T, found[len(bodies) :].reshape(len(bodies), len(among), n).transpose(2, 0, 1)

    def still(self, body: Expr, response: float) -> np.ndarray:
        """An expression of sites that have not spoken yet: their states are zero, and respond by a number."""
        weight = self.site.weight
        return self.w.still(self.kind, body, response, [weight.mean, *weight.states, *self.site.summed.heard])

    def solve(
        self,
        cavity_field: np.ndarray,
        self_coupling: np.ndarray,
        shared: np.ndarray,
        _start: Any = None,
        _likely: Any = None,
    ) -> SiteStates:
        """Average every site with the field ``eta + F * sent``.

        Parameters
        ----------
        cavity_field, self_coupling, shared : ndarray
            As in :meth:`symcavity.finite.single_site.SingleSites.solve`.
        """
        law, n, site = self.compiled, len(cavity_field), self.site
        shares, rests = ([of(shared) for of in parts] for parts in (self._shares, self._rests))
        factors = {m: of(shared) for m, of in self._factors.items()}
        pulls, answers = [], []
        for m in site.moving:
            back = self_coupling[:, m]
            pulls.append(factors[m] * (cavity_field[:, m] + sum(back[:, k] * rest for k, rest in enumerate(rests))))
            answers.append(factors[m] * sum(back[:, k] * share for k, share in enumerate(shares)) + np.zeros(n))
        args = [*pulls, *answers, *shared.T]
        mean, told, *rows = self._solution(args)
        moves, unknowns = (rows[0], rows[1:]) if site.weight.is_field else (told, rows)
        sent = np.stack([share * mean + rest for share, rest in zip(shares, rests, strict=True)], axis=1)
        responses = np.zeros((n, law.out, law.m))
        for m in site.moving:
            responses[:, :, m] = np.stack(shares, axis=1) * (told * factors[m])[:, None]
        z = np.stack(unknowns, axis=1)
        # a thermal response is a variance: where it has none, or a weight no total, there is no such site
        found = np.isfinite(sent).all(axis=1) & np.isfinite(z).all(axis=1) & (moves >= 0) & np.isfinite(told)
        if site.weight.is_field:
            found &= np.sum(answers, axis=0) >= 0
            self._refuse_lost(np.sum(answers, axis=0), mean)

        def moved() -> np.ndarray:
            out = np.zeros((n, law.k, law.ke + law.kp))
            for j, q in enumerate(law.unknowns):
                for m in site.moving:
                    column = law.carrier[m]
                    if q == site.weight.mean:
                        out[:, j, column] = told
                    elif q == site.weight.state:
                        out[:, j, column] = moves
                    else:
                        own = float(q == site.names[m])
                        named = [r for o, r in zip(site.moving, answers, strict=True) if site.names[o] == q]
                        out[:, j, column] = own + sum(r * moves for r in named)
            return out

        active = np.zeros((n, law.kp), dtype=bool)
        return SiteStates(z, active, found, sent, responses, moved, lambda: args)

