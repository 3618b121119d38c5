"""Thirty problems, and the ways in which each can be spelled otherwise: what they make of its answer is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sympy import Abs, Eq, Expr, Heaviside, Max, Piecewise, Rational, S, Sum, Symbol, exp, expand, log, sqrt, symbols

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, Sites, alpha, average, i, mu

HALF, BIG = Rational(1, 2), 10**4
x, w, t, y, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("y", mu), Quenched("e", mu)
d, k, lasso, ridge = symbols("d k g_1 g_2", positive=True)
CUT = Rational(1, 3)  # of a quantile


@dataclass(frozen=True)
class Spelled:
    """A spelling: a declaration, values, and what the mean square of its weights is to be multiplied by.

    Attributes
    ----------
    loss : Expr
        Of one datum, in its field ``h``.
    penalty : Expr
        Of one weight.
    constraints : tuple
        With the fields written out.
    degree : int or None
        By which power of the scale of targets, margins and weights the loss grows; None where it has none.
    others : tuple of Expr
        Other spellings of the loss.
    """

    loss: Expr
    penalty: Expr
    constraints: tuple[Any, ...] = ()
    degree: int | None = None
    others: tuple[Expr, ...] = ()
    values: dict[Any, Any] = field(default_factory=dict)
    factor: Expr = S.One
    beside: Expr = S.Zero
    dps: int = 15
    coupling: Any = x

    def problem(self) -> ConvexProblem:
        """The declaration."""
        rule = {h: self.heard()}
        objective = Sum(self.loss.xreplace(rule), (mu, 1, P)) + Sum(self.penalty, (i, 1, N)) + self.beside
        return ConvexProblem(objective, [c.xreplace(rule) for c in self.constraints])

    def heard(self) -> Expr:
        """The sum that a datum hears."""
        return Sum(self.coupling[mu, i] * w[i], (i, 1, N))

    def answer(self) -> float:
        """The mean square of the weights in the units of the base."""
        solution = self.problem().cavity().solve({alpha: 2} | self.values, dps=self.dps)
        return float(solution[average(w[i] ** 2)] * self.factor)


h, u = Symbol("h", real=True), Sum(x[mu, i] * t[i], (i, 1, N))
r = h - e[mu]
TARGETS, SIGNS, TEACHER = {e: {1: HALF, -2: HALF}}, {y: {1: HALF, -1: HALF}}, {t: {1: HALF, -1: HALF}}
gap = k - y[mu] * h
LOSSES: dict[str, dict[str, Any]] = {
    "squares": {"loss": r**2 / 2, "degree": 2, "values": TARGETS, "others": (expand(r**2) / 2, Abs(r) ** 2 / 2)},
    "absolute": {"loss": Abs(r), "degree": 1, "values": TARGETS, "others": (Max(r, -r), 2 * Max(0, r) - r)},
    "quantile": {
        "loss": CUT * Max(0, -r) + (1 - CUT) * Max(0, r), "degree": 1, "values": TARGETS,
        "others": (Max(-CUT * r, (1 - CUT) * r), Abs(r) / 2 + (HALF - CUT) * r),
    },
    "Huber": {
        "loss": Piecewise((r**2 / 2, Abs(r) <= d), (d * Abs(r) - d**2 / 2, True)), "degree": 2,
        "values": {**TARGETS, d: 1}, "others": (r**2 / 2 - Max(0, Abs(r) - d) ** 2 / 2,),
    },
    "tube": {
        "loss": Max(0, Abs(r) - d), "degree": 1, "values": {**TARGETS, d: HALF},
        "others": (Max(0, r - d, -r - d), Max(0, r - d) + Max(0, -r - d)),
    },
    "quartic": {"loss": r**4 / 4, "degree": 4, "values": TARGETS, "others": (Abs(r) ** 4 / 4,)},
    "hinge": {
        "loss": Max(0, gap), "degree": 1, "values": {**SIGNS, k: 1},
        "others": ((gap + Abs(gap)) / 2, gap * Heaviside(gap)),
    },
    "squared hinge": {
        "loss": Max(0, gap) ** 2 / 2, "degree": 2, "values": {**SIGNS, k: 1}, "others": (gap * Max(0, gap) / 2,),
    },
    "logistic": {
        "loss": log(1 + exp(-y[mu] * h)), "values": SIGNS,
        "others": (-log(1 / (1 + exp(-y[mu] * h))), log(exp(y[mu] * h) + 1) - y[mu] * h),
    },
    "margin": {"loss": S.Zero, "values": {**SIGNS, k: 1}, "constraints": (y[mu] * h >= k,), "degree": 0},
    "teacher": {"loss": (h - u) ** 2 / 2, "values": TEACHER},
}  # fmt: skip
L1, L2 = lasso * Abs(w[i]), ridge * w[i] ** 2 / 2
PENALTIES: dict[str, tuple[Expr, tuple[Any, ...]]] = {
    "ridge": (L2, ()),
    "lasso": (L1, ()),
    "elastic": (L1 + L2, ()),
    "from zero on": (L2, (w[i] >= 0,)),
    "in a box": (L2, (w[i] <= k / 2, w[i] >= -k / 2)),
    "budget": (L2, (Eq(Sum(w[i], (i, 1, N)), N * k),)),
}
CHOSEN = {
    "squares": ("ridge", "lasso", "elastic", "from zero on", "in a box", "budget"),
    "absolute": ("ridge", "elastic", "from zero on"),
    "quantile": ("ridge", "in a box"),
    "Huber": ("ridge", "lasso", "elastic"),
    "tube": ("ridge", "elastic"),
    "quartic": ("ridge",),
    "hinge": ("ridge", "elastic", "from zero on"),
    "squared hinge": ("ridge", "lasso"),
    "logistic": ("ridge", "elastic", "from zero on"),
    "margin": ("ridge", "elastic", "budget"),
    "teacher": ("ridge", "lasso"),
}


def _base(loss: str, penalty: str) -> Spelled:
    told = dict(LOSSES[loss])
    term, more = PENALTIES[penalty]
    given = {lasso: HALF, ridge: 1, k: 1}
    written = [told["loss"], term, *more, *told.get("constraints", ())]
    values = {p: v for p, v in given.items() if any(p in s.free_symbols for s in written)} | told.pop("values")
    if loss == "margin":
        values[alpha] = HALF
    return Spelled(**told | {"penalty": term, "values": values, "constraints": (*told.get("constraints", ()), *more)})


BASES = {f"{loss}, {penalty}": _base(loss, penalty) for loss, some in CHOSEN.items() for penalty in some}


# -- families: each gives the other spellings of a base ---------------------------------------------


def weights_in_units(base: Spelled) -> Iterator[Spelled]:
    """Weights times a number."""
    for c in (3, Rational(2, 7)):
        rule = {w[i]: c * w[i]}
        yield replace(
            base, penalty=base.penalty.xreplace(rule), constraints=tuple(b.xreplace(rule) for b in base.constraints),
            coupling=_Times(c, base.coupling), factor=S(c) ** 2,
        )  # fmt: skip


def couplings_in_units(base: Spelled) -> Iterator[Spelled]:
    """Couplings of another variance, divided by its root; or of variance one, with the root outside."""
    if base.loss.has(u):
        return
    yield replace(base, coupling=_Times(HALF, Coupling("x", variance=4 / N)))
    yield replace(base, coupling=_Times(1 / sqrt(N), Coupling("x", variance=1)))


def factor_of_objective(base: Spelled) -> Iterator[Spelled]:
    """The objective times a number."""
    for c in (1000, Rational(3, 7)):
        yield replace(base, loss=c * base.loss, penalty=c * base.penalty)


def constants(base: Spelled) -> Iterator[Spelled]:
    """The objective plus a number."""
    yield replace(base, beside=3 * N + 2)


def order(base: Spelled) -> Iterator[Spelled]:
    """Constraints in another order, and both sides of each exchanged."""
    turned = [c.reversed if isinstance(c, Eq) or c.is_Relational else c for c in reversed(base.constraints)]
    yield replace(base, constraints=tuple(turned))


def idle_constraints(base: Spelled) -> Iterator[Spelled]:
    """Bounds that are never met."""
    for more in ((w[i] <= BIG,), (Sum(w[i] ** 2, (i, 1, N)) <= BIG * N,), (h >= -BIG,)):
        yield replace(base, constraints=(*base.constraints, *more))


def conditions_twice(base: Spelled) -> Iterator[Spelled]:
    """Constraints that are stated again, times a number."""
    if base.constraints:
        again = tuple(c.func(2 * c.lhs, 2 * c.rhs) for c in base.constraints)
        yield replace(base, constraints=(*base.constraints, *again))


def auxiliary_variables(base: Spelled) -> Iterator[Spelled]:
    """The field, or the weight in its penalty, by another name."""
    v, copy = Datum("v")[mu], Feature("v")[i]
    if base.loss != 0:
        yield replace(base, loss=base.loss.xreplace({h: v}), constraints=(*base.constraints, Eq(v, h)))
    yield replace(base, penalty=base.penalty.xreplace({w[i]: copy}), constraints=(*base.constraints, Eq(copy, w[i])))


def terms_in_parts(base: Spelled) -> Iterator[Spelled]:
    """A third of each term stands by itself."""
    third = base.loss.xreplace({h: base.heard()}) / 3
    beside = Sum(third, (mu, 1, P)) + Sum(base.penalty / 3, (i, 1, N))
    yield replace(base, loss=2 * base.loss / 3, penalty=2 * base.penalty / 3, beside=beside)


def data_in_parts(base: Spelled) -> Iterator[Spelled]:
    """Half of the data are of another kind."""
    if base.loss == 0 or base.loss.has(u):
        return
    nu, M = Sites("nu", "M", name="other datum")
    z = Coupling("z", between=(nu, i))
    given = {q: Quenched(f"{q.name}_o", nu) for q in (e, y) if q in base.values}
    rule = {h: Sum(z[nu, i] * w[i], (i, 1, N)), **{q[mu]: other[nu] for q, other in given.items()}}
    values = {**base.values, alpha: 1, M / N: 1} | {other: base.values[q] for q, other in given.items()}
    yield replace(base, beside=Sum(base.loss.xreplace(rule), (nu, 1, M)), values=values)


def other_losses(base: Spelled) -> Iterator[Spelled]:
    """The same function, written otherwise."""
    for loss in base.others:
        yield replace(base, loss=loss)


def types_of_values(base: Spelled) -> Iterator[Spelled]:
    """Text, fractions and numbers of NumPy."""
    load = base.values.get(alpha, 2)
    for kind in (str, lambda v: np.float64(float(v)), S):
        plain = {q: kind(v) for q, v in base.values.items() if not isinstance(v, dict)}
        laws = {q: {kind(a): kind(b) for a, b in v.items()} for q, v in base.values.items() if isinstance(v, dict)}
        yield replace(base, values=plain | laws | {alpha: kind(load)})


def digits(base: Spelled) -> Iterator[Spelled]:
    """More digits."""
    yield replace(base, dps=30)


def scale(base: Spelled) -> Iterator[Spelled]:
    """Targets, margins and weights times a number, penalties such that all terms grow alike."""
    if base.degree is None:
        return
    for power in (-100, -20, -8, 30, 100):
        c = S(10) ** power
        values = dict(base.values)
        degree = base.degree or 2
        for parameter, own in ((lasso, degree - 1), (ridge, degree - 2), (d, 1), (k, 1)):
            if parameter in values:
                values[parameter] = values[parameter] * c**own
        if e in values:
            values[e] = {c * v: share for v, share in values[e].items()}
        yield replace(base, values=values, factor=c**-2)


FAMILIES: dict[str, Callable[[Spelled], Iterator[Spelled]]] = {
    f.__name__.replace("_", " "): f
    for f in (
        weights_in_units, couplings_in_units, factor_of_objective, constants, order, idle_constraints,
        conditions_twice, auxiliary_variables, terms_in_parts, data_in_parts, other_losses, types_of_values,
        digits, scale,
    )
}  # fmt: skip


class _Times:
    """A coupling times a number."""

    def __init__(self, factor: Any, coupling: Any) -> None:
        self.factor, self.coupling = S(factor), coupling

    def __getitem__(self, at: Any) -> Expr:
        return self.factor * self.coupling[at]


def pairs() -> Iterator[tuple[str, str, int]]:
    """Every base with each of its other spellings."""
    for name, base in BASES.items():
        for family, others in FAMILIES.items():
            for number, _ in enumerate(others(base)):
                yield name, family, number
