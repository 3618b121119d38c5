"""Exact numbers of a run, and sites of a kind that have in common what multiplies their states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.model.quantities import SiteQuantity

Number = Callable[[Expr], Any]
Monomial = Any  # a product of quenched parameters


class NotLinearLaw(ValueError):
    """A law, or what is averaged, is not linear in states and fields."""


def number_of(dps: int | None) -> Number:
    """How exact values become numbers: fractions for None, doubles up to 15 digits, more digits beyond."""
    if dps is None:
        return _fraction
    return float if dps <= IN_DOUBLE else to_mpf


class NotRational(ValueError):
    """A number is not a fraction."""


def _fraction(value: Expr) -> Fraction:
    if not value.is_Rational:
        raise NotRational(f"{value} is not a fraction")
    return Fraction(int(value.p), int(value.q))


class Share:
    """The sites of a kind whose quenched parameters multiply states: what they have in common.

    Attributes
    ----------
    weight : number
    known : dict
        The values of these parameters.
    slopes, constants : dict
        By state: its responses to all sources (steps, columns), and by step what quenched parameters add.
    """

    def __init__(self, weight: Any, known: Mapping[Any, Expr]) -> None:
        self.weight, self.known = weight, dict(known)
        self.slopes: dict[SiteQuantity, np.ndarray] = {}
        self.constants: dict[SiteQuantity, list[dict[Monomial, Any]]] = {}
        self.factors: list[Any] = []
        self.scaled: np.ndarray | None = None
