"""Reading means: couplings without them, and a global variable for each sum over sites that they leave.

A coupling with the mean ``sum_k u_k v_k / N`` adds ``u_k * <v_k emission>`` to each field that is heard through it.
A sum that the user divides by the number of sites, without a coupling, is the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Add, Basic, Dummy, Eq, Expr, Mul, S, Sum, Symbol, expand_mul
from sympy.core.relational import Relational

from symcavity.errors import DeclarationError
from symcavity.model.averages import Average
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.fields import couples_itself, free_kind, kind_of_sum, outer_sums, site_sum, summation_index
from symcavity.model.kinds import Kind, N, SiteCount, in_units_of_n
from symcavity.model.quantities import Complementary, Global, SiteQuantity, families, site_quantities


class Centring:
    """What a declaration with means is rewritten to.

    Parameters
    ----------
    exprs : iterable
        Everything declared: expressions, relations, equations, pairs.

    Attributes
    ----------
    families : dict
        For each coupling with a mean, the same without it.
    averages : dict
        By each global variable that the means bring in: the kind of site that it is an average over, and of what.
    replaced : dict
        Each sum over sites as the user wrote it (at canonical indices), by what stands in its place.
    """

    def __init__(self, exprs: Iterable[Any] = ()) -> None:
        found = [side for e in exprs for side in _sides(e)]
        found += [e for x in families(found, Coupling) for e in (x.mean, x.variance)]
        self._names = {q.family.name for e in found for q in site_quantities(e)}
        self._names |= {s.name for e in found for s in e.atoms(Symbol)} | {"u", "v"}
        self.families: dict[Coupling, Coupling] = {}
        for family in families(found, Coupling):
            self._centre(family)
        self.averages: dict[Global, tuple[Kind, Expr]] = {}
        self._known: dict[tuple[Kind | None, Kind, Expr], Global] = {}
        self.replaced: dict[Expr, Expr] = {}
        self.closed = False

    def __bool__(self) -> bool:
        return bool(self.families or self.averages)

    @property
    def conditions(self) -> list[Eq]:
        """What each of the global variables is: the sum over all sites, in proportion to their number."""
        return [Eq(Sum(body, kind.range), kind.size * g) for g, (kind, body) in self.averages.items()]

    def _centre(self, family: Coupling) -> None:
        """Centre a family, those that it correlates with before it: it names them."""
        for other in family.correlation:
            self._centre(other)
        if family.mean != 0 and family not in self.families:
            self.families[family] = family.centred(self._fresh("z", f"z_{family.name}"), self.families)
        elif family not in self.families and family.correlation.keys() & self.families.keys():
            self.families[family] = family.centred(family.name, self.families)

    def _fresh(self, *candidates: str) -> str:
        names = [*candidates, *(f"{candidates[-1]}_{k}" for k in range(2, 99))]
        chosen = next(name for name in names if name not in self._names)
        self._names.add(chosen)
        return chosen

    # -- rewriting -------------------------------------------------------------------------------

    def __call__(self, entry: Any, where: str, *, objective: bool = False) -> Any:
        """Return an expression, a relation, an equation or a pair without means; itself where it holds none."""
        sides = _sides(entry)
        if not any(side.has(Sum) for side in sides) or not all(_readable(side) for side in sides):
            return entry
        kind = None if objective else free_kind(Add(*(Mul(s, Symbol(f"_{k}")) for k, s in enumerate(sides))), where)
        new = [self._whole(s, where) if kind is None else self._at_site(s, kind, where) for s in sides]
        if new == sides:
            return entry
        return new[0] if isinstance(entry, Expr) else type(entry)(*new)

    def observable(self, expr: Expr, kind: Kind | None = None) -> Expr:
        """Return an observable in the words of what was rewritten; of one site, if its kind is given."""
        if not self or not expr.has(Sum):
            return expr
        where = f"the observable {expr}"
        if kind is not None:
            return self._at_site(expr, kind, where)
        rule = {a: Average(self._at_site(a.body, free_kind(a.body, where), where)) for a in expr.atoms(Average)}
        expr = expr.xreplace(rule)
        whole = {s: site_sum(s, where) for s in outer_sums(expr)}
        return expr.xreplace({s: Sum(self._at_site(e, kind, where), kind.range) for s, (kind, e) in whole.items()})

    def _whole(self, expr: Expr, where: str) -> Expr:
        """Rewrite sums over all sites: a sum of its own keeps its place, one inside of a function is an average."""
        out = []
        for term in Add.make_args(expand_mul(expr, deep=False)):  # expand() takes exponentials of sums apart
            factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
            if isinstance(rest, Sum) and len(rest.limits) == 1 and kind_of_sum(rest.limits[0]):
                kind, body = site_sum(rest, where)
                new = self._at_site(body, kind, where)
                out.append(term if new == body else factor * Sum(new, kind.range))
            else:
                out.append(self._at_site(term, None, where))
                if out[-1] != term and (in_units_of_n(out[-1]) / N).cancel().has(N):
                    raise DeclarationError(
                        f"The term {term} of {where} is not in proportion to the number of sites.",
                        "sums over sites, and functions of averages over sites, times N",
                        f"{term / N}",
                    )
        return Add(*out)

    def _at_site(self, expr: Expr, hearer: Kind | None, where: str) -> Expr:
        """Rewrite the sums over other sites in the expression of one site."""
        rule: dict[Expr, Expr] = {}
        for total in outer_sums(expr):
            if any(kind_of_sum(lim) is None for lim in total.limits) or total.function.has(Sum):
                continue
            sender, body = site_sum(total, where, hearer)
            new = self._sum(body, sender, hearer, total, where)
            if new != total:
                rule[total] = new
                self.replaced[Sum(body, (_index_of(body, sender, hearer), 1, sender.size))] = new
        out = _in_proportion(expr.xreplace(rule)) if rule else expr
        if hearer is None:
            return out
        bare = out.xreplace({s: Dummy(real=True) for s in outer_sums(out)})
        for g in sorted(out.atoms(Global) & set(self.averages), key=str):
            factor = in_units_of_n(bare.diff(g).xreplace(dict.fromkeys(self.averages, S.Zero))).cancel()
            if factor.has(N) and not (factor / N).cancel().has(N):
                kind, body = self.averages[g]
                raise DeclarationError(
                    f"The sum of {body} over all {kind} sites stands in {where} without a coupling: it grows with N.",
                    "such sums divided by the number of sites, or with a coupling in every term",
                    f"Sum({body}, {kind.range})/{kind.size}; or a coupling of its own, "
                    f'Coupling("J", between=({hearer.index}, {kind.index}))',
                )
        return out

    def _sum(self, body: Expr, sender: Kind, hearer: Kind | None, total: Sum, where: str) -> Expr:
        """One sum over sites: what is left of it, and the averages that its means bring in."""
        at = _index_of(body, sender, hearer)
        kept: list[Expr] = []
        means: dict[Expr, list[Expr]] = {}
        for term in Add.make_args(expand_mul(body)):
            coupled = site_quantities(term, Coupling)
            if coupled and not any(q.family in self.families for q in coupled):
                kept.append(term)
                continue
            if len(coupled) > 1 or (coupled and term.diff(coupled[0]).has(coupled[0])):
                return total  # the reading of the fields says what is wrong
            rest = [term]
            if coupled:
                (x,) = coupled
                rest = []
                kept.append(term.xreplace({x: self.families[x.family][x.indices]}))
                if x.family.mean != 0:
                    rest = list(Add.make_args(expand_mul(mean_at(x) * term / x)))
            for part in rest:
                theirs = [q for q in site_quantities(part) if at in q.indices]
                outside, inside = part.as_independent(*theirs, as_Add=False)
                means.setdefault(outside, []).append(inside)
        if not means and not any(q.family in self.families for q in site_quantities(body, Coupling)):
            return total
        out = Sum(Add(*kept), (at, 1, sender.size)) if kept else S.Zero
        for outside, inside in means.items():
            content, emission = Add(*inside).xreplace({at: sender.index}).as_content_primitive()
            if emission.could_extract_minus_sign():
                content, emission = -content, -emission
            if site_quantities(emission):
                emission = self._average(hearer, sender, emission, where)
            out += _in_proportion(outside * content * sender.size) * emission
        return out

    def _average(self, hearer: Kind | None, sender: Kind, body: Expr, where: str) -> Global:
        key = (hearer, sender, body)
        if key not in self._known:
            if self.closed:
                raise DeclarationError(
                    f"{where} holds an average of {body} over the {sender} sites that no field of the declaration has.",
                    "the sums that stand in the declaration",
                    f"average({body})",
                )
            label = "_".join(sorted({q.family.name for q in site_quantities(body)}) or ["1"])
            self._known[key] = Global(self._fresh(f"M_{label}"))
            self.averages[self._known[key]] = sender, body
        return self._known[key]


def mean_at(x: SiteQuantity) -> Expr:
    """The mean of one coupling at its own indices; of a kind coupled to itself its parameters are the first end's."""
    ends = [kind.index for kind in x.family.slots]
    return x.family.mean.xreplace(dict(reversed(list(zip(ends, x.indices, strict=False)))))


