"""Names of order parameters, which follow what is averaged: equal names are equal averages, in any two problems.

A name lists the factors of its average: ``q_t_w`` is the average of ``t*w``, ``q_l_w_w`` that of ``l*w**2``. One factor
alone stands squared: ``q_w`` is the average of ``w**2``, ``q_w_minus_t`` that of ``(w - t)**2``, and
``q_l_times_w_minus_t`` that of ``l*(w - t)**2``. A response has the weights, then the state: ``S_l_w``. Where the
site hears several fields of states, or the field is that of a teacher, it is named: ``S_lambda_to_h_2``. An average
that has no short spelling has a number, which claims nothing: ``q_1``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

from sympy import Add, Expr, Mul, Sum, Symbol, fraction

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Family, Field, SiteQuantity, Variable

_LONGEST = 32  # of what is spelled out; what is longer has a number


def moment_label(body: Expr) -> str | None:
    """The name of an average without responses; None where it is too long, or has no spelling."""
    factors = _factors(_summand(body))
    if factors is None:
        return None
    sums = [f for f in factors if f.is_Add]
    if not sums:
        names = [_name(f) for f in _in_order(factors)]
        return _short(names[:1] if len(names) == 2 and names[0] == names[1] else names)
    spelled = {_combination(s, even=True) or "" for s in sums}
    if len(sums) != 2 or len(spelled) != 1 or "" in spelled:
        return None
    rest = [_name(f) for f in _in_order([f for f in factors if not f.is_Add])]
    return _short([*rest, *(["times"] if rest else []), *spelled])


def response_label(body: Expr, own: Collection[Family]) -> str | None:
    """The name of an averaged response; fields other than a site's own one are named."""
    body = _summand(body)
    heard = {r.field for r in body.atoms(SiteResponse)}
    label = _combination(body, even=False)
    if label is None or len(heard) != 1:
        return None
    (named,) = heard
    return _short([label, *([] if named is None or named.family in own else ["to", _name(named)])])


def _summand(body: Expr) -> Expr:
    """What is summed over components."""
    return _summand(body.function) if isinstance(body, Sum) else body


def _factors(body: Expr) -> list[Expr] | None:
    """The factors, each as often as its power says; None where one is neither a quantity nor a combination of some."""
    out: list[Expr] = []
    for factor in Mul.make_args(body):
        base, power = factor.as_base_exp()
        plain = isinstance(base, SiteQuantity | SiteResponse | Symbol) or base.is_Add
        if not plain or not power.is_Integer or power < 1:
            return None
        signs = isinstance(base, SiteQuantity) and base.few and all(value**2 == 1 for value in base.few)
        out += [base] * int(power % 2 if signs else power)  # the square of a sign is one
    return out


def _in_order(factors: Iterable[Expr]) -> list[Expr]:
    """Parameters, then weights, then states, then what responds."""

    def rank(factor: Expr) -> tuple[int, str]:
        family = getattr(factor, "family", None)
        states = isinstance(family, Variable | Field)
        return (0 if family is None else 2 if states else 1) + 3 * isinstance(factor, SiteResponse), str(factor)

    return sorted(factors, key=rank)


def _name(factor: Expr) -> str:
    quantity = factor.state if isinstance(factor, SiteResponse) else factor
    if not isinstance(quantity, SiteQuantity):
        return str(quantity)
    components = quantity.indices[len(quantity.family.slots) :]
    return "_".join([quantity.family.name, *(str(k) for k in components if k.is_Integer)])


def _combination(expr: Expr, even: bool) -> str | None:
    """A sum or difference of products, in words; of what is squared, the first has the positive sign."""

    def given_last(term: Expr) -> tuple[bool, str]:
        states = any(isinstance(q.family, Variable) for q in term.atoms(SiteQuantity))
        return (not states, str(-term if _minus(term) else term))

    terms = sorted(Add.make_args(expr), key=given_last)
    turn = -1 if even and _minus(terms[0]) else 1
    spelled = [(_minus(turn * t), _product(-turn * t if _minus(turn * t) else turn * t)) for t in terms]
    spelled.sort(key=lambda pair: pair[0])
    if spelled[0][0] or any(words is None for _, words in spelled):
        return None
    return reduce(
        lambda said, pair: f"{said}_{'minus' if pair[0] else 'plus'}_{pair[1]}", spelled[1:], str(spelled[0][1])
    )


def _minus(term: Expr) -> bool:
    return bool(term.could_extract_minus_sign())


def _product(term: Expr) -> str | None:
    """A product of parameters, weights and a state, over parameters."""
    over, under = (_factors(part) if part != 1 else [] for part in fraction(term))
    if not over or under is None or any(f.is_Add for f in (*over, *under)):
        return None
    return "_over_".join("_".join(map(_name, _in_order(part))) for part in (over, under) if part)


def _short(words: Iterable[str]) -> str | None:
    label = "_".join(words)
    return label if len(label) <= _LONGEST else None


__all__ = ["moment_label", "response_label"]
