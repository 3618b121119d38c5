"""One finite instance: couplings and quenched parameters drawn, the equations of the system evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Float

from symcavity.errors import ValuesError
from symcavity.finite.compiled import Args, CompiledLaw, CompiledSystem
from symcavity.finite.draw import LAWS, Law, check_memory, mixing, reciprocal, stream
from symcavity.finite.drawn_labels import draw_label
from symcavity.finite.given_values import Values, draw_quenched
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched

_QUENCHED, _COUPLINGS, _LABELS, _ANEW = 0, 1, 3, 4
FRESH = 1000
_ON_JUMP = 1e-12  # of the largest state: on which side of a jump it is cannot be said


@dataclass
class State:
    """The variables of an instance.

    Attributes
    ----------
    site : dict
        By kind, an array of shape (sites, variables).
    shared : ndarray
        The global variables.
    active : dict
        By kind, a Boolean array of shape (sites, pairs): where the first member of the pair is zero.
    """

    site: dict[Kind, np.ndarray]
    shared: np.ndarray
    active: dict[Kind, np.ndarray] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a copy that shares nothing."""
        return State({s: z.copy() for s, z in self.site.items()}, self.shared.copy(), dict(self.active))


@dataclass(frozen=True)
class Residuals:
    """How well the equations of the system hold, as maxima over all sites.

    Attributes
    ----------
    stationarity : float
        Of the equations of the sites and of the global conditions.
    feasibility : float
        Of the signs of every complementary pair.
    slackness : float
        Of the products of the pairs.
    """

    stationarity: float
    feasibility: float
    slackness: float

    @property
    def worst(self) -> float:
        """The largest of them."""
        return float(np.max(astuple(self)))

    def __str__(self) -> str:
        return (
            f"stationarity {self.stationarity:.1e}, feasibility {self.feasibility:.1e}, slackness {self.slackness:.1e}"
        )

    @classmethod
    def largest(cls, found: Iterable[Residuals]) -> Residuals:
        """Return the largest of each kind."""
        return cls(*np.max([astuple(r) for r in found], axis=0).tolist())


