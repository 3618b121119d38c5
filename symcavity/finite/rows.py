"""Rows on disk that are written as they finish, and read back only if every one of them is whole."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from symcavity.errors import ValuesError
from symcavity.finite.executors import BrokenExecutor

Row = dict[str, Any]

TEXT, WHOLE, FLAGS = frozenset({"point", "method", "error"}), frozenset({"N", "P", "seed"}), frozenset({"feasible"})
RUN = "run"
_BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@dataclass
class RowFile:
    """A file of rows that grows as they finish: CSV, or JSON lines if its name ends in ``.jsonl``.

    While it is open, no other sweep can open it.

    Attributes
    ----------
    path : Path or None
        The file; None keeps the rows in memory only.
    columns : tuple of str
        The columns of a row.
    run : str
        What the rows depend on beyond what they say; it is written into every row, and rows of another
        run are refused.
    words : frozenset of str
        Columns that may hold text, beside those that always do.
    """

    path: Path | None
    columns: tuple[str, ...]
    run: str = ""
    words: frozenset[str] = frozenset()
    rows: list[Row] = field(default_factory=list)
    _handle: Any = None

    def __enter__(self) -> Self:
        if self.path is None:
            return self
        try:
            self._handle = self.path.open("ab+", buffering=0)  # nothing is left to be written when it is closed
            _lock(self._handle, self.path)
            self.rows = self._read()
            if not self._lines and self._handle.seek(0, 2) == 0:
                self._write([*self.columns, RUN])
        except OSError as error:
            self._close()
            raise ValuesError(
                f"The file {self.path} cannot be written: {error.strerror}.",
                "a path in a directory that exists",
            ) from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._close()
        except OSError as error:
            if kind is None:
                raise self._lost(error) from error

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    @property
    def _lines(self) -> bool:
        return self.path is not None and self.path.suffix == ".jsonl"

    # -- reading -------------------------------------------------------------------------------------

    def _read(self) -> list[Row]:
        """Read the finished rows, cutting off a last row that was interrupted in the middle."""
        if not stat.S_ISREG(os.fstat(self._handle.fileno()).st_mode):
            raise ValuesError(f"{self.path} is not a file on a disk.", "a file that rows can be read from again")
        self._handle.seek(0)
        data = self._handle.readall()
        whole = data.rfind(b"\n") + 1
        rows = [self._row(number, cells) for number, cells in self._parsed(data[:whole])]
        if whole != len(data):
            self._handle.truncate(whole)
        return rows

    def _parsed(self, data: bytes) -> Iterator[tuple[int, Row]]:
        header = not self._lines
        for number, raw in enumerate(data.split(b"\n")[:-1], start=1):
            if not raw.strip():
                continue
            try:
                line = raw.decode("utf-8").rstrip("\r")
                cells = json.loads(line) if self._lines else next(csv.reader([line], strict=True))
            except (ValueError, RecursionError, csv.Error):
                raise self._damaged(number, f"it reads {raw[:40]!r}") from None
            if header:
                self._check_header(cells)
                header = False
            elif self._lines:
                if not isinstance(cells, dict):
                    raise self._damaged(number, f"it reads {raw[:40]!r}")
                yield number, cells
            elif len(cells) != len(self.columns) + 1:
                raise self._damaged(number, f"it has {len(cells)} cells, and not {len(self.columns) + 1}")
            else:
                yield number, dict(zip((*self.columns, RUN), cells, strict=True))

    def _check_header(self, cells: list[str]) -> None:
        if tuple(cells) != (*self.columns, RUN):
            raise ValuesError(
                f"The file {self.path} has other columns than this sweep: {', '.join(cells)}.",
                f"the columns {', '.join((*self.columns, RUN))}",
                "another file, or the same grid and observables as before",
            )

    def _row(self, number: int, cells: Row) -> Row:
        """Return a row with its values, if each of them is one, and it comes from the same run."""
        if not set(cells) <= {*self.columns, RUN}:
            self._check_header([*cells])
        run = cells.pop(RUN, "")
        if run != self.run:
            there, here = _differing(str(run), self.run)
            raise ValuesError(
                f"Line {number} of {self.path} belongs to another sweep: there {there}; here {here}.",
                "rows of the same declaration, method, values, couplings and digits",
                "another file",
            )
        return {key: self._value(number, key, value) for key, value in cells.items()}

    def _value(self, number: int, key: str, value: Any) -> Any:
        if value is None or (value == "" and key not in TEXT):
            return None
        if key in FLAGS:
            read: Any = {"True": True, "False": False}.get(str(value))
        elif key in WHOLE:
            read = int(float(value)) if re.fullmatch(r"-?[0-9]{1,15}(\.0)?", str(value)) else None
        elif isinstance(value, str) and key in TEXT | self.words:
            read = value
        else:
            read = _real(value)
        if read is None:
            raise self._damaged(number, f"its {key} is {str(value)[:40]!r}")
        return read

    def _damaged(self, number: int, why: str) -> ValuesError:
        return ValuesError(
            f"Line {number} of {self.path} is not a row of a sweep: {why}.",
            "rows as a sweep writes them",
            "take the line out and its row is computed again; or write to another file",
        )

    # -- writing -------------------------------------------------------------------------------------

    def add(self, row: Row) -> None:
        """Keep a finished row, on disk first."""
        self.rows.append(row)
        if self._handle is None:
            return
        try:
            cells = [*(_cell(row.get(c)) for c in self.columns), self.run]
            self._write(row | {RUN: self.run} if self._lines else cells)
        except OSError as error:
            raise self._lost(error) from error

    def _write(self, row: Any) -> None:
        if self._lines:
            text = json.dumps(row) + "\n"
        else:
            made = io.StringIO()
            csv.writer(made, lineterminator="\n").writerow(row)
            text = made.getvalue()
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        while left:
            left = left[self._handle.write(left) :]

    def _lost(self, error: OSError) -> BrokenExecutor:
        failure = BrokenExecutor(
            f"The file {self.path} could not be written after {len(self.rows)} rows: {error.strerror}.",
            len(self.rows),
            "the rows are in the attribute rows of this error",
        )
        failure.rows = self.rows
        return failure


def _lock(handle: Any, path: Path) -> None:
    """Take the file for this process; the system gives it back when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(2**40)  # a byte that no row reaches, so that others may still read
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _BUSY:
            return  # a file system without locks
        raise ValuesError(
            f"The file {path} is being written by another sweep.", "one sweep at a time for each file", "another file"
        ) from None


def _differing(there: str, here: str) -> tuple[str, str]:
    """Return the parts of two runs that differ."""
    first, second = there.split("; "), here.split("; ")
    only = [
        [p for p in mine if p not in theirs] or ["nothing of the kind"]
        for mine, theirs in ((first, second), (second, first))
    ]
    return ", ".join(only[0]) if there else "no run is named", ", ".join(only[1])


def _cell(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _real(value: Any) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    try:
        return int(value) if re.fullmatch(r"-?[0-9]{1,18}", str(value)) else float(value)
    except ValueError:
        return None
