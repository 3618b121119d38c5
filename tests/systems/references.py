"""How the tests of physical systems hold values against references."""

import mpmath


def near(value, text, relative="1e-30"):
    """Whether a value agrees with a reference that was computed elsewhere."""
    with mpmath.workdps(45):
        want = mpmath.mpf(text)
        return abs(value - want) <= mpmath.mpf(relative) * max(abs(want), mpmath.mpf("1e-300"))
