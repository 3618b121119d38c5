"""The truncated Gaussian moments phi_n(kappa): a SymPy function, and its value to any precision."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import (
    Dummy,
    Eq,
    Expr,
    Float,
    Function,
    I,
    Integer,
    Integral,
    Mul,
    Piecewise,
    Poly,
    Rational,
    S,
    Symbol,
    cancel,
    conjugate,
    erf,
    erfc,
    exp,
    expand_mul,
    factorial2,
    gamma,
    oo,
    pi,
)
from sympy import sqrt as sym_sqrt

from symcavity.algebra.door import as_sympy
from symcavity.algebra.phi_values import phi_in
from symcavity.algebra.precision import context, mp
from symcavity.errors import ValuesError


def gaussian_density(x: Any) -> Expr:
    """Return the standard Gaussian density exp(-x**2/2)/sqrt(2*pi).

    Parameters
    ----------
    x : Expr
        Where it is taken.
    """
    x = as_sympy(x)
    return exp(-(x**2) / 2) / sym_sqrt(2 * pi)


def gaussian_moment(n: int) -> Integer:
    """Return E[z**n] of a standard Gaussian: 0 for odd n, (n-1)!! for even n."""
    return Integer(0) if n % 2 else factorial2(n - 1) if n else Integer(1)


class phi(Function):  # noqa: N801 - it is written like the mathematical function it is
    r"""The truncated moment of a standard Gaussian, ``E[(kappa - z)**n; z < kappa]``.

    .. math:: \phi_n(\kappa) = \int_{-\infty}^{\kappa} \mathcal{D}z\, (\kappa - z)^n

    Parameters
    ----------
    n : int or Expr
        A nonnegative integer; a symbol stays unevaluated.
    kappa : Expr
        The truncation point (the margin of the classification problems).

    Raises
    ------
    ValuesError
        If ``n`` is known not to be a nonnegative integer.

    Notes
    -----
    ``diff`` gives ``n*phi(n - 1, kappa)`` and, for ``n = 0``, the Gaussian density;
    ``expand_func`` brings every ``phi(n, x)`` to the basis ``phi(0, x)``, ``phi(1, x)`` by the
    recurrence ``phi(n + 1) = kappa*phi(n) + n*phi(n - 1)``; ``rewrite`` knows ``erf``, ``erfc`` and
    ``Integral``. ``evalf`` has a relative accuracy at every working precision, in the tails too:
    substitute an exact number (``phi(2, k).subs(k, -200).evalf(50)``).
    SymPy's printers for C, C++, Rust, Julia and JAX write it through ``erfc`` and the density.  Far below zero the
    terms of orders above zero cancel there: ``phi(2, -5)`` keeps 12 digits in double precision, ``phi(2, -20)`` eight.
    The definition is equation (55) of Clark & Sompolinsky; equation (61) is the recurrence for ``n = 1``.

    Examples
    --------
    >>> from sympy import Symbol
    >>> kappa = Symbol("kappa", real=True)
    >>> phi(2, kappa).diff(kappa)
    2*phi(1, kappa)
    >>> phi(2, 0)
    1/2
    >>> from sympy import ccode
    >>> ccode(phi(0, kappa))
    '(0.5*erfc(-0.7071067811865476*(kappa)))'
    """

    nargs = 2

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Return the expression; SymPy's functions would execute a text."""
        return super().__new__(cls, *(as_sympy(a, "An argument of phi") for a in args), **options)

    @classmethod
    def eval(cls, n: Expr, kappa: Expr) -> Expr | None:
        """Return the value where it is known exactly: at 0, at plus and minus infinity."""
        if (n.is_Number and not (n.is_Integer and n >= 0)) or n.is_integer is False or n.is_negative:
            raise ValuesError(
                f"The order of phi is {n}.",
                "a nonnegative integer, phi(n, kappa) = E[(kappa - z)**n; z < kappa].",
                "phi(0, kappa).diff(kappa), which is the Gaussian density, where an order -1 was meant.",
            )
        # zoo*c too: with a factor that vanishes there it would pass for 0, which it need not be
        if kappa is S.NaN or kappa is S.ComplexInfinity or S.ComplexInfinity in kappa.args:
            return S.NaN
        if kappa is S.NegativeInfinity:
            return S.Zero
        if kappa is S.Infinity:
            if n.is_zero:
                return S.One
            return oo if n.is_positive else None
        if kappa.is_zero:
            if n.is_Integer:
                return S.Half if n == 0 else _half_moment(int(n))
            if n.is_integer and n.is_nonnegative:
                return _half_moment(n)
        if kappa.is_Float and n.is_Integer:
            prec = kappa._prec  # noqa: SLF001 - the precision that this Float carries
            return Float._new(phi_in(context(prec), int(n), kappa)._mpf_, prec)  # noqa: SLF001
        return None

    # -- calculus ---------------------------------------------------------------------------------

    def fdiff(self, argindex: int = 2) -> Expr:
        """Return the derivative with respect to kappa."""
        n, kappa = self.args
        if argindex != 2:
            raise ValuesError(
                f"The derivative of {self} with respect to its order is not defined.",
                "the derivative with respect to kappa.",
            )
        if n.is_zero:
            return gaussian_density(kappa)
        lower = n * self.func(n - 1, kappa)
        if n.is_positive:
            return lower
        return Piecewise((gaussian_density(kappa), Eq(n, 0)), (lower, True))

    def _eval_expand_func(self, **_hints: Any) -> Expr:
        n, kappa = self.args
        if not (n.is_Integer and n >= 2):
            return self
        a, b = phi_coefficients(int(n))
        x = _coefficient_symbol
        return a.xreplace({x: kappa}) * phi(0, kappa) + b.xreplace({x: kappa}) * phi(1, kappa)

    def _eval_rewrite_as_erfc(self, n: Expr, kappa: Expr, **_kwargs: Any) -> Expr:
        return self._error_form(n, kappa, erfc(-kappa / sym_sqrt(2)) / 2)

    def _eval_rewrite_as_erf(self, n: Expr, kappa: Expr, **_kwargs: Any) -> Expr:
        return self._error_form(n, kappa, (1 + erf(kappa / sym_sqrt(2))) / 2)

    def _eval_rewrite_as_tractable(self, *_args: Expr, limitvar: Any = None, **_kwargs: Any) -> Expr:
        return self.rewrite(erfc).rewrite("tractable", deep=True, limitvar=limitvar)

    def _eval_rewrite_as_Integral(self, n: Expr, kappa: Expr, **_kwargs: Any) -> Expr:
        z = Dummy("z", real=True)
        return Integral((kappa - z) ** n * gaussian_density(z), (z, -oo, kappa))

    def _error_form(self, n: Expr, kappa: Expr, phi0: Expr) -> Expr:
        if not n.is_Integer:
            return self
        if n == 0:
            return phi0
        a, b = phi_coefficients(int(n))
        x = _coefficient_symbol
        total = (a + x * b).expand().xreplace({x: kappa})
        return total * phi0 + b.xreplace({x: kappa}) * gaussian_density(kappa)

    # -- assumptions ------------------------------------------------------------------------------

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.args[1].is_extended_real else None

    def _eval_is_finite(self) -> bool | None:
        return True if self.args[1].is_finite else None

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.args[1].is_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.args[1].is_extended_real else None

    def _eval_conjugate(self) -> Expr:
        n, kappa = self.args
        return self.func(n, conjugate(kappa))

    # -- numbers ----------------------------------------------------------------------------------

    def _eval_evalf(self, prec: int) -> Expr | None:
        n, kappa = self.args
        if not n.is_Integer:
            return None
        try:
            rough = kappa._to_mpmath(53)  # noqa: SLF001 - SymPy's own door from Expr to mpmath
            extra = 15 + 2 * max(0, mp.mag(rough) if rough else 0) + int(n).bit_length()
            value = kappa._to_mpmath(prec + extra)  # noqa: SLF001
        except (ValueError, TypeError, NotImplementedError, AttributeError):
            return None
        out = phi_in(context(prec), int(n), value)
        # an mpf goes into Float as its tuple: the precision is the requested one
        if hasattr(out, "_mpc_"):
            re, im = out._mpc_
            return Float._new(re, prec) + I * Float._new(im, prec)  # noqa: SLF001
        return Float._new(out._mpf_, prec)  # noqa: SLF001

    def _numpycode(self, printer: Any) -> str:
        return self._call(printer, "symcavity.evaluate.averages.special.np_phi")

    _scipycode = _numpycode

    def _mpmathcode(self, printer: Any) -> str:
        return self._call(printer, "symcavity.algebra.phi_values.mp_phi")

    def _pythoncode(self, printer: Any) -> str:
        return self._call(printer, "symcavity.evaluate.averages.special.np_phi")

    def _call(self, printer: Any, name: str) -> str:
        n, kappa = self.args
        order = str(int(n)) if n.is_Integer else printer._print(n)  # noqa: SLF001 - SymPy's printing protocol
        return f"{printer._module_format(name)}({order}, {printer._print(kappa)})"  # noqa: SLF001

    def _ccode(self, printer: Any) -> str:
        return self._by_erfc(printer, "erfc")

    _cxxcode = _ccode

    def _julia(self, printer: Any) -> str:
        return self._by_erfc(printer, "erfc")

    def _jaxcode(self, printer: Any) -> str:
        return self._by_erfc(printer, "jax.scipy.special.erfc")

    def _rust_code(self, printer: Any) -> str:
        return self._by_erfc(printer, "libm::erfc")

    def _by_erfc(self, printer: Any, name: str) -> str:
        """Code of a language whose library has the complementary error function.

        In the lower tail its terms cancel: below about -5 few digits are left, and none below -30.
        """
        n, kappa = self.args
        if not n.is_Integer:
            return str(printer._print_not_supported(self))  # noqa: SLF001 - SymPy's printing protocol
        below, at = Symbol("PhiOfOrderZero", real=True), kappa if kappa.is_Symbol else Symbol("KappaOfPhi", real=True)
        a, b = (e.xreplace({_coefficient_symbol: at}) for e in phi_coefficients(int(n)))
        code = printer._print(((a + at * b) * below + b * gaussian_density(at)).expand())  # noqa: SLF001 - as above
        whole = printer._print(kappa)  # noqa: SLF001 - as above
        code = code.replace(below.name, f"0.5*{name}(-0.7071067811865476*({whole}))")  # over the root of two
        return f"({code if at == kappa else code.replace(at.name, f'({whole})')})"

    # -- writing ----------------------------------------------------------------------------------

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        n, kappa = (printer._print(a) for a in self.args)  # noqa: SLF001 - SymPy's printing protocol
        power = f"^{{{exp}}}" if exp is not None else ""
        return rf"\phi_{{{n}}}{power}\left({kappa}\right)"


