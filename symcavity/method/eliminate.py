"""Close the equations: eliminate what stands linearly, keep the core that needs a root finder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from sympy import Dummy, Expr, Mul, S, Symbol, fraction
from sympy.polys.polyerrors import PolynomialError

from symcavity.algebra.factors import factor_list, together
from symcavity.algebra.nonzero import bends
from symcavity.algebra.signs import sign_given, sign_of
from symcavity.method.tidy import LARGEST, Masks, joined, shortest, size, tidy_arguments

MODERATE = 60  # operations of a slope, above which its sign is not sought


@dataclass(repr=False)
class Closed:
    """The closed system after elimination.

    Attributes
    ----------
    definitions : dict
        Eliminated unknowns, each by an expression in those that are eliminated after it and in the core.
    core : list of Expr
        Expressions that vanish.
    origins : list of int
        For each of the core, which of the given equations it came from.
    nonzero : list of Expr
        Factors that were divided out because they do not vanish.
    positive : tuple of Expr
        Denominators that the derivation took as positive: they are tested at the root.
    """

    definitions: dict[Symbol, Expr] = field(default_factory=dict)
    core: list[Expr] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    nonzero: list[Expr] = field(default_factory=list)
    positive: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        lines = [f"{symbol} = {value}" for symbol, value in self.definitions.items()]
        return "\n".join([*lines, *(f"0 = {expr}" for expr in self.core)])

    __repr__ = __str__

    def explicit(self, symbol: Symbol) -> Expr:
        """An unknown, with everything that was eliminated after it put in."""
        expr = self.definitions[symbol]
        names = list(self.definitions)
        for later in names[names.index(symbol) + 1 :]:
            if expr.has(later):
                expr = tidy_arguments(expr.xreplace({later: self.definitions[later]}))
        return expr


def numerator(expr: Expr, nonzero: Sequence[Expr], positive: Sequence[Expr] = ()) -> Expr:
    """The numerator of an expression over a common denominator, without factors that cannot vanish.

    What is left of an equation that only such factors could solve is its numerator as it is.
    """
    masks = Masks()
    top, _ = fraction(together(masks.hide(expr)))
    if size(top) > LARGEST:
        return masks.show(top)
    hidden = [masks.hide(e) for e in nonzero]
    above = [masks.hide(e) for e in positive]

    def known(factor: Expr) -> bool:
        """Whether it is a factor of what does not vanish, up to its sign."""
        some = (e for e in hidden if factor.free_symbols <= e.free_symbols)
        return any(factor in _factors(e) for e in some)

    try:
        constant, factors = factor_list(top)
    except PolynomialError:
        return masks.show(top)
    kept = [
        factor
        for factor, _ in factors
        if not known(factor.expand()) and sign_given(factor, above) not in (1, -1)
    ]
    if not kept and factors:
        return masks.show(top)
    return masks.show(Mul(*kept) if kept else constant)


@lru_cache(maxsize=1024)
def _factors(expr: Expr) -> frozenset[Expr]:
    """The factors of a numerator, none of which vanishes where it does not, multiplied out and of either sign."""
    top, _ = fraction(together(expr))
    found = [top]
    if size(top) <= LARGEST:
        with suppress(PolynomialError):
            found += [f for f, _ in factor_list(top)[1]]
    return frozenset(way.expand() for f in found for way in (f, -f))


def linear_solution(expr: Expr, symbol: Symbol) -> tuple[Expr, Expr] | None:
    """Return (solution, slope) of ``expr = 0`` for a symbol that stands linearly, else None."""
    found = _line(expr, symbol)
    if found is None:
        return None
    rest, slope, masks = found
    return masks.show(joined(-rest / slope)), masks.show(slope)


def _undivided(bare: Expr, symbol: Symbol) -> tuple[Expr, ...]:
    """The solution of an equation as it stands, whose denominators are not multiplied out; none if it is not linear."""
    masks = Masks()
    hidden = masks.hide(bare)
    if any(node.has(symbol) for node in masks._marks):  # noqa: SLF001 - the class above
        return ()
    wholes: dict[Expr, Dummy] = {}

    def marked(node: Expr) -> Expr:
        if not node.args:
            return node
        node = node.func(*map(marked, node.args))
        if not (node.is_Pow and node.base.is_Add and node.exp.is_Integer and node.exp.is_negative):
            return node
        return wholes.setdefault(node.base, Dummy("d", positive=True)) ** node.exp

    hidden = marked(hidden)
    slope = hidden.diff(symbol)
    if slope == 0 or slope.has(symbol) or any(whole.has(symbol) for whole in wholes):
        return ()
    found = joined(-hidden.xreplace({symbol: S.Zero}) / slope)
    for whole, mark in reversed(wholes.items()):
        found = found.xreplace({mark: whole})
    return (masks.show(found),)


@lru_cache(maxsize=1024)
def _line(expr: Expr, symbol: Symbol) -> tuple[Expr, Expr, Masks] | None:
    """What stands beside a symbol in an expression that is linear in it, and the factor of the symbol."""
    if not expr.has(symbol):
        return None
    masks = Masks()
    hidden = masks.hide(expr)
    if any(node.has(symbol) for node in masks._marks):  # noqa: SLF001 - the class above
        return None
    if bends(hidden, symbol):  # multiplying out takes longer
        return None
    wide = hidden.expand()
    slope = wide.coeff(symbol, 1)
    rest = wide.coeff(symbol, 0)
    if slope == 0 or slope.has(symbol) or (wide - slope * symbol - rest).expand() != 0:
        return None
    return rest, slope, masks


def multiples(rows: Mapping[Symbol, Expr], parameters: Collection[Symbol]) -> dict[Symbol, Expr]:
    """The symbols whose right-hand sides are multiples of earlier ones, by parameters that do not vanish.

    Parameters
    ----------
    rows : mapping
        Right-hand sides by their symbols.
    parameters : collection of Symbol
        What is given.
    """

    def is_known(factor: Expr) -> bool:
        base = factor.as_base_exp()[0]
        return bool((base.is_Number or base in parameters) and factor.is_nonzero)

    first: dict[Expr, tuple[Symbol, Expr]] = {}
    same: dict[Symbol, Expr] = {}
    for symbol, value in rows.items():
        front = Mul(*filter(is_known, Mul.make_args(value)))
        one, share = first.setdefault(value / front, (symbol, front))
        if one != symbol:
            same[symbol] = front / share * one
    return same


def eliminate(
    equations: Sequence[Expr],
    unknowns: Sequence[Symbol],
    last: Iterable[Symbol] = (),
    same: Mapping[Symbol, Expr] | None = None,
    positive: Sequence[Expr] = (),
) -> Closed:
    """Eliminate unknowns that stand linearly in some equation, the simplest first.

    Parameters
    ----------
    equations : sequence of Expr
        Expressions that vanish.
    unknowns : sequence of Symbol
        What may be eliminated.
    last : iterable of Symbol
        Unknowns to solve for only after all others, such as the load alpha.
    same : mapping, optional
        Unknowns that are others from the start, but for parameters; none of ``equations`` is theirs.
    positive : sequence of Expr
        Denominators that are positive at the root.
    """
    same = dict(same or {})
    closed = Closed(dict(same), positive=tuple(p.xreplace(same) for p in positive))

    def reduced(expr: Expr) -> tuple[Expr, Expr]:
        """An expression that vanishes, as it came and as a numerator."""
        return expr, numerator(expr, closed.nonzero, closed.positive)

    left = [reduced(tidy_arguments(e.xreplace(same))) for e in equations]
    origins = list(range(len(left)))
    every = [*unknowns, *last]
    solved: dict[tuple[Expr, Symbol], tuple[Expr, Expr] | None] = {}
    # what is left without the load may be simple where it was not before
    for names in (list(unknowns), list(last), list(unknowns)):
        remaining = [s for s in names if s not in closed.definitions]
        while (best := _simplest([top for _, top in left], remaining, every, closed.positive, solved)) is not None:
            k, symbol, solution = best
            if size(solution) > MODERATE:
                solution = shortest(solution, *_undivided(left[k][0], symbol))
            closed.definitions[symbol] = solution
            closed.nonzero = [e.xreplace({symbol: solution}) for e in closed.nonzero]
            if symbol.is_nonzero:
                closed.nonzero.append(fraction(together(solution))[0])
            closed.positive = tuple(p.xreplace({symbol: solution}) for p in closed.positive)
            remaining.remove(symbol)
            del left[k], origins[k]
            left = [
                reduced(
                    tidy_arguments(
                        (top if size(top) <= 2 * size(bare) else bare).xreplace({symbol: solution})
                    )
                )
                for bare, top in left
            ]
    for (bare, top), origin in zip(left, origins, strict=True):
        if top != 0:
            closed.core.append(top if size(top) <= 2 * size(bare) else bare)
            closed.origins.append(origin)
    return closed


def _simplest(
    left: Sequence[Expr],
    remaining: Sequence[Symbol],
    unknowns: Sequence[Symbol],
    positive: Sequence[Expr],
    solved: dict[tuple[Expr, Symbol], tuple[Expr, Expr] | None],
) -> tuple[int, Symbol, Expr] | None:
    """The simplest (equation, unknown, solution) among those that are linear, and not too long to be tried."""
    lines = []
    for k, expr in enumerate(left):
        for n, symbol in enumerate(remaining if size(expr) <= 2 * LARGEST else ()):
            if (line := _line(expr, symbol)) is not None:
                rest, slope = (line[2].show(part) for part in line[:2])
                # what stands in one of them only is left in their quotient
                others = len((rest.free_symbols ^ slope.free_symbols).intersection(unknowns))
                elsewhere = sum(other.has(symbol) for other in left) - 1
                lines.append((others * elsewhere, k, n, elsewhere, slope))
    best: tuple[tuple[bool, int, bool, int, int, int], Symbol, Expr] | None = None
    for least, k, n, elsewhere, slope in sorted(lines, key=lambda line: line[:3]):
        if any(f.as_base_exp()[0].is_Symbol and sign_of(f) is None for f in Mul.make_args(slope)):
            continue  # a factor of either sign may be zero
        if any(not f.has(remaining[n]) and sign_of(f) is None for f in Mul.make_args(left[k])):
            continue  # then the equation says nothing of the other factor
        proved = size(slope) <= MODERATE and bool(sign_given(slope, positive))
        # a sum of open sign may cancel at the root: then the quotient says nothing
        doubtful = not proved and slope.is_Add
        if best is not None and best[0][:3] < (doubtful, least, not proved):
            continue
        symbol = remaining[n]
        if (left[k], symbol) not in solved:
            solved[left[k], symbol] = linear_solution(left[k], symbol)
        found = solved[left[k], symbol]
        if found is None or (found[0] == 0 and (symbol.is_nonzero or not proved)):
            continue  # the other factor of a product may vanish
        others = len(found[0].free_symbols.intersection(unknowns))
        score = (doubtful, others * elsewhere, not proved, size(found[0]), n, k)
        if best is None or score < best[0]:
            best = score, symbol, found[0]
    return (best[0][-1], *best[1:]) if best is not None and best[0][3] <= LARGEST else None
