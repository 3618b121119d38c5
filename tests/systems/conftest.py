"""Let the tests of physical systems share what they have in common."""

import sys
from pathlib import Path

import mpmath
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def digits():
    """Enough working digits for expressions that a test writes out itself."""
    with mpmath.workdps(45):
        yield
