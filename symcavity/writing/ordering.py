"""In which order, and with which sign, people write the factors of a product and the terms of a sum."""

from __future__ import annotations

from typing import Any

from sympy import (
    Add,
    Basic,
    Expr,
    Function,
    Integral,
    KroneckerDelta,
    Mul,
    Number,
    Piecewise,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    exp,
    preorder_traversal,
)

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import LawSymbol
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.algebra.text import text
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.couplings import Coupling
from symcavity.model.quantities import Quenched, SiteQuantity, Variable
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import AtStep, CavitySymbol, Perturbation, ResponseElement, Source


def factor_key(factor: Any) -> tuple[int, int, str]:
    """Numbers, parameters, couplings, responses, states, averages, sums: the order of a physicist."""
    core = factor.base if isinstance(factor, Pow) else factor
    core = core.args[0] if isinstance(core, AtStep) else core
    if core.is_number:
        rank = 0
    elif isinstance(core, LawSymbol):
        rank = 6  # a response: states of a law are written as such
    elif isinstance(core, TexSymbol) and core.tex.startswith("\\nabla"):
        rank = 9  # what a derivative acts on ends with it
    elif isinstance(core, Symbol):
        rank = 4 if isinstance(core, CavitySymbol) else 3 if isinstance(core, OrderParameter) else 1
    elif isinstance(core, SiteQuantity):
        ranks = ((Coupling, 5), (Quenched, 2), (Variable, 8))
        rank = next((r for kind, r in ranks if isinstance(core.family, kind)), 9)
    elif isinstance(core, ResponseElement | SiteResponse):
        rank = 6
    elif isinstance(core, KroneckerDelta):
        rank = 5
    elif isinstance(core, Perturbation):
        rank = 9
    elif isinstance(core, Add):
        rank = 1 if is_given(core) else 10
    elif isinstance(core, GaussianAverage | ImplicitAverage):
        rank = 11
    elif isinstance(core, Sum | Integral | Piecewise):
        rank = 12
    else:
        rank = 7
    within: int = len(getattr(core, "args", ())) if rank == 10 else "_" in text(core) if rank == 1 else 0
    within = 2 if rank == 1 and isinstance(core, Add) else within
    return rank, int(within), text(factor)


def gather_roots(
    number: Rational, above: list[Expr], below: list[Expr]
) -> tuple[Rational, list[Expr], list[Expr]]:
    """Write sqrt(2)/(2*sqrt(pi)) as 1/sqrt(2*pi), and sqrt(a)*sqrt(b) as sqrt(a*b)."""
    above, below = list(above), list(below)
    for factor in list(above):
        if factor.is_Pow and factor.exp is S.Half and factor.base.is_Integer and number.q % factor.base == 0:
            above.remove(factor)
            below.append(factor)
            number *= factor.base
    return number, _one_root(above), _one_root(below)


def _one_root(factors: list[Expr]) -> list[Expr]:
    """Factors with one root of all that stands under roots of its own."""
    roots = [factor for factor in factors if factor.is_Pow and factor.exp is S.Half]
    if len(roots) < 2:
        return factors
    inside = Mul(*(root.base for root in roots), evaluate=False)
    return [factor for factor in factors if factor not in roots] + [Pow(inside, S.Half, evaluate=False)]


def is_negative(term: Any) -> bool:
    """Whether a term is printed with a minus sign: that of a sum's only summand stands before the sum."""
    if isinstance(term, Sum):
        return not isinstance(term.function, Add) and bool(term.function.could_extract_minus_sign())
    return bool(term.could_extract_minus_sign())


def plain_sum(term: Any) -> Any:
    """A term, without the two minus signs of one before a sum and one in it."""
    number, rest = term.as_coeff_Mul()
    return Sum(-rest.function, *rest.limits) if number == -1 and isinstance(rest, Sum) and is_negative(rest) else term


def light_terms(expr: Expr) -> set[Expr]:
    """The terms of a sum that are mere parameters, which stand before what the theory gives, such as 1 in 1 - alpha S.

    In the law of a site, of which a field or a state is a part, terms keep their order: only 1 in 1 + exp(h) is one.
    """
    if speaks_of_sites(expr):
        numbers = {term for term in expr.args if term.is_number}
        rest = [Mul.make_args(term) for term in expr.args if term not in numbers]
        return numbers if all(any(isinstance(f, exp) for f in factors) for factors in rest) else set()
    nodes = {term: list(preorder_traversal(term)) for term in expr.args}
    heavy = (Function, OrderParameter, SiteQuantity, Average, AtStep)
    found = {term for term, some in nodes.items() if not any(isinstance(node, heavy) for node in some)}
    return found if len(found) < len(nodes) else set()


def speaks_of_sites(expr: Expr) -> bool:
    """Whether an expression is part of the law of a site: a field, a state or a source stands in it."""

    def of_site(node: Any) -> bool:
        state = isinstance(node, SiteQuantity) and not isinstance(node.family, Quenched)
        return state or isinstance(node, CavitySymbol | Perturbation | Source)

    return any(map(of_site, preorder_traversal(expr)))


def is_given(term: Expr) -> bool:
    """Whether a term is a number, or is made of parameters alone."""
    plain = (Number, Add, Mul, Pow)
    return all(isinstance(node, plain) or type(node) is Symbol for node in preorder_traversal(term))


def is_turned(base: Any) -> bool:
    """Whether a sum reads better with all signs turned: as 1 - alpha S, not as alpha S - 1."""
    if not isinstance(base, Add) or not isinstance(-base, Add):
        return False
    if any(term.is_Pow and term.base.is_Add and term.exp.is_even for term in base.args):  # (a + b)**2 - c
        return False
    numbers = [term for term in base.args if term.is_Rational]
    return all(map(is_negative, light_terms(base) or numbers or base.args))


def of_either_sign(base: Any) -> bool:
    """Whether a polynomial of given parameters is a difference of which no sign is known."""
    given = isinstance(base, Add) and not base.has(OrderParameter, CavitySymbol, SiteQuantity)
    plain = given and base.is_polynomial(*base.free_symbols)
    return bool(plain and base.is_positive is None and any(map(is_negative, base.args)))


def term_key(term: Any) -> int:
    """Put the cavity field first; perturbations and sources last, whatever the rest of the sum is."""
    quantities = [term, *getattr(term, "args", ())]
    if isinstance(term, CavitySymbol):
        return -1
    if any(isinstance(q, Perturbation) for q in quantities):
        return 2
    if any(isinstance(q, SiteQuantity) and isinstance(q.family, Source) for q in quantities):
        return 3
    return int(isinstance(term, Basic) and term.has(ResponseElement))
