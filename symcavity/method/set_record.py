"""Record the single site of a law that is given by a convex set: projection, regimes, responses, identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Eq, Expr, Identity, Piecewise, S, Sum, Symbol, ZeroMatrix, latex, oo
from sympy.printing.latex import LatexPrinter

from symcavity.algebra.matrices import BoldMatrix
from symcavity.method.set_response import TouchingResponse, saturated_response, tip_response, touching_response
from symcavity.method.set_side import VectorSide
from symcavity.method.steps import StepWriter, reference_of
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.quantities import INDEX, SiteQuantity, SiteResponse
from symcavity.model.support import Anchor, Support, bold
from symcavity.record.derivation import Step
from symcavity.record.symbols import DisorderAverage
from symcavity.shapes.base import INTERIOR, SATURATED, TOUCHING, WHOLE
from symcavity.sites.set_averages import GAP2, GV, LAM, PSI, REGIME, TD, ProjectionAverage


def response_of(side: VectorSide) -> TouchingResponse:
    """The response of the inserted site where the set touches at one point."""
    convex = side.convex
    assert convex is not None  # noqa: S101 - set when the side was solved
    zero = {INDEX[side.side]: S.Zero}
    V, Lam = (bold_tex(q.xreplace(zero)) for q in (convex.V, convex.Lam))
    lam = convex.lam.xreplace(zero)
    names = {"V": V, "Lambda": Lam, "lambda": latex(lam), "I": "\\bm{I}^{0}"}
    softness = side.solution().softness.xreplace(zero)
    return touching_response(convex.components.size, side.strength().xreplace(zero), lam, names, softness)


def bold_tex(q: SiteQuantity) -> str:
    """TeX of a vector of a site, in bold and without its component."""
    return bold(LatexPrinter(), q, q.indices[-1])


def vector_steps(writer: StepWriter, side: VectorSide, section: str) -> list[Step]:
    """The projection that solves the law, its regimes, the responses in each of them, and their average."""
    key, theory = side.side, writer.theory
    convex, solution = side.convex, side.solution()
    assert convex is not None  # noqa: S101 - set when the side was solved
    zero = {INDEX[key]: S.Zero}
    V, Lam, lam = (q.xreplace(zero) for q in (convex.V, convex.Lam, convex.lam))
    node = Support(convex.g, V, convex.components)
    a = convex.components.index
    evidence: dict[str, Any] = {"side": side, "theory": theory}
    rests = (f"{key}.effective_law",)
    common = {"section": section, "evidence": evidence}
    strength = solution.strength.xreplace(zero)
    base: dict[str, Any] = {"side": key, "g": node, "V": V, "lam": lam}
    base |= {"bound": solution.bound.xreplace(zero), "cap": solution.cap.xreplace(zero)}
    softness = solution.softness.xreplace(zero)
    base |= {"softness": softness, "tight": base["bound"] - softness * lam}
    base |= {"eta": side.heard[0].eta, "strength": strength, "index": a, "naive": theory.is_naive}
    slack = [
        Equation(
            q.xreplace(zero),
            solution.by_cases(q, convex.lam, solution.cap).xreplace({convex.level: node}).xreplace(zero),
        )
        for q in solution.states
        if q != convex.lam
    ]
    response = response_of(side)
    size = convex.components.size
    n, stays, at_tip = tip_response(response, strength, softness)
    J, none = response.J, ZeroMatrix(size, size)
    message = response.message.lhs
    cases: list[tuple[Expr, Any]] = [
        (S.Zero, Eq(REGIME, INTERIOR)),
        ((response.trace * strength).expand(), Eq(REGIME, TOUCHING)),
        ((at_tip * strength).expand(), Eq(REGIME, WHOLE)),
    ]
    steps = [
        writer.step(
            f"{key}.solution",
            "projection",
            [Equation(Lam, lam * Anchor(convex.g, V, convex.components, a)), *slack],
            data=base,
            assumptions=(("convexity", {}),),
            rests_on=rests,
            check="projection",
            **common,
        ),
        writer.step(
            f"{key}.interior",
            "regime_interior",
            [Equation(J, Identity(size)), Equation(message, none)],
            data=base,
            rests_on=rests,
            check="regime",
            section=section,
            evidence={**evidence, "regime": 0, "response": response},
        ),
        writer.step(
            f"{key}.differentiate",
            "regime_touching",
            [response.law, response.constraint],
            data={**base, "s": response.s, "H": response.H},
            rests_on=(f"{key}.effective_law", f"{key}.solution"),
            check="matrices",
            section=section,
            evidence={**evidence, "response": response},
        ),
        writer.step(
            f"{key}.touching",
            "touching_response",
            [response.inverse, response.multiplier, response.field],
            data={**base, "P": response.P, "H": response.H, "s": response.s},
            rests_on=(f"{key}.differentiate",),
            check="matrices",
            section=section,
            evidence={**evidence, "response": response},
        ),
        writer.step(
            f"{key}.touching_trace",
            "touching_trace",
            [response.message, Equation(_Trace(message), response.trace)],
            data=base,
            rests_on=(f"{key}.touching",),
            check="matrices",
            section=section,
            evidence={**evidence, "response": response},
        ),
        writer.step(
            f"{key}.tip",
            "regime_tip",
            [Equation(J, stays), Equation(_Trace(message), at_tip)],
            data={**base, "size": size, "n": n},
            rests_on=(f"{key}.effective_law", f"{key}.solution"),
            check="regime",
            section=section,
            evidence={**evidence, "regime": 3, "response": response, "n": n},
        ),
    ]
    known = [f"{key}.interior", f"{key}.touching_trace", f"{key}.tip"]
    if solution.cap != oo:
        cap = solution.cap.xreplace(zero)
        saturated = saturated_response(response, strength, cap)
        cases.append(((saturated.trace * strength).expand(), Eq(REGIME, SATURATED)))
        evidence = {**evidence, "saturated": saturated}
        known.append(f"{key}.saturated")
        steps.append(
            writer.step(
                f"{key}.saturated",
                "regime_saturated",
                [Equation(lam, cap), saturated.field, saturated.message, Equation(_Trace(message), saturated.trace)],
                data={**base, "N": saturated.N},
                rests_on=(f"{key}.effective_law", f"{key}.solution"),
                check="saturated",
                section=section,
                evidence={**evidence, "response": response},
            )
        )
    steps.append(
        writer.step(
            f"{key}.regimes",
            "regimes",
            [Equation(PSI, Piecewise(*cases))],
            data={**base, "regime": REGIME, "size": size},
            rests_on=tuple(known),
            check="regimes",
            section=section,
            evidence={**evidence, "response": response, "n": n},
        )
    )
    claims = [
        Equation(DisorderAverage(s.xreplace(zero)), side.ensemble().at_site(s).xreplace(zero))
        for meaning in theory.order_parameters.values()
        for s in meaning.atoms(Sum)
        if s.has(SiteResponse) and s.has(convex.Lam)
    ]
    if claims:
        steps.append(
            writer.step(
                f"{key}.response",
                "vector_response",
                claims,
                data=base,
                rests_on=(f"{key}.regimes",),
                check="vector_average",
                **common,
            )
        )
    return steps


class _Trace(Expr):
    """The trace of a matrix that has a name."""

    is_commutative = True

    def __new__(cls, matrix: BoldMatrix) -> _Trace:
        """Return the trace."""
        return Expr.__new__(cls, matrix)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\operatorname{{tr}} {printer.doprint(self.args[0])}"
        return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex

    def _sympystr(self, printer: Any) -> str:
        return f"tr {printer.doprint(self.args[0])}"


def stein_steps(theory: Theory, claim: Equation) -> list[Step]:
    """The identity of the two capacity formulas: Euler's theorem, and Gaussian integration by parts."""
    side = next(s for s in theory.sides.values() if isinstance(s, VectorSide))
    convex, solution = side.convex, side.solution()
    assert convex is not None  # noqa: S101 - set when the side was solved
    if solution.cap != oo or solution.softness != 0:
        return []
    bounds = {node.k for node in claim.difference.atoms(ProjectionAverage)}
    k: Expr = Symbol(f"k_{convex.g.name.partition('_')[0]}", real=True)
    several = len(bounds) > 1 or any(b.is_Add or b.is_Mul or b.has(SiteQuantity) for b in bounds)
    if not several:
        (k,) = bounds
    size = convex.components.size

    def mean(body: Expr) -> Expr:
        return ProjectionAverage(body, convex.g, size, k)

    evidence = {"side": side, "theory": theory, "bound": k}
    common: dict[str, Any] = {"section": "Consistency", "evidence": evidence}
    steps = [
        Step(
            "euler",
            "euler",
            (Equation(GAP2, LAM * GV - TD), Equation(LAM * GV, k * LAM)),
            data={"g": convex.g, "bound": k if several else None},
            rests_on=("consistency",),
            check="pointwise",
            **common,
        ),
        Step(
            "stein",
            "stein",
            (Equation(mean(TD), mean(PSI)),),
            data={"size": size},
            rests_on=("consistency",),
            check="stein",
            **common,
        ),
        Step(
            "stein.conclusion",
            "stein_conclusion",
            (Equation(mean(GAP2), k * mean(LAM) - mean(PSI)),),
            data={"several": several},
            rests_on=("euler", "stein"),
            check="stein",
            **common,
        ),
    ]
    return [replace(step, reference=reference_of(theory, step.key)) for step in steps]


__all__ = ["response_of", "stein_steps", "vector_steps"]
