"""Averages over quenched parameters whose law is Gaussian, in closed form where there is one.

A polynomial times an exponential of a quadratic form times one truncated moment of an affine form is averaged over a
Gaussian exactly.  A parameter that only shifts an inner average, as the noise of a label does, widens its Gaussian.
What has another form stays an average, for the rules of the density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any

from sympy import Add, Dummy, Expr, Mul, Piecewise, Poly, Pow, S, Sum, Symbol, exp, expand_mul, oo, sqrt

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import JointAverage, NumberedAverage
from symcavity.algebra.lowest import FollowedAverage
from symcavity.algebra.phi import gaussian_density, phi
from symcavity.evaluate.averages.gaussian_fields import widened
from symcavity.evaluate.averages.nodes import own_quantities
from symcavity.model.averages import Average
from symcavity.model.quantities import Quenched, SiteQuantity

MOST = 12  # powers of the parameter
SEVERAL = 64  # terms


class _NoClosedForm(Exception):
    """The average has to be taken by a rule."""


def gaussian_laws(continuous: Sequence[tuple[Quenched, Any]]) -> dict[Quenched, tuple[Expr, Expr]]:
    """Return the mean and the standard deviation of each parameter whose law is Gaussian."""
    if not continuous:  # sympy.stats takes longer to load than many a theory to solve
        return {}
    from sympy.stats.crv_types import NormalDistribution

    laws = ((q, getattr(getattr(variable, "pspace", None), "distribution", None)) for q, variable in continuous)
    return {q: (law.mean, law.std) for q, law in laws if isinstance(law, NormalDistribution)}


def absorb(expr: Expr, laws: Mapping[Quenched, tuple[Expr, Expr]]) -> Expr:
    """Return an expression with averages over Gaussian parameters carried out, where that has a closed form."""
    if not laws or not expr.has(Average, Sum):
        return expr
    rule = {}
    for node in _outermost(expr):
        body = node.args[0]
        own = own_quantities(body)
        for q in sorted((q for q in own if q.family in laws), key=str):
            u = Dummy("u", real=True)
            mean, spread = laws[q.family]
            try:
                body = _inside(body.xreplace({q: mean + spread * u}), u)
            except _NoClosedForm:
                continue
        if body == node.args[0]:
            continue
        if own_quantities(body):
            rule[node] = node.func(body, *node.args[1:])
        else:
            rule[node] = body * (node.limits[0][2] if isinstance(node, Sum) else 1)
    return expr.xreplace(rule)


def _outermost(expr: Expr) -> set[Expr]:
    if isinstance(expr, Average | Sum):
        return {expr}
    return set().union(*(_outermost(arg) for arg in expr.args)) if not isinstance(expr, SiteQuantity) else set()


def _inside(body: Expr, u: Symbol) -> Expr:
    """Average over a standard Gaussian u: term by term, and below the averages that do not depend on it."""
    if not body.has(u):
        return body
    if _is_polynomial(body, u):
        return Add(*(c * _moment(n) for n, c in enumerate(_powers(body, u, {}))))
    if isinstance(body, Add):
        return Add(*(_inside(term, u) for term in body.args))
    fixed, moving = body.as_independent(u, as_Add=False)
    if isinstance(moving, Add):
        return fixed * _inside(moving, u)
    if isinstance(moving, Piecewise) and not any(test.has(u) for _, test in moving.args):
        return fixed * Piecewise(*((_inside(value, u), test) for value, test in moving.args))
    if isinstance(moving, ImplicitAverage) and not any(e.has(u) for e in moving.args[2:]):
        return fixed * moving.func(_inside(moving.args[0], u), *moving.args[1:])
    if isinstance(moving, JointAverage) and (wider := widened(moving, u)) is not None:
        return fixed * wider
    if isinstance(moving, ImplicitAverage | GaussianAverage) and (wider := _widened(moving, u)) is not None:
        return fixed * wider
    if isinstance(moving, GaussianAverage) and not isinstance(moving, NumberedAverage):
        if any(b.has(u) for b in moving.breaks):
            raise _NoClosedForm
        return fixed * GaussianAverage(_inside(moving.expr, u), moving.z)
    factors = Mul.make_args(moving)
    if any(isinstance(f, Add) or (f.is_Pow and isinstance(f.base, Add)) for f in factors):
        wide = expand_mul(moving.expand(deep=False, power_base=False, power_exp=False))
        if isinstance(wide, Add) and len(wide.args) <= SEVERAL:
            return fixed * Add(*(_inside(term, u) for term in wide.args))
    return fixed * _term(factors, u)


def _is_polynomial(body: Expr, u: Symbol) -> bool:
    """Whether an expression is made of u by sums, products and powers: averages may hold it as well, and bind it."""
    if body == u or not body.has(u):
        return True
    if body.is_Pow:
        return bool(body.exp.is_Integer and body.exp > 0) and _is_polynomial(body.base, u)
    return isinstance(body, Add | Mul) and all(_is_polynomial(arg, u) for arg in body.args)


def _powers(body: Expr, u: Symbol, known: dict[Expr, list[Expr]]) -> list[Expr]:
    """The coefficients of a polynomial, by powers of u: what stands beside u may be long, and is not multiplied out."""
    if not body.has(u):
        return [body]
    if body == u:
        return [S.Zero, S.One]
    if body not in known:
        if isinstance(body, Add):
            rows = [_powers(term, u, known) for term in body.args]
            known[body] = [Add(*column) for column in zip_longest(*rows, fillvalue=S.Zero)]
        else:
            base, n = body.as_base_exp()
            factors = [base] * int(n) if body.is_Pow else Mul.make_args(body)
            known[body] = reduce(_product, (_powers(f, u, known) for f in factors))
    return known[body]


def _product(one: list[Expr], other: list[Expr]) -> list[Expr]:
    if len(one) + len(other) - 2 > MOST:
        raise _NoClosedForm
    rows = [[S.Zero] * k + [a * b for b in other] for k, a in enumerate(one)]
    return [Add(*column) for column in zip_longest(*rows, fillvalue=S.Zero)]


def _widened(node: Expr, u: Symbol) -> Expr | None:
    """An average in which u only shifts the Gaussian: one over a wider one; None where it does more.

    Where ``x + c*u`` in place of x leaves u in ``psi(x) = z`` only, as ``psi(x) = z - a*u``, the right side is a
    Gaussian of variance ``1 + a**2``.
    """
    if isinstance(node, NumberedAverage) or (isinstance(node, GaussianAverage) and node.breaks):
        return None
    if isinstance(node, ImplicitAverage):
        expr, x, psi, *rest = node.args
        if (rest[0], rest[1]) != (-oo, oo):
            return None
    else:
        expr, x, psi, rest = node.expr, node.z, node.z, []
    forms = [e for e in expr.atoms(Add) | psi.atoms(Add) if {x, u} <= e.free_symbols]
    forms = [e for e in forms if e.is_polynomial(x, u)]  # a sum that holds functions of these is shifted inside them
    forms.sort(key=str)
    shifts = {S.Zero: None}
    for form in forms:
        across, along = (form.coeff(s) for s in (u, x))
        if along != 0 and not (across / along).has(x, u):
            shifts[-across / along] = None
    for c in shifts:
        # sums are written out where they stand: inside of averages they hold variables that are bound there
        moved, tilted, *added = (
            e.xreplace({x: x + c * u}).replace(lambda e: e.is_Add and e.is_polynomial(x, u), lambda e: e.expand())
            for e in (expr, psi, *(rest[2:3] if isinstance(node, FollowedAverage) else ()))
        )
        if moved.has(u):
            continue
        try:
            still, tilt = _affine(tilted, u)
        except _NoClosedForm:
            continue
        if any((tilted - e.diff(x)).expand().has(u) for e in added):
            continue  # what is added to the well differs
        if not tilt.has(x):
            width = sqrt(1 + tilt**2)
            if isinstance(node, ImplicitAverage):
                wells = [well.xreplace({u: S.Zero}) / width for well in rest[2:3]]  # the primitive of what is still
                return node.func(moved, x, still / width, *rest[:2], *wells, *rest[3:])
            return GaussianAverage(moved.xreplace({x: width * x}), x)
    return None


def _term(factors: Sequence[Expr], u: Symbol) -> Expr:
    """Average a product of powers of u, exponentials of quadratic forms and one truncated moment."""
    power, exponent = 0, S.Zero
    moment: tuple[int, Expr, Expr] | None = None
    for f in factors:
        base, n = f.as_base_exp() if isinstance(f, Pow) else (f, S.One)
        if base == u and n.is_Integer and 0 < n <= MOST:
            power += int(n)
        elif isinstance(f, exp):
            exponent += f.args[0]
        elif isinstance(f, phi) and moment is None and f.args[0].is_Integer:
            moment = (int(f.args[0]), *_affine(f.args[1], u))
        else:
            raise _NoClosedForm
    a, b, c = _coefficients(exponent, u, 2)
    # exp(a + b*u + c*u**2) times the density is a Gaussian of another mean and width
    width = 1 / sqrt(1 - 2 * c)
    centre = b * width**2
    outside = exp(a + b**2 * width**2 / 2) * width
    total = S.Zero
    for (n,), coefficient in Poly((centre + width * u) ** power, u).terms():
        total += coefficient * (
            _truncated(n, moment[0], moment[1] + moment[2] * centre, moment[2] * width) if moment else _moment(n)
        )
    return outside * total


def _moment(n: int) -> Expr:
    return S.Zero if n % 2 else Mul(*range(1, n, 2))


def _truncated(k: int, n: int, a: Expr, b: Expr) -> Expr:
    """Return E[u**k phi(n, a + b*u)]: E[u f] is E[f'] for a Gaussian."""
    width = sqrt(1 + b**2)
    if k == 0:
        return width**n * phi(n, a / width) if n >= 0 else gaussian_density(a / width) / width
    if n < 0:  # the density is a Gaussian in u, of mean -a*b/(1 + b**2) and width 1/sqrt(1 + b**2)
        v = Dummy("v")
        terms = Poly((-a * b / width**2 + v / width) ** k, v).terms()
        return gaussian_density(a / width) / width * Add(*(c * _moment(p) for (p,), c in terms))
    total = b * max(n, 1) * _truncated(k - 1, n - 1, a, b)
    return total + (k - 1) * _truncated(k - 2, n, a, b) if k > 1 else total


def _affine(expr: Expr, u: Symbol) -> tuple[Expr, Expr]:
    a, b, _ = _coefficients(expr, u, 1)
    return a, b


def _coefficients(expr: Expr, u: Symbol, degree: int) -> tuple[Expr, Expr, Expr]:
    """The coefficients of a polynomial in u of at most a degree."""
    if not expr.has(u):
        return expr, S.Zero, S.Zero
    if not expr.is_polynomial(u):
        raise _NoClosedForm
    slopes = [expr]
    for _ in range(degree + 1):  # by derivatives: what stands beside u may be long, and is not multiplied out
        slopes.append(slopes[-1].diff(u))
    if slopes[-1].expand() != 0:
        raise _NoClosedForm
    a, b, c = (*(s.xreplace({u: S.Zero}) for s in slopes[: degree + 1]), S.Zero, S.Zero)[:3]
    return a, b, c / 2
