"""Judge the claims of a derivation: each step by the witnesses of its rule."""

from __future__ import annotations

from typing import Any

from symcavity.algebra.precision import alone, mp
from symcavity.errors import NotConverged, SymcavityError
from symcavity.evaluate.progress import counted
from symcavity.record.derivation import Checked, Derivation, Step, Verdict
from symcavity.witness import (
    averages,
    centre,
    descent,
    effective,
    fluctuations,
    free_energy,
    fresh,
    given_parts,
    identities,
    joint,
    kernels,
    lowest,
    messages,
    minimum,
    motion,
    moving_pairs,
    moving_parts,
    observed,
    optimality,
    pairs,
    set_identities,
    set_minima,
    sets,
    solved,
    stability,
    states,
    statistics,
    substitution,
    thermal,
    verbs,
)
from symcavity.witness.instances import witness as by_instances
from symcavity.witness.registry import WITNESSES, numeric
from symcavity.witness.world import DIGITS

# they fill the table
SUBJECTS = (
    *(centre, kernels, optimality, verbs, statistics, effective, averages, joint, fresh),
    *(sets, set_minima, set_identities, solved, identities, substitution, stability, messages, motion, descent),
    *(minimum, pairs, given_parts, moving_pairs, moving_parts, fluctuations, observed, thermal, states, free_energy),
    *(lowest,),
)


def verify(derivation: Derivation, dps: int = 50, simulation: Any = None) -> tuple[Checked, ...]:
    """Check every step of a derivation; a simulation, where there is one, is a further witness."""
    rows = []
    with counted(len(derivation), "steps checked") as count:
        for step in derivation:
            verdicts = judge(step, dps)
            if simulation is not None:
                verdicts = [*verdicts, *by_instances(simulation, step)]
            rows.append(Checked(step, tuple(verdicts)))
            count.advance()
    return tuple(rows)


@alone
def judge(step: Step, dps: int = 50) -> list[Verdict]:
    """Call the witnesses of a step's rule; one that cannot do its work says so, never in silence.

    What was not reached by numerical means is no evidence against a claim; what cannot be read is.
    """
    out: list[Verdict] = []
    for witness in WITNESSES.get(step.rule, ()):
        try:
            with mp.workdps(DIGITS):
                out += witness(step, dps)
        except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError, SymcavityError) as problem:
            detail = f"the check could not be carried out: {type(problem).__name__}: {problem}"
            out.append(Verdict(numeric(dps), None if isinstance(problem, NotConverged) else False, detail))
    return out
