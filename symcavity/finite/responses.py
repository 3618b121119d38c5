"""Responses of the states of a finite instance to sources, by linear algebra."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from symcavity.errors import FlatMinimum, NotConverged
from symcavity.finite.instance import Instance, State
from symcavity.finite.linearised import LinearResponse
from symcavity.finite.minimum import SolvedInstance
from symcavity.finite.newton import linearise, scale_of
from symcavity.finite.responses_by_parts import InstanceByParts, jumps
from symcavity.model.kinds import Kind

# how far beside a solution slopes are compared, by what share they may differ, and how much of a jump stays
_BESIDE, _JUMP, _STAYS = 1e-12, 1e-3, 0.75


class Responses:
    """The response matrices of a solved instance, exact on its active set.

    The infinitesimal source is added to the right-hand side of the equation that carries the random
    field of the site.

    Parameters
    ----------
    instance : Instance
        The instance.
    solved : Solved
        Its solution, with every pair on a definite branch.
    """

    def __init__(self, instance: Instance, solved: SolvedInstance) -> None:
        if solved.state is None or not solved.sharp:
            raise NotConverged(
                f"The instance with seed {instance.seed} has no response: its solution is degenerate "
                "(both members of a pair vanish).",
                hint="a generic instance; other values",
            )
        if solved.flat is not None and solved.flat.dimension:
            raise FlatMinimum(
                f"The instance with seed {instance.seed} has no response: {solved.flat.words}.",
                solved.flat.dimension,
                "a penalty; another load",
            )
        if _lies_on_a_kink(instance, solved.state):
            raise NotConverged(
                f"The instance with seed {instance.seed} has no response: its solution lies where a law changes its "
                "slope, and moves differently to either side.",
                hint="a generic instance; observables other than responses",
            )
        self.instance, self.state = instance, solved.state
        self._system = linearise(instance, solved.state)
        if self._system.nullity:
            raise NotConverged(
                f"The instance with seed {instance.seed} has no response: its minimum has no curvature in "
                f"{self._system.nullity} directions.",
                hint="a penalty; observables other than responses",
            )
        self._local: dict[tuple[Kind, int], np.ndarray] = {}

    def matrix(self, kind: Kind, field: int = 0) -> LinearResponse:
        """Return the response of every variable to the source of every site of one kind.

        Parameters
        ----------
        kind : Kind
            The kind whose sites carry the sources.
        field : int
            Which of its random fields: its carrying equation receives the source.

        Returns
        -------
        Moved
            By kind, an array (sites, variables, sources); and the globals.
        """
        n = self.instance.size[kind]
        right = self.instance.right(n)
        right[kind][np.arange(n), self.instance.system.laws[kind].carrier[field], np.arange(n)] = 1.0
        return self._system.solve(right)

    @cached_property
    def by_parts(self) -> InstanceByParts | None:
        """The average responses of a solution that jumps; None where the response matrices say it all."""
        return InstanceByParts(self.instance, self.state) if jumps(self.instance, self.state) else None

    def local(self, kind: Kind, variable: int, field: int = 0) -> np.ndarray:
        """Return the response of each site's variable to the source of the same site.

        Where the solution jumps, only the averages of these numbers over many sites are responses.
        """
        if np.any(self._system.planes[kind].loose[:, variable]):
            raise FlatMinimum(
                f"The instance with seed {self.instance.seed} has no response of "
                f"{self.instance.system.laws[kind].labels[variable]}: "
                "a variable with two equal constraints has no unique multiplier.",
                0,
                "each constraint once; responses of the variables of the declaration",
            )
        if self.by_parts is not None:
            return self.by_parts.local(kind, variable)
        if (kind, field) not in self._local:
            self._local[kind, field] = np.einsum("nkn->nk", self.matrix(kind, field).site[kind]).copy()
        return self._local[kind, field][:, variable]


def _lies_on_a_kink(instance: Instance, state: State) -> bool:
    """Whether slopes of a law differ on both sides of a solution, as those of ``Max(0, u)**2`` do at zero.

    They differ as much at half the distance; where they only bend, as the slope of ``u**2`` does, by half as much.
    """
    system, step = instance.system, _BESIDE * scale_of(state)
    if system.affine:
        return False
    for kind, law in system.laws.items():
        if law.sets is not None:
            continue
        n, fields = instance.size[kind], instance.fields(kind, state)
        beside = [
            instance.arguments(kind, State({**state.site, kind: state.site[kind] + s}, state.shared), fields + s)
            for s in (-step, step, -step / 2, step / 2)
        ]
        for table in (law.slopes, law.hears):
            below, above, nearer, beyond = (table(args, n) for args in beside)
            jump = np.abs(above - below)
            stays = np.abs(beyond - nearer) > _STAYS * jump
            if np.any(stays & (jump > _JUMP * (np.abs(above) + np.abs(below)))):
                return True
    return False
