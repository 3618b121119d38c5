"""Kinks inside of curved functions: both sides of each, which are one function, or two cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sympy import Abs, Add, Expr, Function, Max, Min, Mul, Piecewise, S, cancel, exp, expand_power_exp, tanh

from symcavity.algebra.signs import sign_of
from symcavity.model.composition import Rules
from symcavity.model.quantities import Quenched, SiteQuantity


def by_sides(body: Expr, moving: Sequence[Expr]) -> Expr:
    """Return a body without kinks inside of curved functions, as far as two sides of a line decide them.

    ``Max(0, -u) + log(1 + exp(-Abs(u)))`` is ``log(1 + exp(-u))`` on both sides, and a logarithm of exponentials
    with its largest exponent in front is one function as well. Others are cases, unless each term is convex as it
    is: what bends at one place is taken together, for a slope that falls there in one term rises in another.

    Parameters
    ----------
    body : Expr
        What is summed over sites.
    moving : sequence of Expr
        All that varies in it.
    """
    curved = [f for f in body.atoms(Function) if not isinstance(f, Abs | Max | Min | Piecewise)]
    kinks = {k for k in body.atoms(Abs, Max, Min) if any(f.has(k) for f in curved) and k.has(*moving)}
    for kink in sorted(kinks, key=str):
        if body.has(kink):
            body = _decided(kink, body, moving)
    return body


def _decided(kink: Expr, body: Expr, moving: Sequence[Expr]) -> Expr:
    """A body in which a kink, and all others at its place, are decided."""
    if len(kink.args) > 2:
        sides, place = [{kink: a} for a in kink.args], None
    else:
        sides, place = _at_one_place(kink, body, moving)
    bent = [term for term in Add.make_args(body) if term.has(*sides[0])]
    pieces = [Add(*bent).xreplace(side) for side in sides]
    if all(_are_one(a, b, moving) for a, b in pairwise(pieces)):
        found = min(pieces, key=lambda piece: (piece.count_ops(), str(piece)))
    elif place is None or all(Rules(moving)(term).convex for term in bent):
        return body  # a kink inside of a function that rises, as of exp(|u|), is a kink of it
    else:
        found = Piecewise((pieces[1], place < 0), (pieces[0], True))
    return Add(found, *(term for term in Add.make_args(body) if term not in bent))


def _are_one(first: Expr, other: Expr, moving: Sequence[Expr]) -> bool:
    """Whether two pieces have the same slopes everywhere; where they meet, they have the same value."""
    gap = (first - other).replace(tanh, lambda u: (exp(u) - exp(-u)) / (exp(u) + exp(-u)))
    return all(cancel(expand_power_exp(gap.diff(m))) == 0 for m in moving)


def _at_one_place(kink: Expr, body: Expr, moving: Sequence[Expr]) -> tuple[list[dict[Expr, Expr]], Expr]:
    """What a kink and others at its place are on both sides; and what is positive on the first of them."""
    others = sorted((k for k in body.atoms(Abs, Max, Min) if k.has(*moving) and len(k.args) < 3), key=str)
    places = [_gap(k) for k in others if not isinstance(k, Abs)]  # these bend where a label says
    for place in (*places, _gap(kink)):
        found = {k: sides for k in others for sides in _sides(k, place, moving)}
        if kink in found:
            break
    return [{k: sides[n] for k, sides in found.items()} for n in range(2)], place


def _gap(kink: Expr) -> Expr:
    """What decides between the two pieces of a kink, by its sign."""
    return kink.args[0] if isinstance(kink, Abs) else kink.args[0] - kink.args[1]


def _sides(kink: Expr, place: Expr, moving: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """A kink where something is positive, and where it is negative; nothing where another sign decides."""
    ratio = cancel(_gap(kink) / place)
    sign = None if ratio.has(*moving) else sign_of(ratio)
    if isinstance(kink, Abs):
        if sign in (1, -1):
            yield sign * kink.args[0], -sign * kink.args[0]
        elif not ratio.has(*moving) and _is_sign(ratio):
            yield place, -place
    elif sign in (1, -1):
        yield kink.args if isinstance(kink, Max) == (sign == 1) else kink.args[::-1]


def _is_sign(ratio: Expr) -> bool:
    """Whether a product of labels is one or minus one, by their laws."""
    bases = [factor.as_base_exp()[0] for factor in Mul.make_args(ratio)]
    laws = [b.family.few if isinstance(b, SiteQuantity) and isinstance(b.family, Quenched) else (b,) for b in bases]
    return all(law and all(abs(value) == S.One for value in law) for law in laws)
