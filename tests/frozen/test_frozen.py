"""The package answers as it did when the rows were written: types of outcomes, values, texts, verdicts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from frozen_rows import computed, difference, frozen, names

QUICK = 0.7  # seconds of the processor that a row took; a quarter of these stand by themselves
SLOW = 60  # rows beyond are left to the script
BLOCKS = 24
ROWS = frozen()
KINDS = ("solve", "digits", "fuzz", "text")


def quick(kind):
    return [row for row, was in ROWS.items() if row.startswith(kind) and was["seconds"] < QUICK][1::4]


def check(rows):
    wrong = [f"{row}: {text}" for row in rows if (text := difference(row, ROWS[row], computed(row)))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_quick_rows(kind):
    assert len(quick(kind)) > 5
    check(quick(kind))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_row(block):
    """Neighbours of a table share their theories: a block is one stretch of it, without the quick rows above."""
    above = {row for kind in KINDS for row in quick(kind)}
    rows = [row for row, was in ROWS.items() if was["seconds"] < SLOW and row not in above]
    check(rows[block * len(rows) // BLOCKS : (block + 1) * len(rows) // BLOCKS])


def test_every_row_is_frozen():
    assert set(names()) == set(ROWS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"type": "NotConverged"}, "type: was Solution"),
        ({"values": {"q": "1.0000001", "S": "2.0"}}, "q: was 1.0, is 1.0000001"),
        ({"values": {"q": "1.0"}}, "unknowns"),
        ({"at rest": ["q"]}, "at rest"),
    ],
)
def test_a_change_is_seen(changed, said):
    was = {"type": "Solution", "values": {"q": "1.0", "S": "2.0"}}
    assert not difference("solve any", was, dict(was))
    assert said in difference("solve any", was, was | changed)
