"""Give a theory its convex sets: values that are not numbers, and that fix the number of components."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symcavity.algebra.polyhedral import CellAverage
from symcavity.errors import Infeasible, NotConverged, ValuesError
from symcavity.model.bound_sets import take_sets
from symcavity.model.support import SupportFunction
from symcavity.sites.set_averages import ProjectionAverage

if TYPE_CHECKING:
    from symcavity.method.theory import Theory


def supports(theory: Theory) -> dict[SupportFunction, Any]:
    """The support functions of a theory, each with the number of components of its vectors."""
    found: dict[SupportFunction, Any] = {}
    for side in theory.sides.values():
        convex = getattr(side, "convex", None)
        if convex is not None:
            found[convex.g] = convex.components.size
    return found


def bind(theory: Theory, values: Mapping[Any, Any]) -> tuple[Theory, Mapping[Any, Any]]:
    """Take the convex sets out of the values of a call, and put them into the theory.

    Raises
    ------
    ValuesError
        If a set is missing, is no shape, or lives in another number of dimensions.
    """
    needed = supports(theory)
    if not needed or theory.binding or not isinstance(values, Mapping):
        return theory, values
    rule, rest = take_sets(needed, values)
    cache = theory.__dict__.setdefault("_bound", {})
    mark = tuple(sorted(rule.items(), key=lambda item: str(item[0])))
    if mark not in cache:
        cache[mark] = _with(theory, rule, rule)
    return cache[mark], rest


def _with(theory: Theory, binding: dict[Any, Any], rule: dict[Any, Any]) -> Theory:
    """A copy of a theory with a replacement carried out in its equations."""
    bound = copy.copy(theory)
    for name in ("units", "_scaled_unknowns", "reduced", "reduced_with_load", "_task", "derivation", "_bound"):
        bound.__dict__.pop(name, None)
    bound.binding = binding
    bound.closures = {s: v.xreplace(rule) for s, v in theory.closures.items()}
    bound.fixed_equations = [e.xreplace(rule) for e in theory.fixed_equations]
    bound.global_equations = [e.xreplace(rule) for e in theory.global_equations]
    return bound


def check_digits(theory: Theory, dps: Any) -> None:
    """Refuse more digits than the averages over the sets have.

    Raises
    ------
    ValuesError
        If an average is sampled, or integrated in double precision.
    """
    if not isinstance(dps, int) or dps <= 15:
        return
    from symcavity.evaluate.capacity import has_many_digits

    for cell in sorted({n for e in theory.equations for n in e.difference.atoms(CellAverage)}, key=str):
        if not cell.has_many_digits:
            raise ValuesError(
                f"{dps} digits were asked for, but averages over {len(cell.zs)} fields that come back to one site "
                "are taken in double precision.",
                "dps <= 15; up to two such fields at any dps",
            )
    for node in sorted({n for e in theory.equations for n in e.difference.atoms(ProjectionAverage)}, key=str):
        if not (node.is_known and node.g.shape is not None and has_many_digits(node.g.shape)):
            raise ValuesError(
                f"{dps} digits were asked for, but averages over {node.g.shape!r} are taken in double precision.",
                "dps <= 15; balls, segments and pairs of points with a hard margin, of exact sizes, at any dps",
            )


def is_sampled(theory: Theory) -> bool:
    """Whether some average has to be sampled."""
    from symcavity.evaluate.set_averages import is_sampled as sampled

    nodes = {n for e in theory.equations for n in e.difference.atoms(ProjectionAverage)}
    return any(n.g.shape is not None and n.g.sampling[2] is None and sampled(n) for n in nodes)


def sampled_solution(theory: Theory, values: Mapping[Any, Any], dps: int, guess: Any) -> Any:
    """Solve with all samples, and with each independent set of them for the standard errors."""
    from symcavity.evaluate.sampled import SampledSolution
    from symcavity.evaluate.solver import solve

    def at(one: Theory, start: Any) -> Any:
        return solve(one._task, values, dps, one.observable, start)  # noqa: SLF001 - the same layer

    def part(number: int) -> Theory:
        rule = {**theory.binding}
        rule |= {g: bound.scramble(number) for g, bound in rule.items() if isinstance(g, SupportFunction)}
        return _with(theory, rule, {b: rule[g] for g, b in theory.binding.items() if isinstance(g, SupportFunction)})

    try:  # one set of samples is a sixteenth of the work, and leads to where all of them agree
        start = guess or at(part(0), None).values
    except (Infeasible, NotConverged):
        start = None
    whole = at(theory, start)
    return SampledSolution(whole, lambda number: at(part(number), whole.values))


__all__ = ["bind", "check_digits", "is_sampled", "sampled_solution", "supports"]
