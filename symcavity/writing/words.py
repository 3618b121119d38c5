r"""Sentences are data: ``sentences.txt`` holds all that is said in English, and this file fills it in.

A section ``[name]`` of that file has the parts ``before`` (the default), ``again`` and ``after``.  Its lines are joined
by blanks.  What stands in braces is filled in from the values that the caller gives:

======================================  ==============================================================================
``{name}``                              the value; a list as ``a, b and c``
``{name: one | many}``                  a word by the number of things
``{if name: yes | no}``                 words that stand only where a value is there; ``unless`` is its opposite
``{list name: words}``                  the words for each entry of a list, joined as ``a, b and c``
``{chain name: words}``                 the same, joined as ``a, and b, and c``
``{each name: words}``                  the same, one after the other
``{display name}``                      rows of displayed mathematics; ``{aside name}`` if they get no number
``{premises}``                          the place of "By equations (3) and (5),"
``{cite work}``                         a work of the section ``[works]``
``$\delta @name$``                       mathematics: TeX, with values at ``@name``
``*words*``                             words to be stressed
======================================  ==============================================================================

Inside ``list``, ``chain`` and ``each`` the fields of the entry can be used by their names as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sympy import Add

from symcavity.model.kinds import Kind
from symcavity.writing.fragments import Cite, EarlierSteps, Emphasis, Fragments, Prose, Show, listed
from symcavity.writing.nodes import Row, beside, in_brackets
from symcavity.writing.printing import tree
from symcavity.writing.reader import mark, read

PARTS = ("before", "again", "after")


class Said(list[Any]):
    """Fragments that stand as they are; any other list is written as ``a, b and c``."""


class BadTemplate(Exception):
    """A sentence that cannot be filled in: a brace that does not close, or a name that has no value."""


@dataclass(frozen=True)
class Slot:
    """A place of a sentence that is filled in: how, by which value, with which words."""

    how: str
    name: str
    words: tuple[tuple[Any, ...], ...] = ()


_MARK = re.compile(r"\{|\}|\||\$[^$]*\$|\*[^*]+\*")
_HEAD = re.compile(r"\s*(?:(if|unless|list|chain|each|display|aside|cite)\s+)?([A-Za-z_]\w*)\s*(:)?\s*")


def _read(source: str, place: int, inside: bool) -> tuple[list[tuple[Any, ...]], int]:
    """Read the alternatives of a text up to its end, or to the brace that closes it."""
    found: list[list[Any]] = [[]]
    while True:
        mark = _MARK.search(source, place)
        found[-1].append(source[place : mark.start() if mark else len(source)])
        if mark is None:
            if inside:
                raise BadTemplate(f"A brace does not close in: {source}")
            return [tuple(found[0])], len(source)
        place, sign = mark.end(), mark.group()
        if sign == "}" and inside:
            return [tuple(some) for some in found], place
        if sign == "|" and inside:
            found[-1][-1] = found[-1][-1].rstrip()
            found.append([])
            place += source[place : place + 1] == " "
        elif sign == "{":
            head = _HEAD.match(source, place)
            if head is None:
                raise BadTemplate(f"A brace holds no name in: {source}")
            words, place = _read(source, head.end(), inside=True)
            how = head[1] or ("choose" if head[3] else "premises" if head[2] == "premises" else "value")
            found[-1].append(Slot(how, head[2], tuple(words)))
        elif sign[0] == "$":
            found[-1].append(Slot("math", sign[1:-1]))
        elif sign[0] == "*":
            found[-1].append(Emphasis(sign[1:-1]))
        else:
            raise BadTemplate(f"{sign} stands alone in: {source}")


@cache
def templates() -> dict[str, dict[str, tuple[Any, ...]]]:
    """All sentences, by the name of their section and the part."""
    text: dict[str, dict[str, list[str]]] = {}
    section, part = "", PARTS[0]
    for line in files("symcavity.writing").joinpath("sentences.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("["):
            section, part = line.strip()[1:-1], PARTS[0]
            if section in text:
                raise BadTemplate(f"There are two sections [{section}].")
            text[section] = {}
        elif line.strip().rstrip(":") in PARTS and line.strip().endswith(":"):
            part = line.strip()[:-1]
        else:
            text[section].setdefault(part, []).append(line.strip())
    return {
        name: {part: _read(" ".join(some), 0, inside=False)[0][0] for part, some in parts.items()}
        for name, parts in text.items()
    }


def has(name: str) -> bool:
    """Whether there is a section of this name."""
    return name in templates()


def say(name: str, part: str = PARTS[0], **values: Any) -> Fragments:
    """Return a part of a section as fragments.

    Raises
    ------
    BadTemplate
        If a value that the words ask for is not there.
    """
    return _tidy(_filled(templates()[name].get(part, ()), values))


def sentence(name: str, **values: Any) -> str:
    """Return a section that is words alone."""
    return "".join(map(str, say(name, **values)))


def prose_of(name: str, values: Mapping[str, Any]) -> Prose:
    """Return what is said before and after the claims of a step."""
    return Prose(*(say(name, part, **values) for part in ("before", "after", "again")))


def _value(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise BadTemplate(f"The words ask for {name}; there are: {', '.join(sorted(values))}.")
    found = values[name]
    return str(found) if isinstance(found, Kind) else found


def _filled(template: Iterable[Any], values: Mapping[str, Any]) -> Fragments:
    out: Fragments = []
    for piece in template:
        if not isinstance(piece, Slot):
            out.append(piece)
            continue
        match piece.how:
            case "premises":
                out.append(EarlierSteps(""))
            case "value":
                out += _spelled(_value(piece.name, values))
            case "choose":
                count = _value(piece.name, values)
                number = count if isinstance(count, int) else len(count)
                out += _filled(piece.words[min(number != 1, len(piece.words) - 1)], values)
            case "if" | "unless":
                there = bool(values.get(piece.name)) == (piece.how == "if")
                out += _filled(piece.words[not there] if there or len(piece.words) > 1 else (), values)
            case "list" | "chain" | "each":
                entries = [Said(_filled(piece.words[0], {**values, **one})) for one in values.get(piece.name) or ()]
                out += _spelled(entries) if piece.how == "list" else _chained(entries, piece.how == "chain")
            case "display" | "aside":
                out.append(Show(tuple(_value(piece.name, values)), numbered=piece.how == "display"))
            case "cite":
                out.append(Cite("".join(map(str, templates()["works." + piece.name]["before"]))))
            case "math":
                out.append(_formula(piece.name, values))
    return out


def _formula(source: str, values: Mapping[str, Any]) -> Row:
    """Mathematics of a sentence, in which ``@name`` stands for a value: LaTeX, or anything that is printed."""
    given: list[Row] = []

    def text(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        return value if isinstance(value, str) else found[0]

    def value(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        ahead, behind = found.string[: found.start()], found.string[found.end() :]
        row = tree(value)
        loose = isinstance(value, Add) and not (_STARTS.search(ahead) and _ENDS.match(behind))
        given.append(beside(in_brackets(row)) if loose else row)
        return mark(len(given) - 1)

    return read(_NAME.sub(value, _NAME.sub(text, source)), given)


_NAME = re.compile(r"@([A-Za-z]+)")
_STARTS = re.compile(r"(?:^|(?<!\\)[,:]|[=<>+|({\[]|\\(?:le|ge|ne|colon|mid)(?![A-Za-z]))\s*$")
_ENDS = re.compile(r"\s*(?:$|[-=<>+,:|)}\]]|\\(?:le|ge|ne|right|mid)(?![A-Za-z]))")
"""What may stand before and behind a sum without brackets."""


def _spelled(value: Any) -> Fragments:
    """A value as fragments."""
    if isinstance(value, Said):
        return value
    if isinstance(value, int):
        return [str(value)]
    if not isinstance(value, list | tuple):
        return [value]
    return [part for item in listed(value) for part in _spelled(item)]


def _chained(entries: Iterable[Fragments], chained: bool) -> Fragments:
    out: Fragments = []
    for entry in entries:
        out += [", and " if chained and out else " " if out else "", *entry]
    return out


def _spaced(words: str) -> str:
    return re.sub(" +([.,;:])", r"\1", re.sub(" {2,}", " ", words))


def _tidy(fragments: Fragments) -> Fragments:
    """Join strings, with single blanks between words, and none at displays, ends, and before points and commas."""
    out: Fragments = []
    for part in fragments:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        elif isinstance(part, str) and out and isinstance(out[-1], EarlierSteps):
            out[-1] = EarlierSteps(out[-1].sentence + part)
        elif isinstance(part, str) or part != "":
            out.append(part)
    last = len(out) - 1
    for place, part in enumerate(out):
        ends = place == last or isinstance(out[place + 1], Show)
        if isinstance(part, EarlierSteps):
            words = _spaced(part.sentence).lstrip()
            out[place] = EarlierSteps(words.rstrip() if ends else words)
        if not isinstance(part, str):
            continue
        said = _spaced(part)
        said = said.lstrip() if place == 0 or isinstance(out[place - 1], Show) else said
        out[place] = said.rstrip() if ends else said
    return [part for part in out if not (isinstance(part, str) and part == "")]
