"""The branches of a single-site law: every choice in its complementary pairs and kinks, solved.

A branch is a set of equations (which member of each pair is zero, which piece of each kink holds) and
a set of inequalities (the rest).  Nothing here knows what the variables mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    cancel,
    fraction,
    linear_eq_to_matrix,
    prime,
    sign,
    solve,
)
from sympy.solvers.solveset import NonlinearError

from symcavity.algebra.linear_systems import solve_linear
from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.sites.branching.kinks import of_one_sign, one_argument, split_off, unkinked
from symcavity.sites.choices import Choices

MOST_BRANCHES = 512


@dataclass(frozen=True)
class Branch:
    """One branch of a law.

    Attributes
    ----------
    values : dict
        The unknowns as functions of the field; of ``implicit[0]`` where the branch is implicit.
    conditions : tuple of Expr
        Expressions that must not be negative.
    label : tuple of Expr
        The expressions that vanish on this branch (one of each pair).
    implicit : (Symbol, Expr) or None
        The unknown x that is fixed implicitly, and the field as a function psi(x) of it.
    """

    values: dict[Expr, Expr]
    conditions: tuple[Expr, ...]
    label: tuple[Expr, ...] = ()
    implicit: tuple[Symbol, Expr] | None = None

    def where(self, rule: dict[Any, Expr]) -> Branch:
        """The branch with other expressions in it."""
        if not rule:
            return self
        return Branch(
            {x: v.xreplace(rule) for x, v in self.values.items()},
            tuple(c.xreplace(rule) for c in self.conditions),
            tuple(e.xreplace(rule) for e in self.label),
            self.implicit and (self.implicit[0], self.implicit[1].xreplace(rule)),
        )


@dataclass
class SitePuzzle:
    """A single-site law with plain symbols: equations = 0, complementary pairs, unknowns, one field, sources.

    Attributes
    ----------
    sources : sequence of Symbol
        The source of every field: where one stands, a field does.
    loose : list of (tuple of Symbol, tuple of Expr, dict)
        Faces on which unknowns stay free: those unknowns, the expressions that must not be negative, and the values
        of all unknowns there.
    """

    equations: list[Expr]
    pairs: list[tuple[Expr, Expr]]
    unknowns: list[Symbol]
    inner: Symbol
    text: str = ""
    sources: Sequence[Symbol] = ()
    loose: list[tuple[tuple[Symbol, ...], tuple[Expr, ...], dict[Expr, Expr]]] = field(default_factory=list)
    _known: dict[Expr, Expr] = field(default_factory=dict)
    _cases: dict[Any, Expr] = field(default_factory=dict)
    _apart: Expr = S.Zero

    def branches(self) -> list[Branch]:
        """Solve every branch; the impossible ones are left out."""
        self._known = self._settle()
        marks: dict[Any, Symbol] = {}
        self.equations = [self._weighed(e, marks) for e in self.equations]
        self.pairs = [(self._weighed(p, marks), self._weighed(q, marks)) for p, q in self.pairs]
        cases = self._cases = {mark: case for case, mark in marks.items()}
        found = [self._whole(b) for b in self._enumerate()]
        self.loose = [
            (free, tuple(c.xreplace(cases) for c in rest), {x: v.xreplace(cases) for x, v in values.items()})
            for free, rest, values in self.loose
        ]
        return found

    def apart(self) -> list[Branch]:
        """The branches of the law with all bounds moved a little, each by a share of its own, as these shares vanish.

        Where more bounds meet than there are states, their multipliers are not unique, and branches that differ in
        them overlap.  Moved apart the bounds meet by as many at a time, and their branches tile the fields; all of
        them have the same states.
        """
        loose, self._apart = self.loose, Dummy("epsilon", real=True)
        level = {self._apart: S.Zero}
        found = [self._whole(b) for b in self._enumerate()]
        self.loose = loose
        left = (b.where(level) for b in found if not any(self._fails(c, level) for c in b.conditions))
        return [replace(b, values={x: tidy_fraction(v) for x, v in b.values.items()}) for b in left]

    def _whole(self, branch: Branch) -> Branch:
        """A branch with what was settled before, and with cases in the place of their marks."""
        return replace(branch, values={**self._known, **branch.values}).where(self._cases)

    def _fails(self, condition: Expr, level: Mapping[Expr, Expr]) -> bool:
        """Whether a condition that is met by equality does not hold as soon as the bounds are apart."""
        here, change = condition.xreplace(level), condition.diff(self._apart).xreplace(level)
        return tidy_fraction(here) == 0 and sign_of(tidy_fraction(change)) == -1

    def _weighed(self, expr: Expr, marks: dict[Any, Symbol]) -> Expr:
        """Write cases that no unknown decides, but a label or another field, as a sum over them; name fixed roots."""
        moving = (self.inner, *self.unknowns)

        def decided(e: Expr) -> bool:
            return isinstance(e, Piecewise) and e.has(*moving) and not any(c.has(*moving) for _, c in e.args)

        def summed(e: Expr) -> Expr:
            tests = [test for _, test in e.args]
            cases = (Piecewise(*((S.One if c == test else S.Zero, c) for c in tests)) for test in tests)
            chosen = (marks.setdefault(case, Dummy("c", nonnegative=True)) for case in cases)
            return Add(*(mark * value for mark, (value, _) in zip(chosen, e.args, strict=True)))

        def is_root(e: Expr) -> bool:
            return e.is_Pow and e.exp.is_Rational and not e.exp.is_Integer and not (e.is_number or e.has(*moving))

        def named(e: Expr) -> Expr:
            step = Pow(e.base, Rational(1, e.exp.q))  # a number to linear algebra, and no root of a polynomial
            return marks.setdefault(step, Dummy("r", nonnegative=True)) ** e.exp.p

        return expr.replace(decided, summed).replace(is_root, named)

    def _settle(self) -> dict[Expr, Expr]:
        """Take out the unknowns that are given without the inner field, such as another field's value."""
        known: dict[Expr, Expr] = {}
        while True:
            alone = ((e, self._alone(e)) for e in self.equations if not e.has(self.inner))
            hit = next(((e, x) for e, x in alone if x is not None and not e.diff(x).has(x)), None)
            if hit is None:
                return known
            equation, x = hit
            value = cancel(x - equation / equation.diff(x))
            known = {k: v.xreplace({x: value}) for k, v in known.items()} | {x: value}
            self.equations = [e.xreplace({x: value}) for e in self.equations if e is not equation]
            self.pairs = [(p.xreplace({x: value}), q.xreplace({x: value})) for p, q in self.pairs]
            self.unknowns = [u for u in self.unknowns if u != x]

    def _alone(self, equation: Expr) -> Symbol | None:
        """The unknown that an equation has alone."""
        own = equation.free_symbols & {*self.unknowns}
        return own.pop() if len(own) == 1 else None

    def _enumerate(self) -> list[Branch]:
        out: dict[Any, Branch] = {}  # pieces that meet at a kink give the same branch there
        tried = 0
        for equations, flat, conditions in unkinked(
            self.equations, [q for pair in self.pairs for q in pair], self.unknowns
        ):
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            shares = ((Rational(1, prime(2 * k + 1)), Rational(1, prime(2 * k + 2))) for k in range(len(pairs)))
            moved = [
                (p + self._apart * a, q + self._apart * b) for (p, q), (a, b) in zip(pairs, shares, strict=True)
            ]
            for picks in Choices(equations, pairs, conditions, self.unknowns):
                tried += 1
                if tried > MOST_BRANCHES:
                    raise UnsupportedLaw(f"{self.text} has more than {MOST_BRANCHES} branches.", "fewer")
                zero = [pair[k] for pair, k in zip(moved, picks, strict=True)]
                rest = [pair[1 - k] for pair, k in zip(moved, picks, strict=True)]
                branch = self._solve([*equations, *zero], [*rest, *conditions], tuple(zero))
                if branch is not None:
                    what = frozenset(branch.values.items()), frozenset(branch.conditions), branch.implicit
                    out.setdefault(what, branch)
        return list(out.values())

    def _solve(
        self,
        equations: list[Expr],
        conditions: list[Expr],
        label: tuple[Expr, ...],
        unknowns: list[Symbol] | None = None,
    ) -> Branch | None:
        unknowns = self.unknowns if unknowns is None else unknowns
        try:
            matrix, right = linear_eq_to_matrix(equations, unknowns)
        except NonlinearError:
            return self._reduced(equations, conditions, label, unknowns)
        point = solve_linear(matrix, right, unknowns)
        if point is None:
            return None
        open_ = set().union(*(entry.free_symbols for entry in point))
        free = tuple(u for u in unknowns if u in open_)
        if free:  # a face on which the law leaves a direction free must have no volume of fields
            rule = dict(zip(unknowns, point, strict=True))
            self.loose.append((free, tuple(c.xreplace(rule) for c in conditions), rule))
            return None
        values = {x: _without_divided_signs(tidy_fraction(v)) for x, v in zip(unknowns, point, strict=True)}
        return Branch(values, tuple(tidy_fraction(c.xreplace(values)) for c in conditions), label)

    def _reduced(
        self, equations: list[Expr], conditions: list[Expr], label: tuple[Expr, ...], unknowns: list[Symbol]
    ) -> Branch | None:
        """Eliminate an unknown that stands linearly, and solve the rest; of one equation the last one is implicit."""
        if any(e != 0 and not e.has(self.inner, *unknowns) for e in equations):
            return None  # a relation of parameters, such as "a weight is zero", which no field meets
        fixed = self._number(equations, unknowns) if len(equations) > 1 else None
        if fixed is not None:
            k, rule = fixed
            rest = [e.xreplace(rule) for n, e in enumerate(equations) if n != k]
            others = [u for u in unknowns if u not in rule]
            branch = self._solve(rest, [c.xreplace(rule) for c in conditions], label, others)
            return branch and replace(branch, values={**branch.values, **rule})
        if len(equations) < 2:
            return self._implicit(equations, conditions, label, unknowns)
        if (heard := one_argument(equations, unknowns)) is not None:
            whole, combination, equation, values = heard
            rest = [split_off(c, whole, combination, unknowns).xreplace(values) for c in conditions]
            branch = self._implicit([equation], rest, label, [whole])
            return branch and replace(branch, values={u: values[u] for u in unknowns})
        order = sorted(range(len(equations)), key=lambda k: equations[k].has(self.inner))
        hits = (
            (k, x, slope)
            for k in order
            for x in unknowns
            if (slope := equations[k].diff(x)) != 0 and not slope.has(*unknowns)
        )
        hit = next(hits, None)
        if hit is None:
            raise UnsupportedLaw(
                f"{self.text}: {len(equations)} equations of a branch are non-linear in "
                f"{', '.join(map(str, unknowns))} together.",
                "laws in which all but one unknown can be eliminated linearly",
            )
        k, x, slope = hit
        solved = x - equations[k] / slope
        rule = {x: solved.expand(multinomial=False) if not solved.has(Piecewise) else solved}
        rest = [e.xreplace(rule) for n, e in enumerate(equations) if n != k]
        others = [u for u in unknowns if u != x]
        branch = self._solve(rest, [c.xreplace(rule) for c in conditions], label, others)
        if branch is None:
            return None
        value = rule[x].xreplace(branch.values)
        if branch.implicit is not None:
            value = value.xreplace({self.inner: branch.implicit[1]})
        plain = branch.implicit is None and not value.has(Piecewise)
        tidy = tidy_fraction(value) if plain else value.expand(multinomial=False)  # powers of small sums stay small
        return replace(branch, values={**branch.values, x: tidy})

    def _number(self, equations: list[Expr], unknowns: list[Symbol]) -> tuple[int, dict[Expr, Expr]] | None:
        """An equation that fixes an unknown whatever the fields, as a slope that vanishes at one place; which one."""
        for k, equation in enumerate(equations):
            there = [u for u in unknowns if equation.has(u)]
            if len(there) != 1 or equation.has(self.inner, *self.sources) or not equation.diff(*there).has(*there):
                continue
            try:
                zeros = [z for z in solve(equation, *there) if z.is_real is not False]
            except NotImplementedError:
                continue
            if len(zeros) == 1:
                return k, {there[0]: zeros[0]}
        return None

    def _implicit(
        self, equations: list[Expr], conditions: list[Expr], label: tuple[Expr, ...], unknowns: Sequence[Symbol]
    ) -> Branch | None:
        """One unknown x is left, and the field is a function of it."""
        if len(unknowns) != 1 or not equations:
            return None
        (x,), (equation,) = unknowns, equations
        slope = equation.diff(self.inner)
        if slope == 0:
            # the field has dropped out: x is a number on this branch only if the equation is linear in it
            return None
        if slope.has(self.inner) or (slope.has(x) and not _holds_elsewhere(equation, slope, x)):
            shown = equation.xreplace(dict.fromkeys(self.sources, S.Zero)).xreplace({x: Symbol(x.name)})
            raise UnsupportedLaw(
                f"{self.text}: the field {self.inner} does not stand linearly in {shown} = 0.",
                "laws that contain their random field linearly",
                "where a state multiplies a field, say which root is meant: Complementary(n[i], ...) for n[i]*(...) = "
                "0; the condition R[i] >= 0 beside K[i] - R[i] - R[i]*field = 0",
            )
        psi = (self.inner - equation / slope).expand(multinomial=False)
        conditions = [of_one_sign(c.xreplace({self.inner: psi})) for c in conditions]
        if S.NegativeOne in conditions:
            return None
        return Branch({x: x}, tuple(c for c in conditions if c != S.One), label, (x, psi))


