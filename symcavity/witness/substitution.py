"""Witnesses of the substitution: explicit couplings and messages, and the senders' equations solved as numbers.

What comes from all others is what a site would hear without its own message; nothing here splits a sum.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sympy import Dummy, Expr, Matrix, Poly, S, Sum, sqrt

from symcavity.algebra.indexed import Unequal, joined
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Coupling, SiteQuantity
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import DisorderAverage, OrderParameter
from symcavity.witness.components import at_components
from symcavity.witness.registry import Check, registering, result
from symcavity.witness.single_site import CHECKS as SITE_CHECKS
from symcavity.witness.written_out import SIZES, Leaves, at_site, equal

CHECKS: dict[str, Check] = {}
check = partial(registering, CHECKS)


class Solved(Leaves):
    """Seeded couplings and messages; the states of the substituted kind solve its declared equations."""

    def __init__(self, seed: int, step: Step, *, signs: bool = False) -> None:
        super().__init__(seed, step)
        self.step = step
        self.signs: dict[SiteQuantity, Expr] | None = {} if signs else None
        self._solve(None)

    def without(self, hearer: Kind, site: int) -> Solved:
        """The same couplings and messages, where the senders do not hear one site."""
        other: Solved = object.__new__(Solved)
        vars(other).update(vars(self), named={})
        other._solve((hearer, site))
        return other

    def __call__(self, node: Expr) -> Any:
        """A leaf; couplings are signs times their standard deviation where averages over them are taken."""
        if self.signs is not None and isinstance(node, SiteQuantity) and isinstance(node.family, Coupling):
            if node not in self.signs:
                self.signs[node] = Dummy(str(node))
            return self.signs[node] * sqrt(self.variance(node))
        return super().__call__(node)

    def _solve(self, silent: tuple[Kind, int] | None) -> None:
        kind = self.step.evidence["kind"]
        law = self.step.evidence["system"].laws[kind]
        rule = {f.symbol: _heard(f, silent) for f in law.fields}
        equations = [Equation(e.lhs.xreplace(rule), e.rhs.xreplace(rule)) for e in law.equations]
        marks = {q: Dummy(str(q)) for q in law.unknowns}
        values: dict[SiteQuantity, Any] = {}
        for site in range(1, SIZES[kind.size] + 1):
            for q, mark in marks.items():
                self.named[q.family] = partial(_constant, mark)
            residuals = [S(self.value(at_site(e, kind, site).difference)).expand() for e in equations]
            matrix = Matrix([[r.coeff(m) for m in marks.values()] for r in residuals])
            rest = Matrix([-r.xreplace(dict.fromkeys(marks.values(), S.Zero)) for r in residuals])
            found = matrix.LUsolve(rest)
            values |= {q.xreplace({kind.index: S(site)}): v for q, v in zip(marks, found, strict=True)}
        for q in marks:
            self.named[q.family] = values.__getitem__

    def mean(self, expr: Expr) -> Any:
        """The average over all signs of the couplings: even powers are one, odd ones vanish."""
        value = S(self.value(expr)).expand()
        marks = [m for m in (self.signs or {}).values() if value.has(m)]
        if not marks:
            return value
        return sum((c for powers, c in Poly(value, *marks).terms() if not any(n % 2 for n in powers)), S.Zero)


def _constant(value: Any, _node: Expr) -> Any:
    return value


def _heard(f: RandomField, silent: tuple[Kind, int] | None) -> Expr:
    """A field as it is declared, without the message of a silent site."""
    if silent is None or f.sender != silent[0]:
        return f.as_sum
    body, *limits = f.as_sum.args
    return Sum(body * Unequal(f.sender_index, S(silent[1])), *limits)


def _sites(step: Step) -> list[tuple[Kind, int]]:
    """The sites of all that hear the kind."""
    return [(kind, site) for kind in step.data["hearers"] for site in range(1, SIZES[kind.size] + 1)]


def _declared(step: Step, hearer: Kind) -> list[Equation]:
    """The declared equations of a hearer in which its senders stand."""
    law = step.evidence["system"].laws[hearer]
    heard = [f.symbol for f in law.fields if f.sender == step.evidence["kind"]]
    return [w for e, w in zip(law.equations, law.written(), strict=True) if e.difference.has(*heard)]


def _claimed(step: Step) -> dict[Kind, list[tuple[Equation, Equation]]]:
    """The claims of a step for each hearer, beside the declared equations."""
    claims, out = list(step.claims), {}
    for hearer in step.data["hearers"]:
        declared = _declared(step, hearer)
        out[hearer] = [(claims.pop(0), d) for d in declared]
    if claims:
        raise ValueError(f"{len(claims)} claims more than declared equations")
    return out


def _fields(step: Step) -> dict[Any, RandomField]:
    """The field that each name stands for, by the family of the name."""
    return {s.name.family: s.field for s in step.evidence["found"]}


def _at(f: RandomField, site: int, node: SiteQuantity) -> Expr:
    """A declared field at a site, and at the component of a named quantity."""
    here = at_site(Equation(S.Zero, f.as_sum), f.hearer, site).rhs
    return at_components(here, dict(zip(f.components[:1], node.indices[1:], strict=False)))


@check("substitution")
def _substitution(step: Step, _dps: int) -> list[Verdict]:
    """The claimed equations against the declared ones, in which the senders' states solve their own."""
    leaves, claimed, ok = Solved(21, step), _claimed(step), True
    for hearer, site in _sites(step):
        for pair in claimed[hearer]:
            claim, declared = (leaves.value(at_site(e, hearer, site).difference) for e in pair)
            ok = ok and equal(claim, declared)
    return result(BRUTE_FORCE, ok, "the declared equations with the states put in, N = 3, P = 2")


