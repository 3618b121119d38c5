"""A joint law and its fields, at parameters: how these vary together, and the states of the law at given ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import SCRAMBLE, JointLaw, LawSymbol
from symcavity.algebra.memory import Memory
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.edges import HELD
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.joint_bodies import Body
from symcavity.evaluate.averages.law_code import LawCode
from symcavity.evaluate.constants import TINIEST
from symcavity.shapes.sampling import SCRAMBLES

RANK = 1e-12  # of the trace: smaller eigenvalues of a covariance stand for zero
NEGATIVE = 0.1  # of the trace: what an iterate that is extrapolated may lack; at a root covariances are those of states

_codes = Memory(64)


class LawAtFields:
    """A law in code, with the covariance of its fields.

    Parameters
    ----------
    law : JointLaw
    covariance : sequence of Expr
        Its lower triangle, row by row.
    leaves : list
        The parameters of both.
    """

    def __init__(self, law: JointLaw, covariance: Sequence[Expr], leaves: Sequence[Any]) -> None:
        self.law = law
        self.key = (law.func(*law.args[:-1]), *leaves)  # the same for each set of samples
        if self.key not in _codes:
            _codes[self.key] = LawCode(law, leaves)
        self.code: LawCode = _codes[self.key]
        self.count = len(law.fields)
        self.heard = [k for k, f in enumerate(law.fields) if f not in law.unheard]
        self.unheard = [k for k in range(self.count) if k not in self.heard]
        self.cells = function(list(leaves), list(covariance))
        self.last: dict[Any, np.ndarray] = {}  # the unknowns at nodes of a name, from which the next search starts

    def matrix(self, params: Any) -> np.ndarray:
        """The covariance of the fields."""
        cells = np.asarray(self.cells(*params))
        matrix = np.zeros((self.count, self.count), dtype=cells.dtype)
        matrix[np.tril_indices(self.count)] = cells
        return matrix + np.tril(matrix, -1).T

    def root(self, params: tuple[float, ...]) -> np.ndarray | None:
        """The symmetric root of the covariance, seen from its range; None if it is not one."""
        matrix = self.matrix(params)
        if not np.isfinite(matrix).all():
            return None
        size, frame = np.linalg.eigh(matrix)
        if size[0] < -NEGATIVE * max(size.sum(), 0.0):
            return None
        return (frame * np.sqrt(np.maximum(size, 0.0))) @ frame.T @ ranges(size, frame)[0]

    def states(self, name: Any, fields: np.ndarray, params: Sequence[float]) -> np.ndarray | None:
        """The unknowns at given fields, found from those that nodes of this name had; None if there are none."""
        x = self.code.solve(fields, params, self.last.get(name))
        if x is None:
            self.last.pop(name, None)
        else:
            self.last[name] = x
        return x

    def solved(self, name: Any, fields: np.ndarray, params: Sequence[float]) -> dict[LawSymbol, np.ndarray] | None:
        """All quantities of the law at given fields; None where it has no solution."""
        if (x := self.states(name, fields, params)) is None:
            return None
        try:
            return self.code.columns(x, fields, params)
        except np.linalg.LinAlgError:
            said = "A law of several states is singular at some fields: kinks that meet share their multipliers."
            raise NotConverged(
                said, hint="one kink in place of several at one point: Abs(h) for Max(0, h) + Max(0, -h)"
            ) from None

    def on_faces(self, faces: Faces, fields: np.ndarray) -> dict[LawSymbol, np.ndarray] | None:
        """All quantities of an affine law at given fields."""
        face = faces.find(fields)
        return None if face is None else self.on_face(faces, face, fields)

    def on_face(self, faces: Faces, face: np.ndarray, fields: np.ndarray) -> dict[LawSymbol, np.ndarray]:
        """The same where it is known which face each field belongs to."""
        found = self.code.quantities(faces.values(face, fields), fields, faces.slopes(face))
        return found | {HELD: faces.numbers[face]}

    def sides(
        self, bodies: Sequence[Body], params: Any, own: Any
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """What switches, of the law and of what is averaged, as a function of the unknowns and the fields."""
        switching = [body for body in bodies if body.sides]
        known = {*self.code.unknowns, *self.code.defined, *self.law.fields}
        answering = any(not known.issuperset(body.edges) for body in switching)  # responses jump where states bend

        def sides(x: np.ndarray, fields: np.ndarray) -> np.ndarray:
            found = self.code.sides(x, fields, params)
            if not switching:
                return found
            columns = self.code.columns(x, fields, params, slopes=answering)
            return np.concatenate([found, *(body.switches(columns, own) for body in switching)])

        return sides

    def scrambles(self) -> Sequence[int]:
        """Which independent sets of samples are used."""
        return range(SCRAMBLES) if self.law.scramble == SCRAMBLE else [int(self.law.scramble)]


def ranges(size: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal frames of the range and of the kernel of a covariance, the same ones where these do not change."""
    out = []
    kept = size > RANK * max(size.sum(), TINIEST)
    kept[-1] = True
    for part in (kept, ~kept):
        own = frame[:, part]
        turn, lower = np.linalg.qr((own @ own.T)[:, _leading(own)]) if own.size else (own, np.eye(0))
        out.append(np.eye(len(size)) if part.all() else turn * np.where(np.diag(lower) < 0, -1.0, 1.0))
    return out[0], out[1]


def _leading(own: np.ndarray) -> list[int]:
    """Rows of a frame, as many as it has vectors, that span it."""
    chosen, rest = list[int](), own.copy()
    for _ in range(own.shape[1]):
        sizes = np.linalg.norm(rest, axis=1)
        chosen.append(int(np.argmax(sizes > 0.99 * sizes.max())))
        unit = rest[chosen[-1]] / sizes[chosen[-1]]
        rest = rest - np.outer(rest @ unit, unit)
    return chosen
