"""Averages of states that a system of equations fixes together: Newton's method at all nodes at once.

The nodes are those of a product of Gauss-Hermite rules, in up to three dimensions of a smooth law, and quasi-random
points beyond; with kinks they lie along rays.  Piecewise linear laws are solved on their faces.
All averages over one law and one covariance are taken at once, for its states are found only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, S

from symcavity.algebra.joint import RAYS, JointAverage, JointLaw, LawSymbol, slope
from symcavity.algebra.memory import Memory
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages import beside, law_nodes, law_rays
from symcavity.evaluate.averages.at_leaves import AtLeaves
from symcavity.evaluate.averages.carried import CarriedNodes
from symcavity.evaluate.averages.faces import Faces
from symcavity.evaluate.averages.joint_bodies import Body, leaves_of
from symcavity.evaluate.averages.law_fields import LawAtFields
from symcavity.evaluate.averages.law_nodes import BESIDE, CARRIED
from symcavity.evaluate.averages.law_plan import Carrying, NodePlan, Trial
from symcavity.evaluate.averages.selected import selected
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick

ROUNDING = 1e-9  # of directions in which a law leaves its unknowns open

_shared = Memory(64)
_bodies = Memory(512)


class CompiledAverage(AtLeaves):
    """A compiled average over a joint law: call it with the values of its symbols."""

    def __init__(self, node: JointAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        key = (node.law, node.args[2])
        if key not in _shared:
            _shared[key] = SharedNodes(node.law, node.covariance)
        self.family: SharedNodes = _shared[key]
        self.family.join(node)
        leaves = self.family.leaves
        super().__init__(node, [*leaves, *leaves_of([node.body])], compiled, backend, len(leaves))

    def average(self, *params: float) -> float:
        """The average at numbers for the leaves: those of the law, and those of what is averaged."""
        count = len(self.keys)
        return self.family.average(self.node, params[:count], params[count:])

    def slopes(self, params: tuple[float, ...], _places: set[int]) -> dict[int, float] | None:
        """The derivatives by the leaves of the law."""
        found = self.family.gradient(self.node, params)
        return None if found is None else dict(enumerate(found))


class SharedNodes:
    """All averages over one law and one covariance: the law is compiled and solved once for them."""

    def __init__(self, law: JointLaw, covariance: Sequence[Expr]) -> None:
        self.leaves = leaves_of([*law.expressions, *covariance])
        self.law, chosen = selected(law)
        self.at = LawAtFields(self.law, covariance, self.leaves)
        self.bent = bool(self.law.pairs) or self.at.code.bends is not None
        self.seen: np.ndarray | None = None
        self.loose: list[dict[LawSymbol, float]] = [{x: 1.0} for x in chosen]
        self.plane: CarriedNodes | None = None
        self.carrying = Carrying()
        self.open: dict[Expr, str] = {}
        self.enough: Trial | None = None
        self.bodies: dict[JointAverage, Body] = {}
        self.known = Memory(512)
        self.slopes = Memory(64)

    def join(self, node: JointAverage) -> None:
        """Add an average to those that are taken together."""
        if node not in self.bodies:
            key = (node.body, *self.at.key)
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
                "averages of quantities that the law determines, such as states and messages",
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

    def _refined(
        self, nodes: Sequence[JointAverage], way: str, params: tuple[float, ...], own: Mapping[Any, float]
    ) -> list[float]:
        """Averages on finer and finer nodes, until that changes nothing; over samples at once.

        Raises
        ------
        NotConverged
            If the finest nodes still change something.
        """
        root, means = self.at.root(params), np.full(len(nodes), np.nan)
        if root is None:
            return list(means)
        bodies = [self.bodies[n] for n in nodes]
        plan = NodePlan.of(self.at, bodies, way, root.shape[1], bent=way == RAYS or self.bent)
        faces = None
        if (plan.bent or plan.jumps) and self.at.code.affine and (faces := self._faces(params)) is None:
            return list(means)
        plane = None if plan.jumps else self.plane
        tried = []
        if plan.is_planar(self.at, faces):
            tried = self.carrying.trials(plane.settled if plane else None, begun=plane is not None)
        trials = tried + plan.trials(self.at, self.enough)
        before, gap, begun, level = None, np.inf, trials[0][0], 0
        for way, level in trials:
            before, begun = (before if way == begun else None), way
            tick("averages over a law of several states")
            if way == CARRIED:
                plane = plane or CarriedNodes(self.at.code, root, params, self.at.sides(bodies, params, own))
                if (found := plane.carried(level, root @ root.T, params)) is None:
                    plane = plane if plane.settled is None else None  # too far from where it was made
                    continue
            elif (found := self._columns(plan, (way, level), root, params, bodies, own, faces)) is None:
                return [np.nan] * len(nodes)
            columns, weights = found
            values = [body.values(columns, own) for body in bodies]
            means = np.array([np.sum(v * weights) for v in values])  # the threads of BLAS would cost more
            if plan.sampled or (plan.rank == 1 and plan.flat):
                gap = 0.0
            elif before is not None:
                sizes = np.array([np.sum(np.abs(v) * weights) for v in values]) + TINIEST
                last, gap = gap, float(np.max(np.abs(means - before) / sizes))
                if plan.flat and gap < last / 4:  # panels end where something switches: it falls as much again
                    gap *= gap / last
            if way == CARRIED and plane is not None and plane.settled is not None:
                gap = 0.0
            if gap < plan.goal(way, level):
                break
            before = means
        settled = gap < tolerances().settled_law
        if not settled and np.isfinite(means).all():
            said = f"An average over {self.at.count} fields did not converge."
            raise NotConverged(said, means, gap, "weaker fields")
        if gap < plan.goal(way, level):
            self._note(way, level, tried, None if plan.jumps else plane)
        self.known.get(params, {})["level"] = way, level
        return list(means) if settled else [np.nan] * len(nodes)

    def _note(self, way: str, level: int, tried: Sequence[Trial], plane: CarriedNodes | None) -> None:
        """Which nodes have done, for the next average."""
        if tried:
            self.carrying.ended(way)
        if way != CARRIED:
            self.enough = way, level
        elif plane is not None:
            plane.settled, self.plane = level, plane

    def _faces(self, params: tuple[float, ...]) -> Faces | None:
        """The faces of an affine law; the first ones say along which ways its unknowns are open."""
        code = self.at.code
        faces = code.faces(params, self.seen)
        if faces is not None and self.seen is None:
            names = [*code.unknowns, *code.defined]
            ways = [zip(names, way, strict=True) for way in faces.loose.tolist()]
            self.loose = [{x: v for x, v in way if abs(v) > ROUNDING} for way in ways]
            self.open.clear()
        return faces

    def _columns(
        self, plan: NodePlan, trial: Trial, root: np.ndarray, params: Any, bodies: Sequence[Body], own: Any, faces: Any
    ) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
        """All quantities of the law at nodes, and the weights of these; None where it has no solution."""
        way, level = trial
        if way == BESIDE:
            return beside.columns(self.at, level, params, bodies, own)
        if faces is not None and plan.flat:
            found = law_rays.on_faces(self.at, faces, level, root, bodies, own)
            self.seen = self.seen if found is None else faces.numbers
            return found
        if faces is not None or plan.bent:
            nodes = law_rays.RayNodes(self.at, root, params, bodies, own, faces).nodes(way, level)
        else:
            nodes = law_nodes.nodes(way, level, plan.rank, self.at.scrambles())
        if nodes is None:
            return None
        fields = root @ nodes[0]
        columns = self.at.solved(trial, fields, params) if faces is None else self.at.on_faces(faces, fields)
        return None if columns is None else (columns, nodes[1])

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
            bodies = [self.bodies[n] for n in alike]
            rows = (
                beside.gradients(self.at, bodies, max(level - 1, 0), params)
                if way == BESIDE
                else law_nodes.gradients(self.at, bodies, way, level, params)
            )
            if rows is None:
                return None
            found.update(zip(alike, rows, strict=True))
        return found[node]
