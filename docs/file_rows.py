"""The page that lists all files of the package by room, each with the first line of its docstring."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "symcavity"


def first_line(file):
    """Return the first line of the docstring of a file."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def rooms():
    """Return the folders of the package, the package itself first, each with its files."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py"), key=lambda file: (str(file.parent), file.name)):
        found.setdefault(file.parent, []).append(file)
    return found


def page():
    """Return the page, in Markdown: a section for each room, and a line for each file."""
    out = []
    for room, files in rooms().items():
        out.append(f"## {room.relative_to(PACKAGE.parent)}")
        out += [first_line(file) for file in files if file.name == "__init__.py"]
        out.append("\n".join(f"- `{file.name}`: {first_line(file)}" for file in files if file.name != "__init__.py"))
    return "\n\n".join(part for part in out if part) + "\n"


def write(file):
    """Write the page where it is not as it should be."""
    content = page()
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != content:
        file.write_text(content, encoding="utf-8")


__all__ = ["first_line", "page", "rooms", "write"]

if __name__ == "__main__":
    print(page(), end="")
