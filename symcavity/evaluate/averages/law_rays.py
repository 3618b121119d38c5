"""Nodes along rays for laws with kinks: in panels that end where a pair or a kink switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcavity.algebra.joint import RAYS, LawSymbol
from symcavity.evaluate.averages.edges import HELD
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.grids import REACH
from symcavity.evaluate.averages.joint_bodies import Body
from symcavity.evaluate.averages.law_fields import LawAtFields
from symcavity.evaluate.averages.ray_centres import SCAN, all_round, bracketed, even_centre
from symcavity.evaluate.averages.rays import along, crossings, sign_changes, spread, turned

BISECTIONS = 34  # steps with which switching is looked for along rays
MOST_TURNED = 3  # from so many dimensions on, directions are sampled
SPREAD, FEW = 512, 16  # directions of each independent set: of affine laws, and where switching is looked for


class RayNodes:
    """Nodes at which a law is solved, along rays.

    Parameters
    ----------
    at : LawAtFields
    root : array, shape (fields, rank)
        Of the covariance of the fields.
    params : sequence of float
    bodies : sequence of Body
        What is averaged: rays are cut where one of them switches too.
    own : dict
        The values of the parameters of these.
    faces : Faces or None
        Of an affine law.
    """

    def __init__(
        self, at: LawAtFields, root: np.ndarray, params: Any, bodies: Sequence[Body], own: Any, faces: Faces | None
    ) -> None:
        self.at, self.root, self.params, self.own, self.faces = at, root, params, own, faces
        self.switching = [body for body in bodies if body.sides]
        self.sides = at.sides(bodies, params, own)

    def nodes(self, way: str, level: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Standard Gaussian variables and their weights; None where the law has no solution.

        In a plane the rays meet from where as many of them switch equally often: what switches on a curve that the
        origin lies beside would end between two of its rays.  They meet beside what switches on a plane through the
        origin, along which no ray crosses it.
        """
        rank = self.root.shape[1]
        planar = rank == MOST_TURNED - 1 and way == RAYS
        if planar:
            rays, shares = all_round(level), np.full(level, 1 / level)
        else:
            rays, shares = spread(rank, self.at.scrambles(), FEW)
        if planar and not self.at.code.normals:
            centre = even_centre(lambda z: None if (sides := self._look(z, None)[1]) is None else self._marks(sides))
        else:
            centre = self.at.code.aside(self.root, self.params)
        reach, count = REACH + float(np.linalg.norm(centre)), rays.shape[1]
        if (switched := self._switched(centre, rays, reach, level)) is None:
            return None
        own, places = switched
        number = np.arange(len(own)) - np.searchsorted(own, own)  # which one of its ray's
        cuts = np.full((count, int(number.max(initial=-1)) + 1), reach)
        cuts[own, number] = places
        points, weights, _ = along(cuts, rays, shares, reach=reach)
        return centre[:, None] + points, weights * np.exp(-centre @ points - centre @ centre / 2)

    def _look(self, z: np.ndarray, start: Any) -> tuple[Any, Any]:
        """Where the search for the states may start next time, and what switches: its signs, or which face holds."""
        fields = self.root @ z
        if self.faces is not None:
            face, columns = self.faces.find(fields), self.at.on_faces(self.faces, fields)
            if face is None or columns is None:
                return None, None
            over = (body.switches(columns, self.own) > 0 for body in self.switching)
            return fields, np.concatenate([face[None], *over])
        x = self.at.code.solve(fields, self.params, start)
        return (None, None) if x is None else (x, self.sides(x, fields))

    def _marks(self, sides: np.ndarray) -> np.ndarray:
        return sides if self.faces is not None else sides > 0

    def _switched(
        self, centre: np.ndarray, rays: np.ndarray, reach: float, level: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Places along rays where something switches: the numbers of their rays, in order, and how far they are."""
        count = rays.shape[1]
        ray, r = np.repeat(np.arange(count), SCAN), np.tile(np.linspace(0, reach, SCAN), count)

        def points(some: np.ndarray, r: np.ndarray) -> np.ndarray:
            return centre[:, None] + rays[:, some] * r

        x, sides = self._look(points(ray, r), self.at.last.get(("scan", level)))
        if x is None:
            return None
        self.at.last["scan", level] = x
        changes = (self._marks(sides)[:, 1:] != self._marks(sides)[:, :-1]) & (ray[1:] == ray[:-1])
        if self.faces is not None:
            hits = np.flatnonzero(changes.any(axis=0))
            low, high = r[hits], r[hits + 1]
            for _ in range(BISECTIONS if hits.size else 0):
                middle = (low + high) / 2
                _, here = self._look(points(ray[hits], middle), None)
                if here is None:
                    return None
                same = (here == sides[:, hits]).all(axis=0)
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            return ray[hits], (low + high) / 2
        hits, rows = np.nonzero(changes.T)  # several may switch between two points: each has a place of its own
        if not hits.size:
            return ray[hits], r[hits]
        start = x[:, hits].copy()

        def side(r: np.ndarray, some: np.ndarray) -> np.ndarray | None:
            there, here = self._look(points(ray[hits[some]], r), start[:, some])
            if there is None:
                return None
            start[:, some] = there
            return here[rows[some], np.arange(len(some))]

        found = sign_changes(side, *bracketed(ray, r, sides, hits, rows))
        return None if found is None else (ray[hits], found)


def on_faces(
    at: LawAtFields, faces: Faces, level: int, root: np.ndarray, bodies: Sequence[Body], own: Mapping[Any, float]
) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
    """All quantities of an affine law along rays that are cut where its faces end."""
    count, width = len(faces.numbers), 1 + at.count
    names = [*at.code.unknowns, *at.code.defined, *at.law.fields]
    eye = np.broadcast_to(np.eye(width)[1:], (count, at.count, width))
    every = np.concatenate([faces.states[..., :width], eye], axis=1)
    given = dict(zip(names, np.moveaxis(every, 1, 0), strict=True)) | {HELD: faces.numbers}
    rows = np.concatenate([faces.tests, *(body.lines(given, own) for body in bodies)], axis=1)
    rows = np.concatenate([rows[..., :1], rows[..., 1:] @ root], axis=-1)
    held, rank = faces.tests.shape[1], root.shape[1]
    if rank == MOST_TURNED - 1:
        units, shares = turned(rows, held, level)
    else:
        units, shares = spread(rank, at.scrambles(), SPREAD)
    cubic = all(body.degree <= 3 for body in bodies)
    points, weights, middles = along(crossings(rows, held, units), units, shares, cubic=cubic)
    face = faces.find(root @ middles)
    if face is None:
        return None
    face, fields = np.repeat(face, points.shape[1] // len(face)), root @ points
    return at.on_face(faces, face, fields), weights
