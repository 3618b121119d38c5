"""A bipartite system: the laws of the two sides, the fields that couple them, and global conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sympy import Expr, S, Sum, Symbol

from symcavity.errors import DeclarationError
from symcavity.model.equations import Equation, as_equation, as_list, read_fixed
from symcavity.model.fields import FieldBook, RandomField, extract_fields, free_side, site_sum
from symcavity.model.quantities import (
    ALIASES,
    DATUM,
    FEATURE,
    INDEX,
    SIZE,
    Complementary,
    Datum,
    Feature,
    Field,
    Global,
    N,
    P,
    Quenched,
    SiteQuantity,
    alpha,
    families,
    site_quantities,
)
from symcavity.model.refusals import check_names, check_words, parameters_of
from symcavity.model.support import Anchor, Support, SupportFunction, VectorField, stays_whole


@dataclass(frozen=True)
class Law:
    """The law of one side: what fixes the states of a site, given its random fields.

    Attributes
    ----------
    side : str
        ``'feature'`` or ``'datum'``.
    unknowns : tuple of SiteQuantity
        The variables of a site, at the canonical index.
    equations : tuple of Equation
        They contain the placeholders of the random fields; each placeholder stands in one equation,
        linearly, and that equation carries the source.
    pairs : tuple of Complementary
        Complementarity conditions.
    fields : tuple of RandomField
        The random fields that this side hears.
    """

    side: str
    unknowns: tuple[SiteQuantity, ...]
    equations: tuple[Equation, ...]
    pairs: tuple[Complementary, ...]
    fields: tuple[RandomField, ...]

    @property
    def index(self) -> Symbol:
        """The canonical site index."""
        return INDEX[self.side]

    def carrier(self, random_field: RandomField) -> Equation:
        """The equation in which a random field stands (and which therefore carries a source)."""
        return next(e for e in self.equations if e.difference.has(random_field.symbol))

    def coefficient(self, random_field: RandomField) -> Expr:
        """The factor of the field on the right-hand side of its equation."""
        return self.carrier(random_field).rhs.diff(random_field.symbol)

    def quenched(self) -> list[Any]:
        """The families of quenched parameters in this side's law and statistics."""
        side_slots = (self.side,)
        exprs = [e.difference for e in self.equations] + [q for p in self.pairs for q in p.pair]
        exprs += [f.coupling.family.variance for f in self.fields]
        return [q for q in families(exprs, Quenched) if q.slots == side_slots]

    def written(self) -> list[Equation]:
        """The equations with their random fields written out as sums."""
        rule = {f.symbol: f.as_sum for f in self.fields}
        return [e.xreplace(rule) for e in self.equations]


