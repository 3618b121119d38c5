"""Formulas as MathML, which browsers show without a script and without a network."""

from __future__ import annotations

from html import escape

from symcavity.writing.nodes import (
    ACCENTS,
    SPACES,
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
    role_of,
    to_tex,
)


def to_mathml(node: FormulaNode) -> str:
    """Write a tree as the inside of a MathML element."""
    match node:
        case Atom():
            return _atom_mathml(node)
        case Row():
            return _row_mathml(node)
        case Frac():
            return f"<mfrac>{to_mathml(_boxed(node.top))}{to_mathml(_boxed(node.bottom))}</mfrac>"
        case Radical():
            body = to_mathml(_boxed(node.body))
            return (
                f"<mroot>{body}{to_mathml(_boxed(node.degree))}</mroot>"
                if node.degree
                else f"<msqrt>{body}</msqrt>"
            )
        case Script():
            return _script_mathml(node)
        case Fence():
            left, right = _delimiter(node.left, "prefix"), _delimiter(node.right, "postfix")
            return f"<mrow>{left}{to_mathml(_boxed(node.body))}{right}</mrow>"
        case Accent() if node.name == "underbrace":
            return f'<munder>{to_mathml(_boxed(node.base))}<mo stretchy="true">⏟</mo></munder>'
        case Accent():
            mark = {"̂": "^", "̃": "~", "̄": "‾", "̇": "˙", "̈": "¨", "⃗": "→"}[ACCENTS[node.name]]
            return (
                f'<mover accent="true">{to_mathml(_boxed(node.base))}<mo stretchy="false">{mark}</mo></mover>'
            )
        case Table():
            return _table_mathml(node)
    raise MarkupError(f"{node!r} is unknown.")


def _delimiter(delimiter: str, form: str) -> str:
    char = escape(delimiter_char(delimiter))
    return (
        f'<mo stretchy="true" fence="true" form="{form}" lspace="0em" rspace="0em">{char}</mo>'
        if char
        else ""
    )


def _boxed(node: FormulaNode) -> FormulaNode:
    return node if not isinstance(node, Row) or len(node.items) != 1 else node.items[0]


def _atom_mathml(atom: Atom) -> str:
    char = escape(atom.char)
    match atom.kind:
        case "space":
            size = SPACES.get(atom.tex[1:], 0.0) if atom.tex.startswith("\\") else 0.33
            return f'<mspace width="{size}em"/>' if size else ""
        case "num":
            return f"<mn>{char}</mn>"
        case "text":
            return f"<mtext>{char.replace(' ', '&#160;')}</mtext>"
        case "rel" | "bin" | "punct":
            return f"<mo>{'−' if char == '-' else char}</mo>"
        case "open" | "close":
            large = ' minsize="1.6em"' if atom.tex.startswith("\\Big") else ""
            fixed = "true" if large else "false"
            return f'<mo stretchy="{fixed}" symmetric="true" lspace="0em" rspace="0em"{large}>{char}</mo>'
        case "big":
            return f"<mo>{'∑' if char == 'Σ' else char}</mo>"
        case "fun":
            return f"<mi>{char}</mi>" if len(char) > 1 else f'<mi mathvariant="normal">{char}</mi>'
    if atom.style == "bf":
        return f'<mi mathvariant="normal" style="font-weight: bold">{char}</mi>'
    if atom.style == "tt":
        return f"<mtext><code>{char}</code></mtext>"
    return (
        f'<mi mathvariant="normal">{char}</mi>'
        if atom.style == "rm" and len(char) == 1
        else f"<mi>{char}</mi>"
    )


def _row_mathml(row: Row) -> str:
    out = []
    before = "open"
    for place, item in enumerate(row.items):
        role = role_of(item)
        unary = role == "bin" and before in ("open", "bin", "rel", "punct", "big")
        product = role in ("id", "num", "factor", "fun", "big") and before in ("id", "num", "factor", "fun")
        if product and row.blank(place) and not clings(row, place - 1):
            out.append('<mspace width="0.13em"/>')
        out.append(to_mathml(item).replace("<mo>", '<mo form="prefix">', 1) if unary else to_mathml(item))
        before = before if role == "space" else role
    body = "".join(out)
    return body if len(row.items) == 1 else f"<mrow>{body}</mrow>"


def _script_mathml(node: Script) -> str:
    under = is_big(node) and not (isinstance(node.base, Atom) and node.base.char == "∫")
    base = to_mathml(_boxed(node.base)) or "<mrow></mrow>"
    sub = f"<mrow>{to_mathml(node.sub)}</mrow>" if node.sub is not None else ""
    sup = f"<mrow>{to_mathml(node.sup)}</mrow>" if node.sup is not None else ""
    if sub and sup:
        name = "munderover" if under else "msubsup"
    elif sub:
        name = "munder" if under else "msub"
    else:
        name = "mover" if under else "msup"
    return f"<{name}>{base}{sub}{sup}</{name}>"


def _table_mathml(node: Table) -> str:
    rows = "".join(
        "<mtr>" + "".join(f"<mtd>{to_mathml(_boxed(cell))}</mtd>" for cell in row) + "</mtr>"
        for row in node.rows
    )
    table = f'<mtable class="{escape(node.name)}">{rows}</mtable>'
    if node.name != "cases":
        return table
    return f'<mrow><mo stretchy="true" fence="true" form="prefix">{{</mo>{table}</mrow>'


def element(node: FormulaNode, attribute: str = "", body: str = "") -> str:
    """A whole MathML element, with its TeX for those who cannot see it."""
    return f'<math{attribute} alttext="{escape(to_tex(node))}">{body or to_mathml(node)}</math>'


def displayed(line: Row, continued: bool = False) -> str:
    """A line of a display; the sign at the head of one that goes on stands between two terms."""
    out = to_mathml(line)
    out = out.replace('form="prefix"', 'form="infix"', 1) if continued else out
    return element(line, ' displaystyle="true"', out)
