"""The worked systems, capacities and joint laws of the gallery: their numbers, as published or by hand."""

from math import comb

import numpy as np
import pytest
from gallery_shared import (
    BY_HAND,
    DENSITY,
    ROOTS,
    WEIGHTS,
    Z,
    agree,
    classification,
    density,
    gauss,
    hinge,
    module,
    settled,
    theory,
)
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gamma as factorial
from scipy.special import ndtr
from sympy import Rational

from symcavity import Ball, alpha, response


def positive_part(power, at):
    """``<max(0, at - z)**power>`` on the plain grid."""
    return gauss(np.maximum(0, at - Z) ** power)


def capacity(name, kappa, **values):
    """The load at which the norm of the weights is that of a margin, where another gives the load."""
    m = module(name)
    given = {key: values.get(str(key), value) for key, value in m.values.items() if key != alpha}
    return float(theory(name).solve(given | {m.kappa: kappa})[alpha])


def test_gardner():
    """Two points per dimension without a margin, where Cover's theorem separates half of all labellings; with a margin
    Gardner's ``1/<max(0, kappa - z)**2>``, 0.51957 at the margin 1."""
    assert sum(2 * comb(2 * 50 - 1, k) for k in range(50)) * 2 == 2**100  # Cover: of 100 points in 50 dimensions
    assert theory("gardner").closed_form(alpha).subs(module("gardner").kappa, 0) == 2
    for kappa in (Rational(1, 2), 1, 2):
        assert capacity("gardner", kappa) == pytest.approx(1 / positive_part(2, float(kappa)), rel=1e-6)
    assert capacity("gardner", 1) == pytest.approx(0.5195722296, rel=1e-9)


def test_anisotropic():
    """Cover's two points per dimension without a margin, whatever the spectrum; with a margin a fixed point of a few
    scalar equations, written by hand: 0.77024 at the variances 1/5 and 9/5 and the margin 1/2."""
    l = np.array([0.2, 1.8])

    def load(kappa):
        def missed(pull):  # the message's response, times the load, by which the weights are pulled
            w2 = l / (1 + pull * l) ** 2  # of each kind of features, in units of the load times the messages' square
            scale = 1 / kappa**2 / np.mean(w2)
            q, width = scale * np.mean(l * w2), np.mean(l / (1 + pull * l))
            found = pull * width / ndtr(1 / np.sqrt(q))
            return found, found * q * positive_part(2, 1 / np.sqrt(q)) / width**2 / scale - 1

        return missed(brentq(lambda pull: missed(pull)[1], 1e-3, 1e4))[0]

    for kappa, published in ((0.5, 0.77024196699929), (2.0, 0.17981079169571)):
        assert capacity("anisotropic", Rational(kappa)) == pytest.approx(load(kappa), rel=1e-6)
        assert load(kappa) == pytest.approx(published, rel=1e-6)
    assert capacity("anisotropic", Rational(1, 1000)) == pytest.approx(2, rel=5e-3)


def test_output_bias():
    """Gardner's capacity for classes of unequal size with the best bias, the largest
    ``1/<max(0, kappa - y b - z)**2>``: 2.66759 at 4/5 and 1/5 without a margin."""

    def best(kappa, share):
        def inverse(b):
            return share * positive_part(2, kappa - b) + (1 - share) * positive_part(2, kappa + b)

        return 1 / minimize_scalar(inverse, bounds=(0, 2), method="bounded", options={"xatol": 1e-10}).fun

    assert best(0.0, 0.8) == pytest.approx(2.667594591, rel=1e-6)
    for kappa in (Rational(1, 1000), Rational(1, 2)):
        assert capacity("output_bias", kappa) == pytest.approx(best(float(kappa), 0.8), rel=1e-6)


def test_soft_margin():
    """A fixed point of a few scalar equations, written by hand and iterated on Gaussian nodes."""
    m = module("soft_margin")
    _, norm, width, _ = classification(2.0, hinge(1.0), 1.0, 1.0, flips=0.5)
    violated = ndtr((1 - width) / np.sqrt(norm))
    agree("soft_margin", {m.shown[0]: norm, response(m.w): width, m.shown[1]: violated}, 10 * BY_HAND)
    assert norm == pytest.approx(0.555204423697, rel=1e-4)


def test_kernel_ridge():
    """The learning curve of Bordelon, Canatar and Pehlevan (2020): ``kappa = gamma + kappa sum rho/(rho P + kappa)``,
    and the error ``sum (a kappa/(rho P + kappa))**2/(1 - A)``, ``A = sum P rho**2/(rho P + kappa)**2``."""
    m, k, gamma = module("kernel_ridge"), np.arange(1, 61.0), 0.1
    size, rho, a = 30, k**-2, 1 / k
    kappa = brentq(lambda v: v - gamma - v * np.sum(rho / (size * rho + v)), 1e-3, 10)
    error = np.sum((a * kappa / (size * rho + kappa)) ** 2) / (1 - np.sum(size * rho**2 / (size * rho + kappa) ** 2))
    agree("kernel_ridge", {m.shown[0]: error, m.shown[1]: error * (gamma / kappa) ** 2}, 1e-10)


