"""Equations that are the same but for the numbers of components, written once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr

from symcavity.model.equations import Equation
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import MANY
from symcavity.writing.nodes import Atom, Fence, FormulaNode, Frac, Row, Script, is_differential, to_tex
from symcavity.writing.printing import tree

Numbers = Mapping[str, str]


class Alike:
    """Which equation of a derivation stands for another: the first of those that are one but for renamed components.

    Parameters
    ----------
    derivation : Derivation, optional
        Claims are compared as they are printed, within one rule of one section. One stands for others only if every
        renaming of it is there.

    Attributes
    ----------
    first : dict
        By claim, the one that stands for it.
    others : set
        The order parameters for which another one stands.
    """

    def __init__(self, derivation: Derivation | None = None) -> None:
        self.first: dict[Any, Any] = {}
        self.others: set[Any] = set()
        if derivation is None or not any(step.data.get("carriers", ())[MANY - 1 :] for step in derivation.steps):
            return  # no site hears many fields
        meanings = [Equation(s, m) for s, m in derivation.parameters if isinstance(m, Expr)]
        rows: list[tuple[Hashable, Any]] = [("results", row) for row in derivation.results]
        rows += [("parameters", row) for row in meanings]
        for step in derivation.steps:
            rows += [((step.section, step.rule), claim) for claim in step.claims]
            rows += [("changes", row) for row in _changes(step)]
        self.first = _standing(rows)
        self.others = {row.lhs for row in meanings if self.stood_for(row)}

    def __bool__(self) -> bool:
        return any(map(self.stood_for, self.first))

    def stood_for(self, claim: Any) -> bool:
        """Whether another equation stands for this one."""
        return bool(self.first.get(claim, claim) != claim)

    def one(self, step: Step) -> Step:
        """The step with what it lists given for one of those that are alike."""
        if not self.first:
            return step
        data = dict(step.data)
        if changes := _changes(step):
            rows = zip(data["fields"], changes, strict=True)
            data["fields"] = [row for row, change in rows if not self.stood_for(change)]
        if "unknowns" in data:
            data["unknowns"] = [s for s in data["unknowns"] if s not in self.others]
        return replace(step, data=data)


def _changes(step: Step) -> list[Equation]:
    """What a step says of the covariances of changes."""
    return [Equation(a * b, value) for a, b, value in step.data.get("fields") or ()] if step.rule == "spread" else []


def _standing(groups: Iterable[tuple[Hashable, Any]]) -> dict[Any, Any]:
    claims: dict[Hashable, dict[Any, Row]] = {}
    for group, claim in groups:
        claims.setdefault(group, {})[claim] = tree(claim)
    found = {mark for some in claims.values() for row in some.values() for mark in _marks(row)}
    numbers = sorted({digit for mark in found for digit in mark})
    if len(numbers) < MANY:
        return {}
    swap = dict(zip(numbers[:2], numbers[1::-1], strict=True))
    turn = dict(zip(numbers, numbers[1:] + numbers[:1], strict=True))
    return {claim: first for some in claims.values() for claim, first in _orbits(some, (swap, turn)).items()}


def _orbits(rows: Mapping[Any, Row], renamings: Iterable[Numbers]) -> dict[Any, Any]:
    """The first of each orbit, by its members; nothing of an orbit that is not whole."""
    place = {_form(row, {}): claim for claim, row in reversed([*rows.items()])}
    first = {claim: claim for claim in rows}
    broken = set()
    for renaming in renamings:
        for claim, row in rows.items():
            image = place.get(_form(row, renaming))
            if image is None:
                broken.add(claim)
            else:
                one, two = first[claim], first[image]
                first = {c: one if f in (one, two) else f for c, f in first.items()}
    order = {claim: k for k, claim in enumerate(rows)}
    members: dict[Any, list[Any]] = {}
    for claim, one in first.items():
        members.setdefault(one, []).append(claim)
    return {
        claim: min(some, key=order.__getitem__)
        for some in members.values() if not broken & {*some} for claim in some
    }  # fmt: skip


def _marks(node: Any) -> list[str]:
    """The numbers of components that stand in a formula: ``12`` of ``F_00,12``."""
    if isinstance(node, tuple):
        return [mark for inner in node for mark in _marks(inner)]
    if not isinstance(node, FormulaNode) or isinstance(node, Atom):
        return []
    both = ((node.sub, True), (node.sup, False)) if isinstance(node, Script) else ()
    scripts = [(mark.items, lower) for mark, lower in both if isinstance(mark, Row)]
    own = [to_tex(items[k]) for items, lower in scripts for k in _numbers_in(items, lower)]
    return own + [mark for name, value in node.__dict__.items() if name[0] != "_" for mark in _marks(value)]


def _numbers_in(items: tuple[Any, ...], lower: bool) -> list[int]:
    """The places of numbers in brackets, or alone in a lower index; the zeros of an inserted site name none."""
    kinds = ["punct" if lower else "", *(item.kind if isinstance(item, Atom) else "" for item in items)]
    kinds.append(kinds[0])
    found = [k for k in range(len(items)) if kinds[k] in ("open", "punct") and kinds[k + 1] == "num"]
    ends = {"open": "close", "punct": "punct"}
    return [k for k in found if kinds[k + 2] == ends[kinds[k]] and set(items[k].char) != {"0"}]


def _form(node: Any, numbers: Numbers) -> Hashable:
    """A formula with renamed components, whatever the order of its terms and factors."""
    match node:
        case Atom():
            return node.tex
        case Row():
            return _sides(node.items, numbers)
        case Script():
            marks = (_script(mark, node, numbers) for mark in (node.sub, node.sup))
            return ("script", _form(node.base, numbers), *marks)
        case Fence():
            return (node.left, _form(node.body, numbers), node.right)
        case Frac():
            return ("frac", _form(node.top, numbers), _form(node.bottom, numbers))
        case tuple():
            return tuple(_form(inner, numbers) for inner in node)
        case FormulaNode():
            return (type(node).__name__, *(_form(v, numbers) for k, v in node.__dict__.items() if k[0] != "_"))
    return node


def _script(mark: Any, of: Script, numbers: Numbers) -> Hashable:
    """An index: numbers of components are renamed in it, and the values of labels beside a Kronecker symbol."""
    if not isinstance(mark, Row):
        return _form(mark, numbers)
    places = _numbers_in(mark.items, mark is of.sub)
    labels = isinstance(of.base, Atom) and of.base.char == "δ"
    renamed = [
        "".join(numbers.get(digit, digit) for digit in item.char)
        if isinstance(item, Atom) and (k in places or (labels and item.kind == "num")) else _form(item, numbers)
        for k, item in enumerate(mark.items)
    ]  # fmt: skip
    return ("in any order", *sorted(renamed, key=repr)) if len(places) + len(_marks(mark)) > 1 else tuple(renamed)


def _sides(items: tuple[Any, ...], numbers: Numbers) -> Hashable:
    """The terms of a row between its relations, each a sign and its factors."""
    sides: list[Any] = []
    terms: list[tuple[str, list[Any]]] = [("+", [])]
    factor: Any = None
    waiting: list[Any] = []  # what clings to the next factor: d, a function, a quotient
    for item in (*items, Atom("rel", "", "")):
        kind, char = (item.kind, item.char) if isinstance(item, Atom) else ("", "")
        if kind == "bin" and char == "/":
            waiting = [("over", terms[-1][1].pop() if terms[-1][1] else None), *waiting]
        elif kind == "bin" and char in "+-":
            terms.append((char, []))
        elif kind == "rel":
            whole = [(sign, tuple(sorted(some, key=repr))) for sign, some in terms if some]
            sides += [tuple(sorted(whole, key=repr)), char]
            terms = [("+", [])]
        elif kind == "fun" or is_differential(item):
            waiting.append(_form(item, numbers))
        elif kind not in ("space", "punct"):
            factor = _form(item, numbers)
            terms[-1][1].append((*waiting, factor) if waiting else factor)
            waiting = []
    return tuple(sides)
