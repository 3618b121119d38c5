"""What is said about the steps of the naive analysis: the feedback that is dropped, and the substitution."""

from __future__ import annotations

from symcavity.model.kinds import one_of
from symcavity.record.derivation import Step
from symcavity.writing.fragments import Emphasis, Fragments, Given, Prose, hearers_in, kind_in, listed, plural, quantity


def naive_drop(step: Step) -> Prose:
    """The feedback that is left out, and why the other one is kept."""
    kind, kept = kind_in(step), list(step.data.get("kept") or [])
    one = len(step.claims) < 2
    before: Fragments = ["The naive analysis treats the messages ", *_listed(step, "messages")]
    before += [" as independent of the couplings ", *_listed(step, "couplings")]
    before += [" that they are summed with, and so leaves out the "]
    which = plural(2 - one, "self-coupling", "self-couplings")
    before += [f"{which} of {one_of(kind)}" + (":" if step.claims else ".")]
    after: Fragments = ["This is ", Emphasis("not correct"), ": the messages depend on the couplings. "]
    after += ["It is kept here in order to see what follows from it."]
    for other, symbols in kept:
        few = len(symbols) < 2
        which = plural(2 - few, "self-coupling", "self-couplings")
        after += [f" The {which} ", *listed(symbols), f" of {one_of(other)} "]
        after += [f"{plural(2 - few, 'is', 'are')} kept: what {one_of(kind)} answers to {one_of(other)} follows "]
        after += [f"from the equation of the {kind} with the messages as they are given, and asks nothing of where "]
        after += ["they come from."]
    return Prose(before, after)


def put(step: Step) -> Prose:
    """One kind's equation in another's."""
    hearers = hearers_in(step)
    before = ["The same theory follows without inserting a site. At zero sources, putting the equation of a "]
    return Prose([*before, f"{kind_in(step)} into that of the {hearers} gives"])


def split(step: Step) -> Prose:
    """Equal and different indices."""
    words = f"The terms in which a {_hearer(step)} meets its own message again stand apart from those of all others:"
    return Prose([Given(words)])


def field(step: Step) -> Prose:
    """The sum over the others."""
    one = len(step.claims) < 2
    return Prose([f"What comes from all others is taken as {plural(2 - one, 'a field of its own', 'fields')}"])


def statistics(step: Step) -> Prose:
    """Averages with an independence that does not hold."""
    before: Fragments = [Given("Averaged as if the couplings "), *_listed(step, "couplings")]
    before += [" were independent of the messages ", *_listed(step, "messages"), ","]
    after: Fragments = ["One message among many may be added to the sum over all others."]
    if step.data.get("echoes"):
        after += [" The sum over equal indices does not vanish on average, whatever the messages are: "]
        after += ["it is the feedback that the naive analysis keeps."]
    return Prose(before, after)


def law(step: Step) -> Prose:
    """The law with both sums replaced."""
    pairs = list(step.data.get("pairs") or [])
    before = Given(f"With the sum over equal indices at its mean, a {_hearer(step)} obeys")
    after: Fragments = ["It is to be read together with ", *listed(pairs), "."] if pairs else []
    return Prose([before], after)


def agreement(step: Step) -> Prose:
    """The same order parameters as those of the inserted sites."""
    before = Given(f"The same statistics follow for the inserted {_hearer(step)}, from the closed equations above:")
    return Prose([before], ["Both ways lead to the same order parameters."])


def refused(step: Step) -> Prose:
    """Why there is no substitution."""
    kind, parts = kind_in(step), list(step.data.get("parts") or [])
    before: Fragments = ["For laws that are linear in their fields the same theory follows without inserting a site, "]
    before += [f"by putting the equation of {one_of(kind)} into that of those that hear it. This does not apply here: "]
    return Prose([*before, *parts])


def _listed(step: Step, name: str) -> Fragments:
    return listed(quantity(q) for q in step.data.get(name) or [])


def _hearer(step: Step) -> str:
    return " or ".join(kind.name for kind in step.data.get("hearers", ())) or "site"


TEMPLATES = {
    "naive_drop": naive_drop,
    "substitution": put,
    "substitution_split": split,
    "substitution_field": field,
    "substitution_statistics": statistics,
    "substitution_law": law,
    "substitution_agreement": agreement,
    "no_substitution": refused,
}
