"""Letters of indices and of variables of integration: none has that of a quantity, and equal averages share one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from sympy import Basic, Expr, Piecewise, S, Sum, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.model.times import Time
from symcavity.record.derivation import Derivation

Rule = Callable[[Any], Any]


def other_letters(derivation: Derivation) -> Rule:
    """No index has the letter of a quantity."""
    letters = _indices(derivation)
    return lambda expr: expr.xreplace(letters)


def own_names(derivation: Derivation) -> Rule:
    """An average over a Gaussian variable is over one of that name, so that equal ones are one."""
    letters = _indices(derivation)

    def named(average: GaussianAverage) -> Expr:
        body, z = average.args
        name = letters.get(_named(z), _named(z))
        return GaussianAverage(_in_brackets(_apart(body, name).xreplace({z: name})), name)

    def rule(expr: Any) -> Any:
        if not expr.has(GaussianAverage):
            return expr
        expr = expr.replace(lambda node: type(node) is GaussianAverage, named)
        return expr.xreplace({node: _primed(node) for node in expr.atoms(ImplicitAverage) if node.has(GaussianAverage)})

    return rule


def _primed(average: ImplicitAverage) -> Expr:
    """An average over the root of an implicit law, with another letter for Gaussian variables inside than its own."""
    letter = Symbol("zeta_2", real=True)
    body = average.args[0].replace(
        lambda node: type(node) is GaussianAverage,
        lambda node: GaussianAverage(node.args[0].xreplace({node.args[1]: letter}), letter),
    )
    return average.func(body, *average.args[1:])


def _apart(body: Expr, name: Symbol) -> Expr:
    """The body of an average whose averages inside are over other variables than its own."""
    inner = [node for node in body.atoms(GaussianAverage) if node.args[1] == name]
    if not inner:
        return body
    taken = {s.name for node in body.atoms(GaussianAverage) for s in node.atoms(Symbol)}
    letter = next(Symbol(f"{name}_{k}", real=True) for k in count(2) if f"{name}_{k}" not in taken)
    return body.xreplace({node: GaussianAverage(node.args[0].xreplace({name: letter}), letter) for node in inner})


def _named(z: Symbol) -> Symbol:
    return Symbol(z.name, real=True)


def _in_brackets(body: Expr) -> Expr:
    """An expression that is zero unless a condition holds, as a product with the bracket of the condition."""
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
    asked = (SiteQuantity, Sum, TruncatedIntegral, GaussianAverage, Symbol)
    found = set().union(*(side.atoms(*asked) for side in set(sides)))  # one walk for all: claims are long
    quantities = {node for node in found if isinstance(node, SiteQuantity)}
    bound = {limits[0] for total in found if isinstance(total, Sum) for limits in total.limits}
    bound |= {node.args[1] for node in found if isinstance(node, TruncatedIntegral)}
    bound |= {_named(node.args[1]) for node in found if type(node) is GaussianAverage}
    labels = bound | {index for q in quantities for index in q.indices if index.is_Symbol}
    labels = {label for label in labels if not isinstance(label, Time)}  # beside which a quantity shows its sites
    letters = {q.family.name.partition("_")[0] for q in quantities}
    letters |= {s.name.partition("_")[0] for s in found if isinstance(s, Symbol) and s not in labels}
    taken = {*map(Symbol, letters), *labels}
    out: dict[Symbol, Symbol] = {}
    for name in sorted({label.name for label in labels} & letters):
        alike = [label for label in labels if label.name == name]
        letter = fresh_index(alike[0], taken)
        out |= {label: Symbol(letter.name, **label.assumptions0) for label in alike}
        taken.add(letter)
    return out
