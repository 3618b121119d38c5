"""Write down one side of a derivation: insertion, response, averages, and the law of the new site."""

from __future__ import annotations

from typing import Any

from sympy import (
    Add,
    And,
    Expr,
    KroneckerDelta,
    S,
    StrictGreaterThan,
    StrictLessThan,
    Sum,
    UnevaluatedExpr,
    sqrt,
)

from symcavity.algebra.indexed import contract, flatten
from symcavity.method.average import (
    field_sum,
    inserted,
    second_component,
    second_site,
    self_coupling_sum,
    source_at,
)
from symcavity.method.inserted import HeardField, Side
from symcavity.method.set_record import vector_steps
from symcavity.method.set_side import VectorSide
from symcavity.method.steps import StepWriter
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.quantities import (
    DATUM,
    FEATURE,
    INDEX,
    OTHER,
    SIZE,
    SiteQuantity,
    SiteResponse,
)
from symcavity.record.derivation import Step
from symcavity.record.symbols import ComponentSymbol, DisorderAverage, Perturbation, ResponseElement

TITLES = {FEATURE: "Feature cavity", DATUM: "Datum cavity"}


class SideWriter(StepWriter):
    """Writes the steps of the two sides of a theory."""

    def side(self, side: Side) -> list[Step]:
        """Insertion, response, identification, averages, solution and response of one side."""
        key, section = side.side, TITLES[side.side]
        naive = side.naive and side.side == FEATURE
        steps = self._inserted(side, section)
        steps += self._statistics(side, section)
        if naive:
            steps.append(
                self.step(
                    f"{key}.naive_drop",
                    "naive_drop",
                    [Equation(f, S.Zero) for h in side.heard for f in h.self_couplings],
                    section=section,
                    data={"side": key},
                    assumptions=(("naive_independence", {}),),
                    rests_on=(f"{key}.cavity_equation",),
                    check="premise",
                )
            )
        means = side.means()
        effective = [at_zero(_contracted(e.xreplace(means)), key) for e in side.effective_equations()]
        steps.append(
            self.step(
                f"{key}.effective_law",
                "effective_law",
                effective,
                section=section,
                data={"side": key, "pairs": [p.xreplace({INDEX[key]: S.Zero}) for p in side.law.pairs]},
                rests_on=(f"{key}.cavity_equation", f"{key}.naive_drop" if naive else f"{key}.self_coupling_mean"),
                check="effective_law",
                evidence={"side": side, "means": means},
            )
        )
        steps += self._solution(side, section)
        return steps

    def _inserted(self, side: Side, section: str) -> list[Step]:
        system, key, other = self.system, side.side, OTHER[side.side]
        answers = self.system.laws[other]
        second = second_site(other, *answers.fields)
        shifts = {g: _shift(g, key) for g in answers.fields}
        steps = [
            self.step(
                f"{key}.insert",
                "insert",
                [Equation(Perturbation(self._field_name(g)), shift) for g, shift in shifts.items()],
                section=section,
                data={
                    "side": key,
                    "other": other,
                    "states": list(dict.fromkeys(at_zero(q, key) for g in answers.fields for q in g.states())),
                    "couplings": list(dict.fromkeys(inserted(g.coupling, key) for g in answers.fields)),
                },
                assumptions=(("independence", {}),),
                rests_on=("sources",),
                check="insert",
                evidence={"fields": list(answers.fields), "side": key},
            )
        ]
        responds = []
        for h in side.heard:
            message = h.declared.emission
            if not h.declared.states():
                continue
            total: Expr = S.Zero
            for g, shift in shifts.items():
                weight = answers.coefficient(g)
                element = ResponseElement(message, source_at(system, g, second))
                moved = {INDEX[other]: second, **(second_component(g) if g.components else {})}
                inner = [(moved[g.components[0]], *g.components[1:])] if g.components else []
                shifted = Sum(element * (weight * shift).xreplace(moved), (second, 1, SIZE[other]), *inner)
                total += flatten(shifted) if shift.has(Sum) else shifted
            responds.append(Equation(Perturbation(message), total))
        responds = list(dict.fromkeys(responds))
        order = 1 / sqrt(SIZE[FEATURE])
        if responds:
            steps.append(
                self.step(
                    f"{key}.respond",
                    "respond",
                    responds,
                    section=section,
                    data={"side": key, "other": other, "order": order},
                    assumptions=(("linear_response", {"order": order}),),
                    rests_on=(f"{key}.insert",),
                    check="respond",
                    evidence={"system": system, "side": key, "shifts": shifts, "second": second},
                )
            )
        steps += self._substituted(side, section, responds)
        return steps

    def _field_name(self, g: RandomField) -> Expr:
        """A field by the variable of its equation where that is its name, else written out."""
        carrier = self.system.laws[g.side].carrier(g)
        if isinstance(carrier.lhs, SiteQuantity) and carrier.rhs == g.symbol:
            return carrier.lhs
        return g.as_sum

    def _substituted(self, side: Side, section: str, responds: list[Equation]) -> list[Step]:
        system, key = self.system, side.side
        responses = {r.lhs.args[0]: r.rhs for r in responds}
        chain, fields, couplings, effective = [], [], [], []
        for equation in side.law.equations:
            heard = [h for h in side.heard if equation.difference.has(h.declared.symbol)]
            if not heard:
                continue
            start: dict[Expr, Expr] = {}
            expanded: dict[Expr, Expr] = {}
            for h in heard:
                x, message = inserted(h.declared.coupling, key), h.declared.emission
                answer = responses.get(message, S.Zero)
                body = x * (message + Perturbation(message)) if answer != 0 else x * message
                start[h.declared.symbol] = Sum(body, *h.declared.limits)
                back = flatten(Sum(x * answer, *h.declared.limits)) if answer != 0 else S.Zero
                expanded[h.declared.symbol] = _field(h) + back
                fields.append(Equation(h.eta, _field(h)))
                for f in h.self_couplings:
                    definition = self_coupling_sum(system, h.declared, h.origin(f))
                    couplings.append(Equation(f, at_zero(definition, key)))
            sources = Add(*(h.source for h in heard))
            lhs = at_zero(equation.lhs, key)
            rows = [Equation(lhs, at_zero(equation.rhs.xreplace(r) + sources, key)) for r in (start, expanded)]
            chain += rows
            effective.append((lhs, rows[-1].rhs))
        closed = [
            at_zero(_with_vanishing(e, side, law_equation), key)
            for e, law_equation in zip(side.effective_equations(), side.law.equations, strict=True)
            if any(law_equation.difference.has(h.declared.symbol) for h in side.heard)
        ]
        common: dict[str, Any] = {"section": section}
        base = {"system": system, "side": key, "responds": responds}
        return [
            self.step(
                f"{key}.substitute",
                "substitute",
                chain,
                data={"side": key},
                rests_on=("sources", f"{key}.respond"),
                check="substitute",
                evidence=base,
                **common,
            ),
            self.step(
                f"{key}.cavity_field",
                "cavity_field",
                fields,
                data={"side": key},
                rests_on=(f"{key}.substitute",),
                check="definition",
                evidence=base,
                **common,
            ),
            *(
                [
                    self.step(
                        f"{key}.self_coupling",
                        "self_coupling",
                        couplings,
                        data={"side": key},
                        rests_on=(f"{key}.substitute",),
                        check="definition",
                        evidence=base,
                        **common,
                    )
                ]
                if couplings
                else []
            ),
            self.step(
                f"{key}.cavity_equation",
                "cavity_equation",
                closed,
                data={"side": key},
                rests_on=(f"{key}.cavity_field", f"{key}.self_coupling") if couplings else (f"{key}.cavity_field",),
                check="identify",
                evidence={**base, "expanded": effective, "definitions": [*fields, *couplings]},
                **common,
            ),
        ]

    def _statistics(self, side: Side, section: str) -> list[Step]:
        key = side.side
        claims = [Equation(DisorderAverage(h.eta), S.Zero) for h in side.heard]
        definitions = {h.eta: _field(h) for h in side.heard}
        for k, a in enumerate(side.heard):
            for b in side.heard[k:]:
                value = at_zero(side.covariance[a.eta, b.eta], key)
                second = b.eta
                if isinstance(second, ComponentSymbol):
                    moved = second_component(b.declared)
                    second = second.at(*moved.values())
                    value *= KroneckerDelta(*next(iter(moved.items())))
                    definitions[second] = definitions[b.eta].xreplace(moved)
                claims.append(Equation(DisorderAverage(a.eta * second), value))
        evidence = {
            "system": self.system,
            "side": key,
            "definitions": definitions,
            "meanings": self.theory.order_parameters,
        }
        steps = [
            self.step(
                f"{key}.field_statistics",
                "field_statistics",
                claims,
                section=section,
                data={"side": key, "several": len(side.heard) > 1, "reason": []},
                assumptions=(("independence", {}), ("clt", {})),
                rests_on=("disorder", f"{key}.cavity_field"),
                check="enumerate",
                evidence=evidence,
            )
        ]
        means = [(f, mean, h) for h in side.heard for f, mean in h.couplings.values()]
        means += [(f, S.Zero, h) for h in side.heard for f in h.vanishing]
        if means and not (side.naive and key == FEATURE):
            sums = {f: at_zero(self_coupling_sum(self.system, h.declared, h.origin(f)), key) for f, _, h in means}
            steps.append(
                self.step(
                    f"{key}.self_coupling_mean",
                    "self_coupling_mean",
                    [Equation(DisorderAverage(f), at_zero(mean, key)) for f, mean, _ in means],
                    section=section,
                    data={"side": key},
                    assumptions=(("independence", {}), ("self_averaging", {})),
                    rests_on=("disorder", f"{key}.self_coupling"),
                    check="enumerate",
                    evidence={**evidence, "definitions": sums},
                )
            )
        return steps

    def _solution(self, side: Side, section: str) -> list[Step]:
        key = side.side
        if isinstance(side, VectorSide):
            return vector_steps(self, side, section)
        solution = side.solution().without_sources()
        eta = side.inner().eta
        zero = {INDEX[key]: S.Zero}
        means = side.means()
        relations = [
            StrictGreaterThan(means[f], 0, evaluate=False) if s > 0 else StrictLessThan(means[f], 0, evaluate=False)
            for f, s in side.signs
            if means.get(f, 0) != 0
        ]
        relations += [
            StrictGreaterThan(q.at_site().xreplace(zero), 0, evaluate=False)
            for q in side.law.quenched()
            if q.positive and q.law is None
        ]
        branches: list[Any] = []
        t = solution.reflection * eta
        for region in solution.regions:
            bounds = [t > region.low] if region.low is not None else []
            bounds += [t < region.high] if region.high is not None else []
            values = {q.xreplace(zero): v.xreplace(zero) for q, v in region.values.items()}
            condition = And(*bounds).xreplace(zero) if bounds else None
            branches.append(([], condition, values))
        claims = [Equation(q.xreplace(zero), solution.expression(q).xreplace(zero)) for q in solution.unknowns]
        implicit = solution.is_implicit
        evidence = {"side": side, "solution": side.solution(), "theory": self.theory}
        steps = [
            self.step(
                f"{key}.solution",
                "implicit" if implicit else "branches",
                claims
                if not implicit
                else [
                    *(Equation(eta, b.implicit[1].xreplace(zero)) for b in solution.branches if b.implicit),
                    *claims,
                ],
                section=section,
                data={
                    "side": key,
                    "branches": branches if len(branches) > 1 and not implicit else [],
                    "field": eta,
                    "sign_assumptions": relations if len(branches) > 1 else [],
                },
                assumptions=(("sign", {"relations": relations}),) if relations and len(branches) > 1 else (),
                rests_on=(f"{key}.effective_law",),
                check="solution",
                evidence=evidence,
            )
        ]
        responses = self._responses(side)
        if responses:
            steps.append(
                self.step(
                    f"{key}.response",
                    "response",
                    responses,
                    section=section,
                    data={"side": key},
                    rests_on=(f"{key}.solution",),
                    check="response",
                    evidence=evidence,
                )
            )
        return steps

    def _responses(self, side: Side) -> list[Equation]:
        """The responses that the order parameters need, for one site, averaged over its field."""
        wanted = {
            r
            for meaning in self.theory.order_parameters.values()
            for r in meaning.atoms(SiteResponse)
            if side.side in r.state.site
        }
        ensemble = side.ensemble()
        zero = {INDEX[side.side]: S.Zero}
        return [
            Equation(DisorderAverage(r.xreplace(zero)), ensemble.at_site(r).xreplace(zero))
            for r in sorted(wanted, key=str)
        ]


