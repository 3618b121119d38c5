"""Stationary states in continuous time, of networks without memory: particles in a potential.

A state ``dx/dt = m k - k x + fields + noise`` whose fields do not come back is Gaussian.  Its covariance D at the lag
tau obeys ``D'' = k^2 D - K(D)``, with the covariance K(D) of its fields: Newton's equation in the potential
``V(D) = -k^2 D^2/2 + integral of K`` (Sompolinsky, Crisanti and Sommers, Phys. Rev. Lett. 61, 259, 1988), where noise
gives a velocity at the start, ``D'(0) = -variance/2``.  What decays ends at rest on a maximum of V, with its energy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Add, Expr, S, Symbol

from symcavity.algebra.flow import Rate
from symcavity.algebra.legendre import exact_legendre
from symcavity.algebra.precision import exact_function, mp, with_digits
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.moving.hermite import Profile, common, mehler
from symcavity.evaluate.moving.lyapunov import largest_exponent
from symcavity.evaluate.moving.plan import Plan
from symcavity.evaluate.moving.run import Observables, combined
from symcavity.evaluate.moving.values import read_run_values
from symcavity.method.close import kind_of_body
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.fields import is_affine
from symcavity.model.noise import Noise
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities

SUPPORTED = "one state with a rate, linear in it and in fields that do not come back; functions of it at once; noise"
GRID = np.geomspace(1e-6, 1e4, 101)  # of variances, in units of the state
X = Symbol("x", real=True)


@dataclass(frozen=True)
class Law:
    """The law of a site without memory.

    Attributes
    ----------
    state : SiteQuantity
    rate, mean : number
        How fast it forgets, and what it relaxes to without fields.
    velocity : number
        Half of the variance of its noise: minus the slope of the covariance at lag zero.
    pairs : list of (number, Profile, Profile)
        The covariance of its fields: weights, and functions of the state at two times.
    known : dict
        Other states, as functions of this one.
    """

    state: SiteQuantity
    rate: Any
    mean: Any
    velocity: Any
    pairs: list[tuple[Any, Profile, Profile]]
    known: dict[SiteQuantity, Expr]

    def series(self, variance: Any, dps: int) -> list[Any]:
        """The covariance of the fields as a power series in the correlation of the state at two times."""
        total: list[Any] = []
        for weight, f, g in self.pairs:
            one, other = common(*(h.coefficients(self.mean, variance, dps) for h in (f, g)))
            found = [weight * mp.mpf(a) * mp.mpf(b) for a, b in zip(one, other, strict=True)]
            size = max(len(total), len(found))
            total, found = (e + [mp.mpf(0)] * (size - len(e)) for e in (total, found))
            total = [a + b for a, b in zip(total, found, strict=True)]
        return total


def read_stationary(theory: Any, values: Any, dps: int) -> tuple[Law, Plan]:
    """The law of a theory whose stationary state can be found.

    Raises
    ------
    UnsupportedLaw
        If it is of another form.
    """
    system = theory.system
    plan = Plan(theory, read_run_values(system, _without_beginning(system, values), dps))
    if not system.flowing:
        raise _not("the states move in steps")
    if any(plan.echoes.values()):
        raise _not("what a site sends comes back to it")
    if len(system.laws) != 1 or any(not isinstance(q, Noise) for q in system.drawn_anew):
        raise _not("there are several kinds of sites, or numbers that are drawn in steps")
    rows = {q: row for q, row in plan.rows.items() if isinstance(row.update.equation.lhs, Rate)}
    if len(rows) != 1:
        raise _not(f"{len(rows)} states have rates")
    ((x, row),) = rows.items()
    known: dict[SiteQuantity, Expr] = {}
    for q in plan.motion.order:
        if q in plan.rows and q != x:
            if plan.rows[q].fields or q.time is None:
                raise _not(f"{q} hears a field, or keeps still")
            known[q] = plan.rows[q].rhs.xreplace(known)
    rhs = row.rhs.xreplace(known)
    noises = site_quantities(rhs, Noise)
    if site_quantities(rhs, Quenched) or not is_affine(rhs, [x, *noises]):
        raise _not(f"{row.update.equation} is not linear, or holds quenched parameters")
    with mp.workdps(dps + 20):
        rate = to_mpf(-rhs.diff(x))
        if not rate > 0:
            raise NotConverged(f"By itself {x} does not come to rest: no stationary state is reached.")
        mean = to_mpf(rhs.xreplace(dict.fromkeys([x, *noises], S.Zero))) / rate
        sizes = (to_mpf(rhs.diff(q)) ** 2 * to_mpf(plan.values.put_into(q.family.variance)) for q in noises)
        velocity = mp.fsum(sizes) / 2
        pairs = _pairs(plan, row.fields, known, x)
    return Law(x, rate, mean, velocity, pairs, known), plan


def _without_beginning(system: Any, values: Any) -> Any:
    """The values, with any number for quenched parameters of the beginning: it is forgotten."""
    if not isinstance(values, Mapping):
        return values
    named = {str(getattr(key, "family", key)) for key in values}
    laws = [e.difference for law in system.laws.values() for e in law.equations]
    here = {q.family for e in laws for q in site_quantities(e, Quenched)}
    return {**{q: 0 for q in system.quenched if q.law is None and q not in here and q.name not in named}, **values}


def _pairs(plan: Plan, fields: Any, known: Any, x: SiteQuantity) -> list[tuple[Any, Profile, Profile]]:
    out = []
    for f, one in fields:
        for g, other in fields:
            for term in plan.covariances[f, g]:
                if term.kernel is None or site_quantities(Add(term.factor, one, other)):
                    raise _not(f"the variance of {f.as_sum} holds quenched parameters")
                _, body = plan.kernels[term.kernel.base]
                parts = plan.split(body)
                if parts is None:
                    raise _not(f"{body} is no product")
                second = parts[1].xreplace({plan.second: plan.time})
                profiles = [_profile(part, known, x) for part in (parts[0], second)]
                out.append((to_mpf(term.factor * one * other), *profiles))
    return out


def _profile(expr: Expr, known: Any, x: SiteQuantity) -> Profile:
    body = expr.xreplace(known).xreplace({x: X})
    if site_quantities(body):
        raise _not(f"{expr} holds more than {x}")
    return Profile(body, X)


def _not(why: str) -> UnsupportedLaw:
    return UnsupportedLaw(f"The stationary state is not found: {why}.", SUPPORTED, "theory.evolve(values, until=...)")


class Potential:
    """The potential of the covariance at a variance, in digits.

    Parameters
    ----------
    law : Law
    variance : number
    dps : int
        Digits of the coefficients; beyond 15 all else is computed with more.

    Attributes
    ----------
    end : number or None
        The correlation at which the covariance comes to rest after long times; None if it comes to none below one.
    """

    def __init__(self, law: Law, variance: Any, dps: int) -> None:
        self.law, self.variance = law, mp.mpf(variance)
        self.series = law.series(self.variance, dps)
        self.end = self._end()

    def _end(self) -> Any:
        """The smallest correlation at which the force vanishes, by Newton's steps from below: the force is convex."""
        size = max(map(abs, self.series), default=mp.mpf(0))
        if size == 0 or abs(self.series[0]) <= size * mp.mpf(10) ** (-13 if mp.dps < 40 else -mp.dps / 2):
            return mp.mpf(0)
        pull, rho = self.law.rate**2 * self.variance, mp.mpf(0)
        for _ in range(200):
            value, slope = mp.polyval(self.series[::-1], rho, derivative=True)
            if slope >= pull:
                return None
            step = (value - pull * rho) / (pull - slope)
            rho += step
            if rho >= 1:
                return None
            if abs(step) <= mp.mpf(10) ** (-mp.dps + 5):
                return rho
        return None

    def at(self, rho: Any) -> Any:
        """The potential at a correlation."""
        up = [c / (k + 1) for k, c in enumerate(self.series)]
        return self.variance * rho * mp.polyval(up[::-1], rho) - (self.law.rate * self.variance * rho) ** 2 / 2

    @property
    def excess(self) -> Any:
        """The energy at the start, less that at the end: it vanishes at the variance of a stationary state."""
        return None if self.end is None else self.law.velocity**2 / 2 + self.at(mp.mpf(1)) - self.at(self.end)

    @property
    def force(self) -> Any:
        """The force at lag zero: it vanishes where the states keep still."""
        return mp.fsum(self.series) - self.law.rate**2 * self.variance

    @property
    def is_stable(self) -> bool:
        """Whether states that keep still do so after a small disturbance."""
        return bool(self.slope(mp.mpf(1)) < self.law.rate**2)

    def slope(self, rho: Any) -> Any:
        """How the covariance of the fields grows with that of the state."""
        return mp.polyval(self.series[::-1], rho, derivative=True)[1] / self.variance


