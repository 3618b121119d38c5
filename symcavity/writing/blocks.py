"""What a derivation consists of for writers: paragraphs, displays and references, in sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from symcavity.record.derivation import Step
from symcavity.writing.fragments import Cite, Emphasis
from symcavity.writing.rows import abreast


@dataclass(frozen=True)
class Numbered:
    """What shares one number: an object, a chain of right-hand sides of one left-hand side, or one line."""

    rows: tuple[Any, ...]
    label: str = ""
    number: int | None = None
    abreast: bool = False

    @property
    def written(self) -> tuple[Any, ...]:
        """What is broken into lines."""
        return (abreast(self.rows),) if self.abreast else self.rows


@dataclass(frozen=True)
class Display:
    """Displayed mathematics; ``end`` is the punctuation after it."""

    groups: tuple[Numbered, ...]
    end: str = "."


@dataclass(frozen=True)
class Paragraph:
    """Running text; ``why`` marks the reason that a rule applies, ``goes_on`` what belongs to the display before it.

    ``known`` marks a reason that was given in the same words before.
    """

    fragments: tuple[Any, ...]
    why: bool = False
    goes_on: bool = False
    known: bool = False


@dataclass(frozen=True)
class Span:
    """References to equations: pairs of the first and the last (label, number)."""

    ranges: tuple[tuple[tuple[str, int], tuple[str, int]], ...]

    @property
    def several(self) -> bool:
        """Whether more than one equation is meant."""
        return len(self.ranges) > 1 or any(first != last for first, last in self.ranges)


Block = Display | Paragraph


@dataclass(frozen=True)
class StepBlocks:
    """The blocks of one step."""

    step: Step
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A titled part of the document."""

    title: str
    steps: tuple[StepBlocks, ...]


@dataclass(frozen=True)
class Document:
    """A derivation ready to be written."""

    title: str
    opening: tuple[Any, ...]
    sections: tuple[Section, ...]
    results: tuple[Block, ...]
    parameters: tuple[tuple[Any, Any], ...]
    assumptions: tuple[tuple[Any, ...], ...]
    works: tuple[str, ...] = ()

    @property
    def results_title(self) -> str:
        """The title of the closing list of equations, which no other section has."""
        return "Summary of the results" if any(s.title == "Results" for s in self.sections) else "Results"


@dataclass(frozen=True)
class Wording:
    """How a format writes the pieces of running text.

    Attributes
    ----------
    plain, stressed : callable
        Words.
    cited : callable
        The number of a work.
    numbered : callable
        The label and the number of an equation.
    formula : callable
        Anything else.
    dash : str
        The text between the first and the last of a range.
    """

    plain: Callable[[str], str]
    stressed: Callable[[str], str]
    cited: Callable[[int], str]
    numbered: Callable[[str, int], str]
    formula: Callable[[Any], str]
    dash: str = "–"

    def __call__(self, fragment: Any) -> str:
        """Write one piece."""
        match fragment:
            case str():
                return self.plain(fragment)
            case Cite():
                return self.cited(fragment.number) if fragment.number else self.plain(fragment.work)
            case Emphasis():
                return self.stressed(self.plain(fragment.words))
            case Span():
                ends = (dict.fromkeys(span) for span in fragment.ranges)
                *some, last = (self.dash.join(self.numbered(*end) for end in span) for span in ends)
                return f"{', '.join(some)} and {last}" if some else last
        return self.formula(fragment)
