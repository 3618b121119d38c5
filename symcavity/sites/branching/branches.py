"""The branches of a single-site law: every choice in its complementary pairs and kinks, solved.

A branch is a set of equations (which member of each pair is zero, which piece of each kink holds) and
a set of inequalities (the rest).  Nothing here knows what the variables mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    Symbol,
    cancel,
    expand_mul,
    factor_terms,
    fraction,
    gcd_terms,
    linear_eq_to_matrix,
    linsolve,
    sign,
    solve,
)
from sympy.core.relational import GreaterThan, LessThan, Relational, StrictGreaterThan, StrictLessThan
from sympy.logic.boolalg import And, Or
from sympy.solvers.solveset import NonlinearError

from symcavity.algebra.signs import sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.sites.choices import Choices

KINKS = (Max, Min, Abs, sign, Heaviside, Piecewise)
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

    def branches(self) -> list[Branch]:
        """Solve every branch; the impossible ones are left out."""
        known = self._settle()
        marks: dict[Any, Symbol] = {}
        self.equations = [self._weighed(e, marks) for e in self.equations]
        self.pairs = [(self._weighed(p, marks), self._weighed(q, marks)) for p, q in self.pairs]
        cases: dict[Any, Expr] = {mark: case for case, mark in marks.items()}
        found = [replace(b, values={**known, **b.values}).where(cases) for b in self._enumerate()]
        self.loose = [
            (free, tuple(c.xreplace(cases) for c in rest), {x: v.xreplace(cases) for x, v in values.items()})
            for free, rest, values in self.loose
        ]
        return found

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
            hit = next(
                (
                    (equation, x)
                    for equation in self.equations
                    for x in self.unknowns
                    if not equation.has(self.inner)
                    and not equation.has(*(u for u in self.unknowns if u != x))
                    and equation.has(x)
                    and not equation.diff(x).has(x)
                ),
                None,
            )
            if hit is None:
                return known
            equation, x = hit
            value = cancel(x - equation / equation.diff(x))
            known = {k: v.xreplace({x: value}) for k, v in known.items()} | {x: value}
            self.equations = [e.xreplace({x: value}) for e in self.equations if e is not equation]
            self.pairs = [(p.xreplace({x: value}), q.xreplace({x: value})) for p, q in self.pairs]
            self.unknowns = [u for u in self.unknowns if u != x]

    def _enumerate(self) -> list[Branch]:
        out: dict[Any, Branch] = {}  # pieces that meet at a kink give the same branch there
        tried = 0
        for equations, flat, conditions in unkinked(
            self.equations, [q for pair in self.pairs for q in pair], self.unknowns
        ):
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            for picks in Choices(equations, pairs, conditions, self.unknowns):
                tried += 1
                if tried > MOST_BRANCHES:
                    raise UnsupportedLaw(f"{self.text} has more than {MOST_BRANCHES} branches.", "fewer")
                zero = [pair[k] for pair, k in zip(pairs, picks, strict=True)]
                rest = [pair[1 - k] for pair, k in zip(pairs, picks, strict=True)]
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
        found = linsolve((matrix, right), *unknowns)
        if not found:
            return None
        (point,) = found
        free = tuple(u for u in unknowns if any(entry.has(u) for entry in point))
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
        if slope.has(self.inner) or slope.has(x):
            raise UnsupportedLaw(
                f"{self.text}: the field does not stand linearly in {equation} = 0.",
                "laws that contain their random field linearly",
                "where a state multiplies a field, divide by it: Complementary(n[i], ...) for n[i]*(...) = 0; "
                "Complementary(R[i], 1 + field - K[i]/R[i]) for K[i] - R[i] - R[i]*field",
            )
        psi = (self.inner - equation / slope).expand(multinomial=False)
        conditions = [_of_one_sign(c) for c in conditions]
        if S.NegativeOne in conditions:
            return None
        return Branch({x: x}, tuple(c for c in conditions if c != S.One), label, (x, psi))


def one_argument(
    equations: Sequence[Expr], unknowns: Sequence[Symbol]
) -> tuple[Symbol, Expr, Expr, dict[Symbol, Expr]] | None:
    """All unknowns by one combination of them, if all that is not linear depends on it alone; None where it does not.

    Returns
    -------
    (symbol, combination, equation, values)
        A symbol, the combination that it stands for, the equation that it obeys, and every unknown in terms of it.
    """
    rows = [[s for t in Add.make_args(e) for s in Add.make_args(expand_mul(t, deep=False))] for e in equations]
    found: dict[Expr, list[Expr]] = {}

    def bends(expr: Expr) -> bool:
        return any(expr.diff(u).has(*unknowns) for u in unknowns)

    def collect(expr: Expr) -> None:
        if expr.has(*unknowns) and not bends(expr):
            found[expr] = [expr.diff(u) for u in unknowns]
        elif expr.has(*unknowns):
            for arg in expr.args:
                collect(arg)

    for term in (t for row in rows for t in row if bends(t)):
        collect(term)
    first = min(found.values(), key=str, default=[])
    if sum(s != 0 for s in first) < 2:
        return None
    heard = gcd_terms(Add(*(s * u for s, u in zip(first, unknowns, strict=True))))
    common, _ = heard.as_independent(*unknowns, as_Add=False)
    first = [cancel(s / common) for s in first]
    lead = next(k for k, s in enumerate(first) if s != 0)
    shares = {e: cancel(slopes[lead] / first[lead]) for e, slopes in found.items()}
    if any(cancel(s - shares[e] * f) for e, slopes in found.items() for s, f in zip(slopes, first, strict=True)):
        return None
    whole, combination = Dummy("u", real=True), Add(*(s * u for s, u in zip(first, unknowns, strict=True)))
    zero = dict.fromkeys(unknowns, S.Zero)
    rule = {e: share * whole + e.xreplace(zero) for e, share in shares.items()}
    marks: dict[Expr, Symbol] = {}  # what depends on the combination is a number to the equations of the unknowns

    def put(row: list[Expr]) -> Expr:
        bent, plain = (Add(*(t for t in row if bends(t) is b)) for b in (True, False))
        if bent != 0:
            plain = split_off(plain, whole, combination, unknowns)
            bent, plain = bent + plain.coeff(whole) * whole, plain.xreplace({whole: S.Zero})
        bent = bent.xreplace(rule)
        return plain + (bent if bent.has(*unknowns) or not bent else marks.setdefault(bent, Dummy("b")))

    try:
        matrix, right = linear_eq_to_matrix(list(map(put, rows)), list(unknowns))
    except NonlinearError:
        return None
    point = next(iter(linsolve((matrix, right), *unknowns)), None)
    if point is None or any(v.has(*unknowns) for v in point):
        return None
    back = {mark: bent for bent, mark in marks.items()}
    values = dict(zip(unknowns, point, strict=True))
    gap = fraction(cancel(whole - combination.xreplace(values)))[0]
    return whole, combination, gap.xreplace(back), {u: v.xreplace(back) for u, v in values.items()}


def split_off(expr: Expr, whole: Symbol, combination: Expr, unknowns: Sequence[Symbol]) -> Expr:
    """An expression with a multiple of a combination named, if none of its unknowns is left besides it."""
    parts = {u: rate for u in unknowns if (rate := combination.diff(u)) != 0}
    share = next((cancel(turn / rate) for u, rate in parts.items() if (turn := expr.diff(u)) != 0), S.Zero)
    rest = (expr - share * combination).expand()
    return expr if share == 0 or rest.has(*parts) else rest + share * whole


def _of_one_sign(condition: Expr) -> Expr:
    """The factors of a condition that may be positive and negative; 1 or -1 if there is none, as for ``exp(x)``."""
    if condition.is_polynomial(*condition.free_symbols):
        return condition
    parts = {f: sign_of(f) for f in Mul.make_args(factor_terms(condition))}
    return Mul(*(known or f for f, known in parts.items()))


def unkinked(
    equations: Sequence[Expr], others: Sequence[Expr], unknowns: Sequence[Symbol]
) -> Iterator[tuple[list[Expr], list[Expr], list[Expr]]]:
    """Yield (equations, others, conditions) for every choice of pieces of the kinks in the unknowns."""
    count = len(equations)

    def go(exprs: list[Expr], conditions: list[Expr]) -> Iterator[tuple[list[Expr], list[Expr], list[Expr]]]:
        kink = _innermost([*exprs, *conditions], unknowns)
        if kink is None:
            yield exprs[:count], exprs[count:], conditions
            return
        for value, new in _pieces(kink):
            rule = {kink: value}
            before = [c.xreplace(rule) for c in conditions]
            if not any(_contradict(a, b, unknowns) for a in before for b in new):
                yield from go([_one_sided(e.xreplace(rule), kink, value) for e in exprs], before + new)

    yield from go([*equations, *others], [])


def _contradict(one: Expr, two: Expr, unknowns: Sequence[Symbol]) -> bool:
    """Whether two linear expressions are never both non-negative: a positive combination is a negative constant."""
    x = next((u for u in unknowns if one.has(u) and two.has(u)), None)
    if x is None or one.has(*KINKS) or two.has(*KINKS):
        return False
    ratio = -one.diff(x) / two.diff(x)
    if ratio.has(*unknowns) or sign_of(ratio) != 1:
        return False
    total = (one + ratio * two).expand()
    return not total.has(*unknowns) and sign_of(total) == -1


def _one_sided(expr: Expr, kink: Expr, value: Expr) -> Expr:
    """Set the sign and the step of a kink's argument along with the kink itself."""
    if isinstance(kink, sign | Heaviside | Abs):
        argument = kink.args[0]
        up = value in (S.One, argument)
        rule = {
            sign(argument): S.One if up else S.NegativeOne,
            Abs(argument): argument if up else -argument,
            **{h: S.One if up else S.Zero for h in expr.atoms(Heaviside) if h.args[0] == argument},
        }
        return expr.xreplace(rule)
    return expr


