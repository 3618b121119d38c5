"""Functions by cases whose slope jumps, written by Max, of which each has a multiplier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations, pairwise
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Eq,
    Expr,
    GreaterThan,
    Heaviside,
    KroneckerDelta,
    LessThan,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Sum,
    cancel,
    expand_mul,
    sign,
    simplify,
)
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.piecewise import NotPiecewisePolynomial, Undetermined, to_piecewise_polynomial
from symcavity.algebra.quadrature import break_points
from symcavity.errors import UnsupportedLaw
from symcavity.model.composition import Rules
from symcavity.model.quantities import Field, Global, Variable, site_quantities
from symcavity.model.ranges import RELATIONS
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.rewritings.curved_kinks import by_sides
from symcavity.model.rewritings.curved_pieces import by_bends, by_places, quadratic_line, second_slope
from symcavity.model.rewritings.unfolded import one_by_one, unfolded
from symcavity.model.site_sums import is_total, outer_sums

CASES = (Piecewise, Heaviside, sign)
SQUARE = 3  # coefficients, from the constant on; of higher powers the law is not linear


class Kinks(Rewriting):
    """The objective, by Max where its slope jumps: each of them has a multiplier of its own.

    A bound on the square of a linear combination is two bounds on the combination: no law is quadratic for it.
    """

    key = "kinks"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with an objective by kinks."""
        objective = declaration.objective
        if objective is None:
            return declaration
        entries = tuple(chain.from_iterable(map(bounds_on_lines, declaration.entries)))
        return replace(declaration, objective=by_kinks(objective), entries=entries)


def by_kinks(objective: Expr) -> Expr:
    """Write what is summed over sites without cases where the slope jumps between them.

    ``Piecewise((tau*r, r >= 0), ((tau - 1)*r, True))`` and ``r*(tau - Heaviside(-r))`` are ``(tau - 1)*r + Max(0, r)``:
    polynomials on both sides of a break are that on one, plus powers of the positive part of what lies beyond.

    Parameters
    ----------
    objective : Expr
        Sums over sites; a Piecewise that is smooth, and cases that no state decides, stay as they are.
    """
    cased = [total for total in outer_sums(objective) if total.function.has(*CASES, Abs, Max, Min)]
    return objective.xreplace(
        {total: Add(*(Sum(t, *total.limits) for t in one_by_one(_rewritten(total.function)))) for total in cased}
    )


def bounds_on_lines(entry: Any) -> tuple[Any, ...]:
    """A bound on a quadratic function of one linear combination at a site as two on this; others as they are."""
    if not isinstance(entry, GreaterThan | LessThan) or any(map(is_total, outer_sums(entry))):
        return (entry,)
    parts = (*sorted(entry.atoms(Sum), key=str), *site_quantities(entry))
    marks: dict[Expr, Expr] = {p: Dummy(real=True) for p in parts if _varies(p)}
    gap = (entry.gts - entry.lts).xreplace(marks)
    bound, size = _line(gap, [*marks.values(), *gap.atoms(Global)]) or (S.Zero, S.Zero)
    if not isinstance(size, Abs) or bound == 0:
        return (entry,)
    back = {mark: part for part, mark in marks.items()}
    line, most = size.args[0].xreplace(back), bound.xreplace(back)
    return GreaterThan(line, -most, evaluate=False), LessThan(line, most, evaluate=False)


def _varies(part: Expr) -> bool:
    return bool(site_quantities(part, Variable, Field))


def _rewritten(body: Expr) -> Expr:
    body = body.xreplace({node: _of_given_cases(node) for node in body.atoms(Piecewise)})
    norms = [p for p in body.atoms(Pow) if not p.exp.is_Integer and is_total(p.base)]
    body = body.xreplace(_in_one_form(body.atoms(Sum)))
    sums = sorted((*norms, *body.atoms(Sum)), key=str)
    marks: dict[Expr, Expr] = {p: Dummy(real=True) for p in (*sums, *site_quantities(body)) if _varies(p)}
    kept = list(marks.values())
    marks |= {g: Dummy(positive=True) for g in body.atoms(Global) if g.is_bounded}  # zero is the limit
    moving = [*marks.values(), *body.atoms(Global)]
    marked = _by_lines(by_sides(by_places(body.xreplace(marks), moving), moving), moving)
    terms = [_term(term, moving, kept) for term in Add.make_args(unfolded(_apart(marked, moving), moving))]
    stepped = [t for t in terms if any(s.has(*moving) for s in t.atoms(Heaviside, sign))]
    if len(stepped) > 1:  # of which each jumps by itself
        terms = [*(t for t in terms if t not in stepped), _term(Add(*stepped), moving, kept)]
    terms = _together(terms, moving, kept)
    return Add(*terms).xreplace({mark: p for p, mark in marks.items()})


