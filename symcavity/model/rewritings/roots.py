"""Equations of a system that have several roots, and the bound of the state that says which of them is meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Dummy, Expr, Mul, S, limit

from symcavity.algebra.signs import weak_sign_of
from symcavity.errors import DeclarationError
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.quantities import Global, Quenched, SiteQuantity, site_quantities
from symcavity.model.ranges import RELATIONS
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.site_sums import outer_sums, own_states

SUPPORTED = "bounds of one state, n[i] >= 0, beside an equation that has a root there for every value of its field"


class Roots(Rewriting):
    """``n*(K - n - h) + m = 0`` with ``n >= 0`` is ``h = K - n + m/n``, which falls from infinity: it has one root.

    The field h, a sum over other sites, is what the equation is divided for.  Where the other side has no end at the
    bound, the state never reaches it; this is the pair of complementary quantities of which the first is positive.
    """

    key = "roots"

    def __init__(self, declaration: Declaration) -> None:
        """Read which root of each equation is meant.

        Raises
        ------
        DeclarationError
            For a condition of another form, and a bound at which the equation of its state does not end.
        """
        self.meant: list[tuple[Expr, Complementary]] = []
        self._entries = declaration.entries
        if declaration.objective is not None:
            return
        bounds = [e for e in declaration.entries if isinstance(e, RELATIONS)]
        others = [e for e in declaration.entries if e not in bounds]
        entries = [self._divided(e) if isinstance(e, Complementary) else e for e in others]
        for bound in bounds:
            state, gap = _bound(bound)
            held = [e for e in entries if isinstance(e, Equation) and state in own_states(e.difference)]
            if len(held) != 1:
                raise DeclarationError(
                    f"The condition {bound} bounds the state {state}, which {len(held)} equations hold.", SUPPORTED
                )
            above = _above(held[0], state, gap, bound)
            entries[entries.index(held[0])] = above
            if isinstance(above, Complementary):
                self.meant.append((held[0].difference, above))
        self._entries = tuple(entries)

    def _divided(self, pair: Complementary) -> Complementary:
        divided = _by_its_state(pair)
        if divided != pair:
            self.meant.append((pair.pair[1], divided))
        return divided

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration without bounds of states; those of a problem are constraints, and stay."""
        return replace(declaration, entries=self._entries)

    def steps(self, make: Any) -> list[Any]:
        """Each equation as the product of what does not vanish at the root that is meant, and of what does."""
        if not self.meant:
            return []
        meant = [(difference, pair, pair.pair[1]) for difference, pair in self.meant]
        claims = [Equation(left, _quotient(left, rest) * rest) for left, _, rest in meant if left != rest]
        data = {"pairs": [pair for _, pair in self.meant]}
        return [make(self.key, "roots", claims, data=data, rests_on=("problem",))]


def _quotient(difference: Expr, rest: Expr) -> Expr:
    """One expression by another, both with the same sums over other sites."""
    fields = {total: Dummy("h", real=True) for total in outer_sums(difference)}
    return (difference / rest).xreplace(fields).cancel().xreplace({h: total for total, h in fields.items()})


def _bound(bound: Any) -> tuple[SiteQuantity, Expr]:
    """The state that a condition bounds, and what is positive: ``n - a``, or ``b - n``."""
    gap = bound.gts - bound.lts if isinstance(bound, RELATIONS) else S.Zero
    states = own_states(gap)
    if len(states) == 1 and not outer_sums(gap) and not gap.has(Global):
        slope = gap.diff(states[0])
        if slope.is_positive or slope.is_negative:
            return states[0], (gap / abs(slope)).expand()
    raise DeclarationError(
        f"The condition {bound!r} is not supported.",
        f"Complementary(p, q), meaning 0 <= p ⊥ q >= 0; equations; ranges of parameters; {SUPPORTED}",
    )


def _above(equation: Equation, state: SiteQuantity, gap: Expr, bound: Any) -> Equation | Complementary:
    """An equation whose state is above a bound: as it stands, where it says so itself; else as a pair."""
    for one, other in ((equation.lhs, equation.rhs), (equation.rhs, equation.lhs)):
        explicit = one == state and state not in own_states(other)
        if explicit and weak_sign_of(_by_letters(gap.xreplace({state: other}))) == 1:
            return equation
    other = _by_field(equation.difference, state)
    end = _end(other, state, gap)
    if end is S.Infinity:
        other, end = Mul(S.NegativeOne, other).expand(), S.NegativeInfinity
    if end is S.NegativeInfinity:
        return Complementary(gap, other)
    raise DeclarationError(
        f"The condition {bound} stands beside the equation {equation}, which may have no root there.",
        SUPPORTED,
        f"if the state rests at its bound where there is none, Complementary({gap}, ...) in place of both; if the "
        "equation says that it is above, leave the condition out",
    )


def _by_its_state(pair: Complementary) -> Complementary:
    """A pair whose second member holds its state times a field, and is negative at the bound: divided by the state."""
    gap, other = pair.pair
    states = own_states(gap)
    if len(states) != 1 or outer_sums(gap) or gap.diff(states[0]) not in (S.One, S.NegativeOne):
        return pair
    slopes = _slopes(other, states[0])
    if not slopes or any((slope / gap).cancel().has(states[0]) for slope in slopes):
        return pair
    divided = (other / gap).expand()
    return Complementary(gap, divided) if _end(divided, states[0], gap) is S.NegativeInfinity else pair


def _by_field(difference: Expr, state: SiteQuantity) -> Expr:
    """An equation divided by what multiplies all of its sums, as far as that depends on the state."""
    factors = {slope.as_independent(state, as_Add=False)[1] for slope in _slopes(difference, state)}
    return (difference / factors.pop()).expand() if len(factors) == 1 else difference


def _slopes(expr: Expr, state: SiteQuantity) -> list[Expr]:
    """What multiplies each sum over other sites; empty where one of them does not stand linearly, or there is none."""
    fields = {total: Dummy("h", real=True) for total in outer_sums(expr)}
    free = expr.xreplace(fields)
    slopes = [free.diff(h).factor(state) for h in fields.values()]
    return [] if any(slope.has(*fields.values()) for slope in slopes) else slopes


def _end(expr: Expr, state: SiteQuantity, gap: Expr) -> Expr:
    """The limit of an expression at the bound of its state, from above.

    Quenched parameters and parameters without a sign count as positive: values for which they are not are refused
    later, as those of an equation that does not fix its state.
    """
    distance = Dummy("d", positive=True)
    inside = (state + gap.diff(state) * (distance - gap)).expand()
    at = _by_letters(expr.xreplace({state: inside}), positive=True)
    return limit(at, distance, 0, "+")


def _by_letters(expr: Expr, **assumptions: bool) -> Expr:
    """An expression with a real letter for each field, and one with these assumptions for each parameter."""
    expr = expr.xreplace({total: Dummy("h", real=True) for total in outer_sums(expr)})
    rule = {q: Dummy("a", real=True, **assumptions) for q in site_quantities(expr, Quenched)}
    rule |= {s: Dummy("a", real=True, **assumptions) for s in expr.free_symbols if s.is_real is None}
    return expr.xreplace(rule)
