"""A derivation as blocks: paragraphs, displays and tables, numbered once for all writers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from sympy import Basic, Expr

from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE
from symcavity.model.quantities import Global, SiteQuantity
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import AtStep
from symcavity.writing.assumptions import assumption, relations
from symcavity.writing.blocks import Block, Display, Document, Numbered, Paragraph, Section, Span, StepBlocks
from symcavity.writing.display_form import as_shown
from symcavity.writing.facts import declared_states
from symcavity.writing.fragments import Cite, EarlierSteps, Fragments, Prose, Show, formula, listed, plural, states_of
from symcavity.writing.lines import lines, width
from symcavity.writing.notation import meanings
from symcavity.writing.numbering import Numbering, cite, said_by
from symcavity.writing.prose import prose
from symcavity.writing.rows import PAGE, row_of
from symcavity.writing.words import say
from symcavity.writing.write_once import Alike

_MANY = 8  # equations of one step, of which short ones are not given again either
_SHORT = 2  # lines of an equation that is given again for one step of an iteration

# Rules whose claims are conditions of their own, even where they share a left-hand side.
_ONE_STATE = ("one_state", "lowest", "local_minimum")
_SEPARATE = frozenset(["closed_system", "result", "inconsistency", "work_identity", "complementarity"])


def _introduced(steps: Sequence[Step]) -> list[Step]:
    """Steps; the first of a run that one rule makes of the same names the states of them all."""
    out: list[Step] = []
    for _, run in groupby(steps, key=lambda step: (step.section, step.rule, step.rests_on)):
        first, *others = run
        states = [state for step in (first, *others) for state in states_of(step)]
        named = {"introduced": True} if others and states else {}
        out += [replace(first, data={**first.data, "states": states}) if named else first]
        out += [replace(step, data={**step.data, **named}) for step in others]
    return out


def layout(derivation: Derivation) -> Document:
    """Arrange a derivation for writing."""
    derivation = as_shown(derivation)
    meanings = [(s, m) for s, m in derivation.parameters if isinstance(m, Expr)]
    numbers = Numbering(meanings, derivation.cite, Alike(derivation))
    numbers.notation |= {"moments" for step in derivation.steps if step.rule == "truncated_moments"}
    parameters = tuple((s, m) for s, m in derivation.parameters if s not in numbers.alike.others)
    opening = tuple(map(numbers.cited, _opening(derivation, parameters, bool(numbers.alike))))
    if derivation.brief:  # without a list of assumptions, that of one state is stated at the beginning
        states = [assumption(name, data) for name, data, _ in derivation.assumptions() if name in _ONE_STATE]
        opening += tuple(part for sentence in states for part in (" ", *sentence))
    sections: dict[str, list[StepBlocks]] = {}
    for step in _introduced(derivation.steps):
        title = step.section or "Derivation"
        sections.setdefault(title, []).append(StepBlocks(step, _step_blocks(step, numbers)))
    results: tuple[Block, ...] = ()
    shown = [claim for step in derivation.steps if step.rule == "result" for claim in step.claims]
    if derivation.results and not all(claim in shown for claim in derivation.results):
        results = (
            Paragraph(("The closed equations of the theory are",)),
            *numbers.display([row for row in derivation.results if not numbers.alike.stood_for(row)], "results"),
        )
    items = []
    for name, data, keys in [] if derivation.brief else _assumed(derivation):  # in brief each is said where it is used
        span = numbers.span(keys)
        said: Fragments = [*assumption(name, data)]
        items.append(tuple([*said, " Used in ", *cite(span), "."] if span else said))
    return Document(
        derivation.title,
        opening,
        tuple(Section(title, tuple(steps)) for title, steps in sections.items() if any(s.blocks for s in steps)),
        results,
        () if derivation.brief else parameters,  # in brief each is defined where it is first used, and only there
        tuple(items),
        tuple(numbers.works),
    )


def _assumed(derivation: Derivation) -> list[tuple[str, dict[str, Any], list[str]]]:
    """The assumptions; all signs are one."""
    every = derivation.assumptions()
    signs = [(relations(data), keys) for name, data, keys in every if name in ("sign", "signs") and "text" not in data]
    if not signs:
        return every
    one = ("sign", {"relations": [r for some, _ in signs for r in some]}, [key for _, keys in signs for key in keys])
    return [*(row for row in every if row[0] not in ("sign", "signs") or "text" in row[1]), one]


def single(step: Step) -> tuple[Block, ...]:
    """Return the blocks of one step by itself, without numbers or references."""
    blocks = []
    for block in _step_blocks(step, Numbering()):
        if isinstance(block, Display):
            block = Display(tuple(Numbered(group.rows, abreast=group.abreast) for group in block.groups), block.end)
        blocks.append(block)
    return tuple(blocks)


def _opening(derivation: Derivation, parameters: Sequence[tuple[Any, Any]], alike: bool) -> Fragments:
    quantities = {
        str(q.family): q for step in derivation.steps if step.rule == "problem"
        for some in declared_states(step).values() for q in some if isinstance(q, SiteQuantity)
    }  # fmt: skip
    constrained = (row for step in derivation.steps if step.rule == "lagrangian" for row in step.data["multipliers"])
    kinds = next((list(step.data["kinds"]) for step in derivation.steps if step.data.get("kinds")), [FEATURE, DATUM])
    return say(
        "opening",
        title=derivation.title,
        says=re.sub(r"[ \t\n]+", " ", derivation.says),
        bipartite=all(step.data.get("bipartite", True) for step in derivation.steps),
        kinds=[kind.plural for kind in kinds],
        quantities=list(quantities.values()),
        multipliers=[one for one, *_ in constrained if isinstance(one, SiteQuantity)],
        naive=derivation.method == "naive",
        warm=any(step.rule in ("gibbs", "measure") for step in derivation.steps),
        moving=any(step.rule == "moving_system" for step in derivation.steps),
        parameters=[symbol for symbol, _ in parameters],
        shared=_shared(derivation),
        alike=alike,
        brief=derivation.brief,
        works=[Cite(work.strip()) for work in derivation.cite.split(";") if work.strip()],
    )


def _shared(derivation: Derivation) -> list[Any]:
    """The variables of all sites that the closed equations fix, or give in time."""
    closed = [q for step in derivation.steps for q in step.data.get("unknowns") or () if isinstance(q, Global)]
    moving = [q for step in derivation.steps if step.rule == "shared_motion" for q in step.data["globals"]]
    return [*closed, *moving]


def _step_blocks(step: Step, numbers: Numbering) -> tuple[Block, ...]:
    step = numbers.alike.one(step)
    if step.rule == "sources":  # before the sources, which are added to their equations
        step = replace(step, data={**step.data, "named": numbers.fields(step)})
    said = prose(step)
    if step.rule in _SEPARATE:
        numbers.separate.add(step.key)
    span = numbers.span(step.rests_on)
    old = [claim for claim in step.claims if said_by(claim) in numbers.shown]
    if step.rule == "effective_law":  # an equation whose number holds another one that is superseded is written again
        old = [claim for claim in old if numbers.holds_only(numbers.shown[said_by(claim)], old)]
    if numbers.before == step.rule:
        if said.again and numbers.rested == span:  # what follows goes on with the display before it
            silent = isinstance(numbers.ends, Display) and not old and not step.reference
            said.before, span = [] if silent else said.again, None
        elif said.again:
            said.before = said.again
    new = [claim for claim in step.claims if claim not in old and not numbers.alike.stood_for(claim)]
    if step.claims and not old and not new:
        _stand_in(step, numbers)
        return ()
    before = _lead(step, said, numbers, old, new, span)
    if before is None:
        return ()
    blocks = _running(before, step, numbers)
    repeated = _repeated(new, numbers)
    new = [claim for claim in new if claim not in repeated]
    if new:
        blocks += numbers.display(new, step.key)
    blocks += _likewise(repeated, numbers, follows=bool(blocks) and isinstance(blocks[-1], Display))
    _stand_in(step, numbers)
    displayed = [row for part in said.before if isinstance(part, Show) for row in part.rows]
    drawn = [law for q in step.data.get("quenched") or () if isinstance(law := getattr(q, "law", None), Basic)]
    here = meanings([*displayed, *drawn, *step.claims], numbers.notation)
    if defined := [*numbers.definitions([*old, *new]), *numbers.fields(step)]:
        here = ["Here ", *listed(defined), ". ", *here]
    if here:
        blocks.append(Paragraph(tuple(here), goes_on=True))
    why: Fragments = []
    for part in said.after:  # a long equation that stands above is cited
        at = numbers.shown.get(said_by(part)) if isinstance(part, Equation) else None
        why += cite(Span(((at, at),))) if at and width(row_of(part)) > PAGE / 3 else [numbers.cited(part)]
    if any(part != "" for part in why):
        blocks.append(Paragraph(tuple(why), True, known=why in numbers.reasons))
        numbers.reasons.append(why)
    numbers.ends = blocks[-1] if blocks else numbers.ends
    return tuple(blocks)


def _lead(
    step: Step, said: Prose, numbers: Numbering, old: Sequence[Any], new: Sequence[Any], span: Span | None
) -> Fragments | None:
    """The text before the equations of a step, and its citations; None if the step says nothing new."""
    there = dict.fromkeys(numbers.shown[said_by(claim)] for claim in old)
    known = numbers.joined(there)
    rests = span and numbers.span(step.rests_on, there)  # nothing follows from itself
    before = [numbers.cited(part) for fragment in said.before for part in _resolved(fragment, rests)]
    numbers.known.setdefault(step.key, []).extend(there)
    said_all = step.rule in ("closure", "elimination") or (step.rule == "result" and known == span)
    if known is not None and not new and said_all:
        return None
    if span is not None or numbers.before != step.rule:
        numbers.rested = span
    collects = known is not None and step.rule in _COLLECTED
    notes: Fragments = []
    cites = any(isinstance(part, EarlierSteps) for part in said.before)
    if span is not None and not cites and step.claims and not collects:
        notes = ["see ", *cite(span)]
    if step.reference:
        notes += ["; " if notes else "", *_reference(step.reference, numbers)]
    before = _parenthesis(before, notes) if notes else before
    numbers.before = step.rule
    if known is not None and known == span and step.rule in _SOLVING:
        return before if new else ["There is nothing left to be solved in ", *cite(known), "."]
    if known is not None:  # each equation stands once
        return [*_citing(before, known, verb=bool(collects)), " and" if new else "."]
    return before


def _running(before: Fragments, step: Step, numbers: Numbering) -> list[Block]:
    """Text with displays in it, as paragraphs and displays."""
    blocks: list[Block] = []
    running: Fragments = []
    for place, fragment in enumerate([*before, None]):
        if fragment is not None and not isinstance(fragment, Show):
            running.append(fragment)
            continue
        if any(part != "" for part in running):
            blocks.append(Paragraph(tuple(running)))
        running = []
        if isinstance(fragment, Show):
            after = before[place + 1] if place + 1 < len(before) else "."
            end = "," if isinstance(after, str) and after[:1].islower() else "."
            blocks += numbers.display(fragment.rows, step.key, fragment.numbered, end)
    return blocks


def _citing(before: Fragments, known: Span, *, verb: bool) -> Fragments:
    """The text before equations, and references to those that are not written again."""
    lead = _unended(before)
    verb = verb or (isinstance(lead[-1], str) and lead[-1].split()[-1:] in _VERBS)
    which = " " if verb else ", which are " if known.several else ", which is "
    return [*lead, which, *cite(known)]


def _likewise(repeated: Mapping[Equation, int], numbers: Numbering, *, follows: bool) -> Iterator[Paragraph]:
    """Sentences on equations that are others at another step; the first of them may follow a display."""
    for shift in sorted(set(repeated.values())):
        some = [claim for claim, when in repeated.items() if when == shift]
        span = numbers.joined(numbers.shown[said_by(_undated(claim))] for claim in some)
        words: Fragments = ["Likewise "] if follows else []
        words += [*listed(claim.lhs for claim in some), plural(len(some), " is", " are")]
        sides = plural(len(some), "side", "sides")
        words += [" given by ", *cite(span), f", with the right-hand {sides} at step "] if span else []
        letter = next(iter(some[0].lhs.atoms(AtStep))).letter
        yield Paragraph((*words, formula(f"{letter} + 1" if shift else letter), ". "), goes_on=True)
        follows = False


def _undated(claim: Equation) -> Equation:
    """An equation between numbers of a step, without the step."""
    return claim.xreplace({node: node.args[0] for node in claim.difference.atoms(AtStep)})


def _repeated(claims: Iterable[Any], numbers: Numbering) -> dict[Equation, int]:
    """Long equations that were said but for the step, which is one for all numbers on the right."""
    claims = list(claims)
    out, short = {}, _SHORT if len(claims) < _MANY else 0
    for claim in claims:
        steps = {node.shift for node in claim.rhs.atoms(AtStep)} if isinstance(claim, Equation) else ()
        if len(steps) == 1 and said_by(_undated(claim)) in numbers.shown and len(lines(row_of(claim), PAGE)) > short:
            out[claim] = min(steps)
    return out


def _stand_in(step: Step, numbers: Numbering) -> None:
    """Let the equation that stands for others be cited in their place."""
    others = [c for c in step.claims if said_by(c) not in numbers.shown and numbers.alike.stood_for(c)]
    first = {said_by(claim): said_by(numbers.alike.first[claim]) for claim in others}
    places = {claim: numbers.shown[one] for claim, one in first.items() if one in numbers.shown}
    numbers.shown |= places
    numbers.known.setdefault(step.key, []).extend(dict.fromkeys(places.values()))


# Rules that collect what was said.
_COLLECTED = frozenset(["closed_system", "elimination", "result"])
_SOLVING = frozenset(["branches", "implicit"])  # what rests on equations that may be solved as they stand


_VERBS = [[word] for word in ("is", "are", "by", "gives", "reads", "obeys", "with", "say")]


def _unended(before: Fragments) -> Fragments:
    """Take the last punctuation off."""
    tail = before[-1] if before and isinstance(before[-1], str) else None
    return before if tail is None else [*before[:-1], tail.rstrip().rstrip(":,.")]


def _resolved(fragment: Any, span: Span | None) -> Fragments:
    if not isinstance(fragment, EarlierSteps):
        return [fragment]
    if span is None:
        return [fragment.sentence]
    sentence = fragment.sentence
    if not sentence[1:2].isupper():
        sentence = sentence[:1].lower() + sentence[1:]
    return ["By ", *cite(span), ", ", sentence]


def _reference(reference: str, numbers: Numbering) -> Fragments:
    """Return ``Ref. [1], Eqs. (34), (35)``; what is said after a semicolon follows."""
    reference, _, remark = reference.partition(";")
    several = any(mark in reference for mark in ",-–")
    which = re.sub(r"[^, –-]+", r"(\g<0>)", reference).replace("-", "–")
    said = f"Eq{'s' if several else ''}.\u00a0{which}"
    said += f",{remark}" if remark else ""
    return ["Ref.\u00a0", Cite(numbers.source, 1), f", {said}"] if numbers.source else [f"{said} in print"]


def _parenthesis(before: Fragments, inside: Fragments) -> Fragments:
    """Put a parenthesis at the end of the text, before its last punctuation."""
    tail = before[-1] if before and isinstance(before[-1], str) else ""
    bare = tail.rstrip()
    mark = bare[-1:] if bare[-1:] in (":", ",", ".") else ""
    head = before[:-1] if tail else before
    return [*head, bare[: len(bare) - len(mark)], " (", *inside, ")", mark]
