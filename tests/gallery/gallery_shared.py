"""The systems of the gallery, each derived and solved once; and fixed points that are written down by hand.

A file of ``derivations/`` that says at which ``values`` it is shown, and what is ``shown``, belongs to the gallery.
What is by hand here shares nothing with the engine: Gaussian averages on a plain grid, Gaussian integration by parts
in the place of derivatives, damped iteration.
"""

import warnings
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from symcavity import UnstableSolution
from symcavity.errors import NegativeEntropy

_SPEC = spec_from_file_location("gallery_table", Path(__file__).resolve().parents[2] / "benchmarks" / "gallery.py")
table = module_from_spec(_SPEC)
_SPEC.loader.exec_module(table)
NAMES, MOVING, PAGE = table.NAMES, table.MOVING, table.PAGE
BY_HAND = 2e-5  # what the grids of the fixed points by hand resolve of kinks

Z = np.linspace(-9, 9, 3001)
DENSITY = np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])
ROOTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / np.sqrt(2 * np.pi)


@cache
def module(name):
    return import_module(f"symcavity.derivations.{name}")


@cache
def theory(name):
    return module(name).problem.cavity()


@cache
def solution(name):
    with warnings.catch_warnings():
        if any(weight.is_cold for weight in theory(name).system.weights.values()):  # they jump, as the file says
            for word in (UnstableSolution, NegativeEntropy):
                warnings.simplefilter("ignore", word)
        return theory(name).solve(module(name).values)


def number(name, observable, **changed):
    """An observable of a system where it is shown, or with some of its parameters (by name) changed."""
    if not changed:
        return float(solution(name)[observable])
    at = {key: changed.pop(str(key), value) for key, value in module(name).values.items()}
    assert not changed, changed
    return float(theory(name).solve(at)[observable])


def agree(name, found, tolerance=BY_HAND):
    for observable, want in found.items():
        assert number(name, observable) == pytest.approx(want, rel=tolerance, abs=tolerance), observable


def density(x):
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gauss(values):
    return float(np.sum(values * DENSITY))


def settled(step, *start, damping=0.5, rounds=4000):
    """The fixed point of a map of some numbers."""
    now = np.array(start, dtype=float)
    for _ in range(rounds):
        new = np.array(step(*now), dtype=float)
        if np.max(np.abs(new - now)) < 1e-11 * (1 + np.max(np.abs(now))):
            return new
        now = now + damping * (new - now)
    raise AssertionError(f"the iteration did not settle: {now}")


def soft(v, by):
    return np.sign(v) * np.maximum(np.abs(v) - by, 0)


def hinge(slope):
    return lambda centre, width: np.where(centre < 1 - width * slope, centre + width * slope, np.maximum(centre, 1.0))


def newton(slope, bend):
    """Return the proximal map ``u + V loss'(u) = centre`` of a smooth convex loss, by safeguarded Newton steps."""

    def prox(centre, width):
        v = 0.0 * centre
        low, high = np.full_like(centre, -80.0), np.full_like(centre, 80.0)
        for _ in range(40):
            f = v - centre + width * slope(v)
            low, high = np.where(f < 0, v, low), np.where(f > 0, v, high)
            step = v - f / (1 + width * bend(v))
            before, v = v, np.where((step >= low) & (step <= high), step, (low + high) / 2)
            if np.max(np.abs(v - before)) < 1e-13:
                break
        return v

    return prox


