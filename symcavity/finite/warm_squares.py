"""Single sites at a temperature that weigh several fields by a square of them, for messages.

With what comes back the fields are a Gaussian about means that are linear in the cavity fields; so are the forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Matrix, S

from symcavity.finite.affine_laws import SiteStates
from symcavity.finite.compiled import CompiledLaw
from symcavity.finite.instance import Instance
from symcavity.finite.warm import WarmInstance
from symcavity.finite.warm_sites import Evaluated, WarmSites
from symcavity.model.averages import Expect, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law, Weight, weighed_field
from symcavity.model.system import System
from symcavity.sites.thermal.squares import Spread


class SquareLaw:
    """The averages of a kind of site that weighs several fields, as expressions of what pulls it.

    Attributes
    ----------
    moving : list of int
        The fields of states that the sites hear, in the order in which they are weighed.
    pulls, answers : list of Dummy
        For each of them what it is without what comes back; and row by row the factors of the forces in that.
    shared : dict
        The global variables, by the names that they have here.
    means : dict
        Fields and forces on them, by their names.
    """

    def __init__(self, law: Law, weight: Weight, shared: Sequence[Any] = ()) -> None:
        self.law, self.weight = law, weight
        self.moving = [law.fields.index(weighed_field(law, q)) for q, _ in weight.forces]
        self.pulls = [Dummy("eta", real=True) for _ in self.moving]
        self.answers = [Dummy("F", real=True) for _ in product(self.moving, repeat=2)]
        self.shared = {g: Dummy(str(g), real=True) for g in shared}
        names, k = [q for q, _ in weight.forces], len(self.moving)
        self.spread = Spread(weight, Matrix(k, k, self.answers))
        pull = Matrix([weight.energy.diff(q).xreplace(dict.fromkeys(names, S.Zero)) for q in names])
        means = self.spread.gain.inv() * (Matrix(self.pulls) - self.spread.couplings * pull)
        forces = -(self.spread.square * means + pull)
        self.means = dict(zip(names, means, strict=True))
        self.means |= {force: e for (_, force), e in zip(weight.forces, forces, strict=True)}

    @property
    def arguments(self) -> list[Dummy]:
        """What the expressions depend on."""
        return [*self.pulls, *self.answers, *self.shared.values()]

    def written(self, body: Expr) -> Expr:
        """An expression in fields, forces and responses, averaged thermally."""
        found = self.spread.in_means(body)
        answers = {r: self._response(r) for r in found.atoms(SiteResponse)}
        return found.xreplace(answers).xreplace(self.means)

    def _response(self, r: SiteResponse) -> Expr:
        told = self.means[r.state]
        field = r.field.args[0] if isinstance(r.field, Expect) else r.field
        names = [q for q, _ in self.weight.forces]
        return told.diff(self.pulls[names.index(field)] if field in names else field)

    def slopes(self) -> list[Expr]:
        """How forces and fields answer to the pulls: row by row, forces first."""
        rows = [force for _, force in self.weight.forces] + [q for q, _ in self.weight.forces]
        return [self.means[q].diff(eta) for q in rows for eta in self.pulls]


@lru_cache(maxsize=32)
def square_law(system: System, kind: Kind) -> SquareLaw:
    """The averages of a kind of site; they are written once for each system."""
    weight = system.weights[kind]
    return SquareLaw(system.laws[kind], weight, system.globals)


class SquareSites(WarmSites):
    """The sites of one kind that weigh several fields, each alone with its fields."""

    def __init__(self, w: WarmInstance, law: CompiledLaw) -> None:
        self.w, self.compiled, self.kind = w, law, law.kind
        self.site: Any = square_law(w.system, law.kind)
        self._known = {}
        self._forces = [force for _, force in self.site.weight.forces]
        sent, zero = [f.emission for f in law.heard_in], dict.fromkeys(self._forces, S.Zero)
        self._shares = [self._own(e.diff(force)) for e in sent for force in self._forces]
        self._rests = [self._own(e.xreplace(zero)) for e in sent]
        self._factors = {m: self._own(S.One) for m in self.site.moving}
        arguments = self.site.arguments
        rows = [*(self.site.written(q) for q in law.unknowns), *self.site.slopes(), self.site.spread.gain.det()]
        self._call = w.calls([e.xreplace(self.site.shared) for e in rows], arguments)

    def _at(
        self,
        bodies: Sequence[Expr],
        by: Sequence[Expr] = (),
        averages: Any = None,  # noqa: ARG002
        beside: Sequence[Any] = (),
    ) -> Evaluated:
        """Thermal averages at all sites, and their derivatives in some quantities, one row each."""
        written = [self.site.written(body) for body in bodies]
        rows = [*written, *(e.diff(g) for e in written for g in by)]
        call = self.w.calls([e.xreplace(self.site.shared) for e in rows], [*self.site.arguments, *beside])
        n = self.w.size(self.kind)
        return lambda args: np.array([np.broadcast_to(v, (n,)) for v in call(*args)])

    def unmoved(self, shared: np.ndarray) -> list[np.ndarray]:
        """The arguments of sites that hear nothing."""
        n, k = self.w.size(self.kind), len(self.site.moving)
        return [*np.zeros((k + k * k, n)), *np.tile(shared, (n, 1)).T]

    def still(self, body: Expr, response: float) -> np.ndarray:
        """An expression of sites that have not spoken yet: fields and forces are zero, and respond by a number."""
        return self.w.still(self.kind, body, response, self.site.means)

    def solve(
        self,
        cavity_field: np.ndarray,
        self_coupling: np.ndarray,
        shared: np.ndarray,
        _start: Any = None,
        _likely: Any = None,
    ) -> SiteStates:
        """Average every site; as :meth:`symcavity.finite.warm_sites.WarmSites.solve`."""
        law, n, moving = self.compiled, len(cavity_field), self.site.moving
        k = len(moving)
        shares = np.stack([of(shared) for of in self._shares], axis=-1).reshape(n, law.out, k)
        rests = np.stack([of(shared) for of in self._rests], axis=-1)
        back = self_coupling[:, moving]
        pulls = cavity_field[:, moving] + np.einsum("nmo,no->nm", back, rests)
        answers = np.einsum("nmo,nof->nmf", back, shares).reshape(n, k * k)
        args = [*pulls.T, *answers.T, *shared.T]
        rows = np.array([np.broadcast_to(v, (n,)) for v in self._call(*args)])
        z, det = rows[: law.k].T, rows[-1]
        slopes = rows[law.k : -1].reshape(2 * k, k, n).transpose(2, 0, 1)
        told = np.stack([z[:, law.unknowns.index(force)] for force in self._forces], axis=1)
        responses = np.zeros((n, law.out, law.m))
        responses[:, :, moving] = np.einsum("nof,nfm->nom", shares, slopes[:, :k])
        sent = np.einsum("nof,nf->no", shares, told) + rests

        def moved() -> np.ndarray:
            out = np.zeros((n, law.k, law.ke + law.kp))
            order = [*self._forces, *(q for q, _ in self.site.weight.forces)]
            for (j, q), (column, m) in product(enumerate(law.unknowns), enumerate(moving)):
                if q in order:
                    out[:, j, law.carrier[m]] = slopes[:, order.index(q), column]
            return out

        found = np.isfinite(rows).all(axis=0) & (det > 0)  # a Gaussian of fields without bound has no total
        return SiteStates(z, np.zeros((n, law.kp), dtype=bool), found, sent, responses, moved, lambda: args)


def warm_sites(system: System, instance: Instance) -> dict[Kind, WarmSites]:
    """The sites of every kind of an instance."""
    w = WarmInstance(system, instance)
    laws = instance.system.laws.items()
    return {k: (SquareSites if system.weights[k].others else WarmSites)(w, law) for k, law in laws}
