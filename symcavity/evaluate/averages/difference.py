"""Derivatives of averages as difference quotients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STEP = 1e-3  # relative to the parameter: steps are long, for the noise of averages


def difference_quotient(gap: Callable[[float], Any], step: float) -> Any:
    """The derivative of a function to fourth order, from ``gap(h) = f(h) - f(-h)`` at a step and at twice the step."""
    return (8 * gap(step) - gap(2 * step)) / (12 * step)
