"""Reading means: couplings without them, and a global variable for each sum over sites that they leave.

A coupling with the mean ``sum_k u_k v_k / N`` adds ``u_k * <v_k emission>`` to each field that is heard through it.
A sum that the user divides by the number of sites, without a coupling, is the same thing.

Any function of such an average is a number of all sites in the same way.

Sums over couplings of variance one that are divided by ``sqrt(N)`` are sums over couplings of variance ``1/N``.

With the mean ``u v / sqrt(N)`` that sum is of order ``sqrt(N)``, and has to balance a threshold of this order,
``u theta sqrt(N)``: the average of ``v emission`` is theta, and what remains of the sum is free, of order one. Where
several such sums stand together (excitation and inhibition), it is the whole that balances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Dummy, Expr, Mul, S, Sum, Symbol, cancel, expand_mul, sqrt

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.averages import Average, Expect
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import Kind, N, in_units_of_n
from symcavity.model.names import fresh_name
from symcavity.model.quantities import Global, SharedState, SiteQuantity, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting, holds_sums, sides, with_sides
from symcavity.model.rewritings.units import as_ratios, divided_inside, units_of
from symcavity.model.site_sums import couples_itself, free_kind, kind_of_sum, outer_sums, site_sum, summation_index


@dataclass
class Balance:
    """A sum of order sqrt(N) that balances a threshold.

    Attributes
    ----------
    total : Expr
        A sum over sites, or a combination of several that always stand together.
    average : Expr
        What it is to leading order, divided by N; zero without a threshold.
    """

    total: Expr
    average: Expr


class Means(Rewriting):
    """Couplings without means, in one unit, and global variables for the averages over sites that they leave.

    Attributes
    ----------
    families : dict
        For each coupling with a mean, the same without it.
    units : dict
        What couplings are measured in that stand in sums divided by ``sqrt(N)``, if not in one.
    averages : dict
        By each global variable that the means bring in: the kind of site that it is an average over, and of what.
    remainders : dict
        By each global variable that is what remains of a sum of order sqrt(N), by itself or with others: that sum.
    balances : dict
        By each global variable that is what remains of what has to balance: that sum, and its leading order.
    replaced : dict
        Each sum over sites as the user wrote it (at canonical indices), by what stands in its place.
    """

    key = "centre"

    def __init__(self, declaration: Declaration) -> None:
        found = declaration.expressions
        self._names = declaration.names | {"u", "v"}
        times = (q.family.over for e in found for q in site_quantities(e))
        self._time = next((time for time in times if time is not None), None)
        self.units = units_of(found)
        self.families: dict[Coupling, Coupling] = {}
        for family in families(found, Coupling):
            self._centre(family)
        self.averages: dict[Global, tuple[Kind, Expr]] = {}
        self.remainders: dict[Global, Sum] = {}
        self.balances: dict[Global, Balance] = {}
        self._known: dict[tuple[Any, ...], Global] = {}
        self.replaced: dict[Expr, Expr] = {}
        self._closed = False

    @property
    def globals(self) -> list[Global]:
        """The global variables that the means bring in."""
        return [*self.averages, *self.balances]

    @property
    def conditions(self) -> dict[Global, tuple[Expr, Expr]]:
        """What each of the global variables is: the sum over all sites, in proportion to their number."""
        out = {g: (Sum(body, kind.range), kind.size * g) for g, (kind, body) in self.averages.items()}
        return out | {g: (b.total, N * b.average + sqrt(N) * g) for g, b in self.balances.items()}

    @property
    def meanings(self) -> dict[Global, Expr]:
        """What each of the global variables is, in sums over sites."""
        out = {g: Sum(body, kind.range) / kind.size for g, (kind, body) in self.averages.items()}
        return out | {g: b.total / sqrt(N) - sqrt(N) * b.average for g, b in self.balances.items()}

    def steps(self, make: Any) -> list[Any]:
        """The replacements of sums, couplings and averages.

        A coupling is its centered part plus its mean; each field is the sum of the centered couplings, plus the
        parameters of its own site times averages over the sites that it hears; each of these averages is a global
        variable.
        """
        if not (self.families or self.globals):
            return []
        changed = {x: z for x, z in self.families.items() if x.mean != 0 or x in self.units}
        couplings = {x.at_site(): z.at_site() for x, z in changed.items()}
        claims = [Equation(x, self.units.get(x.family, 1) * z + mean_at(x)) for x, z in couplings.items()]
        whole = {g: total / sqrt(N) for g, total in self.remainders.items() if g not in self.balances}
        whole |= {g: g + sqrt(N) * balance.average for g, balance in self.balances.items()}
        claims += [Equation(total, new.xreplace(whole)) for total, new in self.replaced.items()]
        claims += [Equation(g, meaning) for g, meaning in self.meanings.items()]
        data = {
            "couplings": list(couplings),
            "centred": list(couplings.values()),
            "means": any(x.mean != 0 for x in changed),
            "units": any(x in self.units for x in changed),
            "globals": list(self.averages),
            "remainders": list(self.balances),
        }
        return [make(self.key, "centre", claims, data=data, rests_on=("problem",))]

    def _centre(self, family: Coupling) -> None:
        """Centre a family, those that it correlates with before it: it names them."""
        for other in family.correlation:
            self._centre(other)
        if (family.mean != 0 or family in self.units) and family not in self.families:
            name = fresh_name(self._names, "z", f"z_{family.name}")
            self.families[family] = family.centred(name, self.families, self.units.get(family, S.One))
        elif family not in self.families and family.correlation.keys() & self.families.keys():
            self.families[family] = family.centred(family.name, self.families)

    @property
    def symbols(self) -> dict[Expr, Expr]:
        """The global variables, and the couplings without means."""
        at = {z.at_site(): (x.at_site(), self.units.get(x, S.One)) for x, z in self.families.items()}
        return self.meanings | {z: (x - mean_at(x)) / unit for z, (x, unit) in at.items()}

    # -- rewriting -------------------------------------------------------------------------------

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration without means, and with the global variables that they leave."""
        out = declaration.mapped(
            lambda entry: self._read(entry, declaration.where(entry), objective=entry is declaration.objective)
        )
        self._closed = True
        return out.bringing(self.conditions)

    def _read(self, entry: Any, where: str, *, objective: bool = False) -> Any:
        """An expression, a relation, an equation or a pair without means; itself where it holds none."""
        entry = divided_inside(entry, self.units)
        if not holds_sums(entry):
            return entry
        read = sides(entry)
        kind = None if objective else free_kind(Add(*(Mul(s, Symbol(f"_{k}")) for k, s in enumerate(read))), where)
        new = self._whole(read, where) if kind is None else [self._at_site(s, kind, where) for s in read]
        if new == read:
            return entry
        if kind is not None:
            both = not isinstance(entry, Complementary)
            new = self._balanced(new, where) if both else [self._balanced([side], where)[0] for side in new]
        return with_sides(entry, new)

    def observable(self, expr: Expr, kind: Kind | None = None) -> Expr:
        """Return an observable without means; of one site, if its kind is given."""
        expr = divided_inside(expr, self.units)
        if not (self.families or self.globals) or not expr.has(Sum):
            return expr
        where = f"the observable {expr}"
        if kind is not None:
            return self._balanced([self._at_site(expr, kind, where)], where)[0]
        rule = {a: Average(self.observable(a.body, free_kind(a.body, where))) for a in expr.atoms(Average)}
        expr = expr.xreplace(rule)
        whole = {s: site_sum(s, where) for s in outer_sums(expr)}
        return expr.xreplace({s: Sum(self.observable(e, kind), kind.range) for s, (kind, e) in whole.items()})

    def _whole(self, sides: list[Expr], where: str) -> list[Expr]:
        """Rewrite sums over all sites: a sum of its own keeps its place, one inside of a function is an average."""
        out: list[list[Expr]] = []
        inside: dict[Expr, Expr] = {}
        orders: list[Expr] = []
        for side in sides:
            out.append([])
            for term in Add.make_args(expand_mul(side, deep=False)):  # expand() takes exponentials of sums apart
                factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
                if isinstance(rest, Sum) and kind_of_sum(rest.limits[-1]):
                    kind, body = site_sum(rest, where)
                    (new,) = self._balanced([self._at_site(body, kind, where)], where)
                    out[-1].append(term if new == body else factor * Sum(new, kind.range))
                    orders.append(factor * kind.size)
                else:
                    out[-1].append(self._at_site(term, None, where))
                    inside |= {term: out[-1][-1]} if out[-1][-1] != term else {}
        for term, new in inside.items():
            gap = in_units_of_n(new / [*orders, *inside.values()][0]).cancel().as_independent(N, as_Add=False)[1]
            if gap != 1:
                raise DeclarationError(
                    f"The term {term} of {where} is not in proportion to the others in the number of sites.",
                    "terms of one order: sums over sites, and functions of averages over sites, times N",
                    f"{term / gap}",
                )
        return [Add(*terms) for terms in out]

    def _balanced(self, sides: list[Expr], where: str) -> list[Expr]:
        """Take the thresholds of order sqrt(N) out, which what was of this order in the sums has to balance."""
        root = Dummy("R", positive=True)
        marked = [side.xreplace({sqrt(N): root, 1 / sqrt(N): 1 / root}) for side in sides]
        whole = marked[0] - Add(*marked[1:])
        whole = whole.xreplace({s: Dummy(real=True) for s in outer_sums(whole)})
        found = sorted(whole.atoms(Global) & set(self.remainders), key=str)
        rule: dict[Expr, Expr] = {root: S.Zero}
        while found:
            first, shares = found[0], {g: cancel(whole.diff(g) / whole.diff(found[0])) for g in found}
            together = {g: c for g, c in shares.items() if not site_quantities(c) and not c.has(root, *found)}
            found = [g for g in found if g not in together]
            average = -cancel(whole.diff(root) / whole.diff(first))
            if average.has(root, *self.remainders) or site_quantities(average) or (average != 0 and found):
                raise DeclarationError(
                    f"The terms of order sqrt(N) in {where} do not balance.",
                    "sums with a mean of order 1/sqrt(N), minus a threshold in proportion to their mean",
                    "Sum(x[mu, i]*w[i], (i, 1, N)) - theta*sqrt(N) for mean=c/sqrt(N)",
                )
            rule |= {**dict.fromkeys(together, S.Zero), first: self._balance(together, average, where)}
        return [side.subs(rule) for side in marked] if len(rule) > 1 else sides

    def _balance(self, together: dict[Global, Expr], average: Expr, where: str) -> Global:
        """What remains of some sums that have to balance a threshold together."""
        total = Add(*(c * self.remainders[g] for g, c in together.items()))
        bodies = Add(*(c * self.remainders[g].function for g, c in together.items()))
        g = next(iter(together)) if len(together) == 1 else self._brought_in((N, S.Zero, total), bodies, where)
        balance = self.balances.get(g)
        if balance is None and self._closed:
            raise DeclarationError(
                f"{where} holds {bodies} over all sites, which balances only together with other sums.",
                "the sums of order sqrt(N) as they stand together in the declaration",
            )
        self.balances[g] = balance = balance or Balance(total, average)
        if cancel(balance.average - average) != 0:
            raise DeclarationError(
                f"The average of {bodies} would be {balance.average} and, by {where}, {average}: "
                "sums of order sqrt(N) balance one threshold.",
                "the same threshold wherever the sum stands",
            )
        return g

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
        out = as_ratios(expr.xreplace(rule)) if rule else expr
        if hearer is None:
            return out
        bare = out.xreplace({s: Dummy(real=True) for s in outer_sums(out)})
        bare = bare.replace(Expect, lambda body: body)  # of which no slope is asked, but how large it is
        for g in sorted(out.atoms(Global, SiteQuantity) & set(self.averages), key=str):
            factor = in_units_of_n(bare.diff(g).xreplace(dict.fromkeys(self.averages, S.Zero))).cancel()
            if factor.has(N) and not (factor / N).cancel().has(N):
                kind, body = self.averages[g]
                raise DeclarationError(
                    f"The sum of {body} over all {kind.sites} stands in {where} without a coupling: it grows with N.",
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
                kept.append(term.xreplace({x: self.units.get(x.family, S.One) * self.families[x.family][x.indices]}))
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
            if outside.has(1 / sqrt(N)):
                out += in_units_of_n(outside * content * sqrt(N)) * self._remainder(sender, emission, where)
                continue
            if site_quantities(emission):
                emission = self._average(sender, emission, where)
            out += as_ratios(outside * content * sender.size) * emission
        return out

    def _remainder(self, sender: Kind, body: Expr, where: str) -> Global:
        """What remains of a sum of order sqrt(N): the same number for all who hear it."""
        if not site_quantities(body, Variable):
            raise DeclarationError(
                f"The sum of {body} over all {sender} sites stands in {where}, divided by sqrt(N): it is given, and no "
                "variable can balance it.",
                "couplings with a mean of order 1/sqrt(N) to variables",
                "a teacher that hears couplings of its own, correlated with these",
            )
        if any(q.time is not None for q in site_quantities(body)):
            raise UnsupportedLaw(
                f"The sum of {body} in {where} is of order sqrt(N), and moves.",
                "means in proportion to 1/N, of systems in time",
                "mean=c/N; or an inhibition of order one, by a sum that is divided by N",
            )
        g = self._brought_in((N, sender, body), body, where)
        self.remainders.setdefault(g, Sum(body, sender.range))
        return g

    def _average(self, sender: Kind, body: Expr, where: str) -> Global:
        g = self._brought_in((S.One, sender, body), body, where)
        self.averages.setdefault(g, (sender, body))
        return g

    def _brought_in(self, key: tuple[Any, ...], body: Expr, where: str) -> Global:
        """The global variable of a sum over sites, a new one where there is none yet."""
        if key not in self._known:
            if self._closed:
                raise DeclarationError(
                    f"{where} holds a sum of {body} over the {key[1]} sites that no field of the declaration has.",
                    "the sums that stand in the declaration",
                    f"average({body})",
                )
            label = "_".join(sorted({q.family.name for q in site_quantities(body)}) or ["1"])
            word = fresh_name(self._names, f"M_{label}")
            self._known[key] = Global(word) if self._time is None else SharedState(word, self._time).at_site()
        return self._known[key]


def mean_at(x: SiteQuantity) -> Expr:
    """The mean of one coupling at its own indices."""
    return x.family.mean.xreplace(dict(zip(x.family.ends, x.indices, strict=False)))


def _index_of(body: Expr, sender: Kind, hearer: Kind | None) -> Symbol:
    """The index that a sum runs over: the sender's, or the second one where a kind is coupled to itself."""
    return summation_index(sender, hearer) if hearer and couples_itself(body, hearer) else sender.index
