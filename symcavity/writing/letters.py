"""Letters of the method that a declaration uses itself: ours make way in what is printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sympy import Basic, Symbol

from symcavity.algebra.joint import JointAverage, LawSymbol
from symcavity.model.averages import Force, Lowest
from symcavity.model.equations import Equation
from symcavity.model.families import Family
from symcavity.model.times import Time, other_times, times_in
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import AtStep, CavitySymbol, LawFunction, Source

LETTERS = {
    "eta": ("eta", "omega", "chi", "psi"),
    "I": ("I", "J", "Y", "Q"),
    "E": ("E", "U", "W", "V"),
    "L": ("L", r"\mathcal{L}"),
    "t": ("t", "s", "r", "n", "l"),
}
"""The cavity field, the source, the energy, the Lagrangian, the step of a message; and what they may be called."""

_TIMES = ("s", "r", "p", "q", "l", "k")
"""What the other times beside one may be called."""

_OF_SITES = frozenset(["eta", "I"])  # with the index of a site: a number of the same name is not taken for them
_DECLARED = ("problem", "named", "fixed")
_HEADS = {"lagrangian": "L", "descent": "E"}  # rules whose claims begin with a letter of ours


def with_free_letters(derivation: Derivation) -> Derivation:
    """Return the derivation with other letters for what would have the name of a declared quantity."""
    numbers, families = _declared(derivation)
    found = {}
    for letter, every in LETTERS.items():
        taken = families if letter in _OF_SITES else families | numbers
        found[letter] = next((one for one in every if one not in taken), letter)
    new: dict[Any, Any] = {letter: name for letter, name in found.items() if name != letter}
    new |= _times(derivation, families | numbers)
    if not new:
        return derivation
    steps = tuple(_renamed_step(step, new) for step in derivation.steps)
    parameters, results = _renamed((derivation.parameters, derivation.results), new)
    return replace(derivation, steps=steps, parameters=parameters, results=results)


def _times(derivation: Derivation, taken: set[str]) -> dict[Time, Time]:
    """The other times of states that move, under names that no parameter has."""
    declared = [obj for step in derivation.steps if step.rule in _DECLARED for obj in _basics(step.data)]
    moving = {t for obj in declared for t in times_in(obj)}
    if len(moving) != 1 or not (others := [t for t in other_times(*moving) if t.name in taken]):
        return {}
    kept = {t.name for t in (*moving, *other_times(*moving))}
    return dict(zip(others, map(Time, (name for name in _TIMES if name not in taken | kept)), strict=False))


def _declared(derivation: Derivation) -> tuple[set[str], set[str]]:
    """The names of numbers and of families that are declared."""
    numbers: set[str] = set()
    families: set[str] = set()
    for step in derivation.steps:
        if step.rule in _DECLARED:
            for obj in _basics((step.claims, step.data)):
                numbers |= {s.name for s in obj.atoms(Symbol) if not isinstance(s, Time)}
                families |= {f.name for f in obj.atoms(Family)}
    return numbers, families


def _basics(obj: Any) -> Iterator[Basic]:
    if isinstance(obj, Equation):
        yield from (obj.lhs, obj.rhs)
    elif isinstance(obj, Basic):
        yield obj
    elif isinstance(obj, dict):
        yield from _basics([*obj.keys(), *obj.values()])
    elif isinstance(obj, list | tuple):
        for one in obj:
            yield from _basics(one)


def _renamed_step(step: Step, new: dict[Any, Any]) -> Step:
    claims = _renamed(step.claims, new)
    letter = _HEADS.get(step.rule, "")
    if letter in new:
        head = Symbol(letter)
        claims = tuple(Equation(Symbol(new[letter]), c.rhs) if c.lhs == head else c for c in claims)
    data = _renamed(step.data, new)
    if "E" in new:
        data["energy"] = Symbol(new["E"])
    assumptions = tuple((name, _renamed(of, new)) for name, of in step.assumptions)
    return replace(step, claims=claims, data=data, assumptions=assumptions)


def _renamed(obj: Any, new: dict[Any, Any]) -> Any:
    if isinstance(obj, Equation):
        return Equation(_renamed(obj.lhs, new), _renamed(obj.rhs, new))
    if isinstance(obj, Basic):
        nodes = obj.atoms(Source, CavitySymbol, LawFunction, AtStep, Force, Lowest)
        rule = {node: other for node in nodes if (other := _other(node, new)) != node}
        rule |= {t: name for t, name in new.items() if isinstance(t, Time)}
        return obj.xreplace(rule | _of_joint_laws(obj, new))
    if type(obj) is dict:
        return {_renamed(key, new): _renamed(value, new) for key, value in obj.items()}
    return type(obj)(_renamed(one, new) for one in obj) if type(obj) in (list, tuple) else obj


def _of_joint_laws(obj: Basic, new: dict[Any, Any]) -> dict[Any, Any]:
    """The fields and the responses of joint laws, whose symbols know their TeX."""
    rule: dict[Any, Any] = {}
    if "I" in new:
        below = "}{\\partial "
        rule = {s: LawSymbol(s.name, s.tex.replace(f"{below}I", below + new["I"])) for s in obj.atoms(LawSymbol)}
    if "eta" in new:
        fields = {f for average in obj.atoms(JointAverage) for f in average.law.fields}
        rule |= {f: LawSymbol(f.name, f.tex.replace("\\eta", f"\\{new['eta']}")) for f in fields}
    return rule


def _other(node: Any, new: dict[Any, Any]) -> Any:
    """A node under its new name."""
    if isinstance(node, Source):
        own, *label = node.name.split("_", 1)
        return node.renamed("_".join([new.get(own, own), *label]))
    if isinstance(node, CavitySymbol):
        (base, *rest), signs = node.__getnewargs_ex__()
        return type(node)(new.get(base, base), *rest, **signs) if base in new else node
    inner = _renamed(node.args[0], new)
    if isinstance(node, AtStep):
        return AtStep(inner, node.args[1], *([Symbol(new["t"])] if "t" in new else []))
    if isinstance(node, LawFunction):
        name = Symbol(new["E"]) if node.args[0] == Symbol("E") and "E" in new else node.args[0]
        return LawFunction(name, *(_renamed(arg, new) for arg in node.args[1:]))
    return type(node)(inner, *([Symbol(new["E"])] if "E" in new else []))
