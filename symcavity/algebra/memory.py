"""A memory that forgets what it has kept for longest."""

from __future__ import annotations

from contextlib import suppress
from typing import Any


class Memory(dict[Any, Any]):
    """A dictionary of at most as many entries as it is told; the oldest one goes first.

    Parameters
    ----------
    bound : int
        How many.
    """

    bound = 256

    def __init__(self, bound: int = bound) -> None:
        super().__init__()
        self.bound = bound

    def __setitem__(self, key: Any, value: Any) -> None:
        while len(self) >= self.bound and key not in self:
            with suppress(RuntimeError, StopIteration):  # another thread was quicker
                self.pop(next(iter(self)), None)
        super().__setitem__(key, value)
