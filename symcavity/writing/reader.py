"""Reads the LaTeX that others wrote: names of symbols, what nodes of SymPy print, and formulas in sentences.

Parts that were printed before are given as trees: a mark stands for each, so that nothing is read twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from symcavity.writing.nodes import (
    ACCENTS,
    FONTS,
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
    atom,
    beside,
    in_brackets,
    items_of,
    scripted,
    to_tex,
)

_SCRIPT_LETTERS = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}
_BOARD_LETTERS = {"C": "ℂ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}
_MARK = "\x02"
_TOKEN = re.compile(_MARK + r"\d+;|\\[A-Za-z]+\*?|\\.|\d+(?:\.\d+)?|[^\\]", re.DOTALL)


def mark(place: int) -> str:
    """Return what stands in TeX for the tree in this place of those that are given."""
    return f"{_MARK}{place};"


def read(source: str, given: Sequence[Row] = ()) -> Row:
    """Read TeX into a tree.

    Parameters
    ----------
    source : str
        LaTeX.
    given : sequence of Row
        The trees that its marks stand for.

    Raises
    ------
    MarkupError
        If a group does not close or a script is doubled.
    """
    reader = _MarkupReader(source, given)
    body = reader.row()
    if reader.peek():
        raise MarkupError(f"{reader.peek()} is not expected.")
    return body


class _MarkupReader:
    def __init__(self, source: str, given: Sequence[Row]) -> None:
        self.words = _TOKEN.findall(source)
        self.place = 0
        self.given = given

    def peek(self) -> str:
        return self.words[self.place] if self.place < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        if not word:
            raise MarkupError("The formula ends too early.")
        self.place += 1
        return word

    def skip(self) -> bool:
        start = self.place
        while self.peek().isspace():
            self.place += 1
        return self.place > start

    def expect(self, word: str) -> None:
        self.skip()
        if self.take() != word:
            raise MarkupError(f"{word} is missing.")

    def group(self, left: str = "{", right: str = "}") -> Row:
        self.expect(left)
        body = self.row(right)
        self.expect(right)
        return body

    def argument(self) -> Row:
        self.skip()
        if self.peek() == "{":
            return self.group()
        node = self.single()
        return node if isinstance(node, Row) else beside(node)

    def raw_group(self) -> str:
        self.expect("{")
        depth, out = 1, []
        while depth:
            word = self.take()
            depth += (word == "{") - (word == "}")
            out.append(to_tex(self.single(word), close=True) if word[0] == _MARK else word)
        return "".join(out[:-1])

    def row(self, *stops: str) -> Row:
        out: Row = Row(())
        while True:
            blank = " " if self.skip() else None
            word = self.peek()
            if not word or word in stops:
                return out
            if word in "_^":
                out = self.scripts(out)
            else:
                node = self.single()
                node = Row((node,)) if isinstance(node, Row) and word[0] != _MARK else node
                out = beside(out, *filter(None, (blank,)), node)

    def scripts(self, base: Row) -> Row:
        while self.peek() in ("_", "^"):
            name = {"_": "sub", "^": "sup"}[self.take()]
            base = scripted(base, **{name: self.argument()})
        return base

    def single(self, word: str = "") -> FormulaNode:
        word = word or self.take()
        if word == "{":
            self.place -= 1
            body = self.group()
            return body.items[0] if len(body.items) == 1 and not isinstance(body.items[0], Script) else body
        if word[0] == _MARK:
            return self.marked(self.given[int(word[1:-1])])
        name = word[1:] if word[0] == "\\" else ""
        if name in ("frac", "tfrac", "dfrac"):
            return Frac(self.argument(), self.argument())
        if name == "sqrt":
            self.skip()
            degree = self.group("[", "]") if self.peek() == "[" else None
            return Radical(self.argument(), degree)
        if name == "left":
            left = self.delimiter()
            body = self.row("\\right")
            self.expect("\\right")
            return Fence(left, self.delimiter(), body)
        if name == "begin":
            return self.table()
        if name.rstrip("*") in FONTS:
            return _styled(name.rstrip("*"), self.raw_group())
        if name in ACCENTS or name == "underbrace":
            return Accent(name, self.argument())
        if name == "underset":
            below, above = self.argument(), self.argument()
            base = above.items[0] if len(above.items) == 1 else above
            return Script(Atom("big", base.char, base.tex) if isinstance(base, Atom) else base, below)
        return atom(word)

    def marked(self, given: Row) -> Row:
        """A tree that is given: in brackets where an index follows that could be taken for one of its last item."""
        mark, last = self.peek(), given.items[-1] if given.items else None
        taken = isinstance(last, Frac) or (isinstance(last, Script) and (last.sub if mark == "_" else last.sup))
        return beside(in_brackets(given)) if mark in ("_", "^") and (taken or len(given.items) > 1) else given

    def delimiter(self) -> str:
        self.skip()
        return self.take()

    def table(self) -> Table:
        name = self.raw_group()
        columns = f"{{{self.raw_group()}}}" if name == "array" else ""
        rows: list[tuple[FormulaNode, ...]] = []
        cells: list[FormulaNode] = []
        while True:
            cells.append(self.row("&", "\\\\", "\\end"))
            word = self.take()
            if word == "&":
                continue
            rows.append(tuple(cells))
            cells = []
            if word == "\\end":
                self.raw_group()
                return Table(name, tuple(row for row in rows if any(items_of(cell) for cell in row)), columns)


def _styled(font: str, body: str) -> Atom:
    tex = f"\\{font}{{{body}}}"
    if font in ("mathcal", "mathbb") and len(body) == 1 and body.isascii() and body.isupper():
        start, special = (0x1D49C, _SCRIPT_LETTERS) if font == "mathcal" else (0x1D538, _BOARD_LETTERS)
        return Atom("id", special.get(body) or chr(start + ord(body) - 65), tex)
    if font in ("text", "mbox", "textit", "textbf"):
        return Atom("text", _unescaped(body), tex)
    if font not in ("mathbf", "bm", "boldsymbol"):
        kind, style = "fun" if font == "operatorname" else "id", "tt" if font == "mathtt" else "rm"
        return Atom(kind, _unescaped(body), tex, style)
    inner = read(body).items if "{" in body or body.startswith("\\") else ()
    if len(inner) == 1 and isinstance(inner[0], Atom):  # a letter of another font, or a Greek one
        return Atom("id", inner[0].char, tex, "bf")
    return Atom("id", _unescaped(body), tex, "bf")


def _unescaped(body: str) -> str:
    for command, char in (("\\textbackslash ", "\\"), ("\\textasciicircum ", "^"), ("\\textasciitilde ", "~")):
        body = body.replace(command, char)
    return re.sub(r"\\([%&#_${}])", r"\1", body.replace("\\ ", " ").replace("\\,", " "))