def _holds_elsewhere(equation: Expr, slope: Expr, x: Symbol) -> bool:
    """Whether an equation holds at no x at which what multiplies its field vanishes, as ``x*(x - h) = 0`` does at 0."""
    try:
        zeros = [z for z in solve(slope, x) if z.is_real is not False]
    except NotImplementedError:
        return False
    return all(tidy_fraction(equation.xreplace({x: z})).is_nonzero for z in zeros)


def _without_divided_signs(expr: Expr) -> Expr:
    """One over the sign of a quenched parameter is the sign; where it is zero, a multiplier that is free is zero.

    The sign of a field stays: what is averaged over the field by parts divides by it.
    """
    powers = {p: p.exp for p in expr.atoms(Pow) if isinstance(p.base, sign) and p.exp.is_integer}
    rule = {p: p.base ** (1 if n % 2 else 2) for p, n in powers.items() if _is_quenched(p.base.args[0])}
    return expr.xreplace(rule)


def _is_quenched(expr: Expr) -> bool:
    """Whether an expression has no symbols besides quenched parameters of its site."""
    return bool(expr.args) and (
        isinstance(expr.args[0], Quenched)
        if isinstance(expr, SiteQuantity)
        else all(a.is_number or _is_quenched(a) for a in expr.args)
    )