def _innermost(exprs: Sequence[Expr], unknowns: Sequence[Symbol]) -> Expr | None:
    kinks = {k for e in exprs for k in e.atoms(*KINKS) if k.has(*unknowns)}
    found = sorted(kinks, key=lambda k: (k.count_ops(), str(k)))
    for kink in found:
        inner = [k for arg in kink.args for k in arg.atoms(*KINKS) if k.has(*unknowns)]
        if not inner:
            return kink
    return None


def _pieces(kink: Expr) -> list[tuple[Expr, list[Expr]]]:
    """The pieces of a kink: (value, expressions that must not be negative)."""
    if isinstance(kink, Abs | sign | Heaviside):
        a = kink.args[0]
        high = {Abs: a, sign: S.One, Heaviside: S.One}[type(kink)]
        low = {Abs: -a, sign: S.NegativeOne, Heaviside: S.Zero}[type(kink)]
        return [(high, [a]), (low, [-a])]
    if isinstance(kink, Max | Min):
        flip = 1 if isinstance(kink, Max) else -1
        return [(a, [flip * (a - b) for b in kink.args if b != a]) for a in kink.args]
    out: list[tuple[Expr, list[Expr]]] = []
    failed: list[list[Expr]] = [[]]
    for value, condition in kink.args:
        if condition == S.true:
            out += [(value, list(conds)) for conds in failed]
            break
        for case in condition.args if isinstance(condition, Or) else [condition]:
            holds = [_non_negative(part) for part in (case.args if isinstance(case, And) else [case])]
            out += [(value, [*conds, *holds]) for conds in failed]
            # it fails at the first inequality, or at the second and not the first: these do not overlap
            failed = [[*conds, *holds[:k], -holds[k]] for conds in failed for k in range(len(holds))]
    return out


