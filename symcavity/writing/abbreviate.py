"""Names for the parts of formulas that are too wide for a page, as people give them: ``with A_1 = ...``."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symcavity.writing.lines import relation_at, width
from symcavity.writing.nodes import (
    Atom,
    Fence,
    FormulaNode,
    Frac,
    Radical,
    Row,
    Script,
    Table,
    is_big,
    items_of,
    role_of,
)

_WORTH = 9.0  # a part that is narrower than this needs no name
_MOST = 40  # names for one display
_CALLERS = ("fun", "text", "big")  # what takes a bracket as its argument, though a blank stands between them


def name_of(number: int) -> FormulaNode:
    """The name of a part."""
    return Script(Atom("id", "𝒜", "\\mathcal{A}"), Row((Atom("num", str(number), str(number)),)))


def shorten(
    rows: Sequence[Row], known: dict[FormulaNode, FormulaNode], fits: Callable[[Row], bool]
) -> tuple[list[Row], list[FormulaNode], list[Row]]:
    """Give names to parts of formulas until every formula fits.

    Parameters
    ----------
    rows : sequence of Row
        The formulas of one display.
    known : dict
        Names by what they stand for; new ones are added.
    fits : callable
        Whether a formula may stand as it is.

    Returns
    -------
    tuple of list
        The formulas; the names in them that were known before; the definitions of the new ones, which fit as well, as
        far as parts of them can be named.
    """
    if all(map(fits, rows)):
        return list(rows), [], []
    shown = [_named(row, known) for row in rows]
    old = set(known.values())
    made: list[FormulaNode] = []
    parts_named: list[FormulaNode] = []
    for _ in range(_MOST):
        every = [*shown, *map(_definition, made, parts_named)]
        parts = _parts([row for row in every if not fits(row)], every)
        whole = set(map(_whole, every))
        parts = {part: worth for part, worth in parts.items() if items_of(part) not in whole}
        if not parts:
            break
        best = max(parts, key=lambda part: (parts[part], width(part)))
        name = name_of(len(known) + len(made) + 1)
        shown, parts_named = ([_named(row, {best: name}) for row in some] for some in (shown, parts_named))
        made.append(name)
        parts_named.append(best)
    needless: dict[FormulaNode, FormulaNode] = {}
    for found in (_within_brackets, _short):
        left = [(name, part) for name, part in zip(made, parts_named, strict=True) if name not in needless]
        every = [*shown, *(part for _, part in left)]
        for name in found(left, every):
            part = parts_named[made.index(name)]
            shown, parts_named = ([_named(row, {name: part}, ()) for row in some] for some in (shown, parts_named))
            needless[name] = part
    meant = {name: part for name, part in zip(made, parts_named, strict=True) if name not in needless}
    kept = [(name, meant[name]) for name in _in_order(shown, meant)]
    again = {name: name_of(len(known) + k + 1) for k, (name, _) in enumerate(kept)}
    shown, parts_named = ([_named(row, again, ()) for row in some] for some in (shown, [part for _, part in kept]))
    made = list(again.values())
    known |= dict(zip(parts_named, made, strict=True))
    new = list(map(_definition, made, parts_named))
    used = {node for row in (*shown, *new) for node in _nodes(row)}
    return shown, [name for name in old if name in used], new


def _in_order(shown: Sequence[Row], left: Mapping[FormulaNode, FormulaNode]) -> list[FormulaNode]:
    """Names as a reader meets them: in the formulas first, then in what other names stand for."""
    found = list(dict.fromkeys(node for row in shown for node in _nodes(row) if node in left))
    for name in found:  # which grows
        found += [node for node in dict.fromkeys(_nodes(left[name])) if node in left and node not in found]
    return found


def _short(left: Sequence[tuple[FormulaNode, FormulaNode]], _every: Sequence[Any]) -> list[FormulaNode]:
    """The names of what has become short, once its own parts have names: it needs none."""
    return [n for n, part in left if (isinstance(part, Frac | Radical) or _is_average(part)) and width(part) < _WORTH]


def _within_brackets(left: Sequence[tuple[FormulaNode, FormulaNode]], every: Sequence[Any]) -> list[FormulaNode]:
    """The names that stand once, as all that another name's average is of: one name for both is enough."""
    count = Counter(node for row in every for node in _nodes(row))
    whole = {items_of(_inside(part)) for _, part in left}
    return [name for name, _ in left if count[name] == 1 and (name,) in whole]


def _inside(part: FormulaNode) -> FormulaNode:
    """The body of an average; any other node unchanged."""
    core = part.base if isinstance(part, Script) else part
    return core.body if _is_average(part) and isinstance(core, Fence) else part