def _half_moment(n: Any) -> Expr:
    """Return E[max(0, z)**n]."""
    return Integer(2) ** (Rational(1, 2) * n - 1) * gamma((n + Integer(1)) / 2) / sym_sqrt(pi)


def averaged_phi(n: Integer, offset: Expr, slope: Expr) -> Expr:
    """Return E[phi(n, offset + slope*z)]: the two Gaussians in it are one of variance ``1 + slope**2``.

    A root by which both are divided is put into the variance.
    """
    for d in (p.base for p in Mul.make_args(slope) if p.is_Pow and p.exp == -S.Half):
        a, b = (expand_mul(e * sym_sqrt(d)) for e in (offset, slope))
        if not (a.has(sym_sqrt(d)) or b.has(sym_sqrt(d))) and (whole := cancel(d + b**2)).count_ops() <= d.count_ops():
            return (sym_sqrt(whole) / sym_sqrt(d)) ** n * phi(n, a / sym_sqrt(whole))
    width = sym_sqrt(1 + slope**2)
    return width**n * phi(n, offset / width)


def tail_moment(power: int, offset: Expr, slope: Expr) -> Expr:
    """Return E[z**power * phi(0, offset + slope*z)], by parts: what is left is a Gaussian density."""
    width = sym_sqrt(1 + slope**2)
    density, center, z = gaussian_density(offset / width) / width, -offset * slope / width**2, Dummy("z")
    total: list[Expr] = [averaged_phi(S.Zero, offset, slope)]
    for k in range(1, power + 1):
        moving = Poly((center + z / width) ** (k - 1), z)
        mean = sum((c * gaussian_moment(n) for (n,), c in moving.terms()), S.Zero)
        total.append((k - 1) * (total[k - 2] if k > 1 else S.Zero) + slope * density * mean)
    return total[power]


