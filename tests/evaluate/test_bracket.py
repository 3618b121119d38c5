"""Roots between two places, against their closed forms; and what has none there."""

import math

import pytest

from symcavity.evaluate.bracket import root_between

CASES = {
    "a cubic": (lambda x: x**3 - 2, 0, 3, 2 ** (1 / 3)),
    "an exponential far from a straight line": (lambda x: math.exp(x) - 1e-8, -40, 3, math.log(1e-8)),
    "flat towards both ends": (lambda x: math.atan(x - 1e-3), -50, 80, 1e-3),
    "a logarithm over twenty decades": (lambda x: math.log(x) + 20, 1e-20, 1, math.exp(-20)),
    "a root at the lower end": (lambda x: x - 1, 1, 3, 1.0),
    "a root at the upper end": (lambda x: x - 3, 1, 3, 3.0),
    "a jump": (lambda x: math.copysign(1, x - 0.3), 0, 1, 0.3),
    "infinite at an end": (lambda x: math.inf if x == 0 else 1 / x - 4, 0, 1, 0.25),
}


@pytest.mark.parametrize("name", CASES)
def test_the_root_is_found_from_either_side_in_few_evaluations(name):
    function, low, high, root = CASES[name]
    for ends in ((low, high), (high, low)):
        calls = []
        found = root_between(lambda x, calls=calls: calls.append(x) or function(x), *ends)
        assert abs(found - root) <= 1e-14 * abs(root)
        assert len(calls) < 100
        assert all(low <= x <= high for x in calls)


def test_a_root_is_as_exact_as_is_asked_for():
    calls = []
    found = root_between(lambda x: calls.append(x) or math.cos(x) - x, 0, 1, xtol=1e-3)
    assert abs(found - 0.7390851332151607) < 1e-3
    assert len(calls) < 8


def test_equal_signs_and_places_without_a_value_are_refused():
    with pytest.raises(ValueError, match="do not differ"):
        root_between(lambda x: x * x + 1, -1, 1)
    with pytest.raises(ValueError, match="no value"):
        root_between(lambda x: math.nan if 0.2 < x < 0.7 else x - 0.4, 0, 1)
