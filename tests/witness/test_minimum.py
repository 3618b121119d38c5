"""The witness of the minimum: its searches against known minima, and claims that are falsified one by one."""

import numpy as np
import pytest
from sympy import Rational

from symcavity.derivations import soft_margin
from symcavity.model.equations import Equation
from symcavity.witness import minimum, site_minima


def test_a_search_finds_the_minimum_of_a_kink_beside_a_spring():
    """|x| + (x - z)^2/2: half a square up to one, then |z| - 1/2."""
    z = np.linspace(-5, 5, 21)
    found = site_minima._searched(lambda x: np.abs(x) + (x - z) ** 2 / 2, 1, len(z))
    assert found == pytest.approx(np.where(np.abs(z) < 1, z * z / 2, np.abs(z) - 0.5), abs=1e-8)


def test_searches_within_searches():
    """max(0, 1 - x) + (x - y)^2/2 + (y - z)^2/2: two springs are one of half the strength."""
    z = np.array([-2.0, 0.5, 3.0])
    found = site_minima._searched(lambda x, y: np.maximum(0, 1 - x) + (x - y) ** 2 / 2 + (y - z) ** 2 / 2, 2, 3)
    assert found == pytest.approx([2.0, 0.0625, 0.0], abs=1e-7)


@pytest.fixture(scope="module")
def record():
    return soft_margin.problem.cavity().derivation


CLAIMS = [("minimum", k) for k in range(3)] + [("minimum.slopes", k) for k in range(4)] + [("minimum.value", 0)]


@pytest.mark.parametrize(("key", "place"), CLAIMS)
@pytest.mark.parametrize("factor", [2, -1, Rational(9, 10)])
def test_a_wrong_claim_is_caught(record, key, place, factor):
    claims = list(record[key].claims)
    assert all(v.ok for v in record[key].verdicts(20))
    claims[place] = Equation(claims[place].lhs, factor * claims[place].rhs)
    assert not all(v.ok for v in record.replaced(key, claims=tuple(claims))[key].verdicts(20))


def test_what_is_not_searched_is_not_checked(record, monkeypatch):
    def refused(_):
        raise site_minima.NotSearched("too large")

    monkeypatch.setattr(minimum, "searched", refused)
    assert [v.ok for v in record["minimum"].verdicts(20)] == [None]
