"""The LaTeX of every installed derivation compiles, with amsmath and bm alone, and fits the page."""

import importlib
import re
import shutil
import subprocess

import pytest

from symcavity.loading import installed

NAMES = sorted(installed())
TEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX")


def document(name, method):
    problem = importlib.import_module(f"symcavity.derivations.{name}").problem
    return getattr(problem, method)().derivation.to_latex()


@TEX
@pytest.mark.parametrize("method", ["cavity", "naive"])
@pytest.mark.parametrize("name", NAMES)
def test_every_derivation_compiles(name, method, tmp_path):
    source = document(name, method)
    assert set(re.findall(r"\\usepackage(?:\[[^]]*\])?\{([^}]*)\}", source)) <= {"amsmath", "bm"}
    (tmp_path / "paper.tex").write_text(source, encoding="utf-8")
    for _ in range(2):  # the second pass resolves the references
        run = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],  # noqa: S607
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
        )
        assert run.returncode == 0, run.stdout[-2000:]
    assert "undefined" not in run.stdout
    assert (tmp_path / "paper.pdf").stat().st_size > 20_000
    wide = [float(pt) for pt in re.findall(r"Overfull \\hbox \(([0-9.]+)pt", run.stdout)]
    assert max(wide, default=0.0) < 20


@pytest.mark.parametrize("name", NAMES)
def test_every_derivation_reads_like_a_paper(name):
    source = document(name, "cavity")
    for part in ("\\begin{abstract}", "\\section", "\\label{", "\\eqref", "Assumptions", "Order parameters"):
        assert part in source
    assert "^{2}^" not in source
    assert "Piecewise" not in source
    assert "SiteQuantity" not in source
