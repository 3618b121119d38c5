"""Identities between expressions with phi(n, .): proofs that show their steps, and numerical checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sympy import (
    Add,
    Derivative,
    Dummy,
    Eq,
    Expr,
    Float,
    Integral,
    Piecewise,
    S,
    Symbol,
    binomial,
    cancel,
    exp,
    expand_mul,
    fraction,
    oo,
    powsimp,
    together,
)
from sympy.printing.precedence import PRECEDENCE

from symcavity.algebra.checks import both_sides, check
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.node import raised
from symcavity.algebra.phi import by_phi, gaussian_density, gaussian_moment, phi
from symcavity.algebra.precision import mp
from symcavity.algebra.quadrature import mp_average
from symcavity.errors import ValuesError

POINTS = 5  # at which an identity is tried before its proof is looked for


class TruncatedIntegral(Expr):
    """The integral over a standard Gaussian measure up to a bound, kept as it is written.

    Parameters
    ----------
    body : Expr
        The integrand, without the density.
    z : Symbol
        The variable of integration.
    upper : Expr
        The upper end.
    """

    is_commutative = True

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        body, z, upper = self.args
        return (body.free_symbols - {z}) | upper.free_symbols

    def doit(self, **_hints: Any) -> Integral:
        """Return the SymPy integral, with its density."""
        body, z, upper = self.args
        return Integral(body * gaussian_density(z), (z, -oo, upper))

    def _eval_evalf(self, prec: int) -> Expr | None:
        """Integrate numerically once everything is a number: the Gaussian average of the cut-off integrand."""
        body, z, upper = self.args
        if self.free_symbols:
            return None
        cut = Piecewise((body, z < upper), (0, True))
        return Float._new(mp_average(cut, z, [upper], prec)._mpf_, prec)  # noqa: SLF001 - an mpf, bit by bit

    def _sympystr(self, printer: Any) -> str:
        z, upper = (printer._print(a) for a in self.args[1:])  # noqa: SLF001 - SymPy's printing protocol
        body = printer.parenthesize(self.args[0], PRECEDENCE["Mul"], strict=True)
        inner = "" if self.args[0] == 1 else f" {body}"
        return f"Integral(D{z}{inner}, {z} < {upper})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        z, upper = (printer._print(a) for a in self.args[1:])  # noqa: SLF001 - SymPy's printing protocol
        body = printer.parenthesize(self.args[0], PRECEDENCE["Mul"], strict=True)
        inner = "" if self.args[0] == 1 else rf"\, {body}"
        whole = rf"\int_{{-\infty}}^{{{upper}}} \mathcal{{D}}{z}{inner}"
        return raised(whole, exp)


@dataclass(frozen=True)
class ProofStep:
    """One line of a proof.

    Parameters
    ----------
    rule : str
        Why the line holds, by the name of the rule.
    lhs, rhs : Expr
        The two sides that are equal.
    values : dict
        What the rule is about.
    """

    rule: str
    lhs: Expr
    rhs: Expr
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def equation(self) -> Eq:
        """The line as an unevaluated SymPy equation."""
        return Eq(self.lhs, self.rhs, evaluate=False)


@dataclass(frozen=True)
class Proof:
    """The outcome of ``prove``: true if and only if the identity was proved.

    Parameters
    ----------
    lhs, rhs : Expr
        The two sides.
    proved : bool
        Whether the difference came out as zero.
    steps : list of ProofStep
        What was done; each one holds by itself, also where the whole was not proved.
    difference : Expr
        What is left of lhs - rhs, 0 for a proof.
    counterexample : dict or None
        A point at which the two sides are different numbers, where one was found.
    """

    lhs: Expr
    rhs: Expr
    proved: bool
    steps: list[ProofStep]
    difference: Expr
    counterexample: dict[Expr, Expr] | None = None

    def __bool__(self) -> bool:
        return self.proved


# -- proofs ----------------------------------------------------------------------------------------


def prove(lhs: Any, rhs: Any = None) -> Proof:
    """Prove an identity between truncated Gaussian moments: :func:`symcavity.face.prove` says what it takes.

    Each order is lowered by an integration by parts, as in equations (61) to (64) of Clark & Sompolinsky,
    until both sides are in the basis phi(0, .), phi(1, .), or phi(0, .) and the density.
    """
    left, right = both_sides(lhs, rhs)
    steps: list[ProofStep] = []
    a, b = _unified(left, steps), _unified(right, steps)
    done: set[Expr] = set()
    for _ in range(200):
        target = _highest(a, b)
        if target is None:
            break
        formula = _by_parts(target, steps, done)
        if formula is None:
            break
        a, b = (_collected(side.xreplace({target: formula})) for side in (a, b))
    difference = _difference(a, b)
    if difference != 0 and _densities(difference):
        for target in sorted(difference.atoms(phi), key=lambda t: t.sort_key()):
            if target.args[0] == 1:
                formula = _by_parts(target, steps, done)
                if formula is not None:
                    a, b = (_collected(side.xreplace({target: formula})) for side in (a, b))
        difference = _difference(a, b)
    if steps and difference == 0:
        for side, name, found in ((left, "left", a), (right, "right", b)):
            if side != found and not any((step.lhs, step.rhs) == (side, found) for step in steps):
                steps.append(ProofStep(f"put_in_{name}", side, found))
        if a != b:
            steps.append(ProofStep("expands", a - b, S.Zero))
    elif difference == 0:
        steps.append(ProofStep("expands", left - right, S.Zero))
    counterexample = None if difference == 0 else _counterexample(left, right)
    return Proof(left, right, bool(difference == 0), steps, difference, counterexample)


def _unified(expr: Expr, steps: list[ProofStep]) -> Expr:
    """Write derivatives, error functions, closed averages and opposite arguments by phi."""
    fresh = expr.replace(lambda e: isinstance(e, Derivative), lambda e: e.doit())
    if fresh != expr:
        steps.append(ProofStep("derivative", expr, fresh))
        expr = fresh
    fresh = by_phi(expr)
    if fresh != expr:
        steps.append(ProofStep("error_function", expr, fresh))
        expr = fresh
    for node in sorted(expr.atoms(GaussianAverage), key=lambda t: t.sort_key()):
        value = node.doit()
        if value != node:
            steps.append(ProofStep("average", node, value))
            expr = expr.xreplace({node: value})
    swap = {}
    for term in sorted(expr.atoms(phi), key=lambda t: t.sort_key()):
        n, x = term.args
        y = (-x).expand()
        if not (n.is_Integer and x.expand().could_extract_minus_sign()):
            continue
        whole = Add(*[binomial(n, j) * gaussian_moment(j) * y ** (n - j) for j in range(0, int(n) + 1, 2)])
        swap[term] = (-1) ** n * (whole - phi(n, y))
        steps.append(ProofStep("reflection", term, swap[term], {"order": n}))
    return _collected(expr.xreplace(swap)) if swap else expr


def _highest(*sides: Expr) -> phi | None:
    """Return the phi whose order is to be lowered next: the basis keeps two neighbouring orders."""
    groups: dict[tuple[Expr, Expr], list[tuple[int, Expr]]] = {}
    for term in set().union(*(side.atoms(phi) for side in sides)):
        n, x = term.args
        offset, symbolic = n.as_coeff_Add()
        if offset.is_Integer:
            groups.setdefault((symbolic, x), []).append((int(offset), term))
    found = []
    for (symbolic, _), members in groups.items():
        members.sort(key=lambda pair: pair[0])
        base = 0 if symbolic == 0 else members[0][0]
        top, term = members[-1]
        if top >= base + 2 and (term.args[0] - 2).is_nonnegative:
            found.append((top, term))
    return max(found, key=lambda pair: (pair[0], pair[1].sort_key()))[1] if found else None


def _by_parts(term: phi, steps: list[ProofStep], done: set[Expr]) -> Expr | None:
    """Lower the order of one phi by an integration by parts; each line is verified as it is written."""
    n, x = term.args
    one = n == 1
    formula = x * phi(n - 1, x) + (gaussian_density(x) if one else (n - 1) * phi(n - 2, x))
    if term in done:
        return formula
    z = Symbol("z", real=True)
    if any(symbol.name == "z" for symbol in x.free_symbols):
        z = Dummy("t", real=True)

    def integral(body: Expr) -> Expr:
        return TruncatedIntegral(body, z, x)

    if not _lemma(n):
        return None
    power = (x - z) ** (n - 1)
    steps.append(ProofStep("definition", term, integral((x - z) ** n)))
    split = x * integral(power) - integral(z * power)
    steps.append(ProofStep("split", integral((x - z) ** n), split))
    if one:
        steps.append(ProofStep("parts_density", -integral(z * power), gaussian_density(x)))
    else:
        steps.append(ProofStep("parts", -integral(z * power), (n - 1) * integral((x - z) ** (n - 2))))
    steps.append(ProofStep("collect", term, formula))
    done.add(term)
    return formula


def _lemma(n: Expr) -> bool:
    """Verify, for this order, the two statements on integrands that an integration by parts rests on."""
    x, z = Dummy("x", real=True), Dummy("z", real=True)
    y = Dummy("y", positive=True)  # x - z, inside the interval
    weight = gaussian_density(z)
    split = y**n - (y + z) * y ** (n - 1) + z * y ** (n - 1)
    slope = (((x - z) ** (n - 1) * weight).diff(z) / weight).xreplace({x: z + y})
    claim = -z * y ** (n - 1) - (0 if n == 1 else (n - 1) * y ** (n - 2))
    vanishing = n == 1 or (n - 1).is_positive  # of y**(n-1) at y = 0; for n = 1 it is 1, the density stays
    return bool(split.expand() == 0 and (slope - claim).expand() == 0 and vanishing)


def _collected(expr: Expr) -> Expr:
    """Expand a polynomial in phi and collect it; leave anything else as it is."""
    if any(p.exp.is_negative and p.base.has(phi) for p in expr.atoms(Expr) if p.is_Pow):
        return expr
    names = sorted(expr.atoms(phi), key=lambda t: t.sort_key())
    return expr.expand().collect(names)


def _densities(expr: Expr) -> bool:
    return expr.has(exp)


def _difference(a: Expr, b: Expr) -> Expr:
    """Return a - b, as 0 if it can be brought there."""
    gap = _collected(expand_mul(a - b))
    if gap == 0:
        return S.Zero
    top, bottom = fraction(together(gap))
    if _collected(top) == 0 and bottom.expand() != 0:
        return S.Zero
    if gap.count_ops() < 400:
        names = sorted(gap.atoms(phi, exp), key=lambda t: t.sort_key())
        stand_ins = {name: Dummy(f"e{k}") for k, name in enumerate(names)}
        if cancel(gap.xreplace(stand_ins)) == 0 or powsimp(top.expand()).expand() == 0:
            return S.Zero
        if gap.count_ops() < 60 and gap.simplify() == 0:
            return S.Zero
    return gap


def _counterexample(lhs: Expr, rhs: Expr) -> dict[Expr, Expr] | None:
    for count in (1, POINTS):  # nearly every wrong identity fails at the first point, and points cost integrals
        try:
            seen = check(lhs, rhs, dps=20, points=count)
        except ValuesError:
            return None
        for point, residual in zip(seen.points, seen.residuals, strict=True):
            if residual > mp.mpf(10) ** -15:
                return point
    return None
