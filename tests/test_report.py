"""The report of a declaration: everything in a folder, one page without network, made again from its record."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from symcavity import alpha
from symcavity.cli import main
from symcavity.derivations import gardner
from symcavity.errors import ValuesError
from symcavity.face import Derivation

DECLARATION = """
from sympy import Sum, Symbol
from symcavity import ConvexProblem, Coupling, Feature, N, P, i, mu

x, w = Coupling("x"), Feature("w")
gamma = Symbol("gamma", positive=True)
field = Sum(x[mu, i] * w[i], (i, 1, N))
problem = ConvexProblem(
    Sum((1 - field) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2,
    name="Ridge <script>alert(1)</script> & more",
)
"""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Balanced(HTMLParser):
    """Refuses pages whose elements do not close."""

    EMPTY = frozenset({"meta", "br", "hr", "img", "link"})

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, _attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("report")
    (home / "ridge.py").write_text(DECLARATION)
    words = ["alpha=2", "gamma=1/2", "--N", "30", "--seeds", "3", "--dps", "20", "--sweep", "alpha=1:3:3"]
    assert main(["report", str(home / "ridge.py"), *words, "-o", str(home / "made"), "-q"]) == 0
    return home / "made"


def test_everything_is_in_the_folder(folder):
    names = {path.name for path in folder.iterdir()}
    wanted = {"derivation.tex", "checks.txt", "numbers.json", "comparison.csv", "comparison.pdf", "sweep.csv"}
    assert names >= wanted | {"sweep.pdf", "distribution.w.pdf", "report.html", "report.json", "declaration.py"}
    assert ("derivation.pdf" in names) == bool(shutil.which("pdflatex"))
    found = json.loads((folder / "numbers.json").read_text())
    g = 0.5
    sigma = found["values"]["S_w"]
    assert g * float(sigma) + 2 * float(sigma) / (1 + float(sigma)) == pytest.approx(1)  # ridge regression at alpha = 2
    assert len((folder / "comparison.csv").read_text().splitlines()) > 3


def test_the_page_needs_no_network_and_shows_text_as_text(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)", page)  # links within the page only
    assert "<script" not in page
    assert "Ridge <script>alert(1)</script> & more" in parser.text
    assert page.count("<svg") >= 3
    assert "checked" in parser.text


def test_it_is_made_again_from_its_record(folder):
    again = folder.parent / "again"
    assert main(["report", str(folder / "report.json"), "-o", str(again), "-q"]) == 0
    for name in ("numbers.json", "comparison.csv", "sweep.csv", "derivation.tex", "report.json"):
        first, second = ((home / name).read_text() for home in (folder, again))
        if name == "numbers.json":
            first, second = (re.sub(r'"problem": .*', "", text) for text in (first, second))
        assert first == second, name


def test_other_folders_are_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("precious")
    assert main(["report", "gardner", "-o", str(tmp_path)]) == 2
    assert "holds other files" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text("{}")
    assert main(["report", str(tmp_path / "bad.json"), "-o", str(tmp_path / "new")]) == 2
    assert "not a record of a report" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="no browser on this machine")
def test_a_browser_shows_the_page(folder, tmp_path):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    shot, page = tmp_path / "page.png", (folder / "report.html").as_uri()

    def browse(*options):
        return subprocess.run(  # noqa: S603 - a browser on our own page
            [*command, *options, page], check=False, capture_output=True, text=True, timeout=60
        )

    out = browse(f"--screenshot={shot}", "--window-size=400,1200")
    assert shot.exists(), out.stderr
    from PIL import Image

    with Image.open(shot) as picture:
        assert len(picture.convert("L").getcolors()) > 50  # not an empty page
    assert browse("--dump-dom").stdout.count("<math") > 50


def test_a_sweep_with_too_many_values_is_refused_before_long_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Derivation, "verify", lambda *_args, **_options: pytest.fail("the checks have begun"))
    words = ["report", "gardner", "kappa=1", "--sweep", "alpha=1:2:3", "-o", str(tmp_path / "new"), "-q"]
    for _ in range(2):  # what there is of it does not stand in the way of another
        assert main(words) == 2
        assert "Too many values: kappa, alpha" in capsys.readouterr().err


def test_a_sweep_of_which_some_points_can_be_read_keeps_the_others_as_failed():
    theory = gardner.problem.cavity()
    with pytest.raises(ValuesError, match="Too many values"):
        theory.sweep({alpha: [1, 2]}, values={gardner.kappa: 1})
    rows = theory.sweep([{gardner.kappa: 1}, {gardner.kappa: 1, alpha: 1}])
    assert len(rows.rows) == 2
    assert len(rows.failed) == 1


def test_a_report_that_cannot_draw_is_refused_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("symcavity.finite.plots.find_spec", lambda _name: None)
    assert main(["report", "gardner", "kappa=1/2", "-o", str(tmp_path / "made")]) != 0
    assert "matplotlib is not installed" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_values_that_instances_cannot_have_are_refused_before_long_work(tmp_path, capsys, monkeypatch):
    """An array of two values is a law of the theory, but no value for each of a hundred sites."""
    monkeypatch.setattr(Derivation, "verify", lambda *_args, **_options: pytest.fail("long work"))
    declared = DECLARATION.replace("gamma * Sum(", "Sum(Quenched('c', i)[i] * ").replace("N, P,", "N, P, Quenched,")
    (tmp_path / "costs.py").write_text(declared)
    words = ["alpha=2", "c=1,2", "--N", "100", "-o", str(tmp_path / "out")]
    assert main(["report", str(tmp_path / "costs.py"), *words]) == 2
    said = capsys.readouterr().err
    assert "2 values are given for c, and N = 100" in said
    assert "1:1/2,-1:1/2" in said
