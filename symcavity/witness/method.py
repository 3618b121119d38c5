"""Witnesses: independent computations that judge the claims of a step.

Each check is a function of the step (so that a changed claim is judged as it stands) and of the digits.
None of them repeats the derivation: index algebra is written out at N = 3, P = 2; averages over couplings
are enumerated over Rademacher couplings, whose first two moments are exact; solutions are put into their
laws; averages are integrated numerically; eliminated formulas are evaluated at a solved point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from sympy import Add, Expr, Rational, S, Sum, Symbol

from symcavity.algebra.indexed import explicit
from symcavity.model.equations import Equation
from symcavity.model.quantities import (
    INDEX,
    OTHER,
    SIZE,
    Coupling,
    SiteQuantity,
    SiteResponse,
)
from symcavity.record.derivation import BRUTE_FORCE, PREMISE, SYMBOLIC, Checked, Derivation, Step, Verdict
from symcavity.record.symbols import DisorderAverage, Perturbation, ResponseElement, Source
from symcavity.witness.components import (
    at_components,
    component_choices,
    component_sizes,
    component_values,
)
from symcavity.witness.instances import witness as by_instances
from symcavity.witness.registry import Check, numeric, registering, result
from symcavity.witness.sets import CHECKS
from symcavity.witness.single_site import CHECKS as SITE_CHECKS
from symcavity.witness.written_out import SIZES, Leaves, at_site, equal, labelled, source_label

_CHECKS: dict[str, Check] = {**CHECKS, **SITE_CHECKS}
check = partial(registering, _CHECKS)


def verify(derivation: Derivation, dps: int = 50, simulation: Any = None) -> tuple[Checked, ...]:
    """Check every step of a derivation; a simulation, where there is one, is a further witness."""
    rows = []
    for step in derivation:
        verdicts = judge(step, dps)
        if simulation is not None:
            verdicts = [*verdicts, *by_instances(simulation, step)]
        rows.append(Checked(step, tuple(verdicts)))
    return tuple(rows)


def judge(step: Step, dps: int = 50) -> list[Verdict]:
    """Run the check of a step; a check that cannot be carried out speaks as a failure, never in silence."""
    if not step.check:
        return []
    try:
        rows = [_run(step, dps, at) for at in component_choices(step)]
        return [v if v.ok else next(r[k] for r in rows if not r[k].ok) for k, v in enumerate(_worst(rows))]
    except (ArithmeticError, ValueError, TypeError, KeyError, NotImplementedError) as problem:
        return [
            Verdict(numeric(dps), False, f"the check could not be carried out: {type(problem).__name__}: {problem}")
        ]


def _run(step: Step, dps: int, at: dict[Any, Any]) -> list[Verdict]:
    """Run the check of a step with its free component indices at given values."""
    return _CHECKS[step.check](replace(step, evidence={**step.evidence, "components": at}), dps)


def _worst(rows: list[list[Verdict]]) -> list[Verdict]:
    """For each place in the lists of verdicts: one that failed, where there is one."""
    return [next((v for v in column if not v.ok), column[0]) for column in zip(*rows, strict=True)]


@check("premise")
def _premise(_step: Step, _dps: int) -> list[Verdict]:
    return [Verdict(PREMISE, True, "a definition or an assumption: nothing to be derived")]


# -- optimality ------------------------------------------------------------------------------------


@check("stationarity")
def _stationarity(step: Step, _dps: int) -> list[Verdict]:
    """The claimed equation is the derivative of the explicit Lagrangian, up to a constant factor."""
    state, named, rule = step.evidence["state"], step.evidence["named"], step.evidence["rule"]
    total = step.evidence["lagrangian"]
    ok = True
    for claim in step.claims:
        ratios = set()
        for seed in range(3):
            leaves = Leaves(seed, step)
            _define_named(leaves, named, rule)
            target: Any = state
            if isinstance(state, SiteQuantity):
                ((side, index),) = state.site.items()
                target = state.xreplace({index: S.One})
                claim_here = at_site(claim, side, 1)
            else:
                claim_here = claim
            mark = Symbol("X_")
            base = leaves(target) if isinstance(target, SiteQuantity) else leaves.number(target)
            slope = _derivative(leaves, total, target, mark, base)
            value = leaves.value(claim_here.difference)
            if equal(slope, 0) and equal(value, 0):
                continue
            ratios.add("bad" if equal(value, 0) or equal(slope, 0) else _ratio(slope, value))
        ok = ok and len(ratios) == 1 and "bad" not in ratios
    return result(BRUTE_FORCE, ok, "the derivative of the explicit Lagrangian, N = 3, P = 2", "not its derivative")


def _ratio(a: Any, b: Any) -> Any:
    value = S(a) / S(b)
    return value.nsimplify() if value.is_Rational else Rational(round(float(value.evalf(30)) * 10**12), 10**12)


def _define_named(leaves: Leaves, named: dict[SiteQuantity, Expr], rule: dict[Any, Any]) -> None:
    """Variables that an equation defines take the value of its right-hand side."""
    for q, expr in named.items():
        ((side, _),) = q.site.items()
        leaves.named[q.family] = _defined(leaves, expr.xreplace(rule), side, q.indices[len(q.family.slots) :])


def _defined(leaves: Leaves, expr: Expr, side: str, inner: Any = ()) -> Callable[[Expr], Any]:
    """The value of a variable that an equation defines, at any site and component."""

    def value(node: Expr) -> Any:
        here = at_components(expr, dict(zip(inner, node.indices[1:], strict=False)))
        return leaves.value(at_site(Equation(node, here), side, int(node.indices[0])).rhs)

    return value


def _derivative(leaves: Leaves, total: Expr, target: Any, mark: Symbol, base: Any) -> Any:
    """The exact derivative of the written-out Lagrangian with respect to one variable."""

    class Marked(Leaves):
        def __init__(self) -> None:
            super().__init__(0)
            self.components = leaves.components
            self._values, self._rng, self.named = leaves._values, leaves._rng, {}  # noqa: SLF001

        def __call__(self, node: Expr) -> Any:
            return mark if node == target else super().__call__(node)

        def number(self, key: Any, *, positive: bool = False) -> Any:
            return mark if key == target else super().number(key, positive=positive)

    written = S(Marked().value(total))
    return written.diff(mark).xreplace({mark: base})


@check("message")
def _message(step: Step, _dps: int) -> list[Verdict]:
    """The message is minus the slope of the loss: compare with a difference quotient at high precision."""
    raw, named = step.evidence["raw"], step.evidence["named"]
    claim = step.claims[0]
    back = {q: e for q, e in named.items() if e != claim.rhs}
    rule = {v: k for k, v in step.evidence["rule"].items()}
    written = claim.rhs.xreplace({q: e.xreplace(rule) for q, e in back.items()})
    gap = (written - raw).expand() if not (written - raw).has(Sum) else S.NaN
    return result(SYMBOLIC, gap == 0 or gap.equals(0) is True, "minus the derivative of the loss")


# -- the index algebra -----------------------------------------------------------------------------


@check("insert")
def _insert(step: Step, _dps: int) -> list[Verdict]:
    """The field with the new site minus the field without it, written out."""
    ok, side = True, step.evidence["side"]
    other = OTHER[side]
    for claim, f in zip(step.claims, step.evidence["fields"], strict=True):
        leaves = Leaves(3, step)
        body = Sum(f.coupling * f.emission, f.inner) if f.inner else f.coupling * f.emission
        for site in range(1, SIZES[SIZE[other]] + 1):
            at = {INDEX[other]: S(site)}
            longer = Add(
                *(leaves.value(body.xreplace({**at, INDEX[side]: S(k)})) for k in range(SIZES[SIZE[side]] + 1))
            )
            shorter = Add(
                *(leaves.value(body.xreplace({**at, INDEX[side]: S(k)})) for k in range(1, SIZES[SIZE[side]] + 1))
            )
            ok = ok and equal(longer - shorter, leaves.value(at_site(claim, other, site).rhs))
    return result(BRUTE_FORCE, ok, "the fields with and without the new site, N = 3, P = 2")


@check("respond")
def _respond(step: Step, _dps: int) -> list[Verdict]:
    """The first-order change of messages that are explicit linear functions of the shifted sources."""
    system, side = step.evidence["system"], step.evidence["side"]
    other = OTHER[side]
    ok = True
    for claim in step.claims:
        leaves = labelled(Leaves(4, step), system)
        message = claim.lhs.args[0]
        for site in range(1, SIZES[SIZE[other]] + 1):
            at = {INDEX[other]: S(site)}
            total = S.Zero
            for g, shift in step.evidence["shifts"].items():
                weight = system.laws[other].coefficient(g)
                label = source_label(system, g)
                for k, c in product(range(1, SIZES[SIZE[other]] + 1), component_values(g.components)):
                    here = dict.fromkeys(g.components[:1], c)
                    element = ResponseElement(
                        at_components(message, leaves.components).xreplace(at),
                        Source(other, label, g.components)[(S(k), *here.values())],
                    )
                    moved = (weight * shift).xreplace({INDEX[other]: S(k)})
                    change = leaves.value(at_components(moved, here) if here else moved)
                    total += leaves(element) * change
            ok = ok and equal(total, leaves.value(at_site(claim, other, site).rhs))
    return result(BRUTE_FORCE, ok, "the response to the shifted sources, N = 3, P = 2")


def _with_answers(expr: Expr, responds: list[Equation]) -> Expr:
    """Perturbations written by the response of the other side."""
    rule = {}
    for node in expr.atoms(Perturbation):
        for claim in responds:
            if claim.lhs == node:
                rule[node] = claim.rhs
    return expr.xreplace(rule)


@check("substitute")
def _substitute(step: Step, _dps: int) -> list[Verdict]:
    """All right-hand sides of one left-hand side agree when written out."""
    responds, system = step.evidence["responds"], step.evidence["system"]
    leaves = labelled(Leaves(5, step), system)
    groups: dict[Expr, list[Any]] = {}
    for claim in step.claims:
        groups.setdefault(claim.lhs, []).append(leaves.value(_with_answers(claim.rhs, responds)))
    ok = all(equal(v, values[0]) for values in groups.values() for v in values)
    return result(BRUTE_FORCE, ok, "both forms written out, N = 3, P = 2")


@check("definition")
def _definition(_step: Step, _dps: int) -> list[Verdict]:
    return [Verdict(PREMISE, True, "a definition; the equation of the new site checks it")]


@check("identify")
def _identify(step: Step, _dps: int) -> list[Verdict]:
    """The equation with cavity field and self-coupling is the expanded one."""
    leaves = labelled(Leaves(6, step), step.evidence["system"])
    rule = {d.lhs: d.rhs for d in step.evidence["definitions"]}
    ok = True
    for claim, (lhs, expanded) in zip(step.claims, step.evidence["expanded"], strict=True):
        ok = ok and claim.lhs == lhs and equal(leaves.value(claim.rhs.xreplace(rule)), leaves.value(expanded))
    return result(BRUTE_FORCE, ok, "with the definitions put in, N = 3, P = 2")


@check("enumerate")
def _enumerate(step: Step, _dps: int) -> list[Verdict]:
    """Exact averages over all sign patterns of the fresh couplings."""
    definitions, system = step.evidence["definitions"], step.evidence["system"]
    rule = dict(definitions)
    ok = True
    for claim in step.claims:
        body = claim.lhs.args[0].xreplace(rule) if isinstance(claim.lhs, DisorderAverage) else claim.lhs.xreplace(rule)
        fresh = sorted(_written_couplings(body, step), key=str)
        if len(fresh) > 12:
            return [Verdict(BRUTE_FORCE, False, f"{len(fresh)} couplings are too many to enumerate")]
        total: Any = S.Zero
        base = labelled(Leaves(7, step), system)
        for signs in product((1, -1), repeat=len(fresh)):
            base.rademacher = dict(zip(fresh, signs, strict=True))
            total += S(base.value(body)).expand()
        mean = total / 2 ** len(fresh)
        meanings = step.evidence["meanings"]
        ok = ok and equal(mean, base.value(claim.rhs.xreplace(meanings)))
    return result(BRUTE_FORCE, ok, "exact enumeration of the fresh couplings, N = 3, P = 2")


def _written_couplings(body: Expr, step: Step) -> set[SiteQuantity]:
    """The couplings that occur when the sums are written out."""
    found: set[SiteQuantity] = set()

    def note(node: Expr) -> Any:
        if isinstance(node, SiteQuantity) and isinstance(node.family, Coupling):
            found.add(node)
        return S.One

    body = at_components(body, step.evidence["components"])
    explicit(body.xreplace(component_sizes(body)), SIZES, note, (SiteQuantity, ResponseElement, SiteResponse))
    return found


__all__ = ["judge", "verify"]
