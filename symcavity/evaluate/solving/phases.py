"""Several solutions of a Gibbs measure: mirror images, states that do not settle, and what has all of the weight.

Of several solutions that of the lowest free energy has all of the weight. It is the answer where it is the only one
that small changes do not destroy; what has a mirror image is shown once. Where another one is stable too, the states
may stay in either, and the user chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import FlatMinimum, UnsupportedLaw
from symcavity.evaluate.given.values import GibbsMeasure
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined

FREE, ENTROPY = "free energy", "entropy"


def in_double(solution: Solution, which: str) -> float | None:
    """The free energy or the entropy of a solution in double; None where it is not known."""
    measure = solution.task.measure
    key = None if measure is None else measure.free_energy if which == FREE else measure.entropy
    if key is None:
        return None
    quick = Solution(solution.task, solution.solved_at, dict(solution.own_values), solution.reader)
    value = where_known(lambda: quick.number(key))
    return None if value is None or mp.isnan(value) or value == mp.inf else float(value)


def where_known(number: Callable[[], Any]) -> Any:
    """A number of a solution; None where it has none."""
    return where_defined(number, also=(UnsupportedLaw, FlatMinimum))


def image_of(values: Mapping[Symbol, Any], signs: Mapping[Symbol, int]) -> dict[Symbol, Any]:
    """The mirror image of a solution."""
    return {s: signs.get(s, 1) * v for s, v in values.items()}


def _is_close(one: Mapping[Symbol, Any], other: Mapping[Symbol, Any]) -> bool:
    near = tolerances().same
    return all(abs(one[s] - other[s]) <= near * max(abs(one[s]), abs(other[s])) for s in one)


def _unknowns(solution: Solution) -> dict[Symbol, float]:
    """Order parameters and global variables."""
    hats = {h for e in solution.task.units.values() for h in e.free_symbols} - {e.lhs for e in solution.task.equations}
    own = {s: float(v) for s, v in solution.values.items() if s not in hats and s in {*solution.task.unknowns}}
    return own | {g: float(solution[g]) for g in solution.task.units}


def classes(measure: GibbsMeasure, solved: Sequence[Solution]) -> list[list[int]]:
    """Which of some solutions are mirror images of each other; of each class the one of positive sign is first."""
    points = [_unknowns(solution) for solution in solved]
    out: list[list[int]] = []
    for k, point in enumerate(points):
        images = [image_of(point, signs) for signs in measure.mirrors()]
        home = next((c for c in out if any(_is_close(points[c[0]], image) for image in images)), None)
        if home is None:
            out.append([k])
        else:
            home.append(k)
    turned = sorted({s for signs in measure.mirrors() for s in signs}, key=str)
    for home in out:
        home.sort(key=lambda k: [-points[k][s] for s in turned])
    return out


def dominant(solved: Sequence[Solution], gains: Sequence[float | None], resting: Solution | bool) -> Solution | None:
    """The solution that has all of the weight; None where the user has to choose.

    Parameters
    ----------
    solved, gains
        The solutions, with their stabilities.
    resting : Solution or bool
        One more, in which all means vanish; whether there is one, where it has no value.
    """
    measure = solved[0].task.measure
    assert measure is not None  # noqa: S101 - asked of measures only
    found = classes(measure, solved)
    compared = len(found) > 1 or resting is not False  # one solution alone needs no free energy, which may take long
    free = {home[0]: in_double(solved[home[0]], FREE) for home in found if compared}
    stable = [h[0] for h in found if (gain := gains[h[0]]) is not None and gain < 1 - tolerances().marginal]
    if resting is not False:
        at_rest = None if resting is True else rested(resting)
        lowest = min((v for v in free.values() if v is not None), default=None)
        if at_rest is None or lowest is None or at_rest <= lowest or None in free.values():
            return None
    if len(found) > 1:
        known = {k: value for k, value in free.items() if value is not None}
        if len(stable) != 1 or len(known) < len(found) or min(known, key=lambda k: known[k]) != stable[0]:
            return None
        home = next(h for h in found if h[0] == stable[0])
    else:
        (home,) = found
    chosen = solved[home[0]]
    chosen.remarks += mirrored(measure, chosen)
    others = [h for h in found if h is not home]
    if others:
        chosen.remarks += (
            f"{len(others)} other solution{'s' if len(others) > 1 else ''} of higher free energy, unstable",
        )
    if resting is not False:
        chosen.remarks += ("thermal means that all vanish solve the equations too, with a higher free energy",)
    return chosen


def rested(solution: Solution) -> float | None:
    """The free energy of a limit; None where it has no value."""
    measure = solution.task.measure
    key = None if measure is None else measure.free_energy
    value = None if key is None else where_known(lambda: solution.number(key))
    return float(value) if value is not None and mp.isfinite(value) else None


def mirrored(measure: GibbsMeasure, solution: Solution) -> tuple[str, ...]:
    """That a solution has a mirror image, and which of the two it is."""
    values, own = _unknowns(solution), solution.own_values
    out = []
    for signs in measure.mirrors():
        broken = [s for s in signs if abs(own.get(s, values[s])) > tolerances().same]  # in units of the system's own
        if broken:
            way = ">" if values[broken[0]] > 0 else "<"
            names = ", ".join(map(str, broken))
            out.append(
                f"the sign symmetry is broken: {names} with the other sign are its mirror image; "
                f"shown is {broken[0]} {way} 0"
            )
    return tuple(out[:1])


def uncounted(solution: Solution) -> str | None:
    """That discrete states are fewer than one; None where their entropy is not negative, or not known."""
    measure = solution.task.measure
    if measure is None or not measure.is_discrete:
        return None
    value = in_double(solution, ENTROPY)
    if value is None or value >= -tolerances().rough:
        return None
    if measure.is_cold:
        limit = "minus infinity" if mp.isinf(value) else f"{value:.6g}"
        return (
            f"limit of the entropy per feature at zero temperature is negative, {limit}: it would be the logarithm of "
            "a number of states, and there is none. The assumption of one lowest state (replica symmetry) is wrong "
            "here: the equations fail already at the temperature at which the entropy vanishes"
        )
    return (
        f"entropy per feature is negative, {value:.6g}: it would be the logarithm of a number of configurations, "
        "and there is none. The assumption of one state (replica symmetry) is wrong here, whatever the stability says"
    )