def _is_split(power: Expr) -> bool:
    """Whether a sum to this power is multiplied out in part: a whole number of factors, and a root."""
    return bool(power.is_Rational and not power.is_integer and abs(power) > 1)


@lru_cache(maxsize=4096)
def tidy_fraction(expr: Expr) -> Expr:
    """Cancel common factors, and give the denominator a positive constant term (or leading sign).

    A power such as ``(x + y)**(3/2)`` stays one: multiplied out it would be several roots of one sum.
    """
    if all(f.is_Rational or f.is_Symbol for term in Add.make_args(expr) for f in Mul.make_args(term)):
        return expr  # products of symbols, added: as tidy as it can be
    sums = {p: p.base ** (S.One / p.exp.q) for p in expr.atoms(Pow) if p.base.is_Add and _is_split(p.exp)}
    roots = {root: Dummy("root", positive=root.is_positive) for root in dict.fromkeys(sums.values())}
    whole = {p: roots[root] ** p.exp.p for p, root in sums.items()} | roots
    top, bottom = fraction(cancel(expr.xreplace(whole)))
    back = {dummy: root for root, dummy in roots.items()}
    top, bottom = top.xreplace(back), bottom.xreplace(back)
    constant = bottom.as_coeff_Add()[0]
    if constant.is_negative or (constant == 0 and bottom.could_extract_minus_sign()):
        top, bottom = (-top).expand(), (-bottom).expand()
    return top / bottom
