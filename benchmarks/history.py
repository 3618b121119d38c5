"""Compare the last run of each benchmark in a history with the runs before it.

A history has one line of JSON for each run (``python benchmarks/NAME.py --history FILE``). A row is compared with the
median of the earlier runs of the same benchmark, at the same size and on the same machine. The status is 1 where a row
takes more than 1.5 times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SLOWER = 1.5


def runs(file: Path) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return the runs of a history, in their order, by benchmark, size and machine."""
    out: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        out[found["benchmark"], found["small"], found["machine"]].append(found)
    return out


def changes(file: Path) -> Iterator[tuple[str, str, float, str]]:
    """Yield benchmark, row, the time of the last run over the median of those before, and the commit of the last."""
    for (name, *_), found in runs(file).items():
        *before, last = found
        for row, times in last["rows"].items():
            if known := [run["rows"][row]["ours"] for run in before if row in run["rows"]]:
                yield name, row, times["ours"] / statistics.median(known), last["commit"] or ""


def main() -> int:
    """Print each row with its change; return the status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    slow = 0
    for name, row, change, commit in changes(parser.parse_args().file):
        slow += change > SLOWER
        print(f"{name:<10} {row:<52} {change:6.2f} {commit}{'  slower' if change > SLOWER else ''}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
