"""The working precision of mpmath belongs to the whole process: whoever changes it does so alone."""

from __future__ import annotations

import os
import threading
from contextlib import ContextDecorator


class _Alone(ContextDecorator):
    """A section, or a function, that one thread at a time is in; a thread may enter again what it is in."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):  # the thread that held it does not exist in the child
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


alone = _Alone()

__all__ = ["alone"]
