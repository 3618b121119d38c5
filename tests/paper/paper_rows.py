"""The rows of the table: one for each displayed equation, with what checks it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from paper_reading import claims, enlarged, meanings, same

DERIVED, DECLARED, VERIFIED, CORRECTED = "derived", "declared", "verified", "corrected"
SYMBOLIC, DIGITS, SIMULATED = "symbolic", "50 digits", "simulation"
NUMBERS = [*map(str, range(1, 161)), *(f"A.{k}" for k in range(1, 20))]
ROWS = {}
PLACE = re.compile(r"(gardner|manifold|kernel_ridge)(, naive|, cavity, from_coefficients)?: ([\w., ]+)")


@dataclass(frozen=True)
class Row:
    """One equation: its verdict, the engine's object, by what they were held together, and the check itself."""

    number: str
    verdict: str
    witness: str
    where: str
    check: Callable[..., None]
    remark: str = ""
    is_claim: bool = False

    @property
    def steps(self):
        """The steps of a record that the row names, by their keys in the declaration's own table of sources."""
        found = PLACE.fullmatch(self.where)
        if found is None:
            return []
        name, other, keys = found.groups()
        name, naive = (f"{name}:from_coefficients", False) if "coefficients" in (other or "") else (name, bool(other))
        return [(name, f"naive.{key}" if naive else key) for key in keys.split(", ")]

    def data(self):
        out = {"number": self.number, "verdict": self.verdict, "witness": self.witness, "where": self.where}
        return {**out, "remark": self.remark} if self.remark else out


def equation(number, verdict, where, witness=SYMBOLIC, remark="", *, is_claim=False):
    """Register a function as the check of an equation."""

    def add(check):
        assert number not in ROWS
        ROWS[number] = Row(number, verdict, witness, where, check, remark, is_claim)
        return check

    return add


def claim(number, where, lhs, rhs, at=0, *, rule=(), factor=1, verdict=DERIVED, remark="", sizes=()):
    """Register that a claim of the engine's record is the equation, side by side."""

    def check(off=0):
        found = claims(where)[at]
        with enlarged(**dict(sizes)):
            equal = same(found, (lhs, rhs + off), meanings(where), rule, factor)
        assert equal, f"{found} is not {lhs} = {rhs + off}"

    equation(number, verdict, where, SYMBOLIC, remark, is_claim=True)(check)
