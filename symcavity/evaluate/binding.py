"""Put convex sets, laws with excluded signs, and numbers far from one into a theory before it is solved.

A set fixes the number of components of its vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Add, Float, Rational, Tuple

from symcavity.algebra.memory import Memory
from symcavity.errors import SymcavityError
from symcavity.evaluate.numbers import read_law
from symcavity.method.theory import Theory
from symcavity.model.bound_sets import take_sets
from symcavity.model.far_numbers import FarNumber, lettered
from symcavity.model.quantities import Quenched
from symcavity.model.support import SupportFunction
from symcavity.sites.sets.solution import ProjectionSolution


def supports(theory: Theory) -> dict[SupportFunction, Any]:
    """The support functions whose sets a theory waits for, each with the number of components of its vectors."""
    if theory.binding:
        return {}
    found: dict[SupportFunction, Any] = {}
    for site in theory.inserted.values():
        if isinstance(site.solution, ProjectionSolution):
            convex = site.solution.convex
            found[convex.g] = convex.components.size
    return found


def bind(theory: Theory, values: Mapping[Any, Any], dps: int = 15) -> tuple[Theory, Mapping[Any, Any]]:
    """Take the convex sets out of the values of a call, and laws with zeros; put them into the theory.

    Raises
    ------
    ValuesError
        If a set is missing, is not a shape, or lives in another number of dimensions.
    """
    if not isinstance(values, Mapping):
        return theory, values
    theory, values = with_letters(*with_signs(theory, values, dps))
    needed = supports(theory)
    if not needed:
        return theory, values
    rule, rest = take_sets(needed, values)
    known = theory.memory.setdefault("bound", Memory(16))
    mark = tuple(sorted(rule.items(), key=lambda item: str(item[0])))
    if mark not in known:
        known[mark] = put_in(theory, rule, rule)
    return known[mark], rest


def with_signs(theory: Theory, values: Mapping[Any, Any], dps: int = 15) -> tuple[Theory, Mapping[Any, Any]]:
    """Derive a theory with the finite laws that are given to parameters it took as positive, and that have others.

    What was derived for positive values need not hold at zero: a mask then silences its datum.  Labels of both signs
    turn a loss that jumps; at negative values a convex problem may not be convex.  With a law in the declaration each
    value is looked at by itself.
    """
    names = {q.name: q for q in theory.taken}
    laws: dict[Quenched, Any] = {}
    for key, value in values.items():
        q = names.get(str(getattr(key, "family", key)))
        if q is None or q in laws:
            continue
        law = read_law(q, value, dps)
        is_open = isinstance(law, Tuple) and any(v <= 0 for v, _ in law)
        if is_open and (not theory.system.convex or all(v >= 0 for v, _ in law)):
            laws[q] = _declarable(law)
    if not laws:
        return theory, values
    known = theory.memory.setdefault("with signs", Memory(16))
    mark = tuple(sorted(((q.name, tuple(law.items())) for q, law in laws.items()), key=str))
    if mark not in known:
        declared = {q: q.drawn_by(law) for q, law in laws.items()}
        known[mark] = Theory(theory.system.with_parameters(declared), naive=theory.is_naive)
    given = {q.name for q in laws}
    return known[mark], {k: v for k, v in values.items() if str(getattr(k, "family", k)) not in given}


def with_letters(theory: Theory, values: Mapping[Any, Any]) -> tuple[Theory, Mapping[Any, Any]]:
    """Derive a theory whose numbers that are far from one are letters, and give these their values.

    Equations are searched for solutions in units in which what is given is of order one: these numbers are given, too.
    A convex problem is solved in any units.
    """
    system = theory.system
    if system.convex or system.time is not None or theory.is_naive or theory.binding:
        return theory, values
    if "letters" not in theory.memory:
        theory.memory["letters"] = _with_letters(theory)
    found = theory.memory["letters"]
    numbers = {s: s.number for s in found.system.parameters if isinstance(s, FarNumber)}
    return found, {**values, **numbers}


def _with_letters(theory: Theory) -> Theory:
    system = theory.system.where(lettered)
    if system.parameters == theory.system.parameters:
        return theory
    try:
        found = Theory(system)
    except SymcavityError:  # a rule that holds for these numbers only
        return theory
    return found if found.scaled_unknowns == theory.scaled_unknowns else theory


def _declarable(law: Iterable[Any]) -> dict[Any, Any]:
    """A law that was read, in exact numbers: floats as their shortest decimals, and weights whose sum is one."""
    *first, (last, _) = [[Rational(repr(float(e))) if e.has(Float) else e for e in row] for row in law]
    return {**dict(first), last: 1 - Add(*(weight for _, weight in first))}


def put_in(theory: Theory, binding: dict[Any, Any], rule: dict[Any, Any]) -> Theory:
    """The theory with a replacement carried out in its equations."""
    return theory.replace(
        binding=binding,
        closures={s: v.xreplace(rule) for s, v in theory.closures.items()},
        fixed_equations=[e.xreplace(rule) for e in theory.fixed_equations],
        global_equations=[e.xreplace(rule) for e in theory.global_equations],
    )


def counterpart(theory: Theory, *, naive: bool) -> Theory:
    """Derive the other analysis of the same system, with the same sets in it."""
    return put_in(Theory(theory.system, naive=naive), theory.binding, theory.binding)
