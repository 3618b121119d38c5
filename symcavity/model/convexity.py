"""Proving convexity by rules; what they leave open, and chords refute, is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sympy import Eq, Expr, Float, GreaterThan, KroneckerDelta, Rational, S, Symbol, Tuple
from sympy.core.relational import Relational
from sympy.printing.codeprinter import PrintMethodNotImplementedError

from symcavity.algebra.compiled import compiled
from symcavity.algebra.door import as_sympy
from symcavity.algebra.signs import bare
from symcavity.errors import DeclarationError, NotConvex
from symcavity.model.composition import Rules
from symcavity.model.exact import is_random
from symcavity.model.kinds import N, P, alpha, in_units_of_n, is_index
from symcavity.model.quantities import Global, Quenched, Variable, site_quantities
from symcavity.model.ranges import margins, values_in_range
from symcavity.model.refusals import parameters_of

_DRAWS, _POINTS, _TOLERANCE = 12, 60, 1e-9
_CASES, _TRIES = 64, 100
_FAR = 50.0
_REACH, _DIGITS = 8.0, 50  # how far from zero short chords are laid; what is seen on them may be rounding


def sample_parameter(symbol: Symbol, rng: random.Random) -> float:
    """Draw a value of a parameter that respects its assumptions."""
    size = rng.choice([0.2, 0.7, 1.0, 1.7, 3.1]) * rng.uniform(0.8, 1.25)
    if symbol.is_integer:
        size = float(rng.randint(1, 6))
    if symbol.is_nonnegative:
        return size
    if symbol.is_nonpositive:
        return -size
    return size if rng.random() < 0.5 else -size


def sample_parameters(symbols: Sequence[Symbol], rng: random.Random, ranges: Sequence[Any]) -> list[float]:
    """Draw values of parameters that meet what is asked of them, unless that is hardly ever met."""
    return values_in_range(lambda: [sample_parameter(s, rng) for s in symbols], symbols, ranges)


def sample_quenched(family: Quenched, rng: random.Random) -> float:
    """Draw a value of a quenched parameter: from its finite law, where a zero says least, or from the reals."""
    if values := family.values:
        return float(rng.choice([v for v in values if v != 0] or values))
    law: Any = family.law
    positive = is_random(law) and law.pspace.domain.set.inf.is_nonnegative
    value = rng.gauss(0, 1.5)
    return abs(value) + 0.05 if positive or family.positive else value


def seeded(seed: int) -> random.Random:
    """The generator of seeded values at which expressions are looked at: sampling, not cryptography."""
    return random.Random(seed)  # noqa: S311


Chord = tuple[list[float], list[float]]


class Convexity(NamedTuple):
    """What is known of the convexity of a function.

    Attributes
    ----------
    proved : bool
        Whether it follows from how the function is put together; otherwise no chord was found to refute it.
    where : tuple of Relational
        What parameters have to meet for that, beside what is declared.
    """

    proved: bool
    where: tuple[Any, ...] = ()


def check_convex(
    expr: Expr, fields: Sequence[Symbol], where: str, ranges: Sequence[Any] = (), held: Sequence[Expr] = ()
) -> Convexity:
    """Return what is known of the convexity of a site's function; refuse what is refuted.

    Chords test what the rules of composition leave open, for values of labels one by one.

    Parameters
    ----------
    expr : Expr
        A function of the states of a site, its fields and the global variables.
    fields : sequence of Symbol
        The random fields that depend on states; other fields count as parameters.
    where : str
        What is being checked, for the message.
    ranges : sequence of Relational
        What the parameters have to meet.
    held : sequence of Expr
        What the constraints of the same sites keep from being negative: convex where these hold is enough.

    Raises
    ------
    NotConvex
        If midpoint convexity is violated for every draw of the parameters, at one value of the labels.
    """
    states: list[Any] = [*site_quantities(expr, Variable), *sorted(expr.atoms(Global), key=str)]
    states += [f for f in fields if expr.has(f)]
    held = [c for c in held if _is_bound(c, states, fields)]
    rules = Rules(states, margins(ranges), held)
    if not states or rules(expr).convex:
        return Convexity(True)
    asked: list[tuple[Any, ...] | None] = []
    for (case, *inside), at in by_labels(Tuple(expr, *held), states):
        here = [s for s in states if case.has(s)]
        inside = [c for c in inside if _is_bound(c, here, fields)]  # none is left of one that a label of zero takes out
        if Rules(here, margins(ranges), inside)(case).convex:
            continue
        draws = _hold_chords(case, here, where, ranges, at, inside)
        asked.append(_where_proved(case, here, ranges, draws, inside))
    needed = dict.fromkeys(r for conditions in asked for r in conditions or ())
    return Convexity(None not in asked, tuple(needed))


def _is_bound(held: Expr, states: Sequence[Any], fields: Sequence[Symbol]) -> bool:
    """Whether a constraint bounds the states of a function alone, on one side of a plane."""
    own = [*site_quantities(held, Variable), *held.atoms(Global), *(f for f in fields if held.has(f))]
    return bool(own) and {*own} <= {*states} and Rules(own)(held).affine


def _where_proved(
    expr: Expr,
    states: Sequence[Any],
    ranges: Sequence[Any],
    draws: Sequence[tuple[dict[Symbol, float], bool]],
    held: Sequence[Expr],
) -> tuple[Any, ...] | None:
    """What parameters have to meet so that rules prove a function convex; None where that is not found.

    Constants whose signs are open have those that they have wherever the function is convex.  Where it is not, some
    of these signs have to differ: a function that is convex elsewhere, too, keeps its values.
    """
    if all(convex for _, convex in draws):
        return None
    known = margins(ranges)
    rules = Rules(states, known, held)
    rules(expr)
    assumed: list[Expr] = []
    for constant in rules.open:
        signs = {_sign_at(constant, at) for at, convex in draws if convex}
        if signs in ({1}, {-1}):
            assumed.append(signs.pop() * constant)

    def proves(some: Sequence[Expr]) -> bool:
        return Rules(states, [*known, *some], held)(expr).convex

    if not proves(assumed):
        return None
    for constant in tuple(assumed):
        if proves(rest := [c for c in assumed if c != constant]):
            assumed = rest
    if any(all(_sign_at(constant, at) != -1 for constant in assumed) for at, convex in draws if not convex):
        return None
    return tuple(GreaterThan(bare(in_units_of_n(constant)), 0).simplify() for constant in assumed)


def _sign_at(constant: Expr, at: dict[Symbol, float]) -> int:
    """The sign of a constant at values of parameters; zero where it has no real value."""
    value = complex(constant.xreplace(at))
    return int(np.sign(value.real)) if value.imag == 0 and np.isfinite(value.real) else 0


def by_labels(expr: Any, states: Sequence[Any]) -> list[tuple[Any, str]]:
    """An expression at each value of the labels in it that have few, and of each test on labels; and those values."""
    cases = [(expr, "")]
    for q in site_quantities(expr, Quenched):
        if q.few and len(q.few) * len(cases) <= _CASES:
            cases = [(e.xreplace({q: v}), f"{at}, {q} = {v}") for e, at in cases for v in q.few]
    tests = {t for t in expr.atoms(Relational, KroneckerDelta) if not t.has(*states) and site_quantities(t)}
    for test in sorted(tests, key=str):
        if 2 * len(cases) <= _CASES:
            cases = [case for e, at in cases for case in (_decided(e, at, test) if e.has(test) else [(e, at)])]
    return list(dict.fromkeys(cases))


def _decided(expr: Expr, at: str, test: Any) -> list[tuple[Expr, str]]:
    """An expression where a test on labels holds, and where it does not."""
    is_delta = isinstance(test, KroneckerDelta)
    true, false = (S.One, S.Zero) if is_delta else (S.true, S.false)
    holds = expr.xreplace({test: true})
    if isinstance(test, Eq | KroneckerDelta) and any(a.is_number for a in test.args):
        number, label = sorted(test.args, key=lambda a: not a.is_number)
        holds = holds.xreplace({label: number})
    return [(holds, f"{at}, {Eq(*test.args) if is_delta else test}"), (expr.xreplace({test: false}), at)]


def _hold_chords(
    expr: Expr, states: Sequence[Any], where: str, ranges: Sequence[Any], at: str, held: Sequence[Expr]
) -> list[tuple[dict[Symbol, float], bool]]:
    """Refuse what lies above its chords for every draw of the parameters; return the draws, and which are convex."""
    if not states:
        return []
    whole = Tuple(expr, *held)
    quenched = site_quantities(whole, Quenched)
    parameters = sorted((parameters_of(whole) | whole.atoms(Symbol) & {N, P, alpha}) - set(states), key=str)
    arguments = [*states, *quenched, *parameters]

    def fine(*values: Any) -> Expr:
        # no rational number to the power of another: its numerator would be taken to pieces
        numbers = (Float(as_sympy(v), _DIGITS) for v in values)
        return expr.xreplace(dict(zip(arguments, numbers, strict=True))).evalf(_DIGITS)

    try:
        call = compiled(arguments, expr, "math")
    except (PrintMethodNotImplementedError, ValueError):
        raise DeclarationError(
            f"{where[0].upper()}{where[1:]} contains a function without numerical values: {expr}.",
            "elementary functions, Max, Min, Abs, Piecewise",
            "write the function out",
        ) from None
    bounds = [compiled(arguments, c, "math") for c in held]
    rng = seeded(20)
    witness: list[float] | None = None
    verdicts: list[tuple[list[float], bool]] = []
    for _ in range(_DRAWS):
        values = sample_parameters(parameters, rng, ranges)
        tail = [*(sample_quenched(q.family, rng) for q in quenched), *values]
        found = _violation(call, fine, _inside(bounds, states, tail, rng), tail)
        witness = found or witness
        verdicts.append((values, found is None))
    point = ", ".join(f"{s} = {v:.3g}" for s, v in zip(states, witness or (), strict=False))
    if not any(convex for _, convex in verdicts):
        raise NotConvex(
            f"{where[0].upper()}{where[1:]} is not convex: {expr} bends downwards near {point}{at}.",
            "objectives that are convex where the constraints of each site hold; constraints g >= 0 with concave g",
            "check the sign; Problem(...) instead is the theory of the lowest minimum",
        )
    for k, parameter in enumerate(parameters):
        signs = {(values[k] > 0, convex) for values, convex in verdicts}
        if len(signs) == 2 and len({positive for positive, _ in signs}) == len({good for _, good in signs}) == 2:
            word = "positive" if (True, True) in signs else "negative"
            raise NotConvex(
                f"{where[0].upper()}{where[1:]} is convex only if {parameter} is {word}, and its sign is not declared.",
                "parameters with declared signs, where the problem depends on them",
                f'{parameter} = Symbol("{parameter}", {word}=True)',
            )
    return [(dict(zip(parameters, values, strict=True)), convex) for values, convex in verdicts]


def changes(
    expr: Expr, g: Expr, ranges: Sequence[Any], steps: Callable[[random.Random], Sequence[tuple[float, float]]]
) -> Iterator[float]:
    """By how much a site's function changes over steps of a global variable, at seeded points where it has values."""
    quantities = site_quantities(expr)
    symbols = sorted((s for s in expr.free_symbols if not is_index(s) and s != g), key=str)
    call = compiled([g, *quantities, *symbols], expr, "math")
    rng = seeded(21)
    for _ in range(_POINTS if expr.has(g) else 0):
        drawn = [(q, isinstance(q.family, Quenched)) for q in quantities]
        known = [sample_quenched(q.family, rng) if fixed else rng.gauss(0, 1.5) for q, fixed in drawn]
        known += sample_parameters(symbols, rng, ranges)
        for low, high in steps(rng):
            try:
                yield call(high, *known) - call(low, *known)
            except (ArithmeticError, ValueError, TypeError):
                continue


