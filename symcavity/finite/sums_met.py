"""Conditions on sums over the sites of one kind, which are met as these sites solve their laws.

Each is met by a global variable that the sites feel, or that the sum defines: at rest with their states, at a
temperature with their thermal means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.errors import NotConverged
from symcavity.evaluate.solving.meeting import meet
from symcavity.finite.affine_laws import SiteStates
from symcavity.finite.instance import Instance, State
from symcavity.finite.single_site import SingleSites, unsolved
from symcavity.finite.warm_sites import WarmSites
from symcavity.model.kinds import Kind
from symcavity.model.system import System


class SumsMet:
    """The sites of one kind, solved together with the conditions on their sums.

    Parameters
    ----------
    system : System
    instance : Instance
    sites : mapping
        Those of each kind.
    kind : Kind
    met : list of (int, Symbol)
        Which conditions, each with the global variable that meets it.
    """

    def __init__(
        self,
        system: System,
        instance: Instance,
        sites: Mapping[Kind, SingleSites | WarmSites],
        kind: Kind,
        met: list[tuple[int, Symbol]],
    ) -> None:
        self.system, self.instance, self.sites, self.kind = system, instance, sites, kind
        self.rows = [row for row, _ in met]
        self.places = [system.globals.index(g) for _, g in met]

    def solved(
        self, state: State, eta: np.ndarray, coupling: np.ndarray, last: SiteStates | None, *, held: bool = False
    ) -> SiteStates:
        """Solve the sites at their fields; the global variables of the state are moved to where the conditions hold.

        Parameters
        ----------
        state : State
        eta, coupling : ndarray
            The cavity fields and the self-couplings.
        last : SiteStates or None
            What the sites did before.
        held : bool
            Whether the global variables stay as they are.
        """
        known: list[Any] = [None, None] if last is None else [last.z, last.active]
        shape = len(self.rows), len(self.rows)

        def at(values: np.ndarray) -> SiteStates:
            state.shared[self.places] = values
            shared = np.tile(state.shared, (len(eta), 1))
            found = self.sites[self.kind].solve(eta, coupling, shared, *known)
            if np.all(found.found):
                known[:] = [found.z, found.active]
            return found

        def conditions(values: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
            answer = at(values)
            if not np.all(answer.found):  # nothing is met where there are no such sites
                return np.full(shape[:1], np.nan), lambda: np.full(shape, np.nan)
            missed, slopes = self.missed(state, answer)
            return missed, lambda: slopes

        start = state.shared[self.places].copy()
        if held or not self.rows:
            return at(start)
        try:
            return at(meet(conditions, start))
        except NotConverged:
            if not np.all((answer := at(start)).found):
                raise unsolved(self.instance.system.laws[self.kind], answer) from None
            raise

    def missed(self, state: State, answer: SiteStates) -> tuple[np.ndarray, np.ndarray]:
        """The conditions, a site, and their derivatives in the variables that meet them."""
        compiled, n = self.instance.system, self.instance.size[self.kind]
        value, slope = np.zeros(len(self.rows)), np.zeros((len(self.rows), len(self.rows)))
        for other, (rows, *_) in compiled.conditions.items():
            here = [k for k, row in enumerate(self.rows) if row in rows]
            if here:
                body, moves = self._part(state, answer, other, [self.rows[k] for k in here])
                value[here] += body.sum(axis=0) / n
                slope[here] += moves.sum(axis=0) / n
        for r, row in enumerate(self.rows):
            partner = compiled.partners[row]
            self.instance.idle[row] = idle = partner >= 0 and bool(state.shared[partner] < value[r])
            if idle:
                value[r], slope[r] = state.shared[partner], np.array(self.places) == partner
        return value, slope

    def _part(self, state: State, answer: SiteStates, other: Kind, wanted: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """What the sites of a kind add to some conditions, and the derivatives of that, site by site."""
        site = self.sites[other]
        if isinstance(site, WarmSites):
            bodies = [self.system.global_conditions[row][other] for row in wanted]
            args = answer.args if other == self.kind else site.unmoved(state.shared)
            return site.summed(bodies, args, [self.system.globals[p] for p in self.places])
        compiled, m = self.instance.system, self.instance.size[other]
        rows, body, body_slopes, body_shared = compiled.conditions[other]
        order, law = [rows.index(row) for row in wanted], compiled.laws[other]
        if other != self.kind:
            args = self.instance.arguments(other, state, np.zeros((m, law.m)))
            return body(args, m)[:, order], body_shared(args, m)[:, order][:, :, self.places]
        args = answer.args
        pairs = np.where(answer.active[:, :, None], law.p_shared(args, m), law.q_shared(args, m))
        felt = np.concatenate([law.shared(args, m), pairs], axis=1)[:, :, self.places]
        moves = body_shared(args, m)[:, order][:, :, self.places]
        return body(args, m)[:, order], moves - body_slopes(args, m)[:, order] @ answer.moved @ felt
