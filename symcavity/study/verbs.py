"""Methods of a theory for studies: sensitivities, optima, phase boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from symcavity.writing.verbs import WrittenTheory

if TYPE_CHECKING:
    from symcavity.study.boundary import Boundary
    from symcavity.study.optimum import Optimum


class StudiedTheory(WrittenTheory):
    """A theory that can be asked for derivatives, optima and boundaries."""

    def sensitivity(
        self, observable: Any, parameter: Any, values: Mapping[Any, Any] | None = None, dps: int = 15
    ) -> Any:
        """Return the derivative of an observable with respect to a parameter.

        Parameters
        ----------
        observable : Expr
            An unknown, a parameter that is solved for, an average, a response.
        parameter : Symbol
            One of those with a value, ``alpha`` and ratios such as ``K/N`` among them; all others are held fixed.
        values : mapping
            As in :meth:`solve`.
        dps : int
            Significant digits.

        Returns
        -------
        mpf
            By implicit differentiation of the closed equations, without differences: to ``dps`` digits where
            averages are closed forms, to some 12 of 15 where they are integrals in double.  Averages over convex sets
            and polyhedra are differentiated numerically, in double only.

        Raises
        ------
        ValuesError, UnsupportedLaw, NotConverged
            If the parameter has no value; for limits and samples; at the end of a solution.
        """
        from symcavity.study.sensitivity import sensitivity

        return sensitivity(self, observable, parameter, values, dps)

    def optimize(
        self,
        observable: Any,
        over: Any,
        values: Mapping[Any, Any] | None = None,
        *,
        bounds: tuple[Any, Any] | None = None,
        maximize: bool = False,
        dps: int = 15,
    ) -> Optimum:
        """Find the value of a parameter at which an observable is smallest (or largest).

        Parameters
        ----------
        observable : Expr
        over : Symbol
            The parameter that is varied, without a value.
        values : mapping
            Of everything else, as in :meth:`solve`.
        bounds : pair of numbers, optional
            The range, looked at on a grid; for a positive parameter 1/1000 to 1000 by default.
        maximize : bool
        dps : int
            Significant digits: the derivative is exact, and so is its zero.

        Returns
        -------
        Optimum
            ``.place``, ``.value``, ``.solution``; ``.bound`` names the bound that an optimum is at.

        Raises
        ------
        NotConverged
            If the optimum lies at the edge of the default range.
        """
        from symcavity.study.optimum import optimize

        return optimize(self, observable, over, values, bounds=bounds, maximize=maximize, dps=dps)

    def boundary(
        self,
        what: Any,
        across: Mapping[Any, Any],
        along: Mapping[Any, Iterable[Any]] | None = None,
        values: Mapping[Any, Any] | None = None,
        dps: int = 15,
    ) -> Boundary:
        """Find a phase boundary, in a plane of two parameters: where a solution or a quantity is lost.

        Parameters
        ----------
        what : str or observable or Eq
            ``'stability'``: the stability reaches one; ``'feasibility'``: the solution ends; an observable that
            vanishes or diverges like a power; ``Eq(a, b)``: two observables cross.
        across : mapping
            One parameter and its range, ``{alpha: (1, 3)}``: every place in it is looked for, on a grid.
        along : mapping, optional
            The other parameter and its values, ``{kappa: [0, 1, 2]}``.
        values : mapping
            Of everything else, as in :meth:`solve`.
        dps : int
            Significant digits.

        Returns
        -------
        Boundary
            ``.points``, ``.value`` of a single point, ``.plot()``, ``.to_csv()``.

        Raises
        ------
        NotConverged
            If nothing is lost in the range, or it is lost for another reason.
        """
        from symcavity.study.boundary import boundary

        return boundary(self, what, across, along, values, dps)
