"""How a solved theory scatters: its stability, fluctuations between instances, and sites at given couplings."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from symcavity.algebra.precision import alone, given_out, mp, with_digits
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.evaluate.given.values import GUARD, Task
from symcavity.evaluate.solutions.next_order import SUPPORTED as LINEAR
from symcavity.evaluate.solutions.next_order import NextOrder
from symcavity.evaluate.solutions.spectra import SiteSpectrum, spectrum_of
from symcavity.evaluate.solutions.spreads import Spreads, held_kinds
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.evaluate.solutions.two_sites import two_sites


class Scattering(SolutionTable):
    """A solution, asked how it spreads: small changes, instances about their limit, sites about their means."""

    _spreads: Spreads | None = None

    @property
    @abstractmethod
    def task(self) -> Task:
        """What was solved."""

    @property
    @abstractmethod
    def is_limit(self) -> bool:
        """Whether some unknowns are limits that the equations do not reach."""

    @abstractmethod
    def stderr(self, key: Any) -> float:
        """The standard error of an observable whose average is sampled."""

    @property
    @alone
    def stability(self) -> Any:
        """The gain of a small random change of all fields, after one round through the kinds: stable below one.

        For features and data it is ``variance factors * alpha * <(dw/dI)^2> <(dlambda/dI)^2>``; in general the
        largest eigenvalue of the matrix of such products (squared where every round has an even number of steps).
        For convex sets other than balls it is sampled; ``stderr(theory.gains.product)`` is its standard error.
        Message passing converges where it is below one (de Almeida and Thouless, J. Phys. A 11, 983, 1978).

        Raises
        ------
        UnsupportedLaw
            Where the condition is not derived: in the naive analysis.
        """
        found = self.task.gains()
        if (product := found.product) is not None:
            return self[product]
        matrix = mp.matrix([[self.number(e) if e != 0 else 0 for e in row] for row in found.rounds])
        if any(mp.isinf(e) for e in matrix):  # where states jump
            return given_out(mp.inf)
        with mp.workdps(self.dps + GUARD):
            largest = max(abs(e) for e in mp.eig(matrix, left=False, right=False))
        with mp.workdps(self.dps):
            return given_out(+largest ** (2 if found.there_and_back else 1))

    def variance(self, what: Any = "objective") -> Any:
        """N times the variance between instances of a quantity per feature, to leading order in N.

        Couplings and quenched parameters are drawn anew in each instance; those that are given site by site, as lists,
        are the same in all of them.  An observable of one instance scatters about the theory by
        ``sqrt(solution.variance(observable)/N)``.

        Parameters
        ----------
        what : str or Expr
            ``'objective'``: the minimum of a declared convex problem, so that this is ``Var(E)/N`` of the minimum
            ``E``.  Or a function of averages over sites, ``average(w[i]**2)``, and of variables that all sites share:
            an intercept, ``b``, or the multiplier of a condition on a sum, ``'nu'``.  At a temperature it is the free
            energy, ``theory.free_energy``.

        Returns
        -------
        mpf
            ``alpha Var(M_d) + Var(M_f) - alpha <lambda**2> <w**2>`` for the minimum and one coupling between features
            and data, with the minima ``M`` of single sites; in general a sum over kinds minus a sum over couplings.

        Raises
        ------
        UnsupportedLaw
            For systems of equations, vector fields and reciprocities; for parameters with a law beside others of the
            same sites that are given site by site; and for observables of problems with trained fields that are
            combinations of others, or several trained fields beside that of a teacher.
        """
        if self._is_minimum(what):
            found = self.task.variance_of_minimum(held_kinds(self))
            if not self.task.convex and not self.stability < 1:
                raise self._unstable()
            return self[found]
        return self._spread(what, what)

    def next_order(self, what: Any = "objective") -> Any:
        """N times the deviation of the mean over instances of a quantity per feature from its limit, to order 1/N.

        For problems whose laws are all linear, of quadratic losses and penalties, with real Gaussian couplings between
        two kinds of sites. It is a derivative of ``log(1 - stability)/2``.

        Parameters
        ----------
        what : str or Expr
            ``'objective'``, the minimum of a declared convex problem, or a response, ``response(w)``.

        Raises
        ------
        UnsupportedLaw
            For other laws, other systems, and other quantities.
        """
        moved = self.task.moved()
        if not self.task.linear:
            raise UnsupportedLaw("Not all laws are linear: means to order 1/N are not known.", LINEAR)
        if self.is_limit or not self.stability < 1:
            raise UnsupportedLaw("Means to order 1/N are known for stable solutions only.", "a stability below one")
        order = NextOrder(self, moved.found)
        if self._is_minimum(what):
            return with_digits(given_out(order.minimum()), self.dps)
        return with_digits(given_out(order.response(moved.read(what))), self.dps)

    def _is_minimum(self, what: Any) -> bool:
        """Whether the minimum or the free energy is meant, by its word or by its formula; equations have none."""
        return any(type(what) is type(meant) and what == meant for meant in self.task.meant())

    def _unstable(self) -> UnsupportedLaw:
        return UnsupportedLaw(
            "Fluctuations between instances are derived for stable solutions, and this is a limit or not stable.",
            "solutions of closed equations, of a stability below one",
        )

    def _spread(self, one: Any, other: Any) -> Any:
        """N times the covariance of two observables between instances."""
        moved = self.task.moved()
        if self.is_limit or not self.stability < 1:
            raise self._unstable()
        if self._spreads is None:
            self._spreads = Spreads(self, moved)
        return with_digits(given_out(self._spreads.covariance(moved.parts(one), moved.parts(other))), self.dps)

    def covariance(self, what: Any, other: Any = None, *, over: Any = None) -> Any:
        """Covariances: of two observables between instances, or of two sites at given couplings.

        Parameters
        ----------
        what : Variable or Expr
            A quantity of one kind of site, ``w`` or ``w[i] - t[i]``, with ``over=``; or an observable of an instance, a
            function of averages and shared variables or ``'objective'``, with another one.
        other : Expr, optional
            The other observable.
        over : sequence of Quenched, optional
            What varies; the couplings and all other quenched parameters are given.

        Returns
        -------
        mpf or SiteCovariance
            Of observables N times their covariance, as :meth:`variance`.  Of sites ``.variance``, ``.off_diagonal``
            (N times the mean square of ``C_ij``, i and j different), ``.dimension``, ``.moments`` of the eigenvalues.

        Raises
        ------
        UnsupportedLaw
            Where it is not derived, as for vector fields; and for more than 15 digits if the mean of the messages
            over the varying parameters differs from site to site.
        NotConverged
            Where the solution is not stable, so that covariances grow without bound.
        ValuesError
            If neither another observable nor ``over`` is given, or both.
        """
        if (other is None) == (over is None):
            raise ValuesError(
                "A covariance takes either two observables, or a quantity of a site and the parameters that vary.",
                "solution.covariance(average(w[i]**2), 'objective'), solution.covariance(w, over=[xi])",
            )
        if other is not None:
            return self._spread(what, other)
        return two_sites(self, self.task.pair(what, over), self.stability)

    def dimension(self, what: Any, *, over: Any) -> Any:
        """The share of all directions in which a quantity of the sites varies at given couplings.

        ``(sum C_ii)**2 / (n sum C_ij**2)`` for the covariances ``C`` of ``n`` sites over the varying parameters, in
        the limit: the participation ratio of the eigenvalues over ``n``.  It is one for independent sites of one
        variance.

        Parameters and errors are those of :meth:`covariance`.
        """
        return self.covariance(what, over=over).dimension

    def spectrum(self, what: Any, *, over: Any) -> SiteSpectrum:
        """The eigenvalues of the covariances of the sites of a kind at given couplings, in the limit.

        Those of the linear equivalent: the resolvent of its covariances closes in one matrix equation for each kind of
        sites, with complex arguments.  The first two moments are those of :meth:`covariance`.

        Parameters and errors are those of :meth:`covariance`.

        Returns
        -------
        SiteSpectrum
            ``.density(points)``, ``.edges``, ``.at_zero``, ``.moments(4)``, ``.resolvent(z)``.

        Examples
        --------
        >>> from sympy import Eq, Sum, Symbol
        >>> from symcavity import Coupling, N, Quenched, System, Variable, i
        >>> J, s, b, j = Coupling("J", between=(i, i), reciprocity=1), Variable("s", i), Quenched("b", i), Symbol("j")
        >>> network = System([Eq(s[i], Sum(J[i, j] * s[j], (j, 1, N)) / 4 + b[i])])  # (1 - J/4)**-2 of the semicircle
        >>> found = network.cavity().solve({b: {1: "1/2", -1: "1/2"}}).spectrum(s, over=[b])
        >>> [round(edge, 5) for edge in found.edges]
        [0.44444, 4.0]
        """
        return spectrum_of(self, self.task.pair(what, over), self.stability)

    def pace(self, damping: float = 0.0) -> float:
        """The factor by which a step of message passing changes small random deviations, with or without damping.

        The largest ``m`` with ``(m - damping)**2 = (1 - damping)**2 * rho``, where ``rho`` is the largest eigenvalue
        of the gains from kind to kind, where those of messages of the same step are multiplied by ``m**2``.  It is
        below one where the stability is, with damping or without.  Without damping, for two kinds of sites, its square
        is the stability.  In double.

        Raises
        ------
        UnsupportedLaw
            Where the stability is not derived, and for limits with states at rest.
        """
        found, order = self.task.gains(), list(self.task.kinds)
        gain = np.array([[float(self.number(e)) if e != 0 else 0.0 for e in row] for row in found.rounds])
        if not np.all(np.isfinite(gain)):
            raise UnsupportedLaw(
                "The pace of message passing is not defined: squared responses have no finite average here.",
                "solutions of closed equations whose states do not jump",
            )
        same = [order.index(s.sender) < order.index(s.hearer) for s in found.spreads]

        def step(m: float) -> float:
            largest = max(abs(np.linalg.eigvals(gain * np.where(same, m * m, 1.0))), default=0.0)
            return damping + (1 - damping) * float(np.sqrt(largest))

        before, now = np.inf, 1.0
        while step(now) > now:
            now *= 2
        while now < before:  # from above, down to the largest root
            before, now = now, step(now)
        return before

    def gain_in_words(self) -> str:
        """The stability, to the digits that are known where it is sampled."""
        value, product = float(self.stability), self.task.gains().product
        error = 0.0 if product is None else self.stderr(product)
        return mp.nstr(mp.mpf(value), max(1, int(np.log10(value / error))) if 0 < error < value else 6)
