"""Stationary states: the states after long times, and their observables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sympy import Add, Expr

from symcavity.algebra.precision import exact_function, mp, with_digits
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.moving.hermite import Profile, common, mehler
from symcavity.evaluate.moving.lag import Lag
from symcavity.evaluate.moving.linear_memory import LinearMemory
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.potential import GRID, particles
from symcavity.evaluate.moving.recurring import recurring
from symcavity.evaluate.moving.run import Observables, combined
from symcavity.evaluate.moving.sampled_stationary import SampledStationary
from symcavity.evaluate.moving.site_law import LawWithoutMemory, X, read_law
from symcavity.evaluate.moving.two_sites import TwoSites
from symcavity.evaluate.moving.waves import Waves
from symcavity.method.close import kind_of_body
from symcavity.method.moving_pair import moving_pair_of
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.noise import Noise
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities

FINE = (160, 240)  # frequencies


class Stationary:
    """A stationary state: averages are numbers, and functions of the lag where they hold two times.

    Attributes
    ----------
    variance : number
        Of the state, about its mean.
    moves : bool
        Whether the states fluctuate in time.
    lyapunov : float
        The largest Lyapunov exponent.
    """

    def __init__(self, theory: Any, law: LawWithoutMemory, plan: MovingPlan, state: Any, dps: int) -> None:
        self.theory, self.law, self.plan, self.state, self.dps = theory, law, plan, state, dps
        self._words = Observables(theory.system, 0)

    @property
    def variance(self) -> Any:
        """The variance of the state about its mean."""
        with mp.workdps(self.dps + 20):
            return self._out(self.state.variance)

    @property
    def moves(self) -> bool:
        """Whether the states fluctuate in time."""
        return self.state.moves

    @cached_property
    def lyapunov(self) -> float:
        """The largest Lyapunov exponent, in double: the rate at which small changes of the states grow, or die out."""
        with mp.workdps(self.dps + 20):
            return float(self.state.lyapunov)

    @cached_property
    def _waves(self) -> Waves:
        return Waves(self.law, self.state)

    def _out(self, value: Any) -> Any:
        return float(value) if self.dps <= IN_DOUBLE else with_digits(value, self.dps)

    def __getitem__(self, key: Any) -> Any:
        """An observable: a number, or of two open times a function of the lag.

        Raises
        ------
        DeclarationError
            If it is not made of averages and responses.
        """
        expr, averages, times = self._words.read(key)
        if any(q.time is not None and q.time not in times for q in site_quantities(expr)):
            raise DeclarationError(f"{key} holds a step of its own.", "open times, x[i, t] and x[i, s]")

        def at(lag: Any) -> Any:
            with mp.workdps(self.dps + 20):
                values = {node: self._average(node, times, lag) for node in averages}
                return self._out(combined(expr, values, lambda e: to_mpf(self.plan.values.put_into(e))))

        return Lag(at) if len(times) > 1 else at(0)

    def _average(self, node: Average, times: Any, lag: Any) -> Any:
        body = self.plan.values.put_into(node.body)
        if isinstance(body, SiteResponse):
            if body.state.now != self.law.state:
                raise UnsupportedLaw(f"{body} is not a response of {self.law.state}.", f"response({self.law.state}, s)")
            return self.state.response(lag) if lag >= 0 else mp.mpf(0)
        kind_of_body(body)
        own = [t for t in times if t in node.free_symbols]
        moved = body.xreplace(dict(zip(own, (self.plan.time, self.plan.second), strict=False)))
        states = site_quantities(moved, Variable, Field)
        if site_quantities(moved, Noise, Quenched):
            raise UnsupportedLaw(f"{body} holds noise or quenched parameters.", "averages of states")
        rule = {q: self.law.known.get(q.now, q.now).xreplace({self.plan.time: q.time}) for q in states}
        total = mp.mpf(0)
        for term in Add.make_args(moved.xreplace(rule).expand()):
            parts = self.plan.split(term)
            if parts is None:
                raise UnsupportedLaw(f"{term} is not a product of functions at two times.", "such products")
            total += self._product(parts[0], parts[1].xreplace({self.plan.second: self.plan.time}), lag)
        return total

    def _product(self, first: Expr, second: Expr, lag: Any) -> Any:
        one, other = (Profile(part.xreplace({self.law.state: X}), X) for part in (first, second))
        mean, variance = self.state.mean, self.state.variance
        if variance == 0:
            return mp.fprod(exact_function([X], p.expr)(mean) for p in (one, other))
        rho = self.state.covariance(mp.mpf(lag)) / variance
        found = (f.coefficients(mean, variance, self.dps) for f in (one, other))
        ours, theirs = ([mp.mpf(a) for a in row] for row in found)
        return mehler(*common(ours, theirs), rho)

    def dimension(self, what: Any, lag: Any = 0) -> float:
        """The share of all directions that a quantity of the sites explores over time.

        ``(sum C_ii)**2/(n sum C_ij**2)`` for the covariances C over time of n sites at given couplings, after a lag, in
        the limit; in double, with a relative error of at most 1e-3.

        Raises
        ------
        UnsupportedLaw
            Where states have a part that stays, which differs from site to site.
        """
        if not self.moves:
            raise UnsupportedLaw(
                "The states do not change in time, and so their activity has no dimension.", "states that fluctuate"
            )
        lines = TwoSites(moving_pair_of(self.theory, what, self.plan.time), self.plan)
        with mp.workdps(self.dps + 20):
            few, many = (self._waves.dimension(lines, self.plan, abs(float(lag)), count) for count in FINE)
        if not abs(few - many) <= 1e-3 * many:
            raise NotConverged(f"The dimension did not converge: {few:.6g} and {many:.6g} on two grids of frequencies.")
        return many

    def __repr__(self) -> str:
        what = "fluctuating" if self.moves else "at rest"
        return f"<stationary state of {self.theory.system.name or 'a system'}, {what}, variance {self.variance}>"


def stationary(
    theory: Any, values: Any, dps: int = 15, until: Any = None, step: Any = None, paths: int = 2000, seed: int = 0
) -> Stationary | SampledStationary:
    """Find the stationary state; :meth:`symcavity.Theory.stationary` says what its parameters are."""
    try:
        law, plan = read_law(theory, values, dps)
        with mp.workdps(dps + 20):
            found = [LinearMemory(law)] if law.echoes else particles(law, dps)
    except UnsupportedLaw:
        if until is None or dps > IN_DOUBLE:
            raise
        return recurring(theory, values, until, step, paths, seed)
    if len(found) == 1:
        return Stationary(theory, law, plan, found[0], dps)
    if found:
        sizes = ", ".join(f"{float(s.variance):.6g}" for s in found)
        every = [s.variance for s in found]
        raise NotConverged(f"There are {len(found)} stationary states, with the variances {sizes}.", every)
    raise NotConverged(
        f"No stationary state is reached: {law.state} has none with a variance from {GRID[0]:.0e} to {GRID[-1]:.0e}."
    )
