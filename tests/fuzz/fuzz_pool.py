"""A pool of processes that judge cases, each with a time limit; one that does not answer is replaced."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait

from fuzz_grammar import generate
from fuzz_judge import Checks, Finding, Outcome, judge

RENEW = 300  # cases after which a process is replaced, so that none grows without end
PATIENCE = 20  # seconds for each second of the processor that a case may use, on a machine that others use


def checks_of(number: int, limit: float, simulate: bool) -> Checks:
    """What is checked of a case with a number."""
    return Checks(number % 3 == 0, number % 8 == 0, simulate and number % 5 == 0, limit)


def _work(pipe: Connection, seed: int, how: tuple[float, bool]) -> None:
    """Judge the cases whose numbers come in, until there are no more."""
    while (number := pipe.recv()) is not None:
        pipe.send((number, judge(generate(seed, number), checks_of(number, *how))))


class _Worker:
    """A process that judges one case at a time, and is killed where a case uses twice its time of the processor.

    One that sleeps is killed in the end.
    """

    def __init__(self, seed: int, how: tuple[float, bool], number: int) -> None:
        self.limit, self.done = how[0], 0
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(other, seed, how), daemon=True
        )
        self.process.start()
        other.close()
        self.give(number)

    def give(self, number: int) -> None:
        self.number, self.begin, self.used = number, time.monotonic(), _used(self.process.pid)
        self.pipe.send(number)

    @property
    def stuck(self) -> bool:
        most = 2 * self.limit + 30
        return _used(self.process.pid) - self.used > most or time.monotonic() - self.begin > PATIENCE * most

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def outcomes(
    seed: int, numbers: range, jobs: int, seconds: float, how: tuple[float, bool]
) -> Iterator[tuple[int, Outcome]]:
    """Judge the cases of a seed in parallel, until the time is over.

    Parameters
    ----------
    seed : int
    numbers : range
        Which cases.
    jobs : int
        How many processes.
    seconds : float
        After these no case is begun.
    how : tuple of float and bool
        The time limit of a case, and whether solutions are held against instances.
    """
    end = time.monotonic() + seconds
    waiting = iter(numbers)
    workers = [_Worker(seed, how, number) for _, number in zip(range(jobs), waiting, strict=False)]
    while workers:
        ready = wait([w.pipe for w in workers], timeout=5)
        for worker in list(workers):
            found, alive = None, worker.pipe in ready
            if alive:
                try:
                    _, found = worker.pipe.recv()
                except (EOFError, ConnectionError):
                    found, alive = _ended("raw error", f"the process died: {worker.process.exitcode}"), False
            elif worker.stuck:
                found = _ended("slow", "deaf to its time limit")
            if found is None:
                continue
            yield worker.number, found
            worker.done += 1
            following = next(waiting, None) if time.monotonic() < end else None
            if following is not None and alive and worker.done < RENEW:
                worker.give(following)
                continue
            worker.stop()
            workers.remove(worker)
            if following is not None:
                workers.append(_Worker(seed, how, following))


def _used(pid: int | None) -> float:
    """The seconds of the processor that a process has used, by its clock as Linux numbers them; 0 if it is gone."""
    try:
        return time.clock_gettime(~(pid or 0) << 3 | 2)
    except OSError:
        return 0.0


def _ended(kind: str, where: str) -> Outcome:
    return Outcome("died", findings=[Finding(kind, where)])


__all__ = ["checks_of", "outcomes"]
