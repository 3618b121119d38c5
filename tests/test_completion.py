"""Completion of the command line, as a shell asks for it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


def completions(line, folder):
    answer = folder / "answer"
    env = os.environ | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "_ARGCOMPLETE_IFS": "\n",
                        "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SHELL": "bash"}  # fmt: skip
    subprocess.run([sys.executable, "-m", "symcavity"], env=env, cwd=folder, check=True)
    return answer.read_text(encoding="utf-8").split("\n")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("symcavity sens", ["sensitivity "]),
        ("symcavity solve soft_m", ["soft_manifold", "soft_margin"]),
        ("symcavity solve mine", ["mine.py "]),
        ("symcavity solve soft_margin alpha=2 C", ["C="]),
        ("symcavity solve gardner --cer", ["--certify "]),
    ],
)
def test_commands_names_files_options_and_values_are_completed(line, found, tmp_path):
    (tmp_path / "mine.py").touch()
    assert sorted(completions(line, tmp_path)) == found
