"""Witnesses of laws whose states are found together: solved again, from the equations of the inserted site.

The states are found by Newton's method with difference quotients, on the equations and pairs as they stand before any
elimination; responses are difference quotients between two close fields.  Averages are sums over a product rule, or
over random fields where the law has kinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Float, Mul, S, lambdify

from symcavity.algebra.joint import KINKS, JointAverage
from symcavity.algebra.memory import Memory
from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.compiler import Compiled
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convexity import sample_parameter, seeded
from symcavity.model.kinds import is_index
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step, Verdict
from symcavity.sites.joint.solution import JointSolution
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.set_averages import quenched_laws

NODES = {1: (60, 500), 2: (50, 160), 3: (20, 34, 52)}  # along each field; more of them where fewer leave a gap
REACH = 7.5  # of the nodes, in standard deviations
RANDOM, SEED, TRIES = 40_000, 3, 4
MANY = 6  # unknowns, from which on a quarter of them is taken
ROUNDS, CLOSE, NUDGE = 200, 1e-11, 1e-6
WORST = 4.5  # standard errors of random fields
DIGITS = 6
SOLVED = "the law, solved again in double"
WITHIN = {"joint": 1e-7, "joint_slopes": 1e-4}  # of the residuals of what is claimed
WEAK = 0.1  # of the curvature: self-couplings that are no answer of a site to itself


_states = Memory(32)


class ResolvedLaw:
    """The law of an inserted site at seeded values of everything that it holds.

    Parameters
    ----------
    side : Site
    exprs : sequence of Expr
        What else needs values.
    """

    def __init__(self, side: Any, exprs: Sequence[Expr], seed: int = SEED) -> None:
        self.side = side
        rng = seeded(seed)
        equations = [e.xreplace(dict(side.means)) for e in side.equations()]
        every = [*(e.difference for e in equations), *side.covariance.values(), *exprs]
        every += [m for p in side.law.pairs for m in p.pair]
        self.laws = quenched_laws(every, seed)
        self.order = [h.eta for h in side.problem.ordered()]
        self.unknowns = list(side.law.unknowns)
        bound = {*self.order, *side.problem.plain_sources().values()}
        symbols = {s for e in every for s in e.free_symbols if s.is_Symbol and not is_index(s)} - bound
        self.values: dict[Any, Expr] = {}
        for s in sorted(symbols, key=str):
            size = sample_parameter(s, rng) if s.is_positive or s.is_negative else WEAK * rng.uniform(-1, 1)
            self.values[s] = Float(size)
        # numbers of other kinds; an average over the sites of this one, of what the law gives, is what is to be seen
        self.values |= {a: Float(1) for e in every for a in e.atoms(Average) if not a.has(JointAverage)}
        sources = {h.source: S.Zero for h in side.heard}
        self.equations = [e.difference.xreplace(sources) for e in equations]
        self.pairs = [p.pair for p in side.law.pairs]

    def cases(self) -> list[tuple[Expr, dict[Any, Expr]]]:
        """The joint values of the quenched parameters of this kind, with their weights: those of labels hold states."""
        out = []
        own = {q: law for q, law in self.laws.items() if q.slots == (self.side.kind,)}
        for chosen in product(*own.values()):
            rule = {q.at_site(): v for q, (v, _) in zip(own, chosen, strict=True)}
            out.append((Mul(*(w for _, w in chosen)), {**self.values, **rule}))
        return out

    def root(self, case: Mapping[Any, Expr]) -> np.ndarray:
        """A root of the covariance of the fields."""
        matrix = [[float(self.side.covariance[a, b].xreplace(dict(case))) for b in self.order] for a in self.order]
        size, frame = np.linalg.eigh(np.array(matrix))
        return frame * np.sqrt(np.maximum(size, 0.0))

    def states(self, fields: np.ndarray, case: Mapping[Any, Expr]) -> np.ndarray:
        """The states at given fields, by Newton's method on the whole law."""
        marks = {q: Dummy("x") for q in self.unknowns}
        equations = [e.xreplace(dict(case)) for e in self.equations]
        pairs = [tuple(m.xreplace(dict(case)) for m in pair) for pair in self.pairs]
        key = (*equations, *pairs, *self.unknowns, fields.tobytes())
        if key in _states:
            found: np.ndarray = _states[key]
            return found
        names = [*marks.values(), *self.order]
        rows = [lambdify(names, e.xreplace(marks), "numpy") for e in equations]
        ends = [tuple(lambdify(names, m.xreplace(marks), "numpy") for m in pair) for pair in pairs]

        def law(x: np.ndarray, at: np.ndarray) -> np.ndarray:
            out = [np.broadcast_to(row(*x, *at), x.shape[1:]) for row in rows]
            for p, q in ends:
                a, b = (np.broadcast_to(m(*x, *at), x.shape[1:]) for m in (p, q))
                out.append(a + b - np.hypot(a, b))
            return np.array(out)

        whole, eye = np.full((len(self.unknowns), fields.shape[1]), 0.01), np.eye(len(self.unknowns))
        todo = np.arange(fields.shape[1])
        for _ in range(ROUNDS):
            x, at = whole[:, todo], fields[:, todo]
            value = law(x, at)
            columns = [
                (law(x + NUDGE * e[:, None], at) - law(x - NUDGE * e[:, None], at)) / (2 * NUDGE) for e in eye
            ]
            table = np.moveaxis(np.array(columns), (0, 1, 2), (2, 1, 0))
            try:
                step = -np.linalg.solve(table, value.T[..., None])[..., 0].T
            except np.linalg.LinAlgError:  # multipliers that the law leaves open: the shortest step
                step = -(np.linalg.pinv(table, rcond=1e-9) @ value.T[..., None])[..., 0].T
            size, share = np.abs(value).sum(axis=0), np.ones(len(todo))
            for _ in range(40):
                worse = ~(np.abs(law(x + share * step, at)).sum(axis=0) <= (1 - share / 10) * size + CLOSE)
                if not worse.any():
                    break
                share = np.where(worse, share / 2, share)
            x = whole[:, todo] = x + share * step
            open_ = (np.abs(step).max(axis=0) >= CLOSE) & (np.abs(law(x, at)).max(axis=0) >= CLOSE / 100)
            todo = todo[open_]
            if not todo.size:
                _states[key] = whole
                return whole
        raise NotConverged("The law was not solved again.", whole, float(np.max(np.abs(law(whole, fields)))))

    def at_states(self, expr: Expr, states: np.ndarray, case: Mapping[Any, Expr]) -> Any:
        """An expression in the states, such as the weight of a label."""
        marks = {q: Dummy("x") for q in self.unknowns}
        return lambdify(list(marks.values()), expr.xreplace(marks).xreplace(dict(case)), "numpy")(*states)