def balls(load, radius, bound=np.inf):
    """Discs of a radius around centres at distance one: (norm, response), the slack paid with a slope where bounded.

    The law moves the field ``T = (t, r)``, along the centre and across, to the nearest vector whose smallest product
    with the disc is one, ``t + s`` and ``r - radius s``, or no further than the bound of the message lets it.
    """
    across = np.linspace(0, 8, 601)
    t, r = Z[::5, None], across[None, :]
    chance = 5 * DENSITY[::5, None] * across * np.exp(-(across**2) / 2) * (across[1] - across[0])

    def step(q, width):
        u, v = np.sqrt(q) * t, np.sqrt(q) * r
        s = np.maximum(0, (1 - u + radius * v) / (1 + radius**2))
        s = np.where(v < radius * s, 1 - u, s)  # the tip: the vector is that of the centre
        s = np.minimum(np.maximum(s, 0), bound * width)
        moved = np.minimum(radius * s, v)
        power = np.sum((s**2 + moved**2) * chance) / width**2
        answer = np.sum((u * s - v * moved) * chance) / (q * width)
        return load * power * width**2, 1 / (1 - load * answer)

    return settled(step, 0.5, 0.5)


def test_manifold():
    """The published capacity of balls (Chung, Lee and Sompolinsky 2016), 0.2375660 at five dimensions, unit radius and
    the margin 1/2; below the capacity a fixed point of two scalar equations, written by hand and iterated on a grid."""
    m, kappa, radius, dimension = module("manifold"), 0.5, 1.0, 5
    ends, weights = np.polynomial.legendre.leggauss(60)

    def between(low, high, of):
        return (high - low) / 2 * np.sum(weights * of(low + (high - low) * (ends + 1) / 2))

    def inverse(r):
        tight = between(kappa - r / radius, kappa + r * radius, lambda z: (radius * r + kappa - z) ** 2 * density(z))
        tip = between(-12, max(kappa - r / radius, -12), lambda z: ((kappa - z) ** 2 + r**2) * density(z))
        return tight / (1 + radius**2) + tip

    chance = 2 ** (1 - dimension / 2) / factorial(dimension / 2)
    radial = np.vectorize(lambda r: chance * r ** (dimension - 1) * np.exp(-(r**2) / 2) * inverse(r))
    published = 1 / between(0, 10, radial)
    found = float(theory("manifold").solve({m.kappa: Rational(1, 2), m.g: Ball(5, 1)})[alpha])
    assert found == pytest.approx(published, rel=1e-7)
    assert found == pytest.approx(0.23756601758, rel=1e-9)
    norm, width = balls(0.3, 1.0)
    agree("manifold", {m.shown[0]: norm, response(m.w): width}, 1e-4)


def test_soft_manifold():
    """A fixed point of two scalar equations, written by hand and iterated on a grid."""
    m = module("soft_manifold")
    norm, width = balls(0.5, 0.5, bound=2.0)
    agree("soft_manifold", {m.shown[0]: norm, response(m.w): width}, 1e-4)


def test_group_lasso():
    """A fixed point of two scalar equations, written by hand: pairs of weights are shortened by a length, or vanish."""
    m, load, gamma = module("group_lasso"), 2.0, 1.0
    length = np.linspace(0, 12, 6001)
    chance = length * np.exp(-(length**2) / 2) * (length[1] - length[0])

    def step(q, width):
        pull = load / (1 + 2 * width)
        scale = np.sqrt(load * (1 + 2 * q)) / (1 + 2 * width)
        kept = np.maximum(0, scale * length - gamma) / pull
        return np.sum(kept**2 * chance) / 2, np.sum(kept * length * chance) / (2 * scale)

    q, width = settled(step, 0.5, 0.5)
    alive = np.exp(-((gamma * (1 + 2 * width)) ** 2) / (2 * load * (1 + 2 * q)))
    agree("group_lasso", {m.shown[0]: q, m.shown[1]: alive})


def test_softmax():
    """A fixed point of two scalar equations, written by hand: weights add up to zero, and classes are alike, so that
    the fields fill the plane evenly; Newton's method at the nodes of a rule in the plane."""
    m, load, gamma = module("softmax"), 2.0, 1.0
    plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    z = np.stack(np.meshgrid(ROOTS, ROOTS), -1).reshape(-1, 2)
    chance = np.outer(WEIGHTS, WEIGHTS).ravel()

    def step(spread, width):
        field, u = np.sqrt(spread) * z, np.sqrt(spread) * z
        for _ in range(30):
            p = np.exp(u @ plane)
            p /= p.sum(1, keepdims=True)
            sent = plane[:, 0] - p @ plane.T
            bend = np.einsum("ak,nk,bk->nab", plane, p, plane) - np.einsum("na,nb->nab", p @ plane.T, p @ plane.T)
            left = u - field - width * sent
            u = u - np.linalg.solve(np.eye(2) + width * bend, left[..., None])[..., 0]
        power, answer = chance @ (sent**2).sum(1) / 2, chance @ (field * sent).sum(1) / (2 * spread)
        return load * power * width**2, 1 / (gamma - load * answer)

    spread, _ = settled(step, 0.5, 0.5)
    agree("softmax", {m.shown[0]: 2 * spread / 3, m.shown[1]: -spread / 3}, 1e-7)
