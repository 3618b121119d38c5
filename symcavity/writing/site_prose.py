"""What is said about the solution of a single site."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symcavity.model.equations import Equation
from symcavity.model.kinds import one_of
from symcavity.model.quantities import Complementary
from symcavity.record.derivation import Step
from symcavity.writing.assumptions import relations
from symcavity.writing.fragments import Fragments, Given, Prose, Show, formula, kind_in, listed, plural


def branches(step: Step) -> Prose:
    """The branches of a law, and its solution."""
    branches = list(step.data.get("branches") or [])
    field_ = step.data.get("field")
    signs = relations(step.data) if step.data.get("sign_assumptions") else []
    used = ["This uses ", *listed(signs), "."] if signs else []
    if len(branches) < 2:
        return Prose([Given("The law of a single site is solved by")], used)
    before: Fragments = []
    if branches:
        which = "The complementary pairs leave" if step.data.get("paired") else "The law has"
        each = ". In each, one member of every pair is zero:" if step.data.get("paired") else ":"
        before += [f"{which} {_count(len(branches))} {plural(len(branches), 'branch', 'branches')}{each}"]
        before += [Show(tuple(_branch_row(branch) for branch in branches), numbered=False)]
    before += [Given("For each value of the field exactly one branch is consistent, and the solution is")]
    if field_ is not None:
        before[-1] = Given("For each value of ")
        before += [field_, " exactly one branch is consistent, and the solution is"]
    return Prose(before, used)


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def _branch_row(branch: Any) -> tuple[Any, ...]:
    names, region, values = (
        (*branch, None, None)[:3] if isinstance(branch, list | tuple) else (branch, None, None)
    )
    row: Fragments = []
    some = [names] if isinstance(names, str) else list(names or [])
    if not isinstance(values, dict) or not values:
        row += listed(some, ", ")
    else:
        row += [*_comma([Equation(state, value)] for state, value in values.items())]
    if region is not None:
        row += [formula("\\quad\\text{if }"), region]
    return tuple(row)


def _comma(groups: Iterable[Fragments]) -> Fragments:
    out: Fragments = []
    for group in groups:
        out += [", " if out else "", *group]
    return [part for part in out if not (isinstance(part, str) and part == "")]


def joint(step: Step) -> Prose:
    """What a law of several states fixes together."""
    pairs = [Complementary(p, q) for p, q in step.data.get("pairs") or []]
    before = [Given("For each value of "), *listed(step.data["fields"]), " the law fixes "]
    after: Fragments = ["It is to be read together with ", *listed(pairs), ". "] if pairs else []
    after += ["These are the optimality conditions of a convex problem of one site, which has one solution. "]
    before += [*listed(step.data["unknowns"]), " together by"]
    return Prose(before, [*after, "They are solved by Newton's method."])


def joint_slopes(step: Step) -> Prose:
    """The responses of such states."""
    after: Fragments = ["Of each pair the member that is zero stays zero. "] if step.data.get("pairs") else []
    after += ["These linear equations fix the responses of ", *listed(step.data["unknowns"]), "."]
    return Prose([Given("Differentiation of these equations with respect to each source gives")], after)


def response(step: Step) -> Prose:
    """The mean response."""
    kind = kind_in(step)
    whose = f" of {one_of(kind)}" if kind else ""
    return Prose(
        [Given(f"Differentiation with respect to the source gives the mean response{whose},")],
        [],
    )


def closure(_step: Step) -> Prose:
    """An average over the cavity field."""
    lead = Given("Averaging over the cavity field, at zero source, gives")
    return Prose([lead], again=[Given("Likewise")])


def implicit(step: Step) -> Prose:
    """The states by an equation that is not solved for them."""
    lead = "The state of a single site is given implicitly, as a function of its field, by"
    after = "Its derivative with respect to the field follows by implicit differentiation. The solution is unique "
    after += "because the problem is convex." if step.data.get("convex") else "where the first of them is monotonic."
    return Prose([Given(lead)], [after])


TEMPLATES = {
    "implicit": implicit,
    "branches": branches,
    "joint": joint,
    "joint_slopes": joint_slopes,
    "response": response,
    "closure": closure,
}