def _rest_is_stable(law: Law) -> bool | None:
    """Whether rest at the mean is a state, and stable; None where it is no state."""
    at = {X: law.mean}
    value = mp.fsum(w * _at(f.expr, at) * _at(g.expr, at) for w, f, g in law.pairs)
    if abs(value) > mp.mpf(10) ** (-mp.dps / 2) or law.velocity > 0:
        return None
    return bool(_slope_at_rest(law) < law.rate**2)


def _slope_at_rest(law: Law) -> Any:
    """How the covariance of the fields grows with that of the state, where all states are at the mean."""
    at = {X: law.mean}
    return mp.fsum(w * _at(f.expr.diff(X), at) * _at(g.expr.diff(X), at) for w, f, g in law.pairs)


def _at(expr: Expr, point: Any) -> Any:
    return exact_function([X], expr)(point[X])


def _brackets(values: list[Any]) -> list[tuple[float, float]]:
    """The neighbors on the grid between which a quantity falls through zero."""
    pairs = zip(GRID, GRID[1:], values, values[1:], strict=False)
    return [(a, b) for a, b, u, v in pairs if u is not None and v is not None and (u > 0) != (v > 0)]


def _refined(law: Law, low: float, high: float, of: str, dps: int) -> Any:
    """A root between two variances, to all digits."""

    def value(v: Any, digits: int) -> Any:
        return getattr(Potential(law, v, digits), of) / v**2

    root = mp.mpf(brentq(lambda v: float(value(v, 15)), low, high, xtol=1e-15 * low, rtol=1e-14))
    if dps <= 15:
        return root
    before = root * (1 + mp.mpf(10) ** -8)
    f, g = value(before, dps), value(root, dps)
    while f != g and abs(root - before) > root * mp.mpf(10) ** (-dps - 2):
        before, root = root, root - g * (root - before) / (g - f)
        f, g = g, value(root, dps)
    return root


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

    def __init__(self, theory: Any, law: Law, plan: Plan, variance: Any, dps: int) -> None:
        self.theory, self.law, self.plan, self.dps = theory, law, plan, dps
        self._variance = variance
        self._words = Observables(theory.system, 0)
        self._path: Path | None = None
        with mp.workdps(dps + 20):
            self._potential = potential = None if variance == 0 else Potential(law, variance, dps)
            still = potential is None or (law.velocity == 0 and (potential.end is None or potential.end > 1 - 1e-9))
            if potential is not None and not still:
                self._path = Path(potential, dps)

    @property
    def variance(self) -> Any:
        """The variance of the state about its mean."""
        return self._out(self._variance)

    @property
    def moves(self) -> bool:
        """Whether the states fluctuate in time."""
        return self._path is not None

    @cached_property
    def lyapunov(self) -> float:
        """The largest Lyapunov exponent, in double: the rate at which small changes of the states grow, or die out."""
        with mp.workdps(self.dps + 20):
            potential = self._potential
            rest = _slope_at_rest(self.law) if potential is None else mp.mpf(0)
            slope = (lambda _rho: rest) if potential is None else potential.slope
            return largest_exponent(self.law.rate, slope, self._path)

    def _out(self, value: Any) -> Any:
        return float(value) if self.dps <= 15 else with_digits(value, self.dps)

    def covariance(self, lag: Any) -> Any:
        """The covariance of the state at two times; in the engine's numbers."""
        if self._path is None:
            return self._variance
        return self._variance * self._path.correlation(abs(mp.mpf(lag)))

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
                raise UnsupportedLaw(f"{body} is no response of {self.law.state}.", f"response({self.law.state}, s)")
            return mp.exp(-self.law.rate * lag) if lag >= 0 else mp.mpf(0)
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
                raise UnsupportedLaw(f"{term} is no product of functions at two times.", "products of such functions")
            total += self._product(parts[0], parts[1].xreplace({self.plan.second: self.plan.time}), lag)
        return total

    def _product(self, first: Expr, second: Expr, lag: Any) -> Any:
        one, other = (Profile(part.xreplace({self.law.state: X}), X) for part in (first, second))
        if self._variance == 0:
            return _at(one.expr, {X: self.law.mean}) * _at(other.expr, {X: self.law.mean})
        rho = self.covariance(lag) / self._variance
        found = (f.coefficients(self.law.mean, self._variance, self.dps) for f in (one, other))
        ours, theirs = ([mp.mpf(a) for a in row] for row in found)
        return mehler(*common(ours, theirs), rho)

    def __repr__(self) -> str:
        what = "fluctuating" if self.moves else "at rest"
        return f"<stationary state of {self.theory.system.name or 'a system'}, {what}, variance {self.variance}>"


