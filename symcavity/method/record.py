"""Write down a derivation: each step with its claim, its rule, and what a check needs to judge it."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Mul, S, Symbol, fraction

from symcavity.algebra.indexed import fresh_index
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.errors import NoClosedForm
from symcavity.method.average import (
    coupling_covariance,
    source_of,
)
from symcavity.method.identity import identity_steps
from symcavity.method.side_record import SideWriter
from symcavity.method.symmetry import Symmetry, find_symmetry
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.quantities import (
    DATUM,
    FEATURE,
    Average,
    Coupling,
    Field,
    SiteQuantity,
    alpha,
)
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import DisorderAverage

READABLE = 300  # operations in a formula that fills half a page


def record(theory: Theory) -> Derivation:
    """Return the record of a theory's derivation, in the order of the method."""
    writer = _Writer(theory)
    system = theory.system
    steps = writer.problem()
    if system.record is not None:
        steps += writer.optimality()
    steps += writer.sources()
    for side in (FEATURE, DATUM):
        steps += writer.side(theory.sides[side])
    steps += writer.closure()
    steps += writer.elimination()
    steps += identity_steps(theory)
    steps += writer.symmetry()
    method = "naive" if theory.is_naive else "cavity"
    name = system.name or "A bipartite convex problem"
    results = tuple(claim for step in steps if step.rule == "result" for claim in step.claims)
    return Derivation(name, method, tuple(steps), tuple(theory.order_parameters.items()), results)


