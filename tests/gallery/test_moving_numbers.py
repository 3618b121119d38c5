"""Systems of the gallery that move, against numbers by other means; the docstrings stand on the page of the gallery."""

import numpy as np
import pytest
from gallery_shared import module, table, theory

Z, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def run(name, until=None):
    found = module(name)
    span = table.span(found) | ({} if until is None else {"until": until})
    return theory(name).evolve(found.values, paths=table.PATHS, seed=table.SEED, **span)


def near(moved, observable, step, want, slack=0.0):
    value, error = moved[observable][step], moved.errors[observable][step]
    assert abs(value - want) <= 4 * error + slack + 1e-9, (observable, value, error, want)


def test_the_variance_of_a_network_with_gaussian_states():
    """Sompolinsky, Crisanti and Sommers: states are Gaussian, and the average of two error functions is an arc sine."""
    moved, (square, back) = run("chaotic_network", 4), module("chaotic_network").shown
    h, steps, g = 1 / 10, 40, 2.0
    delta, cross = np.zeros((steps + 1, steps + 1)), np.zeros((steps + 1, steps + 1))
    delta[0, 0] = 1

    def sent(t, s):
        spread = (1 + np.pi / 2 * delta[t, t]) * (1 + np.pi / 2 * delta[s, s])
        return 2 / np.pi * np.arcsin(np.pi / 2 * delta[t, s] / np.sqrt(spread))

    for t in range(steps):
        heard = np.array([g**2 * sent(t, s) for s in range(t + 1)])
        for u in range(t + 1):  # <x(u) eta(t)>: what x(u) has heard up to u - 1
            cross[u, t] = sum(h * (1 - h) ** (u - 1 - s) * heard[s] for s in range(u))
            cross[t, u] = (1 - h) * cross[t - 1, u] + h * g**2 * sent(t - 1, u) if t else 0.0
        for u in range(t + 1):
            delta[t + 1, u] = delta[u, t + 1] = (1 - h) * delta[t, u] + h * cross[u, t]
        delta[t + 1, t + 1] = (1 - h) ** 2 * delta[t, t] + 2 * h * (1 - h) * cross[t, t] + h**2 * heard[t]
    near(moved, square, -1, delta[steps, steps], slack=0.03)
    near(moved, back, -1, delta[steps, 0], slack=0.03)


def test_the_first_steps_of_a_network_with_an_echo():
    """By hand: after one step the states are Gaussian around their beginning, after two each has heard its echo."""
    moved, (square, start) = run("reciprocal_network", 3), module("reciprocal_network").shown
    g, h, r, sent = 1.5, 0.5, 0.5, np.tanh(1)
    near(moved, square, 1, (1 - h) ** 2 + h**2 * g**2 * sent**2)
    near(moved, start, 1, 1 - h)
    slope = h * (np.cosh((1 - h) + h * g * sent * Z) ** -2) @ WEIGHTS
    near(moved, start, 2, (1 - h) ** 2 + h * r * g**2 * slope * sent)


def test_the_first_step_of_modes_that_read_what_they_write():
    """By hand: half as many modes as units, of strengths 1 and 3, pass on 5/2 of the variance, and 1/4 as an echo."""
    moved, (square, modes) = run("moving_modes", 2), module("moving_modes").shown
    sent = np.tanh(Z) ** 2 @ WEIGHTS
    near(moved, modes, 0, sent)
    near(moved, square, 1, (2.5 + 0.25) * sent)


def test_the_first_step_of_species_by_eulers_rule():
    """By hand: from one half each grows by its capacity minus 3/2 and a Gaussian competition of variance 1/16."""
    found = module("moving_species")
    moved = run("moving_species", 1).schemes[found.step]
    n, h = 0.5, 0.25
    for observable, want in zip(
        found.shown, (n * (1 - h / 2), n**2 * ((1 - h / 2) ** 2 + h**2 * (1 / 16 + 1 / 16))), strict=True
    ):
        near(moved, observable, 1, want)


def test_the_first_step_of_a_descent_on_clusters():
    """By hand: from zero every datum pulls by half its label, so that overlap, size and bias are 5/4, 3/4 and 1/4."""
    moved, shown = run("descent_momentum", 2), module("descent_momentum").shown
    for observable, want in zip(shown, (1.25, 0.75, 0.25), strict=True):
        near(moved, observable, 1, want)


def test_the_first_step_of_a_memory():
    """By hand: other patterns are Gaussian noise of variance alpha at first (Gardner, Derrida, Mottishaw)."""
    moved, (overlap, square) = run("recalled_memory", 2), module("recalled_memory").shown
    field = 4 * (0.4 + np.sqrt(0.1) * Z)
    near(moved, overlap, 1, np.tanh(field) @ WEIGHTS)
    near(moved, square, 1, np.tanh(field) ** 2 @ WEIGHTS)
    assert moved[overlap][0] == pytest.approx(0.4, abs=0.05)
