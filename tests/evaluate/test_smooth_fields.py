"""Cavity fields that are smooth in time: each nearly follows from its past, and still has its own variance."""

import numpy as np

from symcavity.evaluate.moving.drawing import CavityFields


def test_fields_that_nearly_follow_from_their_past_keep_their_covariance():
    steps, shape = 80, (2, 4000)
    times = 0.05 * np.arange(steps)
    wanted = np.exp(-((times[:, None] - times) ** 2) / 2)  # whose rank is some ten, to double precision
    fields = CavityFields(shape, steps, np.random.default_rng(1))
    drawn = np.array([fields.draw(np.tile(wanted[k, :k], (2, 1)), np.ones(2)) for k in range(steps)])
    found = np.einsum("tbm,sbm->bts", drawn, drawn) / shape[1]
    assert np.abs(found - wanted).max() < 0.15


def test_a_field_that_vanishes_is_drawn_as_zero_and_correlated_with_none():
    fields = CavityFields((2, 100), 2, np.random.default_rng(1))
    assert not fields.draw(np.zeros((2, 0)), np.zeros(2)).any()
    later = fields.draw(np.zeros((2, 1)), np.ones(2))
    assert np.allclose((later**2).mean(axis=1), 1)