class _Writer(SideWriter):
    """Writes the steps of one theory."""

    # -- the declared problem --------------------------------------------------------------------

    def problem(self) -> list[Step]:
        """The declaration, and the assumption about the disorder."""
        system, kkt = self.system, self.system.record
        states = {
            side: [q for q in law.unknowns if kkt is None or _declared(q, kkt)] for side, law in system.laws.items()
        }
        data: dict[str, Any] = {
            "states": states,
            "quenched": list(system.quenched),
            "globals": list(system.globals),
            "fixed": list(system.fixed),
        }
        if kkt is not None:
            data |= {"minimize": kkt.problem.minimize, "subject_to": list(kkt.problem.subject_to)}
        else:
            data |= {
                "equations": list(system.declared),
                "conditions": [p for law in system.laws.values() for p in law.pairs],
            }
        couplings = list(dict.fromkeys(f.coupling for law in system.laws.values() for f in law.fields))
        claims = []
        for x in couplings:
            second: dict[Any, Any] = {}
            for index in x.indices:
                if index.is_Symbol:
                    second[index] = fresh_index(index, {*x.indices, *second.values()})
            y = x.xreplace(second)
            claims += [
                Equation(DisorderAverage(x), S.Zero),
                Equation(DisorderAverage(x * y), coupling_covariance(x, y)),
            ]
        premise: list[tuple[str, dict[str, Any]]] = [("iid", {}), ("large_size", {})]
        return [
            self.step("problem", "problem", section="The problem", data=data),
            self.step(
                "disorder",
                "disorder",
                claims,
                section="The problem",
                data={"couplings": couplings},
                assumptions=tuple(premise),
                check="premise",
            ),
        ]

    def optimality(self) -> list[Step]:
        """The Lagrangian and its optimality conditions."""
        kkt, section = self.system.record, "Optimality conditions"
        rule = {f.symbol: f.as_sum for f in kkt.fields}
        multipliers = [(m, expr.xreplace(rule), equality) for m, expr, equality in kkt.multipliers]
        steps = [
            self.step(
                "lagrangian",
                "lagrangian",
                [Equation(Symbol("L"), kkt.total)],
                section=section,
                data={"multipliers": multipliers, "auxiliary": list(kkt.auxiliary)},
                assumptions=(("convexity", {}),),
                rests_on=("problem",),
                check="premise",
            )
        ]
        named = {
            e.lhs: e.rhs.xreplace(rule)
            for law in self.system.laws.values()
            for e in law.equations
            if isinstance(e.lhs, SiteQuantity)
            and (isinstance(e.lhs.family, Field) or e.lhs in {dual for dual, _ in kkt.duals})
        }
        for dual, raw in kkt.duals:
            equation = next(e for law in self.system.laws.values() for e in law.equations if e.lhs == dual)
            steps.append(
                self.step(
                    f"dual.{dual.family.name}",
                    "dual",
                    [equation],
                    section=section,
                    data={"dual": dual},
                    rests_on=("lagrangian",),
                    check="message",
                    evidence={"raw": raw, "named": named, "rule": rule},
                )
            )
        for state, equation in kkt.stationarity:
            name = state.family.name if isinstance(state, SiteQuantity) else str(state)
            steps.append(
                self.step(
                    f"stationarity.{name}",
                    "stationarity",
                    [equation.xreplace(rule)],
                    section=section,
                    data={"state": state},
                    rests_on=("lagrangian",),
                    check="stationarity",
                    evidence={
                        "lagrangian": kkt.total,
                        "state": state,
                        "named": named,
                        "duals": kkt.duals,
                        "rule": rule,
                    },
                )
            )
        pairs = [p for law in self.system.laws.values() for p in law.pairs]
        if pairs:
            slacks = [Equation(q, expr.xreplace(rule)) for q, expr in kkt.slacks]
            steps.append(
                self.step(
                    "complementarity",
                    "complementarity",
                    slacks,
                    section=section,
                    data={"pairs": pairs},
                    rests_on=("lagrangian",),
                    check="premise",
                )
            )
        return steps

    def sources(self) -> list[Step]:
        """The equations that couple the two sides, with their sources."""
        claims = []
        for law in (self.system.datum, self.system.feature):
            rule = {f.symbol: f.as_sum for f in law.fields}
            for f in law.fields:
                carrier = law.carrier(f)
                source = source_of(self.system, f).at_site()
                claims.append(Equation(carrier.lhs.xreplace(rule), carrier.rhs.xreplace(rule) + source))
        return [
            self.step(
                "sources",
                "sources",
                claims,
                section="Bipartite system",
                assumptions=(("uniqueness", {}),),
                check="premise",
            )
        ]

    # -- closing ---------------------------------------------------------------------------------

    def closure(self) -> list[Step]:
        """Each order parameter by the single-site average that it stands for, and the closed system."""
        theory, section = self.theory, "Self-consistent equations"
        steps = []
        if any(e.difference.has(phi) for e in theory.equations):
            n, kappa, z = (
                Symbol("n", integer=True, nonnegative=True),
                Symbol("kappa", real=True),
                Symbol("z", real=True),
            )
            steps.append(
                self.step(
                    "truncated_moments",
                    "truncated_moments",
                    [Equation(phi(n, kappa), TruncatedIntegral((kappa - z) ** n, z, kappa))],
                    section=section,
                    data={"order": n, "variable": z},
                    check="moments",
                )
            )
        for symbol, value in theory.closures.items():
            meaning = theory.order_parameters[symbol]
            steps.append(
                self.step(
                    f"closure.{symbol}",
                    "closure",
                    [Equation(symbol, value)],
                    section=section,
                    data={"symbol": symbol, "meaning": meaning, "observable": meaning},
                    assumptions=(("self_averaging", {}),),
                    rests_on=tuple(f"{s}.solution" for s in _sides(meaning)),
                    check="closure",
                    evidence={"theory": theory, "meaning": meaning},
                )
            )
        for k, equation in enumerate(theory.global_equations):
            side, body = theory.system.global_conditions[k]
            steps.append(
                self.step(
                    f"global.{k + 1}",
                    "global_condition",
                    [equation],
                    section=section,
                    rests_on=(f"{side}.solution",),
                    check="closure",
                    evidence={"theory": theory, "meaning": Average(body)},
                )
            )
        for k, (equation, declared) in enumerate(zip(theory.fixed_equations, theory.system.fixed, strict=True)):
            steps.append(
                self.step(
                    f"fixed.{k + 1}",
                    "fixed",
                    [equation],
                    section=section,
                    rests_on=("problem",),
                    check="closure",
                    evidence={"theory": theory, "meaning": declared.lhs, "value": declared.rhs},
                )
            )
        free = [alpha] if theory.system.fixed else []
        parameters = [*theory.system.parameters, *([] if free else [alpha])]
        steps.append(
            self.step(
                "closed_system",
                "closed_system",
                theory.equations,
                section=section,
                data={"unknowns": [*theory.unknowns, *free], "parameters": parameters},
                rests_on=tuple(s.key for s in steps),
                check="solved",
                evidence={"theory": theory},
            )
        )
        return steps

    def elimination(self) -> list[Step]:
        """What elimination leaves: the explicit unknowns, and the core that needs a root finder."""
        theory, section = self.theory, "Results"
        closed = theory.reduced_with_load if theory.system.fixed else theory.reduced
        steps = []
        shifts = [Equation(g, value) for g, value in theory.units.items() if not value.is_Symbol]
        if shifts:
            evidence = {"theory": theory}
            steps.append(self.step("units", "units", shifts, section=section, check="solved", evidence=evidence))
        for symbol, expr in closed.definitions.items():
            steps.append(
                self.step(
                    f"eliminate.{symbol}",
                    "elimination",
                    [_readable(symbol, expr)],
                    section=section,
                    data={"solved": symbol},
                    rests_on=("closed_system",),
                    check="solved",
                    evidence={"theory": theory},
                )
            )
        # a core that nobody would read is left as the equation that it came from, beside the formulas above
        claims = [
            Equation(core, S.Zero) if core.count_ops() <= READABLE else whole
            for core, whole in zip(closed.core, theory.remaining(closed), strict=True)
        ]
        for target in (*([alpha] if theory.system.fixed else []), *theory.order_parameters):
            try:
                explicit = theory.closed_form(target)
            except NoClosedForm:
                continue
            if target == alpha or explicit.count_ops() <= READABLE:
                claims.append(Equation(target, explicit))
        if claims:
            steps.append(
                self.step(
                    "result",
                    "result",
                    claims,
                    section=section,
                    rests_on=tuple(s.key for s in steps) or ("closed_system",),
                    check="solved",
                    evidence={"theory": theory},
                )
            )
        return steps

    def symmetry(self) -> list[Step]:
        """Whether a rescaling makes the naive analysis right."""
        found = find_symmetry(self.system)
        return [
            self.step(
                "symmetry",
                "symmetry",
                section="Symmetry",
                data={"found": bool(found), "reason": _words(found)},
                check="symmetry",
                evidence={"theory": self.theory, "found": found},
            )
        ]