def _of_given_cases(cases: Piecewise) -> Expr:
    """Cases that given fields decide by positive parts of these; of sizes, which SymPy takes apart, inside of one size.

    ``Abs(Piecewise((0, u < 0), (u, True)) - h)`` is to SymPy ``Piecewise((Abs(h), u < 0), (Abs(u - h), True))``.
    """
    values = [value for value, _ in cases.args]
    if any(map(_varies, (test for _, test in cases.args))):
        return cases
    if not any(map(_varies, values)):
        return _by_parts(cases)
    if not all(isinstance(value, Abs) for value in values):
        return cases
    states = site_quantities(cases, Variable, Field)
    parts = [value.args[0].as_independent(*states, as_Add=True)[::-1] for value in values]
    moving = parts[0][0]
    given = [still * (1 if own == moving else -1) for own, still in parts if own in (moving, -moving)]
    if len(given) < len(parts):
        return cases
    joined = _by_parts(Piecewise(*((still, test) for still, (_, test) in zip(given, cases.args, strict=True))))
    return cases if joined.has(Piecewise) else Abs(moving + joined)


def _by_parts(cases: Piecewise) -> Expr:
    """Cases of one given field that meet, and are linear in it, by positive parts: what is averaged has then no cases.

    ``Piecewise((-1, u < -1), (1, u > 1), (u, True))`` is ``-1 + Max(0, u + 1) - Max(0, u - 1)``.
    """
    fields = list(cases.atoms(Sum))
    if len(fields) != 1:
        return cases
    z = Dummy("z", real=True)
    try:
        breaks, pieces = to_piecewise_polynomial(cases.xreplace({fields[0]: z}), z)
    except (NotPiecewisePolynomial, UnsupportedLaw):
        return cases
    jumps = _jumps(breaks, pieces, z, 0)
    if any(row[0] != 0 or len(row) > SQUARE - 1 for *_, row in jumps):
        return cases
    parts = (c * Max(0, z - t) for t, _, (_, *rest) in jumps for c in rest)
    return Add(pieces[0], *parts).xreplace({z: fields[0]})


def _together(terms: list[Expr], moving: list[Expr], kept: list[Expr]) -> list[Expr]:
    """Terms of which one is not convex for itself, with all others that have kinks in the same variables."""
    rules = Rules(moving)
    felt = {t: frozenset(m for k in t.atoms(*CASES, Abs, Max, Min) for m in moving if k.has(m)) for t in terms}
    for key in dict.fromkeys(felt[t] for t in terms if felt[t] and not rules(t).convex):
        group = [t for t in terms if felt[t] == key]
        joined = _on_a_line(Add(*group), moving, kept, smooth=len(group) > 1)
        if joined not in group and rules(joined).convex:
            terms = [*(t for t in terms if t not in group), joined]
    return terms


def _in_one_form(sums: Iterable[Sum]) -> dict[Expr, Expr]:
    """For sums that are others in another form, or their negatives: the first of each such."""
    seen: dict[tuple[Expr, ...], Sum] = {}
    rule: dict[Expr, Expr] = {}
    for total in sorted(sums, key=str):
        for sign_ in (1, -1):
            key = (expand_mul(sign_ * total.function), *total.limits)
            if key in seen:
                rule[total] = sign_ * seen[key]
                break
        else:
            seen[(expand_mul(total.function), *total.limits)] = total
    return rule


def _by_lines(body: Expr, moving: list[Expr]) -> Expr:
    """A body whose cases are decided by what is linear in what varies: ``r**2 <= d**2`` is ``Abs(r) <= d``."""
    conditions = [c for node in body.atoms(Piecewise) for _, c in node.args]
    gaps = {test: test.lhs - test.rhs for c in conditions for test in c.atoms(*RELATIONS)}
    gaps |= {node: node.args[0] for node in body.atoms(Heaviside, sign)}
    lines = {node: _line(gap, moving) for node, gap in gaps.items()}
    rule = {}
    for node, (above, below) in ((node, line) for node, line in lines.items() if line is not None):
        is_test = isinstance(node, Relational)
        rule[node] = node.func(above, below) if is_test else node.func(above - below, *node.args[1:])
    return body.xreplace(rule) if rule else body


def _line(gap: Expr, moving: list[Expr]) -> tuple[Expr, Expr] | None:
    """Two sides whose difference has the sign of a quadratic function of one linear combination: its size, a bound."""
    if (found := quadratic_line(gap, moving)) is not None:
        half, line, bound = found
        return (Abs(line), bound) if half.is_positive else (bound, Abs(line))
    half = second_slope(gap, moving)
    return None if half is None or half.is_positive or half.is_negative else _labelled_line(gap, moving, half)


