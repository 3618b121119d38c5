"""Running many instances on any executor, in an order and with numbers that do not depend on it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor as BrokenPool
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from symcavity.errors import SymcavityError, ValuesError

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LOADED: dict[bytes, Any] = {}


class BrokenExecutor(SymcavityError, RuntimeError):
    """An executor that died before all its work was done.

    Attributes
    ----------
    done : int
        How many pieces of work had finished; they are kept.
    rows : list
        The rows of a sweep that had finished.
    """

    def __init__(self, found: str, done: int, hint: str = "") -> None:
        self.done = done
        self.rows: list[Any] = []
        super().__init__(found, "", hint)


class _Processes(ProcessPoolExecutor):
    """Processes of ours: they are ended where work is interrupted, not waited for."""


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Open worker processes with one linear-algebra thread each.

    Parameters
    ----------
    count : int
        How many.
    """
    import multiprocessing

    if count < 1:
        raise ValuesError(f"executor = {count}.", "a positive number of processes, or an Executor")
    before, children = {name: os.environ.get(name) for name in _THREADS}, set(multiprocessing.active_children())
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with _Processes(count, multiprocessing.get_context("spawn"), _leave_interrupts) as pool:
            try:
                yield pool
            except KeyboardInterrupt:  # what runs is not waited for
                for child in set(multiprocessing.active_children()) - children:
                    child.terminate()
                raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _leave_interrupts() -> None:
    """Let the parent alone answer to Ctrl-C."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def resolved(executor: Any) -> Iterator[Any]:
    """Return an executor: one's own, a number of processes, or None for this process."""
    if executor is None:
        yield None
    elif isinstance(executor, int) and not isinstance(executor, bool):
        if executor == 1:
            yield None
        else:
            with processes(executor) as pool:
                yield pool
    elif hasattr(executor, "submit") or hasattr(executor, "get_executor"):
        yield executor
    else:
        raise ValuesError(
            f"The executor is {executor!r}.",
            "a number of processes, or an object with a submit method (an Executor)",
        )


def packed(value: Any) -> bytes:
    """Return what a worker needs, as bytes that are unpacked once in each process."""
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValuesError(
            f"The simulation cannot be sent to other processes: {error}.",
            "coupling laws that are functions of an importable module",
            "executor=None, or a ThreadPoolExecutor",
        ) from error


def _unpacked(data: bytes) -> Any:
    if data not in _LOADED:
        _LOADED.clear()
        _LOADED[data] = pickle.loads(data)  # noqa: S301 - it was made by the parent process a moment ago
    return _LOADED[data]


def _call(function: Callable[..., Any], data: Any, tasks: list[Any]) -> list[Any]:
    """Run tasks in a worker: ``function(shared, task)`` for each of them, with what is shared as it is, or packed."""
    shared = _unpacked(data) if isinstance(data, bytes) else data
    return [function(shared, task) for task in tasks]


def each(
    executor: Any, function: Callable[..., Any], shared: Any, tasks: list[Any], *, chunk: int = 0
) -> Iterator[tuple[Any, Any]]:
    """Yield ``(task, function(shared, task))`` as they finish.

    Parameters
    ----------
    executor : Executor or None
        Where to run; None runs here, in order.
    function : callable
        A function of a module.
    shared : object
        What all tasks need.
    tasks : list
        What differs.
    chunk : int, optional
        Tasks in one submission.

    Raises
    ------
    BrokenExecutor
        If the executor dies; everything that was yielded before is finished.
    """
    if executor is None:
        for task in tasks:
            yield task, function(shared, task)
        return
    if hasattr(executor, "get_executor"):  # the client of a dask.distributed cluster
        executor = executor.get_executor()
    workers = getattr(executor, "_max_workers", None) or 4
    size = chunk or max(1, min(8, len(tasks) // (4 * workers)))
    data = shared if isinstance(executor, ThreadPoolExecutor) else packed(shared)
    done = 0
    futures: dict[Any, list[Any]] = {}
    try:
        for start in range(0, len(tasks), size):
            batch = tasks[start : start + size]
            futures[executor.submit(_call, function, data, batch)] = batch
        for future in as_completed(futures) if isinstance(executor, Executor) else futures:
            results = future.result()
            for task, result in zip(futures[future], results, strict=True):
                done += 1
                yield task, result
    except SymcavityError:
        raise
    except KeyboardInterrupt:
        if isinstance(executor, _Processes):
            futures.clear()  # a pool that breaks must find them as they are
        raise
    except Exception as error:
        if not _infrastructure(error):
            raise
        raise BrokenExecutor(
            f"The executor died after {done} of {len(tasks)} pieces of work: {error or type(error).__name__}",
            done,
            "start again with a fresh executor; a sweep that writes to a file resumes from it",
        ) from error
    finally:
        for future in futures:
            future.cancel()


def _infrastructure(error: BaseException) -> bool:
    """Whether an error comes from the executor and not from the work."""
    kinds = (BrokenPool, CancelledError, ConnectionError, EOFError)
    shut = isinstance(error, RuntimeError) and "shutdown" in str(error)
    return isinstance(error, kinds) or shut or type(error).__name__ == "KilledWorker"
