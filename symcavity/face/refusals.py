"""Refusals of methods that do not apply to states that move, or to the states of a Gibbs measure."""

from __future__ import annotations

from symcavity.errors import UnsupportedLaw
from symcavity.model.system import System


def refuse_motion(system: System, verb: str) -> None:
    """Refuse what is about states that keep still, where they move."""
    if system.time is not None:
        raise UnsupportedLaw(
            f"The states depend on time, and {verb} needs a theory at rest.",
            "theory.evolve(values, until=...), system.simulate(values, N=..., until=...), run.compare(sim, ...)",
        )


def refuse_temperature(system: System, verb: str) -> None:
    """Refuse what is about instances of states that do not fluctuate."""
    refuse_motion(system, verb)
    if system.weights:
        raise UnsupportedLaw(
            f"The states of a Gibbs measure fluctuate, and {verb} solves instances for one state.",
            "theory.solve, theory.derivation.verify() of a Gibbs measure; instances of the problem at its minimum",
            "problem.simulate(...), the limit of large beta",
        )
