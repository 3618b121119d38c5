"""Make a case small while it still shows the same finding."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from fuzz_grammar import LAWS, SIGNS, Case
from fuzz_judge import Checks, Finding, judge

_SIMPLER = [  # by regular expressions, once at a place
    (r"\b[A-Za-z]\w*(\[\w+\])?\*(?=\w|\()", ""),
    (r" [+-] [\w\[\], ]+(?=\)|,|$)", ""),
    (r" [+-] b\b", ""),
    (r"Sum\(.*?, \(i, 1, N\)\) \+ (?=Sum)", ""),
    (r"\*\*[34](/4)?", "**2"),
    (r"/2\b", ""),
]


def shrink(case: Case, finding: Finding, checks: Checks, seconds: float) -> Case:
    """Return a smaller case with the same finding, after a number of seconds at most."""
    end = time.monotonic() + seconds
    smaller: Case | None = case
    while smaller is not None:
        case = smaller
        smaller = next((c for c in _candidates(case) if _shows(c, finding, checks, end)), None)
    return case


def _shows(case: Case, finding: Finding, checks: Checks, end: float) -> bool:
    if time.monotonic() > end:
        return False
    found = judge(case, replace(checks, limit=min(checks.limit, 30.0))).findings
    return any((f.kind, f.where) == (finding.kind, finding.where) for f in found)


def _candidates(case: Case) -> Iterator[Case]:
    for key, part in case.parts.items():
        for n in range(len(part)):
            yield replace(case, parts={**case.parts, key: part[:n] + part[n + 1 :]})
    for name in case.words:
        yield replace(case, words={k: v for k, v in case.words.items() if k != name})
    for key, part in case.parts.items():
        for n, entry in enumerate(part):
            for text in _simpler(entry):
                yield replace(case, parts={**case.parts, key: (*part[:n], text, *part[n + 1 :])})
    for name, text in case.words.items():
        for shorter in _simpler(text):
            yield replace(case, words={**case.words, name: shorter})
    for key, value in case.point.items():
        for simple in ["'1'"] if key not in LAWS else ["{1: 1}", SIGNS]:
            if len(simple) < len(value):
                yield replace(case, values={**case.values, key: simple})
    if case.dps != "15":
        yield replace(case, dps="15")


def _simpler(text: str) -> Iterator[str]:
    for pattern, by in _SIMPLER:
        for match in re.finditer(pattern, text):
            yield text[: match.start()] + by + text[match.end() :]


__all__ = ["shrink"]
