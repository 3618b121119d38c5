"""A witness of integration by parts along paths: states that jump with a field, on a fine grid of it at one time.

The other fields, and the field at other times, follow it in part; what they hold beyond it is drawn once and kept,
since the identity holds at any value of it.  The response to a field with which a law jumps is the derivative of an
average: the field is shifted, and the average is taken again.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Pow, S, Sum, Tuple, lambdify

from symcavity.algebra.flow import Element, Rate
from symcavity.algebra.precision import mp
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convexity import sample_parameter, sample_quenched, seeded
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, SharedState, SiteQuantity, site_quantities
from symcavity.model.times import other_times
from symcavity.record.derivation import Step, Verdict
from symcavity.record.order_parameters import MovingParameter
from symcavity.record.symbols import DisorderAverage, Source
from symcavity.witness.motion import given_by
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.verbs import claimed
from symcavity.witness.world import STEPS

REACH, HALF = 8.0, 8000  # of the grid, in standard deviations of the field; its points to either side of zero
FINE = 160_000  # where states jump with what moves, and jumps fall between points
SHIFT = 0.02  # standard deviations by which the field is shifted: with the grid, jumps move from one point to another
NUDGE, DT, SMALL = 1e-6, 0.1, 0.3
START = 0.1  # where states begin: close to where laws jump
DIGITS, FEWER = 3, 2  # the second where all responses are those of jumps


class Paths:
    """Paths of the new site over a grid of values of a field at one time, filled by the claimed law.

    Parameters
    ----------
    theory : Theory
    kind : Kind
    one : Heard
        The field.
    when : int or None
        The step at which it is on the grid; None if it keeps still.
    seed : int
    """

    def __init__(self, theory: Any, kind: Any, one: Any, when: int | None, seed: int) -> None:
        self.time, self.site, self.one, self.when = theory.system.time, theory.inserted[kind], one, when
        self.second = other_times(self.time)[0]
        self.law, self._rng = claimed(theory, "effective_law", kind), seeded(seed)
        self._numbers: dict[Any, Any] = {}
        order = [q.family.name for q in theory.system.motion.order if isinstance(q, SiteQuantity)]
        first = [e for e in self.law if not given_by(e)[1]]  # what follows at once
        self.law.sort(key=lambda e: (e not in first, order.index(given_by(e)[0].family.name)))
        half = HALF if when is None else FINE
        self.grid = np.arange(-half, half + 1) * (REACH / half)
        self.weights = np.exp(-(self.grid**2) / 2)
        self.weights /= self.weights.sum()
        self.size = np.sqrt(self._shared(one, when))
        self.fields: dict[Expr, np.ndarray] = {}
        for h in self.site.heard:
            for k in [None] if h.declared.time is None else range(STEPS + 1):
                at_once = h is one and k == when
                share = self.size if at_once else self._shared(h, k) / self.size
                rest = 0.0 if at_once else self._rng.gauss(0, 1)
                self.fields[h.eta if k is None else h.eta.at(S(k))] = share * self.grid + rest
        self.states = self.filled(self.fields)

    # -- numbers -----------------------------------------------------------------------------------

    def _shared(self, h: Any, k: int | None) -> float:
        """The covariance of a field at a step with the one that is on the grid."""
        times = {t: v for t, v in ((self.time, k), (self.second, self.when)) if v is not None}
        return self.number(self.site.covariance[h.eta, self.one.eta], times)

    def number(self, expr: Expr, env: dict[Any, int]) -> float:
        """A number for an expression of order parameters and parameters, each of which is drawn once."""
        expr = Tuple(expr).xreplace({t: S(k) for t, k in env.items()})[0]
        return float(expr.xreplace({a: self._drawn(a) for a in self._open(expr)}))

    def _open(self, expr: Expr) -> list[Any]:
        kernels = [*expr.atoms(MovingParameter), *expr.atoms(Average)]
        rest = expr.xreplace(dict.fromkeys(kernels, S.One))
        named = site_quantities(rest, Quenched, Noise, SharedState)
        return sorted([*kernels, *named, *(rest.free_symbols - {i for q in named for i in q.free_symbols})], key=str)

    def _drawn(self, atom: Any) -> Any:
        if atom not in self._numbers:
            if isinstance(atom, SiteQuantity) and isinstance(atom.family, Noise):
                value = self._rng.gauss(0, 1)
            elif isinstance(atom, SiteQuantity) and isinstance(atom.family, SharedState):
                value = SMALL * self._rng.gauss(0, 1)  # any value at each time, and jumps within reach
            elif isinstance(atom, SiteQuantity):
                value = sample_quenched(atom.family, self._rng)
            elif isinstance(atom, MovingParameter):
                same = len(atom.times) == 2 and len(set(atom.times)) == 1  # a variance is positive
                low = -1 if self.when is None else 0.5  # a field that hardly follows would have its jumps far away
                value = 1 if same else SMALL * self._rng.uniform(low, 1)
            else:
                value = self._rng.uniform(0.5, 1.5) if isinstance(atom, Average) else sample_parameter(atom, self._rng)
            self._numbers[atom] = S(float(value))
        return self._numbers[atom]

    # -- paths -------------------------------------------------------------------------------------

    def filled(self, fields: dict[Expr, np.ndarray]) -> dict[Any, np.ndarray]:
        """All states at all steps, at given fields."""
        known: dict[Any, np.ndarray] = dict(fields)
        for state, lead in map(given_by, self.law):
            begin = {state.xreplace({self.time: S(k)}) for k in range(lead)}
            known |= {q: np.full(self.grid.shape, START) for q in begin}
        for step in range(STEPS + 1):
            for row in self.law:
                state, lead = given_by(row)
                value = self.array(row.rhs, {self.time: step}, known)
                here = state if state.time is None else state.xreplace({self.time: S(step)})
                if isinstance(row.lhs, Rate):
                    value = known[here] + DT * value
                known[here if not lead else state.xreplace({self.time: S(step + lead)})] = value
        return known

    def array(self, expr: Expr, env: dict[Any, int], known: dict[Any, np.ndarray]) -> np.ndarray:
        """An expression of one site on the grid."""
        expr = _written_out(expr, env)
        expr = expr.xreplace(dict.fromkeys(site_quantities(expr, Source), S.Zero))
        marks = {q: Dummy("q") for q in known if expr.has(q)}
        body = expr.xreplace(marks)
        body = body.xreplace({a: self._drawn(a) for a in self._open(body) if a not in marks.values()})
        found = lambdify(list(marks.values()), body, "numpy")(*(known[q] for q in marks))
        return np.broadcast_to(np.asarray(found, dtype=float), self.grid.shape)

    # -- averages ----------------------------------------------------------------------------------

    def average(self, body: Expr, env: dict[Any, int]) -> float:
        """The average of what holds one response at most."""
        answers = body.atoms(SiteResponse)
        if not answers:
            return float(self.array(body, env, self.states) @ self.weights)
        (node,) = answers
        weighted = body.xreplace({node: S.One}) * node.state
        heard = next(h for h in self.site.heard if node.field is None or h.carrier.family == node.field.family)
        field = heard.eta if node.time is None else heard.eta.at(S(env[node.time]))
        jumps = node.time is None or self.when is not None
        shift = SHIFT * self.size if jumps else NUDGE
        moved = (self.fields | {field: self.fields[field] + way * shift} for way in (1, -1))
        up, down = (float(self.array(weighted, env, self.filled(fields)) @ self.weights) for fields in moved)
        return (up - down) / (2 * shift * self._factor(heard))

    def _factor(self, heard: Any) -> float:
        """What the field is multiplied by in its equation, where a source is only added."""
        row = next(row for row in self.law if row.rhs.has(heard.eta))
        source = heard.source.xreplace({self.site.kind.index: S.Zero})
        return self.number(row.rhs.diff(heard.eta) / row.rhs.diff(source), {})

    def value(self, expr: Expr, env: dict[Any, int], *, flowing: bool) -> float:
        """A side of a claim."""
        if isinstance(expr, DisorderAverage):
            found = self.average(expr.args[0], env)
            moving = any(r.time is not None for r in expr.atoms(SiteResponse))
            return found / DT if flowing and moving else found
        if isinstance(expr, Add):
            return sum(self.value(a, env, flowing=flowing) for a in expr.args)
        if isinstance(expr, Mul):
            return float(np.prod([self.value(a, env, flowing=flowing) for a in expr.args]))
        if isinstance(expr, Pow) and expr.exp.is_Integer:
            return float(self.value(expr.base, env, flowing=flowing) ** int(expr.exp))
        if isinstance(expr, Element):
            return DT
        if isinstance(expr, Sum):
            ((s, low, high),) = expr.limits
            ends = (int(e.xreplace({t: S(k) for t, k in env.items()})) for e in (low, high))
            first, last = ends
            return sum(self.value(expr.function, {**env, s: k}, flowing=flowing) for k in range(first, last + 1))
        return self.number(expr, env)


def _written_out(expr: Expr, env: dict[Any, int]) -> Expr:
    """An expression at given times, with its sums over time as their terms."""
    if isinstance(expr, Sum):
        ((s, low, high),) = expr.limits
        first, last = (int(e.xreplace({t: S(k) for t, k in env.items()})) for e in (low, high))
        last -= expr.has(Element)  # an integral up to now holds nothing of now
        return Add(*(_written_out(expr.function, {**env, s: k}) for k in range(first, last + 1)))
    if expr.has(Sum) and not isinstance(expr, Sum):
        return expr.func(*(_written_out(a, env) for a in expr.args))
    rule = {**{e: S(DT) for e in expr.atoms(Element)}, **{t: S(k) for t, k in env.items()}}
    return Tuple(expr).xreplace(rule)[0]  # a symbol alone does not look at its times


def _is_about(claim: Any, heard: Any, second: Any) -> bool:
    """Whether a claim is about the average with a field."""
    return bool(claim.lhs.has(heard.eta if heard.declared.time is None else heard.eta.at(second)))


@witness("moving_parts")
def moving_parts(step: Step, _dps: int) -> list[Verdict]:
    """Both sides on a grid of one field at one time; left open where a law jumps with several that keep still."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    heard = theory.inserted[kind].heard
    still = [h for h in heard if h.declared.time is None]
    if len(still) != 1 and not step.data["all"]:
        return []
    worst, second = mp.mpf(0), other_times(theory.system.time)[0]
    fields = heard if step.data["all"] else still
    grids = [(h, w) for h in fields for w in ([None] if h.declared.time is None else range(STEPS - 1))]
    for (h, when), seed in product(grids, (3,) if step.data["all"] else (3, 4)):
        paths = Paths(theory, kind, h, when, seed)
        for claim in (c for c in step.claims if _is_about(c, h, second)):
            for k in range(STEPS):
                env = {theory.system.time: k} | ({} if when is None else {second: when})
                one, two = (paths.value(e, env, flowing=theory.system.flowing) for e in (claim.lhs, claim.rhs))
                worst = largest(worst, abs(one - two) / max(abs(one), abs(two), SMALL))
    digits = FEWER if step.data["all"] else DIGITS
    ok = bool(step.claims) and worst < mp.mpf(10) ** -digits
    return result(f"quadrature to {digits} digits", ok, "shifted fields on a grid", f"differs by {float(worst):.3g}")
