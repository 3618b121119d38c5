"""Gaussian averages in closed form by truncated moments; what has none stays an average."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    Derivative,
    DiracDelta,
    Dummy,
    Expr,
    Float,
    Mul,
    Piecewise,
    S,
    Symbol,
    exp,
    expand_mul,
    sqrt,
)
from sympy.core.relational import Ge, Gt, Lt

from symcavity.algebra.door import as_sympy
from symcavity.algebra.heaviside import as_heaviside
from symcavity.algebra.hinge_average import hinge_average
from symcavity.algebra.lines import affine_in, power_of
from symcavity.algebra.node import part, replaced_by
from symcavity.algebra.phi import averaged_phi, gaussian_density, phi, tail_moment
from symcavity.algebra.piecewise import (
    Builder,
    NotPiecewisePolynomial,
    Undetermined,
    compose,
)
from symcavity.algebra.quadrature import break_points, mp_average
from symcavity.algebra.real_names import RealNames
from symcavity.algebra.signs import OpenSlope, Signs, sign_of, tidy
from symcavity.errors import ValuesError

_OPEN_COMPARISONS = 2  # so many undetermined signs are answered by a Piecewise, more by no closed form


# -- the closed form -------------------------------------------------------------------------------


def gaussian_average(expr: Any, z: Symbol, mean: Any = 0, variance: Any = 1) -> Expr:
    """Return the exact average of an expression over a Gaussian variable.

    Parameters
    ----------
    expr : Expr
        Polynomials in z with Max, Min, Abs, sign, Heaviside and Piecewise, nested in any way, have a
        closed form in ``phi(n, .)``. Every symbol is taken to be real.
    z : Symbol
        The Gaussian variable.
    mean, variance : Expr
        Of z; they may be symbolic. The variance is taken to be positive.

    Returns
    -------
    Expr
        The closed form; a Piecewise where the order of the breaks depends on at most two open signs; and
        for the terms that have none, a ``GaussianAverage`` over a standard Gaussian.

    Raises
    ------
    ValuesError
        If there is a Float, if z is not a symbol or is in its own mean, or if the variance is negative.

    Notes
    -----
    Between its sorted breaks t_k the expression is a polynomial p_k. From one anchor region r on, it is
    p_r plus one hinge for each break: right of r the jump p_k - p_(k-1) in powers of (z - t_k), with
    E[max(0, z - t)**j] = phi(j, -t), left of it the jump in powers of (t_k - z), with phi(j, t). This
    generalizes the truncated moments, equation (55) of Clark & Sompolinsky. A coefficient of z
    of unknown sign is dealt with by the reflection z -> sign(b)*z, which leaves the Gaussian as it is.

    Examples
    --------
    >>> from sympy import Max, symbols
    >>> z, kappa, a, b = symbols("z kappa a b", real=True)
    >>> gaussian_average(Max(0, kappa - z)**2, z)
    phi(2, kappa)
    >>> gaussian_average(Max(0, a + b*z)**2, z)
    b**2*phi(2, a/Abs(b))
    """
    expr, mean, variance = as_sympy(expr), as_sympy(mean), as_sympy(variance)
    _check_average(expr, z, mean, variance)
    if variance.is_zero:
        return expr.subs(z, mean)
    scale = sqrt(variance)
    hidden: dict[Expr, Expr] = {}
    if not scale.is_positive:
        stand_in = Dummy("sigma", positive=True)
        hidden[stand_in] = scale
        scale = stand_in
    real = RealNames(expr, mean, scale, z)
    u = real.forward(z)
    body = real.forward(expr)
    if mean != 0 or scale != 1:
        body = body.subs(u, real.forward(mean) + real.forward(scale) * u)
    try:
        result = _closed_form(body, u, 0)
    except NotPiecewisePolynomial:
        result = _term_by_term(body, u)
    return real.back(result).xreplace(hidden)


def _check_average(expr: Expr, z: Symbol, mean: Expr, variance: Expr) -> None:
    if not isinstance(z, Symbol):
        raise ValuesError(f"The average is over {z}, which is not a symbol.", "a symbol to average over.")
    for what in (expr, mean, variance):
        floats = sorted(what.atoms(Float), key=str)
        if floats:
            raise ValuesError(
                f"The float {floats[0]} in an average that is meant to be exact.",
                "integers, fractions and symbols.",
                f'Rational("{floats[0]}"), which is exact.',
            )
    if mean.has(z) or variance.has(z):
        raise ValuesError(f"The mean {mean} or the variance {variance} of {z} depends on {z} itself.")
    if sign_of(variance) == -1:
        raise ValuesError(f"The variance {variance} is negative.", "a positive variance.")


def _closed_form(body: Expr, u: Symbol, budget: int) -> Expr:
    _check_outside(u, body)
    return _by_cases(lambda signs: hinge_average(Builder(u, signs).build(body), signs), Signs(), budget)


def _check_outside(u: Symbol, body: Expr) -> None:
    if any(u in node.free_symbols for node in body.atoms(GaussianAverage)):
        raise NotPiecewisePolynomial(f"{u} stands inside of another average.")


def _by_cases(action: Callable[[Signs], Expr], signs: Signs, budget: int) -> Expr:
    """Run an action; where a sign is open, reflect, or distinguish its cases."""
    try:
        return action(signs)
    except OpenSlope as problem:
        return _by_cases(action, Signs(signs.assumed, problem.coefficient, signs.weak), budget)
    except Undetermined as problem:
        if budget == 0:
            raise
        expr, reflect = problem.expr, signs.reflect
        if problem.kind == "slope" and reflect is not None:
            expr, reflect = reflect, None
        known = signs.assumed, signs.weak
        if problem.kind == "order":  # at equality both orders give the same
            cases = [
                (Ge(expr, 0), Signs(known[0], reflect, (*known[1], (expr, 1)))),
                (True, Signs((*known[0], (expr, -1)), reflect, known[1])),
            ]
        else:
            conditions = ((Gt(expr, 0), 1), (Lt(expr, 0), -1), (True, 0))
            cases = [
                (condition, Signs((*known[0], (expr, its_sign)), reflect, known[1]))
                for condition, its_sign in conditions
            ]
        return Piecewise(*[(_by_cases(action, case, budget - 1), condition) for condition, case in cases])


def _term_by_term(body: Expr, u: Symbol) -> Expr:
    """Average each term for itself: orders between the breaks of different terms are not needed."""
    total = []
    for term in Add.make_args(expand_mul(body)):
        fixed, moving = term.as_independent(u, as_Add=False)
        if moving == 1:
            total.append(fixed)
            continue
        try:
            total.append(fixed * _closed_form(moving, u, _OPEN_COMPARISONS))
        except NotPiecewisePolynomial:
            total.append(fixed * _special_term(moving, u))
    return Add(*total)


def _special_term(moving: Expr, u: Symbol) -> Expr:
    """Average a product with a delta function or an exponential of z, or a truncated moment; or leave it."""
    if isinstance(moving, phi) and moving.args[0].is_Integer and (line := affine_in(moving.args[1], u)):
        return averaged_phi(moving.args[0], *line)
    factors = Mul.make_args(moving)
    tails = [f for f in factors if isinstance(f, phi) and f.args[0] == 0]
    power = power_of(Mul(*(f for f in factors if f not in tails)), u) if len(tails) == 1 else None
    if power is not None and (line := affine_in(tails[0].args[1], u)):
        return tail_moment(power, *line)
    for k, factor in enumerate(factors):
        if not isinstance(factor, DiracDelta | exp) or len(factor.args) != 1:
            continue
        affine = affine_in(factor.args[0], u)
        if affine is None or not affine[1]:
            continue
        offset, slope = affine
        rest = Mul(*factors[:k], *factors[k + 1 :])
        if isinstance(factor, DiracDelta):
            point = tidy(-offset / slope)
            return rest.subs(u, point) * gaussian_density(point) / Abs(slope)
        body = rest.subs(u, u + slope)
        try:
            shifted = _closed_form(body, u, 0)
        except NotPiecewisePolynomial:
            shifted = _term_by_term(body, u)
        if not shifted.has(GaussianAverage):
            return exp(offset + slope**2 / 2) * shifted
    return GaussianAverage(moving, u)


def average_branches(
    breaks: Sequence[Expr],
    branches: Sequence[Mapping[Symbol, Expr]],
    expr: Any,
    z: Symbol,
) -> Expr:
    """Average an expression of quantities that are solved branch by branch, over a standard Gaussian z.

    Parameters
    ----------
    breaks : sequence of Expr
        Sorted, free of z; their order is taken as given.
    branches : sequence of dict
        For each region, from the left, what the symbols of ``expr`` are there, in z.
    expr : Expr
        Any expression of those symbols and of z.
    z : Symbol
        The variable.

    Returns
    -------
    Expr
        The closed form, by cases where at most two signs are open; otherwise a ``GaussianAverage`` of a
        Piecewise, whose ``breaks`` are known.
    """
    expr = as_sympy(expr)
    breaks = [as_sympy(t) for t in breaks]
    real = RealNames(expr, *breaks, *(e for branch in branches for e in branch.values()), z)

    def action(signs: Signs) -> Expr:
        return hinge_average(compose(breaks, branches, expr, z, signs, real), signs)

    bodies = [expr.xreplace(dict(branch)) for branch in branches]
    try:
        for body in bodies:
            _check_outside(z, body)
        return real.back(_by_cases(action, Signs(), _OPEN_COMPARISONS))
    except NotPiecewisePolynomial:
        cases = [(body, z < t) for body, t in zip(bodies, breaks, strict=False)]
        body = Piecewise(*cases, (bodies[-1], True)) if cases else bodies[-1]
        if len(bodies) != len(breaks) + 1:
            raise
        return GaussianAverage(body, z) if body.has(z) else body


# -- what has no closed form -----------------------------------------------------------------------


class GaussianAverage(Expr):
    """The average of an expression over a standard Gaussian variable, left as it is.

    Parameters
    ----------
    expr : Expr
        The integrand, without the density.
    z : Symbol
        The bound variable.

    Attributes
    ----------
    breaks : list of Expr
        Where the integrand may not be smooth.

    Notes
    -----
    ``doit`` looks for a closed form; ``evalf`` integrates numerically, split at the breaks, once
    everything but z is a number; ``diff`` differentiates under the integral sign, with the boundary
    terms of the jumps.
    """

    is_commutative = True

    def __new__(cls, expr: Any, z: Symbol, **_options: Any) -> Expr:
        """Return the node; what does not depend on z is its own average, and stands outside."""
        if not isinstance(z, Symbol):
            raise ValuesError(f"The average is over {z}, which is not a symbol.", "a symbol to average over.")
        fixed, moving = as_sympy(expr).as_independent(z, as_Add=True)
        return fixed if moving == 0 else fixed + Expr.__new__(cls, moving, z)

    expr: Expr = part(0, "The integrand.")
    z: Symbol = part(1, "The bound variable.")

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        return self.expr.free_symbols - {self.z}

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The variable of integration."""
        return [self.z]

    @property
    def breaks(self) -> list[Expr]:
        """The candidates for kinks and jumps, solved where the switching argument is affine or quadratic."""
        own = self.free_symbols
        return [t for t in break_points(self.expr, self.z) if t.free_symbols <= own]

    def doit(self, **hints: Any) -> Expr:
        """Return the closed form where there is one."""
        if self.expr.has(Float):
            return self
        inner = self.expr.doit(**hints) if hints.get("deep", True) else self.expr
        return gaussian_average(inner, self.z)

    def _eval_subs(self, old: Expr, new: Expr) -> Expr:
        if old == self.z or not self.expr.has(old):
            return self
        expr, z = self.expr, self.z
        if z in getattr(new, "free_symbols", ()):
            fresh = Dummy(z.name, real=True)
            expr, z = expr.xreplace({z: fresh}), fresh
        return self.func(expr._subs(old, new), z)  # noqa: SLF001 - the hook that subs itself calls

    def _xreplace(self, rule: Mapping[Any, Any]) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        expr, z = self.expr, self.z
        pairs = replaced_by(rule)
        outer = {old: new for old, new in pairs.items() if old != z}
        arriving = set().union(*(getattr(new, "free_symbols", set()) for new in outer.values()))
        name = pairs.get(z)
        if isinstance(name, Symbol) and name not in self.free_symbols | arriving:
            expr, z = expr.xreplace({z: name}), name
        elif z in arriving and any(expr.has(old) for old in outer):
            name = Dummy(z.name, real=True)
            expr, z = expr.xreplace({z: name}), name
        expr, changed = expr._xreplace(outer)  # noqa: SLF001 - the hook that xreplace itself calls
        return (self.func(expr, z), True) if changed or z != self.z else (self, False)

    def _eval_derivative(self, s: Symbol) -> Expr:
        if s == self.z or not self.expr.has(s):
            return S.Zero
        real = RealNames(self.expr, self.z, s)
        z, t = real.forward(self.z), real.forward(s)
        body = as_heaviside(real.forward(self.expr), z)
        derivative = body.diff(t)
        if derivative.has(Derivative) and not self.expr.has(Derivative):
            return Derivative(self, s, evaluate=False)
        if not derivative.has(DiracDelta):
            return GaussianAverage(real.back(derivative), self.z)
        smooth, total = [], []
        for term in Add.make_args(expand_mul(derivative)):
            fixed, moving = term.as_independent(z, as_Add=False)
            if not moving.has(DiracDelta):
                smooth.append(term)
                continue
            point = _special_term(moving, z)
            if point.has(DiracDelta):
                return Derivative(self, s, evaluate=False)
            total.append(fixed * point)
        rest = GaussianAverage(real.back(Add(*smooth)), self.z)
        return rest + real.back(Add(*total))

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.expr.is_extended_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.expr.is_extended_nonnegative else None

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.expr.is_extended_positive else None

    def _eval_evalf(self, prec: int) -> Expr | None:
        if self.free_symbols:
            return None
        return Float._new(mp_average(self.expr, self.z, self.breaks, prec)._mpf_, prec)  # noqa: SLF001

    def _mpmathcode(self, printer: Any) -> str:
        name = printer._module_format("symcavity.algebra.quadrature.mp_gaussian")  # noqa: SLF001
        body, z = (printer._print(a) for a in self.args)  # noqa: SLF001 - SymPy's printing protocol
        points = ", ".join(printer._print(t) for t in self.breaks)  # noqa: SLF001
        return f"{name}(lambda {z}: {body}, [{points}])"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body, z = (printer._print(a) for a in self.args)  # noqa: SLF001 - SymPy's printing protocol
        power = f"^{{{exp}}}" if exp is not None else ""
        return rf"\left\langle {body} \right\rangle_{{{z}}}{power}"
