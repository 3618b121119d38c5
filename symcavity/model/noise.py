"""White noise, and which quantities of a site are drawn anew at each time."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Tuple

from symcavity.errors import DeclarationError
from symcavity.model.atoms import entry
from symcavity.model.attributes import kind_of, moving_over
from symcavity.model.exact import exact
from symcavity.model.names import family_name
from symcavity.model.quantities import Family, Quenched, SiteQuantity, site_quantities
from symcavity.model.times import Time


class Noise(Family):
    """Gaussian white noise at every site of a kind: independent at different sites and times, with mean zero.

    Parameters
    ----------
    name : str
        Its name.
    index : SiteIndex
        The index of the sites: ``i`` (features), ``mu`` (data), or one from :func:`Sites`.
    over : Time
        The time: ``xi = Noise("xi", i, over=t, variance=2*T)``, and then ``xi[i, t]``.
    variance : Expr
        A number, or an expression in parameters.  In steps it is the variance of each draw, of order one in N; in
        continuous time the factor of the delta function, ``average(xi[i, t]*xi[i, s]) = variance * delta(t - s)``.

    Raises
    ------
    DeclarationError
        If the time is missing, or the variance is negative or differs from site to site.

    Examples
    --------
    >>> from symcavity import Noise, Time, i
    >>> t = Time('t')
    >>> Noise('xi', i, over=t, variance=2)[i, t]
    xi[i, t]
    """

    __slots__ = ()
    _word = "noise"

    def __new__(cls, name: Any, index: Any, *, over: Time | None = None, variance: Any = 1) -> Noise:
        """Return the family, read and checked."""
        kind = kind_of(index, f"The noise {name}", f'Noise("{name}", i, over=t)')
        moving = moving_over(over, name)
        if not moving:
            raise DeclarationError(
                f"The noise {name} is declared without a time.",
                "noise that is drawn anew at each time; a random number that stays is a quenched parameter",
                f'Noise("{name}", {index}, over=t), or Quenched("{name}", {index}, law=...)',
            )
        size = exact(variance, f"the variance of {name}")
        if size.is_negative or site_quantities(size) or not isinstance(size, Expr):
            raise DeclarationError(
                f"The noise {name} has the variance {variance}.",
                "a number from zero on, or an expression in parameters",
                f"a factor of its own where it differs from site to site: b[{index}]*{name}[{index}, {moving[0]}]",
            )
        return cls._make(family_name(name, cls._word), Tuple(), kind, size, *moving)

    variance: Expr = entry(3, "The variance of each draw; in continuous time, the factor of the delta function.")

    def with_variance(self, variance: Expr) -> Noise:
        """The same noise with another variance."""
        return self._make(*self._data[:3], variance, *self._data[4:])


def drawn_anew(expr: Any) -> list[SiteQuantity]:
    """The quantities in an expression that are drawn anew at each time: noise, and quenched parameters over a time."""
    return [q for q in site_quantities(expr, Noise, Quenched) if q.time is not None]
