"""A derivation in the form in which it is read: responses name their sources, and squares of signs are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from sympy import (
    Abs,
    Add,
    Basic,
    Dummy,
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
    Tuple,
    default_sort_key,
    exp,
    expand_mul,
    factor,
    floor,
    fraction,
    igcd,
    ilcm,
    sign,
)

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.joint import JointAverage
from symcavity.algebra.node import raised
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.times import Time
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import OrderParameter, ResponseElement
from symcavity.writing.laws import with_named_laws
from symcavity.writing.ordering import is_turned


def is_sign(family: Any) -> bool:
    """Whether a quenched parameter takes the values one and minus one only."""
    law = family.law if isinstance(family, Quenched) else None
    return isinstance(law, Tuple) and all(value**2 == 1 for value, _ in law)


def as_shown(derivation: Derivation) -> Derivation:
    """Return a derivation whose claims and data are written for a reader: the same statements, in the record's order.

    Averages that differ by the values of quenched parameters only are one, over these parameters, too. Where a site has
    several sources, a response says which one is meant; ``y**2`` and ``Abs(y)`` are one where the law
    of ``y`` has the values one and minus one. No index has the letter of a quantity.
    """
    derivation = with_named_laws(derivation)
    sources = {q.family: f for step in derivation.steps for q, f in step.data.get("carriers", ()) if q is not None}

    quenched = [q for step in derivation.steps for q in step.data.get("quenched") or ()]
    drawn = [q for q in dict.fromkeys(quenched) if isinstance(q, Quenched) and isinstance(q.law, Tuple)]

    def known(node: Any) -> Any:
        if isinstance(node, Add):
            return _over_parameters(node, drawn)
        if isinstance(node, SiteResponse):
            source = sources.get(node.field.family) if node.field is not None else None
            if source is None:
                return node
            here = node.state.indices[: len(source.slots) + (1 if source.components else 0)]
            return ResponseElement(node.state, SiteQuantity(source, *here))
        base = node.args[0]
        if isinstance(node, Pow) and isinstance(base, sign) and node.exp.is_Integer:  # where it is not zero
            return base if node.exp.is_odd else S.One
        if not isinstance(base, SiteQuantity) or not is_sign(base.family):
            return node
        if isinstance(node, Pow):
            return (base if node.exp.is_odd else S.One) if node.exp.is_Integer else node
        return S.One if isinstance(node, Abs) else base

    alike: dict[Any, Any] = {}
    indices = _indices(derivation)

    @cache
    def one_side(obj: Any) -> Any:
        if isinstance(obj, Basic) and obj.has(Dummy):  # what is equal but for the names of bound variables is one
            obj = alike.setdefault(obj.as_dummy(), obj)
        obj = written(obj)
        if isinstance(obj, Basic) and obj.has(GaussianAverage):
            obj = obj.replace(lambda node: type(node) is GaussianAverage, lambda node: _with_its_name(node, indices))
            within = {node: _primed(node) for node in obj.atoms(ImplicitAverage) if node.has(GaussianAverage)}
            obj = obj.xreplace(within)
        return _gathered(_over_one(_signed(obj)))

    def written(obj: Any) -> Any:
        if isinstance(obj, Equation):
            return Equation(one_side(obj.lhs), one_side(obj.rhs))
        if type(obj) in (list, tuple):
            return type(obj)(map(written, obj))
        if type(obj) is dict:
            return {written(key): written(value) for key, value in obj.items()}
        if not isinstance(obj, Basic):
            return obj
        obj = obj.xreplace(indices)
        moments = {node: phi(node.args[0], _over_one(_spread(node.args[1]))) for node in obj.atoms(phi)}
        obj = obj.xreplace({old: new for old, new in moments.items() if new != old})
        if obj.has(JointAverage):  # the first, as what is replaced holds others
            totals = [node for node in obj.atoms(Add) if any(term.has(JointAverage) for term in node.args)]
            obj = obj.xreplace({node: known(node) for node in totals})
        nodes = obj.atoms(SiteResponse, Pow, Abs, sign)
        return obj.xreplace({node: new for node in nodes if (new := known(node)) != node})

    parameters = tuple((symbol, written(meaning)) for symbol, meaning in derivation.parameters)
    steps = _once(
        [
            replace(step, claims=tuple(map(written, step.claims)), data=_data(step.data, written))
            for step in derivation.steps
        ],
        parameters,
    )
    return replace(derivation, steps=steps, parameters=parameters, results=tuple(map(written, derivation.results)))


def _with_its_name(average: GaussianAverage, letters: Mapping[Symbol, Symbol]) -> Expr:
    """An average over a variable of that name, so that equal ones are one."""
    body, z = average.args
    named = letters.get(_named(z), _named(z))
    return GaussianAverage(_in_brackets(body.xreplace({z: named})), named)


def _primed(average: ImplicitAverage) -> Expr:
    """An average over the root of an implicit law, with another letter for Gaussian variables inside than its own."""
    letter = Symbol("zeta_2", real=True)
    body = average.args[0].replace(
        lambda node: type(node) is GaussianAverage,
        lambda node: GaussianAverage(node.args[0].xreplace({node.args[1]: letter}), letter),
    )
    return average.func(body, *average.args[1:])


def _named(z: Symbol) -> Symbol:
    return Symbol(z.name, real=True)


def _in_brackets(body: Expr) -> Expr:
    """What stands where a condition holds, and is zero elsewhere, as a product with the bracket of the condition."""
    parts = {
        node: node.args[0][0] * Piecewise((S.One, node.args[0][1]), (S.Zero, True))
        for node in body.atoms(Piecewise) if len(node.args) == 2 and node.args[1] == (0, True)
    }  # fmt: skip
    return body.xreplace(parts)


def _indices(derivation: Derivation) -> dict[Symbol, Symbol]:
    """Other letters for indices, and variables of integration, whose own is that of a quantity, too."""
    claims = [*derivation.results, *(claim for step in derivation.steps for claim in step.claims)]
    sides = [side for claim in claims if isinstance(claim, Equation) for side in (claim.lhs, claim.rhs)]
    sides += [meaning for _, meaning in derivation.parameters if isinstance(meaning, Basic)]
    quantities = set().union(*(side.atoms(SiteQuantity) for side in sides))
    bound = {limits[0] for side in sides for total in side.atoms(Sum) for limits in total.limits}
    bound |= {node.args[1] for side in sides for node in side.atoms(TruncatedIntegral)}
    averages = (node for side in sides for node in side.atoms(GaussianAverage) if type(node) is GaussianAverage)
    bound |= {_named(node.args[1]) for node in averages}
    labels = bound | {index for q in quantities for index in q.indices if index.is_Symbol}
    labels = {label for label in labels if not isinstance(label, Time)}  # beside which a quantity shows its sites
    every = set().union(*(side.atoms(Symbol) for side in sides))
    letters = {q.family.name.partition("_")[0] for q in quantities}
    letters |= {s.name.partition("_")[0] for s in every if s not in labels}
    taken = {*map(Symbol, letters), *labels}
    out: dict[Symbol, Symbol] = {}
    for name in sorted({label.name for label in labels} & letters):
        alike = [label for label in labels if label.name == name]
        letter = fresh_index(alike[0], taken)
        out |= {label: Symbol(letter.name, **label.assumptions0) for label in alike}
        taken.add(letter)
    return out


def _once(steps: Sequence[Step], parameters: Iterable[tuple[Any, Any]]) -> tuple[Step, ...]:
    """Steps; a mean response goes by the order parameter that it is, mere names for averages and 0 = 0 are left out."""
    closed = {claim for step in steps if step.rule == "closure" for claim in step.claims}
    out = []
    for every in steps:
        step = replace(every, claims=tuple(c for c in every.claims if not isinstance(c, Equation) or c.lhs != c.rhs))
        if step.rule == "implicit":
            step = _in_its_own_name(step)
        elif step.rule == "response":
            at = {step.data["kind"].index: S.Zero}
            named = {m.xreplace(at).args: symbol for symbol, m in parameters if isinstance(m, Average)}
            given = ((claim, Equation(named.get(claim.lhs.args, claim.lhs), claim.rhs)) for claim in step.claims)
            step = replace(step, claims=tuple(new if new in closed else claim for claim, new in given))
        elif step.rule == "stability_average":
            some = tuple(claim for claim in step.claims if not isinstance(claim.rhs, JointAverage | OverParameters))
            step = replace(step, claims=some, data={**step.data, "open": len(some) < len(step.claims)})
        out.append(step)
    return tuple(out)


def _in_its_own_name(step: Step) -> Step:
    """An implicit law with the state that solves it where the record has a symbol of its own for that state."""
    names = {c.rhs: c.lhs for c in step.claims if isinstance(c.lhs, SiteQuantity) and isinstance(c.rhs, Dummy)}
    claims = tuple(claim.xreplace(names) for claim in step.claims if claim.rhs not in names)
    return replace(step, claims=claims)


def _over_one(total: Any) -> Any:
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


def _spread(total: Expr) -> Expr:
    """A product with one sum in it, multiplied out."""
    return expand_mul(total) if sum(f.is_Add for f in Mul.make_args(total)) == 1 else total


def _gathered(expr: Any) -> Any:
    """The same with one term for each average, or function, of a sum: what stands before it is factored."""
    if isinstance(expr, Mul):
        return Mul(*map(_gathered, expr.args))
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
def _signed(node: Any) -> Any:
    """The same with no sign in an average, and one form of what is divided by, or squared, so that like terms add.

    What does not depend on the index of a sum stands before it; nothing is divided by a sum with fractions in it.
    """
    if not isinstance(node, Basic) or not node.has(Add, exp):
        return node
    args = [_signed(arg) for arg in node.args]
    new = node.func(*args) if args != list(node.args) else node
    if type(new) is GaussianAverage or isinstance(new, Average | Sum | ImplicitAverage):
        number, body = new.args[0].as_coeff_Mul()
        factors = () if isinstance(new, Average) else Mul.make_args(body)
        bound = {limits[0] for limits in new.limits} if isinstance(new, Sum) else {*new.args[1:2]}
        outside = [f for f in factors if (type(f) is Symbol or not isinstance(new, Sum)) and not f.free_symbols & bound]
        inside = Mul(*(f for f in factors if f not in outside)) if factors else body
        return Mul(number, *outside, new.func(inside, *new.args[1:]))
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


class OverParameters(Expr):
    """An average over the fields of a site and over its quenched parameters."""

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        average, *parameters = self.args
        below = ", ".join(["\\eta", *map(printer.doprint, parameters)])
        return raised(f"\\left\\langle {printer.doprint(average.body)} \\right\\rangle_{{{below}}}", exp)


def _over_parameters(total: Add, quenched: Sequence[Quenched]) -> Expr:
    """A sum with one term for all averages of the same quantity, which differ by the values of parameters."""
    every: dict[Expr, list[JointAverage]] = {}
    for average in sorted(total.atoms(JointAverage), key=default_sort_key):
        every.setdefault(average.body, []).append(average)
    rule: dict[Expr, Expr] = {}
    for some in every.values():
        mine = [q[S.Zero] for q in quenched if q.slots[0].upper == ("^" in some[0].law.fields[0].tex)]
        rule |= dict.fromkeys(some, OverParameters(some[0], *mine)) if len(some) > 1 else {}
    return total.xreplace(rule)


def _data(data: Mapping[str, Any], written: Any) -> dict[str, Any]:
    said = ("branches", "values", "pairs", "variable")
    return {name: written(value) if name in said else value for name, value in data.items()}
