"""The stopwatch of the benchmarks: two calls in turn, the median of their ratios, a bound, an exit status.

A benchmark is a function of a `Bench`, started by ``run(main)``.  It races our call against another one; a row
is printed as soon as it is known.  The machine may be busy: each ratio is of two neighbouring runs, so that
whatever disturbs one disturbs the other.  A full run leaves with status 1 where a ratio is past its bound; with
``--small`` everything runs once at its smallest size, ratios are printed and bind nothing, and only wrong
results fail.

``--history FILE`` appends one line of JSON: the commit, the machine, the date, and the times of each row.
``python benchmarks/history.py FILE`` reads it; its status is 1 where a row has become slower by more than half.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SHORT = 2e-2  # seconds; shorter calls are timed as a loop, lest one interruption is all that is seen
WIDTH = 52


def seconds(call: Callable[[], object], count: int = 1) -> float:
    """Return the wall time of one call, as the mean of some."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def work(call: Callable[[], object]) -> float:
    """Return the processor time of one call, in seconds: for a row whose neighbour is a number, on a busy machine."""
    start = time.process_time()
    call()
    return time.process_time() - start


class Bench:
    """A table of races, and what was missed.

    Parameters
    ----------
    small : bool
        Whether everything runs once, at its smallest size.
    """

    def __init__(self, small: bool) -> None:
        self.small = small
        self.missed: list[str] = []
        self.rows: dict[str, dict[str, float]] = {}  # milliseconds, and the ratio
        self._line("", "ours, ms", "other, ms", "ratio", "bound")

    def size(self, full: Any, small: Any) -> Any:
        """Return the size of a full run, or the smallest one."""
        return small if self.small else full

    def needs(self, name: str, *packages: str) -> bool:
        """Tell whether the packages of a row are there; where not, say what to install."""
        absent = [package for package in packages if find_spec(package) is None]
        if absent:
            print(f"{name}: skipped without {', '.join(absent)}; pip install -e '.[bench]'", flush=True)
        return not absent

    def race(
        self,
        name: str,
        bound: float,
        ours: Callable[..., object],
        other: Callable[..., object],
        *,
        repeats: int = 5,
        cases: Iterable[Any] | None = None,
        units: tuple[float, float] = (1, 1),
    ) -> None:
        """Run two calls in turn, and print the median of the ratios of their times.

        Parameters
        ----------
        name : str
            What is raced.
        bound : float
            The largest ratio of ours to the other that passes.
        ours, other : callable
            The calls; they take a case where there are cases, and nothing otherwise.
        repeats : int
            How often each is timed, after a call of each that is not counted.
        cases : iterable, optional
            One repeat for each of them.
        units : tuple of float
            How much work each call does; the ratio is that of the times for one unit.
        """
        inputs = [()] * repeats if cases is None else [(case,) for case in cases]
        counts = [1, 1]
        if self.small:
            inputs = inputs[:1]
        else:
            for k, call in enumerate((ours, other)):
                call(*inputs[0])
                if cases is None:
                    counts[k] = max(1, round(SHORT / max(seconds(call), SHORT / 1000)))
        times = []
        for given in inputs:
            calls = (lambda given=given: ours(*given), lambda given=given: other(*given))
            pair = [seconds(call, count) for call, count in zip(calls, counts, strict=True)]
            times.append((pair[0] / units[0], pair[1] / units[1]))
        self.row(name, bound, times)

    def row(self, name: str, bound: float, times: Iterable[tuple[float, float]]) -> None:
        """Print the median of ratios of times that were taken in pairs, and hold it against its bound."""
        pairs = list(times)
        ratio = statistics.median(a / b for a, b in pairs)
        late = ratio > bound and not self.small
        if late:
            self.missed.append(name)
        best = [f"{1e3 * min(column):.4g}" for column in zip(*pairs, strict=True)]
        ours, other = (1e3 * min(column) for column in zip(*pairs, strict=True))
        self.rows[name] = {"ours": ours, "other": other, "ratio": ratio}
        self._line(name, *best, f"{ratio:.3g}", f"{bound:.3g}", "  missed" if late else "")

    def error(self, name: str, value: float, bound: float) -> None:
        """Print an error and the largest that passes, which binds at every size."""
        wrong = not value <= bound  # a nan is wrong
        if wrong:
            self.missed.append(name)
        self._line(name, "", "error", f"{value:.1e}", f"{bound:.1e}", "  missed" if wrong else "")

    @staticmethod
    def _line(name: str, ours: str, other: str, ratio: str, bound: str, end: str = "") -> None:
        print(f"{name:<{WIDTH}} {ours:>11} {other:>11} {ratio:>9} {bound:>9}{end}", flush=True)


def options(words: str) -> argparse.Namespace:
    """Read the command line of the script that runs: ``--small``, which the words explain, and ``--history``."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--small", action="store_true", help=words)
    parser.add_argument("--history", type=Path, metavar="FILE", help="append what was measured, as one line of JSON")
    return parser.parse_args()


def remember(file: Path, bench: Bench) -> None:
    """Append a line to a history: what was measured, when, of which commit, on which machine."""
    folder = Path(__file__).resolve().parent
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],  # noqa: S607 - the git of whoever runs this
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    line = {
        "benchmark": Path(sys.argv[0]).stem,
        "small": bench.small,
        "commit": said.stdout.strip() or None,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.node()} {platform.machine()} python {platform.python_version()}",
        "rows": bench.rows,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def run(main: Callable[[Bench], None]) -> NoReturn:
    """Run a benchmark as a process with one thread of linear algebra, and leave with its status."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        # the libraries read this when they are loaded, which they are by now: begin again
        command, single = [sys.executable, *sys.orig_argv[1:]], {**os.environ, **dict.fromkeys(THREADS, "1")}
        os.execve(sys.executable, command, single)  # noqa: S606 - this very process
    given = options("everything once, at its smallest size, no bounds")
    bench = Bench(given.small)
    main(bench)
    if given.history:
        remember(given.history, bench)
    if bench.missed:
        print("missed: " + "; ".join(bench.missed))
    sys.exit(1 if bench.missed else 0)