def _labelled_line(gap: Expr, moving: list[Expr], half: Expr) -> tuple[Expr, Expr] | None:
    """The same where a label multiplies all that varies, and so stands squared before its square."""
    label = Mul(*(base ** (power / 2) for base, power in half.as_powers_dict().items() if power.is_even))
    scaled = gap.xreplace({m: m / label for m in moving}).expand()
    if label.is_number or scaled.has(*label.free_symbols) or (line := _line(scaled, moving)) is None:
        return None
    above, below = (side.xreplace({m: label * m for m in moving}) for side in line)
    return above, below


def _term(term: Expr, moving: list[Expr], marks: list[Expr]) -> Expr:
    """One term without cases that states decide."""
    powers = term.atoms(Pow)  # of the largest of three, a power is one for each piece
    smooth = any(
        _is_curved(node, moving) or (len(node.args) > 2 and any(p.base.has(node) for p in powers))
        for node in term.atoms(Max, Min)
    )
    return _on_a_line(term, moving, marks, smooth=smooth) if smooth or _is_cased(term, moving) else term


def _on_a_line(term: Expr, moving: list[Expr], marks: list[Expr], *, smooth: bool = False) -> Expr:
    """A term by the first argument of its cases that leaves a polynomial on each side of every break.

    Expressions without a kink are unchanged, unless they are to be written by smooth powers.
    """
    for gap in _gaps(term, moving, marks):
        z = Dummy("z", real=True)
        inner = next(m for m in moving if gap.has(m))
        rate = gap.diff(inner)
        along = term.xreplace({gap: z}).xreplace({inner: (z - (gap - rate * inner).expand()) / rate})
        try:
            breaks, pieces = to_piecewise_polynomial(along, z)
        except NotPiecewisePolynomial as open_:
            _refuse_open(open_, gap)
            bent = _bent(term, gap, inner, marks)
            if bent is not None:
                return bent
            continue
        every = [_jumps(breaks, pieces, z, base) for base in range(len(pieces))]
        if any(c.has(*marks) for _, _, row in every[0] for c in row) or any(row[0] != 0 for _, _, row in every[0]):
            continue
        is_stepped = any(s.has(*moving) for s in term.atoms(Heaviside, sign))
        if is_stepped and not breaks and any(_is_alone(along, z, t, pieces[0]) for t in break_points(along, z)):
            continue  # sign(w)**2, one but for a point, has its lowest value there
        if smooth or is_stepped or any(row[1:2] != [0] for _, _, row in every[0]):
            # from the piece beyond whose ends nothing bends back
            concave = [sum(bool(c.is_negative) for _, _, row in jumps for c in row) for jumps in every]
            base = concave.index(min(concave))
            if any(row[1:2] not in ([], [0]) and len(row) > SQUARE for _, _, row in every[base]):
                ends = zip(breaks, pairwise(pieces), strict=True)
                bends = [(right - left).diff(z).xreplace({z: t}).expand() for t, (left, right) in ends]
                return by_bends([piece.xreplace({z: gap}) for piece in pieces], breaks, bends, gap)
            powers = ((t, way, n, c) for t, way, row in every[base] for n, c in enumerate(row) if c != 0)
            beyond = (c * Max(0, way * (gap - t)) ** n for t, way, n, c in powers)
            return Add(pieces[base].xreplace({z: gap}), *beyond)
    return term


def _bent(term: Expr, gap: Expr, inner: Expr, marks: list[Expr]) -> Expr | None:
    """Pieces that are no polynomials, as what is smooth and one positive part for each bend; None without a bend.

    ``Piecewise((0, r > 0), (exp(-r) - 1, True))`` is ``Piecewise((exp(-r) - 1 + r, r < 0), (0, True)) + Max(0, -r)``.
    """
    chosen: dict[Any, tuple[Expr, Expr]] = {}
    z, rate, which = Dummy("z", real=True), gap.diff(inner), S.Zero
    for node in sorted(term.atoms(*CASES), key=str):
        pieces = node.args
        if not isinstance(node, Piecewise):
            pieces = (1, node.args[0] > 0), (-1 if isinstance(node, sign) else 0, True)
        names = {Dummy(f"case_{k}", real=True): (node, as_sympy(value)) for k, (value, _) in enumerate(pieces)}
        which += Piecewise(*((name, test) for name, (_, test) in zip(names, pieces, strict=True)))
        chosen |= names
    place = (z - (gap - rate * inner).expand()) / rate
    try:
        breaks, regions = to_piecewise_polynomial(which.xreplace({gap: z}).xreplace({inner: place}), z)
    except NotPiecewisePolynomial:
        return None
    if any(not region.free_symbols <= set(chosen) for region in regions):
        return None  # a label decides between cases, too
    values = [term.xreplace(dict(chosen[name] for name in region.free_symbols)) for region in regions]
    if any(value.has(*CASES) for value in values):
        return None
    bends = []
    for t, (left, right) in zip(breaks, pairwise(values), strict=True):
        at = {inner: place.xreplace({z: t})}
        jump, bend = (simplify(e.xreplace(at)) for e in (right - left, (right - left).diff(inner) / rate))
        if jump != 0 or bend.has(*marks):
            return None
        bends.append(bend)
    if not any(bends) and not term.has(Heaviside, sign):
        return None
    return by_bends(values, breaks, bends, gap)


