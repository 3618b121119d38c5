"""The theory that is compared with instances: at which values, and with which of its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Rational

from symcavity.algebra.door import as_sympy
from symcavity.errors import SeveralSolutions
from symcavity.evaluate.solve import solve_theory
from symcavity.method.theory import Theory
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.refusals import parameters_of


def point_of(sim: Any) -> dict[Any, Any]:
    """Return the values at which a theory is to be held against a simulation, with the load really simulated.

    Parameters
    ----------
    sim : Simulation or Simulations
        The simulation.
    """
    if len(sim.sizes) == 1:
        return point_at(sim.setup, sim.counts)
    values, counts = sim.setup.values, sim.largest.counts
    shares = {k: Rational(counts[k], counts[FEATURE]) for k in values.kinds}
    return _others(sim.setup) | {k.ratio: values.ratios.get(k, shares[k]) for k in values.kinds if k != FEATURE}


def point_at(setup: Any, counts: Mapping[Kind, int]) -> dict[Any, Any]:
    """Return the values at which a theory is to be held against instances of one size.

    Parameters
    ----------
    setup : Setup
        What the instances share.
    counts : mapping
        The number of sites of each kind.
    """
    ratios = {kind.ratio: Rational(n, counts[FEATURE]) for kind, n in counts.items() if kind != FEATURE}
    return _others(setup) | ratios | {kind.size: n for kind, n in counts.items()}


def solved_at(theory: Theory, point: Mapping[Any, Any]) -> tuple[Any, str]:
    """Solve a theory at a point of finite instances, and say which of its conditions on averages they do not meet.

    A condition that leaves a parameter open tells what comes out of the instances; one that leaves nothing open
    would have to be imposed on them, and the theory is taken without it.
    """
    theory, remark = theory_at(theory, point)
    return solve_theory(theory, point), remark


def solutions_at(theory: Theory, point: Mapping[Any, Any]) -> tuple[list[Any], str]:
    """The same with all solutions, of a system that is not declared convex."""
    theory, remark = theory_at(theory, point)
    try:
        return [solve_theory(theory, point)], remark
    except SeveralSolutions as error:
        several = [solve_theory(theory, point, guess=guess) for guess in error.solutions]
    said = "The equations have several solutions here, which solve(...) lists; of those with a guess= that of the"
    return several, f"{remark} {said} smallest differences from the instances is shown.".strip()


def theory_at(theory: Theory, point: Mapping[Any, Any]) -> tuple[Theory, str]:
    """Return a theory without the conditions on averages that instances at a point are not held to, and which."""
    given = {*point, *theory.binding}
    open_ = [bool(parameters_of(e.difference) - given) for e in theory.system.fixed]
    if all(open_):
        return theory, ""
    free = theory.replace(fixed_equations=[e for e, o in zip(theory.fixed_equations, open_, strict=True) if o])
    dropped = ", ".join(str(e) for e, o in zip(theory.system.fixed, open_, strict=True) if not o)
    return free, f"The instances, and so the theory here, are not held to {dropped}."


def _others(setup: Any) -> dict[Any, Any]:
    """The values that are no sizes."""
    values = setup.values
    out: dict[Any, Any] = {**values.parameters, **setup.written.sets}
    for q, law in values.quenched.items():
        if isinstance(law, np.ndarray):
            out[q] = law if law.ndim else {as_sympy(float(law)): 1}
        elif q.law is None:  # a law that is declared holds by itself
            out[q] = law
    return out
