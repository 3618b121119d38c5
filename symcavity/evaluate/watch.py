"""A time limit for a computation, and reports of its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from symcavity.errors import OutOfTime, ValuesError
from symcavity.evaluate.progress import is_running, silent

QUIET, OFTEN = 2.0, 0.25  # seconds before the first word on a terminal, and between two


@dataclass
class Watch:
    """What has been going on since when, and until when it may.

    Attributes
    ----------
    budget : float or None
        Seconds.
    stage : str
        What was being done at last.
    """

    budget: float | None = None
    stage: str = "the search"
    started: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108 - looked up when it is called
    said: float = 0.0
    width: int = 0

    def tick(self, stage: str) -> None:
        """Note what is being done; stop when the budget is spent."""
        passed = time.monotonic() - self.started
        self.stage = stage or self.stage
        if self.budget is not None and passed > self.budget:
            raise OutOfTime(
                f"The budget of {self.budget:g} seconds was spent, at last on {self.stage}.",
                hint="a larger timeout=; fewer digits; guess=, the values of a solution nearby",
            )
        if passed > QUIET and passed - self.said > OFTEN and sys.stderr.isatty() and not (is_running() or silent.get()):
            self.said = passed
            text = f"solving for {passed:.0f} s: {self.stage}"
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)

    def clear(self) -> None:
        """Take the word back."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()


_CURRENT: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(budget: float | None) -> Iterator[None]:
    """Watch what is done inside; an inner watch belongs to the outer one.

    Raises
    ------
    ValuesError
        If the budget is no positive number of seconds.
    OutOfTime
        From inside, when the budget is spent.
    """
    if budget is not None and not (isinstance(budget, int | float) and budget > 0):
        raise ValuesError(f"The timeout is {budget!r}.", "a positive number of seconds", "timeout=60")
    if budget is None and _CURRENT.get() is not None:
        yield
        return
    watch = Watch(budget)
    token = _CURRENT.set(watch)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        watch.clear()


def tick(stage: str = "") -> None:
    """Note what is being done, where somebody watches; raises OutOfTime when the budget is spent."""
    watch = _CURRENT.get()
    if watch is not None:
        watch.tick(stage)
