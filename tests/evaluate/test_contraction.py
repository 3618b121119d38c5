"""Roots in half planes: the resolvent of the semicircle, whose equation has two roots."""

from dataclasses import dataclass

import numpy as np
import pytest

from symcavity.evaluate.solutions.contraction import newton, root_of


@dataclass(frozen=True)
class Semicircle:
    """``x = 1/(z - x)``: small changes die out where ``|x| < 1``, and do not grow from above where ``|x| = 1``."""

    z: complex

    def image(self, x):
        return 1 / (self.z - x)

    def gap(self, x):
        return x - self.image(x), np.diag(1 - self.image(x) ** 2)

    def sizes(self, x):
        return np.abs(x)

    def counts(self, x):
        return bool(x[0].imag <= 0 and abs(x[0]) <= 1 + 1e-9)


def found(z, raised):
    start = np.array([0.9 + 0j])
    return root_of(Semicircle(z), [start], lambda k: Semicircle(z + 1j / 8**k if raised else z))[0]


@pytest.mark.parametrize("z", [0.3 + 1j, -3 + 0j, 2.5 + 0j, 1.5 + 1e-6j, 0j, 1 + 0j, -1.9999 + 0j])
def test_the_resolvent_on_and_off_the_eigenvalues(z):
    root = np.sqrt(z - 2) * np.sqrt(z + 2)  # from above, by its branches
    assert found(z, raised=True)[0] == pytest.approx((z - root) / 2, rel=1e-9)


def test_on_real_arguments_the_means_stay_real_and_find_nothing():
    """The control: without a way down from above there is no root among the eigenvalues."""
    assert found(1 + 0j, raised=False) is None


def test_the_other_root_is_near_too_and_does_not_count():
    other, step = newton(Semicircle(3j), np.array([2.6180j * 1.2618]))
    assert step < 1e-9
    assert abs(other[0]) > 1
    assert not Semicircle(3j).counts(other)
