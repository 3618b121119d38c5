"""Responses of a law that is given by a convex set, by implicit differentiation of the law.

The law ``V = T + F*lambda*grad g(V) + I`` is differentiated by the product and the chain rule; where the
constraint holds with equality, ``g(V)`` does not change.  The two linear equations are solved for the
matrix ``dV/dI`` and the vector ``dlambda/dI``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Identity, MatMul, S, ZeroMatrix, cancel
from sympy.matrices.expressions.inverse import Inverse
from sympy.matrices.expressions.matexpr import MatrixExpr

from symcavity.algebra.matrices import (
    BoldMatrix,
    SymmetricMatrix,
    assemble,
    form,
    solve_left,
    solve_row,
    terms,
    trace,
    transpose,
)
from symcavity.model.equations import Equation


@dataclass(frozen=True)
class TouchingResponse:
    """The response where the set touches at a point at which its support function is differentiable.

    Attributes
    ----------
    J, l, s, H, P : MatrixExpr
        dV/dI, dlambda/dI, the anchor point, the Hessian of g, and the inverse that solves the law.
    law, constraint : Equation
        The law and the constraint, differentiated.
    inverse, solved, multiplier, field : Equation
        P; dV/dI by dlambda/dI; dlambda/dI; dV/dI.
    message : Equation
        d(lambda s)/dI.
    trace : Expr
        Of d(lambda s)/dI.
    """

    J: MatrixExpr
    l: MatrixExpr
    s: MatrixExpr
    H: MatrixExpr
    P: MatrixExpr
    law: Equation
    constraint: Equation
    inverse: Equation
    solved: Equation
    multiplier: Equation
    field: Equation
    message: Equation
    trace: Expr


def touching_response(
    size: Expr, strength: Expr, lam: Expr, names: dict[str, str], softness: Expr = S.Zero
) -> TouchingResponse:
    """Differentiate the law and solve for the responses.

    Parameters
    ----------
    size : Expr
        The number of components.
    strength : Expr
        The self-coupling F.
    lam : Expr
        The multiplier.
    names : dict
        TeX of the vector field ``V``, of the vector multiplier ``Lambda``, of the multiplier and of the source.
    softness : Expr
        By how much g(V) misses its bound, per multiplier.
    """
    I = Identity(size)
    source = names["I"]
    J = BoldMatrix(f"\\frac{{d{names['V']}}}{{d{source}}}", size, size)
    l = BoldMatrix(f"\\frac{{d{names['lambda']}}}{{d{source}}}", size, 1)
    M = BoldMatrix(f"\\frac{{d{names['Lambda']}}}{{d{source}}}", size, size)
    s, H, P = BoldMatrix("s", size, 1), SymmetricMatrix("H", size, size), SymmetricMatrix("P", size, size)
    # d(lambda*s) = s (dlambda)^T + lambda ds by the product rule, and ds = H dV by the chain rule
    message = s * l.T + lam * (H * J)
    law = assemble([(S.One, [I]), *((strength * c, f) for c, f in terms(message))], J.shape)
    missed = [(softness, [l.T])] if softness != 0 else []
    constraint = assemble([*terms(s.T * J), *missed], (1, size))
    A, rest = solve_left(law, J)
    solved = P * rest
    row = solve_row(assemble([*terms(s.T * solved), *missed], (1, size)), l.T)
    column = transpose(row)
    found = assemble(terms(solved.xreplace({l: column}) if not isinstance(column, BoldMatrix) else solved), J.shape)
    found = assemble(_merged(found), J.shape)
    answer = MatMul(1 / strength, found - I)
    return TouchingResponse(
        J,
        l,
        s,
        H,
        P,
        Equation(J, law),
        Equation(constraint, ZeroMatrix(1, size)),
        Equation(P, Inverse(A)),
        Equation(J, solved),
        Equation(l, column),
        Equation(J, found),
        Equation(M, answer),
        trace(assemble(terms(found - I), J.shape)) / strength,
    )


def tip_response(touching: TouchingResponse, strength: Expr, softness: Expr) -> tuple[MatrixExpr, MatrixExpr, Expr]:
    """Return n, dV/dI and the trace of d(lambda s)/dI where the whole set lies on the margin.

    All points of the set have one product with V, so that V is g(V) times the normal n of the set (n.s = 1 for
    every s); with softness that product moves: ``|n|^2 (r - sigma*lambda) = n.(T + I) + F*lambda``.
    """
    size = touching.J.shape[0]
    n = BoldMatrix("n", size, 1)
    if softness == 0:
        return n, ZeroMatrix(size, size), -size / strength
    square = form([n.T, n])
    share = cancel(softness / (strength + softness * square))
    return n, assemble([(share, [n, n.T])], touching.J.shape), -size / strength + share * square / strength


@dataclass(frozen=True)
class SaturatedResponse:
    """The response where the multiplier is at its bound and does not move.

    Attributes
    ----------
    N : MatrixExpr
        ds/dx, where s is the point of the set nearest to ``x = -(T + I)/(F*C)``.
    field, message : Equation
        dV/dI; d(lambda s)/dI.
    trace : Expr
        Of d(lambda s)/dI.
    """

    N: MatrixExpr
    field: Equation
    message: Equation
    trace: Expr


def saturated_response(touching: TouchingResponse, strength: Expr, cap: Expr) -> SaturatedResponse:
    """Differentiate ``V = T + F*C*s(x) + I`` with ``x = -(T + I)/(F*C)`` by the chain rule.

    The law says that V is F*C times s - x, and s an anchor point of V: no point of the set is nearer to x.
    """
    size = touching.J.shape[0]
    N = BoldMatrix("\\frac{d\\bm{s}}{d\\bm{x}}", size, size)
    inner = -1 / (strength * cap)
    message = assemble([(cap * inner, [N])], N.shape)
    field = assemble([(S.One, [Identity(size)]), *((strength * c, f) for c, f in terms(message))], N.shape)
    return SaturatedResponse(
        N, Equation(touching.J, field), Equation(touching.message.lhs, message), trace(message)
    )


def _merged(expr: MatrixExpr) -> list[tuple[Expr, list[MatrixExpr]]]:
    """Products with transposes carried out."""
    out = []
    for c, factors in terms(expr):
        plain: list[MatrixExpr] = []
        for f in factors:
            inner = (
                terms(transpose(f.args[0]))
                if f.is_Transpose and not isinstance(f.args[0], BoldMatrix)
                else [(S.One, [f])]
            )
            ((d, more),) = inner
            c, plain = c * d, [*plain, *more]
        out.append((c, plain))
    return out
