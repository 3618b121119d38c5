"""Mirror images of a Gibbs measure: changes of signs of states that leave its energy as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from sympy import Dummy, Expr, S, Symbol

from symcavity.method.measure import emission_parts
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, Expect, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.laws import Weight, weighed_field
from symcavity.model.quantities import Global, SiteQuantity
from symcavity.model.system import System

MOST = 10  # signs that are tried in all combinations


def mirrors(theory: Theory) -> tuple[dict[Symbol, int], ...]:
    """The signs that unknowns change when states change theirs and the energy stays as it is.

    A solution and what they make of it are one state of the system and its mirror image: their free energies and
    stabilities are equal. Changes that turn no unknown turn no solution either, and are left out.

    Parameters
    ----------
    theory : Theory
        Of a Gibbs measure; others have none.
    """
    system = theory.system
    found: list[dict[Symbol, int]] = []
    laws = system.laws.values()
    still = {law.carrier(f).lhs for law in laws for f in law.fields if not f.states()}  # such as that of a teacher
    for moved, told in turns(system):
        parity = _parities(system, moved)
        turned = {s: -1 for s, meaning in theory.order_parameters.items() if _is_odd(meaning, parity, still)}
        turned |= {g: -1 for g, sign in told.items() if sign < 0}
        if turned and turned not in found:
            found.append(turned)
    return tuple(found)


def turns(system: System) -> Iterator[tuple[dict[SiteQuantity, Expr], dict[Global, int]]]:
    """Which states change their signs together, with what signs of global variables, and leave the energy as it is."""
    turning = [q for w in system.weights.values() if not w.is_field for q in w.states]
    if len(turning) + len(system.globals) > MOST:
        return
    for signs in product((1, -1), repeat=len(turning)):
        moved = {q: -q for q, sign in zip(turning, signs, strict=True) if sign < 0}
        for others in product((1, -1), repeat=len(system.globals)):
            told = dict(zip(system.globals, others, strict=True))
            if moved and _is_mirror(system, moved, told):
                yield moved, told


@lru_cache(maxsize=32)
def first_globals(system: System) -> Mapping[Global, float]:
    """Where global variables begin as messages are passed: at zero, but for those that a step never leads from there.

    At one begin those that are bounded by zero, and those whose sign tells one of two mirror images from the other:
    at zero they are their own image, and every step keeps them so. These are in units of :func:`first_squares`.
    """
    return {g: float(bool(g.is_nonnegative) or g in _turned(system)) for g in system.globals}


def _turned(system: System) -> set[Global]:
    """The global variables whose sign tells one of two mirror images from the other."""
    return {g for _, told in turns(system) for g, sign in told.items() if sign < 0} if system.weights else set()


def first_squares(system: System, met: Mapping[Kind, Sequence[tuple[int, Any]]]) -> dict[Global, tuple[Kind, Expr]]:
    """By global variable that tells mirror images apart, the square of what sites add to it, and their kind.

    A condition makes it the average of that: its size is at most the root of the average of the square, which sites
    have that hear nothing. So it begins in units of the states, whatever these are.
    """
    out: dict[Global, tuple[Kind, Expr]] = {}
    for kind, rows in met.items():
        for row, g in rows:
            body = system.global_conditions[row].get(kind, S.Zero)
            body = body.replace(lambda e: isinstance(e, Expect), lambda e: e.body)
            alone, factor = body.xreplace({g: S.Zero}), body.diff(g)
            if g in _turned(system) and factor != 0 and not factor.has(SiteQuantity, g) and alone != 0:
                core = system.weights[kind]
                out[g] = kind, ((alone / factor) ** 2).xreplace({core.mean: core.state} if not core.is_field else {})
    return out


def _parities(system: System, moved: Mapping[SiteQuantity, Expr]) -> dict[Any, Expr]:
    """The sign that each thermal mean changes by: of what is sent, and of the force that losses send back."""
    sent = {kind: _parity(w, moved) for kind, w in system.weights.items() if not w.is_field}
    own = {w.mean: sent[kind] for kind, w in system.weights.items() if not w.is_field}
    back = (forces_turned(system, kind, sent) for kind, w in system.weights.items() if w.is_field)
    return own | {force: sign for found in back for (_, force), sign in found.items()}


def _is_odd(meaning: Expr, parity: Mapping[Any, Expr], still: set[Any]) -> bool:
    """Whether an order parameter changes its sign with the means that stand in it.

    The response of a mean to a source beside it turns twice, that to a field that keeps still once.
    """
    given = {r: r * parity.get(r.state, S.One) for r in meaning.atoms(SiteResponse) if r.field in still}
    marks = {r: Dummy("r", real=True) for r in meaning.atoms(SiteResponse)}
    plain = meaning.xreplace(marks)
    rule = {q: sign * q for q, sign in parity.items()} | {marks[r]: value.xreplace(marks) for r, value in given.items()}
    bodies = [a.body for a in plain.atoms(Average)] or [plain]
    return all((b.xreplace(rule) + b).expand() == 0 for b in bodies)


def _is_mirror(system: System, moved: Mapping[SiteQuantity, Expr], told: Mapping[Global, int]) -> bool:
    """Whether the weights of all sites are the same with changed signs."""
    if any(g.is_bounded for g, sign in told.items() if sign < 0):
        return False
    if any({*q.family.values} != {-v for v in q.family.values} for q in moved):
        return False
    rule: dict[Any, Expr] = {**moved, **{g: sign * g for g, sign in told.items()}}
    parity = {kind: _parity(w, moved) for kind, w in system.weights.items() if not w.is_field}
    if S.Zero in parity.values() or not _is_same(system.collective.energy, rule):
        return False
    for kind, weight in system.weights.items():
        own = dict(rule)
        for (field, _), turned in forces_turned(system, kind, parity).items() if weight.is_field else ():
            if turned == 0:
                return False
            own[field] = turned * field
        if not all(_is_same(e, own) for e in (weight.energy, *weight.bounds)):
            return False
    return True


def _parity(weight: Weight, moved: Mapping[SiteQuantity, Expr]) -> Expr:
    """The sign that what a site sends changes by; zero if it is no sign."""
    turned = weight.state.xreplace(moved)
    return next((sign for sign in (S.One, S.NegativeOne) if (turned - sign * weight.state).expand() == 0), S.Zero)


def forces_turned(system: System, kind: Kind, parity: Mapping[Kind, Expr]) -> dict[Any, Expr]:
    """The sign that each field changes by, and the force on it; zero if something else stands beside what is sent."""
    law, out = system.laws[kind], {}
    for field, force in system.weights[kind].forces:
        f = weighed_field(law, field)
        fixed, _, _ = emission_parts(f)
        out[field, force] = S.Zero if parity[f.sender] == -1 and fixed != 0 else parity[f.sender]
    return out


def _is_same(expr: Expr, rule: Mapping[Any, Expr]) -> bool:
    turned = expr.xreplace(rule)
    return bool(turned == expr or (turned - expr).expand() == 0)