def joint_average(side: Any, body: Expr, claimed: Expr) -> tuple[Any, int, str]:
    """Hold a claimed average against one over the states that are found again.

    Returns
    -------
    (gap, digits, how)
    """
    for seed in range(SEED, SEED + TRIES - 1):
        try:
            return _held_against(side, body, claimed, seed)
        except NotConverged:  # fields there are too strong for the rules
            continue
    return _held_against(side, body, claimed, SEED + TRIES - 1)


def compile_together(exprs: Iterable[Expr]) -> None:
    """Compile claims before the first is evaluated: averages over one law are then taken at once, as it is solved."""
    for expr in exprs:
        if expr.has(JointAverage):
            Compiled(expr, "numpy")


def _held_against(side: Any, body: Expr, claimed: Expr, seed: int) -> tuple[Any, int, str]:
    again = ResolvedLaw(side, [body, claimed], seed)
    kinked = bool(again.pairs) or any(n.way == "rays" or n.body.has(*KINKS) for n in claimed.atoms(JointAverage))
    count = len(again.order)
    random = kinked or count > max(NODES)
    drawn = {q: dict(law.args) for q, law in again.laws.items() if q.given is None}  # the claim is summed over labels
    laws = read_quenched(list(drawn), drawn, 15)
    env = {k: float(v) for k, v in again.values.items() if not k.has(SiteQuantity)}
    given = claimed.xreplace({a: v for a, v in again.values.items() if isinstance(a, Average)})
    with np.errstate(all="ignore"):
        expected = float(Compiled(given, "numpy")({**env, LAWS: laws}))
    if np.isnan(expected):
        raise NotConverged("The claimed average was not reached.", None, np.nan)
    samples = RANDOM // 4 if len(again.unknowns) > MANY else RANDOM
    for number in (samples,) if random else NODES[count]:
        total, square = _mean(again, side, body, *_fields(count, number, random=random))
        size = max(abs(total), abs(expected), 1e-3)
        gap = abs(total - expected) / size
        if not random and gap < 10.0**-DIGITS:
            break
    if not random:
        return mp.mpf(gap), DIGITS, "a product rule over the law, solved again"
    score = abs(total - expected) / (np.sqrt(square) + 1e-9 * size)
    how = f"random fields at which the law is solved again, {score:.2g} standard errors"
    return mp.mpf(0 if score < WORST else gap), 2, how


