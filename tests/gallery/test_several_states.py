"""The systems of the gallery whose sites fix several states together, against fixed points written by hand."""

import numpy as np
import pytest
from gallery_shared import ROOTS, WEIGHTS, module, number, settled


def test_softmax():
    """Symmetry leaves a length and a response, in the plane where three fields add up to zero."""
    m = module("softmax")
    plane = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
    z = np.stack(np.meshgrid(ROOTS, ROOTS)).reshape(2, -1)
    weights = np.outer(WEIGHTS, WEIGHTS).ravel()

    def step(q, width):
        eta = np.sqrt(1.5 * q) * (plane @ z).T
        h = eta
        for _ in range(60):
            p = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
            h = (h + eta + width * (np.array([1, 0, 0]) - p)) / 2  # a contraction: the softmax has slopes below 1/2
        message = np.array([1, 0, 0]) - p
        bend = np.einsum("na,ab->nab", p, np.eye(3)) - np.einsum("na,nb->nab", p, p)
        answer = np.linalg.solve(np.eye(3) + width * bend, bend)
        curvature = weights @ np.trace(answer, axis1=1, axis2=2) / 2
        new = 1 / (1 + 2 * curvature)
        return 2 * new**2 * (weights @ np.square(message).sum(axis=1)) / 3, new

    q, _ = settled(step, 0.2, 0.5)
    assert number("softmax", m.shown[0]) == pytest.approx(q, rel=1e-8)
    assert number("softmax", m.shown[1]) == pytest.approx(-q / 2, rel=1e-8)


def test_group_lasso():
    """A Gaussian vector of two components whose length is softly thresholded: integrals over the length."""
    m = module("group_lasso")

    def step(q, width):
        variance, a = 2 * (1 + 2 * q) / (1 + 2 * width) ** 2, 2 / (1 + 2 * width)
        r = np.linspace(1, 1 + 12 * np.sqrt(variance), 20001)

        def mean(values):
            return np.trapezoid(values * r * np.exp(-r * r / 2 / variance) / variance, r)

        return mean((r - 1) ** 2) / 2 / a**2, mean(2 - 1 / r) / 2 / a

    q, width = settled(step, 0.1, 0.3)
    share = np.exp(-((1 + 2 * width) ** 2) / 4 / (1 + 2 * q))
    assert number("group_lasso", m.shown[0]) == pytest.approx(q, rel=1e-6)
    assert number("group_lasso", m.shown[1]) == pytest.approx(share, rel=1e-6)
