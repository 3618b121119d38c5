"""A problem of minimization, declared as a paper writes it: an objective, constraints, fixed averages."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

from sympy import Basic, Expr, S

from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError
from symcavity.model.content import ByContent, without
from symcavity.model.equations import as_list, read_fixed, read_named
from symcavity.model.exact import exact
from symcavity.model.families import families
from symcavity.model.fields import FieldBook, extract_fields
from symcavity.model.joined import join_fields
from symcavity.model.keywords import known_words
from symcavity.model.kinds import DATUM, FEATURE, Kind, sorted_kinds
from symcavity.model.names import read_text
from symcavity.model.problem_checks import check_problem, convexity
from symcavity.model.quantities import Field, Global, Quenched, Variable, site_quantities
from symcavity.model.ranges import declared_ranges
from symcavity.model.reading import Constraint, SumCondition, read_constraint, summed
from symcavity.model.refusals import refuse_thermal
from symcavity.model.rewriting import Declaration, Rewritten
from symcavity.model.rewritings import REWRITINGS
from symcavity.model.site_sums import free_kind


@without(
    "asks_convexity", "book", "conditions", "constraints", "given", "global_objective", "is_mean", "known", "labels",
    "objective", "ranges", "rewritten", "taken_over", "typed", "with_means",
)  # fmt: skip
class Problem(ByContent):
    """A problem, read and validated: what :class:`symcavity.ConvexProblem` and :class:`symcavity.Problem` hold.

    Attributes
    ----------
    asks_convexity : bool
        Whether a problem of this class has to be convex.
    is_proved_convex : bool
        Whether convexity follows from the rules of composition; if not, seeded chords have not refuted it.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a bipartite problem of this form.
    NotConvex
        If convexity is asked for, and an objective or a constraint is provably not convex.
    """

    asks_convexity: ClassVar[bool] = True

    @known_words
    def __init__(
        self,
        minimize: Any,
        subject_to: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        *,
        name: str = "",
        source: dict[str, str] | None = None,
        cite: str = "",
        says: str = "",
        named: Any = None,
    ) -> None:
        self.name, self.says = read_text(name, "The title"), read_text(says, "says")
        self.source, self.cite = dict(source or {}), read_text(cite, "cite")
        self.named = read_named(named or {})
        relations = as_list(subject_to, "subject_to")
        self.ranges = declared_ranges(relations)
        entries = tuple(r for r in relations if r not in self.ranges)
        refuse_thermal(e for e in (minimize, *entries) if isinstance(e, Basic))
        self.rewritten = Rewritten(Declaration(exact(minimize, "the objective"), entries), REWRITINGS)
        self.fixed = tuple(read_fixed(as_list(fixed, "fixed")))
        self._read(self.rewritten.declaration)
        self._join()
        check_problem(self)
        self.is_proved_convex = False
        if self.asks_convexity:
            self.is_proved_convex, needed = convexity(self)
            self.ranges += needed

    def _read(self, declaration: Declaration) -> None:
        """Take sums over sites apart, and constraints of sites from conditions on all of them."""
        brought = [said for _, said in declaration.brought]
        self.known = tuple(c for c in brought if not site_quantities(c, Variable, Field))
        moving = tuple(c for c in brought if c not in self.known)
        self.minimize, self.subject_to = declaration.objective, (*declaration.entries, *moving)
        self.book = FieldBook(affine=self.asks_convexity)
        self.objective: dict[Kind, Expr] = {FEATURE: S.Zero, DATUM: S.Zero}
        parts, self.global_objective = summed(self.minimize, "the objective", self.book)
        self.objective |= parts
        read = [read_constraint(c, self.book, met=c in moving) for c in self.subject_to]
        self.constraints = tuple(c for c in read if isinstance(c, Constraint))
        self.conditions = tuple(c for c in read if isinstance(c, SumCondition))
        every = [*parts.values(), *(c.expr for c in self.constraints)]
        every += [e for c in self.conditions for e in c.parts.values()]
        self.labels = {q: self._drawn_on(q) for q in families(every, Quenched) if q.given is not None}

    def with_means(self) -> Self:
        """A copy of the problem before its couplings lose their means, unless these need a unit of their own."""
        out, stage = copy(self), self.rewritten.stages["centre"]
        if not self.rewritten["centre"].units:
            out._read(stage.before)  # noqa: SLF001 - a copy of itself
            out._join()  # noqa: SLF001
        return out

    def _join(self) -> None:
        """Take sums together that all laws hear as one."""
        for kind in self.kinds:
            mine = [self.objective.get(kind, S.Zero), *(c.expr for c in self.constraints if c.kind == kind)]
            mine += [c.parts[kind] for c in self.conditions if kind in c.parts]
            gone = join_fields(self.book, kind, [*mine, *self.labels.values()])
            if not gone:
                continue
            self.objective[kind] = self.objective.get(kind, S.Zero).xreplace(gone)
            self.constraints = tuple(replace(c, expr=c.expr.xreplace(gone)) for c in self.constraints)
            self.conditions = tuple(
                replace(c, parts={k: e.xreplace(gone) for k, e in c.parts.items()}) for c in self.conditions
            )

    @property
    def given(self) -> dict[Global, Any]:
        """The averages of quenched parameters, each with its condition: nothing is minimized over them."""
        return {g: c for c in self.known for g in c.atoms(Global)}

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of sites of the problem, in a fixed order."""
        found = {*self.objective, *(c.kind for c in self.constraints)}.union(*(c.parts for c in self.conditions))
        for kind in list(found):
            found |= {f.sender for f in self.book.all(kind)}
        return sorted_kinds(found)

    def _drawn_on(self, label: Quenched) -> Expr:
        """What a label is drawn on, in random fields."""
        where = f"what {label} is given on"
        (kind,) = label.slots
        if free_kind(label.given, where) != kind:
            raise DeclarationError(f"{label} is drawn on {label.given}.", f"a field of the same {kind}")
        return extract_fields(self.rewritten.observable(label.given, kind), kind, self.book, where)

    @property
    def is_mean(self) -> bool:
        """Whether what is minimized is the declared objective times a power of the number of sites."""
        return self.rewritten["proportion"].is_mean

    def taken_over(self) -> dict[str, Any]:
        """The data that an equivalent system takes from this problem: titles, names and rewritings."""
        return {
            "fixed": self.fixed, "name": self.name, "says": self.says, "source": self.source, "cite": self.cite,
            "named": self.named, "rewritten": self.rewritten,
        }  # fmt: skip

    @property
    def typed(self) -> tuple[Expr, tuple[Any, ...]]:
        """The objective and the constraints in the user's own words."""
        return self.rewritten.typed.objective, self.rewritten.typed.entries

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        minimize, subject_to = self.typed
        lines = [f"minimize    {plain(minimize)}"]
        lines += [f"subject to  {plain(c)}" for c in subject_to]
        lines += [f"where       {r}" for r in self.ranges]
        lines += [f"fixed       {e}" for e in self.fixed]
        return "\n".join(lines)

    __repr__ = __str__