def piece_of(kink: Expr, last: bool) -> Expr:
    """One piece of a kink: the first, or the last."""
    pieces = kink.args if isinstance(kink, Piecewise) else None
    return pieces[-1 if last else 0][0] if pieces else _pieces(kink)[-1 if last else 0][0]


def decided(kink: Expr, nonnegative: Sequence[Expr]) -> Expr | None:
    """The piece of a kink that holds where some expressions are not negative, such as ``|w|`` where ``w >= 0``."""

    def known(expr: Expr) -> bool:
        return any(sign_of(cancel(expr / g)) == 1 for g in nonnegative)

    return next((value for value, needed in _pieces(kink) if all(c == 0 or known(c) for c in needed)), None)


def _non_negative(condition: Any) -> Expr:
    if isinstance(condition, Relational):
        if isinstance(condition, GreaterThan | StrictGreaterThan):
            return condition.lhs - condition.rhs
        if isinstance(condition, LessThan | StrictLessThan):
            return condition.rhs - condition.lhs
    raise UnsupportedLaw(
        f"The condition {condition} of a Piecewise is not supported.",
        "inequalities, And(...) of inequalities, and Or(...) of these",
    )



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


@lru_cache(maxsize=4096)
def tidy_fraction(expr: Expr) -> Expr:
    """Cancel common factors, and give the denominator a positive constant term (or leading sign)."""
    top, bottom = fraction(cancel(expr))
    constant = bottom.as_coeff_Add()[0]
    if constant.is_negative or (constant == 0 and bottom.could_extract_minus_sign()):
        top, bottom = (-top).expand(), (-bottom).expand()
    return top / bottom