def _is_alone(along: Expr, z: Dummy, t: Expr, beside: Expr) -> bool:
    """Whether what goes on without a jump has another value at one point."""
    return bool(simplify((along - beside).xreplace({z: t})) != 0)


def _refuse_open(error: NotPiecewisePolynomial, line: Expr) -> None:
    """Refuse a bend that is there or not, as a global variable may be positive or negative: it is of no one form."""
    if isinstance(error, Undetermined) and error.kind == "constant":
        for g in sorted(error.expr.atoms(Global) - line.atoms(Global), key=str):
            raise UnsupportedLaw(
                f"Whether there is a bend, and where, depends on the sign of {g}, a variable that all sites share.",
                "bends that are there whatever the global variables are",
                f'if {g} is never negative: Global("{g}", positive=True)',
            )


def _jumps(
    breaks: list[Expr], pieces: list[Expr], z: Dummy, base: int
) -> list[tuple[Expr, int, list[Expr]]]:
    """What is added beyond each break, seen from one piece: where, to which side, and the powers of the distance."""
    out, u = [], Dummy()
    for k, (t, left, right) in enumerate(zip(breaks, pieces, pieces[1:], strict=False)):
        way = 1 if k >= base else -1
        added = cancel((way * (right - left)).xreplace({z: t + way * u}))
        out.append((t, way, added.as_poly(u).all_coeffs()[::-1]))
    return out


def _apart(body: Expr, moving: list[Expr]) -> Expr:
    """A body in which what labels decide is a factor, and cases that states decide too are decided by states alone."""
    for node in sorted(body.atoms(Piecewise), key=str):
        if _is_cased(node, moving):
            tests = (r for inner in node.atoms(Piecewise) for _, test in inner.args for r in test.atoms(Relational))
            test = min((r for r in tests if not r.has(*moving)), key=str, default=None)
            if test is not None:
                sides = ({test: S(now), test.negated: S(not now)} for now in (True, False))
                first, other = (node.xreplace(side) for side in sides)
                share = KroneckerDelta(*test.args) if isinstance(test, Eq) else Piecewise((1, test), (0, True))
                apart = body.xreplace({node: share * first + (1 - share) * other})
                return _apart(apart.expand(deep=False), moving)
    return body


def _is_cased(term: Expr, moving: list[Expr]) -> bool:
    """Whether states decide cases."""
    return any(_is_moved(node, moving) for node in term.atoms(*CASES))


def _is_curved(kink: Expr, moving: list[Expr]) -> bool:
    """Whether it is the largest or the smallest of what is not linear."""
    return any(power.base.has(*moving) for a in kink.args for power in a.atoms(Pow))


def _is_moved(node: Expr, moving: list[Expr]) -> bool:
    """Whether what varies decides which case holds."""
    return any(test.has(*moving) for _, test in node.args) if isinstance(node, Piecewise) else node.has(*moving)


def _gaps(term: Expr, moving: list[Expr], marks: list[Expr]) -> Iterator[Expr]:
    """What decides the cases of a term, if it is linear in what varies, or what it is a function of.

    Variables that all sites share may only move the places, of which those of the sites alone decide then.
    """
    for node in sorted(term.atoms(*CASES, Abs, Max, Min), key=str):
        if isinstance(node, Piecewise):
            sides = [(r.lhs, r.rhs) for _, test in node.args for r in test.atoms(Relational)]
        else:
            sides = list(combinations(node.args, 2)) if isinstance(node, Max | Min) else [(node.args[0], 0)]
        for first, second in sides:
            gap = (first - second).expand()
            for line in (gap, *(_combination(gap, moving) or _combination(gap, marks))):
                if line.has(*moving) and not any(line.diff(m).has(*moving) for m in moving):
                    yield line


def _combination(gap: Expr, moving: list[Expr]) -> list[Expr]:
    """The linear combination of what varies, of which something is a function: its slopes have fixed proportions."""
    slopes = {m: gap.diff(m) for m in moving if gap.has(m)}
    ratios = {m: cancel(slope / next(iter(slopes.values()))) for m, slope in slopes.items()}
    return [] if any(r.has(*moving) for r in ratios.values()) else [Add(*(r * m for m, r in ratios.items()))]
