"""Formulas as one line of Unicode text."""

from __future__ import annotations

import re

from symcavity.writing.nodes import (
    ACCENTS,
    Accent,
    Atom,
    Fence,
    FormulaNode,
    Frac,
    MarkupError,
    Radical,
    Row,
    Script,
    Table,
    clings,
    delimiter_char,
    is_big,
    is_differential,
    items_of,
    role_of,
)

_SUPER = dict(zip("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", strict=True))
_SUB = dict(zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True))


def to_text(node: FormulaNode) -> str:
    """Write a tree as one line of Unicode text."""
    match node:
        case Atom():
            return node.char
        case Row():
            return _row_text(node)
        case Frac():
            return _frac_text(node)
        case Radical():
            body = to_text(node.body)
            sign = f"{to_text(node.degree) if node.degree else ''}√"
            return sign + (
                body if body.isdigit() or (" " not in body and not _weight(node.body)) else f"({body})"
            )
        case Script():
            return _script_text(node)
        case Fence():
            if node.left == "." and node.right == "|":
                return f"{to_text(node.body)} |"
            return f"{delimiter_char(node.left)}{to_text(node.body)}{delimiter_char(node.right)}"
        case Accent():
            return to_text(node.base) + ACCENTS.get(node.name, "")
        case Table():
            rows = [[to_text(cell).strip().rstrip(",") for cell in row] for row in node.rows]
            return "{" + "; ".join(" ".join(cell for cell in row if cell) for row in rows) + "}"
    raise MarkupError(f"{node!r} is unknown.")


def _row_text(row: Row) -> str:
    out = ""
    before = "open"
    glue = True
    for place, item in enumerate(row.items):
        role = "close" if _closes(item) else role_of(item)
        piece = to_text(item)
        if role == "space":
            out, glue = (out.rstrip() + " ", True) if piece else (out, glue)
            continue
        if role == "bin" and before in ("open", "bin", "rel", "punct", "big") and piece in "+-":
            out += ("" if glue or out.endswith(" ") else " ") + piece
            before, glue = "open", True
            continue
        if isinstance(item, Frac) and place + 1 < len(row.items) and _multiplies(row, place + 1):
            piece = f"({piece})"
        if role in ("bin", "rel"):
            tight = piece == "/"
            out += piece if tight else f"{'' if before == 'open' else ' '}{piece} "
            glue = True
        elif role in ("punct", "close") or (role == "text" and piece.startswith(",")):
            out = out.rstrip() + piece + (" " if role == "punct" and piece in ",;" else "")
            glue = role == "punct"
        else:
            applied = isinstance(item, Fence) and not row.blank(place) and before in ("id", "factor", "fun")
            opened = role == "open" and not row.blank(place) and before in ("id", "fun", "factor")
            blank = not (glue or applied or opened or out.endswith(" ") or not out)
            out += (" " if blank else "") + piece
            glue = role == "open" or clings(row, place)
        before = role
    return re.sub(r" {2,}", " ", out).strip(" ") if len(row.items) > 1 else out


def _closes(item: FormulaNode) -> bool:
    """Whether an item is a closing bracket with scripts."""
    return isinstance(item, Script) and isinstance(item.base, Atom) and item.base.kind == "close"


def _multiplies(row: Row, place: int) -> bool:
    item = row.items[place]
    if isinstance(item, Atom) and item.kind == "space":
        return place + 1 < len(row.items) and _multiplies(row, place + 1)
    return role_of(item) in ("id", "num", "fun", "factor", "big", "open")


def _weight(node: FormulaNode) -> int:
    """Say how tightly a row binds as text: 0 one factor, 1 a product or quotient, 2 a sum or relation."""
    items = [item for item in _without_arguments(node) if role_of(item) != "space"]
    if any(role_of(item) in ("bin", "rel", "punct") for item in items):
        return 2
    if items and is_differential(items[0]) and (not isinstance(node, Row) or clings(node, 0)):
        items = items[1:]
    applied = isinstance(node, Row) and not any(node.blank(place) for place in range(1, len(node.items)))
    if (
        len(items) == 2
        and isinstance(items[1], Fence)
        and applied
        and role_of(items[0]) in ("fun", "factor", "id")
    ):
        items = items[:1]
    return 1 if len(items) > 1 or any(isinstance(item, Frac) or is_big(item) for item in items) else 0


def _without_arguments(node: FormulaNode) -> list[FormulaNode]:
    """The items of a row, without arguments in plain brackets: those of ``x(t + 1)``."""
    out: list[FormulaNode] = []
    depth = 0
    for place, item in enumerate(items_of(node)):
        role = role_of(item)
        tight = isinstance(node, Row) and not node.blank(place)
        if role == "open" and (depth or (tight and out and role_of(out[-1]) in ("fun", "factor", "id"))):
            depth += 1
        elif not depth:
            out.append(item)
        elif role == "close" or _closes(item):
            depth -= 1
    return out


def _frac_text(node: Frac) -> str:
    top, bottom = to_text(node.top), to_text(node.bottom)
    heavy_top = _weight(node.top) == 2 or any(isinstance(item, Frac) for item in items_of(node.top))
    return f"{f'({top})' if heavy_top else top}/{f'({bottom})' if _weight(node.bottom) else bottom}"


def _script_text(node: Script) -> str:
    base = to_text(node.base)
    if is_big(node):
        return base + _range_text(node)
    if isinstance(node.base, Row) and len(node.base.items) > 1:
        base = f"({base})"
    if isinstance(node.base, Frac):
        base = f"({base})"
    return base + _mark(node.sub, "_", _SUB) + _mark(node.sup, "^", _SUPER)


def _mark(node: FormulaNode | None, mark: str, table: dict[str, str]) -> str:
    if node is None:
        return ""
    body = to_text(node)
    if body == "′":
        return body
    if all(char in table for char in body) and body not in ("+", "-"):
        return "".join(table[char] for char in body)
    squeezed = body.replace(" ", "")
    nested = any(isinstance(item, Frac | Script) for item in items_of(node))
    if _weight(node) < 2 and not nested and len(squeezed) <= 3:
        return mark + squeezed
    return f"{mark}{body}" if len(body) == 1 else f"{mark}({body})"


def _range_text(node: Script) -> str:
    sub = to_text(node.sub) if node.sub is not None else ""
    sup = to_text(node.sup) if node.sup is not None else ""
    index, equals, low = sub.partition(" = ")
    index = index.replace(" ", "")
    if equals and low == "1" and sup in ("N", "P"):
        return f"_{index}" if len(index) == 1 else f"_{{{index}}}"
    if equals and sup:
        return f"_({index} = {low}..{sup})"
    if sup:
        return f"[{sub}..{sup}]"
    return f"_{{{sub}}}" if sub else ""