class Lag:
    """A function of the lag between two times; of an array, the array of its values."""

    def __init__(self, at: Any) -> None:
        self._at = at

    def __call__(self, lag: Any) -> Any:
        """The value at a lag, or at each of several."""
        if np.ndim(lag):
            return np.array([self._at(mp.convert(v)) for v in np.asarray(lag).ravel()]).reshape(np.shape(lag))
        return self._at(to_mpf(lag) if isinstance(lag, Expr) else mp.convert(lag))


class Path:
    """The covariance over the lag: the correlation by a coordinate in which nothing is singular.

    Without noise the correlation is ``end + (1 - end)/cosh(y)^2``, which is flat at lag zero; with noise
    ``end + (1 - end) exp(-y)``.  The lag is an integral over y, by Gauss' and Legendre's rule on panels.
    """

    WIDTH = 0.5

    def __init__(self, potential: Potential, dps: int) -> None:
        self._p, self._dps = potential, dps
        self._span = 1 - potential.end
        self._noisy = potential.law.velocity > 0
        self._q = self._quotient()
        self._rule = [tuple(map(mp.make_mpf, pair)) for pair in exact_legendre(int(1.1 * dps) + 14, mp.prec)]
        self._lags = [mp.mpf(0)]

    def _quotient(self) -> list[Any]:
        """The kinetic energy over the square of the distance from the end, as a polynomial in that distance."""
        p = self._p
        up = [mp.mpf(0), *(p.variance * c / (k + 1) for k, c in enumerate(p.series))]
        up += [mp.mpf(0)] * max(0, 3 - len(up))
        up[2] -= (p.law.rate * p.variance) ** 2 / 2
        for k in range(len(up)):  # Taylor's shift to the end
            for n in range(len(up) - 2, k - 1, -1):
                up[n] += p.end * up[n + 1]
        return [-c for c in up[2:]][::-1]

    def slope(self, y: Any) -> Any:
        """d(lag)/dy."""
        if self._noisy:
            return self._p.variance / mp.sqrt(2 * mp.polyval(self._q, self._span * mp.exp(-y)))
        return 2 * self._p.variance * mp.tanh(y) / mp.sqrt(2 * mp.polyval(self._q, self._span * mp.sech(y) ** 2))

    def _between(self, low: Any, high: Any) -> Any:
        half, mid = (high - low) / 2, (high + low) / 2
        return half * mp.fsum(w * self.slope(mid + half * z) for z, w in self._rule)

    def correlation(self, lag: Any) -> Any:
        """The correlation of the state at two times."""
        width = mp.mpf(self.WIDTH)
        while self._lags[-1] <= lag:
            k = len(self._lags)
            self._lags.append(self._lags[-1] + self._between(width * (k - 1), width * k))
            if k > 20 * self._dps + 400:
                return self._p.end
        k = next(n for n, known in enumerate(self._lags) if known > lag) - 1
        low, y = width * k, width * k + width * (lag - self._lags[k]) / (self._lags[k + 1] - self._lags[k])
        for _ in range(60):
            step = (self._lags[k] + self._between(low, y) - lag) / self.slope(y) if y > 0 else mp.mpf(0)
            y -= step
            if abs(step) <= mp.mpf(10) ** (-self._dps - 3) * (1 + y):
                break
        return self.shape(y)

    def shape(self, y: Any) -> Any:
        """The correlation at a value of the coordinate."""
        return self._p.end + self._span * (mp.exp(-y) if self._noisy else mp.sech(y) ** 2)

    @property
    def end(self) -> Any:
        """The correlation after long times."""
        return self._p.end

    @property
    def narrow(self) -> Any:
        """The value of the coordinate up to which noise tells how fast the correlation falls, where there is any."""
        if not self._noisy:
            return mp.mpf(1)
        start, later = (mp.exp(-2 * y) * mp.polyval(self._q, self._span * mp.exp(-y)) for y in (0, mp.mpf(10) ** -8))
        return min(mp.mpf(1), start * mp.mpf(10) ** -8 / abs(later - start))

    @property
    def far(self) -> Any:
        """A value of the coordinate beyond which no digit of the correlation changes."""
        return mp.mpf(self._dps + 3) * mp.log(10) / (1 if self._noisy else 2)


