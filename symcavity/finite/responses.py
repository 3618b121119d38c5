"""Responses of the states of a finite instance to sources, by linear algebra and by solving again."""

from __future__ import annotations

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.instance import Instance
from symcavity.finite.minimum import Solved, solve_instance
from symcavity.finite.newton import linearise
from symcavity.model.quantities import DATUM, FEATURE
from symcavity.model.system import System


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

    def __init__(self, instance: Instance, solved: Solved) -> None:
        if solved.state is None or not solved.sharp:
            raise NotConverged(
                f"The instance with seed {instance.seed} has no response: its solution is degenerate "
                "(both members of a pair vanish).",
                hint="a generic instance; other values",
            )
        self.instance, self.state = instance, solved.state
        self._system = linearise(instance, solved.state)
        self._matrices: dict[tuple[str, int], dict[str, np.ndarray]] = {}

    def matrix(self, side: str, field: int = 0) -> dict[str, np.ndarray]:
        """Return the response of every variable to the source of every site of one side.

        Parameters
        ----------
        side : str
            The side whose sites carry the sources.
        field : int
            Which of its random fields: its carrying equation receives the source.

        Returns
        -------
        dict
            By side, an array (sites, variables, sources); ``'shared'`` for the globals.
        """
        key = (side, field)
        if key not in self._matrices:
            inst, laws = self.instance, self.instance.system.laws
            n = inst.size[side]
            rhs = {s: np.zeros((inst.size[s], laws[s].k, n)) for s in (FEATURE, DATUM)}
            rhs[side][np.arange(n), laws[side].carrier[field], np.arange(n)] = 1.0
            found = self._system.solve(rhs[FEATURE], rhs[DATUM], np.zeros((inst.system.count, n)))
            self._matrices[key] = {FEATURE: found[0], DATUM: found[1], "shared": found[2]}
        return self._matrices[key]

    def local(self, side: str, variable: int, field: int = 0) -> np.ndarray:
        """Return the response of each site's variable to the source of the same site."""
        diagonal = np.arange(self.instance.size[side])
        return self.matrix(side, field)[side][diagonal, variable, diagonal]


def response_by_source(
    system: System,
    instance: Instance,
    side: str,
    site: int,
    *,
    field: int = 0,
    size: float = 1e-6,
) -> dict[str, np.ndarray]:
    """Measure the response to the source of one site by solving the instance again, from scratch.

    Parameters
    ----------
    system : System
        The system.
    instance : Instance
        The instance; its sources are restored afterwards.
    side, site, field
        Where the source acts.
    size : float
        The size of the source; the difference is central.

    Returns
    -------
    dict
        By side, an array (sites, variables).
    """
    row = instance.system.laws[side].carrier[field]
    ends = []
    for sign in (1.0, -1.0):
        instance.source[side][site, row] += sign * size
        try:
            solved = solve_instance(system, instance)
        finally:
            instance.source[side][site, row] -= sign * size
        if solved.state is None:
            raise NotConverged(f"The instance with seed {instance.seed} is infeasible.")
        ends.append(solved.state)
    return {s: (ends[0].site[s] - ends[1].site[s]) / (2 * size) for s in (FEATURE, DATUM)}


__all__ = ["Responses", "response_by_source"]
