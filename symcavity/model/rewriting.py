"""A declaration between two rewritings, and what a rewriting is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sympy import Eq, Expr, LessThan, Sum, Symbol
from sympy.core.relational import Relational

from symcavity.model.averages import Average
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global, Variable, site_quantities
from symcavity.model.site_sums import is_affine, outer_sums


def sides(entry: Any) -> list[Expr]:
    """The expressions of one entry of a declaration."""
    if isinstance(entry, Equation):
        return [entry.lhs, entry.rhs]
    if isinstance(entry, Relational | Complementary):
        return [a for a in entry.args if isinstance(a, Expr)]
    return [entry] if isinstance(entry, Expr) else []


def with_sides(entry: Any, new: list[Expr]) -> Any:
    """The same entry with other expressions."""
    if new == sides(entry):
        return entry
    return new[0] if isinstance(entry, Expr) else type(entry)(*new)


def holds_sums(entry: Any) -> bool:
    """Whether sums stand in an entry, and no average: that is a mistake for the reading of the entry to name."""
    declared = sides(entry)
    return any(side.has(Sum) for side in declared) and not any(side.has(Average) for side in declared)


@dataclass(frozen=True)
class Declaration:
    """What is declared: an objective and constraints, or equations and conditions.

    Attributes
    ----------
    objective : Expr or None
        What a convex problem minimizes; None for a system of equations.
    entries : tuple
        The constraints of a problem; the equations of a system, and its complementary pairs.
    brought : tuple
        Each global variable that a rewriting has brought in, with the relation that says what it is.
    initial : tuple of Equation
        Values of states at the beginning, of a system that moves; nothing rewrites them.
    """

    objective: Expr | None
    entries: tuple[Any, ...]
    brought: tuple[tuple[Global, Any], ...] = ()
    initial: tuple[Equation, ...] = ()

    @property
    def parts(self) -> list[Any]:
        """Everything that is declared, in one list."""
        return [*([] if self.objective is None else [self.objective]), *self.entries, *(e for _, e in self.brought)]

    @property
    def expressions(self) -> list[Expr]:
        """All sides of all entries."""
        return [side for entry in self.parts for side in sides(entry)]

    @property
    def names(self) -> set[str]:
        """The names that are taken."""
        found = self.expressions
        found += [e for x in families(found, Coupling) for e in (x.mean, x.variance)]
        taken = {q.family.name for e in found for q in site_quantities(e)}
        return taken | {s.name for e in found for s in e.atoms(Symbol)}

    def where(self, entry: Any) -> str:
        """How messages call an entry."""
        if entry is self.objective:
            return "the objective"
        word = "equation" if isinstance(entry, Equation) else "condition" if self.objective is None else "constraint"
        return f"the {word} {entry}"

    def mapped(self, read: Callable[[Any], Any]) -> Declaration:
        """The same declaration with each of its parts read anew."""
        objective = None if self.objective is None else read(self.objective)
        brought = tuple((g, read(entry)) for g, entry in self.brought)
        return Declaration(objective, tuple(map(read, self.entries)), brought, self.initial)

    def equation(self, lhs: Expr, rhs: Expr) -> Any:
        """An entry that says that two expressions are equal, in the form that this declaration has its entries in."""
        return Equation(lhs, rhs) if self.objective is None else Eq(lhs, rhs, evaluate=False)

    def bringing(self, found: dict[Global, tuple[Expr, Expr]]) -> Declaration:
        """The declaration with global variables, before those that it has; two sides say what each of them is.

        In a convex problem the average of what is not linear is bounded by its variable, which pays for it.  The
        problem grows with the variable, so that the bound is met; ``sum w^2/r <= N r`` is convex in w and r.
        """
        said = []
        for g, (lhs, rhs) in found.items():
            is_bound = self.objective is not None and not _is_linear(lhs)
            said.append((g, LessThan(lhs, rhs) if is_bound else self.equation(lhs, rhs)))
        return replace(self, brought=(*said, *self.brought))


def _is_linear(lhs: Expr) -> bool:
    """Whether sums over sites are linear in the variables."""
    bodies = [s.function for s in outer_sums(lhs)]
    return all(is_affine(body, [*site_quantities(body, Variable), *body.atoms(Global)]) for body in bodies)


class Rewriting:
    """One way of writing a declaration in other words.

    It is made for one declaration, from which it reads what it needs; then it is applied to it, and observables of
    the same declaration are rewritten alike.

    Attributes
    ----------
    key : str
        Its name, and the key of its step in the record.
    """

    key: ClassVar[str] = ""

    def __init__(self, declaration: Declaration) -> None:
        """Read a declaration, which is not changed."""

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration in other words; itself where nothing is to be rewritten."""
        raise NotImplementedError

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The meaning of each symbol that it introduces: global variables, and quantities at their own sites."""
        return {}

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable in the same words; of one site, if its kind is given."""
        return expr

    def steps(self, _make: Any) -> list[Any]:
        """The steps of the record; none where the words of the user say as much."""
        return []


@dataclass(frozen=True)
class Stage:
    """One rewriting of a declaration: the declaration before it and after it."""

    rewriting: Rewriting
    before: Declaration
    after: Declaration


class Rewritten:
    """A declaration that has passed some rewritings, one after the other.

    Attributes
    ----------
    declaration : Declaration
        The result of the last of them.
    stages : dict
        By the key of each rewriting: it, and the declaration before and after it.
    """

    def __init__(self, declaration: Declaration, rewritings: tuple[type[Rewriting], ...]) -> None:
        self.stages: dict[str, Stage] = {}
        for kind in rewritings:
            rewriting = kind(declaration)
            after = rewriting.apply(declaration)
            self.stages[kind.key] = Stage(rewriting, declaration, after)
            declaration = after
        self.declaration = declaration

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rewritten) and self._written() == other._written()

    def __hash__(self) -> int:
        return hash(tuple(self.stages))

    def _written(self) -> tuple[Any, ...]:
        return (*((key, stage.before) for key, stage in self.stages.items()), self.declaration)

    def __getitem__(self, key: str) -> Any:
        """The rewriting with a key."""
        return self.stages[key].rewriting

    @property
    def typed(self) -> Declaration:
        """The declaration as its user reads it: units and cases apart, nothing has a name that was not typed."""
        return self.stages["roots"].before

    def observable(self, expr: Expr, kind: Kind | None = None) -> Expr:
        """An observable in the words of the last declaration; of one site, if its kind is given."""
        for stage in self.stages.values():
            expr = stage.rewriting.observable(expr, kind)
        return expr

    def steps(self, make: Any) -> list[Any]:
        """The steps of all rewritings, in their order."""
        return [step for stage in self.stages.values() for step in stage.rewriting.steps(make.within("The problem"))]
