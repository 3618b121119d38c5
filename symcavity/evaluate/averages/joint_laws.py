"""Averages of states that a system of equations fixes together: Newton's method at all nodes at once.

The nodes are those of a product of Gauss-Hermite rules, in up to three dimensions of a smooth law, and quasi-random
points beyond; with kinks they lie along rays.  Piecewise linear laws are solved on their faces.
All averages over one law and one covariance are taken at once, for its states are found only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from sympy import Add, Expr, S

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import (
    MOST_BESIDE,
    MOST_RULED,
    RAYS,
    RULE,
    SAMPLES,
    SCRAMBLE,
    JointAverage,
    JointLaw,
    LawSymbol,
    slope,
)
from symcavity.algebra.memory import Memory
from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.averages import beside
from symcavity.evaluate.averages.carried import Plane
from symcavity.evaluate.averages.edges import HELD
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.joint_bodies import Body, leaves_of
from symcavity.evaluate.averages.law_code import LawCode
from symcavity.evaluate.averages.ray_centres import SCAN, all_round, bracketed, even_centre
from symcavity.evaluate.averages.rays import REACH, along, crossings, graded, scrambled, sign_changes, spread, turned
from symcavity.evaluate.averages.selected import selected
from symcavity.evaluate.watch import tick
from symcavity.model.quantities import SiteQuantity
from symcavity.shapes.sampling import SCRAMBLES

PANELS = "panels"  # along rays, shorter and shorter towards the origin: for smooth laws that no polynomial resembles
CARRIED = "carried"  # nodes of other parameters, between places of switching in a plane
BESIDE = "beside"  # products of a rule in the fields that the law hears, and one in the others at each of its nodes
CROSS = "cross"  # points on the axes, which give polynomials of the third degree exactly
LEVELS: dict[str, dict[int, tuple[int, ...]]] = {
    RULE: {1: (24, 48, 96, 192), 2: (16, 24, 36, 54, 81), 3: (12, 18, 27, 40)},  # nodes along each field
    RAYS: {1: (2, 2), 2: (24, 48, 96, 192, 384, 768)},
    SAMPLES: {},
    PANELS: {1: (8, 16, 32), 2: (12, 18, 27, 40, 60, 90), 3: (8, 12, 18, 27)},  # directions along each angle
}
OTHERS = {0: (1,), 1: (24, 36, 54, 81, 120, 180)}  # nodes along the field that the law does not hear
GOAL = {RULE: 1e-11, BESIDE: 1e-11, PANELS: 1e-11, RAYS: 1e-9}  # what finer nodes change, by the average modulus
BISECTIONS = 34  # steps with which switching is looked for along rays
PLENTY = 384  # rays, from which on ENOUGH will do
CUT, PLANAR = (6, 9, 14, 21, 32, 48), 2  # rays between two turns, in a plane
TURNED = (8, 12, 18, 27, 40, 60, 90)  # directions between two places of switching, in a plane
MOST_TURNED = 3  # from so many dimensions on, directions are sampled
SMOOTH, JUMPING = 256, 1024  # samples of each independent set, where everything is smooth and where something jumps
SPREAD, FEW = 512, 16  # directions of each independent set: of affine laws, and where switching is looked for
ENOUGH = 1e-7  # where the finest rules leave more than this, there is no value
ROUNDING = 1e-9  # of directions in which a law leaves its unknowns open
LIGHT = 1e-20  # nodes of less weight are left out
STEP = 1e-30  # of a complex step, which cancels nothing
FLAT = 1e-12  # of the largest eigenvalue: what stands for zero where roots are differentiated
RANK = 1e-12  # of the trace: smaller eigenvalues of a covariance stand for zero
NEGATIVE = 0.1  # of the trace: what an iterate that is extrapolated may lack; at a root covariances are those of states

_shared = Memory(64)
_codes, _bodies = Memory(64), Memory(512)


class Joint:
    """A compiled average over a joint law: call it with the values of its symbols."""

    def __init__(self, node: JointAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        key = (node.law, node.args[2])
        if key not in _shared:
            _shared[key] = Family(node.law, node.covariance)
        self.family: Family = _shared[key]
        self.node, self.backend = node, backend
        self.family.join(node)

        def reader(leaf: Any) -> Callable[[Mapping[Any, Any]], Any]:
            key = leaf.family if isinstance(leaf, SiteQuantity) else leaf
            return itemgetter(key) if leaf.is_Symbol or key is not leaf else compiled(leaf, backend)

        self.leaves = [reader(leaf) for leaf in self.family.leaves]
        self.own = [reader(leaf) for leaf in leaves_of([node.body])]

    def __call__(self, env: Mapping[Any, Any]) -> Any:
        """Return the average at the values of the symbols; arrays broadcast."""
        if self.backend == "mpmath" and mp.dps > 60:
            raise ValuesError(f"{self.node} has no {mp.dps} digits.", "dps <= 15: it is taken in double")
        values = [np.asarray(c(env), dtype=float) for c in (*self.leaves, *self.own)]
        count = len(self.leaves)
        if all(v.ndim == 0 for v in values):
            row = tuple(map(float, values))
            return self.family.average(self.node, row[:count], row[count:])
        spread = np.broadcast_arrays(*values)
        rows = zip(*(v.ravel().tolist() for v in spread), strict=True)
        found = [self.family.average(self.node, row[:count], row[count:]) for row in rows]
        return np.array(found).reshape(spread[0].shape)

    def with_slopes(
        self, env: Mapping[Any, Any], rows: Sequence[Mapping[Any, Any]]
    ) -> tuple[Any, list[Any]] | None:
        """The average, and its derivatives along rows of tangents; None where they are not known."""
        keys = [q.family if isinstance(q, SiteQuantity) else q for q in self.family.leaves]
        values = [np.asarray(c(env), dtype=float) for c in self.leaves]
        if any(v.ndim for v in values) or any(s not in keys for row in rows for s in row):
            return None
        value = self(env)  # before the slopes, which are those of the rule that it is taken with
        if (slopes := self.family.gradient(self.node, tuple(map(float, values)))) is None:
            return None
        return value, [sum(slopes[keys.index(s)] * t for s, t in row.items()) for row in rows]


class Family:
    """All averages over one law and one covariance: the law is compiled and solved once for them."""

    def __init__(self, law: JointLaw, covariance: Sequence[Expr]) -> None:
        self.leaves = leaves_of([*law.expressions, *covariance])
        self.law, chosen = selected(law)
        self.count = len(law.fields)
        self.cells = function(self.leaves, list(covariance))
        code = (self.law.func(*self.law.args[:-1]), *self.leaves)  # the same for each set of samples
        if code not in _codes:
            _codes[code] = LawCode(self.law, self.leaves)
        self.code: LawCode = _codes[code]
        self._of_code = code
        self.heard = [k for k, f in enumerate(self.law.fields) if f not in self.law.unheard]
        self.bent = bool(law.pairs) or self.code.bends is not None
        self.seen: np.ndarray | None = None
        self.loose: list[dict[LawSymbol, float]] = [{x: 1.0} for x in chosen]
        self.plane: Plane | None = None
        self.misses, self.pause = 0, 0  # how often nodes in a plane were of no use, and averages before the next trial
        self.open: dict[Expr, str] = {}
        self.enough: tuple[str, int] | None = None
        self.bodies: dict[JointAverage, Body] = {}
        self.known = Memory(512)
        self.slopes = Memory(64)
        self.last: dict[Any, np.ndarray] = {}

    def join(self, node: JointAverage) -> None:
        """Add an average to those that are taken together."""
        if node not in self.bodies:
            key = (node.body, *self._of_code)
            if key not in _bodies:
                _bodies[key] = Body(node, self.law, self.leaves)
            self.bodies[node] = _bodies[key]

    def average(self, node: JointAverage, params: tuple[float, ...], own: tuple[float, ...]) -> float:
        """One of the averages."""
        body = self.bodies[node]
        found = self.known.setdefault(params, {}) if not np.isnan(params).any() else {node: np.nan}
        if node not in found:
            beyond = self._beyond(body)  # what it depends on that the law does not
            alike = [n for n, b in self.bodies.items() if n.way == node.way and self._beyond(b) == beyond]
            given = dict(zip([*self.leaves, *body.own], [*params, *own], strict=True))
            with np.errstate(all="ignore"):
                values = self._refined(alike, node.way, params, given)
            found = {} if beyond else found
            found.update(zip(alike, values, strict=True))
        if node.body not in self.open:
            self.open[node.body] = self._left_open(node.body)
        if open_ := self.open[node.body]:
            raise UnsupportedLaw(
                f"The law of a site leaves {open_} undetermined for some values of its fields.",
                "averages of what it fixes, such as those of states and of what is sent to others",
            )
        return float(found[node])

    def _left_open(self, body: Expr) -> str:
        """The first of the unknowns that the law leaves open and an expression feels; none where it feels no way."""
        moving = sorted({x for way in self.loose for x in way if body.has(x)}, key=str)
        rates = [[(v, x, body.diff(x)) for x, v in way.items()] for way in self.loose]
        felt_by = [(way, s) for way in self.loose for s in self.law.sources]
        rates += [[(v, x, body.diff(slope(x, s))) for x, v in way.items()] for way, s in felt_by]
        felt = [sum((v * rate for v, _, rate in row), S.Zero).expand() for row in rates]
        stays = all(abs(term.as_coeff_Mul()[0]) < ROUNDING for change in felt for term in Add.make_args(change))
        if stays and (not moving or body.is_polynomial(*moving)):
            return ""
        return moving[0].name if moving else next(x.name for row in rates for _, x, rate in row if rate)

    def _beyond(self, body: Body) -> list[Any]:
        return [s for s in body.own if s not in self.leaves]

    def matrix(self, params: Any) -> np.ndarray:
        """The covariance of the fields."""
        cells = np.asarray(self.cells(*params))
        matrix = np.zeros((self.count, self.count), dtype=cells.dtype)
        matrix[np.tril_indices(self.count)] = cells
        return matrix + np.tril(matrix, -1).T

    def root(self, params: tuple[float, ...]) -> np.ndarray | None:
        """The symmetric root of the covariance, seen from its range; None where it is none."""
        matrix = self.matrix(params)
        if not np.isfinite(matrix).all():
            return None
        size, frame = np.linalg.eigh(matrix)
        if size[0] < -NEGATIVE * max(size.sum(), 0.0):
            return None
        return (frame * np.sqrt(np.maximum(size, 0.0))) @ frame.T @ _range(size, frame)[0]

    def _refined(
        self, nodes: Sequence[JointAverage], way: str, params: tuple[float, ...], own: Mapping[Any, float]
    ) -> list[float]:
        """Averages on finer and finer nodes, until that changes nothing; over samples at once.

        Raises
        ------
        NotConverged
            If the finest nodes still change something.
        """
        root, means = self.root(params), np.full(len(nodes), np.nan)
        if root is None:
            return list(means)
        bodies = [self.bodies[n] for n in nodes]
        jumps = any(body.sides for body in bodies)
        bent = way == RAYS or self.bent
        is_beside = way == RULE and not bent and len(self.heard) == self.count - MOST_BESIDE
        known = (bent or jumps) and self.code.affine
        flat = known and all(body.affine for body in bodies)
        faces = self.code.faces(params, self.seen) if known else None
        if known and faces is None:
            return list(means)
        if faces is not None and self.seen is None:
            names = [*self.code.unknowns, *self.code.defined]
            ways = [zip(names, way, strict=True) for way in faces.loose.tolist()]
            self.loose = [{x: v for x, v in way if abs(v) > ROUNDING} for way in ways]
            self.open.clear()
        rank = root.shape[1]
        if is_beside:
            way = BESIDE
        elif not (bent or jumps):  # fields may have fewer dimensions than they are
            cubic = self.code.affine and all(body.degree <= 3 for body in bodies)
            way = CROSS if cubic else RULE if rank <= MOST_RULED and len(self.heard) == self.count else way
        sampled = way in (SAMPLES, CROSS) and not (flat and rank < MOST_TURNED)
        levels = (JUMPING if jumps else SMOOTH,) if sampled else TURNED if flat else self._levels(way, root)
        trials = [(way, level) for level in levels]
        trials += [(PANELS, level) for level in LEVELS[PANELS][rank]] if way == RULE else []
        if self.enough in trials:
            trials = trials[max(0, trials.index(self.enough) - (1 if way == BESIDE else 2)) :]
        plane = None if jumps else self.plane
        is_planar = way == RAYS and faces is None and self.count == rank == PLANAR and self.code.hearing
        if is_planar and plane is None and self.pause:  # where they do not settle they are tried ever more rarely
            is_planar, self.pause = False, self.pause - 1
        if is_planar:
            known_to_do = [] if plane is None or plane.settled is None else [plane.settled]
            trials = [(CARRIED, level) for level in (*known_to_do, *CUT)] + trials
        before, gap, level, begun = None, np.inf, levels[0], way
        for way, level in trials:
            before, begun = (before if way == begun else None), way
            tick("averages over a law of several states")
            if way == CARRIED:
                plane = plane or Plane(self.code, root, params, self._sides(bodies, params, own))
                if (found := plane.carried(level, root @ root.T, params)) is None:
                    plane = plane if plane.settled is None else None  # too far from where it was made
                    continue
            elif way == BESIDE:
                found = self._beside(level, params, bodies, own)
            elif faces is not None and flat:
                found = self._on_faces(faces, level, root, bodies, own)
            else:
                found = self._at_nodes(way, level, root, params, bodies, own, faces if known else bent)
            if found is None:
                return [np.nan] * len(nodes)
            columns, weights = found
            values = [body.values(columns, own) for body in bodies]
            means = np.array([np.sum(v * weights) for v in values])  # the threads of BLAS would cost more
            if sampled or (rank == 1 and flat):
                gap = 0.0
            elif before is not None:
                sizes = np.array([np.sum(np.abs(v) * weights) for v in values]) + 1e-300
                last, gap = gap, float(np.max(np.abs(means - before) / sizes))
                if flat and gap < last / 4:  # panels end where something switches: it falls as much again
                    gap *= gap / last
            if way == CARRIED and plane is not None and plane.settled is not None:
                gap = 0.0
            plenty = way == RAYS and not flat and level >= PLENTY
            if gap < (ENOUGH if plenty else GOAL.get(way, GOAL[RAYS])):
                if is_planar:
                    self.misses = 0 if way == CARRIED else self.misses + 1
                    self.pause = 4**self.misses if self.misses else 0
                if way != CARRIED:
                    self.enough = way, level
                elif plane is not None and not jumps:
                    plane.settled, self.plane = level, plane
                break
            before = means
        if not gap < ENOUGH and np.isfinite(means).all():
            said = f"An average over {self.count} fields did not converge."
            raise NotConverged(said, means, gap, "weaker fields")
        self.known.get(params, {})["level"] = way, level
        return list(means) if gap < ENOUGH else [np.nan] * len(nodes)

    def _levels(self, way: str, root: np.ndarray) -> tuple[int, ...]:
        if way != BESIDE:
            return LEVELS[way].get(root.shape[1], (1,))
        rest = self.count - len(self.heard)
        return tuple(range(max(len(LEVELS[RULE][len(self.heard)]), len(OTHERS[rest]))))

    def _beside(
        self, level: int, params: Any, bodies: Sequence[Body], own: Any
    ) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
        """All quantities of a law that does not hear all of its fields: it is solved at those that it hears."""
        parts = beside.triangular(self.matrix(params), self.heard, RANK)
        z, y = (ruled(part.shape[1], level) for ruled, part in ((_ruled, parts[0]), (_even, parts[2])))
        x = self.code.solve(self._fields(parts[:2], z[0]), params, self.last.get((BESIDE, level)))
        if x is None:
            self.last.pop((BESIDE, level), None)
            return None
        self.last[BESIDE, level] = x
        switching = [body for body in bodies if body.sides]
        if switching and parts[2].size:  # in one field: it jumps where another variable has one value
            here, there = (
                np.concatenate([body.switches(columns, own) for body in switching])
                for columns in (self._spread(x, parts, z[0], np.full((1, 1), at), params) for at in (0.0, 1.0))
            )
            with np.errstate(all="ignore"):
                y = beside.cut(-here / (there - here), level + 2)
        return self._spread(x, parts, z[0], y[0], params), z[1][:, None] * y[1]

    def _fields(self, parts: Sequence[np.ndarray], z: np.ndarray) -> np.ndarray:
        """The fields without what varies at given ones of those that the law hears."""
        fields = np.empty((self.count, z.shape[1]), dtype=np.result_type(*parts))
        fields[self.heard] = parts[0] @ z
        fields[[k for k in range(self.count) if k not in self.heard]] = parts[1] @ z
        return fields

    def _spread(
        self, x: np.ndarray, parts: Sequence[np.ndarray], z: np.ndarray, y: np.ndarray, params: Any
    ) -> dict[LawSymbol, np.ndarray]:
        """All quantities from the states: those that depend on other fields have a second axis, of their values."""
        fields = self._fields(parts[:2], z)
        out = {name: column[:, None] for name, column in self.code.columns(x, fields, params).items()}
        rest = [k for k in range(self.count) if k not in self.heard]
        every = list(fields[..., None])
        for k, varied in zip(rest, np.tensordot(parts[2], y if y.ndim == 3 else y[:, None], axes=1), strict=True):
            every[k] = every[k] + varied
        out |= zip(self.law.fields, every, strict=True)
        states = [out[u] for u in self.code.unknowns]
        return out | dict(zip(self.code.defined, self.code.definitions(*states, *every, *params), strict=False))

    def _beside_gradients(
        self, nodes: Sequence[JointAverage], level: int, params: tuple[float, ...]
    ) -> np.ndarray | None:
        """Complex steps along each parameter, by nodes that were fine enough to agree with finer ones."""
        parts = beside.triangular(self.matrix(params), self.heard, RANK)
        if any(part.shape[0] != part.shape[1] for part in (parts[0], parts[2])):
            return None
        z, y = _ruled(len(self.heard), level), _even(self.count - len(self.heard), level)
        weights = z[1][:, None] * y[1]
        out = np.full((len(nodes), len(params)), np.nan)
        x = self.code.solve(self._fields(parts[:2], z[0]), params, self.last.get((BESIDE, level)))
        if x is None:
            return out
        for k in range(len(params)):
            there = np.array(params, dtype=complex)
            there[k] += 1j * STEP
            ways = beside.moved(parts, self.matrix(there).imag / STEP, self.heard)
            after = [part + 1j * STEP * way for part, way in zip(parts, ways, strict=True)]
            stepped = self.code.stepped(x, self._fields(after[:2], z[0]), there)
            columns = self._spread(stepped, after, z[0], y[0], there)
            for n, node in enumerate(nodes):
                out[n, k] = np.sum(np.imag(self.bodies[node].values(columns, {})) * weights) / STEP
        return out

    def _sides(
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

    def _numbers(self) -> Sequence[int]:
        """Which independent sets of samples are used."""
        return range(SCRAMBLES) if self.law.scramble == SCRAMBLE else [int(self.law.scramble)]

    def _on_faces(
        self, faces: Faces, level: int, root: np.ndarray, bodies: Sequence[Body], own: Mapping[Any, float]
    ) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
        """All quantities of an affine law along rays that are cut where its faces end."""
        count, width = len(faces.numbers), 1 + self.count
        names = [*self.code.unknowns, *self.code.defined, *self.law.fields]
        eye = np.broadcast_to(np.eye(width)[1:], (count, self.count, width))
        every = np.concatenate([faces.states[..., :width], eye], axis=1)
        given = dict(zip(names, np.moveaxis(every, 1, 0), strict=True)) | {HELD: faces.numbers}
        rows = np.concatenate([faces.tests, *(body.lines(given, own) for body in bodies)], axis=1)
        rows = np.concatenate([rows[..., :1], rows[..., 1:] @ root], axis=-1)
        held, rank = faces.tests.shape[1], root.shape[1]
        if rank == MOST_TURNED - 1:
            units, shares = turned(rows, held, level)
        else:
            units, shares = spread(rank, self._numbers(), SPREAD)
        cubic = all(body.degree <= 3 for body in bodies)
        points, weights, middles = along(crossings(rows, held, units), units, shares, cubic=cubic)
        face = faces.find(root @ middles)
        if face is None:
            return None
        self.seen = faces.numbers
        face, fields = np.repeat(face, points.shape[1] // len(face)), root @ points
        return self._by_names(faces, face, fields), weights

    def _at_nodes(
        self, way: str, level: int, root: np.ndarray, params: Any, bodies: Sequence[Body], own: Any, bent: Any
    ) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
        """All quantities of a law at nodes, at which it is solved: along rays where it is bent, or has faces."""
        faces = bent if isinstance(bent, Faces) else None
        rays = self._rays(way, level, root, params, bodies, own, faces) if bent else None
        found = rays if bent else self._nodes(way, level, root.shape[1])
        if found is None:
            return None
        fields = root @ found[0]
        columns = self._solved((way, level), fields, params) if faces is None else self._met(faces, fields)
        return None if columns is None else (columns, found[1])

    def _met(self, faces: Faces, fields: np.ndarray) -> dict[LawSymbol, np.ndarray] | None:
        """All quantities of an affine law at given fields."""
        face = faces.find(fields)
        return None if face is None else self._by_names(faces, face, fields)

    def _by_names(self, faces: Faces, face: np.ndarray, fields: np.ndarray) -> dict[LawSymbol, np.ndarray]:
        found = self.code.quantities(faces.values(face, fields), fields, faces.slopes(face))
        return found | {HELD: faces.numbers[face]}

    def _nodes(self, way: str, count: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Standard Gaussian variables and their weights: a number of them along each one, or in each set of samples."""
        if way == CROSS:
            points = np.sqrt(rank) * np.concatenate([np.eye(rank), -np.eye(rank)], axis=1)
        elif way == RULE:
            return _hermite(rank, count)
        elif way == PANELS:
            return graded(rank, count)
        else:
            points = np.concatenate([scrambled(rank)[n][:count] for n in self._numbers()]).T
        return points, np.full(points.shape[1], 1 / points.shape[1])

    def _rays(
        self,
        way: str,
        level: int,
        root: np.ndarray,
        params: Any,
        bodies: Sequence[Body],
        own: Any,
        faces: Faces | None,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Nodes along rays, in panels that end where a pair or a kink switches.

        In a plane the rays meet from where as many of them switch equally often: what switches on a curve that the
        origin lies beside would end between two of its rays.  They meet beside what switches on a plane through the
        origin, along which no ray crosses it.
        """
        rank = root.shape[1]
        planar = rank == MOST_TURNED - 1 and way == RAYS
        if planar:
            rays, shares = all_round(level), np.full(level, 1 / level)
        else:
            rays, shares = spread(rank, self._numbers(), FEW)
        switching = [body for body in bodies if body.sides]
        sides_of_all = self._sides(bodies, params, own)

        def look(z: np.ndarray, start: Any) -> tuple[Any, Any]:
            fields = root @ z
            if faces is not None:
                face, columns = faces.find(fields), self._met(faces, fields)
                if face is None or columns is None:
                    return None, None
                return fields, np.concatenate([face[None], *(body.switches(columns, own) > 0 for body in switching)])
            x = self.code.solve(fields, params, start)
            if x is None:
                return None, None
            return x, sides_of_all(x, fields)

        def marks(sides: np.ndarray) -> np.ndarray:
            return sides if faces is not None else sides > 0

        def seen(z: np.ndarray) -> np.ndarray | None:
            sides = look(z, None)[1]
            return None if sides is None else marks(sides)

        centre = even_centre(seen) if planar and not self.code.normals else self.code.aside(root, params)
        reach, count = REACH + float(np.linalg.norm(centre)), rays.shape[1]
        ray, r = np.repeat(np.arange(count), SCAN), np.tile(np.linspace(0, reach, SCAN), count)

        def at(ray: np.ndarray, r: np.ndarray) -> np.ndarray:
            return centre[:, None] + rays[:, ray] * r

        x, sides = look(at(ray, r), self.last.get(("scan", level)))
        if x is None:
            return None
        self.last["scan", level] = x
        changes = (marks(sides)[:, 1:] != marks(sides)[:, :-1]) & (ray[1:] == ray[:-1])
        if faces is None:  # several may switch between two points: each has a place of its own
            hits, rows = np.nonzero(changes.T)
        else:
            hits = np.flatnonzero(changes.any(axis=0))
        found: np.ndarray | None = r[hits]
        if hits.size and faces is not None:
            low, high = r[hits], r[hits + 1]
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                _, here = look(at(ray[hits], middle), None)
                if here is None:
                    return None
                same = (here == sides[:, hits]).all(axis=0)
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            found = (low + high) / 2
        elif hits.size:
            start = x[:, hits].copy()

            def side(r: np.ndarray, some: np.ndarray) -> np.ndarray | None:
                there, here = look(at(ray[hits[some]], r), start[:, some])
                if there is None:
                    return None
                start[:, some] = there
                return here[rows[some], np.arange(len(some))]

            found = sign_changes(side, *bracketed(ray, r, sides, hits, rows))
        if found is None:
            return None
        place = np.arange(len(hits)) - np.searchsorted(ray[hits], ray[hits])  # which one of its ray's
        cuts = np.full((count, int(place.max(initial=-1)) + 1), reach)
        cuts[ray[hits], place] = found
        points, weights, _ = along(cuts, rays, shares, reach=reach)
        return centre[:, None] + points, weights * np.exp(-centre @ points - centre @ centre / 2)

    def gradient(self, node: JointAverage, params: tuple[float, ...]) -> np.ndarray | None:
        """The derivatives along the parameters of the law; None of averages that are sampled or hold parameters."""
        body = self.bodies[node]
        if node.way == RAYS or body.own or self.bent or body.sides:
            return None
        found = self.slopes.setdefault(params, {})
        if node not in found:
            self.average(node, params, ())
            if "level" not in self.known[params]:
                return np.full(len(params), np.nan)
            way, level = self.known[params]["level"]
            alike = [n for n, b in self.bodies.items() if n.way == node.way and not (b.own or b.sides)]
            rows = (
                self._beside_gradients(alike, max(level - 1, 0), params)
                if way == BESIDE
                else self._gradients(alike, way, level, params)
            )
            if rows is None:
                return None
            found.update(zip(alike, rows, strict=True))
        return found[node]

    def _gradients(
        self, nodes: Sequence[JointAverage], way: str, level: int, params: tuple[float, ...]
    ) -> np.ndarray:
        """Complex steps along each parameter: one step of Newton's method carries them from the law to its states."""
        size, frame = np.linalg.eigh(self.matrix(params))
        inside, beyond = _range(size, frame)
        z, weights = self._nodes(way, level, inside.shape[1])
        z = inside @ z
        for e in beyond.T:  # a second difference in each direction in which nothing varies yet
            z = np.concatenate([z + e[:, None], z - e[:, None]], axis=1)
            weights = np.tile(weights / 2, 2)
        size = np.sqrt(np.maximum(size, FLAT * max(size[-1], 1e-300)))
        fields = (frame * size) @ frame.T @ z
        x = self.code.solve(fields, params, self.last.get((way, level)))
        out = np.full((len(nodes), len(params)), np.nan)
        if x is None:
            return out
        for k in range(len(params)):
            moved = np.array(params, dtype=complex)
            moved[k] += 1j * STEP
            change = frame.T @ (self.matrix(moved).imag / STEP) @ frame / (size[:, None] + size)
            there = fields + 1j * STEP * (frame @ change @ frame.T @ z)
            columns = self.code.columns(self.code.stepped(x, there, moved), there, moved)
            for n, node in enumerate(nodes):
                out[n, k] = np.imag(self.bodies[node].values(columns, {})) @ weights / STEP
        return out

    def _solved(self, key: Any, fields: np.ndarray, params: tuple[float, ...]) -> dict[LawSymbol, np.ndarray] | None:
        """All quantities of the law at given fields; None where it has no solution."""
        x = self.code.solve(fields, params, self.last.get(key))
        if x is None:
            self.last.pop(key, None)
            return None
        self.last[key] = x
        try:
            return self.code.columns(x, fields, params)
        except np.linalg.LinAlgError:
            said = "A law of several states is singular at some fields: kinks that meet share their multipliers."
            raise NotConverged(said, hint="kinks that meet as one: Abs(h) for Max(0, h) + Max(0, -h)") from None


def _ruled(count: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes along fields that a law hears, beside others."""
    levels = LEVELS[RULE][count]
    return _hermite(count, levels[min(level, len(levels) - 1)])


def _even(count: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes along fields that a law does not hear."""
    return beside.even(count, OTHERS[count][min(level, len(OTHERS[count]) - 1)])


@lru_cache(maxsize=32)
def _hermite(count: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of a product rule, without those that weigh nothing."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * count, indexing="ij")])
    weights = np.prod([part.ravel() for part in np.meshgrid(*[w] * count, indexing="ij")], axis=0)
    kept = weights > LIGHT
    return z[:, kept], weights[kept]


def _range(size: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal frames of the range and of the kernel of a covariance, the same ones where these do not change."""
    out = []
    kept = size > RANK * max(size.sum(), 1e-300)
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
