"""The guess of a user: values of a solution nearby, by the symbols that are solved for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Symbol

from symcavity.algebra.precision import is_mpf, mp
from symcavity.errors import ValuesError
from symcavity.evaluate.numbers import exact_value
from symcavity.evaluate.solutions.solution import Solution
from symcavity.method.theory import Theory


def read_guess(theory: Theory, guess: Any) -> dict[Symbol, Any] | None:
    """Values of a solution nearby, by the symbols that are solved for.

    Parameters
    ----------
    theory : Theory
    guess : Solution, or mapping
        Numbers by order parameter, global variable, load or parameter, or by their names.

    Raises
    ------
    ValuesError
        For anything else.
    """
    if guess is None or isinstance(guess, Solution):
        return None if guess is None else dict(guess.values)
    ratios = [kind.ratio for kind in theory.system.kinds if kind.ratio.is_Symbol]
    known = {str(s): s for s in (*theory.scaled_unknowns, *theory.units, *theory.system.parameters, *ratios)}
    if not isinstance(guess, Mapping):
        raise ValuesError(
            f"The guess is {guess!r:.80}.", "a solution nearby, or numbers by unknown", f"{{{next(iter(known))}: 0.5}}"
        )
    found: dict[Symbol, Any] = {}
    for key, value in guess.items():
        if str(key) not in known:
            raise ValuesError(f"The guess has a value for {key!s:.60}.", ", ".join(known))
        name = f"the guess of {key}"
        found[known[str(key)]] = value if is_mpf(value) and not mp.isnan(value) else exact_value(value, name, 15)
    scales = {g: (unit, *unit.free_symbols) for g, unit in theory.units.items() if g in found}
    for g, (unit, *symbols) in scales.items():  # what is solved for is the scaled one
        at = {s: found[s] for s in symbols if s in found}
        hats = [s for s in symbols if s in theory.scaled_unknowns and s not in at and s not in theory.order_parameters]
        if len(hats) == 1 and set(symbols) - set(hats) <= set(at) and (scale := (unit / hats[0]).xreplace(at)):
            found[hats[0]] = float(found[g] / scale)
    return found
