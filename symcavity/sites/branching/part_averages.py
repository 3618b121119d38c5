"""Averages over a site whose law falls into parts: over the field of one after the other, each given those before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from sympy import Add, And, Dummy, Expr, Heaviside, Matrix, Mul, Piecewise, S, Symbol, cancel, latex, sign, sqrt
from sympy.core.relational import Ge, Gt, Le, Lt

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.joint import JointLaw, LawSymbol
from symcavity.algebra.products import Half, Pairing, ProductAverage
from symcavity.model.averages import SiteResponse
from symcavity.model.families import families
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.sites.branching.solution import SiteSolution

MOST_PARTS = 2  # in one product: averages over the fields of more are nested too deeply
STEPS = (sign, Heaviside, Gt, Ge, Lt, Le)


def average_by_parts(ensemble: Any, body: Expr, within: Callable[[Expr, set[Quenched]], Expr]) -> Expr | None:
    """The average of sums of products of what belongs to single parts; None for anything else.

    Parameters
    ----------
    ensemble : SiteEnsemble
        Of a solution that has parts.
    body : Expr
    within : callable
        What is done to the average over one part at the field of another one, with the quenched families that no
        other part knows.
    """
    parts = SiteParts(ensemble)
    body = body.xreplace({r: S.Zero for r in body.atoms(SiteResponse) if parts.is_crossed(r)})
    if (owner := parts.owner(body)) is not None:
        found: Expr = parts.alone[owner].over_fields(body)
        return found
    total = S.Zero
    for term in Add.make_args(_as_products(body).expand()):
        factors, beside = dict[int, Expr](), S.One
        for factor in Mul.make_args(term):
            owners = parts.owners(factor)
            if len(owners) > 1:
                return None
            if owners:
                factors[owners[0]] = factors.get(owners[0], S.One) * factor
            else:
                beside *= factor
        if (owner := parts.owner(term)) is not None:
            total += parts.alone[owner].over_fields(term)
        elif not 0 < len(factors) <= MOST_PARTS:
            return None
        else:
            number, told = beside.as_independent(*parts.told, as_Add=False) if parts.told else (beside, S.One)
            found = parts.product([(k, factors[k]) for k in sorted(factors)], told, within)
            if found is None:
                return None
            total += number * found
    return total


def _as_products(body: Expr) -> Expr:
    """An expression in which what is zero but where several events happen is a product, with a factor for each."""
    return body.replace(
        lambda e: isinstance(e, Piecewise) and len(e.args) == 2 and e.args[1][0] == 0 and isinstance(e.args[0][1], And),
        lambda e: Mul(e.args[0][0], *(Piecewise((S.One, test), (S.Zero, True)) for test in e.args[0][1].args)),
    )


class SiteParts:
    """The parts of a solved site, each as an ensemble over the fields that it hears."""

    def __init__(self, ensemble: Any) -> None:
        self.ensemble = ensemble
        self.alone = [self._alone(part) for part in ensemble.solution.parts]
        counts = [x for part in self.alone for x in (*part.fields, *part.solution.unknowns)]
        inner = [part.fields[-1] for part in self.alone]
        fields = [f for part in self.alone for f in part.outer if f not in inner]
        zero = dict.fromkeys(ensemble.solution.sources, S.Zero)
        values = [(q, v.xreplace(zero)) for part in self.alone for q, v in part.solution.branches[0].values.items()]
        self.known = {q: v for q, v in values if v in fields}
        self.told: tuple[Any, ...] = (*dict.fromkeys(fields), *self.known)
        self.own = [
            tuple(x for x in (part.fields[-1], *part.solution.unknowns) if x not in self.told and counts.count(x) == 1)
            for part in self.alone
        ]

    def _alone(self, part: SiteSolution) -> Any:
        """The ensemble of one part, over its fields."""
        whole = self.ensemble
        fields = (*(f for f in whole.fields if f != part.inner and f in part.free_symbols), part.inner)
        own = {(a, b): whole.covariance[a, b] for a in fields for b in fields}
        sources = {name: row for name, row in whole.sources.items() if row[1] in fields}
        return replace(whole, solution=part, fields=fields, covariance=own, sources=sources)

    def owners(self, expr: Expr) -> list[int]:
        """The parts whose own states or field stand in an expression."""
        return [k for k, own in enumerate(self.own) if expr.has(*own)]

    def owner(self, expr: Expr) -> int | None:
        """The one part that hears all that an expression holds; the first of several for what they all know."""
        told = {x for x in self.told if expr.has(x)}
        wanted = self.owners(expr)
        hears = [k for k, part in enumerate(self.alone) if told <= {*part.fields, *part.solution.unknowns}]
        found = [k for k in hears if set(wanted) <= {k}]
        return found[0] if found else None

    def is_crossed(self, response: SiteResponse) -> bool:
        """Whether a state is asked for its response to a field that it does not hear."""
        field = self.ensemble.sources[response.field][1] if response.field in self.ensemble.sources else None
        own = self.owners(response.state)
        return field is not None and bool(own) and field not in self.alone[own[0]].fields

    def heard_in(self, body: Expr) -> tuple[Symbol, ...]:
        """The fields that an expression holds, or that a part of which it holds states hears."""
        heard = {f for k in self.owners(body) for f in self.alone[k].fields} | (body.free_symbols & set(self.told))
        return tuple(f for f in self.ensemble.fields if f in heard or body.has(f))

    def feels(self, body: Expr, label: SiteQuantity) -> bool:
        """Whether an expression depends on a label, itself or by the states in it."""
        felt = [k for k, part in enumerate(self.alone) if part.solution.holds(label)]
        through = [r for r in body.atoms(SiteResponse) if r.field == label.family.given and not self.is_crossed(r)]
        return bool(
            body.has(label) or set(felt) & {k for e in (body, *(r.state for r in through)) for k in self.owners(e)}
        )

    # -- products of several parts -----------------------------------------------------------------

    def product(self, several: Sequence[tuple[int, Expr]], told: Expr, within: Any) -> Expr | None:
        """The average of a product of what single parts know, and of what all know; None of responses that jump."""
        outer = [f for f in self.ensemble.fields if f in self.told and self._matters(f, several, told)]
        if len(several) == MOST_PARTS and len(outer) > 1:
            return self._halved(several, told, within)
        if any(e.has(SiteResponse) for _, e in several):
            return None
        total = S.Zero
        for rule, here in self._sides(outer, several, told):
            inside = [(k, e.xreplace(self.known).xreplace(rule)) for k, e in several]
            total += self._nested(outer, inside, here, rule, within)
        size, slopes = _in_turn([[self.ensemble.covariance[a, b] for b in outer] for a in outer], 0)
        zs = [Dummy(f"z_{k + 1}", real=True) for k in range(len(outer))]
        beside = [sqrt(v) * z for v, z in zip(size, zs, strict=True)]
        fields = {f: beside[r] + Add(*(slopes[r][c] * beside[c] for c in range(r))) for r, f in enumerate(outer)}
        total = total.xreplace(fields)
        for z in reversed(zs):
            total = GaussianAverage(total, z)
        return total

    def _halved(self, several: Sequence[tuple[int, Expr]], told: Expr, within: Any) -> Expr | None:
        """The average of a product of two parts each of which knows a field that the other one does not."""
        symbols = {f: LawSymbol(str(f), latex(f)) for f in self.ensemble.fields}
        halves, bodies = [], []
        rest = Mul.make_args(told)
        for place, (k, e) in enumerate(several):
            part = self.alone[k]
            names = {q for q, f in self.known.items() if f in part.fields} | set(part.fields)
            own, rest = [f for f in rest if f.has(*names)], [f for f in rest if not f.has(*names)]
            answers = {r: self._answer(part, r) for r in e.atoms(SiteResponse)}
            if any(a is None for a in answers.values()):
                return None
            whole = Mul(e.xreplace(answers), *own).xreplace(self.known)
            unknowns = [q for q in part.solution.unknowns if q not in self.known and whole.has(q)]
            values = {q: _in_cases(part.solution, [r.values[q] for r in part.solution.regions]) for q in unknowns}
            alone = set(families([whole, *values.values()], Quenched))
            for other, f in (pair for n, pair in enumerate(several) if n != place):
                there = self.alone[other].solution.branches
                exprs = [f, *(v for b in there for v in (*b.values.values(), *b.conditions))]
                alone -= set(families(exprs, Quenched))
            if alone:
                whole, values = within(whole.xreplace(values), alone), {}
            states = {q: LawSymbol(q.family.name, latex(q.xreplace({part.kind.index: S.Zero}))) for q in values}
            rule = {**symbols, **states}
            definitions = [(states[q], v.xreplace(rule)) for q, v in values.items()]
            law = JointLaw((), [symbols[f] for f in part.fields], (), (), definitions, ())
            lower = [self.ensemble.covariance[a, b] for n, a in enumerate(part.fields) for b in part.fields[: n + 1]]
            bodies.append(whole.xreplace(rule))
            halves.append(Half(bodies[-1], law, lower))
        one, other = (self.alone[k].fields for k, _ in several)
        cross = [self.ensemble.covariance[a, b] for a in one for b in other]
        number = Mul(*rest)
        return number * ProductAverage(bodies[0] * bodies[1], [Pairing(halves[0], halves[1], cross)])

    def _answer(self, part: Any, response: SiteResponse) -> Expr | None:
        """A response to the field of a part as a function of the fields; None where the state jumps."""
        row = part.sources.get(response.field)
        if row is None or row[1] != part.fields[-1] or response.state in part.solution.jumping:
            return None
        return _in_cases(part.solution, [part.response(r.values, None, response) for r in part.solution.regions])

    def _matters(self, field: Symbol, several: Sequence[tuple[int, Expr]], told: Expr) -> bool:
        names = (field, *(q for q, f in self.known.items() if f == field))
        return told.has(*names) or any(e.has(*names) or field in self.alone[k].fields for k, e in several)

    def _sides(self, outer: Sequence[Symbol], several: Any, told: Expr) -> list[tuple[dict[Any, Any], Expr]]:
        """Each side of what the laws switch with, as what it makes of the switches, and where it is."""
        zero = dict.fromkeys(self.ensemble.solution.sources, S.Zero)
        exprs = [told.xreplace(self.known), *(e.xreplace(self.known) for _, e in several)]
        for k, _ in several:
            solution = self.alone[k].solution
            exprs += [v for b in solution.branches for v in (*b.values.values(), *b.conditions)]
            exprs += [
                solution.reflection,
                *(end for r in solution.regions for end in (r.low, r.high) if end is not None),
            ]
        switches = sorted({s for e in exprs for s in e.atoms(*STEPS) if s.has(*outer)} if outer else set(), key=str)
        inner = [part.fields[-1] for part in self.alone]
        switches = [s for s in switches if not s.has(*inner, *(x for own in self.own for x in own))]
        arguments: list[Expr] = []
        for s in switches:
            at = _argument(s).xreplace(zero)
            if not any((at - way * a).expand() == 0 for a in arguments for way in (1, -1)):
                arguments.append(at)
        out = []
        for signs in product((1, -1), repeat=len(arguments)):
            rule: dict[Any, Any] = {}
            for s in switches:
                at = _argument(s).xreplace(zero)
                way = next(
                    w * t for a, t in zip(arguments, signs, strict=True) for w in (1, -1) if (at - w * a).expand() == 0
                )
                event = S.true if way > 0 else S.false
                rule[s] = S(way) if isinstance(s, sign) else S((1 + way) // 2) if isinstance(s, Heaviside) else event
            here = Mul(*(Heaviside(t * a) for a, t in zip(arguments, signs, strict=True)))
            out.append((rule, here * told.xreplace(self.known).xreplace(rule)))
        return out

    def _nested(
        self, outer: list[Symbol], several: Sequence[tuple[int, Expr]], told: Expr, rule: Any, within: Any
    ) -> Expr:
        """The average over the field of one part after the other, each given those before it and those of no state."""
        order = [*outer, *(self.alone[k].fields[-1] for k, _ in several)]
        size, slopes = _in_turn([[self.ensemble.covariance[a, b] for b in order] for a in order], len(outer))
        there: Expr = S.One
        means: dict[Symbol, Expr] = {}
        for row, x in enumerate(order[len(outer) :], start=len(outer)):
            means[x] = Add(*(slopes[row][c] * order[c] for c in range(row)))
        known: list[list[Expr]] = []
        for k, e in several:
            x, solution = self.alone[k].fields[-1], self.alone[k].solution.xreplace(rule)
            pieces = [v for b in solution.branches for v in (*b.values.values(), *b.conditions)]
            known.append([e, means[x], size[order.index(x)], *pieces])
        for place in reversed(range(len(several))):
            k, e = several[place]
            part = self.alone[k]
            x = part.fields[-1]
            moved = replace(
                part,
                solution=part.solution.xreplace(rule).shifted(means[x]),
                fields=(x,),
                covariance={(x, x): size[order.index(x)]},
                sources={},
            )
            there = moved.over_fields(e.xreplace({x: x + means[x]}) * there)
            if place:
                others = [v for n, row in enumerate(known) if n < place for v in row] + [told]
                there = within(there, set(families([there], Quenched)) - set(families(others, Quenched)))
        return told * there


def _in_cases(solution: SiteSolution, values: Sequence[Expr]) -> Expr:
    """The quantities of each region as functions of the fields, by cases in the last one."""
    zero = dict.fromkeys(solution.sources, S.Zero)
    field = (solution.reflection * solution.inner).xreplace(zero)
    cases = [
        (value.xreplace(zero), S.true if r.high is None else Lt(field, r.high.xreplace(zero)))
        for value, r in zip(values, solution.regions, strict=True)
    ]
    return Piecewise(*cases)


def _argument(switch: Any) -> Expr:
    """What is positive on one side of a step or comparison."""
    if isinstance(switch, sign | Heaviside):
        return switch.args[0]
    return switch.gts - switch.lts


def _in_turn(rows: list[list[Expr]], first: int) -> tuple[list[Expr], list[list[Expr]]]:
    """Fields one after the other: what varies of each beside those before it, and how it follows these.

    The ``first`` of them stand for themselves, all others for what they vary beside those before them.
    """
    count = len(rows)
    whole = Matrix([row[:first] for row in rows[:first]]).inv() if first else None
    size, slopes = [S.Zero] * count, [[S.Zero] * count for _ in rows]
    for k in range(first, count):
        if whole is not None:
            slopes[k][:first] = [cancel(e) for e in Matrix([rows[k][:first]]) * whole]

    def left(a: int, b: int) -> Expr:
        return rows[a][b] - Add(*(slopes[a][c] * rows[c][b] for c in range(first)))

    for k in range(first, count):
        for c in range(first, k):
            rest = left(k, c) - Add(*(slopes[k][d] * slopes[c][d] * size[d] for d in range(first, c)))
            slopes[k][c] = cancel(rest / size[c])
        size[k] = cancel(left(k, k) - Add(*(slopes[k][d] ** 2 * size[d] for d in range(first, k))))
    return size, slopes
