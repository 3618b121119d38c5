"""What a terminal shows beside results: progress, warnings, suggestions, and one line where work is stopped."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from symcavity.cli import main
from symcavity.commands.arguments import in_shell
from symcavity.errors import Interrupted
from symcavity.evaluate import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*argv):
        try:
            status = main(argv)
        except SystemExit as left:
            status = left.code
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("give 1 more, such as {kappa: ...}", "give 1 more, such as kappa=..."),
        ("{N: 400, ...} in solve(...)", "N=400"),
        ("{y: {1: '1/2', -1: '1/2'}}", "y=1:1/2,-1:1/2"),
        ("values with weights, {1: 1/2, -1: 1/2}", "values with weights, 1:1/2,-1:1/2"),
        ("{g_S: Ball(5, 1)}", "'g_S=Ball(5, 1)'"),
        ("N=400, or a list N=[100, 200, 400]", "--N 400, or a list --N 100,200,400"),
        ("dps <= 15; more digits, dps=30", "dps <= 15; more digits, --dps 30"),
        ("a number, a dictionary {value: weight}, an array", "a number, a law value:weight,value:weight, an array"),
        ("gaussian, uniform, or a callable(rng, shape)", "gaussian, uniform"),
        ("guess=, the values of a solution nearby; other values", "other values"),
        ("a law, an array with one entry a site, or a SymPy distribution", "a law, or an array with one entry a site"),
        ("N = 400 or more", "N = 400 or more"),
    ],
)
def test_hints_are_in_the_syntax_of_the_shell(python, shell):
    assert in_shell(python) == shell


@pytest.mark.parametrize(
    ("argv", "suggestion"),
    [
        (["slove", "gardner"], "did you mean solve?"),
        (["solve", "gardnr", "kappa=1"], "Try: gardner"),
        (["solve", "gardner", "kapa=1"], "Try: kappa"),
        (["solve", "gardner", "kappa=1", "--show", "averge(w[i])"], "the nearest function is average"),
        (["solve", "gardner"], "Try: give one more, such as kappa=..."),
    ],
)
def test_what_was_mistyped_is_suggested(run, argv, suggestion):
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert suggestion in err


def test_short_memory_is_no_defect(run, monkeypatch):
    status, _, err = run("simulate", "gardner", "alpha=1", "--N", "3000000", "--seeds", "1")
    assert status == 2
    assert "67055.2 GiB" in err  # 8 bytes for each of N*N couplings
    from symcavity.commands import actions

    def broken(*_):
        raise MemoryError("Unable to allocate 14.3 GiB for an array with shape (40000, 48000) and data type float64")

    monkeypatch.setattr(actions, "theory_of", broken)
    status, _, err = run("simulate", "gardner", "alpha=1", "--N", "30")
    assert status == 2
    assert "14.3 GiB" in err
    assert "defect" not in err


def test_a_partly_failed_sweep_warns(run):
    status, out, err = run("sweep", "gardner", "alpha=1:3:3", "--show", "kappa")
    assert status == 0
    assert "warning: 2 of 3 rows have no value" in err
    assert run("-q", "sweep", "gardner", "alpha=1:3:3", "--show", "kappa") == (0, out, "")
    assert run("sweep", "gardner", "alpha=3,4")[0] == 1


def test_quiet_and_verbose_stand_anywhere(run):
    assert run("-q", "derive", "gardner", "--latex", "a.tex")[2] == ""
    assert run("derive", "gardner", "--latex", "a.tex", "--quiet")[2] == ""
    assert "wrote a.tex" in run("derive", "gardner", "--latex", "a.tex")[2]
    assert re.search(r"symcavity: [\d.]+ s\n", run("solve", "gardner", "kappa=1", "-v")[2])
    with pytest.raises(Exception, match="No derivation"):
        main(["solve", "nothing", "-v"])


def test_a_bar_counts_and_goes(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "QUIET", 0.0)
    with progress.counted(3, "points") as count:
        for _ in range(3):
            count.advance()
            assert progress.is_running()
    assert not progress.is_running()
    assert "3/3 done" in shown.getvalue()
    mark = len(shown.getvalue())
    token = progress.silent.set(True)
    with progress.counted(1, "points") as count:
        count.advance()
    progress.silent.reset(token)
    assert len(shown.getvalue()) == mark


def test_work_that_is_stopped_says_how_far_it_was():
    def stopped(kept):
        with progress.counted(9, "instances", kept=kept) as count:
            count.advance()
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"1 of 9 instances kept in rows\.csv"):
        stopped("rows.csv")
    with pytest.raises(KeyboardInterrupt, match="1 of 9 instances were done; nothing is kept"):
        stopped("")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_sweep_says_so_in_one_line_and_goes_on(tmp_path, jobs):
    words = ["sweep", "soft_margin", "alpha=1:2:2000", "C=1", "--csv", "rows.csv", "--jobs", jobs]
    words += ["--simulate", "--N", "40", "--seeds", "4"]  # theory alone is over before it is interrupted
    command = [sys.executable, "-m", "symcavity", *words]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        while not (tmp_path / "rows.csv").exists() or (tmp_path / "rows.csv").read_text().count("\n") < 4:
            assert started.poll() is None, "it ended before it was interrupted"
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGINT)
        out, err = started.communicate()  # however long a busy machine takes
    assert started.returncode == 130
    assert out == ""
    assert re.fullmatch(r"symcavity: stopped: \d+ of 2000 points kept in rows.csv; go on with --resume\n", err), err
    rows = (tmp_path / "rows.csv").read_text().count("\n") - 1
    assert rows >= int(re.search(r"(\d+) of", err)[1]) >= 3


def test_wide_tables_fit_the_terminal(monkeypatch):
    from symcavity.finite.tables import aligned

    rows = [["alpha", *(f"observable{k}" for k in range(9))], ["1", *("0.123456789" for _ in range(9))]]
    assert len(aligned(rows)) == 2
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys, "stdout", Terminal())
    lines = aligned(rows)
    assert max(map(len, lines)) <= 50
    assert sum(line.count("observable") for line in lines) == 9
    assert sum(line.startswith("alpha") for line in lines) == 3
