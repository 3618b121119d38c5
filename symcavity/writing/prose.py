"""The sentences about a step: those of its rule, filled in with its facts.

No sentence knows a problem; a rule without sentences still reads as one.
"""

from __future__ import annotations

from symcavity.record.derivation import Step
from symcavity.writing.facts import facts
from symcavity.writing.fragments import EarlierSteps, Prose
from symcavity.writing.words import has, prose_of


def prose(step: Step) -> Prose:
    """Return what is to be said about a step."""
    if has(step.rule):
        return prose_of(step.rule, facts(step))
    words = step.rule.replace("_", " ").strip().capitalize()
    return Prose([EarlierSteps(words + (":" if step.claims else "."))])
