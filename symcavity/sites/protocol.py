"""The one-site problem that every strategy solves: a law, with ``eta + feedback + source`` for each field.

A strategy is a module-level object with four methods; :data:`symcavity.sites.strategies.STRATEGIES` lists
them in the order in which they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

from sympy import Add, Expr, S, Sum, Symbol

from symcavity.algebra.flow import past
from symcavity.algebra.indexed import fresh_index
from symcavity.errors import UnsupportedLaw
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Global, SiteQuantity
from symcavity.model.times import other_times
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import CavitySymbol
from symcavity.sites.choices import Choices

MOST_BACK, MOST_TERMS = 8, 24  # self-couplings, and these times branches, of a law that is solved as a formula
MOST_BRANCHES = 100  # of one in which one field comes back; half of it where kinks meet at what has no known order


@dataclass(frozen=True)
class Feedback:
    """One way in which the inserted site hears itself.

    Attributes
    ----------
    symbol : CavitySymbol
        The self-coupling F.
    through : RandomField
        The field that the site shifts; what comes back is F times its emission there.
    definition : Expr
        F written out with the fresh couplings and the responses between sites.
    delay : int or None
        Of states that move: by how many steps what comes back is later than what was sent, at the least; None in
        continuous time.
    """

    symbol: CavitySymbol
    through: RandomField
    definition: Expr
    delay: int | None = 0

    @property
    def emission(self) -> Expr:
        """What the site emits into that field."""
        return self.through.emission


@dataclass(frozen=True)
class Heard:
    """A random field of the inserted site.

    Attributes
    ----------
    declared : RandomField
    eta : CavitySymbol
        The cavity field: the part of order zero.
    definition : Expr
        The cavity field written out with the fresh couplings.
    source : SiteQuantity
        The source in the equation that carries the field.
    carrier : SiteQuantity or None
        What names that equation, where the site hears several fields.
    factor : Expr
        The factor of the field in that equation.
    feedback : tuple of Feedback
        The parts of order one that the site itself causes.
    """

    declared: RandomField
    eta: CavitySymbol
    definition: Expr
    source: SiteQuantity
    carrier: SiteQuantity | None
    factor: Expr
    feedback: tuple[Feedback, ...] = ()

    def effective(self) -> Expr:
        """The field of the inserted site: ``eta + sum of self-coupling * emission``."""
        components = self.declared.components
        if components:
            a = components[0]
            b = fresh_index(a, {a})
            limits = (b, *components[1:])
            return self.eta + Add(*(Sum(k.symbol * k.emission.xreplace({a: b}), limits) for k in self.feedback))
        if self.declared.time is not None:
            return self.eta + Add(*map(self._remembered, self.feedback))
        return self.eta + Add(*(k.symbol * k.emission for k in self.feedback))


    @staticmethod
    def _remembered(k: Feedback) -> Expr:
        """The feedback of all messages of the site up to now."""
        t = k.through.time
        if t is None:
            return k.symbol * k.emission
        s = other_times(t)[0]
        return past(k.symbol * k.emission.xreplace({t: s}), s, S.Zero, t, k.delay)


@dataclass(frozen=True)
class SiteProblem:
    """The law of the inserted site, to be solved for every value of its fields.

    Attributes
    ----------
    law : Law
    heard : tuple of Heard
    convex : bool
        Whether the law belongs to a convex problem: then its denominators are positive.
    strict : bool
        Whether denominators must have one sign for all parameters of the declared signs.
    proved : dict
        The signs of self-couplings that convexity fixes.
    auxiliary : frozenset
        Multipliers of constraints, and bounds on kinks: several values may do.
    ranges : tuple of Relational
        What parameters have to meet.
    flowing : bool
        Whether states move in continuous time.
    """

    law: Law
    heard: tuple[Heard, ...]
    convex: bool = False
    strict: bool = True
    proved: Mapping[Symbol, int] = field(default_factory=dict)
    auxiliary: frozenset[Any] = frozenset()
    ranges: tuple[Any, ...] = ()
    flowing: bool = False

    @property
    def material(self) -> list[Expr]:
        """The unknowns of the law: declared states, and the messages of the site."""
        sent = [k.emission for h in self.heard for k in h.feedback]
        return [*(q for q in self.law.unknowns if q not in self.auxiliary), *sent]

    @property
    def kind(self) -> Kind:
        """The kind of the inserted site."""
        return self.law.kind

    @property
    def self_couplings(self) -> list[CavitySymbol]:
        """All self-couplings."""
        return [k.symbol for h in self.heard for k in h.feedback]

    @cached_property
    def is_large(self) -> bool:
        """Whether the site hears itself in so many ways, or has so many branches, that a formula is of no use.

        Where what one state sends comes back to another, each branch holds the inverse of a matrix of self-couplings.
        """
        several, back = sum(bool(h.feedback) for h in self.heard) > 1, len(set(self.self_couplings))
        branches = 2 ** len(self.law.pairs)
        if not several:
            unordered = any(pair.has(Global) for pair in self.law.pairs)
            if unordered:  # by how a global variable orders them, choices cannot be told to contradict each other
                return self.convex and 2 * branches > MOST_BRANCHES
            return self.convex and branches > MOST_BRANCHES and self._has_many_branches()
        crossed = self.law.pairs and self.is_crossed
        return self.convex and bool(crossed or back > MOST_BACK or back * branches > MOST_TERMS)

    @cached_property
    def is_crossed(self) -> bool:
        """Whether what one state sends comes back to another: the signs of such answers are not known."""
        return any(len({k.emission for k in h.feedback}) > 1 for h in self.heard)

    def _has_many_branches(self) -> bool:
        """Whether many choices of members of its pairs do not contradict each other."""
        pairs = [p.pair for p in self.law.pairs]
        choices = Choices([e.difference for e in self.equations()], pairs, (), self.law.unknowns)
        return any(count >= MOST_BRANCHES for count, _ in enumerate(choices))

    @property
    def text(self) -> str:
        """The law in words, for messages."""
        return f"The law of {self.kind.site}"

    def plain_sources(self) -> dict[SiteQuantity, Symbol]:
        """A plain symbol for each source, of a name that no parameter has."""
        taken = {s.name for e in self.exprs for s in e.free_symbols}
        names = (fresh_name(taken, f"I{k or ''}") for k in range(len(self.heard)))
        return dict(zip((h.source for h in self.heard), (Symbol(name, real=True) for name in names), strict=True))

    @property
    def exprs(self) -> list[Expr]:
        """What its law is made of."""
        moments = [e for h in self.heard for e in h.declared.coupling.family.moments]
        pairs = [q for p in self.law.pairs for q in p.pair]
        return [*(e.difference for e in self.law.equations), *pairs, *moments]

    def equations(self) -> list[Equation]:
        """The law of the inserted site, with cavity fields, self-couplings and sources."""
        rule = {h.declared.symbol: h.effective() for h in self.heard}
        out = []
        for equation in self.law.equations:
            sources = [h.source for h in self.heard if equation.difference.has(h.declared.symbol)]
            out.append(Equation(equation.lhs.xreplace(rule), equation.rhs.xreplace(rule) + Add(*sources)))
        return out

    def inner(self) -> Heard:
        """The field over which branches are laid out: the one whose emission comes back, or the first."""
        return next((h for h in self.heard if h.feedback), self.heard[0])

    def ordered(self) -> list[Heard]:
        """The fields with the inner one last."""
        inner = self.inner()
        return [h for h in self.heard if h is not inner] + [inner]

    def feeding_back(self, keep: Callable[[CavitySymbol], bool]) -> SiteProblem:
        """The same problem with some of its feedback only."""
        heard = tuple(replace(h, feedback=tuple(k for k in h.feedback if keep(k.symbol))) for h in self.heard)
        return replace(self, heard=heard)

    def signed(self, signs: Mapping[Symbol, int]) -> SiteProblem:
        """The same problem with self-couplings that carry their signs."""

        def one(k: Feedback) -> Feedback:
            return replace(k, symbol=k.symbol.signed(signs.get(k.symbol, 0)))

        heard = tuple(replace(h, feedback=tuple(map(one, h.feedback))) for h in self.heard)
        return replace(self, heard=heard, proved={})


def without_curvature(what: str) -> UnsupportedLaw:
    """The refusal of a site that answers without bound, once its feedback is dropped."""
    return UnsupportedLaw(
        f"Without its feedback a site has no curvature of its own, and {what} infinite.",
        "the naive analysis of problems with a penalty on each weight",
        "problem.cavity(): there the feedback is the curvature",
    )


class Unbranched:
    """What a solution that is not laid out in branches says of them, and of sources, which it does not hold."""

    regions: tuple[Any, ...] = ()
    branches: tuple[Any, ...] = ()
    is_implicit = False

    @property
    def assumed(self) -> tuple[Any, ...]:
        """It assumes nothing."""
        return ()

    def without_sources(self) -> Self:
        """The solution holds no sources."""
        return self


class Ensemble(Protocol):
    """A site whose fields are Gaussian."""

    def average(self, body: Expr) -> Expr:
        """Average an expression in the site's quantities over its fields and its quenched parameters."""

    def at_site(self, body: Expr) -> Expr:
        """Average over the fields only."""


@dataclass(frozen=True)
class LawSolution:
    """What a strategy returns.

    Attributes
    ----------
    solved : Solved
        With the self-couplings as symbols that carry their signs.
    signs : dict
        The signs of self-couplings that are proved, or that the law needs.
    """

    solved: Any
    signs: Mapping[Symbol, int]


class Strategy(Protocol):
    """A way to solve laws of some form.

    Attributes
    ----------
    is_linear : bool
        Whether the states are linear functions of the fields.
    """

    is_linear: bool

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the law has that form."""

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve it; raises UnsupportedLaw or IllPosed where that fails."""

    def ensemble(self, site: Any) -> Ensemble:
        """The averages of a solved site."""

    def steps(self, site: Any, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """What the derivation says of the solution, and of the responses and averages that it needs."""
