"""A system of sites: one law for each kind, the fields that couple them, and global conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from sympy import Expr, Sum, Symbol, Tuple

from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.averages import Expect
from symcavity.model.complementary import Complementary
from symcavity.model.content import ByContent, without
from symcavity.model.couplings import Coupling
from symcavity.model.entries import read_conditions, read_entry, read_equations
from symcavity.model.equations import Equation, as_equation, as_list, read_fixed, read_named
from symcavity.model.families import families
from symcavity.model.fields import FieldBook, RandomField
from symcavity.model.kinds import (
    DATUM,
    FEATURE,
    Kind,
    sorted_kinds,
)
from symcavity.model.laws import Collective, Law, Weight, read_law
from symcavity.model.motion import Motion, read_motion
from symcavity.model.names import ALIASES, read_text
from symcavity.model.noise import Noise, drawn_anew
from symcavity.model.order import answering
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, site_quantities
from symcavity.model.ranges import declared_ranges, implied_ranges
from symcavity.model.refusals import check_names, parameters_of, refuse_thermal
from symcavity.model.rewriting import Declaration, Rewritten
from symcavity.model.rewritings import REWRITINGS
from symcavity.model.support import Anchor, Support, SupportFunction
from symcavity.model.system_checks import check_fixed, check_labels, check_laws


@without(
    "assuming_positive", "brought", "conditions", "declared", "drawn_anew", "fields", "fields_in", "flowing",
    "global_conditions", "initial", "is_bipartite", "laws", "motion", "origin", "own", "partners", "ranges",
    "record", "rewritten", "sent_by", "shared", "shared_pairs", "stated", "typed", "collective", "where",
    "with_parameters", "without_value",
)  # fmt: skip
class System(ByContent):
    """A system of kinds of sites, read and validated: what :class:`symcavity.BipartiteSystem` holds."""

    def __init__(
        self,
        equations: Sequence[Any],
        conditions: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        *,
        initial: Sequence[Any] = (),
        name: str = "",
        source: dict[str, str] | None = None,
        cite: str = "",
        says: str = "",
        named: Any = None,
        convex: bool = False,
        record: Any = None,
        rewritten: Rewritten | None = None,
        origin: Any = None,
        weights: Mapping[Kind, Weight] | None = None,
        collective: Collective | None = None,
    ) -> None:
        self.name, self.says = read_text(name, "The title"), read_text(says, "says")
        self.source, self.cite = dict(source or {}), read_text(cite, "cite")
        self.named = read_named(named or {})
        self.convex = convex
        self.record, self.origin = record, origin
        entries: list[Any] = [
            e if isinstance(e, Complementary) else as_equation(e, "an entry of equations")
            for e in as_list(equations, "equations")
        ]
        self.fixed = tuple(read_fixed(as_list(fixed, "fixed")))
        conditions = as_list(conditions, "conditions")
        self.stated = declared_ranges(conditions) if record is None else record.problem.ranges
        entries += [read_entry(c) for c in conditions if c not in self.stated]
        self.initial = tuple(as_equation(e, "an entry of initial") for e in as_list(initial, "initial"))
        self.rewritten = rewritten or Rewritten(Declaration(None, tuple(entries), (), self.initial), REWRITINGS)
        if rewritten is None:
            entries = self.rewritten.declaration.parts
        self.declared = tuple(e for e in entries if isinstance(e, Equation))
        self.conditions = conditions = tuple(e for e in entries if not isinstance(e, Equation))
        self.time = self.rewritten["clock"].time
        self.flowing: bool = self.rewritten["clock"].flowing  # in continuous time
        book = FieldBook()
        site, self.shared, of_equations = read_equations(self.declared, book, moving=self.time is not None)
        pairs, self.shared_pairs, of_conditions = read_conditions(conditions, book)
        self.global_conditions = (*of_equations, *of_conditions)
        exprs = [e.difference for e in (*self.declared, *self.fixed)]
        exprs += [q for pair in conditions for q in pair.pair]
        check_names(exprs)
        taken = {q.family.name for e in exprs for q in site_quantities(e)}
        taken |= {s.name for e in self.declared for s in parameters_of(e.difference)}
        kinds = {*site, *pairs} | {f.sender for kind in (*site, *pairs) for f in book.all(kind)}
        if not weights:
            refuse_thermal(e.difference for e in self.declared)
        self.weights = dict(weights or {})
        self.collective = collective or Collective()  # of a Gibbs measure: what belongs to no site
        read = {kind: read_law(kind, site, pairs, book, taken) for kind in sorted_kinds(kinds)}
        self.laws = {kind: law.weighed(self.weights.get(kind)) for kind, law in read.items()}
        first = next(iter(self.laws), FEATURE)
        self.global_conditions = tuple(
            {k if k in self.laws else first: body for k, body in parts.items()} for parts in self.global_conditions
        )
        check_laws(self.laws)
        check_labels(self.quenched, self.laws)
        check_fixed(self.fixed, self.laws, self.named, self.parameters)
        self._check_globals()
        self.motion: Any = self._motion()  # None where the states keep still

    @property
    def typed(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The equations and the conditions in the user's own words."""
        entries = self.rewritten.typed.entries
        equations = tuple(e for e in entries if isinstance(e, Equation))
        return equations, tuple(e for e in entries if e not in equations)

    def _check_globals(self) -> None:
        if len(self.globals) != len(self.global_conditions):
            raise DeclarationError(
                f"There are {len(self.globals)} global variables and {len(self.global_conditions)} global conditions.",
                "one global condition, such as Eq(Sum(y[mu]*lam[mu], (mu, 1, P)), 0), for each global variable",
            )

    def _motion(self) -> Motion | None:
        """How its states move; None where they keep still."""
        if self.time is None:
            if self.initial:
                raise DeclarationError(
                    "There are initial values, and no state depends on time.",
                    "states over a time",
                    't = Time("t"); Variable("x", i, over=t)',
                )
            return None
        if self.globals:
            raise UnsupportedLaw(
                f"The states of this system move in time, and its global variable {self.globals[0]} does not.",
                "sums over couplings, of systems in time",
            )
        if self.fixed or self.conditions:
            raise DeclarationError(
                f"A system whose states move in time has the condition {[*self.fixed, *self.conditions][0]}.",
                "equations of motion, and initial values",
            )
        return read_motion(self.laws, self.initial, self.time, self.shared, self.brought)

    # -- structure -------------------------------------------------------------------------------

    @property
    def brought(self) -> dict[SiteQuantity, Expr]:
        """What the variables stand for that were put in the places of sums at other times, and of what is sent."""
        return {**self.rewritten["clock"].meanings, **self.rewritten["emissions"].meanings}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of sites, in a fixed order."""
        return tuple(self.laws)

    @property
    def fields(self) -> tuple[RandomField, ...]:
        """All random fields, in the order of the kinds that hear them."""
        return tuple(f for law in self.laws.values() for f in law.fields)

    @cached_property
    def _answering(self) -> Mapping[RandomField, frozenset[Any]] | None:
        return None if self.time is not None else answering(tuple(self.laws.values()))

    def answers(self, state: SiteQuantity, heard: RandomField) -> bool:
        """Whether a state can respond to a source in the equation of a field: not where it is fixed before that."""
        return self._answering is None or state.family in self._answering[heard]

    @property
    def is_bipartite(self) -> bool:
        """Whether there are two kinds of sites, and each hears the other only."""
        return len(self.laws) == 2 and all(f.hearer != f.sender for f in self.fields)

    @property
    def partners(self) -> tuple[Global | None, ...]:
        """For each global condition the variable that it makes a pair with, ``0 <= variable ⊥ sum >= 0``, or None."""
        pairs = [pair.args[0] for pair in self.shared_pairs]
        return (*(None for _ in range(len(self.global_conditions) - len(pairs))), *pairs)

    def own(self, expr: Expr) -> Expr:
        """The user's quenched parameters as this system knows them: some may have been given a sign or a field."""
        known = {q.name: q for q in self.quenched}
        found = {q for q in expr.atoms(SiteQuantity) if isinstance(q.family, Quenched) and q.family.name in known}
        if not self.weights and expr.has(Expect):
            raise DeclarationError(
                f"{expr} is a thermal average, and the states of this system do not fluctuate.",
                "thermal averages of problem.gibbs(beta)",
            )
        means = {Expect(w.state): w.mean for w in self.weights.values() if not w.is_field}
        return expr.xreplace({q: known[q.family.name][q.indices] for q in found}).xreplace(means)

    def sent_by(self, kind: Kind) -> tuple[RandomField, ...]:
        """The random fields that sum what a kind of site emits: those that an inserted site shifts."""
        return tuple(f for f in self.fields if f.sender == kind)

    @property
    def feature(self) -> Law:
        """The law of the features."""
        return self.laws[FEATURE]

    @property
    def datum(self) -> Law:
        """The law of the data."""
        return self.laws[DATUM]

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
        return tuple(sorted(found - placeholders - {kind.ratio for kind in self.laws}, key=lambda s: s.name))

    @property
    def without_value(self) -> tuple[Any, ...]:
        """What takes a value: parameters, the load, ratios of sizes, families without a law, sets without a shape."""
        ratios = [kind.ratio for kind in self.kinds if kind.ratio.is_Symbol]
        laws = [q for q in self.quenched if q.given is None and q.law is None]
        return (*self.parameters, *ratios, *laws, *(g for g in self.support_functions if not g.shape))

    @property
    def quenched(self) -> tuple[Quenched, ...]:
        """The families of quenched parameters, sorted by name."""
        return tuple(sorted(families(self._expressions(), Quenched), key=lambda q: q.name))

    @property
    def drawn_anew(self) -> tuple[Any, ...]:
        """The families that are drawn anew at each time, sorted by name: noise, and quenched parameters over a time."""
        found = {q.family for e in self._expressions() for q in drawn_anew(e)}
        return tuple(sorted(found, key=lambda q: q.name))

    @property
    def ranges(self) -> tuple[Any, ...]:
        """What values of parameters have to meet: stated in the declaration, or implied by its random numbers."""
        couplings = dict.fromkeys(f.coupling.family for law in self.laws.values() for f in law.fields)
        labels = (q for q in self.quenched if q.few)
        sizes = (q.variance for q in self.drawn_anew if isinstance(q, Noise))
        return (*self.stated, *implied_ranges(couplings, labels, self._expressions(), sizes))

    def fields_in(self, claim: Equation) -> list[Equation]:
        """The local fields that stand in a claim, each as the sum that it is."""
        every = [(law.carrier(f), f) for law in self.laws.values() for f in law.fields]
        here = families([claim.lhs, claim.rhs], Field)
        sums = {e.lhs: f.as_sum for e, f in every if e.rhs == f.symbol and isinstance(e.lhs, SiteQuantity)}
        local = [e for law in self.laws.values() for e in law.equations if getattr(e.lhs, "family", None) in here]
        written = [Equation(e.lhs, sums.get(e.lhs, e.rhs.xreplace(sums))) for e in local]
        return [e for e in written if e.rhs.atoms(Sum)]

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
        for law in self.laws.values():
            out += [e.difference for e in law.equations]
            out += [q for p in law.pairs for q in p.pair]
            out += [f.emission for f in law.fields] + [e for f in law.fields for e in f.coupling.family.moments]
        out += [body for parts in self.global_conditions for body in parts.values()]
        out += [e.difference for e in (*self.fixed, *self.shared)]
        out += [entry.rhs for entry in self.initial]
        out += [q.variance for q in families(out, Noise)]
        out += [e for weight in self.weights.values() for e in (weight.beta, weight.energy, *weight.bounds)]
        laws = [q.law for q in families(out, Quenched) if isinstance(q.law, Tuple)]
        return out + [e for law in laws for pair in law for e in pair]

    def assuming_positive(self, parameters: Sequence[Quenched]) -> Self:
        """Return the same system with quenched parameters declared positive."""
        return self.with_parameters({q: q.assumed_positive() for q in parameters})

    def with_parameters(self, others: Mapping[Quenched, Quenched]) -> Self:
        """Return the same system with other quenched parameters of the same names in the place of some."""
        rule: dict[Any, Any] = dict(others)

        def marked(expr: Any) -> Any:
            held = expr.atoms(SiteQuantity)
            for q in held:
                if isinstance(q.family, Coupling) and q.family not in rule:
                    rule[q.family] = with_moments(q.family)
            return expr.xreplace({q: rule[q.family][q.indices] for q in held if q.family in rule})

        def with_moments(coupling: Coupling) -> Coupling:
            known = {q: rule[q.family][q.indices] for m in (*coupling.moments, coupling.mean)
                     for q in m.atoms(SiteQuantity) if q.family in rule}  # fmt: skip
            pairs = {with_moments(other): rho for other, rho in coupling.correlation.items()}
            return coupling.copied(coupling.name, known, pairs)

        return self.where(marked)

    def where(self, marked: Callable[[Any], Any]) -> Self:
        """Return the same system with a function applied to all of its expressions."""
        return type(self)(
            [Equation(marked(e.lhs), marked(e.rhs)) for e in self.declared],
            [*(marked(pair) for pair in self.conditions), *self.stated],
            [Equation(marked(e.lhs), marked(e.rhs)) for e in self.fixed],
            name=self.name,
            source=self.source,
            cite=self.cite,
            says=self.says,
            named=self.named,
            convex=self.convex,
            record=self.record,
            rewritten=self.rewritten,
            initial=[e.func(marked(e.lhs), marked(e.rhs)) for e in self.initial],
            origin=self.origin,
            weights={kind: weight.where(marked) for kind, weight in self.weights.items()},
            collective=self.collective,
        )

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = [f"{'Bipartite system' if self.is_bipartite else 'System'}{': ' + self.name if self.name else ''}"]
        for law in self.laws.values():
            lines.append(f"  {law.kind.sites} {law.index} = 1..{law.kind.size}")
            lines += [f"    {e}" for e in law.written()] + [f"    {p}" for p in law.pairs]
        for parts, partner in zip(self.global_conditions, self.partners, strict=True):
            total = " + ".join(f"sum over {s.index} of {plain(body)}" for s, body in parts.items())
            lines.append(f"  global: {total} = 0" if partner is None else f"  global: 0 <= {partner} ⊥ {total} >= 0")
        lines += [f"  global: {e}" for e in self.shared]
        lines += [f"  fixed: {e}" for e in self.fixed]
        lines += [f"  initially: {e}" for e in self.initial]
        return "\n".join(lines)

    __repr__ = __str__
