"""The scripts from which the gallery of the site is made: one for each derivation, from its file alone."""

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

from symcavity.loading import installed

pytest.importorskip("matplotlib")
DOCS = Path(__file__).resolve().parent.parent / "docs"
_spec = importlib.util.spec_from_file_location("gallery_of_derivations", DOCS / "gallery_of_derivations.py")
gallery = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gallery)


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
    assert inspect.getdoc(module).partition("\n")[0].split()[0] in ast.get_docstring(shown)
    confronted = "problem.simulate(" in script or "problem.sweep(" in script
    assert confronted == bool(getattr(module, "values", None) and getattr(module, "shown", None))


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