def _with_vanishing(equation: Equation, side: Side, declared: Equation) -> Equation:
    """The equation of the new site with the self-couplings whose mean will turn out to be zero."""
    heard = [h for h in side.heard if h.vanishing and declared.difference.has(h.declared.symbol)]
    more = Add(
        *(-declared.difference.diff(h.declared.symbol) * f * h.origin(f).emission for h in heard for f in h.vanishing)
    )
    return Equation(equation.lhs, equation.rhs + more)


def _field(h: HeardField) -> Expr:
    """The field of the inserted site, written out."""
    total = field_sum(h.declared)
    return total.xreplace({u: u.args[0] for u in total.atoms(UnevaluatedExpr)})


def _shift(g: RandomField, side: str) -> Expr:
    """What the new site adds to a field of the other side."""
    body = inserted(g.coupling * g.emission, side)
    if not g.inner:
        return body
    moved = second_component(g)
    return Sum(body.xreplace(moved), (moved[g.inner[0]], *g.inner[1:]))


def _contracted(equation: Equation) -> Equation:
    """Contract identity matrices."""
    if not equation.difference.has(KroneckerDelta):
        return equation
    terms = [contract(t) if t.has(KroneckerDelta) else t for t in Add.make_args(equation.rhs)]
    return Equation(equation.lhs, Add(*terms))


def at_zero(expr: Any, side: str) -> Any:
    """The site index inside site quantities set to that of the inserted site."""
    return expr.xreplace({INDEX[side]: S.Zero})
