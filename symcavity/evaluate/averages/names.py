"""The functions and constants that generated code calls by name, for arrays and for numbers of an mpmath context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Expr, S

from symcavity.algebra.between import between_in
from symcavity.algebra.overflow import CODE
from symcavity.algebra.phi_values import phi_in
from symcavity.evaluate.averages.interval import np_between
from symcavity.evaluate.averages.layers import np_remainder, remainder_in
from symcavity.evaluate.averages.peaks import highest, highest_in
from symcavity.evaluate.averages.special import np_log_phi, np_overhang, np_phi
from symcavity.evaluate.averages.summits import breadth, summit


class _Doubles:
    """SciPy's special functions, which know doubles only: extended precision is rounded on its way in."""

    @property
    def special(self) -> _Doubles:
        """Itself, for names such as ``scipy.special.erf``."""
        return self

    def __getattr__(self, name: str) -> Any:
        import scipy.special

        function = getattr(scipy.special, name)
        setattr(self, name, lambda *args: function(*(np.asarray(a, dtype=float) for a in args)))
        return getattr(self, name)


def _spread(value: Any, axes: int) -> Any:
    """Give an array axes of length one at its end, for the nodes of inner variables."""
    if not getattr(value, "ndim", 0):
        return value
    return value[(..., *([None] * axes))]


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition, a, b)


def array_names(space: Mapping[str, Any]) -> dict[str, Any]:
    """The names that array code uses."""
    names: dict[str, Any] = {
        "numpy": np,
        "scipy": _Doubles(),
        "phi": np_phi,
        "overhang": np_overhang,
        "log_phi": np_log_phi,
        "between": np_between,
        "exp": np.exp,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "sqrt": np.sqrt,
        "where": _where,
        "top": np.maximum,
        "bottom": np.minimum,
        "nan": np.nan,
        "spread": _spread,
        "axes": np.ndim,
        "density0": 1 / np.sqrt(2 * np.pi),
        "highest": highest,
        "remainder": np_remainder,
        "summit": summit,
        "breadth": breadth,
        **CODE,
    }
    return names | {k: np.float64(v) if isinstance(v, Expr) and v.is_number else v for k, v in space.items()}


def loop_names(space: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """The names that loops over numbers of an mpmath context use, at its present precision."""
    names: dict[str, Any] = {
        "mpmath": context,
        "phi": lambda n, x: phi_in(context, n, x),
        "log_phi": lambda x: context.log(phi_in(context, 0, x)),
        "between": lambda n, u, v: between_in(context, n, u, v),
        "overhang": lambda n, x: phi_in(context, n, x) / phi_in(context, 0, x),
        "exp": context.exp,
        "sinh": context.sinh,
        "cosh": context.cosh,
        "sqrt": lambda x: context.nan if x < 0 else context.sqrt(x),  # as in double: no root is imaginary
        "top": max,
        "bottom": min,
        "nan": context.nan,
        "zero": context.zero,
        "density0": 1 / context.sqrt(2 * context.pi),
        "highest": highest_in(context),
        "remainder": remainder_in(context),
    }
    return names | {
        k: number_in(context, v) if isinstance(v, Expr) and v.is_number else v for k, v in space.items()
    }


def number_in(context: Any, value: Any) -> Any:
    """Return an exact value as a number of an mpmath context, at its present precision."""
    if isinstance(value, float | int):
        return context.mpf(value)
    if getattr(value, "is_Rational", False):
        return context.mpf(int(value.p)) / int(value.q)
    if value in (S.Infinity, S.NegativeInfinity, S.NaN):
        return {S.Infinity: context.inf, S.NegativeInfinity: -context.inf, S.NaN: context.nan}[value]
    if hasattr(value, "_mpf_"):
        return +context.convert(value)
    return +context.make_mpf(value.evalf(context.dps + 5)._to_mpmath(context.prec + 10)._mpf_)  # noqa: SLF001
