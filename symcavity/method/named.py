"""Quantities that a declaration names, and the closed equations in these names.

A name stands for an observable.  Where this is linear in one order parameter, the name takes its place as an unknown
(paper, equation 152); a name for given numbers and other names is an abbreviation of what stands in the results (158).
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Add, Expr, Mul, Sum, Symbol, cancel, degree, fraction

from symcavity.algebra.factors import factor
from symcavity.errors import NoClosedForm
from symcavity.method.eliminate import linear_solution
from symcavity.method.fresh import fresh_claims
from symcavity.method.results import site_average
from symcavity.method.theory import Theory
from symcavity.method.tidy import Masks, size, tidy_arguments
from symcavity.model.averages import Average, Fresh
from symcavity.model.equations import Equation
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.model.site_sums import free_kind
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter


def named_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """What the names stand for, and the eliminated equations in them; nothing where nothing is named."""
    named = theory.system.named
    if not named or theory.is_naive:
        return []
    make, rests = make.within("Results"), ("closed_system",)
    meanings = [Equation(name, value) for name, value in named.items()]
    data = {"names": list(named)}
    out = [make("named", "named", meanings, data=data), *fresh_steps(theory, make)]
    values, open_ = _values(theory)
    equations = [e for e in (in_names(theory) if open_ else ()) if e.difference.has(*named)]
    if found := [*equations, *values]:
        out.append(make("named.result", "named_result", found, data=data, rests_on=(*rests, "named")))
    return out


def fresh_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """What fresh sites hear, and the names that stand for averages over them; nothing where no name does."""
    named = {name: theory.system.own(theory.system.rewritten.observable(e)) for name, e in theory.system.named.items()}
    asked = {name: [a.body.args[0] for a in e.atoms(Average) if isinstance(a.body, Fresh)] for name, e in named.items()}
    bodies = [body for some in asked.values() for body in some]
    if not bodies:
        return []
    claims = fresh_claims(theory.system, bodies, theory.in_parameters)
    moments = len(claims)
    claims += [Equation(name, theory.observable(name)) for name, some in asked.items() if some]
    kinds = list(dict.fromkeys(kind for body in bodies if (kind := free_kind(body, str(body))) is not None))
    data = {"kind": kinds[0], "several": moments > 1}
    rests = tuple(f"{kind.key}.field_statistics" for kind in kinds)
    return [make("named.fresh", "fresh", claims, data=data, rests_on=("named", *rests))]


def _given(declared: Expr) -> bool:
    """Whether a name stands for given numbers and other names."""
    return all(isinstance(q.family, Quenched) for q in site_quantities(declared)) and not declared.has(Fresh)


def _taken(theory: Theory) -> dict[Expr, tuple[Symbol, Expr]]:
    """The order parameters in whose place names stand, as they are linear in one of them: with it in the name."""
    taken: dict[Expr, tuple[Symbol, Expr]] = {}
    for name, declared in theory.system.named.items():
        if not _given(declared):
            value = theory.observable(declared)
            own = sorted(value.atoms(OrderParameter), key=str)
            solved = linear_solution(value - name, own[0]) if len(own) == 1 else None
            if solved is not None and own[0] not in taken:
                taken[own[0]] = (name, solved[0])
    return taken


def in_names(theory: Theory) -> Iterator[Equation]:
    """The eliminated unknowns and what is left of the closed system, where names of the declaration stand in them."""
    taken, short = _taken(theory), dict[Expr, Expr]()
    for name, declared in theory.system.named.items():
        if _given(declared):
            (constant, body), *more = _terms(tidy(theory.system.own(declared)))
            if not more and isinstance(body, Sum | Average):
                short[body] = name / constant
    if not (taken or short):
        return
    rule = {symbol: instead for symbol, (_, instead) in taken.items()}

    def written(expr: Expr, *, grouped: bool = True) -> Expr:
        return shortest(tidy(expr.xreplace(rule)).xreplace(short), grouped=grouped)

    closed = theory.reduced_with_load if theory.system.fixed else theory.reduced
    found: list[Equation] = []
    for symbol, expr in closed.definitions.items():
        name, instead = taken.get(symbol, (symbol, symbol))
        slope = instead.diff(name)
        found.append(Equation(name, shortest(((written(expr) - instead) / slope + name).expand(deep=False))))
    yield from found
    for core in closed.core:
        names = [name for name, _ in taken.values()]
        short_form, terms = written(core), written(core, grouped=False)  # the first may hide what equals a name
        yield _solved(short_form, names) or _solved(terms, names) or Equation(short_form, short_form * 0)
    for meaning in theory.order_parameters.values():  # of one site, where sites differ
        of_one = site_average(theory, meaning)
        if of_one is not None:
            value = of_one.rhs.xreplace(rule)
            for equation in found[:-1] if len(found) > 1 else []:
                value = value.xreplace({equation.lhs: equation.rhs})
            yield Equation(of_one.lhs, shortest(tidy(value)))


def _values(theory: Theory) -> tuple[list[Equation], bool]:
    """What is named, in parameters, or else in other names and in order parameters; whether some of it stays so."""
    taken, open_ = _taken(theory), False
    names, rule = {name for name, _ in taken.values()}, {symbol: instead for symbol, (_, instead) in taken.items()}
    found: list[Equation] = []
    for name, declared in theory.system.named.items():
        if _given(declared):
            continue
        try:
            found.append(Equation(name, shortest(tidy(theory.closed_form(name, roots=False)))))
        except NoClosedForm:
            value, open_ = theory.observable(declared), True
            if name not in names and (value.has(*rule) or not declared.has(Fresh)):  # else it was said of fresh sites
                found.append(Equation(name, shortest(tidy(value.xreplace(rule)))))
    return found, open_


def _terms(expr: Expr) -> list[tuple[Expr, Expr]]:
    return [term.as_independent(Sum, Average, as_Add=False) for term in Add.make_args(expr)]


def tidy(expr: Expr) -> Expr:
    """An expression whose sums over sites hold fractions in lowest terms, without constants."""
    rule = {node: Sum(factor(cancel(node.function)), *node.limits) for node in expr.atoms(Sum)}
    return tidy_arguments(expr.xreplace(rule))


def shortest(expr: Expr, *, grouped: bool = True) -> Expr:
    """The shortest of an expression, its quotient of two polynomials, and the factors of these or of their terms."""
    masks = Masks()
    hidden = masks.hide(expr)
    found = [hidden, cancel(hidden), factor(cancel(hidden))]
    top, bottom = fraction(_shorter(found))
    if grouped:
        top, bottom = _grouped(top), _grouped(bottom)
    if bottom.as_coeff_Add()[0].is_negative:
        top, bottom = -top, -bottom
    return masks.show(top / bottom)


def _grouped(total: Expr) -> Expr:
    """A sum with the factors of its terms that have a symbol, or as a square and a rest, where that is shorter."""
    symbols = sorted(total.free_symbols, key=str) if total.is_Add else []
    parts = (total.as_independent(s, as_Add=True) for s in symbols)
    squares = [form for s in symbols if (form := _completed(total, s)) is not None]
    return _shorter([total, *(rest + factor(mine) for rest, mine in parts), *squares])


def _completed(total: Expr, s: Symbol) -> Expr | None:
    """A polynomial of second degree as the square of a line in a symbol, and a rest; None where a root is left."""
    if not total.is_polynomial(s) or degree(total, s) != 2:
        return None
    bend, slope, level = (total.expand().coeff(s, power) for power in (2, 1, 0))
    powers = factor(bend).as_powers_dict()
    if not all(base.is_positive and (power / 2).is_Integer for base, power in powers.items()):
        return None
    root = Mul(*(base ** (power / 2) for base, power in powers.items()))
    shift = cancel(slope / (2 * root))
    return (root * s + shift) ** 2 + (level - shift**2).expand() if shift.is_polynomial() else None


def _shorter(some: list[Expr]) -> Expr:
    return min(some, key=lambda e: (size(e), len(str(e))))


def _solved(expr: Expr, names: list[Symbol]) -> Equation | None:
    """An equation with a name alone on the left, where it is what the others add up to; else None."""
    for name in names:
        for term in Add.make_args(expr.expand(deep=False)):
            constant, rest = term.as_independent(name, as_Add=False)
            if rest == name and constant.is_number:
                rest = (name - expr / constant).expand(deep=False)
                return Equation(name, Add(*map(joined, Add.make_args(rest))))
    return None


def joined(term: Expr) -> Expr:
    """A factor of a sum over sites, inside of it."""
    constant, body = term.as_independent(Sum, as_Add=False)
    return Sum(Mul(constant, body.function), *body.limits) if isinstance(body, Sum) else term