def stationary(theory: Any, values: Any, dps: int = 15) -> Stationary:
    """Find the stationary state; :meth:`symcavity.Theory.stationary` says what its parameters are."""
    law, plan = read_stationary(theory, values, dps)
    with mp.workdps(dps + 20):
        found = [*_still(law, dps), *_moving(law, dps)]
        if len(found) == 1:
            return Stationary(theory, law, plan, found[0], dps)
    if found:
        sizes = ", ".join(f"{float(v):.6g}" for v in found)
        raise NotConverged(f"There are {len(found)} stationary states, with the variances {sizes}.", found)
    raise NotConverged(
        f"No stationary state is reached: {law.state} has none with a variance from {GRID[0]:.0e} to {GRID[-1]:.0e}."
    )


def _still(law: Law, dps: int) -> list[Any]:
    """The variances of stable states that keep still."""
    if law.velocity > 0:
        return []
    out = [mp.mpf(0)] if _rest_is_stable(law) else []
    for low, high in _brackets(_on_grid(law, "force")):
        root = _refined(law, low, high, "force", dps)
        if Potential(law, root, dps).is_stable:
            out.append(root)
    return out


def _moving(law: Law, dps: int) -> list[Any]:
    """The variances of states that fluctuate."""
    return [_refined(law, low, high, "excess", dps) for low, high in _brackets(_on_grid(law, "excess"))]


def _on_grid(law: Law, of: str) -> list[Any]:
    """A quantity of the potential at the variances of the grid; None where there is none."""
    out = []
    for v in GRID:
        try:
            value = getattr(Potential(law, v, 15), of)
        except NotConverged:  # a variance that is too large for the expansion
            value = None
        out.append(None if value is None or abs(value) <= 1e-12 * (law.rate * v) ** 2 else value)
    return out
