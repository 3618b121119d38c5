"""Responses of solutions that jump, by Gaussian integration by parts over the couplings.

The vertex of a linear program does not move under an infinitesimal source, and jumps under a small one; what a
theory calls its response is the average over both.  Over Gaussian fields the average of a derivative is the average
of a product: with ``v = eta + F*e`` the field of a site, ``e`` what it sends back, and ``eta`` Gaussian of a known
variance, ``<dz/deta> = <z*eta> / <eta^2>`` for every variable z of the site.  The two self-couplings are the only
unknowns: they have to give eta the variance that the couplings give it, on both sides, and both integrals by parts
of the one double sum of ``x*e*e`` have to agree.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial

from symcavity.errors import UnsupportedLaw
from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import SIDES, linearise, relaxed, slopes
from symcavity.model.kinds import (
    DATUM,
    FEATURE,
)

_PROBE, _SAMPLED, _STILL = 12, 24, 1e-9


def jumps(instance: Instance, state: State) -> bool:
    """Tell whether a solution jumps where a pair changes its branch.

    It does if nothing holds the free member of a pair back: it moves with the fields, but not with the member
    that is held at zero.

    Parameters
    ----------
    instance : Instance
        The instance.
    state : State
        Its solution.
    """
    system = instance.system
    if any(law.sets is not None for law in system.laws.values()):
        return False
    linear = linearise(instance, state)
    rng = stream(instance.seed, _PROBE)

    def moved(rhs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        blank = np.zeros((system.count, next(iter(rhs.values())).shape[2]))
        *sites, shared = linear.solve(rhs[FEATURE], rhs[DATUM], blank)
        out = {}
        for s, z in zip(SIDES, sites, strict=True):
            at, on = slopes(instance, state, s), state.active[s][:, :, None]
            free = np.where(on, at.q_slopes, at.p_slopes) @ z
            out[s] = free + np.where(on, at.q_shared, at.p_shared) @ shared
        return out

    def sources(columns: int) -> dict[str, np.ndarray]:
        return {s: np.zeros((instance.size[s], system.laws[s].k, columns)) for s in SIDES}

    kick = sources(1)
    for s in SIDES:
        for row in set(system.laws[s].carrier):
            kick[s][:, row, 0] = rng.standard_normal(instance.size[s])
    heard = moved(kick)
    for s, law in system.laws.items():
        sites = rng.permutation(instance.size[s])[:_SAMPLED]
        for pair in range(law.kp):
            rhs = sources(len(sites))
            rhs[s][sites, law.ke + pair, np.arange(len(sites))] = 1.0
            back = moved(rhs)[s][sites, pair, np.arange(len(sites))]
            listening = np.abs(heard[s][sites, pair, 0]) > _STILL
            if np.any(listening & (np.abs(back) < _STILL)):
                return True
    return False


class ByParts:
    """The average responses of an instance whose two sides hear each other through one coupling.

    Parameters
    ----------
    instance : Instance
        The instance.
    state : State
        Its solution.

    Raises
    ------
    UnsupportedLaw
        If a side hears several fields, or the variance of a coupling is no product over its two ends.
    """

    def __init__(self, instance: Instance, state: State) -> None:
        system = instance.system
        if any(law.m != 1 for law in system.laws.values()) or len(system.couplings) != 1:
            raise UnsupportedLaw(
                "The solution of this instance jumps from branch to branch, and its sites hear several fields: "
                "its responses cannot be told from one instance.",
                "responses where each side hears one field, or where a penalty is strictly convex",
            )
        self.instance, self.state = instance, state
        spread = instance.spread(0)
        rows, columns = spread.mean(axis=1), spread.mean(axis=0)
        mean = float(spread.mean())
        if not np.allclose(spread, np.outer(rows, columns) / mean, rtol=1e-9, atol=0) or not np.all(spread > 0):
            raise UnsupportedLaw(
                "The solution of this instance jumps from branch to branch, and the variance of its couplings is no "
                "product of positive factors of a feature and of a datum.",
                "a variance such as l[i]*s[mu]/N",
            )
        self.weight = {FEATURE: columns, DATUM: rows / mean}
        self.field = {s: instance.fields(s, state)[:, 0] for s in SIDES}
        self.sent = {s: instance.emissions(s, state)[:, 0] for s in SIDES}
        self.power = {s: float(np.sum(self.weight[s] * self.sent[s] ** 2)) for s in SIDES}
        self.coupling = dict(zip(SIDES, self._self_couplings(), strict=True))

    def _self_couplings(self) -> tuple[float, float]:
        """Return F over the weight of a site, for features and for data."""
        field, sent, weight = self.field, self.sent, self.weight
        qf, qd = self.power[FEATURE], self.power[DATUM]
        both = float(field[FEATURE] @ sent[FEATURE])  # = sum of x e e = qd*a + qf*c, with F = c and F = a
        if qf == 0 or qd == 0:
            return 0.0, 0.0
        excess = {s: float(np.sum(field[s] ** 2 / weight[s])) for s in SIDES}
        a = Polynomial([0.0, 1.0])
        c = (both - qd * a) / qf
        gap_f = excess[FEATURE] - 2 * both * c + qf * c**2 - self.instance.size[FEATURE] * qd
        gap_d = excess[DATUM] - 2 * both * a + qd * a**2 - self.instance.size[DATUM] * qf
        # each a sum of squared Gaussians minus its mean, whose variance goes with the number of sites
        misfit = gap_f**2 / (qd**2 * self.instance.size[FEATURE]) + gap_d**2 / (qf**2 * self.instance.size[DATUM])
        sign = self._sign()
        roots = np.asarray(misfit.deriv().roots(), dtype=complex)
        found = roots.real[np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))]
        best = min([0.0, *found[found * sign > 0].tolist()], key=lambda r: float(misfit(r)))
        return float(c(best)), best

    def _sign(self) -> float:
        """Return the sign with which features respond: that of the same equations with soft pairs."""
        instance, law = self.instance, self.instance.system.laws[FEATURE]
        at = slopes(instance, self.state, FEATURE)
        rhs = {s: np.zeros((instance.size[s], instance.system.laws[s].k, 1)) for s in SIDES}
        kick = stream(instance.seed, _PROBE, 1).standard_normal(instance.size[FEATURE])
        rhs[FEATURE][:, : law.ke, 0] = -at.hears[:, :, 0] * kick[:, None]
        blank = np.zeros((instance.system.count, 1))
        moved = relaxed(instance, self.state).solve(rhs[FEATURE], rhs[DATUM], blank)[0]
        return float(np.sign(kick @ (at.emits @ moved)[:, 0, 0]))

    def local(self, side: str, variable: int) -> np.ndarray:
        """Return numbers, one a site, whose averages are those of the responses of a variable."""
        law, other = self.instance.system.laws[side], DATUM if side == FEATURE else FEATURE
        coefficient = -slopes(self.instance, self.state, side).hears[:, law.carrier[0], 0]
        cavity = self.field[side] - self.weight[side] * self.coupling[side] * self.sent[side]
        return self.state.site[side][:, variable] * cavity / (self.weight[side] * self.power[other] * coefficient)


__all__ = ["ByParts", "jumps"]
