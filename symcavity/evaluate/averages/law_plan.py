"""Over which nodes averages over a law are taken, finer and finer ones, and what they may change in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symcavity.algebra.joint import MOST_BESIDE, MOST_RULED, RAYS, RULE, SAMPLES
from symcavity.evaluate.averages import beside
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.joint_bodies import Body
from symcavity.evaluate.averages.law_fields import LawAtFields
from symcavity.evaluate.averages.law_nodes import BESIDE, CARRIED, CROSS, ORDERS, PANELS
from symcavity.evaluate.averages.law_rays import MOST_TURNED
from symcavity.evaluate.tolerances import tolerances

GOAL = {RULE: 1e-11, BESIDE: 1e-11, PANELS: 1e-11, RAYS: 1e-9}  # what finer nodes change, by the average modulus
PLENTY = 384  # rays, from which on it is enough that there is a value
CUT, PLANAR = (6, 9, 14, 21, 32, 48), 2  # rays between two turns, in a plane
TURNED = (8, 12, 18, 27, 40, 60, 90)  # directions between two places of switching, in a plane
SMOOTH, JUMPING = 256, 1024  # samples of each independent set, where everything is smooth and where something jumps

Trial = tuple[str, int]  # the kind of nodes, and how fine they are


@dataclass(frozen=True)
class NodePlan:
    """What decides over which nodes some averages over a law are taken.

    Attributes
    ----------
    way : str
        Which nodes.
    rank : int
        Of the covariance of the fields.
    bent, jumps : bool
        Whether the law has kinks, and what is averaged.
    flat : bool
        Whether all is affine between them.
    """

    way: str
    rank: int
    bent: bool
    jumps: bool
    flat: bool

    @classmethod
    def of(cls, at: LawAtFields, bodies: Sequence[Body], way: str, rank: int, *, bent: bool) -> NodePlan:
        """Return the plan for some averages of the way that their law was made for."""
        jumps = any(body.sides for body in bodies)
        flat = (bent or jumps) and at.code.affine and all(body.affine for body in bodies)
        if way == RULE and not bent and len(at.unheard) == MOST_BESIDE:
            way = BESIDE
        elif not (bent or jumps):  # fields may have fewer dimensions than they are
            cubic = at.code.affine and all(body.degree <= 3 for body in bodies)
            way = CROSS if cubic else RULE if rank <= MOST_RULED and not at.unheard else way
        return cls(way, rank, bent, jumps, flat)

    @property
    def sampled(self) -> bool:
        """Whether one set of nodes is all that there is."""
        return self.way in (SAMPLES, CROSS) and not (self.flat and self.rank < MOST_TURNED)

    def is_planar(self, at: LawAtFields, faces: Faces | None) -> bool:
        """Whether nodes in a plane may be carried on to other parameters."""
        return bool(self.way == RAYS and faces is None and at.count == self.rank == PLANAR and at.code.hearing)

    def trials(self, at: LawAtFields, enough: Trial | None) -> list[Trial]:
        """Finer and finer nodes, from a little before those that were enough for other averages."""
        levels: Sequence[int]
        if self.sampled:
            levels = (JUMPING if self.jumps else SMOOTH,)
        elif self.flat:
            levels = TURNED
        else:
            levels = beside.levels(at) if self.way == BESIDE else ORDERS[self.way].get(self.rank, (1,))
        trials = [(self.way, level) for level in levels]
        trials += [(PANELS, level) for level in ORDERS[PANELS][self.rank]] if self.way == RULE else []
        if enough in trials:
            trials = trials[max(0, trials.index(enough) - (1 if self.way == BESIDE else 2)) :]
        return trials

    def goal(self, way: str, level: int) -> float:
        """What finer nodes of a kind may change, as a share of the averages of moduli."""
        enough = way == RAYS and not self.flat and level >= PLENTY
        return tolerances().settled_law if enough else GOAL.get(way, GOAL[RAYS])


class Carrying:
    """Whether nodes in a plane are tried: where they do not settle, ever more rarely."""

    def __init__(self) -> None:
        self.misses, self.pause = 0, 0  # how often they were of no use, and averages before the next trial

    def trials(self, settled: int | None, *, begun: bool) -> list[Trial]:
        """How many rays are tried, first as many as have been found to do; none where there is a pause."""
        if not begun and self.pause:
            self.pause -= 1
            return []
        return [(CARRIED, level) for level in ([] if settled is None else [settled]) + list(CUT)]

    def ended(self, way: str) -> None:
        """Note which nodes have done, where these were tried."""
        self.misses = 0 if way == CARRIED else self.misses + 1
        self.pause = 4**self.misses if self.misses else 0
