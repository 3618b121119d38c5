"""The history of benchmarks: a line for each run, and what became slower."""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def script(*words):
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)  # noqa: S603 - our own


def test_a_run_is_remembered_with_its_commit_and_a_slow_one_is_seen(tmp_path):
    history, quick = tmp_path / "there" / "history.jsonl", tmp_path / "quick.py"
    quick.write_text(
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "from timing import run\n"
        "def main(bench):\n    bench.row('a row', 2, [(1e-3, 2e-3)])\n"
        "run(main)\n"
    )
    for _ in range(2):
        done = script(quick, "--small", "--history", history)
        assert done.returncode == 0, done.stderr
    same = script(FOLDER / "history.py", history)
    assert (same.returncode, same.stdout.split()[:4]) == (0, ["quick", "a", "row", "1.00"])
    (line, _) = map(json.loads, history.read_text().splitlines())
    assert line["rows"] == {"a row": {"ours": 1.0, "other": 2.0, "ratio": 0.5}}
    assert {"benchmark", "commit", "date", "machine", "small"} < set(line)

    line["rows"]["a row"]["ours"] = 1.6
    elsewhere = {**line, "machine": "another", "rows": {"a row": {"ours": 9.0}}}
    with history.open("a") as file:
        file.write(json.dumps(line) + "\n" + json.dumps(elsewhere) + "\n")
    slow = script(FOLDER / "history.py", history)
    assert slow.returncode == 1
    assert slow.stdout.count("slower") == 1
