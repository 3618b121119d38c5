"""Formulas as trees: the nodes, how they are put together, and their TeX.

The printer (:mod:`symcavity.writing.printing`) builds them; TeX, MathML and Unicode text are written from them, and
their widths and lines are found from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
_FUNCTIONS = frozenset([
    "log", "ln", "exp", "min", "max", "sup", "inf", "lim", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh",
    "tanh", "coth", "arcsin", "arccos", "arctan", "det", "dim", "arg", "deg", "gcd", "ker", "Pr",
])  # fmt: skip
FONTS = frozenset([
    "mathrm", "operatorname", "mathbf", "bm", "boldsymbol", "mathcal", "text", "mathtt", "mathbb", "mathsf",
    "textbf", "textit", "mathit", "mbox",
])  # fmt: skip
ACCENTS = {
    "hat": "̂", "widehat": "̂", "tilde": "̃",
    "bar": "̄", "overline": "̄", "dot": "̇", "ddot": "̈", "vec": "⃗",
}  # fmt: skip
NAMES = frozenset({*_GREEK, *FONTS, *ACCENTS})  # the commands that the name of a symbol may hold
LETTERS = {
    char: f"\\{name}"
    for names in (_BINARIES, _RELATIONS, _GREEK)
    for name, char in reversed(names.items())  # the first of several names of one character
    if not char.isascii()
}
"""The command of TeX for a character of mathematics that stands among words."""
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, " ": 0.33, "quad": 1.0, "qquad": 2.0, "!": 0.0, "~": 0.33}
_IGNORED = frozenset([
    "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits", "big", "Big", "bigg", "Bigg", "bigl", "bigr",
    "Bigl", "Bigr", "biggl", "biggr", "mathopen", "mathclose", "mathrel", "mathbin", "notag", "nonumber",
])  # fmt: skip
_OPENERS, _SLIM = "([{⟨⌊⌈", "|‖"
_COMMANDS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("fun", {name: name for name in _FUNCTIONS}),
    ("text", {name: name for name in "%&#_$"}),
    ("space", {name: " " if size > 0.3 else "" for name, size in SPACES.items()}),
    ("close", DELIMITERS),
    ("open", {name: char for name, char in DELIMITERS.items() if char in _OPENERS}),
    ("id", {name: char for name, char in DELIMITERS.items() if char in _SLIM}),
    *(("big", _BIG), ("bin", _BINARIES), ("rel", _RELATIONS), ("id", _GREEK)),
    ("space", dict.fromkeys(_IGNORED, "")),
)
_CHARACTERS = {"(": "open", "[": "open", ")": "close", "]": "close"}
_CHARACTERS |= dict.fromkeys("=<>:|", "rel") | dict.fromkeys("+-*/", "bin") | dict.fromkeys(",;.!", "punct")
_LEAVES = {f"\\{name}": (kind, char) for kind, names in _COMMANDS for name, char in names.items()}
_LEAVES |= {char: (kind, char) for char, kind in _CHARACTERS.items()} | {"'": ("id", "′"), "~": ("space", " ")}
"""The kind and the character of commands and characters of TeX; the later ones hold where two are alike."""


T = TypeVar("T", bound="FormulaNode")


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
class FormulaNode:
    """A node of a formula."""


@_node
class Atom(FormulaNode):
    """A leaf: kind is id, num, rel, bin, big, fun, text, open, close, punct or space."""

    kind: str
    char: str
    tex: str
    style: str = ""


@_node
class Row(FormulaNode):
    """Nodes side by side; ``spaced`` says before which of them the TeX had a blank (a product)."""

    items: tuple[FormulaNode, ...]
    spaced: tuple[bool, ...] = ()

    def blank(self, place: int) -> bool:
        """Whether a blank stood before an item."""
        return place < len(self.spaced) and self.spaced[place]

    def part(self, start: int, end: int | None = None) -> Row:
        """Return the items from one place to another, with their blanks."""
        return Row(self.items[start:end], self.spaced[start:end])


@_node
class Frac(FormulaNode):
    """A fraction."""

    top: FormulaNode
    bottom: FormulaNode


@_node
class Radical(FormulaNode):
    """A root."""

    body: FormulaNode
    degree: FormulaNode | None = None


@_node
class Script(FormulaNode):
    """A base with a lower and an upper script."""

    base: FormulaNode
    sub: FormulaNode | None = None
    sup: FormulaNode | None = None


@_node
class Fence(FormulaNode):
    """A body between stretching delimiters, given as TeX; ``.`` is none."""

    left: str
    right: str
    body: FormulaNode


@_node
class Accent(FormulaNode):
    """A base under an accent."""

    name: str
    base: FormulaNode


@_node
class Table(FormulaNode):
    """An environment with cells, such as cases."""

    name: str
    rows: tuple[tuple[FormulaNode, ...], ...]
    columns: str = ""


def atom(tex: str) -> Atom:
    """Return the leaf that a command of TeX, a number or a character is."""
    if tex in _LEAVES:
        return Atom(*_LEAVES[tex], tex + " " * (tex[1:] in _IGNORED))
    if tex[0] == "\\":
        return Atom("id", tex[1:], tex, "rm")
    return Atom("num" if tex[0].isdigit() else "id", tex, tex)


def words(said: str) -> Atom:
    """Return words in a formula."""
    return Atom("text", said, f"\\text{{{escape_tex(said)}}}")


_ESCAPES = {
    "\\": "\\textbackslash ", "{": "\\{", "}": "\\}", "$": "\\$", "%": "\\%", "&": "\\&", "#": "\\#",
    "_": "\\_", "^": "\\textasciicircum ", "~": "\\textasciitilde ",
}  # fmt: skip


def escape_tex(said: str) -> str:
    """Escape the characters that TeX reads as commands."""
    return "".join(_ESCAPES.get(char, char) for char in said)


def beside(*parts: FormulaNode | str) -> Row:
    """Return nodes side by side: the items of rows, and leaves that are given as TeX; ``" "`` stands for a blank."""
    items: list[FormulaNode] = []
    spaced: list[bool] = []
    blank = False
    for part in parts:
        if part == " ":
            blank = True
            continue
        node = atom(part) if isinstance(part, str) else part
        own = items_of(node)
        if own:
            flags = [node.blank(k) for k in range(len(own))] if isinstance(node, Row) else [False]
            spaced += [blank or flags[0], *flags[1:]]
            items += own
            blank = False
    return Row(tuple(items), tuple(spaced))


def joined(parts: Iterable[FormulaNode], *between: FormulaNode | str) -> Row:
    """Return nodes side by side, with others between them."""
    out: list[FormulaNode | str] = []
    for part in parts:
        out += [*(between if out else ()), part]
    return beside(*out)


def scripted(base: FormulaNode, sub: FormulaNode | None = None, sup: FormulaNode | None = None) -> Row:
    """Return a formula with a lower or upper index at its last item.

    Raises
    ------
    MarkupError
        If there is one in that place.
    """
    row = beside(base)
    if sub is None and sup is None:
        return row
    last = row.items[-1] if row.items else Row(())
    if isinstance(last, Script):
        if (sub and last.sub) or (sup and last.sup):
            raise MarkupError("A double script stands in a formula.")
        sub, sup, last = sub or last.sub, sup or last.sup, last.base
    return Row((*row.items[:-1], Script(last, sub, sup)), row.spaced or (False,))


def in_brackets(body: FormulaNode, left: str = "(", right: str = ")") -> Fence:
    """Return a formula between brackets."""
    return Fence(left, right, body)


def items_of(node: FormulaNode) -> tuple[FormulaNode, ...]:
    """Return the items of a row, or the node alone."""
    return node.items if isinstance(node, Row) else (node,)


def has_fraction(node: Any) -> bool:
    """Whether a fraction stands somewhere in a formula."""
    if isinstance(node, tuple):
        return any(map(has_fraction, node))
    inner = node.__dict__.values() if isinstance(node, FormulaNode) else ()
    return isinstance(node, Frac) or any(map(has_fraction, inner))


def role_of(node: FormulaNode) -> str:
    """Return the kind of an atom; ``big`` for an operator with a range; ``factor`` for the rest."""
    return node.kind if isinstance(node, Atom) else "big" if is_big(node) else "factor"


def is_big(node: FormulaNode) -> bool:
    """Whether a node is a sum, product or integral sign, or a brace below, with its range or without."""
    base = node.base if isinstance(node, Script) else node
    return base.kind == "big" if isinstance(base, Atom) else isinstance(base, Accent) and base.name == "underbrace"


def is_differential(node: FormulaNode) -> bool:
    """Whether a node is a bare d, delta or partial sign, which clings to what follows."""
    return isinstance(node, Atom) and node.char in "dδ∂" and node.kind == "id"


def clings(row: Row, place: int) -> bool:
    """Whether an item stands tight before the next one: a differential; a d before a blank is a factor of this name."""
    item = row.items[place]
    return is_differential(item) and not (to_tex(item) == "d" and row.blank(place + 1))


def delimiter_char(delimiter: str) -> str:
    """Return the character of a TeX delimiter."""
    if delimiter == ".":
        return ""
    return DELIMITERS.get(delimiter[1:], delimiter[1:]) if delimiter.startswith("\\") else delimiter


def to_tex(node: FormulaNode, close: bool = False) -> str:
    """Write a tree as TeX; ``close`` leaves out the blanks that the formula does not have."""
    match node:
        case Atom():
            return node.tex
        case Row():
            items = [f"{{{to_tex(k, close)}}}" if isinstance(k, Row) else to_tex(k, close) for k in node.items]
            if not close:
                return " ".join(items)
            return "".join(" " * (k > 0 and node.blank(k)) + item for k, item in enumerate(items))
        case Frac():
            return f"\\frac{{{to_tex(node.top, close)}}}{{{to_tex(node.bottom, close)}}}"
        case Radical():
            degree = f"[{to_tex(node.degree, close)}]" if node.degree is not None else ""
            return f"\\sqrt{degree}{{{to_tex(node.body, close)}}}"
        case Script():
            base = to_tex(node.base, close)
            base = f"{{{base}}}" if isinstance(node.base, Row) else base
            marks = (("_", node.sub), ("^", node.sup))
            return base + "".join(f"{mark}{{{to_tex(k, close)}}}" for mark, k in marks if k is not None)
        case Fence():
            blank = "" if close and isinstance(node.body, Row) and not node.body.blank(0) else " "
            return f"\\left{node.left}{blank}{to_tex(node.body, close)}{blank}\\right{node.right}"
        case Accent():
            return f"\\{node.name}{{{to_tex(node.base, close)}}}"
        case Table():
            rows = " \\\\ ".join(" & ".join(to_tex(cell, close) for cell in row) for row in node.rows)
            return f"\\begin{{{node.name}}}{node.columns} {rows} \\end{{{node.name}}}"
    raise MarkupError(f"{node!r} is unknown.")
