"""The proof that an instance has no solution: constraints that contradict each other (Farkas)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.cuts import cutting_planes
from symcavity.finite.instance import Instance
from symcavity.finite.quadratic import Assembled, quadratic_program
from symcavity.model.system import System

_SURE, _CLEAR = 1e-9, 1e-7


@dataclass(frozen=True)
class Contradiction:
    """Multipliers with which the linear constraints of an instance add up to a contradiction.

    The constraints are ``matrix @ z + offset >= 0`` (or ``= 0``) for the variables z. With multipliers ``y`` (not
    negative for inequalities) and ``matrix.T @ y = 0`` they add up to ``y @ offset >= 0``, which is false.

    Attributes
    ----------
    seed : int
        The seed of the instance.
    program : Assembled
        Its constraints; of a convex set, those of the points that matter.
    multipliers : ndarray
        One for each constraint, at most one in absolute value.
    """

    seed: int
    program: Assembled
    multipliers: np.ndarray

    @property
    def gap(self) -> float:
        """What the constraints add up to, which would have to be zero or positive."""
        return float(self.multipliers @ self.program.offset)

    @property
    def reach(self) -> float:
        """No point whose variables sum up to less than this, in absolute value, meets the constraints."""
        return -self.gap / max(float(np.max(np.abs(self.program.matrix.T @ self.multipliers), initial=0.0)), 1e-300)

    def __str__(self) -> str:
        count = np.count_nonzero(self.multipliers)
        return f"seed {self.seed}: {count} constraints, weighted by their multipliers, add up to 0 >= {-self.gap:.3g}"


def contradiction(system: System, instance: Instance) -> Contradiction:
    """Prove that an instance has no solution.

    Parameters
    ----------
    system : System
        Its system, with a Lagrangian that is quadratic beside convex sets.
    instance : Instance
        The instance.

    Raises
    ------
    NotConverged
        If its constraints do not contradict each other beyond rounding.
    """
    from scipy.optimize import linprog

    program = quadratic_program(system)
    assert program is not None  # noqa: S101 - without one no instance is called infeasible
    made = program.assemble(instance)
    if any(any(form.cut) for form in program.forms.values()):
        *_, made = (found if isinstance(found, Assembled) else made for found in cutting_planes(program, instance))
    bounds = np.stack([np.where(made.equal, -1.0, 0.0), np.ones(len(made.equal))], axis=1)
    found = linprog(made.offset, A_eq=made.matrix.T, b_eq=np.zeros(made.matrix.shape[1]), bounds=bounds, method="highs")
    if found.status == 0:
        y = np.clip(np.where(np.abs(found.x) > _SURE, found.x, 0.0), bounds[:, 0], 1.0)
        proof = Contradiction(instance.seed, made, y)
        if proof.gap < -_CLEAR and proof.reach > 1 / _CLEAR:
            return proof
    raise NotConverged(
        f"The instance with seed {instance.seed} has no solution as far as its solver can tell, but its constraints "
        "do not contradict each other beyond rounding.",
        hint="another seed or size",
    )


__all__ = ["Contradiction", "contradiction"]