def regression(load, prox, estimate, noise, teacher, start=(1.0, 1.0)):
    """Student and linear teacher: (error of the weights, response), whatever the loss of the residual.

    ``prox(centre, width)`` minimises ``loss(r) + (r - centre)**2/(2 width)`` over the residual r, student minus label;
    ``estimate(field, curvature)`` minimises ``penalty(w) + curvature w**2/2 - field w``; ``noise`` lists (variance,
    weight), ``teacher`` (mean, variance, weight) of Gaussian pieces.
    """

    def step(error, width):
        force, curvature = 0.0, 0.0
        for variance, weight in noise:
            scale = np.sqrt(error + variance)
            f = (prox(scale * Z, width) - scale * Z) / width
            force += load * weight * gauss(f * f)
            curvature -= load * weight * gauss(Z * f) / scale
        errors, widths = 0.0, 0.0
        for mean, variance, weight in teacher:
            for root, chance in zip(ROOTS, WEIGHTS, strict=True) if variance else ((0.0, 1.0),):
                t = mean + np.sqrt(variance) * root
                w = estimate(curvature * t + np.sqrt(force) * Z, curvature)
                errors += weight * chance * gauss((w - t) ** 2)
                widths += weight * chance * gauss(Z * w) / np.sqrt(force)
        return errors, widths

    return settled(step, *start)


def classification(load, prox, gamma, size, chance=None, flips=0.0, pull=0.0, start=(0.5, 1.0, 1.0)):
    """Student with ridge penalty and teacher: (overlap, norm, response, bias).

    ``prox(centre, width)`` is that of the loss at the label 1; the loss depends on ``y (u + bias)``, with the bias of
    the minimum (``pull = 1``) or none (``pull = 0``).  ``chance(y, u)`` is that of a label y at the teacher's field u;
    ``flips`` is the share of wrong labels of a teacher that gives signs, where ``chance`` is None.
    """

    def seen(q, overlap, root, y):
        """P(y | the student's field) and the mean of the teacher's field with it, at the student's fields."""
        mean, spread = overlap * root * Z / q, np.sqrt(max(size - overlap**2 / q, 1e-12))
        if chance is None:
            d = y * mean / spread
            p = flips + (1 - 2 * flips) * ndtr(d)
            tail = (1 - 2 * flips) * y * spread * np.exp(-d * d / 2) / np.sqrt(2 * np.pi)
            return p, mean * p + tail
        fields = mean[:, None] + spread * ROOTS
        p = chance(y, fields)
        return p @ WEIGHTS, (p * fields) @ WEIGHTS

    def step(overlap, q, width, b):
        root = np.sqrt(q)
        power, along, across, mean = 0.0, 0.0, 0.0, 0.0
        for y in (1, -1):
            centre = y * (root * Z + b)
            f = y * (prox(centre, width) - centre) / width
            p, u = seen(q, overlap, root, y)
            power += load * gauss(f * f * p)
            along += load * gauss(f * u)
            across += load * gauss(f * root * Z * p)
            mean += gauss(f * p)
        signal, curvature = np.linalg.solve([[size, overlap], [overlap, q]], [along, across])
        total = gamma - curvature
        new = signal * size / total, (power + signal**2 * size) / total**2, 1 / total
        return *new, b + pull * width * mean

    return settled(step, *start, 0.0)


def clusters(load, prox, gamma, size, shares, pull=1.0, start=(0.5, 1.0, 1.0)):
    """Two clusters at plus and minus m, ``size = <m^2>``: (overlap <m w>, norm, response, bias).

    ``prox(centre, width, y)`` is that of the loss of class y; the loss depends on ``y (u + bias)``, with the bias of
    the minimum (``pull = 1``) or none (``pull = 0``).
    """

    def step(overlap, q, width, b):
        power, along, across, mean = 0.0, 0.0, 0.0, 0.0
        for y, share in shares.items():
            centre = overlap + y * b + np.sqrt(q) * Z
            f = (prox(centre, width, y) - centre) / width
            power += load * share * gauss(f * f)
            along += load * share * gauss(f)
            across -= load * share * gauss(Z * f) / np.sqrt(q)
            mean += share * y * gauss(f)
        total = gamma + across
        return along * size / total, (power + along**2 * size) / total**2, 1 / total, b + pull * width * mean

    return settled(step, *start, 0.0)
