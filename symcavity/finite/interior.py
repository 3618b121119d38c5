"""The central path of an instance: an interior point for its complementary pairs, from far away to their branches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcavity.finite.instance import Instance, State, largest
from symcavity.finite.linearised import LinearResponse, LinearSystem
from symcavity.finite.newton import (
    Slopes,
    gaps,
    local_system,
    scale_of,
    shifted,
    slopes,
    summed,
)
from symcavity.finite.starts import finite_start
from symcavity.model.kinds import Kind

TARGETS = (1e-9, 1e-14)


@dataclass(frozen=True)
class Pace:
    """How steps along the path balance the equations, where these bend, against the products of pairs.

    Attributes
    ----------
    waits : bool
        Whether products wait until the equations hold as well as they are small: a path that hurries may arrive at
        pairs whose choice the equations do not allow.
    growth : float
        How many times further behind a step may leave the equations: where slopes stop bending, as those of Huber's
        loss do, steps that leave them behind at all run away.
    """

    waits: bool
    growth: float


PACES = (Pace(False, 2.0), Pace(True, 2.0), Pace(False, 1.0))  # hurried, patient, steady
_PATH_STEPS, _FAR = 120, 1e13


class _Path:
    """The central path of an instance: where it stands, and its next step."""

    def __init__(self, instance: Instance, pace: Pace) -> None:
        self.instance, self.state, self.pace = instance, finite_start(instance), pace
        for s, law in instance.system.laws.items():  # as large as their slack: at zero nothing holds what they multiply
            self.state.site[s][:, law.multiplying] = 1.0
        self.at = {s: gaps(instance, self.state, s) for s in instance.system.laws}
        self.slack = {s: (np.maximum(a.p, 1.0), np.maximum(a.q, 1.0)) for s, a in self.at.items()}
        self.count = sum(p.size for p, _ in self.slack.values())
        self._measure()

    def _measure(self) -> None:
        at, slack = self.at, self.slack
        self.mean = sum(float(np.sum(p * q)) for p, q in slack.values()) / self.count
        self.gaps = {s: (a.p - slack[s][0], a.q - slack[s][1]) for s, a in at.items()}
        self.total = summed(a.body for a in at.values())
        every = [g for pair in self.gaps.values() for g in pair]
        self.error = largest(*(a.equations for a in at.values()), *every, self.total)
        self.scale = scale_of(self.state)
        self.state.active = {s: p < q for s, (p, q) in slack.items()}

    @property
    def lost(self) -> bool:
        """Whether the path has run to infinity."""
        return not np.isfinite(self.error) or self.scale > _FAR

    def arrived(self, target: float) -> bool:
        """Whether the equations hold and the products are small."""
        return self.error < target * self.scale and self.mean < target * min(self.scale, 10.0)

    def _direction(
        self, system: LinearSystem, along: dict[Kind, Slopes], target: dict[Kind, np.ndarray]
    ) -> tuple[LinearResponse, dict[Kind, tuple[np.ndarray, ...]]]:
        """Return the step towards products with given values: of the variables, and of the pairs."""
        right = {}
        for s, (p, q) in self.slack.items():
            gap_p, gap_q = self.gaps[s]
            row = target[s] - p * q - q * gap_p - p * gap_q
            right[s] = np.concatenate([-self.at[s].equations, row], axis=1)[:, :, None]
        moved = system.solve(right, -self.total[:, None])
        ds: dict[Kind, tuple[np.ndarray, ...]] = {}
        for s, at in along.items():
            dz, dg = moved.site[s][:, :, 0], moved.shared[:, 0]
            ds[s] = (
                np.einsum("npk,nk->np", at.p_slopes, dz) + at.p_shared @ dg + self.gaps[s][0],
                np.einsum("npk,nk->np", at.q_slopes, dz) + at.q_shared @ dg + self.gaps[s][1],
            )
        return moved, ds

    def advance(self) -> None:
        """Predict the end of the path, then step towards its center (Mehrotra)."""
        slack = self.slack
        along = {s: slopes(self.instance, self.state, s) for s in slack}
        kinds = {s: local_system(self.instance, s, along[s], (q, p), grouped=False) for s, (p, q) in slack.items()}
        shared = summed(a.body_shared for a in along.values())
        try:
            system = LinearSystem(kinds, shared)
        except np.linalg.LinAlgError:  # what nothing determines need not move
            system = LinearSystem(kinds, shared, flat=True)
        _, ds = self._direction(system, along, {s: np.zeros_like(p) for s, (p, _) in slack.items()})
        reach = _reach(slack, ds, 1.0)
        ahead = sum(
            float(np.sum((p + reach * ds[s][0]) * (q + reach * ds[s][1]))) for s, (p, q) in slack.items()
        )
        centre = self.mean * min(1.0, (ahead / self.count / self.mean) ** 3)
        if self.pace.waits and self.error > self.mean:
            centre = self.mean  # pairs that are nearly decided would stop the steps that equations still need
        limit = 10 * self.mean
        moved, ds = self._direction(
            system, along, {s: centre - np.clip(dp * dq, -limit, limit) for s, (dp, dq) in ds.items()}
        )
        self._step(moved, ds, min(1.0, _reach(slack, ds, 0.995)))

    def _step(
        self, moved: LinearResponse, ds: dict[Kind, tuple[np.ndarray, ...]], step: float
    ) -> None:
        """Step as far as the equations, where they are not linear, allow."""
        start, slack, error = self.state, self.slack, self.error
        allowed = max(self.pace.growth * error, (5 * self.pace.growth) * self.mean, 1e-8)
        for _ in range(30):
            self.state = shifted(start, moved, step)
            self.at = {s: gaps(self.instance, self.state, s) for s in slack}
            self.slack = {s: (p + step * ds[s][0], q + step * ds[s][1]) for s, (p, q) in slack.items()}
            self._measure()
            if self.instance.system.affine or self.error <= allowed:
                return
            step *= 0.5


def follow_path(instance: Instance, target: float = TARGETS[0], pace: Pace = PACES[0]) -> tuple[State, float]:
    """Follow the central path from far away towards the solution of the complementarity problem.

    Parameters
    ----------
    instance : Instance
        The instance.
    target : float
        How far to go; the branches of nearly degenerate pairs show late.
    pace : Pace
        How steps balance equations that bend against pairs; linear ones need no other.

    Returns
    -------
    tuple
        A state with its likely branches, and the largest relative violation (which stays large if there
        is no solution).
    """
    path = _Path(instance, pace)
    best, worst, stuck = path.state, np.inf, 0
    for _ in range(_PATH_STEPS):
        if path.lost:
            break
        now = max(path.error, path.mean) / path.scale
        if now < worst:
            best, worst, stuck = path.state, now, 0
        elif (stuck := stuck + 1) > 15:
            break
        if path.arrived(target):
            break
        try:
            path.advance()
        except np.linalg.LinAlgError:
            break
    return best, worst


def _reach(
    slack: dict[Kind, tuple[np.ndarray, np.ndarray]], ds: dict[Kind, tuple[np.ndarray, ...]], fraction: float
) -> float:
    """Return the longest step, up to one, that keeps every member of a pair positive."""
    reach = 1.0
    for kind, values in slack.items():
        for x, d in zip(values, ds[kind], strict=True):
            falling = d < 0
            if np.any(falling):
                reach = min(reach, fraction * float(np.min(-x[falling] / d[falling])))
    return reach