@check("substitution_field")
def _field(step: Step, _dps: int) -> list[Verdict]:
    """Each name against the declared field without the site's own message."""
    leaves, fields, ok = Solved(23, step), _fields(step), True
    for hearer, site in _sites(step):
        alone = leaves.without(hearer, site)
        for claim in step.claims:
            f = fields[claim.lhs.family]
            if f.hearer == hearer:
                here = at_components(claim.lhs, leaves.components)
                ok = ok and equal(leaves.value(at_site(claim, hearer, site).rhs), alone.value(_at(f, site, here)))
    return result(BRUTE_FORCE, ok, "what a site hears without its own message, N = 3, P = 2")


def _naming(leaves: Solved, step: Step, hearer: Kind, site: int) -> None:
    """Let the names of the fields stand for what the site hears without its own message."""
    alone = leaves.without(hearer, site)
    for family, f in _fields(step).items():
        if f.hearer == hearer:
            leaves.named[family] = partial(_without, alone, f, site)


def _without(alone: Solved, f: RandomField, site: int, node: Any) -> Any:
    """A field at a site, and at the component of a named quantity, where its own message is left out."""
    return alone.value(_at(f, site, node))


@check("substitution_statistics")
def _statistics(step: Step, _dps: int) -> list[Verdict]:
    """Averages over all signs of all couplings, at fixed messages; closed forms add the site's own message."""
    leaves, ok = Solved(22, step, signs=True), True
    meanings, names = step.evidence["theory"].order_parameters, _fields(step)
    for hearer, site in _sites(step):
        _naming(leaves, step, hearer, site)
        exact: dict[Expr, Expr] = {}
        for claim in step.claims:
            here = {names[q.family].hearer for q in claim.lhs.atoms(SiteQuantity) if q.family in names}
            if here and here != {hearer}:
                continue
            closed = leaves._averages(claim.rhs.xreplace(meanings))  # noqa: SLF001 - its own leaves
            ok = ok and not closed.atoms(OrderParameter) and isinstance(claim.lhs, DisorderAverage)
            value = leaves.value(at_site(Equation(claim.lhs, closed), hearer, site).rhs)
            if claim.lhs in exact:
                before = at_site(Equation(claim.lhs, joined(exact[claim.lhs])), hearer, site).rhs
                ok = ok and equal(leaves.value(before), value)
            else:
                body = at_site(Equation(claim.lhs, claim.lhs.args[0]), hearer, site).rhs
                ok = ok and equal(leaves.mean(body), value)
            exact.setdefault(claim.lhs, claim.rhs)
    return result(BRUTE_FORCE, ok, "averages over all signs of the couplings, N = 3, P = 2")


@check("substitution_law")
def _law(step: Step, _dps: int) -> list[Verdict]:
    """The claimed law and the declared one differ by nothing on average over the couplings, at fixed messages."""
    leaves, claimed, ok = Solved(24, step, signs=True), _claimed(step), True
    for hearer, site in _sites(step):
        _naming(leaves, step, hearer, site)
        for pair in claimed[hearer]:
            claim, declared = (leaves.mean(at_site(e, hearer, site).difference) for e in pair)
            ok = ok and equal(claim, declared)
    return result(BRUTE_FORCE, ok, "the declared law averaged over all signs of the couplings, N = 3, P = 2")


@check("substitution_agreement")
def _agreement(step: Step, dps: int) -> list[Verdict]:
    """The order parameters of the fold: by its closures where these are rational, and at a solved point."""
    theory = step.evidence["theory"]
    gaps = [c.lhs.xreplace(theory.closures) - c.rhs for c in step.claims]
    same = all(gap.expand() == 0 for gap in gaps)
    out = [Verdict(SYMBOLIC, True, "the closures of the inserted sites, put in")] if same else []
    return out + SITE_CHECKS["solved"](step, dps)


__all__ = ["CHECKS"]
