"""The scripts from which the gallery of the site is made: one for each derivation, from its file alone."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from symcavity.loading import installed, paper_table
from symcavity.writing.mathml import to_mathml
from symcavity.writing.reader import read

pytest.importorskip("matplotlib")
DOCS = Path(__file__).resolve().parent.parent / "docs"


def script_of(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery, paper_rows, file_rows = (script_of(name) for name in ("gallery_of_derivations", "paper_rows", "file_rows"))


@pytest.mark.parametrize("name", sorted(installed()))
def test_a_script_shows_what_the_file_declares(name):
    script = gallery.script(name)
    module = importlib.import_module(f"symcavity.derivations.{name}")
    declared, shown = (ast.parse(text) for text in (inspect.getsource(module), script))
    before, after = (
        {ast.unparse(target) for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets}
        for tree in (declared, shown)
    )
    assert before <= after
    assert "source=" not in script
    assert "**Known numbers**" in script  # no system without a number that was computed some other way
    assert inspect.getdoc(module).partition("\n")[0].split()[0] in ast.get_docstring(shown)
    confronted = "problem.simulate(" in script or "problem.sweep(" in script
    told = getattr(module, "values", None) and getattr(module, "shown", None) and getattr(module, "instances", True)
    assert confronted == bool(told)


def test_scripts_are_written_once(tmp_path):
    gallery.write(tmp_path)
    (tmp_path / "plot_gone.py").write_text("")
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    gallery.write(tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert after == {name: when for name, when in before.items() if name != "plot_gone.py"}
    assert {f"plot_{name}.py" for name in installed()} < set(after)


def test_what_was_executed_with_other_sources_is_stale(tmp_path):
    mark = gallery.fingerprint()
    assert gallery.is_stale(tmp_path / "engine", mark)
    assert not gallery.is_stale(tmp_path / "engine", mark)
    assert gallery.is_stale(tmp_path / "engine", "another")


def test_the_page_of_the_paper_has_every_row_with_its_formula():
    page = paper_rows.page()
    rows = {row["number"]: row for row in paper_table()}
    found = re.findall(r"\$\$\n(.+)\n\$\$\n\n\*\*\((\S+)\)\*\* (\S+) \(", page)
    assert [number for _, number, _ in found] == list(rows)
    assert [verdict.strip("*") for *_, verdict in found] == [row["verdict"] for row in rows.values()]
    assert all(latex.count("{") == latex.count("}") for latex, *_ in found)


def test_the_page_of_files_has_every_file_with_a_line_that_says_what_it_does():
    page = file_rows.page()
    for files in file_rows.rooms().values():
        for file in files:
            line = file_rows.first_line(file)
            assert len(line.split()) >= 3, file
            assert line in page, file


def test_the_page_for_developers_names_files_that_exist():
    """And rooms, and, where a name stands before its file, a function or class of this file."""
    text, root = (DOCS / "developers.md").read_text(encoding="utf-8"), DOCS.parent
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*.py")]

    def of(name):
        return [path for path in paths if f"/{path}".endswith(f"/{name}")]

    for name in re.findall(r"\b[a-z_/]+\.py\b", text):  # NAME.py stands for any
        assert of(name), name
    pairs = re.findall(r"`(\w+)`(?: in| is a class of)? \(?`([\w/]+\.py)`", text)
    assert len(pairs) > 20
    for word, name in pairs:
        texts = [(root / path).read_text(encoding="utf-8") for path in of(name)]
        assert any(re.search(rf"\b{word}\b", code) for code in texts), (word, name)
    rooms = {path.name for path in (root / "symcavity").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(re.findall(r"^ {6}(?:cli\.py, )?(\w+)/ ", text, flags=re.MULTILINE))


def test_the_formulas_of_the_paper_are_drawn():
    for equations in paper_rows.printed().values():
        for number, latex in equations.items():
            drawn = to_mathml(read(latex))
            assert not re.search(r"\\|<mi[^>]*>(?!min|exp)[a-z]{3}", drawn), number  # no command is left


KERNELS = """
import os
import sys
from pathlib import Path
from nbclient import execute
from nbformat.v4 import new_code_cell, new_notebook
sys.path.insert(0, sys.argv[1])
import kernels
kernels.start(Path(sys.argv[2]))
for _ in range(2):
    code = "import builtins, os, sys\\n"
    code += "print(os.getppid(), 'symcavity' in sys.modules, hasattr(builtins, 'seen'), os.getcwd())"
    page = new_notebook(cells=[new_code_cell(code), new_code_cell("builtins.seen = True; 1 / 4")])
    execute(page, cwd=sys.argv[2], timeout=60, kernel_name="python3")
    print(page.cells[0].outputs[0]["text"].strip(), page.cells[1].outputs[0]["data"]["text/plain"])
"""


def test_kernels_of_pages_are_forks_of_one_process_that_ends(tmp_path):
    for needed in ("ipykernel", "nbclient"):
        pytest.importorskip(needed)
    words = [sys.executable, "-c", KERNELS, str(DOCS), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)  # noqa: S603
    first, second = (line.split() for line in done.stdout.splitlines())
    assert first == second == [first[0], "True", "False", str(tmp_path), "0.25"]  # nothing of one page is in the other
    assert "Traceback" not in done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(first[0]), 0)
