"""Numbers of equations and of cited works, in order of appearance."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any

from sympy import S

from symcavity.model.equations import Equation
from symcavity.record.derivation import Step
from symcavity.writing.abbreviate import shorten
from symcavity.writing.blocks import Block, Display, Numbered, Paragraph, Span
from symcavity.writing.fragments import Cite, Fragments, listed
from symcavity.writing.nodes import FormulaNode, Row, to_tex
from symcavity.writing.rows import chains_of, fits, in_lines, row_of, solved
from symcavity.writing.write_once import Alike


class Numbering:
    """Gives numbers in order of appearance and remembers them by the key of the step."""

    def __init__(self, parameters: Iterable[tuple[Any, Any]] = (), cite: str = "", alike: Alike | None = None) -> None:
        self.count = 0
        self.alike = alike or Alike()
        self.shown: dict[Any, tuple[str, int]] = {}
        self.undefined = dict(parameters)
        self.works: list[str] = [work.strip() for work in cite.split(";") if work.strip()]
        self.source = self.works[0] if self.works else ""  # whose equations are numbered
        self.known: dict[str, list[tuple[str, int]]] = {}
        self.separate = {"results"}
        self.notation: set[str] = set()
        self.before = ""  # the rule of the last step
        self.rested: Span | None = None  # what the last step said that it rests on
        self.reasons: list[Fragments] = []
        self.ends: Block | None = None  # what stands last
        self.heard: list[Equation] = []  # the fields that were defined
        self.names: dict[FormulaNode, FormulaNode] = {}
        self.named: dict[FormulaNode, tuple[str, int]] = {}

    def groups(self, rows: Sequence[Any], key: str, numbered: bool = True) -> tuple[Numbered, ...]:
        """The rows of a display, in chains and in lines, with their numbers."""
        out = []
        separate = key in self.separate
        chains = chains_of(rows, self.before == "substitute")
        for chain, short in [((row,), False) for row in rows] if separate else in_lines(chains):
            if not numbered:
                out.append(Numbered(chain, abreast=short))
                continue
            self.count += 1
            some = self.known.setdefault(key, [])
            label = key if not some else f"{key}:{len(some) + 1}"
            some.append((label, self.count))
            equations = [row for row in chain if isinstance(row, Equation)]
            self.shown |= dict.fromkeys(map(said_by, equations), (label, self.count))
            out.append(Numbered(chain, label, self.count, short))
        return tuple(out)

    def display(self, rows: Sequence[Any], key: str, numbered: bool = True, end: str = ".") -> list[Block]:
        """A display, and the names in it of what is too wide for a line."""
        groups = self.groups(rows, key, numbered)
        flat = [row_of(obj) for group in groups for obj in group.rows]
        shown, old, new = shorten(flat, self.names, fits)
        if shown == flat:
            return [Display(groups, end)]
        parts = iter(shown)
        groups = tuple(replace(group, rows=tuple(next(parts) for _ in group.rows)) for group in groups)
        at = next(((group.label, group.number) for group in groups if group.number is not None), None)
        said: Fragments = []
        if old:
            span = self.joined(self.named[name] for name in old if name in self.named)
            names = listed(Row((name,)) for name in sorted(old, key=to_tex))
            said = ["with ", *names, *([" of ", *cite(span)] if span else [])]
        blocks: list[Block] = [Display(groups, "," if old or new else end)]
        if new:
            if at is not None:
                self.named |= {row.items[0]: at for row in new}
            blocks += [Paragraph((*said, *([", and " if said else "with "])), goes_on=True)]
            return [*blocks, Display(tuple(Numbered((row,)) for row in new), end)]
        return [*blocks, Paragraph((*said, end), goes_on=True)] if said else blocks

    def cited(self, fragment: Any) -> Any:
        """Give a cited work its number."""
        if not isinstance(fragment, Cite):
            return fragment
        places = [_place(work) for work in self.works]
        if _place(fragment.work) not in places:
            places.append(_place(fragment.work))
            self.works.append(fragment.work)
        return Cite(fragment.work, places.index(_place(fragment.work)) + 1)

    def holds_only(self, entry: tuple[str, int], claims: Iterable[Any]) -> bool:
        """Whether a number belongs to some of these claims, and to no other."""
        known = {*map(said_by, claims)}
        return all(said in known for said, other in self.shown.items() if other == entry)

    def definitions(self, claims: Iterable[Any]) -> list[Equation]:
        """The order parameters that stand in claims for the first time, each by what it is."""
        free = set().union(*(getattr(c, "difference", S.Zero).free_symbols for c in claims))
        said = [Equation(s, self.undefined.pop(s)) for s in [*self.undefined] if s in free]
        return [row for row in said if row.lhs not in self.alike.others]

    def fields(self, step: Step) -> list[Equation]:
        """The fields that a step speaks of before the system is written down, each by what it is."""
        rows = [row for row in step.data.get("fields", ()) if isinstance(row, Equation)]
        said = [row for row in rows if row not in self.heard and said_by(row) not in self.shown]
        self.heard += said
        return said

    def span(self, keys: Iterable[str], without: Container[tuple[str, int]] = ()) -> Span | None:
        """The numbers of the equations of some steps."""
        return self.joined(entry for key in keys for entry in self.known.get(key, []) if entry not in without)

    def joined(self, entries: Iterable[tuple[str, int]]) -> Span | None:
        """Join numbers to ranges."""
        found = sorted(set(entries), key=lambda e: e[1])
        ranges: list[tuple[tuple[str, int], tuple[str, int]]] = []
        for entry in found:
            if ranges and ranges[-1][1][1] == entry[1] - 1:
                ranges[-1] = (ranges[-1][0], entry)
            else:
                ranges.append((entry, entry))
        ranges = [
            part
            for first, last in ranges
            for part in ([(first, first), (last, last)] if last[1] == first[1] + 1 else [(first, last)])
        ]
        return Span(tuple(ranges)) if ranges else None


def _place(work: str) -> str:
    """What tells a cited work from others, however its authors and its journal are written: volume, page and year."""
    found = re.search(r"\d+, \w+ \(\d{4}\)$", work)
    return found.group() if found else work


def said_by(claim: Any) -> Any:
    """What a claim says, whichever side of an equation its terms stand on."""
    difference = getattr(claim, "difference", None)
    if difference is None:
        return claim
    if S.Zero in (claim.lhs, claim.rhs) and (form := solved(difference)):  # as it is displayed
        difference = form.difference
    return frozenset((difference, -difference))


def cite(span: Span) -> Fragments:
    """Return ``equation (3)``, ``equations (3) to (5)``."""
    return ["equations " if span.several else "equation ", span]
