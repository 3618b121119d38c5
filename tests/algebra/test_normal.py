"""The normal distribution to any precision."""

import pytest
from mpmath import libmp

from symcavity.algebra.normal import normal


@pytest.mark.parametrize("x", [-4, -(2**40) * 6, -(2**200) * 10])
def test_densities_at_whole_numbers_take_no_long_powers(x, monkeypatch):
    """At more than 600 bits mpmath multiplies powers of e where the square is even; that took a second for hundreds."""
    raw, bits = libmp.from_int(x), 800
    expected = libmp.mpf_exp(libmp.from_int(-x * x // 2), bits)
    monkeypatch.setattr(libmp.libelefun, "mpf_pow_int", None)
    root = libmp.mpf_sqrt(libmp.mpf_shift(libmp.mpf_pi(bits), 1), bits)
    ratio = libmp.mpf_div(libmp.mpf_mul(normal(raw, bits)[1], root, bits), expected, bits)
    assert libmp.to_float(libmp.mpf_sub(ratio, libmp.fone)) == pytest.approx(0, abs=2**-780)