def _mean(again: ResolvedLaw, side: Any, body: Expr, z: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The average of a body over standard Gaussian variables with weights, and the square of its standard error."""
    total, square = 0.0, 0.0
    for share, case in again.cases():
        fields = again.root(case) @ z
        x = again.states(fields, case)
        columns: dict[Any, np.ndarray] = dict(zip(again.unknowns, x, strict=True))
        for r in sorted(body.atoms(SiteResponse), key=str):
            h = next((h for h in side.heard if h.carrier == r.field), side.heard[0])
            # where labels are drawn on what moves, their weights move too, and the mean answers to that
            mark = Dummy("r")
            rest = body.xreplace({r: mark}).diff(mark)
            drawn = S.One if rest.has(mark, SiteResponse) else share
            moved = []
            for way in (1, -1):
                there = fields.copy()
                there[again.order.index(h.eta)] += way * NUDGE
                found = again.states(there, case)
                moved.append(again.at_states(drawn, found, case) * found[again.unknowns.index(r.state)])
            own = again.at_states(drawn, x, case) * float(h.factor.xreplace(dict(case)))
            columns[r] = (moved[0] - moved[1]) / (2 * NUDGE) / own
        marks = {q: Dummy("q") for q in columns}
        inside = (share * body).xreplace(marks).xreplace(dict(case))
        names = [*marks.values(), *again.order]
        values = lambdify(names, inside, "numpy")(*columns.values(), *fields)
        values = np.broadcast_to(np.asarray(values, dtype=float), fields.shape[1:])
        mean = float(values @ weights)
        total += mean
        square += float(np.square(values - mean) @ weights) / len(weights)
    return total, square


def _fields(count: int, number: int, *, random: bool) -> tuple[np.ndarray, np.ndarray]:
    """Standard Gaussian variables with weights: a number of samples, or of nodes along each field."""
    if random:
        z = np.random.default_rng(SEED).normal(size=(count, number))
        return z, np.full(number, 1 / number)
    # equal steps: their error falls as exp(-2 pi d / step) for states with a branch point at distance d from the real
    # fields, where a Gauss rule of as many nodes is not near yet
    x = np.linspace(-REACH, REACH, number)
    w = np.exp(-(x**2) / 2)
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * count, indexing="ij")])
    weights = np.prod([part.ravel() for part in np.meshgrid(*[w / w.sum()] * count, indexing="ij")], axis=0)
    return z, weights


def is_joint(side: Any) -> bool:
    """Whether the states of a site are found together."""
    return isinstance(side.solution, JointSolution)


@witness("joint")
def joint(step: Step, dps: int) -> list[Verdict]:  # noqa: ARG001 - it works in double, and says so
    """The claims at states that were found from the whole law, before anything was eliminated."""
    worst, pairs = _worst(step, responses=False)
    law = step.evidence["theory"].inserted[step.data["kind"]].law
    ok = worst < WITHIN["joint"] and len(step.claims) + pairs == len(law.unknowns)
    return result(f"{SOLVED} to {WITHIN['joint']:.0e}", ok, "at random fields", f"residual {worst:.2g}")


@witness("joint_slopes")
def joint_slopes(step: Step, dps: int) -> list[Verdict]:  # noqa: ARG001 - it works in double, and says so
    """The differentiated equations, with difference quotients of states that were found from the whole law."""
    worst, _ = _worst(step, responses=True)
    ok = worst < WITHIN["joint_slopes"]
    return result(f"{SOLVED} to {WITHIN['joint_slopes']:.0e}", ok, "difference quotients", f"residual {worst:.2g}")


def _worst(step: Step, *, responses: bool) -> tuple[float, int]:
    """The largest residual of the claims at states of the whole law, and how many pairs are shown."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    side = theory.inserted[kind]
    zero = {kind.index: S.Zero}
    again = ResolvedLaw(side, [c.difference.xreplace({S.Zero: kind.index}) for c in step.claims if not responses])
    fields = np.random.default_rng(SEED).normal(size=(len(again.order), 20))
    worst = 0.0
    for _, case in again.cases():
        x = again.states(fields, case)
        columns = {q.xreplace(zero): v for q, v in zip(again.unknowns, x, strict=True)}
        if responses:
            for h in side.heard:
                up, down = (again.states(fields + way * NUDGE * _unit(again.order, h.eta), case) for way in (1, -1))
                factor = float(h.factor.xreplace(dict(case)))
                for k, q in enumerate(again.unknowns):
                    columns[step.evidence["slopes"][q, h.source]] = (up[k] - down[k]) / (2 * NUDGE) / factor
        rule = {q.xreplace(zero) if isinstance(q, SiteQuantity) else q: v for q, v in case.items()}
        marks = {q: Dummy("q") for q in columns}
        for claim in step.claims:
            call = lambdify([*marks.values(), *again.order], claim.difference.xreplace(marks).xreplace(rule), "numpy")
            worst = largest(worst, float(np.max(np.abs(call(*columns.values(), *fields)))))
    return worst, len(step.data.get("pairs") or []) if not responses else 0


def _unit(order: Sequence[Any], eta: Any) -> np.ndarray:
    return np.array([[1.0 if e == eta else 0.0] for e in order])