def takes_both_signs(expr: Expr, ranges: Sequence[Any]) -> bool:
    """Whether an expression of parameters alone is positive for some of their values, and negative for others."""
    symbols, rng = sorted(expr.free_symbols, key=str), seeded(22)
    call = compiled(symbols, expr, "math")
    found = [call(*sample_parameters(symbols, rng, ranges)) for _ in range(_DRAWS if symbols else 0)]
    return any(v > 0 for v in found) and any(v < 0 for v in found)


def check_increasing(expr: Expr, g: Expr, meaning: Expr, where: str, ranges: Sequence[Any]) -> None:
    """Raise NotConvex if a site's function falls with a convex average of all sites somewhere."""

    def steps(rng: random.Random) -> list[tuple[float, float]]:
        low = rng.uniform(0.3, 2)
        return [(low, 1.5 * low)]

    if any(change < -_TOLERANCE for change in changes(expr, g, ranges, steps)):
        raise NotConvex(
            f"{where[0].upper()}{where[1:]} falls with {meaning}, which is convex.",
            "norms and averages of convex functions where the problem grows with them, "
            "as in 1 - h[mu] + epsilon*sqrt(Sum(w[i]**2, (i, 1, N))/N) with a positive epsilon",
            "check the signs, and declare those of parameters; any other range of a parameter is a constraint, "
            "as in subject_to=[tau < 1]",
        )


