"""The width of a formula, and where its lines may end."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from symcavity.writing.nodes import (
    SPACES,
    Accent,
    Atom,
    Fence,
    FormulaNode,
    Frac,
    Radical,
    Row,
    Script,
    Table,
    beside,
    delimiter_char,
    is_big,
    items_of,
    role_of,
)

_WIDE = 12.0  # a bracket narrower than this is not worth a line break


def width(node: FormulaNode) -> float:
    """Estimate the width of a tree, in typical letters of the running size; a tree remembers its own."""
    found: float | None = node.__dict__.get("_width")
    if found is None:
        found = node.__dict__["_width"] = _measured(node)
    return found


def _measured(node: FormulaNode) -> float:
    match node:
        case Atom():
            return _atom_width(node)
        case Row():
            return sum(width(item) for item in node.items)
        case Frac():
            return max(width(node.top), width(node.bottom)) + 0.4
        case Radical():
            return width(node.body) + 1.6
        case Script():
            marks = [0.72 * width(mark) for mark in (node.sub, node.sup) if mark is not None]
            if is_big(node) and isinstance(node.base, Atom) and node.base.char != "∫":
                return max(2.6, *marks) + 0.4
            return width(node.base) + max(marks, default=0.0)
        case Fence():
            return width(node.body) + 1.7
        case Accent():
            return width(node.base)
        case Table():
            columns: dict[int, float] = {}
            for row in node.rows:
                for column, cell in enumerate(row):
                    columns[column] = max(columns.get(column, 0.0), width(cell))
            return sum(columns.values()) + 1.5 * len(columns)
    return 1.0


def _atom_width(atom: Atom) -> float:
    match atom.kind:
        case "rel":
            return 2.5
        case "bin":
            return 2.2
        case "big":
            return 2.6
        case "space":
            return 1.9 * SPACES.get(atom.tex[1:], 0.0)
        case "punct":
            return 0.8
        case "open" | "close":
            return 0.8
        case "num":
            return 0.95 * len(atom.char)
        case "fun" | "text":
            return 0.85 * len(atom.char) + 0.4
    return (1.05 if len(atom.char) == 1 else 0.95) * len(atom.char)


def relation_at(row: Row) -> int | None:
    """Return the place of the first relation of a row."""
    for place, item in enumerate(row.items):
        if isinstance(item, Atom) and item.kind == "rel":
            return place
    return None


def _sum_places(items: Sequence[FormulaNode], start: int) -> list[int]:
    places = []
    before = "open"
    for place, item in enumerate(items):
        role = role_of(item)
        if (
            role == "bin"
            and before not in ("open", "bin", "rel", "punct")
            and place > start
            and _is_sign(item)
        ):
            places.append(place)
        if role == "rel" and place > start:
            places.append(place)
        before = role
    return places


def _statements(items: Sequence[FormulaNode]) -> list[int]:
    """Where statements of a row begin: after a comma of its words, and before the blank that words follow."""
    kinds = [(item.kind, item.char) if isinstance(item, Atom) else ("", "") for item in items]
    after = [k + 1 for k, (kind, char) in enumerate(kinds[:-1]) if kind == "text" and char.strip() == ","]
    blanks = [k for k in range(1, len(kinds) - 1) if (kinds[k][0], kinds[k + 1][0]) == ("space", "text")]
    return sorted(after + blanks)


def _is_sign(item: FormulaNode) -> bool:
    return isinstance(item, Atom) and item.char in "+-·×±"


def _chunks(row: Row, start: int) -> list[Row]:
    cuts = [0, *_sum_places(row.items, start), len(row.items)]
    return [row.part(a, b) for a, b in itertools.pairwise(cuts) if b > a]


def _unfold(row: Row) -> Row | None:
    """Open the widest bracket (or fraction) of a row, so that lines may end inside it."""
    best, size = None, _WIDE
    for place, item in enumerate(row.items):
        core = item.base if isinstance(item, Script) else item
        named = isinstance(item, Script) and item.sub is not None  # an average over this variable is read as a whole
        whole = named and isinstance(core, Fence) and core.left == "\\langle"
        if isinstance(core, Fence | Frac) and not whole and width(core) > size and _breakable(core):
            best, size = place, width(core)
    if best is None:
        return None
    blank = [" "] if row.blank(best) else []
    return beside(row.part(0, best), *blank, _opened(row.items[best]), row.part(best + 1))


def _breakable(core: Fence | Frac) -> bool:
    items = items_of(_inside(core))
    if any(role_of(item) == "rel" for item in items):
        return False  # an average under a condition is read as a whole
    if _sum_places(items, -1):
        return True
    cores = [item.base if isinstance(item, Script) else item for item in items]
    return any(
        isinstance(inner, Fence | Frac) and width(inner) > _WIDE and _breakable(inner) for inner in cores
    )


def _inside(core: Fence | Frac) -> FormulaNode:
    return core.body if isinstance(core, Fence) else core.top


def _opened(item: FormulaNode) -> FormulaNode:
    script = item if isinstance(item, Script) else None
    core = script.base if script else item
    if isinstance(core, Frac):
        one = Row((Atom("num", "1", "1"),))
        head: list[FormulaNode] = [replace(core, top=one)]
        left, right, body = "[", "]", core.top
    elif isinstance(core, Fence):
        head, left, right, body = [], core.left, core.right, core.body
    else:
        return item
    first = Atom("open", delimiter_char(left), f"\\Bigl{left}")
    last: FormulaNode = Atom("close", delimiter_char(right), f"\\Bigr{right}")
    if script:
        last = replace(script, base=last)
    return beside(*head, first, body, last)


def lines(row: Row, limit: float, indent: float = 2.0) -> list[Row]:
    """Break a row into lines that are not much wider than ``limit``.

    The first line holds the left-hand side; lines end before the signs of the outermost sum, and inside
    a bracket only where a single term is too wide.
    """
    if width(row) <= limit:
        return [row]
    if len(cuts := [0, *_statements(row.items), len(row.items)]) > 2:
        said: list[Row] = []
        for a, b in itertools.pairwise(cuts):
            room = limit - (indent if said else 0)
            more = row.part(a, b)
            if said and width(whole := beside(said[-1], more)) <= room:
                said[-1] = whole
            else:
                said += lines(more, room)
        return said
    start = relation_at(row)
    head = start if start is not None else -1
    for _ in range(6):
        chunks = _chunks(row, head)
        wide = [k for k, chunk in enumerate(chunks) if width(chunk) > limit - indent]
        opened = next(((k, new) for k in wide if (new := _unfold(chunks[k])) is not None), None)
        if opened is None:
            break
        place, new = opened
        row = beside(*chunks[:place], new, *chunks[place + 1 :])
        if start is not None:
            shift = relation_at(row)
            head = shift if shift is not None else head
    out: list[Row] = [Row(())]
    room = limit
    if start is not None and width(row.part(0, head)) > 0.55 * limit:
        out = [*lines(row.part(0, head), limit - indent), Row(())]
        row, head, room = row.part(head), 0, limit - indent
    for piece in _chunks(row, head):
        if out[-1].items and width(beside(out[-1], piece)) > room:
            out.append(Row(()))
            room = limit - indent
        out[-1] = beside(out[-1], piece)
    return [line for line in out if line.items]
