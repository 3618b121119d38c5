"""A witness of integration by parts along paths: states that jump with a field that keeps still, on a fine grid of it.

The other fields follow that one in part; what they hold beyond it is drawn once and kept, since the identity holds at
any value of it.  The response to a field with which a law jumps is the derivative of an average: the field is shifted,
and the average is taken again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Pow, S, Sum, Tuple, lambdify

from symcavity.algebra.flow import Element, Rate
from symcavity.algebra.precision import mp
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convexity import sample_parameter, sample_quenched, seeded
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step, Verdict
from symcavity.record.symbols import DisorderAverage, MovingParameter, Source
from symcavity.witness.motion import given_by
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.verbs import claimed
from symcavity.witness.world import STEPS

REACH, HALF = 8.0, 8000  # of the grid, in standard deviations of the field; its points to either side of zero
SHIFT = 20  # points of the grid by which the field is shifted: the jump moves from one point to another
NUDGE, DT, SMALL = 1e-6, 0.1, 0.3
DIGITS = 3


class Paths:
    """Paths of the new site over a grid of values of the field that keeps still, filled by the claimed law.

    Parameters
    ----------
    theory : Theory
    kind : Kind
    still : Heard
        The field that keeps still.
    seed : int
    """

    def __init__(self, theory: Any, kind: Any, still: Any, seed: int) -> None:
        self.time, self.site, self.still = theory.system.time, theory.inserted[kind], still
        self.law, self._rng = claimed(theory, "effective_law", kind), seeded(seed)
        self._numbers: dict[Any, Any] = {}
        order = [q.family.name for q in theory.system.motion.order if isinstance(q, SiteQuantity)]
        self.law = sorted(self.law, key=lambda e: order.index(given_by(e)[0].family.name))
        self.grid = np.arange(-HALF, HALF + 1) * (REACH / HALF)
        self.weights = np.exp(-(self.grid**2) / 2)
        self.weights /= self.weights.sum()
        self.size = np.sqrt(self.number(self.site.covariance[still.eta, still.eta], {}))
        self.fields: dict[Expr, np.ndarray] = {still.eta: self.size * self.grid}
        for h in self.site.heard:
            if h is still:
                continue
            for k in range(STEPS + 1):
                share = self.number(self.site.covariance[h.eta, still.eta], {h.declared.time: k}) / self.size
                rest = self._rng.gauss(0, 1)
                self.fields[h.eta.at(S(k))] = share * self.grid + rest
        self.states = self.filled(self.fields)

    # -- numbers -----------------------------------------------------------------------------------

    def number(self, expr: Expr, env: dict[Any, int]) -> float:
        """A number for an expression of order parameters and parameters, each of which is drawn once."""
        expr = Tuple(expr).xreplace({t: S(k) for t, k in env.items()})[0]
        return float(expr.xreplace({a: self._drawn(a) for a in self._open(expr)}))

    def _open(self, expr: Expr) -> list[Any]:
        kernels = [*expr.atoms(MovingParameter), *expr.atoms(Average)]
        rest = expr.xreplace(dict.fromkeys(kernels, S.Zero))
        named = [q for q in site_quantities(rest) if isinstance(q.family, Quenched)]
        return sorted([*kernels, *named, *(rest.free_symbols - {i for q in named for i in q.free_symbols})], key=str)

    def _drawn(self, atom: Any) -> Any:
        if atom not in self._numbers:
            if isinstance(atom, SiteQuantity):
                value = sample_quenched(atom.family, self._rng)
            elif isinstance(atom, MovingParameter):
                value = SMALL * self._rng.uniform(-1, 1)
            else:
                value = self._rng.uniform(0.5, 1.5) if isinstance(atom, Average) else sample_parameter(atom, self._rng)
            self._numbers[atom] = S(float(value))
        return self._numbers[atom]

    # -- paths -------------------------------------------------------------------------------------

    def filled(self, fields: dict[Expr, np.ndarray]) -> dict[Any, np.ndarray]:
        """All states at all steps, at given fields."""
        known: dict[Any, np.ndarray] = dict(fields)
        for step in range(STEPS + 1):
            for row in self.law:
                state, lead = given_by(row)
                if lead and step == 0:
                    known[state.xreplace({self.time: S.Zero})] = np.full(self.grid.shape, 0.5)
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
        if node.time is None:
            field, shift = self.still.eta, SHIFT * (REACH / HALF) * self.size
        else:
            named = (h for h in self.site.heard if h.carrier is not None)
            heard = next(h for h in named if h.carrier.family == node.field.family)
            field, shift = heard.eta.at(S(env[node.time])), NUDGE
        moved = (self.fields | {field: self.fields[field] + way * shift} for way in (1, -1))
        up, down = (float(self.array(weighted, env, self.filled(fields)) @ self.weights) for fields in moved)
        return (up - down) / (2 * shift)

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


@witness("moving_parts")
def moving_parts(step: Step, _dps: int) -> list[Verdict]:
    """Both sides on a grid of the field that keeps still; left open where several do."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    still = [h for h in theory.inserted[kind].heard if h.declared.time is None]
    if len(still) != 1:
        return []
    worst = mp.mpf(0)
    for seed in (3, 4):
        paths = Paths(theory, kind, still[0], seed)
        for claim in step.claims:
            for k in range(STEPS):
                env = {theory.system.time: k}
                one, two = (paths.value(e, env, flowing=theory.system.flowing) for e in (claim.lhs, claim.rhs))
                worst = largest(worst, abs(one - two) / max(abs(one), abs(two), SMALL))
    ok = bool(step.claims) and worst < mp.mpf(10) ** -DIGITS
    return result(f"quadrature to {DIGITS} digits", ok, "shifted fields on a grid", f"differs by {float(worst):.3g}")