class Instance:
    """A finite instance of a system.

    Parameters
    ----------
    system : CompiledSystem
        The compiled system.
    values : Values
        Checked values.
    features : int
        N.
    seed : int
        The instance is a function of this seed alone.
    law : callable
        Draws couplings of unit variance.
    fresh : int
        How many fresh sites of each kind are drawn, where an observable is about them.
    """

    def __init__(
        self, system: CompiledSystem, values: Values, features: int, seed: int, law: Law, fresh: int = FRESH
    ) -> None:
        self.system, self.values, self.seed, self.features = system, values, seed, features
        self.fresh = fresh
        self.draw = 0  # of what is drawn anew at each step, where the instance runs several times
        self.size = values.sizes(features)
        check_memory([self._shape(k) for k in range(len(system.couplings))])
        self.constants = system.numbers(values, self.size)
        self.quenched: dict[Quenched, np.ndarray] = {}
        for k, q in enumerate(sorted(values.quenched, key=lambda q: q.name)):
            if q.over is not None:
                continue  # drawn anew at each step
            rng = stream(seed, _QUENCHED, k)
            if q.given is not None:
                self.quenched[q] = np.zeros(self.size[q.slots[0]])
                continue
            self.quenched[q] = draw_quenched(q, values.quenched[q], self.size[q.slots[0]], rng)
        self.law = law
        self.memory: dict[str, Any] = {}
        self.idle = np.zeros(system.count, dtype=bool)  # conditions on all sites whose partner is zero
        self.held: dict[int, float] = {}  # or is held at another number
        self.source = {s: np.zeros((self.size[s], law.ke)) for s, law in system.laws.items()}
        for k, label in enumerate(q for q in self.quenched if q.given is not None):
            self.quenched[label] = self.drawn(label, stream(seed, _LABELS, k))

    def anew(self, family: Any, step: int) -> np.ndarray:
        """What is drawn anew at each step, at one of them: by the seed, the name, the step and the draw alone."""
        size = self.size[family.slots[0]]
        again = (self.draw,) if self.draw else ()
        rng = stream(self.seed, _ANEW, int.from_bytes(family.name.encode(), "big"), step, *again)
        if isinstance(family, Quenched):
            return draw_quenched(family, self.values.quenched[family], size, rng)
        variance = family.variance.xreplace(dict(zip(self.system.constants, map(Float, self.constants), strict=True)))
        return float(variance) ** 0.5 * rng.standard_normal(size)

    @cached_property
    def couplings(self) -> list[np.ndarray]:
        """The couplings, drawn when they are first asked for."""
        drawn = [self.law(stream(self.seed, _COUPLINGS, k), self._shape(k)) for k in range(len(self.system.couplings))]
        return [self._draw(k, sample) for k, sample in enumerate(self.tied(drawn))]

    def drawn(self, label: Quenched, rng: np.random.Generator) -> np.ndarray:
        """Return labels that are drawn on a field of their sites."""
        (kind,) = label.slots
        law, heard = self.system.laws[kind], self.fields(kind, self.start())
        known: dict[Any, Any] = {f.symbol: heard[:, m] for m, f in enumerate(law.fields)}
        known |= {q.at_site(): self.quenched[q] for q in law.quenched if q != label}
        known |= dict(zip(self.system.constants, self.constants, strict=True))
        return draw_label(label, next(e.rhs for e in law.law.equations if e.lhs == label.given), known, rng)

    def spread(self, k: int) -> np.ndarray:
        """Return the variance of every entry of the k-th coupling, with the first of its two ends as rows."""
        return np.broadcast_to(self.scale(k), self._shape(k))

    def _shape(self, k: int) -> tuple[int, ...]:
        return tuple(self.size[end] for end in self.system.couplings[k].family.slots)

    def tied(self, drawn: list[Any], turned: list[Any] | None = None) -> list[Any]:
        """Return couplings of unit variance with their correlations and reciprocities, made of independent ones.

        Parameters
        ----------
        drawn : list of ndarray
            One for each coupling; None where it is not needed, and nothing is correlated with it.
        turned : list of ndarray, optional
            The independent numbers at turned indices; the transposed ones by default.
        """
        out = list(drawn)
        for group, matrix in self.system.correlated(self.constants):
            if drawn[group[0]] is not None:
                for row, k in zip(mixing(matrix), group, strict=True):
                    out[k] = sum(c * np.asarray(drawn[j], dtype=float) for c, j in zip(row, group, strict=True))
        for k, value in self.system.reciprocities(self.constants):
            own, other = reciprocal(value)
            if drawn[k] is not None:
                out[k] = own * drawn[k] + other * (drawn[k].T if turned is None else turned[k])
        return out

    def _draw(self, k: int, sample: Any) -> np.ndarray:
        scale, x = self.scale(k), np.asarray(sample, dtype=float)
        mine = x is not sample or self.law in LAWS.values()  # a law of the user may return an array that it keeps
        return np.multiply(x, np.sqrt(scale), out=x if x.flags.writeable and mine else None)

    def scale(self, k: int) -> np.ndarray:
        """Return the variances of the k-th coupling as an array of two axes that broadcasts over its two ends."""
        expr, variance, quenched = self.system.variances[k]
        first = self.system.couplings[k].family.slots[0]
        columns = [
            self.quenched[q][:, None] if q.slots == (first,) else self.quenched[q][None, :] for q in quenched
        ]
        with np.errstate(all="ignore"):
            scale = np.atleast_2d(np.asarray(variance(*columns, *self.constants), dtype=float))
        if not np.all(np.isfinite(scale)) or np.any(scale < 0):
            raise ValuesError(
                f"The variance {expr} of {self.system.couplings[k]} takes the value {np.min(scale):g}.",
                "finite non-negative variances",
            )
        return scale

    def variances(self, f: RandomField) -> np.ndarray:
        """Return those of the couplings of a field, its hearers as rows; one row or column where all are alike."""
        scale = self.scale(self.system.place(f))
        return scale.T if f.turned else scale

    def right(self, columns: int) -> dict[Kind, np.ndarray]:
        """Return right-hand sides of the linearized equations that are zero: (sites, equations, columns) by kind."""
        return {kind: np.zeros((self.size[kind], law.k, columns)) for kind, law in self.system.laws.items()}

    # -- evaluation ------------------------------------------------------------------------------

    def matrix(self, f: RandomField) -> np.ndarray:
        """Return the couplings of a field: its hearers are the rows, its senders the columns."""
        x = self.couplings[self.system.place(f)]
        return x.T if f.turned else x

    def start(self) -> State:
        """Return the state where every variable is zero, but for global variables that are bounded by zero: one."""
        laws = self.system.laws
        shared = np.array([float(bool(g.is_nonnegative)) for g in self.system.globals])
        for row, value in self.held.items():
            shared[self.system.partners[row]] = value
        return State({s: np.zeros((self.size[s], laws[s].k)) for s in laws}, shared)

    def emissions(self, kind: Kind, state: State) -> np.ndarray:
        """Return what the sites of a kind send: shape (sites, fields in which it is heard)."""
        law = self.system.laws[kind]
        blank = np.zeros((self.size[kind], law.m))
        return law.emission(self.arguments(kind, state, blank), self.size[kind])

    def fields(self, kind: Kind, state: State) -> np.ndarray:
        """Return the random fields that the sites of a kind hear: shape (sites, fields)."""
        law = self.system.laws[kind]
        sent = {sender: self.emissions(sender, state) for sender in dict.fromkeys(f.sender for f in law.fields)}
        out = np.empty((self.size[kind], law.m))
        for m, f in enumerate(law.fields):
            out[:, m] = self.matrix(f) @ sent[f.sender][:, self.system.column(f)]
        return out

    def arguments(self, kind: Kind, state: State, fields: np.ndarray) -> Args:
        """Return the arguments of every table of the law of a kind."""
        law: CompiledLaw = self.system.laws[kind]
        sets = () if law.sets is None else law.sets.columns(state.site[kind]).T
        known = (self.quenched[q] for q in law.quenched)
        return [*state.site[kind].T, *fields.T, *state.shared, *known, *self.constants, *sets]

    def residuals(self, state: State) -> Residuals:
        """Evaluate the equations of the system at a state; how it was found does not matter.

        None holds on a jump, where states have no side, as those of units with a threshold at silence.
        """
        worst, sign, slack = 0.0, 0.0, 0.0
        total = np.zeros(self.system.count)
        for kind, law in self.system.laws.items():
            n = self.size[kind]
            args = self.arguments(kind, state, self.fields(kind, state))
            worst = max(worst, largest(law.residual(args, n) - self.source[kind]))
            least = _ON_JUMP * largest(*state.site.values())
            if np.any((np.abs(law.steps(args, n)) <= least) & (law.heights(args, n) > least)):
                worst = np.inf
            p, q = law.p(args, n), law.q(args, n)
            sign = max(sign, largest(np.minimum(p, 0), np.minimum(q, 0)))
            with np.errstate(invalid="ignore"):
                slack = max(slack, largest(p * q))
            rows, body, _, _ = self.system.conditions[kind]
            total[rows] += body(args, n).sum(axis=0)
        for row, partner in enumerate(self.system.partners):
            if partner >= 0:
                both = np.array([state.shared[partner], total[row]])
                sign, slack = max(sign, largest(np.minimum(both, 0))), max(slack, largest(np.prod(both, keepdims=True)))
                total[row] = 0.0
        return Residuals(max(worst, largest(total)), sign, slack)


def largest(*parts: np.ndarray) -> float:
    """Return the largest absolute value of arrays; infinity where one of them is not a number."""
    found = max((float(np.max(np.abs(x))) for x in parts if x.size), key=lambda v: (np.isnan(v), v), default=0.0)
    return found if np.isfinite(found) else np.inf
