"""The error where no attempt succeeds: of several branches, with a look at other loads."""

from __future__ import annotations

from collections.abc import Sequence

from symcavity.errors import FlatMinimum, Infeasible, NotConverged
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving import saddle_attempt
from symcavity.evaluate.solving.outcomes import Ended, Handover, Outcome
from symcavity.evaluate.solving.saddle_proofs import Contradiction, Descent, Flat
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.kinds import alpha

WORDS = {Contradiction: "the constraints contradict each other", Descent: "the objective falls for ever"}


def one_of(failed: Sequence[Infeasible | FlatMinimum | NotConverged]) -> Infeasible | FlatMinimum | NotConverged:
    """Return what is said where no branch has a solution."""
    sure = [e for e in failed if not isinstance(e, NotConverged)]
    missed = [e for e in failed if isinstance(e, NotConverged)]
    if sure and missed:
        said = f"{missed[0].found} Where other conditions on all sites hold as equalities: {sure[0].found}"
        return NotConverged(said, missed[0].best, missed[0].residual, missed[0].hint)
    return (missed or failed)[0]


def beside(task: Task, given: Given, missed: NotConverged) -> NotConverged:
    """Return what is said of a convex problem, with how it ends at loads on both sides, if this differs.

    Parameters
    ----------
    task : Task
        A convex problem.
    given : Given
        Values at which no attempt came to an end.
    missed : NotConverged
        What is said without that.
    """
    if alpha not in given.exact or not saddle_attempt.applies(task, given):
        return missed
    load = float(given.exact[alpha])
    loads = [load * (1 - tolerances().aside), load * (1 + tolerances().aside)]
    ends = [_word(saddle_attempt.attempt(task, saddle_attempt.at_load(given, there))) for there in loads]
    if "" in ends or ends[0] == ends[1]:
        return missed
    told = " and ".join(f"at alpha = {there:.6g} {end}" for there, end in zip(loads, ends, strict=True))
    said = f"{missed.found} The kind of minimum changes at a load that is close: {told}."
    return NotConverged(said, missed.best, missed.residual, "a load further away")


def _word(outcome: Outcome) -> str:
    """The state of a load: a solution, or a proof that there is none; empty if it is open."""
    if isinstance(outcome, Handover):
        return "there is a solution"
    if isinstance(outcome, Ended):
        evidence = outcome.evidence
        if isinstance(evidence, Flat):
            return "the minimum is flat" if evidence.is_attained else "there is no minimum"
        return WORDS.get(type(evidence), "")
    return "some variance or response vanishes" if getattr(outcome, "is_at_boundary", False) else ""