def _definition(name: FormulaNode, body: FormulaNode) -> Row:
    items = items_of(body)
    spaced = body.spaced if isinstance(body, Row) else ()
    return Row((name, Atom("rel", "=", "="), *items), (False, True, *(spaced or (True,) * len(items))))


def _whole(row: Row) -> tuple[FormulaNode, ...]:
    """What a formula says of its left side, but for a sign: a name for it would say nothing."""
    items = row.items[(relation_at(row) or -1) + 1 :]
    return items[1:] if items and isinstance(items[0], Atom) and items[0].char in "+-" else items


def _children(node: FormulaNode) -> list[Any]:
    return [value for name, value in node.__dict__.items() if not name.startswith("_")]


def _nodes(node: Any) -> list[FormulaNode]:
    if isinstance(node, tuple):
        return [inner for entry in node for inner in _nodes(entry)]
    if not isinstance(node, FormulaNode):
        return []
    return [node, *(inner for entry in _children(node) for inner in _nodes(entry))]


def _candidates(node: Any) -> list[FormulaNode]:
    """The parts of a formula that may have a name: fractions, roots, averages, and what stands in brackets."""
    out: list[FormulaNode] = []
    if isinstance(node, tuple | Row):
        return [part for item in (node.items if isinstance(node, Row) else node) for part in _candidates(item)]
    if isinstance(node, Frac | Radical) or _is_average(node):
        out.append(node)
        node = node.base.body if isinstance(node, Script) and isinstance(node.base, Fence) else node
    elif isinstance(node, Fence) and (node.left, node.right) in (("(", ")"), ("[", "]")):
        out.append(node.body)
    if isinstance(node, Frac):
        out += [part for part in (node.top, node.bottom) if isinstance(part, Row) and len(part.items) > 1]
    if isinstance(node, Row):
        return [*out, *_candidates(node)]
    if isinstance(node, FormulaNode) and not isinstance(node, Atom) and not is_big(node):
        out += [part for child in _children(node) for part in _candidates(child)]
    return out


def _is_average(node: Any) -> bool:
    core = node.base if isinstance(node, Script) and node.sup is None else node
    return isinstance(core, Fence) and core.left == "\\langle"


def _parts(wide: Sequence[Row], every: Sequence[Row]) -> dict[FormulaNode, float]:
    """What naming each part of the wide formulas saves."""
    within = set().union(*(_candidates(row) for row in wide)) if wide else set()
    count = Counter(part for row in every for part in _candidates(row) if part in within)
    sizes = {part: width(part) for part in count}
    return {
        part: number * (sizes[part] - 2.5)
        for part, number in count.items()
        if sizes[part] >= _WORTH and not any(isinstance(inner, Table) for inner in _nodes(part))
    }


def repeats(row: Row) -> int:
    """How often the part stands in a formula that stands there most often, of those that are worth a name."""
    count = Counter(part for part in _candidates(row) if width(part) >= _WORTH)
    return max(count.values(), default=0)


def _named(tree: Any, names: dict[FormulaNode, FormulaNode], bare: Iterable[FormulaNode] | None = None) -> Any:
    """A formula with names in place of parts, the inner ones first; round mere names no brackets are left."""
    whose = frozenset(names.values() if bare is None else bare)
    done: dict[FormulaNode, FormulaNode] = {}

    def named(node: Any) -> Any:
        if isinstance(node, tuple):
            entries = tuple(map(named, node))
            return node if all(map(operator.is_, entries, node)) else entries
        if not isinstance(node, FormulaNode) or isinstance(node, Atom):
            return node
        if node not in done:
            old = _children(node)
            new = [named(child) for child in old]
            changed = not all(map(operator.is_, new, old))
            made = type(node)(*new) if changed else node
            made = _bare(made, whose) if changed and isinstance(made, Row) else made
            done[node] = names.get(made, made)
        return done[node]

    return named(tree)


def _bare(row: Row, names: frozenset[FormulaNode]) -> Row:
    """A row without the brackets round a mere name, unless they may hold the argument of a function."""
    items: list[FormulaNode] = []
    for place, item in enumerate(row.items):
        core = item.base if isinstance(item, Script) else item
        before = items[-1] if items else Atom("open", "", "")
        called = before.base if isinstance(before, Script) else before
        beside = isinstance(called, Frac | Radical | Fence) or role_of(called) not in (*_CALLERS, "id", "factor")
        is_product = beside or before in names or (row.blank(place) and role_of(called) not in _CALLERS)
        is_power = not isinstance(item, Script) or item.sub is None  # brackets with an index mean something
        if isinstance(core, Fence) and core.left in "([" and core.body in names and is_product and is_power:
            name = core.body
            item = replace(item, base=name) if isinstance(item, Script) else name
        items.append(item)
    return Row(tuple(items), row.spaced)
