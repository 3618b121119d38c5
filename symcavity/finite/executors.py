"""Running many instances on any executor, in an order and with numbers that do not depend on it."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures import BrokenExecutor as BrokenPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

from symcavity.errors import SymcavityError, ValuesError
from symcavity.evaluate.progress import Report, counted

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LOADED: dict[bytes, Any] = {}
_AHEAD = 2  # pieces of work in flight, for each worker
_NO_ANSWER = "the process that computed it died, as one does that runs out of memory"


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
    found = _LOADED.get(data)
    if found is None:
        found = pickle.loads(data)  # noqa: S301 - it was made by the parent process a moment ago
        _LOADED.clear()
        _LOADED[data] = found
    return found


@lru_cache(maxsize=1)
def _threads() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # the environment of the worker decides
        return None
    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[Any]:
    """Linear algebra with one thread: workers share the cores, and numbers do not depend on where they come from."""
    controller = _threads()
    return nullcontext() if controller is None else controller.limit(limits=1)


def _call(function: Callable[..., Any], data: Any, tasks: list[Any]) -> list[Any]:
    """Run tasks in a worker: ``function(shared, task)`` for each of them, with what is shared as it is, or packed."""
    shared = _unpacked(data) if isinstance(data, bytes) else data
    with _one_thread():
        return [function(shared, task) for task in tasks]


class _Crew:
    """The workers of an executor of :mod:`concurrent.futures`.

    Attributes
    ----------
    workers : int
        How many there are.
    breaks : bool
        Whether the death of one ends all.
    """

    breaks = True

    def __init__(self, executor: Any, shared: Any) -> None:
        self.executor, self.workers = executor, getattr(executor, "_max_workers", None) or 4
        self._data = shared if isinstance(executor, ThreadPoolExecutor) else packed(shared)
        self._own = ExitStack()

    def submit(self, function: Callable[..., Any], batch: list[Any]) -> Any:
        """Hand over a few tasks."""
        return self.executor.submit(_call, function, self._data, batch)

    def finished(self, futures: list[Any]) -> list[Any]:
        """Wait until something is done."""
        return list(wait(futures, return_when=FIRST_COMPLETED).done)

    def renewed(self) -> bool:
        """Whether there are workers again after one died: processes are started anew."""
        if not isinstance(self.executor, ProcessPoolExecutor):
            return False
        self._own.close()
        self.executor = self._own.enter_context(processes(self.workers))
        return True

    def close(self) -> None:
        """End the processes that were started here."""
        self._own.close()


class _Cluster(_Crew):
    """The workers of a dask.distributed cluster, to which what is shared is sent once."""

    breaks = False

    def __init__(self, client: Any, shared: Any) -> None:
        self.executor, self.workers = client, max(1, sum(client.nthreads().values()))
        self._data = packed(shared)
        self.renewed()

    def submit(self, function: Callable[..., Any], batch: list[Any]) -> Any:
        """Hand over a few tasks."""
        return self.executor.submit(_call, function, self._there, batch, pure=False)

    def finished(self, futures: list[Any]) -> list[Any]:
        """Wait until something is done."""
        from distributed import wait as wait_for

        return list(wait_for(futures, return_when="FIRST_COMPLETED").done)

    def renewed(self) -> bool:
        """The cluster itself starts its workers anew; what they share is a result, which it computes again if lost."""
        self._there = self.executor.submit(bytes, self._data, pure=False)
        return True

    def close(self) -> None:
        """Nothing was started here."""


class _Tasks:
    """Tasks on their way through a crew: what waits, what is in flight, and what was when a worker died."""

    def __init__(
        self, crew: _Crew, function: Callable[..., Any], tasks: list[Any], lost: Callable[[Any, str], Any] | None
    ) -> None:
        self.crew, self.function, self.tasks, self.lost = crew, function, tasks, lost
        self.waiting: deque[list[Any]] = deque()
        self.suspects: deque[Any] = deque()
        self.flying: dict[Any, list[Any]] = {}
        self.done = 0
        self.died: BaseException | None = None

    def results(self, size: int) -> Iterator[tuple[Any, Any]]:
        """Yield each task with its result, as they finish, so many tasks in one submission."""
        self.waiting.extend(self.tasks[k : k + size] for k in range(0, len(self.tasks), size))
        try:
            while self.waiting or self.flying or self.suspects:
                if self.died is not None and not (self.crew.breaks and self.flying):
                    if not self.crew.renewed():
                        raise self._broken(self.died)
                    self.died = None
                alone = not (self.waiting or self.flying)
                self._submit(alone=alone)
                for future in self.crew.finished(list(self.flying)) if self.flying else ():
                    batch = self.flying.pop(future)
                    if (results := self._results(future, batch, alone=alone)) is None:
                        continue
                    self.done += len(batch)
                    yield from zip(batch, results, strict=True)
        except KeyboardInterrupt:
            if isinstance(self.crew.executor, _Processes):
                self.flying.clear()  # a pool that breaks must find them as they are
            raise
        finally:
            for future in self.flying:
                future.cancel()
            self.crew.close()

    def _submit(self, *, alone: bool) -> None:
        """Hand over what waits, as far as workers are free; what is suspected of a death, one at a time."""
        more = [[self.suspects.popleft()]] if alone else []
        while self.died is None and (more or (self.waiting and len(self.flying) < _AHEAD * self.crew.workers)):
            batch = more.pop() if more else self.waiting.popleft()
            try:
                self.flying[self.crew.submit(self.function, batch)] = batch
            except Exception as error:  # noqa: BLE001 - any kind of executor
                self.died = _death(error)
                (self.suspects.extend if alone else self.waiting.appendleft)(batch)

    def _results(self, future: Any, batch: list[Any], *, alone: bool) -> list[Any] | None:
        """The results of a submission; None where its worker died with others in flight, and it is run once more."""
        try:
            return list(future.result())
        except Exception as error:
            self.died = _death(error)
            if not alone:
                self.suspects.extend(batch)
                return None
            if self.lost is None:
                raise self._broken(self.died) from error
            return [self.lost(task, _NO_ANSWER) for task in batch]

    def _broken(self, error: BaseException) -> BrokenExecutor:
        return BrokenExecutor(
            f"The executor died after {self.done} of {len(self.tasks)} pieces of work: {error or type(error).__name__}",
            self.done,
            "start again with a fresh executor; a sweep that writes to a file resumes from it",
        )


def each(
    executor: Any,
    function: Callable[..., Any],
    shared: Any,
    tasks: list[Any],
    *,
    chunk: int = 0,
    lost: Callable[[Any, str], Any] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield ``(task, function(shared, task))`` as they finish.

    A task whose worker dies is run once more, with no other beside it: the death may have been another's fault.

    Parameters
    ----------
    executor : Executor, dask client or None
        Where to run; None runs here, in order.
    function : callable
        A function of a module.
    shared : object
        What all tasks need.
    tasks : list
        What differs.
    chunk : int, optional
        Tasks in one submission.
    lost : callable, optional
        What stands for the result of a task that kills its worker: a function of the task and the reason.

    Raises
    ------
    BrokenExecutor
        If the executor dies and cannot be started anew, or a task kills its worker where nothing stands for its
        result; everything that was yielded before is finished.
    """
    if executor is None:
        for task in tasks:
            yield task, function(shared, task)
        return
    work = _Tasks((_Cluster if hasattr(executor, "get_executor") else _Crew)(executor, shared), function, tasks, lost)
    yield from work.results(chunk or max(1, min(8, len(tasks) // (4 * work.crew.workers))))


def run_all(
    executor: Any,
    function: Callable[..., Any],
    shared: Any,
    tasks: list[Any],
    keep: Callable[[Any, Any], None],
    *,
    name: str = "instances",
    progress: bool | Report | None = None,
    note: str = "",
    chunk: int = 0,
    lost: Callable[[Any, str], Any] | None = None,
) -> None:
    """Run tasks on a number of processes or an executor, with a bar, and give each result to ``keep(task, result)``.

    Parameters
    ----------
    executor : int, Executor or None
        As in :func:`resolved`.
    function, shared, tasks, chunk, lost
        As in :func:`each`.
    keep : callable
        Takes each task with its result, as they finish.
    name : str
        What the tasks are, in the plural.
    progress : bool, callable or None
        As in :class:`symcavity.evaluate.progress.Counter`.
    note : str
        Where finished work is kept, for whoever interrupts it.
    """
    with counted(len(tasks), name, progress, note) as count, resolved(executor) as pool:
        for task, result in each(pool, function, shared, tasks, chunk=chunk, lost=lost):
            keep(task, result)
            count.advance()


def _death(error: BaseException) -> BaseException:
    """An error that comes from the executor and not from the work; any other is raised."""
    kinds = (BrokenPool, CancelledError, ConnectionError, EOFError)
    shut = isinstance(error, RuntimeError) and "shutdown" in str(error)
    if isinstance(error, kinds) or shut or type(error).__name__ in {"KilledWorker", "FutureCancelledError"}:
        return error
    raise error
