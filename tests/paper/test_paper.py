"""Every displayed equation of the paper, held against the engine's own objects."""

import paper_appendix  # noqa: F401 - its rows
import paper_kernel  # noqa: F401 - its rows
import paper_manifolds  # noqa: F401
import paper_points  # noqa: F401
import pytest
from paper_rows import ROWS


@pytest.mark.parametrize("number", ROWS)
def test_equation(number):
    ROWS[number].check()


@pytest.mark.parametrize("number", [n for n, row in ROWS.items() if row.is_claim])
def test_a_false_transcription_is_seen(number):
    with pytest.raises(AssertionError):
        ROWS[number].check(off=1)
