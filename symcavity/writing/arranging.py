"""Sums and products arranged as people write them: one denominator, one sign, one term for like terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sympy import (
    Add,
    Basic,
    Expr,
    Function,
    Integral,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    default_sort_key,
    exp,
    expand,
    expand_mul,
    factor,
    floor,
    fraction,
    igcd,
    ilcm,
    together,
)

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.node import holds
from symcavity.algebra.phi import phi
from symcavity.model.averages import Average
from symcavity.record.order_parameters import OrderParameter
from symcavity.writing.ordering import is_given, is_negative, is_turned


def over_one(total: Any) -> Any:
    """A sum over the denominator that all its terms have, with what they share in front."""
    if not isinstance(total, Add) or total.has(Sum, Integral, Piecewise):
        return total
    terms = [term.as_coeff_Mul() for term in total.args]
    powers = [rest.as_powers_dict() for _, rest in terms]
    bases = sorted(set().union(*powers), key=default_sort_key)
    exponents = {base: [some.get(base, S.Zero) for some in powers] for base in bases}
    below = [base for base, some in exponents.items() if all(power.is_negative for power in some)]
    if not below or not all(power.is_Rational for some in exponents.values() for power in some):
        return total
    least = {base: min(some) for base, some in exponents.items()}
    whole = {base: len({*some}) == 1 or least[base] < 0 for base, some in exponents.items()}
    shared = Mul(*(base ** (power if whole[base] else floor(power)) for base, power in least.items()))
    number = Rational(igcd(*(n.p for n, _ in terms)), ilcm(*(n.q for n, _ in terms)))
    number = -number if all(n.is_negative for n, _ in terms) else number
    return Mul(number, shared, Add(*(n / number * rest / shared for n, rest in terms)))


def over_each(total: Any) -> Any:
    """A sum in which terms that are divided by the same are one fraction."""
    if not isinstance(total, Add) or total.has(Sum, Integral, Piecewise):
        return total
    parts: dict[Expr, list[Expr]] = {}
    for term in total.args:
        below = Mul(*(f for f in Mul.make_args(term) if f.as_base_exp()[1].is_negative and not f.is_Number))
        parts.setdefault(below, []).append(term / below)
    return Add(*(below * Add(*some) for below, some in parts.items()))


def with_shared_front(total: Any) -> Any:
    """A sum with the factors that all its terms have in front, and one sign where all of them are negative."""
    if not isinstance(total, Add):
        return total
    negative = all(is_negative(term) for term in total.args)
    return -_together([-term for term in total.args]) if negative else _together(total.args)


def with_whole_roots(expr: Any) -> Any:
    """The same, where a root of ``q - p/a`` is written by the root of ``a*q - p`` if that stands in the expression."""
    roots = {node for node in expr.atoms(Pow) if node.base.is_Add and (2 * node.exp).is_odd}
    whole = {node.base for node in roots}
    rule = {}
    for node in roots:
        above, below = map(expand, fraction(together(node.base)))
        if below.is_nonnegative and not below.is_Number and above in whole:  # what divides is not zero
            rule[node] = above**node.exp * below**-node.exp
    return expr.xreplace(rule)


def spread(total: Expr) -> Expr:
    """A product with one sum in it, multiplied out."""
    return expand_mul(total) if sum(f.is_Add for f in Mul.make_args(total)) == 1 else total


def gathered(expr: Any) -> Any:
    """The same with one term for each average, or function, of a sum: what stands before it is factored."""
    if isinstance(expr, Mul):
        return Mul(*map(gathered, expr.args))
    if not isinstance(expr, Add) or expr.has(Sum, Integral, Piecewise):
        return expr
    parts: dict[Expr, list[Expr]] = {}
    for term in expr.args:
        factors = Mul.make_args(term)
        heavy = [f for f in factors if f.has(Function) or any(a.has(OrderParameter) for a in f.atoms(Average))]
        parts.setdefault(Mul(*heavy), []).append(Mul(*(f for f in factors if f not in heavy)))
    alone = Add(*parts.pop(S.One, ()))
    before: dict[Expr, list[Expr]] = {}
    for heavy, light in parts.items():
        coefficient = factor(Add(*light))
        sign = -1 if -coefficient in before else 1
        before.setdefault(sign * coefficient, []).append(sign * heavy)
    if len(before) == sum(map(len, parts.values())):
        return expr
    new = Add(*(coefficient * _together(some) for coefficient, some in before.items()))
    return new + min(alone, factor(alone), key=lambda form: form.count_ops())


@lru_cache(maxsize=4096)
def by_shares(node: Any) -> Any:
    """The same with ``(1 - rho)*q`` for ``q - rho*q``, and ``k - 1/a`` for ``a*(k/a - 1/a**2)``."""
    if not isinstance(node, Basic) or not holds(node, (Add,)):
        return node
    args = [by_shares(arg) for arg in node.args]
    node = node.func(*args) if args != list(node.args) else node
    if isinstance(node, Mul):
        return _without_quotients(node)
    if not isinstance(node, Add) or not any(is_negative(term) for term in node.args):
        return node
    parts: dict[Expr, list[Expr]] = {}
    for term in node.args:
        given = [f for f in Mul.make_args(term) if is_given(f) and not f.is_Add]
        parts.setdefault(term / Mul(*given), []).append(Mul(*given))
    if all(core == 1 or len(some) == 1 for core, some in parts.items()):
        return node
    return Add(*(core * (_one_product(Add(*some)) if core != 1 else Add(*some)) for core, some in parts.items()))


def _one_product(total: Expr) -> Expr:
    """A polynomial of parameters as a product, with ``1 - rho`` for ``rho - 1``, if it is one of few factors."""
    product = factor(total)
    powers = [f.as_base_exp() for f in Mul.make_args(product)]
    sums = [(base, power) for base, power in powers if base.is_Add]
    if len(sums) != 1 or product.is_Add:
        return total
    ((base, power),) = sums
    turn = any(term.is_negative and term.is_number for term in base.args)
    return Mul(product / base**power, S.NegativeOne**power, (-base) ** power) if turn else product


def _without_quotients(product: Mul) -> Expr:
    """A product with one sum in it whose terms are divided by another factor, multiplied by this factor."""
    sums = [f.as_base_exp() for f in product.args if f.as_base_exp()[0].is_Add]
    if len(sums) != 1 or not (sums[0][1].is_Integer and sums[0][1].is_positive):
        return product
    ((base, power),) = sums
    rest = product / base**power
    for other, above in rest.as_powers_dict().items():
        powers = [term.as_powers_dict().get(other, S.Zero) for term in base.args] if other.is_Symbol else [S.Zero]
        below = max(-power for power in powers) if all(p.is_Rational for p in powers) else S.Zero
        if below.is_Rational and below.is_positive and (above - below * power).is_nonnegative:
            base, rest = Add(*(term * other**below for term in base.args)), rest / other ** (below * power)
    return rest * base**power


def _together(terms: Sequence[Expr]) -> Expr:
    """The sum of some terms, with the factors that all of them have in front."""
    shared = set.intersection(*(set(Mul.make_args(term)) for term in terms))
    before = Mul(*(f for f in Mul.make_args(terms[0]) if f in shared and f != -1))
    return before * Add(*(term / before for term in terms))


def _cleared(base: Add) -> tuple[Expr, Expr]:
    """What is divided by, as a sum without fractions and a factor, if its own terms are divided by single ones."""
    below = [f.as_base_exp() for term in base.args for f in fraction(term)[1].as_ordered_factors()]
    single = all((b.is_Atom or isinstance(b, phi | Average)) and p.is_Integer for b, p in below)
    if not single or not any(term.as_coeff_Mul()[0].q != 1 for term in base.args):
        return base, S.One
    powers = [fraction(term)[1].as_powers_dict() for term in base.args if not fraction(term)[1].is_Integer]
    least = {b: max(some.get(b, S.Zero) for some in powers) for some in powers for b in some if not b.is_Rational}
    shared = Mul(ilcm(*(term.as_coeff_Mul()[0].q for term in base.args)), *(b**p for b, p in least.items()))
    return Add(*(term * shared for term in base.args)), shared


@lru_cache(maxsize=4096)
def signed(node: Any) -> Any:
    """The same with no sign in an average, and one form of what is divided by, or squared, so that like terms add.

    Factors that do not depend on the index of a sum are moved before it; no denominator holds fractions.
    """
    if not isinstance(node, Basic) or not node.has(Add, exp, GaussianAverage):
        return node
    args = [signed(arg) for arg in node.args]
    new = node.func(*args) if args != list(node.args) else node
    if type(new) is GaussianAverage or isinstance(new, Average | Sum | ImplicitAverage):
        number, body = new.args[0].as_coeff_Mul()
        factors = () if isinstance(new, Average) else Mul.make_args(body)
        bound = {limits[0] for limits in new.limits} if isinstance(new, Sum) else {*new.args[1:2]}
        outside = [f for f in factors if (type(f) is Symbol or not isinstance(new, Sum)) and not f.free_symbols & bound]
        inside = Mul(*(f for f in factors if f not in outside)) if factors else body
        made = new.func(inside, *new.args[1:])
        made = signed(made) if isinstance(made, Add) else made  # what does not vary stands outside of an average
        return Mul(number, *outside, made)
    if isinstance(new, Add):
        every = Add(*(_turned(term, every=True) for term in new.args))
        return every if len(Add.make_args(every)) < len(new.args) else new
    return _turned(new)


def _turned(term: Any, every: bool = False) -> Any:
    """A product with one sign of sums in it: that which reads best in even and negative powers, or any one in all."""
    term = _undivided(term)
    powers = [factor.as_base_exp() for factor in Mul.make_args(term)] if isinstance(term, Mul | Pow) else []
    some = [(b, b.is_Add and p.is_Integer and (every or p.is_even or p.is_negative)) for b, p in powers]
    turn = [may and (b.could_extract_minus_sign() if every else is_turned(b)) for b, may in some]
    clear = {b: _cleared(b) for b, p in powers if b.is_Add and p.is_Integer and p.is_negative}
    if any(shared != 1 for _, shared in clear.values()):
        parts = [(*clear.get(b, (b, S.One)), p) for b, p in powers]
        return _turned(Mul(*(base**p * shared**-p for base, shared, p in parts)), every)
    if not any(turn):
        return term
    sign = S.NegativeOne ** Add(*(p for (_, p), turned in zip(powers, turn, strict=True) if turned))
    return Mul(sign, *((-b if turned else b) ** p for (b, p), turned in zip(powers, turn, strict=True)))


def _undivided(term: Any) -> Any:
    """A product with one exponential, and with denominators that hold no fractions and whose terms share nothing."""
    if not isinstance(term, Mul | Pow) or not term.has(Add, exp):
        return term
    powers = term.as_powers_dict()
    some = [base for base, power in powers.items() if base.is_Add and power.is_negative and (2 * power).is_Integer]
    changed = sum(isinstance(factor, exp) for factor in Mul.make_args(term)) > 1
    for base in some:
        power = powers.pop(base)
        new = _multiplied(base, power, powers)
        front, new = _parted(new) if power.is_Integer else (S.One, new)
        new = _without_exponential(new, power, powers)
        powers[new] += power
        powers[front] += power
        changed |= new != base
    return Mul(*(base**power for base, power in powers.items())) if changed else term


def _multiplied(base: Expr, power: Expr, powers: dict[Expr, Expr]) -> Expr:
    """A denominator times what its terms are divided by, where the product is divided by that as well."""
    below = [fraction(part)[1].as_powers_dict() for part in base.args]
    for divisor in dict.fromkeys(d for some in below for d in some if not d.is_Rational):
        times = [some.get(divisor, S.Zero) for some in below]
        if not all(n.is_Rational for n in [*times, powers.get(divisor)] if n is not None):
            continue
        if powers.get(divisor, S.Zero) <= (most := max(times)) * power:
            base = Add(*(part * divisor**most for part in base.args))
            powers[divisor] -= most * power
    return base


def _parted(base: Expr) -> tuple[Expr, Expr]:
    """The factors that all terms of a denominator have, and the rest of it."""
    shared = set.intersection(*(set(Mul.make_args(term)) for term in Add.make_args(base))) - {S.NegativeOne}
    front = Mul(*shared)
    return front, Add(*(term / front for term in Add.make_args(base)))


def _without_exponential(base: Expr, power: Expr, powers: dict[Expr, Expr]) -> Expr:
    """A denominator in which 1/(1 + exp(-x)) is written for exp(x)/(1 + exp(x))."""
    rates = {term: term.as_powers_dict().get(S.Exp1, S.Zero) for term in base.args if term.has(exp)}
    rate = next(iter(rates.values()), S.Zero)
    if rate == 0 or powers.get(S.Exp1, S.Zero) + power * rate != 0 or {*rates.values()} != {rate}:
        return base
    powers[S.Exp1] = S.Zero
    return Add(*(term.xreplace({exp(rate): S.One}) if term in rates else term * exp(-rate) for term in base.args))
