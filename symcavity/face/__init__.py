"""The classes that users hold: data of the rooms below with the verbs on them; what is heavy loads inside a verb."""

from __future__ import annotations

from typing import Any

from symcavity.face.identities import Proof, ProofStep, Symmetry, prove
from symcavity.face.pairs import Fluctuations, Pair
from symcavity.face.problems import ConvexProblem, Problem
from symcavity.face.records import Derivation, Step, Verification
from symcavity.face.systems import BipartiteSystem, LinearEquivalent, System
from symcavity.face.theories import Theory


def __getattr__(name: str) -> Any:
    if name in ("Simulation", "Simulations"):
        from symcavity.witness.simulated import simulation_class

        return simulation_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BipartiteSystem", "ConvexProblem", "Derivation", "Fluctuations", "LinearEquivalent", "Pair", "Problem", "Proof",
    "ProofStep", "Step", "Symmetry", "System", "Theory", "Verification", "prove",
]  # fmt: skip
