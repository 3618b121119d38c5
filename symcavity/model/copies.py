"""Several copies of a declared problem that share their couplings in part, written as one larger declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Add, Basic, Expr, S, Symbol

from symcavity.errors import DeclarationError
from symcavity.model.couplings import Coupling
from symcavity.model.dependent import Member
from symcavity.model.exact import exact
from symcavity.model.families import Family, families
from symcavity.model.problem import Problem
from symcavity.model.quantities import Global, Quenched, SiteQuantity, Variable
from symcavity.model.shared_parts import chosen_again, chosen_by, names_taken, shared_in_part

FEWEST = 2


def copied(problem: Problem, count: Any, share: Mapping[Any, Any]) -> tuple[Expr, list[Basic], str, dict[str, Any]]:
    """The objective, constraints and title of several copies of a problem, and by name what each has for itself.

    Raises
    ------
    DeclarationError
        For a number of copies below two, something to share that the problem does not hold or that cannot be shared
        in part, fixed averages, and names that are taken.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < FEWEST:
        raise DeclarationError(f"{count!r:.80} copies of a problem.", "two copies or more", "problem.copies(2)")
    if problem.fixed:
        raise DeclarationError(
            f"The problem fixes {problem.fixed[0].lhs}, and one parameter cannot fix it in {count} copies.",
            "problems whose parameters are all given",
            "the declaration without fixed=, at the load and the parameters that a single copy has",
        )
    objective, entries = problem.typed
    exprs = [objective, *entries, *problem.ranges]
    inside = [e for q in families(exprs, Quenched) if q.given is not None for e in (q.given, *q.law.args)]
    moments = [e for x in families([*exprs, *inside], Coupling) for e in (x.variance, x.mean)]
    held = _Held([*exprs, *inside, *moments], count, _read(share, [*exprs, *inside, *moments]))
    copies = [[e.xreplace(held.rule(k)) for e in exprs] for k in range(1, count + 1)]
    constraints = list(dict.fromkeys(c for _, *rest in copies for c in rest))
    title = f"{count} copies of {problem.name}" if problem.name else ""
    return Add(*(first for first, *_ in copies)), constraints, title, held.named


def _read(share: Any, exprs: Sequence[Basic]) -> dict[Any, Expr]:
    """What the copies share less than fully, by family or parameter; everything else they share."""
    example = "problem.copies(2, share={x: u, y: 0})"
    if not isinstance(share, Mapping):
        raise DeclarationError(f"share={share!r:.80}.", "couplings, quenched parameters and symbols by shares", example)
    known: list[Any] = [*families(exprs, Coupling), *families(exprs, Quenched)]
    known += sorted(set().union(*(_parameters(e) for e in exprs)), key=str)
    found = dict[Any, Expr]()
    for given, value in share.items():
        part = exact(value, f"the share of {given}")
        alike = {key.name for key, other in share.items() if isinstance(key, Member) and other == value}
        if isinstance(given, Member) and (others := [name for name in given.joint if name not in alike]):
            raise DeclarationError(
                f"share= gives {part} of {given}, whose law is that of {', '.join(others)} too.",
                f"one share for all parameters of a joint law: {', '.join(given.joint)}",
                example,
            )
        for key in _families(given, known):
            if key not in known:
                names = ", ".join(str(k) for k in known)
                raise DeclarationError(f"share= names {given!r:.80}, which is not in the problem.", names, example)
            _refuse_part(key, part)
            found[key] = part
    return found


def _families(given: Any, known: Sequence[Any]) -> list[Any]:
    """What one name stands for: of a joint law that on which its parameters depend."""
    if isinstance(given, Member):
        return [q for q in known if isinstance(q, Quenched) and given.value.has(q.at_site())] or [given]
    return [given.family if isinstance(given, SiteQuantity) else given]


def _refuse_part(key: Any, part: Expr) -> None:
    if (1 - part).is_negative or part.is_negative:
        raise DeclarationError(f"The copies share {part} of {key}.", "a number between 0 and 1, or a symbol")
    if part not in (0, 1) and not isinstance(key, Coupling | Quenched):
        raise DeclarationError(
            f"The copies share {part} of {key}, which is one number.",
            "0 (each copy has its own) or 1 (they have the same); couplings and quenched parameters in part",
            f"{{{key}: 0}}",
        )
    if part not in (0, 1) and isinstance(key, Coupling) and (key.components or key.reciprocity != 0):
        what = "components" if key.components else "a reciprocity"
        raise DeclarationError(f"The copies share {part} of {key}, which has {what}.", "0 or 1 for such couplings")


def _parameters(expr: Basic) -> set[Symbol]:
    bound = {s for node in expr.atoms(SiteQuantity) for s in node.free_symbols}
    plain = {s for s in expr.free_symbols if type(s) is Symbol}
    return plain - bound