def pulls(exprs: Sequence[Expr], g: Expr, ranges: Sequence[Any]) -> set[bool]:
    """Whether functions of a site grow and fall with a global variable, far out to both sides."""
    far = [(-_FAR, 0.0), (0.0, _FAR)]
    found = (c for e in exprs for c in changes(e, g, ranges, lambda _: far))
    return {change > 0 for change in found if abs(change) > _TOLERANCE}


def _inside(bounds: Sequence[Any], states: Sequence[Any], tail: list[float], rng: random.Random) -> list[Chord]:
    """Chords along which constraints hold; chords anywhere where hardly any point meets these."""

    def holds(point: list[float]) -> bool:
        return all(bound(*point, *tail) >= 0 for bound in bounds)

    every = list(_chords(states, rng, holds))
    kept = [ends for ends in every if all(map(holds, ends))]
    return kept or every


def _violation(
    call: Any, fine: Callable[..., Expr], chords: Iterable[Chord], tail: list[float]
) -> list[float] | None:
    """Return a midpoint where the function lies above its chord, in double and with more digits; or None."""
    for a, b in chords:
        if _is_above(call, [*a, *tail], [*b, *tail]):
            one, other = ([Rational(v) for v in [*ends, *tail]] for ends in (a, b))
            if _is_above(fine, one, other):
                return [(p + q) / 2 for p, q in zip(a, b, strict=True)]
    return None


