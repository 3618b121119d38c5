"""The tree of a TeX formula, and what can be made of it: TeX again, MathML, Unicode text, a width, lines.

There is one printer of mathematics (:mod:`symcavity.writing.printing`, to TeX).  Every other form is a
translation of its output, so that a node which knows its own TeX is printed alike everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "vartheta": "ϑ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "varrho": "ϱ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ",
    "varphi": "ϕ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ",
    "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
    "ell": "ℓ", "hbar": "ℏ", "infty": "∞", "partial": "∂", "nabla": "∇", "imath": "i", "ldots": "…",
    "cdots": "⋯", "dots": "…", "top": "⊤", "emptyset": "∅", "prime": "′", "bullet": "•",
}  # fmt: skip
_RELATIONS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "lt": "<", "gt": ">", "perp": "⊥",
    "in": "∈", "notin": "∉", "approx": "≈", "equiv": "≡", "sim": "∼", "propto": "∝", "to": "→",
    "rightarrow": "→", "mapsto": "↦", "Rightarrow": "⇒", "mid": "|", "iff": "⇔", "Leftrightarrow": "⇔",
    "ll": "≪", "gg": "≫", "colon": ":",
}  # fmt: skip
_BINARIES = {
    "cdot": "·", "times": "×", "pm": "±", "mp": "∓", "wedge": "∧", "vee": "∨", "cup": "∪", "cap": "∩",
    "circ": "∘", "odot": "⊙", "otimes": "⊗", "oplus": "⊕", "setminus": "∖", "land": "∧", "lor": "∨",
}  # fmt: skip
_BIG = {"sum": "Σ", "prod": "∏", "int": "∫", "iint": "∬", "bigcup": "⋃", "bigwedge": "⋀"}
DELIMITERS = {
    "langle": "⟨", "rangle": "⟩", "lbrace": "{", "rbrace": "}", "{": "{", "}": "}", "lfloor": "⌊",
    "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "vert": "|", "lvert": "|", "rvert": "|", "Vert": "‖", "|": "‖",
    "lVert": "‖", "rVert": "‖",
}  # fmt: skip
_OPENERS, _CLOSERS = "([{⟨⌊⌈", ")]}⟩⌋⌉"
_FUNCTIONS = frozenset([
    "log", "ln", "exp", "min", "max", "sup", "inf", "lim", "sin", "cos", "tan", "cot", "sec", "csc",
    "sinh", "cosh", "tanh", "coth", "arcsin", "arccos", "arctan", "det", "dim", "arg", "deg", "gcd",
    "ker", "Pr",
])  # fmt: skip
_FONTS = frozenset([
    "mathrm", "operatorname", "mathbf", "bm", "boldsymbol", "mathcal", "text", "mathtt", "mathbb",
    "mathsf", "textbf", "textit", "mathit", "mbox",
])  # fmt: skip
ACCENTS = {
    "hat": "̂", "widehat": "̂", "tilde": "̃",
    "bar": "̄", "overline": "̄", "dot": "̇", "ddot": "̈", "vec": "⃗",
}  # fmt: skip
NAMES = frozenset({*_GREEK, *_FONTS, *ACCENTS})  # the commands that the name of a symbol may hold
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, " ": 0.33, "quad": 1.0, "qquad": 2.0, "!": 0.0, "~": 0.33}
_IGNORED = frozenset([
    "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits", "big", "Big", "bigg", "Bigg",
    "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "mathopen", "mathclose", "mathrel", "mathbin",
    "notag", "nonumber",
])  # fmt: skip
_SCRIPT_LETTERS = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}
_BOARD_LETTERS = {"C": "ℂ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}


T = TypeVar("T", bound="Node")


class MarkupError(ValueError):
    """TeX that this small reader does not understand."""


@dataclass_transform(frozen_default=True)
def _node(cls: type[T]) -> type[T]:
    """A frozen dataclass that remembers its hash: a tree is looked up many times."""
    made = dataclass(frozen=True)(cls)
    of_fields = made.__hash__

    def remembered(self: Any) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = of_fields(self)
        return found

    made.__hash__ = remembered  # type: ignore[method-assign]
    return made


@dataclass(frozen=True)
class Node:
    """A node of a formula."""


@_node
class Atom(Node):
    """A leaf: kind is id, num, rel, bin, big, fun, text, open, close, punct or space."""

    kind: str
    char: str
    tex: str
    style: str = ""


@_node
class Row(Node):
    """Nodes side by side; ``spaced`` says before which of them the TeX had a blank (a product)."""

    items: tuple[Node, ...]
    spaced: tuple[bool, ...] = ()

    def blank(self, place: int) -> bool:
        """Whether a blank stood before an item."""
        return place < len(self.spaced) and self.spaced[place]


@_node
class Frac(Node):
    """A fraction."""

    top: Node
    bottom: Node
    small: bool = False


@_node
class Root(Node):
    """A root."""

    body: Node
    degree: Node | None = None


@_node
class Script(Node):
    """A base with a lower and an upper script."""

    base: Node
    sub: Node | None = None
    sup: Node | None = None


@_node
class Fence(Node):
    """A body between stretching delimiters, given as TeX; ``.`` is none."""

    left: str
    right: str
    body: Node


@_node
class Accent(Node):
    """A base under an accent."""

    name: str
    base: Node


@_node
class Table(Node):
    """An environment with cells, such as cases."""

    name: str
    rows: tuple[tuple[Node, ...], ...]


def items_of(node: Node) -> tuple[Node, ...]:
    """Return the items of a row, or the node alone."""
    return node.items if isinstance(node, Row) else (node,)


def has_fraction(node: Any) -> bool:
    """Whether a fraction stands somewhere in a formula."""
    if isinstance(node, tuple):
        return any(map(has_fraction, node))
    inner = node.__dict__.values() if isinstance(node, Node) else ()
    return isinstance(node, Frac) or any(map(has_fraction, inner))


def role_of(node: Node) -> str:
    """Return the kind of an atom; ``big`` for an operator with a range; ``factor`` for the rest."""
    return node.kind if isinstance(node, Atom) else "big" if is_big(node) else "factor"


def is_big(node: Node) -> bool:
    """Whether a node is a sum, product or integral sign, or a brace below, with its range or without."""
    base = node.base if isinstance(node, Script) else node
    return base.kind == "big" if isinstance(base, Atom) else isinstance(base, Accent) and base.name == "underbrace"


def is_differential(node: Node) -> bool:
    """Whether a node is a bare d, delta or partial sign, which clings to what follows."""
    return isinstance(node, Atom) and node.char in "dδ∂" and node.kind == "id"


def delimiter_char(delimiter: str) -> str:
    """Return the character of a TeX delimiter."""
    if delimiter == ".":
        return ""
    return DELIMITERS.get(delimiter[1:], delimiter[1:]) if delimiter.startswith("\\") else delimiter


_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\d+(?:\.\d+)?|[^\\]", re.DOTALL)


class _Reader:
    def __init__(self, source: str) -> None:
        self.words = _TOKEN.findall(source)
        self.place = 0

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
        while self.peek().isspace() and self.peek():
            self.place += 1
        return self.place > start

    def expect(self, word: str) -> None:
        self.skip()
        if self.take() != word:
            raise MarkupError(f"{word} is missing.")

    def raw_group(self) -> str:
        self.expect("{")
        depth, out = 1, []
        while depth:
            word = self.take()
            depth += (word == "{") - (word == "}")
            out.append(word)
        return "".join(out[:-1])

    def argument(self) -> Node:
        self.skip()
        if self.peek() == "{":
            self.take()
            body = self.row("}")
            self.expect("}")
            return body
        return Row((self.single(),))

    def row(self, *stops: str) -> Row:
        items: list[Node] = []
        spaced: list[bool] = []
        while True:
            blank = self.skip()
            word = self.peek()
            if not word or word in stops:
                return Row(tuple(items), tuple(spaced))
            if word in "_^":
                base: Node = items.pop() if items else Row(())
                blank = spaced.pop() if spaced else False
                items.append(self.scripts(base))
            else:
                node = self.single()
                if node is None:
                    continue
                items.append(node)
            spaced.append(blank)

    def scripts(self, base: Node) -> Script:
        found: dict[str, Node] = {}
        if isinstance(base, Script):
            found = {name: node for name, node in (("_", base.sub), ("^", base.sup)) if node is not None}
            base = base.base
        while self.peek() in ("_", "^"):
            mark = self.take()
            if mark in found:
                raise MarkupError("A double script stands in a formula.")
            found[mark] = self.argument()
        return Script(base, found.get("_"), found.get("^"))

    def single(self) -> Node:
        word = self.take()
        if word == "{":
            body = self.row("}")
            self.expect("}")
            return body.items[0] if len(body.items) == 1 and not isinstance(body.items[0], Script) else body
        if word.startswith("\\"):
            return self.command(word)
        if word[0].isdigit():
            return Atom("num", word, word)
        if word.isalpha():
            return Atom("id", word, word)
        return _character(word)

    def command(self, word: str) -> Node:
        name = word[1:]
        if name in ("frac", "tfrac", "dfrac"):
            return Frac(self.argument(), self.argument(), name == "tfrac")
        if name == "sqrt":
            degree = None
            self.skip()
            if self.peek() == "[":
                self.take()
                degree = self.row("]")
                self.expect("]")
            return Root(self.argument(), degree)
        if name == "left":
            left = self.delimiter()
            body = self.row("\\right")
            self.expect("\\right")
            return Fence(left, self.delimiter(), body)
        if name == "begin":
            return self.table()
        if name.rstrip("*") in _FONTS:
            return _styled(name.rstrip("*"), self.raw_group())
        if name in ACCENTS or name == "underbrace":
            return Accent(name, self.argument())
        if name == "underset":
            below, (base, *rest) = self.argument(), items_of(self.argument())
            if rest:
                raise MarkupError("What stands above an underset is more than one thing.")
            return Script(Atom("big", base.char, base.tex) if isinstance(base, Atom) else base, below)
        if name in _IGNORED:
            return Atom("space", "", word + (" " if name.isalpha() else ""))
        for table, kind in ((_GREEK, "id"), (_RELATIONS, "rel"), (_BINARIES, "bin"), (_BIG, "big")):
            if name in table:
                return Atom(kind, table[name], word)
        if name in DELIMITERS:
            char = DELIMITERS[name]
            return Atom("open" if char in _OPENERS else "close" if char in _CLOSERS else "id", char, word)
        if name in _FUNCTIONS:
            return Atom("fun", name, word)
        if name in SPACES:
            return Atom("space", " " if SPACES[name] > 0.3 else "", word)
        if name in "%&#_$":
            return Atom("text", name, word)
        return Atom("id", name, word, "rm")

    def delimiter(self) -> str:
        self.skip()
        return self.take()

    def table(self) -> Table:
        name = self.raw_group()
        if name == "array":
            self.raw_group()
        rows: list[tuple[Node, ...]] = []
        cells: list[Node] = []
        while True:
            cells.append(self.row("&", "\\\\", "\\end"))
            word = self.take()
            if word == "&":
                continue
            rows.append(tuple(cells))
            cells = []
            if word == "\\end":
                self.raw_group()
                return Table(name, tuple(row for row in rows if any(items_of(cell) for cell in row)))


def _character(word: str) -> Atom:
    if word in "([":
        return Atom("open", word, word)
    if word in ")]":
        return Atom("close", word, word)
    if word in "=<>:|":
        return Atom("rel", word, word)
    if word in "+-*/":
        return Atom("bin", word, word)
    if word in ",;.!":
        return Atom("punct", word, word)
    if word == "'":
        return Atom("id", "′", word)
    if word == "~":
        return Atom("space", " ", word)
    return Atom("id", word, word)


def _styled(font: str, body: str) -> Atom:
    tex = f"\\{font}{{{body}}}"
    if font in ("mathcal", "mathbb") and len(body) == 1 and body.isascii() and body.isupper():
        start, special = (0x1D49C, _SCRIPT_LETTERS) if font == "mathcal" else (0x1D538, _BOARD_LETTERS)
        return Atom("id", special.get(body) or chr(start + ord(body) - 65), tex)
    if font in ("text", "mbox", "textit", "textbf"):
        return Atom("text", _unescape(body), tex)
    style = "bf" if font in ("mathbf", "bm", "boldsymbol") else "tt" if font == "mathtt" else "rm"
    if style == "bf" and "{" in body:  # a letter of another font
        (inner,) = parse(body).items
        return Atom("id", inner.char, tex, style) if isinstance(inner, Atom) else Atom("id", body, tex, style)
    if style == "bf" and body.startswith("\\"):
        return Atom("id", _GREEK.get(body[1:].strip(), body[1:]), tex, style)
    return Atom("fun" if font == "operatorname" else "id", _unescape(body), tex, style)


def _unescape(body: str) -> str:
    body = (
        body.replace("\\textbackslash ", "\\")
        .replace("\\textasciicircum ", "^")
        .replace("\\textasciitilde ", "~")
        .replace("\\ ", " ")
        .replace("\\,", " ")
    )
    return re.sub(r"\\([%&#_${}])", r"\1", body)


def parse(source: str) -> Row:
    """Read TeX into a tree.

    Raises
    ------
    MarkupError
        If a group does not close or a script is doubled.
    """
    reader = _Reader(source)
    body = reader.row()
    if reader.peek():
        raise MarkupError(f"{reader.peek()} is not expected.")
    return body


def to_tex(node: Node) -> str:
    """Write a tree as TeX."""
    match node:
        case Atom():
            return node.tex
        case Row():
            return " ".join(
                f"{{{to_tex(item)}}}" if isinstance(item, Row) else to_tex(item) for item in node.items
            )
        case Frac():
            return f"\\{'t' if node.small else ''}frac{{{to_tex(node.top)}}}{{{to_tex(node.bottom)}}}"
        case Root():
            degree = f"[{to_tex(node.degree)}]" if node.degree is not None else ""
            return f"\\sqrt{degree}{{{to_tex(node.body)}}}"
        case Script():
            base = to_tex(node.base)
            if isinstance(node.base, Row):
                base = f"{{{base}}}"
            sub = f"_{{{to_tex(node.sub)}}}" if node.sub is not None else ""
            return base + sub + (f"^{{{to_tex(node.sup)}}}" if node.sup is not None else "")
        case Fence():
            return f"\\left{node.left} {to_tex(node.body)} \\right{node.right}"
        case Accent():
            return f"\\{node.name}{{{to_tex(node.base)}}}"
        case Table():
            rows = " \\\\ ".join(" & ".join(to_tex(cell) for cell in row) for row in node.rows)
            return f"\\begin{{{node.name}}} {rows} \\end{{{node.name}}}"
    raise MarkupError(f"{node!r} is unknown.")
