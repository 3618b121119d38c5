"""Proofs that an instance has no solution: constraints that contradict each other, or an objective without end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from symcavity.errors import NotConverged
from symcavity.finite.cuts import cutting_planes
from symcavity.finite.instance import Instance
from symcavity.finite.quadratic import Assembled, quadratic_program
from symcavity.finite.units import InstanceUnits
from symcavity.model.system import System

_SURE, _CLEAR = 1e-9, 1e-7


@dataclass(frozen=True)
class InstanceContradiction:
    """Multipliers with which the constraints of an instance add up to a contradiction (Farkas).

    The constraints are ``matrix @ z + offset >= 0`` (or ``= 0``) for the variables z. With multipliers ``y`` (not
    negative for inequalities) and ``matrix.T @ y = 0`` they add up to ``y @ offset >= 0``, which is false.

    Attributes
    ----------
    program : Assembled
        The constraints; of a convex set, those of the points that matter.
    multipliers : ndarray
        One for each constraint, at most one in absolute value.
    """

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

    @property
    def holds(self) -> bool:
        """Whether this is a proof beyond rounding."""
        return self.gap < -_CLEAR and self.reach > 1 / _CLEAR

    def __str__(self) -> str:
        count = np.count_nonzero(self.multipliers)
        return f"{count} constraints, weighted by their multipliers, add up to 0 >= {-self.gap:.3g}"


@dataclass(frozen=True)
class InstanceDescent:
    """A direction in which the objective of an instance falls for ever, without meeting a constraint.

    The objective is ``z'Hz/2 + slope'z``: along the direction d it has no curvature, ``H @ d = 0``, and falls,
    ``slope @ d < 0``; the constraints grow, ``matrix @ d >= 0``, and equations stay, ``matrix @ d = 0``.

    Attributes
    ----------
    program : Assembled
        The program.
    direction : ndarray
        One entry for each variable, at most one in absolute value.
    """

    program: Assembled
    direction: np.ndarray

    @property
    def holds(self) -> bool:
        """Whether this is a proof beyond rounding."""
        made, d = self.program, self.direction
        along = made.matrix @ d
        wrong = np.concatenate([made.hessian @ d, along[made.equal], np.minimum(along[~made.equal], 0.0)])
        return bool(-(made.slope @ d) > max(_CLEAR, np.max(np.abs(wrong), initial=0.0) / _CLEAR))

    def __str__(self) -> str:
        fall = -self.program.slope @ self.direction
        return f"the objective falls by {fall:.3g} along a direction that goes on for ever"


def proof(system: System, instance: Instance) -> InstanceContradiction | InstanceDescent | None:
    """Prove that an instance has no solution; None if it has one, where rounding hides the proof, or without a program.

    Parameters
    ----------
    system : System
        Its system, with a Lagrangian that is quadratic beside convex sets.
    instance : Instance
        The instance.
    """
    program = quadratic_program(system)
    if program is None:
        return None
    instance = InstanceUnits(instance).instance(instance)
    made, cut = program.assemble(instance), any(any(form.cut) for form in program.forms.values())
    if cut:
        *_, made = (found if isinstance(found, Assembled) else made for found in cutting_planes(program, instance))
    against = _contradiction(made)
    return against if against.holds else None if cut or not (along := _descent(made)).holds else along


def contradiction(system: System, instance: Instance) -> InstanceContradiction | None:
    """Prove that the constraints of an instance without convex sets contradict each other, by one linear program."""
    program = quadratic_program(system)
    if program is None or any(any(form.cut) for form in program.forms.values()):
        return None
    against = _contradiction(program.assemble(InstanceUnits(instance).instance(instance)))
    return against if against.holds else None


def _contradiction(made: Assembled) -> InstanceContradiction:
    """The multipliers that contradict most."""
    low = np.where(made.equal, -1.0, 0.0)
    y = _least(made.offset, made.matrix.T, low, np.ones(len(low))) if len(low) else low
    return InstanceContradiction(made, np.maximum(np.where(np.abs(y) > _SURE, y, 0.0), low))


def _descent(made: Assembled) -> InstanceDescent:
    """The direction that falls most; beside it stand the slacks of the inequalities, which may grow."""
    rows, columns = made.matrix.shape
    grows = sparse.eye_array(rows).tocsr()[:, ~made.equal]
    still = [[made.hessian, None]] if made.hessian.nnz else []
    slope = np.concatenate([made.slope, np.zeros(grows.shape[1])])
    low, high = np.repeat([[-1.0, 0.0], [1.0, np.inf]], [columns, grows.shape[1]], axis=1)
    least = _least(slope, sparse.block_array([[made.matrix, -grows], *still]), low, high)
    return InstanceDescent(made, least[:columns])


def _least(slope: np.ndarray, matrix: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the point within bounds where ``matrix @ z = 0`` and ``slope @ z`` is least."""
    from scipy.optimize import linprog

    found = linprog(slope, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=np.stack([low, high], axis=1))
    return np.zeros(len(slope)) if found.x is None else np.asarray(found.x)


def evidence(system: System, instance: Instance) -> InstanceContradiction | InstanceDescent:
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
        If there is no proof beyond rounding.
    """
    found = proof(system, instance)
    if found is None:
        raise NotConverged(
            f"The instance with seed {instance.seed} has no solution as far as its solver can tell, and there is no "
            "proof of that beyond rounding.",
            hint="another seed or size",
        )
    return found