def _readable(symbol: Symbol, expr: Expr) -> Equation:
    """What an unknown equals; a long sum below it is multiplied up, so that lines may end in it."""
    top, bottom = fraction(expr)
    if bottom.count_ops() > READABLE // 8 and any(f.is_Add for f in Mul.make_args(bottom)):
        return Equation(bottom * symbol, top)
    return Equation(symbol, expr)


def _words(found: Symmetry) -> list[Any]:
    """What the finder has to say, as words and expressions."""
    if not found:
        return ["The reason: ", *found.parts]
    scaled = [*found.scaled, *found.feature_scaled]
    names = [part for k, q in enumerate(scaled) for part in ((", ", q) if k else (q,))]
    return ["Here ", *names, " may be divided by any ", Symbol("A") > 0, " at fixed fields."]


def _declared(q: SiteQuantity, kkt: Any) -> bool:
    made = {m for m, _, _ in kkt.multipliers} | {a for a, _ in kkt.auxiliary} | {s for s, _ in kkt.slacks}
    made |= {d for d, _ in kkt.duals}
    return q not in made and not isinstance(q.family, Field)


def _sides(expr: Expr) -> list[str]:
    found = {slot for q in expr.atoms(SiteQuantity) if not isinstance(q.family, Coupling) for slot in q.site}
    return sorted(found, reverse=True)
