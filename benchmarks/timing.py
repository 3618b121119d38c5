"""The stopwatch of the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several times of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
