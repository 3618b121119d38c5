"""The progress of long work, with the time that is left, and the message if the work is stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from symcavity.errors import Interrupted

Report = Callable[[int, int, float, float], None]

QUIET = 1.5  # seconds before a bar appears by itself
silent: ContextVar[bool] = ContextVar("silent", default=False)
_running: ContextVar[bool] = ContextVar("running", default=False)


def is_running() -> bool:
    """Whether a bar is on the screen: others then say nothing of their own."""
    return _running.get()


def _is_seen() -> bool:
    """Whether somebody looks: a terminal, or a notebook."""
    if silent.get():
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell"


class Counter:
    """The progress of some work, and where it is reported.

    Parameters
    ----------
    total : int
        Pieces of work.
    name : str
        What the pieces are, in the plural.
    progress : bool, callable or None
        True shows a bar on stderr, None shows one where somebody looks and the work takes more than a moment, False
        shows none; a function is called with (done, total, seconds elapsed, seconds left).
    """

    def __init__(self, total: int, name: str, progress: bool | Report | None) -> None:
        self.total, self.name, self.done = total, name, 0
        self._report = progress if callable(progress) else None
        self._wait = 0.0 if progress is True else QUIET
        self._bar: Any = None
        self._shows = progress is True or (progress is None and _is_seen())
        self._began = time.monotonic()
        self._stack = ExitStack()

    def advance(self) -> None:
        """Note that one more piece is done."""
        self.done += 1
        elapsed = time.monotonic() - self._began
        if self._report is not None:
            self._report(self.done, self.total, elapsed, elapsed / self.done * (self.total - self.done))
        if self._shows and self._bar is None and elapsed >= self._wait:
            self._bar = self._stack.enter_context(_bar(transient=self._wait > 0))
            self._stack.callback(_running.reset, _running.set(True))
            self._task = self._bar.add_task(self.name, total=self.total)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)

    def close(self) -> None:
        """Take the bar away."""
        self._stack.close()


def _bar(*, transient: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} done,"),
        TimeElapsedColumn(),
        TextColumn("passed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(file=sys.stderr),
        transient=transient,
    )


@contextmanager
def counted(total: int, name: str, progress: bool | Report | None = None, kept: str = "") -> Iterator[Counter]:
    """Count pieces of work, and show how far it is.

    Parameters
    ----------
    total, name, progress
        As in :class:`Counter`.
    kept : str, optional
        Where finished pieces are kept, for the message of an interruption.

    Raises
    ------
    Interrupted
        In place of KeyboardInterrupt: how much was done, and what of it is kept.
    """
    counter = Counter(total, name, progress)
    try:
        yield counter
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted):
            raise
        done = f"{counter.done} of {total} {name}"
        raise Interrupted(f"{done} kept in {kept}" if kept else f"{done} were done; nothing is kept", kept) from None
    finally:
        counter.close()
