"""Contexts of the engine's own."""

import math

import pytest

from symcavity.algebra.precision import context, mp


@pytest.mark.parametrize("own", [mp, context(53)], ids=["engine", "thread"])
@pytest.mark.parametrize("base", ["1/4", "1/2", "1", "2", "3/10"])
def test_logarithms_of_numbers_with_more_digits_than_asked_for(own, base):
    """Of mpmath 1.3 that of ``1/4 + 1e-40`` is ``4e-40``."""
    wide = context(400)
    number = wide.mpf(base) + wide.mpf(10) ** -40
    known = math.log(wide.mpf(base)) if base != "1" else 1e-40
    for value in (own.log(own.make_mpf(number._mpf_)), own.ln(own.make_mpf(number._mpf_))):
        assert float(value) == pytest.approx(known, rel=1e-14)
    assert float(own.log(own.make_mpf(number._mpf_), 10)) == pytest.approx(known / math.log(10), rel=1e-14)