def _is_above(call: Any, a: list[Any], b: list[Any]) -> bool:
    """Whether a function lies above its chord in the middle; not where it has no value."""
    try:
        ends, centre = (call(*a) + call(*b)) / 2, call(*((p + q) / 2 for p, q in zip(a, b, strict=True)))
        return bool(centre > ends + _TOLERANCE * (1 + abs(ends) + abs(centre)))
    except (ArithmeticError, ValueError, TypeError):
        return False


def _chords(states: Sequence[Any], rng: random.Random, holds: Callable[[list[float]], bool]) -> Iterator[Chord]:
    """Ends of chords: far ones at random, and short ones all along each state, for what bends down slightly.

    They begin at points at which constraints hold, if many tries find one.
    """

    def draw(scale: float) -> list[float]:
        for _ in range(_TRIES):
            free = [rng.gauss(0, scale) for _ in states]
            point = [abs(v) if s.is_nonnegative else v for s, v in zip(states, free, strict=True)]
            if holds(point):
                break
        return point

    for _ in range(_POINTS):
        scale = rng.choice([0.3, 1.0, 4.0])
        yield draw(scale), draw(scale)
    for k, state in enumerate(states):
        beside = draw(1.0)
        for step in range(0 if state.is_nonnegative else -_POINTS, _POINTS):
            ends = (_REACH * step / _POINTS, _REACH * (step + 2) / _POINTS)
            first, second = ([*beside[:k], end, *beside[k + 1 :]] for end in ends)
            yield first, second