class System:
    """A system of two kinds of sites, read and validated: what :class:`symcavity.BipartiteSystem` holds."""

    def __init__(
        self,
        equations: Sequence[Any],
        conditions: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        *,
        name: str = "",
        source: dict[str, str] | None = None,
        convex: bool = False,
        record: Any = None,
    ) -> None:
        self.name = name
        self.source = dict(source or {})
        self.convex = convex
        self.record = record
        self.declared = tuple(as_equation(e, "an entry of equations") for e in as_list(equations, "equations"))
        self.fixed = tuple(read_fixed(as_list(fixed, "fixed")))
        conditions = as_list(conditions, "conditions")
        book = FieldBook()
        site: dict[str, list[Equation]] = {FEATURE: [], DATUM: []}
        globals_: list[tuple[str, Expr]] = []
        for equation in _componentwise(self.declared):
            where = f"the equation {equation}"
            check_words(equation.difference, where)
            side = free_side(equation.difference, where)
            if side is None:
                globals_.append(_global_condition(equation, where))
                continue
            lhs = extract_fields(equation.lhs, side, book, where)
            rhs = extract_fields(equation.rhs, side, book, where)
            site[side].append(Equation(lhs, rhs))
        pairs: dict[str, list[Complementary]] = {FEATURE: [], DATUM: []}
        for condition in conditions:
            if not isinstance(condition, Complementary):
                raise DeclarationError(
                    f"The condition {condition!r} is not supported.", "Complementary(p, q), meaning 0 <= p ⊥ q >= 0"
                )
            for pair in _pair_components(condition):
                side = self._read_pair(pair)
                members = (extract_fields(q, side, book, f"the condition {pair}") for q in pair.pair)
                pairs[side].append(Complementary(*members))
        self.global_conditions = tuple(globals_)
        self._check_names(conditions)
        taken = {q.family.name for q in self._declared_quantities(conditions)} | {
            s.name for e in self.declared for s in parameters_of(e.difference)
        }
        self.feature = _law(FEATURE, site, pairs, book, taken)
        self.datum = _law(DATUM, site, pairs, book, taken)
        self._check()

    # -- reading ---------------------------------------------------------------------------------

    @staticmethod
    def _read_pair(pair: Complementary) -> str:
        where = f"the condition {pair}"
        for q in pair.pair:
            check_words(q, where)
        sides = {free_side(q, where) for q in pair.pair} - {None}
        if len(sides) != 1:
            raise DeclarationError(
                f"The condition {pair} has {'quantities of both sides' if sides else 'no site index'}.",
                "conditions between quantities of one site",
            )
        return str(sides.pop())

    def _declared_exprs(self, conditions: Sequence[Complementary]) -> list[Expr]:
        out = [e.difference for e in (*self.declared, *self.fixed)]
        return out + [q for pair in conditions for q in pair.pair]

    def _check_names(self, conditions: Sequence[Complementary]) -> None:
        check_names(self._declared_exprs(conditions))

    def _declared_quantities(self, conditions: Sequence[Complementary]) -> list[SiteQuantity]:
        return [q for expr in self._declared_exprs(conditions) for q in site_quantities(expr)]

    # -- structure -------------------------------------------------------------------------------

    @property
    def laws(self) -> dict[str, Law]:
        """The laws by side."""
        return {FEATURE: self.feature, DATUM: self.datum}

    @property
    def globals(self) -> tuple[Global, ...]:
        """The global variables."""
        found = set().union(*(e.atoms(Global) for e in self._expressions()))
        return tuple(sorted(found, key=lambda g: g.name))

    @property
    def parameters(self) -> tuple[Symbol, ...]:
        """The plain parameters, sorted by name."""
        found = set().union(*(parameters_of(e) for e in self._expressions()))
        placeholders = {f.symbol for law in self.laws.values() for f in law.fields}
        return tuple(sorted(found - placeholders, key=lambda s: s.name))

    @property
    def quenched(self) -> tuple[Quenched, ...]:
        """The families of quenched parameters, sorted by name."""
        return tuple(sorted(families(self._expressions(), Quenched), key=lambda q: q.name))

    @property
    def support_functions(self) -> tuple[SupportFunction, ...]:
        """The support functions of convex sets in the laws, sorted by name."""
        found = {node.g for e in self._expressions() for node in e.atoms(Support, Anchor)}
        return tuple(sorted(found, key=lambda g: g.name))

    @property
    def variables(self) -> dict[str, SiteQuantity]:
        """The site variables by name, multipliers and local fields included."""
        return {q.family.name: q for law in self.laws.values() for q in law.unknowns}

    def __getitem__(self, name: str) -> Any:
        """The family of the variable with the given name: ``system["lambda"][mu]``."""
        try:
            return self.variables[ALIASES.get(name, name)].family
        except KeyError:
            raise DeclarationError(
                f"The system has no variable named {name!r}.", ", ".join(self.variables)
            ) from None

    def _expressions(self) -> list[Expr]:
        out: list[Expr] = []
        for law in (self.feature, self.datum):
            out += [e.difference for e in law.equations]
            out += [q for p in law.pairs for q in p.pair]
            out += [f.emission for f in law.fields] + [f.coupling.family.variance for f in law.fields]
        out += [body for _, body in self.global_conditions]
        out += [e.difference for e in self.fixed]
        return out

    def _check(self) -> None:
        for law in self.laws.values():
            if not law.fields:
                other = "(i, 1, N)" if law.side == DATUM else "(mu, 1, P)"
                raise DeclarationError(
                    f"No equation of the {law.side} sites contains a sum over the other side.",
                    "a bipartite system: each side hears the other through couplings",
                    f"a term Sum(x[mu, i]*..., {other})",
                )
            for f in law.fields:
                for state in f.states():
                    if state not in self.laws[_other(law.side)].unknowns:
                        raise DeclarationError(
                            f"{state} is heard through {f.coupling} but nothing determines it.",
                            "an equation or a condition for every variable",
                        )
            count = len(law.equations) + len(law.pairs)
            if count != len(law.unknowns):
                names = ", ".join(map(str, law.unknowns))
                raise DeclarationError(
                    f"The {law.side} sites have {len(law.unknowns)} variables ({names}) "
                    f"and {count} equations and conditions.",
                    "as many equations and complementarity conditions as variables, on each side",
                )
        for condition in self.fixed:
            for q in site_quantities(condition.lhs, Feature, Datum, Field):
                if not any(q in law.unknowns for law in self.laws.values()):
                    raise DeclarationError(
                        f"The fixed condition {condition} is about {q}, which the system does not contain.",
                        ", ".join(str(u) for law in self.laws.values() for u in law.unknowns),
                    )
        if len(self.fixed) > len(self.parameters) + 1:
            raise DeclarationError(
                f"There are {len(self.fixed)} fixed conditions, and only alpha"
                + "".join(f", {p}" for p in self.parameters) + " can adapt to them.",
                "one condition for each quantity that adapts: alpha or a parameter",
            )
        if len(self.globals) != len(self.global_conditions):
            raise DeclarationError(
                f"There are {len(self.globals)} global variables and {len(self.global_conditions)} global conditions.",
                "one global condition, such as Eq(Sum(y[mu]*lam[mu], (mu, 1, P)), 0), for each global variable",
            )

    def assuming_positive(self, parameters: Sequence[Quenched]) -> Self:
        """Return the same system with quenched parameters declared positive."""
        rule = {q: q.assumed_positive() for q in parameters}

        def marked(expr: Any) -> Any:
            found = {q: rule[q.family][q.indices] for q in expr.atoms(SiteQuantity) if q.family in rule}
            return expr.xreplace(found)

        equations = [Equation(marked(e.lhs), marked(e.rhs)) for law in self.laws.values() for e in law.written()]
        equations += [
            Equation(marked(Sum(body, (INDEX[side], 1, SIZE[side]))), S.Zero) for side, body in self.global_conditions
        ]
        return type(self)(
            equations,
            [marked(pair) for law in self.laws.values() for pair in law.pairs],
            [Equation(marked(e.lhs), marked(e.rhs)) for e in self.fixed],
            name=self.name,
            source=self.source,
            convex=self.convex,
            record=self.record,
        )

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = [f"Bipartite system{': ' + self.name if self.name else ''}"]
        for law in (self.feature, self.datum):
            lines.append(f"  {law.side} sites {law.index} = 1..{SIZE[law.side]}")
            lines += [f"    {e}" for e in law.written()] + [f"    {p}" for p in law.pairs]
        lines += [f"  global: sum over {INDEX[s]} of {body} = 0" for s, body in self.global_conditions]
        lines += [f"  fixed: {e}" for e in self.fixed]
        return "\n".join(lines)

    __repr__ = __str__


