"""One thread of linear algebra for each test process, since the matrices are small; and LaTeX, where there is one."""

import gc
import os
import re
import shutil
import subprocess

import pytest

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

SHARED = re.compile(r"symcavity\.derivations|gallery_shared|installed\(\)|paper_reading")  # what derives them

gc.set_threshold(50_000, 20, 100)  # theories are remembered and never garbage: looking through them takes long


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Neighbours in one process, since they share theories, which every process derives for itself."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


def pytest_collection_modifyitems(items):
    """Tests of installed derivations stand together: one process derives those theories, and all of them share it."""
    alone = {path for path in {item.path for item in items} if not SHARED.search(path.read_text(encoding="utf-8"))}
    items.sort(key=lambda item: item.path in alone)


@pytest.fixture
def typeset(tmp_path):
    """Typeset a source in ``tmp_path/paper.tex`` and give the log; a second pass resolves the references."""
    command = shutil.which("pdflatex")
    if command is None:
        pytest.skip("no TeX")

    def run(source, passes=1):
        (tmp_path / "paper.tex").write_text(source, encoding="utf-8")
        for left in reversed(range(passes)):
            draft = ["-draftmode"] if left else []  # no pages before the last pass
            done = subprocess.run(  # noqa: S603
                [command, *draft, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
                cwd=tmp_path, capture_output=True, check=False, text=True, errors="replace",
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return run