def _index_of(body: Expr, sender: Kind, hearer: Kind | None) -> Symbol:
    """The index that a sum runs over: the sender's, or the second one where a kind is coupled to itself."""
    return summation_index(sender, hearer) if hearer and couples_itself(body, hearer) else sender.index


def _sides(entry: Any) -> list[Expr]:
    if isinstance(entry, Equation):
        return [entry.lhs, entry.rhs]
    if isinstance(entry, Relational | Complementary):
        return [a for a in entry.args if isinstance(a, Expr)]
    return [entry] if isinstance(entry, Expr) else []


def _readable(expr: Basic) -> bool:
    """Whether the sums of an expression run over sites; other mistakes are for the reading of fields to name."""
    return not expr.has(Average)


def _in_proportion(expr: Expr) -> Expr:
    """Cancel numbers of sites, as ratios, in each product."""

    def cancelled(product: Mul) -> Expr:
        sizes = [f for f in product.args if f.atoms(SiteCount) and not f.atoms(SiteQuantity, Sum)]
        others = [f for f in product.args if f not in sizes]
        return Mul(*others, in_units_of_n(Mul(*sizes)))

    return expr.replace(lambda e: isinstance(e, Mul) and bool(e.atoms(SiteCount)), cancelled)


__all__ = ["Centring", "mean_at"]
