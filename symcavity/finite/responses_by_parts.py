"""Responses of solutions that jump, by Gaussian integration by parts over the couplings.

The vertex of a linear program does not move under an infinitesimal source, and jumps under a small one; what a
theory calls its response is the average over both.  Over Gaussian fields the average of a derivative is the average
of a product: with ``v = eta + F*e`` the field of a site, ``e`` what it sends back, and ``eta`` Gaussian of a known
variance, ``<dz/deta> = <z*eta> / <eta^2>`` for every variable z of the site.  The two self-couplings are the only
unknowns: they have to give eta the variance that the couplings give it, at both ends, and both integrals by parts
of the one double sum of ``x*e*e`` have to agree.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial

from symcavity.errors import UnsupportedLaw
from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import linearise, relaxed, slopes
from symcavity.model.couplings import correlation_of
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind

_PROBE, _SAMPLED, _STILL, _NOTHING = 12, 24, 1e-9, 1e-18


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

    def moved(right: dict[Kind, np.ndarray]) -> dict[Kind, np.ndarray]:
        found, out = linear.solve(right), {}
        for s, z in found.site.items():
            at, on = slopes(instance, state, s), state.active[s][:, :, None]
            free = np.where(on, at.q_slopes, at.p_slopes) @ z
            out[s] = free + np.where(on, at.q_shared, at.p_shared) @ found.shared
        return out

    kick = instance.right(1)
    for s, law in system.laws.items():
        for row in set(law.carrier):
            kick[s][:, row, 0] = rng.standard_normal(instance.size[s])
    heard = moved(kick)
    for s, law in system.laws.items():
        sites = rng.permutation(instance.size[s])[:_SAMPLED]
        for pair in range(law.kp):
            right = instance.right(len(sites))
            right[s][sites, law.ke + pair, np.arange(len(sites))] = 1.0
            back = moved(right)[s][sites, pair, np.arange(len(sites))]
            listening = np.abs(heard[s][sites, pair, 0]) > _STILL
            if np.any(listening & (np.abs(back) < _STILL)):
                return True
    return False


class InstanceByParts:
    """The average responses of an instance whose two kinds of sites hear each other through one coupling.

    Beside the field of the other kind's states, a site may hear fields of given emissions: those of a teacher,
    through the same couplings. What is sent is then taken without its part along the given emissions, and what is
    left of the field is independent of the given fields.

    Parameters
    ----------
    instance : Instance
        The instance.
    state : State
        Its solution.

    Raises
    ------
    UnsupportedLaw
        If a kind hears several fields of states, or itself, or the variance of a coupling is not a product over its
        two ends.
    """

    def __init__(self, instance: Instance, state: State) -> None:
        system = instance.system
        self.instance, self.state = instance, state
        self.heard = system.pair
        others = [f.coupling.family for law in system.laws.values() for f in law.fields]
        mine = [f.coupling.family for f in self.heard.values()]
        if not mine or any(correlation_of(mine[0], other) != 0 for other in others if other != mine[0]):
            raise UnsupportedLaw(
                "The solution of this instance jumps from branch to branch, and its sites hear several fields: "
                "its responses cannot be measured on one instance.",
                "responses where two kinds of sites hear one field each, or where a penalty is strictly convex",
            )
        place = system.place(next(iter(self.heard.values())))
        spread = instance.spread(place)
        rows, columns = spread.mean(axis=1), spread.mean(axis=0)
        mean = float(spread.mean())
        if not np.allclose(spread, np.outer(rows, columns) / mean, rtol=1e-9, atol=0) or not np.all(spread > 0):
            raise UnsupportedLaw(
                "The solution of this instance jumps from branch to branch, and the variance of its couplings is no "
                "product of positive factors of their two ends.",
                "a variance such as l[i]*s[mu]/N",
            )
        self.ends = system.couplings[place].family.slots[::-1]  # the columns and the rows of the couplings
        self.weight = dict(zip(self.ends, (columns, rows / mean), strict=True))
        given = {
            f.sender: self._emitted([g for g in system.laws[s].fields if not g.states() and system.place(g) == place])
            for s, f in self.heard.items()
        }
        whole = {f.sender: self._emitted([f])[:, 0] for f in self.heard.values()}
        self.sent = {s: self._without(s, e, given[s]) for s, e in whole.items()}
        self.field = {}
        for s, f in self.heard.items():
            u = instance.matrix(f) @ self.sent[f.sender] / self.weight[s]
            self.field[s] = self.weight[s] * self._without(s, u, given[s])
        self.power = {s: self._norm(s, e) for s, e in self.sent.items()}
        size = {s: self._norm(s, e) + float(np.sum(self.weight[s])) for s, e in whole.items()}  # in its own units
        self.vanishing = {s for s in self.power if self.power[s] <= _NOTHING * size[s]}
        self.coupling = dict(zip(self.ends, self._self_couplings(), strict=True))

    def _emitted(self, fields: list[RandomField]) -> np.ndarray:
        """What the senders of fields emit: (sites, fields)."""
        columns = [self.instance.emissions(f.sender, self.state)[:, self.instance.system.column(f)] for f in fields]
        return np.stack(columns, axis=1) if columns else np.zeros((0, 0))

    def _without(self, kind: Kind, values: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Return values at the sites of a kind without their part along given ones, weighted by the variance."""
        if not given.size:
            return values
        root = np.sqrt(self.weight[kind])
        return values - given @ np.linalg.lstsq(root[:, None] * given, root * values, rcond=None)[0]

    def _norm(self, kind: Kind, values: np.ndarray) -> float:
        return float(np.sum(self.weight[kind] * values**2))

    def _self_couplings(self) -> tuple[float, float]:
        """Return F over the weight of a site, at the two ends."""
        field, sent, weight, size = self.field, self.sent, self.weight, self.instance.size
        one, two = self.ends
        qf, qd = self.power[one], self.power[two]
        both = float(field[one] @ sent[one])  # = sum of x e e = qd*a + qf*c, with F = c and F = a
        if self.vanishing:
            return 0.0, 0.0
        excess = {s: float(np.sum(field[s] ** 2 / weight[s])) for s in self.ends}
        a = Polynomial([0.0, 1.0])
        c = (both - qd * a) / qf
        gap_f = excess[one] - 2 * both * c + qf * c**2 - size[one] * qd
        gap_d = excess[two] - 2 * both * a + qd * a**2 - size[two] * qf
        # each a sum of squared Gaussians minus its mean, whose variance goes with the number of sites
        misfit = gap_f**2 / (qd**2 * size[one]) + gap_d**2 / (qf**2 * size[two])
        sign = self._sign()
        roots = np.asarray(misfit.deriv().roots(), dtype=complex)
        found = roots.real[np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))]
        best = min([0.0, *found[found * sign > 0].tolist()], key=lambda r: float(misfit(r)))
        return float(c(best)), best

    def _sign(self) -> float:
        """Return the sign with which the first end responds: that of the same equations with soft pairs."""
        instance, one = self.instance, self.ends[0]
        law, at = instance.system.laws[one], slopes(instance, self.state, one)
        place, column = law.fields.index(self.heard[one]), instance.system.column(self.heard[self.ends[1]])
        right = instance.right(1)
        kick = stream(instance.seed, _PROBE, 1).standard_normal(instance.size[one])
        right[one][:, : law.ke, 0] = -at.hears[:, :, place] * kick[:, None]
        moved = relaxed(instance, self.state).solve(right).site[one]
        return float(np.sign(kick @ (at.emits @ moved)[:, column, 0]))

    def local(self, kind: Kind, variable: int) -> np.ndarray:
        """Return numbers, one a site, whose averages are those of the responses of a variable.

        Raises
        ------
        UnsupportedLaw
            If nothing is left of the field of the sites beside what is given: there is nothing to measure with.
        """
        law, other = self.instance.system.laws[kind], self.heard[kind].sender
        if other in self.vanishing:
            raise UnsupportedLaw(
                f"The {kind.sites} of the instance with seed {self.instance.seed} hear only messages that vanish "
                "or are given: their responses cannot be measured.",
                "responses where the messages neither vanish nor are given",
            )
        place = law.fields.index(self.heard[kind])
        coefficient = -slopes(self.instance, self.state, kind).hears[:, law.carrier[place], place]
        cavity = self.field[kind] - self.weight[kind] * self.coupling[kind] * self.sent[kind]
        return self.state.site[kind][:, variable] * cavity / (self.weight[kind] * self.power[other] * coefficient)