def _other(side: str) -> str:
    return DATUM if side == FEATURE else FEATURE


def _componentwise(equations: Iterable[Equation]) -> list[Equation]:
    """Write an equation with a free component index once for each value of the index."""
    out = []
    for equation in equations:
        bound = {lim[0] for s in equation.difference.atoms(Sum) for lim in s.limits}
        free: dict[Symbol, Any] = {}
        for q in site_quantities(equation.difference):
            for index in q.indices[len(q.family.slots) :]:
                if index.is_Symbol and index not in bound:
                    free[index] = q.family.components
        for q in site_quantities(equation.difference):
            if stays_whole(q):
                free.pop(q.indices[-1], None)
        rows = [equation]
        for index, (_, low, high) in sorted(free.items(), key=lambda item: item[0].name):
            if not (low.is_Integer and high.is_Integer):
                raise DeclarationError(
                    f"The component index {index} runs over {low}..{high}.", "explicit ranges, such as (a, 1, 2)"
                )
            rows = [row.xreplace({index: low + k}) for row in rows for k in range(int(high - low) + 1)]
        out += rows
    return out


def _pair_components(pair: Complementary) -> list[Complementary]:
    rows = _componentwise([Equation(*pair.pair)])
    return [Complementary(row.lhs, row.rhs) for row in rows]