def by_phi(expr: Expr) -> Expr:
    """Return an expression with ``phi(0, .)`` in the place of error functions."""
    expr = expr.replace(erfc, lambda y: 2 * phi(0, -sym_sqrt(2) * y))
    found: Expr = expr.replace(erf, lambda y: 2 * phi(0, sym_sqrt(2) * y) - 1)
    return found


_coefficient_symbol = Symbol("x")


@lru_cache(maxsize=256)
def phi_coefficients(n: int) -> tuple[Expr, Expr]:
    """Return the polynomials A, B in ``Symbol("x")`` with phi(n, x) = A*phi(0, x) + B*phi(1, x).

    They follow from phi(n+1) = x*phi(n) + n*phi(n-1), which is an integration by parts.
    """
    lower: tuple[dict[int, int], dict[int, int]] = ({0: 1}, {})
    upper: tuple[dict[int, int], dict[int, int]] = ({}, {0: 1})
    for k in range(1, n + 1):
        fresh = []
        for up, low in zip(upper, lower, strict=True):
            step = {power + 1: c for power, c in up.items()}
            for power, c in low.items():
                step[power] = step.get(power, 0) + k * c
            fresh.append(step)
        lower, upper = upper, (fresh[0], fresh[1])
    a, b = (
        sum((c * _coefficient_symbol**power for power, c in sorted(side.items())), S.Zero) for side in lower
    )
    return a, b


def phi_reduce(expr: Any) -> Expr:
    """Bring every ``phi(n, x)`` of an expression to the basis ``phi(0, x)``, ``phi(1, x)``, expanded.

    Parameters
    ----------
    expr : Expr
        Any expression.

    Returns
    -------
    Expr
        The expanded expression.
    """
    expr = as_sympy(expr)
    while True:
        swap = {term: new for term in expr.atoms(phi) if (new := term.expand(func=True)) != term}
        if not swap:
            return expr.expand()
        expr = expr.xreplace(swap)
