"""One solved instance, by the names of its variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import ValuesError
from symcavity.finite.compiled import compile_system
from symcavity.finite.instance import Residuals, State
from symcavity.finite.minimum import SolvedInstance
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System


@dataclass
class Sample:
    """One instance of a simulation.

    Attributes
    ----------
    seed : int
        The instance is a function of it.
    counts : dict
        The number of sites of each kind.
    solved : Solved
        The solution; its attribute ``flat`` says whether it is the only one, and ``failure`` why none was
        found.
    arrays : dict
        Every variable of the system by name, primal and dual, one entry a site (one row of components for a
        vector); globals as numbers.
        Empty if the instance is infeasible.
    """

    seed: int
    counts: dict[Kind, int]
    solved: SolvedInstance
    arrays: dict[str, Any]

    def __getitem__(self, key: Any) -> Any:
        named = key.family if isinstance(key, SiteQuantity) else key
        name = named if isinstance(named, str) else getattr(named, "name", "")
        if name not in self.arrays:
            raise ValuesError(f"{key!r:.80} is not a variable of this instance.", ", ".join(self.arrays))
        return self.arrays[name]

    @property
    def residuals(self) -> Residuals | None:
        """How well the equations of the system hold."""
        return self.solved.residuals

    @property
    def feasible(self) -> bool:
        """Whether the instance has a solution."""
        return self.solved.state is not None

    @property
    def method(self) -> str:
        """How it was solved."""
        return self.solved.method

    @property
    def flat(self) -> int:
        """The dimension of the set of minimizers; zero where the minimum is unique."""
        return 0 if self.solved.flat is None else self.solved.flat.dimension

    @property
    def failed(self) -> bool:
        """Whether neither a solution was found, nor that there is none."""
        return bool(self.solved.failure)


def arrays_of(system: System, state: State | None) -> dict[str, Any]:
    """Return every variable of a state by name; nothing where there is no state.

    Parameters
    ----------
    system : System
        The system that was solved.
    state : State or None
        Its solution.
    """
    if state is None:
        return {}
    out: dict[str, Any] = {}
    compiled = compile_system(system)
    for side, law in compiled.laws.items():
        for j, quantity in enumerate(law.unknowns):
            column = state.site[side][:, j]
            if quantity.family.components:
                out.setdefault(quantity.family.name, []).append(column)
            else:
                out[quantity.family.name] = column
    out = {k: np.stack(v, axis=1) if isinstance(v, list) else v for k, v in out.items()}
    return out | {g.name: float(v) for g, v in zip(compiled.globals, state.shared, strict=True)}