def _global_condition(equation: Equation, where: str) -> tuple[str, Expr]:
    """Read ``sum over one side of body = 0``; terms in proportion to N or P are shared out among the sites."""
    total: Expr = S.Zero
    shared: Expr = S.Zero  # in units of N
    side: str | None = None
    for term in equation.difference.expand().as_ordered_terms():
        factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
        if isinstance(rest, Sum):
            term_side, body = site_sum(rest, where)
            if body.has(Sum):
                raise DeclarationError(f"A double sum stands in {where}.", "global conditions that sum over one side")
            if side not in (None, term_side):
                raise DeclarationError(f"{where} sums over both sides.", "global conditions that sum over one side")
            side, total = term_side, total + factor * body
            continue
        density = (term.subs(P, alpha * N) / N).cancel()
        if density.has(N):
            raise DeclarationError(
                f"The term {term} of {where} is not in proportion to the number of sites, as the sum over them is.",
                "global terms in proportion to N or P",
                f"N*({term})" if not term.has(N, P) else "",
            )
        shared += density
    if side is None:
        raise DeclarationError(f"{where} has no sum over sites.", "Eq(Sum(..., (mu, 1, P)), 0)")
    return side, total + (shared if side == FEATURE else shared / alpha)


def _law(
    side: str,
    site: dict[str, list[Equation]],
    pairs: dict[str, list[Complementary]],
    book: FieldBook,
    taken: set[str],
) -> Law:
    """Bring the law of a side to the form in which every field stands linearly in one equation."""
    equations = list(site[side])
    fields = book.all(side)
    named: dict[Symbol, SiteQuantity] = {}
    for f in fields:
        users = [e for e in equations if e.difference.has(f.symbol)]
        in_pairs = any(q.has(f.symbol) for p in pairs[side] for q in p.pair)
        if len(users) == 1 and not in_pairs and _carries(users[0], f.symbol, fields):
            continue
        kind = VectorField if f.components else Field
        family = kind(_fresh("u" if side == DATUM else "v", taken), tuple(f.components) or None, INDEX[side])
        taken.add(family.name)
        named[f.symbol] = family.at_site()
    equations = [e.xreplace(named) for e in equations]
    equations += [Equation(q, symbol) for symbol, q in named.items()]
    conditions = tuple(Complementary(*(q.xreplace(named) for q in p.pair)) for p in pairs[side])
    exprs = [e.difference for e in equations] + [q for p in conditions for q in p.pair]
    exprs += [f.emission for f in book.all(_other(side))]
    unknowns = [q for expr in exprs for q in site_quantities(expr, Feature, Datum, Field) if side in q.site]
    ordered = tuple(dict.fromkeys(unknowns))
    return Law(side, ordered, tuple(equations), conditions, tuple(fields))


def _carries(equation: Equation, symbol: Symbol, fields: Sequence[RandomField]) -> bool:
    """Whether the equation can carry the source of a field: it stands alone and linearly on the right."""
    others = [f.symbol for f in fields if f.symbol != symbol]
    if equation.lhs.has(symbol) or (others and equation.difference.has(*others)):
        return False
    slope = equation.rhs.diff(symbol)
    return not slope.has(symbol) and not site_quantities(slope, Feature, Datum, Field)


def _fresh(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


__all__ = ["Law", "System"]
