"""Every block of code in README.md and docs/ runs, and what it is said to print is what it prints.

A ``python`` block runs in the page's namespace; the first comment ``# FILE.py`` also saves it under that
name.  A ``text`` block that follows it is its output.  In a ``console`` block every line ``$ symcavity ...``
is run, and the lines below it are its output.  ``...`` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from symcavity.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "howto").glob("*.md"))]
BLOCK = re.compile(r"^```(?:\{code-cell\} )?(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text(encoding="utf-8")
    return [(m[1], m[2], text[: m.start()].count("\n") + 1) for m in BLOCK.finditer(text)]


def agree(said: str, printed: str, where: str) -> None:
    lines = ["\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for text in (said, printed)]
    ok = doctest.OutputChecker().check_output(lines[0] + "\n", lines[1] + "\n", doctest.ELLIPSIS)
    assert ok, f"{where} is said to print\n{lines[0]}\nbut prints\n{lines[1]}"


def run_console(source: str, where: str) -> None:
    for piece in re.split(r"^\$ ", source, flags=re.MULTILINE)[1:]:
        command, _, said = piece.partition("\n")
        words = shlex.split(command, comments=True)
        assert words[0] == "symcavity", f"{where}: {command}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = main(words[1:])
        assert status == 0, f"{where}: {command} left with {status}"
        if said.strip():
            agree(said, printed.getvalue(), f"{where}: {command}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__page__"}
    printed = ""
    for kind, source, line in blocks(page):
        where = f"{page.name}, line {line}"
        if kind == "python":
            if name := re.match(r"# (\w+\.py)\n", source):
                (tmp_path / name[1]).write_text(source, encoding="utf-8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + source, str(page), "exec"), namespace)  # noqa: S102 - our own pages
            printed = out.getvalue()
        elif kind == "text":
            agree(source, printed, where)
        elif kind == "console":
            run_console(source, where)
        else:
            assert kind in {"sh", "bibtex"}, where


def test_the_block_for_a_cluster_runs_as_a_file(tmp_path):
    """Below the imports and the grid of its page, as the page says; with small instances."""
    pytest.importorskip("distributed")
    page = (ROOT / "docs" / "howto" / "cluster.md").read_text(encoding="utf-8")
    first = blocks(ROOT / "docs" / "howto" / "cluster.md")[0][1].partition("theory =")[0]
    (local,) = re.findall(r"^```\{code-block\} python\n(import dask\n.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert "N=400, seeds=20" in local
    (tmp_path / "job.py").write_text(first + local.replace("N=400, seeds=20", "N=20, seeds=1"), encoding="utf-8")
    command = [sys.executable, "job.py"]
    done = subprocess.run(  # noqa: S603 - our own page
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "soft.csv").read_text(encoding="utf-8").splitlines()) == 1 + 18


WITH_EXAMPLES = [p for p in sorted((ROOT / "symcavity").rglob("*.py")) if ">>> " in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_docstrings(path):
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed


def test_every_page_is_linked_from_the_readme_and_stands_in_the_site():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {"index"}
    for folder in ("", "howto/"):
        index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
        listed |= {folder + name for name in re.findall(r"^(?:[\w ]+<)?([\w/]+)>?$", index, flags=re.MULTILINE)}
    for page in PAGES[1:]:
        place = page.relative_to(ROOT / "docs")
        assert str(place.with_suffix("")) in listed, place
        assert place.parts[0] == "index.md" or f"docs/{place.parts[0]}" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target and target != "gallery/index.rst":  # made when the site is built
            assert (page.parent / target).exists(), target


def test_versions_agree():
    import tomllib

    import symcavity

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "symcavity.__version__"}
    version = symcavity.__version__
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert citation.count(f"version: {version}\n") == 2
    (date,) = re.findall(r'date-released: "([\d-]+)"', citation)
    assert f"## {version} ({date})\n\n### Added\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