class _Held:
    """The families and parameters of a declaration, and their names in each copy."""

    def __init__(self, exprs: Sequence[Basic], count: int, share: Mapping[Any, Expr]) -> None:
        own: dict[Any, Expr] = dict.fromkeys(families(exprs, Variable), S.Zero)
        own |= dict.fromkeys(sorted(set().union(*(e.atoms(Global) for e in exprs)), key=str), S.Zero)
        own |= {key: part for key, part in share.items() if part != 1}
        for q in (q for q in families(exprs, Quenched) if q.given is not None):
            if q.given.has(*own):  # a label that is drawn on something of a copy is the copy's own
                own.setdefault(q, S.Zero)
        for x in families(exprs, Coupling):
            if any(moment.has(*own) for moment in (x.variance, x.mean)):
                own.setdefault(x, S.One)
        self._own, self._rules, self._exprs = own, dict[int, dict[Any, Any]](), exprs
        self._refuse_shares(families(exprs, Coupling))
        self._refuse_drawn()
        self._refuse_names(exprs, count)
        self._parts = {q: shared_in_part(q, [_named(q, k) for k in range(1, count + 1)], own[q]) for q in self._in_part}

    def _refuse_shares(self, couplings: Sequence[Any]) -> None:
        for x in couplings:
            tied = [z for z in couplings if z == x or z in x.correlation or x in z.correlation]
            parts = [self._own.get(z, S.One) for z in tied]
            if len(set(parts)) > 1:
                names, shares = (", ".join(map(str, each)) for each in (tied, parts))
                raise DeclarationError(
                    f"{names} are correlated, and the copies share {shares} of them.",
                    "one share for couplings that are correlated with each other",
                )

    @property
    def _in_part(self) -> list[Quenched]:
        """The quenched parameters of which the copies share a part."""
        return [q for q, part in self._own.items() if isinstance(q, Quenched) and part != 0]

    def _refuse_drawn(self) -> None:
        for label in self._in_part:
            found = [q for q in self._own if q != label and _depends(label, q)]
            if label.given is not None and found:
                raise DeclarationError(
                    f"The copies share {self._own[label]} of {label}, which is drawn on {found[0]}: each has its own.",
                    "0 for what is drawn on something of a copy",
                )

    def _refuse_names(self, exprs: Sequence[Basic], count: int) -> None:
        taken = {s.name for e in exprs for s in e.atoms(Symbol)} | {f.name for f in families(exprs)}
        names = {_named(key, k): key for key in self._own for k in range(1, count + 1)}
        names |= {n: q for q in self._in_part for n in names_taken(q, [_named(q, k) for k in range(1, count + 1)])}
        if found := sorted(taken & set(names)):
            raise DeclarationError(
                f"A copy of {names[found[0]]} would be called {found[0]}, which is a name of the problem.",
                f"names that do not end in _1 to _{count}",
            )

    @property
    def named(self) -> dict[str, Any]:
        """The families and parameters that single copies have, by name."""
        found = {m.name: m for members in self._parts.values() for m in members}
        whole = (new for rule in self._rules.values() for new in rule.values() if isinstance(new, Family | Symbol))
        return found | {new.name: new for new in whole}

    def rule(self, k: int) -> dict[Any, Any]:
        """Each family and parameter that a copy has for itself, by the one that stands in its place in copy ``k``."""
        if k not in self._rules:
            self._rules[k] = rule = dict[Any, Any]()
            left = sorted(self._own, key=_order)
            while left:  # what others depend on comes first: a label on the coupling that a teacher is heard by
                key = next((a for a in left if not any(b != a and _depends(a, b) for b in left)), left[0])
                member = self._parts[key][k - 1] if key in self._parts else None
                if member is None:
                    rule[key] = self._copy(key, k, rule)
                else:
                    here = {q for e in self._exprs for q in e.atoms(SiteQuantity) if q.family == key}
                    rule |= {q: member[q.indices[0]] for q in here}
                if isinstance(key, Quenched):
                    rule |= dict(chosen_again(c, member, k) for c in chosen_by(key, self._exprs))
                left.remove(key)
        return self._rules[k]

    def _copy(self, key: Any, k: int, rule: Mapping[Any, Any]) -> Any:
        name, part = _named(key, k), self._own[key]
        if isinstance(key, Coupling):
            pairs = {rule.get(z, z): rho for z, rho in key.correlation.items()}
            for j in range(1, k) if part != 0 else ():
                other = self.rule(j)
                pairs |= {other[key]: part} | {other.get(z, z): part * rho for z, rho in key.correlation.items()}
            return key.copied(name, rule, pairs)
        if isinstance(key, Quenched):
            return key.copied(name, rule)
        if isinstance(key, Variable):
            return key.renamed(name)
        if isinstance(key, Global):
            return Global(name, positive=True) if key.is_nonnegative else Global(name)
        return Symbol(name, **key.assumptions0)


def _order(key: Any) -> tuple[int, str]:
    """Parameters and variables, quenched parameters, labels, couplings, those with correlations last."""
    if isinstance(key, Coupling):
        return (3 + len(key.correlation), str(key))
    return ((1 + (key.given is not None)) if isinstance(key, Quenched) else 0, str(key))


def _depends(key: Any, other: Any) -> bool:
    """Whether the declaration of a family holds another one, or a parameter."""
    if isinstance(key, Coupling):
        return other in key.correlation or any(e.has(other) for e in (key.variance, key.mean))
    if not isinstance(key, Quenched):
        return False
    return any(e.has(other) for e in (key.given, *(key.law.args if key.law is not None else ())) if e is not None)


def _named(key: Any, k: int) -> str:
    return f"{key.name}_{k}"
